import type { CanonicalError } from '@sluice/core';
import type { Admission } from '../admission/gate.ts';
import type { RecoveryOptions } from '../config/options.ts';
import type { Call } from '../upstream/dialer.ts';
import {
  computePause,
  findVerdict,
  isGatewayFault,
  isKeyFault,
  isTargetFault,
  keepsStatus,
  mayBeBilled,
  type RefusedField,
} from '../upstream/retry.ts';
import { type ClientConnection, waitFor } from './client-connection.ts';
import type { AttemptRecord, ExchangeRecord } from './record.ts';
import {
  type Candidate,
  createPausedError,
  formatProvider,
  type Outcome,
  readUpstreamMessage,
  type Services,
  STOPPED,
} from './types.ts';

/** Sends a request to one candidate after the other until one of them responds. */
export class AttemptLoop {
  readonly #options: AttemptLoopOptions;
  readonly #services: Services;
  /** Targets that failed, with their error codes. */
  readonly tried: string[] = [];
  /** Requests sent upstream. */
  #attempts = 0;
  /** Those to each candidate. */
  readonly #attemptsAt = new Map<Candidate, number>();
  /** Attempts that have not ended. */
  #running = 0;
  /** The outcome of the last attempt. */
  #last: Outcome | undefined;
  /** The budgets of the request allow no further attempt. */
  #isOverBudget = false;
  /** The candidate of the last attempt. */
  #current: Candidate | undefined;

  constructor(options: AttemptLoopOptions, services: Services) {
    this.#options = options;
    this.#services = services;
  }

  /** Requests sent upstream so far. */
  get attempts(): number {
    return this.#attempts;
  }

  /** Counts a request that is sent again because its kept connection was closed before a byte of the response. */
  repeated(candidate: Candidate, before: AttemptRecord): AttemptRecord {
    const { provider, model } = candidate;
    this.#services.log.warn(
      { request_id: this.#options.id, attempt: this.#attempts, provider: provider.id, model, may_be_billed: true },
      'kept-alive connection was closed; retrying on a new one',
    );
    this.#options.record.endAttempt({ ending: 'upstream_error', possiblyBilled: true }, before);
    this.#count(candidate);
    return this.#options.record.startAttempt({ provider: provider.id, protocol: provider.protocol, model, price: before.price });
  }

