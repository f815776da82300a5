/** Mistakes that people make over HTTP: what each client reads says what is wrong, where, and what to do. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIN_KEY, type Answer, type CallOptions, CLIENT_KEY, send, startAdmin, type TestGateway, withKey } from '../admin/start.ts';
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
  const at = (protocol: string, base_url = `${faultd.url}/v1`): object => ({ protocol, base_url, api_key: SECRET });
  const providers = {
    mine: at('openai-chat'),
    claude: at('anthropic-messages', faultd.url),
    answers: at('openai-responses'),
    google: at('gemini', faultd.url),
    dead: at('openai-chat', 'http://127.0.0.1:1/v1'),
  };
  const config = {
    providers,
    models: { fast: 'mine/small', slow: 'mine/big' },
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

interface Mistake extends Omit<CallOptions, 'body'> {
  name: string;
  path: string;
  body?: unknown;
  isClosed?: boolean;
  upstream?: Script;
  status: number;
  /** The code or type in the error of the client's protocol. */
  code?: string | number | null;
  says: readonly (string | RegExp)[];
}

const CHAT = '/v1/chat/completions';
const MESSAGES = [{ role: 'user', content: 'Hello' }];
const ASK = { model: 'fast', messages: MESSAGES };
const chat = (fields: object): Pick<Mistake, 'path' | 'method' | 'body'> => ({ path: CHAT, method: 'POST', body: { ...ASK, ...fields } });
const post = (path: string, body: unknown = ASK): Pick<Mistake, 'path' | 'method' | 'body'> => ({ path, method: 'POST', body });
const raw = (text: string): Pick<Mistake, 'path' | 'method' | 'raw'> => ({ path: CHAT, method: 'POST', raw: text });
const anthropic = (fields: object) => ({ path: '/v1/messages', method: 'POST', headers: { 'anthropic-version': '2023-06-01' }, body: { model: 'claude/c', max_tokens: 9, messages: MESSAGES, ...fields } });
const responses = (fields: object) => ({ path: '/v1/responses', method: 'POST', body: { model: 'answers/r', input: 'Hello', ...fields } });
const gemini = (fields: object, path = '/v1beta/models/google%2Fg:generateContent') => ({ path, method: 'POST', body: { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }], ...fields } });
const json = (status: number, body: unknown): Script => [{ send: whole(status, JSON.stringify(body)) }];
const html = (status: number): Script => [{ send: whole(status, '<!doctype html><title>Login</title>', { 'content-type': 'text/html' }) }];
const FASTAPI = { detail: 'Not Found' };
const ECHO = { message: 'Not Found' };

