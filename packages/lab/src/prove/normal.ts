/** Messages in forms that can be compared: all parts, or those that every conversion must preserve. */

import type { AccumulatedCall, AccumulatedMessage, CanonicalUsage, ContentBlock } from '@sluice/core';
import type { Part } from '../mutate/index.ts';

/**
 * An assembled message in the parts that are compared one by one, so that parts a mutation loses can be excluded by
 * name.
 */
export type MessageParts = Record<
  Part | 'reasoning' | 'refusal' | 'arguments' | 'complete' | 'error' | 'invalid' | 'choices',
  unknown
>;

/** The comparable parts of a message. */
export function readMessageParts(result: AccumulatedMessage): MessageParts {
  const { message, tool_calls: calls } = result;
  return {
    id: result.id,
    model: result.model,
    text: result.text,
    reasoning: result.reasoning,
    refusal: result.refusal,
    blocks: listBlocks(result),
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
    // A call without a name is invalid, too, but `call_names` covers that.
    invalid: result.invalid_arguments.filter((at) => !isNameless(calls[at])),
    choices: withoutWireKeys(result.extras['choices'] ?? null),
  };
}

/**
 * All parts of a message, for a conversion that must not lose anything: to the same protocol, or from a stream to a
 * whole response.
 */
export function normaliseMessage(result: AccumulatedMessage): Record<string, unknown> {
  // An early end is written as an error of the client's protocol and read back as one.
  if (hasFailed(result)) return pickCore(result);
  const { call_ids: ids, call_names: _, call_order: __, arguments: ___, ...seen } = readMessageParts(result);
  return {
    ...seen,
    blocks: sortKeys(seen.blocks),
    calls: describeCalls(result.tool_calls),
    call_ids: (ids as string[]).toSorted(),
    usage: listCounts(result.usage),
  };
}

/** The parts that every protocol has and that every conversion must preserve. */
export function pickCore(result: AccumulatedMessage): Record<string, unknown> {
  const failed = hasFailed(result);
  return {
    // Only OpenAI's protocols distinguish a refusal from text.
    text: result.text + (result.refusal ?? ''),
    // Several thinking blocks are one text in chat, joined with blank lines.
    reasoning: result.reasoning.replaceAll('\n', ''),
    // Gemini cannot represent a call that was cut off.
    calls: describeCalls(result.tool_calls.filter((_, at) => !result.invalid_arguments.includes(at)).map(wrapArguments)),
    failed,
    ...(!failed && { finish: normalFinish(result), usage: listCounts(result.usage).slice(0, 3) }),
  };
}

/** Lists the parts in which two messages differ. */
export function listDifferentParts(a: MessageParts, b: MessageParts): (keyof MessageParts)[] {
  return (Object.keys(a) as (keyof MessageParts)[]).filter((part) => JSON.stringify(a[part]) !== JSON.stringify(b[part]));
}

/** A JSON value with its keys sorted, so that equal values have the same text. */
export function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, inner]) => [key, sortKeys(inner)] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
}

const withoutWireKeys = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (key, inner: unknown) => (WIRE_KEYS.has(key) ? undefined : inner)) ?? 'null');

/** Keys that describe how the wire sent something, not what it sent. */
const WIRE_KEYS = new Set(['extensions', 'item_id', 'status', 'input_raw', 'id', 'name', 'signature', 'logprobs', 'tool_use_id']);

function listBlocks({ protocol, message: { content } }: AccumulatedMessage): unknown[] {
  if (protocol !== 'openai-chat') return content.map(withoutWireKeys);
  const citations = content.flatMap((block) => (block.type === 'text' && block.citations ? block.citations : []));
  return [...content.filter(isInOrder), ...citations].map(withoutWireKeys);
}

/**
 * Chat has no order between content and calls, so only blocks that are neither text nor a call are compared in order.
 */
const isInOrder = (block: ContentBlock): boolean =>
  block.type !== 'text' && block.type !== 'thinking' && block.type !== 'tool_use';

/** Whether a call is invalid only because it has no name: its arguments are JSON. */
function isNameless(call: AccumulatedMessage['tool_calls'][number] | undefined): boolean {
  if (!call || !/^tool_\d+$/.test(call.name)) return false;
  try {
    JSON.parse(call.arguments);
    return true;
  } catch {
    return false;
  }
}

/** Unknown counts are 0, because some protocols must write a number. */
const listCounts = (usage: CanonicalUsage | null): number[] => [
  usage?.input_tokens ?? 0,
  usage?.output_tokens ?? 0,
  // More reasoning than output is reported as it is, and written as at most the output.
  Math.min(usage?.reasoning_tokens ?? 0, usage?.output_tokens ?? 0),
  // Gemini does not report cache writes, and not every server reports cache reads.
  usage?.cache_read_tokens ?? 0,
  usage?.cache_creation_tokens ?? 0,
];

/**
 * Overlapping calls open in the order of their first arguments, whatever their indexes, so they are compared as a set.
 */
const describeCalls = (calls: AccumulatedMessage['tool_calls']): string[] =>
  calls.map(({ name, arguments: text, type }) => `${type} ${name} ${jsonValue(text)}`).toSorted();

/** Anthropic and Gemini send arguments as an object, so spacing and the order of keys are not preserved. */
function jsonValue(text: string): string {
  try {
    return JSON.stringify(sortKeys(JSON.parse(text)));
  } catch {
    return text;
  }
}

/** Protocols without free text wrap it in an object, and arguments that are not an object, too. */
function wrapArguments({ type, arguments: text, ...call }: AccumulatedCall): AccumulatedCall {
  const value = type === 'custom' ? text : parseOrText(text);
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const args = isObject ? text : JSON.stringify({ input: value });
  // null counts as absent.
  return { ...call, type: 'function', arguments: value === null ? '{}' : args };
}

const parseOrText = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/**
 * No response, or an incomplete one. A generation that the provider aborted is an error to clients of other protocols,
 * and a turn of nothing but broken calls is an error in Gemini, which has its own finish reason for it.
 */
const hasFailed = ({
  error,
  complete,
  finish_reason: finish,
  tool_calls: calls,
  invalid_arguments: broken,
}: AccumulatedMessage): boolean => {
  const isMalformed = finish === 'tool_calls' && calls.length > 0 && broken.length === calls.length;
  return error !== null || !complete || finish === 'error' || isMalformed;
};

/**
 * Anthropic's refusals and pauses become a plain end or a filter in other protocols, so all of them count as a stop.
 */
function normalFinish({ message, finish_reason: finish, refusal, tool_calls: calls }: AccumulatedMessage): string | null {
  const { stop_reason: stop } = message;
  const isOwn = stop === 'refusal' || stop === 'pause_turn' || stop === 'content_filter' || refusal !== null;
  if (isOwn) return 'stop';
  // Most protocols report a message with calls as ended by them, whatever the source reports.
  return finish === 'stop' && calls.length > 0 ? 'tool_calls' : finish;
}
