import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Codec, CodecError } from '@sluice/core';
import { encodeError, findRoute, type Route } from '@sluice/core/engine';
import { type Ending, joinPaths, type Read } from '@sluice/lab/tape';
import { DIRECT, type Network } from '../config/network.ts';
import { createConnectionError } from '../exchange/types.ts';
import { LOOPBACK, listen, stopListening } from '../http/listen.ts';
import { checkHost, isForeignPage } from '../http/origin.ts';
import { refusal } from '../http/refusal.ts';
import { Collector } from '../upstream/body.ts';
import { chooseRepeat, Dialer, type Line, putDispositionFirst, type Receiver } from '../upstream/dialer.ts';
import { collectBody, parseJson, readHeaders, readPath, readTarget } from './incoming.ts';
import { Scrubber } from './scrub.ts';
import type { Draft, TapeWriter } from './write.ts';

/** A proxy between a client and its provider that records every exchange. Bytes are passed on as they arrive. */
export class Recorder {
  readonly #options: Required<RecorderOptions>;
  readonly #server: Server;
  readonly #dialer = new Dialer(DIALER_OPTIONS);
  /** One for all exchanges, because an upstream may quote the key of another request. */
  readonly #scrubber = new Scrubber();
  readonly #running = new Set<Promise<void>>();

