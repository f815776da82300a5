import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RetryBudget } from '../../src/upstream/retry.ts';
import { expectAnswered, expectRefused } from './check.ts';
import { errorOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { whole } from './http.ts';
import { modelOf, modelsWithSpare, PAIRS, type Pair, providersAt, sparedModelOf, waysOf } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, eventually, type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// docs/reliability.md, Upstreams and Limits: which requests are retried, when, and how often.

const clock = new TestClock();
let first: Faultd;
let second: Faultd;
let gateway: Started;

beforeAll(async () => {
  first = await Faultd.start();
  second = await Faultd.start();
  const config = { providers: providersAt(first, second), models: modelsWithSpare(), limits: { retry_after: '1s' } };
  // Pauses are a tenth of what they usually are, and there is time enough to save up for retries.
  let now = 0;
  const budget = new RetryBudget(1, () => (now += 1e6));
  gateway = await startGateway({ clock, config, services: (made) => ({ ...made, budget, random: () => -0.45 }) });
});

afterAll(async () => {
  await gateway.close();
  await first.stop();
  await second.stop();
});

const limited = ({ upstream }: Pair, headers: Record<string, string> = {}): Script => [
  { send: whole(429, errorOf(upstream, { code: 'RATE_LIMIT', message: 'slow down', http_status: 429 }).body, headers) },
];

const WAYS = waysOf(PAIRS.slice(2, 6));

/** Others have no word of their own for it. */
const SPENT = JSON.stringify({ error: { message: 'you have no money', type: 'insufficient_quota', code: 'insufficient_quota' } });

describe('429', () => {
  test.each([
    ['seconds', { 'retry-after': '0.2' }, 200],
    ['milliseconds', { 'retry-after-ms': '200' }, 200],
    ['a time that has passed', { 'retry-after': new Date(0).toUTCString() }, 1],
    ['a negative time', { 'retry-after': '-5' }, 13],
    ['nothing', {}, 13],
  ])('is waited for when Retry-After is %s', async (_, headers, ms) => {
    for (const { pair, stream } of WAYS) {
      first.play(limited(pair, headers), good(pair, stream));
      const reply = await clock.after(ms, ask(gateway.url, { client: pair.client, model: modelOf(pair), stream }));
      expectAnswered(pair, stream, reply);
      expect(reply.headers['x-sluice-attempts']).toBe('2');
    }
  });

  test.each([
    ['three days', { 'retry-after': '259200' }, '259200'],
    ['a day of next year', { 'retry-after': new Date(Date.now() + 1e9).toUTCString() }, /^\d{6,7}$/],
  ])('is passed to the client when Retry-After is %s', async (_, headers, seconds) => {
    for (const { pair, stream } of WAYS) {
      first.play(limited(pair, headers));
      const reply = await ask(gateway.url, { client: pair.client, model: modelOf(pair), stream });
      expectRefused(pair.client, reply, 429, 'slow down');
      expect(reply.headers['retry-after']).toMatch(seconds);
      expect(first.served).toHaveLength(1);
    }
  });

  test('is not waited for when another upstream is available', async () => {
    for (const { pair, stream } of WAYS) {
      first.play(limited(pair, { 'retry-after': '0.2' }));
      second.play(good(pair, stream));
      const reply = await ask(gateway.url, { client: pair.client, model: sparedModelOf(pair), stream });
      expectAnswered(pair, stream, reply);
      expect(first.served).toHaveLength(1);
      expect(reply.headers).toMatchObject({ 'x-sluice-attempts': '2', 'x-sluice-provider': `spare-${pair.upstream}` });
    }
  });

  test('for exhausted credit is not retried', async () => {
    for (const { pair, stream } of waysOf(PAIRS.filter(({ upstream }) => upstream.startsWith('openai-')))) {
      first.play([{ send: whole(429, SPENT) }]);
      const reply = await ask(gateway.url, { client: pair.client, model: modelOf(pair), stream });
      expect(reply.body.toString()).toContain('you have no money');
      expect(first.served).toHaveLength(1);
    }
  });

  test('with a long Retry-After pauses its upstream', async () => {
    const resting = await startGateway({
      config: { providers: providersAt(first, second), models: modelsWithSpare() },
      hasBreakers: true,
    });
    for (const { pair, stream } of WAYS.filter(({ pair: { isPassing } }) => !isPassing)) {
      first.play(limited(pair, { 'retry-after': '259200' }));
      second.play(good(pair, stream));
      for (let i = 0; i < 3; i++)
        expectAnswered(pair, stream, await ask(resting.url, { client: pair.client, model: sparedModelOf(pair), stream }));
      // It was asked at most once, and by the first of those who ask for this model.
      expect(first.served.length).toBeLessThanOrEqual(stream ? 1 : 0);
    }
    await resting.close();
  });
});

describe('the same upstream', () => {
  const busy = ({ upstream }: Pair, headers: Record<string, string> = {}): Script => [
    { send: whole(503, errorOf(upstream, { code: 'OVERLOADED', message: 'busy', http_status: 503 }).body, headers) },
  ];
  const pair = PAIRS[4] as Pair;
  const asking = { client: pair.client, model: modelOf(pair), stream: true };

  test('gets at most three attempts', async () => {
    first.play(busy(pair));
    // A tenth of 250 and 500 ms, halved.
    const reply = await clock.after(13 + 25, ask(gateway.url, asking));
    expectRefused(pair.client, reply, 529, 'busy');
    expect(first.served).toHaveLength(3);
    expect(reply.headers).toMatchObject({ 'x-sluice-attempts': '3' });
  });

  test('x-should-retry: false overrides the default verdict', async () => {
    first.play(busy(pair, { 'x-should-retry': 'false' }));
    const reply = await ask(gateway.url, asking);
    expect(first.served).toHaveLength(1);
    expect(reply.headers['x-should-retry']).toBe('false');
  });

  test('x-should-retry: true overrides the default verdict', async () => {
    const timeout = whole(504, errorOf('openai-chat', { code: 'TIMEOUT', message: 'late', http_status: 504 }).body, {
      'x-should-retry': 'true',
    });
    first.play([{ send: timeout }], good(pair, true));
    expectAnswered(pair, true, await clock.after(13, ask(gateway.url, asking)));
  });

  test.each(WAYS)('is not retried after the client has left: $name', async ({ pair: way, stream }) => {
    first.play(limited(way, { 'retry-after': '0.9' }), good(way, stream));
    const client = await RawClient.open(gateway.url);
    client.send(askText({ client: way.client, model: modelOf(way), stream }));
    await eventually(() => gateway.log().at(-1)?.['msg'] === 'attempt failed');
    const { running } = clock;
    client.leave();
    // The gateway waits a moment for a client that has closed its side; that begins when it reads the end of the connection.
    await eventually(() => clock.running > running);
    await clock.advanceUntil(() => gateway.services.streams.count === 0, 100, 800);
    expect(gateway.log().findLast(({ msg }) => msg === 'answered')).toMatchObject({
      ending: 'client_aborted',
      status: 499,
      attempts: 1,
    });
    await clock.advance(1000);
    expect(first.served).toHaveLength(1);
  });

  test.each(WAYS)('is not retried by a gateway that stops: $name', async ({ pair: way, stream }) => {
    const stopping = await startGateway({ clock, config: { providers: providersAt(first) } });
    first.play(limited(way, { 'retry-after': '9' }), good(way, stream));
    const client = await RawClient.open(stopping.url);
    client.send(askText({ client: way.client, model: modelOf(way), stream }));
    await eventually(() => stopping.log().at(-1)?.['msg'] === 'attempt failed');
    const closing = stopping.close(50);
    const reply = await clock.after(50, client.reply());
    expectRefused(way.client, reply, reply.status, 'the gateway is shutting down');
    await clock.until(closing);
    expect(first.served).toHaveLength(1);
  });
});

describe('the retry budget', () => {
  test('is a share of the requests plus a small rate', () => {
    let now = 0;
    const budget = new RetryBudget(0.25, () => now);
    const spendAll = (): number => {
      for (let spent = 0; ; spent++) if (!budget.spend()) return spent;
    };
    expect(spendAll()).toBe(20);
    for (let i = 0; i < 40; i++) budget.earn();
    expect(spendAll()).toBe(10);
    now = 5000;
    expect(spendAll()).toBe(5);
    now = 1e9;
    expect(spendAll()).toBe(20);
  });

  test('holds when an upstream is down for all requests', async () => {
    const broke = await startGateway({
      config: { providers: providersAt(first) },
      services: (made) => ({ ...made, random: () => -0.49, budget: new RetryBudget(0.1, () => 0) }),
    });
    first.play([{ send: whole(503, '{"error":{"message":"down"}}') }]);
    for (let i = 0; i < 40; i++) await ask(broke.url, { client: 'openai-chat', model: 'mend-openai-chat/m', stream: false });
    expect(first.served.length).toBeLessThanOrEqual(40 + 20 + 4);
    await broke.close();
  });
});

describe.each(waysOf(PAIRS.slice(4, 6)))('an upstream that fails again and again: $name', ({ pair, stream }) => {
  test('is paused while another upstream responds', async () => {
    const resting = await startGateway({
      config: { providers: providersAt(first, second), models: modelsWithSpare(), limits: { retries_per_provider: 0 } },
      hasBreakers: true,
    });
    const asking = { client: pair.client, model: sparedModelOf(pair), stream };
    const broken = errorOf(pair.upstream, { code: 'UPSTREAM_ERROR', message: 'broken', http_status: 500 });
    first.play([{ send: whole(500, broken.body) }]);
    second.play(good(pair, stream));
    for (let i = 0; i < 8; i++) expectAnswered(pair, stream, await ask(resting.url, asking));
    expect(first.served).toHaveLength(5);
    expect(await (await fetch(`${resting.url}/metrics`)).text()).toContain(
      `sluice_upstream_up{provider="mend-${pair.upstream}"} 0`,
    );
    // Alone, it gets a probe; what it responds is in the message.
    const status = pair.client === 'anthropic-messages' ? 529 : 503;
    expectRefused(pair.client, await ask(resting.url, { ...asking, model: modelOf(pair) }), status, 'broken');
    await resting.close();
  });

  test('is paused at once when it rejects the key, and the key is not shown', async () => {
    const resting = await startGateway({
      config: { providers: providersAt(first, second), models: modelsWithSpare() },
      hasBreakers: true,
    });
    const asking = { client: pair.client, model: sparedModelOf(pair), stream };
    const message = 'Incorrect API key provided: sk-canar*******cdef.';
    const { body } = errorOf(pair.upstream, { code: 'AUTHENTICATION', message, http_status: 401 });
    first.play([{ send: whole(401, body) }]);
    second.play(good(pair, stream));
    for (let i = 0; i < 3; i++) expectAnswered(pair, stream, await ask(resting.url, asking));
    expect(first.served).toHaveLength(1);
    const reply = await ask(resting.url, { ...asking, model: modelOf(pair) });
    expectRefused(pair.client, reply, 401, /^provider "[\w-]+" rejected its API key \(401\)$/);
    expect(reply.body.toString()).not.toMatch(/canar|cdef/);
    expect(await (await fetch(`${resting.url}/metrics`)).text()).toContain(
      `sluice_upstream_errors_total{provider="mend-${pair.upstream}",code="AUTHENTICATION"} 2`,
    );
    await resting.close();
  });
});
