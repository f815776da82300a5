import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ListenOptions {
  host: string;
  /** 0 for any free port. */
  port: number;
  /** A connection could not be accepted. Ignored by default: without a listener, node would end the process. */
  onAcceptError?: (error: Error) => void;
}

/** Only programs on this machine can connect. */
export const LOOPBACK = '127.0.0.1';

/** Starts a server. Resolves with its URL; rejects when it cannot listen. */
export async function listen(server: Server, options: ListenOptions): Promise<string> {
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
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`;
}

/** Stops accepting connections. Resolves when the last open one is closed. */
export const stopListening = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
  });
