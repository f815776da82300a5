/** The partitions of the ledger: one per day of UTC. Ids begin with their time, so a day is a range of ids. */
import type { Pool, PoolClient } from 'pg';
import { floorId } from '../ids.ts';
import { PRUNE_ROWS } from '../operations.ts';
import { GRAIN_MS } from '../rollups.ts';
import { type Patience, transact } from './connection.ts';

/** Days that have a partition before their first row comes. */
const DAYS_AHEAD = 7;

/** The day before: ids of gateways whose clock is late. */
const DAYS_BEHIND = 1;

/** A lock on a partitioned table stops all writers, so maintenance gives up soon, and tries again later. */
const LOCK_MS = 1000;

/** Tables that are partitioned, with the column of their ids. Attempts first: they are deleted with their exchange. */
const TABLES = { attempts: 'exchange_id', exchanges: 'id' } as const;

type Table = keyof typeof TABLES;

const TABLE_NAMES = Object.keys(TABLES) as Table[]; // the keys of a constant

/** Locks of transactions, by purpose. The first number is ours among all users of a database. */
export const LOCK_CLASS = 0x536c6365;

/** What only one node does at a time. */
export const LOCKS = { migrate: 1, partitions: 2, nodes: 3, prune: 4, limits: 5 } as const;

/** Takes a lock until the end of the transaction; false when another node has it. */
export async function tryLock(client: PoolClient, lock: keyof typeof LOCKS): Promise<boolean> {
  const { rows } = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_xact_lock($1, $2) AS taken', [
    LOCK_CLASS,
    LOCKS[lock],
  ]);
  return rows[0]?.taken ?? false;
}

/** Makes and deletes partitions. */
export class Partitions {
  readonly #pool: Pool;
  readonly #patience: Patience;

  constructor(pool: Pool, patience: Patience) {
    this.#pool = pool;
    this.#patience = { ...patience, lockMs: Math.min(patience.lockMs, LOCK_MS) };
  }

  /** Makes the partitions of the next days. Does nothing while another node does it. */
  prepare(now: number): Promise<void> {
    const today = Math.floor(now / GRAIN_MS.day);
    const days = Array.from({ length: DAYS_BEHIND + 1 + DAYS_AHEAD }, (_, index) => today - DAYS_BEHIND + index);
    return this.create(days);
  }

  /**
   * Makes the partitions of these days, if there are none. Each in its own transaction: writers lock both tables, and would wait for a
   * transaction that waits for them.
   */
  async create(days: readonly number[]): Promise<void> {
    const known = await this.#list();
    for (const day of days)
      for (const table of TABLE_NAMES) if (!known.includes(nameOf(table, day))) await this.#createOne(table, day);
  }

  #createOne(table: Table, day: number): Promise<void> {
    return transact(this.#pool, this.#patience, async (client) => {
      const isMine = await tryLock(client, 'partitions');
      if (isMine && !(await exists(client, nameOf(table, day)))) await attach(client, table, day);
    });
  }

  /** Deletes the days that are entirely before this time, and older rows of the default partition. Returns how many exchanges. */
  async prune(before: number): Promise<number> {
    const end = formatDay(Math.floor(before / GRAIN_MS.day));
    let count = 0;
    for (const name of await this.#list()) if ((/_(\d{8})$/.exec(name)?.[1] ?? end) < end) count += await this.#drop(name);
    return count + (await this.#deleteOthers(before));
  }

  #drop(name: string): Promise<number> {
    return transact(this.#pool, this.#patience, async (client) => {
      if (!(await tryLock(client, 'prune')) || !(await exists(client, name))) return 0;
      const isCounted = name.startsWith('exchanges');
      const count = isCounted ? (await client.query(`SELECT count(*) AS n FROM ${name}`)).rows[0].n : 0;
      await client.query(`DROP TABLE ${name}`);
      return count;
    });
  }

  /** Names of partitions, those of attempts first. */
  async #list(): Promise<string[]> {
    const { rows } = await this.#pool.query<{ name: string }>(
      `SELECT c.relname AS name FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
       WHERE i.inhparent IN ('exchanges'::regclass, 'attempts'::regclass) ORDER BY c.relname`,
    );
    return rows.map(({ name }) => name);
  }

  /** Rows of days that had no partition, such as those of a clock that was wrong. Open exchanges are kept. */
  #deleteOthers(before: number): Promise<number> {
    return transact(this.#pool, this.#patience, async (client) => {
      const { rowCount } = await client.query(DELETE_OTHERS, [floorId(before), PRUNE_ROWS]);
      return rowCount ?? 0;
    });
  }
}

const DELETE_OTHERS = `WITH old AS (
    DELETE FROM exchanges_default WHERE id IN
      (SELECT id FROM exchanges_default WHERE id < $1 AND state <> 'open' ORDER BY id LIMIT $2) RETURNING id),
  gone AS (DELETE FROM attempts_default WHERE exchange_id IN (SELECT id FROM old))
  SELECT id FROM old`;

/** `20261117`. */
const formatDay = (day: number): string => new Date(day * GRAIN_MS.day).toISOString().slice(0, 10).replaceAll('-', '');

const nameOf = (table: Table, day: number): string => `${table}_${formatDay(day)}`;

async function exists(client: PoolClient, name: string): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>('SELECT to_regclass($1) IS NOT NULL AS found', [name]);
  return rows[0]?.found ?? false;
}

/**
 * Moves rows that came before their partition: it cannot be attached while the default one has rows of it. Writers wait meanwhile,
 * before they look for partitions: one that has chosen the default partition would not find the row that it is about to change.
 */
async function attach(client: PoolClient, table: Table, day: number): Promise<void> {
  const name = nameOf(table, day);
  const [from, to] = [day, day + 1].map((one) => `'${floorId(one * GRAIN_MS.day)}'`);
  await client.query(`CREATE TABLE ${name} (LIKE ${table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)`);
  await client.query(`LOCK TABLE ONLY ${table} IN SHARE MODE`);
  await client.query(`LOCK TABLE ${table}_default IN ACCESS EXCLUSIVE MODE`);
  await client.query(`WITH moved AS (
      DELETE FROM ${table}_default WHERE ${TABLES[table]} >= ${from} AND ${TABLES[table]} < ${to} RETURNING *)
    INSERT INTO ${name} SELECT * FROM moved`);
  await client.query(`ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM (${from}) TO (${to})`);
}
