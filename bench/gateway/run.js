/**
 * The gateway under load, beside a bare pipe and a hand-written converter: `npm run bench:gateway`. The gateway alone has core 0; upstream and
 * clients share core 1. CPU is that of the gateway's process, so that a busy machine changes little; latencies are wall clock.
 */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const UPSTREAM_PORT = 9411;
const PORT = 9412;
const TICKS = 100; // of the kernel's clock in /proc, a second
const isQuick = process.argv.includes('--quick');

const OPENAI = {
  path: '/v1/chat/completions',
  body: (model, stream) => ({ model, stream, messages: [{ role: 'user', content: 'Hi' }] }),
};
const ANTHROPIC = {
  path: '/v1/messages',
  body: (model, stream) => ({ model, stream, max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }),
};

const config = join(tmpdir(), `sluice-bench-${process.pid}.yaml`);
writeFileSync(
  config,
  `log: { level: silent }
limits: { streams: 100000 }
providers:
  pass: { protocol: openai-chat, base_url: "http://127.0.0.1:${UPSTREAM_PORT}/v1", repair: false }
`,
);
const sluice = [here('../../packages/gateway/bin/sluice.js'), 'serve', '--config', config, '--port', String(PORT)];
const env = { PORT: String(PORT), UPSTREAM: `http://127.0.0.1:${UPSTREAM_PORT}` };

const SUBJECTS = [
  { name: 'direct', port: UPSTREAM_PORT, client: OPENAI, model: (m) => m },
  { name: 'node pipe', argv: [here('../reference/pipe.mjs')], client: OPENAI, model: (m) => m },
  { name: 'sluice, passing', argv: sluice, client: OPENAI, model: (m) => `pass/${m}` },
  { name: 'hand, converting', argv: [here('../reference/hand-convert.mjs')], client: ANTHROPIC, model: (m) => m },
  { name: 'sluice, converting', argv: sluice, client: ANTHROPIC, model: (m) => `pass/${m}` },
];

const upstream = start([here('../reference/mock.mjs')], { PORT: String(UPSTREAM_PORT) }, 1);
await sleep(500);
const rows = [];
try {
  for (const subject of SUBJECTS) rows.push({ name: subject.name, ...(await measure(subject)) });
} finally {
  upstream.kill();
}
print(rows);

async function measure({ port = PORT, argv, client, model }) {
  const gateway = argv && start(argv, env, 0);
  if (gateway) await answering(port);
  const load = (script, name, stream, more) =>
    spend(gateway?.pid, () =>
      run(here(script), {
        PORT: String(port),
        PATH_: client.path,
        BODY: JSON.stringify(client.body(model(name), stream)),
        ...more,
      }),
    );
  const seconds = isQuick ? '1' : '4';
  await load('./json-load.js', 'mock-d0-n0', false, { CONNECTIONS: '16', SECONDS: '2' }); // warm
  const busy = await load('./json-load.js', 'mock-d0-n0', false, { CONNECTIONS: '64', SECONDS: seconds });
  const lone = await load('./json-load.js', 'mock-d0-n0', false, { CONNECTIONS: '1', SECONDS: isQuick ? '1' : '2' });
  const chunks = isQuick ? 40 : 100;
  await load('../reference/client.mjs', `mock-d50-n20`, true, { STREAMS: '100' }); // warm
  const first = await load('../reference/client.mjs', 'mock-d20-n20', true, { STREAMS: '1' });
  const paced = await load('../reference/client.mjs', `mock-d50-n${chunks}`, true, { STREAMS: '500', RAMP: '1000' });
  const fast = await load('../reference/client.mjs', 'mock-d0-n2000', true, { STREAMS: '32' });
  const before = memory(gateway?.pid);
  let peak = before;
  const watch = setInterval(() => {
    peak = Math.max(peak, memory(gateway?.pid));
  }, 100);
  const held = await load('../reference/client.mjs', `mock-d500-n${isQuick ? 6 : 12}`, true, { STREAMS: '2000', RAMP: '2000' });
  clearInterval(watch);
  gateway?.kill('SIGKILL');
  await sleep(300);
  const expected = { paced: 500 * chunks, held: 2000 * (isQuick ? 6 : 12) };
  return {
    rps: Math.round(busy.requests / Number(seconds)),
    'CPU us/request': busy.cpuUs && busy.cpuUs / busy.requests,
    'JSON p50 ms': lone.p50,
    'first byte p50 ms': first.ttfb50 / 1000,
    'CPU us/paced chunk': paced.cpuUs && paced.cpuUs / paced.chunks,
    'chunk p50 ms': paced.lat50 / 1000,
    'chunk p99 ms': paced.lat99 / 1000,
    'chunks/s': Math.round(fast.chunks / (fast.wallMs / 1000)),
    'KB/stream at 2,000': gateway && (peak - before) / 1024 / 2000,
    lost: expected.paced - paced.chunks + (expected.held - held.chunks) + busy.failures + paced.errors + held.errors,
    bad: paced.bad || held.bad,
  };
}

function start(argv, env, core) {
  const child = spawn('taskset', ['-c', String(core), process.execPath, ...argv], {
    env: { ...process.env, NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return child;
}

/** Until somebody listens. */
async function answering(port) {
  for (let i = 0; i < 200; i++) {
    if (await isOpen(port)) return;
    await sleep(50);
  }
  throw new Error(`nobody listens on ${port}`);
}

function isOpen(port) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

/** What a run says, and what it cost the gateway. */
async function spend(pid, work) {
  const cpu = cpuOf(pid);
  const wall = performance.now();
  const result = await work();
  return { ...result, wallMs: performance.now() - wall, ...(pid && { cpuUs: ((cpuOf(pid) - cpu) / TICKS) * 1e6 }) };
}

function run(script, env) {
  return new Promise((resolve, reject) => {
    const child = spawn('taskset', ['-c', '1', process.execPath, script], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    child.stdout.on('data', (data) => {
      out += data;
    });
    child.on('close', () => {
      const line = out.trim().split('\n').at(-1);
      if (line) resolve(JSON.parse(line));
      else reject(new Error(`${script} said nothing`));
    });
  });
}

/** User and system time of a process, in ticks. */
function cpuOf(pid) {
  if (!pid) return 0;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

function memory(pid) {
  return pid ? Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024 : 0;
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function print(rows) {
  const names = Object.keys(rows[0]).filter((name) => name !== 'name' && name !== 'bad');
  console.log(`| | ${names.join(' | ')} |\n|---|${names.map(() => '---').join('|')}|`);
  for (const row of rows) {
    const cells = names.map((name) => (typeof row[name] === 'number' ? shown(row[name]) : '–'));
    console.log(`| ${row.name} | ${cells.join(' | ')} |${row.bad ? ` ${row.bad.slice(0, 200)}` : ''}`);
  }
}

function shown(value) {
  return Number.isInteger(value) ? value.toLocaleString('en') : value.toPrecision(3);
}
