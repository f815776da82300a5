/** Copies a data folder to a PostgreSQL database: pages of rows, each compared with its source. Repeating it continues. */
import type { Pool, PoolClient } from 'pg';
import { StoreError } from './errors.ts';
import { createPool, isRejection, PATIENCE, toStoreError, transact } from './postgres/connection.ts';
import { Partitions } from './postgres/partitions.ts';
import { openPostgresStore } from './postgres/store.ts';
import { GRAIN_MS, ROLLUP_KEY, SUM_COLUMNS } from './rollups.ts';
import { type Database, openReader } from './sqlite/database.ts';
import { FolderLock, listFiles } from './sqlite/folder.ts';
import { openSqliteStore } from './sqlite/store.ts';

/** What to copy. */
export interface TransferOptions {
  readonly folder: string;
  /** The address of the database. */
  readonly url: string;
  /** Called after each page. */
  readonly onProgress?: (counts: TransferCounts) => void;
}

/** Rows that are in both places. */
export interface TransferCounts {
  exchanges: number;
  attempts: number;
  rollups: number;
  keys: number;
  audit: number;
  /** Rows that were not there before. */
  copied: number;
}

type Row = Record<string, string | number | null>;

const PAGE_ROWS = 1000;

/** Partitions that one transaction creates: each needs some locks of the server. */
const PAGE_DAYS = 10;

const LIMITS = { ...PATIENCE, statementMs: 600_000 };

/**
 * Copies everything, and checks that both places have the same number of rows and the same sums. Rejects while a gateway owns the
 * folder. The folder stays as it is.
 */
export async function transfer({ folder, url, onProgress }: TransferOptions): Promise<TransferCounts> {
  // Brings the tables to the newest version, and closes what a crash left open.
  await (await openSqliteStore({ folder, retentionDays: null, ballastBytes: 0 })).close();
  await (await openPostgresStore({ folder: null, url, retentionDays: null })).close();
  const now = Date.now();
  const lock = FolderLock.take(folder, `migrate-${now}`, now);
  const pool = createPool(url, 2, LIMITS);
  const source = openReader(listFiles(folder).database);
  try {
    return await new Transfer(source, pool, onProgress).run(now);
  } catch (error) {
    throw toStoreError(error);
  } finally {
    source.close();
    await pool.end();
    lock.release();
  }
}

class Transfer {
  readonly #source: Database;
  readonly #pool: Pool;
  readonly #onProgress: TransferOptions['onProgress'];
  readonly #counts: TransferCounts = { exchanges: 0, attempts: 0, rollups: 0, keys: 0, audit: 0, copied: 0 };

  constructor(source: Database, pool: Pool, onProgress: TransferOptions['onProgress']) {
    this.#source = source;
    this.#pool = pool;
    this.#onProgress = onProgress;
  }

  async run(now: number): Promise<TransferCounts> {
    await this.#copyKeys();
    await this.#copyAudit();
    await this.#createDays();
    await this.#copyBoots(now);
    await this.#copyLedger();
    await this.#copyRollups();
    return this.#counts;
  }

