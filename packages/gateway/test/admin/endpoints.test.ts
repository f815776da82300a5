import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildDocument } from '../../src/admin/openapi.ts';
import { PREFIX } from '../../src/admin/route.ts';
import { ROUTES } from '../../src/admin/routes.ts';
import { EXCHANGE, EXCHANGE_FIELDS } from '../../src/admin/views.ts';
import { openStoreReader, restore } from '../../src/store/index.ts';
import { ADMIN_KEY, converse, record, startAdmin, type TestGateway, withKey } from './start.ts';

const admin = withKey(ADMIN_KEY);
const SERVER = { protocol: 'openai-chat', base_url: 'http://127.0.0.1:9/v1' } as const;
let gateway: TestGateway;
const ids: string[] = [];

const get = (path: string, headers: Record<string, string> = {}) => gateway.call(path, { headers: { ...admin, ...headers } });

beforeAll(async () => {
  gateway = await startAdmin({
    isPersistent: true,
    config: {
      admin: { key: ADMIN_KEY },
      budgets: [{ tag: 'team=a', limit: '100.50usd/month' }],
      providers: { down: SERVER, openai: { api_key: 'sk-none-0123456789' } },
      models: { fast: ['openai/gpt-5-mini', 'demo/hello'], dead: 'down/m' },
      prices: { 'down/m': { input: 1.25, output: 10 } },
      limits: { retries: 0, retries_per_provider: 0 },
    },
  });
  for (let i = 0; i < 5; i++)
    ids.unshift(await record(gateway.store, { session: i < 3 ? 's/1 ü' : 's2', key: i < 2 ? 'alice' : 'bob' }));
});

afterAll(() => gateway.stop());

describe('exchanges', () => {
  test('are listed by pages, newest first', async () => {
    const first = await get('exchanges?limit=2&filter=model:llama');
    expect(first.json.exchanges.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 2));
    const second = await get(`exchanges?limit=3&filter=model:llama&cursor=${first.json.next}`);
    expect(second.json.exchanges.map(({ id }: { id: string }) => id)).toEqual(ids.slice(2));
    expect(second.json.next).toBeNull();
  });

  test('have every field, times by RFC 3339 and money in whole millionths', async () => {
    const { json } = await get(`exchanges?filter=${encodeURIComponent(`id:${ids[0]}`)}`);
    expect(EXCHANGE.parse(json.exchanges[0])).toMatchObject({
      id: ids[0],
      state: 'settled',
      outcome: 'ok',
      cost_micros: 3,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      notes: [{ code: 'DROPPED', path: '/a', message: 'quotes the request' }],
    });
    expect(Object.keys(json.exchanges[0]).sort()).toEqual([...EXCHANGE_FIELDS].sort());
  });

  test('are filtered', async () => {
    const { json } = await get(`exchanges?filter=${encodeURIComponent('key:alice status:2xx')}`);
    expect(json.exchanges).toHaveLength(2);
  });

  test('have only the selected fields, and their id', async () => {
    const { json } = await get('exchanges?fields=model,cost_micros&limit=1&filter=model:llama');
    expect(json.exchanges).toEqual([{ id: ids[0], model: 'llama', cost_micros: 3 }]);
  });

  test('one has its attempts, and an ETag that saves sending it again', async () => {
    const first = await get(`exchanges/${ids[0]}`);
    expect(first.json).toMatchObject({ exchange: { id: ids[0] }, attempts: [{ number: 1, provider: 'groq', cost_micros: 3 }] });
    const etag = String(first.headers['etag']);
    expect((await get(`exchanges/${ids[0]}`, { 'if-none-match': `"x", W/${etag}` })).status).toBe(304);
    expect((await get(`exchanges/${ids[1]}`, { 'if-none-match': etag })).status).toBe(200);
  });

  test('of a request through the gateway are there when its response has ended', async () => {
    const { headers } = await converse(gateway.url);
    const { json } = await get(`exchanges?filter=id:${headers['x-sluice-request-id']}`);
    expect(json.exchanges).toMatchObject([{ provider: 'demo', http_status: 200, outcome: 'ok' }]);
  });

  test('hide messages of notes, which may quote the request, from programs without a key', async () => {
    const open = await startAdmin();
    try {
      const id = await record(open.store);
      const { json } = await open.call(`exchanges/${id}`);
      expect(json.exchange.notes).toEqual([{ code: 'DROPPED', path: '/a' }]);
    } finally {
      await open.stop();
    }
  });
});

