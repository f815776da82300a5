import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type Started, startGateway } from './start.ts';

// GET /v1/models, where nobody has written the models down: the providers are asked.

const CHAT_LIST = { object: 'list', data: [{ id: 'org/small', object: 'model', created: 1, owned_by: 'org' }] };
const ANTHROPIC_LIST = {
  data: [{ type: 'model', id: 'claude-x', display_name: 'Claude X', created_at: '2026-01-01T00:00:00Z' }],
  has_more: false,
  first_id: 'claude-x',
  last_id: 'claude-x',
};
const GEMINI_LIST = { models: [{ name: 'models/gemini-x', supportedGenerationMethods: ['generateContent'] }] };

const servers: Server[] = [];
const gateways: Started[] = [];

afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
  for (const server of servers.splice(0)) server.close();
});

/** A provider with one list of models, and what it was asked. */
async function provider(body: unknown, status = 200): Promise<{ base_url: string; asked: IncomingMessage[] }> {
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    asked.push(request);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json', connection: 'close' }).end(text);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { base_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked }; // a TCP server has one
}

async function start(config: object): Promise<Started> {
  const gateway = await startGateway({ config });
  gateways.push(gateway);
  return gateway;
}

async function listOf(gateway: Started): Promise<string[]> {
  const list = (await (await fetch(`${gateway.url}/v1/models`)).json()) as { data: { id: string }[] };
  return list.data.map(({ id }) => id);
}

test('a byte order mark before a list is skipped', async () => {
  const { base_url } = await provider(`\uFEFF${JSON.stringify(CHAT_LIST)}`);
  const gateway = await start({ providers: { a: { protocol: 'openai-chat', base_url, api_key: 'key-of-a' } } });
  expect(await listOf(gateway)).toEqual(['a/org/small']);
});

test('every provider is queried in its own protocol, and the list is cached', async () => {
  const [chat, anthropic, gemini] = [await provider(CHAT_LIST), await provider(ANTHROPIC_LIST), await provider(GEMINI_LIST)];
  const gateway = await start({
    providers: {
      a: { protocol: 'openai-chat', base_url: chat.base_url, api_key: 'key-of-a' },
      b: { protocol: 'anthropic-messages', base_url: anthropic.base_url, api_key: 'key-of-b' },
      c: { protocol: 'gemini', base_url: gemini.base_url, api_key: 'key-of-c' },
    },
  });
  for (let time = 0; time < 2; time++) expect(await listOf(gateway)).toEqual(['a/org/small', 'b/claude-x', 'c/gemini-x']);
  expect(chat.asked.map(({ method, headers }) => [method, headers.authorization])).toEqual([['GET', 'Bearer key-of-a']]);
  expect(anthropic.asked.map(({ url, headers }) => [url?.split('?')[1], headers['x-api-key']])).toEqual([
    ['limit=1000', 'key-of-b'],
  ]);
  expect(gemini.asked.map(({ url, headers }) => [url?.split('?')[1], headers['x-goog-api-key']])).toEqual([
    ['pageSize=1000', 'key-of-c'],
  ]);
});

describe('a provider without a usable list', () => {
  test.each([
    ['an error', { error: { message: 'no' } }, 401],
    ['something else', 'odd', 200],
  ])('%s', async (_, body, status) => {
    const [good, bad] = [await provider(CHAT_LIST), await provider(body, status)];
    const gateway = await start({
      providers: {
        good: { protocol: 'openai-chat', base_url: good.base_url },
        bad: { protocol: 'openai-chat', base_url: bad.base_url },
      },
    });
    expect(await listOf(gateway)).toEqual(['good/org/small', 'bad/*']);
    expect(gateway.log()).toContainEqual(
      expect.objectContaining({ provider: 'bad', msg: 'listing the models of a provider failed' }),
    );
  });
});

test('configured models are listed without a query', async () => {
  const { base_url, asked } = await provider(CHAT_LIST);
  const gateway = await start({ providers: { a: { protocol: 'openai-chat', base_url } }, models: { fast: 'a/org/small' } });
  expect(await listOf(gateway)).toEqual(['fast']);
  expect(asked).toEqual([]);
});
