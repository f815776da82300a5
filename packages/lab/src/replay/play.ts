import type { ServerResponse } from 'node:http';
import type { Read } from '../tape/format.ts';

/** Bytes, and the pause before them. */
export interface Piece {
  waitMs: number;
  bytes: Uint8Array;
}

/**
 * Yields a body in its recorded reads. Tapes can be edited: bytes that the reads do not cover come last, and reads
 * beyond the body are left out.
 */
export function* splitReads(body: Uint8Array, reads: readonly Read[], speed: number): Iterable<Piece> {
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

/** The destination of a played body: an HTTP response, or a receiver in this process. */
export interface BodySink {
  readonly isClosed: boolean;
  /** The length was announced, so a client notices a body that ends early. */
  readonly hasLength: boolean;
  /** Resolves when the sink accepts more, or is closed. */
  write(bytes: Uint8Array): Promise<void>;
  end(): Promise<void>;
  breakOff(how: 'close' | 'reset'): Promise<void>;
  /** Calls the listener when the sink closes, unless the returned function is called before. */
  onClose(listener: () => void): () => void;
}

/**
 * Writes a body as recorded, up to a break. `isWhole`: the body ends with its pieces; otherwise the connection breaks
 * there.
 */
export async function play(sink: BodySink, pieces: Iterable<Piece>, isWhole: boolean, breaks: Breaks = {}): Promise<void> {
  const { slow = 0, cut, stall, reset } = breaks;
  const most = Math.min(cut ?? Number.POSITIVE_INFINITY, stall ?? Number.POSITIVE_INFINITY, reset ?? Number.POSITIVE_INFINITY);
  let sent = 0;
  for (const { waitMs, bytes } of pieces) {
    if (sent >= most) break;
    await pause(sink, waitMs + slow);
    if (sink.isClosed) return;
    const part = bytes.subarray(0, most - sent);
    await sink.write(part);
    sent += part.length;
  }
  if (sent < most) await (isWhole ? sink.end() : sink.breakOff('close'));
  else if (most === reset) await sink.breakOff('reset');
  else if (most === stall) await closed(sink);
  // With a length, the client expects more: ending normally is impossible.
  else await (sink.hasLength ? sink.breakOff('close') : sink.end());
}

/** How to slow down or interrupt a body; `cut`, `stall` and `reset` are byte counts. */
export interface Breaks {
  /** Milliseconds before every piece, in addition to its own pause. */
  slow?: number;
  cut?: number;
  stall?: number;
  reset?: number;
}

const closed = (sink: BodySink): Promise<void> =>
  sink.isClosed ? Promise.resolve() : new Promise((resolve) => void sink.onClose(resolve));

/** Waits until the time is over or the sink is closed. */
export function pause(sink: BodySink, ms: number): Promise<void> {
  if (ms <= 0 || sink.isClosed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      unlisten();
      resolve();
    };
    const timer = setTimeout(done, ms);
    const unlisten = sink.onClose(done);
  });
}

/** The body of a response whose head has been sent. */
export class ResponseSink implements BodySink {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get isClosed(): boolean {
    return this.#response.destroyed;
  }

  get hasLength(): boolean {
    return this.#response.hasHeader('content-length');
  }

  async write(bytes: Uint8Array): Promise<void> {
    const response = this.#response;
    if (bytes.length === 0 || response.write(bytes)) {
      // A piece arrives as its own read only if it is sent before the next one is written.
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

  end(): Promise<void> {
    return new Promise((resolve) => {
      this.#response.once('close', () => resolve());
      this.#response.end(() => resolve());
    });
  }

  async breakOff(how: 'close' | 'reset'): Promise<void> {
    await pause(this, LEAVE_MS);
    if (how === 'reset') this.#response.socket?.resetAndDestroy();
    else this.#response.destroy();
  }

  onClose(listener: () => void): () => void {
    this.#response.once('close', listener);
    return () => void this.#response.off('close', listener);
  }
}

/** Written bytes need some time to be sent before the connection is destroyed. */
const LEAVE_MS = 20;