describe('other resources', () => {
  test('a session has its sums and its exchanges', async () => {
    const { json } = await get(`sessions/${encodeURIComponent('s/1 ü')}?limit=2&fields=id`);
    expect(json.session).toMatchObject({ id: 's/1 ü', exchanges: 3, input_tokens: 30, cost_micros: 9 });
    expect(json.exchanges).toEqual([{ id: ids[2] }, { id: ids[3] }]);
    expect((await get(`sessions/${encodeURIComponent('s/1 ü')}?limit=2&cursor=${json.next}`)).json.exchanges).toHaveLength(1);
  });

  test('sessions are listed', async () => {
    const { json } = await get('sessions');
    expect(json.sessions.map(({ id }: { id: string }) => id)).toEqual(['s2', 's/1 ü']);
  });

  test.each([
    [
      'by=key&since=1d',
      {
        by: 'key',
        usage: [
          { group: 'bob', requests: 3, cost_micros: 9 },
          { group: 'alice', requests: 2 },
        ],
      },
    ],
    ['by=day&key=alice', { by: 'day', usage: [{ group: null, requests: 2, bucket_at: expect.stringMatching(/T00:00:00/) }] }],
    [
      'by=tag&bucket=hour',
      { by: 'tag', usage: [{ group: 't', requests: 5, bucket_at: expect.stringMatching(/:00:00\.000Z$/) }] },
    ],
    ['by=key&until=2020-01-01', { by: 'key', usage: [] }],
  ])('usage of %s', async (query, expected) => {
    // Requests of other tests have no key.
    const { json } = await get(`usage?${query}`);
    expect({ ...json, usage: json.usage.filter(({ group }: { group: string | null }) => group !== '') }).toMatchObject(expected);
  });

  test('budgets show limit, spent, reserved, left and reset', async () => {
    const { json } = await get('budgets');
    expect(json.budgets).toEqual([
      {
        by: 'tag',
        id: 'team=a',
        name: 'team=a',
        period: 'month',
        limit_micros: 100_500_000,
        spent_micros: 0,
        reserved_micros: 0,
        left_micros: 100_500_000,
        resets_at: expect.stringMatching(/-01T00:00:00\.000Z$/),
      },
    ]);
  });

  test('providers show a pause after failures, and its reason without an address', async () => {
    for (let i = 0; i < 5; i++) await converse(gateway.url, 'dead');
    const { json } = await get('providers');
    const down = json.providers.find(({ id }: { id: string }) => id === 'down');
    expect(down).toMatchObject({
      health: 'paused',
      has_key: false,
      paused: [{ model: 'm', failures: 5 }],
      recent: { errors: 5 },
    });
    expect(down.paused[0].remaining_ms).toBeGreaterThan(0);
    expect(json.providers.find(({ id }: { id: string }) => id === 'openai')).toMatchObject({ health: 'up', has_key: true });
  });

  test('models have their targets and prices', async () => {
    const { json } = await get('models');
    expect(json.models.map(({ id }: { id: string }) => id)).toEqual(['fast', 'dead']);
    expect(json.models[0].targets.map(({ provider }: { provider: string }) => provider)).toEqual(['openai', 'demo']);
    expect(json.models[1].targets[0].price).toMatchObject({
      source: 'configuration',
      rates: { input: { micros_per_million: 1_250_000 }, output: { micros_per_million: 10_000_000 } },
    });
  });

  test('prices have a version, and the price of a model', async () => {
    const { json } = await get('prices?provider=down&model=m');
    expect(json).toMatchObject({ version: expect.stringContaining('genai-prices'), configured: ['down/m'] });
    expect(json.price.rates.input).toEqual({ micros_per_million: 1_250_000, tiers: [] });
    expect((await get('prices?provider=down')).status).toBe(400);
  });

  test('the configuration follows a reload', async () => {
    expect((await get('config')).json).toMatchObject({ has_admin_key: true, client_keys: 0, models: ['fast', 'dead'] });
    const file = gateway.file ?? '';
    const old = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, `${JSON.stringify({ ...old, models: { other: 'down/m' } })}\n`);
    await gateway.reload();
    expect((await get('config')).json.models).toEqual(['other']);
    writeFileSync(file, `${JSON.stringify(old)}\n`);
    await gateway.reload();
  });

  test('the store reports its state, and whoami the caller', async () => {
    expect((await get('store')).json).toMatchObject({ is_persistent: true, accepting: true, last_error: null });
    expect((await get('whoami')).json).toMatchObject({ access: 'key', may_read_sensitive: true, boot_id: gateway.store.boot });
  });

  test('a backup is a database that can be restored, and leaves no file behind', async () => {
    const { status, headers, bytes } = await gateway.call('backup', { method: 'POST', headers: admin });
    expect([status, Number(headers['content-length'])]).toEqual([200, bytes.length]);
    expect(headers['content-disposition']).toMatch(/^attachment; filename="sluice-\d{8}T\d{6}Z\.db"$/);
    const file = join(gateway.folder, 'copy.db');
    const other = join(gateway.folder, 'other');
    writeFileSync(file, bytes);
    restore(other, file);
    const reader = await openStoreReader(other);
    expect((await reader.get(ids[0] ?? ''))?.exchange.id).toBe(ids[0]);
    await reader.close();
    expect(readdirSync(gateway.store.folder ?? '').filter((name) => name.startsWith('backup'))).toEqual([]);
  });
});

