import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The script of a worker thread or child process: beside this module, or in the bundle, whose chunks are elsewhere. Node 20 cannot
 * run TypeScript, so tests, which import the sources, use the built one. `name`: below the root of the sources.
 */
export function findProgram(name: string): string {
  const [, root = '', kind = ''] = /^(.*[\\/])(src|out|dist)[\\/]/.exec(fileURLToPath(import.meta.url)) ?? [];
  return join(root, kind === 'src' ? 'dist' : kind, name);
}
