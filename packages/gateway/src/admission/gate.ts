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
  type Claim,
  type Correction,
  type Lease,
  type LimitBackend,
  type Maybe,
  proceed,
  type RateClaim,
  type RateState,
  RENEW_MS,
  type Taken,
} from './backend.ts';
import type { Demand } from './demand.ts';
import {
  LimitRefusal,
  refuseConcurrency,
  refuseMoney,
  refuseRequests,
  refuseTokens,
  refuseUncounted,
  refuseUnknownPrice,
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

  /** How many requests hold something, and what they reserve together. */
  get held(): { requests: number; micros: number } {
    return { requests: this.#open.size, micros: this.#reserved };
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
    this.#timer ??= this.#options.clock.setRepeating(() => this.#renew(), RENEW_MS).unref();
    try {
      const admitted = this.#take(admission);
      return admitted instanceof Promise ? admitted.catch((error: unknown) => this.#refuse(admission, error)) : admitted;
    } catch (error) {
      return this.#refuse(admission, error);
    }
  }

  /** One call of the backend: a shared one needs one round trip. */
  #take(admission: Admission): Maybe<Admission> {
    const { id, demand, rules } = admission.request;
    const { key, concurrency, accounts } = rules;
    const cost = accounts.length === 0 || !demand ? undefined : readCost(demand);
    const claim: Claim = {
      member: id,
      slots: concurrency === null ? undefined : { name: key, limit: concurrency },
      rates: listRates(admission.request),
      money: typeof cost === 'number' ? { micros: cost, accounts } : undefined,
    };
    return proceed(this.#options.backend.take(claim), (taken) => {
      this.#keep(admission, claim, taken);
      // After the rates: a client that sends too many requests gets that error first.
      if (cost instanceof LimitRefusal) throw cost;
      return admission;
    });
  }

  /** Notes what a request holds. Throws the refusal when it was not admitted. */
  #keep(admission: Admission, { slots, rates, money }: Claim, { result, rates: states }: Taken): void {
    const { headers, request } = admission;
    const { key } = request.rules;
    for (const [index, { counter, limit }] of rates.entries()) {
      const state = states[index];
      if (state) addRateHeaders(headers, counter === nameRequests(key) ? 'requests' : 'tokens', limit, state);
    }
    if (result === 'no slot') throw refuseConcurrency(slots?.limit ?? 0);
    if (result === 'over rate') throw refuseRate(admission, rates, states);
    if (result !== 'taken') throw refuseMoney(money?.micros ?? 0, result);
    admission.slots = slots?.name;
    admission.consumed = rates.map(({ counter, amount }, index) => ({ counter, amount, period: states[index]?.period ?? 0 }));
    if (!money) return;
    this.#reserved += money.micros;
    admission.unit = money.micros;
    admission.reserved = money.micros;
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
   * fit into its budgets. Raises the reservation if so. A request may have ended before a shared backend answers.
   */
  extend(admission: Admission, charged: number): Maybe<boolean> {
    const { reserved, unit, request } = admission;
    const micros = charged + unit;
    if (reserved === undefined || micros <= reserved) return true;
    return proceed(this.#options.backend.raise(request.id, micros), (isRaised) => {
      if (!isRaised || !this.#open.has(admission)) return false;
      const before = admission.reserved ?? 0;
      admission.reserved = Math.max(before, micros);
      this.#reserved += admission.reserved - before;
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
    const { slots, consumed, reserved, request } = admission;
    this.#open.delete(admission);
    if (reserved !== undefined) this.#reserved -= reserved;
    const corrections = listCorrections(request.rules.key, consumed, used);
    const charged = reserved === undefined ? undefined : used.micros;
    if (slots === undefined && corrections.length === 0 && charged === undefined) return;
    this.#send(this.#options.backend.end({ member: request.id, slots, corrections, charged }));
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
    return (await this.#options.backend.list()).flatMap((status) => {
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

  #renew(): void {
    if (this.#open.size === 0) this.close();
    this.#send(this.#options.backend.renew(listLeases(this.#open)));
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
  consumed: readonly Consumed[] = [];
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

const nameRequests = (key: string): string => `requests ${key}`;

/**
 * What a request needs of the rates of its key. One that needs more tokens than the whole limit is admitted when nothing
 * else was used; its real use counts later.
 */
function listRates({ demand, rules: { key, requestsPerMinute, tokensPerMinute } }: AdmissionRequest): RateClaim[] {
  const rates: RateClaim[] = [];
  if (requestsPerMinute !== null) rates.push({ counter: nameRequests(key), amount: 1, limit: requestsPerMinute });
  if (tokensPerMinute !== null && demand && typeof demand !== 'string')
    rates.push({ counter: `tokens ${key}`, amount: Math.min(demand.tokens, tokensPerMinute), limit: tokensPerMinute });
  return rates;
}

/** The most that a request can cost, or why that is not known. */
function readCost(demand: Demand | string): number | LimitRefusal {
  if (typeof demand === 'string') return refuseUncounted(demand);
  const { micros, unpriced } = demand;
  if (typeof micros !== 'number') return refuseUnpriced(micros);
  return unpriced !== undefined && micros > 0 ? refuseUnknownPrice(unpriced) : micros;
}

/** The refusal of the last counter that was checked. */
function refuseRate({ request, headers }: Admission, rates: readonly RateClaim[], states: readonly RateState[]): LimitRefusal {
  const claim = rates[states.length - 1];
  const state = states.at(-1);
  if (!claim || !state) throw new Error('a rate was refused without its state');
  const { demand, rules } = request;
  if (claim.counter === nameRequests(rules.key)) return refuseRequests(claim.limit, state, headers);
  const needed = demand && typeof demand !== 'string' ? demand.tokens : claim.amount;
  return refuseTokens(claim.limit, needed, state, headers);
}

/** A refused request does not count as one; tokens are replaced by what was used, if that is known. */
function listCorrections(key: string, consumed: readonly Consumed[], used: Used): Correction[] {
  return consumed.flatMap(({ counter, period, amount }) => {
    const isRequest = counter === nameRequests(key);
    const real = isRequest ? (used === NOTHING_USED ? 0 : amount) : (used.tokens ?? amount);
    return real === amount ? [] : [{ counter, period, by: real - amount }];
  });
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
