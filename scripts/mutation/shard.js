// Runs in a vitest worker: loads the tests once, sees which test meets which mutant, then lets the mutants loose one by one.
import { appendFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { mutants } from './sources.js';
import { judge, load, survey } from './suites.js';
import { guard, isStuck, under, watch } from './switch.js';

const { MUTATION_OUT: out, MUTATION_FROM: from, MUTATION_PART: part, MUTATION_PARTS: parts, MUTATION_ONLY: only } = process.env;
const say = (verdict) => appendFileSync(out, `${JSON.stringify(verdict)}\n`);
const isMine = ({ id, file }) => id >= Number(from) && id % Number(parts) === Number(part) && file.includes(only);

const all = () => true;

function reload() {
  vi.resetModules();
  return load();
}

/** Code that runs while its module loads: all is loaded again, and every test is concerned. */
async function judgeLoading(loading, units) {
  try {
    return await judge(await guard(reload, loading), units, all);
  } catch {
    return { result: isStuck() ? 'stuck' : 'killed' };
  }
}

test('mutants', async () => {
  let entries = [];
  const loading = await watch(async () => {
    entries = await load();
  });
  const units = await survey(entries);

  async function judgeRunning(id) {
    const concerns = ({ met }) => met[id] === 1;
    const judgeOnce = () => under(id, () => judge(entries, units, concerns));
    const verdict = await judgeOnce();
    if (!verdict.unit || (await judge(entries, [verdict.unit], concerns)).result === 'survived') return verdict;
    // Without the mutant it fails, too: this one, or one before, has written into the data of a test.
    entries = await reload();
    return judgeOnce();
  }

  for (const { id } of mutants.filter(isMine)) {
    say({ id });
    const { result } = await (loading.met[id] ? under(id, () => judgeLoading(loading, units)) : judgeRunning(id));
    say({ id, result });
  }
  // What is not loaded anew is as it was.
  expect((await judge(await reload(), units, all)).result).toBe('survived');
});
