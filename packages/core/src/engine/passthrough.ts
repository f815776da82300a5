/**
 * Passthrough, for exchanges with the same protocol on both sides: requests, responses and streams are passed on
 * unchanged and only observed.
 */

import type { StreamResult } from '../accumulate/message.ts';
import type { CanonicalStreamEvent, MessageStart } from '../canonical/events.ts';
import type { CanonicalResponse } from '../canonical/message.ts';
import { type CanonicalError, CodecError, type Note, type OwnErrorCode } from '../canonical/notes.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { NOTHING } from '../canonical/stage.ts';
import { parseDeployment } from '../codec/deployment.ts';
import type { ProviderProfile } from '../codec/profile.ts';
import type { Codec, HeaderBag, Provider, WireRequest } from '../codec/protocol.ts';
import { withFields } from '../json/fields.ts';
import { isObject, type JsonObject, parseJson } from '../json/json.ts';
import type { Diagnostic } from '../rules/index.ts';
import { ByteBuffer, CR, decodeUtf8, LF, SPACE, TAB } from '../sse/bytes.ts';
import { encodeSse } from '../sse/encode.ts';
import { opensJson } from '../sse/json-array.ts';
import { NoteList, type ResponseOptions } from './context.ts';
import type { EventReader } from './reader.ts';
import { decodeRequest } from './request.ts';
import { decodeResponse } from './response.ts';
import {
  createFailure,
  createReader,
  encodeFailure,
  hasStopReason,
  type ResponseStream,
  type StreamOptions,
  Tap,
} from './stream.ts';

// ---- requests

/**
 * Picks the client headers to pass on. They override the protocol's defaults; settings of the operator or the profile
 * override them.
 */
export function pickPassedHeaders(
  headers: HeaderBag,
  { adapter_config: config = {} }: Provider,
  { anthropic_version: version }: Partial<ProviderProfile> = {},
): HeaderBag {
  const configured = Object.keys(config.headers ?? {}).map((name) => name.toLowerCase());
  if (config.api_version !== undefined) configured.push('anthropic-version');
  const sent = version === undefined ? headers : { ...headers, 'anthropic-version': version };
  const passed: HeaderBag = {};
  for (const name of PASSED_HEADERS) {
    const value = sent[name];
    if (value !== undefined && !configured.includes(name)) passed[name] = value;
  }
  return passed;
}

/** Client headers that are passed on. All others, above all the client's key, are not. */
const PASSED_HEADERS = ['anthropic-version', 'anthropic-beta', 'openai-beta', 'idempotency-key'];

interface PassedBody {
  body: unknown;
  text?: string;
}

/**
 * Builds the passed body: the client's, with the upstream's model name and these other fields; an undefined field is
 * removed.
 */
export function buildPassedBody(
  { body, text, path }: WireRequest & { text?: string },
  model: string,
  fields: JsonObject | undefined,
): PassedBody {
  // Azure clients may name the model in the path only; servers of other vendors expect it in the body.
  const isNamed = isObject(body) && (body['model'] !== undefined || parseDeployment(path) !== undefined);
  if (!isObject(body) || !(isNamed || fields)) return { body, ...(text !== undefined && { text }) };
  const changes: JsonObject = isNamed ? { ...fields, model } : { ...fields };
  const removed = Object.keys(changes).filter((name) => changes[name] === undefined);
  const changed: JsonObject = { ...body, ...changes };
  for (const name of removed) delete changed[name];
  const written = text === undefined || removed.length > 0 ? undefined : withFields(text, changes);
  return { body: changed, ...(written !== undefined && { text: written }) };
}

/** Reads the model and the stream flag of a request that is not decoded. */
export function peekTarget(wire: WireRequest, client: Codec): { model: string; stream: boolean } {
  const { model, stream }: Record<string, unknown> = isObject(wire.body) ? wire.body : {};
  if (typeof model === 'string') return { model, stream: stream === true };
  const request = decodePassedRequest(wire, client);
  return { model: request?.model ?? '', stream: request?.stream ?? false };
}

/** Decodes a request that is passed on; undefined when it cannot be decoded. */
export const decodePassedRequest = ({ body, path, headers }: WireRequest, from: Codec): CanonicalRequest | undefined =>
  attempt(() => decodeRequest(body, { from, path, headers }));

// ---- responses

/** Decodes a response that is passed on; undefined when it cannot be decoded. Throws if the body is an error. */
export function decodePassedResponse(body: unknown, options: ResponseOptions): CanonicalResponse | undefined {
  return attempt(() => decodeResponse(body, options, new NoteList()));
}

