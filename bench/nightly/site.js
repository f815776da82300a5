/** The documentation site: built, its links checked, opened in Chromium. Ends with the line of the check. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const { status } = spawnSync('npm', ['run', '--silent', 'site:check'], {
  cwd: fileURLToPath(new URL('../..', import.meta.url)),
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
