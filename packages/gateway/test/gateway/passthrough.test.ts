import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectRefused } from './check.ts';
import { Faultd } from './faultd.ts';
import { type Reply, whole } from './http.ts';
import { KEY, providersAt } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { type Started, startGateway } from './start.ts';

// Which endpoints are passed on without conversion, with the operator's key.

const CLIENT_KEY = 'client-key-0123456789';

/** The settings under test; `locked` has client keys. */
type Setting = 'open' | 'open off' | 'locked' | 'locked all' | 'locked off';

let faultd: Faultd;
const gateways = new Map<Setting, Started>();

beforeAll(async () => {
  faultd = await Faultd.start();
  const start = async (setting: Setting, passthrough: string | undefined): Promise<void> => {
    const rows = Object.entries(providersAt(faultd)).map(([id, row]) => [id, { ...row, ...(passthrough && { passthrough }) }]);
    const auth = setting.startsWith('locked') && { auth: { keys: [CLIENT_KEY] } };
    gateways.set(
      setting,
      await startGateway({ config: { providers: Object.fromEntries(rows), responses: { store: 'off' }, ...auth } }),
    );
  };
  await start('open', undefined);
  await start('locked', undefined);
  await start('locked all', 'all');
  await start('locked off', 'off');
  await start('open off', 'off');
});

afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.close();
  await faultd.stop();
});

beforeEach(() => faultd.play([{ send: whole(200, '{"from":"upstream"}') }]));

const GOOGLE = { 'x-goog-api-key': CLIENT_KEY };
const OPENAI = {};
const ANTHROPIC = { 'anthropic-version': '2023-06-01' };

async function send(setting: Setting, method: string, path: string, headers: Record<string, string> = {}): Promise<Reply> {
  const client = await RawClient.open(gateways.get(setting)?.url ?? '');
  const body = method === 'POST' || method === 'PUT' || method === 'PATCH' ? '{}' : '';
  // A reply to HEAD has a length and no body: it ends with the connection.
  const key = headers === GOOGLE ? {} : { authorization: `Bearer ${CLIENT_KEY}` };
  const text = requestText(method, path, { ...key, connection: 'close', ...headers }, body);
  const reply = await client.send(text).reply();
  client.leave();
  return reply;
}

type Asked = readonly [method: string, path: string, headers: Record<string, string>];

/** Documented endpoints that neither read nor change what others stored. */
const HARMLESS: readonly Asked[] = [
  ['POST', '/v1/completions', OPENAI],
  ['POST', '/v1/moderations', OPENAI],
  ['POST', '/v1/responses/compact', OPENAI],
  ['POST', '/v1/audio/speech', OPENAI],
  ['POST', '/v1/images/generations', OPENAI],
  ['POST', '/v1/tokenize', OPENAI],
  // Creating an object reveals none of the others.
  ['POST', '/v1/files', OPENAI],
  ['POST', '/v1/batches', OPENAI],
  ['POST', '/v1/conversations', OPENAI],
  ['POST', '/v1/messages/batches', ANTHROPIC],
  ['POST', '/v1/files?beta=true', ANTHROPIC],
  ['POST', '/v1/complete', ANTHROPIC],
  ['POST', '/v1beta/models/pass-gemini/imagen-4:predict', GOOGLE],
  ['POST', '/v1beta/models/pass-gemini/veo-3:predictLongRunning', GOOGLE],
  ['POST', '/v1beta/cachedContents', GOOGLE],
];

