/** Collects whole responses, with limits and timeouts. */

import type { Clock } from '../http/clock.ts';
import { Deadline } from './deadline.ts';
import { type Call, type Line, type Receiver, TooLargeError, type Transport, UpstreamTimeout } from './dialer.ts';

/**
 * Collects a whole response. Rejects when the connection fails, when it is interrupted, or when a limit is exceeded.
 */
export function collect(transport: Transport, call: Call, options: CollectOptions): Promise<WholeReply> {
  return new Promise((resolve, reject) => new Collection(options, resolve, reject).begin(transport, call));
}

/** A complete HTTP response. */
export interface WholeReply {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

/** Limits and timeouts of a response. */
export interface CollectOptions {
  clock?: Clock;
  /** Interrupts the call. */
  connection?: Interruptible;
  /** Largest body, in bytes. */
  maxBytes: number;
  /** How much of the body of an error is read; the rest is cut off. As much as of other responses by default. */
  maxErrorBytes?: number;
  /** Timeouts: for the response headers, between two chunks of the body, and for the whole response. */
  headMs: number;
  pieceMs: number;
  totalMs: number;
  /** The request is sent again on a new connection. */
  onAgain?: () => void;
  /** A connection is ready and the request is being sent. */
  onConnected?: () => void;
  /** The response headers have arrived. */
  onStart?: (status: number, headers: Record<string, string>) => void;
}

/** Reports that the response is no longer needed. */
export interface Interruptible {
  readonly isInterrupted: boolean;
  listen(listener: () => void): void;
  unlisten(listener: () => void): void;
}

class Collection implements Receiver {
  readonly #options: CollectOptions;
  readonly #resolve: (reply: WholeReply) => void;
  readonly #reject: (reason: Error) => void;
  #body: Collector;
  readonly #deadline: Deadline;
  #head: Omit<WholeReply, 'body'> = { status: 0, headers: {} };
  #line: Line | undefined;

  constructor(options: CollectOptions, resolve: (reply: WholeReply) => void, reject: (reason: Error) => void) {
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#body = new Collector(options.maxBytes);
    this.#deadline = new Deadline({
      clock: options.clock,
      totalMs: options.totalMs,
      onSilence: () => this.#onSilence(),
      onTotal: () => this.#giveUp(new UpstreamTimeout('end', options.totalMs)),
    });
  }

  begin(transport: Transport, call: Call): void {
    const { connection, headMs } = this.#options;
    this.#deadline.expect(headMs);
    this.#line = transport.dial(call, this);
    connection?.listen(this.#leave);
    if (connection?.isInterrupted) this.#leave();
  }

  again(): void {
    this.#options.onAgain?.();
  }

  connected(): void {
    this.#options.onConnected?.();
  }

  start(status: number, headers: Record<string, string>): void {
    this.#head = { status, headers };
    if (this.#isCut) this.#body = new Collector(this.#options.maxErrorBytes ?? 0);
    this.#options.onStart?.(status, headers);
    this.#deadline.expect(this.#options.pieceMs);
  }

  data(chunk: Uint8Array): void {
    this.#deadline.recordData();
    if (this.#body.push(chunk)) return;
    if (this.#isCut) {
      this.#line?.hangUp();
      this.end();
    } else this.#giveUp(new TooLargeError(`sent a response of more than ${this.#options.maxBytes} bytes`));
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

  /** The beginning of an error is enough. */
  get #isCut(): boolean {
    return this.#head.status >= 400 && this.#options.maxErrorBytes !== undefined;
  }

  #onSilence(): void {
    const { headMs, pieceMs } = this.#options;
    this.#giveUp(this.#head.status === 0 ? new UpstreamTimeout('response', headMs) : new UpstreamTimeout('more', pieceMs));
  }

  readonly #leave = (): void => this.#giveUp(INTERRUPTED);

  #giveUp(reason: Error): void {
    this.#line?.hangUp();
    this.fail(reason);
  }

  #settle(): void {
    this.#deadline.stop();
    this.#options.connection?.unlisten(this.#leave);
  }
}

const INTERRUPTED = new Error('the response is no longer needed');

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

  /** The collected bytes; the collector is empty afterwards. */
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
