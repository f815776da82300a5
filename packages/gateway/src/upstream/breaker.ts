import { BoundedCache } from '@sluice/core/internal';

/**
 * Circuit breakers of all targets. A target that fails repeatedly is paused; then one request probes it. Each probe that
 * fails doubles the pause, up to a limit; one that succeeds ends it. Success is reported at the first content of a
 * response: a long stream must not keep other requests waiting. (Libraries wrap a whole call and report at its end.)
 */
export class Breakers {
  readonly #now: () => number;
  readonly #maxPauseMs: number;
  readonly #random: () => number;
  readonly #states = new BoundedCache<State>(TARGET_LIMITS);
  /** Targets that have been paused and not succeeded since, for reports. */
  readonly #paused = new Set<string>();

  /** `now`: milliseconds of a monotonic clock. */
  constructor(now: () => number, { maxPauseMs = MAX_PAUSE_MS, random = Math.random }: BreakerOptions = {}) {
    this.#now = now;
    this.#maxPauseMs = maxPauseMs;
    this.#random = random;
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

  /** Whether the pause of a target has ended and the next request to it would be its probe. */
  isDue(target: string): boolean {
    const state = this.#states.get(target);
    if (!state || state.restsUntil === 0) return false;
    const now = this.#now();
    return now >= state.restsUntil && now >= state.probedUntil;
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

  /**
   * Counts a failure. During a pause it does not extend the pause, because probes are sent then. `requestedMs`: the
   * pause that the target has requested.
   */
  failed(target: string, reason: string, requestedMs = 0): void {
    const { failures: before = 0, restsUntil = 0, pauses = 0 } = this.#states.get(target) ?? {};
    const failures = before + 1;
    if (restsUntil > this.#now()) this.#set(target, { failures, restsUntil, probedUntil: 0, pauses, reason });
    else if (failures >= MAX_FAILURES) this.#pause(target, reason, failures, Math.max(requestedMs, this.#computePause(pauses)));
    else this.#set(target, { failures, restsUntil: 0, probedUntil: 0, pauses: 0, reason });
  }

  /** Pauses a target at once. Without `ms`, as long as if it had failed too often. */
  rest(target: string, reason: string, ms?: number): void {
    const { failures = 0, pauses = 0 } = this.#states.get(target) ?? {};
    this.#pause(target, reason, Math.max(failures, MAX_FAILURES), ms ?? this.#computePause(pauses));
  }

  #pause(target: string, reason: string, failures: number, ms: number): void {
    const restsUntil = this.#now() + Math.min(ms, MAX_REQUESTED_MS);
    const pauses = (this.#states.get(target)?.pauses ?? 0) + 1;
    this.#set(target, { failures, restsUntil, probedUntil: 0, pauses, reason });
    this.#paused.delete(target);
    this.#paused.add(target);
    for (const oldest of this.#paused) {
      if (this.#paused.size <= TARGET_LIMITS.entries) break;
      this.#paused.delete(oldest);
    }
  }

  /** The pause after this many pauses in a row. It varies, so that several gateways do not probe at the same moment. */
  #computePause(pauses: number): number {
    const ms = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(pauses, MAX_DOUBLINGS), this.#maxPauseMs);
    return ms * (1 + PAUSE_JITTER * this.#random());
  }

  #sortByPause(targets: readonly string[]): string[] {
    const findEnd = (target: string): number => this.#states.get(target)?.restsUntil ?? 0;
    return targets.toSorted((a, b) => findEnd(a) - findEnd(b));
  }

  /** Begins a probe unless one is running. A probe that takes too long no longer blocks others. */
  #beginProbe(state: State): boolean {
    if (this.#now() < state.probedUntil) return false;
    state.probedUntil = this.#now() + MAX_PROBE_MS;
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

/** How long targets are paused. */
export interface BreakerOptions {
  /** The longest pause between two probes of a target that did not request a longer one. */
  maxPauseMs?: number;
  /** From 0 to 1, for the variation of pauses. */
  random?: () => number;
}

interface State {
  /** Consecutive failures. */
  failures: number;
  /** Pauses since the last success; each is twice as long as the one before. */
  pauses: number;
  /** When the pause ends; 0 without one. After its end, one request probes the target. */
  restsUntil: number;
  /** Until when a running probe keeps other requests out; 0 without one. */
  probedUntil: number;
  /** The last error. */
  reason: string;
}

/** Consecutive failures after which a target is paused. */
const MAX_FAILURES = 5;

const FIRST_PAUSE_MS = 1000;

/** The longest pause by default: with its variation, a target that has recovered is probed within 6 s. */
const MAX_PAUSE_MS = 5000;

/** The share by which a pause may be longer. */
const PAUSE_JITTER = 0.2;

/** More would exceed every limit of a pause. */
const MAX_DOUBLINGS = 10;

/** How long a probe keeps other requests out. Models that think may take this long to respond. */
const MAX_PROBE_MS = 30_000;

/** The longest pause that a target can request, so that one wrong header does not require a restart. */
const MAX_REQUESTED_MS = 3_600_000;

/** Targets contain model names, of which clients can invent any number. */
const TARGET_LIMITS = { entries: 1000, bytes: 512 * 1024 };

/** Characters of an error message that are kept. */
const MAX_REASON_LENGTH = 300;
