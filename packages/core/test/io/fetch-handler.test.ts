import { describe, expect, test } from 'vitest';
import { CODECS, convertResponseToStream } from '../../src/engine/index.ts';
import {
  accumulate,
  convertRequest,
  convertResponse,
  createFetchHandler,
  type FetchHandlerOptions,
  type ProtocolId,
  type ResolvedUpstream,
} from '../../src/index.ts';

const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];
const PAIRS = PROTOCOLS.flatMap((client) => PROTOCOLS.map((upstream) => [client, upstream] as const));
const QUESTION = { model: 'gate', max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] };
const COMPLETION = {
  id: 'a',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Grüße 😀' }, finish_reason: 'stop' }],
};

const PATHS = {
  'openai-chat': () => '/v1/chat/completions',
  'anthropic-messages': () => '/v1/messages',
  'openai-responses': () => '/v1/responses',
  gemini: (isStream: boolean) => `/v1beta/models/gate:${isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
} as const satisfies Record<ProtocolId, (isStream: boolean) => string>;

/** A question of a client, as its SDK would send it. */
function questionOf(client: ProtocolId, isStream: boolean): Request {
  const { body } = convertRequest({ ...QUESTION, stream: isStream }, { from: 'openai-chat', to: client });
  return post(PATHS[client](isStream), JSON.stringify(body));
}

const post = (path: string, body: string): Request => new Request(`https://gate.example${path}`, { method: 'POST', body });

interface Asked {
  url: string;
  init: RequestInit;
}

/** An upstream that answers in its protocol, and remembers what it was asked. */
function upstreamOf(protocol: ProtocolId, asked: Asked[] = []): NonNullable<FetchHandlerOptions['fetch']> {
  return async (url, init) => {
    asked.push({ url, init });
    const isStream = url.includes('streamGenerate') || /"stream":true/.test(String(init.body));
    if (!isStream) return Response.json(convertResponse(COMPLETION, { from: 'openai-chat', to: protocol }).body);
    const { body } = convertResponseToStream(COMPLETION, { from: CODECS['openai-chat'], to: CODECS[protocol] });
    return new Response(Buffer.from(body), { headers: { 'content-type': 'text/event-stream' } });
  };
}

const answererOf = (protocol: ProtocolId): ResolvedUpstream => ({
  provider: { id: 'p', protocol, base_url: 'https://upstream.example/v1', api_key: 'secret-key' },
  model: 'theirs',
});

const handlerOf = (protocol: ProtocolId, fetch = upstreamOf(protocol), more: Partial<FetchHandlerOptions> = {}) =>
  createFetchHandler({ resolve: (model) => (model === 'gate' ? answererOf(protocol) : undefined), fetch, ...more });

describe.each(PAIRS)('%s client, %s upstream', (client, upstream) => {
  test('a stream', async () => {
    const response = await handlerOf(upstream)(questionOf(client, true));
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    const read = await accumulate(response.body ?? '', { protocol: client });
    expect(read).toMatchObject({ text: 'Grüße 😀', complete: true, error: null });
  });

  test('a whole response', async () => {
    const asked: Asked[] = [];
    const response = await handlerOf(upstream, upstreamOf(upstream, asked))(questionOf(client, false));
    const { response: read } = convertResponse(await response.json(), { from: client, to: 'openai-chat' });
    expect(read.content).toMatchObject([{ type: 'text', text: 'Grüße 😀' }]);
    expect(asked).toHaveLength(1);
    expect(asked[0]?.url).toMatch(/^https:\/\/upstream\.example\//);
    expect(`${asked[0]?.url} ${asked[0]?.init.body}`).toContain('theirs');
    expect(asked[0]?.init.redirect).toBe('manual');
  });

  test('an error keeps its status and reveals nothing about the upstream', async () => {
    const { body, status } = { status: 429, body: { error: { message: 'slow down', type: 'rate_limit_error', code: 429 } } };
    const refuse = async () =>
      Response.json(body, { status, headers: { 'retry-after': '7', server: 'inner', 'set-cookie': 'a=b' } });
    const response = await handlerOf(upstream, refuse)(questionOf(client, true));
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '7']);
    expect([response.headers.get('server'), response.headers.get('set-cookie')]).toEqual([null, null]);
    expect(JSON.stringify(await response.json())).toContain('slow down');
  });
});

