import {
  type Assembled,
  Assembler,
  type CanonicalResponse,
  type CanonicalStreamEvent,
  type ContentBlock,
  PROTOCOLS,
  type Protocol,
} from '@sluice/core';

/** How closely two answers are looked at. */
export interface Closeness {
  /** Also what differs from one answer to the next by itself: ids, model names, times, signatures, fields of the protocol alone. */
  all: boolean;
  /** Event by event, instead of what they come to. */
  events: boolean;
}

export interface Difference {
  /** Where: `content[0].text`. */
  path: string;
  /** undefined where there is none. */
  a: unknown;
  b: unknown;
}

/** An answer, and what of it is compared. */
export interface Comparable {
  read: Assembled;
  value: unknown;
}

export function comparableOf(bytes: Uint8Array, protocol: Protocol | undefined, { all, events }: Closeness): Comparable {
  const heard: CanonicalStreamEvent[] = [];
  const assembler = new Assembler({ protocol: protocol ?? Object.values(PROTOCOLS), onEvent: (event) => heard.push(event) });
  assembler.push(bytes);
  const read = assembler.end();
  // What nobody can read can still be the same.
  if (read.protocol === null && protocol === undefined) return { read, value: { bytes: Buffer.from(bytes).toString('latin1') } };
  if (events) return { read, value: { events: joined(heard).map((event) => (all ? event : eventOf(event))) } };
  return { read, value: all ? { ...read.message, complete: read.complete, wire_usage: read.wire_usage } : messageOf(read) };
}

function messageOf({ message, complete, error }: Assembled): object {
  const { stop_reason, stop_sequence, choices } = message;
  return {
    content: message.content.map(blockOf),
    stop_reason,
    ...(stop_sequence && { stop_sequence }),
    ...(choices && {
      choices: choices.map((choice) => ({ content: choice.content.map(blockOf), stop_reason: choice.stop_reason })),
    }),
    ...usageOf(message),
    complete,
    ...(error && { error: { code: error.code, message: error.message } }),
  };
}

/** Some protocols must count, and others need not: nothing counted and a count of zero are the same. */
function usageOf({ usage }: Pick<CanonicalResponse, 'usage'>): object {
  const { extensions: _, ...counts } = usage ?? {};
  const counted = Object.entries(counts).filter(([, count]) => count !== 0);
  return counted.length > 0 ? { usage: Object.fromEntries(counted) } : {};
}

/** A block without what names it. Arguments are compared as what they say, where they say something. */
function blockOf(block: ContentBlock): object {
  const { extensions: _, ...rest } = block;
  if (rest.type === 'tool_use') {
    const { type, name, kind, input, input_raw: raw } = rest;
    return { type, name, ...(kind && { kind }), input: isEmpty(input) && raw ? raw : input };
  }
  if (rest.type === 'tool_result') return { ...rest, tool_use_id: undefined };
  if (rest.type === 'text' || rest.type === 'thinking') return { ...rest, signature: undefined };
  return rest;
}

const isEmpty = (input: unknown): boolean => typeof input === 'object' && input !== null && Object.keys(input).length === 0;

function eventOf(event: CanonicalStreamEvent): object {
  switch (event.type) {
    case 'message_start':
      return { type: event.type };
    case 'content_block_start':
      return { ...event, content_block: blockOf(event.content_block) };
    case 'content_block_stop':
      return { type: event.type, index: event.index };
    case 'message_delta':
      return { type: event.type, delta: event.delta, ...usageOf(event) };
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

/** How a text was cut into deltas is nobody's message: neighbours become one. Pings say nothing. */
function joined(events: readonly CanonicalStreamEvent[]): CanonicalStreamEvent[] {
  const out: CanonicalStreamEvent[] = [];
  for (const event of events) {
    const last = out.at(-1);
    const both =
      event.type === 'content_block_delta' && last?.type === 'content_block_delta' ? joinedDelta(last, event) : undefined;
    if (both) out[out.length - 1] = both;
    else if (event.type !== 'ping') out.push(event);
  }
  return out;
}

function joinedDelta(before: DeltaEvent, after: DeltaEvent): DeltaEvent | undefined {
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

/** Where two values differ; their order is that of the first. */
export function differencesOf(a: unknown, b: unknown, path = ''): Difference[] {
  if (Array.isArray(a) && Array.isArray(b)) {
    const most = Math.max(a.length, b.length);
    return Array.from({ length: most }, (_, at) => differencesOf(a[at], b[at], `${path}[${at}]`)).flat();
  }
  if (isFields(a) && isFields(b)) {
    const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
    return [...keys].flatMap((key) => differencesOf(own(a, key), own(b, key), path === '' ? key : `${path}.${key}`));
  }
  return Object.is(a, b) ? [] : [{ path, a, b }];
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const own = (fields: Record<string, unknown>, key: string): unknown => (Object.hasOwn(fields, key) ? fields[key] : undefined);
