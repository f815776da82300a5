/** Ids of exchanges: UUIDv7 text, so that sorting by id sorts by the time of admission. */
import { randomUUID } from 'node:crypto';

/** An id and the wall-clock time it was made at. */
export interface Admission {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly ts: number;
}

/**
 * How far ids may run ahead of the wall clock. A small step back of the clock keeps ids rising; after a larger one ids follow
 * the clock. So `ts <= time of the id <= ts + MAX_ID_LEAD_MS`, and a range of times is also a range of ids.
 */
export const MAX_ID_LEAD_MS = 10_000;

/** Makes ids that rise within a process. */
export class IdSource {
  readonly #now: () => number;
  readonly #random: () => string;
  #ms = 0;
  #count = 0;
  /** The text of `#ms`, which many ids share. */
  #floor: string = floorId(0);

  /** `random` returns UUID text; its last two groups are used. */
  constructor(now: () => number = Date.now, random: () => string = randomUUID) {
    this.#now = now;
    this.#random = random;
  }

  /** The next id, with the time of the wall clock. */
  next(): Admission {
    const ts = Math.floor(this.#now());
    this.#advance(ts);
    return { id: `${this.#floor}-7${COUNTS[this.#count]}${this.#random().slice(18)}`, ts };
  }

  #advance(ts: number): void {
    if (ts > this.#ms || this.#ms - ts > MAX_ID_LEAD_MS) this.#begin(ts);
    else if (++this.#count > MAX_COUNT) this.#begin(this.#ms + 1);
  }

  #begin(ms: number): void {
    this.#ms = ms;
    this.#count = 0;
    this.#floor = floorId(ms);
  }
}

/** 12 bits count the ids of one millisecond. */
const MAX_COUNT = 0xfff;

const COUNTS: readonly string[] = Array.from({ length: MAX_COUNT + 1 }, (_, count) => count.toString(16).padStart(3, '0'));

/** The lowest text that an id of this time can have; no id of an earlier time is above it. */
export function floorId(ms: number): string {
  const hex = Math.max(0, Math.min(MAX_MS, Math.floor(ms)))
    .toString(16)
    .padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

const MAX_MS = 0xffff_ffff_ffff;
