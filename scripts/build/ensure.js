/** For commands that run from a checkout: builds the packages when the sources are newer. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { isFresh } from './freshness.js';
import { ROOT } from './packages.js';

/** Resolves when the builds are up to date. Ends the process with exit code 1 when they cannot be made. The build reports its steps. */
export async function ensureBuilt() {
  if (isFresh()) return;
  // All output goes to stderr: stdout belongs to the command.
  const build = spawn(process.execPath, [join(ROOT, 'scripts/build.js')], { stdio: ['ignore', 2, 2] });
  const [code] = await once(build, 'exit');
  if (code === 0) return;
  process.stderr.write('sluice: the build failed; see the messages above\n');
  process.exit(1);
}
