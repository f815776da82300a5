import type { Assembled, AssembledCall, CanonicalUsage, ContentBlock } from '@sluice/core';
import type { Part } from '../mutate/index.ts';

/** An assembled message in the parts that are compared, each by itself: what a mutation loses is left out by name. */
export type Seen = Record<Part | 'reasoning' | 'refusal' | 'arguments' | 'complete' | 'error' | 'invalid' | 'choices', unknown>;

/** Keys that tell how the wire said something, not what it said. */
const WIRE_KEYS = new Set(['extensions', 'item_id', 'status', 'input_raw', 'id', 'name', 'signature', 'logprobs', 'tool_use_id']);

const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (key, inner: unknown) => (WIRE_KEYS.has(key) ? undefined : inner)) ?? 'null');

/** Chat has no order between content and calls: there, blocks are what neither is text nor a call, and what is said of the text. */
const isInOrder = (block: ContentBlock): boolean =>
  block.type !== 'text' && block.type !== 'thinking' && block.type !== 'tool_use';

function blocksOf({ protocol, message: { content } }: Assembled): unknown[] {
  if (protocol !== 'openai-chat') return content.map(plain);
  const citations = content.flatMap((block) => (block.type === 'text' && block.citations ? block.citations : []));
  return [...content.filter(isInOrder), ...citations].map(plain);
}

export function seenOf(result: Assembled): Seen {
  const { message, tool_calls: calls } = result;
  return {
    id: result.id,
    model: result.model,
    text: result.text,
    reasoning: result.reasoning,
    refusal: result.refusal,
    blocks: blocksOf(result),
    signatures: message.content.flatMap((block) =>
      'signature' in block && block.signature ? [{ ...block.signature, model: undefined, item_id: undefined }] : [],
    ),
    call_ids: calls.map(({ id }) => id),
    call_names: calls.map(({ name }) => name),
    call_order: calls.map(({ arguments: text }) => text),
    arguments: calls.map(({ arguments: text, type }) => `${type} ${text}`).toSorted(),
    finish: result.finish_reason,
    stop_details: [message.stop_sequence ?? null, message.stop_details?.category ?? null],
    usage: result.usage,
    logprobs: message.content.flatMap((block) => ('logprobs' in block && block.logprobs ? [block.logprobs] : [])),
    complete: result.complete,
    error: result.error,
    // A call without a name is invalid, too, but that is a part of its own.
    invalid: result.invalid_arguments.filter((at) => !isNameless(calls[at])),
    choices: plain(result.extras['choices'] ?? null),
  };
}

/** The names of the parts in which two messages differ. */
export function partsThatDiffer(a: Seen, b: Seen): (keyof Seen)[] {
  return (Object.keys(a) as (keyof Seen)[]).filter((part) => JSON.stringify(a[part]) !== JSON.stringify(b[part]));
}

/** Invalid for want of a name alone: its arguments are JSON. */
function isNameless(call: Assembled['tool_calls'][number] | undefined): boolean {
  if (!call || !/^tool_\d+$/.test(call.name)) return false;
  try {
    JSON.parse(call.arguments);
    return true;
  } catch {
    return false;
  }
}

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
