import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { takeTurns } from '../../../../test/wait.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { createCaller, startGated } from '../admission/start.ts';
import { expectAnswered } from './check.ts';
import { cutAfter } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, parseReply, streamHead } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, eventually, type Started } from './start.ts';

// Clients that send requests ahead and then leave: nothing may stay behind, whatever they have read.

const PAIR = PAIRS.find(({ client, upstream }) => client === 'openai-chat' && upstream === 'openai-chat') as Pair; // it exists
const KEY = { authorization: 'Bearer ahead' };

let faultd: Faultd;
let store: Store;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  store = await openStore({ folder: null });
});

beforeEach(async () => {
  const budgets = [{ micros: 1_000_000_000, period: 'month' } as const];
  const callers = [createCaller('ahead', { budgets, concurrency: 100 }), createCaller('mate', {})];
  gateway = await startGated(callers, {
    store,
    config: {
      providers: providersAt(faultd),
      default_price: { input: '1', output: '10' },
      limits: { streams: 50, stall_timeout: '500ms', drain: '1s' },
    },
  });
});

afterAll(async () => {
  await faultd.stop();
  await store.close();
});

const chat = (stream: boolean): string => askText({ client: PAIR.client, model: modelOf(PAIR), stream, headers: KEY });

/** Nothing is held any more, another client is served, and the gateway stops. */
async function expectNothingHeld(): Promise<void> {
  await eventually(() => gateway.services.streams.count === 0, 20_000);
  const held = await gateway.services.gate.list([], [createCaller('ahead', {})]);
  expect(held.map(({ reserved }) => reserved).filter((reserved) => reserved > 0)).toEqual([]);
  faultd.play(good(PAIR, false));
  const headers = { authorization: 'Bearer mate' };
  expectAnswered(PAIR, false, await ask(gateway.url, { client: PAIR.client, model: modelOf(PAIR), stream: false, headers }));
  await gateway.close(1000);
}

const KINDS: readonly (readonly [name: string, requests: () => string])[] = [
  ['refused requests', () => requestText('GET', '/x').repeat(2300)],
  ['lists of models', () => requestText('GET', '/v1/models', KEY).repeat(120)],
  ['a stream and whole responses', () => chat(true) + chat(false).repeat(20)],
  ['whole responses', () => chat(false).repeat(40)],
];

const WAYS: readonly (readonly [name: string, leave: (client: RawClient) => void])[] = [
  ['closes', (client) => client.leave()],
  ['resets', (client) => client.reset()],
  ['closes its sending side, then leaves', (client) => client.halfClose().socket.once('finish', () => client.leave())],
];

describe.each(KINDS)('many at once: %s', (_kind, requests) => {
  test.each(WAYS)('a client that reads nothing and %s leaves nothing behind', async (_way, leave) => {
    faultd.play(good(PAIR, false));
    const clients = await Promise.all([1, 2, 3].map(() => RawClient.open(gateway.url)));
    for (const client of clients) {
      client.pause();
      client.send(requests());
    }
    // The first ones have been read.
    await eventually(() => gateway.services.streams.count > 0 || gateway.log().some(({ msg }) => msg === 'answered'));
    for (const client of clients) leave(client);
    await expectNothingHeld();
  });
});

test('a client that leaves during a stream leaves nothing of the requests behind it', async () => {
  const { before } = cutAfter(PAIR.upstream, 'two');
  faultd.play([{ send: streamHead() }, { send: chunk(before.join('')) }, { hang: true }]);
  const client = await RawClient.open(gateway.url);
  client.send(chat(true) + chat(false).repeat(5));
  await client.sees('two');
  expect(gateway.services.streams.count).toBe(1);
  client.leave();
  await expectNothingHeld();
});

test('a client that stops reading is disconnected, and leaves nothing behind', async () => {
  faultd.play([{ send: streamHead() }, { forever: chunk(cutAfter(PAIR.upstream, 'two').before.join('').repeat(100)) }]);
  const client = await RawClient.open(gateway.url);
  client.pause();
  client.send(chat(true).repeat(10));
  await eventually(() => faultd.served[0]);
  await eventually(() => gateway.log().some(({ ending }) => ending === 'client_stalled'));
  await expectNothingHeld();
  client.leave();
});

test('more requests ahead than are kept end the connection', async () => {
  faultd.play([{ hang: true }]);
  const client = await RawClient.open(gateway.url);
  client.send(chat(true) + requestText('GET', '/health/live').repeat(1000));
  await client.closed();
  await expectNothingHeld();
});

const BROKEN: readonly (readonly [name: string, send: (client: RawClient) => void])[] = [
  ['what is not HTTP', (client) => client.send('no HTTP\r\n\r\n')],
  ['a part of a request and closes its sending side', (client) => client.send(chat(false).slice(0, -5)).halfClose()],
];

test.each(BROKEN)(
  'a client that sends %s behind a request receives the response to that, and the connection ends',
  async (_name, send) => {
    let go: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => (go = resolve));
    faultd.play([{ run: () => opened }, ...good(PAIR, false)]);
    const client = await RawClient.open(gateway.url);
    client.send(chat(false));
    await eventually(() => faultd.served[0]);
    send(client);
    // Until the gateway, which is in this process, has read it.
    await takeTurns();
    go();
    expectAnswered(PAIR, false, await client.reply());
    await client.closed();
    expect(parseReply(client.received)?.rest.length).toBe(0);
    await expectNothingHeld();
  },
);

test('a request runs when the response before it has been sent', async () => {
  faultd.play([{ hang: true }]);
  const client = await RawClient.open(gateway.url);
  client.send(chat(true) + chat(false));
  await eventually(() => faultd.served[0]);
  expect(faultd.served).toHaveLength(1);
  expect(gateway.services.streams.count).toBe(1);
  client.leave();
  await expectNothingHeld();
});

test('all requests are served to a client that has closed its sending side and reads', async () => {
  faultd.play(good(PAIR, false));
  const client = await RawClient.open(gateway.url);
  client.send(chat(false).repeat(3)).halfClose();
  await client.closed();
  const statuses: number[] = [];
  for (let reply = parseReply(client.received); reply?.isWhole; reply = parseReply(reply.rest)) statuses.push(reply.status);
  expect(statuses).toEqual([200, 200, 200]);
  await expectNothingHeld();
});

test('bytes that are no request end a response that has begun, and are not responded to inside of it', async () => {
  const { before } = cutAfter(PAIR.upstream, 'two');
  faultd.play([{ send: streamHead() }, { send: chunk(before.join('')) }, { hang: true }]);
  const client = await RawClient.open(gateway.url);
  client.send(chat(true));
  await client.sees('two');
  client.send('no request\r\n\r\n');
  await client.closed();
  expect(client.received.toString('latin1').split('HTTP/1.1 ')).toHaveLength(2);
  await expectNothingHeld();
});

test('a gateway stops although clients have left behind requests that they sent ahead', async () => {
  const client = await RawClient.open(gateway.url);
  client.pause();
  client.send(requestText('GET', '/x').repeat(2300));
  await eventually(() => gateway.log().some(({ msg }) => msg === 'answered'));
  const left = once(client.socket, 'close');
  client.leave();
  await left;
  await gateway.close(1000);
});
