/**
 * A year of usage: 10 million exchanges with their attempts and roll-ups, written by the ledger itself, then the time of the questions that
 * the console asks. `--rows N` for fewer, `--keep DIR` to keep the database, or to use the one that is there. Exit code 1 when usage by day or by model takes more than 200 ms.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openStore, openStoreReader, parseFilter } from '../packages/gateway/out/store/index.js';
import { fillLedger } from './data/ledger.js';

const { values: options } = parseArgs({ options: { rows: { type: 'string', default: '10000000' }, keep: { type: 'string' } } });
const ROWS = Number(options.rows);
const LIMIT_MS = 200;
const RUNS = 7;

const folder = options.keep ?? mkdtempSync(join(tmpdir(), 'sluice-year-'));
mkdirSync(folder, { recursive: true });
const end = Date.now();

async function generate() {
  const begun = performance.now();
  const spent = () => (performance.now() - begun) / 1000;
  await fillLedger(folder, ROWS, { end, onRows: (made) => console.error(`${made} rows, ${spent().toFixed(0)} s`) });
  return spent();
}

const filter = (text) => parseFilter(text, end).filter;

/** Those marked are held to the limit. */
const QUESTIONS = [
  { name: 'usage of a year by day', isHeld: true, ask: (store) => store.usage({ by: 'day' }) },
  { name: 'usage of a year by model', isHeld: true, ask: (store) => store.usage({ by: 'model' }) },
  { name: 'usage of a year by provider', ask: (store) => store.usage({ by: 'provider' }) },
  { name: 'usage of a year by key', ask: (store) => store.usage({ by: 'key' }) },
  { name: 'usage of a year by tag', ask: (store) => store.usage({ by: 'tag' }) },
  { name: 'usage of a year by model and day', ask: (store) => store.usage({ by: 'model', bucket: 'day' }) },
  { name: 'usage of one key in a year by model', ask: (store) => store.usage({ by: 'model', where: { key: 'key-3' } }) },
  { name: 'usage of 7 days by hour', ask: (store) => store.usage({ by: 'day', bucket: 'hour', since: end - 7 * 86_400_000 }) },
  { name: 'newest 100 exchanges', ask: (store) => store.list() },
  { name: 'newest 100 errors of a key', ask: (store) => store.list({ filter: filter('status:error key:key-40') }) },
  { name: '100 exchanges before half a year', ask: (store) => store.list({ filter: filter('until:182d') }) },
  { name: 'a filter that matches nothing', ask: (store) => store.list({ filter: filter('key:nobody') }) },
];

async function measure(store) {
  let isGood = true;
  for (const { name, ask, isHeld } of QUESTIONS) {
    const times = [];
    const cpu = process.cpuUsage();
    for (let run = 0; run < RUNS; run++) {
      const begun = performance.now();
      await ask(store);
      times.push(performance.now() - begun);
    }
    const { user, system } = process.cpuUsage(cpu);
    const first = times[0];
    times.sort((a, b) => a - b);
    const median = times[Math.floor(RUNS / 2)];
    if (isHeld && median > LIMIT_MS) isGood = false;
    const show = (ms) => ms.toFixed(1).padStart(7);
    const cpuMs = (user + system) / 1000 / RUNS;
    console.log(
      `${name.padEnd(36)} median ${show(median)} ms, first ${show(first)} ms, CPU ${show(cpuMs)} ms${isHeld ? `, limit ${LIMIT_MS}` : ''}`,
    );
  }
  return isGood;
}

try {
  const isThere = existsSync(join(folder, 'sluice.db'));
  const seconds = isThere ? 0 : await generate();
  const begun = performance.now();
  const store = await openStore({ folder, ballastBytes: 0, retentionDays: null });
  console.log(`opening the store: ${(performance.now() - begun).toFixed(0)} ms`);
  await store.close();
  const reader = await openStoreReader(folder);
  const isGood = await measure(reader);
  await reader.close();
  const gigabytes = statSync(join(folder, 'sluice.db')).size / 2 ** 30;
  const made = isThere ? 'found' : `${ROWS} exchanges in ${seconds.toFixed(0)} s (${Math.round(ROWS / seconds)}/s)`;
  console.log(`${made}, ${gigabytes.toFixed(2)} GiB`);
  process.exitCode = isGood ? 0 : 1;
} finally {
  if (options.keep === undefined) rmSync(folder, { recursive: true, force: true });
}
