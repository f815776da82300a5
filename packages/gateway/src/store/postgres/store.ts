/** The store on PostgreSQL, shared by any number of nodes. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Kysely, sql } from 'kysely';
import type { Pool } from 'pg';
import { type Clock, REAL_CLOCK, type Timer } from '../../http/clock.ts';
import type { AuditEntry, AuditPage, AuditQuery, KeyRecord, SharedKeys } from '../../keys/records.ts';
import type { ConfigVersions } from '../configs.ts';
import { StoreError } from '../errors.ts';
import type { Filter } from '../filter.ts';
import type { Boot } from '../operations.ts';
import {
  type ExchangeCount,
  type ExchangeDetail,
  type ExchangePage,
  type ListQuery,
  Queries,
  type SessionDetail,
  type SessionSummary,
  type SpendingQuery,
  type UsageQuery,
  type UsageRow,
} from '../queries.ts';
import { QueuedStore } from '../queued-store.ts';
import { GRAIN_MS } from '../rollups.ts';
import { type Dialect, MIGRATIONS, type Migration, migrate, type Tables } from '../schema.ts';
import type { Store, StoreOptions, StoreReader, StoreStatus } from '../store.ts';
import { readAddress } from './address.ts';
import { ConfigTable, ConfigWatch } from './config-table.ts';
import { createKysely, createPool, PATIENCE, type Patience, toStoreError } from './connection.ts';
import { PostgresKeys } from './key-table.ts';
import { KeyWatch } from './key-watch.ts';
import { PostgresLedger } from './ledger.ts';
import { isAlive, Node } from './nodes.ts';
import { CONFIG_CHANNEL, KEY_CHANNEL, Notices } from './notices.ts';
import { LOCK_CLASS, LOCKS, Partitions } from './partitions.ts';

/** Connections that write: one batch of the ledger at a time, and keys and heartbeats beside it. */
const WRITER_CONNECTIONS = 3;

/** Connections of queries. */
const READER_CONNECTIONS = 3;

const DEFAULTS = { leaseMs: 15_000, keyPollMs: 500, retentionDays: 400 } as const;

const MAINTENANCE_MS = 60_000;

const MIN_VERSION = 150_000;

/** Texts are compared as in SQLite, whatever the language of the database, and days of the ledger are partitions. */
const POSTGRES: Dialect = {
  text: sql.raw('text collate "C"'),
  partitionBy: (id) => sql`partition by range (${sql.ref(id)})`,
  isShared: true,
  lock: async (db) => {
    await sql`select pg_advisory_xact_lock(${LOCK_CLASS}::int, ${LOCKS.migrate}::int)`.execute(db);
  },
};

/** Brings a database to the newest version. Any number of nodes may do it at once. */
export async function migratePostgres(db: Kysely<Tables>, migrations: readonly Migration[] = MIGRATIONS): Promise<void> {
  const { rows } = await sql<{ version: string }>`select current_setting('server_version_num') as version`.execute(db);
  if (Number(rows[0]?.version) < MIN_VERSION)
    throw new StoreError('damaged', 'the PostgreSQL server is older than version 15; upgrade it');
  await migrate(db, Date.now(), migrations, POSTGRES);
}

/** Queries on connections of their own. */
class PostgresReader implements StoreReader {
  readonly #pool: Pool;
  readonly #db: Kysely<Tables>;
  readonly #keys: PostgresKeys;
  readonly #patience: Patience;

  constructor(pool: Pool, patience: Patience) {
    this.#pool = pool;
    this.#db = createKysely(pool);
    this.#keys = new PostgresKeys(pool, patience);
    this.#patience = patience;
  }

  list(query: ListQuery = {}): Promise<ExchangePage> {
    return this.#read((queries) => queries.list(query));
  }

  count(filter: Filter = []): Promise<ExchangeCount> {
    return this.#read((queries) => queries.count(filter));
  }

  get(exchange: string): Promise<ExchangeDetail | null> {
    return this.#read((queries) => queries.get(exchange));
  }

  sessions(limit?: number): Promise<SessionSummary[]> {
    return this.#read((queries) => queries.sessions(limit));
  }

  session(session: string, query: Omit<ListQuery, 'filter'> = {}): Promise<SessionDetail | null> {
    return this.#read((queries) => queries.session(session, query));
  }

