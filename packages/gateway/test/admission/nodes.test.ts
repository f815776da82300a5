/** Two gateway processes behind nginx, with the configuration of deploy/, on one PostgreSQL and one Redis. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { NginxServer } from '../real-parts/nginx.js';
import { findPort } from '../real-parts/programs.js';
import { RedisServer } from '../real-parts/redis.js';
import { createAddress, createFolder, startPostgres } from '../store/ledger-fixture.ts';
import { assertBuilt } from '../store/processes.ts';
import { chat, send } from './client.ts';
import { HeldUpstream } from './held-upstream.ts';
import { killProcesses, startProcess } from './process.ts';

const ADMIN = 'admin-key-0123456789';

/** What the cluster of this file is made of. */
interface Cluster {
  redis: RedisServer;
  upstream: HeldUpstream;
  nginx: NginxServer;
  store: string;
  /** The addresses of both gateways. */
  nodes: readonly string[];
}

async function startCluster(): Promise<Cluster> {
  const [redis, upstream, store] = await Promise.all([RedisServer.start(), HeldUpstream.start(), createAddress()]);
  const folder = createFolder();
  const config = join(folder, 'sluice.yaml');
  writeFileSync(
    config,
    `log: { level: error }
trusted_proxies: [127.0.0.1/32]
default_price: { input: "1", output: "1" }
store: env:STORE
limits_store: { url: "env:REDIS", expected_nodes: 2, timeout: 1s, connect_timeout: 1s }
budgets: [{ tag: team=a, limit: 0.0065usd/total }, { tag: team=last, limit: 0.0012usd/total }]
auth:
  pepper_file: "${join(folder, 'pepper')}"
  keys:
    - { name: narrow, key: narrow-key-0123456789, concurrency: 7 }
    - { name: team, key: team-key-0123456789, tags: team=a }
    - { name: last, key: last-key-0123456789, tags: team=last }
admin: { key: ${ADMIN} }
providers:
  up: { protocol: openai-chat, base_url: "http://127.0.0.1:${upstream.port}/v1", api_key: some-key-0123456789 }
`,
  );
  const ports = [await findPort(), await findPort()];
  const env = { STORE: store, REDIS: redis.url };
  // The first one creates the pepper.
  const nodes: string[] = [];
  for (const port of ports) nodes.push((await startProcess(undefined, config, { port, env })).url);
  return { redis, upstream, store, nodes, nginx: await NginxServer.start(ports) };
}

describe('two gateways behind nginx', needs('redis', 'postgres', 'nginx'), () => {
  let cluster: Cluster;

  beforeAll(async () => {
    assertBuilt();
    cluster = await startCluster();
  }, 60_000);

  afterAll(async () => {
    await killProcesses();
    cluster.upstream.close();
    await cluster.nginx.stop();
    await cluster.redis.stop();
  });

  const ask = (key: string, count: number) =>
    Array.from({ length: count }, () =>
      send(cluster.nginx.url, '/v1/chat/completions', { key, body: chat('up/m', 1000) }).then(({ status }) => status),
    );

  const count = (statuses: readonly number[]): Record<number, number> =>
    Object.fromEntries([...new Set(statuses)].map((status) => [status, statuses.filter((other) => other === status).length]));

  const readBudget = async (tag: string) => {
    const { json } = await send(cluster.nodes[1] ?? '', '/admin/v1/budgets', { key: ADMIN, method: 'GET' });
    return json.budgets.find((budget: { name: string }) => budget.name === tag);
  };

  test('a limit of N admits exactly N, also after FLUSHALL', async () => {
    const { upstream, redis } = cluster;
    const first = ask('narrow-key-0123456789', 40);
    const refused: number[] = [];
    for (const asked of first) void asked.then((status) => refused.push(status));
    await expect.poll(() => refused.length).toBe(33);
    expect(count(refused)).toEqual({ 429: 33 });
    await expect.poll(() => upstream.waiting).toBe(7);
    // What is running is known again after Redis was emptied.
    await redis.flush();
    expect(count(await Promise.all(ask('narrow-key-0123456789', 40)))).toEqual({ 429: 40 });
    upstream.answerAll();
    expect(count(await Promise.all(first))).toEqual({ 200: 7, 429: 33 });
    const rows = await (await startPostgres()).query(cluster.store, 'SELECT DISTINCT boot_id FROM exchanges');
    expect(rows).toHaveLength(2);
  });

  test('500 parallel requests at the last cent admit one, with FLUSHALL in the middle', async () => {
    const { upstream, redis } = cluster;
    const received = upstream.received;
    // Each reserves about 1,050 millionths of a dollar of 1,200, and costs 200.
    const asked = ask('last-key-0123456789', 500);
    await Promise.race(asked);
    await redis.flush();
    const statuses: number[] = [];
    for (const request of asked) void request.then((status) => statuses.push(status));
    await expect.poll(() => statuses.length, { timeout: 40_000 }).toBe(499);
    upstream.answerAll();
    expect(count(await Promise.all(asked))).toEqual({ 200: 1, 429: 499 });
    expect(count(await Promise.all(ask('last-key-0123456789', 10)))).toEqual({ 429: 10 });
    expect(upstream.received - received).toBe(1);
    // What ended while Redis was emptied may count twice until the budget is read from the ledger again, some seconds later.
    const read = { timeout: 40_000, interval: 500 };
    await expect.poll(() => readBudget('team=last'), read).toMatchObject({ spent_micros: 200, reserved_micros: 0 });
  });

  test('a budget is spent by both, and never exceeded, with FLUSHALL while requests end', async () => {
    const { upstream, redis } = cluster;
    upstream.isHeld = false;
    const asked = ask('team-key-0123456789', 60);
    await Promise.race(asked);
    await redis.flush();
    const parallel = (await Promise.all(asked)).filter((status) => status === 200).length;
    let alone = 0;
    // What counts twice, as above, leaves less than there is until it is read again.
    const spend = async () => {
      while ((await ask('team-key-0123456789', 1)[0]) === 200) alone++;
      return { ...(await readBudget('team=a')), admitted: parallel + alone };
    };
    // A request is admitted while 1,050 of 6,500 are left, and costs 200: 28 requests leave 900.
    const spent = { spent_micros: 5600, reserved_micros: 0, admitted: 28 };
    await expect.poll(spend, { timeout: 40_000, interval: 500 }).toMatchObject(spent);
    upstream.isHeld = true;
  });

  test('a key that is created or revoked on one gateway is so on the other, a revoked one within a second', async () => {
    const [one = '', two = ''] = cluster.nodes;
    const times: number[] = [];
    for (const name of ['guest-1', 'guest-2', 'guest-3']) {
      const created = await send(one, '/admin/v1/keys', { key: ADMIN, body: { name } });
      expect(created.status).toBe(200);
      const models = async (url: string) => (await send(url, '/v1/models', { key: created.json.secret, method: 'GET' })).status;
      await expect.poll(() => models(two), { timeout: 30_000 }).toBe(200);
      expect(await models(cluster.nginx.url)).toBe(200);
      await send(one, `/admin/v1/keys/${name}`, { key: ADMIN, method: 'DELETE' });
      const revokedAt = performance.now();
      await expect.poll(() => models(two), { timeout: 30_000 }).toBe(401);
      times.push(performance.now() - revokedAt);
      expect(await models(cluster.nginx.url)).toBe(401);
    }
    // The best of three: a busy machine may delay one of them.
    expect(Math.min(...times)).toBeLessThan(1000);
  });
});