/** Documented endpoints that list, read, change or delete stored objects. */
const STORED: readonly Asked[] = [
  ['GET', '/v1/files', OPENAI],
  ['HEAD', '/v1/files', OPENAI],
  ['GET', '/v1/files/file-1', OPENAI],
  ['GET', '/v1/files/file-1/content', OPENAI],
  ['DELETE', '/v1/files/file-1', OPENAI],
  ['GET', '/v1/batches', OPENAI],
  ['POST', '/v1/batches/b/cancel', OPENAI],
  ['GET', '/v1/responses/resp_1', OPENAI],
  ['HEAD', '/v1/responses/resp_1', OPENAI],
  ['DELETE', '/v1/responses/resp_1', OPENAI],
  ['POST', '/v1/responses/resp_1/cancel', OPENAI],
  ['GET', '/v1/responses/resp_1/input_items', OPENAI],
  ['GET', '/v1/chat/completions/chatcmpl-1', OPENAI],
  ['POST', '/v1/chat/completions/chatcmpl-1', OPENAI],
  ['GET', '/v1/conversations/conv_1/items', OPENAI],
  ['POST', '/v1/conversations/conv_1', OPENAI],
  ['GET', '/v1/assistants', OPENAI],
  ['POST', '/v1/threads/t/messages', OPENAI],
  ['GET', '/v1/vector_stores', OPENAI],
  ['POST', '/v1/vector_stores/vs_1/search', OPENAI],
  ['GET', '/v1/fine_tuning/jobs', OPENAI],
  ['GET', '/v1/evals/e/runs', OPENAI],
  ['GET', '/v1/containers/c/files/f/content', OPENAI],
  ['GET', '/v1/files', ANTHROPIC],
  ['DELETE', '/v1/files/file_1?beta=true', ANTHROPIC],
  ['GET', '/v1/messages/batches', ANTHROPIC],
  ['GET', '/v1/messages/batches/b/results', ANTHROPIC],
  ['POST', '/v1/messages/batches/b/cancel', ANTHROPIC],
  ['GET', '/v1/skills', ANTHROPIC],
  ['GET', '/v1beta/files', GOOGLE],
  ['GET', '/v1beta/files/abc:download?alt=media', GOOGLE],
  ['DELETE', '/v1beta/files/abc', GOOGLE],
  ['GET', '/v1beta/cachedContents', GOOGLE],
  ['PATCH', '/v1beta/cachedContents/abc', GOOGLE],
  ['GET', '/v1beta/tunedModels', GOOGLE],
  ['GET', '/v1beta/operations/o', GOOGLE],
  ['GET', '/v1beta/fileSearchStores/s/documents', GOOGLE],
];

/** Paths that no vendor documents for its users, and administration. */
const UNKNOWN: readonly Asked[] = [
  ['GET', '/'.padEnd(20, 'x'), OPENAI],
  ['GET', '/v1/organization/projects', OPENAI],
  ['GET', '/v1/organization/admin_api_keys', OPENAI],
  ['POST', '/v1/organization/invites', OPENAI],
  ['GET', '/v1/organizations/api_keys', ANTHROPIC],
  ['GET', '/v1/vaults', ANTHROPIC],
  ['POST', '/v1/realtime/client_secrets', OPENAI],
  ['POST', '/v1beta/auth_tokens', GOOGLE],
  ['GET', '/v1/files/file-1/content/more', OPENAI],
];

function protocolOf(path: string, headers: Record<string, string>): ProtocolId {
  if ('x-goog-api-key' in headers) return 'gemini';
  if ('anthropic-version' in headers) return 'anthropic-messages';
  return /^\/v1\/(responses|conversations)\b/.test(path) ? 'openai-responses' : 'openai-chat';
}

function expectRefusedFor([, path, headers]: Asked, reply: Reply, status: number, setting: string): void {
  const client = protocolOf(path, headers);
  expect(faultd.served).toEqual([]);
  expectRefused(client, reply, status, `set providers.pass-${client}.passthrough to ${setting}`);
}

/** A reply to HEAD has no body to read. */
const readable = (cases: readonly Asked[]): readonly Asked[] => cases.filter(([method]) => method !== 'HEAD');

describe('known, the default', () => {
  test.each(HARMLESS)('%s %s is passed through, with and without client keys', async (method, path, headers) => {
    for (const setting of ['open', 'locked'] as const) {
      faultd.play([{ send: whole(200, '{"from":"upstream"}') }]);
      const reply = await send(setting, method, path, headers);
      expect({ status: reply.status, body: reply.body.toString() }).toEqual({ status: 200, body: '{"from":"upstream"}' });
      const [served] = faultd.served;
      expect(served?.method).toBe(method);
      expect(JSON.stringify(served?.headers)).toContain(KEY);
    }
  });

  test.each(STORED)(
    '%s %s accesses stored objects: passed through without client keys, rejected with them',
    async (method, path, headers) => {
      expect((await send('open', method, path, headers)).status).toBe(200);
      expect(faultd.served).toHaveLength(1);
      faultd.play([{ send: whole(200, '{}') }]);
      const reply = await send('locked', method, path, headers);
      expect({ status: reply.status, served: faultd.served }).toEqual({ status: 403, served: [] });
      if (method !== 'HEAD') expectRefusedFor([method, path, headers], reply, 403, '"all"');
    },
  );

  test.each(UNKNOWN)('%s %s is not a known endpoint', async (method, path, headers) => {
    for (const setting of ['open', 'locked'] as const)
      expectRefusedFor([method, path, headers], await send(setting, method, path, headers), 404, '"all"');
  });

  test.each([
    ['GET', '/v1/moderations', 'POST'],
    ['PUT', '/v1/files/file-1', 'GET, DELETE'],
    ['PATCH', '/v1/completions', 'POST'],
  ])('%s %s is not allowed; the path has %s', async (method, path, allow) => {
    for (const setting of ['open', 'locked'] as const) {
      const reply = await send(setting, method, path, OPENAI);
      expectRefused('openai-chat', reply, 405, `${method} ${path} is not allowed; use ${allow.replace(', ', ' or ')}`);
      expect(reply.headers['allow']).toBe(allow);
      expect(faultd.served).toEqual([]);
    }
  });

  test.each(['OPTIONS', 'TRACE', 'PROPFIND'])('%s is never passed through', async (method) => {
    expect((await send('locked all', method, '/v1/files')).status).toBe(405);
    expect(faultd.served).toEqual([]);
  });

  test('a rejected request gets its response before its body is read', async () => {
    const client = await RawClient.open(gateways.get('locked')?.url ?? '');
    client.send(`DELETE /v1/files/f HTTP/1.1\r\nhost: a\r\nx-api-key: ${CLIENT_KEY}\r\ncontent-length: 1000000\r\n\r\n`);
    expectRefusedFor(['DELETE', '/v1/files/f', OPENAI], await client.reply(), 403, '"all"');
    client.leave();
  });
});

