import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectAnswered, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter, errorFrames, errorOf, framesOf, readError, wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, head, type Reply, streamHead, whole } from './http.ts';
import { modelOf, modelsWithSpare, PAIRS, type Pair, providersAt, sparedModelOf, waysOf } from './pairs.ts';
import { good, streamOf } from './scripts.ts';
import { ask, type Started, startGateway } from './start.ts';

// RELIABILITY 5.1: answers that are errors, or no answers at all.

let first: Faultd;
let second: Faultd;
let gateway: Started;

beforeAll(async () => {
  first = await Faultd.start();
  second = await Faultd.start();
  const limits = {
    retries_per_provider: 0,
    event_bytes: '64KiB',
    stream_bytes: '1MiB',
    answer_bytes: '1MiB',
    error_bytes: '64KiB',
  };
  gateway = await startGateway({ config: { providers: providersAt(first, second), models: modelsWithSpare(), limits } });
});

afterAll(async () => {
  await gateway.close();
  await first.stop();
  await second.stop();
});

const askPair = (pair: Pair, stream: boolean, model = modelOf(pair)): Promise<Reply> =>
  ask(gateway.url, { client: pair.client, model, stream });

const askWithSpare = (pair: Pair, stream: boolean): Promise<Reply> => {
  second.play(good(pair, stream));
  return askPair(pair, stream, sparedModelOf(pair));
};

const WAYS = waysOf(PAIRS);

describe('statuses', () => {
  test.each([
    [500, 'UPSTREAM_ERROR'],
    [502, 'UPSTREAM_ERROR'],
    [503, 'OVERLOADED'],
    [504, 'TIMEOUT'],
    [529, 'OVERLOADED'],
  ] as const)('%i: another answers; alone, its words and status stay', async (status, code) => {
    for (const { pair, stream } of WAYS) {
      const { body } = errorOf(pair.upstream, { code, message: 'words of the upstream', http_status: status });
      first.play([{ send: whole(status, body) }]);
      expectAnswered(pair, stream, await askWithSpare(pair, stream));
      const reply = await askPair(pair, stream);
      // Overload is 529 to clients of Anthropic, and 503 to all others.
      const overload = pair.client === 'anthropic-messages' ? 529 : 503;
      expectRefused(pair.client, reply, code === 'OVERLOADED' && !pair.isPassing ? overload : status, 'words of the upstream');
    }
  });

  test.each([
    [400, 'INVALID_INPUT'],
    [401, 'AUTHENTICATION'],
    [403, 'PERMISSION'],
    [404, 'NOT_FOUND'],
    [422, 'INVALID_INPUT'],
  ] as const)('%i is never tried again at the same upstream, and keeps its words', async (status, code) => {
    for (const { pair, stream } of WAYS) {
      const { body } = errorOf(pair.upstream, { code, message: 'words of the upstream', http_status: status });
      first.play([{ send: whole(status, body) }]);
      const reply = await askPair(pair, stream);
      expectRefused(pair.client, reply, status, 'words of the upstream');
      expect(first.served).toHaveLength(1);
      if (pair.isPassing) expect(reply.body.toString()).toBe(body);
    }
  });

  test('a wrong request is nobody else’s business', async () => {
    for (const { pair, stream } of WAYS) {
      first.play([{ send: whole(400, errorOf(pair.upstream, { code: 'INVALID_INPUT', message: 'bad' }).body) }]);
      expectRefused(pair.client, await askWithSpare(pair, stream), 400, 'bad');
      expect(second.served).toHaveLength(0);
    }
  });
});

