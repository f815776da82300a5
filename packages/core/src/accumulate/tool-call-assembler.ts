import { isObject, type JsonObject, parseJson } from '../json/json.ts';
import { ArgumentText, type ArgumentTextState } from './argument-text.ts';
import { overlay } from './overlay.ts';
import {
  CallTracker,
  isNameless,
  isProviderExecuted,
  type PendingCall,
  type PendingHeader,
  type ToolCallLimits,
  type ToolCallType,
  type WireToolCall,
} from './tool-calls.ts';

/**
 * Assembles tool-call deltas into complete calls, by the rules of docs/tool-call-identity.md.
 *
 * ```ts
 * const calls = new ToolCallAssembler();
 * for (const chunk of chunks) calls.push(chunk);
 * calls.finish(); // [{ id, type, name, arguments }, …]
 * ```
 */
export class ToolCallAssembler {
  readonly #tracker: CallTracker;

  /** `idSeed`: derived ids are computed from it (the id of the response) and the position of the call. */
  constructor(limits: ToolCallLimits = {}, idSeed = '') {
    this.#tracker = new CallTracker(limits, idSeed);
  }

  /** The number of calls so far. */
  get size(): number {
    return this.#tracker.calls.length;
  }

  /**
   * Adds the `tool_calls` of a delta if they only continue the arguments of a known call; returns false for any other.
   */
  continue(entries: unknown): boolean {
    if (!Array.isArray(entries) || entries.length !== 1) return false;
    const entry: unknown = entries[0];
    return isObject(entry) && this.#tracker.continue(entry);
  }

  /**
   * Adds one tool-call delta, the `tool_calls` list of a chunk, or the chunk (its first choice). Anything else is
   * ignored. `isWhole`: the list is that of a whole message, where every entry with a name is a call.
   */
  push(input: unknown, isWhole = false): void {
    if (Array.isArray(input)) this.#tracker.push(input, isWhole);
    else if (isObject(input)) this.#pushObject(input, isWhole);
  }

  #pushObject(input: JsonObject, isWhole: boolean): void {
    const { choices, delta, message, tool_calls: calls } = input;
    if (Array.isArray(choices)) this.push(choices[0], isWhole);
    else if (calls !== undefined) this.push(calls, isWhole);
    else if (isObject(delta)) this.#pushObject(delta, isWhole);
    else if (isObject(message)) this.#pushObject(message, true);
    else if (isDelta(input)) this.#tracker.push([input]);
  }

  /**
   * The calls so far. `isWhole`: the message is complete, so empty arguments are final (`{}`); otherwise they may have
   * been cut off, and stay empty and invalid.
   */
  finish(isWhole = true): ToolCall[] {
    return this.unchecked(isWhole).map((call) => (isInvalid(call) ? { ...call, invalid: true } : call));
  }

  /** `finish` without `invalid`: parsing costs as much as everything else. */
  unchecked(isWhole: boolean): ToolCall[] {
    return sortCalls(this.#tracker.calls).map((call) => this.#build(call, isWhole));
  }

  #build(call: PendingCall, isWhole: boolean): ToolCall {
    const decided = call.arguments.decide().text;
    const text = decided === '' && isWhole && call.type === 'function' ? '{}' : decided;
    return {
      id: this.#tracker.idOf(call),
      type: call.type,
      name: this.#tracker.nameOf(call),
      arguments: text,
      ...(call.index !== undefined && { index: call.index }),
      ...(isNameless(call) && { invalid: true as const }),
      ...(isProviderExecuted(call) && { providerExecuted: true as const }),
      ...(call.extra && { extra: overlay({}, call.extra) }),
    };
  }

  /** The state as JSON: a stream can be resumed from it in another process. */
  toJSON(): ToolCallAssemblerState {
    const { calls, byIndex, byId, latest, batch, idsChange, characters } = this.#tracker;
    return {
      calls: calls.map(saveCall),
      byIndex: [...byIndex].map(([index, call]) => [index, call.position]),
      byId: [...byId].map(([id, call]) => [id, call.position]),
      latest: latest?.position ?? null,
      batch: batch.map((call) => call.position),
      idsChange: idsChange ?? null,
      characters,
    };
  }

  /** Resumes from a saved state. */
  static fromJSON(state: ToolCallAssemblerState, limits?: ToolCallLimits, idSeed?: string): ToolCallAssembler {
    const assembler = new ToolCallAssembler(limits, idSeed);
    const tracker = assembler.#tracker;
    for (const saved of state.calls) restoreCall(tracker.open(), saved);
    const at = (position: number): PendingCall => {
      const call = tracker.calls[position];
      if (!call) throw new RangeError(`no call at position ${position} in the saved state`);
      return call;
    };
    for (const [index, position] of state.byIndex) tracker.byIndex.set(index, at(position));
    for (const [id, position] of state.byId) tracker.byId.set(id, at(position));
    if (state.latest !== null) tracker.latest = at(state.latest);
    for (const [position, { pieceOf }] of state.calls.entries()) if (pieceOf !== null) at(position).pieceOf = at(pieceOf);
    tracker.batch = state.batch.map(at);
    tracker.idsChange = state.idsChange ?? undefined;
    tracker.characters = state.characters;
    return assembler;
  }
}

