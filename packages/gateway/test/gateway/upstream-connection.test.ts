import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectAnswered, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter, framesOf, wholeOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, head, LAST_CHUNK, streamHead, whole } from './http.ts';
import { KEY, modelOf, modelsWithSpare, PAIRS, type Pair, providersAt, sparedModelOf } from './pairs.ts';
import { good } from './scripts.ts';
import { ask, eventually, type Started, startGateway } from './start.ts';

// RELIABILITY 5.1: connections that are not made, that hang, and that break.

let first: Faultd;
let second: Faultd;
let gateway: Started;
/** The same, with little time for its upstreams. */
let impatient: Started;

/** A port where nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Whoever connects is told in plain text that this is the wrong way to talk. */
const plain = createServer((socket) => void socket.on('error', () => undefined).end(head(400)));

beforeAll(async () => {
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
  const { port } = plain.address() as AddressInfo;
  first = await Faultd.start();
  second = await Faultd.start();
  const nowhere = { protocol: 'openai-chat', api_key: KEY };
  const providers = {
    ...providersAt(first, second),
    refusing: { ...nowhere, base_url: `http://127.0.0.1:${await closedPort()}/v1` },
    nameless: { ...nowhere, base_url: 'http://secret-host.invalid/v1' },
    plain: { ...nowhere, base_url: `https://127.0.0.1:${port}/v1` },
  };
  const times = { response_timeout: '150ms', first_event_timeout: '150ms', idle_timeout: '150ms' };
  impatient = await startGateway({
    config: { providers, models: modelsWithSpare(), limits: { retries_per_provider: 0, ...times } },
  });
  gateway = await startGateway({
    config: {
      providers,
      models: {
        ...modelsWithSpare(),
        ...Object.fromEntries(
          ['refusing', 'nameless', 'plain'].map((id) => [`${id}-or-spare`, [`${id}/m`, 'spare-openai-chat/m']]),
        ),
      },
      limits: { retries_per_provider: 0 },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await impatient.close();
  await first.stop();
  await second.stop();
  plain.close();
});

const asking = (pair: Pair, stream: boolean, model = modelOf(pair)) => ({ client: pair.client, model, stream });

describe.each([
  ['refuses', 'refusing', /\(ECONNREFUSED\)$/],
  ['has a name that nobody knows', 'nameless', /\((ENOTFOUND|EAI_AGAIN)\)$/],
  ['does not speak TLS', 'plain', /the connection to the upstream failed/],
])('an upstream that %s', (_, id, message) => {
  const clients = PAIRS.filter(({ isPassing, upstream }) => isPassing || upstream === 'openai-chat');

  test.each(clients.flatMap(({ client }) => [true, false].map((stream) => ({ client, stream }))))(
    'is told as 502 without its address: $client, stream $stream',
    async ({ client, stream }) => {
      const reply = await ask(gateway.url, { client, model: `${id}/m`, stream });
      expectRefused(client, reply, 502, message);
      expect(reply.body.toString() + JSON.stringify(reply.headers)).not.toMatch(/secret-host|127\.0\.0\.1|canary/);
      expect(reply.headers).toMatchObject({ 'x-sluice-attempts': '1', 'x-sluice-tried': `${id}/m UPSTREAM_ERROR` });
    },
  );

  test.each([true, false])('is followed by the next one at once: stream %s', async (stream) => {
    const pair = PAIRS[0] as Pair;
    second.play(good(pair, stream));
    const reply = await ask(gateway.url, { client: 'openai-chat', model: `${id}-or-spare`, stream });
    expectAnswered(pair, stream, reply);
    expect(reply.headers).toMatchObject({ 'x-sluice-provider': 'spare-openai-chat', 'x-sluice-attempts': '2' });
  });
});

const HANGS: readonly (readonly [when: string, script: (pair: Pair) => Script])[] = [
  ['before the headers', () => [{ hang: true }]],
  ['before the first event', () => [{ send: streamHead() }, { send: chunk(': hello\n\n') }, { hang: true }]],
];

describe.each(HANGS)('an upstream that hangs %s', (_, script) => {
  test.each(PAIRS.slice(0, 6))('stream, $name: 504, and the call is given up', async (pair) => {
    first.play(script(pair));
    const reply = await ask(impatient.url, asking(pair, true));
    expectRefused(pair.client, reply, 504, /did not answer in time|fell silent/);
    await eventually(() => first.served[0]?.isClosed);
    expect(impatient.log().find((line) => line['request_id'] === reply.headers['x-sluice-request-id'])).toMatchObject({
      msg: 'attempt failed',
      error: 'TIMEOUT',
      may_be_billed: true,
    });
  });

  test.each(PAIRS.slice(0, 6))('stream, $name: another answers', async (pair) => {
    first.play(script(pair));
    second.play(good(pair, true));
    expectAnswered(pair, true, await ask(impatient.url, asking(pair, true, sparedModelOf(pair))));
  });
});

test.each(PAIRS.slice(3, 6))('an upstream that hangs instead of a whole answer: $name', async (pair) => {
  first.play([{ hang: true }]);
  second.play(good(pair, false));
  expectRefused(pair.client, await ask(impatient.url, asking(pair, false)), 504);
  expectAnswered(pair, false, await ask(impatient.url, asking(pair, false, sparedModelOf(pair))));
  first.play([{ send: whole(200, wholeOf(pair.upstream)).subarray(0, -20) }, { hang: true }]);
  expectRefused(pair.client, await ask(impatient.url, asking(pair, false)), 504);
});

test.each(PAIRS)('an upstream that hangs in the middle: $name', async (pair) => {
  first.play([{ send: streamHead() }, { send: chunk(cutAfter(pair.upstream, 'two').before.join('')) }, { hang: true }]);
  const reply = await ask(impatient.url, asking(pair, true, sparedModelOf(pair)));
  expectBrokenOff(pair.client, reply, 'One two', /fell silent/);
  expect(first.served).toHaveLength(1);
  expect(await impatient.ended(reply.headers['x-sluice-request-id'])).toMatchObject({ ending: 'timeout', attempts: 1 });
});

/** A frame that is cut in a word, in a character, in its JSON. */
const CUTS: readonly (readonly [where: string, frame: (frame: string) => Buffer])[] = [
  ['in a chunk', (frame) => chunk(frame).subarray(0, -9)],
  [
    'in a character',
    (frame) => chunk(Buffer.from(frame.replace(' three', ' \u{1F600}')).subarray(0, frame.indexOf(' three') + 3)),
  ],
  ['in the JSON', (frame) => chunk(frame.slice(0, frame.indexOf(' three') + 2))],
];

describe.each(CUTS)('a connection that is reset %s', (_, cut) => {
  test.each(PAIRS)('behind content: $name', async (pair) => {
    const { before, after } = cutAfter(pair.upstream, 'two');
    first.play([
      { send: streamHead() },
      { send: chunk(before.join('')) },
      { send: cut(after[0] ?? '') },
      { wait: 20 },
      { reset: true },
    ]);
    const reply = await ask(gateway.url, asking(pair, true, sparedModelOf(pair)));
    expectBrokenOff(pair.client, reply, 'One two', /connection to the upstream failed/);
    expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({ ending: 'upstream_error', attempts: 1 });
  });

  test.each(PAIRS)('before content: $name', async (pair) => {
    const frames = framesOf(pair.upstream);
    const at = frames.findIndex((frame) => frame.includes('One'));
    const partial = cut((frames[at] ?? '').replace('One', ' three'));
    first.play([
      { send: streamHead() },
      { send: chunk(frames.slice(0, at).join('')) },
      { send: partial },
      { wait: 10 },
      { reset: true },
    ]);
    second.play(good(pair, true));
    const reply = await ask(gateway.url, asking(pair, true, sparedModelOf(pair)));
    expectAnswered(pair, true, reply);
  });
});

test.each(PAIRS)('a whole answer that breaks off: $name', async (pair) => {
  first.play([{ send: whole(200, wholeOf(pair.upstream)).subarray(0, -20) }, { wait: 10 }, { reset: true }]);
  second.play(good(pair, false));
  expectRefused(pair.client, await ask(gateway.url, asking(pair, false)), 502, /connection to the upstream failed/);
  expectAnswered(pair, false, await ask(gateway.url, asking(pair, false, sparedModelOf(pair))));
});

test.each(PAIRS)('a stream that ends early, in order: $name', async (pair) => {
  first.play([{ send: streamHead() }, { send: chunk(cutAfter(pair.upstream, 'two').before.join('')) }, { send: LAST_CHUNK }]);
  const reply = await ask(gateway.url, asking(pair, true, sparedModelOf(pair)));
  expectBrokenOff(pair.client, reply, 'One two', /ended early|ended/);
  expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({ ending: 'upstream_truncated', attempts: 1 });
});

describe('a kept connection that the upstream has closed', () => {
  test.each(PAIRS.flatMap((pair) => [true, false].map((stream) => ({ ...pair, stream }))))(
    'is noticed by nobody: $name, stream $stream',
    async ({ stream, ...pair }) => {
      // The second request on a connection is met by a reset, as when a server restarts.
      first.play(good(pair, stream), [{ reset: true }], good(pair, stream));
      expectAnswered(pair, stream, await ask(gateway.url, asking(pair, stream)));
      const reply = await ask(gateway.url, asking(pair, stream));
      expectAnswered(pair, stream, reply);
      const [one, two, three] = first.served;
      expect(two?.connection).toBe(one?.connection);
      expect(three?.connection).not.toBe(two?.connection);
      expect(reply.headers['x-sluice-attempts']).toBe('2');
    },
  );

  test('a new connection that breaks is not tried again by itself', async () => {
    first.dropConnections();
    first.play([{ reset: true }]);
    const reply = await ask(gateway.url, { client: 'openai-chat', model: 'mend-gemini/m', stream: false });
    expectRefused('openai-chat', reply, 502);
    expect(first.served).toHaveLength(1);
  });
});
