import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Metrics } from '../../src/observe/metrics.ts';
import { expectAnswered, expectRefused } from './check.ts';
import { questionOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt, waysOf } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, eventually, type Started, startGateway } from './start.ts';

// Model names are the client's text. They become cache keys, metric labels and log fields, so their length and number are bounded.

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  gateway = await startGateway({
    config: {
      providers: providersAt(faultd),
      models: { known: 'mend-openai-chat/listed' },
      limits: { retries_per_provider: 0 },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

const PREFIX = 'mend-openai-chat/';
const nameOf = (bytes: number): string => PREFIX.padEnd(bytes, 'n');

const JSON_BODY = { messages: [], input: 'x', query: 'q', documents: ['d'], contents: [], content: { parts: [{ text: 'x' }] } };

/** Every endpoint whose request names a model. */
const ENDPOINTS: readonly {
  client: ProtocolId;
  method?: string;
  path: (model: string) => string;
  headers?: Record<string, string>;
}[] = [
  { client: 'openai-chat', path: () => '/v1/chat/completions' },
  { client: 'openai-chat', path: (model) => `/openai/deployments/${encodeURIComponent(model)}/chat/completions` },
  { client: 'openai-chat', path: () => '/v1/embeddings' },
  { client: 'openai-chat', path: () => '/v1/rerank' },
  { client: 'openai-chat', method: 'GET', path: (model) => `/v1/models/${model}` },
  { client: 'anthropic-messages', path: () => '/v1/messages' },
  { client: 'anthropic-messages', path: () => '/v1/messages/count_tokens' },
  {
    client: 'anthropic-messages',
    method: 'GET',
    path: (model) => `/v1/models/${model}`,
    headers: { 'anthropic-version': '2023-06-01' },
  },
  { client: 'openai-responses', path: () => '/v1/responses' },
  { client: 'openai-responses', path: () => '/v1/responses/input_tokens' },
  { client: 'gemini', path: (model) => `/v1beta/models/${model}:generateContent` },
  { client: 'gemini', path: (model) => `/v1beta/models/${model}:streamGenerateContent?alt=sse` },
  { client: 'gemini', path: (model) => `/v1beta/models/${model}:countTokens` },
  { client: 'gemini', path: (model) => `/v1beta/models/${model}:embedContent` },
  { client: 'gemini', path: (model) => `/v1beta/models/${encodeURIComponent(model)}:generateContent` },
  { client: 'gemini', method: 'GET', path: (model) => `/v1beta/models/${model}`, headers: { 'x-goog-api-key': 'k' } },
];

test.each(ENDPOINTS.map((endpoint) => ({ ...endpoint, name: `${endpoint.client}, ${endpoint.path('NAME')}` })))(
  'a name of 513 bytes is rejected with 400: $name',
  async ({ client, method = 'POST', path, headers }) => {
    faultd.play([{ send: whole(500, '{}') }]);
    for (const model of [nameOf(513), `${PREFIX}${'é'.repeat(248)}`, nameOf(6000)]) {
      const raw = await RawClient.open(gateway.url);
      const body = method === 'POST' ? JSON.stringify({ ...JSON_BODY, model }) : '';
      const reply = await raw.send(requestText(method, encodeURI(path(model)), headers ?? {}, body)).reply();
      raw.leave();
      expectRefused(client, reply, 400, 'at most 512 bytes');
      expect(reply.body.toString()).not.toMatch(/nnn|é/);
      expect(faultd.served).toHaveLength(0);
    }
  },
);

test.each(waysOf(PAIRS))('a name of 512 bytes is passed to the upstream: $name', async ({ pair, stream }) => {
  faultd.play(good(pair, stream));
  const model = modelOf(pair).padEnd(512, 'n');
  expectAnswered(pair, stream, await ask(gateway.url, { client: pair.client, model, stream }));
  const { path = '', body = '' } = faultd.served[0] ?? {};
  expect(path + body).toContain(model.slice(model.indexOf('/') + 1));
});

describe('with thousands of invented names', () => {
  const directory = () => gateway.services.directory();

  test('a name in use stays in the name cache', () => {
    const used = directory().resolve('known', 'openai-chat');
    expect(used).toHaveLength(1);
    for (let i = 0; i < 5000; i++) {
      directory().resolve(`${PREFIX}invented-${i}`, 'openai-chat');
      expect(directory().resolve('known', 'openai-chat')).toBe(used);
    }
  });

  test('a paused upstream stays paused', async () => {
    const { Breakers } = await import('../../src/upstream/breaker.ts');
    const breakers = new Breakers(() => 0);
    breakers.rest('real/model', 'failed');
    for (let i = 0; i < 5000; i++) {
      breakers.failed(`real/invented-${i}`, 'failed');
      expect(breakers.admit('real/model')).toBe('resting');
    }
  });
});

describe('metric labels', () => {
  const labels = { client_protocol: 'c', upstream_protocol: 'u', provider: 'p' };
  const MAX_ANSWERED = 200;

  test('a model gets its own label when it is configured or a provider responded for it', async () => {
    const metrics = new Metrics();
    for (let i = 0; i < 1000; i++) metrics.of({ ...labels, model: `invented-${i}` }).answered(404, 1);
    metrics.of({ ...labels, model: 'configured', isConfigured: true }).answered(500, 1);
    metrics.answeredFor('p', 'seen');
    metrics.of({ ...labels, model: 'seen' }).answered(200, 1);
    const text = await metrics.text();
    const requests = [...text.matchAll(/sluice_requests_total\{.*?model="([^"]*)".*status="(\d+)"\} (\d+)/g)];
    expect(requests.map(([, ...row]) => row)).toEqual([
      ['other', '404', '1000'],
      ['configured', '500', '1'],
      ['seen', '200', '1'],
    ]);
  });

  test('a provider gets at most 200 labels for models that are not configured', async () => {
    const metrics = new Metrics();
    const answer = (provider: string, model: string, isConfigured = false): void => {
      metrics.answeredFor(provider, model);
      metrics.of({ ...labels, provider, model, isConfigured }).answered(200, 1);
    };
    for (let i = 0; i < 1000; i++) answer('any-name', `m-${i}`);
    answer('any-name', 'listed', true);
    answer('other-provider', 'real');
    const text = await metrics.text();
    expect(text.match(/sluice_requests_total\{/g)?.length).toBe(MAX_ANSWERED + 3);
    expect(text).toContain('sluice_requests_total{provider="any-name",model="listed"');
    expect(text).toContain('sluice_requests_total{provider="other-provider",model="real"');
    expect(text).toMatch(/provider="any-name",model="other".*status="200"\} 800/);
  });

  test('an estimated token count does not create a label', async () => {
    const model = `${PREFIX}invented-for-counting`;
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'x' }] });
    const reply = await fetch(`${gateway.url}/v1/messages/count_tokens`, { method: 'POST', body });
    expect(reply.status).toBe(200);
    await gateway.ended(reply.headers.get('x-sluice-request-id') ?? undefined);
    expect(await (await fetch(`${gateway.url}/metrics`)).text()).not.toContain('invented-for-counting');
  });

  test.each(waysOf(PAIRS.slice(0, 5)))(
    'real models keep their labels after 200 rejected names: $name',
    async ({ pair, stream }) => {
      const own = await startGateway({
        config: {
          providers: providersAt(faultd),
          models: { alias: `${modelOf(pair)}-listed` },
          limits: { retries_per_provider: 0 },
        },
      });
      const send = (model: string) => ask(own.url, { client: pair.client, model, stream });
      faultd.play([{ send: whole(404, '{"error":{"message":"no such model"}}') }]);
      for (let i = 0; i < 205; i++) await send(`${modelOf(pair)}-invented-${i}`);
      await send('alias');
      faultd.play(good(pair, stream));
      await send(`${modelOf(pair)}-real`);
      const text = await (await fetch(`${own.url}/metrics`)).text();
      await own.close();
      const named = (name: string) => new RegExp(`^${name}\\{[^}]*model="m-real"[^}]*\\} 1$`, 'm');
      expect(text).not.toContain('invented');
      expect(text).toMatch(named('sluice_requests_total'));
      expect(text).toMatch(named('sluice_overhead_seconds_count'));
      expect(text).toMatch(named('sluice_request_duration_seconds_count'));
      if (stream) expect(text).toMatch(named('sluice_time_to_first_token_seconds_count'));
      expect(text).toMatch(/sluice_requests_total\{[^}]*model="m-listed"[^}]*status="404"\} 1/);
      expect(text).toMatch(/sluice_requests_total\{[^}]*model="other"[^}]*status="404"\} 205/);
    },
  );
});

