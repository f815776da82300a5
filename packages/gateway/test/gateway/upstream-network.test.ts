import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { TestAuthority } from './certificates.ts';
import { expectAnswered, expectRefused } from './check.ts';
import { ConnectProxy, startTlsFront } from './connect-proxy.ts';
import { Faultd } from './faultd.ts';
import { KEY, modelOf, PAIRS, type Pair, providersAt, waysOf } from './pairs.ts';
import { good } from './scripts.ts';
import { ask, eventually, type Started, startGateway } from './start.ts';

// Upstreams with certificates of a private authority, and behind the operator's proxy.

const PASSWORD = 'canary-of-the-proxy-0123';
const HOST = 'upstream.test';

let authority: TestAuthority;
let stranger: TestAuthority;
let faultd: Faultd;
let front: Awaited<ReturnType<typeof startTlsFront>>;
let proxy: ConnectProxy;
let secureProxy: ConnectProxy;
const started: Started[] = [];

beforeAll(async () => {
  authority = new TestAuthority();
  stranger = new TestAuthority();
  faultd = await Faultd.start();
  front = await startTlsFront(faultd.port, authority.issue('upstream', HOST, '127.0.0.1'));
  proxy = await ConnectProxy.start();
  secureProxy = await ConnectProxy.start(authority.issue('proxy', '127.0.0.1'));
  for (const each of [proxy, secureProxy]) {
    each.routes.set(`${HOST}:443`, front.port);
    each.routes.set(`${HOST}:80`, faultd.port);
    each.routes.set('other.test:443', front.port);
  }
});

afterAll(async () => {
  for (const gateway of started) await gateway.close();
  await proxy.stop();
  await secureProxy.stop();
  front.stop();
  await faultd.stop();
  authority.remove();
  stranger.remove();
});

beforeEach(() => proxy.play('open'));

interface Upstream {
  /** By default the name that only the proxy knows. */
  base?: string;
  settings?: object;
  env?: Record<string, string>;
  limits?: object;
}

/** A gateway whose providers are all at one address. */
async function start({ base = `https://${HOST}`, settings = {}, env = {}, limits = {} }: Upstream): Promise<Started> {
  const providers = Object.fromEntries(
    Object.entries(providersAt(faultd)).map(([id, row]) => [id, { ...row, base_url: base, ca: authority.ca, ...settings }]),
  );
  const config = { providers, limits: { retries: 0, connect_timeout: '2s', ...limits } };
  const gateway = await startGateway({ env, config });
  started.push(gateway);
  return gateway;
}

const pair = PAIRS[0] as Pair;
const asking = { client: pair.client, model: modelOf(pair), stream: false };
const proxyUrl = (user = ''): string => `http://${user}127.0.0.1:${proxy.port}`;

async function expectServed(gateway: Started): Promise<void> {
  faultd.play(good(pair, false));
  expectAnswered(pair, false, await ask(gateway.url, asking));
  expect(faultd.served[0]?.headers['authorization']).toBe(`Bearer ${KEY}`);
}

async function expectFailed(gateway: Started, status: number, message: string | RegExp): Promise<void> {
  faultd.play(good(pair, false));
  const reply = await ask(gateway.url, asking);
  expectRefused(pair.client, reply, status, message);
  expect(faultd.served).toEqual([]);
  expect(reply.body.toString()).not.toMatch(/127\.0\.0\.1|upstream\.test|other\.test/);
}

