import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InterfaceType } from '@sluice/core';
import { CODECS, findRoute } from '@sluice/core/engine';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PREFIX } from '../../src/admin/route.ts';
import { ROUTES } from '../../src/admin/routes.ts';
import { METHODS } from '../../src/server/handle.ts';
import { type Running, run } from '../../src/server/run.ts';
import { OWN_PAGES } from '../../src/server/server.ts';
import { Faultd } from '../gateway/faultd.ts';
import { parseReply } from '../gateway/http.ts';
import { providersAt } from '../gateway/pairs.ts';
import { RawClient, requestText } from '../gateway/raw-client.ts';
import { eventually, startGateway } from '../gateway/start.ts';

// Every route of the gateway, everybody who may ask for it, and every way to write its path. The list is made from the router and
// the tables of routes, so a route without a decision fails.

const CLIENT_KEY = 'client-key-of-the-matrix-0123456789';
const ADMIN_KEY = 'admin-key-of-the-matrix-0123456789';
const METRICS_KEY = 'metrics-key-of-the-matrix-0123456789';

/** Who may use a route. */
type Audience = 'everybody' | 'clients' | 'metrics' | 'admins' | 'login';

interface MatrixRoute {
  name: string;
  method: string;
  path: string;
}

/** Interfaces with more than one path. */
const NATIVE_PATHS: Partial<Record<InterfaceType, string>> = { AUDIO: '/v1/audio/speech', IMAGES: '/v1/images/generations' };

function listInterfaces(): MatrixRoute[] {
  return Object.entries(CODECS).flatMap(([protocol, codec]) =>
    (Object.keys(METHODS) as InterfaceType[])
      .filter((type) => codec.supports(type) || type === 'PASSTHROUGH')
      .map((type) => {
        const provider = { id: 'x', protocol: codec.id, base_url: 'http://x' };
        const target = { provider, model: 'm', stream: false };
        const url = new URL(type === 'PASSTHROUGH' ? 'http://x/v1/files' : codec.buildUrl(type, target, 'm', NATIVE_PATHS[type]));
        const path = url.pathname + url.search;
        return { name: `${protocol} ${type}`, method: METHODS[type][0], path };
      }),
  );
}

/** Endpoints of stored responses and conversations, which the gateway serves itself. */
const STATE_ROUTES: readonly MatrixRoute[] = [
  'GET responses/x',
  'DELETE responses/x',
  'POST responses/x/cancel',
  'GET responses/x/input_items',
  'POST responses/compact',
  'POST conversations',
  'GET conversations/x',
  'POST conversations/x',
  'DELETE conversations/x',
  'GET conversations/x/items',
  'POST conversations/x/items',
  'GET conversations/x/items/y',
  'DELETE conversations/x/items/y',
].map((name) => {
  const [method = '', path] = name.split(' ');
  return { name, method, path: `/v1/${path}` };
});

const LISTED: readonly MatrixRoute[] = [
  ...listInterfaces(),
  ...STATE_ROUTES,
  ...[...OWN_PAGES.keys()].map((path) => ({ name: path, method: 'GET', path })),
  ...ROUTES.map(({ method, path }) => ({ name: `${method} ${path}`, method, path: PREFIX + path.replace('{id}', 'x') })),
];

