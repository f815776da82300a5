import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PREFIX } from '../../src/admin/route.ts';
import { ROUTES } from '../../src/admin/routes.ts';
import { listForms } from '../../src/config/secrets.ts';
import { type Running, run } from '../../src/server/run.ts';
import { errorOf } from '../gateway/dialects.ts';
import { Faultd, type Script } from '../gateway/faultd.ts';
import { head, parseReply, type Reply, whole } from '../gateway/http.ts';
import { RawClient, requestText } from '../gateway/raw-client.ts';
import { good } from '../gateway/scripts.ts';
import { askText, eventually } from '../gateway/start.ts';

// A gateway with a data folder, captures and every kind of secret, driven through its failures by upstreams that repeat what they were
// sent. Then everything that left the process and everything on disk is searched, and every error is read as an attacker would.

const SECRETS = {
  provider: 'canary-one-of-the-provider-0123456789',
  header: 'canary+two/of=a&header?0123456789',
  client: 'canary-three-of-the-client-0123456789',
  admin: 'canary-four-of-the-admin-0123456789',
  metrics: 'canary-five-of-the-metrics-0123456789',
  proxy: 'canary-six-of-the-proxy-0123456789',
} as const;

/** Only the operator knows it. */
const HOST = 'canary-host.corp.internal';

const folder = mkdtempSync(join(tmpdir(), 'sluice-leaks-'));
const data = join(folder, 'data');
let faultd: Faultd;
let gateway: Running;
/** Everything that clients read, and everything that was logged. */
const sent: string[] = [];
const lines: string[] = [];
const errors: { what: string; reply: Reply }[] = [];

beforeAll(async () => {
  faultd = await Faultd.start();
  mkdirSync(join(folder, 'secrets'));
  for (const [name, secret] of Object.entries(SECRETS))
    writeFileSync(join(folder, 'secrets', name), `${secret}\n`, { mode: 0o600 });
  const provider = (protocol: ProtocolId, settings: object = {}): object => ({
    protocol,
    base_url: faultd.url,
    api_key: 'file:secrets/provider',
    headers: { 'x-secret': 'file:secrets/header' },
    ...settings,
  });
  const config = {
    listen: { port: 0 },
    providers: {
      chat: provider('openai-chat'),
      claude: provider('anthropic-messages', { repair: true }),
      nowhere: provider('openai-chat', { base_url: `http://${HOST}:8080/v1` }),
      behind: provider('openai-chat', { base_url: `https://${HOST}/v1`, proxy: 'env:PROXY' }),
    },
    auth: { keys: ['file:secrets/client'] },
    admin: { key: 'file:secrets/admin' },
    metrics: { key: 'file:secrets/metrics' },
    capture: { providers: ['*'] },
    responses: { websocket: false },
    limits: {
      retries: 0,
      retries_per_provider: 0,
      request_bytes: '64KiB',
      response_timeout: '200ms',
      first_event_timeout: '200ms',
      idle_timeout: '200ms',
      hold: '50ms',
      request_depth: 20,
    },
    log: { level: 'trace' },
  };
  const file = join(folder, 'sluice.json');
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  const formatLog = (line: string): string => {
    lines.push(line);
    return '';
  };
  const env = { PROXY: `http://operator:${SECRETS.proxy}@127.0.0.1:9` };
  gateway = await run({ config: file, folder, env, listen: {}, data, formatLog });
});

afterAll(async () => {
  await gateway.close(0);
  await faultd.stop();
  rmSync(folder, { recursive: true });
});

const CLIENT = { 'x-api-key': SECRETS.client };
const ADMIN = { authorization: `Bearer ${SECRETS.admin}` };

/** Sends a request and keeps all that comes back. */
async function drive(what: string, text: string): Promise<Reply> {
  const client = await RawClient.open(gateway.url);
  client.send(text);
  const { reply } = await eventually(() => {
    const read = parseReply(client.received);
    const isStream = read?.headers['content-type']?.includes('event-stream') && what.startsWith('admin');
    return (read?.isWhole || client.isClosed || isStream) && { reply: read };
  });
  sent.push(client.received.toString('latin1'));
  client.leave();
  if (!reply) throw new Error(`no response: ${what}`);
  if (reply.status >= 400) errors.push({ what, reply });
  return reply;
}

const everything = [
  ...Object.values(SECRETS).flatMap((secret) => [secret, ...listForms(secret)]),
  `http://user:${SECRETS.provider}@${HOST}/?key=${SECRETS.provider}`,
].join(' ');

const echo = { 'x-request-id': everything, 'openai-processing-ms': everything };