/** Exceeded limits and errors of the upstream are thrown; anything else that cannot be decoded is still passed on. */
function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof CodecError && !error.error.upstream && error.error.details?.['code'] !== TOO_LARGE) return undefined;
    throw error;
  }
}

const TOO_LARGE: OwnErrorCode = 'too_large';

/**
 * Passes an event stream on byte for byte; a JSON body in its place is converted. The first significant byte decides.
 */
export function passOrConvert(options: StreamOptions, convert: () => ResponseStream): ResponseStream {
  const before: Uint8Array[] = [];
  let stream: ResponseStream | undefined;
  // A body without a significant byte is not a stream; the converter reports that.
  const settle = (): ResponseStream => {
    stream ??= convert();
    return stream;
  };
  const choose = (chunk: Uint8Array): Iterable<Uint8Array> => {
    const at = chunk.findIndex((byte) => !INSIGNIFICANT.has(byte));
    if (at < 0) {
      before.push(chunk.slice());
      return NOTHING;
    }
    if (opensJson(chunk[at])) return settle().push(chunk.subarray(at));
    const passed = new PassedStream(options);
    stream = passed;
    const pieces = before.splice(0).flatMap((piece) => [...passed.push(piece)]);
    return pieces.length > 0 ? [...pieces, ...passed.push(chunk)] : passed.push(chunk);
  };
  return {
    push: (chunk) => (stream ? stream.push(chunk) : choose(chunk)),
    end: () => settle().end(),
    fail: (reason) => settle().fail(reason),
    get hasFailed() {
      return stream?.hasFailed ?? false;
    },
    get hasError() {
      return stream?.hasError ?? false;
    },
    get hasStopReason() {
      return stream?.hasStopReason ?? false;
    },
    get notes() {
      return stream?.notes ?? [];
    },
    get diagnostics() {
      return stream?.diagnostics ?? [];
    },
    get error() {
      return stream?.error;
    },
    get result() {
      return stream?.result;
    },
  };
}

/** White space and the bytes of the byte order mark: they do not show what a body is. */
const INSIGNIFICANT: ReadonlySet<number> = new Set([TAB, LF, CR, SPACE, 0xef, 0xbb, 0xbf]);

/**
 * An event stream whose frames are passed on byte for byte. A decoded copy feeds the tap and shows whether the stream
 * is complete. Only complete frames are passed on: a client could not read the error that follows half a frame.
 */
