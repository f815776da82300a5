/** Connections to SQLite, opened with the settings of the store. */
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import { StoreError } from '../errors.ts';

export type { DatabaseSyncInstance as Database } from '@photostructure/sqlite';

/** Runs a native call; the worker's version tells the main thread that one is running. */
export type Guard = <Result>(work: () => Result) => Result;

/** For connections on the main thread of a process, such as those of tests. */
export const UNGUARDED: Guard = (work) => work();

/** How long a statement waits for a lock of another process. */
export const BUSY_TIMEOUT_MS = 5000;

/** `PRAGMA application_id` of our files: "Slce". */
const APPLICATION_ID = 0x536c6365;

const WRITER_SETTINGS = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA foreign_keys = ON;
  PRAGMA trusted_schema = OFF;
  PRAGMA wal_autocheckpoint = 1000;
  PRAGMA journal_size_limit = 67108864;
  PRAGMA temp_store = MEMORY;`;

const READER_SETTINGS = `
  PRAGMA trusted_schema = OFF;
  PRAGMA temp_store = MEMORY;`;

/** Opens the database for writing, and creates it when missing. Refuses a file of another application. */
export function openWriter(file: string, busyMs: number = BUSY_TIMEOUT_MS): DatabaseSyncInstance {
  const db = new DatabaseSync(file, { timeout: busyMs });
  try {
    if (isEmpty(db)) db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    assertOurs(db, file);
    db.exec(WRITER_SETTINGS);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Opens the database for reading. */
export function openReader(file: string, busyMs: number = BUSY_TIMEOUT_MS): DatabaseSyncInstance {
  const db = new DatabaseSync(file, { readOnly: true, timeout: busyMs });
  try {
    assertOurs(db, file);
    db.exec(READER_SETTINGS);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

const isEmpty = (db: DatabaseSyncInstance): boolean => db.prepare('SELECT count(*) AS n FROM sqlite_schema').get().n === 0;

function assertOurs(db: DatabaseSyncInstance, file: string): void {
  if (db.prepare('PRAGMA application_id').get().application_id !== APPLICATION_ID)
    throw new StoreError('damaged', `"${file}" is not a database of Sluice`);
}

/** Readers cannot bring a database up to date, and its queries would miss columns. */
export function assertCurrent(db: DatabaseSyncInstance, current: number): void {
  const version = readVersion(db);
  if (version < current)
    throw new StoreError(
      'outdated',
      `the data is of an earlier version (schema ${version}; this one has ${current}); start the gateway with it once, which upgrades it`,
    );
}

/** The problems that SQLite finds in the file; empty when there are none. */
export const findDamage = (db: DatabaseSyncInstance, check: 'quick_check' | 'integrity_check'): string[] =>
  db
    .prepare(`PRAGMA ${check}(10)`)
    .all()
    .map((row) => String(row[check]))
    .filter((line) => line !== 'ok');

/** The version of the schema; 0 for a new database. */
export function readVersion(db: DatabaseSyncInstance): number {
  const isCreated = db.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'schema_versions'").get().n === 1;
  return isCreated ? (db.prepare('SELECT max(version) AS version FROM schema_versions').get().version ?? 0) : 0;
}

/** The primary result code of an SQLite error: 5 busy, 13 full. Undefined for other errors. */
export function readResultCode(error: unknown): number | undefined {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : undefined;
  return typeof code === 'number' ? code & 0xff : undefined;
}

/** Result codes of SQLite that callers act on. */
export const RESULT = {
  busy: 5,
  locked: 6,
  noMemory: 7,
  readOnly: 8,
  interrupted: 9,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  constraint: 19,
  notADatabase: 26,
} as const;
