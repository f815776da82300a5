// Whatever two upstreams, the limits and the ledger do, and whenever they do it: the client reads one response.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Script } from '../gateway/faultd.ts';
import type { Reply } from '../gateway/http.ts';
import { cutStream, HEDGE_MS, type Name, readText, refusal, stream, TEXTS, TwoUpstreams } from './two-upstreams.ts';

const RUNS = process.env['SLUICE_EVERY_BYTE'] === '1' ? 1000 : 60;

const BUDGET = { budgets: [{ micros: 1_000_000_000, period: 'total' }], concurrency: 1 } as const;

type Behaviour =
  | { is: 'stream'; ms: number; gapMs: number }
  | { is: 'cut'; ms: number; gapMs: number; count: number }
  | { is: 'refusal'; ms: number; status: number; after: string | undefined };

const delay = fc.oneof(fc.integer({ min: 1, max: 3 * HEDGE_MS }), fc.integer({ min: HEDGE_MS - 5, max: HEDGE_MS + 250 }));

const gap = fc.constantFrom(0, 1, 90);

const behaviour: fc.Arbitrary<Behaviour> = fc.oneof(
  fc.record({ is: fc.constant('stream' as const), ms: delay, gapMs: gap }),
  fc.record({ is: fc.constant('cut' as const), ms: delay, gapMs: gap, count: fc.integer({ min: 0, max: 9 }) }),
  fc.record({
    is: fc.constant('refusal' as const),
    ms: delay,
    status: fc.constantFrom(404, 429, 503),
    after: fc.constantFrom(undefined, '0', '1', '6'),
  }),
);

const plan = fc.record({
  one: fc.array(behaviour, { minLength: 1, maxLength: 3 }),
  two: fc.array(behaviour, { minLength: 1, maxLength: 3 }),
  raiseMs: fc.constantFrom(0, 1, 120, 3 * HEDGE_MS),
});

function toScript(name: Name, way: Behaviour): Script {
  if (way.is === 'stream') return stream(name, way.ms, way.gapMs);
  if (way.is === 'cut') return cutStream(name, way.ms, way.count, way.gapMs);
  return refusal(way.status, way.ms, way.after === undefined ? {} : { 'retry-after': way.after });
}

const toScripts = (name: Name, ways: readonly Behaviour[]): Script[] => ways.map((way) => toScript(name, way));

/** The upstream that a text comes from. */
const sourceOf = (text: string): Name => (text.startsWith('a') ? 'one' : 'two');

/** What a client may read: a beginning of one text, all of it when the response is complete, and one end. */
function expectOneSource(reply: Reply): void {
  const { text, complete, error } = readText(reply);
  const whole = TEXTS[sourceOf(text)];
  expect(whole.startsWith(text)).toBe(true);
  if (complete) expect({ text, error }).toEqual({ text: whole, error: null });
}

/** No more requests than `limits.retries` allows. */
const expectBounded = ({ served, gateway }: TwoUpstreams): void =>
  expect(served.length).toBeLessThanOrEqual(gateway.services.limits.retries + 1);

function expectRow(upstreams: TwoUpstreams, reply: Reply): void {
  const [row] = upstreams.ledger.ended;
  const text = reply.status === 200 ? readText(reply).text : '';
  if (text === '') return;
  const provider = sourceOf(text);
  expect(reply.headers['x-sluice-provider']).toBe(provider);
  expect(row).toMatchObject({ provider, model: provider === 'one' ? 'm1' : 'm2' });
  if (readText(reply).complete) {
    expect(row).toMatchObject({ ending: 'answered' });
    expect(upstreams.attempts.filter(({ ending }) => ending === 'answered')).toHaveLength(1);
  }
}

describe.each([
  { name: 'with a budget and one request at a time', policy: BUDGET },
  { name: 'without limits', policy: {} },
])('$name', ({ policy }) => {
  let upstreams: TwoUpstreams;

  beforeAll(async () => {
    upstreams = await TwoUpstreams.start({ policy, recovery: { retry_same_target: '2s' } });
  });

  afterAll(() => upstreams.stop());

  test('a client reads one upstream, nothing is held afterwards, and the row names who responded', async () => {
    await fc.assert(
      fc.asyncProperty(plan, async ({ one, two, raiseMs }) => {
        upstreams.raiseMs = raiseMs;
        upstreams.play(toScripts('one', one), toScripts('two', two));
        const reply = await upstreams.request();
        if (reply.status === 200) expectOneSource(reply);
        expectBounded(upstreams);
        expectRow(upstreams, reply);
        await upstreams.expectNothingHeld();
      }),
      { numRuns: RUNS },
    );
  }, 300_000);
});

describe('with continuation', () => {
  let upstreams: TwoUpstreams;

  beforeAll(async () => {
    upstreams = await TwoUpstreams.start({ policy: BUDGET, recovery: { on_break: 'continue' } });
  });

  afterAll(() => upstreams.stop());

  test('a later upstream only follows an earlier one, and an end comes once', async () => {
    await fc.assert(
      fc.asyncProperty(plan, async ({ one, two, raiseMs }) => {
        upstreams.raiseMs = raiseMs;
        upstreams.play(toScripts('one', one), toScripts('two', two));
        const reply = await upstreams.request();
        if (reply.status === 200) {
          const { text, complete, error } = readText(reply);
          // Each attempt has sent the words of one upstream, in their order.
          const parts = text.match(/(?:a[1-6. ]+)+|(?:b[1-6. ]+)+/g) ?? [];
          expect(parts.length).toBeLessThanOrEqual(upstreams.served.length);
          expect(text).toMatch(/^(?:[ab][1-6][ .]?)*$/);
          expect(reply.body.toString().match(/\[DONE\]/g) ?? []).toHaveLength(complete && error === null ? 1 : 0);
        }
        expectBounded(upstreams);
        await upstreams.expectNothingHeld();
      }),
      { numRuns: RUNS },
    );
  }, 300_000);
});
