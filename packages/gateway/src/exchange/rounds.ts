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
import type { ClientConnection } from './client-connection.ts';
import { chooseFinish, type Finish, type Lane, LOST, type Race } from './race.ts';
import type { AttemptRecord, ExchangeRecord } from './record.ts';
import { type Candidate, createPausedError, formatProvider, type Outcome, readUpstreamMessage, type Services } from './types.ts';

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
  /** Attempts that have not ended, and those that wait for their reservation. */
  #running = 0;
  /** The outcome of the last attempt. */
  #last: Outcome | undefined;
  /** When targets may be retried that were in a pause when they lost, by the monotonic clock. */
  readonly #pausedUntil = new Map<Candidate, number>();
  /** The budgets of the request allow no further attempt. */
  #isOverBudget = false;

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
    return this.#options.record.startAttempt(before.target);
  }

  /**
   * Counts a request that is sent again without an optional field that the target rejected. False when no retry is left
   * for it.
   */
  repeatWithout(field: RefusedField, lane: Lane, { message }: CanonicalError): boolean {
    const { candidate } = lane;
    const { provider, model } = candidate;
    const { log, budget } = this.#services;
    if (lane.isOver || this.#isExhausted || this.#options.connection.isInterrupted || !budget.spend()) return false;
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
  repeatFromStart(lane: Lane, { message }: CanonicalError): boolean {
    const { candidate } = lane;
    const { provider, model } = candidate;
    if (lane.isOver || this.#isExhausted || this.#options.connection.isInterrupted) return false;
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
    for (let turn = this.#next(left); turn; turn = this.#next(left)) {
      const finish = await this.#hedge(turn, left);
      outcome = finish.outcome;
      if (!this.#mayGoOn(outcome) || this.#isExhausted) return outcome;
      this.#putSiblingsLast(left, finish.candidate, outcome.error);
    }
    return candidates.length > 0 ? this.#probePaused(candidates, outcome) : outcome;
  }

  /** A failure that is not about the key would happen with the other keys of the same server, too. */
  #putSiblingsLast(left: Candidate[], failed: Candidate, error: CanonicalError): void {
    if (failed.endpointId === undefined || left.length < 2 || isKeyFault(error)) return;
    const isSibling = ({ origin, provider }: Candidate): boolean =>
      origin === failed.origin && provider.id === failed.provider.id;
    left.push(...left.splice(0).sort((a, b) => Number(isSibling(a)) - Number(isSibling(b))));
  }

  /**
   * Runs a turn, and one at the next target, too, when there is no content after `recovery.hedge_after`. The first
   * content wins, and the other lane ends. Its target may still be requested later.
   */
  async #hedge(turn: Turn, left: Candidate[]): Promise<Finish> {
    const { recovery, connection, race, mayHedge } = this.#options;
    const first = this.#runTurn(turn);
    if (recovery.hedgeAfterMs === 0 || left.length === 0 || !mayHedge || race.wasClaimed) return first;
    const isLate = await outlasts(first, recovery.hedgeAfterMs, connection);
    // The first request may still be repeated on a new connection, for which one attempt stays free.
    const isAllowed = isLate && !race.wasClaimed && !connection.isInterrupted && this.#attempts < this.#services.limits.retries;
    const next = isAllowed ? this.#next(left) : undefined;
    if (!next) return first;
    this.#services.log.info(
      { request_id: this.#options.id, attempt: this.#attempts, after_ms: recovery.hedgeAfterMs, may_be_billed: true },
      'no content yet; requesting the next target, too',
    );
    const [one, other] = await Promise.all([first, this.#runTurn(next)]);
    // Also a target that was not requested, because the budgets do not allow two attempts at the same time.
    const isUsable = ({ outcome, candidate }: Finish): boolean => outcome.is === 'lost' || this.#countAt(candidate) === 0;
    left.unshift(...[one, other].filter(isUsable).map(({ candidate }) => candidate));
    return chooseFinish(one, other);
  }

  /** A turn in a lane of its own. A lane whose turn throws ends with the race. */
  async #runTurn({ candidate, run }: Turn): Promise<Finish> {
    const lane = this.#options.race.enter(candidate);
    return lane.leave(await run(lane));
  }

  /** Whether another attempt may lead to a response. */
  #mayGoOn(outcome: Outcome): outcome is Extract<Outcome, { error: CanonicalError }> {
    if (outcome.is === 'broken') return this.#options.mayContinue();
    return outcome.is === 'failed' && findVerdict(outcome.error) !== 'stop';
  }

  /** The attempt at the next target that is not paused. */
  #next(left: Candidate[]): Turn | undefined {
    const { breakers } = this.#services;
    for (let candidate = left.shift(); candidate; candidate = left.shift()) {
      const admission = breakers.admit(candidate.key);
      if (admission === 'probe') return { candidate, run: (lane) => this.#probe(lane) };
      const hasOthers = (): boolean => left.some(({ key }) => breakers.isWell(key));
      if (admission === 'usual') return { candidate, run: (lane) => this.#tryTarget(lane, hasOthers()) };
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
    const { outcome: result } = await this.#runTurn({ candidate, run: (lane) => this.#probe(lane) });
    // The failure of a target that was not paused says more.
    return result.is === 'failed' && hasTried ? outcome : result;
  }

  /** One attempt without retries. If it fails, the error says that the target is paused. */
  async #probe(lane: Lane): Promise<Outcome> {
    const { breakers } = this.#services;
    const { key } = lane.candidate;
    try {
      const outcome = await this.#attempt(lane, 'never');
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
  async #tryTarget(lane: Lane, hasOthers: boolean): Promise<Outcome> {
    const { candidate } = lane;
    let wait = this.#findRestOfPause(candidate);
    for (;;) {
      if (wait !== undefined && !(await this.#pause(lane, wait))) return lane.explainEnd();
      const outcome = await this.#attempt(lane, 'once');
      if (!this.#mayGoOn(outcome)) return outcome;
      wait = hasOthers ? this.#pauseBeforeOthers(outcome, candidate) : this.#pauseAfter(outcome.error, candidate);
      if (wait === undefined) return outcome;
    }
  }

  /** Waits before the next attempt; false when there is none. A target that loses meanwhile is not retried earlier. */
  async #pause(lane: Lane, ms: number): Promise<boolean> {
    const until = this.#options.connection.clock.now() + ms;
    const isOver = await lane.wait(ms);
    if (!isOver) this.#pausedUntil.set(lane.candidate, until);
    return isOver;
  }

  #findRestOfPause(candidate: Candidate): number | undefined {
    const until = this.#pausedUntil.get(candidate);
    this.#pausedUntil.delete(candidate);
    return until === undefined ? undefined : Math.max(0, until - this.#options.connection.clock.now());
  }

  async #attempt(lane: Lane, repeat: Call['repeat']): Promise<Outcome> {
    const { candidate } = lane;
    const { admission } = this.#options;
    const before = this.#last;
    this.#running++;
    try {
      if (admission && (before || this.#running > 1) && !(await this.#extend(lane, admission)))
        return lane.isOver || this.#options.connection.isInterrupted ? lane.explainEnd() : (before ?? LOST);
      // Asked after what was awaited: meanwhile another upstream may have sent content, or have used up the attempts.
      if (lane.isOver) return LOST;
      if (before && this.#attempts > this.#services.limits.retries) return before;
      this.#count(candidate);
      // A request with a budget is repeated by the loop alone, which extends its reservation first.
      const outcome = await this.#run(lane, this.#isSpent(candidate) || admission?.isReserved ? 'never' : repeat);
      this.#last = outcome;
      this.#record(candidate, outcome);
      return outcome;
    } finally {
      this.#running--;
    }
  }

  async #run(lane: Lane, repeat: Call['repeat']): Promise<Outcome> {
    const { router } = this.#services;
    router.began(lane.candidate);
    try {
      return await this.#options.attempt(lane, repeat);
    } finally {
      router.ended(lane.candidate);
    }
  }

  /**
   * Whether the budgets of the request allow this attempt beside those that are running; if not, the last outcome is the
   * result. False when the lane ends before that is known.
   */
  async #extend(lane: Lane, admission: Admission): Promise<boolean> {
    const isAlone = this.#running === 1;
    const charged = this.#options.record.charged + (this.#running - 1) * admission.unit;
    const extended = this.#services.gate.extend(admission, charged);
    const isAllowed = extended instanceof Promise ? (await lane.waitFor(extended)) && (await extended) : extended;
    if (isAlone) this.#isOverBudget = !isAllowed;
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
  /** Who may write to the client. */
  race: Race;
  /** Whether two targets may be requested at the same time: for a stream. */
  mayHedge: boolean;
  /** Whether another target may continue a broken response. */
  mayContinue: () => boolean;
  /** Sends the request to the candidate of a lane, once. Nothing reaches the client before the lane has claimed it. */
  attempt: (lane: Lane, repeat: Call['repeat']) => Promise<Outcome>;
}

/** What is done with one candidate, in its lane. */
interface Turn {
  readonly candidate: Candidate;
  readonly run: (lane: Lane) => Promise<Outcome>;
}

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