describe('the document', () => {
  const document = JSON.parse(JSON.stringify(buildDocument()));

  test('is served', async () => expect((await get('openapi.json')).json).toEqual(document));

  test('has every route with its parameters, and nothing else', () => {
    const operations = Object.entries<Record<string, { parameters?: { name: string }[] }>>(document.paths).flatMap(
      ([path, methods]) =>
        Object.entries(methods).map(([method, { parameters = [] }]) => [
          `${method.toUpperCase()} ${path}`,
          parameters.map(({ name }) => name),
        ]),
    );
    const routes = ROUTES.map(({ method, path, query }) => [
      `${method} ${PREFIX}${path}`,
      [...(path.includes('{id}') ? ['id'] : []), ...Object.keys(query)],
    ]);
    expect(Object.fromEntries(operations)).toEqual(Object.fromEntries(routes));
  });

  test('has a target for every reference, and unique operation ids', () => {
    const text = JSON.stringify(document);
    for (const [, name = ''] of text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g))
      expect(document.components.schemas).toHaveProperty(name);
    expect(text).not.toMatch(/"\$ref":"(?!#\/components\/schemas\/\w+")/);
    const operationIds = [...text.matchAll(/"operationId":"(\w+)"/g)].map(([, id]) => id);
    expect(new Set(operationIds).size).toBe(ROUTES.length);
  });
});

