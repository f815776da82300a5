import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import pico from 'picocolors';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildWelcome, formatWelcome } from '../../src/cli/serve.ts';
import { Console, isConsolePath } from '../../src/server/console.ts';
import { send, startAdmin, type TestGateway } from './start.ts';

const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const SECRET = 'outside of the console';

/** A server with a console of three files, in a folder whose neighbours nobody may read. */
let server: Server;
let url: string;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-console-'));
  const files = join(folder, 'console');
  mkdirSync(join(files, 'inside'), { recursive: true });
  writeFileSync(join(folder, 'secret.js'), SECRET);
  writeFileSync(join(files, 'inside', 'deep.js'), SECRET);
  writeFileSync(join(files, 'key.pem'), SECRET);
  writeFileSync(join(files, 'index.html'), '<!doctype html><title>Sluice</title>');
  writeFileSync(join(files, 'index-abc.js'), 'export {};');
  writeFileSync(join(files, 'index-abc.css'), 'body {}');
  writeFileSync(join(files, 'icon-abc.svg'), '<svg/>');
  const pages = new Console(files);
  server = createServer((request, response) => {
    if (isConsolePath(request.url ?? '') && pages.handle({ id: 'r1', request, response })) return;
    response.writeHead(200, { 'content-type': 'text/plain' }).end('sluice\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

test.each([
  { path: '/', type: 'text/html; charset=utf-8', cache: 'no-cache' },
  { path: '/?x=1', type: 'text/html; charset=utf-8', cache: 'no-cache' },
  { path: '/console/index-abc.js', type: 'text/javascript; charset=utf-8', cache: 'public, max-age=31536000, immutable' },
  { path: '/console/index-abc.css', type: 'text/css; charset=utf-8', cache: 'public, max-age=31536000, immutable' },
  { path: '/console/icon-abc.svg', type: 'image/svg+xml', cache: 'public, max-age=31536000, immutable' },
])('GET and HEAD of $path', async ({ path, type, cache }) => {
  const got = await send(url, path, { headers: HTML });
  expect([got.status, got.headers['content-type'], got.headers['cache-control']]).toEqual([200, type, cache]);
  const head = await send(url, path, { method: 'HEAD', headers: HTML });
  expect([head.status, head.text, head.headers['content-length']]).toEqual([200, '', String(got.bytes.length)]);
  const again = await send(url, path, { headers: { ...HTML, 'if-none-match': `W/${got.headers['etag']}` } });
  expect([again.status, again.text]).toEqual([304, '']);
  const zipped = await send(url, path, { headers: { ...HTML, 'accept-encoding': 'br, gzip;q=0.5' } });
  expect(zipped.headers['content-encoding']).toBe('gzip');
  expect(zipped.headers['etag']).not.toBe(got.headers['etag']);
  expect(gunzipSync(zipped.bytes).toString()).toBe(got.text);
});

test.each(['/', '/console/index-abc.js', '/console/none.js', '/console/'])('%s has all security headers', async (path) => {
  const { headers } = await send(url, path, { headers: HTML });
  const policy = String(headers['content-security-policy']);
  for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"])
    expect(policy.split('; ')).toContain(rule);
  expect(policy).toContain("require-trusted-types-for 'script'");
  expect(policy).not.toContain('unsafe');
  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'x-frame-options': 'DENY',
  });
});

test.each([undefined, '*/*', 'application/json', 'text/html;q=0', 'text/html; q=0.0, */*', 'text/htmlx', 'x-text/html'])(
  'GET / with accept %s is the word for programs',
  async (accept) => {
    const { text } = await send(url, '/', { headers: accept === undefined ? {} : { accept } });
    expect(text).toBe('sluice\n');
  },
);

describe('paths that are no files of the console', () => {
  const UP = [
    '../',
    '..%2f',
    '%2e%2e/',
    '%2e%2e%2f',
    '..%5c',
    '..\\',
    '....//',
    '..;/',
    '%252e%252e%252f',
    '%c0%ae%c0%ae/',
    './',
    '//',
  ];
  const NAMES = ['secret.js', 'package.json', 'etc/passwd', 'key.pem', 'inside/deep.js'];
  const others = ['key.pem', 'inside/deep.js', 'inside', 'INDEX-ABC.JS', 'index-abc.js/', 'index-abc.js%00', 'index-abc.js.map'];

  test.each([
    ...UP.flatMap((up) => NAMES.flatMap((name) => [`/console/${up}${name}`, `/console/inside/${up}${up}${name}`])),
    ...[...others, 'constructor', '__proto__', 'index.html', '.', '..'].map((name) => `/console/${name}`),
  ])('%s', async (path) => {
    const { status, text } = await send(url, path, { headers: HTML });
    expect([status, text]).toEqual([404, '']);
  });

  test.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('%s gets 405', async (method) => {
    const { status, headers } = await send(url, '/console/index-abc.js', { method });
    expect([status, headers['allow']]).toEqual([405, 'GET, HEAD']);
  });

  test.each(['/console', '/console/'])('%s leads to the page', async (path) => {
    const { status, headers } = await send(url, path, { headers: HTML });
    expect([status, headers['location']]).toEqual([302, '/']);
  });
});

test('without a build, the page is the word for programs', async () => {
  const pages = new Console(join(folder, 'none'));
  const other = createServer((request, response) => {
    if (!pages.handle({ id: 'r1', request, response })) response.end('sluice\n');
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { text } = await send(`http://127.0.0.1:${(other.address() as AddressInfo).port}`, '/', { headers: HTML });
  await new Promise((resolve) => other.close(resolve));
  expect(text).toBe('sluice\n');
});

describe('a gateway', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startAdmin();
  });

  afterAll(() => gateway.stop());

  test.each(['GET', 'HEAD'])('%s / for programs is what it was', async (method) => {
    const { status, headers } = await send(gateway.url, '/', { method });
    expect([status, headers['content-type'], headers['content-length']]).toEqual([200, 'text/plain; charset=utf-8', '7']);
  });

  test.each([
    [{}, false],
    [{ npm_lifecycle_event: 'start' }, true],
  ])('the welcome of a gateway with %j explains how the command is installed: %s', (env, isExplained) => {
    expect(formatWelcome(gateway, pico.createColors(false), { env }).includes('npm run install-sluice')).toBe(isExplained);
  });

  test('the welcome has a link whose token opens one session, and no log has it', async () => {
    const text = formatWelcome(gateway, pico.createColors(false));
    const [, url, token = ''] = /Console: (\S+)\/#token=([\w-]{43}) /.exec(text) ?? [];
    expect(url).toBe(gateway.url);
    const login = () => gateway.call('session', { method: 'POST', body: { token } });
    const first = await login();
    expect([first.status, (await login()).status]).toEqual([200, 401]);
    const cookie = String(first.headers['set-cookie']).split(';', 1)[0] ?? '';
    const headers = { cookie, 'sec-fetch-site': 'same-origin' };
    const { json } = await gateway.call('session', { headers });
    expect(json).toEqual({ ...json, csrf_token: first.json.csrf_token, may_login: true, accepts: ['token'], reason: null });
    expect(JSON.parse(JSON.stringify(buildWelcome(gateway))).console).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#token=/);
    for (const secret of [token, cookie.split('=')[1] ?? '', first.json.csrf_token])
      expect(gateway.lines.join()).not.toContain(secret);
  });

  test('what clients paste has the address of the request', async () => {
    const { json } = await gateway.call('clients', { headers: { host: 'localhost:9' } });
    expect(json.model).toBe('demo/hello');
    expect(json.clients.find(({ id }: { id: string }) => id === 'claude').setup).toContain(
      'export ANTHROPIC_BASE_URL=http://localhost:9\n',
    );
    expect(json.clients.find(({ id }: { id: string }) => id === 'curl').setup).toMatch(/^curl -N http:\/\/localhost:9\/v1/);
  });

  test.each(['localhost:9/x', "localhost:9'; rm", 'localhost:9?x', 'a@localhost:9'])(
    'the host %j does not get into what clients paste',
    async (host) => {
      const { status, text } = await gateway.call('clients', { headers: { host } });
      if (status === 200) expect(text).not.toContain(host);
      else expect(status).toBe(403);
    },
  );
});
