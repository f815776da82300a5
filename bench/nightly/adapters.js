/** The tests of the adapters with every stream that has a violation; the tests of each commit read one of each kind. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const { status } = spawnSync('npx', ['vitest', 'run', '--reporter=dot', 'packages/ai-sdk', 'packages/langchain'], {
  cwd: fileURLToPath(new URL('../..', import.meta.url)),
  env: { ...process.env, SLUICE_ALL_STREAMS: '1' },
  stdio: 'inherit',
});
console.log('the tables of docs/adapters.md, with every stream');
process.exitCode = status ?? 1;
