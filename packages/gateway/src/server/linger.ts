import type { ServerResponse } from 'node:http';
import type { Written } from '../exchange/reply.ts';
import type { Clock } from '../http/clock.ts';

/** How long, and how many bytes, a rejected request is still read. */
const LINGER_MS = 1000;
const LINGER_BYTES = 16 * 1024 * 1024;

/**
 * Ends the response to a request that is still being sent, and closes the connection. Closing while bytes arrive would
 * reset the connection before the client reads the response, so the rest of the request is discarded for a while.
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
