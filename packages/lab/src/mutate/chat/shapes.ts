/** Mutations of the form of the tool call list of OpenAI Chat. */

import { type Mutation, mutations, type WireStream } from '../mutation.ts';
import { edit, isDocument, type Json, objects, rewrite, without } from '../payloads.ts';
import { chunkLike, collectCalls, editCalls, editDeltas, type WholeCall } from './wire.ts';

const readDelta = (chunk: Json): Json => (objects(chunk['choices'])[0]?.['delta'] ?? {}) as Json;

const listEntries = (chunk: Json): Json[] => objects(readDelta(chunk)['tool_calls']);

const isCustom = (entry: Json): boolean => 'custom' in entry || entry['type'] === 'custom';

/** A chunk with nothing but deltas of calls of one choice. */
function isPure(chunk: Json): boolean {
  const [choice, another] = objects(chunk['choices']);
  const isAlone = !another && choice?.['finish_reason'] === null && !chunk['usage'] && Object.keys(readDelta(chunk)).length === 1;
  return isAlone && listEntries(chunk).length > 0 && !listEntries(chunk).some(isCustom);
}

const isOpener = (chunk: Json): boolean => isPure(chunk) && 'id' in (listEntries(chunk)[0] ?? {});

/**
 * The calls of one choice, if all of them are in pure chunks: only such calls can be moved without changing anything
 * else.
 */
function movable(chunks: readonly Json[]): readonly WholeCall[] {
  const holders = chunks.filter((chunk) => listEntries(chunk).length > 0);
  const choices = new Set(holders.map((chunk) => objects(chunk['choices'])[0]?.['index']));
  if (choices.size !== 1 || !holders.every(isPure)) return [];
  return [...(collectCalls(chunks)?.values() ?? [])];
}

/** Puts all calls, whole, in the place of the first delta. */
function gather(stream: WireStream, hasIndex: boolean): WireStream {
  return rewrite(stream, (chunks) => {
    const calls = movable(chunks);
    const first = chunks.findIndex((chunk) => listEntries(chunk).length > 0);
    const [chunk] = chunks.slice(first, first + 1);
    const [choice] = objects(chunk?.['choices']);
    if (calls.length === 0 || !chunk || !choice) return chunks;
    const entries = calls.map(({ id, name, arguments: text, position }) => ({
      ...(hasIndex && { index: position }),
      id,
      type: 'function',
      function: { name, arguments: text },
    }));
    const others = chunks.slice(first).filter((other) => listEntries(other).length === 0);
    return [...chunks.slice(0, first), chunkLike(chunk, choice, { tool_calls: entries }), ...others];
  });
}

/** Puts the first delta of a call and its first piece into one chunk, as two entries. */
function join(stream: WireStream): WireStream {
  return rewrite(stream, (chunks) =>
    chunks.flatMap((chunk, at) => {
      const [before, after] = [chunks[at - 1], chunks[at + 1]];
      if (before && areJoined(before, chunk)) return [];
      if (!after || !areJoined(chunk, after)) return [chunk];
      const [choice = {}] = objects(chunk['choices']);
      return [chunkLike(chunk, choice, { tool_calls: [...listEntries(chunk), ...listEntries(after)] })];
    }),
  );
}

function areJoined(opener: Json, piece: Json): boolean {
  if (!isOpener(opener) || !isPure(piece) || isOpener(piece)) return false;
  const places = [opener, piece].map((chunk) => `${objects(chunk['choices'])[0]?.['index']}:${listEntries(chunk)[0]?.['index']}`);
  return places[0] === places[1] && listEntries(opener).length === 1 && listEntries(piece).length === 1;
}

/** Puts the first deltas of all calls first, then their pieces in turns. */
function interleave(stream: WireStream): WireStream {
  return rewrite(stream, (chunks) => {
    if (movable(chunks).length < 2) return chunks;
    const isPiece = (chunk: Json): boolean => isPure(chunk) && !isOpener(chunk);
    const queues = new Map<unknown, Json[]>();
    for (const piece of chunks.filter(isPiece)) {
      const index = listEntries(piece)[0]?.['index'];
      queues.set(index, [...(queues.get(index) ?? []), piece]);
    }
    const longest = Math.max(0, ...[...queues.values()].map(({ length }) => length));
    const turns = Array.from({ length: longest }, (_, turn) =>
      [...queues.values()].flatMap((queue) => queue.slice(turn, turn + 1)),
    ).flat();
    const first = chunks.findIndex((chunk) => listEntries(chunk).length > 0);
    const rest = chunks.slice(first).filter((chunk) => !isPiece(chunk));
    const lastOpener = rest.findLastIndex(isOpener);
    return [...chunks.slice(0, first), ...rest.slice(0, lastOpener + 1), ...turns, ...rest.slice(lastOpener + 1)];
  });
}

