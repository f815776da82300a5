/** Calls upstreams over HTTP/1.1: connections, decompression, back-pressure and failures. */

import type { Socket } from 'node:net';
import * as zlib from 'node:zlib';
import { buildConnector, type Dispatcher, errors, Pool } from 'undici';
import { DIRECT, type Network } from '../config/network.ts';
import { FairReader, ReadQueue } from './fair-reader.ts';
import { memo } from './memo.ts';
import { createTunnelConnector } from './tunnel.ts';

/**
 * Calls upstreams over HTTP/1.1: keep-alive, no redirects, only the operator's proxy, and no address that a client
 * could choose.
 */
export class Dialer implements Transport {
  readonly #options: DialerOptions;
  /** One per address, connect timeout and network, because providers may have their own. */
  readonly #pools = new Map<string, Pool>();
  readonly #queue = new ReadQueue();
  readonly #readAddress = memo(ADDRESS_LIMITS, parseAddress);
  /** Errors of requests on stale connections; see `createConnector`. */
  readonly #staleErrors = new WeakSet<Error>();

  constructor(options: DialerOptions) {
    this.#options = options;
  }

  dial(call: Call, receiver: Receiver): Line {
    const { origin, path } = this.#readAddress(call.url);
    if (origin !== call.origin) return refuseCall(receiver);
    const request = {
      origin,
      path,
      // An HTTP method as text; undici's type lists those it knows.
      method: call.method as Dispatcher.HttpMethod,
      headers: call.headers,
      body: call.body ?? null,
      // Receivers have their own timeouts: reasoning models are silent for minutes.
      headersTimeout: 0,
      bodyTimeout: 0,
    };
    const reader = new FairReader(receiver, this.#queue);
    const redial = (): void => void this.#pool(call, 'new').dispatch(request, handler);
    const handler = new Handler(reader, {
      maxRatio: this.#options.compressionRatio,
      redial: call.repeat === 'once' ? redial : undefined,
      staleErrors: this.#staleErrors,
    });
    reader.attach(handler);
    this.#pool(call, 'kept').dispatch(request, handler);
    return reader;
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()));
  }

  #pool({ origin, connectMs, network = DIRECT }: Call, connections: 'kept' | 'new'): Pool {
    const key = `${connections} ${connectMs} ${origin} ${network.id}`;
    const known = this.#pools.get(key);
    if (known) return known;
    const { upstreamKeepAliveMs } = this.#options;
    const pool = new Pool(origin, {
      connect: createConnector(connectMs, network, this.#staleErrors),
      // Shorter than load balancers keep connections, so that a request is rarely sent on a closing one.
      keepAliveTimeout: upstreamKeepAliveMs,
      keepAliveMaxTimeout: upstreamKeepAliveMs,
      // This makes undici keep no connection.
      ...(connections === 'new' && { pipelining: 0 }),
    });
    this.#pools.set(key, pool);
    return pool;
  }
}

/** Limits of all connections. */
export interface DialerOptions {
  /** How long an idle connection is kept. */
  upstreamKeepAliveMs: number;
  /** How many times larger a compressed response may become. */
  compressionRatio: number;
}

/** One request to a provider. The URL comes from the operator's configuration alone. */
export interface Call {
  url: string;
  /** Scheme, host and port that the key in the headers belongs to; it is sent to no other. */
  origin: string;
  method: string;
  headers: Record<string, string>;
  body?: Uint8Array | string | undefined;
  connectMs: number;
  /** How the origin is reached; directly by default. */
  network?: Network;
  /**
   * What to do when a kept connection turns out to be closed before a byte of the response: send the request `once`
   * more on a new one, or fail. The upstream may have processed it already, so `once` is for requests that do no harm
   * twice.
   */
  repeat: 'once' | 'never';
}

/** Methods that change nothing at the upstream (RFC 9110 9.2.1), among those that clients may use. */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * For requests whose meaning is unknown here: PUT and DELETE are idempotent, but a stored object may have changed in
 * between.
 */
export const chooseRepeat = (method: string): Call['repeat'] => (SAFE_METHODS.has(method) ? 'once' : 'never');

/** Controls a running call. */
export interface Line {
  pause(): void;
  resume(): void;
  /** Closes the socket; the receiver gets no further events. */
  hangUp(): void;
}

