import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Timer } from '../http/clock.ts';
import { LAST_CHUNK, writeChunk } from './chunked.ts';
import type { Presence } from './presence.ts';

export interface OutletOptions {
  /** Asked when the stream opens: until then they may change. */
  headers: () => Record<string, string>;
  /** What tells a silent client that the stream lives; undefined where its protocol has no such thing. */
  heartbeat: Uint8Array | undefined;
  heartbeatMs: number;
  /** How long a client may read nothing while something waits for it. */
  stallMs: number;
  /** The client does not read any more, or does again. */
  onStall: (isStalled: boolean) => void;
}

/** What every client reads over, also those that take no heartbeat. */
const EMPTY_LINE = Buffer.from('\r\n');

/** Time for a client to read what was written, so that the next write is a read of its own. Under load it takes tens of milliseconds. */
const REPEAT_AFTER_MS = 100;

/**
 * The client's end of a stream. It opens late: until something real is to be said, an error can still become a status of its own, and
 * another upstream can still be asked.
 */
export class Outlet {
  readonly #presence: Presence;
  readonly #response: ServerResponse;
  readonly #options: OutletOptions;
  #heart: Timer | undefined;
  #isChunked = false;
  #isWaiting = false;
  #isStalled = false;

  constructor(presence: Presence, options: OutletOptions) {
    this.#presence = presence;
    this.#response = presence.response;
    this.#options = options;
    this.#response.on('timeout', (socket: Socket) => {
      this.#isStalled = true;
      socket.destroy();
    });
  }

  /** The headers are out: errors can only be told in the stream. */
  get isOpen(): boolean {
    return this.#response.headersSent;
  }

  /** The client's buffer is full: writing on would only fill ours. */
  get isFull(): boolean {
    return this.#response.writableNeedDrain;
  }

  /** The client was left, because it had read nothing for too long. */
  get isStalled(): boolean {
    return this.#isStalled;
  }

  open(): void {
    if (this.isOpen) return;
    this.#response.writeHead(200, this.#options.headers());
    this.#isChunked = this.#response.chunkedEncoding;
    // From here on, what is written has its frame: node would make four writes of each.
    this.#response.chunkedEncoding = false;
    this.#presence.fill = () => this.#put(EMPTY_LINE);
    this.#beat();
  }

  /** Opens when there is no answer yet and the client would give up waiting for one. Gemini's clients take no heartbeat: they wait. */
  openSilently(): void {
    if (this.#options.heartbeat === undefined || this.isOpen) return;
    this.open();
    this.#response.flushHeaders();
  }

  write(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.open();
    this.#heart?.refresh();
    this.#put(bytes);
  }

  /** Calls back once, when the client has read what was written. */
  onDrain(resume: () => void): void {
    this.#response.once('drain', this.#presence.guard(resume));
  }

  end(): void {
    this.close();
    if (this.#isChunked) this.#response.end(LAST_CHUNK, 'latin1');
    else this.#response.end();
    if (this.#response.writableLength > 0) this.#watch();
  }

  /** Ends a stream in which an error was written. `repeat`: the error once more, for clients that must read it on its own. */
  endInError(repeat: Uint8Array | undefined): void {
    if (repeat === undefined) {
      this.end();
      return;
    }
    this.close();
    const finish = this.#presence.guard(() => {
      if (this.#response.destroyed) return;
      this.#put(repeat);
      this.end();
    });
    this.#presence.clock.setTimer(finish, REPEAT_AFTER_MS);
  }

  /** No heartbeat is left behind. */
  close(): void {
    this.#heart?.close();
  }

  #beat(): void {
    const { heartbeat, heartbeatMs } = this.#options;
    if (heartbeat === undefined) return;
    const beat = this.#presence.guard(() => {
      if (!this.isFull) this.#put(heartbeat);
    });
    this.#heart = this.#presence.clock.setRepeating(beat, heartbeatMs);
  }

  #put(bytes: Uint8Array): void {
    const isRead = this.#isChunked ? writeChunk(this.#response, bytes) : this.#response.write(bytes);
    if (!isRead) this.#watch();
  }

  /** The timeout of a socket counts only time in which nothing at all is read: a slow reader is no stalled one. */
  #watch(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#options.onStall(true);
    this.#response.setTimeout(this.#options.stallMs);
    this.#response.once('drain', () => {
      this.#isWaiting = false;
      this.#options.onStall(false);
      this.#response.setTimeout(0);
    });
  }
}