  usage(query: UsageQuery): Promise<UsageRow[]> {
    return this.#read((queries) => queries.usage(query));
  }

  spending(query: SpendingQuery): Promise<number> {
    return this.#read((queries) => queries.spending(query));
  }

  listKeys(): Promise<KeyRecord[]> {
    return this.#keys.list();
  }

  listAudit(query: AuditQuery = {}): Promise<AuditPage> {
    return this.#keys.listAudit(query);
  }

  /** In one snapshot: a query that takes several statements sees roll-ups before or after they are folded. */
  async #read<Result>(run: (queries: Queries) => Promise<Result>): Promise<Result> {
    try {
      return await this.#db
        .transaction()
        .setAccessMode('read only')
        .setIsolationLevel('repeatable read')
        .execute(async (transaction) => {
          await sql`set local statement_timeout = ${sql.lit(this.#patience.statementMs)}`.execute(transaction);
          return run(new Queries(transaction));
        });
    } catch (error) {
      throw toStoreError(error);
    }
  }

  /** Kysely ends the pool only if it was used. */
  async close(): Promise<void> {
    await this.#db.destroy();
    if (!this.#pool.ended) await this.#pool.end();
  }
}

interface Parts {
  readonly writer: Pool;
  readonly reader: PostgresReader;
  readonly ledger: PostgresLedger;
  readonly keys: PostgresKeys;
  readonly watch: KeyWatch;
  readonly configs: ConfigWatch;
  readonly notices: Notices;
  readonly node: Node;
  readonly partitions: Partitions;
}

class PostgresStore extends QueuedStore implements Store {
  readonly folder: string | null;
  readonly isPersistent = true;
  readonly boot: string;
  readonly shared: SharedKeys;
  readonly configs: ConfigWatch;
  readonly #parts: Parts;
  readonly #retentionDays: number | null;
  readonly #maintenance: Timer;
  #closed: Promise<number> | undefined;

  constructor(options: StoreOptions, boot: string, parts: Parts) {
    super(options, parts.reader, (operations) => parts.ledger.write(operations));
    this.folder = options.folder;
    this.boot = boot;
    this.#parts = parts;
    this.shared = createSharedKeys(parts, boot);
    this.configs = parts.configs;
    const { retentionDays = DEFAULTS.retentionDays } = options;
    this.#retentionDays = retentionDays;
    // What fails is tried again a minute later; the ledger reports a database that is away.
    this.#maintenance = this.clock.setRepeating(() => void this.#maintain().catch(() => undefined), MAINTENANCE_MS).unref();
  }

  async #maintain(): Promise<void> {
    await this.#parts.partitions.prepare(Date.now());
    await this.prune();
  }

  saveKey(record: KeyRecord, entry: AuditEntry, endsRequests: boolean): Promise<void> {
    return this.#parts.keys.save(record, entry, endsRequests);
  }

  touchKeys(uses: readonly (readonly [id: string, ts: number])[]): Promise<void> {
    return this.#parts.keys.touch(uses);
  }

  addAudit(entry: AuditEntry): Promise<void> {
    return this.#parts.keys.addAudit(entry);
  }

  status(): StoreStatus {
    return {
      ...this.queueStatus,
      accepting: this.accepting,
      integrity: 'unchecked',
      crashed_exchanges: this.#parts.node.crashed,
    };
  }

  async prune(): Promise<number> {
    if (this.#retentionDays === null) return 0;
    try {
      return await this.#parts.partitions.prune(Date.now() - this.#retentionDays * GRAIN_MS.day);
    } catch (error) {
      throw toStoreError(error);
    }
  }

  /** Nodes are behind load balancers, so the address of one is of no use. */
  async announce(): Promise<void> {}

  backup(): Promise<void> {
    return Promise.reject(new StoreError('query', 'the store is a PostgreSQL database; back it up with pg_dump'));
  }

  close(): Promise<number> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<number> {
    const { writer, reader, watch, configs, notices, node } = this.#parts;
    this.#maintenance.close();
    const lost = await this.closeQueue();
    await notices.stop();
    await watch.stop();
    await configs.stop();
    // If this cannot be written, another node takes this one for dead, and finds nothing that is open.
    await node.stop().catch(() => undefined);
    await reader.close();
    await writer.end();
    return lost;
  }
}

