/** The memory of requests that do not run yet: bodies and WebSocket messages that are being received, or that wait. */

import { CodecError } from '@sluice/core';
import type { Limits } from '../config/options.ts';

/**
 * Counts what clients make the gateway hold before any limit of their key can refuse it. One key may hold a part only, so that a client
 * that never ends its requests does not take the memory of the others.
 */
export class PendingBytes {
  readonly #max: number;
  readonly #maxOfKey: number;
  readonly #byKey = new Map<string, number>();
  #total = 0;

  constructor({ pendingBytes, requestBytes }: Pick<Limits, 'pendingBytes' | 'requestBytes'>) {
    // The largest request must fit in, with what its pieces cost.
    this.#max = Math.max(pendingBytes, 2 * requestBytes);
    this.#maxOfKey = Math.max(this.#max / 2, 2 * requestBytes);
  }

  /** What all clients hold. */
  get total(): number {
    return this.#total;
  }

  /** Begins a share of this key; empty for clients without one, who share everything. */
  open(key: string): PendingShare {
    return new PendingShare((bytes) => this.#change(key, bytes));
  }

  /** Returns why so many bytes more are refused; then they are not counted. */
  #change(key: string, bytes: number): CodecError | undefined {
    const total = this.#total + bytes;
    const ofKey = (this.#byKey.get(key) ?? 0) + bytes;
    if (bytes > 0 && total > this.#max) return createFullError(this.#max);
    if (bytes > 0 && key !== '' && ofKey > this.#maxOfKey) return createKeyError(this.#maxOfKey);
    this.#total = total;
    if (ofKey > 0) this.#byKey.set(key, ofKey);
    else this.#byKey.delete(key);
    return undefined;
  }
}

/** What one request or connection holds. Ends with it. */
export class PendingShare {
  readonly #change: (bytes: number) => CodecError | undefined;
  #held = 0;

  constructor(change: (bytes: number) => CodecError | undefined) {
    this.#change = change;
  }

  /** Holds so many bytes more. Returns why not if they are too many; then nothing is added. */
  add(bytes: number): CodecError | undefined {
    const refused = this.#change(bytes);
    if (!refused) this.#held += bytes;
    return refused;
  }

  /** Gives back so many bytes, by default all. What was given back before is not given back again. */
  release(bytes = this.#held): void {
    const freed = Math.min(bytes, this.#held);
    if (freed === 0) return;
    this.#held -= freed;
    this.#change(-freed);
  }
}

/** What a piece of a request costs beside its bytes: a client may send each byte alone. */
export const PIECE_BYTES = 128;

const createKeyError = (max: number): CodecError =>
  new CodecError({
    code: 'RATE_LIMIT',
    message: `the requests that this client key is sending have more than ${max} bytes together (half of limits.pending_bytes); send fewer at the same time`,
    http_status: 429,
    retry_after_ms: 1000,
  });

const createFullError = (max: number): CodecError =>
  new CodecError({
    code: 'OVERLOADED',
    message: `the requests that clients are sending have more than ${max} bytes together (limits.pending_bytes); retry later`,
    http_status: 503,
    retry_after_ms: 1000,
  });
