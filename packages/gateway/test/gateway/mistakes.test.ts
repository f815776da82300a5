/** Mistakes that people make over HTTP: each message says what is wrong, where, and what to do. */
import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMIN_KEY, type CallOptions, CLIENT_KEY, send, startAdmin, type TestGateway, withKey } from '../admin/start.ts';
import { questionOf, wholeOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { head, whole } from './http.ts';

const EXPIRED_KEY = 'expired-key-of-the-tests-0123456789';
const SECRET = 'sk-upstream-0123456789abcdef';

let faultd: Faultd;
/** Without client keys. */
let open: TestGateway;
/** With client keys and an admin key. */
let closed: TestGateway;

beforeAll(async () => {
  faultd = await Faultd.start();
  // The first part of the path is the operator's: no client reads it.
  const at = (protocol: string, base_url = `${faultd.url}/private-tenant/v1`): object => ({
    protocol,
    base_url,
    api_key: SECRET,
  });
  const providers = {
    chat: at('openai-chat'),
    claude: at('anthropic-messages'),
    answers: at('openai-responses'),
    gemma: at('gemini', `${faultd.url}/private-tenant/v1beta`),
    dead: at('openai-chat', 'http://127.0.0.1:1/v1'),
  };
  const config = {
    providers,
    models: { fast: 'chat/small', slow: 'chat/big' },
    limits: { retries_per_provider: 0, request_bytes: '100kB' },
  };
  const keys = [
    { name: 'alice', key: CLIENT_KEY, models: ['fast'] },
    { name: 'bob', key: EXPIRED_KEY, expires: '2020-01-31' },
  ];
  open = await startAdmin({ config });
  closed = await startAdmin({ config: { ...config, auth: { keys }, admin: { key: ADMIN_KEY } } });
});

afterAll(async () => {
  await open.stop();
  await closed.stop();
  await faultd.stop();
});

interface Request extends CallOptions {
  path: string;
  /** The protocol of the error; admin when absent. */
  client?: ProtocolId;
}

interface Mistake extends Request {
  name: string;
  isClosed?: boolean;
  upstream?: Script;
  status: number;
  /** What SDKs switch on: `code`, Anthropic's `type`, Google's `status`. */
  code?: string | null;
  says: RegExp;
}

const CHAT = '/v1/chat/completions';

/** A request that is right, but for these fields. */
function ask(client: ProtocolId, model: string, fields: object = {}): Request {
  const { path, headers, body } = questionOf(client, model, false);
  return { client, method: 'POST', path, headers, body: { ...body, ...fields } };
}

const chat = (fields: object, model = 'claude/m'): Request => ask('openai-chat', model, fields);
const post = (path: string, client: ProtocolId = 'openai-chat'): Request => ({ ...ask(client, 'fast'), path });
const raw = (text: string, headers = {}): Request => ({ client: 'openai-chat', method: 'POST', path: CHAT, raw: text, headers });
const keyed = (key: string, model = 'fast'): Pick<Mistake, 'isClosed'> & Request => ({
  isClosed: true,
  ...chat({}, model),
  headers: withKey(key),
});

const json = (status: number, body: unknown): Script => [{ send: whole(status, JSON.stringify(body)) }];
const page = (status: number): Script => [
  { send: whole(status, '<!doctype html><title>Log in at intern.example</title>', { 'content-type': 'text/html' }) },
];

const WRONG_PATHS: readonly Mistake[] = [
  {
    name: 'path misspelt',
    ...post('/v1/chat/completion'),
    status: 404,
    code: 'unknown_url',
    says: /^POST \/v1\/chat\/completion is not a known endpoint; did you mean \/v1\/chat\/completions\?$/,
  },
  {
    name: 'path in capitals',
    ...post('/V1/CHAT/COMPLETIONS'),
    status: 404,
    code: 'unknown_url',
    says: /did you mean \/v1\/chat\/completions\?$/,
  },
  {
    name: 'path misspelt, Messages',
    ...post('/v1/message'),
    status: 404,
    code: 'unknown_url',
    says: /did you mean \/v1\/messages\?$/,
  },
  {
    name: 'path misspelt, with the header of Anthropic',
    ...post('/v1/mesages'),
    client: 'anthropic-messages',
    headers: { 'anthropic-version': '2023-06-01' },
    status: 404,
    code: 'not_found_error',
    says: /did you mean \/v1\/messages\?$/,
  },
  {
    name: 'path misspelt, Responses',
    ...post('/v1/response'),
    status: 404,
    code: 'unknown_url',
    says: /did you mean \/v1\/responses\?$/,
  },
  {
    name: 'verb misspelt, Gemini',
    ...post('/v1beta/models/gemma%2Fm:generateContents', 'gemini'),
    status: 404,
    code: 'NOT_FOUND',
    says: /did you mean \/v1beta\/models\/gemma%2Fm:generateContent\?$/,
  },
  {
    name: 'path unknown',
    ...post('/v1/nothing/like/it'),
    status: 404,
    code: 'unknown_url',
    says: /is not a known endpoint; set providers\.chat\.passthrough to "all" to pass every path through$/,
  },
  {
    name: 'path missing',
    ...post('/'),
    status: 405,
    code: 'unknown_url',
    says: /^POST \/ is not allowed; use GET or HEAD; requests to models have paths such as POST \/v1\/chat\/completions$/,
  },
  {
    name: 'wrong method',
    client: 'openai-chat',
    path: CHAT,
    status: 405,
    code: 'unknown_url',
    says: /^GET \/v1\/chat\/completions is not allowed; use POST$/,
  },
  {
    name: 'wrong method, list of models',
    ...post('/v1/models'),
    status: 405,
    code: 'unknown_url',
    says: /^POST \/v1\/models is not allowed; use GET or HEAD$/,
  },
  {
    name: 'wrong method, endpoint that is passed on',
    client: 'openai-chat',
    path: '/v1/moderations',
    status: 405,
    code: 'unknown_url',
    says: /^GET \/v1\/moderations is not allowed; use POST$/,
  },
  {
    name: 'WebSocket without an upgrade',
    client: 'openai-responses',
    path: '/v1/responses',
    status: 405,
    code: 'unknown_url',
    says: /^GET \/v1\/responses is not allowed; use POST, or upgrade to WebSocket$/,
  },
];

const WRONG_BODIES: readonly Mistake[] = [
  { name: 'empty body', ...raw(''), status: 400, code: 'invalid_json', says: /^a request body is required; send a JSON object$/ },
  {
    name: 'empty body, Messages',
    ...raw(''),
    client: 'anthropic-messages',
    path: '/v1/messages',
    status: 400,
    code: 'invalid_request_error',
    says: /send a JSON object/,
  },
  {
    name: 'broken JSON',
    ...raw('{"model":"fast",\n "messages":[{"role":"user" "content":"Hi"}]}'),
    status: 400,
    code: 'invalid_json',
    says: /^the request body is not valid JSON: line 2, column 29: expected "," or "\}"; near: .*"role":"user" "content"/,
  },
  {
    name: 'broken JSON, Gemini',
    ...raw('{"contents":[,]}'),
    client: 'gemini',
    path: '/v1beta/models/gemma%2Fm:generateContent',
    status: 400,
    code: 'INVALID_ARGUMENT',
    says: /line 1, column 14: expected a value/,
  },
  {
    name: 'broken JSON of an endpoint that is passed on',
    ...raw('{"model":"fast",}'),
    path: '/v1/moderations',
    status: 400,
    code: 'invalid_json',
    says: /line 1, column 17: expected a name in double quotes; near: \{"model":"fast",\}$/,
  },
  {
    name: 'body that was cut',
    ...raw('{"model":"fast","messages":[{"ro'),
    status: 400,
    code: 'invalid_json',
    says: /column 33: the text ends in the middle of the document/,
  },
  {
    name: 'form',
    ...raw('model=fast', { 'content-type': 'application/x-www-form-urlencoded' }),
    status: 400,
    code: 'invalid_json',
    says: /line 1, column 1: expected a value; it is a form, send JSON/,
  },
  {
    name: 'not compressed',
    ...raw('{}', { 'content-encoding': 'gzip' }),
    status: 400,
    code: 'invalid_value',
    says: /cannot be decompressed as gzip; correct content-encoding, or send it uncompressed$/,
  },
  {
    name: 'unknown coding',
    ...raw('{}', { 'content-encoding': 'lzma' }),
    status: 415,
    code: 'invalid_value',
    says: /unsupported content-encoding; use one of: gzip/,
  },
  {
    name: 'JSON array',
    ...raw('[1]'),
    status: 400,
    code: 'invalid_value',
    says: /^the request body must be a JSON object, not an array$/,
  },
  {
    name: 'too large',
    ...chat({ user: 'x'.repeat(200_000) }),
    status: 413,
    code: 'request_too_large',
    says: /more than 100000 bytes \(limits\.request_bytes\)$/,
  },
];

const WRONG_MODELS: readonly Mistake[] = [
  {
    name: 'no model',
    ...chat({ model: undefined }),
    status: 400,
    code: 'missing_required_parameter',
    says: /^model: is required$/,
  },
  {
    name: 'unknown model',
    ...chat({}, 'fats'),
    status: 404,
    code: 'model_not_found',
    says: /no provider is configured for model "fats"; known: fast, slow \(did you mean "fast"\?\)$/,
  },
  {
    name: 'provider misspelt',
    ...chat({}, 'opnai/gpt-5'),
    status: 404,
    code: 'model_not_found',
    says: /"opnai\/gpt-5"; known: fast, slow \(did you mean "openai\/gpt-5"\?\)$/,
  },
  {
    name: 'provider misspelt, Messages',
    ...ask('anthropic-messages', 'cluade/m'),
    status: 404,
    code: 'not_found_error',
    says: /did you mean "claude\/m"/,
  },
  {
    name: 'provider without a key',
    ...chat({}, 'openai/gpt-5'),
    status: 404,
    code: 'model_not_found',
    says: /is not configured; set OPENAI_API_KEY and restart/,
  },
  {
    name: 'model of a provider without a key, Gemini',
    ...ask('gemini', 'gemini-2.5-pro'),
    status: 404,
    code: 'NOT_FOUND',
    says: /Google Gemini is not configured; set G\w+_API_KEY and restart/,
  },
];

const WRONG_KEYS: readonly Mistake[] = [
  {
    name: 'no key',
    isClosed: true,
    ...chat({}, 'fast'),
    status: 401,
    code: 'invalid_api_key',
    says: /^client key required: send it as Authorization: Bearer KEY, x-api-key or x-goog-api-key$/,
  },
  {
    name: 'key in another header',
    ...keyed(''),
    headers: { 'x-auth-token': CLIENT_KEY },
    status: 401,
    code: 'invalid_api_key',
    says: /send it as Authorization: Bearer KEY/,
  },
  {
    name: 'wrong key',
    ...keyed('nobody'),
    status: 401,
    code: 'invalid_api_key',
    says: /^invalid client key; the operator of the gateway issues keys \(sluice keys create NAME\)$/,
  },
  {
    name: 'expired key',
    ...keyed(EXPIRED_KEY),
    status: 401,
    code: 'invalid_api_key',
    says: /^client key "bob" expired at 2020-01-31T\S+; request a new one$/,
  },
  {
    name: 'model that the key does not allow',
    ...keyed(CLIENT_KEY, 'slow'),
    status: 403,
    code: null,
    says: /^client key "alice" does not allow model "slow"; GET \/v1\/models lists/,
  },
];

const WRONG_FIELDS: readonly Mistake[] = [
  { name: 'messages as text', ...chat({ messages: 'Hello' }), status: 400, code: 'invalid_value', says: /^messages: must be/ },
  {
    name: 'messages empty',
    ...chat({ messages: [] }),
    status: 400,
    code: 'invalid_value',
    says: /^messages: must not be empty$/,
  },
  {
    name: 'role misspelt',
    ...chat({ messages: [{ role: 'usr', content: 'x' }] }),
    status: 400,
    code: 'invalid_value',
    says: /^messages\[0\]\.role: must be one of system, /,
  },
  {
    name: 'tool without a name',
    ...chat({ tools: [{ type: 'function', function: {} }] }),
    status: 400,
    code: 'missing_required_parameter',
    says: /^tools\[0\]\.function\.name: is required$/,
  },
  {
    name: 'image that is a file name',
    ...chat({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'cat.png' } }] }] }),
    status: 400,
    code: 'invalid_value',
    says: /at least one message with content; \/messages\/0\/content\/0: an image is not supported by Anthropic Messages \(only https URLs are supported\)$/,
  },
  {
    name: 'temperature as text',
    ...chat({ temperature: 'hot' }),
    status: 400,
    code: 'invalid_value',
    says: /^temperature: must be a number$/,
  },
  {
    name: 'max_tokens as text',
    ...chat({ max_tokens: 'many' }),
    status: 400,
    code: 'invalid_value',
    says: /^max_tokens: must be a number$/,
  },
  {
    name: 'stream as text',
    ...chat({ stream: 'yes' }),
    status: 400,
    code: 'invalid_value',
    says: /^stream: must be true or false$/,
  },
  {
    name: 'unknown previous response',
    ...ask('openai-responses', 'chat/m', { previous_response_id: 'resp_x' }),
    status: 400,
    code: 'previous_response_not_found',
    says: /^Previous response with id 'resp_x' not found\.$/,
  },
];