class PassedStream implements ResponseStream {
  readonly #options: StreamOptions;
  readonly #reader: EventReader;
  readonly #edge = new FrameEdge();
  readonly #tap: Tap;
  /** The frame that has begun and not ended. */
  readonly #held = new ByteBuffer();
  /** The number of bytes passed on. */
  #passed = 0;
  #start: MessageStart | undefined;
  #error: CanonicalError | undefined;
  #hasEnded = false;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#reader = createReader(options);
    this.#tap = new Tap(options.tap);
  }

  push(chunk: Uint8Array): Iterable<Uint8Array> {
    if (this.#hasEnded) return NOTHING;
    for (const event of this.#reader.push(chunk)) this.#observe(event);
    if (this.#reader.failedAt !== undefined) return this.#breakOff(chunk, this.#reader.failedAt);
    const edge = this.#edge.in(chunk);
    const pieces = edge === chunk.length && this.#held.length === 0 ? [chunk] : this.#cut(chunk, edge);
    this.#passed += edge;
    return pieces;
  }

  end(): Iterable<Uint8Array> {
    return this.#finish();
  }

  fail(reason: string | CanonicalError): Iterable<Uint8Array> {
    return this.#finish(createFailure(reason));
  }

  get hasFailed(): boolean {
    return this.#reader.hasFailed;
  }

  get hasError(): boolean {
    return this.#error !== undefined || this.#reader.hasError;
  }

  get hasStopReason(): boolean {
    return hasStopReason(this.#reader);
  }

  get notes(): Note[] {
    return this.#reader.notes;
  }

  get diagnostics(): Diagnostic[] {
    return this.#reader.diagnostics;
  }

  get error(): CanonicalError | undefined {
    return this.#error;
  }

  get result(): StreamResult | undefined {
    return this.#tap.result;
  }

  /** An early end is reported with its reason, if there is one. A complete stream needs none. */
  #finish(reason?: CanonicalError): Iterable<Uint8Array> {
    if (this.#hasEnded) return NOTHING;
    this.#hasEnded = true;
    for (const event of this.#reader.end()) this.#observe(reason && isOwnError(event) ? { type: 'error', error: reason } : event);
    if (this.#error && !this.#error.upstream) return [this.#failure(this.#error)];
    const rest = this.#takeRest();
    const terminal = this.#missingTerminal();
    return terminal ? [...rest, terminal] : rest;
  }

  /** The last frame, if it is complete; half a frame is dropped. */
  #takeRest(): readonly Uint8Array[] {
    if (this.#reader.hasLastFrame) return [this.#takeHeld(), BLANK_LINE];
    return isDocument(this.#held) ? [this.#takeHeld()] : NOTHING;
  }

  /**
   * Clients wait for the terminal frame or throw without it: it is added when the upstream sent a finish reason and no
   * terminal frame.
   */
  #missingTerminal(): Uint8Array | undefined {
    const { terminal } = this.#options.from;
    const isMissing = terminal && this.#reader.diagnostics.some(({ rule }) => rule === terminal.rule);
    return isMissing ? UTF8.encode(encodeSse(terminal.frame)) : undefined;
  }

  #observe(event: CanonicalStreamEvent): void {
    this.#tap.push(event);
    if (event.type === 'content_block_delta') return;
    if (event.type === 'message_start') this.#start = event;
    else if (event.type === 'error') this.#error ??= event.error;
  }

  /** Returns the held bytes and the complete frames of the chunk; the rest of the chunk is held. */
  #cut(chunk: Uint8Array, edge: number): Uint8Array[] {
    const pieces =
      edge === 0 ? [] : this.#held.length > 0 ? [this.#takeHeld(), chunk.subarray(0, edge)] : [chunk.subarray(0, edge)];
    if (edge < chunk.length) this.#held.append(chunk, edge, chunk.length);
    return pieces;
  }

  #takeHeld(): Uint8Array {
    const held = this.#held.bytes.slice(0, this.#held.length);
    this.#passed += held.length;
    this.#held.clear();
    return held;
  }

  /** Returns the frames before the one that cannot be decoded, and the error that ends the stream. */
  #breakOff(chunk: Uint8Array, offset: number): Uint8Array[] {
    this.#hasEnded = true;
    this.#held.append(chunk, 0, chunk.length);
    const whole = this.#held.bytes.slice(0, Math.max(0, Math.min(offset - this.#passed, this.#held.length)));
    this.#held.free();
    return [whole, this.#failure(this.#error ?? createFailure('it cannot be decoded'))];
  }

  #failure(reason: CanonicalError): Uint8Array {
    return encodeFailure(reason, this.#options, this.#start);
  }
}

/** Ends the line and the event that a server left open. */
const BLANK_LINE = Uint8Array.of(0x0a, 0x0a);

const UTF8 = /* @__PURE__ */ new TextEncoder();

/** Gemini sends an error in a stream as a JSON document without `data:`, and without a blank line after it. */
const isDocument = ({ bytes, length }: ByteBuffer): boolean => length > 0 && isObject(parseJson(decodeUtf8(bytes, 0, length)));

/** An error that we detected, not one that the upstream sent. */
const isOwnError = (event: CanonicalStreamEvent): boolean => event.type === 'error' && !event.error.upstream;

/** Finds where frames end in the bytes of an event stream, however they are split: after a blank line. */
export class FrameEdge {
  /** The last two bytes before the chunk. A body starts as if a line had just ended. */
  #last = LF;
  #beforeLast = 0;

  /** How many bytes of the chunk belong to complete frames; 0 when no frame ends in it. */
  in(chunk: Uint8Array): number {
    const edge = this.#search(chunk);
    this.#beforeLast = this.#at(chunk, chunk.length - 2);
    this.#last = this.#at(chunk, chunk.length - 1);
    return edge;
  }

  // Backwards: nearly every chunk ends with a complete frame.
  #search(chunk: Uint8Array): number {
    for (let at = chunk.length - 1; at >= 0; at--) {
      const byte = chunk[at] ?? 0;
      if (isLineEnd(byte) && this.#endsBlankLine(chunk, at, byte)) return at + 1;
    }
    return 0;
  }

  /** CR, LF and CRLF all end lines; the LF of a CRLF ends the same line as its CR. */
  #endsBlankLine(chunk: Uint8Array, at: number, byte: number): boolean {
    const before = this.#at(chunk, at - 1);
    if (byte === LF && before === CR) return isLineEnd(this.#at(chunk, at - 2));
    return isLineEnd(before);
  }

  #at(chunk: Uint8Array, at: number): number {
    if (at >= 0) return chunk[at] ?? 0;
    return at === -1 ? this.#last : this.#beforeLast;
  }
}

const isLineEnd = (byte: number): boolean => byte === LF || byte === CR;
