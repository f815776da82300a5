/**
 * The gateway under load, beside a bare pipe, a hand-written converter and Portkey: `npm run bench:gateway`, about eight minutes. Subjects take
 * turns, for several rounds; what counts is the median, and for ratios the median of those to the pipe in the same round. CPU is that of the
 * gateway's process, so that a busy machine changes little; latencies are wall clock. Writes docs/performance.md.
 *
 * `--quick`: small and short, and nothing is written. `--only NAME`: the pipe and the subjects whose names contain it.
 */
import { parseArgs } from 'node:util';
import { begin, held, latency, round, SIZES, stalled } from './measures.js';
import { CORES, here, sleep, start, stop } from './processes.js';
import { report, write } from './report.js';
import { subjects, UPSTREAM_PORT } from './subjects.js';

const { values: options } = parseArgs({ options: { quick: { type: 'boolean' }, only: { type: 'string' } } });
const size = options.quick ? SIZES.quick : SIZES.full;
const begun = performance.now();
const chosen = (await subjects()).filter(
  ({ name }) => !options.only || name === 'direct' || name === 'node pipe' || name.includes(options.only),
);

const upstream = start([here('../reference/mock.mjs')], { PORT: String(UPSTREAM_PORT) }, CORES.others);
await sleep(500);
try {
  const rows = await measureAll();
  const text = report(rows, size, (performance.now() - begun) / 1000);
  console.log(text);
  if (!options.quick && !options.only) write(text);
} finally {
  await stop(upstream);
}

async function measureAll() {
  const rows = chosen.map((subject) => ({ subject, rounds: [] }));
  for (const row of rows) row.process = await begin(row.subject);
  say('warm-up');
  // V8 has seen enough of a gateway after some ten thousand requests.
  for (const { subject, process } of rows) await round(subject, process, { ...size, requests: size.requests * 4 });
  for (let i = 1; i <= size.rounds; i++) {
    say(`round ${i} of ${size.rounds}`);
    for (const row of rows) row.rounds.push(await round(row.subject, row.process, size));
    for (const { subject, rounds } of rows) Object.assign(rounds.at(-1), await latency(subject, size));
  }
  for (const { process } of rows) if (process) await stop(process);
  for (const row of rows) {
    say(`many streams: ${row.subject.name}`);
    row.held = await held(row.subject, size);
  }
  for (const row of rows) {
    if (!row.subject.goal && row.subject.name !== 'node pipe') continue;
    say(`readers that do not read: ${row.subject.name}`);
    row.stalled = await stalled(row.subject, size);
  }
  return rows;
}

function say(text) {
  console.error(`${String(Math.round((performance.now() - begun) / 1000)).padStart(4)} s  ${text}`);
}
