import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIN_KEY, startAdmin, type TestGateway, withKey } from './start.ts';

// What the console does with captured exchanges: search, the doctor, cases, and other protocols.

const admin = withKey(ADMIN_KEY);
let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startAdmin({ config: { admin: { key: ADMIN_KEY } } });
});

afterAll(() => gateway.stop());

const get = (path: string) => gateway.call(path, { headers: admin });

async function converse(content: string, body: object = {}): Promise<string> {
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo/hello', messages: [{ role: 'user', content }], ...body }),
  };
  await (await fetch(`${gateway.url}/v1/chat/completions`, init)).text();
  await gateway.captures.settled();
  return gateway.captures.listIds()[0] ?? '';
}

const search = (filter: string, more = '') => get(`exchanges?filter=${encodeURIComponent(filter)}${more}`);

const listIds = (json: { exchanges: { id: string }[] }): string[] => json.exchanges.map(({ id }) => id);

describe('a search for text', () => {
  let first: string;
  let second: string;

  beforeAll(async () => {
    first = await converse('The quick brown Fox');
    second = await converse('the QUICK hare', { stream: true });
  });

  test('finds requests in either case, newest first, and reports what it has read', async () => {
    const { json } = await search('"the quick"');
    expect(listIds(json)).toEqual([second, first]);
    expect(json.searched).toMatchObject({ captures: gateway.captures.listIds().length, is_complete: true });
    expect(json.searched.bytes).toBeGreaterThan(100);
    expect(listIds((await search('quick fox')).json)).toEqual([first]);
    expect(listIds((await search('badger')).json)).toEqual([]);
  });

  test('finds a text of a stream that is spread over its events', async () => {
    const { json } = await get(`exchanges/${second}/conversation`);
    const text: string = json.response[0].text;
    const { json: found } = await search(JSON.stringify(text.slice(2, 30).replaceAll('"', '')));
    expect(listIds(found)).toContain(second);
  });

  test('obeys the other terms, and goes on by pages', async () => {
    expect(listIds((await search('quick status:error')).json)).toEqual([]);
    const page = await search('quick status:ok', '&limit=1');
    expect([listIds(page.json), page.json.searched.is_complete]).toEqual([[second], false]);
    const next = await search('quick status:ok', `&limit=1&cursor=${page.json.next}`);
    expect(listIds(next.json)).toEqual([first]);
    const rest = await search('quick status:ok', `&limit=5&cursor=${page.json.next}`);
    expect([listIds(rest.json), rest.json.next]).toEqual([[first], null]);
  });

  test.each([
    ['-quick', 'cannot be excluded'],
    ['x', 'at least 2 characters'],
    ['modle:x', 'did you mean "model"'],
  ])('%s is refused', async (filter, reason) => {
    const { status, json } = await search(filter);
    expect([status, json.detail]).toEqual([400, expect.stringContaining(reason)]);
  });

  test('is not open to local programs without a key', async () => {
    const local = await startAdmin();
    try {
      const { status, json } = await local.call('exchanges?filter=quick');
      expect([status, json.detail]).toEqual([403, expect.stringContaining('admin key or a session')]);
    } finally {
      await local.stop();
    }
  });
});

test('exchanges are counted, all of them and those of a filter', async () => {
  const all = (await get('exchanges/count')).json;
  const { matching } = (await get('exchanges/count?filter=model:demo/blank-ids')).json;
  expect(all).toEqual({ matching: all.total, is_exact: true, total: all.total });
  await converse('one more', { model: 'demo/blank-ids' });
  expect((await get('exchanges/count?filter=model:demo/blank-ids')).json).toEqual({
    matching: matching + 1,
    is_exact: true,
    total: all.total + 1,
  });
});

