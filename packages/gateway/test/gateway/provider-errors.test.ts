import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { brokenOffAt, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter, errorFrames, errorOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, head, type Reply, streamHead, whole } from './http.ts';
import { KEY, modelOf, PAIRS, type Pair, providersAt, waysOf } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { streamOf } from './scripts.ts';
import { ask, type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// What clients are told when an upstream fails: which provider it was, and nothing about the operator's network.

const clock = new TestClock();
let faultd: Faultd;
let gateway: Started;
/** The same with short timeouts. */
let hasty: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  const providers = {
    ...providersAt(faultd),
    nowhere: { protocol: 'openai-chat', api_key: KEY, base_url: 'http://127.0.0.1:1/v1' },
    inner: { protocol: 'openai-chat', api_key: KEY, base_url: 'http://gpu-box.example/v1' },
  };
  const config = { providers, models: { fast: 'mend-openai-chat/m', slow: 'mend-openai-chat/n' } };
  const limits = { retries_per_provider: 0 };
  gateway = await startGateway({ clock, config: { ...config, limits: { ...limits, answer_bytes: '2kB' } } });
  const times = { response_timeout: '150ms', first_event_timeout: '160ms', idle_timeout: '170ms' };
  hasty = await startGateway({ clock, config: { ...config, limits: { ...limits, ...times } } });
});

afterAll(async () => {
  await gateway.close();
  await hasty.close();
  await faultd.stop();
});

const WAYS = waysOf(PAIRS);
const askPair = (pair: Pair, stream: boolean): Promise<Reply> =>
  clock.until(ask(gateway.url, { client: pair.client, model: modelOf(pair), stream }));

/** The test lets the time pass. */
const askHasty = (pair: Pair, stream: boolean): Promise<Reply> =>
  ask(hasty.url, { client: pair.client, model: modelOf(pair), stream });

const idOf = (pair: Pair): string => modelOf(pair).split('/', 1)[0] ?? '';

async function get(path: string): Promise<Reply> {
  const client = await RawClient.open(gateway.url);
  try {
    return await client.send(requestText('GET', path)).reply();
  } finally {
    client.leave();
  }
}

describe('a rejected provider key', () => {
  const REJECTED = 'Incorrect API key provided: sk-****wxyz. Get your key at https://platform.example/keys';
  const rejected = (upstream: ProtocolId, http_status: number, code: 'AUTHENTICATION' | 'PERMISSION' = 'AUTHENTICATION') =>
    errorOf(upstream, { code, message: REJECTED, http_status }).body;

  test.each(WAYS)('is reported with the name of the provider: $name', async ({ pair, stream }) => {
    faultd.play([{ send: whole(401, rejected(pair.upstream, 401)) }]);
    const reply = await askPair(pair, stream);
    expectRefused(pair.client, reply, 401, /^provider "[\w-]+" rejected its API key \(401\)$/);
    expect(reply.body.toString()).toContain(idOf(pair));
    expect(reply.body.toString()).not.toMatch(/Incorrect|platform/);
    expect(reply.headers['x-sluice-provider']).toBe(idOf(pair));
    // The operator reads the upstream's own words.
    const failed = gateway.log().find((line) => line['request_id'] === reply.headers['x-sluice-request-id']);
    expect(failed).toMatchObject({ msg: 'attempt failed', upstream_message: expect.stringContaining('Incorrect API key') });
  });

  test('keeps the error fields that SDKs read', async () => {
    const body = { error: { message: 'no', type: 'invalid_request_error', code: 'invalid_api_key', param: null } };
    faultd.play([{ send: whole(401, JSON.stringify(body)) }]);
    const reply = await askPair(PAIRS[0] as Pair, true);
    expect(JSON.parse(reply.body.toString())).toEqual({
      error: { ...body.error, message: 'provider "pass-openai-chat" rejected its API key (401)' },
    });
  });

  test.each(waysOf(PAIRS.filter(({ upstream }) => upstream === 'gemini')))(
    'is detected in Gemini errors with status 400: $name',
    async ({ pair, stream }) => {
      const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }];
      const body = { error: { code: 400, message: 'API key not valid.', status: 'INVALID_ARGUMENT', details } };
      faultd.play([{ send: whole(400, JSON.stringify(body)) }]);
      expectRefused(pair.client, await askPair(pair, stream), 400, /^provider "[\w-]+" rejected its API key \(400\)$/);
    },
  );

  test.each(PAIRS)('is detected in the first event of a stream: $name', async (pair) => {
    faultd.play(streamOf(errorFrames(pair.upstream, { code: 'AUTHENTICATION', message: REJECTED, http_status: 401 })));
    const reply = await askPair(pair, true);
    expectRefused(pair.client, reply, reply.status, /^provider "[\w-]+" rejected its API key/);
  });

  test.each(WAYS)('403 names the provider and keeps its message: $name', async ({ pair, stream }) => {
    const message = 'Your project has no access to model m';
    const { body } = errorOf(pair.upstream, { code: 'PERMISSION', message, http_status: 403 });
    faultd.play([{ send: whole(403, body) }]);
    expectRefused(pair.client, await askPair(pair, stream), 403, /^provider "[\w-]+" denied access \(403\): Your project/);
  });

  test('names the provider on passed-through endpoints', async () => {
    faultd.play([{ send: whole(401, rejected('openai-chat', 401)) }]);
    const reply = await get('/v1/files');
    expectRefused('openai-chat', reply, 401, /^provider "pass-openai-chat" rejected its API key \(401\)$/);
  });
});

