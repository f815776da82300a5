import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { MAX_WAIT_MS } from '../../src/exchange/record.ts';
import type { Clock } from '../../src/http/clock.ts';
import { expectAnswered, expectRefused } from '../gateway/check.ts';
import { cutAfter, errorOf, framesOf, TEXT } from '../gateway/dialects.ts';
import { Faultd, type Script } from '../gateway/faultd.ts';
import { chunk, parseReply, streamHead, whole } from '../gateway/http.ts';
import { modelOf, PAIRS, type Pair, providersAt, waysOf } from '../gateway/pairs.ts';
import { RawClient, requestText } from '../gateway/raw-client.ts';
import { good } from '../gateway/scripts.ts';
import { ask, askText, eventually, type Started, startGateway } from '../gateway/start.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { createHeldKeeping, type HeldKeeping, HeldLedger } from './held-ledger.ts';

// A client that has seen content has an attempt on disk, and one that has seen the end has its usage there.

const clock = new TestClock();
const ledger = new HeldLedger();
let faultd: Faultd;
let gateway: Started;
let relaxed: Started;
let keeping: HeldKeeping;

const start = (made: HeldKeeping, config: object = {}): Promise<Started> =>
  startGateway({
    clock,
    config: { providers: providersAt(faultd), ...config },
    services: (services) => ({ ...services, keeping: made }),
  });

beforeAll(async () => {
  faultd = await Faultd.start(clock);
  keeping = createHeldKeeping(ledger, { clock });
  gateway = await start(keeping);
  relaxed = await start(createHeldKeeping(ledger, { durability: 'relaxed', clock }));
});

afterEach(() => {
  ledger.reset();
  keeping.late.length = 0;
  ledger.isFailing = false;
});

afterAll(async () => {
  await gateway.close();
  await relaxed.close();
  await faultd.stop();
});

const open = async ({ client, ...pair }: Pair, stream: boolean, url = gateway.url): Promise<RawClient> => {
  const raw = await RawClient.open(url);
  return raw.send(askText({ client, model: modelOf({ client, ...pair }), stream }));
};

/** What the client has of the response, when everything has had the time to arrive. */
async function seen(client: RawClient): Promise<string> {
  await clock.advance(1);
  return client.received.toString('latin1');
}

const isWhole = (client: RawClient): boolean => parseReply(client.received)?.isWhole === true;

/** The events that tell a client that its response is complete; a stream of Gemini only ends. */
const TERMINAL = /data: \[DONE\]|message_stop|response\.completed/;

/** A stream whose second half is sent when the client has the first. */
function inHalves({ upstream }: Pair): { script: Script; goOn: () => void } {
  const { before, after } = cutAfter(upstream, 'two');
  let goOn = (): void => undefined;
  const isSeen = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const script = [
    { send: streamHead() },
    { send: chunk(before.join('')) },
    { run: () => isSeen },
    { send: chunk(after.join('')) },
    { send: '0\r\n\r\n' },
  ];
  return { script, goOn: () => goOn() };
}

/** The status of an overloaded server. */
const overloaded = ({ client }: Pair): number => (client === 'anthropic-messages' ? 529 : 503);

describe.each(PAIRS)('a stream of $name', (pair) => {
  test('has no content before the attempt is durable, no end before the usage is', async () => {
    ledger.held = ['openAttempt', 'settleExchange'];
    const { script, goOn } = inHalves(pair);
    faultd.play(script);
    const client = await open(pair, true);
    await eventually(() => (faultd.served[0]?.sent ?? 0) > 0);
    expect(await seen(client)).toBe('');
    expect(ledger.isWaiting('openAttempt')).toBe(true);
    ledger.release();
    await client.sees('two');
    goOn();
    await eventually(() => ledger.isWaiting('settleExchange'));
    expect(await seen(client)).not.toMatch(TERMINAL);
    expect(isWhole(client)).toBe(false);
    ledger.release();
    expectAnswered(pair, true, await client.reply());
    expect(keeping.late).toEqual([]);
    client.leave();
  });

  test.each(['a failing store', 'rows that cannot be written'])('is not delayed by %s, and is counted as late', async (what) => {
    ledger.isFailing = what === 'a failing store';
    ledger.held = ['openAttempt', 'settleExchange'];
    const { script, goOn } = inHalves(pair);
    faultd.play(script);
    const client = await open(pair, true);
    await eventually(() => (faultd.served[0]?.sent ?? 0) > 0);
    await clock.advance(1);
    ledger.fail('no');
    await client.sees('two');
    goOn();
    await eventually(() => ledger.count('settleExchange') === 1);
    await clock.advance(1);
    ledger.fail('no');
    expectAnswered(pair, true, await client.reply());
    expect(keeping.late.length).toBe(2);
    client.leave();
  });
});