describe('other spellings of a stored object do not bypass the rule', () => {
  const SPELLINGS: readonly Asked[] = [
    ['GET', '//v1//files', OPENAI],
    ['GET', '/v1/files/', OPENAI],
    ['GET', '/v1/files//', OPENAI],
    ['GET', 'http://somebody.example/v1/files', OPENAI],
    ['GET', '/v1/./files', OPENAI],
    ['GET', '/v1/moderations/../files', OPENAI],
    ['POST', '/v1/moderations/../files/file-1', OPENAI],
    ['POST', '/v1/moderations/%2e%2e/batches/b/cancel', OPENAI],
    ['POST', '/v1/moderations%2f..%2fbatches%2fb%2fcancel', OPENAI],
    ['POST', '/v1/moderations/..;/batches/b/cancel', OPENAI],
    ['POST', '/v1/moderations;/../batches/b/cancel', OPENAI],
    ['POST', '/v1/moderations\\..\\batches\\b\\cancel', OPENAI],
    ['GET', '/v1/FILES', OPENAI],
    ['GET', '/V1/files', OPENAI],
    ['GET', '/v1/f%69les', OPENAI],
    ['GET', '/v1/files;a=b', OPENAI],
    ['GET', '/v1/files%00', OPENAI],
    ['GET', '/v1/files%2ffile-1', OPENAI],
    ['GET', '/v1/files%3f', OPENAI],
    ['GET', '/v1/files#x', OPENAI],
    ['GET', '/v1/files?x=/v1/moderations', OPENAI],
    ['GET', '/moderations/v1/files', OPENAI],
    ['GET', '/v1/v1/files', OPENAI],
    ['GET', '/openai/deployments/d/files', OPENAI],
    ['POST', '/v1/files?_method=GET', OPENAI],
    ['POST', '/v1/files?_METHOD=DELETE', OPENAI],
    ['POST', '/v1/files?x-http-method-override=GET', OPENAI],
    ['POST', '/v1beta/files?$httpMethod=GET', GOOGLE],
    ['POST', '/v1beta/files?%24httpMethod=GET', GOOGLE],
    ['GET', '/v1beta/models/../files', GOOGLE],
    ['POST', '/v1beta/models/x:predict/../../files/abc', GOOGLE],
    ['POST', '/v1beta/models/x%2f..%2f..%2ffiles:predict', GOOGLE],
    ['POST', '/v1beta/files%3Aregister', GOOGLE],
    ['POST', '/v1beta/models/x%3AbatchGenerateContent:predict', GOOGLE],
    ['GET', '/v1beta/files/abc%3Adownload', GOOGLE],
    ['GET', '/v1/messages/batches%2fb', ANTHROPIC],
    ['GET', '/v1/messages//batches', ANTHROPIC],
  ];

  test.each(SPELLINGS)('%s %s', async (method, path, headers) => {
    const reply = await send('locked', method, path, headers);
    expect({ isRefused: [400, 403, 404, 405].includes(reply.status), served: faultd.served }).toEqual({
      isRefused: true,
      served: [],
    });
  });

  test('a method override header is not forwarded', async () => {
    const { status } = await send('locked', 'POST', '/v1/files', { 'x-http-method-override': 'GET', 'x-http-method': 'GET' });
    expect(status).toBe(200);
    expect(Object.keys(faultd.served[0]?.headers ?? {}).join()).not.toContain('method');
  });
});

