/** A lock of the operating system on a file, taken through SQLite. */

import { chmodSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import { type Database, RESULT, readResultCode } from './database.ts';

/**
 * Held by one process at a time. It ends with its process, however that ends, so a dead holder needs no detection. Only SQLite
 * may open the file: closing it elsewhere in the process drops the lock.
 */
export class FileLock {
  readonly #db: Database;

  private constructor(db: Database) {
    this.#db = db;
  }

  /** Takes the lock; undefined when another process has it. Throws when the file cannot be used. The process stands still for `waitMs`. */
  static take(file: string, waitMs: number = TAKE_MS): FileLock | undefined {
    const db = new DatabaseSync(file, { timeout: waitMs });
    try {
      // No prepared statement: one that is not collected would keep the connection, and the lock, after close().
      db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
      chmodSync(file, 0o600);
      return new FileLock(db);
    } catch (error) {
      db.close();
      if (readResultCode(error) === RESULT.busy) return undefined;
      throw error;
    }
  }

  release(): void {
    this.#db.close();
  }
}

/** How long it waits: another process may read the lock for a moment. */
const TAKE_MS = 100;
