import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectAnswered } from './check.ts';
import { errorOf, framesOf, wholeOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, LAST_CHUNK, type Reply, streamHead, whole } from './http.ts';
import { KEY, modelOf, PAIRS, type Pair, providersAt, waysOf } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { ask, askText, type Started, startGateway } from './start.ts';

// Response headers of upstreams: the allow-listed ones reach the client, without secrets.

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  gateway = await startGateway({
    // A stream must not open before the upstream has answered, however busy the machine is.
    config: { providers: providersAt(faultd), limits: { retries_per_provider: 0, hold: '60s' } },
  });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

/** Every kind of header that SDKs read. An upstream has one request id; converted errors carry it under the client's name for it, too. */
const PASSED = {
  'request-id': 'req_011CSHoEeqs5C35K2UUqR7Fy',
  'x-request-id': 'req_011CSHoEeqs5C35K2UUqR7Fy',
  'openai-processing-ms': '213',
  'x-should-retry': 'false',
  'x-ratelimit-limit-requests': '10000',
  'x-ratelimit-remaining-tokens': '149984',
  'x-ratelimit-reset-requests': '8.64s',
  'x-ratelimit-limit-tokens-minute': '60000',
  'x-ratelimit-remaining-tokens_usage_based': '12',
  'anthropic-ratelimit-requests-reset': '2026-01-01T00:00:00Z',
  'anthropic-ratelimit-unified-5h-utilization': '0.42',
};

const DROPPED = {
  server: 'nginx/1.2.3',
  via: 'proxy-7',
  'set-cookie': 'a=b',
  'openai-organization': 'org-1',
  'x-ratelimit': 'bare',
  'x-internal': 'x',
};

const askPair = (pair: Pair, stream: boolean): Promise<Reply> =>
  ask(gateway.url, { client: pair.client, model: modelOf(pair), stream });

const answer = ({ upstream }: Pair, stream: boolean, headers: Record<string, string>): Script =>
  stream
    ? [{ send: streamHead(headers) }, { send: chunk(framesOf(upstream).join('')) }, { send: LAST_CHUNK }]
    : [{ send: whole(200, wholeOf(upstream), headers) }];

describe('allow-listed headers', () => {
  test.each(waysOf(PAIRS))('reach the client, and no others: $name', async ({ pair, stream }) => {
    faultd.play(answer(pair, stream, { ...PASSED, ...DROPPED }));
    const reply = await askPair(pair, stream);
    expectAnswered(pair, stream, reply);
    expect(reply.headers).toMatchObject(PASSED);
    expect(Object.keys(reply.headers).filter((name) => name in DROPPED)).toEqual([]);
  });

  test.each(waysOf(PAIRS))('reach the client with an error: $name', async ({ pair, stream }) => {
    const { body } = errorOf(pair.upstream, { code: 'RATE_LIMIT', message: 'slow down', http_status: 429 });
    faultd.play([{ send: whole(429, body, { ...PASSED, ...DROPPED, 'retry-after': '7' }) }]);
    const reply = await askPair(pair, stream);
    expect(reply.status).toBe(429);
    expect(reply.headers).toMatchObject({ ...PASSED, 'retry-after': '7' });
    expect(Object.keys(reply.headers).filter((name) => name in DROPPED)).toEqual([]);
  });

  test.each(PAIRS.filter(({ client }) => client !== 'gemini'))(
    'are missing in a stream that opened before the upstream responded: $name',
    async (pair) => {
      let answerNow: () => void = () => undefined;
      const isOpen = new Promise<void>((resolve) => (answerNow = resolve));
      faultd.play([{ run: () => isOpen }, ...answer(pair, true, PASSED)]);
      const hasty = await startGateway({
        config: { providers: providersAt(faultd), limits: { hold: '50ms', heartbeat: '50ms' } },
      });
      const client = await RawClient.open(hasty.url);
      client.send(askText({ client: pair.client, model: modelOf(pair), stream: true }));
      await client.sees('ping');
      answerNow();
      const reply = await client.reply();
      client.leave();
      expectAnswered(pair, true, reply);
      expect(reply.headers).not.toHaveProperty('x-request-id');
      expect(reply.headers).toHaveProperty('x-sluice-request-id');
      await hasty.close();
    },
  );

  test('reach the client of a passed-through endpoint', async () => {
    for (const status of [200, 429]) {
      faultd.play([{ send: whole(status, '{"error":{"message":"m"}}', { ...PASSED, ...DROPPED }) }]);
      const client = await RawClient.open(gateway.url);
      const reply = await client.send(requestText('GET', '/v1/files')).reply();
      client.leave();
      expect(reply.status).toBe(status);
      expect(reply.headers).toMatchObject(PASSED);
      expect(Object.keys(reply.headers).filter((name) => name in DROPPED)).toEqual([]);
    }
  });
});

