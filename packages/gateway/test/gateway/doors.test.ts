import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isLoopbackName } from '../../src/http/origin.ts';
import { expectAnswered, expectRefused } from './check.ts';
import { Faultd } from './faultd.ts';
import { KEY, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { good } from './scripts.ts';
import { ask, type Started, startGateway } from './start.ts';

// Who is let in, and what is sent on behalf of whom.

const CLIENT_KEY = 'client-key-0123456789';

let faultd: Faultd;
let open: Started;
let locked: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  open = await startGateway({ config: { providers: providersAt(faultd) } });
  locked = await startGateway({
    config: { providers: providersAt(faultd), auth: { keys: [CLIENT_KEY, 'another-key-0123456789'] } },
  });
});

afterAll(async () => {
  await open.close();
  await locked.close();
  await faultd.stop();
});

const pair = PAIRS[4] as Pair;
const asking = { client: pair.client, model: 'mend-openai-chat/m', stream: false };

async function get(url: string, path: string, headers: Record<string, string> = {}): Promise<number> {
  const client = await RawClient.open(url);
  const { status } = await client.send(requestText('GET', path, headers)).reply();
  client.leave();
  return status;
}

describe('keys', () => {
  test.each([
    ['authorization', `Bearer ${CLIENT_KEY}`],
    ['authorization', `bearer  ${CLIENT_KEY} `],
    ['x-api-key', CLIENT_KEY],
    ['x-goog-api-key', CLIENT_KEY],
    ['api-key', 'another-key-0123456789'],
  ])('%s: %s is accepted, and the client key is not forwarded', async (name, value) => {
    faultd.play(good(pair, false));
    expectAnswered(pair, false, await ask(locked.url, { ...asking, headers: { [name]: value } }));
    expect(JSON.stringify(faultd.served)).not.toMatch(/client-key|another-key/);
    expect(faultd.served[0]?.headers['authorization']).toBe(`Bearer ${KEY}`);
  });

  test.each([
    {},
    { authorization: 'Bearer wrong' },
    { authorization: CLIENT_KEY },
    { authorization: `Basic ${CLIENT_KEY}` },
    { 'x-api-key': `${CLIENT_KEY}x` },
    { 'x-api-key': CLIENT_KEY.slice(0, -1) },
    { 'x-api-key': '' },
    { authorization: "Bearer ' OR 1=1 --" },
    { authorization: `Bearer ${'x'.repeat(10_000)}` },
  ])('%j is rejected', async (headers) => {
    faultd.play(good(pair, false));
    const reply = await ask(locked.url, { ...asking, headers });
    expectRefused(pair.client, reply, 401);
    expect(faultd.served).toHaveLength(0);
  });

  test('a key in the query is accepted only for Gemini, and never logged', async () => {
    expect(await get(locked.url, `/v1beta/models?key=${CLIENT_KEY}`)).toBe(200);
    expect(await get(locked.url, `/v1/batches?key=${CLIENT_KEY}`)).toBe(401);
    expect(locked.lines.join('')).not.toContain(CLIENT_KEY);
  });

  test.each(['/', '/health/live', '/health/ready'])('%s needs no client key', async (path) =>
    expect(await get(locked.url, path)).toBe(200),
  );

  test.each(['/metrics', '/v1/models', '/nowhere', '//metrics', '/health/live/../../metrics', '/v1/files', '/%6detrics'])(
    '%s needs a client key, whether it exists or not',
    async (path) => expect(await get(locked.url, path)).toBe(401),
  );
});