describe('invalid requests', () => {
  test.each([
    ['exchanges?limt=5', 'limt', 'did you mean "limit"'],
    ['exchanges?limit=0', 'limit', 'from 1 to 1000'],
    ['exchanges?limit=-1', 'limit', 'from 1 to 1000'],
    ['exchanges?limit=99999999999999999999', 'limit', 'from 1 to 1000'],
    ['exchanges?limit=1e3', 'limit', 'from 1 to 1000'],
    ['exchanges?limit=NaN', 'limit', 'from 1 to 1000'],
    ['exchanges?limit=', 'limit', 'from 1 to 1000'],
    ['exchanges?limit=1&limit=2', 'limit', 'more than once'],
    ['exchanges?cursor=%00', 'cursor', '`next`'],
    ["exchanges?cursor=' OR 1=1--", 'cursor', '`next`'],
    ['exchanges?filter=staus:ok', 'filter', 'did you mean "status"'],
    ['exchanges/count?filter=hello', 'filter', 'captured bodies'],
    ['exchanges/live?filter=hello', 'filter', 'captured bodies'],
    [`exchanges?filter=${'a'.repeat(3000)}`, 'filter', 'at most 2000'],
    ['exchanges?fields=id,modle', 'fields', 'did you mean "model"'],
    ['exchanges?fields=__proto__', 'fields', 'unknown field'],
    ['exchanges?fields=', 'fields', 'unknown field'],
    ['exchanges?__proto__=1', '__proto__', 'unknown'],
    ['exchanges?constructor=1', 'constructor', 'unknown'],
    ['exchanges?toString=1', 'toString', 'unknown'],
    ['usage?by=hour', 'by', 'must be one of'],
    ['usage?by=constructor', 'by', 'must be one of'],
    ['usage?since=yesterday', 'since', 'is not a time'],
    ['usage?since=2h%22%20model:x', 'since', 'is not a time'],
    ['usage?since=9999999d', 'since', 'is not a time'],
    ['usage?key=%00', 'key', 'control characters'],
    [`usage?key=${'k'.repeat(201)}`, 'key', 'at most 200'],
    ['whoami?x=1', 'x', 'has none'],
  ])('%s', async (path, field, detail) => {
    const { status, json } = await get(encodeURI(path).replaceAll('%25', '%'));
    expect(status).toBe(400);
    expect(json.errors[0].field).toBe(field);
    expect(json.errors[0].detail).toContain(detail);
  });

  test('all invalid parameters are reported at once, with the place in a filter', async () => {
    const { json } = await get('exchanges?limit=x&filter=status:ok+foo:1');
    expect(json.errors).toMatchObject([{ field: 'limit' }, { field: 'filter', start: 10, end: 15 }]);
  });

  test.each([
    ['exchanges/%00', 404],
    ['exchanges/%ff', 404],
    ['exchanges/__proto__', 404],
    ["exchanges/'%20OR%201=1--", 404],
    [`exchanges/${'x'.repeat(5000)}`, 404],
    ['exchanges/', 404],
    ['exchanges/a/b', 404],
    ['exchanges/..%2fconfig', 404],
    ['sessions/constructor', 404],
  ])('%s gets %i', async (path, status) => expect((await get(path)).status).toBe(status));

  test.each([
    ['no JSON', '{', 400],
    ['null', 'null', 400],
    ['both', '{"token":"a","key":"b"}', 400],
    ['an empty token', '{"token":""}', 400],
    ['a list', '[]', 400],
    ['a prototype', '{"__proto__":{"token":"x"}}', 400],
    ['an unknown token', '{"token":"canary-token"}', 401],
    ['too much', `{"token":"${'x'.repeat(20_000)}"}`, 413],
  ])('a login with %s', async (_, raw, status) => {
    const answer = await gateway.call('session', { method: 'POST', raw });
    expect(answer.status).toBe(status);
    expect(answer.text).not.toContain('canary-token');
  });

  test('a login by a form is refused', async () => {
    const headers = { 'content-type': 'text/plain' };
    expect((await gateway.call('session', { method: 'POST', raw: '{"token":"x"}', headers })).status).toBe(415);
  });

  test('any query gets 200 or 400', async () => {
    const names = ['filter', 'limit', 'cursor', 'fields', 'by', 'since', 'until', 'bucket', '__proto__'];
    const query = fc.array(
      fc.tuple(
        fc.constantFrom(...names),
        fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('1', 'model', '2h')),
      ),
      {
        maxLength: 4,
      },
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('exchanges', 'usage', 'sessions'), query, async (path, pairs) => {
        const text = new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, value])).toString();
        expect([200, 400]).toContain((await get(`${path}?${text}`)).status);
      }),
      { numRuns: 150 },
    );
  });
});

describe('pages', () => {
  test('walk over every row exactly once while rows are written', async () => {
    const other = await startAdmin({ config: { admin: { key: ADMIN_KEY } }, isPersistent: true });
    try {
      const before = new Set(await Promise.all(Array.from({ length: 250 }, () => record(other.store))));
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const path: string = `exchanges?limit=20&fields=id${cursor === null ? '' : `&cursor=${cursor}`}`;
        const [{ json }] = await Promise.all([other.call(path, { headers: admin }), record(other.store), record(other.store)]);
        seen.push(...json.exchanges.map(({ id }: { id: string }) => id));
        cursor = json.next;
      } while (cursor !== null);
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen.filter((id) => before.has(id))).toHaveLength(250);
      expect(seen).toEqual(seen.toSorted().toReversed());
    } finally {
      await other.stop();
    }
  });
});
