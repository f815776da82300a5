import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Started, startGateway } from '../gateway/start.ts';
import { startUpstream, type Upstream } from './upstreams.ts';

// Everything with an id belongs to the key that made it. For another key it does not exist.

const [OWNER, OTHER] = ['key-of-the-owner', 'key-of-the-other'];

let upstream: Upstream;
let native: Upstream;
let vendor: { server: Server; url: string; got: string[] };
let gateway: Started;
const ids: Record<string, string> = {};

interface Reply {
  status: number;
  body: string;
}

async function send(
  key: string,
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.text() };
}

const make = async (path: string, body: object, headers: Record<string, string> = {}): Promise<string> => {
  const made: { id?: string; file?: { name: string }; output?: { id: string }[] } = JSON.parse(
    (await send(OWNER, 'POST', path, body, headers)).body,
  );
  ids['item'] ??= made.output?.[0]?.id ?? '';
  return made.id ?? made.file?.name.split('/').at(-1) ?? '';
};

const ANTHROPIC = { 'anthropic-version': '2023-06-01' };
const GOOGLE = { 'x-goog-api-key': OWNER };

beforeAll(async () => {
  upstream = await startUpstream('anthropic-messages');
  native = await startUpstream('openai-responses');
  vendor = await startVendor();
  gateway = await startGateway({
    config: {
      auth: { keys: [OWNER, OTHER] },
      providers: {
        claude: { protocol: 'anthropic-messages', base_url: upstream.url, api_key: 'k', passthrough: 'off' },
        openai: { protocol: 'openai-responses', base_url: native.url, api_key: 'k', passthrough: 'off', repair: false },
        files: { protocol: 'openai-chat', base_url: `${vendor.url}/v1`, api_key: 'k' },
        afiles: { protocol: 'anthropic-messages', base_url: vendor.url, api_key: 'k' },
        gfiles: { protocol: 'gemini', base_url: `${vendor.url}/v1beta`, api_key: 'k' },
      },
    },
  });
  ids['response'] = await make('/v1/responses', { model: 'claude/m', input: 'secret of the owner' });
  ids['native'] = await make('/v1/responses', { model: 'openai/m', input: 'secret of the owner' });
  ids['background'] = await make('/v1/responses', { model: 'claude/m', input: 'secret', background: true });
  ids['conversation'] = await make('/v1/conversations', { items: [{ type: 'message', role: 'user', content: 'secret' }] });
  ids['file'] = await make('/v1/files', { purpose: 'batch' });
  ids['batch'] = await make('/v1/batches', { endpoint: '/v1/chat/completions' });
  ids['anthropic file'] = await make('/v1/files', {}, ANTHROPIC);
  ids['anthropic batch'] = await make('/v1/messages/batches', { requests: [] }, ANTHROPIC);
  ids['gemini file'] = await make('/v1beta/files', {}, GOOGLE);
});

afterAll(async () => {
  await gateway.close();
  upstream.close();
  native.close();
  vendor.server.close();
  vendor.server.closeAllConnections();
});

/** A vendor that makes an object for every POST. */
async function startVendor(): Promise<typeof vendor> {
  const got: string[] = [];
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      got.push(`${request.method} ${request.url}`);
      const isGemini = request.url?.startsWith('/v1beta') ?? false;
      const object = isGemini ? { file: { name: `files/object${got.length}` } } : { id: `object_${got.length}`, object: 'thing' };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(object));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, got, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }; // a TCP server has one
}