const MISTAKES: readonly Mistake[] = [
  // paths and methods
  { name: 'path misspelt', ...post('/v1/chat/completion'), status: 404, says: [] },
  { name: 'path misspelt, messages', ...post('/v1/message'), status: 404, says: [] },
  { name: 'path misspelt, responses', ...post('/v1/response'), status: 404, says: [] },
  { name: 'path misspelt, gemini', ...gemini({}, '/v1beta/models/google%2Fg:generateContents'), status: 404, says: [] },
  { name: 'path unknown', ...post('/v1/foo/bar'), status: 404, says: [] },
  { name: 'path root', ...post('/'), status: 404, says: [] },
  { name: 'wrong method', path: CHAT, method: 'GET', status: 405, says: [] },
  { name: 'wrong method models', ...post('/v1/models'), status: 405, says: [] },
  { name: 'wrong method known endpoint', path: '/v1/moderations', method: 'GET', status: 405, says: [] },
  { name: 'v1 twice', ...post('/v1/v1/chat/completions'), upstream: json(200, {}), status: 200, says: [] },
  { name: 'no v1', ...post('/chat/completions'), status: 200, says: [] },
  // bodies
  { name: 'no content type', ...raw('{"model":"fast","messages":[]}'), headers: { 'content-type': '' }, status: 200, says: [] },
  { name: 'empty', ...raw(''), status: 400, says: [] },
  { name: 'empty anthropic', path: '/v1/messages', method: 'POST', raw: '', status: 400, says: [] },
  { name: 'broken', ...raw('{"model":"fast",\n "messages":[{"role":"user" "content":"Hi"}]}'), status: 400, says: [] },
  { name: 'broken trailing comma', ...raw('{"model":"fast",}'), status: 400, says: [] },
  { name: 'cut', ...raw('{"model":"fast","messages":[{"role":"us'), status: 400, says: [] },
  { name: 'form', ...raw('model=fast&messages=x'), headers: { 'content-type': 'application/x-www-form-urlencoded' }, status: 400, says: [] },
  { name: 'gzip not', ...raw('{"model":"fast"}'), headers: { 'content-encoding': 'gzip' }, status: 400, says: [] },
  { name: 'coding unknown', ...raw('{"model":"fast"}'), headers: { 'content-encoding': 'lzma' }, status: 415, says: [] },
  { name: 'array', ...raw('[1]'), status: 400, says: [] },
  { name: 'string', ...raw('"x"'), status: 400, says: [] },
  { name: 'too large', ...chat({ user: 'x'.repeat(200_000) }), status: 413, says: [] },
  { name: 'duplicate key', ...raw('{"model":"fast","model":"slow","messages":[]}'), status: 400, says: [] },
  // models
  { name: 'no model', ...post(CHAT, { messages: MESSAGES }), status: 400, says: [] },
  { name: 'no model anthropic', ...anthropic({ model: undefined }), status: 400, says: [] },
  { name: 'unknown model', ...chat({ model: 'fats' }), status: 404, says: [] },
  { name: 'unknown model far', ...chat({ model: 'qwertz' }), status: 404, says: [] },
  { name: 'misspelt provider', ...chat({ model: 'opnai/gpt-5' }), status: 404, says: [] },
  { name: 'misspelt own provider', ...chat({ model: 'mime/gpt-5' }), status: 404, says: [] },
  { name: 'provider without key', ...chat({ model: 'openai/gpt-5' }), status: 404, says: [] },
  { name: 'family without key', ...chat({ model: 'gpt-5' }), status: 404, says: [] },
  { name: 'unknown model, anthropic', ...anthropic({ model: 'anthropc/claude' }), status: 404, says: [] },
  { name: 'unknown model, gemini', ...gemini({}, '/v1beta/models/nope:generateContent'), status: 404, says: [] },
  { name: 'unknown model, responses', ...responses({ model: 'nope' }), status: 404, says: [] },
  // keys
  { name: 'no key', isClosed: true, ...chat({}), status: 401, says: [] },
  { name: 'wrong key', isClosed: true, ...chat({}), headers: withKey('nope'), status: 401, says: [] },
  { name: 'wrong header', isClosed: true, ...chat({}), headers: { 'x-auth-token': CLIENT_KEY }, status: 401, says: [] },
  { name: 'key without Bearer', isClosed: true, ...chat({}), headers: { authorization: CLIENT_KEY }, status: 401, says: [] },
  { name: 'expired', isClosed: true, ...chat({}), headers: withKey(EXPIRED_KEY), status: 401, says: [] },
  { name: 'model not allowed', isClosed: true, ...chat({ model: 'slow' }), headers: withKey(CLIENT_KEY), status: 403, says: [] },
  // fields
  { name: 'unknown field', ...chat({ temprature: 1 }), upstream: json(200, {}), status: 200, says: [] },
  { name: 'messages text', ...chat({ messages: 'Hello' }), status: 400, says: [] },
  { name: 'messages empty', ...chat({ messages: [] }), status: 400, says: [] },
  { name: 'messages missing', ...chat({ messages: undefined }), status: 400, says: [] },
  { name: 'tool no name', ...chat({ tools: [{ type: 'function', function: {} }] }), status: 400, says: [] },
  { name: 'tool no name to claude', ...chat({ model: 'claude/c', tools: [{ type: 'function', function: {} }] }), status: 400, says: [] },
  { name: 'image', ...chat({ model: 'claude/c', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'cat.png' } }] }] }), status: 400, says: [] },
  { name: 'temperature', ...chat({ temperature: 'hot' }), status: 400, says: [] },
  { name: 'temperature claude', ...chat({ model: 'claude/c', temperature: 'hot' }), status: 400, says: [] },
  { name: 'max_tokens', ...chat({ model: 'claude/c', max_tokens: -1 }), status: 400, says: [] },
  { name: 'stream text', ...chat({ stream: 'yes' }), status: 400, says: [] },
  { name: 'stream text claude', ...chat({ model: 'claude/c', stream: 'yes' }), status: 400, says: [] },
  { name: 'no max_tokens anthropic', ...anthropic({ model: 'mine/x', max_tokens: undefined }), status: 400, says: [] },
  { name: 'role', ...chat({ model: 'claude/c', messages: [{ role: 'usr', content: 'x' }] }), status: 400, says: [] },
  // responses
  { name: 'previous_response_id', ...responses({ model: 'mine/x', previous_response_id: 'resp_nope' }), status: 404, says: [] },
  { name: 'get response', path: '/v1/responses/resp_nope', method: 'GET', status: 404, says: [] },
  { name: 'ws', path: '/v1/responses', method: 'GET', status: 405, says: [] },
  // admin
  { name: 'admin exchange', path: '/admin/v1/exchanges/nope', status: 404, says: [] },
  { name: 'admin filter', path: '/admin/v1/exchanges?filter=stat:error', status: 400, says: [] },
  { name: 'admin param', path: '/admin/v1/exchanges?limt=3', status: 400, says: [] },
  { name: 'admin path', path: '/admin/v1/exchange', status: 404, says: [] },
  { name: 'admin no key', isClosed: true, path: '/admin/v1/exchanges', status: 401, says: [] },
  { name: 'admin client key', isClosed: true, path: '/admin/v1/exchanges', headers: withKey(CLIENT_KEY), status: 403, says: [] },
  // network
  { name: 'host', ...chat({}), headers: { host: 'gateway.example' }, status: 403, says: [] },
  { name: 'origin', ...chat({}), headers: { origin: 'https://app.example' }, status: 403, says: [] },
  { name: 'preflight', path: CHAT, method: 'OPTIONS', headers: { origin: 'https://app.example', 'access-control-request-method': 'POST' }, status: 403, says: [] },
  // upstreams
  { name: 'dead', ...chat({ model: 'dead/m' }), status: 502, says: [] },
  ...[chat({ model: 'mine/m' }), anthropic({}), responses({}), gemini({})].flatMap((ask): Mistake[] => [
    { name: `fastapi 404 ${ask.path}`, ...ask, upstream: json(404, FASTAPI), status: 404, says: [] },
    { name: `message 404 ${ask.path}`, ...ask, upstream: json(404, ECHO), status: 404, says: [] },
    { name: `405 ${ask.path}`, ...ask, upstream: json(405, { detail: 'Method Not Allowed' }), status: 404, says: [] },
    { name: `html 404 ${ask.path}`, ...ask, upstream: html(404), status: 404, says: [] },
    { name: `empty 404 ${ask.path}`, ...ask, upstream: [{ send: whole(404, '') }], status: 404, says: [] },
    { name: `html 200 ${ask.path}`, ...ask, upstream: html(200), status: 502, says: [] },
    { name: `302 ${ask.path}`, ...ask, upstream: [{ send: head(302, { location: 'https://login.example/?key=abc', 'content-length': '0' }) }], status: 502, says: [] },
    { name: `json 200 of another protocol ${ask.path}`, ...ask, upstream: json(200, { status: 'ok' }), status: 502, says: [] },
  ]),
  { name: 'ollama 404', ...chat({ model: 'mine/m' }), upstream: json(404, { error: { message: 'model "m" not found, try pulling it first', type: 'api_error', param: null, code: null } }), status: 404, says: [] },
  { name: 'vllm 404', ...chat({ model: 'mine/m' }), upstream: json(404, { object: 'error', message: 'The model `m` does not exist.', type: 'NotFoundError', param: null, code: 404 }), status: 404, says: [] },
  { name: 'anthropic model 404', ...anthropic({}), upstream: json(404, { type: 'error', error: { type: 'not_found_error', message: 'model: c' } }), status: 404, says: [] },
  { name: 'openai unknown url', ...chat({ model: 'mine/m' }), upstream: json(404, { error: { message: 'Invalid URL (POST /v1/v1/chat/completions)', type: 'invalid_request_error', param: null, code: null } }), status: 404, says: [] },
  { name: 'completions', ...post('/v1/completions', { model: 'mine/m', prompt: 'x' }), upstream: json(404, FASTAPI), status: 404, says: [] },
];

test.each(MISTAKES)('$name', async ({ path, isClosed, upstream, status, code, says, name: _, ...options }) => {
  if (upstream) faultd.play(upstream);
  else faultd.play(json(200, { ok: 1 }));
  const gateway = isClosed ? closed : open;
  const answer = await send(gateway.url, path, options);
  console.log('@@', _, '|', options.method ?? 'GET', path.slice(0,60), '|', answer.status, JSON.stringify(answer.headers['allow'] ?? ''), answer.text.slice(0, 600));
});
