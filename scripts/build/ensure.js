/** For commands that run from a checkout: builds the packages when the sources are newer. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isFresh } from './freshness.js';
import { ROOT } from './packages.js';

/** Resolves when the builds are up to date. Ends the process with exit code 1 when they cannot be made. */
export async function ensureBuilt() {
  if (isFresh()) return;
  if (!existsSync(join(ROOT, 'node_modules/typescript'))) fail('the dependencies are not installed; run "npm ci" first');
  process.stderr.write('sluice: building this checkout …\n');
  // All output goes to stderr: stdout belongs to the command.
  const build = spawn(process.execPath, [join(ROOT, 'scripts/build.js')], { stdio: ['ignore', 2, 2] });
  const [code] = await once(build, 'exit');
  if (code !== 0) fail('the build failed; see the messages above');
}

function fail(message) {
  process.stderr.write(`sluice: ${message}\n`);
  process.exit(1);
}
