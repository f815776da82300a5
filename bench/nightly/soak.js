/**
 * The gateway under a long mixed load: every client protocol with every upstream protocol, streams and whole responses, converted, repaired and
 * passed through; at least 2 % of the clients leave at random points. Every response is compared with what the upstream sent. After each tenth of the run
 * everything idle is closed and the gateway is measured after a garbage collection: nothing may grow.
 *
 * Environment: SLUICE_SOAK_REQUESTS (200000), SLUICE_SEED (1). A full run writes its figures into docs/reliability.md.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeFigures } from './figures.js';
import { createRandom, faultIn, PROTOCOLS, requestOf } from './soak-wire.js';

const FULL_RUN = 200_000;
const REQUESTS = Number(process.env.SLUICE_SOAK_REQUESTS ?? FULL_RUN);
const SEED = Number(process.env.SLUICE_SEED ?? 1);
const AT_ONCE = 48;
const SAMPLES = 10;
/** A few of those who mean to leave have their response before they do. */
const ABORTED_SHARE = 0.028;
/** Some requests name one of several other models: few enough for all caches to have met them in the first fifth of the run. */
const RARE_SHARE = 0.05;
const RARE_MODELS = 40;
/** Idle connections to the upstream live this long; a sample is taken when they are gone. */
const UPSTREAM_IDLE_MS = 500;
const HANG_MS = 30_000;
/** How much more there may be at the end of the run than after its first fifth, which fills caches and warms up V8. */
const MOST_GROWTH = { heapUsed: 5e6, external: 5e6, rss: 100e6, fds: 8, sockets: 8, timers: 8, handles: 8 };
const MOST_SHOWN = 5;

const begun = performance.now();
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const seconds = () => Math.round((performance.now() - begun) / 1000);

/** Every pair of protocols as a stream and whole; a pair of the same protocol repaired and passed through. */
const WAYS = PROTOCOLS.flatMap((client) =>
  PROTOCOLS.flatMap((upstream) =>
    (client === upstream ? [true, false] : [false]).flatMap((isPassing) =>
      [true, false].map((stream) => ({ client, upstream, isPassing, stream })),
    ),
  ),
);

const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
const counts = { sent: 0, exact: 0, aborted: 0 };
const faults = [];
const gatewayErrors = [];

const folder = mkdtempSync(join(tmpdir(), 'sluice-soak-'));
const upstream = spawn(process.execPath, [here('./soak-upstream.js')], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
const [{ port: upstreamPort }] = await once(upstream, 'message');
const { gateway, port } = await startGateway();
try {
  const samples = await run();
  const isSound = report(samples);
  gateway.kill('SIGTERM');
  const [code] = await once(gateway, 'close');
  if (code !== 0) fail(`the gateway exited with ${code} after SIGTERM`);
  process.exitCode = isSound && code === 0 ? 0 : 1;
} finally {
  agent.destroy();
  gateway.kill('SIGKILL');
  upstream.disconnect();
  rmSync(folder, { recursive: true });
}

async function startGateway() {
  const rows = PROTOCOLS.flatMap((protocol) =>
    ['pass', 'repair'].map((way) => [
      `${way}-${protocol}`,
      { protocol, base_url: `http://127.0.0.1:${upstreamPort}`, api_key: 'k', repair: way === 'repair' },
    ]),
  );
  const config = {
    listen: { host: '127.0.0.1', port: 0 },
    log: { level: 'error' },
    limits: { upstream_keep_alive: `${UPSTREAM_IDLE_MS}ms` },
    // Full within the first fifth of the run, as all other caches.
    responses: { max_bytes_per_key: '4MiB' },
    providers: Object.fromEntries(rows),
  };
  const file = join(folder, 'sluice.json');
  writeFileSync(file, JSON.stringify(config));
  const bin = here('../../packages/gateway/bin/sluice.js');
  const child = spawn(process.execPath, ['--expose-gc', '--import', here('./probe.js'), bin, 'serve', '--config', file], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production', NO_COLOR: '1' },
  });
  let welcome = '';
  const listening = new Promise((resolve, reject) => {
    const look = (data) => {
      welcome += data;
      const found = /http:\/\/127\.0\.0\.1:(\d+)/.exec(welcome)?.[1];
      if (found) resolve(Number(found));
    };
    child.stdout.on('data', look);
    child.stderr.on('data', (data) => {
      look(data);
      for (const line of String(data).split('\n')) if (line.startsWith('{')) gatewayErrors.push(line);
    });
    child.once('close', (code) => reject(new Error(`the gateway exited with ${code}:\n${welcome}`)));
  });
  return { gateway: child, port: await listening };
}

async function run() {
  const samples = [];
  for (let tenth = 1; tenth <= SAMPLES; tenth++) {
    const until = Math.round((REQUESTS * tenth) / SAMPLES);
    await Promise.all(Array.from({ length: AT_ONCE }, () => askUntil(until)));
    samples.push(await measure());
    show(samples.at(-1), tenth);
  }
  return samples;
}

async function askUntil(until) {
  while (counts.sent < until) {
    const k = ++counts.sent;
    const fault = await ask(k).catch((error) => `${error.stack ?? error}`);
    if (fault) fail(`request ${k} (${nameOf(wayOf(k))}): ${fault}`);
  }
}

function wayOf(k) {
  return WAYS[k % WAYS.length];
}

function nameOf({ client, upstream: source, isPassing, stream }) {
  return `${client} ${isPassing ? '=' : '<-'} ${source}, ${stream ? 'stream' : 'whole'}`;
}

function fail(fault) {
  faults.push(fault);
  if (faults.length <= MOST_SHOWN) console.log(`WRONG: ${fault}`);
}