const WRONG_ADMIN: readonly Mistake[] = [
  { name: 'unknown exchange', path: '/admin/v1/exchanges/nothing', status: 404, says: /^no exchange has the id "nothing"$/ },
  {
    name: 'unknown field of a filter',
    path: '/admin/v1/exchanges?filter=stat:error',
    status: 400,
    says: /"filter": unknown field "stat"; did you mean "status"\?; known: /,
  },
  {
    name: 'unknown admin path',
    path: '/admin/v1/exchange',
    status: 404,
    says: /did you mean "exchanges"\?; \/admin\/v1\/openapi\.json lists all$/,
  },
  {
    name: 'no admin key',
    isClosed: true,
    path: '/admin/v1/exchanges',
    status: 401,
    says: /^an admin key is required: send it as Authorization: Bearer/,
  },
  {
    name: 'client key instead of the admin key',
    isClosed: true,
    path: '/admin/v1/exchanges',
    headers: withKey(CLIENT_KEY),
    status: 401,
    says: /keys of clients do not open the admin API$/,
  },
];

const WRONG_ORIGINS: readonly Mistake[] = [
  {
    name: 'name of another host',
    ...chat({}),
    headers: { host: 'gateway.example' },
    status: 403,
    code: null,
    says: /^Host "gateway\.example" is not allowed without client keys; set auth\.keys or use 127\.0\.0\.1$/,
  },
  {
    name: 'web page of another origin',
    ...chat({}),
    headers: { origin: 'https://app.example' },
    status: 403,
    code: null,
    says: /^requests from web pages of other origins are not allowed; send them from a server$/,
  },
];

