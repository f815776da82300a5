/** Two gateway processes that share their limits in Redis. */
import { writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findRedis, RedisServer } from '../real-parts/redis.js';
import { createFolder } from '../store/ledger-fixture.ts';
import { assertBuilt } from '../store/processes.ts';
import { killProcesses, startProcess } from './process.ts';
import { answerWith, chat, send } from './start.ts';

beforeAll(assertBuilt);
afterEach(killProcesses);

/** An upstream that answers when the test lets it. */
async function startUpstream() {
  const waiting: ServerResponse[] = [];
  let served = 0;
  const answer = answerWith(100, 100).toString();
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
  const server = createServer((incoming, response) => {
    incoming.resume();
    waiting.push(response);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return {
    port: (server.address() as AddressInfo).port, // it listens on TCP
    get waiting() {
      return waiting.length;
    },
    get served() {
      return served;
    },
    answerAll() {
      for (const response of waiting.splice(0)) {
        served++;
        response.writeHead(200, { 'content-type': 'application/json' }).end(body);
      }
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe.skipIf(!findRedis())('two gateways with one Redis', () => {
  test('a limit of N admits exactly N, also after FLUSHALL, and the budget holds', async () => {
    const redis = await RedisServer.start();
    const upstream = await startUpstream();
    onTestFinished(async () => {
      upstream.close();
      await redis.stop();
    });
    const start = () => {
      const folder = createFolder();
      const config = join(folder, 'sluice.yaml');
      writeFileSync(
        config,
        `log: { level: error }
default_price: { input: "1", output: "1" }
limits_store: { url: "env:REDIS", expected_nodes: 2, timeout: 1s, connect_timeout: 1s }
budgets: [{ tag: team=a, limit: 0.0065usd/total }]
auth:
  keys:
    - { name: narrow, key: narrow-key-0123456789, concurrency: 7 }
    - { name: team, key: team-key-0123456789, tags: team=a }
admin: { key: admin-key-0123456789 }
providers:
  up: { protocol: openai-chat, base_url: "http://127.0.0.1:${upstream.port}/v1", api_key: some-key-0123456789 }
`,
      );
      return startProcess(folder, config, { env: { REDIS: redis.url } });
    };
    const [one, two] = await Promise.all([start(), start()]);
    const ask = (key: string) =>
      Array.from({ length: 40 }, (_, index) =>
        send((index % 2 === 0 ? one : two).url, '/v1/chat/completions', { key, body: chat('up/m', 1000) }),
      );

    const first = ask('narrow-key-0123456789');
    await expect.poll(() => upstream.waiting, { timeout: 10_000 }).toBe(7);
    // All others have been refused: nothing else arrives.
    const refused = await Promise.all(first.map((asked) => Promise.race([asked.then(({ status }) => status), wait(1000)])));
    expect(refused.filter((status) => status === 429)).toHaveLength(33);
    expect(upstream.waiting).toBe(7);

    // What is running is known again after Redis was emptied.
    await redis.flush();
    const second = await Promise.all(ask('narrow-key-0123456789'));
    expect(new Set(second.map(({ status }) => status))).toEqual(new Set([429]));
    upstream.answerAll();
    expect((await Promise.all(first)).filter(({ status }) => status === 200)).toHaveLength(7);

    // Each reserves about 1,050 millionths of a dollar and costs 200.
    const team = ask('team-key-0123456789');
    await expect.poll(() => upstream.waiting, { timeout: 10_000 }).toBe(6);
    upstream.answerAll();
    await Promise.all(team);
    const budgets = await send(two.url, '/admin/v1/budgets', { key: 'admin-key-0123456789', method: 'GET' });
    expect(budgets.json.budgets[0]).toMatchObject({ spent_micros: 1200, reserved_micros: 0 });
  }, 60_000);
});

const wait = (ms: number): Promise<undefined> => new Promise((resolve) => setTimeout(() => resolve(undefined), ms));
