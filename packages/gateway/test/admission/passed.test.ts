/** Budgets of requests that are only passed on: what was reserved, reported and charged. */
import { afterEach, describe, expect, test } from 'vitest';
import type { Budget } from '../../src/keys/caller.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { Faultd, type Script } from '../gateway/faultd.ts';
import { chunk, LAST_CHUNK, streamHead, whole } from '../gateway/http.ts';
import { eventually, type Started } from '../gateway/start.ts';
import { send } from './client.ts';
import { createCaller, startGated } from './start.ts';

const ends: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const budget = (micros: number): { budgets: Budget[] } => ({ budgets: [{ micros, period: 'total' }] });

/** A gateway with a key `a`; a token of input costs a micro-dollar, one of output ten. */
async function start(policy: object, store?: Store) {
  const upstream = await Faultd.start();
  ends.push(() => upstream.stop());
  const gateway = await startGated([createCaller('a', policy)], {
    config: {
      providers: { up: { protocol: 'openai-chat', base_url: `${upstream.url}/v1`, api_key: 'k' } },
      default_price: { input: '1', output: '10' },
    },
    ...(store && { store }),
  });
  ends.push(() => gateway.close());
  const ask = (path: string, body: object) => send(gateway.url, path, { key: 'a', body: { model: 'up/m', ...body } });
  return { upstream, gateway, ask };
}

async function readBudget({ services }: Started) {
  await eventually(() => services.streams.count === 0);
  const [status] = await services.gate.list([]);
  return status;
}

const USAGE = { prompt_tokens: 3, completion_tokens: 64, total_tokens: 67 };

const completion = (more: object): string =>
  JSON.stringify({
    id: 'c',
    object: 'text_completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, text: '"usage":{' }],
    ...more,
  });

const stream = (...events: object[]): Script => [
  { send: streamHead() },
  ...events.map((event) => ({ send: chunk(`data: ${JSON.stringify(event)}\n\n`) })),
  { send: chunk('data: [DONE]\n\n') },
  { send: LAST_CHUNK },
];

describe('completions', () => {
  test.each<[name: string, script: Script]>([
    ['a whole response', [{ send: whole(200, completion({ usage: USAGE })) }]],
    ['a whole response in single bytes', [{ split: whole(200, completion({ usage: USAGE })) }]],
    ['a stream', stream({ choices: [{ text: 'x' }], usage: null }, { choices: [], usage: USAGE })],
  ])('the usage of %s is recorded and charged', async (_, script) => {
    const store = await openStore({ folder: null });
    ends.push(() => store.close());
    const { upstream, gateway, ask } = await start(budget(1e6), store);
    upstream.play(script);
    const { status, text } = await ask('/v1/completions', { prompt: 'x', n: 32, max_tokens: 2 });
    expect(status).toBe(200);
    expect(text).toContain('completion_tokens');
    expect(await readBudget(gateway)).toMatchObject({ spent: 3 + 640, reserved: 0 });
    await store.flush();
    const { exchanges } = await store.list();
    expect(exchanges).toMatchObject([{ input_tokens: 3, output_tokens: 64, cost_micros: 643, possibly_billed: false }]);
    expect(await gateway.services.metrics.text()).not.toContain('sluice_budget_overruns_total 1');
  });

  test('what was reserved is charged when nothing was reported', async () => {
    const { upstream, gateway, ask } = await start(budget(1e6));
    upstream.play([{ send: whole(200, completion({})) }]);
    const body = { model: 'up/m', prompt: ['x', 'y'], n: 3, best_of: 5, max_tokens: 100 };
    expect((await ask('/v1/completions', body)).status).toBe(200);
    const sent = Number(upstream.served[0]?.body.length);
    // The model is sent without its provider.
    expect(await readBudget(gateway)).toMatchObject({ spent: sent + 10 * 100 * 5 * 2 });
  });

  test('every prompt and every choice is reserved', async () => {
    const { upstream, ask } = await start(budget(20_000));
    upstream.play([{ send: whole(200, completion({ usage: USAGE })) }]);
    for (const more of [{ n: 32 }, { best_of: 32 }, { prompt: Array.from({ length: 32 }, () => 'x') }])
      expect((await ask('/v1/completions', { prompt: 'x', max_tokens: 100, ...more })).json.error.code).toBe(
        'insufficient_quota',
      );
    expect((await ask('/v1/completions', { prompt: 'x', max_tokens: 100 })).status).toBe(200);
    expect(upstream.served.length).toBe(1);
  });

  test('tokens per minute count every choice, and then what was reported', async () => {
    const { upstream, gateway, ask } = await start({ tokensPerMinute: 1000 });
    upstream.play([{ send: whole(200, completion({ usage: { ...USAGE, completion_tokens: 900 } })) }]);
    expect((await ask('/v1/completions', { prompt: 'x', n: 32, max_tokens: 20 })).status).toBe(200);
    await readBudget(gateway);
    const refused = await ask('/v1/completions', { prompt: 'x', n: 32, max_tokens: 20 });
    expect([refused.status, refused.headers['x-ratelimit-remaining-tokens']]).toEqual([429, '97']);
  });
});

describe('other endpoints', () => {
  test('the usage of images and of transcriptions is charged', async () => {
    const { upstream, gateway, ask } = await start(budget(1e9));
    const image = { created: 1, data: [{ b64_json: 'A'.repeat(200_000) }], usage: { input_tokens: 7, output_tokens: 11 } };
    upstream.play(
      [{ split: whole(200, JSON.stringify(image)), size: 1000 }],
      stream({
        type: 'transcript.text.done',
        usage: { input_tokens: 5, input_token_details: { audio_tokens: 5 }, output_tokens: 1 },
      }),
    );
    expect((await ask('/v1/images/generations', { prompt: 'x' })).status).toBe(200);
    expect((await readBudget(gateway))?.spent).toBe(7 + 110);
    expect((await ask('/v1/audio/transcriptions', {})).status).toBe(200);
    expect((await readBudget(gateway))?.spent).toBe(117 + 5 + 10);
  });

  test('a field of a form that is there twice counts with its largest value: servers read the first or the last', async () => {
    const { upstream, gateway } = await start(budget(400_000));
    const post = (...counts: number[]) => {
      const fields = [['model', 'up/m'], ['prompt', 'x'], ...counts.map((n) => ['n', String(n)])];
      const parts = fields.map(([name, value]) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`);
      const headers = { 'content-type': 'multipart/form-data; boundary=b' };
      return send(gateway.url, '/v1/images/edits', { key: 'a', headers, body: `${parts.join('')}--b--\r\n` });
    };
    upstream.play([{ send: whole(200, JSON.stringify({ created: 1, data: [], usage: { input_tokens: 1, output_tokens: 1 } })) }]);
    for (const counts of [
      [10, 1],
      [1, 10],
    ])
      expect((await post(...counts)).json.error.code).toBe('insufficient_quota');
    expect(upstream.served.length).toBe(0);
    expect((await post(1)).status).toBe(200);
  });
});
