/** Client keys, the audit log and shared facts on PostgreSQL. */
import type { Pool, PoolClient } from 'pg';
import {
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
  type KeyChange,
  type KeyRecord,
  MAX_KEYS,
  MAX_REVOKED_KEYS,
} from '../../keys/records.ts';
import { StoreError } from '../errors.ts';
import {
  AUDIT_COLUMNS,
  CHANGED_KEY_COLUMNS,
  compareKeys,
  KEY_COLUMNS,
  listEntry,
  listKey,
  readAuditQuery,
  toAuditPage,
  toKey,
} from '../key-rows.ts';
import type { SqlValue } from '../rows.ts';
import type { StoredAuditEntry, StoredKey } from '../schema.ts';
import { type Patience, readState, toStoreError, transact, UNIQUE_VIOLATION } from './connection.ts';
import { KEY_CHANNEL } from './notices.ts';

const COLUMNS = KEY_COLUMNS.join(', ');

const marks = (count: number): string => Array.from({ length: count }, (_, index) => `$${index + 1}`).join(', ');

/** A revoked key stays revoked, whatever another node that does not know it yet writes. */
const assign = (column: string): string =>
  column === 'revoked_ts'
    ? 'revoked_ts = coalesce(client_keys.revoked_ts, excluded.revoked_ts)'
    : `${column} = excluded.${column}`;

const SAVE_KEY = `INSERT INTO client_keys (${COLUMNS}, ends_requests) VALUES (${marks(KEY_COLUMNS.length + 1)})
  ON CONFLICT (id) DO UPDATE SET ${[...CHANGED_KEY_COLUMNS, 'ends_requests'].map(assign).join(', ')},
    changed = pg_current_xact_id()`;

const LIST_KEYS = `SELECT ${COLUMNS} FROM client_keys WHERE revoked_ts IS NULL ORDER BY created_ts, id LIMIT $1`;

const LIST_REVOKED = `SELECT ${COLUMNS} FROM client_keys WHERE revoked_ts IS NOT NULL ORDER BY revoked_ts DESC, id LIMIT $1`;

const TOUCH_KEYS = `UPDATE client_keys AS k SET last_used_ts = (r->>1)::bigint FROM jsonb_array_elements($1::jsonb) AS r
  WHERE k.id = r->>0 AND (k.last_used_ts IS NULL OR k.last_used_ts < (r->>1)::bigint)`;

/** Adds a line to the audit log. */
export const ADD_AUDIT = `INSERT INTO audit_log (${AUDIT_COLUMNS.join(', ')}) VALUES (${marks(AUDIT_COLUMNS.length)})
  ON CONFLICT (id) DO NOTHING`;

const LIST_AUDIT = `SELECT ${AUDIT_COLUMNS.join(', ')} FROM audit_log
  WHERE id < $1 AND ($3 = '' OR strpos(lower(actor || ' ' || action || ' ' || object || ' ' || details), lower($3)) > 0)
  ORDER BY id DESC LIMIT $2`;

/**
 * Keys that transactions have changed which were not finished at an earlier snapshot. `horizon` is the oldest transaction that is
 * running now: the next question begins there, so that none is missed, in whatever order they end.
 */
const LIST_CHANGES = `SELECT ${COLUMNS}, ends_requests, changed::text FROM client_keys WHERE changed >= $1::xid8 ORDER BY changed, id LIMIT $2`;

const READ_HORIZON = 'SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS horizon';

/** $1 the fingerprint, $2 this boot. Another pepper may only replace one that no key and no other node needs. */
const CLAIM_PEPPER = `INSERT INTO facts (name, value) VALUES ('pepper', $1)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value
  WHERE NOT EXISTS (SELECT FROM client_keys WHERE revoked_ts IS NULL)
    AND NOT EXISTS (SELECT FROM boots WHERE ended_ts IS NULL AND id <> $2)`;

/** As many changes as there are keys in memory. */
const MAX_CHANGES = MAX_KEYS + MAX_REVOKED_KEYS;

/** A change of a key, with the number of its transaction. */
export interface NumberedChange extends KeyChange {
  readonly number: string;
}