describe('a provider key in a response header', () => {
  const FORMS = {
    raw: KEY,
    'after other words': `id of Bearer ${KEY}, done`,
    base64: Buffer.from(KEY).toString('base64'),
    'base64 of a URL': Buffer.from(`https://u:${KEY}@h`).toString('base64'),
    'URL-encoded': encodeURIComponent(`${KEY}&`),
    hex: Buffer.from(KEY).toString('hex'),
    'half hidden': 'sk-canary-****cdef',
  };
  const LEAKED = /sk-canary|c2stY2FuYXJ5|736b2d63616e617279|cdef|stY2FuYXJ5/i;

  /** All headers but the gateway's own id, which is random and may contain any letters. */
  const shownIn = ({ headers: { 'x-sluice-request-id': _, ...others } }: Reply): string => JSON.stringify(others);

  const SCRIPTS: Readonly<Record<string, (pair: Pair, stream: boolean, headers: Record<string, string>) => Script>> = {
    'an answer': answer,
    'an error': ({ upstream }, _, headers) => {
      const { body } = errorOf(upstream, { code: 'INVALID_INPUT', message: 'no', http_status: 400 });
      return [{ send: whole(400, body, headers) }];
    },
    'an error page': (_pair, _stream, headers) => [{ send: whole(503, '<html></html>', headers) }],
  };

  describe.each(Object.entries(FORMS))('%s', (_, form) => {
    test.each(Object.entries(SCRIPTS))('is redacted in %s', async (_name, script) => {
      const headers = Object.fromEntries(Object.keys(PASSED).map((name) => [name, form]));
      for (const { pair, stream } of waysOf(PAIRS)) {
        faultd.play(script(pair, stream, headers));
        const reply = await askPair(pair, stream);
        expect(reply.headers['x-request-id'], pair.name).toContain('***');
        expect(shownIn(reply)).not.toMatch(LEAKED);
      }
    });

    test.each([200, 404])('is redacted in the response of a passed-through endpoint with status %i', async (status) => {
      const headers = { 'x-request-id': form, 'content-disposition': `attachment; filename="${form}"` };
      faultd.play([{ send: whole(status, '{"error":{"message":"m"}}', headers) }]);
      const client = await RawClient.open(gateway.url);
      const reply = await client.send(requestText('GET', '/v1/files/f/content')).reply();
      client.leave();
      expect(reply.status).toBe(status);
      expect(reply.headers['x-request-id']).toContain('***');
      expect(shownIn(reply)).not.toMatch(LEAKED);
    });
  });

  test('does not reach the client as the name of a header', async () => {
    for (const { pair, stream } of waysOf(PAIRS)) {
      faultd.play(answer(pair, stream, { [`x-ratelimit-${KEY}`]: '1', [`anthropic-ratelimit-${KEY}`]: '1' }));
      expect(shownIn(await askPair(pair, stream))).not.toMatch(LEAKED);
    }
  });
});

test.each(waysOf(PAIRS))(
  'a request id that is not a valid header value does not break the response: $name',
  async ({ pair, stream }) => {
    const body = JSON.stringify({ type: 'error', error: { type: 'api_error', message: 'no' }, request_id: 'a\r\nb: ü' });
    faultd.play([{ send: whole(400, body) }]);
    const reply = await askPair(pair, stream);
    expect(reply.status).toBe(400);
    expect(reply.headers).not.toHaveProperty('b');
  },
);
