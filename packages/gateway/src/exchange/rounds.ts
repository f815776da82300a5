import type { CanonicalError } from '@sluice/core';
import { isTargetsFault, mayBeBilled, pauseBefore, verdictOf } from '../upstream/verdict.ts';
import { STOPPED, upstreamWords } from './failures.ts';
import type { Outcome } from './outcome.ts';
import { pause } from './pause.ts';
import type { Presence } from './presence.ts';
import type { Candidate, Services } from './services.ts';

export interface RoundsOptions {
  /** The request, for the log. */
  id: string;
  presence: Presence;
  /** Asks one of them, once. Nothing of an answer is sent before it is certain that there is one. */
  ask: (candidate: Candidate) => Promise<Outcome>;
}

/** Asks one after the other until somebody answers. */
export class Rounds {
  readonly #options: RoundsOptions;
  readonly #services: Services;
  /** What came of those who have no answer. */
  readonly tried: string[] = [];
  #attempts = 0;

  constructor(options: RoundsOptions, services: Services) {
    this.#options = options;
    this.#services = services;
  }

  get attempts(): number {
    return this.#attempts;
  }

  /** A call is made, or made once more. */
  count(): void {
    this.#attempts++;
  }

  /** `reason`: why nobody answers when there is nobody to ask. */
  async ask(candidates: readonly Candidate[], reason: CanonicalError): Promise<Outcome> {
    this.#services.budget.earn();
    let outcome: Outcome = { is: 'failed', error: reason };
    const left = [...candidates];
    for (let candidate = this.#next(left); candidate; candidate = this.#next(left)) {
      outcome = await this.#askOne(candidate, left.length > 0);
      if (outcome.is !== 'failed' || verdictOf(outcome.error) === 'stop' || this.#isTired) return outcome;
    }
    // All of them rest: the first is asked all the same, for its own words.
    const [first] = candidates;
    return this.#attempts === 0 && first ? this.#askOne(first, false) : outcome;
  }

  /** The next that does not need a rest. */
  #next(left: Candidate[]): Candidate | undefined {
    for (let candidate = left.shift(); candidate; candidate = left.shift())
      if (this.#services.breakers.allows(candidate.key)) return candidate;
    return undefined;
  }

  /** The same target again only when there is no other: another that may answer at once is better than the same a little later. */
  async #askOne(candidate: Candidate, hasOthers: boolean): Promise<Outcome> {
    const { presence } = this.#options;
    for (let tries = 0; ; tries++) {
      this.count();
      const outcome = await this.#options.ask(candidate);
      this.#record(candidate, outcome);
      if (outcome.is !== 'failed' || hasOthers) return outcome;
      const wait = this.#pauseAfter(outcome.error, tries);
      if (wait === undefined) return outcome;
      if (await pause(wait, presence)) continue;
      return presence.isGone ? { is: 'gone' } : { is: 'failed', error: STOPPED };
    }
  }

  /** How long to wait before the next attempt; undefined when there is none. */
  #pauseAfter(error: CanonicalError, tries: number): number | undefined {
    const { limits, random, budget } = this.#services;
    if (verdictOf(error) !== 'again' || tries >= limits.retriesPerProvider || this.#isTired) return undefined;
    const wait = pauseBefore(tries, error, limits.retryAfterMs, random);
    return wait !== undefined && budget.spend() ? wait : undefined;
  }

  get #isTired(): boolean {
    return this.#attempts > this.#services.limits.retries || this.#options.presence.isStopped;
  }

  #record(candidate: Candidate, outcome: Outcome): void {
    const { breakers, metrics } = this.#services;
    const { key } = candidate;
    if (outcome.is === 'gone') breakers.forget(key);
    else if (outcome.is === 'answered') breakers.succeeded(key);
    else this.#recordFailure(candidate, outcome.error);
    metrics.upstreamUp(candidate.provider.id, breakers.isWell(key));
  }

  #recordFailure({ provider, model, key }: Candidate, error: CanonicalError): void {
    const { breakers, limits, log, metrics } = this.#services;
    const asked = error.retry_after_ms ?? 0;
    if (this.#options.presence.isStopped) breakers.forget(key);
    else if (!isTargetsFault(error)) breakers.succeeded(key);
    else if (asked > limits.retryAfterMs) breakers.rest(key, asked);
    else if (error.code === 'AUTHENTICATION') breakers.rest(key);
    else breakers.failed(key);
    metrics.upstreamFailed(provider.id, error.code);
    this.tried.push(`${key} ${error.code}`);
    log.warn(
      {
        request_id: this.#options.id,
        attempt: this.#attempts,
        provider: provider.id,
        model,
        error: error.code,
        status: error.http_status,
        reason: error.message,
        ...upstreamWords(error),
        ...(mayBeBilled(error) && { may_be_billed: true }),
      },
      'attempt failed',
    );
  }
}
