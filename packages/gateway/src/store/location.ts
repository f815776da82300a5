/** Where the data of a gateway is when none is configured. Loads no database, for commands that need no other part of the store. */

import { posix, win32 } from 'node:path';

type Env = Readonly<Record<string, string | undefined>>;

/** In the place of a folder: everything is kept in memory. */
export const MEMORY = 'memory';

/** The folder of the user; memory for a user without a home, such as that of a container. */
export function findDefaultFolder(env: Env, platform: NodeJS.Platform = process.platform): string {
  const { isAbsolute, join } = platform === 'win32' ? win32 : posix;
  const parent = listParents(env, platform).find((path) => isAbsolute(path));
  return parent === undefined ? MEMORY : join(parent, 'sluice');
}

/** `$XDG_DATA_HOME`, or the custom of the platform. Relative paths are ignored, as the specification of XDG says. */
function listParents(env: Env, platform: NodeJS.Platform): string[] {
  const { XDG_DATA_HOME = '', HOME, USERPROFILE, LOCALAPPDATA = '' } = env;
  const below = (home: string | undefined, path: string): string => (home ? `${home}/${path}` : '');
  // HOME of a Unix shell on Windows is a path of that shell: /c/Users/u.
  if (platform === 'win32') return [XDG_DATA_HOME, LOCALAPPDATA, below(USERPROFILE, 'AppData/Local')];
  return [XDG_DATA_HOME, below(HOME || USERPROFILE, platform === 'darwin' ? 'Library/Application Support' : '.local/share')];
}
