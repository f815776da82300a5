/** `createRepairFetch` as SDKs use it: what it leaves alone, what it repairs, and what it keeps of a response. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Anthropic from '@anthropic-ai/sdk';
import { anthropicMessagesRepair } from '@sluice/core/anthropic-messages/repair';
import { CODECS } from '@sluice/core/engine';
import { createRepairFetch, createRepairFetchFor, type Fetch, prepareRequests, type RepairFinding } from '@sluice/core/fetch';
import { geminiRepair } from '@sluice/core/gemini/repair';
import { openaiChatRepair } from '@sluice/core/openai-chat/repair';
import { openaiResponsesRepair } from '@sluice/core/openai-responses/repair';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { violatingStreams } from './doctor/violating-streams.ts';
import { toyRepair } from './toy-protocol/repair.ts';

const URL_CHAT = 'http://llm.example/api/v1/chat/completions';
const SSE = { 'content-type': 'text/event-stream' };
const JSON_TYPE = { 'content-type': 'application/json' };

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finish }],
  })}\n\n`;

const DONE = 'data: [DONE]\n\n';

const GOOD = chunk({ role: 'assistant', content: '' }) + chunk({ content: 'Hi' }) + chunk({}, 'stop') + DONE;

const call = (fields: object): object => ({ tool_calls: [fields] });

/** Every parallel call has index 0, and the ids are blank. */
const BROKEN =
  chunk({ role: 'assistant', content: null }) +
  chunk(call({ index: 0, id: '', type: 'function', function: { name: 'add', arguments: '{"a":1}' } })) +
  chunk(call({ index: 0, id: '', type: 'function', function: { name: 'sub', arguments: '{"b":2}' } })) +
  chunk({}, 'tool_calls') +
  DONE;

