/** One build at a time in a checkout, also when several commands start together. */
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { renameFile } from './files.js';
import { ROOT } from './packages.js';

const LOCK = join(ROOT, '.cache/build.lock');
const POLL_MS = 100;
const MAX_WAIT_MS = 300_000;

/** Runs `work` while no other process does; a process that has died holds nothing. `onWait` is called once when another one holds it. */
export async function withLock(work, onWait) {
  const mine = `${LOCK}.${process.pid}`;
  mkdirSync(dirname(LOCK), { recursive: true });
  writeFileSync(mine, String(process.pid));
  try {
    await acquire(mine, onWait);
    try {
      return await work();
    } finally {
      rmSync(LOCK, { force: true });
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

async function acquire(mine, onWait) {
  for (let waited = 0; !tryLink(mine); waited += POLL_MS) {
    if (waited >= MAX_WAIT_MS) throw new Error(`another build holds ${LOCK}; if none is running, delete that file`);
    removeDead();
    if (waited === POLL_MS) onWait();
    await sleep(POLL_MS);
  }
}

/** A link appears with its content, so nobody reads a lock without its owner. */
function tryLink(mine) {
  try {
    linkSync(mine, LOCK);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  }
}

function removeDead() {
  const owner = readOwner(LOCK);
  if (owner === undefined || isAlive(owner)) return;
  const taken = `${LOCK}.dead.${process.pid}`;
  try {
    renameFile(LOCK, taken);
    // Another process may have been faster, and its lock is the one that was moved.
    if (readOwner(taken) !== owner) tryLink(taken);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  rmSync(taken, { force: true });
}

function readOwner(file) {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
