import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isForeignName } from '../../src/server/origin.ts';
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
  ])('%s: %s is let in, and the key stays here', async (name, value) => {
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
  ])('%j is not', async (headers) => {
    faultd.play(good(pair, false));
    const reply = await ask(locked.url, { ...asking, headers });
    expectRefused(pair.client, reply, 401);
    expect(faultd.served).toHaveLength(0);
  });

  test('in the query: only where Google’s clients have it, and never in the log', async () => {
    expect(await get(locked.url, `/v1beta/models?key=${CLIENT_KEY}`)).toBe(200);
    expect(await get(locked.url, `/v1/batches?key=${CLIENT_KEY}`)).toBe(401);
    expect(locked.lines.join('')).not.toContain(CLIENT_KEY);
  });

  test.each(['/', '/health/live', '/health/ready'])('%s needs none', async (path) =>
    expect(await get(locked.url, path)).toBe(200),
  );

  test.each(['/metrics', '/v1/models', '/nowhere', '//metrics', '/health/live/../../metrics', '/v1/files', '/%6detrics'])(
    '%s does, whether it exists or not',
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
    [{ host: 'gateway' }, 200],
    [{ host: 'host.docker.internal:4141' }, 200],
    [{ 'sec-fetch-site': 'none' }, 200],
  ])('%j: %i', async (headers, status) => {
    expect(await get(open.url, '/v1/models', headers)).toBe(status);
    expect(await get(open.url, '/metrics', headers)).toBe(status);
  });

  test('with a key, any name will do: no page has it', async () =>
    expect(await get(locked.url, '/v1/models', { host: 'llm.example', 'x-api-key': CLIENT_KEY })).toBe(200));

  test.each([
    ['[::1]:4141', false],
    ['[fe80::1]', false],
    ['localhost.', false],
    ['a b', true],
    ['', true],
    [undefined, false],
  ])('the name %j is foreign: %s', (host, isForeign) => expect(isForeignName(host)).toBe(isForeign));
});

describe('who is asked is the operator’s choice', () => {
  test.each([
    { 'x-forwarded-host': 'evil.example', 'x-portkey-custom-host': 'http://evil.example', 'x-base-url': 'http://evil.example' },
    { 'proxy-authorization': 'Basic secret', cookie: 'secret', 'x-forwarded-for': 'secret', te: 'trailers' },
  ])('%j changes nothing and goes nowhere', async (headers) => {
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
    'a model that is called %s leads nowhere else',
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
