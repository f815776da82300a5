import type { Assembled, ContentBlock } from '@sluice/core';
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
