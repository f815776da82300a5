// The tests as the stand-in for vitest kept them, run as often as there are mutants.
import { ROOT, testFiles } from './sources.js';
import { guard, isStuck, watch } from './switch.js';

/** Tests that meet mutants more often are removed: they measure cost, or do on long input what others do on short. */
const MOST_HITS = 1_000_000;

/** What a file or a `describe` registers. */
async function collect(run) {
  const before = globalThis.__keep;
  const entries = [];
  globalThis.__keep = (entry) => entries.push(entry);
  try {
    await run();
  } finally {
    globalThis.__keep = before;
  }
  return entries;
}

export const load = () =>
  collect(async () => {
    for (const file of testFiles) await import(ROOT + file);
  });

async function testsOf(entry) {
  if (entry.kind === 'test') return [entry];
  const tests = [];
  for (const inner of await collect(entry.run)) tests.push(...(await testsOf(inner)));
  return tests;
}

/** Runs every entry without a mutant, where all has to pass, and notes what it meets: its body, and each of its tests. */
export async function survey(entries) {
  const units = [];
  for (const [place, entry] of entries.entries()) {
    let tests = [];
    const body = await watch(async () => {
      tests = await testsOf(entry);
    });
    const seen = [];
    for (const { run } of tests) seen.push(await watch(run, MOST_HITS));
    units.push({ place, body, seen, cost: seen.reduce((sum, known) => sum + (known?.hits ?? 0), body.hits) });
  }
  // The cheapest first: most mutants are noticed by many tests.
  return units.sort((a, b) => a.cost - b.cost);
}

async function runUnit(entry, { body, seen }, concerns) {
  const tests = await guard(() => testsOf(entry), body);
  const all = concerns(body);
  for (const [i, { run }] of tests.entries()) {
    const known = seen[i];
    if (known && (all || concerns(known))) await guard(run, known);
  }
}

/**
 * Runs the tests that a mutant concerns until one of them fails: `killed`, `stuck` in a loop, `survived`, or `unmet` when there are none.
 * `unit`: where it failed.
 */
export async function judge(entries, units, concerns) {
  const concerned = units.filter(({ body, seen }) => concerns(body) || seen.some((known) => known && concerns(known)));
  for (const unit of concerned) {
    try {
      await runUnit(entries[unit.place], unit, concerns);
    } catch {
      return { result: isStuck() ? 'stuck' : 'killed', unit };
    }
  }
  return { result: concerned.length === 0 ? 'unmet' : 'survived' };
}
