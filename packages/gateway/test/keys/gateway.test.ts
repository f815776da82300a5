import { PROTOCOLS, type ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { REVOKED } from '../../src/exchange/types.ts';
import { KeyBook } from '../../src/keys/key-book.ts';
import { createKeyText } from '../../src/keys/key-text.ts';
import type { KeySettings } from '../../src/keys/settings.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { converse, send } from '../admin/start.ts';
import { cutAfter } from '../gateway/dialects.ts';
import { Faultd } from '../gateway/faultd.ts';
import { RawClient } from '../gateway/raw-client.ts';
import { ask, askText, eventually, type Started, startGateway } from '../gateway/start.ts';

const IDS = Object.keys(PROTOCOLS) as ProtocolId[];

let store: Store;
let book: KeyBook;
let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  store = await openStore({ folder: null });
  book = await KeyBook.open({ store, pepperFile: null, requiresPepper: true });
  faultd = await Faultd.start();
  const provider = { protocol: 'openai-chat', base_url: faultd.url, api_key: 'k', passthrough: 'known' };
  const config = { providers: { up: provider, other: provider }, models: { fast: 'up/small', slow: ['up/small', 'other/big'] } };
  gateway = await startGateway({ config, book });
  book.listen(({ record, endsRequests }) => {
    if (endsRequests) gateway.services.streams.stopKey(record.id, REVOKED);
  });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
  await book.close();
  await store.close();
});

let count = 0;

const issue = async (settings: KeySettings = {}): Promise<string> => (await book.create(`k${++count}`, settings, 'cli')).text;

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });

describe('credentials', () => {
  test.each([
    ['none', {}],
    ['empty', { authorization: 'Bearer ' }],
    ['Basic', { authorization: 'Basic eDp5' }],
    ['an injection', { 'x-api-key': "' OR '1'='1" }],
    ['a key of nobody', { 'x-api-key': createKeyText().text }],
    ['8-bit characters', { 'x-api-key': 'sluice_\u00fc' }],
    ['10 kB', { 'x-goog-api-key': 'a'.repeat(10_000) }],
  ])('%s are refused with 401 before the body is read', async (_, headers) => {
    await issue();
    const { status, text } = await send(gateway.url, '/v1/chat/completions', { method: 'POST', headers, raw: 'not json' });
    expect(status).toBe(401);
    expect(text).toMatch(/client key required|invalid client key/);
  });

  test('a revoked key is refused by the next request', async () => {
    const { record, text } = await book.create('soon', {}, 'cli');
    faultd.play(WHOLE);
    expect((await converse(gateway.url, 'fast', bearer(text))).status).toBe(200);
    await book.revoke(record.id, false, 'cli');
    const { status, json } = await converse(gateway.url, 'fast', bearer(text));
    expect([status, json.error.message]).toEqual([401, 'client key "soon" was revoked; request a new one']);
  });
});

const WHOLE_BODY = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'small',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
});

const WHOLE = [
  { send: `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${WHOLE_BODY.length}\r\n\r\n${WHOLE_BODY}` },
] as const;

describe('addresses', () => {
  test.each([
    [['127.0.0.0/8'], 200],
    [['10.0.0.0/8', '127.0.0.1'], 200],
    [['::1', '2001:db8::/32'], 403],
    [['10.0.0.0/8'], 403],
  ])('a key for %j gets %d from this machine', async (ip, expected) => {
    if (expected === 200) faultd.play(WHOLE);
    const { status, text } = await converse(gateway.url, 'fast', bearer(await issue({ ip })));
    expect(status, text).toBe(expected);
    if (expected === 403) expect(text).toContain('may not be used from this address');
  });

  test('a wrong key from a wrong address is a wrong key', async () => {
    const key = await issue({ ip: '10.0.0.0/8' });
    const other = createKeyText(key.slice(7, 23)).text;
    expect((await converse(gateway.url, 'fast', bearer(other))).status).toBe(401);
  });
});

const JSON_TYPE = { 'content-type': 'application/json' };

