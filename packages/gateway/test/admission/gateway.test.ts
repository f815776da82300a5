/** Limits as clients see them: a gateway on loopback, a scripted upstream, and callers with limits. */
import { connect } from 'node:net';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { IS_NIGHT } from '../../../../test/night.ts';
import { tried } from '../../../../test/tries.ts';
import type { LimitBackend } from '../../src/admission/backend.ts';
import type { BudgetStatus } from '../../src/admission/gate.ts';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import type { Budget, Caller } from '../../src/keys/caller.ts';
import { createReadSpending } from '../../src/server/records.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { Faultd, type Script } from '../gateway/faultd.ts';
import { chunk, streamHead, whole } from '../gateway/http.ts';
import { eventually, type Started, type StartOptions } from '../gateway/start.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { closeBackends, createNode, createPrefix, SERVERS, stopServers } from './backends.ts';
import { type Answer, chat, send } from './client.ts';
import { answerWith, createCaller, startGated } from './start.ts';

/** One micro-dollar a token, so that costs can be read off the tokens. */
const PRICE = { input: '1', output: '1' };

const CHAT = '/v1/chat/completions';

const ends: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  await closeBackends();
});

afterAll(stopServers);

const KINDS = [
  { name: 'memory', options: {} },
  { name: 'redis', options: SERVERS.redis.options },
  // By day, its limits are tested in backend.test.ts, shared.test.ts and workers.test.ts.
  ...(IS_NIGHT ? [{ name: 'postgres', options: SERVERS.postgres.options } as const] : []),
] as const;

let kind: (typeof KINDS)[number]['name'] = 'memory';

/** The backend of this run; undefined for memory. */
async function createBackend({ store, clock }: Partial<StartOptions>): Promise<LimitBackend | undefined> {
  if (kind === 'memory') return undefined;
  let ahead = 0;
  const serverTime = () => Math.floor(SERVER_START + (clock ?? REAL_CLOCK).now() + ahead);
  const backend = await createNode(kind, {
    prefix: createPrefix(),
    nodes: 1,
    readSpending: createReadSpending(store, clock ?? REAL_CLOCK),
    serverTime,
  });
  // A new epoch is ready after half a second.
  ahead = 1000;
  return backend;
}

const SERVER_START = 1_700_000_000_000;

async function start(
  callers: readonly Caller[],
  config: object = {},
  options: Partial<StartOptions> = {},
  settings: object = {},
) {
  const upstream = await Faultd.start(options.clock);
  ends.push(() => upstream.stop());
  const at = { base_url: `${upstream.url}/v1`, api_key: 'k', ...settings };
  const providers = {
    up: { protocol: 'openai-chat', ...at, repair: false },
    second: { protocol: 'openai-chat', ...at, repair: false },
    an: { protocol: 'anthropic-messages', base_url: upstream.url, api_key: 'k' },
    ge: { protocol: 'gemini', base_url: `${upstream.url}/v1beta`, api_key: 'k' },
  };
  const limitBackend = await createBackend(options);
  const gateway = await startGated(callers, {
    config: { providers, default_price: PRICE, ...config },
    limitBackend,
    ...options,
  });
  ends.push(() => gateway.close());
  return { upstream, gateway, ask: (key: string, body: object = chat('up/m')) => send(gateway.url, CHAT, { key, body }) };
}