describe('errors about the request', () => {
  test.each([400, 404, 413, 422, 429])('%i keeps the message of the upstream', async (status) => {
    const message = 'messages.3.content: expected at most 210000 items';
    for (const { pair, stream } of WAYS) {
      const { body } = errorOf(pair.upstream, { code: 'INVALID_INPUT', message, http_status: status });
      faultd.play([{ send: whole(status, body) }]);
      const reply = await askPair(pair, stream);
      expectRefused(pair.client, reply, status, new RegExp(`^${message}$`));
      if (pair.isPassing) expect(reply.body.toString()).toBe(body);
    }
  });
});

describe('failures detected by the gateway', () => {
  const begun = ({ upstream }: Pair): Script => [
    { send: streamHead() },
    { send: chunk(cutAfter(upstream, 'two').before.join('')) },
  ];

  test.each([
    ['no response', () => [{ hang: true }], 504, /^provider "[\w-]+" timed out: it did not respond within (150|480) ms$/],
    [
      'a redirect',
      () => [{ send: head(302, { location: 'http://x', 'content-length': '0' }) }],
      502,
      /^provider "[\w-]+" .*redirect \(302\)/,
    ],
    ['no HTTP', () => [{ send: 'hello\r\n\r\n' }, { fin: true }], 502, /^provider "[\w-]+" sent an invalid HTTP response/],
    ['an empty body', () => [{ send: whole(200, '') }], 502, /^provider "[\w-]+" (sent|responded with) /],
    [
      'a page',
      () => [{ send: whole(200, '<html></html>', { 'content-type': 'text/html' }) }],
      502,
      /^provider "[\w-]+" .*text\/html/,
    ],
    [
      'an unknown encoding',
      () => [{ send: whole(200, 'x', { 'content-encoding': 'zz' }) }],
      502,
      /^provider "[\w-]+" used content-encoding "zz"/,
    ],
    [
      'a broken encoding',
      () => [{ send: whole(200, 'not gzip at all', { 'content-encoding': 'gzip' }) }],
      502,
      /^provider "[\w-]+" sent a compressed response/,
    ],
  ] as const)('name the provider: %s', async (_, script, status, message) => {
    for (const { pair, stream } of WAYS) {
      faultd.play(script() as Script);
      const asked = askHasty(pair, stream);
      const reply = status === 504 ? await clock.after(stream ? 150 : 480, asked) : await asked;
      expectRefused(pair.client, reply, status, message);
    }
  });

  test.each(PAIRS)('name the provider and the limit of a response that is too large: $name', async (pair) => {
    faultd.play([{ send: whole(200, `{"a":"${'x'.repeat(3000)}"}`) }]);
    expectRefused(pair.client, await askPair(pair, false), 502, /^provider "[\w-]+" sent a response of more than 2000 bytes$/);
  });

  test.each(PAIRS)('name the provider in a started stream: $name', async (pair) => {
    faultd.play([...begun(pair), { hang: true }]);
    expectBrokenOff(
      pair.client,
      await clock.after(brokenOffAt(pair.client, 170), askHasty(pair, true)),
      'One two',
      /^provider "[\w-]+" timed out: it sent nothing for 170 ms$/,
    );
    faultd.play([...begun(pair), { reset: true }]);
    expectBrokenOff(pair.client, await askPair(pair, true), 'One two', /^the connection to provider "[\w-]+" failed/);
  });

  /** What qwen-code, Continue, opencode and pi retry a failed stream by: a code or a type, and words in the message. */
  const RETRIED_BY: Record<ProtocolId, { lost: string; late: string }> = {
    'openai-chat': { lost: '"code":"ECONNRESET"', late: '"code":"ETIMEDOUT"' },
    'openai-responses': { lost: '"code":"ECONNRESET"', late: '"code":"ETIMEDOUT"' },
    'anthropic-messages': { lost: '"type":"overloaded_error"', late: '"type":"overloaded_error"' },
    gemini: { lost: '"code":502', late: '"code":504' },
  };

  test.each(PAIRS)('a truncated stream fails with an error that clients retry: $name', async (pair) => {
    const { lost, late } = RETRIED_BY[pair.client];
    for (const cut of [{ reset: true }, { fin: true }] as const) {
      faultd.play([...begun(pair), cut]);
      const reply = await askPair(pair, true);
      expectBrokenOff(pair.client, reply, 'One two', 'socket hang up');
      expect(reply.body.toString()).toContain(lost);
    }
    faultd.play([...begun(pair), { hang: true }]);
    const reply = await clock.after(brokenOffAt(pair.client, 170), askHasty(pair, true));
    expect(reply.body.toString()).toContain(late);
  });

  test('name the provider on passed-through endpoints', async () => {
    faultd.play([{ send: head(302, { location: 'http://x', 'content-length': '0' }) }]);
    expectRefused('openai-chat', await get('/v1/files'), 502, /^provider "pass-openai-chat" .*redirect/);
  });

  test('name the provider that cannot be reached', async () => {
    for (const stream of [true, false]) {
      const reply = await ask(gateway.url, { client: 'openai-chat', model: 'nowhere/m', stream });
      expectRefused(
        'openai-chat',
        reply,
        502,
        /^the connection to provider "nowhere" failed \(ECONNREFUSED\): nothing listens at its base_url; /,
      );
    }
  });
});