describe('errors under status 200', () => {
  const OVERLOADED = { code: 'OVERLOADED', message: 'too busy today', http_status: 503 } as const;

  test.each(WAYS)('a body that is an error: $name', async ({ pair, stream }) => {
    first.play([{ send: whole(200, errorOf(pair.upstream, OVERLOADED).body) }]);
    expectAnswered(pair, stream, await askWithSpare(pair, stream));
    const reply = await askPair(pair, stream);
    expect(reply.status).toBeGreaterThanOrEqual(500);
    expectRefused(pair.client, reply, reply.status, 'too busy today');
  });

  test.each(PAIRS)('a stream that begins with an error: $name', async (pair) => {
    first.play(streamOf(errorFrames(pair.upstream, OVERLOADED)));
    expectAnswered(pair, true, await askWithSpare(pair, true));
    const reply = await askPair(pair, true);
    expect(reply.status).toBeGreaterThanOrEqual(500);
    expectRefused(pair.client, reply, reply.status, 'too busy today');
  });

  test.each(PAIRS)('a stream that goes on with one: $name', async (pair) => {
    first.play(streamOf(cutAfter(pair.upstream, 'two').before.join(''), errorFrames(pair.upstream, OVERLOADED)));
    const reply = await askWithSpare(pair, true);
    expectBrokenOff(pair.client, reply, 'One two', 'too busy today');
    expect(second.served).toHaveLength(0);
    expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({
      ending: 'upstream_error',
      error: 'OVERLOADED',
    });
  });
});

describe('content types', () => {
  test.each(['text/plain', 'application/json', 'application/octet-stream', ''])('a stream under %j is a stream', async (type) => {
    for (const pair of PAIRS) {
      const headers = {
        'content-length': String(framesOf(pair.upstream).join('').length),
        ...(type && { 'content-type': type }),
      };
      first.play([{ send: head(200, headers) + framesOf(pair.upstream).join('') }]);
      expectAnswered(pair, true, await askPair(pair, true));
      expectAnswered(pair, false, await askPair(pair, false));
    }
  });

  test.each(['text/event-stream', 'text/html'])('a whole answer under %s is told as a stream to who wants one', async (type) => {
    for (const pair of PAIRS) {
      first.play([{ send: whole(200, wholeOf(pair.upstream), { 'content-type': type }) }]);
      expectAnswered(pair, true, await askPair(pair, true));
      expectAnswered(pair, false, await askPair(pair, false));
    }
  });

  test.each(WAYS)('HTML is no answer: $name', async ({ pair, stream }) => {
    const page = '<!doctype html>\n\n<html><body>secret page of sk-canary-0123456789abcdef</body></html>';
    first.play([{ send: whole(200, page, { 'content-type': 'text/html; charset=utf-8' }) }]);
    expectAnswered(pair, stream, await askWithSpare(pair, stream));
    const reply = await askPair(pair, stream);
    expectRefused(pair.client, reply, 502, 'text/html');
    expect(reply.body.toString()).not.toMatch(/secret page|doctype/);
    const strange = gateway.log().findLast((line) => line['msg'] === 'strange answer');
    expect(strange).toMatchObject({ request_id: reply.headers['x-sluice-request-id'], head: expect.stringContaining('html') });
    expect(JSON.stringify(strange)).not.toContain('canary');
  });

  test.each(WAYS)('nothing is no answer: $name', async ({ pair, stream }) => {
    first.play([{ send: whole(200, '') }]);
    expectRefused(pair.client, await askPair(pair, stream), 502);
  });

  test.each(WAYS)('an error page of a proxy is not shown as JSON: $name', async ({ pair, stream }) => {
    first.play([{ send: whole(502, '<html><body><h1>Bad Gateway</h1></body></html>', { 'content-type': 'text/html' }) }]);
    expectRefused(pair.client, await askPair(pair, stream), 502);
  });
});

describe('redirects', () => {
  test.each([301, 302, 303, 307, 308])('%i is not followed', async (status) => {
    for (const { pair, stream } of WAYS) {
      first.play([{ send: head(status, { location: `${second.url}/elsewhere`, 'content-length': '0' }) }]);
      second.play(good(pair, stream));
      const reply = await askPair(pair, stream);
      expectRefused(pair.client, reply, 502, 'redirect');
      expect(reply.body.toString()).not.toContain('elsewhere');
      expect(second.served).toHaveLength(0);
      if (pair.client !== 'gemini') expect(reply.headers['x-should-retry']).toBe('false');
    }
  });
});