  #read(text: string, ...values: (string | number)[]): Row[] {
    return this.#source
      .prepare(text)
      .all(...values)
      .map((row) => ({ ...row }));
  }

  // ---- keys and the audit log

  async #copyKeys(): Promise<void> {
    const rows = this.#read('SELECT * FROM client_keys ORDER BY id');
    await this.#claimPepper(rows);
    for (const page of split(rows)) {
      await this.#insert('client_keys', page, 'ON CONFLICT (id) DO NOTHING').catch((error: unknown) => {
        throw isRejection(error)
          ? new StoreError('exists', 'the database has another key with the name of one of these keys; rename one of both', error)
          : error;
      });
      await this.#expectIds('client_keys', page);
      this.#report('keys', page.length);
    }
  }

  /** The gateways of the database must have the pepper of these keys. */
  async #claimPepper(keys: readonly Row[]): Promise<void> {
    const [pepper, other] = new Set(keys.filter((key) => key['revoked_ts'] === null).map((key) => key['pepper']));
    if (pepper === undefined) return;
    if (other !== undefined)
      throw new StoreError('damaged', 'the keys of the folder were made with different peppers; revoke those of the old one');
    await this.#pool.query("INSERT INTO facts (name, value) VALUES ('pepper', $1) ON CONFLICT (name) DO NOTHING", [pepper]);
    const { rows } = await this.#pool.query<{ value: string }>("SELECT value FROM facts WHERE name = 'pepper'");
    if (rows[0]?.value !== pepper)
      throw new StoreError(
        'exists',
        'the database is used with another pepper than the keys of the folder; use another database',
      );
  }

  async #copyAudit(): Promise<void> {
    for (const page of this.#pages('SELECT * FROM audit_log WHERE id > ? ORDER BY id LIMIT ?')) {
      await this.#insert('audit_log', page, 'ON CONFLICT (id) DO NOTHING');
      await this.#expectIds('audit_log', page);
      this.#report('audit', page.length);
    }
  }

  async #expectIds(table: string, page: readonly Row[]): Promise<void> {
    const ids = page.map(({ id }) => id);
    const { rows } = await this.#pool.query(`SELECT count(*) AS n FROM ${table} WHERE id = ANY ($1)`, [ids]);
    if (rows[0].n !== page.length) throw createDifference(table);
  }

  // ---- the ledger

  async #createDays(): Promise<void> {
    const days = this.#read(`SELECT DISTINCT ts / ${GRAIN_MS.day} AS day FROM exchanges ORDER BY day`);
    const partitions = new Partitions(this.#pool, LIMITS);
    for (const page of split(days, PAGE_DAYS)) await partitions.create(page.map(({ day }) => Number(day)));
  }

  async #copyBoots(now: number): Promise<void> {
    const rows = this.#read('SELECT * FROM boots').map((row) => ({ ...row, ended_ts: row['ended_ts'] ?? now, folded_ts: now }));
    for (const page of split(rows)) await this.#insert('boots', page, 'ON CONFLICT (id) DO NOTHING');
  }

  async #copyLedger(): Promise<void> {
    let after = '';
    for (const exchanges of this.#pages('SELECT * FROM exchanges WHERE id > ? ORDER BY id LIMIT ?')) {
      const last = String(exchanges.at(-1)?.['id']);
      const attempts = this.#read('SELECT * FROM attempts WHERE exchange_id > ? AND exchange_id <= ?', after, last);
      if (!(await this.#isSame(exchanges, attempts))) {
        await this.#insert('exchanges', exchanges, 'ON CONFLICT (id) DO NOTHING');
        await this.#insert('attempts', attempts, 'ON CONFLICT (exchange_id, number) DO NOTHING');
        if (!(await this.#isSame(exchanges, attempts))) throw createDifference('exchanges');
      }
      this.#counts.attempts += attempts.length;
      this.#report('exchanges', exchanges.length);
      after = last;
    }
  }

  async #isSame(exchanges: readonly Row[], attempts: readonly Row[]): Promise<boolean> {
    const ids = exchanges.map(({ id }) => id);
    return (
      (await this.#hasSums('exchanges', 'id', ids, exchanges)) && (await this.#hasSums('attempts', 'exchange_id', ids, attempts))
    );
  }

  async #hasSums(table: string, column: string, ids: readonly unknown[], rows: readonly Row[]): Promise<boolean> {
    const sums = COMPARED.map((name) => `coalesce(sum(${name}), 0) AS ${name}`).join(', ');
    const text = `SELECT count(*) AS n, ${sums} FROM ${table} WHERE ${column} = ANY ($1) AND ${column} >= $2 AND ${column} <= $3`;
    const result = await this.#pool.query<Record<string, number>>(text, [ids, ids[0], ids.at(-1)]);
    const found = result.rows[0];
    return found?.['n'] === rows.length && COMPARED.every((name) => found[name] === sum(rows, name));
  }

  // ---- roll-ups: those of the folder stay apart, so that copying them again replaces them

  async #copyRollups(): Promise<void> {
    const [first] = this.#read('SELECT id FROM boots ORDER BY started_ts, id LIMIT 1');
    const shard = `folder:${first?.['id'] ?? ''}`;
    const total: Row[] = [];
    let after = 0;
    for (;;) {
      const page = this.#read(
        'SELECT rowid AS place, * FROM usage_rollups WHERE rowid > ? ORDER BY rowid LIMIT ?',
        after,
        PAGE_ROWS,
      );
      if (page.length === 0) break;
      after = Number(page.at(-1)?.['place']);
      const rows = page.map(({ place: _, ...row }) => ({ ...row, shard }));
      await this.#insert('usage_rollups', rows, REPLACE_ROLLUP);
      this.#report('rollups', rows.length);
      total.push(Object.fromEntries(SUM_COLUMNS.map((name) => [name, sum(rows, name)])));
    }
    const sums = SUM_COLUMNS.map((name) => `coalesce(sum(${name}), 0) AS ${name}`).join(', ');
    const { rows } = await this.#pool.query<Record<string, number>>(
      `SELECT count(*) AS n, ${sums} FROM usage_rollups WHERE shard = $1`,
      [shard],
    );
    if (rows[0]?.['n'] !== this.#counts.rollups || SUM_COLUMNS.some((name) => rows[0]?.[name] !== sum(total, name)))
      throw createDifference('usage_rollups');
  }

  // ---- pages

  /** Rows in the order of their ids. */
  *#pages(text: string): Generator<Row[], void, undefined> {
    for (let after = ''; ; ) {
      const page = this.#read(text, after, PAGE_ROWS);
      if (page.length === 0) return;
      yield page;
      after = String(page.at(-1)?.['id']);
    }
  }

  async #insert(table: string, rows: readonly Row[], onConflict: string): Promise<void> {
    if (rows.length === 0) return;
    const columns = Object.keys(rows[0] ?? {}).join(', ');
    const text = `INSERT INTO ${table} (${columns})
      SELECT ${columns} FROM jsonb_populate_recordset(NULL::${table}, $1::jsonb) ${onConflict}`;
    const run = (client: PoolClient) => client.query(text, [JSON.stringify(rows)]);
    this.#counts.copied += (await transact(this.#pool, LIMITS, run)).rowCount ?? 0;
  }

  #report(table: keyof TransferCounts, rows: number): void {
    this.#counts[table] += rows;
    this.#onProgress?.(this.#counts);
  }
}

/** What is compared of exchanges and attempts. */
const COMPARED = ['input_tokens', 'output_tokens', 'cache_read_tokens', 'cost_micros', 'total_ms'] as const;

const REPLACE_ROLLUP = `ON CONFLICT (${[...ROLLUP_KEY, 'shard'].join(', ')})
  DO UPDATE SET ${SUM_COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ')}`;

const sum = (rows: readonly Row[], column: string): number => rows.reduce((total, row) => total + Number(row[column] ?? 0), 0);

function* split<Item>(items: readonly Item[], size = PAGE_ROWS): Generator<Item[], void, undefined> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size);
}

const createDifference = (table: string): StoreError =>
  new StoreError(
    'damaged',
    `rows of ${table} in the database differ from those of the folder with the same ids; use an empty database`,
  );
