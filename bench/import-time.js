/**
 * How long `import '@sluice/core'` takes, and every other entry point: `node bench/import-time.js`. Each import is a process of
 * its own; subjects alternate, so that a busy machine slows all of them. `--against DIR` also measures the build of another
 * checkout, `--only ./sse` one entry point.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values: options } = parseArgs({
  options: { runs: { type: 'string', default: '15' }, against: { type: 'string' }, only: { type: 'string' } },
});

const checkouts = options.against === undefined ? [root] : [resolve(options.against), root];
const own = readEntries(root);
const subjects = Object.keys(own)
  .filter((subpath) => options.only === undefined || subpath === options.only)
  .flatMap((subpath) =>
    checkouts.flatMap((checkout) => {
      const file = readEntries(checkout)[subpath];
      return file === undefined ? [] : [{ subpath, checkout, file, times: [] }];
    }),
  );

for (let run = 0; run < Number(options.runs); run++) for (const { file, times } of subjects) times.push(measure(file));
for (const { subpath, checkout, times } of subjects) {
  const name = `${subpath}${checkouts.length > 1 ? (checkout === root ? ', after' : ', before') : ''}`;
  console.log(`${name.padEnd(34)} ${summarize(times, 'elapsed')} · CPU ${summarize(times, 'cpu')}`);
}

/** Entry point to its file, of the package in a checkout. */
function readEntries(checkout) {
  const folder = join(checkout, 'packages/core');
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return Object.fromEntries(
    Object.entries(exports).flatMap(([subpath, target]) => (target.default ? [[subpath, join(folder, target.default)]] : [])),
  );
}

/** Milliseconds of one import: elapsed, and CPU time of all threads, which a busy machine changes less. */
function measure(file) {
  const code = `
    const start = performance.now();
    const cpu = process.cpuUsage();
    await import(${JSON.stringify(pathToFileURL(file).href)});
    const { user, system } = process.cpuUsage(cpu);
    console.log(JSON.stringify({ elapsed: performance.now() - start, cpu: (user + system) / 1000 }));`;
  return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }));
}

/** Median and range. */
function summarize(times, key) {
  const sorted = times.map((time) => time[key]).sort((a, b) => a - b);
  const ms = (at) => sorted[at].toFixed(1);
  return `${ms(sorted.length >> 1).padStart(6)} ms (${ms(0)}–${ms(sorted.length - 1)})`;
}
