import { describe, expect, test } from 'vitest';
import { CodecError, createExchange, type Provider, type WireRequest } from '../../src/index.ts';

const openai: Provider = { id: 'openai', protocol: 'openai-chat', base_url: 'https://api.example.com/v1', api_key: 'sk-1' };
const google: Provider = { id: 'google', protocol: 'gemini', base_url: 'https://g.example.com', api_key: 'g-1' };

const claude = (over: object = {}): WireRequest => ({
  method: 'POST',
  path: '/v1/messages',
  headers: { 'x-api-key': 'of the client' },
  body: { model: 'claude', max_tokens: 99, messages: [{ role: 'user', content: 'hi' }], ...over },
});

const chat = (over: object = {}): WireRequest => ({
  method: 'POST',
  path: '/v1/chat/completions',
  headers: { authorization: 'Bearer of the client' },
  body: { model: 'gpt', messages: [{ role: 'user', content: 'hi' }], ...over },
});

const COMPLETION = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-upstream',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
};

const bytes = (text: string) => new TextEncoder().encode(text);
const textOf = (pieces: Iterable<Uint8Array>) => new TextDecoder().decode(Buffer.concat([...pieces]));

describe('an exchange', () => {
  test('asks the upstream in its own words, and as nobody but us', () => {
    const exchange = createExchange('anthropic', 'openai-chat', { provider: openai, model: 'gpt-5' });
    const { method, url, headers, body } = exchange.request(claude({ stream: true, top_k: 5 }));
    expect({ method, url }).toEqual({ method: 'POST', url: 'https://api.example.com/v1/chat/completions' });
    expect(headers).toMatchObject({ authorization: 'Bearer sk-1', accept: 'text/event-stream' });
    expect(JSON.stringify(headers)).not.toContain('of the client');
    expect(body).toMatchObject({ model: 'gpt-5', stream: true, stream_options: { include_usage: true } });
    expect(exchange.notes).toMatchObject([{ code: 'DROPPED', path: '/top_k' }]);
    expect(exchange.canonicalRequest).toMatchObject({ model: 'claude' });
  });

  test('answers the client in its own', () => {
    const exchange = createExchange('anthropic', 'openai-chat', { provider: openai, model: 'gpt-5' });
    exchange.request(claude());
    const reply = exchange.response({ status: 200, headers: {}, body: COMPLETION });
    expect(reply.body).toMatchObject({ type: 'message', model: 'claude', content: [{ type: 'text', text: 'hello' }] });
    expect(exchange.canonicalResponse?.usage).toMatchObject({ input_tokens: 1, output_tokens: 2 });
  });

  test('errors: of the upstream, of ours, and in a stream that has begun', () => {
    const exchange = createExchange('anthropic', 'openai-chat', { provider: openai, model: 'gpt-5' });
    exchange.request(claude());
    const reply = { status: 429, headers: {}, body: { error: { message: 'slow down', code: 'rate_limit_exceeded' } } };
    expect(exchange.response(reply)).toMatchObject({ status: 429, body: { type: 'error', error: { type: 'rate_limit_error' } } });
    expect(exchange.readError(reply)).toMatchObject({ code: 'RATE_LIMIT', message: 'slow down' });
    expect(exchange.failure({ code: 'TIMEOUT', message: 'late' })).toMatchObject({
      status: 504,
      body: { error: { message: 'late' } },
    });
    expect(textOf(exchange.inBand({ code: 'TIMEOUT', message: 'late' }))).toMatch(/^event: error\ndata: .*late/);
  });

  test('streams, and what the upstream says is seen before', () => {
    const exchange = createExchange('anthropic', 'openai-chat', { provider: openai });
    exchange.request(claude({ stream: true }));
    const seen: string[] = [];
    const stream = exchange.stream({ onEvent: ({ type }) => seen.push(type) });
    const body = `data: ${JSON.stringify({ ...COMPLETION, object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: 'hello' }, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`;
    expect(textOf([...stream.push(bytes(body)), ...stream.end()])).toContain('event: message_stop');
    expect(seen.at(-1)).toBe('message_stop');
    expect(exchange.canonicalResponse?.content).toEqual([{ type: 'text', text: 'hello' }]);
    expect(exchange.responseFromStream(200, {}, bytes(body)).body).toMatchObject({ content: [{ text: 'hello' }] });
  });

  test('a Gemini client that did not ask for SSE gets a list', () => {
    const exchange = createExchange('gemini', 'openai-chat', { provider: openai, model: 'gpt-5' });
    exchange.request({
      method: 'POST',
      path: '/v1beta/models/x:streamGenerateContent',
      headers: {},
      body: { contents: [{ parts: [{ text: 'hi' }] }] },
    });
    expect(JSON.parse(textOf(exchange.stream().end()))).toMatchObject([{ error: {} }]);
  });

  test('other questions: models, embeddings, counts', () => {
    const models = createExchange('anthropic', 'openai-chat', { provider: openai });
    expect(
      models.request({ method: 'GET', path: '/v1/models', headers: { 'anthropic-version': '1' }, body: undefined }),
    ).toMatchObject({
      method: 'GET',
      url: 'https://api.example.com/v1/models',
    });
    expect(models.response({ status: 200, headers: {}, body: { data: [{ id: 'm' }] } }).body).toMatchObject({
      data: [{ id: 'm', type: 'model' }],
    });

    const vectors = createExchange('openai-chat', 'gemini', { provider: google, model: 'e' });
    const asked = vectors.request({
      method: 'POST',
      path: '/v1/embeddings',
      headers: {},
      body: { model: 'x', input: ['a', 'b'] },
    });
    expect(asked.url).toContain('/models/e:batchEmbedContents');
    const reply = vectors.response({ status: 200, headers: {}, body: { embeddings: [{ values: [1] }, { values: [2] }] } });
    expect(reply.body).toMatchObject({ object: 'list', data: [{ index: 0 }, { index: 1 }] });

    const counts = createExchange('anthropic', 'openai-chat', { provider: openai });
    expect(() => counts.request({ ...claude(), path: '/v1/messages/count_tokens' })).toThrow(CodecError);
  });
});

