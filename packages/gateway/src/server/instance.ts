/** What identifies a running gateway to commands: the run that owns its data, or its configuration when it keeps data in memory. */

import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { resolve } from 'node:path';
import type { Store } from '../store/index.ts';

/** The header of `/health/live` that has it. It is random, or a digest that shows no path, host or user. It identifies, and proves nothing. */
export const INSTANCE_HEADER = 'x-sluice-instance';

/** The identity of a gateway with this store and configuration file. */
export const chooseInstance = ({ boot, folder, shared }: Store, file: string | undefined): string =>
  folder === null && !shared ? digestConfig(file) : boot;

/** The identity of gateways in memory: those of one file on this machine, or of one user without a file. */
export function digestConfig(file: string | undefined): string {
  const origin = file === undefined ? ['user', process.getuid?.() ?? userInfo().username] : ['file', findRealPath(file)];
  return createHash('sha256')
    .update(JSON.stringify([hostname(), ...origin]))
    .digest('hex')
    .slice(0, 32);
}

function findRealPath(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return resolve(file);
  }
}
