export interface PatienceOptions {
  /** For all of it. */
  totalMs: number;
  onSilence: () => void;
  onTotal: () => void;
}

/** Node takes what is longer for no time at all. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Waits for signs of life, and for the end. Signs are many and silences few: a sign leaves its time, and the one timer looks at it when it
 * fires. An event loop that was blocked fires its timers before it reads what has come in the meantime: a sign that is already there counts.
 */
export class Patience {
  readonly #options: PatienceOptions;
  readonly #endsAt: number;
  /** How much silence is too long; any is allowed while it is infinite. */
  #silenceMs = Number.POSITIVE_INFINITY;
  #heardAt: number;
  #timer: NodeJS.Timeout | undefined;
  #firesAt = Number.POSITIVE_INFINITY;
  #isOver = false;

  constructor(options: PatienceOptions) {
    this.#options = options;
    this.#heardAt = performance.now();
    this.#endsAt = this.#heardAt + options.totalMs;
  }

  /** From now on, this much silence is too long. */
  expect(ms: number): void {
    this.#silenceMs = ms;
    this.#heardAt = performance.now();
    this.#setTimer();
  }

  heard(): void {
    this.#heardAt = performance.now();
  }

  /** Silence is allowed until the next `expect`. */
  rest(): void {
    this.#silenceMs = Number.POSITIVE_INFINITY;
    this.#setTimer();
  }

  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  get #dueAt(): number {
    return Math.min(this.#heardAt + this.#silenceMs, this.#endsAt);
  }

  /** One that fires too early only looks. */
  #setTimer(): void {
    const dueAt = this.#dueAt;
    if (this.#isOver || this.#firesAt <= dueAt) return;
    clearTimeout(this.#timer);
    this.#firesAt = dueAt;
    // Whole milliseconds: node keeps a list for each duration.
    this.#timer = setTimeout(this.#look, Math.min(Math.ceil(dueAt - performance.now()), LONGEST_TIMER_MS));
  }

  readonly #look = (): void => {
    if (performance.now() >= this.#dueAt) setImmediate(this.#judge);
    else this.#waitOn();
  };

  readonly #judge = (): void => {
    const now = performance.now();
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