describe('embeddings at Gemini', () => {
  const CLIENTS = [
    ['openai-chat', '/v1/embeddings', { model: 'x', input: 'a' }],
    ['gemini', '/v1beta/models/x:embedContent', { content: { parts: [{ text: 'a' }] } }],
    ['openai-chat', '/v1/embeddings', { model: 'x', input: ['a'] }],
    ['gemini', '/v1beta/models/x:batchEmbedContents', { requests: [{ model: 'models/x', content: { parts: [{ text: 'a' }] } }] }],
  ] as const;

  test.each(CLIENTS)('%s %s %j: the endpoint fits the body', (client, path, body) => {
    const isOne = !('requests' in body) && !('input' in body && Array.isArray(body.input));
    for (const settings of [{}, { adapter_config: { headers: { 'x-a': 'b' } } }]) {
      const exchange = createExchange(client, 'gemini', { provider: { ...google, ...settings }, model: 'e' });
      const asked = exchange.request({ method: 'POST', path, headers: {}, body });
      expect(asked.url).toBe(`https://g.example.com/v1beta/models/e:${isOne ? 'embedContent' : 'batchEmbedContents'}`);
      const content = { parts: [{ text: 'a' }] };
      expect(asked.body).toEqual(isOne ? { content } : { requests: [{ model: 'models/e', content }] });
      const reply = isOne ? { embedding: { values: [1] } } : { embeddings: [{ values: [1] }] };
      const answer = exchange.response({ status: 200, headers: {}, body: reply }).body;
      expect(answer).toMatchObject(client === 'gemini' ? reply : { object: 'list', data: [{ index: 0, embedding: [1] }] });
    }
  });
});