/** Sends the ids of all calls after the last call is complete. */
function lateIds(stream: WireStream): WireStream {
  return rewrite(stream, (chunks) => {
    const calls = movable(chunks);
    const last = chunks.findLastIndex((chunk) => listEntries(chunk).length > 0);
    const chunk = chunks[last];
    const areWhole = calls.every(({ arguments: text, isSequential }) => isSequential && isDocument(text));
    if (calls.length < 2 || !chunk || !areWhole) return chunks;
    const [choice = {}] = objects(chunk['choices']);
    const nameless = chunks.map((one) =>
      isOpener(one) ? chunkLike(one, choice, { tool_calls: listEntries(one).map((entry) => without(entry, 'id')) }) : one,
    );
    const ids = chunkLike(chunk, choice, { tool_calls: calls.map(({ index, id }) => ({ index, id })) });
    return [...nameless.slice(0, last + 1), ids, ...nameless.slice(last + 1)];
  });
}

/** Uses the deprecated `function_call`, which holds only one call. */
function legacy(stream: WireStream): WireStream {
  return edit(stream, (chunk, _, chunks) => {
    if (movable(chunks).length !== 1) return chunk;
    const [choice = {}] = objects(chunk['choices']);
    const [entry] = listEntries(chunk);
    if (entry) return chunkLike(chunk, choice, { function_call: entry['function'] });
    return choice['finish_reason'] === 'tool_calls'
      ? { ...chunk, choices: [{ ...choice, finish_reason: 'function_call' }] }
      : chunk;
  });
}

/** Mutations of the form of the tool call list. */
export const CHAT_SHAPE_MUTATIONS: readonly Mutation[] = mutations('calls', ['openai-chat'], {
  'chat/type-missing': { title: 'Calls have no type', apply: (stream) => editCalls(stream, (entry) => without(entry, 'type')) },
  'chat/type-upper-case': {
    title: 'The type of a call is in capitals',
    rule: 'chat/tool-type-case',
    apply: (stream) => editCalls(stream, (entry) => ('type' in entry ? { ...entry, type: 'FUNCTION' } : entry)),
  },
  'chat/type-repeated': {
    title: 'Every delta of a call has its type',
    apply: (stream) => editCalls(stream, (entry) => ({ ...entry, type: 'function' })),
  },
  'chat/function-null': {
    title: 'Deltas with function null',
    rule: 'chat/tool-function-null',
    apply: (stream) =>
      editCalls(stream, (entry, { isLast }) => (isLast ? [entry, { index: entry['index'], function: null }] : entry)),
  },
  'chat/calls-whole': { title: 'All calls, whole, in one chunk', apply: (stream) => gather(stream, true) },
  'chat/calls-whole-no-index': {
    title: 'All calls, whole, in one chunk, without an index',
    rule: 'chat/tool-index-missing',
    apply: (stream) => gather(stream, false),
  },
  'chat/ids-after-all-calls': {
    title: 'The ids of all calls come in one delta after the last of them',
    rule: 'chat/tool-call-resumed',
    apply: lateIds,
  },
  'chat/calls-joined': { title: 'The delta that opens a call and its first piece are two entries of one chunk', apply: join },
  'chat/calls-interleaved': { title: 'The pieces of parallel calls alternate', apply: interleave },
  'chat/calls-not-a-list': {
    title: 'tool_calls is an object, not a list',
    apply: (stream) =>
      editDeltas(stream, (delta) => {
        const [only, another] = objects(delta['tool_calls']);
        return only && !another ? { ...delta, tool_calls: only } : delta;
      }),
  },
  'chat/calls-empty': {
    title: 'tool_calls is [] or null on all other deltas',
    apply: (stream) =>
      editDeltas(stream, (delta, _, at) => ('tool_calls' in delta ? delta : { ...delta, tool_calls: at % 2 === 0 ? [] : null })),
  },
  'chat/function-call': {
    title: 'The deprecated function_call',
    loses: ['call_ids'],
    rule: 'chat/legacy-function-call',
    apply: legacy,
  },
});