/** Receives a response. Everything is synchronous: a chunk is fully processed before the next one is read. */
export interface Receiver {
  start(status: number, headers: Record<string, string>): void;
  data(chunk: Uint8Array): void;
  end(): void;
  /** The connection failed. */
  fail(error: Error): void;
  /** The kept connection was closed; the request is sent again on a new one. */
  again?(): void;
  /** A connection is ready and the request is being sent. */
  connected?(): void;
}

/** A way to reach upstreams. */
export interface Transport {
  /** Starts a call. The receiver gets no event before this returns. */
  dial(call: Call, receiver: Receiver): Line;
}

interface Address {
  origin: string;
  path: string;
}

/** Limits of the memo of parsed URLs; some URLs contain a model name. */
const ADDRESS_LIMITS = { entries: 1000, bytes: 512 * 1024 };

function parseAddress(url: string): Address {
  const { origin, pathname, search } = new URL(url);
  return { origin, path: pathname + search };
}

/** Fails asynchronously, like all failures, so that the caller has its line by then. */
function refuseCall(receiver: Receiver): Line {
  queueMicrotask(() => receiver.fail(new WrongAddress('the request would leave the base URL of its provider')));
  return NO_LINE;
}

const NO_LINE: Line = { pause: () => undefined, resume: () => undefined, hangUp: () => undefined };

interface HandlerOptions {
  maxRatio: number;
  /** Sends the request again on a new connection; undefined when it must not be repeated. */
  redial: (() => void) | undefined;
  staleErrors: WeakSet<Error>;
}

class Handler implements Dispatcher.DispatchHandler, Line {
  readonly #receiver: Receiver;
  readonly #maxRatio: number;
  readonly #staleErrors: WeakSet<Error>;
  /** Used at most once. */
  #redial: (() => void) | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #unpacker: Unpacker | undefined;
  #hasHead = false;
  #isOver = false;

  constructor(receiver: Receiver, { maxRatio, redial, staleErrors }: HandlerOptions) {
    this.#receiver = receiver;
    this.#staleErrors = staleErrors;
    this.#maxRatio = maxRatio;
    this.#redial = redial;
  }

  pause(): void {
    this.#controller?.pause();
    this.#unpacker?.pause();
  }

