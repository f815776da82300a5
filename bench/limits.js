/**
 * Limits in Redis: how long an admission takes with a slot, two rates and a budget, one at a time and 50 at a time, each with its end.
 * Starts a Redis of its own on this machine. `--seconds 5`, `--parallel 50`. Needs a build and redis-server.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { RedisBackend } from '../packages/gateway/out/admission/redis/backend.js';
import { REAL_CLOCK } from '../packages/gateway/out/http/clock.js';
import { RedisServer } from '../packages/gateway/test/real-parts/redis.js';

const { values: options } = parseArgs({
  options: { seconds: { type: 'string', default: '5' }, parallel: { type: 'string', default: '50' } },
});

const ACCOUNT = {
  by: 'tag',
  of: 'team',
  name: 'team',
  period: 'total',
  micros: 1e12,
  window: { start: 0, end: Number.POSITIVE_INFINITY },
};

const silent = () => undefined;
const redis = await RedisServer.start();
const backend = new RedisBackend({
  url: redis.url,
  nodes: 1,
  prefix: 'bench:',
  timeoutMs: 1000,
  connectTimeoutMs: 1000,
  clock: REAL_CLOCK,
  log: { debug: silent, info: silent, warn: silent },
  readSpending: async () => 0,
  onInsured: silent,
  onFailure: silent,
});
await backend.load([]);
let number = 0;

/** Returns the milliseconds of the admission. */
async function runRequest() {
  const member = `request-${number++}`;
  const begun = performance.now();
  const { result } = await backend.take({
    member,
    slots: { name: 'key', limit: 1e6 },
    rates: [
      { counter: 'requests', amount: 1, limit: 1e9 },
      { counter: 'tokens', amount: 1000, limit: 1e12 },
    ],
    money: { micros: 1000, accounts: [ACCOUNT] },
  });
  const elapsed = performance.now() - begun;
  if (result !== 'taken') throw new Error(`not admitted: ${JSON.stringify(result)}`);
  await backend.end({ member, corrections: [], charged: 500 });
  return elapsed;
}

async function measure(parallel) {
  const times = [];
  let isRunning = true;
  const begun = performance.now();
  const clients = Array.from({ length: parallel }, async () => {
    while (isRunning) times.push(await runRequest());
  });
  await sleep(Number(options.seconds) * 1000);
  isRunning = false;
  await Promise.all(clients);
  const seconds = (performance.now() - begun) / 1000;
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))].toFixed(2);
  console.log(
    `${parallel} at a time: ${Math.round(times.length / seconds)} admissions/s with their ends; an admission: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`,
  );
}

try {
  // The first admission waits for the epoch.
  await runRequest();
  await measure(1);
  await measure(Number(options.parallel));
} finally {
  backend.close();
  await redis.stop();
}
