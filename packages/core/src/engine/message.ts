/** Accumulates a stream into one message with plain field names, the same for every protocol. */

import { splitThink } from '../accumulate/chat-delta.ts';
import { MessageAccumulator, type StreamResult } from '../accumulate/message.ts';
import type { CanonicalStreamEvent } from '../canonical/events.ts';
import {
  type CanonicalChoice,
  type CanonicalResponse,
  type CanonicalUsage,
  type ContentBlock,
  isClientCall,
  type StopReason,
  type ToolUseBlock,
} from '../canonical/message.ts';
import { type CanonicalError, type ErrorCode, type Note, ownError } from '../canonical/notes.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import { isScalar } from '../codec/errors.ts';
import type { Protocol } from '../codec/protocol.ts';
import { isObject, type JsonObject, parseJson, setOwn, writeJson } from '../json/json.ts';
import type { Diagnostic } from '../rules/index.ts';
import { EventReader, type EventReaderOptions } from './reader.ts';

/** Reads a stream of any protocol to its end. Apart from `StreamAccumulator`, so that `accumulate` is small. */
export class StreamReader {
  protected readonly events: EventReader;
  protected readonly message: MessageAccumulator = new MessageAccumulator();
  #utf8: TextEncoder | undefined;

  constructor(options: StreamAccumulatorOptions) {
    this.events = new EventReader(options);
  }

  /** A limit was exceeded: the rest of the body is ignored, so reading on is of no use. */
  get hasFailed(): boolean {
    return this.events.hasFailed;
  }

  /**
   * Adds a piece of the body (bytes or text, split anywhere), or a payload that is parsed already: a chunk or event of
   * an SDK's stream, or a whole response. Throws a TypeError for anything else.
   */
  push(input: StreamElement): void {
    for (const event of this.#read(input)) this.message.push(event);
  }

  #read(input: StreamElement): CanonicalStreamEvent[] {
    if (input instanceof Uint8Array) return this.events.push(input);
    if (typeof input === 'string') {
      this.#utf8 ??= new TextEncoder();
      return this.events.push(this.#utf8.encode(input));
    }
    if (isObject(input)) return this.events.pushPayload(input);
    throw new TypeError(`push(input): expected bytes, text or a parsed chunk; got ${describeInput(input)}`);
  }

  /** The stream has ended: the whole message. */
  finish(): AccumulatedMessage {
    for (const event of this.events.end()) this.message.push(event);
    return this.describe(this.message.finish());
  }

  /** The source broke off: the message has everything read so far, and the reason as its error. */
  fail(reason: string | CanonicalError): AccumulatedMessage {
    const error =
      typeof reason === 'string' ? ownError('stream_error', 'UPSTREAM_ERROR', `reading the stream failed: ${reason}`) : reason;
    for (const event of this.events.end()) this.message.push(event);
    this.message.push({ type: 'error', error });
    return { ...this.describe(this.message.finish()), complete: false };
  }

  protected describe(result: StreamResult): AccumulatedMessage {
    const { protocol, diagnostics, notes, completion } = this.events;
    return describeMessage(protocol ?? null, result, { diagnostics, notes, completion });
  }
}

/**
 * Accumulates a stream of any protocol into a whole message, without I/O. Everything can be read at any time.
 *
 * ```ts
 * const accumulator = new StreamAccumulator({ protocol: openaiChat });
 * for (const chunk of chunks) accumulator.push(chunk);
 * const { text, tool_calls, diagnostics } = accumulator.finish();
 * ```
 */
export class StreamAccumulator extends StreamReader {
  /** The text so far. */
  get text(): string {
    return joinTexts(this.message.content).text;
  }

  /** The reasoning so far. */
  get reasoning(): string {
    return joinTexts(this.message.content).reasoning;
  }

