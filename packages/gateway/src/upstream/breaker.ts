import { BoundedCache } from '@sluice/core/internal';

/**
 * Circuit breakers of all targets. A target that fails repeatedly is paused; then one request probes it. Success is
 * reported at the first content of a response: a long stream must not keep other requests waiting. (Libraries wrap a
 * whole call and report at its end.)
 */
export class Breakers {
  readonly #now: () => number;
  readonly #states = new BoundedCache<State>(TARGET_LIMITS);
  /** Targets that have been paused and not succeeded since, for reports. */
  readonly #paused = new Set<string>();

  /** `now`: milliseconds of a monotonic clock. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Whether a request may be sent to a target. After `probe`, the caller must call `endProbe`. */
  admit(target: string): Admission {
    const state = this.#states.get(target);
    if (!state || state.restsUntil === 0) return 'usual';
    return this.#now() >= state.restsUntil && this.#beginProbe(state) ? 'probe' : 'resting';
  }

  /**
   * Chooses which of several paused targets to probe early: the one whose pause ends first and has no running probe.
   */
  probe(targets: readonly string[]): string | undefined {
    return this.#sortByPause(targets).find((target) => {
      const state = this.#states.get(target);
      return state && this.#beginProbe(state);
    });
  }

  /** The probe of a target has ended, whatever its result. */
  endProbe(target: string): void {
    const state = this.#states.get(target);
    if (state) state.probedUntil = 0;
  }

  /** Whether the target is not paused. */
  isWell(target: string): boolean {
    return (this.#states.get(target)?.restsUntil ?? 0) === 0;
  }

  /** The pause of these targets that ends first; undefined when one of them is not paused. */
  pause(targets: readonly string[]): Pause | undefined {
    const [first] = this.#sortByPause(targets);
    const state = first === undefined ? undefined : this.#states.get(first);
    return state && state.restsUntil > 0
      ? { ms: Math.max(0, Math.ceil(state.restsUntil - this.#now())), reason: state.reason }
      : undefined;
  }

  /** All paused targets, in the order of their pauses. */
  listPaused(): PausedTarget[] {
    return [...this.#paused].flatMap((target) => {
      const state = this.#states.get(target);
      const pause = this.pause([target]);
      return state && pause ? [{ target, failures: state.failures, ...pause }] : [];
    });
  }

  /** Ends the pause of a target and forgets its failures. */
  succeeded(target: string): void {
    this.#states.delete(target);
    if (this.#paused.size > 0) this.#paused.delete(target);
  }

  /** Counts a failure. During a pause it does not extend the pause, because probes are sent then. */
  failed(target: string, reason: string): void {
    const { failures: before = 0, restsUntil = 0 } = this.#states.get(target) ?? {};
    const failures = before + 1;
    if (restsUntil > this.#now()) this.#set(target, { failures, restsUntil, probedUntil: 0, reason });
    else if (failures >= MAX_FAILURES) this.rest(target, reason);
    else this.#set(target, { failures, restsUntil: 0, probedUntil: 0, reason });
  }

  /** Pauses a target, because it requested a pause or has failed too often. */
  rest(target: string, reason: string, ms: number = PAUSE_MS): void {
    const restsUntil = this.#now() + Math.min(ms, MAX_PAUSE_MS);
    this.#set(target, { failures: MAX_FAILURES, restsUntil, probedUntil: 0, reason });
    this.#paused.delete(target);
    this.#paused.add(target);
    for (const oldest of this.#paused) {
      if (this.#paused.size <= TARGET_LIMITS.entries) break;
      this.#paused.delete(oldest);
    }
  }

  #sortByPause(targets: readonly string[]): string[] {
    const findEnd = (target: string): number => this.#states.get(target)?.restsUntil ?? 0;
    return targets.toSorted((a, b) => findEnd(a) - findEnd(b));
  }

  /** Begins a probe unless one is running. A probe that takes too long no longer blocks others. */
  #beginProbe(state: State): boolean {
    if (this.#now() < state.probedUntil) return false;
    state.probedUntil = this.#now() + PAUSE_MS;
    return true;
  }

  #set(target: string, state: State): void {
    this.#states.set(target, { ...state, reason: state.reason.slice(0, MAX_REASON_LENGTH) });
  }
}

/**
 * Whether a request may be sent to a target: as usual, as the one probe of a target whose pause has ended, or not at
 * all.
 */
export type Admission = 'usual' | 'probe' | 'resting';

/** The rest of a pause, and its reason. */
export interface Pause {
  ms: number;
  reason: string;
}

/** A paused target. */
export interface PausedTarget extends Pause {
  /** `provider/model` */
  target: string;
  /** Consecutive failures. */
  failures: number;
}

interface State {
  /** Consecutive failures. */
  failures: number;
  /** When the pause ends; 0 without one. After its end, one request probes the target. */
  restsUntil: number;
  /** Until when a running probe keeps other requests out; 0 without one. */
  probedUntil: number;
  /** The last error. */
  reason: string;
}

/** Consecutive failures after which a target is paused. */
const MAX_FAILURES = 5;

/** The default pause, and the longest time that a probe keeps other requests out. */
const PAUSE_MS = 30_000;

/** The longest pause that a target can request, so that one wrong header does not require a restart. */
const MAX_PAUSE_MS = 3_600_000;

/** Targets contain model names, of which clients can invent any number. */
const TARGET_LIMITS = { entries: 1000, bytes: 512 * 1024 };

/** Characters of an error message that are kept. */
const MAX_REASON_LENGTH = 300;