  /**
   * Counts a request that is sent again without an optional field that the target rejected. False when no retry is left
   * for it.
   */
  repeatWithout(field: RefusedField, candidate: Candidate, { message }: CanonicalError): boolean {
    const { provider, model } = candidate;
    const { log, budget } = this.#services;
    if (this.#isExhausted || this.#options.connection.isInterrupted || !budget.spend()) return false;
    log.info(
      { request_id: this.#options.id, attempt: this.#attempts, provider: provider.id, model, field, reason: message },
      'provider rejected an optional field; retrying without it',
    );
    this.#count(candidate);
    return true;
  }

  /**
   * Counts a request for the whole response, after the target has rejected a request to continue it. False when no
   * attempt is left for it.
   */
  repeatFromStart(candidate: Candidate, { message }: CanonicalError): boolean {
    const { provider, model } = candidate;
    if (this.#isExhausted || this.#options.connection.isInterrupted) return false;
    this.#services.log.info(
      { request_id: this.#options.id, attempt: this.#attempts, provider: provider.id, model, reason: message },
      'provider rejected a prefill; requesting the whole response',
    );
    this.#count(candidate);
    return true;
  }

  /** `reason`: the error when there are no candidates. */
  async run(candidates: readonly Candidate[], reason: CanonicalError): Promise<Outcome> {
    this.#services.budget.earn();
    let outcome: Outcome = { is: 'failed', error: reason };
    const left = [...candidates];
    for (let attempt = this.#next(left); attempt; attempt = this.#next(left)) {
      outcome = await this.#hedge(attempt, left);
      if (!this.#mayGoOn(outcome) || this.#isExhausted) return outcome;
      this.#putSiblingsLast(left, outcome.error);
    }
    return candidates.length > 0 ? this.#probePaused(candidates, outcome) : outcome;
  }

  /** A failure that is not about the key would happen with the other keys of the same server, too. */
  #putSiblingsLast(left: Candidate[], error: CanonicalError): void {
    const failed = this.#current;
    if (failed?.endpointId === undefined || left.length < 2 || isKeyFault(error)) return;
    const isSibling = ({ origin, provider }: Candidate): boolean =>
      origin === failed.origin && provider.id === failed.provider.id;
    left.push(...left.splice(0).sort((a, b) => Number(isSibling(a)) - Number(isSibling(b))));
  }

  /**
   * Runs an attempt, and one at the next target, too, when there is no content after `recovery.hedge_after`. The first
   * content wins, and the other request is cancelled.
   */
  async #hedge(attempt: () => Promise<Outcome>, left: Candidate[]): Promise<Outcome> {
    const { recovery, connection, mayHedge, isTaken } = this.#options;
    if (recovery.hedgeAfterMs === 0 || left.length === 0 || !mayHedge()) return attempt();
    const first = attempt();
    const isLate = await outlasts(first, recovery.hedgeAfterMs, connection);
    // The first request may still be repeated on a new connection, for which one attempt stays free.
    const isAllowed = isLate && !isTaken() && !connection.isInterrupted && this.#attempts < this.#services.limits.retries;
    const next = isAllowed ? this.#next(left) : undefined;
    if (!next) return first;
    this.#services.log.info(
      { request_id: this.#options.id, attempt: this.#attempts, after_ms: recovery.hedgeAfterMs, may_be_billed: true },
      'no content yet; requesting the next target, too',
    );
    const [one, other] = await Promise.all([first, next()]);
    return isUnanswered(one) && other.is !== 'lost' ? other : one;
  }

  /** Whether another attempt may lead to a response. */
  #mayGoOn(outcome: Outcome): outcome is Extract<Outcome, { error: CanonicalError }> {
    if (outcome.is === 'broken') return this.#options.mayContinue();
    return outcome.is === 'failed' && findVerdict(outcome.error) !== 'stop';
  }

  /** The attempt at the next target that is not paused. */
  #next(left: Candidate[]): (() => Promise<Outcome>) | undefined {
    const { breakers } = this.#services;
    for (let candidate = left.shift(); candidate; candidate = left.shift()) {
      const target = candidate;
      const admission = breakers.admit(target.key);
      if (admission === 'probe') return () => this.#probe(target);
      if (admission === 'usual')
        return () =>
          this.#tryTarget(
            target,
            left.some(({ key }) => breakers.isWell(key)),
          );
    }
    return undefined;
  }

  /**
   * Every target that is not paused has failed: one request probes the first of the others. Other requests fail at once
   * while a probe is running. `outcome`: that of the targets that have been tried.
   */
  async #probePaused(candidates: readonly Candidate[], outcome: Outcome): Promise<Outcome> {
    const { breakers } = this.#services;
    const hasTried = this.#attempts > 0;
    const untried = candidates.filter((candidate) => !this.#attemptsAt.has(candidate));
    const keys = untried.map(({ key }) => key);
    const probed = breakers.probe(keys);
    const candidate = candidates.find(({ key }) => key === probed);
    if (!candidate) return hasTried ? outcome : { is: 'failed', error: createPausedError(breakers.pause(keys) ?? NO_PAUSE) };
    const result = await this.#probe(candidate);
    // The failure of a target that was not paused says more.
    return result.is === 'failed' && hasTried ? outcome : result;
  }

  /** One attempt without retries. If it fails, the error says that the target is paused. */
  async #probe(candidate: Candidate): Promise<Outcome> {
    const { breakers } = this.#services;
    const { key } = candidate;
    try {
      const outcome = await this.#attempt(candidate, 'never');
      const left = breakers.pause([key]);
      return outcome.is === 'failed' && left && !keepsStatus(outcome.error) && !this.#options.connection.isStopped
        ? { is: 'failed', error: createPausedError({ ...left, reason: outcome.error.message }) }
        : outcome;
    } finally {
      breakers.endProbe(key);
    }
  }

  /**
   * Retries the same target when there is no other. When there is one, the target is retried once, and only after a
   * wait of at most `recovery.retry_same_target`: another target may respond at once.
   */
  async #tryTarget(candidate: Candidate, hasOthers: boolean): Promise<Outcome> {
    const { connection } = this.#options;
    for (;;) {
      const outcome = await this.#attempt(candidate, 'once');
      if (!this.#mayGoOn(outcome)) return outcome;
      const wait = hasOthers ? this.#pauseBeforeOthers(outcome, candidate) : this.#pauseAfter(outcome.error, candidate);
      if (wait === undefined) return outcome;
      if (await waitFor(wait, connection)) continue;
      return connection.isGone ? { is: 'gone' } : { is: 'failed', error: connection.stopError ?? STOPPED };
    }
  }

  async #attempt(candidate: Candidate, repeat: Call['repeat']): Promise<Outcome> {
    const { admission, isTaken } = this.#options;
    if (isTaken()) return { is: 'lost' };
    if (admission && (this.#last || this.#running > 0) && !(await this.#extend(admission))) return this.#last ?? { is: 'lost' };
    this.#current = candidate;
    this.#count(candidate);
    // A request with a budget is repeated by the loop alone, which extends its reservation first.
    const outcome = await this.#run(candidate, this.#isSpent(candidate) || admission?.isReserved ? 'never' : repeat);
    this.#last = outcome;
    this.#record(candidate, outcome);
    return outcome;
  }

  async #run(candidate: Candidate, repeat: Call['repeat']): Promise<Outcome> {
    const { router } = this.#services;
    router.began(candidate);
    this.#running++;
    try {
      return await this.#options.attempt(candidate, repeat);
    } finally {
      this.#running--;
      router.ended(candidate);
    }
  }

  /**
   * Whether the budgets of the request allow another attempt, beside those that are running; if not, the last outcome is
   * the result.
   */
  async #extend(admission: Admission): Promise<boolean> {
    const charged = this.#options.record.charged + this.#running * admission.unit;
    const isAllowed = await this.#services.gate.extend(admission, charged);
    if (this.#running === 0) this.#isOverBudget = !isAllowed;
    return isAllowed;
  }

  #count(candidate: Candidate): void {
    this.#attempts++;
    this.#attemptsAt.set(candidate, this.#countAt(candidate) + 1);
  }

  #countAt(candidate: Candidate): number {
    return this.#attemptsAt.get(candidate) ?? 0;
  }

  /** How long to wait before the next attempt; undefined when there is none. */
  #pauseAfter(error: CanonicalError, candidate: Candidate, maxMs = Number.POSITIVE_INFINITY): number | undefined {
    const { breakers, limits, random, budget } = this.#services;
    if (findVerdict(error) !== 'again' || this.#isSpent(candidate) || !breakers.isWell(candidate.key)) return undefined;
    const wait = computePause(this.#countAt(candidate) - 1, error, limits.retryAfterMs, random);
    return wait !== undefined && wait <= maxMs && budget.spend() ? wait : undefined;
  }

  /** The same when another target is available. A broken response is continued there at once. */
  #pauseBeforeOthers(outcome: Outcome, candidate: Candidate): number | undefined {
    const { retrySameTargetMs } = this.#options.recovery;
    if (outcome.is !== 'failed' || retrySameTargetMs === 0 || this.#countAt(candidate) > 1) return undefined;
    return this.#pauseAfter(outcome.error, candidate, retrySameTargetMs);
  }

  /** No further attempt at this candidate. */
  #isSpent(candidate: Candidate): boolean {
    return this.#isExhausted || this.#countAt(candidate) > this.#services.limits.retriesPerProvider;
  }

  /** No further attempt at all. */
  get #isExhausted(): boolean {
    return this.#isOverBudget || this.#attempts > this.#services.limits.retries || this.#options.connection.isStopped;
  }

  #record(candidate: Candidate, outcome: Outcome): void {
    const { breakers, metrics } = this.#services;
    const { key } = candidate;
    if (outcome.is === 'answered') breakers.succeeded(key);
    else if (outcome.is === 'failed' || outcome.is === 'broken') this.#recordFailure(candidate, outcome.error);
    metrics.upstreamUp(candidate.provider.id, breakers.isWell(key));
  }

  #recordFailure(candidate: Candidate, error: CanonicalError): void {
    const { log, metrics } = this.#services;
    const { provider, model, label, endpointId } = candidate;
    this.#judge(candidate, error);
    metrics.upstreamFailed(provider.id, error.code);
    this.tried.push(`${label} ${error.code}`);
    log.warn(
      {
        request_id: this.#options.id,
        attempt: this.#attempts,
        provider: provider.id,
        model,
        ...(endpointId !== undefined && { target: label }),
        error: error.code,
        status: error.http_status,
        reason: error.message,
        ...readUpstreamMessage(error),
        ...(mayBeBilled(error) && { may_be_billed: true }),
      },
      'attempt failed',
    );
  }

  /** Updates the breaker of the target after a failure. */
  #judge(candidate: Candidate, error: CanonicalError): void {
    const { breakers, limits, router } = this.#services;
    const { key, endpointId } = candidate;
    const reason = explainFailure(candidate, error);
    const requestedMs = error.retry_after_ms ?? 0;
    if (this.#options.connection.isStopped || isGatewayFault(error)) return;
    if (!isTargetFault(error)) breakers.succeeded(key);
    else if (requestedMs > limits.retryAfterMs) breakers.rest(key, reason, requestedMs);
    else if (endpointId !== undefined && isKeyFault(error)) {
      // The other keys of the provider go on at once.
      const isLimited = error.code === 'RATE_LIMIT';
      breakers.rest(key, reason, isLimited ? requestedMs || undefined : REJECTED_KEY_MS);
      // A rate limit is about one model, the other failures are about all of them.
      if (!isLimited) router.stats.rest(endpointId, REJECTED_KEY_MS);
    } else if (error.code === 'AUTHENTICATION') breakers.rest(key, reason, REJECTED_KEY_MS);
    else breakers.failed(key, reason, requestedMs);
  }
}

