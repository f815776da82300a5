/** Who sends a request, and what they may do. */

/** The holder of a client key. Everybody is `ANYBODY` on a gateway without client keys. */
export interface Caller {
  /** The public id of the key, as in the ledger. Never the secret or a part of it. */
  readonly id: string;
  /** The name that the operator gave the key. */
  readonly name: string;
  /** `team=a`: added to the tags of every request. */
  readonly tags: readonly string[];
  readonly policy: KeyPolicy;
}

/** What a key allows. */
export interface KeyPolicy {
  /** Names of models with at most one `*`; empty for all. */
  readonly models: readonly string[];
  readonly budgets: readonly Budget[];
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  /** Requests at the same time. */
  readonly concurrency: number | null;
  /** Milliseconds since 1970. */
  readonly expiresAt: number | null;
  /** Addresses and ranges (CIDR) that the key may be used from; empty for all. */
  readonly addresses: readonly string[];
}

/** How much may be spent in a period. */
export interface Budget {
  readonly micros: number;
  readonly period: 'day' | 'week' | 'month' | 'total';
}

/** No limits at all. */
export const UNLIMITED: KeyPolicy = {
  models: [],
  budgets: [],
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrency: null,
  expiresAt: null,
  addresses: [],
};

/** Every client of a gateway without client keys. */
export const ANYBODY: Caller = { id: '', name: '', tags: [], policy: UNLIMITED };
