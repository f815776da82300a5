import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { brokenOffAt, expectAnswered, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter, errorFrames, errorOf, framesOf, readError, wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, head, type Reply, streamHead, whole } from './http.ts';
import { modelOf, modelsWithSpare, PAIRS, type Pair, providersAt, sparedModelOf, waysOf } from './pairs.ts';
import { good, streamOf } from './scripts.ts';
import { ask, type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// docs/reliability.md, Upstreams: responses that are errors, or not responses at all.

const clock = new TestClock();
let first: Faultd;
let second: Faultd;
let gateway: Started;

beforeAll(async () => {
  first = await Faultd.start();
  second = await Faultd.start();
  const limits = { retries_per_provider: 0 };
  gateway = await startGateway({ clock, config: { providers: providersAt(first, second), models: modelsWithSpare(), limits } });
});

afterAll(async () => {
  await gateway.close();
  await first.stop();
  await second.stop();
});

const askPair = (pair: Pair, stream: boolean, model = modelOf(pair)): Promise<Reply> =>
  clock.until(ask(gateway.url, { client: pair.client, model, stream }));

const askWithSpare = (pair: Pair, stream: boolean): Promise<Reply> => {
  second.play(good(pair, stream));
  return askPair(pair, stream, sparedModelOf(pair));
};

const WAYS = waysOf(PAIRS);

test.each(PAIRS)('a whole response without a finish reason is a response: $name', async (pair) => {
  const body = wholeOf(pair.upstream).replace(/,?"(finish_reason|finishReason|stop_reason)":"\w+"/, '');
  first.play([{ send: whole(200, body) }]);
  expectAnswered(pair, false, await askPair(pair, false));
  expect(first.served).toHaveLength(1);
});

describe('a context that is too long', () => {
  const RECOGNISED: Record<ProtocolId, RegExp> = {
    'openai-chat': /"code":"context_length_exceeded"/,
    'openai-responses': /"code":"context_length_exceeded"/,
    'anthropic-messages': /"message":"prompt is too long/,
    gemini: /"message":"The input token count .{0,20}exceeds the maximum number of tokens allowed/,
  };
  const LONG = {
    'openai-chat': "This model's maximum context length is 8192 tokens.",
    'openai-responses': 'Your input exceeds the context window of this model.',
    'anthropic-messages': 'prompt is too long: 210000 tokens > 200000 maximum',
    gemini: 'The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).',
  };

  test.each(WAYS.filter(({ pair }) => !pair.isPassing))(
    'is recognised by the client, and sent to the next target: $name',
    async ({ pair, stream }) => {
      const { body } = errorOf(pair.upstream, { code: 'INVALID_INPUT', message: LONG[pair.upstream], http_status: 400 });
      first.play([{ send: whole(400, body) }]);
      const reply = await askPair(pair, stream);
      expect(reply.status).toBe(400);
      if (pair.client !== pair.upstream) expect(reply.body.toString()).toMatch(RECOGNISED[pair.client]);
      expectAnswered(pair, stream, await askWithSpare(pair, stream));
    },
  );
});

describe('statuses', () => {
  test.each([
    [500, 'UPSTREAM_ERROR'],
    [502, 'UPSTREAM_ERROR'],
    [503, 'OVERLOADED'],
    [504, 'TIMEOUT'],
    [529, 'OVERLOADED'],
  ] as const)('%i: falls back to another upstream; without one, status and message are kept', async (status, code) => {
    for (const { pair, stream } of WAYS) {
      const { body } = errorOf(pair.upstream, { code, message: 'words of the upstream', http_status: status });
      first.play([{ send: whole(status, body) }]);
      expectAnswered(pair, stream, await askWithSpare(pair, stream));
      const reply = await askPair(pair, stream);
      // Overload is 529 to clients of Anthropic, and 503 to all others.
      const overload = pair.client === 'anthropic-messages' ? 529 : 503;
      expectRefused(pair.client, reply, code === 'OVERLOADED' && !pair.isPassing ? overload : status, 'words of the upstream');
      // A proxy that lost the answer of a model does not know whether there was one.
      const failed = gateway.log().findLast(({ msg }) => msg === 'attempt failed');
      expect(failed?.['may_be_billed'] ?? false).toBe(status === 502 || status === 504);
    }
  });

  test.each([
    [400, 'INVALID_INPUT', /^words of the upstream$/],
    [401, 'AUTHENTICATION', /^provider "[\w-]+" rejected its API key \(401\)$/],
    [403, 'PERMISSION', /^provider "[\w-]+" denied access \(403\): words of the upstream$/],
    [404, 'NOT_FOUND', /^words of the upstream$/],
    [422, 'INVALID_INPUT', /^words of the upstream$/],
  ] as const)('%i is not retried at the same upstream, and keeps its status', async (status, code, message) => {
    for (const { pair, stream } of WAYS) {
      const { body } = errorOf(pair.upstream, { code, message: 'words of the upstream', http_status: status });
      first.play([{ send: whole(status, body) }]);
      const reply = await askPair(pair, stream);
      expectRefused(pair.client, reply, status, message);
      expect(first.served).toHaveLength(1);
      if (pair.isPassing && status !== 401 && status !== 403) expect(reply.body.toString()).toBe(body);
    }
  });

  test('an invalid request does not fall back to another upstream', async () => {
    for (const { pair, stream } of WAYS) {
      first.play([{ send: whole(400, errorOf(pair.upstream, { code: 'INVALID_INPUT', message: 'bad' }).body) }]);
      expectRefused(pair.client, await askWithSpare(pair, stream), 400, 'bad');
      expect(second.served).toHaveLength(0);
    }
  });
});

const sse = (event: string, data: object): string => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
const BUSY = { type: 'overloaded_error', message: 'too busy today' };
const FAILED = { id: 'resp_1', object: 'response', model: 'm', output: [], usage: null };

/** How servers tell an error in the place of a first event. */
const ERROR_FRAMES: Record<ProtocolId, readonly string[]> = {
  'openai-chat': [
    `data: ${JSON.stringify({ error: { message: 'too busy today', type: 'server_error', code: 503 } })}\n\ndata: [DONE]\n\n`,
    // OpenRouter.
    `: OPENROUTER PROCESSING\n\ndata: ${JSON.stringify({
      id: 'gen-1',
      object: 'chat.completion.chunk',
      model: 'm',
      choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
      error: { code: 502, message: 'too busy today' },
    })}\n\n`,
  ],
  'anthropic-messages': [
    sse('error', { type: 'error', error: BUSY }),
    sse('message_start', {
      type: 'message_start',
      message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 3 } },
    }) + sse('error', { type: 'error', error: BUSY }),
  ],
  'openai-responses': [
    sse('error', { type: 'error', code: 'server_error', message: 'too busy today', param: null, sequence_number: 0 }),
    sse('response.created', { type: 'response.created', response: { ...FAILED, status: 'in_progress' } }) +
      sse('response.failed', {
        type: 'response.failed',
        response: { ...FAILED, status: 'failed', error: { code: 'server_error', message: 'too busy today' } },
      }),
  ],
  gemini: [
    `data: ${JSON.stringify({ error: { code: 503, message: 'too busy today', status: 'UNAVAILABLE' } })}\r\n\r\n`,
    `${JSON.stringify({ error: { code: 503, message: 'too busy today', status: 'UNAVAILABLE' } }, null, 2)}\n`,
  ],
};