/** Model, endpoint and the code of an unknown endpoint, for clients of each protocol. */
const UPSTREAMS: readonly (readonly [client: ProtocolId, model: string, endpoint: string, missing: string])[] = [
  ['openai-chat', 'chat/m', '/v1/chat/completions', 'unknown_url'],
  ['anthropic-messages', 'claude/m', '/v1/messages', 'not_found_error'],
  ['openai-responses', 'answers/m', '/v1/responses', 'unknown_url'],
  ['gemini', 'gemma/m', '/v1beta/models/m:generateContent', 'NOT_FOUND'],
  // Converted: the endpoint is that of the upstream.
  ['openai-chat', 'claude/m', '/v1/messages', 'unknown_url'],
  ['anthropic-messages', 'gemma/m', '/v1beta/models/m:generateContent', 'not_found_error'],
];

const ABSENT: readonly (readonly [name: string, reply: Script])[] = [
  ['FastAPI', json(404, { detail: 'Not Found' })],
  ['Express', json(404, { message: 'Not Found' })],
  ['NestJS', json(404, { statusCode: 404, message: 'Cannot POST /v1/messages', error: 'Not Found' })],
  ['Fastify', json(404, { message: 'Route POST:/v1/messages not found', error: 'Not Found', statusCode: 404 })],
  ['Spring', json(404, { timestamp: 1, status: 404, error: 'Not Found', path: '/v1/messages' })],
  ['llama.cpp', json(404, { error: { code: 404, message: 'File Not Found', type: 'not_found_error' } })],
  [
    'OpenAI',
    json(404, { error: { message: 'Invalid URL (POST /v1/x)', type: 'invalid_request_error', param: null, code: null } }),
  ],
  ['Go', [{ send: whole(404, '404 page not found\n', { 'content-type': 'text/plain' }) }]],
  ['a page', page(404)],
  ['nothing', [{ send: whole(404, '') }]],
];

