/**
 * Sluice, hand-written code and other libraries, side by side: `node bench/run.js [--quick] [--only NAME] [--rounds N] [--json] [--readme]`. With
 * `--against DIR`: this build and that of another checkout, round by round. bench/README.md explains the figures.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { casesOf } from './cases.js';
import { isReadmeCase, writeReadme } from './readme.js';
import { compare, format, orderOf, summarize, summarizeRatio } from './statistics.js';

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean' },
    quick: { type: 'boolean' },
    only: { type: 'string' },
    rounds: { type: 'string' },
    against: { type: 'string' },
    readme: { type: 'boolean' },
  },
});

const CHILD = fileURLToPath(new URL('./child.js', import.meta.url));
const LIMIT_SECONDS = 10;
const rounds = roundsOf();
const TITLES = {
  accumulate: 'accumulate: parsed chunks to message (CPU ns a chunk)',
  sse: 'sse: bytes to frames (CPU ns a frame)',
  endToEnd: 'end to end: bytes in 8 KB pieces to message (CPU ns a chunk)',
  convert: 'convert: a stream of one protocol to another, bytes to bytes (CPU ns a chunk)',
};
const EFFORT = {
  accumulate: { warmMs: 500, cpuMs: 300 },
  sse: { warmMs: 300, cpuMs: 400 },
  endToEnd: { warmMs: 1000, cpuMs: 400 },
  convert: { warmMs: 1000, cpuMs: 400 },
};

const cases = chosenCases();
const results = [];
const tooSlow = new Map();
let section = '';

if (!options.json) console.log(header());
for (const test of cases) {
  const result = await runCase(test);
  results.push(result);
  if (!options.json) printCase(result);
}
if (options.json) console.log(JSON.stringify({ node: process.version, limitSeconds: LIMIT_SECONDS, rounds, results }));
else printSummary();
if (options.readme) writeReadme(results, rounds);

function roundsOf() {
  const count = Number(options.rounds ?? (options.against ? 11 : 5));
  if (Number.isInteger(count) && count >= (options.readme ? 5 : 1)) return count;
  console.error(`--rounds: must be an integer of at least ${options.readme ? 5 : 1}`);
  process.exit(2);
}

function chosenCases() {
  const all = options.against ? casesOf(options).map(comparedCase) : casesOf(options);
  if (options.readme) return all.filter(isReadmeCase);
  const found = all.filter(({ section, name }) => !options.only || `${section} ${name}`.includes(options.only));
  if (found.length > 0) return found;
  console.error(`no case has ${JSON.stringify(options.only)} in its name; there are:`);
  for (const { section, name } of all) console.error(`  ${section} ${name}`);
  return process.exit(2);
}

/**
 * The subjects of a comparison: Sluice in both builds. Each build runs its own bench/subjects/sluice.js, so that the API may differ between
 * them.
 */
function comparedCase({ goals: _, ...test }) {
  const other = resolve(options.against);
  if (!existsSync(join(other, 'packages/core/dist/index.js'))) {
    console.error(`--against: ${options.against} has no build; run \`npm run build\` there`);
    process.exit(2);
  }
  const subjects = test.subjects
    .filter(({ run }) => run === 'sluice')
    .flatMap((subject) => [
      { ...subject, name: `${subject.name}, before`, build: other },
      { ...subject, name: `${subject.name}, after`, before: `${subject.name}, before` },
    ]);
  return { ...test, subjects };
}