describe('passing through', () => {
  const options = { provider: openai, model: 'gpt-upstream', passthrough: true };

  test('the body as it is, with the name of the model', () => {
    const exchange = createExchange('openai-chat', 'openai-chat', options);
    const request = chat({ house: 'red', stop: 'x' });
    expect(exchange.request(request).body).toEqual({ ...(request.body as object), model: 'gpt-upstream' });
    const reply = { status: 200, headers: { 'x-a': 'b' }, body: COMPLETION };
    expect(exchange.response(reply)).toBe(reply);
    expect(exchange.canonicalResponse).toMatchObject({ content: [{ text: 'hello' }] });
    const error = { status: 400, headers: {}, body: { odd: 1 } };
    expect(exchange.error(error)).toBe(error);
  });

  test('what we cannot read is for the upstream to judge', () => {
    const exchange = createExchange('openai-chat', 'openai-chat', options);
    expect(exchange.request(chat({ messages: 'none', stream: true }))).toMatchObject({
      body: { messages: 'none' },
      headers: { accept: 'text/event-stream' },
    });
  });

  test('a stream byte for byte, with a tap', () => {
    const text = [{ type: 'text', text: 'x' }];
    const kept = [
      [true, text, 3],
      ['usage', [], 3],
      [false, undefined, undefined],
    ] as const;
    for (const [tap, content, used] of kept) {
      const exchange = createExchange('openai-chat', 'openai-chat', { ...options, tap });
      exchange.request(chat({ stream: true }));
      const stream = exchange.stream();
      const odd = bytes(
        ': odd\n\ndata: {"id":"1","choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"completion_tokens":3}}\n\ndata: [DONE]\n\n',
      );
      expect([...stream.push(odd)]).toEqual([odd]);
      expect([...stream.end()]).toEqual([]);
      expect(exchange.canonicalResponse?.content).toEqual(content);
      expect(exchange.usage?.output_tokens).toBe(used);
    }
  });

  test('a stream that breaks off ends in an error, one that has ended does not', () => {
    const cut = createExchange('openai-chat', 'openai-chat', options).stream();
    void cut.push(bytes('data: {"id":"1","choices":[{"delta":{"content":"x"}}]}\n\nda'));
    expect(textOf(cut.fail('gone'))).toMatch(/^data: \{"error":.*gone/);
    const whole = createExchange('openai-chat', 'openai-chat', options).stream();
    void whole.push(bytes('data: {"id":"1","choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'));
    expect([...whole.fail('gone')]).toEqual([]);
  });

  test('never between two protocols', () => {
    const exchange = createExchange('anthropic', 'openai-chat', options);
    expect(exchange.request(claude()).body).toMatchObject({
      max_completion_tokens: 99,
      messages: [{ role: 'user', content: 'hi' }],
    });
    expect(exchange.response({ status: 200, headers: {}, body: COMPLETION }).body).toMatchObject({ type: 'message' });
  });
});

test('a model that the client calls otherwise answers by the rules of its own name', () => {
  const exchange = createExchange('openai-responses', 'openai-chat', { provider: openai, model: 'gpt-5' });
  const tools = [{ type: 'custom', name: 'patch', format: { type: 'text' } }];
  const { body } = exchange.request({
    method: 'POST',
    path: '/v1/responses',
    headers: {},
    body: { model: 'fast', input: 'Hi', tools },
  });
  expect(body).toMatchObject({ model: 'gpt-5', tools: [{ type: 'custom' }] });
  // Text that looks like what a custom tool would be sent as elsewhere.
  const call = { id: 'call_1', type: 'custom', custom: { name: 'patch', input: '{"input":"x"}' } };
  const message = { role: 'assistant', content: null, tool_calls: [call] };
  const answer = { id: 'c', created: 1, model: 'gpt-5', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] };
  const reply = exchange.response({ status: 200, headers: {}, body: answer });
  expect(reply.body).toMatchObject({ output: [{ type: 'custom_tool_call', input: '{"input":"x"}' }] });
});