describe('error bodies that are not JSON', () => {
  const PAGE =
    '<html>\n<head><title>502</title></head>\n<body><h1>Bad Gateway</h1><p>http://10.0.3.7:8000 on gpu-7.internal</p></body></html>';

  test.each([
    ['an HTML page', 502, PAGE, /^provider "[\w-]+" returned 502 with an HTML page$/],
    ['a part of a page', 500, '<p>oops 10.0.3.7</p>', /^provider "[\w-]+" returned 500 with an HTML page$/],
    ['XML', 500, '<?xml version="1.0"?><Error>10.0.3.7</Error>', /^provider "[\w-]+" returned 500 with an XML document$/],
    ['a stack trace', 500, 'Traceback:\n  at 10.0.3.7', /^provider "[\w-]+" returned 500 with several lines of text$/],
    ['nothing', 500, '', /^provider "[\w-]+" returned 500 without an error message$/],
    ['one line of text', 500, 'model is loading, retry in 20 s\n', /^model is loading, retry in 20 s$/],
  ])('%s', async (_, status, body, message) => {
    for (const { pair, stream } of WAYS) {
      faultd.play([{ send: whole(status, body, { 'content-type': 'text/html' }) }]);
      const reply = await askPair(pair, stream);
      expectRefused(pair.client, reply, status, message);
      expect(reply.body.toString()).not.toMatch(/10\.0\.3\.7|Bad Gateway|oops|Traceback|gpu-7/);
    }
    faultd.play([{ send: whole(status, body) }]);
    expectRefused('openai-chat', await get('/v1/files'), status, message);
  });
});

