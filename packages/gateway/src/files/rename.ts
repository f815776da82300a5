/**
 * Renames files and folders. Windows refuses to while the source or the target is open, also when only a virus scanner or an indexer reads
 * it, which takes milliseconds. No other code of the gateway renames.
 */

import { renameSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemCode } from '@sluice/lab/text';

/** What a rename needs. Tests pass their own. */
export interface RenameTools {
  rename(from: string, to: string): Promise<void> | void;
  sleep(ms: number): Promise<void> | void;
}

/** Renames, and tries again while one of both is in use, for about a second. */
export async function renameFile(from: string, to: string, tools: RenameTools = ASYNC): Promise<void> {
  for (const delay of DELAYS_MS) {
    try {
      return await tools.rename(from, to);
    } catch (error) {
      if (!isInUse(error)) throw error;
    }
    await tools.sleep(delay);
  }
  await tools.rename(from, to);
}

/** The same for code that blocks, such as a restore. */
export function renameFileSync(from: string, to: string, tools: RenameTools = SYNC): void {
  for (const delay of DELAYS_MS) {
    try {
      tools.rename(from, to);
      return;
    } catch (error) {
      if (!isInUse(error)) throw error;
    }
    tools.sleep(delay);
  }
  tools.rename(from, to);
}

/** Renames once. Returns whether it could: for files that are soon written again. Other errors are thrown. */
export function tryRenameFileSync(from: string, to: string, tools: Pick<RenameTools, 'rename'> = SYNC): boolean {
  try {
    tools.rename(from, to);
    return true;
  } catch (error) {
    if (isInUse(error)) return false;
    throw error;
  }
}

/** Pauses between attempts. */
export const DELAYS_MS: readonly number[] = [5, 10, 20, 40, 80, 160, 320, 640];

/** The codes of a file in use on Windows. Elsewhere they mean missing permissions, which cost the pauses before they are reported. */
const IN_USE: ReadonlySet<string | undefined> = new Set(['EPERM', 'EACCES', 'EBUSY']);

const isInUse = (error: unknown): boolean => IN_USE.has(systemCode(error));

const ASYNC: RenameTools = { rename, sleep: (ms) => sleep(ms) };

const SYNC: RenameTools = {
  rename: renameSync,
  sleep: (ms) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
};
