/**
 * Many clients of one gateway, each with a stream that goes on: what each takes, whether others are served meanwhile, whether there is a
 * limit, and whether everything is given back when some leave and some get their end. Before that, as many connections that say nothing.
 *
 * node bench/nightly/clients.js [--clients 10000]
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openIdle, openStream, send } from './crowd.js';

const { values: options } = parseArgs({ options: { clients: { type: 'string', default: '10000' } } });

const KEYS = {
  crowd: 'crowd-key-0123456789',
  other: 'other-key-0123456789',
  admin: 'admin-key-0123456789abcdef0123456789abcdef',
};
/** Admitted beside the crowd. */
const SPARE = 50;
const RAMP = 200;
const PROBES = 200;
const CHUNKS = 5;
/** What each client may take, beside what the process takes for any of them. */
const MOST_RSS_KB = 160;
const MOST_IDLE_KB = 40;
const PROCESS_BYTES = 64e6;
/** How long another client may wait for its whole response, while the crowd is served: half of them. */
const MOST_MEDIAN_MS = 100;
/** What may be left when all have gone: caches, code that was compiled, and rows that wait for their file. */
const MOST_LEFT = { heapUsed: 20e6, fds: 8, timers: 4 };
/** Caches and tables that are bounded grow with the first crowd. The soak shows that they do not go on growing. */
const MOST_LEFT_EACH = 2048;
const SETTLE_MS = 60_000;

const failures = [];
const fail = (text) => failures.push(text);
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const CLIENTS = fit(Number(options.clients));
const folder = mkdtempSync(join(tmpdir(), 'sluice-clients-'));
const upstream = spawn(process.execPath, [here('./crowd-upstream.js')], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
const [{ port: upstreamPort }] = await once(upstream, 'message');
const { gateway, port } = await startGateway();
try {
  console.log(await run());
} finally {
  gateway.kill('SIGKILL');
  upstream.disconnect();
  rmSync(folder, { recursive: true, force: true });
}
for (const failure of failures) console.error(failure);
process.exitCode = failures.length === 0 ? 0 : 1;

/** Each client takes two file descriptors of the gateway, which keeps 64 for itself. */
function fit(wanted) {
  const limit = Number(execFileSync('bash', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }));
  const most = Number.isNaN(limit) ? wanted : Math.floor((limit - 64) / 2) - 2 * SPARE;
  if (most < wanted) console.log(`${limit} file descriptors are enough for ${most} clients instead of ${wanted}`);
  return Math.min(wanted, most);
}

async function startGateway() {
  const config = {
    listen: { host: '127.0.0.1', port: 0 },
    log: { level: 'error' },
    limits: {
      streams: CLIENTS + SPARE,
      header_timeout: '120s',
      request_timeout: '120s',
      upstream_keep_alive: '500ms',
      keep_alive: '1s',
    },
    auth: {
      keys: [
        { name: 'crowd', key: KEYS.crowd, concurrency: CLIENTS, budget: '100000usd/month' },
        { name: 'other', key: KEYS.other, budget: '1000usd/month' },
      ],
    },
    admin: { key: KEYS.admin },
    metrics: { key: KEYS.admin.replace('admin', 'metrics') },
    default_price: { input: '1', output: '10' },
    providers: {
      up: { protocol: 'openai-chat', base_url: `http://127.0.0.1:${upstreamPort}/v1`, api_key: 'some-key-0123456789' },
    },
  };
  const file = join(folder, 'sluice.json');
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  const bin = here('../../packages/gateway/bin/sluice.js');
  const args = [
    '--expose-gc',
    '--import',
    here('./probe.js'),
    bin,
    'serve',
    '--json',
    '--config',
    file,
    '--data',
    join(folder, 'data'),
  ];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production' },
  });
  // Those who are refused are logged as errors, too.
  child.stderr.on('data', (data) => {
    for (const line of String(data).split('\n'))
      if (line !== '' && !line.includes('"msg":"answered"')) fail(`the gateway logged ${line}`);
  });
  let text = '';
  const url = await new Promise((resolve, reject) => {
    child.stdout.on('data', (data) => {
      text += data;
      const found = /"url": ?"([^"]+)"/.exec(text)?.[1];
      if (found) resolve(found);
    });
    child.once('close', (code) => reject(new Error(`the gateway ended with ${code}: ${text}`)));
  });
  return { gateway: child, port: Number(new URL(url).port) };
}

async function run() {
  await probe(PROBES);
  // The tables of as many connections grow once.
  await holdIdle(await measure());
  const before = await measure();
  const idleKb = await holdIdle(before);
  checkMemory('a connection without a request', idleKb, MOST_IDLE_KB);
  const streams = await openAll();
  const kb = share(before, await measure());
  checkMemory('a client', kb, MOST_RSS_KB);
  const { median, max } = await probe(PROBES);
  if (median > MOST_MEDIAN_MS) fail(`another client waits ${median.toFixed(0)} ms`);
  await crowdOut();
  const chunkMs = await advance(streams);
  await end(streams);
  const left = await untilFreed(before);
  await stopGateway();
  return (
    `${CLIENTS.toLocaleString('en')} clients with a stream each: ${kb.toFixed(1)} KB of memory each (${idleKb.toFixed(1)} KB without a request); ` +
    `another client waits ${median.toFixed(1)} ms (median), ${max.toFixed(0)} ms at most; a chunk reaches all in ${chunkMs.toFixed(0)} ms; ` +
    `left behind: ${(left.heapUsed / 1e6).toFixed(1)} MB of heap, ${left.fds} file descriptors`
  );
}