describe('models', () => {
  test.each([
    ['fast', ['fast'], true],
    ['fast', ['f*'], true],
    ['fast', ['up/*'], true],
    ['fast', ['up/small'], true],
    ['fast', ['slow'], false],
    ['fast', ['small'], false],
    ['up/small', ['fast'], false],
    ['up/big', ['up/*'], true],
    // One of its targets is not allowed, and it would be used when the first fails.
    ['slow', ['up/*'], false],
    ['slow', ['up/*', 'other/*'], true],
    ['Fast', ['fast'], false],
    ['fast', ['*'], true],
  ])('%s with %j', async (model, models, isAllowed) => {
    if (isAllowed) faultd.play(WHOLE);
    const { status, json } = await converse(gateway.url, model, bearer(await issue({ models })));
    expect(status).toBe(isAllowed ? 200 : 403);
    if (!isAllowed)
      expect(json.error.message).toMatch(/^client key "k\d+" does not allow model .*; GET \/v1\/models lists the models/);
  });

  test.each([
    ['models', ['openai/gpt-5-pro']],
    ['route', 'fallback'],
    ['preset', 'dear'],
    ['fallbacks', [{ model: 'm' }]],
    // Servers that ignore case would read it in place of the one that was checked.
    ['Model', 'big'],
    ['MODEL', 'big'],
    ['plugins', [{ id: 'fusion', analysis_models: ['openai/gpt-5-pro'] }]],
  ])('a limited key may not let the provider choose a model by %s', async (field, value) => {
    const post = async (key: string, path: string, body: object): Promise<number> => {
      const raw = JSON.stringify({ ...body, model: 'fast', [field]: value });
      const headers = { ...bearer(key), 'content-type': 'application/json' };
      return (await send(gateway.url, path, { method: 'POST', headers, raw })).status;
    };
    const limited = await issue({ models: 'fast' });
    expect(await post(limited, '/v1/chat/completions', { messages: [{ role: 'user', content: 'a' }] })).toBe(403);
    expect(await post(limited, '/v1/completions', { prompt: 'a' })).toBe(403);
    faultd.play(WHOLE);
    expect(await post(await issue(), '/v1/chat/completions', { messages: [{ role: 'user', content: 'a' }] })).toBe(200);
  });

  test.each([
    ['of another model', [{ type: 'advisor_20260301', name: 'advisor', model: 'big' }], 'does not allow model "big"'],
    [
      'of a model that it does not name',
      [{ type: 'image_generation' }],
      'tool "image_generation" runs a model that it does not name',
    ],
  ])('a limited key may not run a tool %s', async (_, tools, message) => {
    const served = faultd.served.length;
    const raw = JSON.stringify({ model: 'fast', messages: [{ role: 'user', content: 'a' }], tools });
    const post = async (key: string): Promise<{ status: number; text: string }> =>
      send(gateway.url, '/v1/chat/completions', { method: 'POST', headers: { ...bearer(key), ...JSON_TYPE }, raw });
    expect(await post(await issue({ models: 'fast' }))).toMatchObject({
      status: 403,
      text: expect.stringContaining(message.replaceAll('"', '\\"')),
    });
    expect(faultd.served).toHaveLength(served);
    faultd.play(WHOLE);
    expect((await post(await issue())).status).toBe(200);
  });

  test('a limited key may run a tool of a model that it has', async () => {
    faultd.play(WHOLE);
    const tools = [{ type: 'advisor_20260301', name: 'advisor', model: 'big' }];
    const raw = JSON.stringify({ model: 'fast', messages: [{ role: 'user', content: 'a' }], tools });
    const headers = { ...bearer(await issue({ models: ['fast', 'big'] })), ...JSON_TYPE };
    expect((await send(gateway.url, '/v1/chat/completions', { method: 'POST', headers, raw })).status).toBe(200);
  });

  test.each([
    ['a chat request', '/v1/chat/completions', '{"model":"other/big","messages":[],"model":"fast"}'],
    [
      'a chat request, in its content',
      '/v1/chat/completions',
      '{"model":"fast","messages":[{"role":"user","role":"system","content":"a"}]}',
    ],
    ['completions', '/v1/completions', '{"model":"fast","prompt":"a","max_tokens":100000,"max_tokens":1}'],
    ['moderations', '/v1/moderations', '{"model":"fast","input":"a","input":"b"}'],
  ])('a field that is there twice is refused, also when no responses are kept: %s', async (_, path, raw) => {
    const bare = await startGateway({
      config: {
        providers: { up: { protocol: 'openai-chat', base_url: faultd.url, api_key: 'k', passthrough: 'all' } },
        models: { fast: 'up/small' },
        responses: { store: 'off' },
      },
      book,
    });
    const served = faultd.served.length;
    const headers = { ...bearer(await issue({ models: ['fast'] })), ...JSON_TYPE };
    const { status, text } = await send(bare.url, path, { method: 'POST', headers, raw });
    expect([status, text]).toEqual([400, expect.stringMatching(/field twice|given only once/)]);
    expect(faultd.served).toHaveLength(served);
    await bare.close();
  });

  test.each(IDS)('a refusal has the form of %s', async (client) => {
    const key = await issue({ models: 'other/*' });
    const { status, body } = await ask(gateway.url, { client, model: 'fast', stream: true, headers: bearer(key) });
    expect(status).toBe(403);
    expect(String(body)).toContain('does not allow model');
    expect(() => JSON.parse(String(body))).not.toThrow();
  });

  test.each([
    ['embeddings', 'POST', '/v1/embeddings', { model: 'fast', input: 'a' }],
    ['token counts', 'POST', '/v1/messages/count_tokens', { model: 'fast', messages: [] }],
    ['rerank', 'POST', '/v1/rerank', { model: 'fast', query: 'a', documents: ['b'] }],
    ['speech', 'POST', '/v1/audio/speech', { model: 'fast', input: 'a', voice: 'alloy' }],
    ['images', 'POST', '/v1/images/generations', { model: 'fast', prompt: 'a' }],
    ['images without a model', 'POST', '/v1/images/generations', { prompt: 'a' }],
    ['moderations', 'POST', '/v1/moderations', { model: 'fast', input: 'a' }],
    ['moderations without a model', 'POST', '/v1/moderations', { input: 'a' }],
    ['a model', 'GET', '/v1/models/fast', undefined],
  ])('%s are in the scope', async (_, method, path, body) => {
    const served = faultd.served.length;
    const headers = { ...JSON_TYPE, ...bearer(await issue({ models: 'other/*' })) };
    const { status, text } = await send(gateway.url, path, { method, headers, body });
    expect(status, text).toBe(403);
    expect(faultd.served).toHaveLength(served);
  });

  const UPLOAD = { purpose: 'batch' };
  test.each([
    ['a batch, by the query', '/v1/batches?model=fast', { endpoint: '/v1/chat/completions' }],
    ['a batch, by a field', '/v1/batches', { model: 'fast', endpoint: '/v1/chat/completions' }],
    ['an eval, by the query', '/v1/evals?model=fast', { testing_criteria: [{ type: 'label_model', model: 'big' }] }],
    ['an eval, by a field', '/v1/evals', { model: 'fast', testing_criteria: [{ type: 'label_model', model: 'big' }] }],
    ['fine-tuning', '/v1/fine_tuning/jobs', { model: 'fast', method: { reinforcement: { grader: { model: 'big' } } } }],
    ['a run of an assistant, by the query', '/v1/threads/runs?model=fast', {}],
    ['completions, by the query', '/v1/completions?model=fast', { prompt: 'a' }],
    ['graders', '/v1/fine_tuning/alpha/graders/run', { model: 'fast', grader: { type: 'multi', graders: {} } }],
  ])('a name where the vendor reads no model does not count: %s', async (_, path, body) => {
    const served = faultd.served.length;
    const headers = { ...JSON_TYPE, ...bearer(await issue({ models: ['fast'] })) };
    const { status, text } = await send(gateway.url, path, { method: 'POST', headers, body });
    expect([status, text]).toEqual([403, expect.stringContaining('is limited to some models')]);
    expect(faultd.served).toHaveLength(served);
  });

  test.each([
    ['completions', '/v1/completions', { model: 'fast', prompt: 'a' }],
    ['a run of an assistant', '/v1/threads/runs', { model: 'fast' }],
    ['an upload, which runs no model', '/v1/files?model=fast', UPLOAD],
  ])('a limited key may use what names its models: %s', async (_, path, body) => {
    faultd.play(WHOLE);
    const headers = { ...JSON_TYPE, ...bearer(await issue({ models: ['fast'] })) };
    expect((await send(gateway.url, path, { method: 'POST', headers, body })).status).toBe(200);
  });

  test('a stored object that the key did not make does not exist for it', async () => {
    const served = faultd.served.length;
    const { status } = await send(gateway.url, '/v1/files/file-1', { headers: bearer(await issue({ models: 'other/*' })) });
    expect(status).toBe(404);
    expect(faultd.served).toHaveLength(served);
  });

  test('a list has the models that the key allows', async () => {
    const list = async (models?: string[]): Promise<string[]> => {
      const { json } = await send(gateway.url, '/v1/models', { headers: bearer(await issue(models ? { models } : {})) });
      return json.data.map(({ id }: { id: string }) => id);
    };
    expect(await list()).toEqual(['fast', 'slow']);
    expect(await list(['up/*'])).toEqual(['fast']);
    expect(await list(['s*'])).toEqual(['slow']);
    expect(await list(['nothing'])).toEqual([]);
  });

  test('several keys or addresses of a provider do not change what a limited key may use', async () => {
    const up = { protocol: 'openai-chat', base_url: faultd.url, api_keys: ['k1', 'k2'], passthrough: 'known' };
    const other = {
      ...up,
      base_urls: [faultd.url, `${faultd.url}/second`],
      api_keys: undefined,
      base_url: undefined,
      api_key: 'k',
    };
    const several = await startGateway({
      config: { providers: { up, other }, models: { fast: 'up/small', slow: 'other/big' } },
      book,
    });
    const headers = bearer(await issue({ models: ['up/small', 'other/big'] }));
    const { json } = await send(several.url, '/v1/models', { headers });
    expect(json.data.map(({ id }: { id: string }) => id)).toEqual(['fast', 'slow']);
    for (const model of ['fast', 'slow']) expect((await send(several.url, `/v1/models/${model}`, { headers })).status).toBe(200);
    await several.close();
  });
});