describe('web pages', () => {
  test.each([
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ host: 'evil.example', 'sec-fetch-site': 'same-origin' }, 403],
    [{ host: 'localhost.evil.example' }, 403],
    [{ host: '127.0.0.1.evil.example:80' }, 403],
    [{ host: 'localhost:4141', origin: 'http://localhost:4141', 'sec-fetch-site': 'same-origin' }, 200],
    [{ host: 'gateway' }, 403],
    [{ host: 'host.docker.internal:4141' }, 403],
    [{ host: 'machine.local' }, 403],
    [{ 'sec-fetch-site': 'none' }, 200],
  ])('%j: %i', async (headers, status) => {
    expect(await get(open.url, '/v1/models', headers)).toBe(status);
    expect(await get(open.url, '/metrics', headers)).toBe(status);
  });

  test('with a client key, any Host is allowed', async () =>
    expect(await get(locked.url, '/v1/models', { host: 'llm.example', 'x-api-key': CLIENT_KEY })).toBe(200));

  test.each(PAIRS.slice(0, 4))(
    'the error names the host and the remedy in the protocol of the client: $client',
    async ({ client }) => {
      const reply = await ask(open.url, { client, model: 'm', stream: false, headers: { host: 'llm.example' } });
      const message = 'Host "llm.example" is not allowed without client keys; set auth.keys or use 127.0.0.1';
      expectRefused(client, reply, 403, message);
    },
  );

  test('a hostile Host is truncated and escaped in the error', async () => {
    const headers = { host: `\u009b31m"<script>${'x'.repeat(5000)}` };
    const reply = await ask(open.url, { client: 'openai-chat', model: 'm', stream: false, headers });
    expectRefused('openai-chat', reply, 403, /^Host "Â\\u009b31m\\"<script>x{1,100}" is not allowed/);
  });

  const LOOPBACK_NAMES = [
    ...[
      'localhost',
      'LocalHost',
      'localhost.',
      'localhost:4141',
      'localhost:',
      'app.localhost',
      'a.b.LOCALHOST.:80',
      'my_app.localhost',
    ],
    ...['127.0.0.1', '127.0.0.1:65535', '127.1.2.3', '127.255.255.255:1'],
    ...['[::1]', '[::1]:4141', '[0:0:0:0:0:0:0:1]', '[::ffff:127.0.0.1]:80', '[::FFFF:7f00:1]'],
  ];
  const FOREIGN_NAMES = [
    ...['evil.example', 'localhost.evil.com', '127.0.0.1.nip.io', 'localhost-evil.com', 'evillocalhost', 'localhost.localdomain'],
    ...[
      'gateway',
      'machine.local',
      'machine.lan',
      'machine.internal',
      'machine.home.arpa',
      'machine.test',
      'host.docker.internal',
    ],
    // Spellings that some parsers take for 127.0.0.1, and a resolver might not.
    ...[
      '2130706433',
      '0x7f000001',
      '0x7f.1',
      '0177.0.0.1',
      '127.1',
      '127.0.0.01',
      '127.0.0.1.',
      '127.0.0.256',
      '127\u30020\u30020\u30021',
    ],
    ...[
      '0.0.0.0',
      '[::]',
      '10.0.0.1',
      '192.168.1.5:4141',
      '[fe80::1]',
      '[::ffff:10.0.0.1]',
      '[::127.0.0.1]',
      '[::1%lo]',
      '[::1',
      '::1',
    ],
    ...[
      'user@localhost',
      'localhost@evil.com',
      'user:pass@127.0.0.1',
      'localhost/evil.com',
      'localhost#',
      'localhost?',
      'localhost\\evil',
    ],
    ...[
      '',
      ' ',
      ' localhost',
      'localhost ',
      'a b',
      'localhost, evil.com',
      'localhost:80:80',
      'localhost:x',
      'localhost:123456',
      'localhost..',
    ],
    ...['local\u017fhost', 'localh\u00f6st', 'xn--localhost', `${'a'.repeat(300)}.localhost`],
  ];

  test.each(LOOPBACK_NAMES)('%j is a name of this machine', (host) => expect(isLoopbackName(host)).toBe(true));

  test.each(FOREIGN_NAMES)('%j is not a name of this machine', (host) => expect(isLoopbackName(host)).toBe(false));

  test('an HTTP/1.0 request without a Host header is allowed', async () => {
    const client = await RawClient.open(open.url);
    const { status } = await client.send('GET /v1/models HTTP/1.0\r\n\r\n').reply();
    expect(status).toBe(200);
    client.leave();
  });
});

describe('only the operator chooses the upstream', () => {
  test.each([
    { 'x-forwarded-host': 'evil.example', 'x-portkey-custom-host': 'http://evil.example', 'x-base-url': 'http://evil.example' },
    { 'proxy-authorization': 'Basic secret', cookie: 'secret', 'x-forwarded-for': 'secret', te: 'trailers' },
  ])('the header %j has no effect and is not forwarded', async (headers) => {
    for (const way of PAIRS) {
      faultd.play(good(way, true));
      const reply = await ask(open.url, {
        client: way.client,
        model: `${way.isPassing ? 'pass' : 'mend'}-${way.upstream}/m`,
        stream: true,
        headers,
      });
      expectAnswered(way, true, reply);
      const [served] = faultd.served;
      expect(Object.keys(served?.headers ?? {}).toSorted()).toEqual(expect.not.arrayContaining(Object.keys(headers)));
      expect(served?.headers['host']).toBe(`127.0.0.1:${faultd.port}`);
    }
  });

  test.each(['http://evil.example/v1', '../../evil', 'evil.example/x', '%2e%2e/x', 'pass-openai-chat/../../x'])(
    'a model named %s does not change the upstream address',
    async (model) => {
      faultd.play(good(pair, false));
      const reply = await ask(open.url, {
        client: 'openai-chat',
        model,
        stream: false,
        body: { api_base: 'http://evil.example', base_url: 'x' },
      });
      expect([200, 400, 404]).toContain(reply.status);
      for (const { path } of faultd.served) expect(path).toBe('/v1/chat/completions');
    },
  );
});
