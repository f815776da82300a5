import type { Read } from '@sluice/lab/tape';
import { BYTES_PER_READ } from './capture.ts';

/** Bytes that all running recordings share. Recordings that find it empty are truncated. */
export class BytePool {
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  /** False when there are not enough left. */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  release(bytes: number): void {
    this.#left += bytes;
  }
}

/** The bytes that one recording may take. */
export class Allowance {
  readonly #pool: BytePool;
  readonly #limit: number;
  #taken = 0;
  /** Something did not fit. */
  isExceeded = false;

  constructor(pool: BytePool, limit: number) {
    this.#pool = pool;
    this.#limit = limit;
  }

  /** False when there are not enough left. */
  take(bytes: number): boolean {
    if (this.#taken + bytes > this.#limit || !this.#pool.take(bytes)) {
      this.isExceeded = true;
      return false;
    }
    this.#taken += bytes;
    return true;
  }

  /** Gives everything back. */
  release(): void {
    this.#pool.release(this.#taken);
    this.#taken = 0;
  }
}

/**
 * A body as it grows, with the time and size of every part. Parts are copied: a chunk of 20 bytes may belong to a network
 * buffer of 64 KiB, which would stay in memory.
 */
export class ByteLog {
  readonly #allowance: Allowance;
  #bytes = NOTHING;
  #length = 0;
  readonly #reads: Read[] = [];
  #isCut = false;

  constructor(allowance: Allowance) {
    this.#allowance = allowance;
  }

  /** The number of parts. */
  get count(): number {
    return this.#reads.length;
  }

  /** Adds a part. After one that did not fit, nothing is added. */
  push(part: Uint8Array, atMs: number): void {
    if (this.#isCut) return;
    const { length } = part;
    if (!this.#allowance.take(length + BYTES_PER_READ)) {
      this.#isCut = true;
      return;
    }
    if (this.#length + length > this.#bytes.length) this.#grow(this.#length + length);
    this.#bytes.set(part, this.#length);
    this.#length += length;
    this.#reads.push([Math.round(atMs), length]);
  }

  /** The body and its parts. */
  take(): { body: Buffer; reads: Read[] } {
    return { body: this.#bytes.subarray(0, this.#length), reads: this.#reads };
  }

  #grow(least: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.max(least, this.#bytes.length * 2, FIRST_BYTES));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

const NOTHING = Buffer.alloc(0);

const FIRST_BYTES = 2048;