/** Whole requests of another key, one after the other. */
async function probe(count) {
  const times = [];
  for (let done = 0; done < count; done++) {
    const begun = performance.now();
    const { status } = await send(port, KEYS.other);
    times.push(performance.now() - begun);
    if (status !== 200) fail(`another client got ${status}`);
  }
  times.sort((one, other) => one - other);
  return { median: times[count >> 1], max: times.at(-1) };
}

/** Memory of each client in KB. */
function share(before, held) {
  return (held.rss - before.rss) / CLIENTS / 1024;
}

function checkMemory(what, kb, most) {
  if ((kb - most) * CLIENTS * 1024 > PROCESS_BYTES) fail(`${what} takes ${kb.toFixed(1)} KB; allowed: ${most}`);
}

/** Connections without a request. Returns what each takes in KB. */
async function holdIdle(before) {
  const sockets = await inSteps(() => openIdle(port));
  const kb = share(before, await measure());
  for (const socket of sockets) socket.destroy();
  await poll('connections are closed', async () => (await measure()).fds <= before.fds + MOST_LEFT.fds);
  return kb;
}

async function openAll() {
  const streams = await inSteps(() => openStream(port, KEYS.crowd));
  const refused = streams.filter(({ status }) => status !== 200);
  if (refused.length > 0) fail(`${refused.length} clients of the crowd got ${refused[0].status}`);
  return streams;
}

/** The crowd has used up its concurrency, and all together the streams of the gateway. */
async function crowdOut() {
  const { status } = await send(port, KEYS.crowd);
  if (status !== 429) fail(`one client more than the key allows got ${status}`);
  const more = await Promise.all(Array.from({ length: 2 * SPARE }, () => openStream(port, KEYS.other)));
  const counts = [200, 503].map((expected) => more.filter(({ status: got }) => got === expected).length);
  if (counts.join() !== `${SPARE},${SPARE}`)
    fail(`of ${2 * SPARE} clients more, ${counts[0]} were served and ${counts[1]} got 503`);
  for (const { socket } of more) socket.destroy();
  await poll('the others have left', async () => (await readActive()) === CLIENTS);
}

/** Sends chunks to all. Returns the median time until all have one. */
async function advance(streams) {
  const times = [];
  for (let chunk = 0; chunk < CHUNKS; chunk++) {
    const begun = performance.now();
    const all = Promise.all(streams.map((stream) => stream.next()));
    upstream.send('chunk');
    await all;
    times.push(performance.now() - begun);
  }
  return times.sort((one, other) => one - other)[CHUNKS >> 1];
}

/** A third closes, a third resets, and the others get the end. */
async function end(streams) {
  const staying = streams.filter((_, index) => index % 3 === 0);
  for (const [index, { socket }] of streams.entries()) {
    if (index % 3 === 1) socket.destroy();
    if (index % 3 === 2) socket.resetAndDestroy();
  }
  await poll('those that left are gone', async () => (await readActive()) === staying.length);
  upstream.send('end');
  const texts = await Promise.all(staying.map((stream) => stream.ended));
  const wrong = texts.filter((text) => text.split('"content":"word "').length !== CHUNKS + 2 || !text.includes('data: [DONE]'));
  if (wrong.length > 0) fail(`${wrong.length} of ${staying.length} streams are not complete`);
}

/** Nothing is running, reserved or open; and what the process holds more than before. */
async function untilFreed(before) {
  await poll('all requests have ended', async () => (await readActive()) === 0);
  await poll('all rows are settled', async () => (await admin('exchanges/count?filter=status:live')).matching === 0);
  const { total } = await admin('exchanges/count');
  if (total < CLIENTS + 2 * PROBES) fail(`${total} exchanges were recorded`);
  const { budgets } = await admin('budgets');
  for (const { name, reserved_micros: reserved } of budgets)
    if (reserved > 0) fail(`${reserved} micros of ${name} are still reserved`);
  let left;
  await poll('file descriptors are closed', async () => {
    const after = await measure();
    left = Object.fromEntries(Object.keys(MOST_LEFT).map((what) => [what, after[what] - before[what]]));
    return left.fds <= MOST_LEFT.fds && left.timers <= MOST_LEFT.timers;
  });
  if (left.heapUsed > MOST_LEFT.heapUsed + CLIENTS * MOST_LEFT_EACH)
    fail(`the heap has ${(left.heapUsed / 1e6).toFixed(1)} MB more than before`);
  return left;
}

async function stopGateway() {
  const closed = once(gateway, 'close');
  gateway.kill('SIGTERM');
  const [code] = await closed;
  if (code !== 0) fail(`the gateway ended with ${code}`);
}

async function inSteps(open) {
  const all = [];
  while (all.length < CLIENTS)
    all.push(...(await Promise.all(Array.from({ length: Math.min(RAMP, CLIENTS - all.length) }, open))));
  return all;
}

async function measure() {
  const answer = once(gateway, 'message');
  gateway.send('sample');
  const [held] = await answer;
  return { ...held, fds: readdirSync(`/proc/${gateway.pid}/fd`).length };
}

async function readActive() {
  const { text } = await send(port, KEYS.admin.replace('admin', 'metrics'), '/metrics');
  return Number(/^sluice_active_requests (\d+)$/m.exec(text)?.[1]);
}

async function admin(path) {
  return JSON.parse((await send(port, KEYS.admin, `/admin/v1/${path}`)).text);
}

async function poll(what, isTrue) {
  const until = performance.now() + SETTLE_MS;
  while (!(await isTrue())) {
    if (performance.now() > until) {
      fail(`not within ${SETTLE_MS / 1000} s: ${what}`);
      return;
    }
    await sleep(100);
  }
}
