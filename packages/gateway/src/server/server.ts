/** The gateway's HTTP server, its own pages, and responses to unreadable requests. */

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { CodecError } from '@sluice/core';
import { encodeError, findRoute } from '@sluice/core/engine';
import { type AdminApi, type AdminRequest, isAdminPath } from '../admin/api.ts';
import { Problem } from '../admin/problem.ts';
import type { ConsoleRequest } from '../admin/send.ts';
import { ClientConnection } from '../exchange/client-connection.ts';
import { limitStall } from '../exchange/reply.ts';
import { INTERNAL, type Services, STOPPED } from '../exchange/types.ts';
import { type ClientAddress, readClientAddress } from '../http/client-address.ts';
import { type ListenOptions, listen, stopListening, untilAllAccepted } from '../http/listen.ts';
import { endWithReply, readAllow, refusal, refuseMethod } from '../http/refusal.ts';
import { type TlsPair, TlsServer } from '../http/tls.ts';
import { createUpgradableRequest, isWebSocketOffer } from '../http/upgrade.ts';
import type { Logger } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { joinHeaders } from '../upstream/dialer.ts';
import { admit, checkForm } from './admit.ts';
import { ClientSocket } from './client-socket.ts';
import { Console, isConsolePath } from './console.ts';
import { handle, type Incoming, isResponsesRoute } from './handle.ts';
import { INSTANCE_HEADER } from './instance.ts';
import { MetricsAccess, sendMetrics } from './metrics-page.ts';
import { ResponseSockets } from './websocket.ts';