/** A complete call. `arguments` is the verbatim text, flagged as `invalid` when it is not JSON. */
export interface ToolCall {
  id: string;
  type: ToolCallType;
  name: string;
  arguments: string;
  /** The index on the wire, if there was one. */
  index?: number;
  /** The arguments of a function call are not JSON (truncated or garbled), or the call has no name. Do not run it. */
  invalid?: true;
  /** The provider ran the call itself. */
  providerExecuted?: true;
  /** Fields of the call that are not part of the standard. */
  extra?: JsonObject;
}

/** The state of a `ToolCallAssembler` as JSON. */
export interface ToolCallAssemblerState {
  calls: {
    id: string | null;
    wireId: string | null;
    index: number | null;
    name: string;
    literalName: string | null;
    type: ToolCallType;
    wireType: string | null;
    derivedId: string | null;
    extra: JsonObject | null;
    arguments: ArgumentTextState;
    opensWithId: boolean;
    isNamedLate: boolean;
    header: PendingHeader | null;
    pieceOf: number | null;
  }[];
  byIndex: [number, number][];
  byId: [string, number][];
  latest: number | null;
  batch: number[];
  idsChange: boolean | null;
  characters: number;
}

/** Choices have an index and chunks an id; only a tool-call delta has both, or a body. */
const isDelta = ({ index, id, function: body, custom }: WireToolCall): boolean =>
  isObject(body) || isObject(custom) || (index !== undefined && id !== undefined);

const isInvalid = (call: ToolCall): boolean => call.type === 'function' && parseJson(call.arguments) === undefined;

/** By the index on the wire when every call has its own; otherwise in order of arrival. */
function sortCalls(calls: readonly PendingCall[]): readonly PendingCall[] {
  const indexes = new Set(calls.map((call) => call.index));
  if (indexes.size !== calls.length || indexes.has(undefined)) return calls;
  return calls.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0));
}

type SavedCall = ToolCallAssemblerState['calls'][number];

function saveCall(call: PendingCall): SavedCall {
  return {
    id: call.id ?? null,
    wireId: call.wireId ?? null,
    index: call.index ?? null,
    name: call.name,
    literalName: call.literalName ?? null,
    type: call.type,
    wireType: call.wireType ?? null,
    derivedId: call.derivedId ?? null,
    extra: call.extra ?? null,
    arguments: { ...call.arguments },
    opensWithId: call.opensWithId,
    isNamedLate: call.isNamedLate,
    header: call.header ? { ...call.header } : null,
    pieceOf: call.pieceOf?.position ?? null,
  };
}

function restoreCall(call: PendingCall, saved: SavedCall): void {
  call.id = saved.id ?? undefined;
  call.wireId = saved.wireId ?? undefined;
  call.index = saved.index ?? undefined;
  call.name = saved.name;
  call.literalName = saved.literalName ?? undefined;
  call.type = saved.type;
  call.wireType = saved.wireType ?? undefined;
  call.derivedId = saved.derivedId ?? undefined;
  call.extra = saved.extra ?? undefined;
  const { text, last, fragments, released, snapshot } = saved.arguments;
  call.arguments = Object.assign(new ArgumentText(), { text, last, fragments, released, snapshot });
  call.opensWithId = saved.opensWithId;
  call.isNamedLate = saved.isNamedLate;
  call.header = saved.header ? { ...saved.header } : undefined;
}