/** A store that sums up what was spent by this function. */
const withSpending = (store: Store, spending: Store['spending']): Store =>
  new Proxy(store, {
    get: (target, name: keyof Store) => {
      if (name === 'spending') return spending;
      const value = target[name];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });

async function createStore(): Promise<Store> {
  const store = await openStore({ folder: null });
  ends.push(() => store.close());
  return store;
}

const budget = (micros: number, period: Budget['period'] = 'total'): { budgets: Budget[] } => ({ budgets: [{ micros, period }] });

/** What a request of `chat` reserves: its bytes, and its output. */
const reserveOf = (body: object): number => JSON.stringify(body).length + (body as { max_tokens: number }).max_tokens;

const count = (answers: readonly Answer[], status: number): number => answers.filter((answer) => answer.status === status).length;

const listBudgets = async ({ services }: Started): Promise<BudgetStatus[]> => services.gate.list([]);

/** Answers when the test says so. */
function hold(answer: Buffer): { script: Script; release: () => void } {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { script: [{ run: () => released }, { send: answer }], release: () => release() };
}

/** All requests have ended, and the backend knows it: a list is read after the endings that were sent before. */
async function idle(gateway: Started): Promise<void> {
  await eventually(() => gateway.services.streams.count === 0);
  await listBudgets(gateway);
}

describe.each(KINDS)('limits in $name', ({ name, options }) => {
  beforeEach(() => {
    kind = name;
  });

  describe('as clients see them', options, () => {
    describe('concurrency', () => {
      test.each([
        [4, 4],
        [5, 5],
        [6, 5],
        [50, 5],
      ])('%d requests at the same time with a limit of 5', async (requests, admitted) => {
        const { upstream, gateway, ask } = await start([
          createCaller('a', { concurrency: 5 }),
          createCaller('b', { concurrency: 1 }),
        ]);
        const { script, release } = hold(answerWith(1, 1));
        upstream.play(script);
        const answers = Array.from({ length: requests }, () => ask('a'));
        await eventually(() => upstream.served.length === admitted && gateway.services.streams.count === admitted);
        // Another key has slots of its own.
        const other = ask('b');
        await eventually(() => upstream.served.length === admitted + 1);
        release();
        const all = await Promise.all(answers);
        expect([count(all, 200), count(all, 429)]).toEqual([admitted, requests - admitted]);
        expect((await other).status).toBe(200);
        await idle(gateway);
        expect((await ask('a')).status).toBe(200);
      });

      test('the refusal names the limit, and when to retry', async () => {
        const { upstream, ask } = await start([createCaller('a', { concurrency: 1 })]);
        const { script, release } = hold(answerWith(1, 1));
        upstream.play(script);
        const first = ask('a');
        await eventually(() => upstream.served.length === 1);
        const { status, headers, json } = await ask('a');
        release();
        await first;
        expect([status, headers['retry-after'], json.error.type]).toEqual([429, '2', 'rate_limit_error']);
        expect(json.error.message).toBe(
          'this key allows 1 request at the same time, and that many are running; retry when one has ended',
        );
      });

      test('a slot is freed by every kind of end', async () => {
        const { upstream, gateway, ask } = await start([createCaller('a', { concurrency: 1 })], { limits: { retries: 0 } });
        const scripts: Script[] = [
          [{ send: answerWith(1, 1) }],
          [{ send: whole(500, '{}') }],
          [{ reset: true }],
          [{ send: 'not HTTP\r\n\r\n' }, { fin: true }],
          [
            { send: streamHead() },
            { send: chunk('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n') },
            { reset: true },
          ],
          [{ send: whole(400, '{"error":{"message":"no"}}') }],
        ];
        for (const script of scripts) {
          upstream.play(script);
          expect((await ask('a', chat('up/m', 10, { stream: script.length > 2 }))).status).not.toBe(429);
          await idle(gateway);
        }
        upstream.play([{ send: answerWith(1, 1) }]);
        expect((await ask('a', chat('nothing/m'))).status).toBe(404);
        expect((await ask('a')).status).toBe(200);
      });

      test('no slot and no reservation is left after 500 clients that leave at any point', async () => {
        tried(500);
        const { upstream, gateway, ask } = await start([createCaller('a', { concurrency: 8, ...budget(1e9) })]);
        upstream.play([
          { send: streamHead() },
          { send: chunk('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n') },
          { hang: true },
        ]);
        const { hostname, port } = new URL(gateway.url);
        const body = JSON.stringify(chat('up/m', 10, { stream: true }));
        const text = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
        /** Before the end of the request, when it is sent, at the first bytes of the response, or a turn later. */
        const leave = (index: number): Promise<void> =>
          new Promise((resolve) => {
            const socket = connect(Number(port), hostname, () => {
              socket.write(text.slice(0, index % 4 === 0 ? text.length - 10 : text.length), () => {
                if (index % 4 < 2) socket.destroy();
                else if (index % 4 === 3) setImmediate(() => socket.destroy());
              });
            });
            socket.once('data', () => socket.destroy());
            socket.on('error', () => undefined);
            socket.on('close', () => resolve());
          });
        for (let index = 0; index < 500; index += 25)
          await Promise.all(Array.from({ length: 25 }, (_, offset) => leave(index + offset)));
        await idle(gateway);
        const [status] = await listBudgets(gateway);
        expect(status?.reserved).toBe(0);
        const { script, release } = hold(answerWith(1, 1));
        upstream.play(script);
        const answers = Array.from({ length: 8 }, () => ask('a'));
        await eventually(() => upstream.served.length === 8);
        release();
        expect(count(await Promise.all(answers), 200)).toBe(8);
      }, 120_000);
    });

    describe('rates', () => {
      test.each([
        [9, 9],
        [10, 10],
        [11, 10],
      ])('%d requests with a limit of 10 per minute', async (requests, admitted) => {
        const { upstream, ask } = await start([createCaller('a', { requestsPerMinute: 10 })]);
        upstream.play([{ send: answerWith(1, 1) }]);
        const answers = await Promise.all(Array.from({ length: requests }, () => ask('a')));
        expect([count(answers, 200), count(answers, 429)]).toEqual([admitted, requests - admitted]);
      });

      test('responses show the rate of the key instead of that of the upstream', async () => {
        const clock = new TestClock();
        const { upstream, ask } = await start([createCaller('a', { requestsPerMinute: 2 }), createCaller('free')], {}, { clock });
        const headers = { 'x-ratelimit-remaining-requests': '9999', 'x-ratelimit-remaining-input': '7' };
        upstream.play([{ send: whole(200, answerWith(1, 1).subarray(answerWith(1, 1).indexOf('{')), headers) }]);
        const pick = ({ headers: sent }: Answer): (string | undefined)[] =>
          ['limit-requests', 'remaining-requests', 'reset-requests', 'remaining-input'].map(
            (name) => sent[`x-ratelimit-${name}`],
          );
        expect(pick(await ask('a'))).toEqual(['2', '1', '60s', '7']);
        await clock.advance(10_000);
        expect(pick(await ask('a'))).toEqual(['2', '0', '50s', '7']);
        const refused = await ask('a');
        expect(pick(refused)).toEqual(['2', '0', '50s', undefined]);
        expect([refused.status, refused.headers['retry-after']]).toEqual([429, '50']);
        expect(refused.json.error.message).toBe('this key allows 2 requests per minute and has sent 2; the limit resets in 50 s');
        expect(pick(await ask('free'))).toEqual([undefined, '9999', undefined, '7']);
        await clock.advance(50_000);
        expect((await ask('a')).status).toBe(200);
      });

      test('tokens are reserved by an estimate and corrected by the reported usage', async () => {
        const clock = new TestClock();
        const { upstream, gateway, ask } = await start([createCaller('a', { tokensPerMinute: 1000 })], {}, { clock });
        upstream.play([{ send: answerWith(5, 5) }]);
        const body = chat('up/m', 600);
        for (let request = 0; request < 3; request++) {
          expect((await ask('a', body)).status).toBe(200);
          await idle(gateway);
        }
        upstream.play([{ send: answerWith(900, 500) }]);
        expect((await ask('a', body)).status).toBe(200);
        await idle(gateway);
        const refused = await ask('a', chat('up/m', 1));
        expect(refused.json.error.message).toMatch(
          /^this key allows 1000 tokens per minute and has used 1430; this request needs about \d+\./,
        );
        expect(refused.headers['x-ratelimit-remaining-tokens']).toBe('0');
        await clock.advance(60_000);
        upstream.play([{ send: answerWith(5, 5) }]);
        // More than the whole limit: admitted when nothing else is used.
        expect((await ask('a', chat('up/m', 5000))).status).toBe(200);
      });

      test('a request that a later limit refuses counts neither as a request nor as tokens', async () => {
        const policy = { requestsPerMinute: 2, tokensPerMinute: 100_000, concurrency: 2, ...budget(500) };
        const { upstream, gateway, ask } = await start([createCaller('a', policy)]);
        upstream.play([{ send: answerWith(1, 1) }]);
        for (let request = 0; request < 5; request++)
          expect((await ask('a', chat('up/m', 1000))).json.error.code).toBe('insufficient_quota');
        const { headers, status } = await ask('a');
        expect([status, headers['x-ratelimit-remaining-requests']]).toEqual([200, '1']);
        await idle(gateway);
        expect((await ask('a')).status).toBe(200);
      });
    });

    describe('budgets', () => {
      test('500 parallel requests at the last cent spend no more than the budget', async () => {
        tried(500);
        const store = await createStore();
        const body = chat('up/m');
        const unit = reserveOf(body);
        const { upstream, gateway, ask } = await start([createCaller('a', budget(10 * unit + unit - 1))], {}, { store });
        const { script, release } = hold(answerWith(unit - 100, 100));
        upstream.play(script);
        const answers = Array.from({ length: 500 }, () => ask('a', body));
        await eventually(() => upstream.served.length === 10 && gateway.services.streams.count === 10);
        expect(await listBudgets(gateway)).toMatchObject([{ spent: 0, reserved: 10 * unit, left: unit - 1 }]);
        release();
        const all = await Promise.all(answers);
        expect([count(all, 200), count(all, 429)]).toEqual([10, 490]);
        expect(all.find(({ status }) => status === 429)?.headers['retry-after']).toBe('2');
        await idle(gateway);
        expect(await listBudgets(gateway)).toMatchObject([{ spent: 10 * unit, reserved: 0, left: unit - 1 }]);
        await store.flush();
        expect(await store.spending({ by: 'key', of: 'id-of-a', since: 0 })).toBe(10 * unit);
        const last = await ask('a', body);
        expect([last.status, last.headers['x-should-retry'], last.json.error.code]).toEqual([429, 'false', 'insufficient_quota']);
        expect(last.headers['retry-after']).toBeUndefined();
      }, 120_000);

      test.each([-1, 0, 1])('a budget of one request and %d micro-dollars', async (more) => {
        const body = chat('up/m');
        const { upstream, ask } = await start([createCaller('a', budget(reserveOf(body) + more))]);
        upstream.play([{ send: answerWith(1, 1) }]);
        expect((await ask('a', body)).status).toBe(more < 0 ? 429 : 200);
      });

      test('a response that costs more than reserved is an overrun: counted, shown and deducted', async () => {
        const { upstream, gateway, ask } = await start([createCaller('a', budget(1000))]);
        upstream.play([{ send: answerWith(700, 500) }]);
        expect((await ask('a')).status).toBe(200);
        await idle(gateway);
        expect(await listBudgets(gateway)).toMatchObject([{ spent: 1200, reserved: 0, left: 0 }]);
        const refused = await ask('a');
        expect(refused.json.error.message).toMatch(
          /^the budget of this key is spent: limit 0\.001 USD per total, spent 0\.0012, reserved by running requests 0, left 0\. This request may cost up to 0\.000\d+ USD$/,
        );
        const text = await gateway.services.metrics.text();
        expect(text).toContain('sluice_budget_overruns_total 1');
        expect(text).toContain('sluice_limit_refusals_total{limit="budget"} 1');
        expect(text).toContain('sluice_budget_reservations 0');
        expect(gateway.log().some(({ msg }) => msg === 'a request cost more than reserved')).toBe(true);
      });

      test('a response without usage is charged by the estimate of the ledger', async () => {
        const store = await createStore();
        const { upstream, gateway, ask } = await start([createCaller('a', budget(1000))], {}, { store });
        const choice = { index: 0, message: { role: 'assistant', content: 'word '.repeat(20) }, finish_reason: 'stop' };
        upstream.play([
          { send: whole(200, JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [choice] })) },
        ]);
        expect((await ask('a')).status).toBe(200);
        await idle(gateway);
        const [status] = await listBudgets(gateway);
        expect(status?.spent).toBeGreaterThan(20);
        await store.flush();
        expect(await store.spending({ by: 'key', of: 'id-of-a', since: 0 })).toBe(status?.spent);
      });

      test('an attempt that may be billed and reported nothing is charged for its input, also after a restart', async () => {
        const store = await createStore();
        const { upstream, gateway, ask } = await start([createCaller('a', budget(5000))], { limits: { retries: 0 } }, { store });
        upstream.play([{ send: whole(504, '{"error":{"message":"late"}}') }]);
        expect((await ask('a')).status).toBe(504);
        await idle(gateway);
        const [status] = await listBudgets(gateway);
        expect(status?.spent).toBeGreaterThan(0);
        await store.flush();
        const { exchanges } = await store.list();
        expect(exchanges).toMatchObject([{ cost_micros: null, assumed_micros: status?.spent, possibly_billed: true }]);
        expect(await store.spending({ by: 'key', of: 'id-of-a', since: 0 })).toBe(status?.spent);
      });

      test('a response with status 200 that cannot be used is charged once', async () => {
        const { upstream, gateway, ask } = await start([createCaller('a', budget(100_000))]);
        for (const body of ['{"choices":"x"}', '{"id":"x"}', 'oops']) {
          upstream.play([{ send: whole(200, body) }]);
          const before = (await listBudgets(gateway))[0]?.spent ?? 0;
          expect((await ask('a', chat('an/m'))).status).toBe(502);
          await idle(gateway);
          expect(upstream.served).toHaveLength(1);
          expect((await listBudgets(gateway))[0]?.spent).toBeGreaterThan(before);
        }
      });

      test('a failure that is not billed costs nothing', async () => {
        const { upstream, gateway, ask } = await start([createCaller('a', budget(1000))]);
        upstream.play([{ send: whole(401, '{"error":{"message":"no"}}') }]);
        expect((await ask('a')).status).toBe(401);
        await idle(gateway);
        expect(await listBudgets(gateway)).toMatchObject([{ spent: 0, reserved: 0 }]);
      });

      test('a retry after an attempt that may be billed needs room for both', async () => {
        const body = chat('both', 100);
        const unit = reserveOf(body);
        const models = { models: { both: ['up/m', 'second/m'] } };
        const run = async (micros: number): Promise<number[]> => {
          const { upstream, gateway, ask } = await start([createCaller('a', budget(micros))], models);
          upstream.play([{ send: whole(504, '{"error":{"message":"late"}}') }], [{ send: answerWith(1, 1) }]);
          const { status } = await ask('a', body);
          await idle(gateway);
          return [status, upstream.served.length];
        };
        expect(await run(3 * unit)).toEqual([200, 2]);
        expect(await run(unit)).toEqual([504, 1]);
      });

      test('a retry after an attempt that is not billed needs no more', async () => {
        const body = chat('both', 100);
        const { upstream, ask } = await start([createCaller('a', budget(reserveOf(body)))], {
          models: { both: ['up/m', 'second/m'] },
        });
        upstream.play([{ send: whole(503, '{"error":{"message":"busy"}}') }], [{ send: answerWith(1, 1) }]);
        expect((await ask('a', body)).status).toBe(200);
        expect(upstream.served.length).toBe(2);
      });

      test('a client that leaves is charged for what has arrived, and its reservation is released', async () => {
        const { upstream, gateway } = await start([createCaller('a', budget(100_000))]);
        upstream.play([
          { send: streamHead() },
          { send: chunk(`data: {"choices":[{"index":0,"delta":{"content":"${'word '.repeat(100)}"}}]}\n\n`) },
          { hang: true },
        ]);
        const controller = new AbortController();
        const response = await fetch(`${gateway.url}${CHAT}`, {
          method: 'POST',
          headers: { authorization: 'Bearer a', 'content-type': 'application/json' },
          body: JSON.stringify(chat('up/m', 5000, { stream: true })),
          signal: controller.signal,
        });
        await response.body?.getReader().read();
        expect(await listBudgets(gateway)).toMatchObject([{ spent: 0 }]);
        controller.abort();
        await idle(gateway);
        const [status] = await listBudgets(gateway);
        expect(status?.reserved).toBe(0);
        expect(status?.spent).toBeGreaterThanOrEqual(125);
        expect(status?.spent).toBeLessThan(1000);
      });

      test('the price of every target must be known', async () => {
        const config = { default_price: undefined, prices: { 'up/*': PRICE }, models: { both: ['up/m', 'second/m'] } };
        const { upstream, ask } = await start([createCaller('a', budget(1e6)), createCaller('free')], config);
        upstream.play([{ send: answerWith(1, 1) }]);
        expect((await ask('a')).status).toBe(200);
        const refused = await ask('a', chat('both'));
        expect(refused.status).toBe(403);
        expect(refused.headers['x-should-retry']).toBe('false');
        expect(refused.json.error.message).toBe(
          'the price of model "second/m" is not known, and a budget applies to this request; set its price under prices, or default_price',
        );
        expect((await ask('free', chat('both'))).status).toBe(200);
        expect(upstream.served.length).toBe(2);
      });

      test('a model that is free is admitted when the budget is spent', async () => {
        const { upstream, ask } = await start([createCaller('a', budget(0))], { prices: { 'second/*': 'free' } });
        upstream.play([{ send: answerWith(1, 1) }]);
        expect([(await ask('a')).status, (await ask('a', chat('second/m'))).status]).toEqual([429, 200]);
      });

      test('what has another price is refused, unless the model is free or no budget applies', async () => {
        const callers = [createCaller('a', budget(1e9)), createCaller('free')];
        const { upstream, ask } = await start(callers, { prices: { 'second/*': 'free' } });
        upstream.play([{ send: answerWith(1, 1) }]);
        const refused = await ask('a', chat('up/m', 10, { service_tier: 'priority' }));
        expect(refused.status).toBe(403);
        expect(refused.headers['x-should-retry']).toBe('false');
        expect(refused.json.error.message).toBe(
          'the price of service_tier "priority" is not known, and a budget applies to this request; leave it out, or use a key without a budget',
        );
        for (const more of [{ models: ['dear'] }, { route: 'fallback' }])
          expect((await ask('a', chat('up/m', 10, more))).json.error.message).toContain('lets other models respond');
        expect((await ask('a', chat('up/m', 10, { service_tier: 'flex' }))).status).toBe(200);
        expect((await ask('a', chat('second/m', 10, { service_tier: 'priority' }))).status).toBe(200);
        expect((await ask('free', chat('up/m', 10, { service_tier: 'priority' }))).status).toBe(200);
        expect(upstream.served.length).toBe(3);
      });

      test.each(['team=größe', 'team=営業', 'team=search'])('a budget of the tag %s holds, also after a restart', async (tag) => {
        const store = await createStore();
        const body = chat('up/m');
        const tags = Array.from({ length: 16 }, (_, index) => `t${index}=1`);
        const config = { budgets: [{ tag, limit: `0.${String(reserveOf(body) + 50).padStart(6, '0')}usd/month` }] };
        const sent = { key: 'a', body, headers: { 'x-sluice-tags': Buffer.from(tag).toString('latin1') } };
        const first = await start([createCaller('a', {}, tags)], config, { store });
        first.upstream.play([{ send: answerWith(60, 20) }]);
        expect((await send(first.gateway.url, CHAT, sent)).status).toBe(200);
        await idle(first.gateway);
        expect((await send(first.gateway.url, CHAT, sent)).status).toBe(429);
        await store.flush();
        expect(await store.spending({ by: 'tag', of: tag, since: 0 })).toBe(80);
        const second = await start([createCaller('a', {}, tags)], config, { store });
        second.upstream.play([{ send: answerWith(60, 20) }]);
        expect((await send(second.gateway.url, CHAT, sent)).status).toBe(429);
      });

      test('a cached response costs nothing, and is sent when the budget is spent', async () => {
        const callers = [createCaller('rich'), createCaller('poor', { ...budget(0), requestsPerMinute: 2 })];
        const { upstream, ask } = await start(callers, { cache: { scope: 'shared' } });
        upstream.play([{ send: answerWith(1, 1) }]);
        expect((await ask('rich')).status).toBe(200);
        const cached = await ask('poor');
        expect([cached.status, cached.headers['x-sluice-cache'], cached.text.includes('One.')]).toEqual([200, 'hit', true]);
        expect((await ask('poor', chat('up/m', 10, { seed: 7 }))).json.error.code).toBe('insufficient_quota');
        // It counts as a request.
        expect((await ask('poor')).status).toBe(200);
        expect((await ask('poor')).headers['retry-after']).toBe('60');
        expect(upstream.served.length).toBe(1);
      });

      test('a tag has a budget for all keys together, and errors name no key', async () => {
        const body = chat('up/m');
        const unit = reserveOf(body);
        const config = { budgets: [{ tag: 'team=a', limit: `0.${String(2 * unit).padStart(6, '0')}usd/month` }] };
        const callers = [createCaller('alice', {}, ['team=a']), createCaller('bob', {}, ['team=a']), createCaller('carol')];
        const { upstream, gateway, ask } = await start(callers, config);
        upstream.play([{ send: answerWith(unit - 10, 10) }]);
        expect((await ask('alice', body)).status).toBe(200);
        await idle(gateway);
        const tagged = { key: 'carol', body, headers: { 'x-sluice-tags': 'x=1, team=a' } };
        expect((await send(gateway.url, CHAT, tagged)).status).toBe(200);
        await idle(gateway);
        const refused = await ask('bob', body);
        expect(refused.status).toBe(429);
        expect(refused.json.error.message).toMatch(
          /^the budget of tag team=a is spent: .* it resets at \d{4}-\d\d-01T00:00:00\.000Z\./,
        );
        expect(refused.text).not.toMatch(/alice|carol|id-of/);
        expect((await ask('carol', body)).status).toBe(200);
      });

      test('what was spent before the start comes from the ledger', async () => {
        const store = await createStore();
        const body = chat('up/m');
        const caller = createCaller('a', budget(reserveOf(body) + 50, 'month'));
        const first = await start([caller], {}, { store });
        first.upstream.play([{ send: answerWith(40, 20) }]);
        expect((await first.ask('a', body)).status).toBe(200);
        await idle(first.gateway);
        const second = await start([caller], {}, { store });
        second.upstream.play([{ send: answerWith(40, 20) }]);
        const refused = await second.ask('a', body);
        expect([refused.status, refused.json.error.code]).toEqual([429, 'insufficient_quota']);
        expect(await listBudgets(second.gateway)).toMatchObject([{ spent: 60, reserved: 0 }]);
      });

      test('a ledger that cannot be read refuses requests with a budget, and no others', async () => {
        const broken = withSpending(await createStore(), () => Promise.reject(new Error('disk')));
        const { upstream, ask } = await start([createCaller('a', budget(1e6)), createCaller('free')], {}, { store: broken });
        upstream.play([{ send: answerWith(1, 1) }]);
        const refused = await ask('a');
        expect([refused.status, refused.headers['retry-after']]).toEqual([503, '2']);
        expect(refused.text).not.toContain('disk');
        expect((await ask('free')).status).toBe(200);
      });

      test('cost counts in the day of the admission, in the time zone of the operator', async () => {
        let now = Date.parse('2026-11-17T22:59:00Z');
        const body = chat('up/m');
        const callers = [createCaller('a', budget(reserveOf(body), 'day'))];
        const { upstream, gateway, ask } = await start(callers, { time_zone: 'Europe/Berlin' }, { wallClock: () => now });
        upstream.play([{ send: answerWith(40, 20) }]);
        expect((await ask('a', body)).status).toBe(200);
        await idle(gateway);
        const refused = await ask('a', body);
        expect(refused.json.error.message).toContain('it resets at 2026-11-17T23:00:00.000Z');
        now += 60_000;
        expect(await listBudgets(gateway)).toMatchObject([{ spent: 0, resetsAt: Date.parse('2026-11-18T23:00:00Z') }]);
        expect((await ask('a', body)).status).toBe(200);
      });
    });

    describe('every route that can reach an upstream passes the gate', () => {
      const messages = [{ role: 'user', content: 'hi' }];
      const text = [{ role: 'user', parts: [{ text: 'hi' }] }];
      const ROUTES: readonly [name: string, path: string, body: object, isCharged: boolean][] = [
        ['chat', CHAT, { model: 'up/m', messages }, true],
        ['chat stream', CHAT, { model: 'up/m', messages, stream: true }, true],
        ['messages', '/v1/messages', { model: 'up/m', max_tokens: 9, messages }, true],
        ['responses', '/v1/responses', { model: 'up/m', input: 'hi' }, true],
        ['gemini', '/v1beta/models/up/m:generateContent', { contents: text }, true],
        ['gemini stream', '/v1beta/models/up/m:streamGenerateContent?alt=sse', { contents: text }, true],
        ['messages to Anthropic', '/v1/messages', { model: 'an/m', max_tokens: 9, messages }, true],
        ['embeddings', '/v1/embeddings', { model: 'up/m', input: 'hi' }, true],
        ['Gemini embeddings', '/v1beta/models/ge/m:embedContent', { content: text[0] }, true],
        ['rerank', '/v1/rerank', { model: 'up/m', query: 'q', documents: ['d'] }, true],
        ['speech', '/v1/audio/speech', { model: 'up/m', input: 'hi', voice: 'v' }, true],
        ['transcription', '/v1/audio/transcriptions', { model: 'up/m' }, true],
        ['images', '/v1/images/generations', { model: 'up/m', prompt: 'p' }, true],
        ['image edits', '/v1/images/edits', { model: 'up/m', prompt: 'p' }, true],
        ['legacy completions, passed through', '/v1/completions', { model: 'up/m', prompt: 'p' }, true],
        ['moderations, passed through', '/v1/moderations', { model: 'up/m', input: 'p' }, true],
        ['batches, passed through', '/v1/batches', { endpoint: CHAT }, true],
        ['message batches, passed through', '/v1/messages/batches', { requests: [{ params: { model: 'an/m' } }] }, true],
        ['Gemini predict, passed through', '/v1beta/models/ge/m:predict', { instances: [] }, true],
        ['token counts of Anthropic', '/v1/messages/count_tokens', { model: 'an/m', messages }, false],
        ['token counts of Gemini', '/v1beta/models/ge/m:countTokens', { contents: text }, false],
      ];

      test.each(ROUTES)('%s', async (_, path, body, isCharged) => {
        const callers = [
          createCaller('poor', budget(0)),
          createCaller('slow', { requestsPerMinute: 0 }),
          createCaller('narrow', { concurrency: 0 }),
        ];
        const { upstream, gateway } = await start(callers);
        upstream.play([{ send: whole(200, '{}') }]);
        for (const key of ['slow', 'narrow']) {
          const { status, headers } = await send(gateway.url, path, { key, body });
          expect([key, status, Number(headers['retry-after']) > 0]).toEqual([key, 429, true]);
        }
        expect(upstream.served).toEqual([]);
        const { status } = await send(gateway.url, path, { key: 'poor', body });
        // 400, 402 and 429 are a spent budget, 403 a cost that cannot be known.
        if (isCharged) expect([400, 402, 403, 429]).toContain(status);
        expect(upstream.served.length > 0).toBe(!isCharged);
      });

      test('reading and deleting costs nothing, but counts as a request', async () => {
        const callers = [createCaller('poor', budget(0)), createCaller('slow', { requestsPerMinute: 0 })];
        const { upstream, gateway } = await start(callers, {}, {}, { passthrough: 'all' });
        upstream.play([{ send: whole(200, '{}') }]);
        for (const method of ['GET', 'DELETE']) {
          expect((await send(gateway.url, '/v1/files/f', { key: 'slow', method })).status).toBe(429);
          expect((await send(gateway.url, '/v1/files/f', { key: 'poor', method })).status).toBe(200);
        }
        expect((await send(gateway.url, '/v1/anything', { key: 'poor', body: { model: 'up/m' } })).json.error.message).toBe(
          'the cost of POST /v1/anything is not known, and a budget applies to this request; use a key without a budget',
        );
        expect(upstream.served.length).toBe(2);
      });
    });

    describe('refusals in the protocol of the client', () => {
      const messages = [{ role: 'user', content: 'hi' }];
      const ROWS = [
        [
          'openai-chat',
          CHAT,
          { model: 'up/m', messages },
          429,
          (json: Answer['json']) => json.error.code,
          'insufficient_quota',
          'rate_limit_exceeded',
        ],
        [
          'openai-responses',
          '/v1/responses',
          { model: 'up/m', input: 'hi' },
          429,
          (json: Answer['json']) => json.error.code,
          'insufficient_quota',
          'rate_limit_exceeded',
        ],
        [
          'anthropic-messages',
          '/v1/messages',
          { model: 'up/m', max_tokens: 9, messages },
          402,
          (json: Answer['json']) => json.error.type,
          'billing_error',
          'rate_limit_error',
        ],
        [
          'gemini',
          '/v1beta/models/up/m:generateContent',
          { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
          400,
          (json: Answer['json']) => json.error.status,
          'FAILED_PRECONDITION',
          'RESOURCE_EXHAUSTED',
        ],
      ] as const;

      test.each(ROWS)('%s', async (client, path, body, status, read, spent, limited) => {
        const { gateway } = await start([createCaller('poor', budget(0)), createCaller('slow', { requestsPerMinute: 0 })]);
        const poor = await send(gateway.url, path, { key: 'poor', body });
        expect([poor.status, read(poor.json), poor.headers['retry-after']]).toEqual([status, spent, undefined]);
        if (client !== 'gemini') expect(poor.headers['x-should-retry']).toBe('false');
        const slow = await send(gateway.url, path, { key: 'slow', body });
        expect([slow.status, read(slow.json), slow.headers['retry-after']]).toEqual([429, limited, '60']);
      });
    });
  });
});

test('a request with a budget waits 5 s for a ledger that does not respond', async () => {
  const clock = new TestClock();
  const frozen = withSpending(await createStore(), () => new Promise(() => {}));
  const account = { by: 'tag', of: 'a', name: 'a', period: 'total', micros: 1, window: { start: 0, end: 1 } } as const;
  const failure = Promise.resolve(createReadSpending(frozen, clock)(account, 0)).catch(String);
  expect(await clock.after(5000, failure)).toContain('the ledger did not respond within 5 s');
});
