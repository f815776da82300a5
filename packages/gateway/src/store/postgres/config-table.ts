/** Versions of the configuration on PostgreSQL: the table, and the search for new ones. */
import { createHash } from 'node:crypto';
import type { Pool } from 'pg';
import type { Clock, Timer } from '../../http/clock.ts';
import type { ConfigVersion, ConfigVersions, NewConfig, StoredConfig, WatchedConfigs } from '../configs.ts';
import { StoreError } from '../errors.ts';
import { IdSource } from '../ids.ts';
import { listEntry } from '../key-rows.ts';
import type { SqlValue } from '../rows.ts';
import { type Patience, readState, toStoreError, transact, UNIQUE_VIOLATION } from './connection.ts';
import { ADD_AUDIT } from './key-table.ts';
import { CONFIG_CHANNEL } from './notices.ts';

const COLUMNS = 'version, ts, digest, author, comment, rollback_of';

const LIST = `SELECT ${COLUMNS} FROM config_versions ORDER BY version DESC LIMIT $1`;

const GET = `SELECT ${COLUMNS}, text FROM config_versions WHERE version = $1`;

/** Empty as long as nothing is newer, which is what polling finds nearly always. */
const GET_NEWER = `SELECT ${COLUMNS}, text FROM config_versions WHERE version > $1 ORDER BY version DESC LIMIT 1`;

/** Of two transactions that add the same number, the primary key lets one commit. */
const ADD = `INSERT INTO config_versions (version, ts, text, digest, author, comment, rollback_of)
  SELECT $1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $2, $3, $4, $5, $6
  WHERE (SELECT coalesce(max(version), 0) FROM config_versions) = $1 - 1
  RETURNING ${COLUMNS}`;

/** No gateway of this release has used the database yet. */
const UNDEFINED_TABLE = '42P01';

const MAX_ROWS = 1000;

const digestConfig = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Reads and writes the table. */
export class ConfigTable implements ConfigVersions {
  readonly #pool: Pool;
  readonly #patience: Patience;
  readonly #ids = new IdSource();

  constructor(pool: Pool, patience: Patience) {
    this.#pool = pool;
    this.#patience = patience;
  }

  list(limit: number): Promise<ConfigVersion[]> {
    return this.#query<ConfigVersion>(LIST, [Math.max(1, Math.min(MAX_ROWS, limit))]);
  }

  async get(version?: number): Promise<StoredConfig | undefined> {
    if (version === undefined) return this.getNewer(0);
    const [row] = await this.#query<StoredConfig>(GET, [version]);
    return row;
  }

  /** The newest version if it is newer than the given one. */
  async getNewer(known: number): Promise<StoredConfig | undefined> {
    const [row] = await this.#query<StoredConfig>(GET_NEWER, [known]);
    return row;
  }

  async add(config: NewConfig): Promise<ConfigVersion> {
    const { expected, text, author, comment, rollback_of, actor } = config;
    const version = expected + 1;
    const digest = digestConfig(text);
    const details = { digest, replaced: expected, author, comment, ...(rollback_of !== null && { rollback_of }) };
    const action = rollback_of === null ? 'config.push' : 'config.rollback';
    const entry = { ...this.#ids.next(), actor, action, object: String(version), details };
    try {
      return await transact(this.#pool, this.#patience, async (client) => {
        const { rows } = await client.query<ConfigVersion>(ADD, [version, text, digest, author, comment, rollback_of]);
        const [added] = rows;
        if (!added) throw createConflict(expected);
        await client.query(ADD_AUDIT, listEntry(entry));
        await client.query('SELECT pg_notify($1, $2)', [CONFIG_CHANNEL, String(version)]);
        return added;
      });
    } catch (error) {
      throw readState(error) === UNIQUE_VIOLATION ? createConflict(expected, error) : toStoreError(error);
    }
  }

  async #query<Row extends object>(text: string, values: readonly SqlValue[]): Promise<Row[]> {
    try {
      return (await this.#pool.query<Row>(text, [...values])).rows;
    } catch (error) {
      if (readState(error) === UNDEFINED_TABLE) return [];
      throw toStoreError(error);
    }
  }
}

const createConflict = (expected: number, cause?: unknown): StoreError =>
  new StoreError('conflict', `version ${expected} is not the one in force`, cause);

/** Finds new versions by polling, and at once when one is announced. */
export class ConfigWatch implements WatchedConfigs {
  readonly #table: ConfigTable;
  readonly #clock: Clock;
  readonly #pollMs: number;
  #known = 0;
  #listener: ((config: StoredConfig) => void) | undefined;
  #timer: Timer | undefined;
  #polling: Promise<void> | undefined;
  /** A version was announced while a query was running, which may have been too early. */
  #isStale = false;

  constructor(table: ConfigTable, clock: Clock, pollMs: number) {
    this.#table = table;
    this.#clock = clock;
    this.#pollMs = pollMs;
  }

  list(limit: number): Promise<ConfigVersion[]> {
    return this.#table.list(limit);
  }

  get(version?: number): Promise<StoredConfig | undefined> {
    return this.#table.get(version);
  }

  add(config: NewConfig): Promise<ConfigVersion> {
    return this.#table.add(config);
  }

  watch(known: number, listener: (config: StoredConfig) => void): void {
    this.#known = known;
    this.#listener = listener;
    this.#timer = this.#clock.setRepeating(() => this.check(), this.#pollMs).unref();
    // One may have been added since the known one was read.
    this.check();
  }

  /** Looks for a newer version. A query that fails is repeated by the next poll. */
  check(): void {
    if (!this.#listener) return;
    if (this.#polling) {
      this.#isStale = true;
      return;
    }
    this.#polling = this.#poll()
      .catch(() => undefined)
      .then(() => {
        this.#polling = undefined;
        if (!this.#isStale) return;
        this.#isStale = false;
        this.check();
      });
  }

  async #poll(): Promise<void> {
    const newer = await this.#table.getNewer(this.#known);
    if (!newer) return;
    this.#known = newer.version;
    this.#listener?.(newer);
  }

  async stop(): Promise<void> {
    this.#listener = undefined;
    this.#timer?.close();
    await this.#polling;
  }
}
