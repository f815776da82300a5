import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { CodecError, encodeError, routeOf } from '@sluice/core';
import { ClientConnection } from '../exchange/presence.ts';
import type { Services } from '../exchange/services.ts';
import { type ListenOptions, listen, stopListening } from '../http/listen.ts';
import { joined } from '../upstream/headers.ts';
import { checkCaller } from './admit.ts';
import { explainUnreadable, hasLeft, respondUnreadable } from './client-error.ts';
import { handle, type Incoming } from './handle.ts';
import { OWN_PAGES, type OwnPage } from './own-pages.ts';

/** When TCP keep-alive begins to probe a silent peer; libuv then probes ten times, one second apart. */
const PEER_SILENCE_MS = 30_000;
/** How often connections that have become idle are closed while the gateway drains. */
const SWEEP_MS = 100;
/** How long clients may take to read the shutdown error after the deadline. */
const LAST_WORDS_MS = 2000;

/** Failures to accept come in floods, so at most one is logged per second. */
const ACCEPT_LOG_MS = 1000;

/** The gateway's HTTP server. */
export class Gateway {
  readonly #services: Services;
  readonly #server: Server;
  #isDraining = false;
  #acceptFailedAt = Number.NEGATIVE_INFINITY;

  constructor(services: Services) {
    const { limits } = services;
    this.#services = services;
    this.#server = createServer({
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersReadMs,
      requestTimeout: limits.requestReadMs,
      keepAliveTimeout: limits.keepAliveMs,
      // `admit` checks the Host header.
      requireHostHeader: false,
      connectionsCheckingInterval: Math.min(1000, limits.headersReadMs),
      highWaterMark: limits.writeBufferBytes,
      keepAlive: true,
      keepAliveInitialDelay: PEER_SILENCE_MS,
      noDelay: true,
    });
    // One header more than allowed is read, so that too many can be rejected: the parser silently drops the rest.
    this.#server.maxHeadersCount = limits.headers + 1;
    // A client that has closed its sending side may still read.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    this.#server.on('request', this.#onRequest);
    this.#server.on('checkContinue', this.#onRequest);
    this.#server.on('clientError', this.#onUnreadable);
    this.#server.on('connection', (socket) => socket.on('end', () => this.#halfClose(socket)));
    this.#server.maxConnections = services.maxConnections;
    this.#server.on('drop', () => services.metrics.droppedConnections.inc());
  }

  listen({ host, port }: Pick<ListenOptions, 'host' | 'port'>): Promise<string> {
    return listen(this.#server, { host, port, onAcceptError: this.#onAcceptFailed });
  }

  /** Stops accepting requests and waits for running ones. After the deadline their clients receive an error. */
  async close(deadlineMs: number): Promise<void> {
    const { streams, dialer, memory, clock } = this.#services;
    this.#isDraining = true;
    for (const { response } of streams.underWay) if (!response.headersSent) response.setHeader('connection', 'close');
    const closed = stopListening(this.#server);
    const sweep = clock.setRepeating(() => this.#server.closeIdleConnections(), SWEEP_MS);
    const deadline = clock.setTimer(() => streams.stop(), deadlineMs);
    const end = clock.setTimer(() => this.#server.closeAllConnections(), deadlineMs + LAST_WORDS_MS);
    this.#server.closeIdleConnections();
    await closed;
    await streams.empty();
    sweep.close();
    deadline.close();
    end.close();
    memory.close();
    await dialer.close();
  }

  /**
   * A connection could not be accepted because no file descriptor is left. Every iteration of the event loop would fail
   * again, so idle connections are closed.
   */
  readonly #onAcceptFailed = (error: Error): void => {
    const { metrics, log, now } = this.#services;
    metrics.droppedConnections.inc();
    if (now() < this.#acceptFailedAt + ACCEPT_LOG_MS) return;
    this.#acceptFailedAt = now();
    log.error({ error: error.message }, 'a connection could not be accepted');
    this.#server.closeIdleConnections();
  };

  readonly #onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const id = randomUUID();
    try {
      this.#route(id, request, response);
    } catch (cause) {
      this.#fail(cause, id, response);
    }
  };

  #route(id: string, request: IncomingMessage, response: ServerResponse): void {
    if (this.#isDraining) response.setHeader('connection', 'close');
    const headers = joined(request.headers);
    const route = routeOf(request.url ?? '/', headers);
    const connection = new ClientConnection(response, this.#services.clock, (cause) => this.#fail(cause, id, response));
    const incoming = { id, request, response, connection, headers, route, directory: this.#services.directory() };
    const page = route.type === 'PASSTHROUGH' ? OWN_PAGES.get(route.path.split('?', 1)[0] ?? '') : undefined;
    void (page ? this.#show(page, incoming) : handle(incoming, this.#services)).catch((cause: unknown) =>
      this.#fail(cause, id, response),
    );
  }

  /** Pipelined requests share a socket. */
  #halfClose(socket: Socket): void {
    for (const connection of this.#services.streams.underWay)
      if (connection.response.req.socket === socket) connection.halfClose();
  }

  readonly #onUnreadable = (error: Error, socket: Socket): void => {
    try {
      this.#refuseUnreadable(error, socket);
    } catch (cause) {
      this.#services.log.error({ error: String(cause instanceof Error ? cause.stack : cause) }, 'failed');
      socket.destroy();
    }
  };

  /** If a handler is still reading the body, it responds; otherwise the response is written to the socket. */
  #refuseUnreadable(error: Error, socket: Socket): void {
    const requests = this.#services.streams.underWay.map(({ response }) => response.req);
    const waiting = requests.find((request) => request.socket === socket && !request.complete);
    if (waiting && hasLeft(error)) socket.destroy();
    else if (waiting && waiting.listenerCount('error') > 0) waiting.emit('error', explainUnreadable(error));
    else respondUnreadable(error, socket, this.#services.log);
  }

  async #show(page: OwnPage, incoming: Incoming): Promise<void> {
    const { id, response, route } = incoming;
    try {
      if (!page.isPublic) checkCaller(incoming);
      await page.send(response, { id, metrics: this.#services.metrics, isDraining: this.#isDraining });
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      const { status, body } = encodeError(error.error, { to: route.client });
      response.writeHead(status, { 'content-type': 'application/json', 'x-sluice-request-id': id }).end(JSON.stringify(body));
    }
  }

  /** A bug in the gateway ends this request only. */
  #fail(cause: unknown, id: string, response: ServerResponse): void {
    this.#services.log.error({ request_id: id, error: String(cause instanceof Error ? cause.stack : cause) }, 'failed');
    response.destroy();
  }
}
