import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIN_KEY, type Answer, CLIENT_KEY, startAdmin, type TestGateway, withKey } from './start.ts';

// Requests that an operator sends from the console.

const admin = withKey(ADMIN_KEY);
const MESSAGES = [{ role: 'user', content: 'hi' }];
let open: TestGateway;
let keyed: TestGateway;

beforeAll(async () => {
  open = await startAdmin({ config: { admin: { key: ADMIN_KEY } } });
  const alice = { key: CLIENT_KEY, name: 'alice', models: ['demo/hello'], tags: ['team=a'] };
  const poor = { key: `${CLIENT_KEY}-2`, name: 'poor', rpm: 1 };
  const old = { key: `${CLIENT_KEY}-3`, name: 'old', expires: '2020-01-01' };
  keyed = await startAdmin({
    config: { admin: { key: ADMIN_KEY }, auth: { keys: [alice, poor, old] }, capture: { models: ['demo/*'] } },
  });
});

afterAll(async () => {
  await open.stop();
  await keyed.stop();
});

/** Sends a request by the admin API. Streams are requested whole, so that the response can be read. */
const post = (gateway: TestGateway, query: Record<string, string>, body: object, headers = {}): Promise<Answer> =>
  gateway.call(`requests?${new URLSearchParams(query)}`, { method: 'POST', headers: { ...admin, ...headers }, body });

const findRow = async (gateway: TestGateway, id: unknown) =>
  (await gateway.call(`exchanges/${id}`, { headers: admin })).json.exchange;

