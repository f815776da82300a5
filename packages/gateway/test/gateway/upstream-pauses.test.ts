import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type BreakerOptions, Breakers } from '../../src/upstream/breaker.ts';
import { RetryBudget } from '../../src/upstream/retry.ts';
import { expectAnswered, expectRefused } from './check.ts';
import { errorOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { type Reply, whole } from './http.ts';
import { modelOf, modelsWithSpare, PAIRS, type Pair, providersAt, sparedModelOf, waysOf } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, askText, eventually, type Started, startGateway } from './start.ts';

// What a target gets that is paused after failures, and what clients are told meanwhile.

let first: Faultd;
let second: Faultd;
let gateway: Started;
/** Of the breakers: pauses take no real time. */
let now: number;

beforeAll(async () => {
  first = await Faultd.start();
  second = await Faultd.start();
});

afterAll(async () => {
  await first.stop();
  await second.stop();
});

const start = (limits: object = {}): Promise<Started> => {
  now = 1;
  const config = { providers: providersAt(first, second), models: modelsWithSpare(), limits };
  const budget = new RetryBudget(1, () => 0);
  const breakers = new Breakers(() => now, { random: () => 0 });
  return startGateway({ config, hasBreakers: true, services: (made) => ({ ...made, breakers, budget, random: () => -0.49 }) });
};

beforeEach(async () => {
  gateway = await start();
});

afterEach(() => gateway.close());

const askPair = (pair: Pair, stream: boolean, model = modelOf(pair)): Promise<Reply> =>
  ask(gateway.url, { client: pair.client, model, stream });

const broken = ({ upstream }: Pair): Script => {
  const { body } = errorOf(upstream, { code: 'UPSTREAM_ERROR', message: 'broken', http_status: 500 });
  return [{ send: whole(500, body) }];
};

/** Overload has a status of its own there. */
const unavailable = ({ client }: Pair): number => (client === 'anthropic-messages' ? 529 : 503);

/** Five failures: two requests. */
async function pause(pair: Pair, stream: boolean): Promise<void> {
  first.play(broken(pair));
  for (let i = 0; i < 2; i++) expectRefused(pair.client, await askPair(pair, stream), 500, 'broken');
  expect(first.served).toHaveLength(5);
}

/** Failed probes: pauses of 1, 2, 4 and now 5 seconds. */
async function pauseLong(pair: Pair, stream: boolean): Promise<void> {
  await pause(pair, stream);
  for (const [passed, seconds] of [
    [1000, '2'],
    [2000, '4'],
    [4000, '5'],
  ] as const) {
    now += passed;
    first.play(broken(pair));
    const { headers } = await askPair(pair, stream);
    expect(headers).toMatchObject({ 'retry-after': seconds, 'x-sluice-attempts': '1' });
  }
}

const metrics = async (): Promise<string> => (await fetch(`${gateway.url}/metrics`)).text();

describe.each(waysOf(PAIRS.slice(3, 7)))('a paused target that is the only one: $name', ({ pair, stream }) => {
  test('gets no further retries of the request that caused the pause', async () => {
    await gateway.close();
    gateway = await start({ retries_per_provider: 9, retries: 9 });
    first.play(broken(pair));
    expectRefused(pair.client, await askPair(pair, stream), 500, 'broken');
    expect(first.served).toHaveLength(5);
  });

  test('gets one probe and no retries; a failed probe is 503 with the rest of the pause', async () => {
    await pauseLong(pair, stream);
    for (const [passed, seconds] of [
      [0, '5'],
      [2000, '3'],
      [2500, '1'],
    ] as const) {
      first.play(broken(pair));
      now += passed;
      const reply = await askPair(pair, stream);
      expectRefused(pair.client, reply, unavailable(pair), /paused after failures; retry in \d+ s; last error: .*broken/);
      expect(reply.headers).toMatchObject({ 'retry-after': seconds, 'x-sluice-attempts': '1' });
      expect(first.served).toHaveLength(1);
      expect(await metrics()).toContain(`sluice_upstream_up{provider="${modelOf(pair).split('/')[0]}"} 0`);
    }
  });

  test('gets one probe without retries after the pause, and a new pause if it fails', async () => {
    await pauseLong(pair, stream);
    first.play(broken(pair));
    now += 5000;
    const reply = await askPair(pair, stream);
    expectRefused(pair.client, reply, unavailable(pair), 'broken');
    expect(reply.headers['retry-after']).toBe('5');
    expect(first.served).toHaveLength(1);
  });

  test('is used as usual after a probe that succeeds', async () => {
    await pause(pair, stream);
    first.play(good(pair, stream), broken(pair), good(pair, stream));
    expectAnswered(pair, stream, await askPair(pair, stream));
    const reply = await askPair(pair, stream);
    expectAnswered(pair, stream, reply);
    expect(reply.headers['x-sluice-attempts']).toBe('2');
    expect(await metrics()).toContain(`sluice_upstream_up{provider="${modelOf(pair).split('/')[0]}"} 1`);
  });

  test.each([
    { code: 'INVALID_INPUT', status: 400, words: 'not like this' },
    { code: 'AUTHENTICATION', status: 401, words: /rejected its API key \(401\)/ },
    { code: 'PERMISSION', status: 403, words: /denied access \(403\): not like this/ },
  ] as const)('keeps the status and message of a probe that gets $status', async ({ code, status, words }) => {
    await pause(pair, stream);
    const { body } = errorOf(pair.upstream, { code, message: 'not like this', http_status: status });
    first.play([{ send: whole(status, body) }]);
    expectRefused(pair.client, await askPair(pair, stream), status, words);
    expect(first.served).toHaveLength(1);
  });

  test('gets one probe at a time; other requests get 503 at once', async () => {
    await pause(pair, stream);
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    first.play([{ run: () => released }, ...good(pair, stream)], good(pair, stream));
    const probe = askPair(pair, stream);
    await eventually(() => first.served[0]);
    for (let i = 0; i < 3; i++) {
      const reply = await askPair(pair, stream);
      // What the upstream wrote to another client stays out.
      expectRefused(pair.client, reply, unavailable(pair), /last error: provider "[\w-]+" responded with 500/);
      expect(reply.headers).toMatchObject({ 'retry-after': '1', 'x-sluice-attempts': '0' });
    }
    expect(first.served).toHaveLength(1);
    release();
    expectAnswered(pair, stream, await probe);
    expectAnswered(pair, stream, await askPair(pair, stream));
  });

  test('may be probed again when the client of a probe has left', async () => {
    await pause(pair, stream);
    first.play([{ hang: true }], good(pair, stream));
    const client = await RawClient.open(gateway.url);
    client.send(askText({ client: pair.client, model: modelOf(pair), stream }));
    await eventually(() => first.served[0]);
    client.reset();
    await eventually(() => gateway.services.streams.count === 0);
    expectAnswered(pair, stream, await askPair(pair, stream));
  });
});

