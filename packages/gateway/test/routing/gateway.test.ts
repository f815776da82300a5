import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { resolveConfig } from '../../src/config/resolve.ts';
import { SecretRegistry } from '../../src/config/secrets.ts';
import type { Directory } from '../../src/exchange/types.ts';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import { Router } from '../../src/routing/router.ts';
import { createDirectory } from '../../src/server/directory.ts';
import { createKeeping } from '../../src/server/records.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { Breakers } from '../../src/upstream/breaker.ts';
import { DemoTransport } from '../../src/upstream/demo.ts';
import { type Started, startGateway } from '../gateway/start.ts';
import { createRandom } from './fleet.ts';

// Requests through the whole gateway to upstreams that tell keys, models and addresses apart.

/** What an upstream does with a key and a model. */
type Behave = (key: string, model: string) => { status: number; code?: string; retryAfter?: string } | undefined;

/** A Chat server that notes the key and the model of every request. */
class Upstream {
  readonly served: string[] = [];
  behave: Behave = () => undefined;
  readonly #server: Server = createServer((request, response) => {
    const respond = ({ model }: { model: string }): void => {
      const key = request.headers.authorization?.slice('Bearer '.length) ?? '';
      this.served.push(`${key} ${model}`);
      const { status, code = 'x', retryAfter } = this.behave(key, model) ?? { status: 200 };
      const error = { error: { message: 'no', type: code, code } };
      const message = { role: 'assistant', content: 'hi' };
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const answer = {
        id: 'c',
        object: 'chat.completion',
        model,
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage,
      };
      response.writeHead(status, { 'content-type': 'application/json', ...(retryAfter && { 'retry-after': retryAfter }) });
      response.end(JSON.stringify(status === 200 ? answer : error));
    };
    // A request that the gateway cancels ends before its body does.
    readJson(request).then(respond, () => response.destroy());
  });

  async start(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`; // it listens
  }

  /** What was served since the last call, by key. */
  take(): string[] {
    return this.served.splice(0);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

async function readJson(request: IncomingMessage): Promise<{ model: string }> {
  let text = '';
  for await (const piece of request.setEncoding('utf8')) text += piece;
  return JSON.parse(text);
}

let first: Upstream;
let second: Upstream;
let gateway: Started;
let now: number;
/** Set by tests that reload the configuration. */
let directory: Directory | undefined;

const build = (config: object): object => ({
  providers: {
    two: { protocol: 'openai-chat', base_url: first.url, api_keys: ['key-a', 'key-b'] },
    one: { protocol: 'openai-chat', base_url: second.url, api_key: 'key-c' },
  },
  ...config,
});

async function start(config: object = {}, store?: Store): Promise<void> {
  now = 1;
  directory = undefined;
  gateway = await startGateway({
    config: build(config),
    hasBreakers: true,
    services: (made) => {
      const breakers = new Breakers(() => now, { random: () => 0 });
      const router = new Router({ breakers, now: () => now, random: createRandom(3) });
      const { log, metrics } = made;
      const keeping = store && createKeeping(store, { durability: 'strict', clock: REAL_CLOCK, log, metrics });
      return { ...made, breakers, router, keeping, directory: () => directory ?? made.directory(), random: () => -0.5 };
    },
  });
}

beforeEach(async () => {
  first = await new Upstream().start();
  second = await new Upstream().start();
});

afterEach(async () => {
  await gateway.close();
  await first.stop();
  await second.stop();
});

interface Answer {
  status: number;
  headers: Record<string, string>;
}

async function ask(
  model: string,
  { headers = {}, ...body }: Record<string, unknown> & { headers?: object } = {},
): Promise<Answer> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }], ...body }),
  });
  await response.text();
  return { status: response.status, headers: Object.fromEntries(response.headers) };
}

const session = (name: string) => ({ headers: { 'x-sluice-session': name } });

describe('several keys of a provider', () => {
  test('share its requests', async () => {
    await start({ affinity: 'off' });
    for (let i = 0; i < 40; i++) expect((await ask('two/m')).status).toBe(200);
    const served = first.take();
    expect(new Set(served)).toEqual(new Set(['key-a m', 'key-b m']));
    expect(served.filter((entry) => entry.startsWith('key-a')).length).toBeGreaterThan(10);
  });

  test.each([
    { title: 'a rate limit', fault: { status: 429, retryAfter: '20' }, otherModel: 'two keys', restMs: 20_000 },
    { title: 'a rate limit without a time', fault: { status: 429 }, otherModel: 'two keys', restMs: 1000 },
    { title: 'a rejected key', fault: { status: 401, code: 'invalid_api_key' }, otherModel: 'one key', restMs: 30_000 },
    { title: 'a spent quota', fault: { status: 429, code: 'insufficient_quota' }, otherModel: 'one key', restMs: 30_000 },
  ])('a key with $title rests, and the other serves without an error', async ({ fault, otherModel, restMs }) => {
    await start({ affinity: 'off' });
    first.behave = (key, model) => (key === 'key-a' && model === 'm' ? fault : undefined);
    for (let i = 0; i < 20; i++) expect((await ask('two/m')).status).toBe(200);
    expect(first.take().filter((entry) => entry.startsWith('key-a'))).toHaveLength(1);

    for (let i = 0; i < 20; i++) await ask('two/other');
    expect(new Set(first.take()).size).toBe(otherModel === 'two keys' ? 2 : 1);

    now += restMs - 1;
    for (let i = 0; i < 5; i++) await ask('two/m');
    expect(first.take()).toEqual(Array(5).fill('key-b m'));
    now += 1;
    first.behave = () => undefined;
    for (let i = 0; i < 20; i++) await ask('two/m');
    expect(first.take().filter((entry) => entry.startsWith('key-a')).length).toBeGreaterThan(4);
  });

  test('are not shown: errors and headers have their number', async () => {
    await start({ affinity: 'off' });
    first.behave = () => ({ status: 401 });
    const { status, headers } = await ask('two/m');
    expect(status).toBe(401);
    expect(headers['x-sluice-tried']).toMatch(/^two\/m \(key [12]\) AUTHENTICATION; two\/m \(key [12]\) AUTHENTICATION$/);
    expect(JSON.stringify(headers) + gateway.lines.join()).not.toMatch(/key-[ab]/);
  });

  test('a failure of the server goes to another server before it goes to the other key', async () => {
    await start({ affinity: 'off', models: { m: ['two/m', 'one/m'] } });
    first.behave = () => ({ status: 500 });
    expect((await ask('m')).headers).toMatchObject({ 'x-sluice-provider': 'one', 'x-sluice-attempts': '2' });
  });
});

test('a request is never sent more often than the limits allow, however many targets it has', async () => {
  const targets = ['two/a', 'one/a', 'two/b', 'one/b', 'two/c', 'one/c'];
  for (const strategy of ['order', 'weighted', 'least_busy', 'fastest', 'cheapest'])
    for (const status of [500, 429, 401, 404]) {
      await start({ models: { m: { strategy, targets } }, limits: { retries: 3 } });
      first.behave = () => ({ status });
      second.behave = () => ({ status });
      for (let i = 0; i < 6; i++) {
        const { headers } = await ask('m');
        const sent = first.take().length + second.take().length;
        expect(sent).toBeLessThanOrEqual(4);
        expect(headers['x-sluice-attempts']).toBe(String(sent));
      }
      if (strategy !== 'cheapest' || status !== 404) await gateway.close();
    }
});

describe('conversations', () => {
  test('stay with the key that served them, and move when it fails', async () => {
    await start();
    const { headers } = await ask('two/m', session('s'));
    expect(headers['x-sluice-affinity']).toBe('new');
    const [served = ''] = first.take();
    for (let i = 0; i < 10; i++) expect((await ask('two/m', session('s'))).headers['x-sluice-affinity']).toBe('hit');
    expect(first.take()).toEqual(Array(10).fill(served));

    first.behave = (key) => (served.startsWith(key) ? { status: 429, retryAfter: '20' } : undefined);
    expect((await ask('two/m', session('s'))).headers['x-sluice-affinity']).toBe('miss');
    expect((await ask('two/m', session('s'))).headers['x-sluice-affinity']).toBe('hit');
    now += 60_000;
    expect((await ask('two/m', session('s'))).headers['x-sluice-affinity']).toBe('hit');
    expect(first.take().at(-1)).not.toBe(served);
  });

  test('are recognised by their prompt, and have no header where there is only one target', async () => {
    await start();
    expect((await ask('two/m')).headers['x-sluice-affinity']).toBe('new');
    expect((await ask('two/m')).headers['x-sluice-affinity']).toBe('hit');
    expect((await ask('one/m', session('s'))).headers).not.toHaveProperty('x-sluice-affinity');
  });

  test('a reload keeps them, and the pauses of targets', async () => {
    await start();
    await ask('two/m', session('s'));
    const [served] = first.take();
    second.behave = () => ({ status: 401 });
    await ask('one/m');
    second.take();
    const text = JSON.stringify(build({ models: { added: 'one/m' } }));
    const state = resolveConfig(loadConfig('sluice.json', text, {}), { env: {}, secrets: new SecretRegistry() });
    directory = createDirectory(state, new DemoTransport(0));
    expect((await ask('two/m', session('s'))).headers['x-sluice-affinity']).toBe('hit');
    expect(first.take()).toEqual([served]);
    expect(gateway.services.breakers.isWell('one/m')).toBe(false);
  });

  test('a changed block of the prompt is in the log', async () => {
    await start();
    const tools = (description: string) => [{ type: 'function', function: { name: 'f', description, parameters: {} } }];
    const logged = async (description: string): Promise<unknown> => {
      const { headers } = await ask('one/m', { ...session('s'), tools: tools(description) });
      return (await gateway.ended(headers['x-sluice-request-id']))['cache_break'];
    };
    expect(await logged('first')).toBeUndefined();
    expect(await logged('first')).toBeUndefined();
    expect(await logged('second')).toBe('tools[0].function.description changed');
    expect(gateway.lines.join()).not.toContain('second');
  });
});

describe('the model name in a response', () => {
  const readModels = async (stream: boolean, model: string): Promise<{ body: unknown; headers: Headers }> => {
    const response = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify({ model, stream, max_tokens: 9, messages: [{ role: 'user', content: 'hello' }] }),
    });
    return { body: /"model":"([^"]*)"/.exec(await response.text())?.[1], headers: response.headers };
  };

  test.each([
    { setting: {}, requested: 'alias', named: 'alias' },
    { setting: {}, requested: 'one/m', named: 'one/m' },
    { setting: { model_in_answer: 'requested' }, requested: 'alias', named: 'alias' },
    { setting: { model_in_answer: 'answered' }, requested: 'alias', named: 'm' },
    { setting: { model_in_answer: 'answered' }, requested: 'one/m', named: 'm' },
  ])('$setting: $requested becomes $named', async ({ setting, requested, named }) => {
    const store = await openStore({ folder: null });
    await start({ models: { alias: 'one/m' }, ...setting }, store);
    const { body, headers } = await readModels(false, requested);
    expect(body).toBe(named);
    expect([headers.get('x-sluice-model'), headers.get('x-sluice-requested-model')]).toEqual(['m', requested]);
    expect((await store.list({ limit: 1 })).exchanges).toMatchObject([
      { model_requested: requested, model: 'm', model_answered: 'm' },
    ]);
    await store.close();
  });
});

test('the ledger has the rule, the affinity and the block that broke the cache', async () => {
  const store = await openStore({ folder: null });
  await start({ rules: [{ name: 'all', when: { tools: false }, use: 'two/m' }], models: { x: 'one/m' } }, store);
  const turn = (content: string) => [
    { role: 'system', content },
    { role: 'user', content: 'hello' },
  ];
  for (const text of ['a', 'a', 'b']) await ask('x', { ...session('s'), messages: turn(text) });
  const rows = (await store.list({ limit: 3 })).exchanges.reverse();
  expect(rows.map(({ route_rule, affinity, cache_break }) => [route_rule, affinity, cache_break])).toEqual([
    ['all', 'new', null],
    ['all', 'hit', null],
    ['all', 'hit', 'messages[0] changed'],
  ]);
  await store.close();
});

test('rules choose the model; headers and the log name the rule and the requested model', async () => {
  await start({
    models: { '*': 'one/default' },
    rules: [
      { name: 'long', when: { input_tokens_above: 500 }, use: 'one/long' },
      { when: { background: true }, use: 'two/small' },
    ],
  });
  const plain = await ask('claude-x');
  expect(plain.headers).toMatchObject({ 'x-sluice-model': 'default', 'x-sluice-requested-model': 'claude-x' });
  expect(plain.headers).not.toHaveProperty('x-sluice-rule');
  const long = await ask('claude-x', { messages: [{ role: 'user', content: 'word '.repeat(1000) }] });
  expect(long.headers).toMatchObject({ 'x-sluice-model': 'long', 'x-sluice-rule': 'long' });
  const small = await ask('claude-haiku-4-5');
  expect(small.headers).toMatchObject({ 'x-sluice-provider': 'two', 'x-sluice-rule': 'rules[1]' });
  expect(await gateway.ended(small.headers['x-sluice-request-id'])).toMatchObject({
    rule: 'rules[1]',
    requested: 'claude-haiku-4-5',
    model: 'small',
  });
});