const WHOLE = {
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

interface Reply {
  body: string | ReadableStream<Uint8Array>;
  status?: number;
  headers?: Record<string, string>;
}

/** A server that always sends this, and the requests that it got. */
function serve({ body, status = 200, headers = SSE }: Reply): {
  fetch: Fetch;
  sent: (RequestInit | undefined)[];
  last: () => Response;
} {
  const sent: (RequestInit | undefined)[] = [];
  let last: Response | undefined;
  const fetch: Fetch = async (_input, init) => {
    sent.push(init);
    last = new Response(body, { status, headers });
    return last;
  };
  return { fetch, sent, last: () => last as Response };
}

const ask = (isStream: boolean): RequestInit => ({
  method: 'POST',
  body: JSON.stringify({ model: 'm', stream: isStream, messages: [{ role: 'user', content: 'Hi' }] }),
});

describe('left alone', () => {
  test.each([
    ['the official host', 'https://api.openai.com/v1/chat/completions', { body: BROKEN }],
    ['another endpoint', 'http://llm.example/v1/models', { body: '{"data":[]}', headers: JSON_TYPE }],
    ['a page', 'http://llm.example/', { body: '<html>', headers: { 'content-type': 'text/html' } }],
    ['an error', URL_CHAT, { body: '{"error":{"message":"no"}}', status: 400, headers: JSON_TYPE }],
    ['a page in place of a stream', URL_CHAT, { body: '<html>', headers: { 'content-type': 'text/html' } }],
  ] satisfies [string, string, Reply][])('%s', async (_, url, reply) => {
    const { fetch, last } = serve(reply);
    const response = await createRepairFetch({ fetch })(url, ask(true));
    expect(response).toBe(last());
  });

  test.each([
    ['a stream that conforms', true, GOOD, SSE, []],
    ['a whole response that conforms', false, JSON.stringify(WHOLE, null, 2), JSON_TYPE, []],
    ['JSON that is no response', false, '{"hello":"world"}', JSON_TYPE, ['chat/choices-missing']],
    ['what is not JSON', false, '{"hello":', JSON_TYPE, []],
  ])('%s: the same bytes', async (_, isStream, body, headers, rules) => {
    const findings: RepairFinding[] = [];
    const { fetch } = serve({ body, headers });
    const response = await createRepairFetch({ fetch, onFinding: (finding) => findings.push(finding) })(URL_CHAT, ask(isStream));
    expect(await response.text()).toBe(body);
    expect(findings.map(({ rule }) => rule)).toEqual(rules);
  });
});

describe('repaired', () => {
  test('a stream, for the SDK', async () => {
    const findings: string[] = [];
    const { fetch } = serve({ body: BROKEN });
    const client = new OpenAI({
      apiKey: 'k',
      baseURL: 'http://llm.example/v1',
      fetch: createRepairFetch({ fetch, onFinding: ({ rule, message }) => findings.push(`${rule} ${message}`) }),
    });
    const completion = await client.chat.completions
      .stream({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] })
      .finalChatCompletion();
    const calls = completion.choices[0]?.message.tool_calls ?? [];
    expect(calls.map((one) => (one.type === 'function' ? [one.function.name, one.function.arguments] : []))).toEqual([
      ['add', '{"a":1}'],
      ['sub', '{"b":2}'],
    ]);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
    expect(findings).toContain('chat/tool-id-empty A tool-call delta carries a blank id. Sluice treats a blank id as absent.');
  });

  test('a whole response: two calls with one id stay two', async () => {
    const list = ['list_files', 'get_time'].map((name) => ({ id: 'a', type: 'function', function: { name, arguments: '{}' } }));
    const message = { role: 'assistant', content: null, tool_calls: list };
    const { fetch } = serve({
      body: JSON.stringify({ ...WHOLE, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }),
      headers: JSON_TYPE,
    });
    const response = await createRepairFetch({ fetch })(URL_CHAT, ask(false));
    const body = (await response.json()) as {
      choices: { message: { tool_calls: { id: string; function: { name: string } }[] } }[];
    };
    const calls = body.choices[0]?.message.tool_calls ?? [];
    expect(calls.map((one) => one.function.name)).toEqual(['list_files', 'get_time']);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
  });

  test.each([true, false])('numbers that JSON.parse changes are kept (stream requested: %s)', async (isStream) => {
    const call = '{"id":"a","type":"function","function":{"name":"f","arguments":{"id":1234567890123456789}}}';
    const message = `{"role":"assistant","content":null,"tool_calls":[${call}]}`;
    const body = `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":${message},"finish_reason":"tool_calls"}]}`;
    const { fetch } = serve({ body, headers: JSON_TYPE });
    const text = await (await createRepairFetch({ fetch })(URL_CHAT, ask(isStream))).text();
    expect(text).toContain('1234567890123456789');
  });

  test('a whole response: arguments as an object, no id', async () => {
    const message = { role: 'assistant', content: null, tool_calls: [{ function: { name: 'f', arguments: { a: 1 } } }] };
    const { fetch } = serve({
      body: JSON.stringify({ ...WHOLE, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }),
      headers: JSON_TYPE,
    });
    const response = await createRepairFetch({ fetch })(URL_CHAT, ask(false));
    const body = (await response.json()) as { choices: { message: { tool_calls: object[] } }[] };
    expect(body.choices[0]?.message.tool_calls[0]).toMatchObject({
      id: expect.stringMatching(/./),
      type: 'function',
      function: { name: 'f', arguments: '{"a":1}' },
    });
  });

  test.each([true, false])('an error in a successful response becomes one (stream: %s)', async (isStream) => {
    const { fetch } = serve({ body: '{"error":{"message":"out of memory","code":500}}', headers: JSON_TYPE });
    const client = new OpenAI({
      apiKey: 'k',
      baseURL: 'http://llm.example/v1',
      maxRetries: 0,
      fetch: createRepairFetch({ fetch }),
    });
    const request = client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], stream: isStream });
    await expect(request).rejects.toThrow('out of memory');
  });

  test('a whole response in place of a stream becomes a stream', async () => {
    const { fetch } = serve({ body: JSON.stringify(WHOLE), headers: JSON_TYPE });
    const client = new OpenAI({ apiKey: 'k', baseURL: 'http://llm.example/v1', fetch: createRepairFetch({ fetch }) });
    const stream = client.chat.completions.stream({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] });
    expect((await stream.finalChatCompletion()).choices[0]?.message.content).toBe('Hi');
  });

  test('a stream in place of a whole response becomes a whole response', async () => {
    const { fetch } = serve({ body: GOOD });
    const response = await createRepairFetch({ fetch })(URL_CHAT, ask(false));
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'Hi' } }] });
  });

  test('the official host with officialHosts', async () => {
    const { fetch } = serve({ body: BROKEN });
    const repair = createRepairFetch({ fetch, officialHosts: true });
    expect(await (await repair('https://api.openai.com/v1/chat/completions', ask(true))).text()).toContain('"index":1');
  });

  test('only protocols that were named', async () => {
    const { fetch, last } = serve({ body: 'data: {}\n\n' });
    const repair = createRepairFetchFor([openaiChatRepair], { fetch });
    expect(await repair('http://llm.example/v1/messages', ask(true))).toBe(last());
    expect(await repair(URL_CHAT, ask(true))).not.toBe(last());
  });

  test('a protocol that is not registered', async () => {
    const events = [
      { toy: 1, id: 'r1', model: 'm' },
      { toy: 1, parts: [{ text: 'Hi' }] },
      { toy: 1, end: 'done' },
    ];
    const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    const named = body.replace('data: {"toy":1,"parts"', 'event: part\ndata: {"toy":1,"parts"');
    for (const sent of [body, named]) {
      const repair = createRepairFetchFor([toyRepair], { fetch: serve({ body: sent }).fetch });
      expect(await (await repair('http://llm.example/toy/chat', ask(true))).text()).toBe(body);
    }
  });
});

