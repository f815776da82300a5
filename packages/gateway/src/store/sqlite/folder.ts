/** The data folder: where it is, its files, who owns it, and the space that is kept in reserve. */

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { readCode, systemCode } from '@sluice/lab/text';
import { renameFileSync, tryRenameFileSync } from '../../files/rename.ts';
import { StoreError } from '../errors.ts';
import { RESULT, readResultCode } from './database.ts';
import { FileLock } from './file-lock.ts';

/** The files of a data folder. */
export const listFiles = (folder: string) =>
  ({
    database: join(folder, 'sluice.db'),
    /** Locked by the owner as long as it lives. Only SQLite may open it: closing it elsewhere in the process drops the lock. */
    lock: join(folder, 'owner.lock'),
    /** Who owns the folder and where it listens, for commands and messages. The lock decides whether that is still true. */
    owner: join(folder, 'owner.json'),
    ballast: join(folder, 'ballast'),
    /** What the digests of client keys were made with. Not in the database, so that no backup of it has both. */
    pepper: join(folder, 'pepper'),
    /** What compactions and reasoning state of clients are sealed with, where there was no pepper at the first start. */
    capsuleKey: join(folder, 'capsules.key'),
  }) as const;

/** Creates the folder and the database file when missing, readable by their user alone. */
export function prepareFolder(folder: string): void {
  try {
    createFolder(folder);
    // SQLite gives its other files the mode of this one.
    closeSync(openSync(listFiles(folder).database, 'a', 0o600));
    closeSync(openSync(join(folder, '.write-test'), 'w', 0o600));
    unlinkSync(join(folder, '.write-test'));
  } catch (error) {
    throw createFolderError(folder, error);
  }
}

/** Like `mkdir -p`. Node's recursive `mkdirSync` never returns where the parent exists and ENOENT is the answer, as in /proc. */
function createFolder(folder: string): void {
  if (existsSync(folder)) return;
  const parent = dirname(folder);
  if (parent !== folder) createFolder(parent);
  mkdirSync(folder, { mode: 0o700 });
}

const createFolderError = (folder: string, error: unknown): StoreError =>
  new StoreError(
    'not_writable',
    `data folder "${folder}" is not writable (${readCode(error) ?? 'unknown error'}); change its permissions or set another folder`,
  );

// ---- ownership

/** The gateway that owns a folder. */
export interface Owner {
  readonly boot: string;
  readonly pid: number;
  readonly host: string;
  readonly started_ts: number;
  /** Renewed every few seconds; tells people whether the owner still runs. */
  readonly heartbeat_ts: number;
  /** Where it listens; absent before it does, and for commands that own the folder. */
  readonly url?: string;
}

/** Ownership of a folder. A frozen owner keeps its folder instead of getting a second writer beside it. */
export class FolderLock {
  readonly #lock: FileLock;
  readonly #folder: string;
  #owner: Omit<Owner, 'heartbeat_ts'>;

  private constructor(lock: FileLock, folder: string, boot: string, now: number) {
    this.#lock = lock;
    this.#folder = folder;
    this.#owner = { boot, pid: process.pid, host: hostname(), started_ts: now };
    this.beat(now);
  }

  /** Takes the folder, or throws an error that names its owner. */
  static take(folder: string, boot: string, now: number): FolderLock {
    let lock: FileLock | undefined;
    try {
      lock = FileLock.take(listFiles(folder).lock);
      if (lock) return new FolderLock(lock, folder, boot, now);
    } catch (error) {
      lock?.release();
      throw createFolderError(folder, error);
    }
    throw new StoreError('owned', describeOwner(folder, readOwner(folder), now));
  }

  /** Adds the address of the owner. */
  announce(url: string, now: number): void {
    this.#owner = { ...this.#owner, url };
    this.beat(now);
  }

