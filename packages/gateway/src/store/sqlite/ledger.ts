/** The writing side of the ledger on one connection: batches, recovery after a crash, and pruning. Synchronous. */
import type { StatementSyncInstance } from '@photostructure/sqlite';
import { floorId } from '../ids.ts';
import {
  type Boot,
  type Operation,
  type OperationKind,
  PRUNE_ROWS,
  RECOVERY_ROWS,
  type RejectedOperation,
  SUMMED_COLUMNS,
} from '../operations.ts';
import { ROLLUP_KEY, RollupChanges, SHARED_COLUMNS, type Share, SUM_COLUMNS, type SummedRow } from '../rollups.ts';
import {
  ATTEMPT_COLUMNS,
  ATTEMPT_SETTLEMENT_COLUMNS,
  EXCHANGE_SETTLEMENT_COLUMNS,
  OPENING_COLUMNS,
  PROGRESS_COLUMNS,
  type SqlValue,
  TOKEN_COLUMNS,
  UPSTREAM_COLUMNS,
} from '../rows.ts';
import { type Database, RESULT, readResultCode } from './database.ts';

/** What recovery found. */
export interface Recovery {
  /** Exchanges that were open when an earlier run ended. */
  readonly crashed: number;
  /** An earlier run did not close the store. */
  readonly isUnclean: boolean;
}

/** What a writer found when it opened its folder. */
export interface Opening extends Recovery {
  /** Pages of the write-ahead log that were lost, because it was damaged. */
  readonly droppedPages: number;
}

/** Errors of the surroundings: the same batch may succeed later. */
const TRANSIENT: ReadonlySet<number | undefined> = new Set([
  RESULT.busy,
  RESULT.locked,
  RESULT.noMemory,
  RESULT.readOnly,
  RESULT.interrupted,
  RESULT.ioError,
  RESULT.full,
  RESULT.cannotOpen,
]);

/** Writes batches of operations, each batch in one transaction with its roll-ups. */
export class SqliteLedger {
  readonly #db: Database;
  readonly #boot: Boot;
  readonly #statements: Record<OperationKind, readonly StatementSyncInstance[]>;
  readonly #addToRollup: StatementSyncInstance;
  readonly #insertExchange: StatementSyncInstance;
  readonly #insertAttempt: StatementSyncInstance;
  readonly #readShares: StatementSyncInstance;

