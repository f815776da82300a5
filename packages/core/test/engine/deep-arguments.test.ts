import { describe, expect, test } from 'vitest';
import {
  DEEP,
  PROTOCOL_IDS,
  requestOf,
  requestText,
  responseOf,
  responseText,
  streamOf,
} from '../../../../test/deep-arguments.ts';
import {
  accumulate,
  CodecError,
  convertRequest,
  convertResponse,
  convertStream,
  createFetchHandler,
  type ProtocolId,
} from '../../src/index.ts';

const ROWS = PROTOCOL_IDS.flatMap((from) => Object.keys(DEEP).map((shape) => ({ from, shape, args: DEEP[shape] ?? '' })));
const PAIRS = ROWS.flatMap((row) => PROTOCOL_IDS.map((to) => ({ ...row, to })));

const NESTED = /nested more than \d+ levels deep/;

const PATHS = {
  'openai-chat': () => '/v1/chat/completions',
  'anthropic-messages': () => '/v1/messages',
  'openai-responses': () => '/v1/responses',
  gemini: (isStream) => `/v1beta/models/m:${isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
} as const satisfies Record<ProtocolId, (isStream: boolean) => string>;

const post = (client: ProtocolId, body: string, isStream = false): Request =>
  new Request(`https://gate.example${PATHS[client](isStream)}`, { method: 'POST', body });

const handlerOf = (upstream: ProtocolId, fetch: () => Promise<Response>) =>
  createFetchHandler({
    resolve: () => ({ provider: { id: 'p', protocol: upstream, base_url: 'https://upstream.example' } }),
    fetch,
  });

function thrownBy(run: () => unknown): unknown {
  try {
    run();
    return undefined;
  } catch (error) {
    return error;
  }
}

describe.each(PAIRS)('$from to $to, arguments nested 50,000 $shape deep', ({ from, to, args }) => {
  test('a request is rejected with 400', () => {
    const error = thrownBy(() => convertRequest(requestOf(from, args), { from, to }));
    expect(error).toBeInstanceOf(CodecError);
    expect(error).toMatchObject({
      error: { http_status: 400, message: expect.stringMatching(NESTED) },
    });
  });

  test('a response is rejected with 502', () => {
    const error = thrownBy(() => convertResponse(responseOf(from, args), { from, to }));
    expect(error).toBeInstanceOf(CodecError);
    expect(error).toMatchObject({
      error: { http_status: 502, message: expect.stringMatching(NESTED) },
    });
  });

  test('a stream ends in an error', async () => {
    const source = new Response(streamOf(from, args)).body;
    const { error } = await accumulate(source?.pipeThrough(convertStream({ from, to })) ?? '', { protocol: to });
    expect(error?.message).toMatch(NESTED);
  });

  /** Arguments are text to OpenAI's protocols, and a provider of which nothing is known judges requests of its own protocol itself. */
  const isText = from === to && from.startsWith('openai');

  test.skipIf(isText)('createFetchHandler rejects the request with 400, before the upstream is called', async () => {
    const handler = handlerOf(to, () => Promise.reject(new Error('the upstream must not be called')));
    const response = await handler(post(from, requestText(from, args)));
    expect(response.status).toBe(400);
    expect(await response.text()).toMatch(NESTED);
  });

  test('createFetchHandler answers a response of the upstream with 502', async () => {
    const handler = handlerOf(from, async () => new Response(responseText(from, args)));
    const response = await handler(post(to, requestText(to, '{}')));
    expect(response.status).toBe(502);
    expect(await response.text()).toMatch(NESTED);
  });

  test('createFetchHandler ends a stream of the upstream in an error', async () => {
    const handler = handlerOf(from, async () => new Response(streamOf(from, args)));
    const response = await handler(post(to, requestText(to, '{}', true), true));
    expect(response.status).toBe(200);
    const { error } = await accumulate(response.body ?? '', { protocol: to });
    expect(error?.message).toMatch(NESTED);
  });

  test('createFetchHandler hands on the status of an error whose body is nested too deeply', async () => {
    const handler = handlerOf(from, async () => new Response(`{"error":${args}}`, { status: 429 }));
    expect((await handler(post(to, requestText(to, '{}')))).status).toBe(429);
  });
});

test.each(ROWS)('$from: accumulate() reports arguments nested 50,000 $shape deep', async ({ from, args }) => {
  const { error, invalid_arguments: invalid } = await accumulate(streamOf(from, args), { protocol: from });
  // Gemini has its arguments as JSON in the event, which cannot be read at all.
  if (from === 'gemini') expect(error).toMatchObject({ code: 'too_large', message: expect.stringMatching(NESTED) });
  else expect({ error, invalid }).toEqual({ error: null, invalid: [0] });
});

test.each(PROTOCOL_IDS)('%s: arguments in a text are read up to 256 levels', (from) => {
  const nested = (depth: number): string => `${'{"a":'.repeat(depth)}"${'x'.repeat(600)}"${'}'.repeat(depth)}`;
  const convert = (depth: number) => () => convertRequest(requestOf(from, nested(depth)), { from, to: 'anthropic-messages' });
  expect(convert(240)).not.toThrow();
  expect(convert(257)).toThrow(NESTED);
});