describe.each(waysOf(PAIRS))('$name', ({ pair, stream }) => {
  test('an end that arrives at once waits for the usage', async () => {
    ledger.held = ['settleExchange'];
    faultd.play(good(pair, stream));
    const client = await open(pair, stream);
    await eventually(() => ledger.isWaiting('settleExchange'));
    const text = await seen(client);
    // Gemini has no last event, so its content has been sent by now.
    expect(text).toMatch(stream && pair.upstream === 'gemini' ? /five/ : /^$/);
    expect(text).not.toMatch(TERMINAL);
    expect(isWhole(client)).toBe(false);
    ledger.release();
    expectAnswered(pair, stream, await client.reply());
    client.leave();
  });

  test('relaxed does not wait', async () => {
    ledger.held = ['openExchange', 'openAttempt', 'settleAttempt', 'settleExchange'];
    faultd.play(good(pair, stream));
    expectAnswered(pair, stream, await ask(relaxed.url, { client: pair.client, model: modelOf(pair), stream }));
  });

  test('a full queue refuses new requests in the protocol of the client', async () => {
    faultd.play([]);
    ledger.accepting = false;
    const reply = await ask(gateway.url, { client: pair.client, model: modelOf(pair), stream });
    expectRefused(pair.client, reply, overloaded(pair), /usage cannot be recorded/);
    expect(reply.headers['retry-after']).toBe('1');
    expect([faultd.served.length, ledger.written]).toEqual([0, []]);
  });

  test('a queue that fills while the body is read refuses the request', async () => {
    faultd.play([]);
    const client = await RawClient.open(gateway.url);
    const text = askText({ client: pair.client, model: modelOf(pair), stream });
    client.send(text.slice(0, -5));
    await eventually(() => gateway.services.streams.count > 0);
    ledger.accepting = false;
    expectRefused(pair.client, await client.send(text.slice(-5)).reply(), overloaded(pair), /usage cannot be recorded/);
    expect(faultd.served.length).toBe(0);
    client.leave();
  });
});

test.each(PAIRS)(
  'a store that does not respond delays the first content and the end by the maximum each: $name',
  async (pair) => {
    ledger.held = ['openAttempt', 'settleExchange'];
    const { before, after } = cutAfter(pair.upstream, 'two');
    faultd.play([
      { send: streamHead() },
      { send: chunk(before.join('')) },
      { wait: 2 * MAX_WAIT_MS },
      { send: chunk(after.join('')) },
      { send: '0\r\n\r\n' },
    ]);
    const client = await open(pair, true);
    await eventually(() => ledger.isWaiting('openAttempt') && (faultd.served[0]?.sent ?? 0) > 0);
    await clock.advance(0);
    await clock.advance(MAX_WAIT_MS - 1);
    expect(client.received.includes('two')).toBe(false);
    await clock.advance(1);
    await client.sees('two');
    await clock.advance(MAX_WAIT_MS);
    await eventually(() => ledger.isWaiting('settleExchange'));
    await clock.advance(MAX_WAIT_MS - 1);
    expect(isWhole(client)).toBe(false);
    await clock.advance(1);
    expectAnswered(pair, true, await client.reply());
    expect(keeping.late).toEqual(Array(2).fill(`the store did not answer within ${MAX_WAIT_MS} ms`));
    client.leave();
  },
);

