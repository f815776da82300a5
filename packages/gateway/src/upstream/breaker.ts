import { BoundedCache } from '@sluice/core';

interface State {
  /** In a row. */
  failures: number;
  /** When it may be asked again; 0 as long as it does not rest. */
  restsUntil: number;
  /** Somebody is finding out whether it is well again. */
  isTried: boolean;
}

/** Failures in a row after which a target is left alone, and for how long. */
const MOST_FAILURES = 5;
const PAUSE_MS = 30_000;
/** Whatever it asks for: nobody should have to restart a gateway because of one wrong header. */
const LONGEST_PAUSE_MS = 3_600_000;
/** Targets contain model names, of which clients can invent any number. */
const TARGETS = { entries: 1000, bytes: 512 * 1024 };

/**
 * Which targets are worth asking. A target that fails again and again is left alone for a while; then one exchange tries it. Success is told
 * at the first content of an answer, not at its end: a long stream must not keep others waiting. (Circuit breakers of libraries wrap a
 * whole call, so they can tell only at its end.)
 */
export class Breakers {
  readonly #now: () => number;
  readonly #states = new BoundedCache<State>(TARGETS);

  /** `now` in milliseconds of a clock that never jumps. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Whether it may be asked now. Of those who ask after a rest, the first may; the others wait for what comes of it. */
  allows(target: string): boolean {
    const state = this.#states.get(target);
    if (!state || state.restsUntil === 0) return true;
    if (this.#now() < state.restsUntil) return false;
    state.isTried = true;
    state.restsUntil = this.#now() + PAUSE_MS;
    return true;
  }

  /** It is asked like any other. */
  isWell(target: string): boolean {
    return (this.#states.get(target)?.restsUntil ?? 0) === 0;
  }

  succeeded(target: string): void {
    this.#states.delete(target);
  }

  failed(target: string): void {
    const failures = (this.#states.get(target)?.failures ?? 0) + 1;
    if (failures >= MOST_FAILURES) this.rest(target);
    else this.#states.set(target, { failures, restsUntil: 0, isTried: false });
  }

  /** The target said, or its failures say, that it wants to be left alone. */
  rest(target: string, ms: number = PAUSE_MS): void {
    const restsUntil = this.#now() + Math.min(ms, LONGEST_PAUSE_MS);
    this.#states.set(target, { failures: MOST_FAILURES, restsUntil, isTried: false });
  }

  /** A trial that told nothing: the client turned away. The next one may try. */
  forget(target: string): void {
    const state = this.#states.get(target);
    if (!state?.isTried) return;
    state.isTried = false;
    state.restsUntil = this.#now();
  }
}
