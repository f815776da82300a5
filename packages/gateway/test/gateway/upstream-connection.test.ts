import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { brokenOffAt, expectAnswered, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter, framesOf, wholeOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, head, LAST_CHUNK, streamHead, whole } from './http.ts';
import { KEY, modelOf, modelsWithSpare, PAIRS, type Pair, providersAt, sparedModelOf } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, eventually, type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// docs/reliability.md, Upstreams: connections that fail, hang or break.

const clock = new TestClock();
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

/** Takes connections and says nothing: no handshake comes to its end. What it is told is kept. */
const heard: Buffer[] = [];
const deaf = createServer((socket) => void socket.on('error', () => undefined).on('data', (piece) => heard.push(piece)));

beforeAll(async () => {
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
  await new Promise<void>((resolve) => deaf.listen(0, '127.0.0.1', resolve));
  const { port } = plain.address() as AddressInfo;
  first = await Faultd.start(clock);
  second = await Faultd.start(clock);
  const nowhere = { protocol: 'openai-chat', api_key: KEY };
  const providers = {
    ...providersAt(first, second),
    refusing: { ...nowhere, base_url: `http://127.0.0.1:${await closedPort()}/v1` },
    nameless: { ...nowhere, base_url: 'http://secret-host.invalid/v1' },
    plain: { ...nowhere, base_url: `https://127.0.0.1:${port}/v1` },
    deaf: { ...nowhere, base_url: `https://127.0.0.1:${(deaf.address() as AddressInfo).port}/v1`, connect_timeout: '300ms' },
  };
  const times = { response_timeout: '150ms', first_event_timeout: '150ms', idle_timeout: '150ms' };
  impatient = await startGateway({
    clock,
    config: { providers, models: modelsWithSpare(), limits: { retries_per_provider: 0, ...times } },
  });
  gateway = await startGateway({
    clock,
    config: {
      providers,
      models: {
        ...modelsWithSpare(),
        ...Object.fromEntries(
          ['refusing', 'nameless', 'plain', 'deaf'].map((id) => [`${id}-or-spare`, [`${id}/m`, 'spare-openai-chat/m']]),
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
  deaf.close();
});

const asking = (pair: Pair, stream: boolean, model = modelOf(pair)) => ({ client: pair.client, model, stream });

describe.each([
  ['refuses', 'refusing', 502, /\(ECONNREFUSED\): nothing listens at its base_url; start the server, or correct base_url$/],
  [
    'has a name that nobody knows',
    'nameless',
    502,
    /\((ENOTFOUND\): the host name of its base_url does not exist; correct base_url|EAI_AGAIN\))$/,
  ],
  ['does not speak TLS', 'plain', 502, /^the connection to provider "plain" failed/],
  ['takes the connection and no more', 'deaf', 504, /^could not connect to provider "deaf" within 300 ms$/],
])('an upstream that %s', (_, id, status, message) => {
  const clients = PAIRS.filter(({ isPassing, upstream }) => isPassing || upstream === 'openai-chat');

  // Undici looks at its connect timeouts once in a second.
  test.concurrent.each(clients.flatMap(({ client }) => [true, false].map((stream) => ({ client, stream }))))(
    'is reported as 502 or 504 without its address: $client, stream $stream',
    async ({ client, stream }) => {
      const reply = await ask(gateway.url, { client, model: `${id}/m`, stream });
      expectRefused(client, reply, status, message);
      expect(reply.body.toString() + JSON.stringify(reply.headers)).not.toMatch(/secret-host|127\.0\.0\.1|canary/);
      const code = status === 504 ? 'TIMEOUT' : 'UPSTREAM_ERROR';
      expect(reply.headers).toMatchObject({ 'x-sluice-attempts': '1', 'x-sluice-tried': `${id}/m ${code}` });
    },
  );

  test.each([true, false])('falls back to the next upstream at once: stream %s', async (stream) => {
    const pair = PAIRS[0] as Pair;
    second.play(good(pair, stream));
    const reply = await ask(gateway.url, { client: 'openai-chat', model: `${id}-or-spare`, stream });
    expectAnswered(pair, stream, reply);
    expect(reply.headers).toMatchObject({ 'x-sluice-provider': 'spare-openai-chat', 'x-sluice-attempts': '2' });
  });
});

test.each([true, false])('HTTP/2 is not offered, so that no GOAWAY can end a stream: stream %s', async (stream) => {
  heard.length = 0;
  for (const client of ['openai-chat', 'anthropic-messages'] as const) {
    const asker = await RawClient.open(gateway.url);
    asker.send(askText({ client, model: 'deaf/m', stream }));
    await eventually(() => heard.length > 0);
    // The names that a handshake offers stand in it as they are, each behind its length.
    const hello = Buffer.concat(heard.splice(0)).toString('latin1');
    expect(hello).toContain('\x08http/1.1');
    expect(hello).not.toContain('\x02h2');
    asker.leave();
  }
});

const HANGS: readonly (readonly [when: string, script: (pair: Pair) => Script])[] = [
  ['before the headers', () => [{ hang: true }]],
  ['before the first event', () => [{ send: streamHead() }, { send: chunk(': hello\n\n') }, { hang: true }]],
];

describe.each(HANGS)('an upstream that hangs %s', (_, script) => {
  test.each(PAIRS.slice(0, 6))('stream, $name: 504, and the upstream request is cancelled', async (pair) => {
    first.play(script(pair));
    const reply = await clock.after(150, ask(impatient.url, asking(pair, true)));
    expectRefused(pair.client, reply, 504, /did not respond within 150 ms|sent no event within 150 ms/);
    await eventually(() => first.served[0]?.isClosed);
    expect(impatient.log().find((line) => line['request_id'] === reply.headers['x-sluice-request-id'])).toMatchObject({
      msg: 'attempt failed',
      error: 'TIMEOUT',
      may_be_billed: true,
    });
  });

  test.each(PAIRS.slice(0, 6))('stream, $name: falls back to another upstream', async (pair) => {
    first.play(script(pair));
    second.play(good(pair, true));
    expectAnswered(pair, true, await clock.after(150, ask(impatient.url, asking(pair, true, sparedModelOf(pair)))));
  });
});

describe.each([
  ['before the headers', 450, () => []],
  ['behind the headers', 150, () => [{ send: head(200, { 'content-type': 'application/json', 'content-length': '99' }) }]],
  ['in the middle', 150, ({ upstream }) => [{ send: whole(200, wholeOf(upstream)).subarray(0, -20) }]],
] satisfies (readonly [when: string, ms: number, script: (pair: Pair) => Script])[])(
  'a whole response that hangs %s',
  (_, ms, script) => {
    test.each(PAIRS)('504 or a fallback: $name', async (pair) => {
      first.play([...script(pair), { hang: true }]);
      expectRefused(pair.client, await clock.after(ms, ask(impatient.url, asking(pair, false))), 504);
      await first.served[0]?.closed;
      second.play(good(pair, false));
      expectAnswered(pair, false, await clock.after(ms, ask(impatient.url, asking(pair, false, sparedModelOf(pair)))));
    });
  },
);

describe('a response that takes too long', () => {
  let strict: Started;
  beforeAll(async () => {
    const limits = { retries_per_provider: 0, total_timeout: '300ms' };
    strict = await startGateway({ clock, config: { providers: providersAt(first, second), models: modelsWithSpare(), limits } });
  });
  afterAll(() => strict.close());

  /** Never silent, never at an end. */
  const babbling = (upstream: Pair['upstream']): Script => [
    { send: chunk(cutAfter(upstream, 'two').before.join('')) },
    { forever: chunk(': not yet\n\n') },
  ];

  test.each(PAIRS)('ends with an error in the stream: $name', async (pair) => {
    first.play([{ send: streamHead() }, ...babbling(pair.upstream)]);
    const reply = await clock.after(brokenOffAt(pair.client, 300), ask(strict.url, asking(pair, true, sparedModelOf(pair))));
    expectBrokenOff(pair.client, reply, 'One two', 'did not finish its response within');
    await first.served[0]?.closed;
  });

  test.each(PAIRS)('is 504 before any content: $name', async (pair) => {
    first.play([{ send: streamHead() }, { forever: chunk(': not yet\n\n') }]);
    expectRefused(
      pair.client,
      await clock.after(300, ask(strict.url, asking(pair, true))),
      504,
      'did not finish its response within',
    );
    first.play([{ send: head(200, { 'content-type': 'application/json' }) }, { forever: ' ' }]);
    expectRefused(pair.client, await clock.after(300, ask(strict.url, asking(pair, false))), 504);
    await first.served[0]?.closed;
  });
});

test.each(PAIRS)('an upstream that hangs in the middle: $name', async (pair) => {
  const said = cutAfter(pair.upstream, 'two').before.join('').replace('"input_tokens":0', '"input_tokens":11');
  first.play([{ send: streamHead() }, { send: chunk(said) }, { hang: true }]);
  const reply = await clock.after(brokenOffAt(pair.client, 150), ask(impatient.url, asking(pair, true, sparedModelOf(pair))));
  expectBrokenOff(pair.client, reply, 'One two', /sent nothing for/);
  expect(first.served).toHaveLength(1);
  expect(await impatient.ended(reply.headers['x-sluice-request-id'])).toMatchObject({
    ending: 'timeout',
    attempts: 1,
    // What was asked is counted at the beginning of the stream, and stays on the bill.
    ...(pair.upstream === 'anthropic-messages' && { input_tokens: 11 }),
  });
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
  test.each(PAIRS)('after content ends the stream with an error: $name', async (pair) => {
    const { before, after } = cutAfter(pair.upstream, 'two');
    first.play([
      { send: streamHead() },
      { send: chunk(before.join('')) },
      { send: cut(after[0] ?? '') },
      { wait: 20 },
      { reset: true },
    ]);
    const reply = await clock.until(ask(gateway.url, asking(pair, true, sparedModelOf(pair))));
    expectBrokenOff(pair.client, reply, 'One two', /connection to provider "[\w-]+" failed/);
    expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({ ending: 'upstream_error', attempts: 1 });
  });

  test.each(PAIRS)('before content falls back to another upstream: $name', async (pair) => {
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
    const reply = await clock.until(ask(gateway.url, asking(pair, true, sparedModelOf(pair))));
    expectAnswered(pair, true, reply);
  });
});

describe.each([
  ['in its JSON', ({ upstream }) => [{ send: whole(200, wholeOf(upstream)).subarray(0, -20) }]],
  [
    'in a chunk',
    ({ upstream }) => [
      { send: head(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }) },
      { send: chunk(wholeOf(upstream)).subarray(0, -20) },
    ],
  ],
  [
    'before its last chunk',
    ({ upstream }) => [
      { send: head(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }) },
      { send: chunk(wholeOf(upstream)) },
    ],
  ],
] satisfies (readonly [where: string, script: (pair: Pair) => Script])[])(
  'a whole response that is truncated %s',
  (_, script) => {
    test.each(PAIRS.flatMap((pair) => (['reset', 'fin'] as const).map((way) => ({ ...pair, way }))))(
      'by a $way is an error, with a fallback: $name',
      async ({ way, ...pair }) => {
        first.play([...script(pair), { wait: 10 }, way === 'reset' ? { reset: true } : { fin: true }]);
        second.play(good(pair, false));
        expectRefused(
          pair.client,
          await clock.until(ask(gateway.url, asking(pair, false))),
          502,
          /connection to provider "[\w-]+" failed/,
        );
        expectAnswered(pair, false, await clock.until(ask(gateway.url, asking(pair, false, sparedModelOf(pair)))));
      },
    );
  },
);

test.each(PAIRS)('a stream that ends early without a reset is an error: $name', async (pair) => {
  first.play([{ send: streamHead() }, { send: chunk(cutAfter(pair.upstream, 'two').before.join('')) }, { send: LAST_CHUNK }]);
  const reply = await clock.until(ask(gateway.url, asking(pair, true, sparedModelOf(pair))));
  expectBrokenOff(pair.client, reply, 'One two', /ended early|ended/);
  expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({ ending: 'upstream_truncated', attempts: 1 });
});

test('a cancelled request opens no further connection', async () => {
  const upstream = await Faultd.start();
  const own = await startGateway({ config: { providers: providersAt(upstream) } });
  const pair = PAIRS[0] as Pair; // there are some
  upstream.play([{ send: streamHead() }, { send: chunk(cutAfter(pair.upstream, 'two').before.join('')) }, { hang: true }]);
  const clients = await Promise.all(Array.from({ length: 5 }, () => RawClient.open(own.url)));
  for (const client of clients) client.send(askText(asking(pair, true)));
  for (const client of clients) await client.sees('two');
  expect(upstream.connections).toBe(5);
  for (const client of clients) client.reset();
  await eventually(() => own.services.streams.count === 0);
  await eventually(() => upstream.openSockets === 0);
  // The connection of the next request would be opened after those of cancelled ones.
  upstream.play(good(pair, true));
  expectAnswered(pair, true, await ask(own.url, asking(pair, true)));
  expect(upstream.connections).toBe(6);
  await own.close();
  await upstream.stop();
});

describe('a kept-alive connection that the upstream has closed', () => {
  let repeating: Started;
  beforeAll(async () => {
    repeating = await startGateway({ config: { providers: providersAt(first), limits: { retries_per_provider: 1 } } });
  });
  afterAll(() => repeating.close());

  test.each(PAIRS.flatMap((pair) => [true, false].map((stream) => ({ ...pair, stream }))))(
    'is replaced, and the request is retried: $name, stream $stream',
    async ({ stream, ...pair }) => {
      // The second request on a connection is met by a reset, as when a server restarts.
      first.play(good(pair, stream), [{ reset: true }], good(pair, stream));
      expectAnswered(pair, stream, await ask(repeating.url, asking(pair, stream)));
      const reply = await ask(repeating.url, asking(pair, stream));
      expectAnswered(pair, stream, reply);
      const [one, two, three] = first.served;
      expect(two?.connection).toBe(one?.connection);
      expect(three?.connection).not.toBe(two?.connection);
      expect(reply.headers['x-sluice-attempts']).toBe('2');
    },
  );

  test('a new connection that fails is not retried automatically', async () => {
    first.dropConnections();
    first.play([{ reset: true }]);
    const reply = await ask(gateway.url, { client: 'openai-chat', model: 'mend-gemini/m', stream: false });
    expectRefused('openai-chat', reply, 502);
    expect(first.served).toHaveLength(1);
  });
});
