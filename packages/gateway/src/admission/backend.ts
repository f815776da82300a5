/** Where the state of limits is kept: what the gate needs, whether it is in memory or shared by several gateways. */

import type { Budget } from '../keys/caller.ts';
import type { Window } from './windows.ts';

/** Memory answers at once, a shared backend later. */
export type Maybe<T> = T | Promise<T>;

/** Continues with a value without waiting when it is there: a needless `await` costs every request a turn. */
export const proceed = <T, U>(value: Maybe<T>, next: (value: T) => Maybe<U>): Maybe<U> =>
  value instanceof Promise ? value.then(next) : next(value);

/** Concurrency, rates and budgets. Every method is atomic. */
export interface LimitBackend {
  /**
   * Takes everything that a request needs, or nothing. A slot and a reservation end `LEASE_MS` after their last renewal.
   * Rejects when what an account has spent cannot be read.
   */
  take(claim: Claim): Maybe<Taken>;
  /** Raises a reservation to an amount; false when it does not fit. */
  raise(member: string, micros: number): Maybe<boolean>;
  /** A request has ended: gives back what it holds, and charges what it has spent. Only the first charge counts. */
  end(ending: Ending): Maybe<void>;
  /** Keeps slots and reservations of running requests for another `LEASE_MS`. */
  renew(leases: Iterable<Lease>): Maybe<void>;
  /** Reads what accounts have spent, so that their first request need not wait. */
  load(accounts: readonly AccountLimit[]): Promise<void>;
  /** All accounts in use. */
  list(): Maybe<readonly AccountStatus[]>;
  /** Ends connections and timers. */
  close(): Maybe<void>;
}

/** What a request needs to be admitted, checked in this order. */
export interface Claim {
  /** The id of the request. */
  readonly member: string;
  /** One of `limit` slots. */
  readonly slots?: { readonly name: string; readonly limit: number } | undefined;
  /** At most two: requests and tokens. */
  readonly rates: readonly RateClaim[];
  /** Reserved in all accounts. */
  readonly money?: { readonly micros: number; readonly accounts: readonly AccountLimit[] } | undefined;
}

/** An amount for a counter, unless it would exceed the limit. A counter starts again every `RATE_MS`. */
export interface RateClaim {
  readonly counter: string;
  readonly amount: number;
  readonly limit: number;
}

/** The result of a claim. Unless it is `taken`, the request holds nothing. */
export interface Taken {
  readonly result: 'taken' | 'no slot' | 'over rate' | Shortage;
  /** The counters that were checked; after `over rate`, the last of them refused. */
  readonly rates: readonly RateState[];
}

/** What a request gives back when it ends. */
export interface Ending {
  readonly member: string;
  readonly slots?: string | undefined;
  readonly corrections: readonly Correction[];
  /** What it has cost, in the windows that it was reserved in; undefined without a reservation. */
  readonly charged?: number | undefined;
}

/** Corrects what was consumed in a period of a counter. More than was consumed counts in the current period, if that is another. */
export interface Correction {
  readonly counter: string;
  readonly period: number;
  readonly by: number;
}

/** A slot or reservation that a running request holds. */
export interface Lease {
  readonly member: string;
  /** Undefined without a slot. */
  readonly slots: string | undefined;
}

/** How long a slot is held for a request that nobody renews: its gateway has crashed. */
export const LEASE_MS = 30_000;

/** How often leases are renewed. */
export const RENEW_MS = 10_000;

/** The period of rates. */
export const RATE_MS = 60_000;

/** A counter after a request. */
export interface RateState {
  readonly isAllowed: boolean;
  /** Consumed in the current period. */
  readonly used: number;
  /** Identifies the period, for corrections. */
  readonly period: number;
  readonly resetsInMs: number;
}

/** Whose money an account counts, and for which period. */
export interface Account {
  readonly by: 'key' | 'tag';
  /** The id of the key, or the tag. */
  readonly of: string;
  /** The name of the key; the tag itself for tags. */
  readonly name: string;
  readonly period: Budget['period'];
}

/** A budget that applies to a request. */
export interface AccountLimit extends Account {
  readonly micros: number;
  /** The window of the time of admission. */
  readonly window: Window;
}

/** An account that an amount does not fit in. */
export interface Shortage {
  readonly account: AccountLimit;
  readonly spent: number;
  /** Held by requests that are running. */
  readonly reserved: number;
}

/** The state of an account in its newest window. */
export interface AccountStatus extends AccountLimit {
  readonly spent: number;
  readonly reserved: number;
}
