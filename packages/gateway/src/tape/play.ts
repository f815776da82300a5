import type { ServerResponse } from 'node:http';
import type { Read } from './format.ts';

/** Bytes, and the silence before them. */
export interface Piece {
  waitMs: number;
  bytes: Uint8Array;
}

/** A body in the reads in which it came. Tapes are edited: what the reads do not cover comes last, and what they have too much is not there. */
export function* inReads(body: Uint8Array, reads: readonly Read[], speed: number): Iterable<Piece> {
  let at = 0;
  let before = 0;
  for (const [atMs, size] of reads) {
    const bytes = body.subarray(at, at + size);
    if (bytes.length > 0) yield { waitMs: speed === 0 ? 0 : Math.max(0, atMs - before) / speed, bytes };
    at += bytes.length;
    before = atMs;
  }
  if (at < body.length) yield { waitMs: 0, bytes: body.subarray(at) };
}

export interface Breaks {
  /** Before every piece, beside its own wait. */
  slow?: number;
  cut?: number;
  stall?: number;
  reset?: number;
}

/** What was written needs a moment to leave before the connection is torn. */
const LEAVE_MS = 20;

/** Writes a body as it came, or as far as it is let. `isWhole`: the body ends where its pieces do; else the connection breaks there. */
export async function play(
  response: ServerResponse,
  pieces: Iterable<Piece>,
  isWhole: boolean,
  breaks: Breaks = {},
): Promise<void> {
  const { slow = 0, cut, stall, reset } = breaks;
  const most = Math.min(cut ?? Number.POSITIVE_INFINITY, stall ?? Number.POSITIVE_INFINITY, reset ?? Number.POSITIVE_INFINITY);
  response.flushHeaders();
  let sent = 0;
  for (const { waitMs, bytes } of pieces) {
    if (sent >= most) break;
    await silence(response, waitMs + slow);
    if (response.destroyed) return;
    const part = bytes.subarray(0, most - sent);
    await write(response, part);
    sent += part.length;
  }
  if (sent < most) await (isWhole ? end(response) : breakOff(response));
  else if (most === reset) await breakOff(response, 'reset');
  else if (most === stall) await closed(response);
  // Who was told the length knows that there is more.
  else await (response.hasHeader('content-length') ? breakOff(response) : end(response));
}

/** Over when the time is, or when the client has gone. */
export function silence(response: ServerResponse, ms: number): Promise<void> {
  if (ms <= 0 || response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      response.off('close', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    response.once('close', done);
  });
}

async function write(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  if (bytes.length === 0 || response.write(bytes)) {
    // A piece is a read of its own only when it has left before the next one.
    await new Promise((resolve) => setImmediate(resolve));
    return;
  }
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.once('drain', done);
    response.once('close', done);
  });
}

const closed = (response: ServerResponse): Promise<void> =>
  response.destroyed ? Promise.resolve() : new Promise((resolve) => response.once('close', () => resolve()));

function end(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    response.once('close', () => resolve());
    response.end(() => resolve());
  });
}

async function breakOff(response: ServerResponse, how?: 'reset'): Promise<void> {
  await silence(response, LEAVE_MS);
  if (how === 'reset') response.socket?.resetAndDestroy();
  else response.destroy();
}