  /** Renews the heartbeat. Neither a full disk nor a process that reads the file just now may stop the gateway; the next beat repeats it. */
  beat(now: number): void {
    const { owner } = listFiles(this.#folder);
    try {
      writeFileSync(`${owner}.new`, JSON.stringify({ ...this.#owner, heartbeat_ts: now } satisfies Owner), { mode: 0o600 });
      tryRenameFileSync(`${owner}.new`, owner);
    } catch (error) {
      if (readCode(error) !== 'ENOSPC') throw error;
    }
  }

  /** Gives the folder back. */
  release(): void {
    rmSync(listFiles(this.#folder).owner, { force: true });
    this.#lock.release();
  }
}

/** The last known owner of a folder; undefined when its file is missing or damaged. */
export function readOwner(folder: string): Owner | undefined {
  try {
    const owner: Partial<Record<keyof Owner, unknown>> = JSON.parse(readSmall(listFiles(folder).owner));
    const { boot, pid, url } = owner;
    if (typeof boot !== 'string' || typeof pid !== 'number') return undefined;
    return typeof url === 'string' || url === undefined ? (owner as Owner) : undefined;
  } catch {
    return undefined;
  }
}

/** An owner has some 200 bytes. */
const MAX_OWNER_BYTES = 4096;

/** The first bytes of a file. Without O_NONBLOCK, opening a named pipe would wait for its writer. */
function readSmall(path: string): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(file).isFile()) return '';
    const bytes = Buffer.alloc(MAX_OWNER_BYTES);
    return bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(file);
  }
}

/** Whether a process owns a folder now. `unknown`: the lock cannot be read, for the reason in `code`. */
export type Holder =
  | { readonly state: 'free' }
  | { readonly state: 'held'; readonly owner: Owner | undefined }
  | { readonly state: 'unknown'; readonly code: string };

/** Finds the process that owns a folder. The lock decides: the file of a dead owner stays, and its process id may be another's now. */
export function findHolder(folder: string): Holder {
  const { lock } = listFiles(folder);
  try {
    if (!statSync(lock).isFile()) return { state: 'unknown', code: 'not a file' };
    return isLocked(lock) ? { state: 'held', owner: readOwner(folder) } : { state: 'free' };
  } catch (error) {
    const code = systemCode(error) ?? 'not readable';
    return code === 'ENOENT' || code === 'ENOTDIR' ? { state: 'free' } : { state: 'unknown', code };
  }
}

/** Reads through SQLite, which waits for no exclusive lock. Whatever else is in the file does not matter. */
function isLocked(file: string): boolean {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 0 });
  try {
    db.exec('SELECT count(*) FROM sqlite_schema');
    return false;
  } catch (error) {
    const code = readResultCode(error);
    if (code === RESULT.busy) return true;
    if (code === RESULT.notADatabase || code === RESULT.corrupt) return false;
    throw error;
  } finally {
    db.close();
  }
}

function describeOwner(folder: string, owner: Owner | undefined, now: number): string {
  if (!owner) return `data folder "${folder}" is in use by another gateway; stop it or set another folder`;
  const { pid, host, boot, heartbeat_ts } = owner;
  const age = Math.max(0, Math.round((now - heartbeat_ts) / 1000));
  return `data folder "${folder}" is in use by process ${pid} on host "${host}" (boot ${boot}, last heartbeat ${age} s ago); stop it or set another folder`;
}

// ---- space in reserve

/** The space that is left on the disk of a folder. */
export function readFreeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** Writes the ballast: a file whose only use is to be deleted when the disk is full. Returns whether it exists. */
export function createBallast(folder: string, bytes: number): boolean {
  const { ballast } = listFiles(folder);
  if (bytes <= 0 || existsSync(ballast)) return existsSync(ballast);
  // Not the last space of the disk: it would be missing at once.
  if (readFreeBytes(folder) < 4 * bytes) return false;
  try {
    fillFile(`${ballast}.new`, bytes);
    renameFileSync(`${ballast}.new`, ballast);
    return true;
  } catch (error) {
    rmSync(`${ballast}.new`, { force: true });
    if (readCode(error) === 'ENOSPC') return false;
    throw error;
  }
}

function fillFile(path: string, bytes: number): void {
  const file = openSync(path, 'w', 0o600);
  try {
    const block = Buffer.alloc(Math.min(bytes, 1 << 20), 0x5a);
    for (let written = 0; written < bytes; ) written += writeSync(file, block, 0, Math.min(block.length, bytes - written));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Deletes the ballast. Returns whether there was one. */
export function freeBallast(folder: string): boolean {
  const { ballast } = listFiles(folder);
  if (!existsSync(ballast)) return false;
  unlinkSync(ballast);
  return true;
}

/** Makes a file, and its name in its folder, survive a power loss. */
export function syncFile(file: string): void {
  // Windows syncs no file that is open for reading only.
  syncPath(file, 'r+');
  try {
    syncPath(dirname(file), 'r');
  } catch {
    // Some platforms cannot sync a folder.
  }
}

function syncPath(path: string, flags: 'r' | 'r+'): void {
  const handle = openSync(path, flags);
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
