import { type Clock, REAL_CLOCK, type Timer } from '../http/clock.ts';

export interface PatienceOptions {
  /** For all of it. */
  totalMs: number;
  onSilence: () => void;
  onTotal: () => void;
  clock?: Clock | undefined;
}

/** The timer looks at least this often. Most answers have ended before, and needed no other timer, whatever was expected of them. */
const LOOK_MS = 20_000;

/**
 * Waits for signs of life, and for the end. Signs are many and silences few: a sign leaves its time, and the one timer looks at it when it
 * fires. An event loop that was blocked fires its timers before it reads what has come in the meantime: a sign that is already there counts.
 */
export class Patience {
  readonly #options: PatienceOptions;
  readonly #clock: Clock;
  readonly #endsAt: number;
  /** How much silence is too long; any is allowed while it is infinite. */
  #silenceMs = Number.POSITIVE_INFINITY;
  #heardAt: number;
  #timer: Timer | undefined;
  #firesAt = Number.POSITIVE_INFINITY;
  #isOver = false;

  constructor(options: PatienceOptions) {
    this.#options = options;
    this.#clock = options.clock ?? REAL_CLOCK;
    this.#heardAt = this.#clock.now();
    this.#endsAt = this.#heardAt + options.totalMs;
  }

  /** From now on, this much silence is too long. */
  expect(ms: number): void {
    this.#silenceMs = ms;
    this.#heardAt = this.#clock.now();
    this.#setTimer();
  }

  heard(): void {
    this.#heardAt = this.#clock.now();
  }

  /** Silence is allowed until the next `expect`. */
  rest(): void {
    this.#silenceMs = Number.POSITIVE_INFINITY;
    this.#setTimer();
  }

  stop(): void {
    this.#isOver = true;
    this.#timer?.close();
  }

  get #dueAt(): number {
    return Math.min(this.#heardAt + this.#silenceMs, this.#endsAt);
  }

  /** One that fires too early only looks. */
  #setTimer(): void {
    const dueAt = this.#dueAt;
    if (this.#isOver || this.#firesAt <= dueAt) return;
    this.#timer?.close();
    const now = this.#clock.now();
    // Whole milliseconds: node keeps a list for each duration.
    const ms = Math.min(Math.ceil(dueAt - now), LOOK_MS);
    this.#firesAt = now + ms;
    this.#timer = this.#clock.setTimer(this.#look, ms);
  }

  readonly #look = (): void => {
    if (this.#clock.now() >= this.#dueAt) setImmediate(this.#judge);
    else this.#waitOn();
  };

  readonly #judge = (): void => {
    const now = this.#clock.now();
    if (this.#isOver) return;
    if (now >= this.#endsAt) this.#options.onTotal();
    else if (now >= this.#dueAt) this.#options.onSilence();
    else this.#waitOn();
  };

  #waitOn(): void {
    this.#firesAt = Number.POSITIVE_INFINITY;
    this.#setTimer();
  }
}
