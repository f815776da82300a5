/** The connections to PostgreSQL for limits, which run the operations as functions. Nothing is kept in a session. */

import type { Pool } from 'pg';
import type { Clock, Timer } from '../../http/clock.ts';
import { createPool, describeError, readState, transact } from '../../store/postgres/connection.ts';
import { LOCK_CLASS, LOCKS } from '../../store/postgres/partitions.ts';
import { type Driver, type DriverEvents, delayConnect, type Operation } from '../shared/driver.ts';
import { FUNCTIONS, IS_PREPARED, nameFunction, TABLES } from './functions.ts';

/** Calls functions on a few connections of its own: queries of the ledger must not delay an admission. */
export class PostgresDriver implements Driver {
  readonly name = 'PostgreSQL';
  readonly prefix: string;
  readonly #options: PostgresOptions;
  readonly #events: DriverEvents;
  #pool: Pool;
  #isReady = false;
  #isClosed = false;
  #tries = 0;
  /** Admissions that were not sent yet. */
  readonly #waiting: Waiting[] = [];
  /** Calls for admissions that are running. */
  #lanes = 0;
  #timer: Timer | undefined;

  constructor(options: PostgresOptions, events: DriverEvents) {
    this.prefix = options.prefix;
    this.#options = options;
    this.#events = events;
    this.#pool = this.#open();
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  connect(): void {
    const pool = this.#pool;
    void this.#prepare(pool).then(
      () => {
        if (pool !== this.#pool || this.#isClosed) return;
        this.#tries = 0;
        this.#isReady = true;
        this.#events.onReady();
      },
      (error: unknown) => {
        if (pool !== this.#pool || this.#isClosed) return;
        this.#events.onError(describeError(error));
        this.#replace();
      },
    );
  }

  send(operation: Operation, request: string): Promise<unknown> {
    if (operation !== 'take') return this.#call(operation, request);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      if (this.#lanes < LANES) void this.#takeWaiting();
    });
  }

  /** Admissions that wait for a connection follow in one call: they mostly need the same rows, and would wait for each other. */
  async #takeWaiting(): Promise<void> {
    this.#lanes++;
    for (let batch = this.#waiting.splice(0, BATCH); batch.length > 0; batch = this.#waiting.splice(0, BATCH)) {
      try {
        const requests = batch.map(({ request }) => request).join();
        const replies = batch.length === 1 ? [await this.#call('take', requests)] : await this.#call('take_all', `[${requests}]`);
        if (!Array.isArray(replies)) throw new Error('PostgreSQL sent an unexpected reply');
        for (const [index, { resolve }] of batch.entries()) resolve(replies[index]);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#lanes--;
  }

  async #call(name: Operation | 'take_all', request: string): Promise<unknown> {
    const pool = this.#pool;
    try {
      const { rows } = await pool.query<{ reply: unknown }>(`SELECT ${nameFunction(name)}($1::jsonb) AS reply`, [request]);
      return rows[0]?.reply;
    } catch (error) {
      if (pool === this.#pool && isLost(error)) this.reconnect();
      throw error;
    }
  }

  /** When the server was started. The tables are empty after a crash, and may be old after a restart from a backup. */
  async readRun(): Promise<string> {
    const { rows } = await this.#pool.query<{ run: string }>(
      'SELECT extract(epoch FROM pg_postmaster_start_time())::text AS run',
    );
    return rows[0]?.run ?? '';
  }

  reconnect(): void {
    if (!this.#isReady) return;
    this.#isReady = false;
    this.#events.onLost();
    this.#replace();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isReady = false;
    this.#timer?.close();
    await this.#pool.end().catch(() => undefined);
  }

  /** Connections that do not answer end with the time limit of their statement. */
  #replace(): void {
    if (this.#isClosed) return;
    void this.#pool.end().catch(() => undefined);
    this.#pool = this.#open();
    this.#timer?.close();
    this.#timer = this.#options.clock.setTimer(() => this.connect(), delayConnect(++this.#tries)).unref();
  }

  #open(): Pool {
    const { url, connectTimeoutMs: connectMs } = this.#options;
    const pool = createPool(url, CONNECTIONS, { connectMs, statementMs: STATEMENT_MS, lockMs: STATEMENT_MS });
    // Connections that wait for work end with the server.
    pool.on('error', () => pool === this.#pool && this.reconnect());
    return pool;
  }

  /** Creates tables and functions, once for a database. */
  async #prepare(pool: Pool): Promise<void> {
    const { rows } = await pool.query<{ prepared: boolean }>(IS_PREPARED);
    if (rows[0]?.prepared) return;
    await transact(pool, { connectMs: 0, statementMs: STATEMENT_MS, lockMs: STATEMENT_MS }, async (client) => {
      await client.query('SELECT pg_advisory_xact_lock($1, $2)', [LOCK_CLASS, LOCKS.limits]);
      for (const text of [...TABLES, ...FUNCTIONS]) await client.query(text);
    });
  }
}

/** Where the database is. */
export interface PostgresOptions {
  readonly url: string;
  /** Before every key. */
  readonly prefix: string;
  readonly connectTimeoutMs: number;
  readonly clock: Clock;
}

interface Waiting {
  readonly request: string;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** More would only wait for the same rows. */
const CONNECTIONS = 3;

/** Connections for admissions. The others are for what ends. */
const LANES = 2;

/** Admissions of one call. */
const BATCH = 100;

/** For tables and functions. Operations have a shorter limit of their own. */
const STATEMENT_MS = 5000;

/** The connection is lost, or the server ends or starts. Waiting in vain for one of the connections is neither. */
function isLost(error: unknown): boolean {
  const state = readState(error);
  if (state !== undefined) return /^(08|57P)/.test(state);
  return !(error instanceof Error && error.message === 'timeout exceeded when trying to connect');
}
