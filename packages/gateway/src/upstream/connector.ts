import { buildConnector } from 'undici';

/** Errors of connections that had carried an answer before. */
const ofUsedConnections = new WeakSet<Error>();

/**
 * Whether a connection that broke had been used before. A server closes idle connections when it likes to: a request that meets such a close
 * was in all likelihood never read.
 */
export const brokeAfterUse = (error: Error): boolean => ofUsedConnections.has(error);

/** Connects as undici does, and remembers which errors were those of used connections. */
export function createConnector(timeout: number): buildConnector.connector {
  const connect = buildConnector({ timeout });
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result;
      socket?.prependListener('error', (error) => {
        if (socket.bytesRead > 0) ofUsedConnections.add(error);
      });
      callback(...result);
    });
}