describe('passed bytes', () => {
  const request = requestText('POST', '/v1/moderations', {}, '{"model":"pass-openai-chat/m","input":"x"}');
  const BODIES = [
    { name: 'with a length', script: [{ send: whole(200, TEXT) }] },
    { name: 'chunked', script: [{ send: streamHead() }, { send: chunk(TEXT) }, { send: '0\r\n\r\n' }] },
    { name: 'an error', script: [{ send: whole(400, '{"error":{"message":"no"}}') }] },
  ];
  test.each(BODIES)('wait for the ledger: $name', async ({ script, name }) => {
    const isError = name === 'an error';
    ledger.held = isError ? ['settleExchange'] : ['openAttempt', 'settleExchange'];
    faultd.play(script);
    const client = (await RawClient.open(gateway.url)).send(request);
    await eventually(() => faultd.served[0]?.isDone);
    expect(await seen(client)).toBe('');
    if (!isError) ledger.release();
    await eventually(() => ledger.isWaiting('settleExchange'));
    await seen(client);
    expect(isWhole(client)).toBe(false);
    ledger.release();
    expect((await client.reply()).body.toString()).toContain(isError ? 'no' : TEXT);
    client.leave();
    await clock.advance(1);
    expect(ledger.ended.length).toBe(1);
  });
});

const ENDLESS = 64 * 1024 * 1024;

test.each(PAIRS.slice(0, 6))('an upstream is paused while the ledger is awaited: $name', async (pair) => {
  ledger.held = ['openAttempt'];
  const { before, after } = cutAfter(pair.upstream, 'two');
  const [word = ''] = framesOf(pair.upstream).filter((frame) => frame.includes('two'));
  const many = word.replace('two', 'two '.repeat(4000));
  faultd.play([
    { send: streamHead() },
    { send: chunk(before.join('')) },
    { send: chunk(many.repeat(Math.ceil(ENDLESS / many.length))) },
    { send: chunk(after.join('')) },
    { send: '0\r\n\r\n' },
  ]);
  const client = await open(pair, true);
  await eventually(() => ledger.isWaiting('openAttempt'));
  await clock.advance(1);
  // What the system buffers of a socket, but not the response.
  expect(faultd.served[0]?.isDone).toBe(false);
  client.reset();
  await eventually(() => faultd.served[0]?.isClosed);
  await eventually(() => ledger.ended.length === 1);
});

describe.each(PAIRS)('$name', (pair) => {
  test('a client that leaves while the end is recorded has one settled row', async () => {
    ledger.held = ['settleExchange'];
    faultd.play(good(pair, true));
    const client = await open(pair, true);
    await eventually(() => ledger.isWaiting('settleExchange'));
    client.reset();
    await eventually(() => gateway.services.streams.count === 0);
    ledger.release();
    await clock.advance(1);
    expect([ledger.count('openExchange'), ledger.count('settleExchange'), ledger.count('settleAttempt')]).toEqual([1, 1, 1]);
    expect(ledger.ended[0]).toMatchObject({ input_tokens: 11, output_tokens: 5, provenance: 'reported' });
  });

  test.each(['openAttempt', 'settleExchange'] as const)(
    'a drained response is read to its end when its client leaves before %s is durable',
    async (held) => {
      const providers = Object.fromEntries(
        Object.entries(providersAt(faultd)).map(([id, row]) => [id, { ...row, on_disconnect: 'drain' }]),
      );
      const draining = await start(keeping, { providers });
      ledger.held = [held];
      faultd.play(good(pair, true));
      const client = await open(pair, true, draining.url);
      await eventually(() => ledger.isWaiting(held) && faultd.served[0]?.isDone);
      await clock.advance(1);
      client.reset();
      await eventually(() => draining.services.streams.count === 0);
      ledger.release();
      await draining.close();
      expect(ledger.ended).toMatchObject([{ input_tokens: 11, output_tokens: 5 }]);
    },
  );

  test('a stream that is stopped at the deadline is settled before the gateway has closed', async () => {
    const stopping = await start(keeping);
    ledger.held = ['settleExchange'];
    faultd.play([{ send: streamHead() }, { send: chunk(cutAfter(pair.upstream, 'two').before.join('')) }, { hang: true }]);
    const client = await open(pair, true, stopping.url);
    await client.sees('two');
    const closed = stopping.close(20).then(() => ledger.ended.length);
    await clock.advance(20);
    await eventually(() => ledger.isWaiting('settleExchange'));
    expect(isWhole(client)).toBe(false);
    ledger.release();
    await clock.until(closed);
    expect(await closed).toBe(1);
    expect(ledger.ended).toMatchObject([{ ending: 'stopped', http_status: 200, provenance: 'estimated' }]);
    expect(ledger.count('settleAttempt')).toBe(1);
    client.leave();
  });
});

