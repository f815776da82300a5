/** The tests of continuation and hedging, with a cut at every byte of a response and for every fallback. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const files = ['splice', 'continuation', 'hedging'].map((name) => `packages/gateway/test/failover/${name}.test.ts`);
const { status } = spawnSync('npx', ['vitest', 'run', '--reporter=dot', ...files], {
  cwd: fileURLToPath(new URL('../..', import.meta.url)),
  env: { ...process.env, SLUICE_EVERY_BYTE: '1' },
  stdio: 'inherit',
});
console.log(`${files.length} files, cut at every byte`);
process.exitCode = status ?? 1;
