/** Ledgers in this process, without workers, and what their tables must hold. */
import { rmSync } from 'node:fs';
import { describe, type TestOptions } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { openStore } from '../../src/store/index.ts';
import type { Boot, Operation, RejectedOperation } from '../../src/store/operations.ts';
import { createPool, createKysely as createPostgresKysely, PATIENCE } from '../../src/store/postgres/connection.ts';
import { PostgresLedger } from '../../src/store/postgres/ledger.ts';
import { migratePostgres } from '../../src/store/postgres/store.ts';
import { Queries } from '../../src/store/queries.ts';
import type { ExchangeSettlement } from '../../src/store/rows.ts';
import {
  type AttemptOpening,
  type AttemptProgress,
  type AttemptSettlement,
  type ExchangeOpening,
  listAttempt,
  listAttemptSettlement,
  listExchangeSettlement,
  listOpening,
  listProgress,
} from '../../src/store/rows.ts';
import { migrate } from '../../src/store/schema.ts';
import { type Database, openWriter, UNGUARDED } from '../../src/store/sqlite/database.ts';
import { createKysely } from '../../src/store/sqlite/kysely.ts';
import { type Recovery, SqliteLedger } from '../../src/store/sqlite/ledger.ts';
import { afterFile, afterTest } from '../real-parts/cleanups.ts';
import { PostgresServer } from '../real-parts/postgres.js';
import { createTestFolder } from '../real-parts/programs.js';

// ---- engines: every test of a ledger runs on both databases

/** The databases that a ledger can be on. */
export type Engine = 'SQLite' | 'PostgreSQL';

/** All of them, with the options of their tests. */
export const ENGINES: readonly (readonly [Engine, TestOptions])[] = [
  ['SQLite', {}],
  ['PostgreSQL', needs('postgres')],
];

/** The tests of each database; `%s` in the name is the database. */
export function describeEngines(name: string, define: (engine: Engine) => void): void {
  for (const [engine, options] of ENGINES) describe(name.replace('%s', engine), options, () => define(engine));
}

let server: Promise<PostgresServer> | undefined;

/** The PostgreSQL server of this thread, which all of its test files use. It ends with the tests. */
export function startPostgres(): Promise<PostgresServer> {
  server ??= PostgresServer.start();
  return server;
}

/** The address of a new and empty PostgreSQL database. */
export const createAddress = (): Promise<string> => createDatabase();

async function createDatabase(template?: string): Promise<string> {
  const postgres = await startPostgres();
  const address = await postgres.createDatabase(template);
  afterFile(() => postgres.dropDatabase(address));
  return address;
}

/** Databases with all tables and no rows: a copy takes a third of the time that creating the tables does. */
const templates = new Map<'ledger' | 'store', Promise<string>>();

/** The address of a new PostgreSQL database without rows: with the tables alone, or with the partitions of a store that was open. */
export async function createTables(kind: 'ledger' | 'store' = 'store'): Promise<string> {
  const template = templates.get(kind) ?? createTemplate(kind);
  templates.set(kind, template);
  return createDatabase(await template);
}

async function createTemplate(kind: 'ledger' | 'store'): Promise<string> {
  const url = await (await startPostgres()).createDatabase();
  if (kind === 'store') {
    await (await openStore({ folder: null, url })).close();
    await (await startPostgres()).query(url, 'DELETE FROM boots');
  } else {
    const pool = createPool(url, 1);
    await migratePostgres(createPostgresKysely(pool));
    await pool.end();
  }
  return url;
}

