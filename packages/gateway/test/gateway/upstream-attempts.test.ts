import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RetryBudget } from '../../src/upstream/retry.ts';
import { expectAnswered, expectRefused } from './check.ts';
import { framesOf, wholeOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, head, type Reply, streamHead, whole } from './http.ts';
import { modelOf, modelsWithSpare, PAIRS, type Pair, providersAt, sparedModelOf, waysOf } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good, streamOf } from './scripts.ts';
import { ask, type Started, startGateway } from './start.ts';

// How many requests one client request costs upstream, counted at the upstream.

let first: Faultd;
let second: Faultd;
let gateway: Started;

/** Writes to `/v1/batches` that the vendor does not document are passed on as well. */
const passingAll = (providers: Record<string, object>): Record<string, object> =>
  Object.fromEntries(Object.entries(providers).map(([id, settings]) => [id, { ...settings, passthrough: 'all' }]));

/** Retries come at once, and there are always enough of them in the budget. */
const start = (limits: object = {}): Promise<Started> =>
  startGateway({
    config: { providers: passingAll(providersAt(first, second)), models: modelsWithSpare(), limits },
    services: (made) => ({ ...made, budget: unlimited(), random: () => -0.49 }),
  });

function unlimited(): RetryBudget {
  let now = 0;
  return new RetryBudget(1, () => (now += 1e6));
}

beforeAll(async () => {
  first = await Faultd.start();
  second = await Faultd.start();
  gateway = await start();
});

afterAll(async () => {
  await gateway.close();
  await first.stop();
  await second.stop();
});

const WAYS = waysOf(PAIRS.slice(2, 7));

const askPair = (url: string, pair: Pair, stream: boolean, model = modelOf(pair)): Promise<Reply> =>
  ask(url, { client: pair.client, model, stream });

const JSON_HEAD = head(200, { 'content-type': 'application/json', 'content-length': '99' });

/** What is sent before the connection breaks, none of which is content. */
const BEFORE_THE_BREAK: readonly (readonly [what: string, sent: (pair: Pair, stream: boolean) => Script])[] = [
  ['nothing', () => []],
  ['one byte', () => [{ send: 'H' }]],
  ['half a status line', () => [{ send: 'HTTP/1.1 2' }]],
  ['an interim response', () => [{ send: head(103) }]],
  ['half the headers', () => [{ send: streamHead().slice(0, -10) }]],
  ['the headers', (_, stream) => [{ send: stream ? streamHead() : JSON_HEAD }]],
  [
    'half an event, or half a body',
    ({ upstream }, stream) =>
      stream
        ? [{ send: streamHead() }, { send: chunk(framesOf(upstream)[0]?.slice(0, 10) ?? '') }]
        : [{ send: whole(200, wholeOf(upstream)).subarray(0, -20) }],
  ],
];

const BREAKS = BEFORE_THE_BREAK.flatMap(([what, sent]) =>
  (['reset', 'fin'] as const).map((way) => ({
    what,
    sent,
    end: way === 'reset' ? { reset: true as const } : { fin: true as const },
    way,
  })),
);

describe.each(BREAKS)('an upstream that sends $what before a $way', ({ sent, end }) => {
  test('gets at most as many requests as the limits allow', async () => {
    for (const { pair, stream } of WAYS) {
      first.dropConnections();
      first.play([...sent(pair, stream), end]);
      const reply = await askPair(gateway.url, pair, stream);
      expect(reply.status, pair.name).toBe(502);
      expect(first.served.length, pair.name).toBe(3);
      expect(reply.headers['x-sluice-attempts']).toBe('3');
    }
  });

  test('also if the first request uses a kept-alive connection', async () => {
    for (const { pair, stream } of WAYS) {
      first.play(good(pair, stream), [...sent(pair, stream), end]);
      expectAnswered(pair, stream, await askPair(gateway.url, pair, stream));
      const reply = await askPair(gateway.url, pair, stream);
      expect(reply.status, pair.name).toBe(502);
      expect(first.served.length - 1, pair.name).toBe(3);
      expect(reply.headers['x-sluice-attempts']).toBe('3');
    }
  });
});

