/** `sluice serve --workers`: several processes on one port, with PostgreSQL and Redis. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { IS_NIGHT } from '../../../../test/night.ts';
import { tried } from '../../../../test/tries.ts';
import { eventually } from '../../../../test/wait.ts';
import { parseWorkers } from '../../src/cli/serve.ts';
import { createTestFolder, endWithTests, findPort } from '../real-parts/programs.js';
import { RedisServer } from '../real-parts/redis.js';
import { createAddress, createFolder, startPostgres } from '../store/ledger-fixture.ts';
import { assertBuilt } from '../store/processes.ts';
import { chat, send } from './client.ts';
import { HeldUpstream } from './held-upstream.ts';
import { killProcesses, startProcess } from './process.ts';

const ADMIN = 'admin-key-of-the-workers-0123456789abcdef';

const SLUICE = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

beforeAll(assertBuilt);
afterAll(killProcesses);

function serve(config: string, ...args: string[]) {
  const folder = createFolder();
  const file = join(folder, 'sluice.yaml');
  writeFileSync(file, config);
  return spawnSync(process.execPath, [SLUICE, 'serve', '--config', file, '--port', '0', ...args], {
    encoding: 'utf8',
    timeout: 20_000,
  });
}

test.each([
  { config: 'log: { level: error }', missing: 'set store: postgres://…, or use --workers 1' },
  {
    config: 'store: postgres://sluice@127.0.0.1:1/sluice\nlimits_store: memory',
    missing: 'remove limits_store: memory, or use --workers 1',
  },
  { config: 'limits_store: redis://127.0.0.1:1', missing: 'set store: postgres://…, or use --workers 1' },
])('two workers with $config are refused', ({ config, missing }) => {
  const { status, stderr } = serve(config, '--workers', '2');
  expect(status).toBe(2);
  expect(stderr).toContain(missing);
});

test.each(['0', '65', '-1', '1.5', 'many'])('--workers %s is refused', (count) => {
  expect(() => parseWorkers(count)).toThrow('--workers must be "auto" or a number from 1 to 64');
});

test('a mistake that the first worker finds ends the command, with the reason once', () => {
  const config = 'store: postgres://sluice@127.0.0.1:1/sluice\nlimits_store: redis://127.0.0.1:1\nauth: { pepper_file: pepper }';
  const { status, stderr } = serve(config, '--workers', '2');
  expect(status).toBe(2);
  expect(stderr.match(/cannot be used/g)).toHaveLength(1);
});

describe('workers', needs('redis', 'postgres'), () => {
  let redis: RedisServer;

  beforeAll(async () => {
    redis = await RedisServer.start();
  });

  afterAll(() => redis.stop());

  /** Starts a gateway with this many workers, a limit of 7 requests at once, and a budget for 6 reservations. */
  async function start(count: number, folder: string, limits: 'redis' | 'postgres' = 'redis') {
    const upstream = await HeldUpstream.start();
    const [store, metricsPort] = [await createAddress(), await findPort()];
    const config = join(folder, 'sluice.yaml');
    writeFileSync(
      config,
      `log: { level: fatal }
default_price: { input: "1", output: "1" }
store: env:STORE
node_lease: 5s
limits_store: { url: ${limits === 'redis' ? 'env:REDIS' : 'store'}, prefix: "workers-${metricsPort}:", timeout: 1s, connect_timeout: 1s }
budgets: [{ tag: team=a, limit: 0.0065usd/total }]
limits: { drain_delay: 200ms }
auth:
  pepper_file: "${join(folder, 'pepper')}"
  keys:
    - { name: narrow, key: narrow-key-0123456789, concurrency: 7 }
    - { name: team, key: team-key-0123456789, tags: team=a }
    - { name: free, key: free-key-0123456789 }
metrics: { key: metrics-key-0123456789, listen: "127.0.0.1:${metricsPort}" }
admin: { key: ${ADMIN} }
providers:
  up: { protocol: openai-chat, base_url: "http://127.0.0.1:${upstream.port}/v1", api_key: some-key-0123456789 }
`,
    );
    const options = { args: ['--workers', String(count)], env: { STORE: store, REDIS: redis.url } };
    const { url, child } = await startProcess(undefined, config, options);
    const query = async (text: string) => (await startPostgres()).query(store, text);
    const ask = (key: string, times: number) =>
      Array.from({ length: times }, () =>
        send(url, '/v1/chat/completions', { key, body: chat('up/m', 1000) }).then(({ status }) => status),
      );
    return { url, metricsUrl: `http://127.0.0.1:${metricsPort}`, child, upstream, query, ask };
  }

  const countOf = (statuses: readonly number[], status: number): number => statuses.filter((other) => other === status).length;

  /** The values of a metric by worker. */
  async function readMetric(url: string, name: string): Promise<Record<string, number>> {
    const { text } = await send(url, '/metrics', { key: 'metrics-key-0123456789', method: 'GET' });
    const samples = [...text.matchAll(new RegExp(`^${name}\\{worker="(\\d+)".*\\} (\\S+)$`, 'gm'))];
    return Object.fromEntries(samples.map(([, worker = '', value]) => [worker, Number(value)]));
  }

  test.each([
    [2, 'redis'],
    [2, 'postgres'],
    ...(IS_NIGHT
      ? ([
          [1, 'redis'],
          [4, 'redis'],
        ] as const)
      : []),
  ] as const)(
    '%i with %s: limits admit exactly N, the ledger has every request, and all end on SIGTERM',
    async (count, limits) => {
      const { url, child, upstream, query, ask } = await start(count, createFolder(), limits);
      onTestFinished(async () => {
        upstream.close();
        await killProcesses();
      });
      const running = ask('narrow-key-0123456789', 40);
      const ended: number[] = [];
      for (const asked of running) void asked.then((status) => ended.push(status));
      await expect.poll(() => ended.length).toBe(33);
      expect(countOf(ended, 429)).toBe(33);
      await expect.poll(() => upstream.waiting).toBe(7);
      upstream.answerAll();
      await Promise.all(running);

      // Each reserves about 1,050 millionths of a dollar of 6,500, and costs 200.
      const team = ask('team-key-0123456789', 40);
      let refused = 0;
      for (const asked of team) void asked.then(() => refused++);
      await expect.poll(() => refused).toBe(34);
      await expect.poll(() => upstream.waiting).toBe(6);

      if (count > 1) {
        const numbers = Array.from({ length: count }, (_, index) => String(index + 1));
        const up = await readMetric(url, 'sluice_worker_up');
        expect(up).toEqual(Object.fromEntries(numbers.map((number) => [number, 1])));
        const active = Object.values(await readMetric(url, 'sluice_active_requests'));
        expect(active.reduce((sum, value) => sum + value, 0)).toBe(6);
      }

      // Running requests finish after SIGTERM.
      const closed = new Promise((resolve) => child.once('exit', (code) => resolve(code)));
      child.kill('SIGTERM');
      await expect
        .poll(() => send(url, '/health/ready', { key: '', method: 'GET' }).then(({ status }) => status), { timeout: 20_000 })
        .toBe(503);
      upstream.answerAll();
      expect(countOf(await Promise.all(team), 200)).toBe(6);
      expect(await closed).toBe(0);
      const [found] = await query(
        "SELECT count(*) AS rows, sum(cost_micros) AS cost FROM exchanges WHERE state = 'settled' AND http_status = 200",
      );
      expect(found).toMatchObject({ rows: 13, cost: 2600 });
      const boots = await query('SELECT DISTINCT boot_id FROM exchanges');
      expect(boots.length).toBeGreaterThanOrEqual(Math.min(count, 2));
      expect(await query("SELECT id FROM exchanges WHERE state = 'open'")).toEqual([]);
    },
  );

  test('end with 0 on SIGTERM while all but the first are still being started', async () => {
    const folder = createFolder();
    const [store, port, config] = [await createAddress(), await findPort(), join(folder, 'sluice.yaml')];
    writeFileSync(config, `log: { level: fatal }\nstore: env:STORE\nauth: { pepper_file: "${join(folder, 'pepper')}" }\n`);
    const child = spawn(process.execPath, [SLUICE, 'serve', '--config', config, '--port', String(port), '--workers', '3'], {
      stdio: 'ignore',
      env: { ...process.env, STORE: store },
    });
    endWithTests(child);
    const ended = new Promise((resolve) => child.once('exit', (code) => resolve(code)));
    const health = () => send(`http://127.0.0.1:${port}`, '/health/live', { key: '', method: 'GET' });
    await eventually(() =>
      health().then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });

  /** The number of the worker with most requests, how many it has, and its process. */
  async function findBusiest(url: string, primary: number | undefined): Promise<{ number: string; active: number; pid: number }> {
    const active = Object.entries(await readMetric(url, 'sluice_active_requests'));
    const [number, count] = active.sort(([, one], [, other]) => other - one)[0] ?? ['', 0];
    return { number, active: count, pid: listWorkers(primary).find((pid) => readWorkerNumber(pid) === number) ?? 0 };
  }

  // One pair of workers for each: what one attack leaves must not hide in the next.
  describe('a worker', () => {
    const LIMIT = 7;

    async function startHeld() {
      const running = await start(2, createFolder());
      onTestFinished(async () => {
        running.upstream.close();
        await killProcesses();
      });
      const held = running.ask('narrow-key-0123456789', LIMIT).map((asked) => asked.catch(() => 0));
      await expect.poll(() => running.upstream.waiting, { timeout: 30_000 }).toBe(LIMIT);
      return { ...running, held };
    }

    /** Asks again and again until so many requests in all have reached the upstream; then no other one is admitted. */
    async function expectAdmitted({ ask, upstream }: Awaited<ReturnType<typeof start>>, received: number): Promise<void> {
      const attempt = async (): Promise<number> => {
        const asked = ask('narrow-key-0123456789', 20).map((one) => one.catch(() => 0));
        tried(asked.length);
        let refused = 0;
        for (const one of asked) void one.then((status) => (refused += status === 429 ? 1 : 0));
        const before = upstream.received;
        await expect.poll(() => refused + upstream.received - before, { timeout: 30_000 }).toBe(asked.length);
        return upstream.received;
      };
      await expect.poll(attempt, { timeout: 60_000, interval: 500 }).toBe(received);
      expect(await attempt()).toBe(received);
    }

    test('that is killed gives back what its requests held, and no more', async () => {
      const running = await startHeld();
      const { active, pid } = await findBusiest(running.url, running.child.pid);
      expect(active).toBeGreaterThan(0);
      process.kill(pid, 'SIGKILL');
      await expectAdmitted(running, LIMIT + active);
    });

    test('that hangs keeps no slot for ever, and others are served', async () => {
      const running = await startHeld();
      const { url, child, upstream, ask } = running;
      const { number, active, pid } = await findBusiest(url, child.pid);
      process.kill(pid, 'SIGSTOP');
      onTestFinished(() => void process.kill(pid, 'SIGCONT'));
      expect((await readMetric(url, 'sluice_worker_up'))[number]).toBe(0);
      await expectAdmitted(running, LIMIT + active);
      upstream.isHeld = false;
      expect(countOf(await Promise.all(ask('free-key-0123456789', 20)), 200)).toBe(20);
      // When it runs again, it gives back nothing that is not its own.
      upstream.answerAll();
      upstream.isHeld = true;
      process.kill(pid, 'SIGCONT');
      await expect.poll(async () => (await readMetric(url, 'sluice_worker_up'))[number], { timeout: 30_000 }).toBe(1);
      const total = async (): Promise<number> =>
        Object.values(await readMetric(url, 'sluice_active_requests')).reduce((sum, count) => sum + count, 0);
      await expect.poll(total, { timeout: 30_000 }).toBe(0);
      await expectAdmitted(running, upstream.received + LIMIT);
    });

    test('ends when the process that started it is killed, and its requests with it', async () => {
      const { child, held } = await startHeld();
      const pids = listWorkers(child.pid);
      expect(pids).toHaveLength(2);
      child.kill('SIGKILL');
      expect(await Promise.all(held)).toEqual(held.map(() => 0));
      await eventually(() => !pids.some((pid) => existsSync(`/proc/${pid}/environ`)));
    });

    test('that does not revoke a key itself ends the requests of the key as well', async () => {
      const { url, upstream, ask } = await start(2, createFolder());
      onTestFinished(async () => {
        upstream.close();
        await killProcesses();
      });
      const created = await send(url, '/admin/v1/keys', { key: ADMIN, body: { name: 'guest' } });
      const { secret } = created.json;
      const REQUESTS = 12;
      tried(REQUESTS);
      const asked: Promise<number>[] = [];
      // The other worker learns of the key a moment later, and refuses it until then.
      while (upstream.waiting < REQUESTS) {
        const before = upstream.waiting;
        const one = send(url, '/v1/chat/completions', { key: secret, body: chat('up/m') }).then(({ status }) => status);
        let isRefused = false;
        void one.then(() => {
          isRefused = true;
        });
        await eventually(() => isRefused || upstream.waiting > before);
        if (!isRefused) asked.push(one);
      }
      const active = Object.values(await readMetric(url, 'sluice_active_requests'));
      await send(url, '/admin/v1/keys/guest?now=true', { key: ADMIN, method: 'DELETE' });
      expect(countOf(await Promise.all(asked), 401)).toBe(REQUESTS);
      expect(active.reduce((sum, count) => sum + count, 0)).toBe(REQUESTS);
      const later = await Promise.all(ask(secret, 10));
      expect(countOf(later, 401)).toBe(later.length);
    });

    test('with many idle connections takes none from the others', async () => {
      const { url, upstream, ask } = await start(2, createFolder());
      const idle: Socket[] = [];
      onTestFinished(async () => {
        for (const socket of idle) socket.destroy();
        upstream.close();
        await killProcesses();
      });
      const { hostname, port } = new URL(url);
      const IDLE = 300;
      tried(IDLE);
      for (let count = 0; count < IDLE; count++) {
        const socket = connect({ host: hostname, port: Number(port) });
        idle.push(socket.on('error', () => undefined));
        await once(socket, 'connect');
      }
      upstream.isHeld = false;
      expect(countOf(await Promise.all(ask('free-key-0123456789', 40)), 200)).toBe(40);
    });
  });

  describe('two that run', () => {
    let running: Awaited<ReturnType<typeof start>>;

    beforeAll(async () => {
      running = await start(2, createTestFolder('workers'));
    });

    afterAll(() => running.upstream.close());

    test('metrics.listen shows both', async () => {
      const { metricsUrl } = running;
      expect(await readMetric(metricsUrl, 'sluice_worker_up')).toEqual({ 1: 1, 2: 1 });
      expect(Object.keys(await readMetric(metricsUrl, 'sluice_active_requests'))).toEqual(['1', '2']);
      // By whichever worker: each connection may reach another.
      const pages = await Promise.all(Array.from({ length: 8 }, () => readMetric(metricsUrl, 'sluice_worker_up')));
      expect(pages).toEqual(Array.from({ length: 8 }, () => ({ 1: 1, 2: 1 })));
    });

    test('SIGHUP reloads both, though the file has not changed', async () => {
      const { child, query } = running;
      const countReloads = async () => (await query("SELECT id FROM audit_log WHERE action = 'config.reload'")).length;
      expect(await countReloads()).toBe(0);
      child.kill('SIGHUP');
      await expect.poll(countReloads, { timeout: 30_000 }).toBe(2);
    });

    test('one that is killed is replaced, its rows are closed, and the other one finishes its requests', async () => {
      const { url, child, upstream, query, ask } = running;
      const asked = ask('free-key-0123456789', 12);
      const results = Promise.allSettled(asked);
      await expect.poll(() => upstream.waiting, { timeout: 30_000 }).toBe(12);
      const open = "SELECT count(*) AS rows FROM exchanges WHERE key_id LIKE '%free%' AND state = 'open'";
      await expect.poll(() => query(open), { timeout: 30_000 }).toEqual([{ rows: 12 }]);
      const { active: lost, pid: killed } = await findBusiest(url, child.pid);
      process.kill(killed, 'SIGKILL');
      const isReplaced = async (): Promise<boolean> => {
        const pids = listWorkers(child.pid);
        const up = await readMetric(url, 'sluice_worker_up').catch(() => ({}));
        return pids.length === 2 && !pids.includes(killed) && Object.values(up).join() === '1,1';
      };
      await expect.poll(isReplaced, { timeout: 30_000 }).toBe(true);
      upstream.isHeld = false;
      upstream.answerAll();
      expect(countOf(await Promise.all(ask('free-key-0123456789', 4)), 200)).toBe(4);
      expect((await results).filter(({ status }) => status === 'rejected')).toHaveLength(lost);
      const count = "SELECT state, count(*) AS rows FROM exchanges WHERE key_id LIKE '%free%' GROUP BY state ORDER BY state";
      await expect
        .poll(() => query(count), { timeout: 30_000 })
        .toEqual([
          { state: 'crashed', rows: lost },
          { state: 'settled', rows: 12 - lost + 4 },
        ]);
    });
  });
});

/** The processes that a process has started. */
const listWorkers = (pid: number | undefined): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);

/** The number that the process of a worker was started with. */
const readWorkerNumber = (pid: number): string | undefined =>
  /SLUICE_WORKER=(\d+)/.exec(readFileSync(`/proc/${pid}/environ`, 'utf8'))?.[1];