const WRONG_UPSTREAMS: readonly Mistake[] = [
  {
    name: 'upstream is off',
    ...chat({}, 'dead/m'),
    status: 502,
    code: null,
    says: /^the connection to provider "dead" failed \(ECONNREFUSED\): nothing listens at its base_url; start the server, or correct base_url$/,
  },
  {
    name: '/v1/completions at a server without it',
    ...chat({ prompt: 'x' }, 'chat/m'),
    path: '/v1/completions',
    upstream: json(404, { detail: 'Not Found' }),
    status: 404,
    code: 'unknown_url',
    says: /^provider "chat" has no POST \/v1\/completions \(404\): use an endpoint that it has, or a model of another provider$/,
  },
  ...UPSTREAMS.flatMap(([client, model, endpoint, code]): Mistake[] => {
    const provider = model.split('/', 1)[0];
    const has = `^provider "${provider}" has no POST ${endpoint}`;
    const remedy = 'check its base_url and protocol, and the model name; "sluice doctor --url URL" finds the protocol$';
    const common = { ...ask(client, model), code };
    const failed = (client: ProtocolId): string | null =>
      ({ gemini: 'INTERNAL', 'anthropic-messages': 'api_error' })[client as string] ?? null;
    return [
      ...ABSENT.map(([name, upstream]) => ({
        name: `404 of ${name}: ${client}, ${model}`,
        ...common,
        upstream,
        status: 404,
        says: new RegExp(`${has} \\(404\\): ${remedy}`),
      })),
      {
        name: `405: ${client}, ${model}`,
        ...common,
        upstream: json(405, { detail: 'Method Not Allowed' }),
        status: 405,
        says: new RegExp(`${has} \\(405\\): ${remedy}`),
      },
      {
        name: `page with status 200: ${client}, ${model}-page`,
        ...ask(client, `${model}-page`),
        upstream: page(200),
        status: 502,
        code: failed(client),
        says: /^provider "\w+" responded with text\/html that does not match its protocol; check its base_url and protocol$/,
      },
      {
        name: `redirect: ${client}, ${model}-moved`,
        ...ask(client, `${model}-moved`),
        upstream: [{ send: head(302, { location: 'https://intern.example/?key=abc', 'content-length': '0' }) }],
        status: 502,
        code: failed(client),
        says: /^provider "\w+" responded with a redirect \(302\), which is not followed; set its base_url to the final address$/,
      },
      {
        name: `JSON of something else: ${client}, ${model}-other`,
        ...ask(client, `${model}-other`),
        upstream: json(200, { status: 'ok' }),
        status: 502,
        code: failed(client),
        says: /^provider "\w+" sent an invalid response: .*; check its base_url and protocol$/,
      },
    ];
  }),
];