/** Reads and writes the tables of keys. */
export class PostgresKeys {
  readonly #pool: Pool;
  readonly #patience: Patience;

  constructor(pool: Pool, patience: Patience) {
    this.#pool = pool;
    this.#patience = patience;
  }

  /** All keys that are not revoked, and the last revoked ones; oldest first. */
  async list(): Promise<KeyRecord[]> {
    const rows = [
      ...(await this.#query<StoredKey>(LIST_KEYS, [MAX_KEYS])),
      ...(await this.#query<StoredKey>(LIST_REVOKED, [MAX_REVOKED_KEYS])),
    ];
    return rows.map(toKey).sort(compareKeys);
  }

  /** Creates or replaces a key, together with its line of the audit log, and tells the other nodes. */
  async save(record: KeyRecord, entry: AuditEntry, endsRequests: boolean): Promise<void> {
    try {
      await this.#transact(async (client) => {
        await client.query(SAVE_KEY, [...listKey(record), endsRequests ? 1 : 0]);
        await client.query(ADD_AUDIT, listEntry(entry));
        await client.query('SELECT pg_notify($1, $2)', [KEY_CHANNEL, record.id]);
      });
    } catch (error) {
      if (readState(causeOf(error)) !== UNIQUE_VIOLATION) throw error;
      throw new StoreError('exists', `there is a key with the name "${record.name}"`, error);
    }
  }

  /** Records when keys were used. */
  async touch(uses: readonly (readonly [id: string, ts: number])[]): Promise<void> {
    await this.#query(TOUCH_KEYS, [JSON.stringify(uses.map(([id, ts]) => [id, Math.floor(ts)]))]);
  }

  /** Adds a line to the audit log. */
  async addAudit(entry: AuditEntry): Promise<void> {
    await this.#query(ADD_AUDIT, listEntry(entry));
  }

  /** A page of the audit log, newest first. */
  async listAudit(query: AuditQuery): Promise<AuditPage> {
    const { below, size, text } = readAuditQuery(query);
    return toAuditPage(await this.#query<StoredAuditEntry>(LIST_AUDIT, [below, size + 1, text]), size);
  }

  /** Where to begin with `listChanges`: before everything that is not committed yet. */
  async readHorizon(): Promise<string> {
    const [row] = await this.#query<{ horizon: string }>(READ_HORIZON, []);
    return row?.horizon ?? '0';
  }

  /** Keys that were changed since a horizon, and the next one. A change may be returned again. */
  async listChanges(since: string): Promise<{ changes: NumberedChange[]; horizon: string }> {
    // Read first: a transaction that ends in between is found again by the next question.
    const horizon = await this.readHorizon();
    const rows = await this.#query<StoredKey & { ends_requests: number; changed: string }>(LIST_CHANGES, [since, MAX_CHANGES]);
    const changes = rows.map(({ ends_requests, changed, ...row }) => ({
      record: toKey(row),
      endsRequests: ends_requests === 1,
      number: changed,
    }));
    return { changes, horizon };
  }

  /** Registers the fingerprint of a pepper. Returns the one that is in force. */
  async claimPepper(fingerprint: string, boot: string): Promise<string> {
    await this.#query(CLAIM_PEPPER, [fingerprint, boot]);
    return (await this.readPepper()) ?? fingerprint;
  }

  /** The fingerprint of the pepper that all nodes must have; undefined when there is none yet. */
  async readPepper(): Promise<string | undefined> {
    const [row] = await this.#query<{ value: string }>("SELECT value FROM facts WHERE name = 'pepper'", []);
    return row?.value;
  }

  async #query<Row extends object>(text: string, values: readonly SqlValue[]): Promise<Row[]> {
    try {
      return (await this.#pool.query<Row>(text, [...values])).rows;
    } catch (error) {
      throw toStoreError(error);
    }
  }

  async #transact(work: (client: PoolClient) => Promise<void>): Promise<void> {
    try {
      await transact(this.#pool, this.#patience, work);
    } catch (error) {
      throw toStoreError(error);
    }
  }
}

const causeOf = (error: unknown): unknown => (error instanceof Error ? error.cause : undefined);
