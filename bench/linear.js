/**
 * Is every conversion linear in the size of each part of its input? `npm run bench:linear [-- --only TEXT] [-- --worst N]`
 *
 * Exit code 1 when 8 times the size costs more than 12 times as much, or when a conversion fails with anything but an error of its own.
 */
import { parseArgs } from 'node:util';
import { jobsOf } from './linear/jobs.js';
import { load } from './linear/load.js';
import { placesOf } from './linear/places.js';

const { values: options } = parseArgs({ options: { only: { type: 'string' }, worst: { type: 'string', default: '25' } } });

if (!globalThis.gc) throw new Error('run it as `npm run bench:linear`, with the flags of V8 that it needs');

const FACTOR = 8;
const BOUND = 12;
const RUNS = 5;
/** What costs less at the larger size is not worth a ratio: quadratic work costs several times as much there, and noise no less. */
const MEASURABLE_NS = 4e6;
/** Nothing linear comes near it: larger sizes need not be tried. */
const HOPELESS = 30;
/** Not worth five runs. */
const ENDLESS_NS = 3e9;

/** CPU time of this process with its collector and compiler, in nanoseconds. */
function readCpu() {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

function costOf(run, input) {
  const from = readCpu();
  run(input);
  return readCpu() - from;
}

const costs = (run, input) => Array.from({ length: RUNS }, () => costOf(run, input));

/** Each run begins with an empty young generation that is large enough for it: what is promoted to the old one costs several times as much. */
const calmCost = (run, input) =>
  median(
    Array.from({ length: RUNS }, () => {
      globalThis.gc({ type: 'minor' });
      return costOf(run, input);
    }),
  );

/** The ratio of two sizes; undefined where nothing can be measured. */
function ratioAt(n, grown, run) {
  const large = grown(n * FACTOR);
  const once = costOf(run, large);
  if (once < MEASURABLE_NS) return undefined;
  const small = grown(n);
  // Most places show at once that they are linear, for noise only adds; the others are measured with care.
  const first = median(costs(run, small));
  if (once <= BOUND * first || once > ENDLESS_NS) return { n, ratio: once / first, ns: once };
  const high = calmCost(run, large);
  if (high < MEASURABLE_NS) return undefined;
  return { n, ratio: high / calmCost(run, small), ns: high };
}

/**
 * Objects become hash tables and tables outgrow caches at some size, so that one step may cost more than its share. What is not linear is over
 * the bound at every size, and by more at larger ones.
 */
function ratioOf({ size }, grown, run) {
  let found;
  for (const times of [1, 1, 2, 2, 4, 4]) {
    const again = ratioAt(size * times, grown, run);
    if (!again || again.ratio <= BOUND) return again;
    if (again.ratio > HOPELESS) return again;
    if (!found || again.ratio < found.ratio) found = again;
  }
  return found;
}

/** A grown message is used by several jobs. */
function grower({ grow }) {
  const grown = new Map();
  return (n, wire) => {
    const key = `${n} ${wire.name}`;
    const input = grown.get(key) ?? wire(grow(n));
    grown.set(key, input);
    return input;
  };
}

const library = await load();
const rows = [];
const failures = [];
let [places, runs] = [0, 0];
for (const place of placesOf(library)) {
  const name = `${place.protocol} ${place.name}`;
  if (options.only !== undefined && !name.includes(options.only)) continue;
  places++;
  if (places % 500 === 0) console.error(`${places} places, ${name}`);
  const grown = grower(place);
  for (const job of jobsOf(place, library)) {
    runs++;
    try {
      const found = ratioOf(place, (n) => grown(n, job.wire), job.run);
      if (found) rows.push({ name: `${name} > ${job.name}`, ...found });
      if (found?.ratio > BOUND) console.error(`${found.ratio.toFixed(1)}x ${name} > ${job.name} at ${found.n}`);
    } catch (error) {
      failures.push(`${name} > ${job.name}: ${error.message?.slice(0, 200)}`);
    }
  }
}

const worst = rows.toSorted((a, b) => b.ratio - a.ratio);
console.log(`${places} places, ${runs} conversions, ${rows.length} of them long enough to be measured`);
for (const { name, n, ratio, ns } of worst.slice(0, Number(options.worst)))
  console.log(
    `${ratio.toFixed(1).padStart(7)}x  ${(ns / 1e6).toFixed(1).padStart(8)} ms at ${String(n * FACTOR).padStart(7)}  ${name}`,
  );
for (const failure of failures) console.log(`FAILED   ${failure}`);
const over = worst.filter(({ ratio }) => ratio > BOUND);
console.log(
  over.length + failures.length === 0 ? `all at most ${BOUND}x` : `${over.length} over ${BOUND}x, ${failures.length} failed`,
);
process.exitCode = over.length + failures.length > 0 ? 1 : 0;
