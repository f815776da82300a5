import type { Clock } from '../http/clock.ts';
import { Deadline } from './deadline.ts';
import { type Call, type Line, type Receiver, TooLarge, TooLate, type Transport } from './dialer.ts';

export interface WholeReply {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

/** The bytes of a body, up to a limit. */
export class Collector {
  readonly #limit: number;
  #chunks: Uint8Array[] = [];
  #length = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** False when the limit is exceeded. */
  push(chunk: Uint8Array): boolean {
    this.#length += chunk.length;
    if (this.#length > this.#limit) return false;
    this.#chunks.push(chunk);
    return true;
  }

  take(): Buffer {
    const [first, second] = this.#chunks;
    const body = Buffer.isBuffer(first) && !second ? first : Buffer.concat(this.#chunks);
    this.#chunks = [];
    return body;
  }
}

/** JSON must not begin with a byte order mark, but some servers write one (RFC 8259 8.1 allows to skip it). */
export const withoutBom = (body: Buffer): Buffer =>
  body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;

/** Reports that the response is no longer needed. */
export interface Interruptible {
  readonly isInterrupted: boolean;
  listen(listener: () => void): void;
  unlisten(listener: () => void): void;
}

export interface Waiting {
  clock?: Clock;
  /** Interrupts the call. */
  connection?: Interruptible;
  /** Largest body, in bytes. */
  maxBytes: number;
  /** Timeouts: for the response headers, between two chunks of the body, and for the whole response. */
  headMs: number;
  pieceMs: number;
  totalMs: number;
  /** The request is sent again on a new connection. */
  onAgain?: () => void;
}

/**
 * Collects a whole response. Rejects when the connection fails, when it is interrupted, or when a limit is exceeded.
 */
export function collect(transport: Transport, call: Call, waiting: Waiting): Promise<WholeReply> {
  return new Promise((resolve, reject) => new Collection(waiting, resolve, reject).begin(transport, call));
}

class Collection implements Receiver {
  readonly #waiting: Waiting;
  readonly #resolve: (reply: WholeReply) => void;
  readonly #reject: (reason: Error) => void;
  readonly #body: Collector;
  readonly #deadline: Deadline;
  #head: Omit<WholeReply, 'body'> = { status: 0, headers: {} };
  #line: Line | undefined;

  constructor(waiting: Waiting, resolve: (reply: WholeReply) => void, reject: (reason: Error) => void) {
    this.#waiting = waiting;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#body = new Collector(waiting.maxBytes);
    this.#deadline = new Deadline({
      clock: waiting.clock,
      totalMs: waiting.totalMs,
      onSilence: () => this.#onSilence(),
      onTotal: () => this.#giveUp(new TooLate('end', waiting.totalMs)),
    });
  }

  begin(transport: Transport, call: Call): void {
    const { connection, headMs } = this.#waiting;
    this.#deadline.expect(headMs);
    this.#line = transport.dial(call, this);
    connection?.listen(this.#leave);
    if (connection?.isInterrupted) this.#leave();
  }

  again(): void {
    this.#waiting.onAgain?.();
  }

  start(status: number, headers: Record<string, string>): void {
    this.#head = { status, headers };
    this.#deadline.expect(this.#waiting.pieceMs);
  }

  data(chunk: Uint8Array): void {
    this.#deadline.heard();
    if (!this.#body.push(chunk)) this.#giveUp(new TooLarge(`sent a response of more than ${this.#waiting.maxBytes} bytes`));
  }

  end(): void {
    this.#settle();
    const { status, headers } = this.#head;
    this.#resolve({ status, headers, body: this.#body.take() });
  }

  fail(error: Error): void {
    this.#settle();
    this.#reject(error);
  }

  #onSilence(): void {
    const { headMs, pieceMs } = this.#waiting;
    this.#giveUp(this.#head.status === 0 ? new TooLate('response', headMs) : new TooLate('more', pieceMs));
  }

  readonly #leave = (): void => this.#giveUp(INTERRUPTED);

  #giveUp(reason: Error): void {
    this.#line?.hangUp();
    this.fail(reason);
  }

  #settle(): void {
    this.#deadline.stop();
    this.#waiting.connection?.unlisten(this.#leave);
  }
}

const INTERRUPTED = new Error('nobody waits for the answer any more');