test('of several paused targets, the one whose pause ends first is probed', async () => {
  for (const { pair, stream } of waysOf(PAIRS.slice(4, 6))) {
    await gateway.close();
    gateway = await start();
    first.play(broken(pair));
    second.play(broken(pair));
    // The second is paused first.
    for (let i = 0; i < 2; i++) await askPair(pair, stream, `spare-${pair.upstream}/m`);
    now += 500;
    for (let i = 0; i < 2; i++) await askPair(pair, stream);
    first.play(broken(pair));
    second.play(broken(pair));
    const reply = await askPair(pair, stream, sparedModelOf(pair));
    expectRefused(pair.client, reply, unavailable(pair), 'broken');
    expect(reply.headers).toMatchObject({ 'retry-after': '1', 'x-sluice-attempts': '1' });
    expect([first.served.length, second.served.length]).toEqual([0, 1]);
  }
});

test('a token estimate needs no upstream and does not affect a pause', async () => {
  const pair = PAIRS[4] as Pair;
  await pause(pair, false);
  first.play(good(pair, false));
  const body = JSON.stringify({ model: modelOf(pair), messages: [{ role: 'user', content: 'hello' }] });
  const reply = await fetch(`${gateway.url}/v1/messages/count_tokens`, {
    method: 'POST',
    headers: { 'anthropic-version': '2023-06-01' },
    body,
  });
  expect(await reply.json()).toEqual({ input_tokens: expect.any(Number) });
  expect(first.served).toHaveLength(0);
  expect(gateway.services.breakers.isWell(modelOf(pair))).toBe(false);
});

test('a target is retried when all others are paused', async () => {
  const { pair, stream } = { pair: PAIRS[4] as Pair, stream: false };
  second.play(broken(pair));
  for (let i = 0; i < 2; i++) await askPair(pair, stream, `spare-${pair.upstream}/m`);
  first.play(broken(pair), good(pair, stream));
  second.play(broken(pair));
  const reply = await askPair(pair, stream, sparedModelOf(pair));
  expectAnswered(pair, stream, reply);
  expect(reply.headers['x-sluice-attempts']).toBe('2');
  expect(second.served).toHaveLength(0);
});