const MISTAKES = [
  ...WRONG_PATHS,
  ...WRONG_BODIES,
  ...WRONG_MODELS,
  ...WRONG_KEYS,
  ...WRONG_FIELDS,
  ...WRONG_ADMIN,
  ...WRONG_ORIGINS,
  ...WRONG_UPSTREAMS,
];

/** The code and the message as a client of the protocol reads them. */
// biome-ignore lint/suspicious/noExplicitAny: errors of five forms
function readError(client: ProtocolId | undefined, body: any): { code: unknown; message: unknown } {
  if (client === undefined) return { code: undefined, message: body.detail };
  const { code, type, status, message } = body.error;
  if (client === 'gemini') return { code: status, message };
  return { code: client === 'anthropic-messages' ? type : code, message };
}

test.each(MISTAKES)('$name', async ({ client, path, isClosed, upstream, status, code, says, name: _, ...options }) => {
  faultd.play(upstream ?? [{ send: whole(200, wholeOf('openai-chat')) }]);
  const gateway = isClosed ? closed : open;
  const answer = await send(gateway.url, path, options);
  expect({ status: answer.status, ...readError(client, answer.json) }).toEqual({
    status,
    code,
    message: expect.stringMatching(says),
  });
  if (status === 405 && !upstream) expect(answer.headers['allow']).toMatch(/^(POST|GET, HEAD)$/);
  expect(answer.text).not.toMatch(new RegExp(`${SECRET}|private-tenant|intern\\.example|127\\.0\\.0\\.1:`));
});

