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

  /** Bytes that are taken. */
  get used(): number {
    return this.#taken;
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
  /** Full segments: bytes are copied once more at the end, and not whenever the body has doubled. */
  readonly #segments: Buffer[] = [];
  #segment = NOTHING;
  /** Bytes of the last segment. */
  #length = 0;
  /** Time and size of every part, one after the other: a list of pairs would be an object per part. */
  readonly #reads: number[] = [];
  #isCut = false;

  constructor(allowance: Allowance) {
    this.#allowance = allowance;
  }

  /** The number of parts. */
  get count(): number {
    return this.#reads.length / 2;
  }

  /** Adds a part. After one that did not fit, nothing is added. */
  push(part: Uint8Array, atMs: number): void {
    if (this.#isCut) return;
    const { length } = part;
    if (!this.#allowance.take(length + BYTES_PER_READ) || !this.#makeRoom(length)) {
      this.#isCut = true;
      return;
    }
    this.#segment.set(part, this.#length);
    this.#length += length;
    this.#reads.push(Math.round(atMs), length);
  }

  /** The body and its parts. */
  take(): { body: Buffer; reads: Read[] } {
    const reads: Read[] = [];
    for (let i = 0; i < this.#reads.length; i += 2) reads.push([this.#reads[i] ?? 0, this.#reads[i + 1] ?? 0]);
    return { body: Buffer.concat([...this.#segments, this.#segment.subarray(0, this.#length)]), reads };
  }

  /** False when there is no memory. */
  #makeRoom(least: number): boolean {
    if (this.#length + least <= this.#segment.length) return true;
    const size = Math.min(MAX_SEGMENT_BYTES, Math.max(MIN_SEGMENT_BYTES, this.#segment.length * 2));
    try {
      const segment = Buffer.allocUnsafeSlow(Math.max(least, size));
      this.#segments.push(this.#segment.subarray(0, this.#length));
      this.#segment = segment;
      this.#length = 0;
      return true;
    } catch {
      // An exchange goes on without its capture.
      this.#allowance.isExceeded = true;
      return false;
    }
  }
}

const NOTHING = Buffer.alloc(0);

const MIN_SEGMENT_BYTES = 2048;

const MAX_SEGMENT_BYTES = 65_536;
