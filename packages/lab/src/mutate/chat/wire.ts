/** The chunks of OpenAI Chat as mutations see them: choices, deltas and tool calls. */

import type { WireStream } from '../mutation.ts';
import { edit, type Json, objects, rewrite, toText, within, withinEach, without } from '../payloads.ts';

/** Changes every choice of every chunk. */
export const editChoices = (stream: WireStream, change: (choice: Json, chunk: Json, at: number) => Json): WireStream =>
  edit(stream, (chunk, at) => withinEach(chunk, 'choices', (choice) => change(choice, chunk, at)));

/** Changes every delta. */
export const editDeltas = (stream: WireStream, change: (delta: Json, choice: Json, at: number) => Json): WireStream =>
  editChoices(stream, (choice, _, at) => within(choice, 'delta', (delta) => change(delta, choice, at)));

/** A chunk with this delta in the envelope of another, without a finish reason. */
export function chunkLike(chunk: Json, choice: Json, delta: Json): Json {
  const rest = without(chunk, 'choices', 'usage');
  return {
    ...rest,
    choices: [{ index: choice['index'] ?? 0, delta, finish_reason: null }],
    ...('usage' in chunk && { usage: null }),
  };
}

/** One delta of a call, and its place in the call. */
export interface CallPlace {
  readonly call: WholeCall;
  /** 0 for the delta that opens the call. */
  readonly at: number;
  readonly isLast: boolean;
  /** The arguments before this delta. */
  readonly before: string;
}

/** A call of a stream, assembled from its deltas. */
export interface WholeCall {
  readonly id: string;
  readonly index: number;
  readonly name: string;
  readonly arguments: string;
  /** The arguments of the last delta. */
  readonly last: string;
  /** Its position among the calls of the choice, in the order of opening. */
  readonly position: number;
  /** The calls of the choice follow each other: none begins before the previous one is complete. */
  readonly isSequential: boolean;
  readonly siblings: readonly WholeCall[];
  readonly deltas: number;
}

interface OpenCall {
  id: string;
  index: number;
  name: string;
  arguments: string;
  last: string;
  position: number;
  deltas: number;
  isSequential: boolean;
  siblings: OpenCall[];
}

interface Entry {
  key: string;
  choice: string;
  entry: Json;
}

const readFunction = (entry: Json): Json =>
  typeof entry['function'] === 'object' && entry['function'] ? (entry['function'] as Json) : {};

/** The function name in a delta of a call. */
export const readName = (entry: Json): string => toText(readFunction(entry)['name']);

/** The piece of arguments in a delta of a call. */
export const readArguments = (entry: Json): string => toText(readFunction(entry)['arguments']);

/** The function calls of a stream by choice and index; undefined when they do not follow the standard. */
export function collectCalls(chunks: readonly Json[]): ReadonlyMap<string, WholeCall> | undefined {
  const calls = new Map<string, OpenCall>();
  const latest = new Map<string, OpenCall>();
  for (const { key, choice, entry } of chunks.flatMap(listEntries)) {
    const call = calls.get(key) ?? openCall(entry, latest.get(choice)?.siblings ?? []);
    if (!call) return undefined;
    // This call continues after another one has begun.
    if (calls.has(key) && latest.get(choice) !== call) for (const sibling of call.siblings) sibling.isSequential = false;
    calls.set(key, call);
    latest.set(choice, call);
    call.last = readArguments(entry);
    call.arguments += call.last;
    call.deltas++;
  }
  for (const call of calls.values()) call.isSequential = call.siblings.every(({ isSequential }) => isSequential);
  return calls;
}

/** The first delta of a call has id, index and name by the standard. */
function openCall(entry: Json, siblings: OpenCall[]): OpenCall | undefined {
  const { id, index } = entry;
  const name = readName(entry);
  if (typeof id !== 'string' || id === '' || name === '' || typeof index !== 'number') return undefined;
  const call = { id, index, name, arguments: '', last: '', position: siblings.length, deltas: 0, isSequential: true, siblings };
  siblings.push(call);
  return call;
}

const listEntries = (chunk: Json): Entry[] =>
  objects(chunk['choices']).flatMap((choice) =>
    objects((choice['delta'] as Json | undefined)?.['tool_calls']).map((entry) => ({
      entry,
      choice: String(choice['index'] ?? 0),
      key: `${choice['index'] ?? 0}:${entry['index']}`,
    })),
  );

/**
 * Changes the deltas of function calls, each to one or several. Several are sent one per chunk, the last in the chunk
 * of the original, so that the rest of that chunk, such as the finish reason, still follows.
 */
export function editCalls(stream: WireStream, change: (entry: Json, place: CallPlace) => Json | Json[]): WireStream {
  return rewrite(stream, (chunks) => {
    const calls = collectCalls(chunks);
    if (!calls) return chunks;
    const seen = new Map<string, { at: number; before: string }>();
    return chunks.flatMap((chunk) => {
      const early: Json[] = [];
      const changed = withinEach(chunk, 'choices', (choice) =>
        within(choice, 'delta', (delta) =>
          withinEach(delta, 'tool_calls', (entry) => {
            const key = `${choice['index'] ?? 0}:${entry['index']}`;
            const call = calls.get(key);
            if (!call || entry['type'] === 'custom' || 'custom' in entry) return entry;
            const { at, before } = seen.get(key) ?? { at: 0, before: '' };
            seen.set(key, { at: at + 1, before: before + readArguments(entry) });
            const after = change(entry, { call, at, before, isLast: at + 1 === call.deltas });
            if (!Array.isArray(after)) return after;
            for (const one of after.slice(0, -1)) early.push(chunkLike(chunk, choice, { tool_calls: [one] }));
            return after.at(-1) ?? entry;
          }),
        ),
      );
      return [...early, changed];
    });
  });
}

/** The delta with fields of its function changed. */
export const withFunction = (entry: Json, change: Json): Json => ({ ...entry, function: { ...readFunction(entry), ...change } });

/** The delta without some fields of its function. */
export const withoutFunction = (entry: Json, ...keys: readonly string[]): Json =>
  within(entry, 'function', (body) => without(body, ...keys));
