/** Runs the tests of the suite that have a text in their source, with more in their environment. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Ends with a line of figures, and with the exit code of the tests. */
export function runTestFiles({ having, env, kind }) {
  const files = ['packages', 'test']
    .flatMap((folder) => readdirSync(`${root}${folder}`, { recursive: true }).map((path) => `${folder}/${path}`))
    .filter((path) => path.endsWith('.test.ts') && !path.includes('node_modules'))
    .filter((path) => readFileSync(root + path, 'utf8').includes(having));
  const { status } = spawnSync('npx', ['vitest', 'run', '--reporter=dot', ...files], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: 'inherit',
  });
  console.log(`${files.length} files ${kind}`);
  process.exitCode = status ?? 1;
}
