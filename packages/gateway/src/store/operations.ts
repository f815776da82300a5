/** What can be written to a ledger, whatever database is behind it. */
import { type SqlValue, TOKEN_COLUMNS } from './rows.ts';

/** What can be written. The values are those of the `list…` functions of `rows.ts`. */
export type OperationKind = 'openExchange' | 'openAttempt' | 'reportProgress' | 'settleAttempt' | 'settleExchange';

/** One write. Repeating it changes nothing. */
export interface Operation {
  readonly kind: OperationKind;
  readonly values: readonly SqlValue[];
}

/** An operation that the database rejects, and would reject again. */
export interface RejectedOperation {
  readonly index: number;
  readonly message: string;
}

/** This run of the gateway. */
export interface Boot {
  readonly boot: string;
  readonly node: string;
}

/** The columns of an exchange that its roll-ups are computed from. */
export const SUMMED_COLUMNS: readonly string[] = [
  ...['id', 'ts', 'state', 'ending', 'http_status', 'attempts', 'provenance', 'cost_micros', 'assumed_micros', 'total_ms'],
  ...['key_id', 'model', 'provider', 'tags', ...TOKEN_COLUMNS],
];

/** Rows that one transaction of a recovery closes: a crash with many open rows does not need one large transaction. */
export const RECOVERY_ROWS = 1000;

/** Rows that one transaction of pruning deletes. */
export const PRUNE_ROWS = 500;
