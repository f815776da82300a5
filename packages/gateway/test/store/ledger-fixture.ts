/** Ledgers in this process, without workers, and what their tables must hold. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from 'vitest';
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
import { type Operation, SqliteLedger } from '../../src/store/sqlite/ledger.ts';

const cleanups: (() => void)[] = [];

afterEach(() => {
  for (const clean of cleanups.splice(0)) clean();
});

/** A new folder, deleted after the test. */
export function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-store-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A database in memory with the newest schema. */
async function createDatabase(): Promise<Database> {
  const db = openWriter(':memory:');
  cleanups.push(() => db.isOpen && db.close());
  await migrate(createKysely(db, UNGUARDED), 0);
  return db;
}

/** A ledger in memory, of the run `boot`. */
export async function createLedger(boot = 'boot-1'): Promise<{ db: Database; ledger: SqliteLedger; queries: Queries }> {
  const db = await createDatabase();
  const ledger = new SqliteLedger(db, { boot, node: 'node' });
  ledger.recover(0);
  return { db, ledger, queries: new Queries(createKysely(db, UNGUARDED)) };
}

export const open = (row: ExchangeOpening): Operation => ({ kind: 'openExchange', values: listOpening(row) });

export const attempt = (row: AttemptOpening): Operation => ({ kind: 'openAttempt', values: listAttempt(row) });

export const progress = (row: AttemptProgress): Operation => ({ kind: 'reportProgress', values: listProgress(row) });

export const settleAttempt = (row: AttemptSettlement): Operation => ({
  kind: 'settleAttempt',
  values: listAttemptSettlement(row),
});

export const settle = (row: ExchangeSettlement): Operation => ({ kind: 'settleExchange', values: listExchangeSettlement(row) });

/** All rows of a table. */
export const readTable = (db: Database, table: string): Record<string, unknown>[] =>
  db
    .prepare(`SELECT * FROM ${table} ORDER BY 1, 2`)
    .all()
    .map((row) => ({ ...row }));

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
export function sumExchanges(db: Database): Record<string, Sums> {
  const expected: Record<string, Sums> = {};
  for (const row of db.prepare("SELECT * FROM exchanges WHERE state <> 'open'").all()) {
    const tags: string[] = JSON.parse(row.tags);
    for (const [rollup, ms, columns] of EXPECTED_ROLLUPS) {
      for (const tag of columns.includes('tag') ? tags : ['']) {
        const values = ['tag', 'key_id', 'model', 'provider'].map((column) =>
          columns.includes(column) ? (column === 'tag' ? tag : (row[column] ?? '')) : '',
        );
        const key = JSON.stringify([rollup, Math.floor(row.ts / ms), ...values]);
        expected[key] ??= {};
        addRow(expected[key], row);
      }
    }
  }
  return expected;
}

function addRow(sums: Sums, row: Record<string, never>): void {
  const isAborted = row['ending'] === 'client_aborted' || row['ending'] === 'client_stalled';
  const isOk = row['ending'] === 'answered' && (row['http_status'] ?? 0) < 400;
  const add = (name: string, value: number): void => {
    sums[name] = (sums[name] ?? 0) + value;
  };
  add('requests', 1);
  add('errors', isAborted || isOk ? 0 : 1);
  add('aborted', isAborted ? 1 : 0);
  add('attempts', row['attempts'] ?? 0);
  add('unpriced', (row['attempts'] ?? 0) > 0 && row['cost_micros'] === null ? 1 : 0);
  add('uncertain', ['estimated', 'uncertain'].includes(row['provenance'] ?? '') ? 1 : 0);
  for (const name of [...TOKENS, 'cost_micros', 'assumed_micros', 'total_ms']) add(name, row[name] ?? 0);
}

/** The roll-ups of the database, in the form of `sumExchanges`. */
export function readRollups(db: Database): Record<string, Sums> {
  const stored: Record<string, Sums> = {};
  for (const { rollup, bucket, tag, key_id, model, provider, ...sums } of db.prepare('SELECT * FROM usage_rollups').all())
    stored[JSON.stringify([rollup, bucket, tag, key_id, model, provider])] = sums;
  return stored;
}
