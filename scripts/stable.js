/**
 * Shows that the tests pass on a busy machine, on one core, in any order and every time: `npm run stable`.
 *
 * - `loaded`: the whole suite twice in random order beside four busy processes (`--times N`: N times)
 * - `one-core`: the whole suite on one core
 * - `repeat`: the 40 slowest files of the last whole run 20 times each (`--files N`, `--times N`)
 *
 * `--only STAGE` runs one of them. Names every test that failed, how often, and the seeds of the orders: `npx vitest run
 * --sequence.shuffle --sequence.seed=SEED` repeats an order. Exit code 1 when a test failed.
 */
import { spawn } from 'node:child_process';
import { copyFileSync, createWriteStream, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');
const CACHE = join(ROOT, '.cache');

/** What a run in CI mode writes: its tests, and errors outside of tests. */
const REPORT = join(CACHE, 'tests.json');
const ERRORS = join(CACHE, 'hooks.txt');

/** The report of the last whole run of this script. */
const WHOLE = join(CACHE, 'stable.json');

const BUSY_PROCESSES = 4;

const STAGES = { loaded: runLoaded, 'one-core': runOnOneCore, repeat: runRepeatedly };

const { values: options } = parseArgs({
  options: { only: { type: 'string' }, files: { type: 'string' }, times: { type: 'string' } },
});
if (options.only !== undefined && !Object.hasOwn(STAGES, options.only)) {
  console.error(`no stage is called "${options.only}"; known: ${Object.keys(STAGES).join(', ')}`);
  process.exit(2);
}

/** The seeds of the runs in which a test failed, by its name. */
const failures = new Map();
let runs = 0;

for (const [name, run] of Object.entries(STAGES)) if (options.only === undefined || options.only === name) await run();
for (const [test, seeds] of failures)
  console.log(`FAILED in ${seeds.length} of ${runs} runs: ${test} (seeds ${seeds.join(', ')})`);
console.log(`${runs} runs, ${failures.size} failing tests`);
process.exitCode = failures.size === 0 ? 0 : 1;

async function runLoaded() {
  const busy = Array.from({ length: BUSY_PROCESSES }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  try {
    for (let run = 0; run < Number(options.times ?? 2); run++) await runWhole('loaded', [process.execPath, VITEST]);
  } finally {
    for (const child of busy) child.kill();
  }
}

async function runOnOneCore() {
  await runWhole('one core', ['taskset', '-c', '0', process.execPath, VITEST], ['--maxWorkers=1']);
}

async function runWhole(name, command, args = []) {
  await run(name, command, args);
  if (existsSync(REPORT)) copyFileSync(REPORT, WHOLE);
}

async function runRepeatedly() {
  const from = [WHOLE, REPORT].find((file) => existsSync(file));
  if (from === undefined) {
    console.error('there is no report of a whole run; run the stage "loaded" first');
    process.exit(2);
  }
  const files = findSlowest(readJson(from), Number(options.files ?? 40));
  for (let turn = 0; turn < Number(options.times ?? 20); turn++)
    await run(`${files.length} slowest files`, [process.execPath, VITEST], files);
}

/** Runs tests in random order, and notes what failed. */
async function run(name, command, args) {
  const seed = Math.floor(Math.random() * 1e9);
  const log = join(CACHE, `stable-${seed}.txt`);
  const begun = performance.now();
  for (const file of [REPORT, ERRORS]) rmSync(file, { force: true });
  const code = await call([...command, 'run', '--sequence.shuffle', `--sequence.seed=${seed}`, ...args], log);
  const failed = new Set(listFailures(code, log));
  for (const test of failed) failures.set(test, [...(failures.get(test) ?? []), seed]);
  if (failed.size === 0) rmSync(log);
  runs += 1;
  console.log(`${name}, seed ${seed}: ${failed.size} failed, ${((performance.now() - begun) / 1000).toFixed(0)} s`);
}

function call([command, ...args], log) {
  mkdirSync(CACHE, { recursive: true });
  const output = createWriteStream(log);
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: ROOT, env: { ...process.env, CI: 'true' }, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) stream.pipe(output, { end: false });
    child.once('error', () => resolve(1));
    child.once('close', (code) => output.end(() => resolve(code ?? 1)));
  });
}

function listFailures(code, log) {
  const suites = existsSync(REPORT) ? readJson(REPORT).testResults : [];
  const tests = suites.flatMap((suite) => {
    const failed = suite.assertionResults.filter(({ status }) => status === 'failed');
    const names = failed.map(({ fullName }) => fullName);
    return (names.length === 0 && suite.status === 'failed' ? ['(the file)'] : names).map(
      (name) => `${shorten(suite)} > ${name}`,
    );
  });
  const errors = existsSync(ERRORS) ? readFileSync(ERRORS, 'utf8').split('\n').filter(Boolean) : [];
  const all = [...tests, ...errors];
  return all.length === 0 && code !== 0 ? [`the run exited with code ${code}: ${log}`] : all;
}

/** The files that took longest. */
function findSlowest({ testResults }, count) {
  const measure = ({ startTime, endTime }) => endTime - startTime;
  return testResults
    .toSorted((a, b) => measure(b) - measure(a))
    .slice(0, count)
    .map(shorten);
}

function shorten({ name }) {
  return relative(ROOT, name);
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}