/** Responses that were paid for, and have nothing that a client could get. */
const UNUSABLE: readonly { what: string; script: Script; only?: 'stream' | 'whole' }[] = [
  { what: 'nothing', script: [{ send: whole(200, '') }] },
  { what: 'text', script: [{ send: whole(200, 'oops') }] },
  { what: 'an object without a response', script: [{ send: whole(200, '{"id":"x"}') }], only: 'whole' },
  {
    what: 'a response of wrong types',
    script: [{ send: whole(200, '{"choices":"x","content":"x","output":"x","candidates":"x"}') }],
    only: 'whole',
  },
  { what: 'an empty stream', script: streamOf(), only: 'stream' },
  { what: 'a stream of other events', script: streamOf('data: {"hello":1}\n\n'), only: 'stream' },
];

test.each(
  UNUSABLE.flatMap(({ what, script, only }) =>
    waysOf(PAIRS)
      // A whole response that is passed on unchanged is the client's to judge.
      .filter(({ pair, stream }) => only === undefined || (only === 'stream' ? stream : !stream && !pair.isPassing))
      .map((way) => ({ ...way, script, name: `${what}, ${way.name}` })),
  ),
)('a response with status 200 that cannot be used is requested once: $name', async ({ pair, stream, script }) => {
  first.play(script);
  const reply = await askPair(gateway.url, pair, stream);
  expectRefused(pair.client, reply, 502);
  expect(first.served).toHaveLength(1);
  const failed = gateway.log().findLast(({ msg }) => msg === 'attempt failed');
  expect(failed).toMatchObject({ request_id: reply.headers['x-sluice-request-id'], may_be_billed: true });
  first.play(script);
  second.play(good(pair, stream));
  expectAnswered(pair, stream, await askPair(gateway.url, pair, stream, sparedModelOf(pair)));
  expect(first.served).toHaveLength(1);
});

describe.each([
  { retries_per_provider: 0, retries: 4, most: 1 },
  { retries_per_provider: 1, retries: 4, most: 2 },
  { retries_per_provider: 4, retries: 1, most: 2 },
  { retries_per_provider: 3, retries: 0, most: 1 },
])('retries_per_provider $retries_per_provider and retries $retries', ({ most, ...limits }) => {
  let limited: Started;
  beforeAll(async () => {
    limited = await start(limits);
  });
  afterAll(() => limited.close());

  test('the retry on a new connection counts against both limits', async () => {
    for (const { pair, stream } of WAYS) {
      first.play(good(pair, stream), [{ reset: true }]);
      expectAnswered(pair, stream, await askPair(limited.url, pair, stream));
      const reply = await askPair(limited.url, pair, stream);
      expectRefused(pair.client, reply, 502);
      expect(first.served.length - 1, pair.name).toBe(most);
      expect(reply.headers['x-sluice-attempts']).toBe(String(most));
    }
  });
});

test.each(WAYS)('a retry on a new connection is logged as possibly billed: $name', async ({ pair, stream }) => {
  first.play(good(pair, stream), [{ reset: true }], good(pair, stream));
  expectAnswered(pair, stream, await askPair(gateway.url, pair, stream));
  const reply = await askPair(gateway.url, pair, stream);
  expectAnswered(pair, stream, reply);
  expect(reply.headers['x-sluice-attempts']).toBe('2');
  const id = reply.headers['x-sluice-request-id'];
  expect(gateway.log().find((line) => line['request_id'] === id)).toMatchObject({ attempt: 1, may_be_billed: true });
});

