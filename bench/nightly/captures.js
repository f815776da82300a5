/** The client's bytes, derived again from the capture of every recording for every client. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { status, stdout } = spawnSync('npx', ['vitest', 'run', 'packages/gateway/test/capture/recordings.test.ts'], {
  cwd: root,
  env: { ...process.env, SLUICE_CAPTURE_ALL: '1' },
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
});
process.stdout.write(stdout);
const counts = [...stdout.matchAll(/(\d+) exchanges with \S+ derived/g)].map((match) => Number(match[1]));
console.log(`${counts.reduce((sum, count) => sum + count, 0)} exchanges`);
process.exitCode = status ?? 1;