/** The decision about every route. */
const AUDIENCES: Readonly<Record<string, Audience>> = {
  'GET responses/x': 'clients',
  'DELETE responses/x': 'clients',
  'POST responses/x/cancel': 'clients',
  'GET responses/x/input_items': 'clients',
  'POST responses/compact': 'clients',
  'POST conversations': 'clients',
  'GET conversations/x': 'clients',
  'POST conversations/x': 'clients',
  'DELETE conversations/x': 'clients',
  'GET conversations/x/items': 'clients',
  'POST conversations/x/items': 'clients',
  'GET conversations/x/items/y': 'clients',
  'DELETE conversations/x/items/y': 'clients',
  'openai-chat CHAT': 'clients',
  'openai-chat EMBEDDINGS': 'clients',
  'openai-chat RERANK': 'clients',
  'openai-chat AUDIO': 'clients',
  'openai-chat IMAGES': 'clients',
  'openai-chat MODELS': 'clients',
  'openai-chat MODEL_INFO': 'clients',
  'openai-chat PASSTHROUGH': 'clients',
  'anthropic-messages CHAT': 'clients',
  'anthropic-messages COUNT_TOKENS': 'clients',
  'anthropic-messages MODELS': 'clients',
  'anthropic-messages MODEL_INFO': 'clients',
  'anthropic-messages PASSTHROUGH': 'clients',
  'openai-responses CHAT': 'clients',
  'openai-responses COUNT_TOKENS': 'clients',
  'openai-responses MODELS': 'clients',
  'openai-responses MODEL_INFO': 'clients',
  'openai-responses PASSTHROUGH': 'clients',
  'gemini CHAT': 'clients',
  'gemini COUNT_TOKENS': 'clients',
  'gemini EMBEDDINGS': 'clients',
  'gemini MODELS': 'clients',
  'gemini MODEL_INFO': 'clients',
  'gemini PASSTHROUGH': 'clients',
  '/': 'everybody',
  '/health/live': 'everybody',
  '/health/ready': 'everybody',
  '/metrics': 'metrics',
  'GET exchanges': 'admins',
  'GET exchanges/count': 'admins',
  'GET exchanges/live': 'admins',
  'GET exchanges/{id}': 'admins',
  'GET exchanges/{id}/tape': 'admins',
  'GET exchanges/{id}/conversation': 'admins',
  'GET exchanges/{id}/doctor': 'admins',
  'GET exchanges/{id}/case': 'admins',
  'POST exchanges/{id}/replay': 'admins',
  'GET requests': 'admins',
  'POST requests': 'admins',
  'POST requests/convert': 'admins',
  'GET captures': 'admins',
  'GET sessions': 'admins',
  'GET sessions/{id}': 'admins',
  'GET usage': 'admins',
  'GET providers': 'admins',
  'GET models': 'admins',
  'GET clients': 'admins',
  'GET prices': 'admins',
  'GET config': 'admins',
  'GET config/settings': 'admins',
  'GET config/reloads': 'admins',
  'GET config/versions': 'admins',
  'POST config/validate': 'admins',
  'GET store': 'admins',
  'GET whoami': 'admins',
  'GET session': 'login',
  'POST session': 'login',
  'DELETE session': 'admins',
  'POST backup': 'admins',
  'GET openapi.json': 'admins',
  'GET budgets': 'admins',
  'GET keys': 'admins',
  'POST keys': 'admins',
  'GET keys/{id}': 'admins',
  'PATCH keys/{id}': 'admins',
  'DELETE keys/{id}': 'admins',
  'POST keys/{id}/rotate': 'admins',
  'GET audit': 'admins',
};

test('every route has an audience', () =>
  expect(Object.keys(AUDIENCES).toSorted()).toEqual([...new Set(LISTED.map(({ name }) => name))].toSorted()));

test.each(listInterfaces())('the router finds $name at $path', ({ name, path }) => {
  const [protocol = '', type] = name.split(' ');
  // Protocols share some paths, which are told apart by headers.
  expect([type, 'PASSTHROUGH']).toContain(findRoute(path, {}).type);
  expect(Object.keys(CODECS)).toContain(protocol);
});