/** A third of them, which takes a second. */
const VIOLATING = violatingStreams().filter((_, at) => at % 3 === 0);

describe.each([
  { repair: openaiChatRepair, url: URL_CHAT },
  { repair: anthropicMessagesRepair, url: 'http://llm.example/v1/messages' },
  { repair: openaiResponsesRepair, url: 'http://llm.example/v1/responses' },
  { repair: geminiRepair, url: 'http://llm.example/v1beta/models/m:streamGenerateContent?alt=sse' },
])('$repair.id without its requests', ({ repair, url }) => {
  const streams = VIOLATING.filter(({ protocol }) => protocol === repair.id);

  test('has the default profile of the codec', () => {
    expect(repair.profileFor('')).toEqual(CODECS[repair.id].profileFor(''));
  });

  test.each([true, false])('repairs as the whole codec does (stream: %s)', async (isStream) => {
    const target = isStream ? url : url.replace(':streamGenerateContent', ':generateContent');
    const send = async (codec: typeof repair, body: string): Promise<string> =>
      (await createRepairFetchFor([codec], { fetch: serve({ body }).fetch })(target, ask(isStream))).text();
    let repaired = 0;
    for (const { chunks } of streams) {
      const body = Buffer.concat(chunks).toString();
      const bytes = await send(repair, body);
      expect(bytes).toBe(await send(CODECS[repair.id], body));
      if (bytes !== body) repaired++;
    }
    expect(repaired).toBeGreaterThan(5);
  });
});