  resume(): void {
    if (this.#unpacker) this.#unpacker.resume();
    else this.#controller?.resume();
  }

  hangUp(): void {
    this.#isOver = true;
    this.#controller?.abort(HUNG_UP);
    this.#unpacker?.close();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(HUNG_UP);
    else this.#receiver.connected?.();
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    fields: Record<string, string | string[] | undefined>,
  ): void {
    // 1xx is followed by the response itself.
    if (this.#isOver || status < 200) return;
    this.#redial = undefined;
    this.#hasHead = true;
    // Raw headers are views that would keep the first read, up to 64 KiB, until the end of the response.
    controller.rawHeaders = null;
    const headers = joinHeaders(fields);
    try {
      const coding = readCoding(headers['content-encoding']);
      if (coding)
        this.#unpacker = new Unpacker(this.#receiver, { coding, end: 'lenient', maxRatio: this.#maxRatio, source: controller });
    } catch (error) {
      this.hangUp();
      this.#receiver.fail(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.#receiver.start(status, this.#unpacker ? withoutCoding(headers) : headers);
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    // After a pause undici flushes its parser with an empty chunk; pausing then would be too late for the end of the
    // connection.
    if (!this.#isOver && chunk.length > 0) (this.#unpacker ?? this.#receiver).data(chunk);
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // The connection may serve another call by now.
    this.#controller = undefined;
    (this.#unpacker ?? this.#receiver).end();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    if (this.#isOver) return;
    const redial = this.#redial;
    this.#redial = undefined;
    if (redial && this.#staleErrors.has(error)) {
      this.#receiver.again?.();
      redial();
      return;
    }
    this.#isOver = true;
    this.#controller = undefined;
    (this.#unpacker ?? this.#receiver).fail(toMalformedResponse(error, this.#hasHead) ?? error);
  }
}

const HUNG_UP = new Error('request cancelled');

/** The coding and the length do not apply to the decompressed body. */
function withoutCoding(headers: Record<string, string>): Record<string, string> {
  const { 'content-encoding': _coding, 'content-length': _length, ...rest } = headers;
  return rest;
}

/** Headers with one string each. Usually they are already, and nothing is copied. */
export function joinHeaders(fields: Fields): Record<string, string> {
  if (isPlain(fields)) return fields;
  const all: Record<string, string> = {};
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    if (value !== undefined) all[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return all;
}

type Fields = Readonly<Record<string, string | string[] | undefined>>;

function isPlain(fields: Fields): fields is Record<string, string> {
  for (const name in fields) if (typeof fields[name] !== 'string') return false;
  return true;
}

/**
 * Puts `content-disposition` first, so that node writes it unchanged. After a `content-length`, node encodes it as
 * UTF-8, which changes it or throws (`processHeader` in node's `_http_outgoing.js`).
 */
export function putDispositionFirst(headers: Readonly<Record<string, string>>): Record<string, string> {
  const { 'content-disposition': disposition, ...others } = headers;
  return disposition === undefined ? others : { 'content-disposition': disposition, ...others };
}

/**
 * Connects as undici does, reads in pieces, and watches what goes over each connection. The error of a request goes
 * into `staleErrors` when its kept connection was stale: the connection had carried a complete response before, and
 * closed without a byte of this one. Servers close idle connections at any time, so such a request was most likely
 * never read.
 */
function createConnector(timeout: number, { proxy, ca }: Network, staleErrors: WeakSet<Error>): buildConnector.connector {
  // Undici passes on socket options that its type does not list.
  const options: buildConnector.BuildOptions & { highWaterMark: number } = {
    timeout,
    highWaterMark: READ_BYTES,
    ...(ca !== undefined && { ca }),
  };
  const connectDirectly = buildConnector(options);
  const connect = proxy ? createTunnelConnector(proxy, timeout, connectDirectly) : connectDirectly;
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result;
      if (socket) {
        readInPieces(socket);
        watchTraffic(socket, staleErrors);
        forgetCancelled(socket);
      }
      callback(...result);
    });
}

/**
 * Undici does not report which connection a request used, nor what it carried before, so the socket's methods are
 * wrapped.
 */
function watchTraffic(socket: Socket, staleErrors: WeakSet<Error>): void {
  const traffic = new Traffic();
  const { write, push } = socket;
  socket.write = (...args: unknown[]): boolean => {
    traffic.sent();
    return Reflect.apply(write, socket, args);
  };
  socket.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    if (chunk instanceof Uint8Array) traffic.received(chunk);
    if (!traffic.isEndless) return Reflect.apply(push, socket, [chunk, encoding]);
    socket.destroy(
      new MalformedResponse(`sent an invalid HTTP response: a line of its head is longer than ${MAX_LINE_BYTES} bytes`),
    );
    return false;
  };
  socket.prependListener('error', (error) => {
    if (traffic.isStale) staleErrors.add(error);
  });
}

/**
 * Undici puts a cancelled request back into its queue, because of the code of the error that ends its connection. It then opens another
 * connection for the request, which carries nothing. With the code of a lost connection, it gives the request up.
 */
function forgetCancelled(socket: Socket): void {
  const { destroy } = socket;
  socket.destroy = (error?: Error): Socket => {
    const reason = isCancellation(error) ? Object.assign(new Error(error.message), { code: 'UND_ERR_SOCKET' }) : error;
    return Reflect.apply(destroy, socket, [reason]);
  };
}

const isCancellation = (error: Error | undefined): error is Error =>
  error instanceof errors.InformationalError && error.message === 'aborted';

/**
 * The requests and responses of one connection. Requests are not pipelined: one is written when the response before it
 * is complete, and written whole before anything of its own response is read.
 */
class Traffic {
  #requests = 0;
  #phase: 'idle' | 'request' | 'status line' | 'reason' | 'interim headers' | 'response' = 'idle';
  /** Bytes of the status line that were read. */
  #at = 0;
  /** Bytes of the current line of headers, or of the text behind the status code. */
  #lineLength = 0;

  /** The connection was used before, and nothing has arrived for the last request. */
  get isStale(): boolean {
    return this.#phase === 'request' && this.#requests > 1;
  }

  /** A line of the head does not end. The parser has a limit for headers, and none for the line before them. */
  get isEndless(): boolean {
    return this.#lineLength > MAX_LINE_BYTES;
  }

  sent(): void {
    if (this.#phase === 'request') return;
    this.#phase = 'request';
    this.#requests++;
  }

  /**
   * Rewrites `100 Continue` to `102 Processing`. A client must skip interim responses that it did not ask for (RFC 9110
   * 15.2); undici skips all but this one, and ends the connection there.
   */
  received(chunk: Uint8Array): void {
    if (this.#phase === 'request') this.#beginResponse();
    for (let i = 0; i < chunk.length; i++) {
      if (this.#phase === 'status line') this.#readStatus(chunk, i);
      else if (this.#phase === 'reason') this.#readReason(chunk[i] ?? 0);
      else if (this.#phase === 'interim headers') this.#readHeader(chunk[i] ?? 0);
      else return;
    }
  }

  #beginResponse(): void {
    this.#phase = 'status line';
    this.#at = 0;
  }

  #readStatus(chunk: Uint8Array, i: number): void {
    const digit = this.#at++ - STATUS_AT;
    if (digit < 0) return;
    if (digit === 0 && chunk[i] !== ONE) this.#beginReason();
    // The rest of the status line ends like a header: the blank line follows later.
    else if (digit === 1 && chunk[i] !== ZERO) this.#beginHeaders();
    else if (digit === 2) {
      if (chunk[i] === ZERO) chunk[i] = TWO;
      this.#beginHeaders();
    }
  }

  #beginReason(): void {
    this.#phase = 'reason';
    this.#lineLength = 0;
  }

  /** The rest of the status line of the response itself. */
  #readReason(byte: number): void {
    if (byte === LF) {
      this.#phase = 'response';
      this.#lineLength = 0;
    } else this.#lineLength++;
  }

  #beginHeaders(): void {
    this.#phase = 'interim headers';
    this.#lineLength = 1;
  }

  #readHeader(byte: number): void {
    if (byte === LF && this.#lineLength === 0) this.#beginResponse();
    else if (byte === LF) this.#lineLength = 0;
    else if (byte !== CR) this.#lineLength++;
  }
}

/** As long as the headers of a response may be together. */
const MAX_LINE_BYTES = 16 * 1024;

/** The offset of the status code in `HTTP/1.1 100 Continue`. */
const STATUS_AT = 9;

/**
 * Makes undici read in pieces. It takes all that a socket has buffered, and puts back what it cannot parse because it
 * was paused. Taking all makes the socket read on, so that its buffer would grow by up to 64 KiB with every pause. A
 * paused socket now holds one read of 64 KiB and a small rest. The rest is taken with the last piece, and copied when
 * it is put back: as a view it would keep the read before alive.
 *
 * The end of the connection, by a FIN or a reset, is delayed until undici reads again: during a pause it would fail an
 * assertion that ends the process (7.30.2, `Parser.finish`, for responses after which the connection is not kept).
 */
function readInPieces(socket: Socket): void {
  const read = socket.read.bind(socket);
  const push = socket.push.bind(socket);
  const unshift = socket.unshift.bind(socket);
  const destroy = socket.destroy.bind(socket);
  let end: (() => void) | undefined;
  socket.read = (size) => {
    const piece: unknown = read(size ?? (socket.readableLength > 2 * READ_BYTES ? READ_BYTES : undefined));
    if (piece !== null || size !== undefined || !end) return piece;
    end();
    return read();
  };
  const announce = (): void => void socket.emit('readable');
  socket.push = (piece, encoding) => {
    if (piece !== null) return push(piece, encoding);
    end ??= () => push(null);
    announce();
    return false;
  };
  socket.destroy = (error) => {
    if (!isReset(error)) return destroy(error);
    end = () => destroy(error);
    // Deferred, because undici's parser may be writing to the socket now.
    process.nextTick(announce);
    return socket;
  };
  socket.unshift = (piece: Uint8Array) => unshift(Buffer.from(piece));
}

/** Bytes that undici gets from a socket at a time, and that a socket reads ahead. */
const READ_BYTES = 16 * 1024;

const isReset = (error: Error | undefined): boolean => error !== undefined && 'code' in error && error.code === 'ECONNRESET';

/** Decompresses a body for another receiver, as it arrives. */
export class Unpacker implements Receiver {
  readonly #receiver: Receiver;
  readonly #options: UnpackerOptions;
  #inflater: Inflater | undefined;
  #bytesIn = 0;
  #bytesOut = 0;
  #isPaused = false;
  /** Why the source failed; reported after everything before it. */
  #failure: Error | undefined;

  constructor(receiver: Receiver, options: UnpackerOptions) {
    this.#receiver = receiver;
    this.#options = options;
  }

  start(): void {
    // Headers are not compressed.
  }

  data(chunk: Uint8Array): void {
    this.#inflater ??= this.#begin(chunk);
    this.#bytesIn += chunk.length;
    if (!this.#inflater.write(chunk)) this.#options.source.pause();
  }

  end(): void {
    if (this.#inflater) this.#inflater.end();
    else this.#finish();
  }

  fail(error: Error): void {
    this.#failure = error;
    this.end();
  }

  pause(): void {
    this.#isPaused = true;
    this.#inflater?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#inflater?.resume();
    if (!this.#inflater?.writableNeedDrain) this.#options.source.resume();
  }

  /** Stops without further events. */
  close(): void {
    this.#inflater
      ?.removeAllListeners()
      .on('error', () => undefined)
      .destroy();
  }

  #begin(first: Uint8Array): Inflater {
    const { coding, end, source } = this.#options;
    const inflater = INFLATERS.get(coding)?.(end, first) ?? zlib.createGunzip(ZLIB[end]);
    inflater.on('data', (piece: Buffer) => this.#take(piece));
    inflater.on('drain', () => this.#isPaused || source.resume());
    inflater.on('end', () => this.#finish());
    inflater.on('error', () => this.#break(new DecompressionError('sent a compressed response that cannot be decompressed')));
    return inflater;
  }

  #take(piece: Buffer): void {
    this.#bytesOut += piece.length;
    const maxBytes = Math.max(MIN_LIMITED_BYTES, this.#bytesIn * this.#options.maxRatio);
    if (this.#bytesOut > maxBytes)
      this.#break(new TooLargeError(`sent a compressed response that grows more than ${this.#options.maxRatio} times`));
    else this.#receiver.data(piece);
  }

  #finish(): void {
    if (this.#failure) this.#receiver.fail(this.#failure);
    else this.#receiver.end();
  }

  #break(error: Error): void {
    this.close();
    this.#receiver.fail(error);
  }
}

/** How a body is decompressed. */
export interface UnpackerOptions {
  coding: string;
  end: End;
  /** How many times larger a body may become. */
  maxRatio: number;
  /** Paused while the decompressor is full. */
  source: { pause(): void; resume(): void };
}

/** Up to this size the ratio does not matter: small bodies may be repetitive. */
const MIN_LIMITED_BYTES = 1024 * 1024;

/** The coding of a body; undefined for a plain one. Throws for unknown and nested codings. */
export function readCoding(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  const [coding, ...others] = header
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');
  if (coding === undefined) return undefined;
  if (others.length === 0 && INFLATERS.has(coding)) return coding;
  const shown = header.replace(/[^\w, -]/g, '').slice(0, 40);
  throw new DecompressionError(`used content-encoding "${shown}", which is not supported`);
}

type Inflater = zlib.Gunzip | zlib.Inflate | zlib.InflateRaw | zlib.BrotliDecompress;

/**
 * Whether a truncated body is an error (`strict`), or its beginning is used (`lenient`) because the content shows
 * whether it is complete.
 */
type End = 'strict' | 'lenient';

const ZLIB = { strict: {}, lenient: { finishFlush: zlib.constants.Z_SYNC_FLUSH } } as const;

const BROTLI = { strict: {}, lenient: { finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH } } as const;

/** Servers disagree about what deflate is; the first byte decides. */
const hasZlibHeader = (chunk: Uint8Array): boolean => ((chunk[0] ?? 0) & 0x0f) === 8;

type CreateInflater = (end: End, first: Uint8Array) => Inflater;

const INFLATERS: ReadonlyMap<string, CreateInflater> = new Map<string, CreateInflater>([
  ['gzip', (end) => zlib.createGunzip(ZLIB[end])],
  ['x-gzip', (end) => zlib.createGunzip(ZLIB[end])],
  ['br', (end) => zlib.createBrotliDecompress(BROTLI[end])],
  ['deflate', (end, first) => (hasZlibHeader(first) ? zlib.createInflate(ZLIB[end]) : zlib.createInflateRaw(ZLIB[end]))],
  ...listZstd(),
]);

/** Zstd as far as it is used here. Node has it since 22.15; the types are those of node 20. */
interface MaybeZstd {
  createZstdDecompress?(options: { params: Record<number, number> }): Inflater;
  constants: { ZSTD_d_windowLogMax?: number };
}

/**
 * RFC 9659: no more than 8 MiB of window for the content coding. By default a client could claim 128 MiB for each
 * request.
 */
const ZSTD_WINDOW_LOG = 23;

function listZstd(): [string, CreateInflater][] {
  const { createZstdDecompress: create, constants } = zlib as MaybeZstd; // every member is optional
  const parameter = constants.ZSTD_d_windowLogMax;
  if (!create || parameter === undefined) return [];
  return [['zstd', () => create({ params: { [parameter]: ZSTD_WINDOW_LOG } })]];
}

/** Supported codings, as the value of `Accept-Encoding`. */
export const SUPPORTED_CODINGS = [...INFLATERS.keys()].join(', ');

/** The body exceeded its limit. The message is sent to the client after the name of the provider. */
export class TooLargeError extends Error {
  override readonly name = 'TooLarge';
}

/** What a call was waiting for when it timed out. */
export type Wait =
  /** The headers of the response. */
  | 'response'
  /** The first event of a stream. */
  | 'event'
  /** More of a body. */
  | 'more'
  /** The end of the response. */
  | 'end';

/** The upstream took too long. */
export class UpstreamTimeout extends Error {
  override readonly name = 'TooLate';
  readonly wait: Wait;
  readonly ms: number;

  constructor(wait: Wait, ms: number) {
    super(`no ${wait} within ${ms} ms`);
    this.wait = wait;
    this.ms = ms;
  }
}

/**
 * The body has an encoding that was not requested and is not supported, or its encoding is broken. The message is sent
 * to the client after the name of the provider.
 */
export class DecompressionError extends Error {
  override readonly name = 'NotUnpacked';
}

/** The URL is not at the address of its provider. The call is not made, because the key belongs to that address. */
export class WrongAddress extends Error {
  override readonly name = 'WrongAddress';
}

/**
 * The upstream sent bytes that are not HTTP/1.1. It received the request and may have processed it. The message is sent
 * to the client after the name of the provider.
 */
export class MalformedResponse extends Error {
  override readonly name = 'MalformedResponse';
}

/** Converts undici's errors about invalid HTTP; undefined for all others. `hasHead`: the response headers were read. */
function toMalformedResponse(error: Error, hasHead: boolean): MalformedResponse | undefined {
  const reason = findMalformation(error, hasHead);
  return reason === undefined ? undefined : new MalformedResponse(`sent an invalid HTTP response: ${reason}`, { cause: error });
}

/** The parser's reason: `Response does not match the HTTP/1.1 protocol (Invalid character in chunk size)`. */
const PARSER_REASON = /\(([\w ,/'-]{1,80})\)$/;

function findMalformation(error: Error, hasHead: boolean): string | undefined {
  const code = 'code' in error ? error.code : undefined;
  if (error.name === 'HTTPParserError') {
    const reason = PARSER_REASON.exec(error.message)?.[1] ?? 'it is not HTTP/1.1';
    // This is how the parser reports a closed connection.
    return reason.startsWith('Invalid EOF state') ? undefined : reason;
  }
  // After the headers it means that the connection was closed.
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return hasHead ? undefined : 'its content-length is ambiguous';
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return 'its headers are too large';
  return code === 'UND_ERR_SOCKET' && error.message === 'bad upgrade' ? 'it switches to another protocol' : undefined;
}

const [ZERO, ONE, TWO, LF, CR] = [0x30, 0x31, 0x32, 0x0a, 0x0d];
