import { describe, expect, test } from 'vitest';
import {
  type AccumulatedMessage,
  accumulate,
  type CanonicalStreamEvent,
  readEvents,
  type StreamSource,
} from '../../src/index.ts';

const CHUNKS = [
  { id: 'c', model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi' } }] },
  { id: 'c', model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
];
const BODY = CHUNKS.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('');

const collect = async (events: AsyncIterable<CanonicalStreamEvent>): Promise<CanonicalStreamEvent[]> => {
  const found: CanonicalStreamEvent[] = [];
  for await (const event of events) found.push(event);
  return found;
};

const used = async (): Promise<Response> => {
  const response = new Response(BODY);
  await response.text();
  return response;
};

const locked = (): ReadableStream => {
  const stream = new Blob([BODY]).stream();
  stream.getReader();
  return stream;
};

const EXPECTED = 'expected a Response, a body, a stream, an iterable of bytes, text or parsed chunks, bytes or text; got';

const WRONG: { name: string; source: unknown; found: string }[] = [
  { name: 'undefined', source: undefined, found: 'undefined' },
  { name: 'a number', source: 7, found: 'a number' },
  { name: 'a boolean', source: true, found: 'a boolean' },
  { name: 'a function', source: fetch, found: 'a function (did you forget to call it?)' },
  { name: 'a promise', source: Promise.resolve(BODY), found: 'a Promise (did you forget await?)' },
  {
    name: 'a parsed response that is not in a list',
    source: { object: 'chat.completion' },
    found: 'an object that is not iterable (pass a parsed response as [response])',
  },
  {
    name: 'a stream with a reader',
    source: locked(),
    found: 'a stream that is locked to another reader (read it only once, or tee() it first)',
  },
  {
    name: 'a used Response',
    source: await used(),
    found: 'a Response whose body was read already (read a clone(), or the body only once)',
  },
];

describe.each(WRONG)('$name is refused', ({ source, found }) => {
  const wrong = source as StreamSource; // what TypeScript would have refused

  test('by accumulate', async () => {
    await expect(accumulate(wrong)).rejects.toThrow(new TypeError(`accumulate(source): ${EXPECTED} ${found}`));
  });

  test('by readEvents, when it is called', () => {
    expect(() => readEvents(wrong)).toThrow(new TypeError(`readEvents(source): ${EXPECTED} ${found}`));
  });
});

test.each([
  { elements: [1], found: 'element 0 is a number' },
  { elements: [CHUNKS[0], undefined], found: 'element 1 is undefined' },
  { elements: [CHUNKS], found: 'element 0 is an array' },
])('elements that are no chunks are refused: $found', async ({ elements, found }) => {
  const message = `accumulate(source): expected bytes, text or parsed chunks; ${found}`;
  await expect(accumulate(elements as object[])).rejects.toThrow(new TypeError(message));
});

test('a body that is null is empty', async () => {
  const { complete, error } = await accumulate(null, { protocol: 'openai-chat' });
  expect({ complete, error }).toMatchObject({ complete: false, error: { code: 'empty_stream' } });
  expect(await accumulate(new Response(null), { protocol: 'openai-chat' })).toMatchObject({ error: { code: 'empty_stream' } });
});

describe('parsed payloads', () => {
  const WHOLE: Record<string, object> = {
    'openai-chat': {
      id: 'c',
      object: 'chat.completion',
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    },
    'anthropic-messages': {
      id: 'msg',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'text', text: 'Hi' }],
      stop_reason: 'end_turn',
    },
    'openai-responses': {
      id: 'resp',
      object: 'response',
      model: 'm',
      status: 'completed',
      output: [{ type: 'message', id: 'i', role: 'assistant', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] }],
    },
    gemini: { responseId: 'r', modelVersion: 'm', candidates: [{ content: { parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }] },
  };

  test.each(Object.entries(WHOLE))('a whole response of %s is a message, and is recognised', async (protocol, response) => {
    const expected = { protocol, text: 'Hi', finish_reason: 'stop', complete: true, error: null, diagnostics: [] };
    expect(await accumulate([response])).toMatchObject(expected);
  });

  test('chunks are not changed and not required to end in [DONE]', async () => {
    const chunks = structuredClone(CHUNKS);
    const { text, complete, diagnostics } = await accumulate(chunks, { protocol: 'openai-chat' });
    expect({ text, complete, diagnostics, chunks }).toEqual({ text: 'Hi', complete: true, diagnostics: [], chunks: CHUNKS });
  });

  test('objects of another protocol are named in the error', async () => {
    const { error } = await accumulate([{ type: 'message_start', message: {} }], { protocol: 'openai-chat' });
    expect(error).toMatchObject({
      code: 'not_a_stream',
      message: 'expected a response stream (openai-chat), found objects of another kind ("type", "message")',
    });
  });

  test('bytes and parsed chunks may alternate', async () => {
    const text = `data: ${JSON.stringify(CHUNKS[0])}\n\n`;
    const one = new TextEncoder().encode(text);
    const call = {
      id: 'c',
      choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }] } }],
    };
    const { text: read, tool_calls } = await accumulate([one, one, text, call, one, ...CHUNKS], { protocol: 'openai-chat' });
    expect({ read, calls: tool_calls.length }).toEqual({ read: 'HiHiHiHiHi', calls: 1 });
  });

  test('a payload that is nested too deeply ends the stream in an error', async () => {
    let deep: object = {};
    for (let i = 0; i < 5000; i++) deep = { deep };
    const { error } = await accumulate([CHUNKS[0] ?? {}, deep], { protocol: 'openai-chat' });
    expect(error).toMatchObject({ code: 'too_large', canonical: 'PAYLOAD_TOO_LARGE' });
  });
});

