/** The gate that every request passes before it is sent to an upstream: concurrency, rates and budgets of its key and tags. */

import type { HeaderBag } from '@sluice/core';
import type { TagBudget } from '../config/options.ts';
import type { Clock, Timer } from '../http/clock.ts';
import type { Budget, Caller } from '../keys/caller.ts';
import type { Logger } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import {
  type AccountLimit,
  type AccountStatus,
  type Lease,
  type LimitBackend,
  type Maybe,
  proceed,
  type RateState,
  RENEW_MS,
} from './backend.ts';
import type { Demand } from './demand.ts';
import {
  LimitRefusal,
  refuseConcurrency,
  refuseMoney,
  refuseRequests,
  refuseTokens,
  refuseUncounted,
  refuseUnpriced,
  refuseUnread,
} from './refusals.ts';
import { Calendar } from './windows.ts';

/** Admits requests, and takes back what they hold when they end. */
export class AdmissionGate {
  readonly #options: GateOptions;
  readonly #calendar: Calendar;
  /** Requests that hold something. */
  readonly #open = new Set<Admission>();
  #reserved = 0;
  #timer: Timer | undefined;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#calendar = new Calendar(options.timeZone);
    options.metrics.watchReservations(() => ({ requests: this.#countReserving(), micros: this.#reserved }));
  }

  /** The limits of a request; undefined when there are none, so that it need not pass. */
  findRules({ caller, tags, budgets, at }: RuleQuery): Rules | undefined {
    const { policy } = caller;
    const { concurrency, requestsPerMinute, tokensPerMinute } = policy;
    const accounts = policy.budgets.length + budgets.length === 0 ? NO_ACCOUNTS : this.#listAccounts(caller, tags, budgets, at);
    if (accounts.length === 0 && concurrency === null && requestsPerMinute === null && tokensPerMinute === null) return undefined;
    return { key: caller.id, concurrency, requestsPerMinute, tokensPerMinute, accounts };
  }

  /**
   * Admits a request, at once if the backend answers at once. Throws or rejects with a `LimitRefusal`, and then holds
   * nothing. The order: concurrency, requests, tokens, budgets.
   */
  admit(request: AdmissionRequest): Maybe<Admission> {
    const admission = new Admission(request);
    this.#open.add(admission);
    this.#timer ??= this.#options.clock.setRepeating(() => void this.#renew(), RENEW_MS).unref();
    try {
      const admitted = this.#take(admission);
      return admitted instanceof Promise ? admitted.catch((error: unknown) => this.#refuse(admission, error)) : admitted;
    } catch (error) {
      return this.#refuse(admission, error);
    }
  }

  #take(admission: Admission): Maybe<Admission> {
    return proceed(this.#takeSlot(admission), () =>
      proceed(this.#takeRates(admission), () => proceed(this.#takeMoney(admission), () => admission)),
    );
  }

  #takeSlot(admission: Admission): Maybe<void> {
    const { id, rules } = admission.request;
    const { key, concurrency } = rules;
    if (concurrency === null) return;
    return proceed(this.#options.backend.acquire(key, id, concurrency), (isFree) => {
      if (!isFree) throw refuseConcurrency(concurrency);
      admission.slots = key;
    });
  }

  #takeRates(admission: Admission): Maybe<void> {
    return proceed(this.#takeRequest(admission), () => this.#takeTokens(admission));
  }

  #takeRequest(admission: Admission): Maybe<void> {
    const { key, requestsPerMinute: limit } = admission.request.rules;
    if (limit === null) return;
    return proceed(this.#options.backend.consume(`requests ${key}`, 1, limit), (state) => {
      addRateHeaders(admission.headers, 'requests', limit, state);
      if (!state.isAllowed) throw refuseRequests(limit, state, admission.headers);
      admission.requests = { counter: `requests ${key}`, period: state.period, amount: 1 };
    });
  }

  /** A request that needs more than the whole limit is admitted when nothing else was used; its real use counts later. */
  #takeTokens(admission: Admission): Maybe<void> {
    const { demand, rules } = admission.request;
    const { key, tokensPerMinute: limit } = rules;
    if (limit === null || !demand || typeof demand === 'string') return;
    const needed = demand.tokens;
    const amount = Math.min(needed, limit);
    return proceed(this.#options.backend.consume(`tokens ${key}`, amount, limit), (state) => {
      addRateHeaders(admission.headers, 'tokens', limit, state);
      if (!state.isAllowed) throw refuseTokens(limit, needed, state, admission.headers);
      admission.tokens = { counter: `tokens ${key}`, period: state.period, amount };
    });
  }

  #takeMoney(admission: Admission): Maybe<void> {
    const { id, demand, rules } = admission.request;
    if (rules.accounts.length === 0 || !demand) return;
    if (typeof demand === 'string') throw refuseUncounted(demand);
    const { micros } = demand;
    if (typeof micros !== 'number') throw refuseUnpriced(micros);
    return proceed(this.#options.backend.reserve(id, micros, rules.accounts), (shortage) => {
      if (shortage) throw refuseMoney(micros, shortage);
      this.#reserved += micros;
      admission.unit = micros;
      admission.reserved = micros;
    });
  }

  /** Gives back what was taken before the refusal. */
  #refuse(admission: Admission, cause: unknown): never {
    const error = cause instanceof LimitRefusal ? cause : this.#explain(cause);
    this.#options.metrics.limitRefused(error.limit);
    this.#giveBack(admission, NOTHING_USED);
    throw error;
  }

  /** A backend that fails: money is not spent without a count. */
  #explain(cause: unknown): LimitRefusal {
    this.#options.log.error({ reason: String(cause) }, 'a limit could not be checked');
    return refuseUnread();
  }

  /**
   * Whether a request may be sent once more: what its earlier attempts have cost, and the most that the next one can, must
   * fit into its budgets. Raises the reservation if so.
   */
  extend(admission: Admission, charged: number): Maybe<boolean> {
    const { reserved, unit, request } = admission;
    const micros = charged + unit;
    if (reserved === undefined || micros <= reserved) return true;
    return proceed(this.#options.backend.raise(request.id, micros), (isRaised) => {
      if (!isRaised) return false;
      this.#reserved += micros - reserved;
      admission.reserved = micros;
      return true;
    });
  }

  /** A request has ended: frees its slot, corrects its tokens and settles its cost. Only the first call counts. */
  end(admission: Admission, used: Used): void {
    if (!this.#open.has(admission)) return;
    const { reserved, request } = admission;
    if (reserved !== undefined && used.micros > reserved) {
      const { metrics, log } = this.#options;
      metrics.overran(used.micros - reserved);
      log.warn(
        { request_id: request.id, reserved_micros: reserved, cost_micros: used.micros },
        'a request cost more than reserved',
      );
    }
    this.#giveBack(admission, used);
  }

  #giveBack(admission: Admission, used: Used): void {
    const { backend } = this.#options;
    const { slots, requests, tokens, reserved, request } = admission;
    this.#open.delete(admission);
    if (slots !== undefined) this.#send(backend.release(slots, request.id));
    if (requests && used === NOTHING_USED) this.#send(backend.correct(requests.counter, requests.period, -1));
    if (tokens && used.tokens !== null && used.tokens !== tokens.amount)
      this.#send(backend.correct(tokens.counter, tokens.period, used.tokens - tokens.amount));
    if (reserved === undefined) return;
    this.#reserved -= reserved;
    this.#send(backend.settle(request.id, used.micros));
  }

  /** What is given back to a shared backend need not be waited for: its leases end by themselves. */
  #send(sent: Maybe<void>): void {
    if (sent instanceof Promise)
      sent.catch((error: unknown) => this.#options.log.error({ reason: String(error) }, 'a limit could not be updated'));
  }

  /** Reads what the budgets of tags have spent, before the first request. */
  prepare(budgets: readonly TagBudget[]): Promise<void> {
    return this.#options.backend.load(this.#listTagAccounts(budgets, this.#options.wallClock()));
  }

  /** Budgets and what is left of them: of tags, of these keys, and of other keys that were used since the start. */
  async list(budgets: readonly TagBudget[], callers: readonly Caller[] = []): Promise<BudgetStatus[]> {
    const now = this.#options.wallClock();
    await this.#options.backend.load(callers.flatMap((caller) => this.#listAccounts(caller, [], [], now)));
    await this.prepare(budgets);
    const current = new Map(
      this.#listTagAccounts(budgets, now).map((account) => [`${account.period} ${account.of}`, account.micros]),
    );
    return this.#options.backend.list().flatMap((status) => {
      const limit = status.by === 'key' ? status.micros : current.get(`${status.period} ${status.of}`);
      return limit === undefined ? [] : [this.#buildStatus({ ...status, micros: limit }, now)];
    });
  }

  #buildStatus({ by, of, name, period, micros: limit, window, spent, reserved }: AccountStatus, now: number): BudgetStatus {
    const current = this.#calendar.find(period, now);
    const isOver = current.start > window.start;
    const used = isOver ? 0 : spent;
    const held = isOver ? 0 : reserved;
    const resetsAt = period === 'total' ? null : current.end;
    return { by, id: of, name, period, limit, spent: used, reserved: held, left: Math.max(0, limit - used - held), resetsAt };
  }

  /** Ends the timer. */
  close(): void {
    this.#timer?.close();
    this.#timer = undefined;
  }

  #renew(): Maybe<void> {
    if (this.#open.size === 0) this.close();
    return this.#options.backend.renew(listLeases(this.#open));
  }

  #countReserving(): number {
    let count = 0;
    for (const { reserved } of this.#open) if (reserved !== undefined) count++;
    return count;
  }

  #listAccounts(
    { id, name, policy }: Caller,
    tags: readonly string[],
    budgets: readonly TagBudget[],
    at: number,
  ): AccountLimit[] {
    const time = at || this.#options.wallClock();
    const own = policy.budgets.map((budget) => this.#buildAccount('key', id, name, budget, time));
    return keepLowest([...own, ...this.#listTagAccounts(budgets, time, tags)]);
  }

  /** `tags`: those of a request; all budgets without. */
  #listTagAccounts(budgets: readonly TagBudget[], at: number, tags?: readonly string[]): AccountLimit[] {
    return keepLowest(
      budgets
        .filter(({ tag }) => !tags || tags.includes(tag))
        .map(({ tag, limit }) => this.#buildAccount('tag', tag, tag, limit, at)),
    );
  }

  #buildAccount(by: AccountLimit['by'], of: string, name: string, { micros, period }: Budget, at: number): AccountLimit {
    return { by, of, name, period, micros, window: this.#calendar.find(period, at) };
  }
}

/** What the gate works with. */
export interface GateOptions {
  readonly backend: LimitBackend;
  readonly timeZone: string;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly metrics: Pick<Metrics, 'limitRefused' | 'overran' | 'watchReservations'>;
  readonly log: Pick<Logger, 'warn' | 'error'>;
}

/** Who sends a request, and when. */
export interface RuleQuery {
  readonly caller: Caller;
  readonly tags: readonly string[];
  /** Budgets of the configuration. */
  readonly budgets: readonly TagBudget[];
  /** When the request was received, as in the ledger; 0 without one. Its cost counts in the window of this time. */
  readonly at: number;
}

/** The limits that apply to a request. */
export interface Rules {
  /** The id of the key. */
  readonly key: string;
  readonly concurrency: number | null;
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly accounts: readonly AccountLimit[];
}

const NO_ACCOUNTS: readonly AccountLimit[] = [];

/** A request at the gate. */
export interface AdmissionRequest {
  /** Unique. */
  readonly id: string;
  readonly rules: Rules;
  /** What it can use; undefined when it costs nothing. Text: the endpoint, when its cost cannot be known. */
  readonly demand: Demand | string | undefined;
}

/** What a request consumed of a rate. */
interface Consumed {
  readonly counter: string;
  readonly period: number;
  readonly amount: number;
}

/** What a request has used when it ends. */
export interface Used {
  /** Millionths of a dollar. */
  readonly micros: number;
  /** Null when it is not known. */
  readonly tokens: number | null;
}

const NOTHING_USED: Used = { micros: 0, tokens: 0 };

/** An admitted request, and what it holds. */
export class Admission {
  readonly request: AdmissionRequest;
  /** The state of the rates of its key, for the response. */
  readonly headers: HeaderBag = {};
  slots: string | undefined;
  requests: Consumed | undefined;
  tokens: Consumed | undefined;
  /** What one attempt can cost. */
  unit = 0;
  /** Millionths of a dollar; undefined when no budget applies. */
  reserved: number | undefined;

  constructor(request: AdmissionRequest) {
    this.request = request;
  }

  /** Whether a budget applies: such a request is sent again only after its reservation was extended. */
  get isReserved(): boolean {
    return this.reserved !== undefined;
  }

  /** What an attempt that took this long and reported no usage may have cost. */
  assume(elapsedMs: number): number {
    const { demand } = this.request;
    return this.reserved === undefined || demand === undefined || typeof demand === 'string' ? 0 : demand.assume(elapsedMs);
  }
}

function* listLeases(admissions: Iterable<Admission>): Iterable<Lease> {
  for (const { slots, request } of admissions) yield { member: request.id, slots };
}

/** Of several budgets for the same period, the lowest counts. */
function keepLowest(accounts: readonly AccountLimit[]): AccountLimit[] {
  if (accounts.length < 2) return [...accounts];
  const lowest = new Map<string, AccountLimit>();
  for (const account of accounts) {
    const name = `${account.by} ${account.period} ${account.of}`;
    const known = lowest.get(name);
    if (!known || account.micros < known.micros) lowest.set(name, account);
  }
  return [...lowest.values()];
}

/** As OpenAI names them. */
function addRateHeaders(headers: HeaderBag, unit: 'requests' | 'tokens', limit: number, { used, resetsInMs }: RateState): void {
  headers[`x-ratelimit-limit-${unit}`] = String(limit);
  headers[`x-ratelimit-remaining-${unit}`] = String(Math.max(0, limit - used));
  headers[`x-ratelimit-reset-${unit}`] = `${Math.ceil(resetsInMs / 1000)}s`;
}

/** A budget, and what is left of it. Amounts are millionths of a dollar. */
export interface BudgetStatus {
  readonly by: 'key' | 'tag';
  readonly id: string;
  readonly name: string;
  readonly period: Budget['period'];
  readonly limit: number;
  readonly spent: number;
  readonly reserved: number;
  readonly left: number;
  /** Milliseconds since 1970; null for `total`. */
  readonly resetsAt: number | null;
}
