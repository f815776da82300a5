/** Where the data of a gateway is when none is configured. Loads no database, for commands that need no other part of the store. */

import { join } from 'node:path';

type Env = Readonly<Record<string, string | undefined>>;

/** In the place of a folder: everything is kept in memory. */
export const MEMORY = 'memory';

/** The folder of the user; memory for a user without a home, such as that of a container. */
export function findDefaultFolder(env: Env): string {
  const home = env['HOME'] || env['USERPROFILE'] || '';
  return home === '' && !env['XDG_DATA_HOME'] ? MEMORY : buildDefaultFolder(env, process.platform, home);
}

/** `$XDG_DATA_HOME/sluice`, or the custom of the platform. */
export function buildDefaultFolder(env: Env, platform: NodeJS.Platform, home: string): string {
  const base = env['XDG_DATA_HOME'];
  // The specification says to ignore relative paths.
  if (base?.startsWith('/')) return join(base, 'sluice');
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'sluice');
  if (platform === 'win32') return join(env['LOCALAPPDATA'] || join(home, 'AppData', 'Local'), 'sluice');
  return join(home, '.local', 'share', 'sluice');
}
