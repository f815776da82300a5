/**
 * The gateway under load, beside what Node, nginx and haproxy need and beside another gateway: `npm run bench:gateway`. bench/README.md has the method.
 *
 * `--quick`: small and short, to see that everything works. `--only NAME`: parts whose name contains it. `--against COMMIT`: this build and that
 * of another commit; `--times N` compares so often. `--differ A B`: how far the medians of two runs differ, row by row.
 * A whole run is kept in bench/results; `npm run bench:report` writes the page and the charts from it.
 */
import { parseArgs } from 'node:util';
import { compareLibrary } from '../library/against.js';
import { prepareCheckout, ROOT } from '../method/commits.js';
import { describeComparison } from '../method/compare.js';
import { describeDifferences } from '../method/differ.js';
import { describeCommit, describeNoise, NoiseMeter } from '../method/machine.js';
import { describeRow, fail, findBegin, finishRun, say } from '../method/program.js';
import { keepRun, readRun } from '../method/results.js';
import { compareGateway } from './against.js';
import { Fleet } from './fleet.js';
import { PARTS, SIZES } from './rows.js';
import { listVersions } from './subjects.js';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean' },
    only: { type: 'string' },
    against: { type: 'string' },
    times: { type: 'string', default: '1' },
    differ: { type: 'boolean' },
  },
});
if (options.differ) describeDiffering();
else if (options.against) await compare();
else await measure();
process.exit(process.exitCode ?? 0);

function describeDiffering() {
  if (positionals.length !== 2) fail('--differ: give the files of two runs; `npm run bench:gateway` prints where it keeps them');
  console.log(describeDifferences(...positionals.map((file) => readRun('gateway', file))));
}

async function measure() {
  const parts = PARTS.filter(({ name }) => !options.only || name.includes(options.only));
  if (parts.length === 0)
    fail(`--only: no part has "${options.only}" in its name; known: ${PARTS.map(({ name }) => name).join(', ')}`);
  const size = options.quick ? SIZES.quick : SIZES.full;
  const noise = new NoiseMeter();
  const fleet = await Fleet.start();
  for (const [name, reason] of Object.entries(fleet.missing)) say(`${name} is left out: ${reason}`);
  const rows = [];
  const seconds = {};
  for (const { name, measure: run, options: own } of parts) {
    say(name);
    const start = performance.now();
    noise.addSpeed(await fleet.readSpeed('speed'));
    const found = await run(fleet, size, own);
    seconds[name] = Math.round((performance.now() - start) / 1000);
    for (const row of found) console.log(describeRow(row));
    rows.push(...found);
  }
  noise.addSpeed(await fleet.readSpeed('speed'));
  const found = noise.read();
  await fleet.end();
  const isWhole = !options.only && !options.quick;
  finishRun({ kind: 'gateway', rows, noise: found, isWhole, versions: listVersions(), parts: seconds, missing: fleet.missing });
}

async function compare() {
  const folder = prepareCheckout(options.against, say);
  for (let time = 1; time <= Number(options.times); time++) {
    const start = performance.now();
    const noise = new NoiseMeter();
    const rows = [...(await compareGateway(folder, { noise, say })), ...(await compareLibrary(folder, { say }))];
    const found = noise.read();
    const seconds = Math.round((performance.now() - start) / 1000);
    keepRun({
      kind: 'against',
      commit: describeCommit(ROOT),
      begun: findBegin(seconds),
      seconds,
      against: options.against,
      noise: found,
      rows,
    });
    console.log(`\n${describeComparison(rows)}\n\n${describeNoise(found)}`);
    console.log(`comparison ${time} of ${options.times}: ${countVerdicts(rows)} of ${rows.length} rows, ${seconds} s`);
    if (found.state === 'too noisy') {
      console.log('The machine was too noisy to judge. Run it again when less runs beside it.');
      process.exitCode = 3;
    }
  }
}

function countVerdicts(rows) {
  const verdicts = [...new Set(rows.map(({ verdict }) => verdict))];
  return verdicts.map((verdict) => `${rows.filter((row) => row.verdict === verdict).length} ${verdict}`).join(', ');
}
