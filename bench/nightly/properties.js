/** The property tests with a seed that no run used before. A failure prints its seed: `SLUICE_SEED=<seed> npx vitest run FILE` repeats it. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const files = ['packages', 'test']
  .flatMap((folder) => readdirSync(`${root}${folder}`, { recursive: true }).map((path) => `${folder}/${path}`))
  .filter((path) => path.endsWith('.test.ts') && !path.includes('node_modules'))
  .filter((path) => readFileSync(root + path, 'utf8').includes("from 'fast-check'"));

const { status } = spawnSync('npx', ['vitest', 'run', '--reporter=dot', ...files], {
  cwd: root,
  env: { ...process.env, SLUICE_SEED: 'random' },
  stdio: 'inherit',
});
console.log(`${files.length} files with property tests`);
process.exitCode = status ?? 1;
