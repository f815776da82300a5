import { type Dispatcher, Pool } from 'undici';
import { createConnector } from './connector.ts';
import { malformedResponse, WrongAddress } from './failures.ts';
import { FairReader, ReadQueue } from './fair-reader.ts';
import { joined } from './headers.ts';
import { memo } from './memo.ts';
import { readCoding, Unpacker } from './unpack.ts';

/** One request to a provider. The URL comes from the operator's configuration alone. */
export interface Call {
  url: string;
  /** Scheme, host and port that the key in the headers belongs to; it is sent to no other. */
  origin: string;
  method: string;
  headers: Record<string, string>;
  body?: Uint8Array | string | undefined;
  connectMs: number;
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
export const repeatByMethod = (method: string): Call['repeat'] => (SAFE_METHODS.has(method) ? 'once' : 'never');

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
}

/** A way to reach upstreams. */
export interface Transport {
  /** Starts a call. The receiver gets no event before this returns. */
  dial(call: Call, receiver: Receiver): Line;
}

export interface DialerOptions {
  /** How long an idle connection is kept. */
  upstreamKeepAliveMs: number;
  /** How many times larger a compressed response may become. */
  compressionRatio: number;
}

/**
 * Calls upstreams over HTTP/1.1: keep-alive, no redirects, only the operator's proxy, and no address that a client
 * could choose.
 */
export class Dialer implements Transport {
  readonly #options: DialerOptions;
  /** One per address and connect timeout, because providers may have their own. */
  readonly #pools = new Map<string, Pool>();
  readonly #queue = new ReadQueue();
  readonly #readAddress = memo(ADDRESSES, parseAddress);
  /** Errors of requests on stale connections; see `createConnector`. */
  readonly #staleErrors = new WeakSet<Error>();

  constructor(options: DialerOptions) {
    this.#options = options;
  }

  dial(call: Call, receiver: Receiver): Line {
    const { origin, path } = this.#readAddress(call.url);
    if (origin !== call.origin) return refuse(receiver);
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

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()));
  }

  #pool({ origin, connectMs }: Call, connections: 'kept' | 'new'): Pool {
    const key = `${connections} ${connectMs} ${origin}`;
    const known = this.#pools.get(key);
    if (known) return known;
    const { upstreamKeepAliveMs } = this.#options;
    const pool = new Pool(origin, {
      connect: createConnector(connectMs, this.#staleErrors),
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

interface Address {
  origin: string;
  path: string;
}

/** Limits of the memo of parsed URLs; some URLs contain a model name. */
const ADDRESSES = { entries: 1000, bytes: 512 * 1024 };

function parseAddress(url: string): Address {
  const { origin, pathname, search } = new URL(url);
  return { origin, path: pathname + search };
}

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
    const headers = joined(fields);
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
    (this.#unpacker ?? this.#receiver).fail(malformedResponse(error, this.#hasHead) ?? error);
  }
}

const HUNG_UP = new Error('hung up');

/** Fails asynchronously, like all failures, so that the caller has its line by then. */
function refuse(receiver: Receiver): Line {
  queueMicrotask(() => receiver.fail(new WrongAddress('the call would have left the address of its provider')));
  return NO_LINE;
}

const NO_LINE: Line = { pause: () => undefined, resume: () => undefined, hangUp: () => undefined };

/** The coding and the length do not apply to the decompressed body. */
function withoutCoding(headers: Record<string, string>): Record<string, string> {
  const { 'content-encoding': _coding, 'content-length': _length, ...rest } = headers;
  return rest;
}
