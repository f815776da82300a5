import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { errorOf, framesOf, readStream, TEXT } from '../gateway/dialects.ts';
import { Faultd, type Script } from '../gateway/faultd.ts';
import { chunk, LAST_CHUNK, type Reply, streamHead, whole } from '../gateway/http.ts';
import { ask, eventually, type Started, startGateway } from '../gateway/start.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { createHeldKeeping, HeldLedger } from '../ledger/held-ledger.ts';

// recovery.hedge_after: a second target is asked when the first is slow.

const HEDGE_MS = 2000;
const clock = new TestClock();
let first: Faultd;
let second: Faultd;
let ledger: HeldLedger;
let gateway: Started;

const start = (limits: object = {}): Promise<Started> =>
  startGateway({
    clock,
    config: {
      providers: {
        one: { protocol: 'openai-chat', base_url: `${first.url}/v1`, api_key: 'k' },
        two: { protocol: 'anthropic-messages', base_url: second.url, api_key: 'k' },
      },
      models: { m: ['one/m', 'two/m'] },
      recovery: { hedge_after: `${HEDGE_MS}ms`, on_break: 'continue' },
      limits: { first_event_timeout: '1h', response_timeout: '1h', hold: '1h', ...limits },
    },
    services: (made) => ({ ...made, keeping: createHeldKeeping(ledger, { clock }) }),
  });

beforeAll(async () => {
  first = await Faultd.start(clock);
  second = await Faultd.start(clock);
});

beforeEach(async () => {
  await gateway?.close();
  ledger = new HeldLedger();
  gateway = await start();
});

afterAll(async () => {
  await gateway.close();
  await first.stop();
  await second.stop();
});

/** A good response whose first content arrives after this time. */
const slow = (protocol: 'openai-chat' | 'anthropic-messages', ms: number): Script => [
  { send: streamHead() },
  { wait: ms },
  { send: chunk(framesOf(protocol).join('')) },
  { send: LAST_CHUNK },
];

const failing = (ms: number): Script => [
  { wait: ms },
  { send: whole(404, errorOf('anthropic-messages', { code: 'NOT_FOUND', message: 'none', http_status: 404 }).body) },
];

const request = (): Promise<Reply> => clock.until(ask(gateway.url, { client: 'openai-chat', model: 'm', stream: true }));

const expectWhole = (reply: Reply): void =>
  expect(readStream('openai-chat', reply.body)).toMatchObject({ text: TEXT, complete: true, error: null });

const endings = (): unknown[] =>
  ledger.written.filter(({ write }) => write === 'settleAttempt').map(({ row }) => (row as { ending: string }).ending);

describe('a stream without content', () => {
  test('is not hedged when it is fast enough', async () => {
    first.play(slow('openai-chat', HEDGE_MS - 1));
    second.play(slow('anthropic-messages', 0));
    expectWhole(await request());
    expect(second.served).toHaveLength(0);
  });

  test('is also requested from the next target, whose content wins; the first request is cancelled and recorded', async () => {
    first.play(slow('openai-chat', 60_000));
    second.play(slow('anthropic-messages', 10));
    const reply = await request();
    expectWhole(reply);
    expect(reply.headers).toMatchObject({ 'x-sluice-provider': 'two', 'x-sluice-attempts': '2' });
    await eventually(() => first.served[0]?.isClosed);
    expect(endings()).toEqual(expect.arrayContaining(['hedge_lost', 'answered']));
    const lost = ledger.written.find(({ row }) => (row as { ending?: string }).ending === 'hedge_lost');
    expect(lost?.row).toMatchObject({ number: 1, provenance: 'estimated', possibly_billed: true });
    expect(gateway.log().some(({ msg }) => msg === 'no content yet; requesting the next target, too')).toBe(true);
  });

  test('is taken from the first target when that is faster after all', async () => {
    first.play(slow('openai-chat', HEDGE_MS + 10));
    second.play(slow('anthropic-messages', 60_000));
    const reply = await request();
    expectWhole(reply);
    expect(reply.headers).toMatchObject({ 'x-sluice-provider': 'one', 'x-sluice-attempts': '2' });
    await eventually(() => second.served[0]?.isClosed);
  });

  test('is taken from the target that does not fail', async () => {
    first.play(slow('openai-chat', HEDGE_MS + 500));
    second.play(failing(10));
    expectWhole(await request());
    first.play(failing(HEDGE_MS + 10));
    second.play(slow('anthropic-messages', 500));
    expectWhole(await request());
  });

  test('is an error when both fail', async () => {
    first.play(failing(HEDGE_MS + 10));
    second.play(failing(10));
    expect((await request()).status).toBe(404);
  });

  test('is not hedged when no attempt is left for it', async () => {
    await gateway.close();
    gateway = await start({ retries: 0 });
    first.play(slow('openai-chat', HEDGE_MS + 10));
    second.play(slow('anthropic-messages', 0));
    expectWhole(await request());
    expect(second.served).toHaveLength(0);
  });
});

test('text is neither lost nor repeated, whichever target is faster', async () => {
  const delay = fc.integer({ min: 0, max: 3 * HEDGE_MS });
  await fc.assert(
    fc.asyncProperty(delay, delay, async (one, two) => {
      first.play(slow('openai-chat', one));
      second.play(slow('anthropic-messages', two));
      expectWhole(await request());
      expect(first.served.length + second.served.length).toBeLessThanOrEqual(2);
    }),
    { numRuns: process.env['SLUICE_EVERY_BYTE'] === '1' ? 500 : 20 },
  );
});
