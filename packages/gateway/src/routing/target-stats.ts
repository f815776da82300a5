/** What is known of targets at this moment: running requests, times to the first token, and keys that rest. */

import { BoundedCache } from '@sluice/core/internal';

/** Whether a response is a stream. Times of streams and of whole responses cannot be compared. */
export type ResponseKind = 'stream' | 'whole';

/** Facts about targets. They belong to the process: a reload of the configuration keeps them. */
export class TargetStats {
  readonly #now: () => number;
  /** Only targets with running requests have an entry. */
  readonly #running = new Map<string, number>();
  readonly #times = {
    stream: new BoundedCache<number>(TARGET_LIMITS),
    whole: new BoundedCache<number>(TARGET_LIMITS),
  } as const satisfies Record<ResponseKind, unknown>;
  readonly #resting = new BoundedCache<number>(TARGET_LIMITS);

  /** `now`: milliseconds of a monotonic clock. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** A request to a target begins. The caller must call `ended`. */
  began(target: string): void {
    this.#running.set(target, this.countRunning(target) + 1);
  }

  /** A request to a target has ended. */
  ended(target: string): void {
    const left = this.countRunning(target) - 1;
    if (left > 0) this.#running.set(target, left);
    else this.#running.delete(target);
  }

  /** Requests to a target that are running. */
  countRunning(target: string): number {
    return this.#running.get(target) ?? 0;
  }

  /** A target sent its first token, or its whole response, after this time. */
  responded(target: string, kind: ResponseKind, ms: number): void {
    const times = this.#times[kind];
    const mean = times.get(target);
    times.set(target, mean === undefined ? ms : mean + NEWEST_SHARE * (ms - mean));
  }

  /** The moving mean of these times in milliseconds; undefined before the first response. */
  findTime(target: string, kind: ResponseKind): number | undefined {
    return this.#times[kind].get(target);
  }

  /** A key of a provider is not used for this long, as long as there are others. */
  rest(endpoint: string, ms: number): void {
    this.#resting.set(endpoint, this.#now() + ms);
  }

  /** Whether a key of a provider rests. */
  isResting(endpoint: string): boolean {
    const until = this.#resting.size === 0 ? undefined : this.#resting.get(endpoint);
    if (until === undefined) return false;
    if (this.#now() < until) return true;
    this.#resting.delete(endpoint);
    return false;
  }
}

/** How much the newest of the times counts: after five responses, five sixths of a change are seen. */
const NEWEST_SHARE = 0.3;

/** Targets contain model names, of which clients can invent any number. */
const TARGET_LIMITS = { entries: 1000, bytes: 512 * 1024 };