describe('all', () => {
  test.each([...readable(STORED), ...UNKNOWN])('%s %s is passed through', async (method, path, headers) => {
    expect((await send('locked all', method, path, headers)).status).toBe(200);
    expect(faultd.served).toHaveLength(1);
  });
});

describe('off', () => {
  test.each([...HARMLESS, ...readable(STORED), ...UNKNOWN])('%s %s is rejected', async (method, path, headers) => {
    for (const setting of ['locked off', 'open off'] as const)
      expectRefusedFor([method, path, headers], await send(setting, method, path, headers), 403, '"known" or "all"');
  });

  test('converted endpoints are served', async () => {
    expect((await send('locked off', 'GET', '/v1/models')).status).toBe(200);
  });

  test('the next provider of the protocol is used', async () => {
    const row = { protocol: 'openai-chat', base_url: faultd.url, api_key: KEY };
    const providers = { first: { ...row, passthrough: 'off' }, second: { ...row, base_url: `${faultd.url}/second` } };
    const gateway = await startGateway({ config: { providers } });
    const client = await RawClient.open(gateway.url);
    expect((await client.send(requestText('POST', '/v1/moderations', {}, '{}')).reply()).status).toBe(200);
    expect(faultd.served.map(({ path }) => path)).toEqual(['/second/moderations']);
    client.leave();
    await gateway.close();
  });
});

describe('providers of OpenAI’s two protocols', () => {
  const OF_RESPONSES: readonly Asked[] = [
    ['GET', '/v1/responses/resp_1', OPENAI],
    ['DELETE', '/v1/responses/resp_1', OPENAI],
    ['POST', '/v1/responses/resp_1/cancel', OPENAI],
    ['GET', '/v1/responses/resp_1/input_items?limit=5', OPENAI],
    ['POST', '/v1/responses/compact', OPENAI],
    ['GET', '/v1/conversations/conv_1', OPENAI],
    ['GET', '/openai/v1/responses/resp_1', OPENAI],
  ];
  const OF_BOTH: readonly Asked[] = [
    ['GET', '/v1/files', OPENAI],
    ['POST', '/v1/moderations', OPENAI],
    ['POST', '/v1/audio/speech', OPENAI],
    ['POST', '/v1/images/edits', OPENAI],
  ];
  const chat = { protocol: 'openai-chat', base_url: '/chat/v1' };
  const responses = { protocol: 'openai-responses', base_url: '/resp/v1' };

  /** The first segment of the path tells who was asked. */
  async function reached(providers: Record<string, typeof chat>, [method, path]: Asked): Promise<string | undefined> {
    const rows = Object.entries(providers).map(([id, row]) => [
      id,
      { ...row, base_url: faultd.url + row.base_url, api_key: KEY },
    ]);
    const gateway = await startGateway({ config: { providers: Object.fromEntries(rows) } });
    const client = await RawClient.open(gateway.url);
    const { status } = await client.send(requestText(method, path, {}, method === 'POST' ? '{}' : '')).reply();
    client.leave();
    await gateway.close();
    expect(status).toBe(200);
    expect(faultd.served[0]?.path).toContain(path.replace(/^.*\/v1\//, '/v1/'));
    return faultd.served[0]?.path.split('/')[1];
  }

  test.each([...OF_RESPONSES, ...OF_BOTH])('%s %s reaches the only provider of either protocol', async (...asked) => {
    expect(await reached({ only: responses }, asked)).toBe('resp');
    faultd.play([{ send: whole(200, '{}') }]);
    expect(await reached({ only: chat }, asked)).toBe('chat');
  });

  test.each(OF_RESPONSES)('%s %s prefers the Responses provider', async (...asked) => {
    expect(await reached({ first: chat, second: responses }, asked)).toBe('resp');
  });

  test.each(OF_BOTH)('%s %s prefers the Chat provider', async (...asked) => {
    expect(await reached({ first: responses, second: chat }, asked)).toBe('chat');
  });
});

test('without a provider of the protocol, the error reports it', async () => {
  const gateway = await startGateway({ config: { providers: { a: { protocol: 'gemini', base_url: faultd.url } } } });
  const client = await RawClient.open(gateway.url);
  const reply = await client.send(requestText('POST', '/v1/moderations', {}, '{}')).reply();
  expectRefused('openai-chat', reply, 404, 'no provider with protocol openai-chat is configured');
  client.leave();
  await gateway.close();
});