/** Who asks. `opens`: the audiences that this key belongs to. Keys with limits (scopes, expiry, revocation) get a row here. */
const CALLERS: readonly { name: string; headers: Record<string, string>; opens: readonly Audience[] }[] = [
  { name: 'no key', headers: {}, opens: [] },
  { name: 'an empty key', headers: { authorization: 'Bearer ', 'x-api-key': '' }, opens: [] },
  { name: 'garbage', headers: { authorization: "Bearer ' OR 1=1 --" }, opens: [] },
  { name: 'a wrong scheme', headers: { authorization: `Basic ${CLIENT_KEY}` }, opens: [] },
  { name: 'a prefix of each key', headers: { authorization: `Bearer ${CLIENT_KEY.slice(0, -1)}` }, opens: [] },
  { name: 'more than a key', headers: { 'x-api-key': `${ADMIN_KEY}x` }, opens: [] },
  { name: 'a cookie', headers: { cookie: `sluice_console=${ADMIN_KEY}` }, opens: [] },
  { name: 'headers of a proxy', headers: { 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '127.0.0.1' }, opens: [] },
  // Client keys read the metrics until the next minor version.
  { name: 'a client', headers: { authorization: `Bearer ${CLIENT_KEY}` }, opens: ['clients', 'metrics'] },
  { name: 'a scraper', headers: { authorization: `Bearer ${METRICS_KEY}` }, opens: ['metrics'] },
  { name: 'an admin', headers: { authorization: `Bearer ${ADMIN_KEY}` }, opens: ['admins'] },
];

let faultd: Faultd;
const folder = mkdtempSync(join(tmpdir(), 'sluice-matrix-'));
/** Two, because wrong admin keys close the admin API of the first for a while. */
const gateways: Running[] = [];
let logged = '';

beforeAll(async () => {
  faultd = await Faultd.start();
  faultd.play([{ reset: true }]);
  const config = join(folder, 'sluice.json');
  const keys = { auth: { keys: [CLIENT_KEY] }, admin: { key: ADMIN_KEY }, metrics: { key: METRICS_KEY } };
  const settings = { listen: { port: 0 }, providers: providersAt(faultd), limits: { retries: 0, retries_per_provider: 0 } };
  writeFileSync(config, JSON.stringify({ ...settings, ...keys }), { mode: 0o600 });
  const formatLog = (line: string): string => {
    logged += line;
    return '';
  };
  for (let i = 0; i < 2; i++) gateways.push(await run({ config, folder, env: {}, listen: {}, formatLog }));
});

afterAll(async () => {
  for (const gateway of gateways) await gateway.close(0);
  await faultd.stop();
  rmSync(folder, { recursive: true });
});

interface Answer {
  status: number;
  text: string;
}

/** The response as far as it has come when its first bytes are there: one route is a stream without an end. */
async function send(url: string, method: string, path: string, headers: Record<string, string> = {}): Promise<Answer> {
  const client = await RawClient.open(url);
  client.send(requestText(method, path, headers, method === 'POST' ? '{}' : ''));
  const reply = await eventually(() => {
    const read = parseReply(client.received);
    return (read?.isWhole || client.isClosed || read?.headers['content-type']?.includes('event-stream')) && { read };
  });
  client.leave();
  if (!reply.read) throw new Error(`no response to ${method} ${path}`);
  return { status: reply.read.status, text: reply.read.body.toString() };
}

/** The gateway for callers whose admin key is right, or for all others. */
const choose = (isAdmin: boolean): string => gateways[isAdmin ? 1 : 0]?.url ?? '';

test.each(CALLERS)('$name', async ({ headers, opens }) => {
  for (const { name, method, path } of LISTED) {
    const audience = AUDIENCES[name] ?? 'clients';
    const { status } = await send(choose(opens.includes('admins')), method, path, headers);
    const isOpen = audience === 'everybody' || audience === 'login' || opens.includes(audience);
    // 403 is for stored objects of the provider. The login reads its body and finds no key there.
    if (isOpen) expect([401, 429], name).not.toContain(status);
    // 429: too many wrong admin keys.
    else if (audience === 'admins') expect([401, 429], name).toContain(status);
    else expect(status, name).toBe(401);
  }
});

