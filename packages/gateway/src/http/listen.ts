import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

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

/** Stops accepting connections. Resolves when the last open one is closed. */
export const stopListening = (server: Server | TlsServer): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
  });
