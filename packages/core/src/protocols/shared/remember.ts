/** How much a cache may hold: entries, and bytes of their keys (two for each UTF-16 code unit). */
export interface CacheLimits {
  entries: number;
  bytes: number;
}

/**
 * A map that never holds more than its limits, for keys that clients can invent. Two generations approximate LRU: when the young one is full,
 * the old one is dropped. A hit costs one lookup and no write, where exact LRU would delete and insert.
 */
export class BoundedCache<T extends NonNullable<unknown>> {
  /** Limits of one generation. */
  readonly #entries: number;
  readonly #bytes: number;
  #young = new Map<string, T>();
  #old = new Map<string, T>();
  #youngBytes = 0;
  #oldBytes = 0;

  constructor({ entries, bytes }: CacheLimits) {
    this.#entries = entries / 2;
    this.#bytes = bytes / 2;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get bytes(): number {
    return this.#youngBytes + this.#oldBytes;
  }

  get(key: string): T | undefined {
    const value = this.#young.get(key);
    if (value !== undefined) return value;
    const aged = this.#old.get(key);
    if (aged !== undefined) this.set(key, aged);
    return aged;
  }

  /** A key longer than half of the limit is not stored. */
  set(key: string, value: T): void {
    this.delete(key);
    const bytes = bytesOf(key);
    if (bytes > this.#bytes) return;
    if (this.#young.size + 1 > this.#entries || this.#youngBytes + bytes > this.#bytes) this.#age();
    this.#young.set(key, value);
    this.#youngBytes += bytes;
  }

  delete(key: string): void {
    if (this.#young.delete(key)) this.#youngBytes -= bytesOf(key);
    else if (this.#old.delete(key)) this.#oldBytes -= bytesOf(key);
  }

  #age(): void {
    this.#old = this.#young;
    this.#oldBytes = this.#youngBytes;
    this.#young = new Map();
    this.#youngBytes = 0;
  }
}

const bytesOf = (key: string): number => 2 * key.length;

/** `compute` with a cache: called once for each key, until the key is evicted. */
export function memo<T extends NonNullable<unknown>>(max: CacheLimits, compute: (key: string) => T): (key: string) => T {
  const cache = new BoundedCache<T>(max);
  return (key) => {
    const known = cache.get(key);
    if (known !== undefined) return known;
    const value = compute(key);
    cache.set(key, value);
    return value;
  };
}
