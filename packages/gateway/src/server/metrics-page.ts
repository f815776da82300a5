/** Access to `/metrics`, and the listener that serves nothing else. */

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { CodecError } from '@sluice/core';
import type { Directory, Services } from '../exchange/types.ts';
import { type ListenOptions, listen, stopListening } from '../http/listen.ts';
import { checkHost, isForeignPage } from '../http/origin.ts';
import { refusal } from '../http/refusal.ts';
import { checkAddress } from '../keys/scope.ts';
import type { Logger } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { isLoopback } from '../providers/base-url.ts';
import { joinHeaders } from '../upstream/dialer.ts';
import { ClientSocket } from './client-socket.ts';
import type { Incoming } from './handle.ts';

type MetricsRequest = Pick<Incoming, 'client' | 'headers' | 'route' | 'directory'>;

/** Decides who may read `/metrics` on the gateway's own address. */
export class MetricsAccess {
  readonly #log: Logger;
  #isWarned = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Throws the refusal. Client keys still work, until the next minor version. */
  check({ client, headers, route, directory: { gatekeeper, metricsGatekeeper } }: MetricsRequest): void {
    if (isForeignPage(headers)) throw FOREIGN;
    if (metricsGatekeeper.isOpen && gatekeeper.isOpen) {
      checkHost(headers['host'], ' without keys; set metrics.key or use 127.0.0.1');
      return;
    }
    if (!metricsGatekeeper.isOpen && metricsGatekeeper.admit(headers, route.path).admitted) return;
    const admission = gatekeeper.isOpen ? undefined : gatekeeper.admit(headers, route.path);
    if (!admission?.admitted) throw KEY_REQUIRED;
    checkAddress(admission.caller, client.address);
    if (!this.#isWarned) this.#log.warn(CLIENT_KEY_WARNING);
    this.#isWarned = true;
  }
}

const FOREIGN = refusal(403, 'PERMISSION', 'requests from web pages of other origins are not allowed');

const KEY_REQUIRED = refusal(
  401,
  'AUTHENTICATION',
  'a metrics key is required: set metrics.key, and send it as Authorization: Bearer',
);

const CLIENT_KEY_WARNING =
  'metrics were read with a client key, which will be refused from the next minor version on; set metrics.key or metrics.listen';

/** Sends all metrics. */
export async function sendMetrics(response: ServerResponse, id: string, metrics: Metrics): Promise<void> {
  const text = await metrics.text();
  const length = String(Buffer.byteLength(text));
  response.writeHead(200, { 'content-type': metrics.contentType, 'content-length': length, 'x-sluice-request-id': id }).end(text);
}

type ListenerServices = Pick<Services, 'metrics' | 'directory' | 'log' | 'limits'>;

/** A listener for a network that clients cannot reach. Without a metrics key, everybody there may read. */
export class MetricsListener {
  readonly #server: Server;
  readonly #services: ListenerServices;
  /** Requests that were sent ahead are served one after the other: node keeps every page until it can be sent. */
  readonly #clients = new WeakMap<Socket, ClientSocket>();
  #isLoopback = true;

  constructor(services: ListenerServices) {
    const { limits } = services;
    this.#services = services;
    this.#server = createServer({
      maxHeaderSize: limits.headerBytes,
      // Node accepts no headers that may take longer than their request.
      headersTimeout: Math.min(limits.headersReadMs, limits.requestReadMs),
      requestTimeout: limits.requestReadMs,
      keepAliveTimeout: limits.keepAliveMs,
    });
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.on('connection', (socket) => this.#clients.set(socket, new ClientSocket(socket)));
    this.#server.on('request', (request, response) =>
      this.#clients.get(request.socket)?.serve(response, () => this.#serve(request, response)),
    );
  }

  /** Starts to listen and resolves with the URL. */
  async listen({ host, port }: Pick<ListenOptions, 'host' | 'port'>): Promise<string> {
    const url = await listen(this.#server, { host, port });
    this.#isLoopback = isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, ''));
    return url;
  }

  async close(): Promise<void> {
    const closed = stopListening(this.#server);
    this.#server.closeAllConnections();
    await closed;
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    response.setTimeout(this.#services.limits.stallMs);
    this.#respond(request, response).catch((cause: unknown) => {
      this.#services.log.error({ error: String(cause) }, 'failed');
      response.destroy();
    });
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = randomUUID();
    try {
      this.#check(request, this.#services.directory());
      await sendMetrics(response, id, this.#services.metrics);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      const { http_status: status = 500, message } = error.error;
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'x-sluice-request-id': id }).end(`${message}\n`);
    }
  }

  #check(request: IncomingMessage, { metricsGatekeeper }: Directory): void {
    const headers = joinHeaders(request.headers);
    if (isForeignPage(headers)) throw FOREIGN;
    if (metricsGatekeeper.isOpen && this.#isLoopback) checkHost(headers['host'], ' without a metrics key; set metrics.key');
    if (!metricsGatekeeper.admit(headers, '/metrics').admitted) throw KEY_REQUIRED;
    const [path] = (request.url ?? '').split('?', 1);
    if (request.method !== 'GET' || path !== '/metrics')
      throw refusal(404, 'NOT_FOUND', 'this listener serves GET /metrics alone');
  }
}

/** Scrapers are few. */
const MAX_CONNECTIONS = 64;
