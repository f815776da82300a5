import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Candidate } from '../../src/exchange/types.ts';
import { Dialer, WrongAddress } from '../../src/upstream/dialer.ts';
import { expectRefused } from './check.ts';
import { questionOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { whole } from './http.ts';
import { KEY, modelOf, PAIRS, providersAt, waysOf } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { ask, askText, type Started, startGateway } from './start.ts';

// Nothing that a client sends chooses a host: somebody listens elsewhere, and must never hear of it.

let faultd: Faultd;
let elsewhere: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  elsewhere = await Faultd.start();
  // Every path is passed on: what stops a request here is not that its endpoint is unknown.
  const rows = Object.entries(providersAt(faultd)).map(([id, row]) => [id, { ...row, passthrough: 'all' }]);
  gateway = await startGateway({ config: { providers: Object.fromEntries(rows), limits: { retries_per_provider: 0 } } });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
  await elsewhere.stop();
});

beforeEach(() => faultd.play([{ send: whole(200, '{}') }]));

afterEach(() => {
  expect(elsewhere.connections).toBe(0);
  for (const { headers, path, method } of faultd.served) {
    expect(headers['host']).toBe(`127.0.0.1:${faultd.port}`);
    expect(path).toMatch(/^\/v1(beta)?\/[\x21-\x7e]*$/);
    expect(method).toMatch(/^[A-Z]+$/);
    // No segment leads up, in whatever way it is written.
    expect(decodeURIComponent(path.replace(/\?.*/, '')).split(/[/\\]/)).not.toContain('..');
  }
});

/** `EVIL` stands for where somebody else listens. */
const evil = (text: string): string => text.replaceAll('EVIL', `127.0.0.1:${elsewhere.port}`);

const TARGETS = [
  'http://EVIL/v1/chat/completions',
  'http://EVIL/v1/files',
  'https://user:pass@EVIL/v1/messages',
  'HTTP://EVIL//v1beta/files',
  '//EVIL/v1/files',
  '///EVIL/v1/files',
  '/\\EVIL/v1/files',
  '/v1/\\\\EVIL/files',
  '/@EVIL/v1/files',
  '/v1@EVIL/files',
  '/v1/files/@EVIL',
  '/v1/files/../../../EVIL',
  '/v1/files/..%2f..%2f..%2f@EVIL',
  '/v1/files/%2e%2e/%2e%2e/%2e%2e/@EVIL/',
  '/v1/files/%2e%2e%5c%2e%2e%5cEVIL',
  '/v1/files/..;/..;/EVIL',
  '/v1/files/%0d%0aHost:%20EVIL%0d%0a',
  '/v1/files/%00EVIL',
  '/v1/files?url=http://EVIL&base_url=http://EVIL&key=x',
  '/v1/files#@EVIL',
  '/v1/files;@EVIL',
  '/v1/audio/speech/../../@EVIL',
  '/v1beta/http://EVIL/x',
  '/v1beta/files/http:%2f%2fEVIL',
];

describe('request targets', () => {
  test.each(TARGETS)('%s', async (target) => {
    for (const method of ['GET', 'POST']) {
      const client = await RawClient.open(gateway.url);
      const body = method === 'POST' ? JSON.stringify(questionOf('openai-chat', 'pass-openai-chat/m', false).body) : '';
      const { status, isWhole } = await client.send(requestText(method, evil(target), {}, body)).reply();
      expect({ isWhole, isKnown: [200, 400, 404, 405, 502].includes(status) }).toEqual({ isWhole: true, isKnown: true });
      client.leave();
    }
  });

  test.each([
    ['CONNECT EVIL HTTP/1.1\r\nhost: EVIL\r\n\r\n'],
    ['GET @EVIL/v1/files HTTP/1.1\r\nhost: EVIL\r\n\r\n'],
    ['GET EVIL HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'],
    ['GET /v1/files HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade, host\r\nupgrade: h2c\r\n\r\n'],
    ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['OPTIONS * HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'],
    ['GET /v1/files HTTP/1.1\nhost: 127.0.0.1\nhost: EVIL\n\n'],
    ['GET /v1/files?a=b HTTP/1.1\r\nhost: 127.0.0.1\r\nx: y\rhost: EVIL\r\n\r\n'],
  ])('%j', async (text) => {
    const client = await RawClient.open(gateway.url);
    client.send(evil(text)).halfClose();
    await client.closed();
    client.leave();
  });
});