test.each(PAIRS.filter(({ client }) => client !== 'gemini'))(
  'an error after heartbeats waits for the ledger, and has its status: $name',
  async (pair) => {
    ledger.held = ['settleExchange'];
    faultd.play([{ wait: 20_000 }, { send: whole(400, '{"error":{"message":"no"}}') }]);
    const client = await open(pair, true);
    await eventually(() => faultd.served.length === 1);
    await clock.advance(20_000);
    await eventually(() => ledger.isWaiting('settleExchange'));
    expect(client.received.toString('latin1')).toMatch(/^HTTP\/1.1 200/);
    expect(isWhole(client)).toBe(false);
    ledger.release();
    await clock.advance(200);
    expect((await client.reply()).body.toString()).toContain('no');
    expect(ledger.ended).toMatchObject([{ http_status: 200, ending: 'upstream_error', input_tokens: null }]);
    expect(ledger.written.filter(({ write }) => write === 'settleAttempt')).toMatchObject([{ row: { http_status: 400 } }]);
    client.leave();
  },
);

test.each(PAIRS)(
  'an error keeps its status while it is recorded, also when that takes longer than limits.hold: $name',
  async (pair) => {
    const held = await start(keeping, { limits: { hold: '30ms' } });
    ledger.held = ['settleExchange'];
    const { status, body } = errorOf(pair.upstream, { code: 'INVALID_INPUT', message: 'no such thing', http_status: 400 });
    faultd.play([{ send: whole(status, body) }]);
    const client = await open(pair, true, held.url);
    await eventually(() => ledger.isWaiting('settleExchange'));
    await clock.advance(100);
    ledger.release();
    expectRefused(pair.client, await client.reply(), 400, 'no such thing');
    expect(held.log().filter(({ msg }) => msg === 'failed')).toEqual([]);
    client.leave();
    await held.close();
  },
);

test.each(waysOf(PAIRS))('a failing handler leaves no attempt open: $name', async ({ pair, stream }) => {
  faultd.play(good(pair, stream));
  const failing = await startGateway({
    clock,
    config: { providers: providersAt(faultd) },
    services: (services) => ({
      ...services,
      keeping,
      metrics: Object.assign(services.metrics, {
        answeredFor: () => {
          throw new Error('a bug');
        },
      }),
    }),
  });
  const reply = await ask(failing.url, { client: pair.client, model: modelOf(pair), stream });
  expect(reply.status).toBe(500);
  await failing.close();
  expect(ledger.ended).toMatchObject([{ ending: 'internal_error', http_status: 500 }]);
  expect(ledger.count('settleAttempt')).toBe(ledger.count('openAttempt'));
});

test('no timer of a response that has ended keeps a process alive that has stopped', async () => {
  const [pair] = PAIRS as [Pair, ...Pair[]];
  const timers = { all: 0, unref: 0 };
  const setTimer: Clock['setTimer'] = (run, ms) => {
    const timer = clock.setTimer(run, ms);
    timers.all++;
    const unref = () => {
      timers.unref++;
      return timer.unref();
    };
    return { close: () => timer.close(), refresh: () => timer.refresh(), unref };
  };
  const counting: Clock = { now: () => clock.now(), setTimer, setRepeating: (run, ms) => clock.setRepeating(run, ms) };
  const own = await start(createHeldKeeping(ledger, { clock: counting }));
  faultd.play(good(pair, false));
  expectAnswered(pair, false, await ask(own.url, { client: pair.client, model: modelOf(pair), stream: false }));
  await own.close();
  expect(timers.all).toBeGreaterThan(0);
  expect(timers.unref).toBe(timers.all);
});
