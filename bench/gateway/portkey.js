/** The gateway that a TypeScript user would pick instead. It is no dependency of the benchmark: it is installed when the benchmark runs. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { here } from './processes.js';

export const PORTKEY_VERSION = '1.15.2';
const FOLDER = here(`../../node_modules/.cache/bench/portkey-${PORTKEY_VERSION}`);
const PROGRAM = join(FOLDER, 'node_modules/@portkey-ai/gateway/build/start-server.js');

const PACKAGE = {
  private: true,
  dependencies: { '@portkey-ai/gateway': PORTKEY_VERSION },
  // With the newest, every stream is answered with 500 ("immutable").
  overrides: { '@hono/node-server': '1.13.7' },
};

/** The arguments that start it; undefined, and a word why, when it cannot be installed. */
export async function portkey(port) {
  if (!existsSync(PROGRAM)) {
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(join(FOLDER, 'package.json'), JSON.stringify(PACKAGE));
    try {
      await promisify(execFile)('npm', ['install', '--omit=dev', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: FOLDER });
    } catch (error) {
      console.error(
        `@portkey-ai/gateway is left out, it could not be installed: ${String(error.stderr || error.message).trim()}`,
      );
      return undefined;
    }
  }
  // It listens on all interfaces, unless it is made to listen on this one.
  return ['--import', here('./bind-local.js'), PROGRAM, `--port=${port}`, '--headless'];
}