const NO_PAUSE = { ms: 0, reason: '' };

/** How long a target is paused that rejects its key: the operator has to act. */
const REJECTED_KEY_MS = 30_000;

/** The request to send, and how. */
export interface AttemptLoopOptions {
  /** The id of the request, for the log. */
  id: string;
  connection: ClientConnection;
  record: ExchangeRecord;
  /** What the request holds at the gate; undefined without limits. */
  admission: Admission | undefined;
  recovery: RecoveryOptions;
  /** Whether two targets may be asked at the same time: for a stream without content. */
  mayHedge: () => boolean;
  /** Whether a target has responded with content, and has not broken off since. */
  isTaken: () => boolean;
  /** Whether another target may continue a broken response. */
  mayContinue: () => boolean;
  /** Sends the request to one candidate, once. Nothing reaches the client before the candidate has sent content. */
  attempt: (candidate: Candidate, repeat: Call['repeat']) => Promise<Outcome>;
}

/** Nothing of the response was sent to the client. */
const isUnanswered = ({ is }: Outcome): boolean => is === 'lost' || is === 'failed';

/** Whether a promise is pending after this time. False when the exchange is interrupted. */
function outlasts(pending: Promise<unknown>, ms: number, connection: ClientConnection): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = connection.clock.setTimer(() => resolve(!connection.isInterrupted), ms);
    const end = (): void => {
      timer.close();
      resolve(false);
    };
    pending.then(end, end);
  });
}

/**
 * Other clients receive this reason during a pause, so it does not quote the upstream, whose message may quote a
 * request.
 */
const explainFailure = (candidate: Candidate, { upstream, http_status: status = 0, message }: CanonicalError): string =>
  upstream ? `${formatProvider(candidate)} responded with ${upstream.status ?? status}` : message;
