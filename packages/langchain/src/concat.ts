/**
 * Concatenates message chunks in linear time. `AIMessageChunk.concat` parses the arguments of every call again for each chunk, so
 * that a call of n pieces costs n² / 2; here they are parsed once, at the end.
 */

import { AIMessageChunk } from '@langchain/core/messages';
import type { ToolCallChunk } from '@langchain/core/messages/tool';

/**
 * The chunks of a stream as one chunk, equal to what `concat` of LangChain makes of them. Undefined when there are none.
 *
 * ```ts
 * const message = await concatChunks(await model.stream('hi'));
 * ```
 */
export async function concatChunks(
  chunks: AsyncIterable<AIMessageChunk> | Iterable<AIMessageChunk>,
): Promise<AIMessageChunk | undefined> {
  const whole = new ChunkConcat();
  for await (const chunk of chunks) whole.push(chunk);
  return whole.end();
}

/** The same for chunks that arrive by other ways: `push` each, then `end`. */
export class ChunkConcat {
  /** Everything but the pieces of calls: LangChain merges it in constant time for each chunk. */
  #rest: AIMessageChunk | undefined;
  readonly #calls = new CallPieces();

  /** Adds a chunk, which is not changed. */
  push(chunk: AIMessageChunk): void {
    const rest = withCalls(chunk, []);
    for (const piece of chunk.tool_call_chunks ?? []) this.#calls.push(piece);
    this.#rest = this.#rest?.concat(rest) ?? rest;
  }

  /** The whole so far. */
  end(): AIMessageChunk | undefined {
    const pieces = this.#calls.list();
    return this.#rest && pieces.length > 0 ? withCalls(this.#rest, pieces) : this.#rest;
  }
}

/** The chunk with other pieces of calls. Without pieces, `tool_calls` are what the model has set itself. */
function withCalls(chunk: AIMessageChunk, pieces: ToolCallChunk[]): AIMessageChunk {
  const { content, additional_kwargs, response_metadata, id, usage_metadata, name } = chunk;
  const isDerived = (chunk.tool_call_chunks?.length ?? 0) > 0;
  return new AIMessageChunk({
    content,
    additional_kwargs,
    response_metadata,
    tool_call_chunks: pieces,
    tool_calls: isDerived ? [] : (chunk.tool_calls ?? []),
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
    ...(usage_metadata !== undefined && { usage_metadata }),
  });
}

type Index = number | string;

/** The calls with one index: several when their ids differ. */
interface SameIndex {
  first: ToolCallChunk;
  /** The first that has no id yet. */
  anonymous: ToolCallChunk | undefined;
  byId: Map<string, ToolCallChunk>;
}

/** Pieces of calls, merged by the rules of LangChain: same index, and the same id where both have one; without an index, same id. */
class CallPieces {
  readonly #list: ToolCallChunk[] = [];
  readonly #byIndex = new Map<Index, SameIndex>();
  readonly #byId = new Map<string, ToolCallChunk>();

  push(piece: ToolCallChunk): void {
    const target = this.#find(piece);
    if (!target) {
      this.#add({ ...piece });
      return;
    }
    const hadId = Boolean(target.id);
    merge(target, piece);
    if (!hadId && target.id) this.#nameCall(target, target.id);
  }

  list(): ToolCallChunk[] {
    return this.#list;
  }

  #find({ index, id }: ToolCallChunk): ToolCallChunk | undefined {
    if (!isIndex(index)) return id ? this.#byId.get(id) : undefined;
    const same = this.#byIndex.get(index);
    if (!same || !id) return same?.first;
    // A call without an id is the first of its index: later pieces without one join the first, too.
    return same.anonymous ?? same.byId.get(id);
  }

  #add(call: ToolCallChunk): void {
    this.#list.push(call);
    const { index, id } = call;
    if (!isIndex(index)) {
      if (id && !this.#byId.has(id)) this.#byId.set(id, call);
      return;
    }
    const same = this.#byIndex.get(index) ?? { first: call, anonymous: undefined, byId: new Map() };
    this.#byIndex.set(index, same);
    if (id) same.byId.set(id, call);
    else same.anonymous = call;
  }

  /** A call gets its id. */
  #nameCall(call: ToolCallChunk, id: string): void {
    const same = isIndex(call.index) ? this.#byIndex.get(call.index) : undefined;
    if (!same) return;
    same.anonymous = undefined;
    if (!same.byId.has(id)) same.byId.set(id, call);
  }
}

const isIndex = (index: unknown): index is Index => typeof index === 'number' || typeof index === 'string';

function merge(target: ToolCallChunk, { id, name, args, ...rest }: ToolCallChunk): void {
  if (id) target.id = id;
  if (name) target.name = name;
  if (args != null) target.args = (target.args ?? '') + args;
  for (const [key, value] of Object.entries(rest)) if (!(key in target)) Object.assign(target, { [key]: value });
}