describe('40 names of 4 MB', () => {
  const bin = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'));
  let child: ChildProcess | undefined;

  afterAll(async () => {
    if (child?.exitCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true });
  });

  test('do not exhaust a gateway with a small heap', async () => {
    const file = join(folder, 'sluice.json');
    writeFileSync(
      file,
      JSON.stringify({ listen: { port: 0 }, providers: providersAt(faultd), limits: { retries_per_provider: 0 } }),
    );
    const argv = ['--max-old-space-size=192', bin, 'serve', '--config', file];
    child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'ignore'] });
    let text = '';
    child.stdout?.on('data', (piece) => (text += String(piece)));
    const url = await eventually(() => /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0]);
    const pair = PAIRS[0] as Pair;
    faultd.play(good(pair, false));
    const statuses: number[] = [];
    for (let i = 0; i < 40; i++) {
      const { path, body } = questionOf(pair.client, `${modelOf(pair)}${i}`.padEnd(4_000_000, 'n'), false);
      const reply = await fetch(url + path, { method: 'POST', body: JSON.stringify(body) });
      await reply.text();
      statuses.push(reply.status);
    }
    expect([...new Set(statuses)]).toEqual([400]);
    expectAnswered(pair, false, await ask(url, { client: pair.client, model: modelOf(pair), stream: false }));
  });
});