/** One request. Resolves with what is wrong about its response; undefined when nothing is, or when its client has left. */
function ask(k) {
  const way = wayOf(k);
  const random = createRandom(SEED * 0x9e3779b1 + k);
  const abort =
    random() < ABORTED_SHARE ? { at: ['body', 'wait', 'bytes'][Math.floor(random() * 3)], when: random() } : undefined;
  // Clients that leave do so while the upstream is at work; a few of the others meet a slow upstream, too.
  const delay = abort || random() < 0.05 ? 2 : 0;
  const name = random() < RARE_SHARE ? `m${Math.floor(random() * RARE_MODELS)}` : 'm';
  const model = `${way.isPassing ? 'pass' : 'repair'}-${way.upstream}/${name}`;
  const { path, body } = requestOf(way.client, { model, stream: way.stream, k, delay });
  return new Promise((resolve, reject) => {
    const call = request({ port, host: '127.0.0.1', path, method: 'POST', agent, headers: headersOf(way.client, body) });
    const hang = setTimeout(() => call.destroy(new Error('no response in time')), HANG_MS);
    let isOver = false;
    const settle = (end, value) => {
      isOver = true;
      clearTimeout(hang);
      end(value);
    };
    const leave = () => {
      if (isOver) return;
      counts.aborted++;
      settle(resolve);
      call.destroy();
    };
    call.on('error', (error) => settle(reject, error));
    call.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (data) => {
        text += data;
        if (abort?.at === 'bytes' && text.length >= abort.when * 1500) leave();
      });
      response.on('error', (error) => settle(reject, error));
      response.on('end', () => isOver || settle(resolve, judge(response.statusCode, text, { ...way, k })));
    });
    if (abort?.at === 'body') {
      call.write(body.slice(0, Math.floor(body.length * abort.when)));
      setImmediate(leave);
      return;
    }
    call.end(body);
    if (abort?.at === 'wait') setTimeout(leave, abort.when * 6);
  });
}

function judge(status, text, way) {
  if (status !== 200) return `status ${status}: ${text.slice(0, 500)}`;
  const fault = faultIn(text, way);
  if (fault === undefined) counts.exact++;
  return fault;
}

function headersOf(client, body) {
  const version = client === 'anthropic-messages' && { 'anthropic-version': '2023-06-01' };
  return { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...version };
}

/** Closes what is idle, waits until nothing is under way, and measures. */
async function measure() {
  agent.destroy();
  await sleep(UPSTREAM_IDLE_MS * 3);
  const [held, served] = await Promise.all([tell(gateway), tell(upstream)]);
  const links = readdirSync(`/proc/${gateway.pid}/fd`).map((fd) => linkOf(`/proc/${gateway.pid}/fd/${fd}`));
  const sockets = links.filter((link) => link.startsWith('socket:')).length;
  return { ...held, fds: links.length, sockets, upstreamOpen: served.open, upstreamSockets: served.sockets };
}

async function tell(child) {
  const answer = once(child, 'message');
  child.send('sample');
  const [said] = await answer;
  return said;
}

/** The descriptor may be gone since the folder was read. */
function linkOf(path) {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function mb(bytes) {
  return (bytes / 1e6).toFixed(1);
}

function show({ heapUsed, external, rss, fds, sockets, timers, upstreamSockets }, tenth) {
  console.log(
    `${String(tenth * 10).padStart(3)} %  ${String(seconds()).padStart(4)} s  heap ${mb(heapUsed)} MB, external ${mb(external)} MB, ` +
      `rss ${mb(rss)} MB, ${fds} fds, ${sockets} sockets, ${timers} timers, ${upstreamSockets} upstream sockets, ` +
      `${counts.exact} exact, ${counts.aborted} aborted, ${faults.length} wrong`,
  );
}

/** Whether everything held; says what did not. */
function report(samples) {
  const warm = samples[1];
  const last = samples.at(-1);
  for (const [what, most] of Object.entries(MOST_GROWTH)) {
    const growth = last[what] - warm[what];
    if (growth > most) fail(`${what} grew by ${growth} between 20 % and 100 % of the run; allowed: ${most}`);
  }
  for (const { upstreamOpen, upstreamSockets } of samples)
    if (upstreamOpen + upstreamSockets > 0)
      fail(`${upstreamOpen} calls and ${upstreamSockets} sockets of the upstream stayed open`);
  for (const line of gatewayErrors.slice(0, MOST_SHOWN)) fail(`the gateway logged ${line}`);
  const summary =
    `${counts.sent.toLocaleString('en')} requests over ${WAYS.length} ways, ${counts.aborted.toLocaleString('en')} aborted, ` +
    `${counts.exact.toLocaleString('en')} responses exact, ${faults.length} wrong; ${seconds()} s`;
  if (REQUESTS >= FULL_RUN && faults.length === 0) writeFigures('soak', figuresOf(samples, summary));
  console.log(`${summary}; heap ${mb(warm.heapUsed)} MB at 20 %, ${mb(last.heapUsed)} MB at 100 %`);
  return faults.length === 0;
}

function figuresOf(samples, summary) {
  const rows = samples.map(
    (sample, i) =>
      `| ${(i + 1) * 10} % | ${mb(sample.heapUsed)} MB | ${mb(sample.external)} MB | ${mb(sample.rss)} MB | ${sample.fds} | ${sample.sockets} | ${sample.timers} |`,
  );
  return [
    `${summary}; Node ${process.versions.node}, ${new Date().toISOString().slice(0, 10)}.`,
    '',
    '| run | heap after gc | external memory | resident memory | file descriptors | sockets | timers |',
    '|---|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}
