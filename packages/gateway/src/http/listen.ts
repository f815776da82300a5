import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import { type AddressInfo, Server as NetServer } from 'node:net';

/** Starts a server. Resolves with its URL; rejects when it cannot listen. */
export async function listen(server: Server | TlsServer, options: ListenOptions): Promise<string> {
  const { host, port, onAcceptError = () => undefined } = options;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      server.on('error', onAcceptError);
      resolve();
    });
  });
  const { address, port: bound, family } = server.address() as AddressInfo; // a TCP server has one
  const scheme = 'setSecureContext' in server ? 'https' : 'http';
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${bound}`;
}

/** Where a server listens. */
export interface ListenOptions {
  host: string;
  /** 0 for any free port. */
  port: number;
  /** Called when a connection cannot be accepted. Ignored by default: without a listener, node ends the process. */
  onAcceptError?: (error: Error) => void;
}

/** The address for servers that only this machine may connect to. */
export const LOOPBACK = '127.0.0.1';

/**
 * Stops accepting connections. Resolves when the last open one is closed. Idle connections stay open: `close` of an HTTP server resets
 * them, also those whose first request has arrived but was not read yet.
 */
export const stopListening = (server: Server | TlsServer): Promise<void> =>
  new Promise((resolve) => {
    NetServer.prototype.close.call(server, () => resolve());
  });

/**
 * Waits for a turn of the event loop in which no connection was accepted: a listener that closes resets the connections that wait in
 * the queue of the kernel, and a load balancer does not repeat a request that it has already sent on one.
 */
export async function untilAllAccepted(server: Server | TlsServer): Promise<void> {
  let accepted = 0;
  const count = (): void => void accepted++;
  server.on('connection', count);
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const [before, begun] = [accepted, performance.now()];
    await new Promise((resolve) => setImmediate(resolve));
    // In a long turn, connections may have arrived after the kernel was asked.
    if (accepted === before && performance.now() - begun < QUIET_TURN_MS) break;
  }
  server.off('connection', count);
}

/** Under constant load no turn may be quiet; then the listener closes anyway. */
const MAX_TURNS = 2000;

const QUIET_TURN_MS = 0.2;