const said = (status: number) => ({ code: 'UPSTREAM_ERROR', message: everything, http_status: status }) as const;

/** What upstreams do, by name. */
const UPSTREAMS: Readonly<Record<string, (protocol: ProtocolId) => Script>> = {
  ...Object.fromEntries(
    [400, 401, 403, 404, 409, 413, 422, 429, 500, 502, 503, 529].map((status) => [
      String(status),
      (protocol: ProtocolId): Script => [{ send: whole(status, errorOf(protocol, said(status)).body, echo) }],
    ]),
  ),
  'a page': () => [{ send: whole(502, `<html>${everything}</html>`, { 'content-type': 'text/html' }) }],
  'a redirect': () => [{ send: head(302, { location: `http://${HOST}/${SECRETS.provider}`, 'content-length': '0' }) }],
  'no HTTP': () => [{ send: `${everything}\r\n\r\n` }, { fin: true }],
  'a reset': () => [{ reset: true }],
  silence: () => [{ hang: true }],
};

// The last tests read what all others have made.
describe('every response, log line and file', { shuffle: false }, () => {
  describe('failures of upstreams', () => {
    test.each(Object.entries(UPSTREAMS))('%s', async (name, script) => {
      // Models of their own, because a target that keeps failing is paused.
      const own = name.replaceAll(' ', '-');
      for (const [model, protocol] of [[`chat/${own}`, 'openai-chat'] as const, [`claude/${own}`, 'anthropic-messages'] as const])
        for (const client of ['openai-chat', 'gemini'] as const) {
          faultd.play(script(protocol));
          const reply = await drive(
            `upstream: ${name}`,
            askText({ client, model, stream: client === 'gemini', headers: CLIENT }),
          );
          expect(reply.status).toBeGreaterThanOrEqual(400);
          for (const { headers, body } of faultd.served)
            expect(JSON.stringify({ headers, body })).not.toMatch(/canary-(three|four|five|six)/);
        }
    });

    test('a good response is captured', async () => {
      for (const stream of [true, false]) {
        faultd.play(good({ upstream: 'openai-chat' }, stream));
        const body = { user: everything.slice(0, 4000) };
        const reply = await drive('good', askText({ client: 'openai-chat', model: 'chat/m', stream, headers: CLIENT, body }));
        expect(reply.status).toBe(200);
      }
    });

    test.each(['nowhere', 'behind'])('a provider that cannot be reached: %s', async (id) => {
      const reply = await drive(
        `unreachable: ${id}`,
        askText({ client: 'openai-chat', model: `${id}/m`, stream: false, headers: CLIENT }),
      );
      expect(reply.status).toBe(502);
    });
  });

  const post = (path: string, body: string, headers: Record<string, string> = {}): string =>
    requestText('POST', path, { ...CLIENT, ...headers }, body);
  const deep = `${'['.repeat(30)}${']'.repeat(30)}`;
  const messages = [{ role: 'user', content: 'hi' }];

  /** Requests that the gateway itself rejects, by the status they get. */
  const REJECTED: readonly (readonly [number, string, string])[] = [
    [400, 'no JSON', post('/v1/chat/completions', `{"model": "${SECRETS.client}`)],
    [400, 'a wrong type', post('/v1/messages', '{"model": 1}')],
    [400, 'too deep', post('/v1/chat/completions', `{"model":"chat/m","messages":${deep}}`)],
    [400, 'two hosts', `GET / HTTP/1.1\r\nhost: ${HOST}\r\nhost: b\r\n\r\n`.replace('GET /', 'GET /v1/models')],
    [400, 'no HTTP', `GET /v1/models?key=${SECRETS.client} HTTP/9.9\r\n\r\n`],
    [401, 'a wrong key', requestText('GET', '/v1/models', { 'x-api-key': `${SECRETS.client}x` })],
    [401, 'a key in the query', requestText('GET', `/v1/batches?key=${SECRETS.client}`)],
    [401, 'metrics', requestText('GET', '/metrics', { authorization: `Bearer ${SECRETS.admin}` })],
    [403, 'a web page', requestText('GET', '/v1/models', { ...CLIENT, origin: `http://${HOST}` })],
    [404, 'an unknown model', post('/v1/chat/completions', JSON.stringify({ model: `x-${SECRETS.provider}`, messages }))],
    [404, 'an unknown path', requestText('GET', `/v1/nowhere/${SECRETS.provider}`, CLIENT)],
    [405, 'a wrong method', requestText('DELETE', '/v1/chat/completions', CLIENT)],
    [413, 'a large body', post('/v1/chat/completions', 'x'.repeat(70_000))],
    [415, 'an unknown coding', post('/v1/chat/completions', '{}', { 'content-encoding': SECRETS.client })],
    [426, 'a WebSocket', requestText('GET', '/v1/responses', { ...CLIENT, upgrade: 'websocket', connection: 'upgrade' })],
    [431, 'large headers', requestText('GET', '/v1/models', { ...CLIENT, x: SECRETS.client.repeat(1000) })],
  ];

  test.each(REJECTED)('%i: %s', async (status, what, text) => expect((await drive(what, text)).status).toBe(status));

  test('the admin API, with and without its key', async () => {
    const id = encodeURIComponent(`s-${SECRETS.provider}`);
    for (const { method, path, query } of ROUTES) {
      if (path === 'backup') continue;
      const target = PREFIX + path.replace('{id}', id);
      for (const headers of [{}, ADMIN]) {
        await drive(`admin ${path}`, requestText(method, target, headers));
        for (const name of Object.keys(query))
          await drive(
            `admin ${path} ${name}`,
            requestText(method, `${target}?${name}=${encodeURIComponent(everything.slice(0, 500))}`, headers),
          );
      }
    }
    const { exchanges } = JSON.parse(
      String((await drive('admin list', requestText('GET', `${PREFIX}exchanges?limit=100`, ADMIN))).body),
    );
    expect(exchanges.length).toBeGreaterThan(30);
    for (const exchange of exchanges)
      for (const path of [exchange.id, `${exchange.id}/tape`])
        await drive('admin exchange', requestText('GET', `${PREFIX}exchanges/${path}`, ADMIN));
    expect((await drive('metrics', requestText('GET', '/metrics', { authorization: `Bearer ${SECRETS.metrics}` }))).status).toBe(
      200,
    );
  });

  const listFiles = (path: string): string[] =>
    readdirSync(path, { recursive: true, encoding: 'utf8' })
      .map((name) => join(path, name))
      .filter((file) => statSync(file).isFile());

  /** Raw, and unpacked where it is compressed. */
  function readAll(file: string): string {
    const bytes = readFileSync(file);
    const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b;
    return bytes.toString('latin1') + (isPacked ? gunzipSync(bytes).toString('latin1') : '');
  }

  function expectNone(text: string, where: string): void {
    for (const [name, secret] of Object.entries(SECRETS))
      for (const form of listForms(secret)) {
        const at = text.indexOf(form);
        expect(at, `${name} in ${where}: …${at < 0 ? '' : text.slice(Math.max(0, at - 100), at + 40)}`).toBe(-1);
      }
  }

  test('no secret is in any response or log line', () => {
    expect(sent.join('').length).toBeGreaterThan(100_000);
    expect(lines.length).toBeGreaterThan(100);
    expectNone(sent.join('\n'), 'a response');
    expectNone(lines.join('\n'), 'the log');
  });

  test('no secret is in the data folder or in a backup', async () => {
    const backup = await drive(
      'backup',
      requestText('POST', `${PREFIX}backup`, { ...ADMIN, 'content-type': 'application/json' }),
    );
    expect(backup.status).toBe(200);
    expect(backup.body.toString('latin1', 0, 15)).toBe('SQLite format 3');
    expectNone(backup.body.toString('latin1'), 'the backup');
    const files = listFiles(data);
    expect(files.some((file) => file.endsWith('.db'))).toBe(true);
    // The captured exchanges.
    expect(files.length).toBeGreaterThan(3);
    for (const file of files) {
      expectNone(readAll(file), file);
      expect(statSync(file).mode & 0o077, file).toBe(0);
    }
  });

  test('no error shows a stack, a file, a host, an address or a query', () => {
    const statuses = new Set(errors.map(({ reply }) => reply.status));
    expect([...statuses].toSorted((a, b) => a - b)).toEqual(
      expect.arrayContaining([400, 401, 403, 404, 405, 409, 413, 415, 422, 426, 429, 431, 500, 502, 503, 504]),
    );
    for (const { what, reply } of errors) {
      const text = `${JSON.stringify(reply.headers)} ${reply.body}`;
      expect(text, what).not.toMatch(/\.[cm]?[tj]s:\d+|node:internal|\bat \S+ \(|Error:|undici|zod|sqlite/i);
      expect(text, what).not.toMatch(/canary-host|corp\.internal|127\.0\.0\.1|localhost/);
      expect(text, what).not.toContain(folder);
      expect(text, what).not.toContain(`:${faultd.port}`);
      expect(text, what).not.toMatch(/[?&]key=(?!\*)/);
      expect(reply.headers, what).not.toHaveProperty('server');
      expect(reply.headers, what).not.toHaveProperty('x-powered-by');
    }
  });
});
