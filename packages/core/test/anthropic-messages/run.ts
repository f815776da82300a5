import { MessageAccumulator, type StreamResult } from '../../src/accumulate/message.ts';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import { isClientCall } from '../../src/canonical/message.ts';
import { pipe } from '../../src/canonical/stage.ts';
import { StreamValidator } from '../../src/canonical/validator.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { anthropicMessages } from '../../src/protocols/anthropic-messages/index.ts';
import { Diagnostics } from '../../src/rules/diagnostics.ts';
import { createSseDecoder } from '../../src/sse/index.ts';

export interface Run extends StreamResult {
  events: CanonicalStreamEvent[];
  rules: string[];
  payloads: JsonObject[];
}

/** Bytes through framing, decoder and the rules of the canonical stream, into a whole message. */
export function run(body: string | Uint8Array, chunkSize = Number.POSITIVE_INFINITY): Run {
  const diagnostics = new Diagnostics();
  const payloads: JsonObject[] = [];
  const context = { report: diagnostics.report, note: () => {} };
  const decoder = anthropicMessages.streamDecoder(context, { onPayload: (payload) => payloads.push(payload) });
  const stage = pipe(pipe(createSseDecoder({ report: diagnostics.report }), decoder), new StreamValidator());
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const events: CanonicalStreamEvent[] = [];
  for (let at = 0; at < bytes.length; at += chunkSize) events.push(...stage.push(bytes.slice(at, at + chunkSize)));
  events.push(...stage.end());
  const accumulator = new MessageAccumulator();
  for (const event of events) accumulator.push(event);
  return { events, payloads, rules: diagnostics.list().map(({ rule }) => rule), ...accumulator.finish() };
}

/** Payloads as a conforming server frames them. */
export const frames = (payloads: readonly JsonObject[]): string =>
  payloads.map((payload) => `event: ${String(payload['type'])}\ndata: ${JSON.stringify(payload)}\n\n`).join('');

const FINISH: Record<string, string> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  context_window: 'length',
  tool_use: 'tool_calls',
  content_filter: 'content_filter',
  refusal: 'content_filter',
  pause_turn: 'pause',
  error: 'error',
};

/** What the cases assert of a message. */
export function summary({ message, complete, error }: StreamResult) {
  const { content, stop_reason: stop, usage, extensions } = message;
  const calls = content.filter((block) => block.type === 'tool_use').filter(({ kind }) => isClientCall(kind));
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    reasoning: content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join(''),
    tool_calls: calls.map(({ id, name, input_raw: raw }) => ({ id, name, arguments: raw ?? (complete ? '{}' : '') })),
    finish_reason: error ? 'error' : stop && FINISH[stop],
    usage: usage?.extensions?.['anthropic-messages'],
    error: error?.upstream?.body,
    extras: {
      ...anthropicMessages.extras(message),
      native_finish_reason: extensions?.['anthropic-messages']?.['finish_reason'],
      ...(!complete && { incomplete: true }),
    },
  };
}