/** Every endpoint that takes an id: the kind of object, the method, the path with `{id}`, and what is sent. */
const ENDPOINTS: readonly [
  kind: string,
  method: string,
  path: string,
  body?: ((id: string) => object) | undefined,
  headers?: Record<string, string>,
][] = [
  ['response', 'GET', '/v1/responses/{id}'],
  ['response', 'GET', '/v1/responses/{id}?stream=true'],
  ['response', 'GET', '/v1/responses/{id}/input_items'],
  ['response', 'POST', '/v1/responses/{id}/cancel'],
  ['background', 'GET', '/v1/responses/{id}'],
  ['background', 'GET', '/v1/responses/{id}?stream=true&starting_after=0'],
  ['background', 'POST', '/v1/responses/{id}/cancel'],
  ['response', 'POST', '/v1/responses', (id) => ({ model: 'claude/m', input: 'x', previous_response_id: id })],
  ['native', 'POST', '/v1/responses', (id) => ({ model: 'claude/m', input: 'x', previous_response_id: id })],
  ['conversation', 'POST', '/v1/responses', (id) => ({ model: 'claude/m', input: 'x', conversation: id })],
  ['item', 'POST', '/v1/responses', (id) => ({ model: 'claude/m', input: [{ type: 'item_reference', id }] })],
  ['conversation', 'GET', '/v1/conversations/{id}'],
  ['conversation', 'POST', '/v1/conversations/{id}', () => ({ metadata: {} })],
  ['conversation', 'GET', '/v1/conversations/{id}/items'],
  ['conversation', 'POST', '/v1/conversations/{id}/items', () => ({ items: [{ role: 'user', content: 'x' }] })],
  ['file', 'GET', '/v1/files/{id}'],
  ['file', 'GET', '/v1/files/{id}/content'],
  ['batch', 'GET', '/v1/batches/{id}'],
  ['batch', 'POST', '/v1/batches/{id}/cancel'],
  ['anthropic file', 'GET', '/v1/files/{id}', undefined, ANTHROPIC],
  ['anthropic batch', 'GET', '/v1/messages/batches/{id}', undefined, ANTHROPIC],
  ['anthropic batch', 'GET', '/v1/messages/batches/{id}/results', undefined, ANTHROPIC],
  ['gemini file', 'GET', '/v1beta/files/{id}', undefined, { 'x-goog-api-key': '' }],
  // These come last, because they succeed for the owner.
  ['file', 'DELETE', '/v1/files/{id}'],
  ['response', 'DELETE', '/v1/responses/{id}'],
  ['conversation', 'DELETE', '/v1/conversations/{id}'],
];

describe('objects of another key', { shuffle: false }, () => {
  describe.each(ENDPOINTS)('%s: %s %s', (kind, method, path, body, headers = {}) => {
    const ask = (key: string, id: string): Promise<Reply> => {
      const keyed = 'x-goog-api-key' in headers ? { 'x-goog-api-key': key } : headers;
      return send(key, method, path.replace('{id}', id), body?.(id), keyed);
    };

    test('another key gets the same error as for an unknown id, and then the owner succeeds', async () => {
      const id = ids[kind] ?? '';
      expect(id).not.toBe('');
      const [seen, made] = [vendor.got.length, upstream.got.length];
      const foreign = await ask(OTHER, id);
      const unknown = await ask(OTHER, 'x'.repeat(id.length));
      expect(foreign.status).toBe('previous_response_id' in (body?.('') ?? {}) ? 400 : 404);
      expect({ ...foreign, body: foreign.body.replaceAll(id, '') }).toEqual({
        ...unknown,
        body: unknown.body.replaceAll('x'.repeat(id.length), ''),
      });
      expect([vendor.got.length, upstream.got.length]).toEqual([seen, made]);
      const own = await ask(OWNER, id);
      const isRefusedForAll = /stream=true$|responses\/\{id\}\/cancel/.test(path) && kind === 'response';
      expect(own.status).toBe(isRefusedForAll ? 400 : 200);
    });
  });
});

test('a provider that keeps responses does not get ids of another key', async () => {
  const id = ids['native'] ?? '';
  const before = native.got.length;
  expect(await send(OTHER, 'POST', '/v1/responses', { model: 'openai/m', input: 'x', previous_response_id: id })).toMatchObject({
    status: 400,
  });
  expect(native.got.length).toBe(before);
  expect((await send(OWNER, 'POST', '/v1/responses', { model: 'openai/m', input: 'x', previous_response_id: id })).status).toBe(
    200,
  );
  expect(JSON.parse(native.got.at(-1) ?? '')).toMatchObject({ previous_response_id: id });
});

