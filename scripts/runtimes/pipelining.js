/**
 * The built gateway in a release of node, and clients that send requests ahead (pipelining), read nothing and leave: releases differ in
 * which events such a response has. Nothing may stay behind.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT } from '../build/packages.js';

/** More requests than may run at the same time (`limits.streams`). */
const AHEAD = 2300;
const CLIENTS = 3;
const WAIT_MS = 20_000;

/** How clients leave. */
const LEAVE = {
  close: (socket) => socket.destroy(),
  reset: (socket) => socket.resetAndDestroy(),
  'half-close': (socket) => socket.end(() => socket.destroy()),
};

/** What a gateway in this program of node does wrong; `requests`: how many were sent. */
export async function attackByPipelining(node) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-pipelining-'));
  writeFileSync(join(folder, 'sluice.yaml'), 'log: { level: silent }\nlimits: { drain: 3s }\n');
  const args = [join(ROOT, 'packages/gateway/bin/sluice.js'), 'serve', '--port', '0', '--data', 'memory', '--json'];
  const env = { PATH: process.env.PATH, HOME: folder };
  const gateway = spawn(node, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    const url = await readUrl(gateway);
    const failures = [];
    for (const [way, leave] of Object.entries(LEAVE)) failures.push(...(await attack(url, way, leave)));
    return { requests: AHEAD * CLIENTS * Object.keys(LEAVE).length, failures: [...failures, ...(await stop(gateway))] };
  } finally {
    gateway.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

async function readUrl(gateway) {
  let text = '';
  for await (const data of gateway.stdout) {
    text += data;
    const url = /"url":\s*"([^"]+)"/.exec(text)?.[1];
    if (url) return url;
  }
  throw new Error('the gateway ended before it listened');
}

async function attack(url, way, leave) {
  const { hostname, port } = new URL(url);
  const text = `GET /x HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`.repeat(AHEAD);
  for (let client = 0; client < CLIENTS; client++) {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => undefined);
    socket.pause();
    await once(socket, 'connect');
    await new Promise((resolve) => {
      socket.write(text, resolve);
    });
    leave(socket);
  }
  let active = '';
  for (const until = performance.now() + WAIT_MS; performance.now() < until; await sleep(100)) {
    active = await readActive(url);
    // The request for the metrics itself.
    if (Number(active) <= 1) return [];
  }
  return [`clients that ${way} have left something behind: ${active}`];
}

/** How many requests run; another text when the gateway does not tell. */
async function readActive(url) {
  const response = await fetch(`${url}/metrics`, { headers: { connection: 'close' } });
  const text = await response.text();
  return /^sluice_active_requests (\d+)$/m.exec(text)?.[1] ?? `status ${response.status}`;
}

async function stop(gateway) {
  const ended = once(gateway, 'exit');
  gateway.kill('SIGTERM');
  const end = await Promise.race([ended, sleep(WAIT_MS, undefined, { ref: false })]);
  return end?.[0] === 0 ? [] : [`the gateway did not stop after SIGTERM: ${end ? `exit code ${end[0]}` : 'it still runs'}`];
}