describe('sizes', () => {
  test.each(PAIRS)('a line without end: $name', async (pair) => {
    first.play([
      { send: streamHead() },
      { send: chunk(cutAfter(pair.upstream, 'two').before.join('')) },
      { forever: chunk(`data: ${'x'.repeat(8000)}`) },
    ]);
    expectBrokenOff(pair.client, await askPair(pair, true), 'One two', 'longer than allowed');
    first.play([{ send: streamHead() }, { forever: chunk('x'.repeat(8000)) }]);
    expectRefused(pair.client, await askPair(pair, true), 502);
  });

  test.each(PAIRS)('an event without end: $name', async (pair) => {
    first.play([
      { send: streamHead() },
      { send: chunk(cutAfter(pair.upstream, 'two').before.join('')) },
      { forever: chunk('data: "x"\n'.repeat(1000)) },
    ]);
    expectBrokenOff(pair.client, await askPair(pair, true), 'One two', 'longer than allowed');
  });

  test.each(PAIRS)('a stream without end: $name', async (pair) => {
    const { before } = cutAfter(pair.upstream, 'two');
    first.play([
      { send: streamHead() },
      { send: chunk(before.join('')) },
      { forever: chunk(': nothing to say\n\n'.repeat(4000)) },
    ]);
    const reply = await askPair(pair, true);
    expectBrokenOff(pair.client, reply, 'One two', 'too large');
    expect(reply.body.length).toBeLessThan(2 * 1024 * 1024);
  });

  test.each(PAIRS)('a whole answer without end: $name', async (pair) => {
    first.play([{ send: head(200, { 'content-type': 'application/json' }) }, { forever: ' '.repeat(80_000) }]);
    expectRefused(pair.client, await askPair(pair, false), 502, 'too large');
    await first.served[0]?.closed;
  });

  test.each(WAYS)('an error without end: $name', async ({ pair, stream }) => {
    first.play([{ send: head(500, { 'content-type': 'text/plain' }) }, { forever: 'oh no '.repeat(1000) }]);
    expect((await askPair(pair, stream)).status).toBeGreaterThanOrEqual(500);
    await first.served[0]?.closed;
  });
});

test.each(PAIRS.slice(3, 6))('a stream that comes byte by byte: $name', async (pair) => {
  const body = framesOf(pair.upstream).join('');
  first.play([
    { send: head(200, { 'content-type': 'text/event-stream', 'content-length': String(body.length) }) },
    { split: body },
  ]);
  expectAnswered(pair, true, await askPair(pair, true));
});

describe('uploads', () => {
  test.each([413, 400])('an upstream that answers %i before it has read the request', async (status) => {
    for (const { pair, stream } of WAYS) {
      const { body } = errorOf(pair.upstream, { code: 'PAYLOAD_TOO_LARGE', message: 'far too much', http_status: status });
      first.play([{ send: whole(status, body, { connection: 'close' }) }, { wait: 30 }, { reset: true }]);
      first.readsBodies = false;
      const reply = await ask(gateway.url, {
        client: pair.client,
        model: modelOf(pair),
        stream,
        body: { padding: 'x'.repeat(2 * 1024 * 1024) },
      });
      expectRefused(pair.client, reply, status, 'far too much');
    }
  });

  test('an interim answer is no answer', async () => {
    for (const { pair, stream } of WAYS) {
      first.play([{ send: head(102) }, { send: head(103, { link: '</x>' }) }, ...good(pair, stream)]);
      expectAnswered(pair, stream, await askPair(pair, stream));
    }
  });
});

test('what an upstream says beside its answer stays here, but for what SDKs read', async () => {
  for (const { pair, stream } of WAYS) {
    const headers = {
      'set-cookie': 'a=b',
      server: 'secret',
      via: 'internal',
      'openai-organization': 'org',
      'x-ratelimit-limit-requests': '7',
    };
    first.play([{ send: whole(200, wholeOf(pair.upstream), headers) }]);
    const reply = await askPair(pair, stream);
    expect(JSON.stringify(reply.headers)).not.toMatch(/a=b|secret|internal|"org"/);
    if (!stream) expect(reply.headers['x-ratelimit-limit-requests']).toBe('7');
  }
});

test('readers of errors agree', () => {
  const { status, body } = errorOf('gemini', { code: 'RATE_LIMIT', message: 'slow' });
  expect(readError('gemini', status, {}, Buffer.from(body))).toMatchObject({ code: 'RATE_LIMIT', message: 'slow' });
});
