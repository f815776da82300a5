import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { tried } from '../../../../test/tries.ts';
import { quietFor } from '../../../../test/wait.ts';
import { Metrics } from '../../src/observe/metrics.ts';
import { RawClient, requestText } from '../gateway/raw-client.ts';
import { CLIENT_KEY, converse, METRICS_KEY, send, startAdmin, type TestGateway, withKey } from './start.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  vi.restoreAllMocks();
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

async function start(config: object): Promise<TestGateway> {
  const gateway = await startAdmin({ config });
  cleanups.push(() => gateway.stop());
  return gateway;
}

const auth = { keys: [CLIENT_KEY] };
const key = { key: METRICS_KEY };
const FOREIGN = { origin: 'http://evil.example' };

describe('/metrics', () => {
  test.each([
    { name: 'no keys', config: {}, headers: {}, status: 200 },
    { name: 'no keys, a rebound name', config: {}, headers: { host: 'evil.example' }, status: 403 },
    { name: 'no keys, a foreign page', config: {}, headers: FOREIGN, status: 403 },
    { name: 'a metrics key, none sent', config: { metrics: key }, headers: {}, status: 401 },
    { name: 'a metrics key, sent', config: { metrics: key }, headers: withKey(METRICS_KEY), status: 200 },
    { name: 'a metrics key, a wrong one sent', config: { metrics: key }, headers: withKey('x'), status: 401 },
    { name: 'both keys, the metrics key sent', config: { auth, metrics: key }, headers: withKey(METRICS_KEY), status: 200 },
    { name: 'both keys, none sent', config: { auth, metrics: key }, headers: {}, status: 401 },
    { name: 'client keys, none sent', config: { auth }, headers: {}, status: 401 },
    {
      name: 'both keys, in a foreign page',
      config: { auth, metrics: key },
      headers: { ...withKey(METRICS_KEY), ...FOREIGN },
      status: 403,
    },
  ])('with $name gets $status', async ({ config, headers, status }) => {
    const gateway = await start(config);
    expect((await send(gateway.url, '/metrics', { headers })).status).toBe(status);
    expect(gateway.lines.join('')).not.toContain('client key');
  });

  test('accepts a client key for now, with one warning', async () => {
    const gateway = await start({ auth, metrics: key });
    for (let i = 0; i < 3; i++) expect((await send(gateway.url, '/metrics', { headers: withKey(CLIENT_KEY) })).status).toBe(200);
    expect(gateway.lines.filter((line) => line.includes('metrics were read with a client key'))).toHaveLength(1);
  });

  test('a metrics key does not open the client API', async () => {
    const gateway = await start({ auth, metrics: key });
    expect((await send(gateway.url, '/v1/models', { headers: withKey(METRICS_KEY) })).status).toBe(401);
  });
});

describe('metrics.listen', () => {
  const findUrl = ({ lines }: TestGateway): string => {
    const line = lines.find((text) => text.includes('metrics are served on their own address')) ?? '{}';
    return JSON.parse(line).url;
  };

  test('serves metrics without a key, and nothing else', async () => {
    const url = findUrl(await start({ auth, metrics: { listen: '127.0.0.1:0' } }));
    const { status, text } = await send(url, '/metrics');
    expect(status).toBe(200);
    expect(text).toContain('sluice_active_requests');
    for (const path of ['/', '/v1/models', '/admin/v1/config', '/metrics/']) expect((await send(url, path)).status).toBe(404);
    expect((await send(url, '/metrics', { method: 'POST' })).status).toBe(404);
    expect((await send(url, '/metrics', { headers: FOREIGN })).status).toBe(403);
    expect((await send(url, '/metrics', { headers: { host: 'evil.example' } })).status).toBe(403);
  });

  test('needs the metrics key when there is one', async () => {
    const url = findUrl(await start({ metrics: { ...key, listen: '[::1]:0' } }));
    expect((await fetch(`${url}/metrics`)).status).toBe(401);
    expect((await fetch(`${url}/metrics`, { headers: withKey(METRICS_KEY) })).status).toBe(200);
  });
});