describe('an HTTP error', () => {
  const ERRORS: {
    name: string;
    status: number;
    body: string;
    protocol: 'openai-chat' | 'anthropic' | 'gemini';
    error: object;
  }[] = [
    {
      name: 'of OpenAI',
      status: 401,
      body: '{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}',
      protocol: 'openai-chat',
      error: { code: 'invalid_api_key', message: 'Incorrect API key', canonical: 'AUTHENTICATION', http_status: 401 },
    },
    {
      name: 'of Anthropic',
      status: 529,
      body: '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
      protocol: 'anthropic',
      error: { message: 'Overloaded', canonical: 'OVERLOADED', http_status: 529 },
    },
    {
      name: 'of Gemini',
      status: 429,
      body: '{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED"}}',
      protocol: 'gemini',
      error: { code: 429, message: 'Quota', canonical: 'RATE_LIMIT', http_status: 429 },
    },
    {
      name: 'in plain text',
      status: 503,
      body: 'no healthy upstream',
      protocol: 'openai-chat',
      error: { message: 'no healthy upstream', canonical: 'OVERLOADED', http_status: 503 },
    },
    {
      name: 'as a page of a proxy',
      status: 502,
      body: '<html><body>nginx 1.2.3 at 10.0.0.1</body></html>',
      protocol: 'openai-chat',
      error: { message: 'the server returned 502 with an HTML page', http_status: 502 },
    },
    {
      name: 'without a body',
      status: 404,
      body: '',
      protocol: 'openai-chat',
      error: { message: 'the server returned 404 without an error message', canonical: 'NOT_FOUND', http_status: 404 },
    },
  ];

  test.each(ERRORS)('$name is in the result, not an exception', async ({ status, body, protocol, error }) => {
    const read: AccumulatedMessage = await accumulate(new Response(body, { status }), { protocol });
    expect(read).toMatchObject({ complete: false, text: '', finish_reason: 'error', error });
  });

  test.each(ERRORS)('$name is the only event', async ({ status, body, protocol, error }) => {
    const events = await collect(readEvents(new Response(body, { status }), { protocol }));
    const { canonical, ...rest } = error as { canonical?: string; http_status: number; message: string };
    expect(events).toMatchObject([
      { type: 'error', error: { message: rest.message, http_status: rest.http_status, ...(canonical && { code: canonical }) } },
    ]);
  });

  test('keeps retry-after and the request id', async () => {
    const headers = { 'retry-after': '7', 'x-request-id': 'req_1' };
    const [event] = await collect(readEvents(new Response('{}', { status: 429, headers }), { protocol: 'openai-chat' }));
    expect(event).toMatchObject({ error: { code: 'RATE_LIMIT', retry_after_ms: 7000, request_id: 'req_1' } });
  });

  test('of a long body reads only its beginning', async () => {
    let read = 0;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        read += 65_536;
        controller.enqueue(new Uint8Array(65_536).fill(120));
      },
    });
    const { error } = await accumulate(new Response(body, { status: 500 }), { protocol: 'openai-chat' });
    expect(error).toMatchObject({ http_status: 500 });
    expect(read).toBeLessThan(2_000_000);
  });
});
