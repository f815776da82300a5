/** The tables as types, and the migrations that create them. SQL stays in the subset that SQLite and PostgreSQL share. */
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { AuditEntry, KeyRecord } from '../keys/records.ts';
import type { SUM_COLUMNS } from './rollups.ts';
import type { AttemptRow, ExchangeRow } from './rows.ts';

/** Flags are 0 or 1, lists are JSON text. */
type Stored<Row> = {
  [Name in keyof Row]: Row[Name] extends boolean ? number : Row[Name] extends readonly unknown[] ? string : Row[Name];
};

/** A row of `exchanges`. */
export type StoredExchange = Stored<ExchangeRow>;

/** A row of `attempts`. */
export type StoredAttempt = Stored<AttemptRow>;

/** A row of `client_keys`: the policy and the tags are JSON text. */
export type StoredKey = Omit<KeyRecord, 'policy' | 'tags'> & { policy: string; tags: string };

/** A row of `audit_log`: the details are JSON text. */
export type StoredAuditEntry = Omit<AuditEntry, 'details'> & { details: string };

/** All tables. */
export interface Tables {
  exchanges: StoredExchange;
  attempts: StoredAttempt;
  usage_rollups: { rollup: number; bucket: number; tag: string; key_id: string; model: string; provider: string } & Record<
    (typeof SUM_COLUMNS)[number],
    number
  >;
  client_keys: StoredKey;
  audit_log: StoredAuditEntry;
  boots: { id: string; node_id: string; started_ts: number; ended_ts: number | null };
  facts: { name: string; value: string };
  schema_versions: { version: number; name: string; applied_ts: number };
}

/** Where two databases differ. */
export interface Dialect {
  /** The type of texts, which are compared byte by byte, and whose letters beyond ASCII have no case. */
  readonly text: RawBuilder<unknown>;
  /** What follows the definition of a table whose rows have this id. */
  readonly partitionBy: (id: string) => RawBuilder<unknown>;
  /** Several nodes use one database: each adds to roll-up rows of its own. */
  readonly isShared: boolean;
  /** Waits until no other process migrates this database; lasts until the end of the transaction. */
  readonly lock: (db: Kysely<Tables>) => Promise<void>;
}

/** SQLite compares texts byte by byte, and its file belongs to one gateway. */
const SQLITE: Dialect = {
  text: sql.raw('text'),
  partitionBy: () => sql.raw(''),
  isShared: false,
  lock: () => Promise.resolve(),
};

/** One step of the schema. */
export interface Migration {
  readonly name: string;
  readonly up: (db: Kysely<Tables>, dialect: Dialect) => Promise<void>;
}

/**
 * Version n is the n-th migration; the list only grows. A migration only adds: tables, indexes, and columns that are nullable or have
 * a default, so that the previous release can still use the database.
 */
export const MIGRATIONS: readonly Migration[] = [
  { name: 'ledger', up: createLedger },
  { name: 'keys', up: createKeys },
  { name: 'budgets', up: addAssumedCosts },
  { name: 'routing', up: addRouting },
  { name: 'nodes', up: addNodes },
  { name: 'configs', up: addConfigs },
];

/** How an exchange was routed, and why its prompt cache was not used. */
async function addRouting(db: Kysely<Tables>, { text }: Dialect): Promise<void> {
  for (const column of ['route_rule', 'affinity', 'cache_break'])
    await sql`alter table exchanges add column ${sql.ref(column)} ${text}`.execute(db);
}

/**
 * What several nodes need to know of each other: who runs, which keys were changed, and facts that they must agree on. A change of a
 * key has the number of its transaction, so that a node finds every change, in whatever order they are committed.
 */
async function addNodes(db: Kysely<Tables>, { text, isShared }: Dialect): Promise<void> {
  await sql`create table facts (name ${text} primary key not null, value ${text} not null)`.execute(db);
  await sql`alter table boots add column heartbeat_ts bigint`.execute(db);
  if (!isShared) return;
  await sql`alter table boots add column folded_ts bigint`.execute(db);
  await sql`alter table client_keys add column changed xid8 not null default pg_current_xact_id()`.execute(db);
  await sql`alter table client_keys add column ends_requests integer not null default 0`.execute(db);
  await sql`create index client_keys_changed on client_keys (changed)`.execute(db);
}

/** Versions of the configuration that several nodes share. A folder belongs to one gateway, whose configuration is a file. */
async function addConfigs(db: Kysely<Tables>, { text, isShared }: Dialect): Promise<void> {
  if (!isShared) return;
  await sql`
    create table config_versions (
      version integer primary key not null, ts bigint not null, text ${text} not null, digest ${text} not null,
      author ${text} not null, comment ${text} not null default '', rollback_of integer
    )`.execute(db);
}