/** The gateway's HTTP server. */
export class Gateway {
  readonly #services: Services;
  readonly #server: Server | HttpsServer;
  readonly #tls: TlsServer | undefined;
  readonly #sockets: ResponseSockets;
  readonly #metricsAccess: MetricsAccess;
  readonly #clients = new WeakMap<Duplex, ClientSocket>();
  readonly #admin: AdminApi | undefined;
  readonly #instance: string;
  readonly #console = new Console();
  #isDraining = false;
  #onAbandoned: () => void = () => undefined;
  readonly #abandoned = new Promise<void>((resolve) => {
    this.#onAbandoned = resolve;
  });
  #acceptFailedAt = Number.NEGATIVE_INFINITY;
  #schemeWarnedAt = Number.NEGATIVE_INFINITY;

  /** `admin` serves `/admin`; without it, there is none. With `tls`, the gateway serves HTTPS. `instance`: see instance.ts. */
  constructor(services: Services, admin?: AdminApi, tls?: TlsPair, instance = '') {
    const { limits } = services;
    this.#services = services;
    this.#sockets = new ResponseSockets(services);
    this.#metricsAccess = new MetricsAccess(services.log);
    this.#admin = admin;
    this.#instance = instance;
    const options = {
      IncomingMessage: createUpgradableRequest((request) => this.#acceptsUpgrade(request)),
      maxHeaderSize: limits.headerBytes,
      // Node accepts no headers that may take longer than their request.
      headersTimeout: Math.min(limits.headersReadMs, limits.requestReadMs),
      requestTimeout: limits.requestReadMs,
      keepAliveTimeout: limits.keepAliveMs,
      // `admit` checks the Host header.
      requireHostHeader: false,
      connectionsCheckingInterval: Math.min(1000, limits.headersReadMs),
      highWaterMark: limits.writeBufferBytes,
      keepAlive: true,
      keepAliveInitialDelay: PEER_SILENCE_MS,
      noDelay: true,
    };
    this.#tls = tls && new TlsServer(options, tls, { handshakeMs: limits.headersReadMs, onFailed: this.#onHandshakeFailed });
    this.#server = this.#tls?.server ?? createServer(options);
    // One header more than allowed is read, so that too many can be rejected: the parser silently drops the rest.
    this.#server.maxHeadersCount = limits.headers + 1;
    // A client that has closed its sending side may still read.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    this.#server.on('request', this.#onRequest);
    this.#server.on('checkContinue', this.#onRequest);
    this.#server.on('upgrade', this.#onUpgrade);
    this.#server.on('clientError', this.#onUnreadable);
    const accepted = this.#tls ? 'secureConnection' : 'connection';
    this.#server.on(accepted, (socket: Socket) => {
      const client = new ClientSocket(socket);
      this.#clients.set(socket, client);
      socket.on('end', () => client.exchange?.halfClose());
    });
    this.#server.maxConnections = services.maxConnections;
    this.#server.on('drop', () => services.metrics.droppedConnections.inc());
  }

  /** Starts to listen and resolves with the URL. */
  listen({ host, port }: Pick<ListenOptions, 'host' | 'port'>): Promise<string> {
    return listen(this.#server, { host, port, onAcceptError: this.#onAcceptFailed });
  }

  /** Uses another certificate for new connections. Only for a gateway that was created with one. */
  replaceCertificate(pair: TlsPair): void {
    this.#tls?.use(pair);
  }

  /**
   * Reports that it is not ready any more, and still accepts requests for a while: a load balancer needs time to notice. Then stops
   * accepting requests and waits for running ones. After the deadline their clients receive an error.
   */
  async close(deadlineMs: number, delayMs = 0): Promise<void> {
    const { streams, dialer, memory, clock } = this.#services;
    this.#isDraining = true;
    // Keeps the process alive, unlike `sleep`.
    const wait = (ms: number): Promise<void> => new Promise((resolve) => void clock.setTimer(resolve, ms));
    if (delayMs > 0) {
      await wait(delayMs);
      await untilAllAccepted(this.#server);
    }
    for (const { response } of streams.underWay) if (!response.headersSent) response.setHeader('connection', 'close');
    const closed = stopListening(this.#server);
    this.#tls?.closeHandshakes();
    const deadline = clock.setTimer(() => streams.stop(STOPPED), deadlineMs);
    const end = clock.setTimer(() => this.#closeAll(), deadlineMs + LAST_READ_MS);
    this.#sockets.drain();
    // A load balancer may just have sent a request on a connection that is idle here.
    if (delayMs > 0) await wait(LINGER_MS);
    const sweep = clock.setRepeating(() => this.#server.closeIdleConnections(), SWEEP_MS);
    this.#server.closeIdleConnections();
    await closed;
    // Without connections, what is left is read to its end or recorded. A request that never ends must not keep the process.
    const patience = clock.setTimer(() => this.#abandon(), deadlineMs + LAST_READ_MS + LAST_RECORD_MS);
    await Promise.race([streams.empty(), this.#abandoned]);
    for (const timer of [sweep, deadline, end, patience]) timer.close();
    memory.close();
    await dialer.close();
  }

  /** Ends the wait for requests that have not ended although their connections are closed, which is a bug. */
  #abandon(): void {
    this.#services.log.error({ requests: this.#services.streams.count }, 'requests did not end; stopping without them');
    this.#onAbandoned();
  }

  #closeAll(): void {
    this.#server.closeAllConnections();
    this.#sockets.terminate();
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

  /** Usually plain HTTP, or a client that does not trust the certificate. */
  readonly #onHandshakeFailed = (error: Error, plain: Socket | undefined): void => {
    this.#services.log.debug({ error: String(readCode(error)) }, 'TLS handshake failed');
    if (readCode(error) !== 'ERR_SSL_HTTP_REQUEST') {
      plain?.destroy();
      return;
    }
    this.#warnOfScheme('http');
    // The TLS socket that listened for its errors is gone.
    plain?.on('error', () => plain.destroy());
    if (plain) endWithReply(plain, encodeError(PLAIN_REQUEST.error, { to: findRoute('/', {}).client }), randomUUID());
  };

  /** Clients retry, so one line per minute says what is wrong. */
  #warnOfScheme(scheme: keyof typeof WRONG_SCHEMES): void {
    const { log, now } = this.#services;
    if (now() < this.#schemeWarnedAt + SCHEME_LOG_MS) return;
    this.#schemeWarnedAt = now();
    log.warn({ hint: WRONG_SCHEMES[scheme] }, `a client sent ${scheme === 'http' ? 'plain HTTP' : 'TLS'} to this port`);
  }

  readonly #onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const client = this.#clients.get(request.socket);
    if (!client) throw new Error('a request came over a connection that was not accepted');
    client.serve(response, () => this.#serve(client, request, response));
  };

  #serve(socket: ClientSocket, request: IncomingMessage, response: ServerResponse): void {
    const id = randomUUID();
    try {
      this.#route(id, socket, request, response);
    } catch (cause) {
      this.#crash(cause, id, response);
    }
  }

  /** Whether a request opens a WebSocket. Other upgrades are ignored, and `handle` refuses those that are off. */
  #acceptsUpgrade(request: IncomingMessage): boolean {
    if (!this.#services.responses?.openLanes || !isWebSocketOffer(request)) return false;
    return isResponsesRoute(findRoute(request.url ?? '/', joinHeaders(request.headers)));
  }

  /** Checks a request for a WebSocket as any other, and takes over its connection. */
  readonly #onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const id = randomUUID();
    // Until the connection is taken over, or when that fails.
    socket.on('error', () => socket.destroy());
    // A connection that still sends a response cannot change its protocol.
    if (this.#clients.get(socket)?.served) {
      socket.destroy();
      return;
    }
    try {
      // A connection would end at once. Clients that are told to use HTTP instead do so for as long as they run.
      if (this.#isDraining) throw new CodecError(STOPPED);
      const directory = this.#services.directory();
      const client = readClientAddress(request, directory.proxies);
      const headers = readClientHeaders(request, client);
      const route = findRoute(request.url ?? '/', headers);
      const caller = admit({ request, client, headers, route, directory }, this.#services);
      this.#sockets.accept({ headers, client, route, caller }, request, socket, head);
    } catch (cause) {
      const { error } = cause instanceof CodecError ? cause : INTERNAL_ERROR;
      const message = cause instanceof CodecError ? 'WebSocket refused' : String(cause instanceof Error ? cause.stack : cause);
      this.#services.log.warn({ request_id: id, status: error.http_status, reason: error.message }, message);
      const { client } = findRoute(request.url ?? '/', {});
      endWithReply(socket, encodeError(error, { to: client }), id, this.#services.redact);
    }
  };

  #route(id: string, socket: ClientSocket, request: IncomingMessage, response: ServerResponse): void {
    if (this.#isDraining) response.setHeader('connection', 'close');
    const directory = this.#services.directory();
    const client = readClientAddress(request, directory.proxies);
    const headers = readClientHeaders(request, client);
    if (this.#admin && isAdminPath(request.url ?? '')) {
      this.#sendAdmin(this.#admin, { id, request, response, headers, client });
      return;
    }
    if (isConsolePath(request.url ?? '/') && this.#console.handle({ id, request, response })) {
      limitStall(response, this.#services.limits.stallMs);
      return;
    }
    const route = findRoute(request.url ?? '/', headers);
    const connection = new ClientConnection(response, this.#services.clock, (cause) => this.#crash(cause, id, response));
    socket.exchange = connection;
    // The client closed its sending side while this request waited for the one before it.
    if (request.socket.readableEnded) connection.halfClose();
    const incoming = { id, request, response, connection, headers, client, route, directory };
    const page = route.type === 'PASSTHROUGH' ? OWN_PAGES.get(route.path.split('?', 1)[0] ?? '') : undefined;
    void (page ? this.#sendPage(page, incoming) : handle(incoming, this.#services)).catch((cause: unknown) =>
      this.#crash(cause, id, response),
    );
  }

  /** Sends a request of the console like one of a client. It runs until its response has ended. */
  send({ id, response, client, caller, path, headers, body }: ConsoleRequest): void {
    const { clock } = this.#services;
    const directory = this.#services.directory();
    const connection = new ClientConnection(response, clock, (cause) => this.#crash(cause, id, response));
    const socket = this.#clients.get(response.req.socket);
    if (socket) socket.exchange = connection;
    const route = findRoute(path, headers);
    const incoming: Incoming = { id, request: response.req, response, connection, headers, client, route, directory };
    incoming.console = { caller, body };
    handle(incoming, this.#services).catch((cause: unknown) => this.#crash(cause, id, response));
  }

  #sendAdmin(admin: AdminApi, incoming: AdminRequest): void {
    try {
      checkForm(incoming, this.#services);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      admin.refuse(incoming, new Problem(error.error.http_status ?? 400, error.message));
      return;
    }
    admin.handle(incoming).catch((cause: unknown) => this.#crash(cause, incoming.id, incoming.response));
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
    if (isHandshake(error)) this.#warnOfScheme('https');
    const client = this.#clients.get(socket);
    const request = client?.exchange?.response.req;
    const waiting = request && !request.complete ? request : undefined;
    if (waiting && hasLeft(error)) socket.destroy();
    else if (waiting && waiting.listenerCount('error') > 0) waiting.emit('error', explainUnreadable(error));
    // A second response would be read as a part of the one that is being sent.
    else if (client?.served?.headersSent) socket.destroy();
    // What cannot be read was sent behind a request, whose response the client must not take for this error.
    else if (client?.served) client.served.setHeader('connection', 'close');
    else respondUnreadable(error, socket, this.#services.log);
  }

  async #sendPage(page: OwnPage, incoming: Incoming): Promise<void> {
    const { id, request, response, route } = incoming;
    try {
      if (!PAGE_METHODS.includes(request.method ?? ''))
        throw refuseMethod(`${request.method} ${route.path.split('?', 1)[0]}`, PAGE_METHODS, PAGE_HINT);
      if (!page.isPublic) this.#metricsAccess.check(incoming);
      const { metrics, memory } = this.#services;
      const unready = this.#isDraining ? 'draining' : memory.hasShedForLong ? 'overloaded' : undefined;
      await page.send(response, { id, metrics, unready, instance: this.#instance });
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      const { status, body } = encodeError(error.error, { to: route.client });
      const allow = readAllow(error.error);
      response
        .writeHead(status, {
          'content-type': 'application/json',
          'x-sluice-request-id': id,
          ...(allow !== undefined && { allow }),
        })
        .end(JSON.stringify(body));
    }
    limitStall(response, this.#services.limits.stallMs);
  }

  /** A bug in the gateway ends this request only. */
  #crash(cause: unknown, id: string, response: ServerResponse): void {
    this.#services.log.error({ request_id: id, error: String(cause instanceof Error ? cause.stack : cause) }, 'failed');
    response.destroy();
  }
}

/** The headers, with the host that the client used if a trusted proxy says so: checks of the host are about the client. */
function readClientHeaders({ headers: given }: IncomingMessage, { host }: ClientAddress): Record<string, string> {
  const headers = joinHeaders(given);
  return host === undefined ? headers : { ...headers, host };
}

const INTERNAL_ERROR = new CodecError(INTERNAL);

/** When TCP keep-alive begins to probe a silent peer; libuv then probes ten times, one second apart. */
const PEER_SILENCE_MS = 30_000;

/** How long idle connections stay open after the listener is closed, if there is a drain delay. */
const LINGER_MS = 500;

/** How often connections that have become idle are closed while the gateway drains. */
const SWEEP_MS = 100;

/** How long clients may take to read the shutdown error after the deadline. */
const LAST_READ_MS = 2000;

/** How long requests without a connection may take to be recorded after that. */
const LAST_RECORD_MS = 10_000;

/** Failures to accept come in floods, so at most one is logged per second. */
const ACCEPT_LOG_MS = 1000;

/** A page of the gateway itself. */
export interface OwnPage {
  /** Whether it needs no key, because it contains no private data. */
  isPublic: boolean;
  send(response: ServerResponse, context: PageContext): void | Promise<void>;
}

interface PageContext {
  id: string;
  metrics: Metrics;
  /** Why requests should be sent elsewhere; undefined when they should not. */
  unready: 'draining' | 'overloaded' | undefined;
  /** Identifies this gateway to commands. */
  instance: string;
}

const PAGE_METHODS: readonly string[] = ['GET', 'HEAD'];

const PAGE_HINT = '; requests to models have paths such as POST /v1/chat/completions';

/** Pages of the gateway itself. */
export const OWN_PAGES: ReadonlyMap<string, OwnPage> = new Map([
  // For programs; browsers get the console. Claude Code checks that the server is up.
  ['/', { isPublic: true, send: (response, { id }) => sendText(response, 200, 'sluice\n', id) }],
  [
    '/health/live',
    {
      isPublic: true,
      send: (response, { id, instance }) => {
        response.setHeader(INSTANCE_HEADER, instance);
        sendText(response, 200, 'live\n', id);
      },
    },
  ],
  [
    '/health/ready',
    {
      isPublic: true,
      send: (response, { id, unready }) => sendText(response, unready ? 503 : 200, `${unready ?? 'ready'}\n`, id),
    },
  ],
  [
    '/metrics',
    {
      isPublic: false,
      send: (response, { id, metrics }) => sendMetrics(response, id, metrics),
    },
  ],
] satisfies [string, OwnPage][]);

function sendText(response: ServerResponse, status: number, text: string, id: string): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': String(Buffer.byteLength(text)),
    'x-sluice-request-id': id,
  });
  response.end(text);
}

/** Responds on the raw socket and closes it. Quotes nothing of what was received. */
function respondUnreadable(error: Error, socket: Socket, log: Logger): void {
  if (readCode(error) === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const id = randomUUID();
  const reply = encodeError(explainUnreadable(error).error, { to: findRoute(readTarget(error), {}).client });
  log.info({ request_id: id, status: reply.status, ending: 'refused', error: String(readCode(error)) }, 'invalid HTTP request');
  endWithReply(socket, reply, id);
}

/** Whether the client began a TLS handshake: a record of type 22 of a version 3.x. */
const isHandshake = (error: Error): boolean => {
  const packet = readPacket(error);
  return packet[0] === 0x16 && packet[1] === 0x03;
};

/** What the parser could not read; empty when it is not known. */
const readPacket = (error: Error): Buffer =>
  'rawPacket' in error && error.rawPacket instanceof Buffer ? error.rawPacket : Buffer.alloc(0);

/** What to do about a client that uses the other scheme. */
const WRONG_SCHEMES = {
  http: 'the gateway serves HTTPS here (listen.tls): use https:// in the address of the client',
  https: 'the gateway serves plain HTTP here: use http:// in the address of the client, or set listen.tls',
} as const;

const PLAIN_REQUEST = refusal(400, 'INVALID_INPUT', 'this port serves HTTPS; use https:// in the address');

const SCHEME_LOG_MS = 60_000;

/** The request target of the first line, if it was read: it determines the client's protocol. */
function readTarget(error: Error): string {
  return /^[A-Z]+ (\S+) HTTP\//.exec(readPacket(error).toString('latin1', 0, MAX_LINE_BYTES))?.[1] ?? '/';
}

const MAX_LINE_BYTES = 2048;

/** The client's error for a failure of node's parser. */
const explainUnreadable = (error: Error): CodecError => REFUSALS.get(readCode(error)) ?? UNREADABLE;

/** Errors for bytes that could not be read as a request: too large, too late, or not HTTP. */
const REFUSALS: ReadonlyMap<unknown, CodecError> = new Map([
  ['HPE_HEADER_OVERFLOW', refusal(431, 'INVALID_INPUT', 'the request headers are too large')],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', refusal(413, 'PAYLOAD_TOO_LARGE', 'the chunk extensions of the request are too large')],
  ['ERR_HTTP_REQUEST_TIMEOUT', refusal(408, 'INVALID_INPUT', 'timed out waiting for the request')],
]);

const UNREADABLE = refusal(400, 'INVALID_INPUT', 'not a valid HTTP request');

/** The connection ended in the middle of a request. */
const hasLeft = (error: Error): boolean => ['ECONNRESET', 'HPE_INVALID_EOF_STATE'].includes(String(readCode(error)));

const readCode = (error: Error): unknown => ('code' in error ? error.code : undefined);