describe('the doctor', () => {
  const tools = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }];

  test('finds what the upstream did, with the page of its rule, and makes a case of it', async () => {
    const id = await converse('demo: call get_weather', { model: 'demo/blank-ids', stream: true, tools });
    const { json } = await get(`exchanges/${id}/doctor`);
    expect(json.checkups).toMatchObject([{ attempt: 1, provider: 'demo', status: 200, is_complete: true }]);
    const [finding] = json.checkups[0].findings;
    expect(finding.rule).toMatch(/^chat\//);
    expect(json.checkups[0].score).toBeLessThan(100);
    const found = await get(`exchanges/${id}/case`);
    expect(found.json).toMatchObject({ class: finding.rule, providers: ['demo'], protocol: 'openai-chat' });
    expect(found.json.expected.tool_calls[0].name).toBe('get_weather');
  });

  test('finds nothing in a clean response, which is no case', async () => {
    const id = await converse('hi', { stream: true });
    expect((await get(`exchanges/${id}/doctor`)).json.checkups).toMatchObject([{ score: 100, findings: [], error: null }]);
    expect((await get(`exchanges/${id}/case`)).status).toBe(409);
    expect((await get('exchanges/none/doctor')).status).toBe(404);
  });
});

describe('a request in another protocol', () => {
  const path = '/v1/chat/completions';
  const chat = {
    model: 'demo/hello',
    stream: true,
    messages: [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'hi' },
    ],
  };
  const convert = (body: object) => gateway.call('requests/convert', { method: 'POST', headers: admin, body });

  test.each([
    ['openai-chat', '/v1/chat/completions', chat],
    ['anthropic-messages', '/v1/messages', { model: 'demo/hello', stream: true, messages: [{ role: 'user' }] }],
    ['openai-responses', '/v1/responses', { model: 'demo/hello', stream: true }],
    ['gemini', '/v1beta/models/demo/hello:streamGenerateContent?alt=sse', { contents: [{ role: 'user' }] }],
  ])('%s', async (to, expected, body) => {
    const { json } = await convert({ path, body: chat, to });
    expect(json).toMatchObject({ from: 'openai-chat', to, model: 'demo/hello', is_stream: true, path: expected, body });
    // What it says is accepted by the gateway.
    const sent = await gateway.call(`requests?path=${encodeURIComponent(json.path)}`, {
      method: 'POST',
      headers: admin,
      body: json.body,
    });
    expect(sent.status).toBe(200);
  });

  test('notes what is lost', async () => {
    const { json } = await convert({ path, body: { ...chat, logit_bias: { 5: 1 } }, to: 'anthropic-messages' });
    expect(json.notes).toEqual(expect.arrayContaining([expect.objectContaining({ code: 'DROPPED', path: '/logit_bias' })]));
  });

  test('has another model, in its path or its body, and nothing else changes', async () => {
    const other = { ...chat, unknown_field: [1] };
    expect((await convert({ path, body: other, model: 'x/y' })).json.body).toEqual({ ...other, model: 'x/y' });
    const gemini = { contents: [], unknown: 1 };
    const { json } = await convert({ path: '/v1beta/models/a:generateContent', body: gemini, model: 'b' });
    expect([json.path, json.body]).toEqual(['/v1beta/models/b:generateContent', gemini]);
    const embeddings = await convert({ path: '/v1/embeddings', body: { model: 'a', input: 'x' }, model: 'b' });
    expect([embeddings.json.path, embeddings.json.body]).toEqual(['/v1/embeddings', { model: 'b', input: 'x' }]);
  });

  test.each([
    [{ path: '/v1/models', body: {}, to: 'gemini' }, 'only requests for a conversation'],
    [{ path, body: { model: 'm' }, to: 'gemini' }, 'cannot be converted'],
    [{ path, body: { model: 'm', messages: JSON.parse(`${'['.repeat(300)}${']'.repeat(300)}`) }, to: 'gemini' }, 'levels deep'],
    [{ path, body: chat, to: 'none' }, 'the body is not valid'],
  ])('%j is refused', async (body, reason) => {
    const { status, json } = await convert(body);
    expect([status, json.detail]).toEqual([400, expect.stringContaining(reason)]);
  });
});
