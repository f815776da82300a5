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
import type { StoredAuditEntry, StoredKey } from '../schema.ts';
import { type Database, RESULT, readResultCode } from './database.ts';

const SAVE_KEY = `INSERT INTO client_keys (${KEY_COLUMNS.join(', ')}) VALUES (${KEY_COLUMNS.map(() => '?').join(', ')})
  ON CONFLICT (id) DO UPDATE SET ${CHANGED_KEY_COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ')}`;

const LIST_KEYS = `SELECT ${KEY_COLUMNS.join(', ')} FROM client_keys WHERE revoked_ts IS NULL ORDER BY created_ts, id LIMIT ?`;

const LIST_REVOKED = `SELECT ${KEY_COLUMNS.join(', ')} FROM client_keys WHERE revoked_ts IS NOT NULL ORDER BY revoked_ts DESC, id LIMIT ?`;

const TOUCH_KEY = 'UPDATE client_keys SET last_used_ts = ? WHERE id = ? AND (last_used_ts IS NULL OR last_used_ts < ?)';

const ADD_AUDIT = `INSERT INTO audit_log (${AUDIT_COLUMNS.join(', ')}) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO NOTHING`;

const LIST_AUDIT = `SELECT ${AUDIT_COLUMNS.join(', ')} FROM audit_log
  WHERE id < ? AND (? = '' OR instr(lower(actor || ' ' || action || ' ' || object || ' ' || details), lower(?)) > 0)
  ORDER BY id DESC LIMIT ?`;

const TRIM_AUDIT = `DELETE FROM audit_log
  WHERE id <= (SELECT id FROM audit_log ORDER BY id DESC LIMIT 1 OFFSET ?)`;

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
    return rows.map(toKey).sort(compareKeys);
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
  listAudit(query: AuditQuery): AuditPage {
    const { below, size, text } = readAuditQuery(query);
    // The columns of the table.
    const rows = this.#hasTables() ? (this.#db.prepare(LIST_AUDIT).all(below, text, text, size + 1) as StoredAuditEntry[]) : [];
    return toAuditPage(rows, size);
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
