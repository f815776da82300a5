// recovery.hedge_after together with what else a request may have: budgets, pauses, concurrency, continuation, a ledger.
import { afterEach, describe, expect, test } from 'vitest';
import { eventually } from '../../../../test/wait.ts';
import { cutStream, HEDGE_MS, readText, refusal, stream, TEXTS, TwoUpstreams } from './two-upstreams.ts';

let upstreams: TwoUpstreams;

const start = async (options: Parameters<typeof TwoUpstreams.start>[0] = {}): Promise<void> => {
  upstreams = await TwoUpstreams.start(options);
};

afterEach(() => upstreams.stop());

const BUDGET = { budgets: [{ micros: 1_000_000_000, period: 'total' }] } as const;

const rowOf = (): Record<string, unknown> | undefined => upstreams.ledger.ended[0];

describe('a second request whose reservation is raised by a backend that responds late', () => {
  test('is not sent when the first upstream responds meanwhile', async () => {
    await start({ policy: BUDGET });
    upstreams.raiseMs = 200;
    upstreams.play([stream('one', HEDGE_MS + 100, 50)], [stream('two', 1, 50)]);
    const reply = await upstreams.request();
    expect(readText(reply)).toMatchObject({ text: TEXTS.one, complete: true, error: null });
    expect(reply.headers).toMatchObject({ 'x-sluice-provider': 'one', 'x-sluice-attempts': '1' });
    expect(upstreams.two.served).toEqual([]);
    await upstreams.expectNothingHeld();
  });

  test('does not keep a finished request open', async () => {
    await start({ policy: { ...BUDGET, concurrency: 1 } });
    upstreams.raiseMs = 60_000;
    upstreams.play([stream('one', HEDGE_MS + 100)], [stream('two', 1)]);
    expect(readText(await upstreams.request()).text).toBe(TEXTS.one);
    await upstreams.expectNothingHeld();
    // The answer of the backend to the request that has ended.
    await upstreams.clock.advance(60_000);
    await eventually(() => upstreams.gateway.services.streams.count === 0, 5000);
    expect(upstreams.two.served).toEqual([]);
  });

  test('is sent when it is raised in time, and may win', async () => {
    await start({ policy: BUDGET });
    upstreams.raiseMs = 200;
    upstreams.play([stream('one', 60_000)], [stream('two', 1)]);
    const reply = await upstreams.request();
    expect(readText(reply).text).toBe(TEXTS.two);
    expect(reply.headers).toMatchObject({ 'x-sluice-provider': 'two', 'x-sluice-attempts': '2' });
    await upstreams.expectNothingHeld();
  });

  test('is not sent beyond the budget, and its target still replaces the first one', async () => {
    // Room for one attempt at a time: each may have 131,072 tokens.
    await start({ policy: { budgets: [{ micros: 200_000, period: 'total' }] } });
    upstreams.play([refusal(404, HEDGE_MS + 500)], [stream('two', 1)]);
    const reply = await upstreams.request();
    expect(readText(reply).text).toBe(TEXTS.two);
    await upstreams.expectNothingHeld();
  });
});

describe('a second request that waits to be repeated', () => {
  test('ends when the first upstream responds: nothing of the request is held', async () => {
    await start({ policy: { concurrency: 1 } });
    upstreams.play([stream('one', HEDGE_MS + 500)], [refusal(429, 0, { 'retry-after': '6' })]);
    const before = upstreams.clock.now();
    expect(readText(await upstreams.request()).text).toBe(TEXTS.one);
    expect(upstreams.clock.now() - before).toBeLessThan(HEDGE_MS + 1000);
    await upstreams.expectNothingHeld();
    upstreams.play([stream('one', 1)], []);
    expect((await upstreams.request()).status).toBe(200);
  });

  test('ends when the client leaves', async () => {
    await start();
    upstreams.play([stream('one', 60_000)], [refusal(429, 0, { 'retry-after': '6' })]);
    const client = await upstreams.open();
    await upstreams.clock.advanceUntil(() => upstreams.ledger.count('settleAttempt') === 1, 100, 10_000);
    client.reset();
    await upstreams.expectNothingHeld();
    expect(upstreams.attempts.map(({ ending }) => ending)).toEqual(['upstream_error', 'client_aborted']);
  });
});