/** Other ways to write a path. */
const SPELLINGS: Readonly<Record<string, (path: string) => string>> = {
  '//': (path) => `/${path}`,
  'a doubled slash inside': (path) => path.replace(/(?<=.)\//, '//'),
  '/./': (path) => `/.${path}`,
  '/x/../': (path) => `/x/..${path}`,
  '%2e': (path) => `/%2e${path}`,
  '%2e%2e': (path) => `/x/%2e%2e${path}`,
  '%2f': (path) => path.replace(/(?<=.)\//, '%2f'),
  '%5c': (path) => path.replace(/(?<=.)\//, '%5c'),
  'a percent-encoded letter': (path) => path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
  ';a=b': (path) => path.replace(/^(\/[^/?]*)/, '$1;a=b'),
  'upper case': (path) => path.toUpperCase(),
  'a slash at the end': (path) => `${path}/`,
  'a query': (path) => `${path}?key=x&access_token=y`,
  'absolute form': (path) => `http://127.0.0.1${path}`,
  'absolute form of another host': (path) => `http://health.example${path}`,
  'a public page in front': (path) => `/health/live/..${path}`,
  'a public page behind a fragment': (path) => `${path}#/health/live`,
  'a public page in the query': (path) => `${path}?/health/live`,
};

const HOSTS = ['evil.example', '127.0.0.1/health/live', 'x', '127.0.0.1:1@evil.example'];

const CLOSED = LISTED.filter(({ name }) => !['everybody', 'login'].includes(AUDIENCES[name] ?? ''));

test.each(CLOSED)('$name without a key, in any spelling and for any host', async ({ method, path }) => {
  const spelled = Object.entries(SPELLINGS).map(([name, spell]) => ({ name, target: spell(path), headers: {} }));
  const hosted = HOSTS.map((host) => ({ name: host, target: path, headers: { host } }));
  await Promise.all(
    [...spelled, ...hosted].map(async ({ name, target, headers }) => {
      const { status, text } = await send(choose(false), method, target, headers);
      // 400: not a valid request at all.
      expect([400, 401, 429], name).toContain(status);
      expect(text, name).not.toMatch(/sluice_|"data":|"providers":/);
    }),
  );
});

test.each(ROUTES.filter(({ access }) => access !== 'login'))(
  '$method $path is closed to clients in any spelling',
  async ({ method, path }) => {
    const plain = PREFIX + path.replace('{id}', 'x');
    const { text: own } = await send(choose(true), method, plain, { authorization: `Bearer ${ADMIN_KEY}` });
    await Promise.all(
      Object.entries(SPELLINGS).map(async ([name, spell]) => {
        const { status, text } = await send(choose(false), method, spell(plain), { authorization: `Bearer ${CLIENT_KEY}` });
        // Some spellings are paths of clients, such as their list of models.
        if (status === 200) expect(text, name).not.toBe(own);
        else expect([400, 401, 404, 405, 429], name).toContain(status);
      }),
    );
  },
);

test('nothing reaches an upstream without a client key, and no key is logged', async () => {
  faultd.play([{ reset: true }]);
  for (const { method, path } of LISTED) await send(choose(false), method, path, { 'x-api-key': `${CLIENT_KEY}x` });
  expect(faultd.served).toEqual([]);
  for (const key of [CLIENT_KEY, ADMIN_KEY, METRICS_KEY]) expect(logged.includes(key)).toBe(false);
});

test('a check of keys that fails admits no client', async () => {
  const broken = (): never => {
    throw new Error('canary: the check is broken');
  };
  const gateway = await startGateway({
    config: { providers: providersAt(faultd), auth: { keys: [CLIENT_KEY] } },
    services: (services) => {
      const directory = Object.create(services.directory(), {
        gatekeeper: { value: { isOpen: false, admit: broken } },
        metricsGatekeeper: { value: { isOpen: false, admit: broken } },
      });
      return { ...services, directory: () => directory };
    },
  });
  faultd.play([{ reset: true }]);
  for (const { name, method, path } of LISTED.filter((route) => ['clients', 'metrics'].includes(AUDIENCES[route.name] ?? ''))) {
    const client = await RawClient.open(gateway.url);
    client.send(requestText(method, path, { authorization: `Bearer ${CLIENT_KEY}` }, method === 'POST' ? '{}' : ''));
    await client.reply().catch(() => undefined);
    // An error, or a closed connection.
    expect(client.received.toString(), name).toMatch(/^$|^HTTP\/1\.1 (401|500|503) /);
    expect(client.received.toString(), name).not.toContain('canary');
    client.leave();
  }
  expect(faultd.served).toEqual([]);
  await gateway.close();
});