const createSharedKeys = ({ keys, watch }: Parts, boot: string): SharedKeys => ({
  watch: (listener) => watch.subscribe(listener),
  sync: () => watch.sync(),
  get ageMs() {
    return watch.ageMs;
  },
  readPepper: () => keys.readPepper(),
  claimPepper: (fingerprint) => keys.claimPepper(fingerprint, boot),
});

/** Opens the store of a gateway on a PostgreSQL database, and creates its tables when they are missing. */
export async function openPostgresStore(options: StoreOptions & { readonly url: string }): Promise<Store> {
  const { url, boot = randomUUID(), node = hostname(), clock = REAL_CLOCK } = options;
  const patience = { ...PATIENCE, ...options.patience };
  const writer = createPool(url, WRITER_CONNECTIONS, patience);
  const reader = new PostgresReader(createPool(url, READER_CONNECTIONS, patience), patience);
  const parts = createParts({ writer, reader, boot: { boot, node }, clock, patience, options });
  try {
    await migrateDatabase(url);
    // While others hold locks, rows of new days are kept in the default partition; maintenance moves them a minute later.
    await parts.partitions.prepare(Date.now()).catch(() => undefined);
    await parts.node.start();
    await parts.watch.start();
    parts.notices.start();
    return new PostgresStore(options, boot, parts);
  } catch (error) {
    await parts.watch.stop();
    await parts.node.stop().catch(() => undefined);
    await reader.close();
    await writer.end();
    throw toStoreError(error);
  }
}

async function migrateDatabase(url: string): Promise<void> {
  // Of its own, because a long migration must not end by the time limit of a statement.
  const db = createKysely(createPool(url, 1, { ...PATIENCE, statementMs: MIGRATION_MS }));
  try {
    await migratePostgres(db);
  } finally {
    await db.destroy();
  }
}

const MIGRATION_MS = 600_000;

interface Made extends Pick<Parts, 'writer' | 'reader'> {
  readonly boot: Boot;
  readonly clock: Clock;
  readonly patience: Patience;
  readonly options: StoreOptions & { readonly url: string };
}

function createParts({ writer, reader, boot, clock, patience, options }: Made): Parts {
  const { url, leaseMs = DEFAULTS.leaseMs, keyPollMs = DEFAULTS.keyPollMs } = options;
  const ledger = new PostgresLedger(writer, boot, patience);
  const keys = new PostgresKeys(writer, patience);
  const connection = { ...readAddress(url), connectionTimeoutMillis: patience.connectMs, keepAlive: true };
  const watch = new KeyWatch({ keys, clock, pollMs: keyPollMs });
  const configs = new ConfigWatch(new ConfigTable(writer, patience), clock, keyPollMs);
  const listeners = {
    [KEY_CHANNEL]: () => void watch.sync().catch(() => undefined),
    [CONFIG_CHANNEL]: () => configs.check(),
  };
  return {
    writer,
    reader,
    ledger,
    keys,
    watch,
    configs,
    notices: new Notices({ connection, clock, listeners }),
    node: new Node(writer, boot, ledger, patience, { leaseMs, clock }),
    partitions: new Partitions(writer, patience),
  };
}

/** Opens a database for queries alone. It must have been used by a gateway. */
export async function openPostgresReader(url: string): Promise<StoreReader> {
  const reader = new PostgresReader(createPool(url, READER_CONNECTIONS), PATIENCE);
  try {
    await reader.listAudit({ limit: 1 });
    return reader;
  } catch (error) {
    await reader.close();
    throw toStoreError(error);
  }
}

/** Whether a node with this id is alive. */
export async function hasLiveNode(url: string, boot: string): Promise<boolean> {
  const pool = createPool(url, 1);
  try {
    return await isAlive(pool, boot);
  } catch (error) {
    throw toStoreError(error);
  } finally {
    await pool.end();
  }
}

/**
 * Calls `use` with the versions of the configuration in a database, without a node. `mayChange`: the tables are created when they are
 * missing; otherwise a database without them has no versions.
 */
export async function withConfigVersions<Result>(
  url: string,
  { mayChange }: { mayChange: boolean },
  use: (versions: ConfigVersions) => Promise<Result>,
): Promise<Result> {
  const pool = createPool(url, 1);
  try {
    if (mayChange)
      await migrateDatabase(url).catch((error: unknown) => {
        throw toStoreError(error);
      });
    return await use(new ConfigTable(pool, PATIENCE));
  } finally {
    await pool.end();
  }
}
