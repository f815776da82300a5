import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import type { Limits } from '../config/limits.ts';
import { type Clock, REAL_CLOCK, type Timer } from '../http/clock.ts';

const LOOK_MS = 1000;

/** The share of memory in use, of the container or machine, or of V8's heap limit, whichever is larger. */
export function memoryShare(): number {
  const constrained = process.constrainedMemory() ?? 0;
  const machine = totalmem();
  const most = constrained > 0 && constrained < machine ? constrained : machine;
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return Math.max(residentBytes() / most, used / limit);
}

/** 0 when unknown: node reads it from a file, which fails when no file descriptor is left. */
function residentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return 0;
  }
}

export interface MemoryGuardOptions {
  limits: Pick<Limits, 'heapShed' | 'heapCancel'>;
  /** Memory is nearly used up and must be freed. */
  onScarce: () => void;
  measure?: () => number;
  clock?: Clock;
}

/**
 * Checks memory use from time to time. When memory is tight, new requests are rejected so that running ones can finish.
 */
export class MemoryGuard {
  readonly #options: MemoryGuardOptions;
  readonly #timer: Timer;
  #isTight = false;

  constructor(options: MemoryGuardOptions) {
    this.#options = options;
    this.#timer = (options.clock ?? REAL_CLOCK).setRepeating(() => this.#look(), LOOK_MS).unref();
  }

  get isTight(): boolean {
    return this.#isTight;
  }

  close(): void {
    this.#timer.close();
  }

  #look(): void {
    const { limits, onScarce, measure = memoryShare } = this.#options;
    const share = measure();
    this.#isTight = share >= limits.heapShed;
    if (share >= limits.heapCancel) onScarce();
  }
}
