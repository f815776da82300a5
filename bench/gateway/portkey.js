/** The gateway that a TypeScript user would pick instead. It is no dependency of the benchmark: it is installed when the benchmark runs. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../method/commits.js';
import { here } from './processes.js';

export const PORTKEY_VERSION = '1.15.2';
const FOLDER = join(ROOT, `.cache/bench/portkey-${PORTKEY_VERSION}`);
const PROGRAM = join(FOLDER, 'node_modules/@portkey-ai/gateway/build/start-server.js');

const PACKAGE = {
  private: true,
  dependencies: { '@portkey-ai/gateway': PORTKEY_VERSION },
  // With the newest, every stream gets 500 ("immutable").
  overrides: { '@hono/node-server': '1.13.7' },
};

/** `{ found }`: the arguments that start it; `{ missing }`: why it cannot be installed. */
export async function findPortkey() {
  if (!existsSync(PROGRAM)) {
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(join(FOLDER, 'package.json'), JSON.stringify(PACKAGE));
    try {
      await promisify(execFile)('npm', ['install', '--omit=dev', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: FOLDER });
    } catch (error) {
      return {
        missing: `it could not be installed: ${String(error.stderr || error.message)
          .trim()
          .slice(0, 300)}`,
      };
    }
  }
  // It listens on all interfaces, unless it is made to listen on this one.
  return { found: ['--import', here('./bind-local.js'), PROGRAM] };
}