describe('kept of a response', () => {
  test('url, status, headers and clone', async () => {
    const original = new Response(GOOD, { status: 200, headers: { ...SSE, 'x-request-id': 'r1', 'content-length': '9' } });
    Object.defineProperty(original, 'url', { value: `${URL_CHAT}?v=1` });
    const response = await createRepairFetch({ fetch: async () => original })(URL_CHAT, ask(true));
    const copy = response.clone();
    for (const one of [response, copy]) {
      expect([one.url, one.status, one.headers.get('x-request-id'), one.headers.get('content-length')]).toEqual([
        `${URL_CHAT}?v=1`,
        200,
        'r1',
        null,
      ]);
      expect(await one.text()).toBe(GOOD);
    }
  });

  test.each([
    ['a whole response that stays as it came keeps its length', WHOLE, {}, true],
    ['one that is changed does not', { ...WHOLE, choices: [{ ...WHOLE.choices[0], finish_reason: null }] }, {}, false],
    ['one that was compressed does not', WHOLE, { 'content-encoding': 'gzip' }, false],
  ])('content-length: %s', async (_, sent, more, isKept) => {
    const body = JSON.stringify(sent);
    const headers = { ...JSON_TYPE, 'content-length': String(body.length), ...more };
    const response = await createRepairFetch({ fetch: serve({ body, headers }).fetch })(URL_CHAT, ask(false));
    expect(response.headers.get('content-length')).toBe(isKept ? String(body.length) : null);
    expect((await response.text()) === body).toBe(isKept || 'content-encoding' in more);
  });

  test('frames come as they arrive, and cancelling reaches the server', async () => {
    let reason: unknown;
    let isPulled = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          isPulled++;
          controller.enqueue(
            new TextEncoder().encode(isPulled === 1 ? chunk({ role: 'assistant', content: '' }) : chunk({ content: 'x' })),
          );
        },
        cancel: (given) => {
          reason = given;
        },
      },
      { highWaterMark: 0 },
    );
    const response = await createRepairFetch({ fetch: serve({ body }).fetch })(URL_CHAT, ask(true));
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await reader.read();
    expect(isPulled).toBe(2);
    await reader.cancel('enough');
    expect(reason).toBe('enough');
  });

  test('the error of a connection that breaks', async () => {
    const broken = new Error('socket hang up');
    let isFirst = true;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        if (isFirst) controller.enqueue(new TextEncoder().encode(chunk({ role: 'assistant', content: 'H' })));
        else controller.error(broken);
        isFirst = false;
      },
    });
    const response = await createRepairFetch({ fetch: serve({ body }).fetch })(URL_CHAT, ask(true));
    await expect(response.text()).rejects.toBe(broken);
  });

  test('the signal of the request', async () => {
    const { fetch, sent } = serve({ body: GOOD });
    const { signal } = new AbortController();
    await createRepairFetch({ fetch })(URL_CHAT, { ...ask(true), signal });
    expect(sent[0]?.signal).toBe(signal);
  });

  test('a body that is longer than the limit', async () => {
    const long = JSON.stringify({ ...WHOLE, padding: 'x'.repeat(5000) });
    const { fetch } = serve({ body: long, headers: JSON_TYPE });
    expect(await (await createRepairFetch({ fetch, maxBytes: 1000 })(URL_CHAT, ask(false))).text()).toBe(long);
  });
});

