import type { Assembled, AssembledCall, CanonicalUsage } from '@sluice/core';
import { seenOf } from './seen.ts';

/** A JSON value with its keys in order: the same text for the same value. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, inner]) => [key, sorted(inner)] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
}

/** Anthropic and Gemini carry arguments as an object: spacing and the order of keys are not theirs to keep. */
function jsonValue(text: string): string {
  try {
    return JSON.stringify(sorted(JSON.parse(text)));
  } catch {
    return text;
  }
}

/** Counts that a wire has to write are 0 where nobody knows them. */
const usageOf = (usage: CanonicalUsage | null): number[] => [
  usage?.input_tokens ?? 0,
  usage?.output_tokens ?? 0,
  usage?.reasoning_tokens ?? 0,
  // Gemini has no word for what was written to a cache, nor every server for what was read.
  usage?.cache_read_tokens ?? 0,
  usage?.cache_creation_tokens ?? 0,
];

/** Calls that overlap open in the order of their first arguments, whatever their numbers: as a set they are the same. */
const callsOf = (calls: Assembled['tool_calls']): string[] =>
  calls.map(({ name, arguments: text, type }) => `${type} ${name} ${jsonValue(text)}`).toSorted();

/** Protocols without free text wrap it into an object, and arguments that are no object, too. */
function wrapped({ type, arguments: text, ...call }: AssembledCall): AssembledCall {
  const value = type === 'custom' ? text : parsed(text);
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const args = isObject ? text : JSON.stringify({ input: value });
  // What is null is not there.
  return { ...call, type: 'function', arguments: value === null ? '{}' : args };
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/**
 * No answer came, or none that is whole. A generation that the provider gave up is an error to the clients of other protocols, and a turn of
 * nothing but broken calls is one in Gemini, which has a word for it.
 */
const hasFailed = ({
  error,
  complete,
  finish_reason: finish,
  tool_calls: calls,
  invalid_arguments: broken,
}: Assembled): boolean => {
  const isMalformed = finish === 'tool_calls' && calls.length > 0 && broken.length === calls.length;
  return error !== null || !complete || finish === 'error' || isMalformed;
};

/** Refusals and pauses of Anthropic are an ordinary end, or a filter, to the others: only that there was an end is the same. */
function finishOf({ message, finish_reason: finish, refusal, tool_calls: calls }: Assembled): string | null {
  const { stop_reason: stop } = message;
  const isOwn = stop === 'refusal' || stop === 'pause_turn' || stop === 'content_filter' || refusal !== null;
  if (isOwn) return 'stop';
  // A message with calls ends with them to most clients, whatever its source says.
  return finish === 'stop' && calls.length > 0 ? 'tool_calls' : finish;
}

/** What every protocol can say, and so must survive every conversion. */
export function coreOf(result: Assembled): Record<string, unknown> {
  const failed = hasFailed(result);
  return {
    // Only the protocols of OpenAI tell a refusal from text.
    text: result.text + (result.refusal ?? ''),
    // Thinking of several blocks is one text in chat, with blank lines between.
    reasoning: result.reasoning.replaceAll('\n', ''),
    // A call that was cut off has no place in Gemini.
    calls: callsOf(result.tool_calls.filter((_, at) => !result.invalid_arguments.includes(at)).map(wrapped)),
    failed,
    ...(!failed && { finish: finishOf(result), usage: usageOf(result.usage).slice(0, 3) }),
  };
}

/** All of a message, for a conversion that must not lose anything: to the same protocol, or from a stream to a whole. */
export function normalOf(result: Assembled): Record<string, unknown> {
  // An early end leaves as an error of the client's protocol, and comes back as one.
  if (hasFailed(result)) return coreOf(result);
  const { call_ids: ids, call_names: _, call_order: __, arguments: ___, ...seen } = seenOf(result);
  return {
    ...seen,
    blocks: sorted(seen.blocks),
    calls: callsOf(result.tool_calls),
    call_ids: (ids as string[]).toSorted(),
    usage: usageOf(result.usage),
  };
}