describe('through a proxy', () => {
  test.each(waysOf(PAIRS))('responses: $name', async ({ pair: way, stream }) => {
    const gateway = await start({ settings: { proxy: proxyUrl() } });
    faultd.play(good(way, stream));
    expectAnswered(way, stream, await ask(gateway.url, { client: way.client, model: modelOf(way), stream }));
  });

  test('the proxy sees the name of the server, and no key, path or text', async () => {
    const gateway = await start({ settings: { proxy: proxyUrl() } });
    await expectServed(gateway);
    expect(proxy.heads).toEqual([`CONNECT ${HOST}:443 HTTP/1.1\r\nhost: ${HOST}:443\r\nConnection: close\r\n\r\n`]);
    expect(proxy.seen.length).toBeGreaterThan(1000);
    expect(proxy.seen).not.toMatch(/canary|chat\/completions|authorization/i);
    expect(faultd.served[0]?.headers['host']).toBe(HOST);
    expect(JSON.stringify(faultd.served[0])).not.toMatch(/proxy/i);
  });

  test('plain HTTP goes through a tunnel, too', async () => {
    const gateway = await start({ base: `http://${HOST}`, settings: { proxy: proxyUrl(), ca: authority.ca } });
    await expectServed(gateway);
    expect(proxy.heads[0]).toMatch(`CONNECT ${HOST}:80 HTTP/1.1`);
    expect(proxy.heads.join('')).not.toContain(KEY);
  });

  test('one tunnel serves requests one after the other, and is closed when it is idle', async () => {
    const gateway = await start({ settings: { proxy: proxyUrl() }, limits: { upstream_keep_alive: '300ms' } });
    for (let i = 0; i < 3; i++) await expectServed(gateway);
    expect(proxy.heads).toHaveLength(1);
    await eventually(() => faultd.served[0]?.isClosed);
  });

  test('a password is sent to the proxy alone, and is not logged', async () => {
    const gateway = await start({ settings: { proxy: proxyUrl(`operator:${PASSWORD}@`) } });
    await expectServed(gateway);
    const basic = Buffer.from(`operator:${PASSWORD}`).toString('base64');
    expect(proxy.heads[0]).toContain(`proxy-authorization: Basic ${basic}\r\n`);
    expect(JSON.stringify(faultd.served) + gateway.lines.join('')).not.toMatch(new RegExp(`${PASSWORD}|${basic}`));
  });

  test('the proxy of the environment is used for names, not for this machine, and not with proxy: direct', async () => {
    const env = { HTTPS_PROXY: proxyUrl() };
    await expectServed(await start({ env }));
    expect(proxy.heads).toHaveLength(1);
    await expectServed(await start({ env, base: `https://127.0.0.1:${front.port}` }));
    expect(proxy.heads).toHaveLength(1);
    const direct = await start({ env, settings: { proxy: 'direct' } });
    await expectFailed(direct, 502, 'the connection to provider "pass-openai-chat" failed');
    expect(proxy.heads).toHaveLength(1);
  });

  test('a proxy with TLS needs a certificate that is trusted', async () => {
    const gateway = await start({ settings: { proxy: `https://127.0.0.1:${secureProxy.port}` } });
    await expectFailed(gateway, 502, /^the proxy of provider "pass-openai-chat" cannot be reached \(\w*(CERT|SIGNATURE)\w*\)$/);
    expect(secureProxy.heads).toEqual([]);
  });

  test.each([
    ['HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n', 'refused the connection (407)'],
    ['HTTP/1.1 403 Forbidden\r\ncontent-length: 3\r\n\r\nno!', 'refused the connection (403)'],
    ['HTTP/1.1 502 Bad Gateway\r\n\r\n127.0.0.1 is down', 'refused the connection (502)'],
    ['HTTP/1.1 302 Found\r\nlocation: http://evil.example\r\n\r\n', 'refused the connection (302)'],
    ['SSH-2.0-OpenSSH\r\n\r\n', 'cannot be reached (HPE_INVALID_CONSTANT)'],
    ['', 'cannot be reached (ECONNRESET)'],
    [`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`, 'cannot be reached (HPE_HEADER_OVERFLOW)'],
  ])('a proxy that responds %j', async (send, message) => {
    const gateway = await start({ settings: { proxy: proxyUrl() } });
    proxy.play({ send });
    await expectFailed(gateway, 502, `the proxy of provider "pass-openai-chat" ${message}`);
  });

  test('a proxy that does not respond, and one that is not there', async () => {
    const own = await ConnectProxy.start();
    own.play('silent');
    const silent = await start({
      settings: { proxy: `http://127.0.0.1:${own.port}` },
      limits: { connect_timeout: '200ms' },
    });
    await expectFailed(silent, 504, 'could not connect to provider "pass-openai-chat" within 200 ms');
    expect(own.heads).toHaveLength(1);
    await eventually(() => own.openSockets === 0);
    await own.stop();
    const absent = await start({ settings: { proxy: 'http://127.0.0.1:9' } });
    await expectFailed(absent, 502, 'the proxy of provider "pass-openai-chat" cannot be reached (ECONNREFUSED)');
  });

  test('a proxy that leads to another server does not get the key there', async () => {
    const gateway = await start({ base: 'https://other.test', settings: { proxy: proxyUrl() } });
    await expectFailed(gateway, 502, 'ERR_TLS_CERT_ALTNAME_INVALID');
  });
});

describe('certificates', () => {
  test('an upstream of a private authority is reached with ca', async () =>
    expectServed(await start({ base: `https://127.0.0.1:${front.port}` })));

  test('without it, and with another authority, nothing is sent', async () => {
    const base = `https://127.0.0.1:${front.port}`;
    const known = await startGateway({
      config: {
        providers: { 'pass-openai-chat': { protocol: 'openai-chat', base_url: base, api_key: KEY } },
        limits: { retries: 0 },
      },
    });
    started.push(known);
    await expectFailed(known, 502, 'the connection to provider "pass-openai-chat" failed');
    await expectFailed(
      await start({ base, settings: { ca: stranger.ca } }),
      502,
      'the connection to provider "pass-openai-chat" failed',
    );
  });

  test('connections of one authority are not used by a provider with another', async () => {
    const row = { protocol: 'openai-chat', base_url: `https://127.0.0.1:${front.port}`, api_key: KEY, repair: false };
    const providers = { 'pass-openai-chat': { ...row, ca: authority.ca }, distrustful: { ...row, ca: stranger.ca } };
    const gateway = await startGateway({ config: { providers, limits: { retries: 0 } } });
    started.push(gateway);
    await expectServed(gateway);
    faultd.play(good(pair, false));
    expect((await ask(gateway.url, { ...asking, model: 'distrustful/m' })).status).toBe(502);
    expect(faultd.served).toEqual([]);
  });

  test('NODE_EXTRA_CA_CERTS adds an authority for all upstreams', async () => {
    const bin = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
    const file = join(authority.folder, 'sluice.json');
    const row = { protocol: 'openai-chat', base_url: `https://127.0.0.1:${front.port}`, api_key: KEY, repair: false };
    writeFileSync(file, JSON.stringify({ listen: { port: 0 }, providers: { 'pass-openai-chat': row } }), { mode: 0o600 });
    const env = { PATH: process.env['PATH'] ?? '', NODE_EXTRA_CA_CERTS: authority.ca };
    const child = spawn(process.execPath, [bin, 'serve', '--config', file, '--data', 'memory', '--json'], { env });
    let text = '';
    child.stdout.on('data', (piece) => (text += String(piece)));
    try {
      const url = await eventually(() => /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0]);
      faultd.play(good(pair, false));
      expectAnswered(pair, false, await ask(url, asking));
    } finally {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
  });
});