test.each([
  ['/v1 twice', post('/v1/v1/chat/completions')],
  ['no /v1', post('/chat/completions')],
  ['a slash too many', post('//v1/chat/completions')],
  ['no content type', { ...ask('openai-chat', 'fast'), headers: { 'content-type': '' } }],
  ['an unknown field', ask('openai-chat', 'fast', { temprature: 1 })],
])('%s is tolerated', async (_, { client: __, path, ...options }) => {
  faultd.play([{ send: whole(200, wholeOf('openai-chat')) }]);
  expect(await send(open.url, path, options)).toMatchObject({ status: 200, json: { object: 'chat.completion' } });
});

test.each([
  [
    'Ollama',
    'openai-chat',
    { error: { message: 'model "m" not found, try pulling it first', type: 'api_error', param: null, code: null } },
    /^model "m" not found/,
  ],
  [
    'vLLM',
    'openai-chat',
    { object: 'error', message: 'The model `m` does not exist.', type: 'NotFoundError', param: null, code: 404 },
    /^The model `m` does not exist/,
  ],
  [
    'OpenAI',
    'openai-chat',
    { error: { message: 'Not found', type: 'invalid_request_error', param: null, code: 'model_not_found' } },
    /^Not found$/,
  ],
  ['Azure', 'openai-chat', { error: { message: 'Not found', code: 'DeploymentNotFound' } }, /^Not found$/],
  ['Anthropic', 'anthropic-messages', { type: 'error', error: { type: 'not_found_error', message: 'model: m' } }, /^model: m$/],
  [
    'Google',
    'gemini',
    { error: { code: 404, message: 'models/m is not found for API version v1beta', status: 'NOT_FOUND' } },
    /^models\/m is not found/,
  ],
] as const)('a model that %s does not have is no missing endpoint', async (_, client, body, says) => {
  faultd.play(json(404, body));
  const model = { 'openai-chat': 'chat/m', 'anthropic-messages': 'claude/m', gemini: 'gemma/m' }[client];
  const { path, ...options } = ask(client, model);
  const answer = await send(open.url, path, options);
  const { code, message } = readError(client, answer.json);
  expect([answer.status, message]).toEqual([404, expect.stringMatching(says)]);
  expect(code).toMatch(/model_not_found|DeploymentNotFound|not_found_error|NOT_FOUND/);
});

test.each([
  ['GET', '/v1/files/file-1', { error: { message: 'File not found', type: 'invalid_request_error', param: 'id', code: null } }],
  ['DELETE', '/v1/files/file-1', { error: { message: 'Not found', type: 'invalid_request_error', param: null, code: null } }],
] as const)('%s %s of an object that does not exist is no missing endpoint', async (method, path, body) => {
  faultd.play(json(404, body));
  expect(await send(open.url, path, { method })).toMatchObject({ status: 404, json: body });
});

test('a negative max_tokens is left to the upstream, whose message is kept', async () => {
  const message = 'max_tokens: Input should be greater than or equal to 1';
  faultd.play(json(400, { type: 'error', error: { type: 'invalid_request_error', message } }));
  const { path, ...options } = chat({ max_tokens: -1 });
  expect(await send(open.url, path, options)).toMatchObject({ status: 400, json: { error: { message } } });
});

test('the excerpt of a broken body is not logged', async () => {
  const { path, ...options } = raw('{"input":"private words" "model":"fast"}');
  const answer = await send(open.url, path, options);
  expect(answer.text).toContain('private words');
  await expect.poll(() => open.lines.join()).toMatch(/the request body is not valid JSON: line 1, column 26/);
  expect(open.lines.join()).not.toContain('private words');
});
