import { type Clock, REAL_CLOCK, type Timer } from '../http/clock.ts';

/**
 * Timeouts of a response: the longest silence and the total time. Data is frequent and timeouts are rare, so data only
 * stores its time and one timer compares it. A blocked event loop fires timers before it reads pending data, so the
 * check waits for that data first.
 */
export class Deadline {
  readonly #options: DeadlineOptions;
  readonly #clock: Clock;
  readonly #endsAt: number;
  /** The longest silence; infinite while any silence is allowed. */
  #silenceMs = Number.POSITIVE_INFINITY;
  #lastDataAt: number;
  #timer: Timer | undefined;
  #firesAt = Number.POSITIVE_INFINITY;
  #isOver = false;

  constructor(options: DeadlineOptions) {
    this.#options = options;
    this.#clock = options.clock ?? REAL_CLOCK;
    this.#lastDataAt = this.#clock.now();
    this.#endsAt = this.#lastDataAt + options.totalMs;
  }

  /** Sets the longest silence, from now on. */
  expect(ms: number): void {
    this.#silenceMs = ms;
    this.#lastDataAt = this.#clock.now();
    this.#setTimer();
  }

  /** Data has arrived. */
  recordData(): void {
    this.#lastDataAt = this.#clock.now();
  }

  /** Silence is allowed until the next `expect`. */
  rest(): void {
    this.#silenceMs = Number.POSITIVE_INFINITY;
    this.#setTimer();
  }

  /** Ends all timeouts. */
  stop(): void {
    this.#isOver = true;
    this.#timer?.close();
  }

  get #dueAt(): number {
    return Math.min(this.#lastDataAt + this.#silenceMs, this.#endsAt);
  }

  /** A timer that fires too early only sets the next one. */
  #setTimer(): void {
    const dueAt = this.#dueAt;
    if (this.#isOver || this.#firesAt <= dueAt) return;
    this.#timer?.close();
    const now = this.#clock.now();
    // Whole milliseconds, because node keeps a list of timers per duration.
    const ms = Math.min(Math.ceil(dueAt - now), MAX_TIMER_MS);
    this.#firesAt = now + ms;
    this.#timer = this.#clock.setTimer(this.#check, ms);
  }

  readonly #check = (): void => {
    if (this.#clock.now() >= this.#dueAt) setImmediate(this.#judge);
    else this.#waitOn();
  };

  readonly #judge = (): void => {
    const now = this.#clock.now();
    if (this.#isOver) return;
    // A callback may allow another silence, which needs a new timer.
    this.#firesAt = Number.POSITIVE_INFINITY;
    if (now >= this.#endsAt) this.#options.onTotal();
    else if (now >= this.#dueAt) this.#options.onSilence();
    else this.#waitOn();
  };

  #waitOn(): void {
    this.#firesAt = Number.POSITIVE_INFINITY;
    this.#setTimer();
  }
}

/** The timeouts of a response. */
export interface DeadlineOptions {
  /** Time for the whole response. */
  totalMs: number;
  onSilence: () => void;
  onTotal: () => void;
  clock?: Clock | undefined;
}

/** The longest timer. Most responses end sooner and need only this one timer. */
const MAX_TIMER_MS = 20_000;
