/**
 * A year of usage: 10 million exchanges with their attempts and roll-ups, written by the ledger itself, then the time of the questions that
 * the console asks. `--rows N` for fewer, `--keep DIR` to keep the database, or to use the one that is there. Exit code 1 when usage by day or by model takes more than 200 ms.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { IdSource } from '../packages/gateway/out/store/ids.js';
import { openStore, openStoreReader, parseFilter } from '../packages/gateway/out/store/index.js';
import { listAttempt, listAttemptSettlement, listExchangeSettlement, listOpening } from '../packages/gateway/out/store/rows.js';
import { openWriter } from '../packages/gateway/out/store/sqlite/database.js';
import { SqliteLedger } from '../packages/gateway/out/store/sqlite/ledger.js';

const { values: options } = parseArgs({ options: { rows: { type: 'string', default: '10000000' }, keep: { type: 'string' } } });
const ROWS = Number(options.rows);
const YEAR = 365 * 86_400_000;
const LIMIT_MS = 200;
const BATCH = 20_000;
const RUNS = 7;

const folder = options.keep ?? mkdtempSync(join(tmpdir(), 'sluice-year-'));
mkdirSync(folder, { recursive: true });
const end = Date.now();

/** Repeatable numbers: xorshift. */
let seed = 0x9e3779b9;
function random() {
  seed ^= seed << 13;
  seed ^= seed >>> 17;
  seed ^= seed << 5;
  return (seed >>> 0) / 2 ** 32;
}

/** Few are used much, many a little, as keys and models are. */
const pick = (list) => list[Math.floor(random() ** 2.5 * list.length)];

const KEYS = Array.from({ length: 50 }, (_, index) => ({ key: `key-${index}`, tags: [`team-${index % 20}`] }));
const MODELS = Array.from({ length: 16 }, (_, index) => ({ model: `model-${index}`, provider: `provider-${index % 5}` }));

async function generate() {
  await (await openStore({ folder, ballastBytes: 0 })).close();
  const db = openWriter(join(folder, 'sluice.db'));
  // Only here: nobody mourns this data after a power loss.
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000');
  const ledger = new SqliteLedger(db, { boot: 'year', node: 'bench' });
  let ts = end - YEAR;
  const ids = new IdSource(() => ts);
  const begun = performance.now();
  for (let made = 0; made < ROWS; made += BATCH) {
    const operations = [];
    for (let index = made; index < Math.min(ROWS, made + BATCH); index++) {
      ts = end - YEAR + Math.floor((index / ROWS) * YEAR);
      addExchange(operations, ids.next());
    }
    ledger.write(operations);
    if ((made / BATCH) % 25 === 0) console.error(`${made} rows, ${((performance.now() - begun) / 1000).toFixed(0)} s`);
  }
  ledger.checkpoint();
  db.close();
  return (performance.now() - begun) / 1000;
}

function addExchange(operations, { id, ts }) {
  const { model, provider } = pick(MODELS);
  const input_tokens = Math.floor(random() * 20_000);
  const output_tokens = Math.floor(random() * 2000);
  const usage = {
    input_tokens,
    output_tokens,
    cache_read_tokens: Math.floor(input_tokens / 2),
    provenance: 'reported',
    cost_micros: input_tokens * 3 + output_tokens * 15,
    price_version: '0.1.8',
    ending: random() < 0.97 ? 'answered' : 'upstream_error',
    http_status: 200,
    first_token_ms: Math.floor(random() * 2000),
    total_ms: Math.floor(random() * 20_000),
  };
  const { key, tags } = pick(KEYS);
  const opening = {
    id,
    ts,
    key_id: key,
    key_name: key,
    tags,
    client_protocol: 'anthropic-messages',
    model_requested: model,
  };
  const attempt = { exchange_id: id, number: 1, ts, provider, model, upstream_protocol: 'openai-chat' };
  operations.push(
    {
      kind: 'openExchange',
      values: listOpening({ ...opening, session_id: `session-${Math.floor(ts / 600_000)}`, endpoint: 'conversation' }),
    },
    { kind: 'openAttempt', values: listAttempt(attempt) },
    { kind: 'settleAttempt', values: listAttemptSettlement({ exchange_id: id, number: 1, ...usage }) },
    { kind: 'settleExchange', values: listExchangeSettlement({ id, ts: ts + usage.total_ms, ...usage }) },
  );
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