/** A new folder, deleted after the test. */
export function createFolder(): string {
  const folder = createTestFolder('store');
  afterTest(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

type Row = Record<string, unknown>;

/** A run of a gateway on a database. */
export interface TestLedger {
  readonly queries: Queries;
  write(operations: readonly Operation[]): Promise<RejectedOperation[]>;
  /** Begins this run, and closes what all others left open. */
  recover(now: number): Promise<Recovery>;
  end(now: number): Promise<void>;
  /** A later run on the same database. */
  next(boot: string): TestLedger;
  /** The rows of a query. */
  all(text: string): Promise<Row[]>;
  /** Deletes all rows. */
  clear(): Promise<void>;
}

/** A ledger on a new database, of the run `boot`. */
export async function createLedger(engine: Engine, boot = 'boot-1'): Promise<TestLedger> {
  const ledger = await (engine === 'SQLite' ? createSqliteLedger(boot) : createPostgresLedger(boot));
  await ledger.recover(0);
  return ledger;
}

/** A database in memory with the newest schema. */
async function createSqliteLedger(boot: string): Promise<TestLedger> {
  const db = openWriter(':memory:');
  afterTest(() => db.isOpen && db.close());
  await migrate(createKysely(db, UNGUARDED), 0);
  return wrapSqlite(db, { boot, node: 'node' });
}

function wrapSqlite(db: Database, boot: Boot): TestLedger {
  const ledger = new SqliteLedger(db, boot);
  return {
    queries: new Queries(createKysely(db, UNGUARDED)),
    write: async (operations) => ledger.write(operations),
    recover: async (now) => ledger.recover(now),
    end: async (now) => ledger.end(now),
    next: (next) => wrapSqlite(db, { ...boot, boot: next }),
    all: async (text) => readRows(db, text),
    clear: async () => db.exec(DELETE_ALL),
  };
}

const DELETE_ALL = ['exchanges', 'attempts', 'usage_rollups', 'boots'].map((table) => `DELETE FROM ${table};`).join('');

async function createPostgresLedger(boot: string): Promise<TestLedger> {
  const pool = createPool(await createTables('ledger'), 2);
  afterTest(() => pool.end());
  return wrapPostgres(pool, { boot, node: 'node' });
}

function wrapPostgres(pool: ReturnType<typeof createPool>, boot: Boot): TestLedger {
  const ledger = new PostgresLedger(pool, boot, PATIENCE);
  return {
    queries: new Queries(createPostgresKysely(pool)),
    write: (operations) => ledger.write(operations),
    recover: async (now) => {
      const ended = await pool.query('UPDATE boots SET ended_ts = $1 WHERE ended_ts IS NULL AND id <> $2', [now, boot.boot]);
      await pool.query(
        'INSERT INTO boots (id, node_id, started_ts) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET ended_ts = NULL',
        [boot.boot, boot.node, now],
      );
      return { crashed: await ledger.closeAbandoned(now), isUnclean: ended.rowCount !== 0 };
    },
    end: async (now) => void (await pool.query('UPDATE boots SET ended_ts = $1 WHERE id = $2', [now, boot.boot])),
    next: (next) => wrapPostgres(pool, { ...boot, boot: next }),
    all: async (text) => (await pool.query(text)).rows,
    // For a few rows, TRUNCATE takes ten times as long.
    clear: async () => void (await pool.query(DELETE_ALL)),
  };
}

export const open = (row: ExchangeOpening): Operation => ({ kind: 'openExchange', values: listOpening(row) });

export const attempt = (row: AttemptOpening): Operation => ({ kind: 'openAttempt', values: listAttempt(row) });

export const progress = (row: AttemptProgress): Operation => ({ kind: 'reportProgress', values: listProgress(row) });

export const settleAttempt = (row: AttemptSettlement): Operation => ({
  kind: 'settleAttempt',
  values: listAttemptSettlement(row),
});

export const settle = (row: ExchangeSettlement): Operation => ({ kind: 'settleExchange', values: listExchangeSettlement(row) });

/** The rows of a query of SQLite. */
export const readRows = (db: Database, text: string): Row[] =>
  db
    .prepare(text)
    .all()
    .map((row) => ({ ...row }));

/** All rows of a table, in an order that both databases have. */
export const readTable = async (ledger: Pick<TestLedger, 'all'>, table: string): Promise<Row[]> => {
  const rows = await ledger.all(`SELECT * FROM ${table}`);
  const keys = new Map(rows.map((row) => [row, `${row['exchange_id'] ?? row['id']} ${row['number']} ${JSON.stringify(row)}`]));
  return rows.sort((a, b) => ((keys.get(a) ?? '') < (keys.get(b) ?? '') ? -1 : 1));
};

/** What the roll-ups hold, and what they must hold: the sums over all rows. */
export const readSums = async ({ all }: Pick<TestLedger, 'all'>) => ({
  stored: readRollups(await all('SELECT * FROM usage_rollups')),
  expected: sumExchanges(
    await all("SELECT * FROM exchanges WHERE state <> 'open'"),
    await all('SELECT * FROM attempts ORDER BY exchange_id, number'),
  ),
});

const TOKENS = [
  ...['input_tokens', 'cache_read_tokens', 'cache_creation_tokens', 'output_tokens', 'reasoning_tokens'],
  ...['input_audio_tokens', 'output_audio_tokens'],
];

/** The roll-ups by their number: length of the bucket, and columns. */
const EXPECTED_ROLLUPS: readonly [number, number, readonly string[]][] = [
  [1, 86_400_000, ['model', 'provider']],
  [2, 86_400_000, ['key_id']],
  [3, 86_400_000, ['key_id', 'model', 'provider']],
  [4, 3_600_000, ['key_id', 'model', 'provider']],
  [5, 86_400_000, ['tag']],
  [6, 86_400_000, ['tag', 'key_id', 'model', 'provider']],
  [7, 3_600_000, ['tag', 'key_id', 'model', 'provider']],
];

type Sums = Record<string, number>;

/** Sums the settled rows the slow way: the oracle of the roll-ups. */
function sumExchanges(rows: readonly Row[], attempts: readonly Row[]): Record<string, Sums> {
  const expected: Record<string, Sums> = {};
  for (const row of rows) {
    const sums: Sums = {};
    const own = Number(row['attempts']) > 1 ? attempts.filter(({ exchange_id }) => exchange_id === row['id']) : [];
    addRow(sums, row, own);
    // An attempt at another target has used its part there.
    for (const attempt of own) {
      const { model, provider } = attempt;
      if (model === row['model'] && provider === row['provider']) continue;
      const part: Sums = Object.fromEntries(Object.keys(sums).map((name) => [name, 0]));
      for (const name of [...TOKENS, 'cost_micros']) {
        part[name] = Math.min(Number(attempt[name] ?? 0), sums[name] ?? 0);
        sums[name] = (sums[name] ?? 0) - part[name];
      }
      if (Object.values(part).some((value) => value > 0)) addToRollups(expected, { ...row, model, provider }, part);
    }
    addToRollups(expected, row, sums);
  }
  return expected;
}

function addToRollups(expected: Record<string, Sums>, row: Row, sums: Sums): void {
  const tags: string[] = JSON.parse(String(row['tags']));
  for (const [rollup, ms, columns] of EXPECTED_ROLLUPS)
    for (const tag of columns.includes('tag') ? tags : ['']) {
      const values = ['tag', 'key_id', 'model', 'provider'].map((column) =>
        columns.includes(column) ? (column === 'tag' ? tag : (row[column] ?? '')) : '',
      );
      const key = JSON.stringify([rollup, Math.floor(Number(row['ts']) / ms), ...values]);
      const known = expected[key] ?? {};
      expected[key] = known;
      for (const [name, value] of Object.entries(sums)) known[name] = (known[name] ?? 0) + value;
    }
}

function addRow(sums: Sums, row: Row, attempts: readonly Row[]): void {
  const numberOf = (name: string): number => Number(row[name] ?? 0);
  const isAborted = row['ending'] === 'client_aborted' || row['ending'] === 'client_stalled';
  const isOk = row['ending'] === 'answered' && numberOf('http_status') < 400;
  const add = (name: string, value: number): void => {
    sums[name] = (sums[name] ?? 0) + value;
  };
  add('requests', 1);
  add('errors', isAborted || isOk ? 0 : 1);
  add('aborted', isAborted ? 1 : 0);
  add('attempts', numberOf('attempts'));
  const costs = attempts.filter((attempt) => attempt['input_tokens'] !== null || attempt['output_tokens'] !== null);
  const isUnpriced = [row, ...costs].some((part) => part['cost_micros'] === null);
  add('unpriced', numberOf('attempts') > 0 && isUnpriced ? 1 : 0);
  add('uncertain', ['estimated', 'uncertain'].includes(String(row['provenance'])) ? 1 : 0);
  for (const name of [...TOKENS, 'cost_micros', 'assumed_micros', 'total_ms']) add(name, numberOf(name));
}

/** The roll-ups of the database, in the form of `sumExchanges`. Several nodes may have a part of one. */
function readRollups(rows: readonly Row[]): Record<string, Sums> {
  const stored: Record<string, Sums> = {};
  for (const { rollup, bucket, tag, key_id, model, provider, shard, ...sums } of rows) {
    const key = JSON.stringify([rollup, bucket, tag, key_id, model, provider]);
    const known = stored[key] ?? {};
    stored[key] = known;
    for (const [name, value] of Object.entries(sums)) known[name] = (known[name] ?? 0) + Number(value);
  }
  return stored;
}
