/** Presents a WebSocket message as a request, and its response as messages: the exchange layer knows HTTP only. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable, Writable } from 'node:stream';
import { createSseDecoder, type SseDecoder, type SseFrame, type WireReply } from '@sluice/core';
import type { Clock, Timer } from '../http/clock.ts';
import { isJson, type Json, parse } from '../responses/items.ts';

/** A message as the body of a request. It has what the server and exchange layers use of a request. */
export class FrameRequest extends Readable {
  readonly method = 'POST';
  readonly httpVersion = '1.1';
  readonly complete = true;
  /** Those of the connection are checked by their raw form; none of them describes the body. */
  readonly headers = {};
  readonly rawHeaders: readonly string[];
  readonly #body: Buffer;

  constructor(body: Buffer, rawHeaders: readonly string[]) {
    super();
    this.#body = body;
    this.rawHeaders = rawHeaders;
  }

  get asIncomingMessage(): IncomingMessage {
    return this as unknown as IncomingMessage; // see the comment of the class
  }

  override _read(): void {
    this.push(this.#body);
    this.push(null);
  }
}

/** The socket that the messages of a response are written to. */
export interface FrameSink {
  /** Writes one message. */
  send(text: string): void;
  /** Keeps a silent connection alive. */
  ping(): void;
  /** Calls back when the client has read enough of what was written: at once unless it is slow. */
  whenReady(ready: () => void): void;
  /** Bytes that the client has not read yet. */
  readonly backlog: number;
  /** Ends the connection: a response broke off, and the client could not know. */
  abort(): void;
}

/** How a response is written. */
export interface FrameOptions {
  sink: FrameSink;
  request: IncomingMessage;
  /** The lane, which every message of the response names; empty for the lane without a name. */
  streamId: string;
  clock: Clock;
  /** Bytes that may wait in this response. */
  bufferBytes: number;
  /** The largest event. */
  eventBytes: number;
}

/** Writes each event of a stream as a message. It has what the server and exchange layers use of a response. */
export class FrameResponse extends Writable {
  readonly req: IncomingMessage;
  statusCode = 200;
  headersSent = false;
  /** Messages have a length of their own. */
  chunkedEncoding = false;
  readonly #options: FrameOptions;
  #headers: Readonly<Record<string, string>> = {};
  /** Undefined for a whole response. */
  #decoder: SseDecoder | undefined;
  readonly #body: Buffer[] = [];
  /** The client has the last event of the response. */
  #hasEnded = false;
  #timer: Timer | undefined;

  constructor(options: FrameOptions) {
    super({ highWaterMark: options.bufferBytes });
    this.#options = options;
    this.req = options.request;
  }

  get asServerResponse(): ServerResponse {
    return this as unknown as ServerResponse; // see the comment of the class
  }

  /** There are no headers beside those of an error. */
  setHeader(): this {
    return this;
  }

  writeHead(status: number, headers: Readonly<Record<string, string>>): this {
    this.statusCode = status;
    this.headersSent = true;
    this.#headers = headers;
    const { eventBytes } = this.#options;
    const isStream = headers['content-type']?.startsWith('text/event-stream') === true;
    this.#decoder = isStream ? createSseDecoder({ maxLineBytes: eventBytes, maxEventBytes: eventBytes }) : undefined;
    return this;
  }

  flushHeaders(): void {}

  /** As of a socket: emits `timeout` when the client reads nothing for so long; 0 ends the watch. */
  setTimeout(ms: number): this {
    const { clock, sink } = this.#options;
    this.#timer?.close();
    this.#timer = undefined;
    if (ms === 0 || this.destroyed) return this;
    let before = sink.backlog;
    this.#timer = clock.setRepeating(() => {
      const { backlog } = sink;
      const isStalled = backlog >= before;
      before = backlog;
      if (isStalled && !this.emit('timeout', this)) this.destroy();
    }, ms);
    return this;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (!this.#decoder) {
      this.#body.push(chunk);
      done();
      return;
    }
    for (const frame of this.#decoder.push(chunk)) this.#sendEvent(frame);
    if (chunk[0] === COLON) this.#options.sink.ping();
    this.#options.sink.whenReady(done);
  }

  override _final(done: () => void): void {
    if (!this.#decoder) this.#sendWhole();
    else if (!this.#hasEnded)
      this.#sendError(500, { error: { ...NO_ERROR, message: 'the response ended early; send it again' } });
    done();
  }

  override _destroy(_error: Error | null, done: () => void): void {
    this.#timer?.close();
    if (!this.writableFinished) this.#options.sink.abort();
    done();
  }

  #sendEvent({ event, data }: SseFrame): void {
    // A stream may have `response.failed` after its error; the client would take it for the next response.
    if (this.#hasEnded || !data.startsWith('{')) return;
    const type = event ?? /^\{\s*"type"\s*:\s*"([\w.]+)"/.exec(data)?.[1] ?? '';
    if (type === 'error') {
      // The error of a stream has its fields beside its type; over WebSocket, it is that of a whole response.
      const { type: _, sequence_number: __, ...fields } = parseObject(data);
      const error = isJson(fields['error']) ? fields['error'] : fields;
      this.#sendError(readStatus(error), { error: { ...NO_ERROR, ...error } });
      return;
    }
    if (TERMINAL.has(type)) this.#hasEnded = true;
    this.#options.sink.send(nameLane(data, this.#options.streamId));
  }

  /** Over WebSocket, every response is a stream: what is whole is an error. */
  #sendWhole(): void {
    const body = parseObject(Buffer.concat(this.#body).toString('utf8'));
    this.#sendError(this.statusCode >= 400 ? this.statusCode : 500, body);
  }

  #sendError(status: number, body: WireReply['body']): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#options.sink.send(encodeErrorFrame({ status, headers: this.#headers, body }, this.#options.streamId));
  }
}

/** The message for an error. */
export function encodeErrorFrame({ status, headers, body }: WireReply, streamId: string): string {
  const { error } = isJson(body) ? body : {};
  const shown = Object.entries(headers).filter(([name]) => ERROR_HEADERS.test(name));
  return nameLane(
    JSON.stringify({
      type: 'error',
      status,
      error: error ?? NO_ERROR,
      ...(shown.length > 0 && { headers: Object.fromEntries(shown) }),
    }),
    streamId,
  );
}

/** Headers of an error that clients act on. */
const ERROR_HEADERS = /^(?:retry-after|retry-after-ms|x-sluice-request-id|x-should-retry|x-ratelimit-.*)$/;

const NO_ERROR = { type: 'server_error', code: null, message: 'the request failed', param: null };

/** Events after which a response has none. */
const TERMINAL: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed']);

const COLON = 0x3a;

/** Adds the lane to a JSON object, without parsing it: deltas are most of a stream. */
function nameLane(data: string, streamId: string): string {
  if (streamId === '') return data;
  const rest = data.slice(1).trimStart();
  return `{"stream_id":${JSON.stringify(streamId)}${rest.startsWith('}') ? '' : ','}${rest}`;
}

function parseObject(text: string): Json {
  const value = parse(text);
  return isJson(value) ? value : {};
}

/** The status that an error of a stream would have had before the stream. */
const readStatus = ({ type, code }: Json): number =>
  STATUS_OF_CODE[String(code)] ?? (type === 'invalid_request_error' ? 400 : 500);

const STATUS_OF_CODE: Readonly<Record<string, number>> = { rate_limit_exceeded: 429, invalid_api_key: 401 };