describe('models', () => {
  const MODELS = [
    'http://EVIL/v1',
    '@EVIL',
    '../../../@EVIL',
    '..\\..\\EVIL',
    '%2e%2e/%2e%2e/@EVIL',
    'x\r\nhost: EVIL\r\n\r\nGET / HTTP/1.1',
    'x?y=@EVIL',
    'x#@EVIL',
    'x:generateContent?@EVIL',
    ':@EVIL/',
    '/EVIL',
    '//EVIL',
  ];

  test.each(MODELS)('%j', async (name) => {
    for (const { pair, stream } of waysOf(PAIRS)) {
      const model = `${modelOf(pair).replace(/m$/, '')}${evil(name)}`;
      const text = askText({
        client: pair.client,
        // Gemini names the model in the path.
        model: pair.client === 'gemini' ? encodeURIComponent(model) : model,
        stream,
        body: { api_base: evil('http://EVIL'), base_url: evil('http://EVIL'), provider: { base_url: evil('http://EVIL') } },
        headers: { 'x-forwarded-host': evil('EVIL'), forwarded: evil('host=EVIL'), 'x-original-url': evil('http://EVIL/') },
      });
      const client = await RawClient.open(gateway.url);
      expect((await client.send(text).reply()).isWhole).toBe(true);
      client.leave();
    }
  });
});

describe('a request that would leave the base URL of its provider', () => {
  const dialer = new Dialer({ upstreamKeepAliveMs: 100, compressionRatio: 100 });
  afterAll(() => dialer.close());

  test.each([
    ['http://EVIL/v1', 'another port'],
    ['https://127.0.0.1:PORT/v1', 'another scheme'],
    ['http://localhost:PORT/v1', 'another name'],
    ['http://127.0.0.1:PORT@EVIL/v1', 'a user in front of another'],
    ['http://[::1]:PORT/v1', 'another address'],
  ])('%s (%s) is not sent', async (url) => {
    const failure = await new Promise<Error>((resolve, reject) =>
      dialer.dial(
        {
          url: evil(url.replace('PORT', String(faultd.port))),
          origin: faultd.url,
          method: 'GET',
          headers: { authorization: KEY },
          connectMs: 1000,
          repeat: 'never',
        },
        { start: reject, data: reject, end: () => reject(new Error('answered')), fail: resolve },
      ),
    );
    expect(failure).toBeInstanceOf(WrongAddress);
    expect(faultd.served).toHaveLength(0);
  });

  test('is reported to the client, and no connection is left', async () => {
    const moved = <T extends Pick<Candidate, 'provider'>>(endpoint: T): T => ({
      ...endpoint,
      provider: { ...endpoint.provider, base_url: elsewhere.url },
    });
    const wrong = await startGateway({
      config: { providers: providersAt(faultd) },
      services: (made) => ({
        ...made,
        directory: () => {
          const directory = made.directory();
          const providersFor: typeof directory.providersFor = (protocol) => directory.providersFor(protocol).map(moved);
          return { ...directory, providersFor, resolve: (...asked) => directory.resolve(...asked).map(moved) };
        },
      }),
    });
    for (const { pair, stream } of waysOf(PAIRS)) {
      const reply = await ask(wrong.url, { client: pair.client, model: modelOf(pair), stream });
      expectRefused(pair.client, reply, 502, 'would leave the base URL');
    }
    const client = await RawClient.open(wrong.url);
    expectRefused('openai-chat', await client.send(requestText('GET', '/v1/files')).reply(), 502, 'would leave the base URL');
    client.leave();
    await wrong.close();
    expect(wrong.services.streams.count).toBe(0);
  });
});
