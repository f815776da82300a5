import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PendingBytes } from '../../src/exchange/pending-bytes.ts';
import { createCaller, startGated } from '../admission/start.ts';
import { expectAnswered, expectRefused } from './check.ts';
import { Faultd } from './faultd.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, eventually, type Started } from './start.ts';

// limits.pending_bytes: bodies that are being received. WebSocket messages: responses/websocket-gate.

const PAIR = PAIRS.find(({ client, upstream }) => client === 'openai-chat' && upstream === 'openai-chat') as Pair; // it exists
const MIB = 1024 * 1024;

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  faultd.play(good(PAIR, false));
  gateway = await startGated([createCaller('greedy', { concurrency: 1 }), createCaller('other')], {
    config: {
      providers: providersAt(faultd),
      limits: { request_bytes: '1MiB', pending_bytes: '4MiB' },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

/** A request whose body does not end. */
const begin = (key: string, headers: Record<string, string>, body: string | Uint8Array): Promise<RawClient> =>
  RawClient.open(gateway.url).then((client) =>
    client
      .send(
        requestText('POST', '/v1/chat/completions', {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...headers,
        }),
      )
      .send(body),
  );

const askAs = (key: string) =>
  ask(gateway.url, { client: PAIR.client, model: modelOf(PAIR), stream: false, headers: { authorization: `Bearer ${key}` } });

test.each<[name: string, headers: Record<string, string>, body: string | Uint8Array]>([
  ['plain', { 'content-length': String(MIB) }, 'x'.repeat(900_000)],
  ['in chunks of one byte', { 'transfer-encoding': 'chunked' }, '1\r\nx\r\n'.repeat(9000)],
  ['compressed', { 'content-encoding': 'gzip', 'content-length': '100000' }, gzipSync('x'.repeat(900_000), { level: 1 })],
])('unfinished bodies of one key are refused before they take the memory of others: %s', async (_name, headers, body) => {
  const clients: RawClient[] = [];
  while (!clients.some(({ isClosed }) => isClosed) && clients.length < 10) {
    const before = gateway.services.pending.total;
    const client = await begin('greedy', headers, body);
    clients.push(client);
    await eventually(() => gateway.services.pending.total > before || client.received.length > 0);
    await eventually(() => client.isClosed || gateway.services.pending.total >= before + 800_000 || client.received.length > 0);
  }
  const refused = clients.find(({ received }) => received.length > 0);
  if (!refused) throw new Error('none was refused');
  expectRefused(PAIR.client, await refused.reply(), 429, 'limits.pending_bytes');
  expect(gateway.services.pending.total).toBeLessThanOrEqual(2 * MIB);
  expectAnswered(PAIR, false, await askAs('other'));
  for (const client of clients) client.leave();
  await eventually(() => gateway.services.pending.total === 0);
  expectAnswered(PAIR, false, await askAs('greedy'));
});

test('all keys together may hold no more than limits.pending_bytes', () => {
  const pending = new PendingBytes({ pendingBytes: 400, requestBytes: 10 });
  const shares = ['a', 'b', 'c'].map((key) => pending.open(key));
  expect(shares.map((share) => share.add(150)?.error.http_status)).toEqual([undefined, undefined, 503]);
  expect(shares[0]?.add(51)?.error.http_status).toBe(429);
  expect(pending.total).toBe(300);
  shares[0]?.release(150);
  shares[0]?.release();
  expect(shares[2]?.add(150)).toBeUndefined();
  for (const share of shares) share.release();
  expect(pending.total).toBe(0);
});

test('the largest request fits in, and clients without keys share everything', () => {
  const pending = new PendingBytes({ pendingBytes: 1, requestBytes: 100 });
  expect(pending.open('a').add(200)).toBeUndefined();
  expect(new PendingBytes({ pendingBytes: 1000, requestBytes: 100 }).open('').add(1000)).toBeUndefined();
});
