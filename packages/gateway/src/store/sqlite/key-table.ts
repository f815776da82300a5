/** Client keys and the audit log on one connection. Synchronous; every value is a parameter. */

import {
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
  type KeyRecord,
  MAX_KEYS,
  MAX_REVOKED_KEYS,
} from '../../keys/records.ts';
import { StoreError } from '../errors.ts';
import { cleanText, type SqlValue } from '../rows.ts';
import type { StoredAuditEntry, StoredKey } from '../schema.ts';
import { type Database, RESULT, readResultCode } from './database.ts';

const COLUMNS = [
  ...['id', 'name', 'digest', 'pepper', 'previous_digest', 'previous_until', 'policy', 'tags'],
  ...['created_ts', 'rotated_ts', 'revoked_ts', 'last_used_ts'],
] as const satisfies readonly (keyof KeyRecord)[];

/** `last_used_ts` only rises, and is not part of a change. */
const CHANGED = COLUMNS.filter((column) => column !== 'id' && column !== 'created_ts' && column !== 'last_used_ts');

const SAVE_KEY = `INSERT INTO client_keys (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map(() => '?').join(', ')})
  ON CONFLICT (id) DO UPDATE SET ${CHANGED.map((column) => `${column} = excluded.${column}`).join(', ')}`;

const LIST_KEYS = `SELECT ${COLUMNS.join(', ')} FROM client_keys WHERE revoked_ts IS NULL ORDER BY created_ts, id LIMIT ?`;

const LIST_REVOKED = `SELECT ${COLUMNS.join(', ')} FROM client_keys WHERE revoked_ts IS NOT NULL ORDER BY revoked_ts DESC, id LIMIT ?`;

const TOUCH_KEY = 'UPDATE client_keys SET last_used_ts = ? WHERE id = ? AND (last_used_ts IS NULL OR last_used_ts < ?)';

const ADD_AUDIT = `INSERT INTO audit_log (id, ts, actor, action, object, details) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO NOTHING`;

const LIST_AUDIT = `SELECT id, ts, actor, action, object, details FROM audit_log
  WHERE id < ? AND (? = '' OR instr(lower(actor || ' ' || action || ' ' || object || ' ' || details), lower(?)) > 0)
  ORDER BY id DESC LIMIT ?`;

const TRIM_AUDIT = `DELETE FROM audit_log
  WHERE id <= (SELECT id FROM audit_log ORDER BY id DESC LIMIT 1 OFFSET ?)`;

/** Rows of a page of the audit log. */
const MAX_AUDIT_ROWS = 1000;

const MAX_DETAILS_LENGTH = 16_384;

/** Above every id. */
const LAST_ID = 'g';

/** Reads and writes the tables of keys. */
export class SqliteKeys {
  readonly #db: Database;
  readonly #maxAuditRows: number | null;

  /** `maxAuditRows`: deletes the oldest lines of the audit log beyond this number, for a store in memory. */
  constructor(db: Database, maxAuditRows: number | null) {
    this.#db = db;
    this.#maxAuditRows = maxAuditRows;
  }

  /** All keys that are not revoked, and the last revoked ones; oldest first. */
  list(): KeyRecord[] {
    // A folder that an earlier release has written, opened for reading.
    if (!this.#hasTables()) return [];
    const rows = [
      ...this.#db.prepare(LIST_KEYS).all(MAX_KEYS),
      ...this.#db.prepare(LIST_REVOKED).all(MAX_REVOKED_KEYS),
    ] as StoredKey[]; // the columns of the table
    return rows.map(toRecord).sort((a, b) => a.created_ts - b.created_ts || (a.id < b.id ? -1 : 1));
  }

  /** Creates or replaces a key, together with its line of the audit log. */
  save(record: KeyRecord, entry: AuditEntry): void {
    try {
      this.#transact(() => {
        this.#db.prepare(SAVE_KEY).run(...listKey(record));
        this.#add(entry);
      });
    } catch (error) {
      if (readResultCode(error) !== RESULT.constraint) throw error;
      throw new StoreError('exists', `there is a key with the name "${record.name}"`, error);
    }
  }

  /** Records when keys were used. */
  touch(uses: readonly (readonly [id: string, ts: number])[]): void {
    this.#transact(() => {
      const touch = this.#db.prepare(TOUCH_KEY);
      for (const [id, ts] of uses) touch.run(Math.floor(ts), id, Math.floor(ts));
    });
  }

  /** Adds a line to the audit log. */
  addAudit(entry: AuditEntry): void {
    this.#transact(() => this.#add(entry));
  }

  #add(entry: AuditEntry): void {
    this.#db.prepare(ADD_AUDIT).run(...listEntry(entry));
    if (this.#maxAuditRows !== null) this.#db.prepare(TRIM_AUDIT).run(this.#maxAuditRows);
  }

  /** A page of the audit log, newest first. */
  listAudit({ cursor, limit = 100, text = '' }: AuditQuery): AuditPage {
    if (!this.#hasTables()) return { entries: [], next: null };
    const size = Math.max(1, Math.min(MAX_AUDIT_ROWS, Math.floor(limit) || 1));
    const rows = this.#db.prepare(LIST_AUDIT).all(cursor ?? LAST_ID, text, text, size + 1) as StoredAuditEntry[]; // its columns
    const entries = rows.slice(0, size).map((row) => ({ ...row, details: JSON.parse(row.details) }) as AuditEntry);
    return { entries, next: rows.length > size ? (entries.at(-1)?.id ?? null) : null };
  }

  #hasTables(): boolean {
    return this.#db.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'client_keys'").get().n === 1;
  }

  #transact(work: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#db.exec('COMMIT');
    } catch (error) {
      // On a full disk SQLite has already rolled back.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }
}

const listKey = (record: KeyRecord): SqlValue[] => {
  const values = { ...record, policy: JSON.stringify(record.policy), tags: JSON.stringify(record.tags) };
  return COLUMNS.map((column) => values[column]);
};

const listEntry = ({ id, ts, actor, action, object, details }: AuditEntry): SqlValue[] => {
  const text = JSON.stringify(details);
  const isLong = text.length > MAX_DETAILS_LENGTH;
  return [
    id,
    Math.floor(ts),
    actor,
    cleanText(action),
    cleanText(object),
    isLong ? '{"is_shortened":true}' : cleanText(text, text.length),
  ];
};

/** A policy that cannot be read must not become one without limits. */
function toRecord(row: StoredKey): KeyRecord {
  try {
    const policy = JSON.parse(row.policy);
    const tags = JSON.parse(row.tags);
    const lists = [policy.models, policy.budgets, policy.addresses, tags];
    if (lists.every(Array.isArray)) return { ...row, policy, tags };
  } catch {
    // Said below.
  }
  throw new StoreError('damaged', `the policy of the key "${row.name}" in the database is damaged; restore a backup`);
}
