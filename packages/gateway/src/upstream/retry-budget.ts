/** How many retries may be saved up: enough for a quiet gateway, too few to harm an upstream that is down. */
const MOST_SAVED = 20;
/** What time alone brings: a single user must be able to retry, too. */
const A_SECOND = 1;

/**
 * Retries as a share of the traffic. When an upstream fails for everybody, retries would make its load a multiple of what it was, and keep it
 * down; what is answered by another upstream is no retry.
 */
export class RetryBudget {
  readonly #share: number;
  readonly #now: () => number;
  #saved = MOST_SAVED;
  #at: number;

  /** `now` in milliseconds of a clock that never jumps. */
  constructor(share: number, now: () => number) {
    this.#share = share;
    this.#now = now;
    this.#at = now();
  }

  /** A request came: it earns its share. */
  earn(): void {
    this.#save(this.#share);
  }

  /** Whether one more is allowed; it counts. */
  spend(): boolean {
    const now = this.#now();
    this.#save(((now - this.#at) / 1000) * A_SECOND);
    this.#at = now;
    if (this.#saved < 1) return false;
    this.#saved -= 1;
    return true;
  }

  #save(amount: number): void {
    this.#saved = Math.min(MOST_SAVED, this.#saved + amount);
  }
}
