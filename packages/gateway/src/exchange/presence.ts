import type { ServerResponse } from 'node:http';

/** The first write to a client that has closed brings back a reset, the next one meets it; a far client needs more time for that. */
const PROBES_MS = [0, 100, 1000, 5000];

/**
 * Sends something, a few times, to a client that has nothing more to send. One that only says so (half-close) is still there and reads over it;
 * one that has closed looks the same until something is sent to it.
 */
export function onHalfClose(response: ServerResponse, send: () => void): void {
  const { socket } = response.req;
  const timers: NodeJS.Timeout[] = [];
  const probe = (): void => {
    if (!response.writableEnded && !response.destroyed) send();
  };
  const onEnd = (): void => {
    for (const ms of PROBES_MS) timers.push(setTimeout(probe, ms));
  };
  socket.once('end', onEnd);
  response.once('close', () => {
    socket.off('end', onEnd);
    for (const timer of timers) clearTimeout(timer);
  });
}

/** A signal that is aborted when the client turns away: when the response closes before it has ended. */
export function watchClient(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) controller.abort(new Error('the client turned away'));
  });
  onHalfClose(response, () => {
    // An interim answer, which HTTP/1.0 does not know.
    if (!response.headersSent && response.req.httpVersionMinor > 0) response.writeProcessing();
  });
  return controller.signal;
}

/** Resolves when the client has all of the answer, or is gone. */
export const closed = (response: ServerResponse): Promise<void> =>
  response.closed || response.destroyed ? Promise.resolve() : new Promise((resolve) => response.once('close', () => resolve()));
