// Runs in a vitest worker: loads the tests once, sees which test meets which mutant, then lets the mutants loose one by one.
import { appendFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { mutants } from './sources.js';
import { judge, load, survey } from './suites.js';
import { recall, release, watch } from './switch.js';

const { MUTATION_OUT: out, MUTATION_FROM: from, MUTATION_PART: part, MUTATION_PARTS: parts, MUTATION_ONLY: only } = process.env;
const say = (verdict) => appendFileSync(out, `${JSON.stringify(verdict)}\n`);
const isMine = ({ id, file }) => id >= Number(from) && id % Number(parts) === Number(part) && file.includes(only);

/** Code that runs while its module loads: all is loaded again, and every test is concerned. */
async function judgeLoading(units) {
  vi.resetModules();
  try {
    return await judge(await load(), units, () => true);
  } catch {
    return 'killed';
  }
}

test('mutants', async () => {
  let entries = [];
  const loading = await watch(async () => {
    entries = await load();
  });
  const units = await survey(entries);
  for (const { id } of mutants.filter(isMine)) {
    say({ id });
    release(id);
    const result = loading.met[id] ? await judgeLoading(units) : await judge(entries, units, ({ met }) => met[id] === 1);
    recall();
    say({ id, result });
  }
  // Nothing that a mutant did may have outlived it.
  expect(await judge(entries, units, () => true)).toBe('survived');
});