describe('private addresses in error messages', () => {
  const PRIVATE = [
    'http://10.0.3.7:8000/v1',
    '10.255.0.1',
    '172.16.0.9:443',
    '172.31.255.255',
    '192.168.1.20:11434',
    '100.64.0.1',
    '169.254.169.254',
    '127.0.0.1:9000',
    '[::1]:8080',
    '[fd12:3456:789a::1]:8000',
    'fe80::1ff:fe23:4567:890a',
    'http://vllm:8000/health',
    'localhost:11434',
    'gpu-7.internal',
    'vllm.default.svc.cluster.local:8000',
    'ip-10-0-3-7.ec2.internal',
    'ip-10-0-3-7',
    'NAS.local',
    'db.corp',
    'gpu-box.example',
  ];
  const PUBLIC = [
    'https://api.openai.com/v1',
    '8.8.8.8',
    '172.32.0.1',
    '11.0.0.1',
    '2606:4700::1111',
    'version 1.10.0.3.7',
    'settings.local.json',
    'a localhost name',
  ];

  const saying = (upstream: ProtocolId, message: string): string =>
    errorOf(upstream, { code: 'UPSTREAM_ERROR', message, http_status: 500 }).body;

  test.each(PRIVATE)('%s is redacted', async (address) => {
    const message = `cannot reach ${address}, giving up (via ${address}).`;
    const secret = address.replace(/^https?:\/\/|\/.*$/g, '');
    for (const { pair, stream } of WAYS) {
      faultd.play([{ send: whole(500, saying(pair.upstream, message)) }]);
      const reply = await askPair(pair, stream);
      expectRefused(pair.client, reply, 500, /^cannot reach .*\*\*\*.*, giving up \(via .*\*\*\*.*\)\.$/);
      expect(reply.body.toString()).not.toContain(secret);
    }
    for (const pair of PAIRS) {
      const { before } = cutAfter(pair.upstream, 'two');
      const error = errorFrames(pair.upstream, { code: 'UPSTREAM_ERROR', message, http_status: 500 });
      faultd.play(streamOf(before.join(''), error));
      const reply = await askPair(pair, true);
      expectBrokenOff(pair.client, reply, 'One two', /^cannot reach .*\*\*\*/);
      expect(reply.body.toString()).not.toContain(secret);
    }
    faultd.play([{ send: whole(500, saying('openai-chat', message)) }]);
    expect((await get('/v1/files')).body.toString()).not.toContain(secret);
  });

  test.each(PUBLIC)('%s is kept', async (text) => {
    const message = `cannot use ${text}, giving up.`;
    faultd.play([{ send: whole(500, saying('openai-chat', message)) }]);
    const reply = await askPair(PAIRS[0] as Pair, false);
    expect(JSON.parse(reply.body.toString()).error.message).toBe(message);
  });

  test('are kept in responses and in messages of the gateway itself', async () => {
    const reply = await ask(gateway.url, { client: 'openai-chat', model: '10.0.3.7', stream: false });
    expectRefused('openai-chat', reply, 404, '"10.0.3.7"');
  });
});

describe('an unknown model', () => {
  test.each(PAIRS.slice(0, 4))('is reported with the known models and the nearest one: $client', async ({ client }) => {
    for (const stream of [true, false]) {
      const reply = await ask(gateway.url, { client, model: 'fasst', stream });
      const message = 'no provider is configured for model "fasst"; known: fast, slow (did you mean "fast"?)';
      expectRefused(client, reply, 404, message);
    }
  });

  test.each([
    ['GET', '/v1/models/fasst', ''],
    ['POST', '/v1/embeddings', '{"model":"fasst","input":"x"}'],
    ['POST', '/v1/messages/count_tokens', '{"model":"fasst","messages":[]}'],
  ])('is reported with the same message on other endpoints: %s %s', async (method, path, body) => {
    const client = await RawClient.open(gateway.url);
    const reply = await client.send(requestText(method, path, {}, body)).reply();
    client.leave();
    expect(reply.status).toBe(404);
    expect(reply.body.toString()).toContain('no provider is configured for model \\"fasst\\"; known: fast, slow');
  });
});