describe('a passed-through request whose kept-alive connection is closed', () => {
  /** A request before it leaves a connection behind. */
  const onKeptConnection = async (method: string, ...scripts: readonly Script[]): Promise<Reply> => {
    first.dropConnections();
    first.play([{ send: whole(200, '{}') }], ...scripts);
    const client = await RawClient.open(gateway.url);
    try {
      expect((await client.send(requestText('GET', '/v1/batches')).reply()).status).toBe(200);
    } finally {
      client.leave();
    }
    const again = await RawClient.open(gateway.url);
    try {
      return await again.send(requestText(method, '/v1/batches', {}, method === 'GET' ? '' : '{"a":1}')).reply();
    } finally {
      again.leave();
    }
  };

  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s is never sent twice', async (method) => {
    const reply = await onKeptConnection(method, [{ reset: true }], [{ send: whole(200, '{}') }]);
    expectRefused('openai-chat', reply, 502);
    expect(first.served.map((served) => served.method)).toEqual(['GET', method]);
    expect(first.served[1]?.connection).toBe(first.served[0]?.connection);
    expect(reply.headers['x-sluice-attempts']).toBe('1');
  });

  test('GET is retried once', async () => {
    const reply = await onKeptConnection('GET', [{ reset: true }], [{ send: whole(200, '{"b":2}') }]);
    expect(reply).toMatchObject({ status: 200, headers: { 'x-sluice-attempts': '2' } });
    expectRefused('openai-chat', await onKeptConnection('GET', [{ reset: true }]), 502);
    expect(first.served).toHaveLength(3);
  });
});

describe('a malformed HTTP response', () => {
  const MALFORMED: readonly (readonly [what: string, sent: string])[] = [
    ['has two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 7\r\n\r\nhello'],
    [
      'has a length and chunks',
      'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
    ],
    ['has a length that is no number', 'HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\nhello'],
    ['has headers above the limit', `HTTP/1.1 200 OK\r\nx-long: ${'x'.repeat(100_000)}\r\n\r\n`],
    ['has a header without a name', 'HTTP/1.1 200 OK\r\n: nameless\r\n\r\n'],
    ['has a control character in a header', 'HTTP/1.1 200 OK\r\nx-a: a\x01b\r\n\r\n'],
    ['has an invalid chunk size', `${streamHead()}zz\r\nhello\r\n`],
    ['begins with something else', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['is of another version', 'HTTP/3.7 200 OK\r\n\r\n'],
    ['switches protocols', 'HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n'],
  ];

  test.each(MALFORMED)('with %s is not retried and logged as possibly billed', async (_, sent) => {
    for (const { pair, stream } of WAYS) {
      first.play([{ send: sent }, { hang: true }]);
      const reply = await askPair(gateway.url, pair, stream);
      expectRefused(pair.client, reply, 502, /invalid HTTP response|headers .* too large/);
      expect(first.served, pair.name).toHaveLength(1);
      const id = reply.headers['x-sluice-request-id'];
      expect(gateway.log().find((line) => line['request_id'] === id)).toMatchObject({ may_be_billed: true });
    }
  });

  test.each(MALFORMED)('with %s falls back to another upstream', async (_, sent) => {
    for (const { pair, stream } of WAYS) {
      first.play([{ send: sent }, { hang: true }]);
      second.play(good(pair, stream));
      expectAnswered(pair, stream, await askPair(gateway.url, pair, stream, sparedModelOf(pair)));
      expect(first.served, pair.name).toHaveLength(1);
    }
  });
});

describe('interim responses are skipped', () => {
  const INTERIM: readonly (readonly [what: string, sent: Script])[] = [
    ['100', [{ send: head(100) }]],
    ['100 without a reason', [{ send: 'HTTP/1.1 100\r\n\r\n' }]],
    ['100 with headers', [{ send: head(100, { date: 'today', 'x-100': 'HTTP/1.1 100' }) }]],
    ['100, byte by byte', [{ split: head(100) }]],
    ['102 and 103', [{ send: head(102) }, { send: head(103, { link: '</x>' }) }]],
    ['100, 102, 100 at once', [{ send: head(100) + head(102) + head(100) }]],
    ['100, 103, 100 in pieces', [{ split: head(100) + head(103) + head(100), size: 7 }]],
  ];

  test.each(INTERIM)('%s', async (_, sent) => {
    for (const { pair, stream } of WAYS) {
      // Twice: also on a connection that was used before.
      first.play([...sent, ...good(pair, stream)]);
      for (let i = 0; i < 2; i++) {
        const reply = await askPair(gateway.url, pair, stream);
        expectAnswered(pair, stream, reply);
        expect(reply.headers['x-sluice-attempts']).toBe('1');
      }
      expect(first.served.map(({ connection }) => connection)).toEqual([
        first.served[0]?.connection,
        first.served[0]?.connection,
      ]);
    }
  });
});
