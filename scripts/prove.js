/**
 * `npm run prove`: the full run over the corpus, which everybody has and which writes docs/conformance.md, and a second one over the
 * recordings that the corpus was derived from, where they are.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const recordings = join(process.env.SLUICE_SHARED ?? join(root, '../shared'), 'recordings');

const run = (corpus) => {
  console.log(`\n== over the ${corpus === 'recordings' ? 'recordings' : 'corpus (fixtures/corpus)'}`);
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const { status } = spawnSync(process.execPath, [vitest, 'run', '--config', 'test/prove/vitest.config.ts'], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, SLUICE_CORPUS: corpus },
  });
  return status === 0;
};

const results = [run('shapes'), existsSync(recordings) ? run('recordings') : undefined];
if (results[1] === undefined) console.log(`\nnot run over recordings: ${recordings} is missing (set SLUICE_SHARED)`);
process.exitCode = results.includes(false) ? 1 : 0;