describe('errors under status 200', () => {
  const OVERLOADED = { code: 'OVERLOADED', message: 'too busy today', http_status: 503 } as const;

  test.each(WAYS)('an error as the body is reported as an error: $name', async ({ pair, stream }) => {
    first.play([{ send: whole(200, errorOf(pair.upstream, OVERLOADED).body) }]);
    expectAnswered(pair, stream, await askWithSpare(pair, stream));
    const reply = await askPair(pair, stream);
    expect(reply.status).toBeGreaterThanOrEqual(500);
    expectRefused(pair.client, reply, reply.status, 'too busy today');
  });

  test.each(PAIRS)('an error as the first event gets an error status or a fallback: $name', async (pair) => {
    first.play(streamOf(errorFrames(pair.upstream, OVERLOADED)));
    expectAnswered(pair, true, await askWithSpare(pair, true));
    const reply = await askPair(pair, true);
    expect(reply.status).toBeGreaterThanOrEqual(500);
    expectRefused(pair.client, reply, reply.status, 'too busy today');
  });

  test.each(
    PAIRS.flatMap((pair) =>
      ERROR_FRAMES[pair.upstream].map((frames, i) => ({ ...pair, frames, name: `${pair.name}, ${i + 1}` })),
    ),
  )('recorded error events of real servers are detected: $name', async ({ frames, ...pair }) => {
    first.play(streamOf(frames));
    for (const stream of [true, false]) {
      expectAnswered(pair, stream, await askWithSpare(pair, stream));
      const reply = await askPair(pair, stream);
      expect(reply.status).toBeGreaterThanOrEqual(500);
      expectRefused(pair.client, reply, reply.status, 'too busy today');
    }
  });

  test.each(PAIRS)('an error stream instead of a whole response is an error: $name', async (pair) => {
    const error = errorFrames(pair.upstream, OVERLOADED);
    for (const frames of [error, cutAfter(pair.upstream, 'two').before.join('') + error]) {
      first.play(streamOf(frames));
      expectAnswered(pair, false, await askWithSpare(pair, false));
      const reply = await askPair(pair, false);
      expect(reply.status).toBeGreaterThanOrEqual(500);
      expectRefused(pair.client, reply, reply.status, 'too busy today');
    }
  });

  test.each(PAIRS)('an error ends the stream, whether the upstream closes or not: $name', async (pair) => {
    first.play([
      { send: streamHead() },
      { send: chunk(cutAfter(pair.upstream, 'two').before.join('') + errorFrames(pair.upstream, OVERLOADED)) },
      { hang: true },
    ]);
    const asked = ask(gateway.url, { client: pair.client, model: modelOf(pair), stream: true });
    const isReported = pair.client === pair.upstream;
    const reply = await clock.after(isReported ? 1000 : brokenOffAt(pair.client, 1000), asked);
    expectBrokenOff(pair.client, reply, 'One two', 'too busy today');
    await first.served[0]?.closed;
  });

  test.each(PAIRS)('an error after content is sent in the protocol of the client: $name', async (pair) => {
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
  test.each(['text/plain', 'application/json', 'application/octet-stream', ''])(
    'a stream with content type %j is read as a stream',
    async (type) => {
      for (const pair of PAIRS) {
        const headers = {
          'content-length': String(framesOf(pair.upstream).join('').length),
          ...(type && { 'content-type': type }),
        };
        first.play([{ send: head(200, headers) + framesOf(pair.upstream).join('') }]);
        expectAnswered(pair, true, await askPair(pair, true));
        expectAnswered(pair, false, await askPair(pair, false));
      }
    },
  );

  test.each(['text/event-stream', 'text/html'])(
    'a whole response with content type %s is streamed to a client that requested a stream',
    async (type) => {
      for (const pair of PAIRS) {
        first.play([{ send: whole(200, wholeOf(pair.upstream), { 'content-type': type }) }]);
        expectAnswered(pair, true, await askPair(pair, true));
        expectAnswered(pair, false, await askPair(pair, false));
      }
    },
  );

  test.each(WAYS)('an HTML page is an error: $name', async ({ pair, stream }) => {
    const page = '<!doctype html>\n\n<html><body>secret page of sk-canary-0123456789abcdef</body></html>';
    first.play([{ send: whole(200, page, { 'content-type': 'text/html; charset=utf-8' }) }]);
    expectAnswered(pair, stream, await askWithSpare(pair, stream));
    const reply = await askPair(pair, stream);
    expectRefused(pair.client, reply, 502, 'text/html');
    expect(reply.body.toString()).not.toMatch(/secret page|doctype/);
    const strange = gateway.log().findLast((line) => line['msg'] === 'unexpected upstream response');
    expect(strange).toMatchObject({ request_id: reply.headers['x-sluice-request-id'], head: expect.stringContaining('html') });
    expect(JSON.stringify(strange)).not.toContain('canary');
  });

  test.each(WAYS)('an empty body is an error: $name', async ({ pair, stream }) => {
    first.play([{ send: whole(200, '') }]);
    expectRefused(pair.client, await askPair(pair, stream), 502);
  });

  test.each(WAYS)('an error page of a proxy is not forwarded: $name', async ({ pair, stream }) => {
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

test('only upstream headers that SDKs read reach the client', async () => {
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
    expect(reply.headers['x-ratelimit-limit-requests']).toBe('7');
  }
});

test('all error decoders agree', () => {
  const { status, body } = errorOf('gemini', { code: 'RATE_LIMIT', message: 'slow' });
  expect(readError('gemini', status, {}, Buffer.from(body))).toMatchObject({ code: 'RATE_LIMIT', message: 'slow' });
});