  /**
   * The calls so far; `invalid` while their arguments are not complete JSON. A call of Gemini is listed once other
   * content or the end follows it: until then Google may answer it itself.
   */
  get toolCalls(): LiveToolCall[] {
    const { content } = this.message;
    const calls = listCalls(this.events.protocol ?? null, { content, stop_reason: this.#stopReason });
    const invalid = new Set(findInvalid(calls, content));
    return calls.map((call, i) => (invalid.has(i) ? { ...call, invalid: true } : call));
  }

  /** The usage, in the canonical form; null until the stream reports it. */
  get usage(): CanonicalUsage | null {
    return toUsage(this.#usage);
  }

  /** Why the model stopped; null while it has not. */
  get finishReason(): FinishReason | null {
    const { content, error } = this.message;
    return readFinish({ content, stop_reason: this.#stopReason }, error);
  }

  /** The message as far as it is known. Later input does not change it. */
  snapshot(): AccumulatedMessage {
    const { message, ...result } = this.message.finish();
    const usage = this.#usage;
    const known = { ...message, stop_reason: this.#stopReason, ...(usage && { usage }) };
    return copyJson(this.describe({ ...result, message: known }));
  }

  get #stopReason(): StopReason | null {
    return this.message.stopReason ?? this.events.outcome?.stop_reason ?? null;
  }

  get #usage(): CanonicalUsage | undefined {
    return this.message.usage ?? this.events.outcome?.usage;
  }
}

/** Options of a `StreamAccumulator`. */
export interface StreamAccumulatorOptions extends EventReaderOptions {}

/** One piece of a stream: bytes or text, or a payload that is parsed already (a chunk or event of an SDK). */
export type StreamElement = Uint8Array | string | object;

/** A call of a message that is not complete. */
export interface LiveToolCall extends AccumulatedCall {
  /** The arguments are not complete JSON, or the call has no name. Do not run it. */
  invalid?: true;
}

const describeInput = (input: unknown): string => (input === null ? 'null' : Array.isArray(input) ? 'an array' : typeof input);

/** A copy of JSON data, whose depth the reader has limited. */
function copyJson<T>(value: T): T;
function copyJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => copyJson(item));
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) setOwn(copy, key, copyJson(value[key]));
  return copy;
}

const toUsage = (usage: CanonicalUsage | undefined): CanonicalUsage | null => {
  if (!usage) return null;
  const { extensions: _, ...counts } = usage; // the raw object is in wire_usage
  return counts;
};

/** A whole message, with the same fields for every protocol and the wire's own values beside them. */
export interface AccumulatedMessage {
  protocol: ProtocolId | null;
  id: string;
  model: string;
  role: string;
  text: string;
  reasoning: string;
  refusal: string | null;
  tool_calls: AccumulatedCall[];
  /** null when the stream ended early. */
  finish_reason: FinishReason | null;
  wire_finish_reason: string | null;
  usage: CanonicalUsage | null;
  wire_usage: JsonObject | null;
  /** A finish reason or a terminal marker was read. */
  complete: boolean;
  /** Positions in `tool_calls` whose arguments are not JSON, or that have no name: do not run these. */
  invalid_arguments: number[];
  error: AccumulatedError | null;
  extras: JsonObject;
  diagnostics: Diagnostic[];
  notes: Note[];
  message: CanonicalResponse;
  /** openai-chat only: the whole `chat.completion`. */
  completion?: JsonObject;
}

/** A tool call of an accumulated message, with the wire's other fields of the call. */
export interface AccumulatedCall extends JsonObject {
  id: string;
  name: string;
  /** JSON text; verbatim when the stream had valid JSON. */
  arguments: string;
  type: 'function' | 'custom';
}

/** The error of a stream, with the wire's other fields of the error. */
export interface AccumulatedError extends JsonObject {
  code: string | number;
  message: string;
  canonical: ErrorCode;
  /** The status of an HTTP response that is an error. */
  http_status?: number;
}

/** Why the model stopped: OpenAI's values, and two for which OpenAI has none. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'error' | 'pause';

/** What a stream's reader found besides its events. */
interface StreamFacts {
  diagnostics: Diagnostic[];
  notes: Note[];
  completion?: JsonObject | undefined;
}

/** Builds the accumulated message of a stream. `protocol` is null when it was not recognised. */
export function describeMessage(protocol: Protocol | null, result: StreamResult, facts: StreamFacts): AccumulatedMessage {
  const { message, complete, error } = result;
  const fields = protocol ? (message.extensions?.[protocol.id] ?? {}) : {};
  const { extensions: usageExtensions, ...usage } = message.usage ?? {};
  const calls = listCalls(protocol, message);
  const wireFinish = fields['finish_reason'];
  return {
    protocol: protocol?.id ?? null,
    id: message.id,
    model: message.model,
    role: readRole(fields),
    ...joinTexts(message.content),
    tool_calls: calls,
    finish_reason: readFinish(message, error),
    // Gemini's proto enums may come as numbers.
    wire_finish_reason: isScalar(wireFinish) ? String(wireFinish) : null,
    usage: message.usage ? (usage as CanonicalUsage) : null, // without the raw object, which is in wire_usage
    wire_usage: (protocol && usageExtensions?.[protocol.id]) ?? null,
    complete,
    invalid_arguments: findInvalid(calls, message.content),
    error: error && describeError(error),
    extras: collectExtras(protocol, message, facts),
    diagnostics: facts.diagnostics,
    notes: facts.notes,
    message,
    ...(facts.completion && { completion: facts.completion }),
  };
}

function readRole(fields: JsonObject): string {
  const { message } = fields;
  const role = isObject(message) ? message['role'] : undefined;
  return typeof role === 'string' ? role : 'assistant';
}

function joinTexts(content: readonly ContentBlock[]): { text: string; reasoning: string; refusal: string | null } {
  let text = '';
  let reasoning = '';
  let refusal: string | null = null;
  for (const block of content) {
    if (block.type === 'thinking') reasoning += block.thinking;
    else if (block.type === 'text' && block.refusal) refusal = (refusal ?? '') + block.text;
    else if (block.type === 'text') text += block.text;
  }
  return { text, reasoning, refusal };
}

/** What a message and one of several choices have in common. */
type Content = Pick<CanonicalChoice, 'content' | 'stop_reason'>;

/** The message was cut off: a call without arguments may have lost them. */
const CUT: ReadonlySet<StopReason | null> = new Set([null, 'max_tokens', 'content_filter', 'context_window', 'error'] as const);

function listCalls(protocol: Protocol | null, { content, stop_reason }: Content): AccumulatedCall[] {
  const blocks = content.filter((block): block is ToolUseBlock => block.type === 'tool_use' && isClientCall(block.kind));
  const readIndex = (block: ToolUseBlock): number | undefined => protocol?.callIndex?.(block);
  const indexes = new Set(blocks.map(readIndex));
  if (indexes.size === blocks.length && !indexes.has(undefined)) blocks.sort((a, b) => (readIndex(a) ?? 0) - (readIndex(b) ?? 0));
  return blocks.map((block) => describeCall(protocol, block, CUT.has(stop_reason)));
}

function describeCall(protocol: Protocol | null, block: ToolUseBlock, isCutOff: boolean): AccumulatedCall {
  const isCustom = block.kind === 'custom';
  const none = isCutOff || isCustom ? '' : (writeJson(block.input) ?? '');
  const call = {
    id: block.id,
    name: block.name,
    arguments: block.input_raw ?? none,
    type: isCustom ? ('custom' as const) : ('function' as const),
  };
  // Spread twice: known fields come first and are never replaced by the wire's.
  return { ...call, ...protocol?.callFields(block), ...call };
}

/** Positions of calls whose arguments are not JSON, or that have no name. */
function findInvalid(calls: readonly AccumulatedCall[], content: readonly ContentBlock[]): number[] {
  const broken = new Set<unknown>(content.map((block) => block.type === 'tool_use' && block.status === 'incomplete' && block.id));
  const isInvalid = ({ id, type, arguments: text }: AccumulatedCall): boolean =>
    broken.has(id) || (type === 'function' && parseJson(text) === undefined);
  return calls.flatMap((call, i) => (isInvalid(call) ? [i] : []));
}

function readFinish(message: Content, error: CanonicalError | null): FinishReason | null {
  if (error) return isUnread(error) ? null : 'error';
  return stopWord(message);
}

const isUnread = ({ details }: CanonicalError): boolean =>
  details?.['code'] === 'empty_stream' || details?.['code'] === 'not_a_stream';

/** An OpenAI refusal ends with "stop"; a refusal without text, as other protocols send it, is a filter. */
function stopWord({ content, stop_reason: stop }: Content): FinishReason | null {
  if (stop === null) return null;
  const hasRefusalText = stop === 'refusal' && content.some((block) => block.type === 'text' && block.refusal);
  return hasRefusalText ? 'stop' : WORDS[stop];
}

const WORDS = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  context_window: 'length',
  tool_use: 'tool_calls',
  content_filter: 'content_filter',
  refusal: 'content_filter',
  pause_turn: 'pause',
  error: 'error',
} as const satisfies Record<StopReason, FinishReason>;

/** The error as the wire had it, with our own code where the wire has none. */
function describeError(error: CanonicalError): AccumulatedError {
  const body = isObject(error.upstream?.body) ? error.upstream.body : {};
  const own = error.details?.['code'];
  const code = [error.upstream?.code, body['code'], own].find(isScalar);
  return { ...body, code: code ?? 'stream_error', message: error.message, canonical: error.code };
}

function collectExtras(protocol: Protocol | null, message: CanonicalResponse, { diagnostics }: StreamFacts): JsonObject {
  const order = message.content.map((block) => (block.type === 'text' && block.refusal ? 'refusal' : BLOCK_WORDS[block.type]));
  const thinkSplit = splitThink(joinTexts(message.content).text);
  const malformed = diagnostics.find(({ rule }) => rule === 'sse/malformed-json');
  return {
    ...protocol?.extras(message),
    ...(order.length > 0 && { block_order: order }),
    ...(message.choices && { choices: message.choices.map((choice) => describeChoice(protocol, choice)) }),
    ...(thinkSplit && { think_split: thinkSplit }),
    ...(malformed && { malformed_frames: malformed.count }),
  };
}

const BLOCK_WORDS = {
  thinking: 'reasoning',
  text: 'text',
  tool_use: 'tool_call',
  tool_result: 'tool_result',
  image: 'image',
  audio: 'audio',
  file: 'file',
  opaque: 'opaque',
} as const satisfies Record<ContentBlock['type'], string>;

function describeChoice(protocol: Protocol | null, choice: CanonicalChoice): JsonObject {
  return {
    index: choice.index,
    ...joinTexts(choice.content),
    tool_calls: listCalls(protocol, choice),
    finish_reason: stopWord(choice),
  };
}
