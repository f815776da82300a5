import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from 'google-genai-2';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, type Started, startGateway } from '../gateway/start.ts';
import { SNAPSHOT_VERSION } from './state.ts';

// Costs in headers and in the log, and prices in the lists of models.

const CHAT = {
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-5',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100, prompt_tokens_details: { cached_tokens: 400 } },
};

const STREAM = [
  { ...CHAT, object: 'chat.completion.chunk', usage: null, choices: [{ index: 0, delta: { role: 'assistant', content: 'hi' } }] },
  { ...CHAT, object: 'chat.completion.chunk', usage: null, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  { ...CHAT, object: 'chat.completion.chunk', choices: [] },
]
  .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  .join('')
  .concat('data: [DONE]\n\n');

const LIST = {
  object: 'list',
  data: [
    { id: 'gpt-5', object: 'model', created: 1, owned_by: 'openai' },
    { id: 'unheard-of', object: 'model', created: 1, owned_by: 'openai', context_length: 1234, max_output_tokens: 99 },
  ],
};

let upstream: Server;
let gateway: Started;
let unlisted: Started;

beforeAll(async () => {
  upstream = createServer((request, response) => {
    request.setEncoding('utf8');
    let body = '';
    request.on('data', (piece: string) => {
      body += piece;
    });
    request.on('end', () => {
      const isStream = body.includes('"stream":true');
      const { usage: _, ...silent } = CHAT;
      const whole = body.includes('gpt-5-mini') ? silent : CHAT;
      const text = request.method === 'GET' ? JSON.stringify(LIST) : isStream ? STREAM : JSON.stringify(whole);
      response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' }).end(text);
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const base_url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`; // a TCP server has one
  const like = (row: string): object => ({ extends: row, protocol: 'openai-chat', base_url, api_key: 'k' });
  const providers = { vendor: like('openai'), own: { protocol: 'openai-chat', base_url } };
  gateway = await startGateway({
    config: {
      providers: { ...providers, claude: { extends: 'anthropic', base_url, api_key: 'k' } },
      prices: { 'own/priced*': { input: 1, output: 2 } },
      models: {
        known: 'vendor/gpt-5',
        silent: 'vendor/gpt-5-mini',
        nameless: 'own/anything',
        priced: 'own/priced-1',
        claude: 'claude/claude-sonnet-4-5',
        free: 'demo/hello',
      },
    },
  });
  unlisted = await startGateway({ config: { providers } });
});

afterAll(async () => {
  await gateway.close();
  await unlisted.close();
  upstream.close();
});

describe('x-sluice-cost-usd', () => {
  test.each([
    ['known', 'openai-chat', '0.001800'],
    ['known', 'anthropic-messages', '0.001800'],
    ['known', 'gemini', '0.001800'],
    ['priced', 'openai-chat', '0.001200'],
    ['nameless', 'openai-chat', undefined],
    ['silent', 'openai-chat', undefined],
    ['silent', 'anthropic-messages', undefined],
    ['silent', 'openai-responses', undefined],
    ['silent', 'gemini', undefined],
    ['free', 'openai-chat', '0.000000'],
  ] as const)('%s for a client of %s: %s', async (model, client, cost) => {
    const reply = await ask(gateway.url, { client, model, stream: false });
    expect([reply.status, reply.headers['x-sluice-cost-usd']]).toEqual([200, cost]);
  });

  test('a stream has none, and its cost is in the log', async () => {
    const reply = await ask(gateway.url, { client: 'openai-chat', model: 'known', stream: true });
    expect(reply.headers['x-sluice-cost-usd']).toBeUndefined();
    expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({
      input_tokens: 1000,
      cost_usd: 0.0018,
      price_version: expect.stringMatching(new RegExp(`^genai-prices-${SNAPSHOT_VERSION}\\+`)),
    });
  });

  test('an unknown price is not in the log', async () => {
    const reply = await ask(gateway.url, { client: 'openai-chat', model: 'nameless', stream: false });
    expect(await gateway.ended(reply.headers['x-sluice-request-id'])).not.toHaveProperty('cost_usd');
  });

  test('an error has none', async () => {
    const reply = await ask(gateway.url, { client: 'openai-chat', model: 'no-such', stream: false });
    expect([reply.status, reply.headers['x-sluice-cost-usd']]).toEqual([404, undefined]);
  });
});

describe('lists of models', () => {
  test('OpenAI: limits and prices per token', async () => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'any' });
    const { data } = await client.models.list();
    expect(data.map(({ id }) => id)).toEqual(['known', 'silent', 'nameless', 'priced', 'claude', 'free']);
    expect(data[0]).toMatchObject({
      context_length: 400_000,
      context_window: 400_000,
      pricing: { prompt: '0.00000125', completion: '0.00001', input_cache_read: '0.000000125', web_search: '0.01' },
    });
    expect(data[2]).not.toHaveProperty('pricing');
    expect(data[3]).toMatchObject({ pricing: { prompt: '0.000001', completion: '0.000002' } });
    expect(data[4]).toMatchObject({ max_output_tokens: 64_000, pricing: { prompt: '0.000003' } });
    expect(data[5]).toMatchObject({ pricing: { prompt: '0', completion: '0' } });
    expect(await client.models.retrieve('known')).toEqual(data[0]);
  });

  test('Anthropic: limits and prices', async () => {
    const client = new Anthropic({ baseURL: gateway.url, apiKey: 'any' });
    const { data } = await client.models.list();
    expect(data.find(({ id }) => id === 'claude')).toMatchObject({
      max_input_tokens: 200_000,
      max_tokens: 64_000,
      pricing: { prompt: '0.000003', input_cache_write: '0.00000375' },
    });
    expect(data.find(({ id }) => id === 'nameless')).toMatchObject({ max_input_tokens: null, max_tokens: null });
  });

  test('Gemini: limits only', async () => {
    const client = new GoogleGenAI({ apiKey: 'any', httpOptions: { baseUrl: gateway.url } });
    const models = [];
    for await (const model of await client.models.list()) models.push(model);
    expect(models.find(({ name }) => name === 'models/claude')).toMatchObject({
      inputTokenLimit: 200_000,
      outputTokenLimit: 64_000,
    });
    expect(models.find(({ name }) => name === 'models/nameless')).not.toHaveProperty('inputTokenLimit');
    const response = await fetch(`${gateway.url}/v1beta/models`, { headers: { 'x-goog-api-key': 'any' } });
    expect(await response.text()).not.toContain('pricing');
  });

  test('limits that the provider states are kept', async () => {
    const client = new OpenAI({ baseURL: `${unlisted.url}/v1`, apiKey: 'any' });
    const { data } = await client.models.list();
    const byId = new Map(data.map((model) => [model.id, model]));
    expect(byId.get('vendor/gpt-5')).toMatchObject({ context_length: 400_000, pricing: { prompt: '0.00000125' } });
    expect(byId.get('own/gpt-5')).not.toHaveProperty('pricing');
    expect(byId.get('vendor/unheard-of')).toMatchObject({ context_length: 1234, max_output_tokens: 99 });
    expect(byId.get('vendor/unheard-of')).not.toHaveProperty('pricing');
  });
});
