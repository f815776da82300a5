/** Compares two recorded responses. */

import {
  type AccumulatedMessage,
  type CanonicalResponse,
  type CanonicalStreamEvent,
  type ContentBlock,
  PROTOCOLS,
  type Protocol,
} from '@sluice/core';
import { StreamAccumulator } from '@sluice/core/engine';
import { listInexactNumbers } from '@sluice/core/internal';

/** Reads a response for comparison. */
export function readComparable(bytes: Uint8Array, protocol: Protocol | undefined, { all, events }: Closeness): Comparable {
  const received: CanonicalStreamEvent[] = [];
  const accumulator = new StreamAccumulator({
    protocol: protocol ?? Object.values(PROTOCOLS),
    onEvent: (event) => received.push(event),
  });
  accumulator.push(bytes);
  const read = accumulator.finish();
  // Bodies of unknown protocols are compared as bytes.
  if (read.protocol === null && protocol === undefined) return { read, value: { bytes: Buffer.from(bytes).toString('latin1') } };
  if (events) return { read, value: { events: joinDeltas(received).map((event) => (all ? event : comparableEvent(event))) } };
  return {
    read,
    value: all ? { ...read.message, complete: read.complete, wire_usage: read.wire_usage } : comparableMessage(read),
  };
}

/** What two responses are compared by. */
export interface Closeness {
  /**
   * Also compares what differs between any two responses: ids, model names, times, signatures, protocol-specific
   * fields.
   */
  all: boolean;
  /** Compares event by event instead of the assembled messages. */
  events: boolean;
}

/** A response, and the value to compare. */
export interface Comparable {
  read: AccumulatedMessage;
  value: unknown;
}

function comparableMessage({ message, complete, error }: AccumulatedMessage): object {
  const { stop_reason, stop_sequence, choices } = message;
  return {
    content: message.content.map(comparableBlock),
    stop_reason,
    ...(stop_sequence && { stop_sequence }),
    ...(choices && {
      choices: choices.map((choice) => ({ content: choice.content.map(comparableBlock), stop_reason: choice.stop_reason })),
    }),
    ...comparableUsage(message),
    complete,
    ...(error && { error: { code: error.code, message: error.message } }),
  };
}

/** Some protocols require counts and others do not, so no count and a count of zero are the same. */
function comparableUsage({ usage }: Pick<CanonicalResponse, 'usage'>): object {
  const { extensions: _, ...counts } = usage ?? {};
  const counted = Object.entries(counts).filter(([, count]) => count !== 0);
  return counted.length > 0 ? { usage: Object.fromEntries(counted) } : {};
}

/** A block without its ids. Arguments are compared as JSON values where they are valid. */
function comparableBlock(block: ContentBlock): object {
  const { extensions: _, ...rest } = block;
  if (rest.type === 'tool_use') {
    const { type, name, kind, input, input_raw: raw } = rest;
    // Numbers that a parsed value cannot hold are compared as they are written.
    const numbers = listInexactNumbers(raw ?? '').toSorted();
    return {
      type,
      name,
      ...(kind && { kind }),
      input: isEmpty(input) && raw ? raw : input,
      ...(numbers.length > 0 && { numbers }),
    };
  }
  if (rest.type === 'tool_result') return { ...rest, tool_use_id: undefined };
  if (rest.type === 'text' || rest.type === 'thinking') return { ...rest, signature: undefined };
  return rest;
}

const isEmpty = (input: unknown): boolean => typeof input === 'object' && input !== null && Object.keys(input).length === 0;

function comparableEvent(event: CanonicalStreamEvent): object {
  switch (event.type) {
    case 'message_start':
      return { type: event.type };
    case 'content_block_start':
      return { ...event, content_block: comparableBlock(event.content_block) };
    case 'content_block_stop':
      return { type: event.type, index: event.index };
    case 'message_delta':
      return { type: event.type, delta: event.delta, ...comparableUsage(event) };
    case 'content_block_delta':
      return event.delta.type === 'signature_delta' ? { ...event, delta: { type: event.delta.type } } : event;
    case 'error':
      return { type: event.type, error: { code: event.error.code, message: event.error.message } };
    case 'message_stop':
    case 'ping':
      return event;
    default:
      return event satisfies never;
  }
}

type DeltaEvent = Extract<CanonicalStreamEvent, { type: 'content_block_delta' }>;

/** Joins neighbouring deltas, since the cut of a text into deltas is arbitrary, and drops pings. */
function joinDeltas(events: readonly CanonicalStreamEvent[]): CanonicalStreamEvent[] {
  const out: CanonicalStreamEvent[] = [];
  for (const event of events) {
    const last = out.at(-1);
    const both =
      event.type === 'content_block_delta' && last?.type === 'content_block_delta' ? joinDelta(last, event) : undefined;
    if (both) out[out.length - 1] = both;
    else if (event.type !== 'ping') out.push(event);
  }
  return out;
}

function joinDelta(before: DeltaEvent, after: DeltaEvent): DeltaEvent | undefined {
  if (before.index !== after.index || before.choice !== after.choice) return undefined;
  const [a, b] = [before.delta, after.delta];
  if (a.type === 'text_delta' && b.type === 'text_delta' && a.refusal === b.refusal && !a.logprobs && !b.logprobs)
    return { ...before, delta: { ...a, text: a.text + b.text } };
  if (a.type === 'thinking_delta' && b.type === 'thinking_delta' && a.summary_index === b.summary_index)
    return { ...before, delta: { ...a, thinking: a.thinking + b.thinking } };
  if (a.type === 'input_json_delta' && b.type === 'input_json_delta')
    return { ...before, delta: { ...a, partial_json: a.partial_json + b.partial_json } };
  return undefined;
}

/** Lists the differences of two values, in the order of the first. */
export function listDifferences(a: unknown, b: unknown, path = ''): Difference[] {
  if (Array.isArray(a) && Array.isArray(b)) {
    const most = Math.max(a.length, b.length);
    return Array.from({ length: most }, (_, at) => listDifferences(a[at], b[at], `${path}[${at}]`)).flat();
  }
  if (isFields(a) && isFields(b)) {
    const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
    return [...keys].flatMap((key) => listDifferences(readOwn(a, key), readOwn(b, key), path === '' ? key : `${path}.${key}`));
  }
  return Object.is(a, b) ? [] : [{ path, a, b }];
}

/** A difference between two values. */
export interface Difference {
  /** The place, such as `content[0].text`. */
  path: string;
  /** undefined when absent. */
  a: unknown;
  b: unknown;
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const readOwn = (fields: Record<string, unknown>, key: string): unknown => (Object.hasOwn(fields, key) ? fields[key] : undefined);