  constructor(options: RecorderOptions) {
    this.#options = { maxBytes: MAX_BODY_BYTES, network: DIRECT, ...options };
    // No timeout: a model may take any time to respond.
    this.#server = createServer({ requestTimeout: 0, keepAlive: true, noDelay: true }, (request, response) => {
      const running = this.#serve(request, response);
      this.#running.add(running);
      void running.finally(() => this.#running.delete(running));
    });
  }

  /** Listens on the loopback address only: every program that can connect can use the upstream. */
  listen(port: number): Promise<string> {
    return listen(this.#server, { host: LOOPBACK, port });
  }

  /** Waits until running exchanges are finished and recorded. */
  async close(): Promise<void> {
    const closed = stopListening(this.#server);
    this.#server.closeIdleConnections();
    await Promise.allSettled(this.#running);
    this.#server.closeAllConnections();
    await closed;
    await this.#dialer.close();
  }

  /** Never rejects. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const headers = readHeaders(request);
    const route = findRoute(request.url ?? '/', headers);
    try {
      if (isForeignPage(headers)) throw refusal(403, 'PERMISSION', 'requests from web pages of other origins are not allowed');
      checkHost(headers['host'], '; use 127.0.0.1');
      this.#scrubber.learn(headers, readPath(request));
      const body = await collectBody(request, this.#options.maxBytes);
      await this.#pass(request, response, route, body);
    } catch (cause) {
      const error = cause instanceof CodecError ? cause.error : { code: 'INTERNAL' as const, message: String(cause) };
      const { status, body } = encodeError(error, { to: route.client });
      if (response.headersSent) response.destroy();
      else response.writeHead(status, { 'content-type': 'application/json', connection: 'close' }).end(JSON.stringify(body));
    }
  }

  async #pass(request: IncomingMessage, response: ServerResponse, route: Route, body: Buffer): Promise<void> {
    const started = performance.now();
    const recorded = new Date().toISOString();
    const { upstream, maxBytes, network } = this.#options;
    const call = { url: upstream.origin + joinPaths(upstream.pathname, readPath(request)), origin: upstream.origin, network };
    const passed = await passOn(this.#dialer, { ...call, request, response, client: route.client, body, maxBytes });
    const draft = buildDraft(request, route, body, passed, this.#scrubber);
    await this.#save({ ...draft, recorded }, performance.now() - started);
  }

  async #save(draft: Draft, ms: number): Promise<void> {
    const { writer, onExchange } = this.#options;
    const saved = await writer.save(draft).then(
      (name): Saved => ({ draft, name, failure: undefined, ms }),
      (failure: unknown): Saved => ({ draft, name: undefined, failure, ms }),
    );
    try {
      onExchange(saved);
    } catch {
      // The listener only reports: its failure concerns neither the client nor the tape.
    }
  }
}

/** Where requests go, and where exchanges are recorded. */
export interface RecorderOptions {
  /** The only upstream; clients cannot choose another. */
  upstream: URL;
  writer: TapeWriter;
  onExchange(saved: Saved): void;
  /** How the upstream is reached; directly by default. */
  network?: Network;
  /** Bytes of a body that are recorded, 64 MiB by default. The client receives the whole body. */
  maxBytes?: number;
}

/** A finished exchange, and where it was saved. */
export interface Saved {
  draft: Draft;
  /** Undefined when it could not be written; `failure` has the error. */
  name: string | undefined;
  failure: unknown;
  ms: number;
}

/** Kept bytes of a body: bodies are held in memory until the exchange ends. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

const DIALER_OPTIONS = { upstreamKeepAliveMs: 4000, compressionRatio: 100 } as const;

/** The exchange without keys and personal data. */
function buildDraft(
  request: IncomingMessage,
  route: Route,
  body: Buffer,
  { ending, response }: PassedExchange,
  scrubber: Scrubber,
): Omit<Draft, 'recorded'> {
  const headers = readHeaders(request);
  const path = readPath(request);
  const { model, stream } = readTarget(route, headers, parseJson(body));
  return {
    protocol: route.type === 'PASSTHROUGH' ? null : route.client.id,
    model: model === null ? null : scrubber.text(model),
    stream,
    end: ending,
    request: {
      method: request.method ?? 'POST',
      path: scrubber.path(path),
      headers: scrubber.requestHeaders(headers),
      body: scrubber.requestBody(body),
    },
    response: response ? buildResponse(response, scrubber) : null,
  };
}

function buildResponse(
  { status, headers, body, reads }: NonNullable<PassedExchange['response']>,
  scrubber: Scrubber,
): Draft['response'] {
  const clean = scrubber.responseBody(body, status);
  const isRedacted = !clean.equals(body);
  return { status, headers: scrubber.responseHeaders(headers), body: clean, ...(isRedacted && { redacted: true }), reads };
}

/** Passes a request on, sends the response to the client as it arrives, and keeps it. Never rejects. */
const passOn = (dialer: Dialer, proxied: ProxiedRequest): Promise<PassedExchange> =>
  new Promise((resolve) => new Passage(proxied, resolve).begin(dialer));

interface ProxiedRequest {
  url: string;
  origin: string;
  network: Network;
  request: IncomingMessage;
  response: ServerResponse;
  client: Codec;
  body: Buffer;
  /** Bytes of the response that are kept. */
  maxBytes: number;
}

/** What was passed between client and upstream. */
interface PassedExchange {
  ending: Ending;
  response: { status: number; headers: Record<string, string>; body: Buffer; reads: Read[] } | undefined;
}

/** Passes one exchange on. */
class Passage implements Receiver {
  readonly #proxied: ProxiedRequest;
  readonly #resolve: (passed: PassedExchange) => void;
  readonly #collector: Collector;
  readonly #reads: Read[] = [];
  readonly #started = performance.now();
  #isTooLarge = false;
  #head: { status: number; headers: Record<string, string> } | undefined;
  #line: Line | undefined;

  constructor(proxied: ProxiedRequest, resolve: (passed: PassedExchange) => void) {
    this.#proxied = proxied;
    this.#resolve = resolve;
    this.#collector = new Collector(proxied.maxBytes);
  }

  begin(dialer: Dialer): void {
    const { url, origin, network, request, response, body } = this.#proxied;
    // Tapes should be readable, so the upstream is asked for an uncompressed body.
    const headers = { ...pickEndToEnd(readHeaders(request), 'content-length'), 'accept-encoding': 'identity' };
    const method = request.method ?? 'POST';
    response.once('close', this.#clientLeft);
    const call = { url, origin, network, method, headers, connectMs: CONNECT_MS, repeat: chooseRepeat(method) };
    this.#line = dialer.dial({ ...call, ...(body.length > 0 && { body }) }, this);
    if (response.destroyed) this.#clientLeft();
  }

  start(status: number, headers: Record<string, string>): void {
    this.#head = { status, headers };
    // `flushHeaders` would encode header values as UTF-8; written together with a body they stay Latin-1.
    this.#proxied.response.writeHead(status, putDispositionFirst(pickEndToEnd(headers))).write(NO_BYTES);
  }

  data(chunk: Uint8Array): void {
    const { response } = this.#proxied;
    this.#isTooLarge ||= !this.#collector.push(chunk);
    if (!this.#isTooLarge) this.#reads.push([Math.round(performance.now() - this.#started), chunk.length]);
    if (response.write(chunk)) return;
    this.#line?.pause();
    response.once('drain', () => this.#line?.resume());
  }

  end(): void {
    this.#proxied.response.end();
    this.#settle('complete');
  }

  /** Closes the connection if the response has started, so that the client notices. */
  fail(error: Error): void {
    const { response, client } = this.#proxied;
    if (this.#head) {
      response.destroy();
      this.#settle('upstream_cut');
      return;
    }
    const { status, body } = encodeError(createConnectionError(error, 'the upstream'), { to: client });
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    this.#settle('unreachable');
  }

  readonly #clientLeft = (): void => {
    this.#line?.hangUp();
    this.#settle('client_gone');
  };

  #settle(ending: Ending): void {
    const { response } = this.#proxied;
    response.off('close', this.#clientLeft);
    const body = this.#collector.take();
    const isWhole = ending !== 'complete' || !this.#isTooLarge;
    const recorded = this.#head && { ...this.#head, body, reads: this.#reads };
    this.#resolve({ ending: isWhole ? ending : 'too_large', response: recorded });
  }
}

const CONNECT_MS = 10_000;

const NO_BYTES = Buffer.alloc(0);

/** The headers to pass on, without those of the connection and those in `without`. */
function pickEndToEnd(headers: Record<string, string>, ...without: readonly string[]): Record<string, string> {
  const named = new Set((headers['connection'] ?? '').split(',').map((name) => name.trim().toLowerCase()));
  const isKept = (name: string): boolean => !HOP_BY_HOP.has(name) && !named.has(name) && !without.includes(name);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => isKept(name)));
}

/** Headers of one connection, which are not passed on. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'host',
  'expect',
]);
