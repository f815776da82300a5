import type { ServerResponse } from 'node:http';
import type { Written } from '../exchange/reply.ts';
import type { Clock } from '../http/clock.ts';

/** How long, and how much, is still taken from a client whose request was refused before it was whole. */
const LINGER_MS = 1000;
const LINGER_BYTES = 16 * 1024 * 1024;

/**
 * Ends an answer to a request that is still being sent, and the connection with it. A connection that is closed while bytes come in is reset:
 * the client would never read why. So what it sends is taken and thrown away for a while.
 */
export function endBeforeRequest(response: ServerResponse, { data, encoding }: Written, clock: Clock): void {
  const { req: request } = response;
  const end = (): void => {
    timer.close();
    response.end();
  };
  const timer = clock.setTimer(end, LINGER_MS);
  let left = LINGER_BYTES;
  response.write(data, encoding);
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) end();
  });
  request.once('end', end);
  request.once('close', end);
  request.resume();
}
