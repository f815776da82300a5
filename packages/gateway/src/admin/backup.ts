/** A copy of the database as a download. */

import { randomUUID } from 'node:crypto';
import { open, unlink } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Store } from '../store/index.ts';
import { Problem } from './problem.ts';

interface BackupContext {
  readonly store: Store;
  now(): number;
  readonly stallMs: number;
}

/** Stores that are being copied: a copy takes as much disk as the database. */
const copying = new WeakSet<Store>();

/** Streams a copy of the database. Its name is removed before it is sent, so that no file stays behind. */
export async function sendBackup(response: ServerResponse, { store, now, stallMs }: BackupContext): Promise<void> {
  if (store.folder === null) throw new Problem(409, 'the ledger is kept in memory; set a data folder to back it up');
  if (copying.has(store)) throw new Problem(409, 'another backup is being made; retry when it is done');
  copying.add(store);
  const file = join(store.folder, `backup-${randomUUID()}.tmp`);
  try {
    // The copy of a large database takes long, and nothing is sent meanwhile.
    response.setTimeout(0);
    await store.backup(file);
    response.setTimeout(stallMs);
    await sendOnce(response, file, now());
  } finally {
    copying.delete(store);
  }
}

/** Sends a copy, whose name is removed before. */
async function sendOnce(response: ServerResponse, file: string, now: number): Promise<void> {
  const handle = await open(file, 'r');
  try {
    await unlink(file);
    const { size } = await handle.stat();
    const name = `sluice-${new Date(now).toISOString().replace(/[-:]|\.\d+/g, '')}.db`;
    response.writeHead(200, {
      'content-type': 'application/vnd.sqlite3',
      'content-length': String(size),
      'content-disposition': `attachment; filename="${name}"`,
      'cache-control': 'no-store',
    });
    // A client that leaves is no failure of the gateway.
    await pipeline(handle.createReadStream({ autoClose: false }), response).catch(() => response.destroy());
  } finally {
    await handle.close();
  }
}
