/**
 * The gateway under load, beside a bare pipe, a hand-written converter and Portkey: `npm run bench:gateway`, about eight minutes. Subjects take
 * turns, for several rounds; figures are medians and interquartile ranges, ratios are taken within each round. CPU is that of the gateway's
 * process, so that a busy machine changes little; latencies are wall clock. Writes docs/performance.md.
 *
 * `--quick`: small and short, and nothing is written. `--only NAME`: the pipe and the subjects whose names contain it. `--rounds N`.
 * `--against DIR`: this build and that of another checkout, round by round; nothing is written.
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { orderOf } from '../statistics.js';
import { begin, held, latency, round, SIZES, stalled } from './measures.js';
import { CORES, here, sleep, start, stop } from './processes.js';
import { report, reportComparison, reportGoals, write } from './report.js';
import { comparedSubjects, subjects, UPSTREAM_PORT } from './subjects.js';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    only: { type: 'string' },
    rounds: { type: 'string' },
    against: { type: 'string' },
  },
});
const size = sizeOf();
const begun = performance.now();
const found = options.against ? await comparedSubjects(resolve(options.against)) : await subjects();
const chosen = found.filter(
  ({ name }) => !options.only || name === 'direct' || name === 'node pipe' || name.includes(options.only),
);

const upstream = start([here('../reference/mock.mjs')], { PORT: String(UPSTREAM_PORT) }, CORES.others);
await sleep(500);
try {
  const rows = await measureAll();
  const seconds = (performance.now() - begun) / 1000;
  const text = options.against ? reportComparison(rows, size, seconds) : report(rows, size, seconds);
  console.log(text);
  if (!options.against) console.log(`\n${reportGoals(rows)}`);
  if (!options.quick && !options.only && !options.against) write(text);
} finally {
  await stop(upstream);
}

async function measureAll() {
  const rows = chosen.map((subject) => ({ subject, rounds: [] }));
  for (const row of rows) row.process = await begin(row.subject);
  say('warm-up');
  // After some ten thousand requests all hot code is optimised.
  for (const { subject, process } of rows) await round(subject, process, { ...size, requests: size.requests * 4 });
  for (let i = 1; i <= size.rounds; i++) {
    say(`round ${i} of ${size.rounds}`);
    for (const row of orderOf(rows, i)) row.rounds.push(await round(row.subject, row.process, size));
    for (const { subject, rounds } of orderOf(rows, i)) Object.assign(rounds.at(-1), await latency(subject, size));
  }
  for (const { process } of rows) if (process) await stop(process);
  for (const row of rows) {
    say(`many streams: ${row.subject.name}`);
    row.held = await held(row.subject, size);
  }
  if (options.against) return rows;
  for (const row of rows) {
    if (!row.subject.goal && row.subject.name !== 'node pipe') continue;
    say(`readers that do not read: ${row.subject.name}`);
    row.stalled = await stalled(row.subject, size);
  }
  return rows;
}

function sizeOf() {
  const chosen = options.quick ? SIZES.quick : SIZES.full;
  const rounds = Number(options.rounds ?? (options.against && !options.quick ? 11 : chosen.rounds));
  if (Number.isInteger(rounds) && rounds > 0) return { ...chosen, rounds };
  console.error('--rounds: must be a positive integer');
  return process.exit(2);
}

function say(text) {
  console.error(`${String(Math.round((performance.now() - begun) / 1000)).padStart(4)} s  ${text}`);
}
