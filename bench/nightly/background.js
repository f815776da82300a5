/** The tests of background responses, with a connection that is cut at every byte of 20 streams. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const file = 'packages/gateway/test/responses/background.test.ts';
const { status } = spawnSync('npx', ['vitest', 'run', '--reporter=dot', file], {
  cwd: fileURLToPath(new URL('../..', import.meta.url)),
  env: { ...process.env, SLUICE_EVERY_BYTE: '1' },
  stdio: 'inherit',
});
console.log('20 streams, cut at every byte and resumed');
process.exitCode = status ?? 1;
