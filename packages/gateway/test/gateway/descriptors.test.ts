import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { tried } from '../../../../test/tries.ts';
import { quietFor } from '../../../../test/wait.ts';
import { computeConnectionRoom, computeConnectionShare } from '../../src/exchange/load.ts';
import { createConnectionError } from '../../src/exchange/types.ts';
import { isTargetFault } from '../../src/upstream/retry.ts';
import { expectAnswered, expectRefused } from './check.ts';
import { Faultd } from './faultd.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, eventually, startGateway } from './start.ts';

// More sockets than file descriptors: the process goes on, and serves again when some are closed.

const bin = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'sluice-'));
const pair = PAIRS[4] as Pair; // the table has nine
const FILES = 300;
const FLOOD = 500;

let faultd: Faultd;
let children: ChildProcess[] = [];
let sockets: Socket[] = [];

beforeAll(async () => {
  faultd = await Faultd.start();
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  for (const child of children) {
    const exit = child.exitCode === null && once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }
  sockets = [];
  children = [];
});

afterAll(() => faultd.stop());

/** The real process with few file descriptors. */
async function serve(limits: object): Promise<{ child: ChildProcess; url: string; log: () => string }> {
  const file = join(folder, 'sluice.json');
  writeFileSync(file, JSON.stringify({ listen: { port: 0 }, providers: providersAt(faultd), limits }));
  const command = `ulimit -n ${FILES}; exec "$0" "$@"`;
  const child = spawn('bash', ['-c', command, process.execPath, bin, 'serve', '--data', 'memory', '--config', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  let out = '';
  let log = '';
  child.stdout?.on('data', (piece) => (out += String(piece)));
  child.stderr?.on('data', (piece) => (log += String(piece)));
  const url = await eventually(() => /http:\/\/127\.0\.0\.1:\d+/.exec(out)?.[0]);
  return { child, url, log: () => log };
}

/** Connects, and says nothing. Resolves when the system has accepted all of them. */
async function flood(url: string, count: number): Promise<Socket[]> {
  const { hostname, port } = new URL(url);
  const opened = Array.from({ length: count }, () => connect({ host: hostname, port: Number(port) }));
  sockets.push(...opened);
  await Promise.all(
    opened.map(
      (socket) =>
        new Promise<void>((resolve) => {
          socket.resume().once('connect', () => resolve());
          socket.on('error', () => resolve());
        }),
    ),
  );
  return opened;
}

const isOpen = (socket: Socket): boolean => !socket.destroyed && !socket.readableEnded;

async function isLive(url: string): Promise<boolean> {
  try {
    const client = await RawClient.open(url);
    const { status } = await client.send(requestText('GET', '/health/live', { connection: 'close' })).reply();
    client.leave();
    return status === 200;
  } catch {
    return false;
  }
}

async function untilLive(url: string): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!(await isLive(url))) if (performance.now() > deadline) throw new Error('not live within 20 s');
}

/** Processor time of a process so far, in seconds. */
function cpuOf({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** The timers of the gateway fire at least once; a process that spins would use all of the time. */
async function expectIdle(child: ChildProcess): Promise<void> {
  const before = process.platform === 'linux' ? cpuOf(child) : 0;
  await quietFor(2500);
  expect(child.exitCode).toBe(null);
  if (process.platform === 'linux') expect(cpuOf(child) - before).toBeLessThan(1.5);
}

describe('500 idle connections at a limit of 300 open files', needs('posix'), () => {
  test('leave descriptors for upstreams, and the gateway serves when some of them close', async () => {
    tried(FLOOD);
    const { child, url } = await serve({ header_timeout: '60s' });
    const flooding = await flood(url, FLOOD);
    const most = computeConnectionShare(FILES);
    await eventually(() => flooding.filter(isOpen).length <= most);
    await expectIdle(child);
    expect(flooding.filter(isOpen)).toHaveLength(most);
    for (const socket of flooding.filter(isOpen).slice(0, 50)) socket.destroy();
    await untilLive(url);
    faultd.play(good(pair, true));
    expectAnswered(pair, true, await ask(url, { client: pair.client, model: modelOf(pair), stream: true }));
    for (const socket of flooding) socket.destroy();
    await untilLive(url);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(Number(/^sluice_dropped_connections_total (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThanOrEqual(FLOOD - most);
  });

  test('do not end the process when they may use up all descriptors, and requests get 503', async () => {
    tried(FLOOD);
    const { child, url, log } = await serve({ header_timeout: '60s', connections: 100_000, retries: 0 });
    faultd.play(good(pair, false));
    const clients = await Promise.all(PAIRS.slice(0, 4).map(() => RawClient.open(url)));
    await untilLive(url);
    const flooding = await flood(url, FLOOD);
    await expectIdle(child);
    for (const [i, { client, upstream }] of PAIRS.slice(0, 4).entries()) {
      const text = askText({ client, model: `mend-${upstream}/m`, stream: i % 2 === 0 });
      const reply = await (clients[i] as RawClient).send(text).reply();
      expectRefused(client, reply, client === 'anthropic-messages' ? 529 : 503, 'no free file descriptors');
      expect(reply.headers['retry-after']).toBe('1');
    }
    // A configuration that cannot be read is rejected, and the one before holds.
    child.kill('SIGHUP');
    await eventually(() => log().includes('EMFILE'));
    for (const socket of flooding) socket.destroy();
    await untilLive(url);
    expectAnswered(pair, false, await ask(url, { client: pair.client, model: modelOf(pair), stream: false }));
    expect(child.exitCode).toBe(null);
  });
});

test.each([
  [undefined, Number.POSITIVE_INFINITY],
  [1_048_576, 524_256],
  [1024, 480],
  [300, 118],
  [20, 8],
])('with %s file descriptors, %s client connections are accepted', (files, connections) => {
  expect(computeConnectionShare(files)).toBe(connections);
});

const MIB = 1024 * 1024;

test.each([
  ['plain', 512, 256, 10_922],
  ['tls', 512, 256, 4096],
  ['tls', 24_576, 4144, 196_608],
  ['plain', 24_576, 128, 16_384],
  ['tls', 1, 1, 8],
] as const)('%s, with %d MiB of memory and %d MiB of heap: room for %d connections', (kind, bytes, heap, connections) => {
  expect(computeConnectionRoom(kind, { bytes: bytes * MIB, heap: heap * MIB })).toBe(connections);
});

test('running out of file descriptors does not count as an upstream failure', () => {
  const error = createConnectionError(Object.assign(new Error('connect EMFILE'), { code: 'EMFILE' }), 'provider "p"');
  expect(error).toMatchObject({ code: 'OVERLOADED', http_status: 503 });
  expect(isTargetFault(error)).toBe(false);
});

test('limits.connections limits the accepted client connections', async () => {
  const gateway = await startGateway({ config: { providers: providersAt(faultd), limits: { connections: 2 } } });
  const clients = await Promise.all([1, 2].map(() => RawClient.open(gateway.url)));
  await Promise.all(clients.map((client) => client.send(requestText('GET', '/health/live')).reply()));
  const third = await RawClient.open(gateway.url);
  await third.closed();
  expect(third.received).toHaveLength(0);
  clients[0]?.leave();
  await untilLive(gateway.url);
  clients[1]?.leave();
  await gateway.close();
});
