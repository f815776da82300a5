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
    // LangChain leaves the pieces of the first chunk as they are.
    for (const piece of chunk.tool_call_chunks ?? []) this.#rest ? this.#calls.merge(piece) : this.#calls.add(piece);
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

interface Call {
  readonly piece: ToolCallChunk;
  readonly position: number;
}

/** The calls with one index: several when their ids differ. */
interface SameIndex {
  readonly first: Call;
  /** Those that have no id yet, in order. */
  readonly anonymous: Call[];
  /** The first of each id. */
  readonly byId: Map<string, Call>;
}

/**
 * Pieces of calls, merged by the rules of LangChain: a piece belongs to the first call with the same index, and the same id where
 * both have one; without an index, to the first with the same id.
 */
class CallPieces {
  readonly #list: Call[] = [];
  readonly #byIndex = new Map<Index, SameIndex>();
  readonly #byId = new Map<string, Call>();

  /** Adds a piece as a call of its own. */
  add(source: ToolCallChunk): void {
    const call: Call = { piece: { ...source }, position: this.#list.length };
    this.#list.push(call);
    const { index, id } = source;
    if (isIndex(index)) this.#addTo(index, call);
    else if (id && !this.#byId.has(id)) this.#byId.set(id, call);
  }

  /** Adds a piece to its call. */
  merge(piece: ToolCallChunk): void {
    const call = this.#find(piece);
    if (!call) {
      this.add(piece);
      return;
    }
    const hadId = Boolean(call.piece.id);
    mergeInto(call.piece, piece);
    const { index, id } = call.piece;
    const same = !hadId && id && isIndex(index) ? this.#byIndex.get(index) : undefined;
    if (!same || !id) return;
    same.anonymous.shift();
    same.byId.set(id, call);
  }

  list(): ToolCallChunk[] {
    return this.#list.map(({ piece }) => piece);
  }

  #find({ index, id }: ToolCallChunk): Call | undefined {
    if (!isIndex(index)) return id ? this.#byId.get(id) : undefined;
    const same = this.#byIndex.get(index);
    if (!same || !id) return same?.first;
    const named = same.byId.get(id);
    const [anonymous] = same.anonymous;
    return named && anonymous ? (named.position < anonymous.position ? named : anonymous) : (named ?? anonymous);
  }

  #addTo(index: Index, call: Call): void {
    const same = this.#byIndex.get(index) ?? { first: call, anonymous: [], byId: new Map<string, Call>() };
    this.#byIndex.set(index, same);
    const { id } = call.piece;
    if (!id) same.anonymous.push(call);
    else if (!same.byId.has(id)) same.byId.set(id, call);
  }
}

/** Adds a later piece of a call to it, as LangChain does: ids and names are replaced, arguments are appended. */
function mergeInto(call: ToolCallChunk, piece: ToolCallChunk): void {
  const fields = call as unknown as Record<string, unknown>; // models may add fields of their own
  for (const [key, value] of Object.entries(piece) as [string, unknown][]) {
    const left = fields[key] ?? undefined;
    if (left === undefined) fields[key] = value;
    else if (value !== null && value !== undefined) fields[key] = mergeField(key, left, value);
  }
}

/** Fields that say which call it is, not what is in it. */
const KEPT: ReadonlySet<string> = new Set(['type', 'index', 'created', 'timestamp']);
const REPLACED: ReadonlySet<string> = new Set(['id', 'name', 'output_version', 'model_provider']);

function mergeField(key: string, left: unknown, right: unknown): unknown {
  if (typeof left === 'object' && typeof right === 'object') return mergeObjects(left, right);
  if (typeof left === 'string' && typeof right === 'string') {
    if (REPLACED.has(key)) return right === '' ? left : right;
    return KEPT.has(key) ? left : left + right;
  }
  if (typeof left === 'number' && typeof right === 'number') return KEPT.has(key) ? left : left + right;
  if (typeof left === typeof right) return left;
  throw new TypeError(`tool call field "${key}": cannot join ${typeof left} and ${typeof right}`);
}

/** Objects and lists do not occur in pieces of calls today; LangChain merges them by rules of its own. */
function mergeObjects(left: unknown, right: unknown): unknown {
  const wrap = (value: unknown): AIMessageChunk => new AIMessageChunk({ content: '', additional_kwargs: { value } });
  return wrap(left).concat(wrap(right)).additional_kwargs['value'];
}

const isIndex = (index: unknown): index is Index => typeof index === 'number' || typeof index === 'string';