  constructor(db: Database, boot: Boot) {
    this.#db = db;
    this.#boot = boot;
    this.#statements = {
      openExchange: [db.prepare(OPEN_EXCHANGE)],
      openAttempt: [db.prepare(OPEN_ATTEMPT), db.prepare(MARK_ATTEMPT)],
      reportProgress: [db.prepare(REPORT_PROGRESS)],
      settleAttempt: [db.prepare(SETTLE_ATTEMPT)],
      settleExchange: [db.prepare(SETTLE_EXCHANGE)],
    };
    this.#addToRollup = db.prepare(ADD_TO_ROLLUP);
    this.#insertExchange = db.prepare(INSERT_EXCHANGE);
    this.#insertAttempt = db.prepare(INSERT_ATTEMPT);
    this.#readShares = db.prepare(READ_SHARES);
  }

  /**
   * Writes all operations or none. Throws when the database is busy, full or failing. An operation that can never be written is left
   * out and returned, so that it does not hold up the others.
   */
  write(operations: readonly Operation[]): RejectedOperation[] {
    try {
      this.#transact((changes) => {
        for (const life of groupByExchange(operations)) this.#runAll(life, changes);
      });
      return [];
    } catch (error) {
      if (TRANSIENT.has(readResultCode(error))) throw error;
      return this.#writeOneByOne(operations);
    }
  }

  #writeOneByOne(operations: readonly Operation[]): RejectedOperation[] {
    const rejected: RejectedOperation[] = [];
    this.#transact((changes) => {
      for (const [index, operation] of operations.entries()) {
        this.#db.exec('SAVEPOINT operation');
        try {
          this.#run(operation, changes);
        } catch (error) {
          if (TRANSIENT.has(readResultCode(error))) throw error;
          this.#db.exec('ROLLBACK TO operation');
          rejected.push({ index, message: error instanceof Error ? error.message : String(error) });
        }
        this.#db.exec('RELEASE operation');
      }
    });
    return rejected;
  }

  /** One transaction. On a full disk SQLite has already rolled back, and a second ROLLBACK would hide the error. */
  #transact<Result>(work: (changes: RollupChanges) => Result): Result {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      const changes = new RollupChanges();
      const result = work(changes);
      for (const row of changes.rows()) this.#addToRollup.run(...row);
      this.#db.exec('COMMIT');
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  /**
   * The operations of one exchange. What was opened and settled within the batch, as most short exchanges are, is inserted as it is at
   * its end: two statements instead of five.
   */
  #runAll(operations: readonly Operation[], changes: RollupChanges): void {
    const life = readLife(operations);
    if (!life || !this.#insertExchange.run(...life.exchange, this.#boot.boot, this.#boot.node).changes) {
      // Not the whole life, or an earlier batch has written a part of it.
      for (const operation of operations) this.#run(operation, changes);
      return;
    }
    for (const attempt of life.attempts) this.#insertAttempt.run(...attempt, this.#boot.boot);
    this.#sum(pickSummed(life.exchange), changes);
  }

  #sum(row: SummedRow, changes: RollupChanges): void {
    const shares: Share[] = row.attempts > 1 ? this.#readShares.all(row.id) : [];
    changes.add(row, shares);
  }

  #run({ kind, values }: Operation, changes: RollupChanges): void {
    const [first, second] = this.#statements[kind];
    switch (kind) {
      case 'openExchange':
        first?.run(...values, this.#boot.boot, this.#boot.node);
        return;
      case 'openAttempt':
        if (first?.run(...values, this.#boot.boot).changes) second?.run(...pickMark(values));
        return;
      case 'reportProgress':
        first?.run(...repeatCounts(values));
        return;
      case 'settleAttempt':
        first?.run(...values);
        return;
      case 'settleExchange': {
        const row: SummedRow | undefined = first?.get(...values);
        if (row) this.#sum(row, changes);
      }
    }
  }

  /** Records this run, and closes what earlier runs left open. Safe to repeat. */
  recover(now: number): Recovery {
    const { boot, node } = this.#boot;
    const unended = this.#db.prepare('SELECT id FROM boots WHERE ended_ts IS NULL AND id <> ?').all(boot);
    let crashed = 0;
    // In small batches, so that a crash with many open rows does not need one large transaction.
    for (let count = RECOVERY_ROWS; count === RECOVERY_ROWS; crashed += count) count = this.#closeExchanges(boot, now);
    this.#transact(() => {
      this.#db.prepare(CLOSE_ATTEMPTS).run(boot);
      this.#db.prepare('UPDATE boots SET ended_ts = ? WHERE ended_ts IS NULL AND id <> ?').run(now, boot);
      this.#db
        .prepare('INSERT INTO boots (id, node_id, started_ts) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING')
        .run(boot, node, now);
    });
    return { crashed, isUnclean: unended.length > 0 };
  }

  #closeExchanges(boot: string, now: number): number {
    return this.#transact((changes) => {
      const rows: SummedRow[] = this.#db.prepare(CLOSE_EXCHANGES).all(now, boot, RECOVERY_ROWS);
      for (const row of rows) this.#sum(row, changes);
      return rows.length;
    });
  }

  /** Records that this run ended in order. */
  end(now: number): void {
    this.#db.prepare('UPDATE boots SET ended_ts = ? WHERE id = ?').run(now, this.#boot.boot);
  }

  /** Deletes up to `limit` settled exchanges from before this time, with their attempts. Returns how many. Roll-ups stay. */
  prune(before: number, limit: number = PRUNE_ROWS): number {
    return this.#deleteOldest(floorId(before), limit);
  }

  /** Deletes the oldest settled exchanges beyond `max`, up to `limit`. Returns how many. */
  pruneTo(max: number, limit: number = PRUNE_ROWS): number {
    const newest = this.#db.prepare('SELECT id FROM exchanges ORDER BY id DESC LIMIT 1 OFFSET ?').get(max - 1);
    return newest === undefined ? 0 : this.#deleteOldest(newest.id, limit);
  }

  #deleteOldest(below: string, limit: number): number {
    return this.#transact(() => {
      const ids = this.#db.prepare(DELETE_OLDEST).all(below, limit);
      const deleteAttempts = this.#db.prepare('DELETE FROM attempts WHERE exchange_id = ?');
      for (const { id } of ids) deleteAttempts.run(id);
      return ids.length;
    });
  }

  /** Moves the write-ahead log into the database and empties it, which frees its space. */
  checkpoint(): void {
    this.#db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all();
  }
}

