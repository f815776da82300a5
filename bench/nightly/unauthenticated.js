/**
 * What a request without a key costs. A stranger may send any number of them, so each may take at most 1 ms of CPU and 32 KiB of memory, and
 * must not touch the ledger. Requests of several kinds are sent over kept connections, then many at once; the gateway's own process is
 * measured.
 *
 * node bench/nightly/unauthenticated.js [--requests 20000] [--connections 1000] [--gateway packages/gateway]
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ADMIN_KEY = 'admin-key-0123456789';
const MAX_CPU_MS = 1;
const MAX_BYTES = 32 * 1024;

const { values: options } = parseArgs({
  options: {
    requests: { type: 'string', default: '20000' },
    connections: { type: 'string', default: '1000' },
    gateway: { type: 'string', default: fileURLToPath(new URL('../../packages/gateway', import.meta.url)) },
  },
});

const BODY = JSON.stringify({ model: 'demo/hello', messages: [{ role: 'user', content: 'hi' }] });
const post = (path, headers) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n${headers}\r\n${BODY}`;
const get = (path, headers = '') => `GET ${path} HTTP/1.1\r\nhost: x\r\n${headers}\r\n`;

/** Requests that must get 401. */
const KINDS = {
  'chat without a key': post('/v1/chat/completions', ''),
  'chat with a wrong key': post('/v1/chat/completions', `authorization: Bearer sk-${'x'.repeat(48)}\r\n`),
  'messages with a long key': post('/v1/messages', `x-api-key: ${'x'.repeat(8000)}\r\n`),
  'gemini with a key in the query': post(`/v1beta/models/m:generateContent?key=${'x'.repeat(200)}`, ''),
  'many headers': get('/v1/models', Array.from({ length: 90 }, (_, i) => `x-${i}: y\r\n`).join('')),
  'a long chain of proxies': get('/v1/models', `x-forwarded-for: ${'10.0.0.1, '.repeat(1000)}x\r\n`),
  'an unknown path': get(`/${'a/'.repeat(500)}`),
  metrics: get('/metrics'),
  'the admin API': get('/admin/v1/exchanges'),
};

const folder = mkdtempSync(join(tmpdir(), 'sluice-unauthenticated-'));
const failures = [];
const { child, port } = await startGateway();
try {
  const perKind = Math.ceil(Number(options.requests) / Object.keys(KINDS).length);
  for (const text of Object.values(KINDS)) await flood(text, 500);
  let worst = { name: '', ms: 0 };
  for (const [name, text] of Object.entries(KINDS)) {
    const before = readCpuMs();
    await flood(text, perKind);
    const ms = (readCpuMs() - before) / perKind;
    console.log(`${name}: ${(ms * 1000).toFixed(0)} us CPU`);
    if (ms > worst.ms) worst = { name, ms };
  }
  if (worst.ms > MAX_CPU_MS) failures.push(`${worst.name} takes ${worst.ms.toFixed(2)} ms of CPU`);
  const bytes = await measureMemory();
  if (bytes > MAX_BYTES) failures.push(`a request takes ${(bytes / 1024).toFixed(1)} KiB`);
  const rows = await countRows();
  if (rows > 0) failures.push(`${rows} rows were written to the ledger`);
  for (const failure of failures) console.error(failure);
  console.log(
    `${perKind * Object.keys(KINDS).length} requests: at most ${(worst.ms * 1000).toFixed(0)} us CPU (${worst.name}), ${(bytes / 1024).toFixed(1)} KiB each of ${options.connections} at once`,
  );
} finally {
  child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failures.length === 0 ? 0 : 1;

async function startGateway() {
  const config = join(folder, 'sluice.json');
  const keys = { auth: { keys: ['client-key-0123456789'] }, admin: { key: ADMIN_KEY } };
  writeFileSync(config, JSON.stringify({ listen: { port: 0 }, log: { level: 'error' }, ...keys }), { mode: 0o600 });
  const bin = join(options.gateway, 'bin/sluice.js');
  const started = spawn(process.execPath, [bin, 'serve', '--json', '--config', config, '--data', join(folder, 'data')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  started.stdout.on('data', (piece) => {
    text += piece;
  });
  for (let i = 0; i < 400 && !text.includes('\n'); i++) await sleep(50);
  return { child: started, port: Number(new URL(JSON.parse(text).url).port) };
}

/** Sends a request again and again over one connection, one at a time. */
function flood(text, count) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    socket.setNoDelay(true).on('error', reject);
    let left = count;
    let buffer = '';
    socket.on('data', (piece) => {
      buffer += piece.toString('latin1');
      const end = buffer.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = buffer.slice(0, end);
      // The body has a length, or comes in one piece of chunks.
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN);
      const isWhole = Number.isNaN(length) ? buffer.endsWith('0\r\n\r\n') : buffer.length >= end + 4 + length;
      if (!isWhole) return;
      if (!/^HTTP\/1\.1 (401|429)/.test(head)) reject(new Error(`expected 401: ${head.slice(0, 60)}`));
      buffer = '';
      if (--left > 0) socket.write(text);
      else socket.end(resolve);
    });
    socket.on('close', () => (left > 0 ? resolve(flood(text, left)) : resolve()));
    socket.write(text);
  });
}

/** The growth of the process while many strangers wait, each with half a request after its refusal. */
async function measureMemory() {
  const count = Number(options.connections);
  const text = post('/v1/chat/completions', `authorization: Bearer sk-${'x'.repeat(48)}\r\n`);
  const openAll = () => Promise.all(Array.from({ length: count }, () => openHalf(text)));
  // The first round grows what stays: pools of buffers and tables.
  for (const socket of await openAll()) socket.destroy();
  await sleep(3000);
  const before = readRss();
  const sockets = await openAll();
  const grown = readRss() - before;
  for (const socket of sockets) socket.destroy();
  return Math.max(0, grown) / count;
}

function openHalf(text) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text.slice(0, -5)));
    socket.on('error', reject).once('data', () => resolve(socket));
  });
}

/** User and system time of the gateway; clock ticks are hundredths of a second. */
function readCpuMs() {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function readRss() {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))[1]) * 1024;
}

async function countRows() {
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const response = await fetch(`http://127.0.0.1:${port}/admin/v1/exchanges?limit=100`, { headers });
  return (await response.json()).exchanges.length;
}