describe.each(PAIRS.flatMap(([client, upstream]) => [true, false].map((passthrough) => ({ client, upstream, passthrough }))))(
  '$client client, $upstream upstream, passthrough $passthrough',
  ({ client, upstream, passthrough }) => {
    const messageOf = async (reply: Response): Promise<string> => {
      const resolve = () => ({ ...answererOf(upstream), passthrough });
      const response = await createFetchHandler({ resolve, fetch: async () => reply })(questionOf(client, false));
      expect(response.status).toBe(reply.status);
      return JSON.parse(await response.text()).error.message;
    };

    test('a rejected provider key is reported as that of the provider', async () => {
      const body = { type: 'error', error: { type: 'authentication_error', message: 'invalid x-api-key' } };
      expect(await messageOf(Response.json(body, { status: 401 }))).toBe('provider "p" rejected its API key (401)');
    });

    test('an HTML page is not shown', async () => {
      const page = new Response('<html><body>http://10.0.3.7:8000</body></html>', { status: 502 });
      expect(await messageOf(page)).toBe('provider "p" returned 502 with an HTML page');
    });
  },
);

describe.each(PROTOCOLS)('%s', (client) => {
  const errorOf = async (request: Request, fetch = upstreamOf('openai-chat'), more: Partial<FetchHandlerOptions> = {}) => {
    const response = await handlerOf('openai-chat', fetch, more)(request);
    const reply = { status: response.status, headers: {}, body: await response.json() };
    const context = {
      report: () => undefined,
      note: () => undefined,
      now: () => 1,
      newId: String,
      profile: CODECS[client].profileFor(''),
      policy: {},
    };
    return { status: response.status, ...CODECS[client].error.decode(reply, context) };
  };
  const path = PATHS[client](false);

  test('a body that is not JSON is rejected with 400', async () => {
    expect(await errorOf(post(path, '{oops'))).toMatchObject({ status: 400, message: expect.stringContaining('not valid JSON') });
  });

  test('what is too long', async () => {
    const error = await errorOf(post(path, ' '.repeat(100)), undefined, { maxBytes: 99 });
    expect(error).toMatchObject({ status: 413, message: expect.stringContaining('99 bytes') });
  });

  test('an unknown model gets 404', async () => {
    const request = client === 'gemini' ? post('/v1beta/models/other:generateContent', '{}') : post(path, '{"model":"other"}');
    expect(await errorOf(request)).toMatchObject({ status: 404, message: expect.stringContaining('"other"') });
  });

  test.each([
    ['512 bytes of ASCII', 'x'.repeat(512), 404],
    ['513 bytes of ASCII', 'x'.repeat(513), 400],
    ['513 bytes in 171 characters', '語'.repeat(171), 400],
    ['510 bytes in 170 characters', '語'.repeat(170), 404],
    ['4 MB', 'x'.repeat(4_000_000), 400],
  ])('a model name of %s', async (_, model, status) => {
    const request =
      client === 'gemini' ? post(`/v1beta/models/${model}:generateContent`, '{}') : post(path, JSON.stringify({ model }));
    const error = await errorOf(request);
    expect(error).toMatchObject({ status, message: expect.stringContaining(status === 400 ? '512 bytes' : model.slice(0, 9)) });
    expect(error.message.length).toBeLessThan(300);
  });

  test.each([
    ['an upstream that cannot be reached', async () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.7:443'))],
    ['a redirect', async () => new Response(null, { status: 302, headers: { location: 'https://evil.example' } })],
    ['an answer that is too long', async () => new Response('x'.repeat(5000))],
  ])('%s', async (_, fetch) => {
    const error = await errorOf(questionOf(client, false), fetch, { maxBytes: 4000 });
    expect(error.status).toBe(502);
    expect(error.message).not.toMatch(/10\.0\.0\.7|evil|secret-key/);
  });

  const broken = (reason: string): ReadableStream<Uint8Array> => {
    const pieces = [new TextEncoder().encode('{"a"')];
    return new ReadableStream({
      pull(controller) {
        const piece = pieces.shift();
        if (piece) controller.enqueue(piece);
        else controller.error(new Error(reason));
      },
    });
  };

  test.each([200, 500])('a whole response with status %s that is cut is an error of the upstream', async (status) => {
    const fetch = async () => new Response(broken('reset by 10.0.0.7'), { status });
    const error = await errorOf(questionOf(client, false), fetch);
    expect(error).toMatchObject({ status: 502, message: expect.stringContaining('closed the connection') });
    expect(error.message).not.toContain('10.0.0.7');
  });

  test('a request that is cut is an error of the client', async () => {
    const init = { method: 'POST', body: broken('reset'), duplex: 'half' } as RequestInit;
    const error = await errorOf(new Request(`https://gate.example${path}`, init));
    expect(error).toMatchObject({ status: 499, message: expect.stringContaining('closed the connection') });
  });

  test('passthrough keeps the bytes of a whole response', async () => {
    const text = '{"big":12345678901234567890,\n "f":1.0, "text":"\\u00fc"}';
    const headers = { 'content-type': 'application/json; charset=utf-8', 'set-cookie': 'a=b' };
    const resolve = () => ({ ...answererOf(client), passthrough: true });
    const handler = createFetchHandler({ resolve, fetch: async () => new Response(text, { status: 201, headers }) });
    const response = await handler(questionOf(client, false));
    expect(await response.text()).toBe(text);
    expect([response.status, response.headers.get('content-type'), response.headers.get('set-cookie')]).toEqual([
      201,
      'application/json; charset=utf-8',
      null,
    ]);
  });

  test('passthrough keeps the bytes of an error', async () => {
    const text = '{"error": {"message":"slow down","code":1.0}}';
    const resolve = () => ({ ...answererOf(client), passthrough: true });
    const headers = { 'content-type': 'application/json', 'retry-after': '7' };
    const handler = createFetchHandler({ resolve, fetch: async () => new Response(text, { status: 429, headers }) });
    const response = await handler(questionOf(client, false));
    expect([response.status, response.headers.get('retry-after'), await response.text()]).toEqual([429, '7', text]);
  });

  test('a stream that breaks off ends in an error', async () => {
    const { body } = convertResponseToStream(COMPLETION, { from: CODECS['openai-chat'], to: CODECS['openai-chat'] });
    const cut = async () => new Response(Buffer.from(body).subarray(0, body.length / 2));
    const response = await handlerOf('openai-chat', cut)(questionOf(client, true));
    const read = await accumulate(response.body ?? '', { protocol: client });
    expect(read.complete && read.error === null).toBe(false);
  });
});

test.each(PAIRS)(
  'a byte order mark before a request and a response is skipped: %s client, %s upstream',
  async (client, upstream) => {
    const question = questionOf(client, false);
    const marked = post(PATHS[client](false), `\uFEFF${await question.text()}`);
    const { body } = convertResponse(COMPLETION, { from: 'openai-chat', to: upstream });
    const reply = await handlerOf(upstream, async () => new Response(`\uFEFF${JSON.stringify(body)}`))(marked);
    expect(reply.status).toBe(200);
    expect(JSON.stringify(await reply.json())).toContain('Grüße');
  },
);

test('numbers in arguments that JSON.parse changes are kept, in both directions', async () => {
  const input = '{"id":12345678901234567890}';
  const content = `[{"type":"tool_use","id":"t","name":"f","input":${input}}]`;
  const message = `{"id":"m","type":"message","role":"assistant","model":"c","stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2},"content":${content}}`;
  const response = await handlerOf('anthropic-messages', async () => new Response(message))(questionOf('openai-chat', false));
  expect(await response.text()).toContain(JSON.stringify(input));

  const asked: Asked[] = [];
  const history = `{"model":"gate","max_tokens":9,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":${content}},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}]}`;
  await handlerOf('openai-chat', upstreamOf('openai-chat', asked))(post('/v1/messages', history));
  expect(asked[0]?.init.body).toContain(JSON.stringify(input));
});

test('counts of tokens are estimated where the upstream has none', async () => {
  const response = await handlerOf('openai-chat')(post('/v1/messages/count_tokens', JSON.stringify(QUESTION)));
  expect(await response.json()).toEqual({ input_tokens: expect.any(Number) });
});

test.each([
  ['GET', '/v1/chat/completions'],
  ['POST', '/v1/audio/speech'],
  ['POST', '/nothing'],
])('%s %s is not supported', async (method, path) => {
  const request = new Request(`https://gate.example${path}`, { method, ...(method === 'POST' && { body: '{}' }) });
  const response = await handlerOf('openai-chat')(request);
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining(path) } });
});

test('a client that goes away takes the upstream with it', async () => {
  const asked: Asked[] = [];
  const client = new AbortController();
  const request = new Request(questionOf('openai-chat', false), { signal: client.signal });
  await handlerOf('openai-chat', upstreamOf('openai-chat', asked))(request);
  client.abort();
  expect(asked[0]?.init.signal?.aborted).toBe(true);
});

test('a fault of the program is not hidden', async () => {
  const handler = createFetchHandler({ resolve: () => Promise.reject(new TypeError('a bug')) });
  await expect(handler(questionOf('openai-chat', false))).rejects.toThrow('a bug');
});