describe('a hedged stream that is truncated', () => {
  test('is continued by the target that had lost, after the pause that it required', async () => {
    await start({ recovery: { on_break: 'continue' } });
    // Both send the same text here: the second continues the first.
    upstreams.play([cutStream('one', HEDGE_MS + 200, 3)], [refusal(503, 0, { 'retry-after': '1' }), stream('two', 1)]);
    const reply = await upstreams.request();
    const { text, complete, error } = readText(reply);
    expect({ complete, error }).toEqual({ complete: true, error: null });
    expect(text).toMatch(/^a1 .*b6\.$/);
    expect(reply.body.toString().match(/\[DONE\]/g)).toHaveLength(1);
    expect(upstreams.attempts.map(({ ending }) => ending)).toEqual(['upstream_error', 'upstream_error', 'answered']);
    expect(rowOf()).toMatchObject({ ending: 'answered', provider: 'two', model: 'm2' });
    await upstreams.expectNothingHeld();
    expect(upstreams.gateway.log().filter(({ level }) => level === 'error')).toEqual([]);
    expect(upstreams.gateway.log().find(({ msg }) => msg === 'answered')).toMatchObject({ ending: 'answered' });
  });

  test('is continued by the target whose request was cancelled', async () => {
    await start({ recovery: { on_break: 'continue' } });
    upstreams.play([cutStream('one', HEDGE_MS + 200, 3)], [stream('two', 60_000), stream('two', 1)]);
    const { text, complete, error } = readText(await upstreams.request());
    expect({ complete, error }).toEqual({ complete: true, error: null });
    expect(text).toMatch(/^a1 .*b6\.$/);
    await upstreams.expectNothingHeld();
  });

  test('ends with one error when no target continues it', async () => {
    await start({ recovery: { on_break: 'continue' } });
    upstreams.play([cutStream('one', HEDGE_MS + 200, 3)], [stream('two', 60_000), refusal(404)]);
    const reply = await upstreams.request();
    expect(readText(reply)).toMatchObject({ complete: false, text: expect.stringMatching(/^a1/) });
    expect(rowOf()).toMatchObject({ provider: 'one', model: 'm1' });
    await upstreams.expectNothingHeld();
  });
});

describe('the ledger', () => {
  test('names the upstream that responded first, not the one that was requested last', async () => {
    await start();
    upstreams.play([stream('one', HEDGE_MS + 100)], [stream('two', 60_000)]);
    await upstreams.request();
    expect(rowOf()).toMatchObject({ provider: 'one', upstream_protocol: 'openai-chat', model: 'm1', ending: 'answered' });
    await upstreams.expectNothingHeld();
  });

  test('names the second upstream when that wins', async () => {
    await start();
    upstreams.play([stream('one', 60_000)], [stream('two', 1)]);
    await upstreams.request();
    expect(rowOf()).toMatchObject({ provider: 'two', upstream_protocol: 'anthropic-messages', model: 'm2' });
    await upstreams.expectNothingHeld();
  });

  test('delays the response of the winner by its own row only', async () => {
    await start();
    upstreams.play([stream('one', HEDGE_MS + 100)], [stream('two', 60_000)]);
    const reply = upstreams.send();
    await upstreams.clock.advanceUntil(() => upstreams.one.served.length === 1, 10, HEDGE_MS);
    upstreams.ledger.held = ['openAttempt'];
    expect(readText(await upstreams.clock.until(reply)).text).toBe(TEXTS.one);
    upstreams.ledger.release();
    expect(upstreams.gateway.services.keeping).toMatchObject({ late: [] });
  });
});

describe('with a budget', () => {
  test('a request is sent when its row is durable, and not before', async () => {
    await start({ policy: BUDGET });
    upstreams.play([stream('one', 1)], []);
    upstreams.ledger.held = ['openAttempt'];
    const reply = upstreams.send();
    await eventually(() => upstreams.ledger.isWaiting('openAttempt'));
    await upstreams.clock.advance(10);
    expect(upstreams.one.served).toEqual([]);
    upstreams.ledger.release();
    expect(readText(await upstreams.clock.until(reply)).text).toBe(TEXTS.one);
    await upstreams.expectNothingHeld();
  });

  test('a second request that waits for its row is not sent when the first upstream responds', async () => {
    await start({ policy: BUDGET });
    upstreams.play([stream('one', HEDGE_MS + 100)], [stream('two', 1)]);
    const reply = upstreams.send();
    await upstreams.clock.advanceUntil(() => upstreams.one.served.length === 1, 10, HEDGE_MS);
    upstreams.ledger.held = ['openAttempt'];
    expect(readText(await upstreams.clock.until(reply)).text).toBe(TEXTS.one);
    expect(upstreams.two.served).toEqual([]);
    expect(upstreams.attempts).toMatchObject([
      { number: 2, ending: 'hedge_lost', possibly_billed: false, cost_micros: null },
      { number: 1, ending: 'answered' },
    ]);
    upstreams.ledger.release();
    await upstreams.expectNothingHeld();
  });

  test('a client that leaves while the row is written causes no request', async () => {
    await start({ policy: BUDGET });
    upstreams.play([stream('one', 1)], []);
    upstreams.ledger.held = ['openAttempt'];
    const client = await upstreams.open();
    await eventually(() => upstreams.ledger.isWaiting('openAttempt'));
    client.reset();
    await upstreams.expectNothingHeld();
    upstreams.ledger.release();
    await upstreams.clock.advance(10);
    expect(upstreams.one.served).toEqual([]);
    expect(upstreams.attempts).toMatchObject([{ ending: 'client_aborted', possibly_billed: false }]);
  });
});

test('without a budget a request is sent while its row is written', async () => {
  await start();
  upstreams.play([stream('one', 1)], []);
  upstreams.ledger.held = ['openAttempt'];
  const reply = upstreams.send();
  await eventually(() => upstreams.one.served.length === 1);
  upstreams.ledger.release();
  expect(readText(await upstreams.clock.until(reply)).text).toBe(TEXTS.one);
});
