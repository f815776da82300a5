/**
 * The nodes of one database: each run of a gateway registers itself and renews a heartbeat. One node at a time closes what dead ones
 * left open. All times are those of the server, because the clocks of nodes differ.
 */
import type { Pool } from 'pg';
import type { Clock, Timer } from '../../http/clock.ts';
import type { Boot } from '../operations.ts';
import { type Patience, transact } from './connection.ts';
import type { PostgresLedger } from './ledger.ts';
import { tryLock } from './partitions.ts';

/** How nodes watch each other. */
export interface NodeOptions {
  /** A node whose heartbeat is older than this is dead. */
  readonly leaseMs: number;
  readonly clock: Clock;
  /** Called after an attempt to renew the heartbeat. */
  readonly onBeat?: (error: unknown) => void;
}

/** Heartbeats that a node may miss. */
const BEATS_PER_LEASE = 5;

const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/** The longest lease that can be configured: a copy of a database has older heartbeats. */
const LONGEST_LEASE_MS = 600_000;

/** Whether the node with this id runs on the database. */
export async function isAlive(pool: Pool, boot: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `SELECT FROM boots WHERE id = $1 AND ended_ts IS NULL AND heartbeat_ts >= ${NOW} - $2::bigint`,
    [boot, LONGEST_LEASE_MS],
  );
  return rowCount === 1;
}

/** One node among those of its database. */
export class Node {
  readonly #pool: Pool;
  readonly #boot: Boot;
  readonly #ledger: PostgresLedger;
  readonly #patience: Patience;
  readonly #options: NodeOptions;
  #timer: Timer | undefined;
  /** Since when every heartbeat was written in time; undefined after one was not. */
  #steadySince: number | undefined;
  #lastBeat = 0;
  #running: Promise<void> = Promise.resolve();
  #isBusy = false;
  #crashed = 0;

  constructor(pool: Pool, boot: Boot, ledger: PostgresLedger, patience: Patience, options: NodeOptions) {
    this.#pool = pool;
    this.#boot = boot;
    this.#ledger = ledger;
    this.#patience = patience;
    this.#options = options;
  }

  /** Exchanges of dead nodes that this one has closed. */
  get crashed(): number {
    return this.#crashed;
  }

  /** Registers this run, before its first row, and begins to watch the others. */
  async start(): Promise<void> {
    const { boot, node } = this.#boot;
    await this.#pool.query(
      `INSERT INTO boots (id, node_id, started_ts, heartbeat_ts) VALUES ($1, $2, ${NOW}, ${NOW})
       ON CONFLICT (id) DO UPDATE SET heartbeat_ts = ${NOW}, ended_ts = NULL, folded_ts = NULL`,
      [boot, node],
    );
    const { clock, leaseMs } = this.#options;
    this.#markBeat();
    this.#timer = clock.setRepeating(() => this.#tick(), Math.ceil(leaseMs / BEATS_PER_LEASE)).unref();
  }

  #tick(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#running = this.#work().then(
      () => this.#options.onBeat?.(undefined),
      (error: unknown) => {
        this.#steadySince = undefined;
        this.#options.onBeat?.(error);
      },
    );
    void this.#running.finally(() => {
      this.#isBusy = false;
    });
  }

  async #work(): Promise<void> {
    await this.#beat();
    // While the database was away, nobody could renew a heartbeat. So a node that was away itself waits before it judges others.
    const { clock, leaseMs } = this.#options;
    if (this.#steadySince !== undefined && clock.now() - this.#steadySince >= leaseMs) await this.#settleDead();
  }

  /** A node that was taken for dead and returns is alive again: its new rows are its own. */
  async #beat(): Promise<void> {
    await this.#pool.query(`UPDATE boots SET heartbeat_ts = ${NOW}, ended_ts = NULL, folded_ts = NULL WHERE id = $1`, [
      this.#boot.boot,
    ]);
    this.#markBeat();
  }

  #markBeat(): void {
    const now = this.#options.clock.now();
    if (this.#steadySince === undefined || now - this.#lastBeat > this.#options.leaseMs) this.#steadySince = now;
    this.#lastBeat = now;
  }

  /** Marks dead nodes as ended, closes their rows and folds their roll-ups. Safe to repeat, and on several nodes at once. */
  async #settleDead(): Promise<void> {
    const now = await transact(this.#pool, this.#patience, async (client) => {
      if (!(await tryLock(client, 'nodes'))) return undefined;
      await client.query(
        `UPDATE boots SET ended_ts = ${NOW} WHERE ended_ts IS NULL AND id <> $1 AND coalesce(heartbeat_ts, 0) < ${NOW} - $2::bigint`,
        [this.#boot.boot, this.#options.leaseMs],
      );
      const { rows } = await client.query<{ now: number }>(`SELECT ${NOW} AS now`);
      return rows[0]?.now;
    });
    if (now === undefined) return;
    this.#crashed += await this.#ledger.closeAbandoned(now);
    await this.#foldEnded();
  }

  async #foldEnded(): Promise<void> {
    const { rows } = await this.#pool.query<{ id: string }>(
      'SELECT id FROM boots WHERE ended_ts IS NOT NULL AND folded_ts IS NULL ORDER BY ended_ts LIMIT 100',
    );
    for (const { id } of rows) {
      await this.#ledger.fold(id);
      await this.#pool.query(`UPDATE boots SET folded_ts = ${NOW} WHERE id = $1 AND ended_ts IS NOT NULL`, [id]);
    }
  }

  /** Records that this run ended in order. */
  async stop(): Promise<void> {
    this.#timer?.close();
    await this.#running;
    await this.#pool.query(`UPDATE boots SET ended_ts = ${NOW} WHERE id = $1`, [this.#boot.boot]);
  }
}