describe('requests', () => {
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'tool', tool_call_id: 'lost', content: 'no call has this id' },
  ];

  test.each([
    [true, 1],
    [false, 0],
  ])('are prepared only with the option (%s)', async (requests, changes) => {
    const { fetch, sent } = serve({ body: GOOD });
    const notes: string[] = [];
    const body = JSON.stringify({ model: 'm', stream: true, messages });
    await createRepairFetch({ fetch, requests, onNote: ({ code }) => notes.push(code) })(URL_CHAT, { method: 'POST', body });
    expect(sent[0]?.body !== body).toBe(requests);
    expect(notes.length >= changes).toBe(true);
  });

  describe('with another length than the client declared', () => {
    const body = JSON.stringify({ model: 'm', stream: true, messages });
    const declared = { 'content-type': 'application/json', 'content-length': String(body.length), 'x-mine': 'kept' };

    test.each<[string, NonNullable<RequestInit['headers']>]>([
      ['an object', declared],
      ['Headers', new Headers(declared)],
      ['a list', Object.entries(declared)],
    ])('lose their content-length, and no other header: %s', async (_, headers) => {
      const { fetch, sent } = serve({ body: GOOD });
      await createRepairFetch({ fetch, requests: true })(URL_CHAT, { method: 'POST', headers, body });
      expect(sent[0]?.body).not.toBe(body);
      const left = new Headers(sent[0]?.headers);
      expect([left.get('content-length'), left.get('x-mine')]).toEqual([null, 'kept']);
    });

    test('arrive whole', async () => {
      let received = '';
      const server = createServer((request, response) => {
        request.setEncoding('utf8');
        request.on('data', (piece: string) => {
          received += piece;
        });
        request.on('end', () => response.writeHead(200, SSE).end(GOOD));
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const url = `http://127.0.0.1:${port}/v1/chat/completions`;
      const response = await createRepairFetch({ requests: true })(url, { method: 'POST', headers: declared, body });
      expect(await response.text()).toBe(GOOD);
      expect(JSON.parse(received)).toMatchObject({ model: 'm' });
      server.close();
    });
  });

  describe('that are not text', () => {
    const text = JSON.stringify({ model: 'm', stream: false, messages });
    const post = { method: 'POST', headers: JSON_TYPE };
    const message = { role: 'assistant', content: null, tool_calls: [{ function: { name: 'f', arguments: { a: 1 } } }] };
    const broken = JSON.stringify({ ...WHOLE, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] });
    const KINDS: [string, () => Parameters<Fetch>][] = [
      ['bytes', () => [URL_CHAT, { ...post, body: new TextEncoder().encode(text) }]],
      ['an ArrayBuffer', () => [URL_CHAT, { ...post, body: new TextEncoder().encode(text).slice().buffer }]],
      ['a Blob', () => [URL_CHAT, { ...post, body: new Blob([text]) }]],
      ['a Request', () => [new Request(URL_CHAT, { ...post, body: text })]],
      ['a Request with another body', () => [new Request(URL_CHAT, { ...post, body: '{}' }), { body: text }]],
    ];

    test.each(KINDS)('%s: the request is prepared, and the response repaired', async (_, ask) => {
      const { fetch: reply } = serve({ body: broken, headers: JSON_TYPE });
      let sent: Request | undefined;
      const fetch: Fetch = (input, init) => {
        sent = new Request(input, init);
        return reply(input, init);
      };
      const response = await createRepairFetch({ fetch, requests: true })(...ask());
      expect(await response.text()).toContain('"arguments":"{\\"a\\":1}"');
      expect(sent?.headers.get('content-type')).toBe('application/json');
      const body = (await sent?.json()) as { messages: unknown[] };
      expect(body).toMatchObject({ model: 'm' });
      expect(body.messages).not.toEqual(messages);
    });

    test.each(KINDS)('%s: without the option it is sent as it is', async (_, ask) => {
      const { fetch: reply } = serve({ body: broken, headers: JSON_TYPE });
      const asked = ask();
      let sent: Parameters<Fetch> | undefined;
      const fetch: Fetch = (...given) => {
        sent = given;
        return reply(...given);
      };
      const response = await createRepairFetch({ fetch })(...asked);
      expect(await response.text()).toContain('"arguments":"{\\"a\\":1}"');
      expect([sent?.[0], sent?.[1]]).toEqual([asked[0], asked[1]]);
      expect(sent?.[0] instanceof Request && sent[0].bodyUsed).toBe(false);
    });

    test('a stream cannot be read twice: its response is repaired as what it is', async () => {
      const { fetch } = serve({ body: broken, headers: JSON_TYPE });
      const body = new Response(text).body;
      const response = await createRepairFetch({ fetch })(URL_CHAT, { ...post, body, duplex: 'half' } as RequestInit);
      expect(await response.text()).toContain('"arguments":"{\\"a\\":1}"');
    });
  });

  test('are prepared with the codec of their protocol', async () => {
    const { fetch, sent } = serve({ body: GOOD });
    const notes: string[] = [];
    const requests = prepareRequests([CODECS['openai-chat']], { onNote: ({ code }) => notes.push(code) });
    const repair = createRepairFetchFor([openaiChatRepair, anthropicMessagesRepair], { fetch, requests });
    const body = JSON.stringify({ model: 'm', stream: true, messages });
    await repair(URL_CHAT, { method: 'POST', body });
    await repair('http://llm.example/v1/messages', { method: 'POST', body });
    expect(sent.map((init) => init?.body !== body)).toEqual([true, false]);
    expect(notes.length).toBeGreaterThan(0);
  });

  test('that need nothing are sent as they are', async () => {
    const { fetch, sent } = serve({ body: GOOD });
    const body = '{ "model": "m", "stream": true, "messages": [ { "role": "user", "content": "Hi" } ] }';
    await createRepairFetch({ fetch, requests: true })(URL_CHAT, { method: 'POST', body });
    expect(sent[0]?.body).toBe(body);
  });
});