/** The exchanges of a batch, each with its operations in their order. */
function groupByExchange(operations: readonly Operation[]): Iterable<Operation[]> {
  const groups = new Map<SqlValue | undefined, Operation[]>();
  for (const operation of operations) {
    const id = operation.values.at(ID_POSITIONS[operation.kind]);
    const group = groups.get(id);
    if (group) group.push(operation);
    else groups.set(id, [operation]);
  }
  return groups.values();
}

/** Where the values of an operation have the id of its exchange; from the end when negative. */
const ID_POSITIONS = {
  openExchange: 0,
  openAttempt: 0,
  reportProgress: -2,
  settleAttempt: -2,
  settleExchange: -1,
} as const satisfies Record<OperationKind, number>;

/** A whole exchange: values for `INSERT_EXCHANGE` and `INSERT_ATTEMPT`, without the boot. */
interface Life {
  readonly exchange: SqlValue[];
  readonly attempts: SqlValue[][];
}

/** An exchange from its opening to its settlement, with all attempts settled; undefined when the operations are not that. */
function readLife(operations: readonly Operation[]): Life | undefined {
  const [opening] = operations;
  const settlement = operations.at(-1);
  if (opening?.kind !== 'openExchange' || settlement?.kind !== 'settleExchange') return undefined;
  const attempts = new Map<SqlValue | undefined, { opened: readonly SqlValue[]; settled: readonly SqlValue[] | undefined }>();
  for (const { kind, values } of operations.slice(1, -1)) {
    const known = attempts.get(kind === 'openAttempt' ? values[1] : values.at(-1));
    if (kind === 'openAttempt' && !known) attempts.set(values[1], { opened: values, settled: undefined });
    else if (kind === 'settleAttempt' && known) known.settled ??= values;
    // A settlement replaces what was reported before.
    else if (kind !== 'reportProgress') return undefined;
  }
  const rows = [...attempts.values()];
  if (!rows.every(({ settled }) => settled)) return undefined;
  const last = rows.toSorted((a, b) => Number(a.opened[1]) - Number(b.opened[1])).at(-1)?.opened;
  const [, number = 0, , ...upstream] = last ?? [];
  const settled = settlement.values.slice(0, -1);
  for (const [index, name] of upstream.entries()) settled[UPSTREAM_PLACE + index] ??= name;
  return {
    exchange: [...opening.values, number, ...settled],
    attempts: rows.map(({ opened, settled = [] }) => [...opened, ...settled.slice(0, -2)]),
  };
}

/** Where the values of a settlement name the upstream, in the order of those of an attempt. */
const UPSTREAM_PLACE = EXCHANGE_SETTLEMENT_COLUMNS.indexOf(UPSTREAM_COLUMNS[0] ?? '');

/** Until an exchange is settled, its last attempt names its upstream: provider, protocol, model, number, twice for the guard, and the id. */
const pickMark = ([
  id = null,
  number = null,
  ,
  provider = null,
  protocol = null,
  model = null,
]: readonly SqlValue[]): SqlValue[] => [provider, protocol, model, number, id, number];

/** Each count is bound twice, for `raise`. */
const repeatCounts = (values: readonly SqlValue[]): SqlValue[] =>
  values.flatMap((value, index) => (index < PROGRESS_COLUMNS.length ? [value, value] : [value]));

const marks = (count: number): string => Array(count).fill('?').join(', ');

const assign = (columns: readonly string[]): string => columns.map((column) => `${column} = ?`).join(', ');

/** Takes the larger of both values: the same after any number of repetitions, in any order. */
const raise = (column: string): string =>
  `${column} = CASE WHEN ${column} IS NULL OR ${column} < ? THEN coalesce(?, ${column}) ELSE ${column} END`;

const OPEN_EXCHANGE = `INSERT INTO exchanges (${OPENING_COLUMNS.join(', ')}, boot_id, node_id)
  VALUES (${marks(OPENING_COLUMNS.length + 2)}) ON CONFLICT (id) DO NOTHING`;

const OPEN_ATTEMPT = `INSERT INTO attempts (${ATTEMPT_COLUMNS.join(', ')}, boot_id)
  VALUES (${marks(ATTEMPT_COLUMNS.length + 1)}) ON CONFLICT (exchange_id, number) DO NOTHING`;

const MARK_ATTEMPT = `UPDATE exchanges SET provider = ?, upstream_protocol = ?, model = ?, attempts = ?
  WHERE id = ? AND state = 'open' AND attempts < ?`;

