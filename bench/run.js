/** Sluice, the hand-written limits and the peers, side by side: `node bench/run.js [--quick] [--only NAME] [--json]`. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { casesOf } from './cases.js';

const { values: options } = parseArgs({
  options: { json: { type: 'boolean' }, quick: { type: 'boolean' }, only: { type: 'string' } },
});

const CHILD = fileURLToPath(new URL('./child.js', import.meta.url));
const LIMIT_SECONDS = 10;
const ROUNDS = { accumulate: 3, sse: 2, endToEnd: 2, convert: 3 };
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

const cases = casesOf(options).filter(({ section, name }) => !options.only || `${section} ${name}`.includes(options.only));
if (cases.length === 0) {
  console.error(`no case has ${JSON.stringify(options.only)} in its name; there are:`);
  for (const { section, name } of casesOf(options)) console.error(`  ${section} ${name}`);
  process.exit(2);
}

const line = (name, ...cells) => name.padEnd(24) + cells.map((cell) => cell.padStart(12)).join('');
const number = (value) => (value >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3));
let section = '';

const results = [];
const hopeless = new Map();
if (!options.json) console.log(header());
for (const test of cases) {
  const result = await runCase(test);
  results.push(result);
  if (!options.json) printCase(result);
}
if (options.json) console.log(JSON.stringify({ node: process.version, limitSeconds: LIMIT_SECONDS, results }));

/** Light subjects in several rounds, by turns, so that a slow moment of the machine hits all of them; the best round counts. */
async function runCase({ subjects, ...test }) {
  const found = new Map(subjects.map((subject) => [subject.name, []]));
  const rounds = options.quick || test.n >= 1e6 ? 2 : ROUNDS[test.section];
  for (let round = 0; round < rounds; round++) {
    for (const subject of subjects) {
      if (round > 0 && !subject.light) continue;
      found.get(subject.name).push(await runUnlessHopeless({ ...test, effort: EFFORT[test.section] }, subject));
    }
  }
  const rows = subjects.map(({ name }) => bestOf(name, found.get(name)));
  const [hand] = rows;
  const sluice = rows.find(({ name }) => name.startsWith('sluice'));
  for (const row of rows) {
    if (row.cpuNs === undefined) continue;
    row.toHand = row.cpuNs / hand.cpuNs;
    row.toSluice = row.cpuNs / sluice.cpuNs;
  }
  return { section: test.section, name: test.name, rows };
}

/** A peer that ran out of time on one stream of calls, or of text, is not asked for another: it is quadratic. */
async function runUnlessHopeless(test, subject) {
  const key = `${test.section} ${subject.name} ${test.kind === 'text' ? 'text' : 'calls'}`;
  if (hopeless.has(key)) return { right: false, note: `> ${LIMIT_SECONDS} s (not run: already at ${hopeless.get(key)})` };
  const result = await runChild({ case: test, subject });
  if (result.isLate) hopeless.set(key, test.name);
  return result;
}

function bestOf(name, rounds) {
  const failed = rounds.find((round) => !round.right);
  if (failed) return { name, note: failed.note ?? 'wrong answer' };
  const best = rounds.reduce((a, b) => (a.cpuNs <= b.cpuNs ? a : b));
  return { name, cpuNs: best.cpuNs / best.units, wallNs: best.wallNs / best.units, runMs: best.cpuNs / 1e6 };
}

/** A limit in CPU seconds, because the machine may be shared, and a generous one in wall time. */
function runChild(task) {
  const node = [process.execPath, '--max-old-space-size=8000', CHILD, JSON.stringify(task)];
  // Making a million chunks takes about 10 s by itself.
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
  return [
    `Sluice benchmark, node ${process.version}. CPU time of the whole process (main thread, GC, JIT), wall time beside it.`,
    'Every subject runs in a process of its own for every case, warmed up; the lower quartile of its runs counts. The hand-written',
    `limit, sluice and other quick ones take turns for 2 or 3 rounds, the best round counts; slow peers run once, ${LIMIT_SECONDS} s of CPU at most.`,
    'Each result is compared with the expected text and arguments before its time counts.',
  ].join('\n');
}

function printCase({ section: current, name, rows }) {
  if (current !== section) console.log(`\n${TITLES[current]}\n${line('', 'CPU ns', 'wall ns', 'x hand', 'x sluice')}`);
  section = current;
  console.log(name);
  for (const row of rows) {
    if (row.note) console.log(line(`  ${row.name}`, row.note));
    else console.log(line(`  ${row.name}`, ...[row.cpuNs, row.wallNs, row.toHand, row.toSluice].map(number)));
  }
}
