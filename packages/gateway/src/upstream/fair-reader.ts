/** Shares the event loop between upstreams: each may deliver a limited number of bytes per turn. */

import type { Line, Receiver } from './dialer.ts';

/**
 * Readers that have used up their turn. They are served in order, for a few milliseconds per iteration of the event
 * loop.
 */
export class ReadQueue {
  readonly #now: () => number;
  readonly #defer: (run: () => void) => void;
  readonly #waiting: FairReader[] = [];
  /** Number of the current turn; what a reader used in an earlier turn no longer counts. */
  turn = 0;

  constructor({ now = () => performance.now(), defer = setImmediate }: ReadQueueOptions = {}) {
    this.#now = now;
    this.#defer = defer;
  }

  add(reader: FairReader): void {
    this.#waiting.push(reader);
    if (this.#waiting.length === 1) this.#defer(this.#serve);
  }

  readonly #serve = (): void => {
    this.turn++;
    const until = this.#now() + SLICE_MS;
    // The reader stays in the queue until its turn is over, so that nothing is scheduled twice.
    do {
      this.#waiting[0]?.takeTurn();
      this.#waiting.shift();
    } while (this.#waiting.length > 0 && this.#now() < until);
    if (this.#waiting.length > 0) this.#defer(this.#serve);
  };
}

/** The clock and scheduler of a queue; tests pass their own. */
export interface ReadQueueOptions {
  now?: () => number;
  /** Runs a callback in the next iteration of the event loop, after polling for input. */
  defer?: (run: () => void) => void;
}

/** How long queued readers are served in one iteration of the event loop. */
const SLICE_MS = 4;

/** Pauses an upstream when it has used up its turn. */
export class FairReader implements Receiver, Line {
  readonly #receiver: Receiver;
  readonly #queue: ReadQueue;
  #source: Line | undefined;
  #used = 0;
  #turn = 0;
  #isQueued = false;
  /** Paused by the consumer. */
  #isPaused = false;
  #isOver = false;

  constructor(receiver: Receiver, queue: ReadQueue) {
    this.#receiver = receiver;
    this.#queue = queue;
  }

  /** Sets the upstream that is paused and resumed. */
  attach(source: Line): void {
    this.#source = source;
  }

  pause(): void {
    this.#isPaused = true;
    this.#source?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isQueued) this.#source?.resume();
  }

  hangUp(): void {
    this.#isOver = true;
    this.#source?.hangUp();
  }

  again(): void {
    this.#receiver.again?.();
  }

  connected(): void {
    this.#receiver.connected?.();
  }

  start(status: number, headers: Record<string, string>): void {
    this.#receiver.start(status, headers);
  }

  data(chunk: Uint8Array): void {
    try {
      this.#receiver.data(chunk);
    } catch (cause) {
      this.#crash(cause);
    }
    if (this.#turn !== this.#queue.turn) {
      this.#turn = this.#queue.turn;
      this.#used = 0;
    }
    this.#used += chunk.length + CHUNK_COST;
    if (this.#used >= TURN_BYTES && !this.#isOver && !this.#isQueued) this.#wait();
  }

  /** A decompressor may end or fail before its upstream does; then nothing reads the connection any more. */
  end(): void {
    this.hangUp();
    try {
      this.#receiver.end();
    } catch (cause) {
      this.#crash(cause);
    }
  }

  fail(error: Error): void {
    this.hangUp();
    this.#receiver.fail(error);
  }

  /** Called by the queue. */
  takeTurn(): void {
    this.#isQueued = false;
    this.#used = 0;
    if (!this.#isOver && !this.#isPaused) this.#source?.resume();
  }

  /** An exception of the consumer ends this call. For events of a decompressor it would otherwise be uncaught. */
  #crash(cause: unknown): void {
    this.hangUp();
    this.#receiver.fail(cause instanceof Error ? cause : new Error(String(cause)));
  }

  #wait(): void {
    this.#isQueued = true;
    this.#source?.pause();
    this.#queue.add(this);
  }
}

/**
 * Bytes that one upstream may deliver before the others get their turn: converting them takes about a millisecond.
 * Without turns, libuv reads up to 32 buffers of 64 KiB from one socket before it looks at the next.
 */
export const TURN_BYTES = 16 * 1024;

/** Overhead of a chunk, counted as bytes: an upstream may send every byte as its own chunk. */
const CHUNK_COST = 128;
