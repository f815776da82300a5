/** The writing side of the ledger on PostgreSQL: batches, recovery after a crash of any node, and folding of roll-ups. */
import type { Pool, PoolClient } from 'pg';
import { type Boot, type Operation, type OperationKind, RECOVERY_ROWS, type RejectedOperation } from '../operations.ts';
import { RollupChanges, type Share, type SummedRow } from '../rollups.ts';
import type { SqlValue } from '../rows.ts';
import { isRejection, type Patience, toStoreError, transact } from './connection.ts';
import {
  ADD_TO_ROLLUPS,
  CLOSE_ATTEMPTS,
  CLOSE_EXCHANGES,
  FOLD_ROLLUPS,
  ID_INDEX,
  READ_SHARES,
  STATEMENTS,
} from './statements.ts';

/** The order in which the kinds of a group are written: that of the life of an exchange. */
const KINDS = [
  'openExchange',
  'openAttempt',
  'reportProgress',
  'settleAttempt',
  'settleExchange',
] as const satisfies readonly OperationKind[];

/** Rows of roll-ups that one statement folds. */
const FOLD_ROWS = 5000;

/** Writes batches of operations, each batch in one transaction with its roll-ups. */
export class PostgresLedger {
  readonly #pool: Pool;
  readonly #boot: Boot;
  readonly #patience: Patience;

  constructor(pool: Pool, boot: Boot, patience: Patience) {
    this.#pool = pool;
    this.#boot = boot;
    this.#patience = patience;
  }

  /**
   * Writes all operations or none. Rejects when the database is away, slow or failing: whether the transaction was committed may be
   * unknown then, and the same batch is written again, which changes nothing. An operation that can never be written is left out and
   * returned, so that it does not hold up the others.
   */
  async write(operations: readonly Operation[]): Promise<RejectedOperation[]> {
    try {
      await this.#transact(async (client, changes) => {
        for (const group of splitIntoGroups(operations))
          for (const kind of KINDS) await this.#run(client, kind, group[kind], changes);
      });
      return [];
    } catch (error) {
      if (!isRejection(error)) throw toStoreError(error);
      return this.#writeOneByOne(operations);
    }
  }

  async #writeOneByOne(operations: readonly Operation[]): Promise<RejectedOperation[]> {
    const rejected: RejectedOperation[] = [];
    try {
      await this.#transact(async (client, changes) => {
        for (const [index, { kind, values }] of operations.entries()) {
          await client.query('SAVEPOINT operation');
          try {
            await this.#run(client, kind, [values], changes);
          } catch (error) {
            if (!isRejection(error)) throw error;
            await client.query('ROLLBACK TO operation');
            rejected.push({ index, message: error instanceof Error ? error.message : String(error) });
          }
          await client.query('RELEASE operation');
        }
      });
      return rejected;
    } catch (error) {
      throw toStoreError(error);
    }
  }

  #transact<Result>(work: (client: PoolClient, changes: RollupChanges) => Promise<Result>): Promise<Result> {
    return transact(this.#pool, this.#patience, async (client) => {
      const changes = new RollupChanges();
      const result = await work(client, changes);
      const rows = [...changes.rows()];
      if (rows.length > 0) await client.query(ADD_TO_ROLLUPS, [JSON.stringify(rows), this.#boot.boot]);
      return result;
    });
  }

  async #run(client: PoolClient, kind: OperationKind, rows: readonly Values[], changes: RollupChanges): Promise<void> {
    if (rows.length === 0) return;
    const { boot, node } = this.#boot;
    const ids = rows.map((values) => String(values[ID_INDEX[kind]])).sort();
    const bounds = [ids[0], ids.at(-1)];
    const others = kind === 'openExchange' ? [boot, node] : kind === 'openAttempt' ? [...bounds, boot] : bounds;
    const result = await client.query<SummedRow>(STATEMENTS[kind], [JSON.stringify(rows), ...others]);
    if (kind === 'settleExchange') await sumExchanges(client, result.rows, changes);
  }

  /** Closes what runs that have ended left open, in small transactions. Returns how many exchanges. Safe to repeat, on any node. */
  async closeAbandoned(now: number): Promise<number> {
    let closed = 0;
    // Attempts first, so that no closed exchange is seen with an open attempt. Not in one transaction: a node that was only slow locks them
    // in this order.
    await this.#transact((client) => client.query(CLOSE_ATTEMPTS));
    for (let count = RECOVERY_ROWS; count === RECOVERY_ROWS; closed += count) count = await this.#closeExchanges(now);
    return closed;
  }

  #closeExchanges(now: number): Promise<number> {
    return this.#transact(async (client, changes) => {
      const { rows } = await client.query<SummedRow>(CLOSE_EXCHANGES, [now, RECOVERY_ROWS]);
      await sumExchanges(client, rows, changes);
      return rows.length;
    });
  }

  /** Adds the roll-ups of a run that has ended to those of all such runs. Returns when none are left. */
  async fold(boot: string): Promise<void> {
    const foldSome = (client: PoolClient) => client.query(FOLD_ROLLUPS, [boot, FOLD_ROWS]);
    for (let count = 1; count > 0; ) count = (await transact(this.#pool, this.#patience, foldSome)).rowCount ?? 0;
  }
}

/** Adds exchanges to the roll-ups. What those with several attempts have used is read by attempt: most have one. */
async function sumExchanges(client: PoolClient, rows: readonly SummedRow[], changes: RollupChanges): Promise<void> {
  const ids = rows
    .filter(({ attempts }) => attempts > 1)
    .map(({ id }) => id)
    .sort();
  const shares = new Map<string, Share[]>();
  if (ids.length > 0) {
    const found = await client.query<Share & { exchange_id: string }>(READ_SHARES, [ids, ids[0], ids.at(-1)]);
    for (const share of found.rows) shares.set(share.exchange_id, [...(shares.get(share.exchange_id) ?? []), share]);
  }
  for (const row of rows) changes.add(row, shares.get(row.id));
}

type Values = readonly SqlValue[];

type Group = Record<OperationKind, Values[]>;

/**
 * Splits a batch so that the kinds of a group can be written one after the other: in a group, the operations of an exchange are of
 * different kinds, in the order of `KINDS`.
 */
export function splitIntoGroups(operations: readonly Operation[]): Group[] {
  let group = createGroup();
  const groups = [group];
  const ranks = new Map<SqlValue | undefined, number>();
  for (const { kind, values } of operations) {
    const id = values[ID_INDEX[kind]];
    const rank = KINDS.indexOf(kind);
    if (rank <= (ranks.get(id) ?? -1)) {
      group = createGroup();
      groups.push(group);
      ranks.clear();
    }
    ranks.set(id, rank);
    group[kind].push(values);
  }
  return groups;
}

const createGroup = (): Group => ({
  openExchange: [],
  openAttempt: [],
  reportProgress: [],
  settleAttempt: [],
  settleExchange: [],
});