describe('a client that does not read', () => {
  const findUrl = ({ url, lines }: TestGateway, isOwn: boolean): string => {
    const line = lines.find((text) => text.includes('metrics are served on their own address')) ?? '{}';
    return isOwn ? JSON.parse(line).url : url;
  };

  const PLACES = [
    ['the address of the gateway', false],
    ['metrics.listen', true],
  ] as const;

  test.each(PLACES)('and sends thousands of requests ahead does not get a page made for each: %s', async (_, isOwn) => {
    const REQUESTS = 2000;
    tried(REQUESTS);
    const pages = vi.spyOn(Metrics.prototype, 'text');
    const url = findUrl(await start({ metrics: { listen: '127.0.0.1:0' } }), isOwn);
    const client = await RawClient.open(url);
    client.pause();
    client.send(requestText('GET', '/metrics').repeat(REQUESTS));
    const closed = new Promise((resolve) => client.socket.once('close', resolve));
    expect((await send(url, '/metrics')).status).toBe(200);
    // A paused socket sees only then that the gateway has closed it.
    client.socket.resume();
    await closed;
    expect(pages.mock.calls.length).toBeLessThan(150);
  });

  test.each(PLACES)('is disconnected after limits.stall_timeout: %s', async (_, isOwn) => {
    vi.spyOn(Metrics.prototype, 'text').mockResolvedValue('x'.repeat(16 * 1024 * 1024));
    const url = findUrl(await start({ metrics: { listen: '127.0.0.1:0' }, limits: { stall_timeout: '300ms' } }), isOwn);
    const client = await RawClient.open(url);
    client.pause();
    client.send(requestText('GET', '/metrics'));
    // Nothing of it is read before the gateway has closed it: it is cut off.
    await quietFor(1500);
    client.socket.resume();
    await client.closed();
    expect(client.received.length).toBeLessThan(16 * 1024 * 1024);
  });
});

describe('values', () => {
  const USAGE = {
    prompt_tokens: 1000,
    completion_tokens: 200,
    total_tokens: 1200,
    prompt_tokens_details: { cached_tokens: 400 },
    completion_tokens_details: { reasoning_tokens: 50 },
  };

  test('tokens by kind, and a cost that equals the ledger', async () => {
    const upstream = createServer((_, response) => {
      response.setHeader('content-type', 'application/json');
      const message = { role: 'assistant', content: 'hello' };
      response.end(
        JSON.stringify({
          id: 'x',
          object: 'chat.completion',
          created: 1,
          model: 'm',
          choices: [{ index: 0, message, finish_reason: 'stop' }],
          usage: USAGE,
        }),
      );
    });
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => upstream.close());
    const base_url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
    const gateway = await start({
      providers: { mine: { protocol: 'openai-chat', base_url } },
      prices: { 'mine/*': { input: 1, cached_input: 0.1, output: 3 } },
      models: { fast: 'mine/m' },
    });
    for (let i = 0; i < 3; i++) expect((await converse(gateway.url, 'fast')).status).toBe(200);
    const { text } = await send(gateway.url, '/metrics');
    const labels = 'provider="mine",model="m",client_protocol="openai-chat",upstream_protocol="openai-chat"';
    for (const [type, tokens] of Object.entries({ input: 3000, output: 600, cached: 1200, reasoning: 150 }))
      expect(text).toContain(`sluice_tokens_total{${labels},type="${type}"} ${tokens}\n`);
    expect(text).not.toContain('type="cache_write"');
    const [sum] = await gateway.store.usage({ by: 'provider' });
    expect(sum?.cost_micros).toBe(3 * (600 + 40 + 600));
    expect(text).toContain(`sluice_cost_usd_total{provider="mine",model="m"} ${(sum?.cost_micros ?? 0) / 1e6}\n`);
    expect(text).toMatch(/^sluice_ledger_up 1$/m);
    expect(text).toMatch(/^sluice_ledger_queued_rows 0$/m);
    expect(text).toMatch(/^sluice_ledger_written_rows_total 12$/m);
    expect(text).toMatch(/^sluice_ledger_failed_batches_total 0$/m);
    expect(text).toMatch(/^process_resident_memory_bytes [1-9]\d{6,}$/m);
    expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds \d/m);
  });

  test('the ledger is down while it cannot write', async () => {
    const metrics = new Metrics(undefined, () => ({
      queued_rows: 7,
      written_rows: 5,
      failed_batches: 2,
      last_error: 'disk full',
    }));
    for (let scrape = 0; scrape < 2; scrape++) {
      const text = await metrics.text();
      expect(text).toMatch(/^sluice_ledger_up 0$/m);
      expect(text).toMatch(/^sluice_ledger_queued_rows 7$/m);
      expect(text).toMatch(/^sluice_ledger_written_rows_total 5$/m);
      expect(text).toMatch(/^sluice_ledger_failed_batches_total 2$/m);
    }
  });

  test('models that clients invent share one series of the cost', async () => {
    const metrics = new Metrics();
    for (let i = 0; i < 1000; i++)
      metrics.of({ provider: 'p', model: `m${i}`, client_protocol: 'c', upstream_protocol: 'u' }).spent(1);
    const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith('sluice_cost_usd_total{'));
    expect(lines).toEqual(['sluice_cost_usd_total{provider="p",model="other"} 0.001']);
  });
});
