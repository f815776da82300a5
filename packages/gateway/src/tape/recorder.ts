import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { CodecError, encodeError, type Route, routeOf } from '@sluice/core';
import { LOOPBACK, listen, stopListening } from '../http/listen.ts';
import { checkHost, isForeignPage } from '../server/origin.ts';
import { refusal } from '../server/refusal.ts';
import { Dialer } from '../upstream/dialer.ts';
import { askedOf, collectBody, headersOf, parsed, pathOf } from './asked.ts';
import { type Passed, pass } from './passage.ts';
import { joinPaths } from './paths.ts';
import { Scrubber } from './scrub.ts';
import type { Draft, TapeWriter } from './write.ts';

/** A finished exchange, and where it was saved. */
export interface Saved {
  draft: Draft;
  /** Undefined when it could not be written; `failure` has the error. */
  name: string | undefined;
  failure: unknown;
  ms: number;
}

export interface RecorderOptions {
  /** The only upstream; clients cannot choose another. */
  upstream: URL;
  writer: TapeWriter;
  onExchange(saved: Saved): void;
  /** Bytes of a body that are recorded, 64 MiB by default. The client receives the whole body. */
  maxBytes?: number;
}

/** Kept bytes of a body: bodies are held in memory until the exchange ends. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
const DIALING = { upstreamKeepAliveMs: 4000, compressionRatio: 100 } as const;

/** A proxy between a client and its provider that records every exchange. */
export class Recorder {
  readonly #options: Required<RecorderOptions>;
  readonly #server: Server;
  readonly #dialer = new Dialer(DIALING);
  /** One for all exchanges, because an upstream may quote the key of another request. */
  readonly #scrubber = new Scrubber();
  readonly #running = new Set<Promise<void>>();

  constructor(options: RecorderOptions) {
    this.#options = { maxBytes: MAX_BODY_BYTES, ...options };
    // No timeout: a model may take any time to respond.
    this.#server = createServer({ requestTimeout: 0, keepAlive: true, noDelay: true }, (request, response) => {
      const running = this.#serve(request, response);
      this.#running.add(running);
      void running.finally(() => this.#running.delete(running));
    });
  }

  /** Listens on the loopback address only: anybody who can connect can use the upstream. */
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
    const headers = headersOf(request);
    const route = routeOf(request.url ?? '/', headers);
    try {
      if (isForeignPage(headers)) throw refusal(403, 'PERMISSION', 'requests from web pages of other origins are not allowed');
      checkHost(headers['host'], '; use 127.0.0.1');
      this.#scrubber.learn(headers, pathOf(request));
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
    const { upstream, maxBytes } = this.#options;
    const call = { url: upstream.origin + joinPaths(upstream.pathname, pathOf(request)), origin: upstream.origin };
    const passed = await pass(this.#dialer, { ...call, request, response, client: route.client, body, maxBytes });
    const draft = draftOf(request, route, body, passed, this.#scrubber);
    await this.#save({ ...draft, recorded }, performance.now() - started);
  }

  async #save(draft: Draft, ms: number): Promise<void> {
    const { writer, onExchange } = this.#options;
    try {
      onExchange({ draft, name: await writer.save(draft), failure: undefined, ms });
    } catch (failure) {
      onExchange({ draft, name: undefined, failure, ms });
    }
  }
}

/** The exchange without keys and personal data. */
function draftOf(
  request: IncomingMessage,
  route: Route,
  body: Buffer,
  { ending, answer }: Passed,
  scrubber: Scrubber,
): Omit<Draft, 'recorded'> {
  const headers = headersOf(request);
  const path = pathOf(request);
  const { model, stream } = askedOf(route, headers, parsed(body));
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
    response: answer ? answerOf(answer, scrubber) : null,
  };
}

function answerOf({ status, headers, body, reads }: NonNullable<Passed['answer']>, scrubber: Scrubber): Draft['response'] {
  const clean = scrubber.responseBody(body, status);
  const isRedacted = !clean.equals(body);
  return { status, headers: scrubber.responseHeaders(headers), body: clean, ...(isRedacted && { redacted: true }), reads };
}
