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
  /** Takes one of `limit` slots for a member; false when all are taken. A slot is free again `LEASE_MS` after its last renewal. */
  acquire(slots: string, member: string, limit: number): Maybe<boolean>;
  /** Keeps slots and reservations of running requests for another `LEASE_MS`. */
  renew(leases: Iterable<Lease>): Maybe<void>;
  /** Frees the slot of a member. Has no effect when it is free. */
  release(slots: string, member: string): Maybe<void>;
  /** Adds an amount to a counter, unless it would exceed the limit. A counter starts again every `RATE_MS`. */
  consume(counter: string, amount: number, limit: number): Maybe<RateState>;
  /** Corrects what was consumed in a period of a counter. More than was consumed counts in the current period, if that is another. */
  correct(counter: string, period: number, by: number): Maybe<void>;
  /**
   * Reserves an amount in all accounts or in none; returns the first account that it does not fit in. Rejects when what an
   * account has spent cannot be read.
   */
  reserve(reservation: string, micros: number, accounts: readonly AccountLimit[]): Maybe<Shortage | undefined>;
  /** Raises a reservation to an amount; false when it does not fit. */
  raise(reservation: string, micros: number): Maybe<boolean>;
  /** Ends a reservation: charges what was spent to the windows that it was made in. Only the first call counts. */
  settle(reservation: string, charged: number): Maybe<void>;
  /** Reads what accounts have spent, so that their first request need not wait. */
  load(accounts: readonly AccountLimit[]): Promise<void>;
  /** All accounts in use. */
  list(): readonly AccountStatus[];
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
