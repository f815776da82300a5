/** Tunnels through the operator's proxy (CONNECT), so that the proxy sees neither keys nor prompts of HTTPS upstreams. */

import { type ClientRequest, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { type buildConnector, errors } from 'undici';
import type { OutboundProxy } from '../config/network.ts';

/** Connects through a proxy. Plain HTTP goes through a tunnel, too: otherwise the proxy would read the key and choose the server. */
export function createTunnelConnector(
  proxy: OutboundProxy,
  timeout: number,
  connect: buildConnector.connector,
): buildConnector.connector {
  return (options, callback) => {
    const port = options.port || (options.protocol === 'https:' ? '443' : '80');
    openTunnel(proxy, { hostname: options.hostname, port }, timeout, (error, socket) => {
      if (error || !socket) callback(error ?? new Error('no tunnel'), null);
      else if (options.protocol === 'https:') connect({ ...options, httpSocket: socket }, callback);
      else callback(null, socket);
    });
  };
}

/** A server behind a proxy. */
interface TunnelTarget {
  readonly hostname: string;
  readonly port: string;
}

type OnTunnel = (error: Error | null, socket?: Socket) => void;

/** Opens a connection to a server through a proxy. Calls back once. */
function openTunnel(proxy: OutboundProxy, target: TunnelTarget, timeoutMs: number, onTunnel: OnTunnel): void {
  const request = startConnect(proxy, target);
  let settle: OnTunnel | undefined = (error, socket) => {
    settle = undefined;
    clearTimeout(timer);
    onTunnel(error, socket);
    if (error) request.destroy();
  };
  const timer = setTimeout(() => settle?.(new errors.ConnectTimeoutError('the proxy did not connect in time')), timeoutMs);
  request.once('connect', ({ statusCode = 0 }, socket: Socket, head: Buffer) => {
    // After a timeout nobody wants the connection.
    if (!settle) socket.destroy();
    else if (statusCode === 200) settle(null, prepare(socket, head));
    else {
      socket.destroy();
      settle(new ProxyError(`refused the connection (${statusCode})`, statusCode >= 400 && statusCode < 500));
    }
  });
  request.on('error', (error) => settle?.(new ProxyError(`cannot be reached (${readCode(error)})`, false)));
  request.end();
}

function startConnect({ origin, authorization }: OutboundProxy, { hostname, port }: TunnelTarget): ClientRequest {
  const path = `${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`;
  const headers = { host: path, ...(authorization && { 'proxy-authorization': authorization.reveal() }) };
  const start = origin.startsWith('https:') ? httpsRequest : httpRequest;
  // Without an agent, which would keep the connection for other requests.
  return start(origin, { method: 'CONNECT', path, headers, agent: false, maxHeaderSize: MAX_HEADER_BYTES });
}

const MAX_HEADER_BYTES = 16 * 1024;

/** As undici prepares its own connections. */
function prepare(socket: Socket, head: Buffer): Socket {
  if (head.length > 0) socket.unshift(head);
  return socket.setKeepAlive(true, KEEP_ALIVE_MS).setNoDelay(true);
}

const KEEP_ALIVE_MS = 60_000;

const readCode = (error: Error): string =>
  'code' in error && /^[A-Z_\d]{1,60}$/.test(String(error.code)) ? String(error.code) : 'unknown error';

/** The proxy did not open a tunnel, so nothing was sent to the upstream. The message follows "the proxy of PROVIDER". */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
  /** Whether the proxy would refuse again. */
  readonly isFinal: boolean;

  constructor(message: string, isFinal: boolean) {
    super(message);
    this.isFinal = isFinal;
  }
}
