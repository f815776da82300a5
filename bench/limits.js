/**
 * Limits in memory, Redis and PostgreSQL: how long an admission takes with a slot, two rates and a budget, one at a time; and how many
 * admissions with their ends are done 50 at a time, on the limits of one key and on those of 100 keys, by one and by two nodes.
 * Starts servers of its own on this machine. `--seconds 4`, `--parallel 50`, `--only postgres`. Needs a build, redis-server and PostgreSQL.
 */
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { MemoryBackend } from '../packages/gateway/out/admission/memory.js';
import { PostgresDriver } from '../packages/gateway/out/admission/postgres/driver.js';
import { RedisDriver } from '../packages/gateway/out/admission/redis/driver.js';
import { SharedBackend } from '../packages/gateway/out/admission/shared/backend.js';
import { REAL_CLOCK } from '../packages/gateway/out/http/clock.js';
import { PostgresServer } from '../packages/gateway/test/real-parts/postgres.js';
import { RedisServer } from '../packages/gateway/test/real-parts/redis.js';

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    parallel: { type: 'string', default: '50' },
    only: { type: 'string' },
  },
});

const silent = () => undefined;
const readSpending = async () => 0;
let insured = 0;

const createShared = (createDriver) =>
  new SharedBackend({
    createDriver,
    nodes: 1,
    timeoutMs: 5000,
    clock: REAL_CLOCK,
    log: { debug: silent, info: silent, warn: silent },
    readSpending,
    onInsured: () => insured++,
    onFailure: silent,
  });

/** Each returns how to create a node, and how to stop the server. */
const KINDS = {
  memory: async () => ({ create: () => new MemoryBackend(REAL_CLOCK, readSpending), stop: silent }),
  redis: async () => {
    const redis = await RedisServer.start();
    const settings = { url: redis.url, prefix: 'bench:', connectTimeoutMs: 1000 };
    return { create: () => createShared((events) => new RedisDriver(settings, events)), stop: () => redis.stop() };
  },
  postgres: async () => {
    const postgres = await PostgresServer.start({ isDurable: true });
    const settings = { url: await postgres.createDatabase(), prefix: 'bench:', connectTimeoutMs: 1000, clock: REAL_CLOCK };
    return { create: () => createShared((events) => new PostgresDriver(settings, events)), stop: () => postgres.stop() };
  },
};

const KEYS = 100;

const ACCOUNTS = Array.from({ length: KEYS }, (_, key) => ({
  by: 'key',
  of: `key-${key}`,
  name: `key-${key}`,
  period: 'total',
  micros: 1e12,
  window: { start: 0, end: Number.POSITIVE_INFINITY },
}));

let number = 0;

/** Returns the milliseconds of the admission. */
async function runRequest(backend, key) {
  const member = `request-${number++}`;
  const begun = performance.now();
  const { result } = await backend.take({
    member,
    slots: { name: `key-${key}`, limit: 1e6 },
    rates: [
      { counter: `requests key-${key}`, amount: 1, limit: 1e9 },
      { counter: `tokens key-${key}`, amount: 1000, limit: 1e12 },
    ],
    money: { micros: 1000, accounts: [ACCOUNTS[key]] },
  });
  const elapsed = performance.now() - begun;
  if (result !== 'taken') throw new Error(`not admitted: ${JSON.stringify(result)}`);
  await backend.end({ member, slots: `key-${key}`, corrections: [], charged: 500 });
  return elapsed;
}

async function measure(kind, backends, { parallel, keys }) {
  const times = [];
  let isRunning = true;
  const begun = performance.now();
  const clients = Array.from({ length: parallel }, async (_, index) => {
    for (let key = index; isRunning; key++) {
      times.push(await runRequest(backends[index % backends.length], key % keys));
      // Memory answers without a turn of the event loop.
      if (kind === 'memory') await new Promise(setImmediate);
    }
  });
  await sleep(Number(options.seconds) * 1000);
  isRunning = false;
  await Promise.all(clients);
  const seconds = (performance.now() - begun) / 1000;
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))].toFixed(2);
  const cells = [kind, backends.length, parallel, keys, Math.round(times.length / seconds), at(0.5), at(0.99), at(1)];
  console.log(`| ${cells.join(' | ')} |`);
}

console.log(`load average ${loadavg()[0].toFixed(1)}\n`);
console.log('| limits in | nodes | at a time | keys | admissions/s with their ends | p50 ms | p99 ms | max ms |');
console.log('|---|--:|--:|--:|--:|--:|--:|--:|');
for (const [kind, start] of Object.entries(KINDS).filter(([name]) => options.only === undefined || name === options.only)) {
  const { create, stop } = await start();
  const backends = kind === 'memory' ? [create()] : [create(), create()];
  try {
    // The first admission waits for the epoch, and the first of a key for what it has spent.
    for (const backend of backends) {
      await backend.load([]);
      for (let key = 0; key < KEYS; key++) await runRequest(backend, key);
    }
    const parallel = Number(options.parallel);
    await measure(kind, backends.slice(0, 1), { parallel: 1, keys: 1 });
    for (const nodes of backends.map((_, index) => backends.slice(0, index + 1)))
      for (const keys of [1, KEYS]) await measure(kind, nodes, { parallel, keys });
  } finally {
    for (const backend of backends) await backend.close();
    await stop();
  }
}
if (insured > 0) console.log(`\n${insured} requests were checked without their server: the figures are wrong`);
console.log(`\nload average ${loadavg()[0].toFixed(1)}`);