describe('a request of the console', () => {
  test.each([
    ['/v1/chat/completions', { model: 'demo/hello', messages: MESSAGES }, 'openai-chat', 'choices'],
    ['/v1/messages', { model: 'demo/hello', max_tokens: 50, messages: MESSAGES }, 'anthropic-messages', 'content'],
    ['/v1/responses', { model: 'demo/hello', input: 'hi' }, 'openai-responses', 'output'],
    ['/v1beta/models/demo/hello:generateContent', { contents: [{ parts: [{ text: 'hi' }] }] }, 'gemini', 'candidates'],
  ])('to %s gets the response of a client, and is in the ledger', async (path, body, protocol, field) => {
    const { status, json, headers } = await post(open, { path }, body);
    expect([status, Object.keys(json)]).toEqual([200, expect.arrayContaining([field])]);
    expect(await findRow(open, headers['x-sluice-exchange-id'])).toMatchObject({
      client_protocol: protocol,
      model_requested: 'demo/hello',
      tags: ['console'],
      user_agent: 'sluice-console',
      key_id: null,
      outcome: 'ok',
    });
  });

  test('streams', async () => {
    const { text, headers } = await post(
      open,
      { path: '/v1/chat/completions' },
      { model: 'demo/hello', stream: true, messages: MESSAGES },
    );
    expect(headers['content-type']).toContain('text/event-stream');
    expect(text).toMatch(/^data: \{/);
  });

  test('has the key that was chosen, with its tags, models and rates', async () => {
    const path = '/v1/chat/completions';
    const body = { model: 'demo/hello', messages: MESSAGES };
    const first = await post(keyed, { path, key: 'alice' }, body);
    expect(await findRow(keyed, first.headers['x-sluice-exchange-id'])).toMatchObject({
      key_id: 'alice',
      tags: ['team=a', 'console'],
    });
    const scoped = await post(keyed, { path, key: 'alice' }, { ...body, model: 'demo/blank-ids' });
    expect([scoped.status, scoped.json.error.message]).toEqual([403, expect.stringContaining('alice')]);
    const statuses = [];
    for (let i = 0; i < 2; i++) statuses.push((await post(keyed, { path, key: 'poor' }, body)).status);
    expect(statuses).toEqual([200, 429]);
  });

  test('of a stored key is refused once the key is revoked', async () => {
    const { record } = await keyed.keys.create('temporary', {}, 'cli');
    const query = { path: '/v1/chat/completions', key: record.id };
    expect((await post(keyed, query, { model: 'demo/hello', messages: MESSAGES })).status).toBe(200);
    await keyed.keys.revoke(record.id, false, 'cli');
    const { status, json } = await post(keyed, query, { model: 'demo/hello', messages: MESSAGES });
    expect([status, json.detail]).toEqual([409, expect.stringContaining('revoked')]);
  });

  test.each([
    [{ path: '/v1/chat/completions' }, 400, 'choose the key'],
    [{ path: '/v1/chat/completions', key: 'nobody' }, 404, 'no client key'],
    [{ path: '/v1/chat/completions', key: CLIENT_KEY }, 404, 'no client key'],
    [{ path: '/v1/chat/completions', key: 'old' }, 409, 'expired'],
    [{ path: '/v1/models', key: 'alice' }, 400, 'not an endpoint of a model'],
    [{ path: '/v1/files', key: 'alice' }, 400, 'not an endpoint of a model'],
    [{ path: 'http://evil.example/v1/messages', key: 'alice' }, 400, 'not an endpoint of a model'],
    [{ key: 'alice' }, 400, '"path" is required'],
  ])('with %j is refused', async (query, expected, reason) => {
    const { status, json } = await post(keyed, query, { model: 'demo/hello', messages: MESSAGES });
    expect([status, json.detail]).toEqual([expected, expect.stringContaining(reason)]);
    expect(JSON.stringify(json)).not.toContain(CLIENT_KEY);
  });

  test('must be JSON, and errors of its body are those of a client', async () => {
    const form = { ...admin, 'content-type': 'text/plain' };
    const path = 'requests?path=/v1/chat/completions';
    expect((await open.call(path, { method: 'POST', headers: form, raw: '{}' })).status).toBe(415);
    const broken = await open.call(path, { method: 'POST', headers: admin, raw: '{' });
    expect([broken.status, broken.json.error.message]).toEqual([400, expect.stringContaining('not valid JSON')]);
  });

  test('may be larger than other bodies of the admin API', async () => {
    const messages = [{ role: 'user', content: 'x'.repeat(1_000_000) }];
    expect((await post(open, { path: '/v1/chat/completions' }, { model: 'demo/hello', messages })).status).toBe(200);
  });

  test('is in the audit log, without its contents', async () => {
    await post(keyed, { path: '/v1/chat/completions', key: 'alice' }, { model: 'demo/hello', messages: MESSAGES });
    const { json } = await keyed.call('audit', { headers: admin });
    expect(json.entries[0]).toMatchObject({
      actor: 'key',
      action: 'request.send',
      object: 'alice',
      details: { name: 'alice', endpoint: '/v1/chat/completions' },
    });
  });

  test('does not pass headers of the browser on', async () => {
    const secret = 'a-cookie-that-stays-here';
    await post(open, { path: '/v1/chat/completions' }, { model: 'demo/hello', messages: MESSAGES }, { cookie: `x=${secret}` });
    await open.captures.settled();
    const [id = ''] = open.captures.listIds();
    const { text, json } = await open.call(`exchanges/${id}/tape`, { headers: admin });
    expect(text).not.toContain(secret);
    expect(json.request.headers).not.toHaveProperty('cookie');
  });
});

describe('a replay', () => {
  const send = async (path: string, body: object): Promise<string> => {
    const headers = { 'content-type': 'application/json' };
    await (await fetch(open.url + path, { method: 'POST', headers, body: JSON.stringify(body) })).text();
    await open.captures.settled();
    return open.captures.listIds()[0] ?? '';
  };
  const replay = (id: string, query = ''): Promise<Answer> =>
    open.call(`exchanges/${id}/replay${query}`, { method: 'POST', headers: admin });

  test('sends the same bytes again', async () => {
    const id = await send('/v1/messages', { model: 'demo/hello', max_tokens: 20, messages: MESSAGES });
    const { status, headers } = await replay(id);
    expect(status).toBe(200);
    await open.captures.settled();
    const [before, after] = await Promise.all([
      open.captures.get(id),
      open.captures.get(String(headers['x-sluice-exchange-id'])),
    ]);
    expect(after?.request.body).toEqual(before?.request.body);
    expect((await open.call('audit', { headers: admin })).json.entries[0]).toMatchObject({
      action: 'request.replay',
      details: { exchange: id },
    });
  });

  test.each([
    ['/v1/chat/completions', { model: 'demo/hello', messages: MESSAGES }],
    ['/v1beta/models/demo/hello:generateContent', { contents: [{ parts: [{ text: 'hi' }] }] }],
  ])('of %s for another model', async (path, body) => {
    const { headers } = await replay(await send(path, body), '?model=demo/blank-ids');
    const row = await findRow(open, headers['x-sluice-exchange-id']);
    expect(row).toMatchObject({ model_requested: 'demo/blank-ids', tags: ['console'] });
  });

  test('needs the whole request', async () => {
    const small = await startAdmin({ config: { admin: { key: ADMIN_KEY }, capture: { exchange_bytes: '64KiB' } } });
    try {
      const body = JSON.stringify({ model: 'demo/hello', messages: [{ role: 'user', content: 'x'.repeat(200_000) }] });
      const headers = { 'content-type': 'application/json' };
      await (await fetch(`${small.url}/v1/chat/completions`, { method: 'POST', headers, body })).text();
      await small.captures.settled();
      const { status, json } = await small.call(`exchanges/${small.captures.listIds()[0]}/replay`, {
        method: 'POST',
        headers: admin,
      });
      expect([status, json.detail]).toEqual([409, expect.stringContaining('was cut')]);
    } finally {
      await small.stop();
    }
  });

  test('needs the captured request', async () => {
    const id = await send('/v1/chat/completions', { model: 'demo/hello', messages: MESSAGES });
    for (let i = 0; i < 101; i++) await send('/v1/chat/completions', { model: 'demo/hello', messages: MESSAGES });
    const { status, json } = await replay(id);
    expect([status, json.detail]).toEqual([409, expect.stringContaining('was not kept')]);
    expect((await replay('unknown')).status).toBe(404);
  });
});

describe('who may send', () => {
  const body = { model: 'demo/hello', messages: MESSAGES };

  test('neither a client, a foreign page nor a local program without a key', async () => {
    const path = 'requests?path=/v1/chat/completions';
    const local = await startAdmin();
    try {
      for (const [gateway, headers, expected] of [
        [keyed, withKey(CLIENT_KEY), 401],
        [keyed, {}, 401],
        [open, { ...admin, origin: 'http://evil.example' }, 403],
        [open, { ...admin, 'sec-fetch-site': 'cross-site' }, 403],
        [local, {}, 403],
      ] as const)
        expect((await gateway.call(path, { method: 'POST', headers, body })).status).toBe(expected);
    } finally {
      await local.stop();
    }
  });

  test('a session with its CSRF token only', async () => {
    const origin = { origin: open.url };
    const login = await open.call('session', { method: 'POST', body: { token: open.issueConsoleToken() }, headers: origin });
    const cookie = String(login.headers['set-cookie']).split(';', 1)[0] ?? '';
    const send = (headers: Record<string, string>): Promise<Answer> =>
      open.call('requests?path=/v1/chat/completions', { method: 'POST', headers: { cookie, ...headers }, body });
    const csrf = { 'x-sluice-csrf': login.json.csrf_token };
    expect([
      (await send(origin)).status,
      (await send({ ...origin, 'x-sluice-csrf': 'guessed' })).status,
      (await send({ ...csrf, origin: 'http://evil.example' })).status,
      (await send(csrf)).status,
      (await send({ ...origin, ...csrf })).status,
    ]).toEqual([403, 403, 403, 403, 200]);
  });
});

test('the keys and models are listed, without secrets', async () => {
  const { json, text } = await keyed.call('requests', { headers: admin });
  expect(json).toMatchObject({ needs_key: true, model: expect.stringContaining('demo/') });
  expect(json.keys.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining(['alice', 'poor']));
  expect(text).not.toContain(CLIENT_KEY);
  expect((await open.call('requests', { headers: admin })).json).toMatchObject({ needs_key: false, keys: [] });
});
