import { describe, expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import { type Json, responsesContext, SDKS } from '../../../../test/sdk/responses.ts';
import type { CanonicalError, ErrorCode } from '../../src/canonical/notes.ts';
import type { InterfaceType } from '../../src/canonical/request.ts';
import type { Provider, Target } from '../../src/codec/protocol.ts';
import { openaiResponsesCodec } from '../../src/protocols/openai-responses/codec.ts';
import { paramOf } from './bare.ts';

const {
  detectInterface,
  supports,
  buildUrl,
  buildHeaders,
  models,
  modelInfo,
  error,
  countTokens,
  profileFor,
  toolRules,
  response,
} = openaiResponsesCodec;

describe('paths', () => {
  test.each<[string, InterfaceType]>([
    ['/v1/responses', 'CHAT'],
    ['/responses', 'CHAT'],
    ['/v1/responses/?x=1', 'CHAT'],
    ['/openai/v1/responses', 'CHAT'],
    ['/v1/responses/input_tokens', 'COUNT_TOKENS'],
    ['/v1/responses/resp_1', 'PASSTHROUGH'],
    ['/v1/responses/resp_1/cancel', 'PASSTHROUGH'],
    ['/v1/responses/resp_1/input_items', 'PASSTHROUGH'],
    ['/v1/responses/compact', 'PASSTHROUGH'],
    ['/v1/conversations/conv_1/items', 'PASSTHROUGH'],
    ['/v1/models', 'MODELS'],
    ['/v1/models/gpt-5', 'MODEL_INFO'],
    ['/v1/models/org/model', 'MODEL_INFO'],
    ['/v1beta/models/gemini:generateContent', 'PASSTHROUGH'],
    ['/v1/embeddings', 'PASSTHROUGH'],
    ['/', 'PASSTHROUGH'],
  ])('%s is %s', (path, type) => {
    expect(detectInterface(path)).toBe(type);
  });

  test('P123 a client of Anthropic that asks for models is none of ours', () => {
    expect(detectInterface('/v1/models', { 'anthropic-version': '2026-10-21' })).toBe('PASSTHROUGH');
  });

  test('what the protocol has', () => {
    const all: InterfaceType[] = [
      'CHAT',
      'MODELS',
      'MODEL_INFO',
      'EMBEDDINGS',
      'RERANK',
      'AUDIO',
      'IMAGES',
      'COUNT_TOKENS',
      'PASSTHROUGH',
    ];
    expect(all.filter(supports)).toEqual(['CHAT', 'MODELS', 'MODEL_INFO', 'COUNT_TOKENS', 'PASSTHROUGH']);
  });
});

describe('URLs', () => {
  const target = (base_url: string, adapter_config: NonNullable<Provider['adapter_config']> = {}): Target => ({
    provider: { id: 'p', protocol: 'openai-responses', base_url, adapter_config },
    model: 'gpt-5',
    stream: false,
  });

  test.each<[InterfaceType, Target, string, string]>([
    ['CHAT', target('https://api.openai.com'), '', 'https://api.openai.com/v1/responses'],
    ['CHAT', target('https://openrouter.ai/api/v1/'), '', 'https://openrouter.ai/api/v1/responses'],
    ['CHAT', target('https://chatgpt.com/backend-api/codex'), '', 'https://chatgpt.com/backend-api/codex/responses'],
    [
      'CHAT',
      target('https://a.azure.com', { api_version: '2025-04-01-preview' }),
      '',
      'https://a.azure.com/openai/responses?api-version=2025-04-01-preview',
    ],
    [
      'CHAT',
      target('https://a.azure.com/openai/deployments/d', { api_version: 'p' }),
      '',
      'https://a.azure.com/openai/responses?api-version=p',
    ],
    ['CHAT', target('https://h', { path: '/x/v2' }), '', 'https://h/x/v2/responses'],
    ['COUNT_TOKENS', target('https://h'), '', 'https://h/v1/responses/input_tokens'],
    ['MODELS', target('https://h'), '', 'https://h/v1/models'],
    ['MODEL_INFO', target('https://h'), '', 'https://h/v1/models/gpt-5'],
    ['PASSTHROUGH', target('https://h'), '/v1/responses/resp_1?include=x&key=k', 'https://h/v1/responses/resp_1?include=x'],
  ])('%s', (type, where, path, url) => {
    expect(buildUrl(type, where, undefined, path)).toBe(url);
  });

  test.each<[InterfaceType, string, string]>([
    ['EMBEDDINGS', '', 'UNSUPPORTED_INTERFACE'],
    ['PASSTHROUGH', '', 'path'],
    ['PASSTHROUGH', '/v1/../../admin', 'path'],
  ])('%s %s is refused', (type, path, param) => {
    expect(paramOf(() => buildUrl(type, target('https://h'), undefined, path))).toBe(param);
  });

  test('headers', () => {
    const provider: Provider = { id: 'p', protocol: 'openai-responses', base_url: 'https://h', api_key: ' k ' };
    expect(buildHeaders(provider, true)).toEqual({
      'content-type': 'application/json',
      accept: 'text/event-stream',
      authorization: 'Bearer k',
    });
    const azure = { ...provider, adapter_config: { api_version: 'v', organization: 'o', project: 'r', headers: { 'X-A': 'b' } } };
    expect(buildHeaders(azure)).toMatchObject({ 'api-key': 'k', 'openai-organization': 'o', 'openai-project': 'r', 'x-a': 'b' });
  });
});

describe('errors', () => {
  const context = responsesContext();
  const decode = (status: number, body: unknown, headers = {}): CanonicalError =>
    error.decode({ status, headers, body }, context);

  test.each<[string, number, unknown, ErrorCode]>([
    [
      'OpenAI',
      401,
      { error: { message: 'bad key', type: 'invalid_request_error', code: 'invalid_api_key', param: null } },
      'AUTHENTICATION',
    ],
    ['a bare status', 429, '', 'RATE_LIMIT'],
    ['a page', 503, '<html><body><h1>Busy</h1></body></html>', 'OVERLOADED'],
    ['FastAPI', 422, { detail: 'no' }, 'INVALID_INPUT'],
    ['xAI', 400, { code: 'x', error: 'Incorrect API key' }, 'INVALID_INPUT'],
    ['too long', 400, { error: { message: 'maximum context length is 1' } }, 'CONTEXT_LENGTH'],
    ['quota', 429, { error: { message: 'q', code: 'insufficient_quota' } }, 'BILLING'],
    ['nothing', 500, undefined, 'UPSTREAM_ERROR'],
  ])('%s', (_, status, body, code) => {
    const found = decode(status, body);
    expect(found).toMatchObject({ code, http_status: status });
    expect(found.message).not.toBe('');
    expect(found.message).not.toContain('<');
  });

  test('when to come back, and the name of the request', () => {
    const found = decode(429, {}, { 'retry-after': '2', 'x-request-id': 'req_1', 'x-should-retry': 'true' });
    expect(found).toMatchObject({ retry_after_ms: 2000, request_id: 'req_1', details: { should_retry: 'true' } });
    expect(error.encode(found, context).headers).toMatchObject({
      'retry-after': '2',
      'x-request-id': 'req_1',
      'x-should-retry': 'true',
    });
  });

  const CODES: Record<ErrorCode, [number, string, string | null]> = {
    INVALID_INPUT: [400, 'invalid_request_error', 'invalid_value'],
    MISSING_REQUIRED_FIELD: [400, 'invalid_request_error', 'missing_required_parameter'],
    INCOMPATIBLE_FEATURE: [400, 'invalid_request_error', 'unsupported_value'],
    TOOL_CALL_PARSE_ERROR: [400, 'invalid_request_error', 'tool_use_failed'],
    JSON_PARSE_ERROR: [400, 'invalid_request_error', 'invalid_json'],
    CONTEXT_LENGTH: [400, 'invalid_request_error', 'context_length_exceeded'],
    CONTENT_POLICY: [400, 'invalid_request_error', 'content_policy_violation'],
    AUTHENTICATION: [401, 'invalid_request_error', 'invalid_api_key'],
    PERMISSION: [403, 'invalid_request_error', null],
    BILLING: [429, 'insufficient_quota', 'insufficient_quota'],
    NOT_FOUND: [404, 'invalid_request_error', 'model_not_found'],
    UNSUPPORTED_INTERFACE: [404, 'invalid_request_error', 'unknown_url'],
    CONFLICT: [409, 'invalid_request_error', null],
    PAYLOAD_TOO_LARGE: [413, 'invalid_request_error', 'request_too_large'],
    RATE_LIMIT: [429, 'rate_limit_error', 'rate_limit_exceeded'],
    CANCELLED: [499, 'invalid_request_error', 'cancelled'],
    INTERNAL: [500, 'server_error', null],
    UPSTREAM_ERROR: [502, 'server_error', null],
    STREAM_TRUNCATED: [502, 'server_error', 'stream_truncated'],
    OVERLOADED: [503, 'server_error', 'overloaded'],
    TIMEOUT: [504, 'server_error', 'timeout'],
  };

  test.each(Object.entries(CODES))('%s', async (code, [status, type, word]) => {
    const reply = error.encode({ code: code as ErrorCode, message: 'm' }, context);
    expect(reply).toMatchObject({ status, body: { error: { message: 'm', type, param: null, code: word } } });
    for (const { create } of SDKS)
      await expect(create(reply.status, reply.headers, JSON.stringify(reply.body))).rejects.toMatchObject({ status });
  });

  test.each([
    ['P127 an overload of Anthropic', 529, 503],
    ['payment due', 402, 429],
    ['a status of our own', 418, 418],
  ])('%s: %d is %d', (_, http_status, status) => {
    expect(error.encode({ code: 'OVERLOADED', message: 'm', http_status }, context).status).toBe(status);
  });

  const recorded = readManifest().filter(({ protocol, status }) => protocol === 'openai-responses' && status >= 400);
  test.each(recorded)('$file comes through as it was', ({ file, status }) => {
    const body = JSON.parse(readRecording(file).toString()) as Json;
    const said = body['error'] ?? body;
    const reply = error.encode(decode(status, body), context);
    expect(reply.status).toBe(status);
    expect((reply.body as Json)['error']).toMatchObject(typeof said === 'string' ? { message: said } : (said as Json));
  });

  test('a body that is not a response is an error', () => {
    expect(() => response.decode({ error: { message: 'no' } }, context)).toThrow('no');
    expect(() => response.decode({}, context)).toThrow('the body is not a response object');
    expect(() => response.decode('<p>Bad gateway</p>', context)).toThrow('the server returned an HTML page');
  });
});

describe('models', () => {
  const context = responsesContext();
  const list = { object: 'list', data: [{ id: 'gpt-5', object: 'model', created: 5, owned_by: 'openai', shared: true }] };

  test('P125 there and back', () => {
    const found = models?.decode(list, context);
    expect(found).toMatchObject({ models: [{ id: 'gpt-5', name: 'gpt-5', created: 5, owned_by: 'openai' }] });
    expect(found && models?.encode(found, context)).toEqual(list);
    const [one] = list.data;
    const info = modelInfo?.decode(one, context);
    expect(info && modelInfo?.encode(info, context)).toEqual(one);
  });

  test('Codex, others, and what is wrong', () => {
    const found = models?.decode({ models: [{ slug: 'gpt-5', display_name: 'GPT-5', context_window: 9 }, {}] }, context);
    expect(found).toMatchObject({ models: [{ id: 'gpt-5', name: 'GPT-5', max_input_tokens: 9 }] });
    expect(context.notes).toMatchObject([{ code: 'DROPPED', path: '/data/1' }]);
    expect(models?.encode({ models: [{ id: 'claude', name: 'Claude' }], has_more: true }, context)).toEqual({
      object: 'list',
      data: [{ id: 'claude', object: 'model', created: 0, owned_by: 'unknown', name: 'Claude' }],
    });
    expect(paramOf(() => models?.decode({}, context))).toBe('data');
    expect(paramOf(() => modelInfo?.decode({}, context))).toBe('id');
    expect(() => models?.decode({ error: { message: 'no' } }, context)).toThrow('no');
  });
});

describe('count of tokens', () => {
  test('the request without what concerns only its answer', () => {
    const context = responsesContext();
    const wire = {
      method: 'POST',
      path: '/v1/responses/input_tokens',
      headers: {},
      body: { model: 'm', input: 'hi', instructions: 'A' },
    };
    const request = countTokens?.request.decode(wire, context);
    expect(request).toMatchObject({ model: 'm', messages: [{ role: 'user' }] });
    const foreign = request && { ...request, extensions: {}, parameters: { temperature: 1, max_tokens: 99 }, stream: true };
    expect(foreign && countTokens?.request.encode(foreign, context)).toMatchObject({ path: '/v1/responses/input_tokens' });
    const body = foreign && countTokens?.request.encode(foreign, context).body;
    expect(Object.keys(body as Json).toSorted()).toEqual(['input', 'instructions', 'model']);
  });

  test('the count', () => {
    const context = responsesContext();
    expect(countTokens?.response.decode({ object: 'response.input_tokens', input_tokens: 7 }, context)).toEqual({
      input_tokens: 7,
    });
    expect(countTokens?.response.encode({ input_tokens: 7, estimated: true }, context)).toEqual({
      object: 'response.input_tokens',
      input_tokens: 7,
    });
    expect(() => countTokens?.response.decode({ error: { message: 'no' } }, context)).toThrow('no');
  });
});

describe('profiles', () => {
  test.each<[string, string, Json]>([
    ['openai', 'gpt-5', { official: true, custom_tools: true, supports_sampling: false }],
    ['openai', 'gpt-4o', { custom_tools: false, supports_sampling: true, thinking_mode: 'none' }],
    ['openai', 'o3', { custom_tools: false, supports_sampling: false, effort_values: ['low', 'medium', 'high'] }],
    ['openai', 'ft:gpt-5.1:org::id', { effort_values: ['none', 'low', 'medium', 'high'], reasons_by_default: false }],
    ['openai', 'gpt-5.6-sol', { cache_breakpoints: true }],
    ['openai', 'gpt-5-chat-latest', { thinking_mode: 'none', supports_sampling: true }],
    ['unknown', 'gpt-5', { official: false, custom_tools: false, supports_sampling: true }],
    ['__proto__', '', { official: false }],
  ])('%s %s', (provider, model, want) => {
    expect(profileFor(provider, model)).toMatchObject(want);
  });

  test('what tools look like there', () => {
    expect(toolRules(profileFor('openai', 'gpt-5'))).toMatchObject({ custom: true, namespaces: true, objectRoot: true });
    expect(toolRules(profileFor('xai'))).toMatchObject({ custom: false, namespaces: false });
  });
});