describe('revocation with --now', () => {
  const { before } = cutAfter('openai-chat', 'two');
  const STREAM = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${before.join('')}`;

  test.each(IDS)('ends a running stream of %s with an error of its protocol', async (client) => {
    faultd.play([{ send: STREAM }, { hang: true }]);
    const [mine, others] = [await issue(), await issue()];
    const name = book.find(mine.slice(7, 23))?.id ?? '';
    const reader = await RawClient.open(gateway.url);
    reader.send(askText({ client, model: 'fast', stream: true, headers: bearer(mine) }));
    await eventually(() => reader.received.includes('two'));
    faultd.play([{ send: STREAM }, { hang: true }]);
    const other = await RawClient.open(gateway.url);
    other.send(askText({ client, model: 'fast', stream: true, headers: bearer(others) }));
    await eventually(() => other.received.includes('two'));

    await book.revoke(name, true, 'cli');
    // Nothing else ends this stream.
    const { body } = await reader.reply();
    expect(String(body)).toContain('the client key of this request was revoked');
    expect(other.isClosed).toBe(false);
    expect(String(other.received)).not.toContain('revoked');
    for (const one of [reader, other]) one.leave();
    await eventually(() => gateway.services.streams.count === 0);
  });

  test('without --now the stream goes on', async () => {
    faultd.play([{ send: STREAM }, { hang: true }]);
    const key = await issue();
    const reader = await RawClient.open(gateway.url);
    reader.send(askText({ client: 'openai-chat', model: 'fast', stream: true, headers: bearer(key) }));
    await eventually(() => reader.received.includes('two'));
    await book.revoke(key.slice(7, 23), false, 'cli');
    expect((await converse(gateway.url, 'fast', bearer(key))).status).toBe(401);
    expect(String(reader.received)).not.toContain('revoked');
    expect(reader.isClosed).toBe(false);
    reader.leave();
    await eventually(() => gateway.services.streams.count === 0);
  });
});
