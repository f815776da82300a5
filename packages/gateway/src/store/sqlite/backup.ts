/** Checks, backups and restores of a data folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, copyFileSync, existsSync, linkSync, openSync, rmSync, statSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readCode } from '@sluice/lab/text';
import { renameFileSync } from '../../files/rename.ts';
import { StoreError } from '../errors.ts';
import { findDamage, openReader } from './database.ts';
import { FolderLock, listFiles, prepareFolder, syncFile } from './folder.ts';
import { findScript } from './worker-client.ts';

/** A check or a copy that runs in its own process. */
export interface Task {
  /** The problems found. */
  readonly result: Promise<string[]>;
  /** Ends the process at once. */
  cancel(): void;
}

/** Looks for damage. */
export const startCheck = (folder: string): Task => startTask('check', listFiles(folder).database);

function startTask(...args: string[]): Task {
  const child = spawn(process.execPath, [findScript('task.js'), ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  return { result: readResult(child, args[0] ?? ''), cancel: () => void child.kill('SIGKILL') };
}

const MAX_ERROR_LENGTH = 4000;

function readResult(child: ChildProcess, name: string): Promise<string[]> {
  let output = '';
  let errors = '';
  child.stdout?.on('data', (data) => {
    output += data;
  });
  child.stderr?.on('data', (data) => {
    errors = (errors + data).slice(0, MAX_ERROR_LENGTH);
  });
  return new Promise((resolve, reject) => {
    const fail = (reason: string): void => reject(new StoreError('unavailable', `${name} of the database failed: ${reason}`));
    child.once('error', (error) => fail(error.message));
    child.once('close', (code) => (code === 0 ? resolve(JSON.parse(output)) : fail(findReason(errors))));
  });
}

/** The line of a stack trace that names the error. */
const findReason = (errors: string): string => /^\w*Error.*$/m.exec(errors)?.[0] ?? 'the process ended early';

/** Copies the database of a folder, also while a gateway writes to it. The file appears when it is complete. */
export async function backUp(folder: string, file: string): Promise<void> {
  if (existsSync(file)) throw createExistsError(file);
  const unfinished = `${file}.${process.pid}.unfinished`;
  // Of a process with the same id that was killed, as in a container.
  rmSync(unfinished, { force: true });
  // Created here, for its mode, and so that a path that cannot be written is an error of the system.
  closeSync(openSync(unfinished, 'wx', 0o600));
  try {
    await startTask('copy', listFiles(folder).database, unfinished).result;
    syncFile(unfinished);
    // Unlike rename(), link() fails when the name exists.
    linkSync(unfinished, file);
    syncFile(file);
  } catch (error) {
    throw readCode(error) === 'EEXIST' ? createExistsError(file) : error;
  } finally {
    rmSync(unfinished, { force: true });
  }
}

const createExistsError = (file: string): StoreError =>
  new StoreError('exists', `backup "${file}" exists; choose another name or delete it`);

/**
 * Replaces the database of a folder by a backup. Throws while a gateway owns the folder, and when the backup is damaged. The replaced
 * database stays beside it. Returns its name, or null when there was none.
 */
export function restore(folder: string, file: string, now: number = Date.now()): string | null {
  assertIntact(file);
  prepareFolder(folder);
  const lock = FolderLock.take(folder, `restore-${now}`, now);
  try {
    const { database } = listFiles(folder);
    const copy = join(folder, 'sluice.db.restored');
    copyFileSync(file, copy);
    syncFile(copy);
    const replaced = moveAside(database, now);
    renameFileSync(copy, database);
    syncFile(database);
    return replaced;
  } finally {
    lock.release();
  }
}

function assertIntact(file: string): void {
  if (!existsSync(file)) throw new StoreError('damaged', `backup "${file}" does not exist`);
  let problem: string | undefined;
  try {
    const db = openReader(file);
    problem = findDamage(db, 'integrity_check')[0];
    if (db.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name IN ('exchanges', 'schema_versions')").get().n !== 2)
      problem = 'it has no ledger';
    db.close();
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  if (problem !== undefined)
    throw new StoreError(
      'damaged',
      `backup "${file}" cannot be restored: ${problem}; name a file that "sluice backup" has written`,
    );
}

/** The write-ahead log holds the newest rows, so it moves with its database. */
function moveAside(database: string, now: number): string | null {
  const aside = join(dirname(database), `sluice.db.replaced-${now}`);
  // A new folder has an empty file.
  if (statSync(database, { throwIfNoEntry: false })?.size === 0 && !existsSync(`${database}-wal`)) unlinkSync(database);
  for (const suffix of ['-wal', '']) if (existsSync(database + suffix)) renameFileSync(database + suffix, aside + suffix);
  if (existsSync(`${database}-shm`)) unlinkSync(`${database}-shm`);
  return existsSync(aside) ? aside : null;
}
