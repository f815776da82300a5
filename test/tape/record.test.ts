import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { MAX_CREDENTIALS } from '../../packages/gateway/src/tape/scrub.ts';
import { ConnectProxy } from '../../packages/gateway/test/gateway/connect-proxy.ts';
import { Faultd } from '../../packages/gateway/test/gateway/faultd.ts';
import { chunk, LAST_CHUNK, streamHead, whole } from '../../packages/gateway/test/gateway/http.ts';
import { RawClient, requestText } from '../../packages/gateway/test/gateway/raw-client.ts';
import { joinPaths } from '../../packages/lab/src/tape/format.ts';
import { everythingIn, factsIn, type Recording, startRecorder, startReplayer } from './tapes.ts';

let upstream: Faultd;

let recording: Recording;

beforeAll(async () => {
  upstream = await Faultd.start();
});

afterAll(() => upstream.stop());

afterEach(() => recording.close());

const QUESTION = { model: 'gpt-5', stream: true, messages: [{ role: 'user', content: 'hi' }] };

const PIECES = ['data: {"id":"1","choices":[{"index":0,"del', 'ta":{"content":"héllo"}}]}\n\n', 'data: [DONE]\n\n'];

const BODY = PIECES.join('');

const STREAM = [
  { send: streamHead({ 'x-request-id': 'r1' }) },
  ...PIECES.flatMap((piece) => [{ send: chunk(piece) }, { wait: 20 }]),
];

const ask = (url: string, body: unknown = QUESTION, headers: Record<string, string> = {}) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

test('the upstream is reached through the proxy of the environment', async () => {
  const proxy = await ConnectProxy.start();
  proxy.routes.set('upstream.test:80', Number(new URL(upstream.url).port));
  upstream.play([...STREAM, { send: LAST_CHUNK }]);
  recording = await startRecorder('http://upstream.test', undefined, undefined, { HTTP_PROXY: `http://127.0.0.1:${proxy.port}` });
  const heard = await ask(recording.url);
  expect(await heard.text()).toBe(BODY);
  expect(proxy.heads).toHaveLength(1);
  await recording.close();
  await proxy.stop();
});

test('an exchange is a folder with all facts', async () => {
  upstream.play([...STREAM, { send: LAST_CHUNK }]);
  recording = await startRecorder(upstream.url);
  const heard = await ask(recording.url, QUESTION, { authorization: 'Bearer sk-canary-0123456789' });
  expect(await heard.text()).toBe(BODY);
  expect(heard.headers.get('x-request-id')).toBe('r1');
  const { name = '' } = await recording.nth(1);
  expect(name).toBe('0001-chat-gpt-5');
  const folder = join(recording.folder, name);
  expect(readdirSync(folder).toSorted()).toEqual(['exchange.json', 'request.json', 'response.sse']);
  expect(readFileSync(join(folder, 'response.sse'), 'utf8')).toBe(BODY);
  expect(JSON.parse(readFileSync(join(folder, 'request.json'), 'utf8'))).toEqual(QUESTION);
  expect(factsIn(recording.folder, name)).toMatchObject({
    tape: 1,
    protocol: 'openai-chat',
    model: 'gpt-5',
    stream: true,
    end: 'complete',
    request: { method: 'POST', path: '/v1/chat/completions', body: 'request.json' },
    response: {
      status: 200,
      headers: { 'content-type': 'text/event-stream', 'x-request-id': 'r1' },
      body: 'response.sse',
      reads: PIECES.map((piece) => [expect.any(Number), Buffer.byteLength(piece)]),
    },
  });
  // The upstream got what the client sent.
  expect(upstream.served[0]).toMatchObject({ path: '/v1/chat/completions', body: JSON.stringify(QUESTION) });
  expect(upstream.served[0]?.headers).toMatchObject({
    authorization: 'Bearer sk-canary-0123456789',
    'accept-encoding': 'identity',
  });
  expect(statSync(folder).mode & 0o077).toBe(0);
});

test('an exchange is reported once, as saved, when its listener throws', async () => {
  upstream.play([...STREAM, { send: LAST_CHUNK }]);
  recording = await startRecorder(upstream.url, undefined, () => {
    throw new Error('the listener failed');
  });
  expect(await (await ask(recording.url)).text()).toBe(BODY);
  await recording.nth(1);
  await recording.close();
  expect(recording.saved.map(({ name, failure }) => ({ name, failure }))).toEqual([
    { name: '0001-chat-gpt-5', failure: undefined },
  ]);
});

test('a file name that is not ASCII goes through to the byte', async () => {
  const disposition = Buffer.from('attachment; filename="Übersicht 報告.pdf"').toString('latin1');
  const head = `HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-disposition: ${disposition}\r\n\r\nhello`;
  upstream.play([{ send: Buffer.from(head, 'latin1') }]);
  recording = await startRecorder(upstream.url);
  const client = await RawClient.open(recording.url);
  const reply = await client.send(requestText('GET', '/v1/files/file-1/content')).reply();
  client.leave();
  expect(reply).toMatchObject({ status: 200, headers: { 'content-disposition': disposition } });
});