describe('a target whose pause has ended', () => {
  const { pair, stream } = { pair: PAIRS[4] as Pair, stream: false };

  /** The first target has failed five times; the second has served those requests. */
  const pauseFirst = async (): Promise<void> => {
    first.play(broken(pair));
    second.play(good(pair, stream));
    for (let i = 0; i < 5; i++) expectAnswered(pair, stream, await askPair(pair, stream, sparedModelOf(pair)));
    expect(first.served).toHaveLength(5);
  };

  test('gets one request that falls back without an error, and then none until the next pause ends', async () => {
    await pauseFirst();
    for (const [passed, probes] of [
      [999, 0],
      [1, 1],
      [1999, 0],
      [1, 1],
      [3999, 0],
      [1, 1],
      [4999, 0],
      [1, 1],
      [5000, 1],
    ] as const) {
      now += passed;
      first.play(broken(pair));
      second.play(good(pair, stream));
      for (let i = 0; i < 3; i++) expectAnswered(pair, stream, await askPair(pair, stream, sparedModelOf(pair)));
      expect([first.served.length, second.served.length]).toEqual([probes, 3]);
    }
  });

  test('takes all requests after one of them succeeds', async () => {
    await pauseFirst();
    now += 1000;
    first.play(good(pair, stream));
    second.play(good(pair, stream));
    for (let i = 0; i < 10; i++) expectAnswered(pair, stream, await askPair(pair, stream, sparedModelOf(pair)));
    expect([first.served.length, second.served.length]).toEqual([10, 0]);
  });

  test('is probed by one of many requests at the same time; the others are served by another target', async () => {
    await pauseFirst();
    now += 1000;
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    first.play([{ run: () => released }, ...good(pair, stream)], good(pair, stream));
    second.play(good(pair, stream));
    const probe = askPair(pair, stream, sparedModelOf(pair));
    await eventually(() => first.served[0]);
    for (let i = 0; i < 5; i++) expectAnswered(pair, stream, await askPair(pair, stream, sparedModelOf(pair)));
    expect([first.served.length, second.served.length]).toEqual([1, 5]);
    release();
    expectAnswered(pair, stream, await probe);
  });

  test('is tried when every other target has failed, before its pause has ended', async () => {
    await pauseFirst();
    first.play(good(pair, stream));
    second.play(broken(pair));
    expectAnswered(pair, stream, await askPair(pair, stream, sparedModelOf(pair)));
    expect(first.served).toHaveLength(1);
  });
});

const LONG_PAUSES = [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000];

describe('breakers', () => {
  const failing = (options: BreakerOptions = { random: () => 0 }): Breakers => {
    now = 1;
    const breakers = new Breakers(() => now, options);
    for (let i = 0; i < 5; i++) breakers.failed('a', `failure ${i}`);
    return breakers;
  };

  test('a failure during a pause does not prolong it', () => {
    const breakers = failing();
    now += 600;
    breakers.failed('a', 'again');
    expect(breakers.pause(['a'])).toEqual({ ms: 400, reason: 'again' });
  });

  /** The pauses of a target whose probes fail, in milliseconds. */
  const listPauses = (breakers: Breakers, count: number): number[] =>
    Array.from({ length: count }, () => {
      const { ms = 0 } = breakers.pause(['a']) ?? {};
      now += ms - 1;
      expect(breakers.admit('a')).toBe('resting');
      expect(breakers.isDue('a')).toBe(false);
      now += 1;
      expect(breakers.isDue('a')).toBe(true);
      expect(breakers.admit('a')).toBe('probe');
      breakers.failed('a', 'again');
      breakers.endProbe('a');
      return ms;
    });

  test.each([
    { title: 'double up to 5 s', options: { random: () => 0 }, pauses: [1000, 2000, 4000, 5000, 5000] },
    { title: 'vary, and stay within 6 s', options: { random: () => 1 }, pauses: [1200, 2400, 4800, 6000, 6000] },
    { title: 'double up to the configured limit', options: { random: () => 0, maxPauseMs: 60_000 }, pauses: LONG_PAUSES },
    { title: 'may be short', options: { random: () => 0, maxPauseMs: 300 }, pauses: [300, 300] },
  ])('pauses $title', ({ options, pauses }) => {
    expect(listPauses(failing(options), pauses.length)).toEqual(pauses);
  });

  test('the first pause after a success is short again', () => {
    const breakers = failing();
    listPauses(breakers, 5);
    breakers.succeeded('a');
    expect(breakers.isWell('a')).toBe(true);
    for (let i = 0; i < 5; i++) breakers.failed('a', 'again');
    expect(breakers.pause(['a'])?.ms).toBe(1000);
  });

  test.each([
    [0, 1000],
    [700, 1000],
    [9000, 9000],
  ])('a target that requests %i ms when it is paused rests for %i ms', (requested, ms) => {
    now = 1;
    const breakers = new Breakers(() => now, { random: () => 0 });
    for (let i = 0; i < 5; i++) breakers.failed('a', 'failure', requested);
    expect(breakers.pause(['a'])?.ms).toBe(ms);
  });

  test('a probe that takes longer than a pause does not block others', () => {
    const breakers = failing();
    expect(breakers.probe(['a'])).toBe('a');
    expect(breakers.probe(['a'])).toBeUndefined();
    now += 30_000;
    expect(breakers.admit('a')).toBe('probe');
    expect(breakers.admit('a')).toBe('resting');
    breakers.endProbe('a');
    expect(breakers.admit('a')).toBe('probe');
  });

  test('a pause is never longer than an hour, and its reason is short', () => {
    const breakers = failing();
    breakers.rest('a', 'x'.repeat(10_000), 1e9);
    const left = breakers.pause(['a']);
    expect(left?.ms).toBe(3_600_000);
    expect(left?.reason.length).toBeLessThanOrEqual(300);
    expect(breakers.pause(['a', 'b'])).toBeUndefined();
  });
});