describe('convert', () => {
  test('an Anthropic SDK talks to a Chat server', async () => {
    const asked: string[] = [];
    const fetch: Fetch = async (input, init) => {
      asked.push(`${String(input)} ${String(init?.body)}`);
      return new Response(GOOD, { headers: SSE });
    };
    const client = new Anthropic({
      apiKey: 'k',
      fetch: createRepairFetch({
        fetch,
        convert: { to: 'openai-chat', baseUrl: 'http://llm.example/v1', apiKey: 's', model: 'small' },
      }),
    });
    const message = await client.messages
      .stream({ model: 'any', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] })
      .finalMessage();
    expect(message.content).toMatchObject([{ type: 'text', text: 'Hi' }]);
    expect(asked[0]).toMatch(/^http:\/\/llm\.example\/v1\/chat\/completions .*"model":"small"/);
  });
});

describe('a connection that the server closes in the middle of the response', () => {
  /** A server that sends a part of a body, and closes. */
  async function cutServer(type: string, body: string): Promise<{ url: string; close: () => void }> {
    const server = createServer((_, response) => {
      response.writeHead(200, { 'content-type': type, 'content-length': '100000' });
      response.write(body, () => response.destroy());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}/v1`, close: () => server.close() };
  }

  const MESSAGE = 'the server closed the connection in the middle of the response';

  test.each([
    ['a stream', true, 'text/event-stream', chunk({ role: 'assistant', content: 'Hi' })],
    ['a whole response', false, 'application/json', '{"id":"c1"'],
  ] as const)('%s fails with an error that names it, and with its cause', async (_, stream, type, body) => {
    const { url, close } = await cutServer(type, body);
    const fetch = createRepairFetch();
    const sent = fetch(`${url}/chat/completions`, { method: 'POST', body: JSON.stringify({ model: 'm', stream, messages: [] }) });
    const error = await sent.then((response) => response.text()).catch((cause: unknown) => cause);
    expect(error).toMatchObject({ name: 'TypeError', message: MESSAGE, cause: { message: 'terminated' } });
    close();
  });

  test.each([
    ['a stream that conforms', ''],
    ['a stream that was repaired', chunk(call({ index: 0, id: '', type: 'function', function: { name: 'f', arguments: '{}' } }))],
  ])('%s: a stop reason that has arrived is passed on first', async (_, before) => {
    const pieces = [chunk({ role: 'assistant', content: 'Hi' }), before, chunk({}, 'stop')].filter((piece) => piece !== '');
    const reset = new TypeError('terminated', { cause: { code: 'ECONNRESET' } });
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const piece = pieces.shift();
        if (piece === undefined) controller.error(reset);
        else controller.enqueue(new TextEncoder().encode(piece));
      },
    });
    const { fetch } = serve({ body });
    const reader = (await createRepairFetch({ fetch })(URL_CHAT, ask(true))).body?.getReader();
    let text = '';
    const readAll = async (): Promise<void> => {
      for (;;) text += Buffer.from((await reader?.read())?.value ?? []).toString();
    };
    await expect(readAll()).rejects.toMatchObject({ cause: reset });
    expect(text).toMatch(/"finish_reason":"(stop|tool_calls)"/);
  });

  test('the SDK shows it', async () => {
    const { url, close } = await cutServer('text/event-stream', chunk({ role: 'assistant', content: 'Hi' }));
    const client = new OpenAI({ apiKey: 'k', baseURL: url, maxRetries: 0, fetch: createRepairFetch() });
    const stream = client.chat.completions.stream({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] });
    await expect(stream.finalChatCompletion()).rejects.toThrow(MESSAGE);
    close();
  });

  test.each([
    ['an abort', new DOMException('aborted', 'AbortError')],
    ['a timeout of undici', new TypeError('terminated', { cause: { code: 'UND_ERR_BODY_TIMEOUT' } })],
  ])('%s keeps its error', async (_, failure) => {
    const body = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(failure) });
    const { fetch } = serve({ body });
    const response = await createRepairFetch({ fetch })(URL_CHAT, { method: 'POST', body: '{"stream":true}' });
    await expect(response.text()).rejects.toBe(failure);
  });
});