/** Only column types and clauses that SQLite and PostgreSQL read alike. */
async function createLedger(db: Kysely<Tables>, { text, partitionBy, isShared }: Dialect): Promise<void> {
  await sql`
    create table exchanges (
      id ${text} primary key not null, ts bigint not null, settled_ts bigint, state ${text} not null default 'open',
      boot_id ${text} not null, node_id ${text} not null, request_id ${text}, key_id ${text}, key_name ${text},
      tags ${text} not null default '[]', session_id ${text}, client_protocol ${text}, client_name ${text}, user_agent ${text},
      endpoint ${text}, model_requested ${text}, is_stream integer not null default 0,
      provider ${text}, upstream_protocol ${text}, model ${text}, attempts integer not null default 0, ${listEndingColumns(text)},
      queue_ms bigint, notes_count integer not null default 0, notes ${text} not null default '[]',
      note_codes ${text} not null default '[]', rules ${text} not null default '[]'
    ) ${partitionBy('id')}`.execute(db);
  await sql`
    create table attempts (
      exchange_id ${text} not null, number integer not null, ts bigint not null, state ${text} not null default 'open',
      boot_id ${text} not null, provider ${text}, upstream_protocol ${text}, model ${text}, ${listEndingColumns(text)},
      upstream_request_id ${text}, primary key (exchange_id, number)
    ) ${partitionBy('exchange_id')}`.execute(db);
  if (isShared)
    for (const table of ['exchanges', 'attempts'])
      await sql`create table ${sql.table(`${table}_default`)} partition of ${sql.table(table)} default`.execute(db);
  // Partial, so they hold few rows: after a crash the open rows are found at once, whatever the size of the table.
  await sql`create index exchanges_open on exchanges (boot_id) where state = 'open'`.execute(db);
  await sql`create index attempts_open on attempts (boot_id) where state = 'open'`.execute(db);
  await sql`create index exchanges_session on exchanges (session_id, id) where session_id is not null`.execute(db);
  await sql`
    create table usage_rollups (
      rollup integer not null, bucket bigint not null, tag ${text} not null, key_id ${text} not null, model ${text} not null,
      provider ${text} not null, requests bigint not null, errors bigint not null, aborted bigint not null,
      attempts bigint not null, unpriced bigint not null, uncertain bigint not null, input_tokens bigint not null,
      cache_read_tokens bigint not null, cache_creation_tokens bigint not null, output_tokens bigint not null,
      reasoning_tokens bigint not null, input_audio_tokens bigint not null, output_audio_tokens bigint not null,
      cost_micros bigint not null, total_ms bigint not null, ${isShared ? sql`shard ${text} not null default '',` : sql.raw('')}
      primary key (rollup, bucket, tag, key_id, model, provider ${sql.raw(isShared ? ', shard' : '')})
    )`.execute(db);
  if (isShared) await sql`create index usage_rollups_shard on usage_rollups (shard) where shard <> ''`.execute(db);
  await sql`
    create table boots (id ${text} primary key not null, node_id ${text} not null, started_ts bigint not null, ended_ts bigint)
  `.execute(db);
}

/** Names are unique among keys that are not revoked. The audit log is only added to. */
async function createKeys(db: Kysely<Tables>, { text }: Dialect): Promise<void> {
  await sql`
    create table client_keys (
      id ${text} primary key not null, name ${text} not null, digest ${text} not null, pepper ${text} not null,
      previous_digest ${text}, previous_until bigint, policy ${text} not null, tags ${text} not null default '[]',
      created_ts bigint not null, rotated_ts bigint, revoked_ts bigint, last_used_ts bigint
    )`.execute(db);
  await sql`create unique index client_keys_name on client_keys (name) where revoked_ts is null`.execute(db);
  await sql`create index client_keys_revoked on client_keys (revoked_ts) where revoked_ts is not null`.execute(db);
  await sql`
    create table audit_log (
      id ${text} primary key not null, ts bigint not null, actor ${text} not null, action ${text} not null,
      object ${text} not null default '', details ${text} not null default '{}'
    )`.execute(db);
}

/** What attempts without usage may have cost, which budgets count. */
async function addAssumedCosts(db: Kysely<Tables>): Promise<void> {
  await sql`alter table exchanges add column assumed_micros bigint not null default 0`.execute(db);
  await sql`alter table usage_rollups add column assumed_micros bigint not null default 0`.execute(db);
}

const listEndingColumns = (text: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  input_tokens bigint, cache_read_tokens bigint, cache_creation_tokens bigint, output_tokens bigint,
  reasoning_tokens bigint, input_audio_tokens bigint, output_audio_tokens bigint, provenance ${text}, cost_micros bigint,
  model_answered ${text}, price_version ${text}, connect_ms bigint, first_byte_ms bigint, first_token_ms bigint,
  total_ms bigint, http_status integer, ending ${text}, error_code ${text}, possibly_billed integer not null default 0`;

/**
 * Brings the database to the newest version, each step in its own transaction. A database of a newer release is used as it is: its
 * migrations only added. Kysely's own migrator would refuse it.
 */
export async function migrate(
  db: Kysely<Tables>,
  now: number,
  migrations: readonly Migration[] = MIGRATIONS,
  dialect: Dialect = SQLITE,
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await dialect.lock(transaction);
    await transaction.schema
      .createTable('schema_versions')
      .ifNotExists()
      .addColumn('version', 'integer', (column) => column.primaryKey().notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('applied_ts', 'bigint', (column) => column.notNull())
      .execute();
  });
  for (const [index, { name, up }] of migrations.entries()) {
    await db.transaction().execute(async (transaction) => {
      await dialect.lock(transaction);
      // Another process may have done it meanwhile.
      if (index < (await readVersion(transaction))) return;
      await up(transaction, dialect);
      await transaction
        .insertInto('schema_versions')
        .values({ version: index + 1, name, applied_ts: now })
        .execute();
    });
  }
}

async function readVersion(db: Kysely<Tables>): Promise<number> {
  const { version } = await db
    .selectFrom('schema_versions')
    .select(({ fn }) => fn.max('version').as('version'))
    .executeTakeFirstOrThrow();
  return Number(version ?? 0);
}