const REPORT_PROGRESS = `UPDATE attempts SET ${PROGRESS_COLUMNS.map(raise).join(', ')}
  WHERE exchange_id = ? AND number = ? AND state = 'open'`;

const SETTLE_ATTEMPT = `UPDATE attempts SET state = 'settled', ${assign(ATTEMPT_SETTLEMENT_COLUMNS)}
  WHERE exchange_id = ? AND number = ? AND state = 'open'`;

const replace = (column: string): string =>
  UPSTREAM_COLUMNS.includes(column) ? `${column} = coalesce(?, ${column})` : `${column} = ?`;

const SETTLE_EXCHANGE = `UPDATE exchanges SET state = 'settled', ${EXCHANGE_SETTLEMENT_COLUMNS.map(replace).join(', ')}
  WHERE id = ? AND state = 'open' RETURNING ${SUMMED_COLUMNS.join(', ')}`;

/** The columns of `Life.exchange`, in their order. */
const LIFE_COLUMNS: readonly string[] = [...OPENING_COLUMNS, 'attempts', ...EXCHANGE_SETTLEMENT_COLUMNS];

/** Where `Life.exchange` has the columns that roll-ups are computed from. */
const SUMMED_PLACES = SUMMED_COLUMNS.filter((column) => column !== 'state').map((column) => ({
  column,
  place: LIFE_COLUMNS.indexOf(column),
}));

/** What the roll-ups need of an exchange that is inserted whole. The database could return the same, in 5 us more. */
function pickSummed(values: readonly SqlValue[]): SummedRow {
  const row: Record<string, SqlValue | undefined> = { state: 'settled' };
  for (const { column, place } of SUMMED_PLACES) row[column] = values[place];
  // The columns are those of a `SummedRow`, and the values those of its columns.
  return row as unknown as SummedRow;
}

const INSERT_EXCHANGE = insertSettled('exchanges', [...LIFE_COLUMNS, 'boot_id', 'node_id'], 'ON CONFLICT (id) DO NOTHING');

const INSERT_ATTEMPT = insertSettled(
  'attempts',
  [...ATTEMPT_COLUMNS, ...ATTEMPT_SETTLEMENT_COLUMNS, 'boot_id'],
  'ON CONFLICT (exchange_id, number) DO NOTHING',
);

function insertSettled(table: string, columns: readonly string[], conflict: string): string {
  return `INSERT INTO ${table} (state, ${columns.join(', ')}) VALUES ('settled', ${marks(columns.length)}) ${conflict}`;
}

const READ_SHARES = `SELECT model, provider, ${SHARED_COLUMNS.join(', ')} FROM attempts WHERE exchange_id = ? ORDER BY number`;

const sumAttempts = (column: string): string =>
  `${column} = (SELECT sum(attempts.${column}) FROM attempts WHERE attempts.exchange_id = exchanges.id)`;

/** What was sent to an upstream may be charged. The usage is what the attempts had reported until the crash. */
const CLOSE_EXCHANGES = `UPDATE exchanges SET state = 'crashed', ending = 'crashed', provenance = 'uncertain', settled_ts = ?,
    possibly_billed = CASE WHEN attempts > 0 THEN 1 ELSE 0 END, ${[...TOKEN_COLUMNS, 'cost_micros'].map(sumAttempts).join(', ')}
  WHERE id IN (SELECT id FROM exchanges WHERE state = 'open' AND boot_id <> ? LIMIT ?) RETURNING ${SUMMED_COLUMNS.join(', ')}`;

const CLOSE_ATTEMPTS = `UPDATE attempts SET state = 'crashed', ending = 'crashed', provenance = 'uncertain', possibly_billed = 1
  WHERE state = 'open' AND boot_id <> ?`;

const ADD_TO_ROLLUP = `INSERT INTO usage_rollups (${[...ROLLUP_KEY, ...SUM_COLUMNS].join(', ')})
  VALUES (${marks(ROLLUP_KEY.length + SUM_COLUMNS.length)}) ON CONFLICT (${ROLLUP_KEY.join(', ')})
  DO UPDATE SET ${SUM_COLUMNS.map((column) => `${column} = usage_rollups.${column} + excluded.${column}`).join(', ')}`;

/** Open exchanges are kept: they still change. */
const DELETE_OLDEST = `DELETE FROM exchanges
  WHERE id IN (SELECT id FROM exchanges WHERE id < ? AND state <> 'open' ORDER BY id LIMIT ?) RETURNING id`;