describe('no keys and no personal data are written', () => {
  const KEY = 'canary-key-5d41402abc4b2a76b9719d911017c592';
  const CARRIERS: readonly (readonly [string, Record<string, string>, string])[] = [
    ['authorization', { authorization: `Bearer ${KEY}` }, ''],
    ['x-api-key', { 'x-api-key': KEY }, ''],
    ['api-key', { 'api-key': KEY }, ''],
    ['x-goog-api-key', { 'x-goog-api-key': KEY }, ''],
    ['a query', {}, `?key=${KEY}`],
    ['cookies', { cookie: KEY }, ''],
    ['an organization', { 'openai-organization': KEY, 'openai-project': KEY, 'x-user-email': KEY }, ''],
  ];

  test.each(CARRIERS)('%s', async (_, headers, query) => {
    // The upstream tells it to everybody: in headers, in the answer, and half hidden in an error.
    const isKnown = !('openai-organization' in headers);
    const said = JSON.stringify({ error: { message: `wrong key ${isKnown ? KEY : ''} or sk-proj-****wxyz` } });
    upstream.play([{ send: whole(401, said, { 'set-cookie': KEY, 'openai-organization': KEY, 'x-request-id': 'r2' }) }]);
    recording = await startRecorder(upstream.url);
    const path = `/v1/chat/completions${query}`;
    const body = { ...QUESTION, user: KEY, metadata: { user_id: KEY }, safety_identifier: KEY };
    const heard = await fetch(recording.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    // The client hears all of it: it is about its own key.
    expect(await heard.text()).toBe(said);
    const { draft } = await recording.nth(1);
    expect(draft.response).toMatchObject({ status: 401, redacted: true, headers: { 'x-request-id': 'r2' } });
    const written = everythingIn(recording.folder);
    for (const form of [KEY, Buffer.from(KEY).toString('base64'), 'wxyz']) expect(written).not.toContain(form);
    expect(written).toContain('r2');
  });

  describe('credentials of earlier requests', () => {
    const SECRET = 'canary "k\u00e9y" /+5d41402abc4b2a76';
    const BASIC = Buffer.from('operator:canary-password-1').toString('base64');
    const KEYS: readonly (readonly [string, Record<string, string>, string, string])[] = [
      ['a bearer token', { authorization: `Bearer ${KEY}` }, '', KEY],
      ['a token without a scheme', { authorization: KEY }, '', KEY],
      ['a password', { authorization: `Basic ${BASIC}` }, '', 'canary-password-1'],
      ['a key in a header of a vendor', { 'x-portkey-api-key': KEY }, '', KEY],
      ['a token in a header of a vendor', { 'x-amz-security-token': KEY }, '', KEY],
      ['one of several cookies', { cookie: `theme=dark; session=${KEY}` }, '', KEY],
      ['a key in the query', {}, `?api_key=${encodeURIComponent(SECRET)}`, SECRET],
    ];
    const echo = (key: string): string =>
      [
        key,
        encodeURIComponent(key),
        JSON.stringify({ key }),
        Buffer.from(key).toString('base64'),
        Buffer.from(`x${key}`).toString('base64'),
        Buffer.from(key).toString('hex'),
      ].join(' ');

    test.each(KEYS)('%s is not written when a later response repeats it', async (_, headers, query, key) => {
      recording = await startRecorder(upstream.url);
      upstream.play([{ send: whole(200, '{}') }]);
      const path = `/v1/chat/completions${query}`;
      await fetch(recording.url + path, { method: 'POST', headers, body: JSON.stringify(QUESTION) });
      await recording.nth(1);
      // Later requests have no key, or another one.
      upstream.play([{ send: whole(200, echo(key), { 'x-request-id': encodeURIComponent(key) }) }]);
      await ask(recording.url, { ...QUESTION, user_text: key });
      await recording.nth(2);
      upstream.play([{ send: streamHead() }, { send: chunk(echo(key)) }, { send: LAST_CHUNK }]);
      await (await ask(recording.url, QUESTION, { authorization: 'Bearer another-key-0123456789' })).text();
      await recording.nth(3);
      const written = everythingIn(recording.folder);
      const latin = Buffer.from(key).toString('latin1');
      const base64 = Buffer.from(key).toString('base64').slice(0, -4);
      for (const form of [latin, encodeURIComponent(key), base64, Buffer.from(key).toString('hex')])
        expect(written).not.toContain(form);
    });

    test('a request with more credentials than can be kept is rejected, and does not reach the upstream', async () => {
      recording = await startRecorder(upstream.url);
      upstream.play([{ send: whole(200, '{}') }]);
      const send = (n: number) => ask(recording.url, QUESTION, { authorization: `Bearer canary-key-number-${n}` });
      for (let n = 0; n < MAX_CREDENTIALS; n++) expect((await send(n)).status).toBe(200);
      const { length } = upstream.served;
      const rejected = await send(MAX_CREDENTIALS);
      expect(rejected.status).toBe(403);
      expect(await rejected.json()).toMatchObject({ error: { message: expect.stringContaining('restart "sluice record"') } });
      expect(upstream.served).toHaveLength(length);
      // Known ones go on.
      expect((await send(0)).status).toBe(200);
    });

    test('credentials of the largest size are kept', async () => {
      recording = await startRecorder(upstream.url);
      upstream.play([{ send: whole(200, '{}') }]);
      const send = (n: number) => ask(recording.url, QUESTION, { authorization: `Bearer ${String(n).repeat(15_000)}` });
      const statuses = [1, 2, 3, 4, 5].map(async (n) => (await send(n)).status);
      expect((await Promise.all(statuses)).toSorted()).toEqual([200, 200, 200, 200, 403]);
      expect((await recording.nth(4)).failure).toBeUndefined();
    });
  });

  test('files can be read by their owner only', async () => {
    upstream.play([{ send: whole(200, '{}') }]);
    recording = await startRecorder(upstream.url);
    await (await ask(recording.url)).text();
    const { name = '' } = await recording.nth(1);
    const folder = join(recording.folder, name);
    const modes = readdirSync(folder).map((file) => statSync(join(folder, file)).mode & 0o777);
    expect(modes).toEqual([0o600, 0o600, 0o600]);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  test('model text about keys is unchanged', async () => {
    const said = JSON.stringify({ choices: [{ message: { content: 'use Bearer YOUR_API_KEY and sk-0123456789abcdef' } }] });
    upstream.play([{ send: whole(200, said) }]);
    recording = await startRecorder(upstream.url);
    await (await ask(recording.url)).text();
    const { name = '', draft } = await recording.nth(1);
    expect(draft.response).not.toHaveProperty('redacted');
    expect(readFileSync(join(recording.folder, name, 'response.json'), 'utf8')).toBe(said);
  });
});

describe('endings', () => {
  test('the upstream closes early', async () => {
    upstream.play([...STREAM.slice(0, 4), { reset: true }]);
    recording = await startRecorder(upstream.url);
    const client = await RawClient.open(recording.url);
    const reply = await client.send(requestText('POST', '/v1/chat/completions', {}, JSON.stringify(QUESTION))).reply();
    expect(reply.isWhole).toBe(false);
    const { draft } = await recording.nth(1);
    expect(draft).toMatchObject({ end: 'upstream_cut', response: { status: 200 } });
    expect(BODY.startsWith(Buffer.from(draft.response?.body ?? []).toString())).toBe(true);
  });

  test('the client disconnects', async () => {
    upstream.play([...STREAM, { hang: true }]);
    recording = await startRecorder(upstream.url);
    const client = await RawClient.open(recording.url);
    client.send(requestText('POST', '/v1/chat/completions', {}, JSON.stringify(QUESTION)));
    await client.sees('[DONE]');
    client.leave();
    const { draft } = await recording.nth(1);
    expect(draft.end).toBe('client_gone');
    expect(Buffer.from(draft.response?.body ?? []).toString()).toBe(BODY);
    await upstream.served[0]?.closed;
  });

  test('the upstream does not respond', async () => {
    recording = await startRecorder('http://127.0.0.1:9');
    const heard = await ask(recording.url);
    expect(heard.status).toBe(502);
    expect(await heard.json()).toMatchObject({ error: { message: expect.stringContaining('connection') } });
    expect((await recording.nth(1)).draft).toMatchObject({ end: 'unreachable', response: null });
  });

  test('above the recording limit, the client still gets everything', async () => {
    upstream.play([
      { send: streamHead() },
      { send: chunk('x'.repeat(600)) },
      { wait: 30 },
      { send: chunk('y'.repeat(900)) },
      { send: LAST_CHUNK },
    ]);
    recording = await startRecorder(upstream.url, 1000);
    expect((await (await ask(recording.url)).text()).length).toBe(1500);
    const { draft } = await recording.nth(1);
    expect(draft.end).toBe('too_large');
    expect(draft.response?.body.length).toBeLessThanOrEqual(1000);
  });
});

test('a request that is too large is rejected in the protocol of the client', async () => {
  recording = await startRecorder(upstream.url, 100);
  const heard = await ask(recording.url, { ...QUESTION, messages: 'x'.repeat(200) });
  expect(heard.status).toBe(413);
  expect(await heard.json()).toHaveProperty('error.message');
  expect(recording.saved).toEqual([]);
});

test.each([
  ['a page of somebody else', { origin: 'https://evil.example' }],
  ['a browser of somebody else', { 'sec-fetch-site': 'cross-site' }],
  ['a name of somebody else', { host: 'evil.example' }],
  ['a name of the local network', { host: 'machine.local' }],
])('%s is rejected', async (_, headers) => {
  upstream.play([{ send: whole(200, '{}') }]);
  recording = await startRecorder(upstream.url);
  const client = await RawClient.open(recording.url);
  const reply = await client.send(requestText('POST', '/v1/chat/completions', headers, '{}')).reply();
  expect(reply.status).toBe(403);
  expect(upstream.served).toEqual([]);
  client.leave();
});

test.each(['//evil.example/v1/chat/completions', 'http://evil.example/v1/chat/completions', '/../../@evil.example/'])(
  'no path reaches another upstream: %s',
  async (path) => {
    upstream.play([{ send: whole(200, '{}') }]);
    recording = await startRecorder(upstream.url);
    const client = await RawClient.open(recording.url);
    await client.send(requestText('POST', path, {}, '{}')).reply();
    expect(upstream.served).toHaveLength(1);
    client.leave();
  },
);

test.each([
  ['', '/v1/chat/completions', '/v1/chat/completions'],
  ['/', '/v1/models', '/v1/models'],
  ['/v1', '/v1/chat/completions', '/v1/chat/completions'],
  ['/api/v1', '/v1/chat/completions', '/api/v1/chat/completions'],
  ['/api/v1', '/api/v1/chat/completions', '/api/v1/chat/completions'],
  ['/api/v1', '/chat/completions', '/api/v1/chat/completions'],
  ['/openai', '/v1/models?a=/x', '/openai/v1/models?a=/x'],
])('a base %s and a path %s', (base, path, joined) => {
  expect(joinPaths(base, path)).toBe(joined);
});

test('recording appends to a tape, and an incomplete folder is ignored', async () => {
  upstream.play([{ send: whole(200, '{"a":1}') }]);
  recording = await startRecorder(upstream.url);
  await (await ask(recording.url)).text();
  await (await ask(recording.url, { ...QUESTION, model: '../../etc/passwd' })).text();
  await recording.nth(2);
  // Whichever was written first.
  expect(recording.saved.map(({ name }) => name).toSorted()).toEqual(['0001-chat-gpt-5', '0002-chat-etc-passwd']);
  expect(readdirSync(recording.folder).some((name) => name.startsWith('.'))).toBe(false);
  expect(existsSync(join(recording.folder, '..', 'etc'))).toBe(false);
});

describe('recorded, then replayed', () => {
  const BYTES = Buffer.from([0, 255, 254, 128, 13, 10, 0]);
  const ANSWERS: readonly (readonly [string, string, readonly (string | Buffer)[]])[] = [
    ['a stream', '/v1/chat/completions', [streamHead(), ...PIECES.map(chunk), LAST_CHUNK]],
    ['a whole answer', '/v1/chat/completions', [whole(200, '{"id":"x","choices":[]}\n', { 'x-ratelimit-remaining': '7' })]],
    ['an error', '/v1/messages', [whole(529, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')]],
    ['a limit', '/v1/responses', [whole(429, '{"error":{"message":"slow down"}}', { 'retry-after': '3' })]],
    [
      'a stream in a list',
      '/v1beta/models/g:streamGenerateContent',
      [whole(200, '[{"candidates":[]}\r\n,\r\n{"candidates":[]}]')],
    ],
    ['bytes', '/v1/audio/speech', [whole(200, BYTES, { 'content-type': 'audio/mpeg' })]],
    ['no bytes', '/v1/files/f1', [whole(200, '')]],
    ['something unknown', '/other/place?x=1', [whole(404, 'not here', { 'content-type': 'text/plain; charset=utf-8' })]],
  ];
  const SAME = ['content-type', 'content-length', 'retry-after', 'x-ratelimit-remaining', 'transfer-encoding'];

  test.each(ANSWERS)('%s is the same, byte for byte', async (_, path, sent) => {
    upstream.play(sent.flatMap((send) => [{ send }, { wait: 10 }]));
    recording = await startRecorder(upstream.url);
    const hear = async (url: string) => {
      const client = await RawClient.open(url);
      const reply = await client.send(requestText('POST', path, {}, JSON.stringify(QUESTION))).reply();
      client.leave();
      return { status: reply.status, body: reply.body, headers: SAME.map((name) => reply.headers[name]), isWhole: reply.isWhole };
    };
    const first = await hear(recording.url);
    await recording.nth(1);
    const replayer = await startReplayer(recording.folder);
    const second = await hear(replayer.url);
    await replayer.close();
    expect(second).toEqual(first);
    expect(first.isWhole).toBe(true);
  });
});