async function runCase({ subjects, goals = [], ...test }) {
  const found = new Map(subjects.map((subject) => [subject.name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const subject of orderOf(subjects, round)) {
      found.get(subject.name).push(await runOnce({ ...test, effort: EFFORT[test.section] }, subject));
    }
  }
  const costs = new Map(subjects.map(({ name }) => [name, found.get(name).map(({ cpuNs, units }) => cpuNs / units)]));
  const ratio = (name, reference) => summarizeRatio(costs.get(name), costs.get(reference));
  const sluice = subjects.find(({ run }) => run === 'sluice').name;
  const rows = subjects.map(({ name, before }) => {
    const failed = found.get(name).find(({ right }) => !right);
    if (failed) return { name, note: failed.note ?? 'wrong result' };
    const row = {
      name,
      cpuNs: summarize(costs.get(name)),
      wallNs: summarize(found.get(name).map((one) => one.wallNs / one.units)),
    };
    if (options.against) return before ? { ...row, toBefore: ratio(name, before) } : row;
    return { ...row, toFirst: ratio(name, subjects[0].name), toSluice: ratio(name, sluice) };
  });
  const reached = goals.map(({ to, most }) => ({ to, most, ratio: ratio(sluice, to) }));
  return { section: test.section, name: test.name, rows, goals: reached };
}

/** A peer that exceeded the limit on one stream of calls, or of text, is not run on a larger one: its cost is quadratic. */
async function runOnce(test, subject) {
  const key = `${test.section} ${subject.name} ${test.kind === 'text' ? 'text' : 'calls'}`;
  if (tooSlow.has(key)) return { right: false, note: `> ${LIMIT_SECONDS} s (at ${tooSlow.get(key)})` };
  const result = await runChild({ case: test, subject });
  if (result.isLate && !subject.light) tooSlow.set(key, test.name);
  return result;
}

/** The limit is in CPU seconds, because the machine may be shared; four times as much in wall time. */
function runChild(task) {
  const node = [process.execPath, '--max-old-space-size=8000', CHILD, JSON.stringify(task)];
  // Generating a million chunks takes about 10 s by itself.
  const limit = LIMIT_SECONDS + (task.case.n >= 1e6 ? 10 : 0);
  return new Promise((resolve) => {
    const child = spawn('sh', ['-c', `ulimit -t ${limit}; exec "$@"`, 'sh', ...node], { stdio: ['ignore', 'pipe', 'pipe'] });
    const timer = setTimeout(() => child.kill('SIGKILL'), limit * 4000);
    let out = '';
    let error = '';
    child.stdout.on('data', (text) => (out += text));
    child.stderr.on('data', (text) => (error += text));
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (signal) resolve({ right: false, isLate: true, note: `> ${LIMIT_SECONDS} s` });
      else if (code !== 0) resolve({ right: false, note: `fails: ${/^\w*Error.*$/m.exec(error)?.[0] ?? `exit ${code}`}` });
      else resolve(JSON.parse(out));
    });
  });
}

function header() {
  const builds = options.against ? ['before: the build in the other checkout; after: this build.'] : [];
  return [
    `Sluice benchmark, node ${process.version}, ${rounds} rounds. CPU time of the whole process (main thread, GC, JIT), wall time beside it.`,
    'Median [interquartile range] of the rounds; ratios are taken within each round. Subjects take turns, each run in a process of its own,',
    `warmed up, at most ${LIMIT_SECONDS} s of CPU. A result must have the expected text and arguments before its time counts.`,
    ...builds,
  ].join('\n');
}

function line(name, cells) {
  return name.padEnd(26) + cells.map((cell) => cell.padStart(30)).join('');
}

function printCase({ section: current, name, rows, goals }) {
  const columns = options.against ? ['CPU ns', 'wall ns', 'after / before'] : ['CPU ns', 'wall ns', 'x first row', 'x sluice'];
  if (current !== section) console.log(`\n${TITLES[current]}\n${line('', columns)}`);
  section = current;
  console.log(name);
  for (const { name: subject, note, cpuNs, wallNs, toFirst, toSluice, toBefore } of rows) {
    const ratios = options.against
      ? [toBefore ? `${format(toBefore)} ${compare(toBefore)}` : '']
      : [format(toFirst), format(toSluice)];
    console.log(line(`  ${subject}`, note ? [note] : [format(cpuNs), format(wallNs), ...ratios]));
  }
  for (const { to, most, ratio } of goals) {
    const verdict = ratio && ratio.median <= most ? 'yes' : 'no';
    console.log(`  goal: sluice at most ${most}x ${to} by median: ${verdict}, ${format(ratio)}`);
  }
}

/** Which cases differ beyond noise, and by how much all of them do. */
function printSummary() {
  if (!options.against) return;
  const all = results.flatMap(({ section, name, rows }) =>
    rows.flatMap(({ name: subject, toBefore }) =>
      toBefore ? [{ label: `${section} ${name}: ${subject}`, ratio: toBefore }] : [],
    ),
  );
  if (all.length === 0) return;
  const mean = Math.exp(all.reduce((sum, { ratio }) => sum + Math.log(ratio.median), 0) / all.length);
  console.log(`\nafter / before, geometric mean of ${all.length} medians: ${mean.toFixed(3)}`);
  for (const verdict of ['slower', 'faster']) {
    const found = all.filter(({ ratio }) => compare(ratio) === verdict);
    console.log(`${verdict} beyond noise: ${found.length} of ${all.length}`);
    for (const { label, ratio } of found) console.log(`  ${label} ${format(ratio)}`);
  }
}
