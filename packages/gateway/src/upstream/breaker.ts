import { BoundedCache } from '@sluice/core';

interface State {
  /** In a row. */
  failures: number;
  /** When the pause ends; 0 as long as there is none. Once it has ended, one request probes the target. */
  restsUntil: number;
  /** Until then, the probe that is under way keeps others out; 0 without one. */
  probedUntil: number;
  /** The last error. */
  reason: string;
}

/** Whether a request may be sent to a target: as usual, as the one probe of a target whose pause has ended, or not at all. */
export type Admission = 'usual' | 'probe' | 'resting';

/** What is left of a pause, and why there is one. */
export interface Pause {
  ms: number;
  reason: string;
}

/** Failures in a row after which a target is left alone, and for how long. */
const MOST_FAILURES = 5;
const PAUSE_MS = 30_000;
/** Whatever it asks for: nobody should have to restart a gateway because of one wrong header. */
const LONGEST_PAUSE_MS = 3_600_000;
/** Targets contain model names, of which clients can invent any number. */
const TARGETS = { entries: 1000, bytes: 512 * 1024 };

/** What is kept of an error message. */
const REASON_LENGTH = 300;

/**
 * Which targets are worth a request. A target that fails again and again is paused; then one request probes it. Success is reported at the
 * first content of a response, not at its end: a long stream must not keep others waiting. (Circuit breakers of libraries wrap a whole call,
 * so they know only at its end.)
 */
export class Breakers {
  readonly #now: () => number;
  readonly #states = new BoundedCache<State>(TARGETS);

  /** `now` in milliseconds of a clock that never jumps. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Whoever is admitted as a probe calls `endProbe` when it is over. */
  admit(target: string): Admission {
    const state = this.#states.get(target);
    if (!state || state.restsUntil === 0) return 'usual';
    return this.#now() >= state.restsUntil && this.#beginProbe(state) ? 'probe' : 'resting';
  }

  /** Of targets that all rest, the one to probe before its pause has ended: the pause that ends first, where no probe is under way. */
  probe(targets: readonly string[]): string | undefined {
    return this.#byPause(targets).find((target) => {
      const state = this.#states.get(target);
      return state && this.#beginProbe(state);
    });
  }

  endProbe(target: string): void {
    const state = this.#states.get(target);
    if (state) state.probedUntil = 0;
  }

  /** Requests are sent to it as usual. */
  isWell(target: string): boolean {
    return (this.#states.get(target)?.restsUntil ?? 0) === 0;
  }

  /** The pause of these targets that ends first; undefined when one of them is well. */
  pause(targets: readonly string[]): Pause | undefined {
    const [first] = this.#byPause(targets);
    const state = first === undefined ? undefined : this.#states.get(first);
    return state && state.restsUntil > 0
      ? { ms: Math.max(0, Math.ceil(state.restsUntil - this.#now())), reason: state.reason }
      : undefined;
  }

  succeeded(target: string): void {
    this.#states.delete(target);
  }

  /** A failure during a pause does not prolong it: a probe may be sent at any time of it. */
  failed(target: string, reason: string): void {
    const { failures: before = 0, restsUntil = 0 } = this.#states.get(target) ?? {};
    const failures = before + 1;
    if (restsUntil > this.#now()) this.#set(target, { failures, restsUntil, probedUntil: 0, reason });
    else if (failures >= MOST_FAILURES) this.rest(target, reason);
    else this.#set(target, { failures, restsUntil: 0, probedUntil: 0, reason });
  }

  /** The target asked for a pause, or its failures call for one. */
  rest(target: string, reason: string, ms: number = PAUSE_MS): void {
    const restsUntil = this.#now() + Math.min(ms, LONGEST_PAUSE_MS);
    this.#set(target, { failures: MOST_FAILURES, restsUntil, probedUntil: 0, reason });
  }

  #byPause(targets: readonly string[]): string[] {
    const endOf = (target: string): number => this.#states.get(target)?.restsUntil ?? 0;
    return targets.toSorted((a, b) => endOf(a) - endOf(b));
  }

  /** Whether there was none under way. One that takes very long keeps others out no longer. */
  #beginProbe(state: State): boolean {
    if (this.#now() < state.probedUntil) return false;
    state.probedUntil = this.#now() + PAUSE_MS;
    return true;
  }

  #set(target: string, state: State): void {
    this.#states.set(target, { ...state, reason: state.reason.slice(0, REASON_LENGTH) });
  }
}
