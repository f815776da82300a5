/**
 * The store under load: exchanges that are opened, attempted and settled as a gateway does it. Prints writes and exchanges per second, how long
 * a settlement takes to be durable, and the delay of the event loop meanwhile. `--seconds 5`, `--streams 200`, `--rate 0` (exchanges per
 * second; 0 is as fast as possible). `--postgres`: on a PostgreSQL server of its own, with `fsync`, instead of SQLite; `--nodes 2` with several
 * nodes in this process.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openStore } from '../packages/gateway/out/store/index.js';
import { PostgresServer } from '../packages/gateway/test/real-parts/postgres.js';

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    streams: { type: 'string', default: '200' },
    rate: { type: 'string', default: '0' },
    postgres: { type: 'boolean', default: false },
    nodes: { type: 'string', default: '1' },
  },
});
const SECONDS = Number(options.seconds);
const STREAMS = Number(options.streams);
const RATE = Number(options.rate);

const folder = mkdtempSync(join(tmpdir(), 'sluice-ledger-'));
const server = options.postgres ? await PostgresServer.start({ isDurable: true }) : undefined;
const url = await server?.createDatabase();
const stores = [];
for (let node = 0; node < (server ? Number(options.nodes) : 1); node++)
  stores.push(await openStore(url === undefined ? { folder, ballastBytes: 0 } : { folder: null, url }));
const times = [];
let isRunning = true;
let number = 0;

async function runExchange() {
  const index = number++;
  const store = stores[index % stores.length];
  const { id, ts } = store.createId();
  await store.openExchange({
    id,
    ts,
    key_id: `key-${index % 20}`,
    tags: [`team-${index % 5}`],
    model_requested: 'fast',
    is_stream: true,
  });
  await store.openAttempt({
    exchange_id: id,
    number: 1,
    ts,
    provider: 'groq',
    model: `model-${index % 7}`,
    upstream_protocol: 'openai-chat',
  });
  void store.reportProgress({ exchange_id: id, number: 1, input_tokens: 100 });
  const usage = {
    input_tokens: 100,
    output_tokens: 50,
    cost_micros: 9,
    ending: 'answered',
    http_status: 200,
    provenance: 'reported',
    total_ms: 5,
  };
  const begun = performance.now();
  await Promise.all([store.settleAttempt({ exchange_id: id, number: 1, ...usage }), store.settleExchange({ id, ts, ...usage })]);
  times.push(performance.now() - begun);
}

async function runStream() {
  while (isRunning) {
    const begun = performance.now();
    await runExchange();
    if (RATE > 0) await sleep(Math.max(0, (STREAMS / RATE) * 1000 - (performance.now() - begun)));
  }
}

const delay = monitorEventLoopDelay({ resolution: 1 });
await runExchange();
times.length = 0;
delay.enable();
const cpu = process.cpuUsage();
const begun = performance.now();
const streams = Array.from({ length: STREAMS }, runStream);
await sleep(SECONDS * 1000);
isRunning = false;
await Promise.all(streams);
const seconds = (performance.now() - begun) / 1000;
delay.disable();
const used = process.cpuUsage(cpu);

times.sort((a, b) => a - b);
const at = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))].toFixed(1);
const ms = (nanoseconds) => (nanoseconds / 1e6).toFixed(1);
console.log(
  `${STREAMS} streams, ${seconds.toFixed(1)} s: ${Math.round(times.length / seconds)} exchanges/s, ${Math.round((5 * times.length) / seconds)} writes/s`,
);
console.log(`durable after: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`);
console.log(`event loop delay: p50 ${ms(delay.percentile(50))} ms, p99 ${ms(delay.percentile(99))} ms, max ${ms(delay.max)} ms`);
console.log(
  `CPU of all threads: ${((used.user + used.system) / times.length).toFixed(0)} us per exchange; status ${JSON.stringify(stores[0].status())}`,
);
for (const store of stores) await store.close();
await server?.stop();
rmSync(folder, { recursive: true, force: true });
