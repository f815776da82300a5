import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectRefused } from './check.ts';
import { Faultd } from './faultd.ts';
import { type Reply, whole } from './http.ts';
import { KEY } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { type Started, startGateway } from './start.ts';

// Endpoints that are passed on go to the provider that their model names, under the name that it has there.

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  const row = (protocol: ProtocolId, path: string, more: object = {}) => ({
    protocol,
    base_url: `${faultd.url}/${path}`,
    api_key: KEY,
    ...more,
  });
  gateway = await startGateway({
    config: {
      responses: { store: 'off' },
      providers: {
        chat: row('openai-chat', 'chat/v1'),
        chat2: row('openai-chat', 'chat2/v1'),
        closed: row('openai-chat', 'closed/v1', { passthrough: 'off' }),
        resp: row('openai-responses', 'resp/v1'),
        dated: row('openai-chat', 'dated/openai', { api_version: '2024-10-21' }),
        claude: row('anthropic-messages', 'claude/v1'),
        claude2: row('anthropic-messages', 'claude2/v1'),
        gem: row('gemini', 'gem/v1beta'),
        gem2: row('gemini', 'gem2/v1beta'),
      },
      models: {
        speaker: 'chat2/tts',
        mixed: ['gem2/m', 'chat2/m'],
        listener: ['closed/m', 'chat2/m'],
        'demo/hello': 'demo/hello',
      },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

beforeEach(() => faultd.play([{ send: whole(200, '{"from":"upstream"}') }]));

const ANTHROPIC = { 'anthropic-version': '2023-06-01' };

interface Sent {
  path: string;
  body?: string;
  headers?: Record<string, string>;
  method?: string;
}

async function send({ path, body = '', headers = {}, method = 'POST' }: Sent): Promise<Reply> {
  const client = await RawClient.open(gateway.url);
  const reply = await client.send(requestText(method, path, headers, body)).reply();
  client.leave();
  return reply;
}

const BOUNDARY = '----form 7';
const FORM = { 'content-type': `multipart/form-data; boundary="${BOUNDARY}"` };

interface Part {
  name: string;
  value: string;
  file?: string;
}

const form = (...parts: readonly Part[]): string =>
  `${parts
    .map(({ name, value, file }) => {
      const isFile = file === undefined ? '' : `; filename="${file}"\r\nContent-Type: audio/wav`;
      return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${isFile}\r\n\r\n${value}\r\n`;
    })
    .join('')}--${BOUNDARY}--\r\n`;

const json = (value: unknown): string => JSON.stringify(value);

describe('JSON', () => {
  test.each([
    ['/v1/audio/speech', '/v1/audio/speech'],
    ['/v1/images/generations', '/v1/images/generations'],
    ['/v1/images/edits', '/v1/images/edits'],
    ['/v1/moderations', '/v1/moderations'],
    ['/v1/completions', '/v1/completions'],
    ['/v1/responses/compact', '/v1/responses/compact'],
    ['/v1/videos', '/v1/videos'],
    ['/v1/assistants', '/v1/assistants'],
    ['/v1/threads/t/runs', '/v1/threads/t/runs'],
    ['/openai/v1/completions', '/v1/completions'],
    ['/v1/v1/moderations', '/v1/moderations'],
  ])('%s goes to the provider of the model, everything else unchanged', async (path, native) => {
    const text = (model: string): string =>
      `{"big": 12345678901234567890, "model" : "${model}","x":{"model":"chat/inner"}, "f":1.0}`;
    for (const provider of ['chat', 'chat2', 'resp']) {
      faultd.play([{ send: whole(200, '{}') }]);
      const reply = await send({ path, body: text(`${provider}/m/x:1`) });
      expect(faultd.served).toMatchObject([{ path: `/${provider}${native}`, body: text('m/x:1') }]);
      expect(reply.headers).toMatchObject({ 'x-sluice-provider': provider, 'x-sluice-model': 'm/x:1' });
    }
  });

  test.each([
    ['an alias', 'speaker', 'chat2', 'tts'],
    ['the first target that has the endpoint', 'mixed', 'chat2', 'm'],
    ['the first target that passes it on', 'listener', 'chat2', 'm'],
  ])('%s', async (_, model, provider, name) => {
    await send({ path: '/v1/audio/speech', body: json({ model, input: 'hi' }) });
    expect(faultd.served).toMatchObject([{ path: `/${provider}/v1/audio/speech`, body: json({ model: name, input: 'hi' }) }]);
  });

  test('without a content type, and with the one that curl sends', async () => {
    for (const type of ['', 'application/x-www-form-urlencoded', 'application/vnd.api+json']) {
      faultd.play([{ send: whole(200, '{}') }]);
      await send({ path: '/v1/moderations', headers: { 'content-type': type }, body: json({ model: 'chat2/m' }) });
      expect(faultd.served).toMatchObject([{ path: '/chat2/v1/moderations', body: json({ model: 'm' }) }]);
    }
  });

  test.each([json({ input: 'hi' }), json({ model: null, input: 'hi' }), '[]', '"x"', ''])(
    '%j has no model; the first provider gets it unchanged',
    async (body) => {
      await send({ path: '/v1/moderations', body });
      expect(faultd.served).toMatchObject([{ path: '/chat/v1/moderations', body }]);
    },
  );

  test('Anthropic batches have a model in each request', async () => {
    const batch = (...models: readonly string[]): string =>
      json({ requests: models.map((model, i) => ({ custom_id: `${i}`, params: { max_tokens: 1, model, messages: [] } })) });
    for (const path of ['/v1/messages/batches', '/anthropic/v1/messages/batches', '/anthropic/messages/batches']) {
      faultd.play([{ send: whole(200, '{}') }]);
      const headers = path.startsWith('/v1') ? ANTHROPIC : {};
      await send({ path, headers, body: batch('claude2/a', 'claude2/b', 'claude2/a') });
      expect(faultd.served).toMatchObject([{ path: '/claude2/v1/messages/batches', body: batch('a', 'b', 'a') }]);
    }
    faultd.play([{ send: whole(200, '{}') }]);
    const reply = await send({ path: '/v1/messages/batches', headers: ANTHROPIC, body: batch('claude/a', 'claude2/b') });
    expectRefused(
      'anthropic-messages',
      reply,
      400,
      'model: refers to more than one provider ("claude", "claude2"); send one request for each',
    );
    expect(faultd.served).toEqual([]);
  });

  test('other places of a model', async () => {
    await send({ path: '/v1/agents', headers: ANTHROPIC, body: json({ model: { id: 'claude2/a', speed: 'fast' } }) });
    expect(faultd.served).toMatchObject([{ path: '/claude2/v1/agents', body: json({ model: { id: 'a', speed: 'fast' } }) }]);
    faultd.play([{ send: whole(200, '{}') }]);
    await send({ path: '/v1beta/cachedContents', body: json({ model: 'models/gem2/a', ttl: '9s' }) });
    expect(faultd.served).toMatchObject([{ path: '/gem2/v1beta/cachedContents', body: json({ model: 'models/a', ttl: '9s' }) }]);
    faultd.play([{ send: whole(200, '{}') }]);
    await send({ path: '/v1beta/interactions?model=gem2/a&x=1', body: '{}' });
    expect(faultd.served).toMatchObject([{ path: '/gem2/v1beta/interactions?model=a&x=1', body: '{}' }]);
  });
});

describe('multipart', () => {
  const file = { name: 'file', file: 'a.wav', value: 'model\r\n--not it\r\n\0\u00ff' };

  test.each(['/v1/audio/transcriptions', '/v1/audio/translations', '/v1/images/edits', '/v1/images/variations', '/v1/videos'])(
    '%s goes to the provider of the model, at any position of its part',
    async (path) => {
      const other = { name: 'language', value: 'chat/x' };
      for (const at of [0, 1, 2]) {
        const body = (value: string): string => form(...[file, other].toSpliced(at, 0, { name: 'model', value } as typeof file));
        faultd.play([{ send: whole(200, '{}') }]);
        await send({ path, headers: FORM, body: body('chat2/whisper') });
        expect(faultd.served).toMatchObject([{ path: `/chat2${path}`, body: body('whisper') }]);
        expect(faultd.served[0]?.headers['content-type']).toBe(FORM['content-type']);
      }
    },
  );

  test('the model may follow a large file', async () => {
    const large = { ...file, value: 'x'.repeat(4 * 1024 * 1024) };
    await send({ path: '/v1/audio/transcriptions', headers: FORM, body: form(large, { name: 'model', value: 'chat2/m' }) });
    expect(faultd.served[0]?.path).toBe('/chat2/v1/audio/transcriptions');
    expect(faultd.served[0]?.body).toBe(form(large, { name: 'model', value: 'm' }));
  });

  test.each([
    ['a preamble and an epilogue', `preamble\r\n${form({ name: 'model', value: 'chat2/m' })}epilogue`],
    ['padding behind the boundary', form({ name: 'model', value: 'chat2/m' }).replace('7\r\n', '7 \t\r\n')],
    ['a name without quotes', form({ name: 'model', value: 'chat2/m' }).replace('"model"', 'model')],
    [
      'headers in any case and order',
      `--${BOUNDARY}\r\nx: y\r\nCONTENT-DISPOSITION:form-data;NAME="model"\r\n\r\nchat2/m\r\n--${BOUNDARY}--`,
    ],
  ])('%s', async (_, body) => {
    await send({ path: '/v1/audio/transcriptions', headers: FORM, body });
    expect(faultd.served).toMatchObject([{ path: '/chat2/v1/audio/transcriptions', body: body.replace('chat2/m', 'm') }]);
  });

  test('without a model field, the body goes to the first provider unchanged', async () => {
    for (const body of [form(file), form({ ...file, name: 'model' }), form({ name: 'x', value: 'name="model"' })]) {
      faultd.play([{ send: whole(200, '{}') }]);
      await send({ path: '/v1/files', headers: FORM, body });
      expect(faultd.served).toMatchObject([{ path: '/chat/v1/files', body }]);
    }
  });

  const MODEL = { name: 'model', value: 'chat2/m' };
  test.each([
    ['no boundary', { 'content-type': 'multipart/form-data' }, form(MODEL), 'invalid multipart body'],
    ['another boundary', { 'content-type': 'multipart/form-data; boundary=y' }, form(MODEL), 'invalid multipart body'],
    ['no last boundary', FORM, form(MODEL).slice(0, -4), 'invalid multipart body'],
    ['a part without an end of its headers', FORM, form(MODEL).replace('\r\n\r\n', '\r\n'), 'invalid multipart body'],
    ['endless headers', FORM, form(MODEL).replace('"model"', `"model"; x=${'y'.repeat(20_000)}`), 'invalid multipart body'],
    ['too many parts', FORM, form(...Array.from({ length: 1001 }, () => file)), 'invalid multipart body'],
    ['two models', FORM, form(MODEL, MODEL), 'model: must be given only once'],
    ['a name of 513 bytes', FORM, form({ name: 'model', value: 'x'.repeat(513) }), 'model: must be at most 512 bytes'],
  ])('%s is rejected', async (_, headers, body, message) => {
    expectRefused('openai-chat', await send({ path: '/v1/audio/transcriptions', headers, body }), 400, message);
    expect(faultd.served).toEqual([]);
  });

  test('hostile bodies are read in linear time', async () => {
    const lines = `\r\n--${BOUNDARY}x`.repeat(400_000);
    const body = form({ ...file, value: lines }, MODEL);
    await send({ path: '/v1/audio/transcriptions', headers: FORM, body });
    expect(faultd.served[0]?.path).toBe('/chat2/v1/audio/transcriptions');
  });
});

describe('paths', () => {
  const PROMPT = json({ instances: [] });
  test.each([
    ['/v1beta/models/gem2/imagen:predict', '/gem2/v1beta/models/imagen:predict'],
    ['/v1beta/models/gem2%2Fimagen:predict?key=k', '/gem2/v1beta/models/imagen:predict'],
    ['/genai/v1beta/models/gem2/veo:predictLongRunning', '/gem2/v1beta/models/veo:predictLongRunning'],
    ['/v1beta/v1beta/models/gem2/g:batchGenerateContent', '/gem2/v1beta/models/g:batchGenerateContent'],
  ])('POST %s', async (path, expected) => {
    await send({ path, body: PROMPT });
    expect(faultd.served).toMatchObject([{ path: expected, body: PROMPT }]);
  });

  test('operations of a model', async () => {
    await send({ method: 'GET', path: '/v1beta/models/gem2/veo/operations/o1' });
    expect(faultd.served).toMatchObject([{ path: '/gem2/v1beta/models/veo/operations/o1' }]);
  });

  test('files are uploaded to the path for uploads', async () => {
    await send({
      path: '/upload/v1beta/files?uploadType=multipart&key=k',
      body: 'bytes',
      headers: { 'content-type': 'multipart/related; boundary=b' },
    });
    expect(faultd.served).toMatchObject([{ path: '/gem/upload/v1beta/files?uploadType=multipart', body: 'bytes' }]);
  });

  test.each(['chat2/m', 'chat2%2Fm'])('a deployment is the model, with any model in the body: %s', async (deployment) => {
    const path = `/openai/deployments/${deployment}/images/generations?api-version=2024-10-21`;
    const bodies: [body: string, sent: string][] = [
      ['{"n":1}', '{"n":1,"model":"m"}'],
      ['{"model":"ignored","n":1}', '{"model":"m","n":1}'],
      ['{"model":null,"n":1}', '{"model":"m","n":1}'],
    ];
    for (const [body, sent] of bodies) {
      faultd.play([{ send: whole(200, '{}') }]);
      await send({ path, body });
      expect(faultd.served).toMatchObject([{ path: '/chat2/v1/images/generations', body: sent }]);
    }
    faultd.play([{ send: whole(200, '{}') }]);
    const part = { name: 'language', value: 'en' };
    await send({ path: path.replace('images/generations', 'audio/transcriptions'), headers: FORM, body: form(part) });
    expect(faultd.served[0]?.path).toBe('/chat2/v1/audio/transcriptions');
    expect(faultd.served[0]?.body.toLowerCase()).toBe(form({ name: 'model', value: 'm' }, part).toLowerCase());
  });

  test.each(['audio/speech', 'images/generations', 'completions'])(
    'dated Azure providers have the model in the path: %s',
    async (endpoint) => {
      await send({ path: `/v1/${endpoint}`, body: json({ model: 'dated/my dep', input: 'hi' }) });
      expect(faultd.served).toMatchObject([{ path: `/dated/openai/deployments/my%20dep/${endpoint}?api-version=2024-10-21` }]);
    },
  );
});

describe('never another vendor', () => {
  const OPENAI = ['/v1/audio/speech', '/v1/moderations', '/v1/completions', '/v1/responses/compact'];

  test.each(OPENAI)('%s: a model of an unknown provider gets 404, as in chat', async (path) => {
    for (const model of ['nowhere/m', 'nobody-has-this']) {
      const reply = await send({ path, body: json({ model, input: 'secret' }) });
      expectRefused('openai-chat', reply, 404, `no provider is configured for model "${model}"`);
    }
    expect(faultd.served).toEqual([]);
  });

  test.each([
    ['/v1/audio/speech', 'gem/m', {}, 'provider "gem" has no POST /v1/audio/speech: its protocol is gemini'],
    ['/v1/moderations', 'claude/m', {}, 'provider "claude" has no POST /v1/moderations: its protocol is anthropic-messages'],
    [
      '/v1/messages/batches',
      'chat/m',
      ANTHROPIC,
      'provider "chat" has no POST /v1/messages/batches: its protocol is openai-chat',
    ],
    ['/v1/audio/speech', 'demo/hello', {}, 'provider "demo" has no POST /v1/audio/speech'],
  ])('%s for %s gets an error with the reason', async (path, model, headers, message) => {
    const body = path.endsWith('batches') ? { requests: [{ params: { model } }] } : { model };
    const reply = await send({ path, headers, body: json(body) });
    expectRefused(headers === ANTHROPIC ? 'anthropic-messages' : 'openai-chat', reply, 404, message);
    expect(faultd.served).toEqual([]);
  });

  test('a provider without passthrough is not replaced by another', async () => {
    const reply = await send({ path: '/v1/audio/speech', body: json({ model: 'closed/m' }) });
    expectRefused('openai-chat', reply, 403, 'set providers.closed.passthrough to "known" or "all"');
    expect(faultd.served).toEqual([]);
  });

  test('paths of Anthropic do not reach OpenAI', async () => {
    const body = json({ model: 'claude2/m', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] });
    for (const path of ['/anthropic/messages', '/anthropic/v1/messages', '/anthropic/messages/count_tokens']) {
      faultd.play([{ send: whole(404, '{}') }]);
      await send({ path, body });
      expect(faultd.served).toMatchObject([{ path: expect.stringMatching(/^\/claude2\/v1\/messages(\/count_tokens)?$/) }]);
    }
  });

  test.each([
    ['/v1/moderations', '{"model":"chat2/m"', 'the request body is not valid JSON'],
    ['/v1/moderations', '{"model":"chat2/m","model":"chat/m"}', 'model: must be given only once'],
    ['/v1/moderations?model=chat/m', '{"model":"chat2/m"}', 'model: refers to more than one provider ("chat2", "chat")'],
    ['/v1/moderations', json({ model: 'x'.repeat(513) }), 'model: must be at most 512 bytes'],
  ])('%s %s: an ambiguous model is rejected', async (path, body, message) => {
    expectRefused('openai-chat', await send({ path, body }), 400, message);
    expect(faultd.served).toEqual([]);
  });

  test('an endpoint without a passthrough provider is rejected before its body is read', async () => {
    const client = await RawClient.open(gateway.url);
    client.send('POST /v1/organization/invites HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000000\r\n\r\n');
    expectRefused('openai-chat', await client.reply(), 404, 'is not a known endpoint');
    client.leave();
  });
});