test('ids that were made elsewhere are passed to a provider of the protocol only without client keys, or where it passes everything', async () => {
  const provider = { protocol: 'openai-responses', base_url: native.url, api_key: 'k' };
  const body = { model: 'openai/m', input: 'x', previous_response_id: 'resp_elsewhere' };
  expect((await send(OWNER, 'POST', '/v1/responses', body)).status).toBe(400);
  const before = native.got.length;
  for (const config of [
    { providers: { openai: provider } },
    { auth: { keys: [OWNER, OTHER] }, providers: { openai: { ...provider, passthrough: 'all' } } },
  ]) {
    const other = await startGateway({ config });
    const headers = { authorization: `Bearer ${OWNER}`, 'content-type': 'application/json' };
    const { status } = await fetch(`${other.url}/v1/responses`, { method: 'POST', headers, body: JSON.stringify(body) });
    expect(status).toBe(200);
    expect(JSON.parse(native.got.at(-1) ?? '')).toMatchObject({ previous_response_id: 'resp_elsewhere' });
    await other.close();
  }
  expect(native.got.length).toBe(before + 2);
});

test('a conversation moves from the provider that keeps it to another one and back', async () => {
  const id = ids['native'] ?? '';
  const moved = JSON.parse(
    (await send(OWNER, 'POST', '/v1/responses', { model: 'claude/m', input: 'moved', previous_response_id: id })).body,
  );
  expect(upstream.got.at(-1)).toContain('secret of the owner');
  await send(OWNER, 'POST', '/v1/responses', { model: 'openai/m', input: 'back', previous_response_id: moved.id });
  const back = JSON.parse(native.got.at(-1) ?? '');
  expect(back).not.toHaveProperty('previous_response_id');
  expect(JSON.stringify(back.input)).toMatch(/secret of the owner.*moved.*back/);
  expect(JSON.stringify(back.input)).not.toContain(moved.output[0].id);
});

test.each([
  ['/v1/batches', () => ({ input_file_id: ids['batch'], endpoint: '/v1/chat/completions' })],
  ['/v1/vector_stores', () => ({ file_ids: ['file_own', ids['batch']] })],
  [
    '/v1/responses',
    () => ({ model: 'claude/m', input: [{ role: 'user', content: [{ type: 'input_file', file_id: ids['batch'] }] }] }),
  ],
])('%s does not accept an object of another key in its body', async (path, body) => {
  const before = vendor.got.length;
  expect((await send(OTHER, 'POST', path, body())).status).toBe(404);
  expect(vendor.got.length).toBe(before);
});

test.each([
  '/v1/responses/%',
  '/v1/conversations/%zz',
  '/v1/responses/a%2Fb',
  '/v1/files/%',
  '/v1/responses/x/y/z',
  '/v1/conversations/x/y',
])('%s is no id', async (path) => {
  expect((await send(OWNER, 'GET', path)).status).toBe(404);
});

test('a background response of a provider that keeps it is read there, by its owner', async () => {
  native.next = { status: 'queued' };
  const body = { model: 'openai/m', input: 'x', background: true };
  const made = JSON.parse((await send(OWNER, 'POST', '/v1/responses', body)).body);
  native.next = {};
  expect(JSON.parse(native.got.at(-1) ?? '')).toMatchObject({ background: true });
  expect((await send(OTHER, 'GET', `/v1/responses/${made.id}`)).status).toBe(404);
  // The provider passes nothing on in this configuration, so the refusal shows that the request was meant for it.
  expect((await send(OWNER, 'GET', `/v1/responses/${made.id}`)).body).toContain('providers.openai.passthrough');
});

test('lists of objects that all keys would share are refused', async () => {
  expect((await send(OWNER, 'GET', '/v1/files')).status).toBe(403);
});
