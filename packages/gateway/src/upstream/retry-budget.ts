/** Most retries that are saved: enough for a quiet gateway, too few to harm an upstream that is down. */
const MAX_SAVED = 20;
/** Retries gained per second, so that a single user can retry, too. */
const A_SECOND = 1;

/**
 * Limits retries to a share of the traffic. When an upstream fails for all clients, retries would multiply its load and
 * keep it down. Requests to another upstream are not retries.
 */
export class RetryBudget {
  readonly #share: number;
  readonly #now: () => number;
  #saved = MAX_SAVED;
  #at: number;

  /** `now`: milliseconds of a monotonic clock. */
  constructor(share: number, now: () => number) {
    this.#share = share;
    this.#now = now;
    this.#at = now();
  }

  /** Adds the share of one request. */
  earn(): void {
    this.#save(this.#share);
  }

  /** Takes one retry; false when none is left. */
  spend(): boolean {
    const now = this.#now();
    this.#save(((now - this.#at) / 1000) * A_SECOND);
    this.#at = now;
    if (this.#saved < 1) return false;
    this.#saved -= 1;
    return true;
  }

  #save(amount: number): void {
    this.#saved = Math.min(MAX_SAVED, this.#saved + amount);
  }
}
