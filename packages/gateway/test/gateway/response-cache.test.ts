import type { CanonicalRequest, CanonicalResponse, ProtocolId } from '@sluice/core';
import { CODECS, decodeRequest } from '@sluice/core/engine';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { digestRequest } from '../../src/exchange/request-digest.ts';
import { type ExchangeRow, openStore, type Store } from '../../src/store/index.ts';
import { ANSWER, cutAfter, framesOf, readStream, readWhole, TEXT, wholeOf } from './dialects.ts';
import { Faultd, type Script } from './faultd.ts';
import { chunk, LAST_CHUNK, type Reply, streamHead, whole } from './http.ts';
import { providersAt } from './pairs.ts';
import { RawClient, requestText } from './raw-client.ts';
import { type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// docs/cache.md: the response to an equal request is sent again, in any protocol.

const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

let faultd: Faultd;
let gateway: Started;
let store: Store;
let count = 0;

beforeAll(async () => {
  faultd = await Faultd.start();
  store = await openStore({ folder: null });
  gateway = await startGateway({
    config: { providers: providersAt(faultd), limits: { retries: 0 }, cache: { ttl: '1h' } },
    store,
  });
});

afterEach(() => {
  faultd.served = [];
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
  await store.close();
});

interface Wire {
  path: string;
  body: Record<string, unknown>;
}

/** The same request in every protocol. */
const REQUESTS = {
  'openai-chat': (model, text, stream) => ({
    path: '/v1/chat/completions',
    body: {
      model,
      stream,
      ...(stream && { stream_options: { include_usage: true } }),
      max_completion_tokens: 50,
      temperature: 0.5,
      user: 'somebody',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: text },
      ],
    },
  }),
  'anthropic-messages': (model, text, stream) => ({
    path: '/v1/messages',
    body: {
      model,
      stream,
      max_tokens: 50,
      temperature: 0.5,
      metadata: { user_id: 'another' },
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      messages: [{ role: 'user', content: [{ type: 'text', text }] }],
    },
  }),
  'openai-responses': (model, text, stream) => ({
    path: '/v1/responses',
    body: { model, stream, max_output_tokens: 50, temperature: 0.5, instructions: 'Be brief.', input: text },
  }),
  gemini: (model, text, stream) => ({
    path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: {
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [{ role: 'user', parts: [{ text }] }],
      generationConfig: { maxOutputTokens: 50, temperature: 0.5 },
    },
  }),
} satisfies Record<ProtocolId, (model: string, text: string, stream: boolean) => Wire>;

interface Sent {
  client: ProtocolId;
  upstream?: ProtocolId;
  text: string;
  stream?: boolean;
  headers?: Record<string, string>;
  body?: object;
  way?: 'mend' | 'pass';
}

async function send(sent: Sent, url = gateway.url): Promise<Reply> {
  const { client, upstream = 'openai-chat', text, stream = false, headers = {}, body = {}, way = 'mend' } = sent;
  const wire = REQUESTS[client](`${way}-${upstream}/m`, text, stream);
  const version = client === 'anthropic-messages' ? { 'anthropic-version': '2023-06-01' } : {};
  const connection = await RawClient.open(url);
  try {
    const all = { ...version, ...headers };
    return await connection.send(requestText('POST', wire.path, all, JSON.stringify({ ...wire.body, ...body }))).reply();
  } finally {
    connection.leave();
  }
}

const newText = (): string => `Count to ${++count}.`;

const status = ({ headers }: Reply): string | undefined => headers['x-sluice-cache'];

const answer = (upstream: ProtocolId, stream: boolean, response: CanonicalResponse = ANSWER): Script =>
  stream
    ? [{ send: streamHead() }, { send: chunk(framesOf(upstream, response).join('')) }, { send: LAST_CHUNK }]
    : [{ send: whole(200, wholeOf(upstream, response)) }];

/** Text, stop reason and calls of a reply, however it was sent. */
function read(
  client: ProtocolId,
  stream: boolean,
  { body }: Reply,
): Pick<CanonicalResponse, 'content' | 'stop_reason' | 'usage'> {
  if (!stream) {
    const { content, stop_reason, usage } = readWhole(client, body);
    return { content, stop_reason, ...(usage && { usage }) };
  }
  const { message } = readStream(client, body);
  const { content, stop_reason, usage } = message;
  return { content, stop_reason, ...(usage && { usage }) };
}

async function findRow(id: string | undefined): Promise<ExchangeRow> {
  let row: ExchangeRow | undefined;
  while (row?.state !== 'settled') {
    const { exchanges } = await store.list({ limit: 200 });
    row = exchanges.find(({ request_id }) => request_id === id);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return row;
}

/** Every client and every upstream, converted; the same protocol on both sides is also passed on unchanged. */
const ROWS = PROTOCOLS.flatMap((upstream) =>
  PROTOCOLS.flatMap((client) =>
    (client === upstream ? (['mend', 'pass'] as const) : (['mend'] as const)).flatMap((way) =>
      [true, false].map((stream) => ({ upstream, client, stream, way })),
    ),
  ),
);

describe.each(ROWS)('a response of $upstream for $client, stream $stream, $way', ({ upstream, client, stream, way }) => {
  test('is sent again to every protocol, whole and as a stream', async () => {
    const text = newText();
    faultd.play(answer(upstream, stream));
    const first = await send({ client, upstream, text, stream, way });
    expect([first.status, status(first)]).toEqual([200, 'miss']);
    for (const other of PROTOCOLS)
      for (const isStream of [true, false]) {
        const again = await send({ client: other, upstream, text, stream: isStream, way });
        expect([other, isStream, again.status, status(again)]).toEqual([other, isStream, 200, 'hit']);
        const { content, stop_reason, usage } = read(other, isStream, again);
        expect(content).toMatchObject([{ type: 'text', text: TEXT }]);
        expect([stop_reason, usage?.input_tokens, usage?.output_tokens]).toEqual(['end_turn', 11, 5]);
      }
    expect(faultd.served).toHaveLength(1);
  });
});

test('a hit is recorded without usage, with a note', async () => {
  const text = newText();
  faultd.play(answer('openai-chat', false));
  const first = await send({ client: 'openai-chat', text });
  for (const stream of [true, false]) {
    const hit = await send({ client: 'anthropic-messages', text, stream });
    expect(await findRow(hit.headers['x-sluice-request-id'])).toMatchObject({
      ending: 'answered',
      http_status: 200,
      attempts: 0,
      input_tokens: null,
      provider: null,
      note_codes: ['cached'],
      notes: [{ message: `repeats the response of request ${first.headers['x-sluice-request-id']}; not sent upstream` }],
    });
    expect(hit.headers['x-sluice-attempts']).toBe('0');
    expect(hit.headers['x-sluice-cost-usd']).toBeUndefined();
    expect(await gateway.ended(hit.headers['x-sluice-request-id'])).toMatchObject({ reused: 'cached', status: 200 });
  }
});

test.each(['openai-chat', 'openai-responses'] as const)('a hit for %s has the time of the first response', async (client) => {
  const text = newText();
  // Messages of Anthropic have no time.
  faultd.play(answer('anthropic-messages', false));
  const since = Math.floor(Date.now() / 1000);
  await send({ client: 'anthropic-messages', upstream: 'anthropic-messages', text });
  const hit = JSON.parse((await send({ client, upstream: 'anthropic-messages', text })).body.toString());
  const created = hit.created ?? hit.created_at;
  expect(created).toBeGreaterThanOrEqual(since);
  expect(created).toBeLessThanOrEqual(Math.floor(Date.now() / 1000));
});

describe('a hit is what the client would have received from the upstream', () => {
  const rich: CanonicalResponse = {
    ...ANSWER,
    content: [
      { type: 'thinking', thinking: 'Hm.' },
      { type: 'text', text: 'One.' },
      { type: 'tool_use', id: 'call_1', name: 'look', input: { a: 1 } },
    ],
    stop_reason: 'tool_use',
  };
  const tool = { name: 'look', description: 'Look.' };
  const schema = { type: 'object', properties: { a: { type: 'integer' } } };
  const TOOLS = {
    'openai-chat': [{ type: 'function', function: { ...tool, parameters: schema } }],
    'anthropic-messages': [{ ...tool, input_schema: schema }],
    'openai-responses': [{ type: 'function', ...tool, parameters: schema }],
    gemini: [{ functionDeclarations: [{ ...tool, parameters: schema }] }],
  } satisfies Record<ProtocolId, object[]>;
  /** Every converted response has ids of its own. */
  const OWN_IDS = /^(resp|rs_sl|msg_sl|fc_sl)_/;
  const TIMES = /^(created|created_at|completed_at|createTime)$/;
  /** Calls of a Chat stream keep their index, which whole responses do not have and clients ignore. */
  const readBody = ({ body }: Reply): unknown =>
    JSON.parse(body.toString(), (name, value) => {
      if (name === 'tool_calls') for (const call of value) delete call.index;
      if (name === 'id' && OWN_IDS.test(value)) return '';
      return TIMES.test(name) ? 0 : value;
    });

  test.each(PROTOCOLS.flatMap((upstream) => PROTOCOLS.map((client) => ({ upstream, client }))))(
    '$client from $upstream, with thinking and a tool call',
    async ({ upstream, client }) => {
      const text = newText();
      const first = PROTOCOLS.find((protocol) => protocol !== client) ?? client;
      faultd.play(answer(upstream, false, rich), answer(upstream, true, rich));
      const live = await send({
        client,
        upstream,
        text,
        headers: { 'cache-control': 'no-store' },
        body: { tools: TOOLS[client] },
      });
      await send({ client: first, upstream, text, stream: true, body: { tools: TOOLS[first] } });
      const hit = await send({ client, upstream, text, body: { tools: TOOLS[client] } });
      expect([status(live), status(hit)]).toEqual(['bypass', 'hit']);
      expect(readBody(hit)).toEqual(readBody(live));
    },
  );
});

describe('tool calls', () => {
  const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }];
  const called: CanonicalResponse = {
    ...ANSWER,
    content: [{ type: 'tool_use', id: 'call_1', name: 'look', input: { a: 1 } }],
    stop_reason: 'tool_use',
  };

  test('are sent again with their ids', async () => {
    const text = newText();
    faultd.play(answer('openai-chat', true, called));
    const first = await send({ client: 'openai-chat', text, stream: true, body: { tools } });
    const second = await send({ client: 'openai-chat', text, stream: false, body: { tools } });
    expect([status(first), status(second)]).toEqual(['miss', 'hit']);
    expect(read('openai-chat', false, second).content).toMatchObject([{ type: 'tool_use', id: 'call_1', input: { a: 1 } }]);
  });
});

describe('never cached', () => {
  const cut = cutAfter('openai-chat', 'two').before.join('');
  const limited: CanonicalResponse = { ...ANSWER, stop_reason: 'max_tokens' };
  const filtered: CanonicalResponse = { ...ANSWER, stop_reason: 'content_filter' };
  const odd = framesOf('openai-chat').map((frame) => frame.replaceAll('"finish_reason":null', '"finish_reason":""'));

  test.each<[string, boolean, Script]>([
    ['an error status', false, [{ send: whole(400, '{"error":{"message":"no"}}') }]],
    ['a stream that is cut off', true, [{ send: streamHead() }, { send: chunk(cut) }, { reset: true }]],
    ['a stream without its end', true, [{ send: streamHead() }, { send: chunk(cut) }, { send: LAST_CHUNK }]],
    ['a response that reached its limit', false, answer('openai-chat', false, limited)],
    ['a response that was filtered', true, answer('openai-chat', true, filtered)],
    ['a stream that had to be repaired', true, [{ send: streamHead() }, { send: chunk(odd.join('')) }, { send: LAST_CHUNK }]],
  ])('%s', async (_, stream, script) => {
    const text = newText();
    faultd.play(script, answer('openai-chat', stream));
    const first = await send({ client: 'openai-chat', text, stream });
    const second = await send({ client: 'openai-chat', text, stream });
    expect([status(first), status(second)]).toEqual(['miss', 'miss']);
    expect(faultd.served).toHaveLength(2);
  });
});

describe('bypass', () => {
  test.each([
    ['no-cache', ['bypass', 'hit'], 1],
    ['no-store', ['bypass', 'miss'], 2],
    ['max-age=0, no-store', ['bypass', 'miss'], 2],
  ])('cache-control: %s', async (control, statuses, calls) => {
    const text = newText();
    faultd.play(answer('openai-chat', false), answer('openai-chat', false));
    const first = await send({ client: 'openai-chat', text, headers: { 'cache-control': control } });
    const second = await send({ client: 'openai-chat', text });
    expect([status(first), status(second)]).toEqual(statuses);
    expect(faultd.served).toHaveLength(calls);
  });

  test('no-cache replaces a response that is cached', async () => {
    const text = newText();
    const newer: CanonicalResponse = { ...ANSWER, content: [{ type: 'text', text: 'Newer.' }] };
    faultd.play(answer('openai-chat', false), answer('openai-chat', false, newer));
    await send({ client: 'openai-chat', text });
    await send({ client: 'openai-chat', text, headers: { 'cache-control': 'no-cache' } });
    const third = await send({ client: 'openai-chat', text });
    expect([status(third), read('openai-chat', false, third).content]).toMatchObject(['hit', [{ text: 'Newer.' }]]);
  });

  test.each([
    ['state of a server', 'openai-responses', { previous_response_id: 'resp_1' }],
    ['a response that the provider stores', 'openai-chat', { store: true }],
    ['a tool that the provider runs', 'anthropic-messages', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
  ] as const)('%s', async (_, client, body) => {
    faultd.play(answer(client, false));
    const reply = await send({ client, upstream: client, way: 'pass', text: newText(), body });
    expect([reply.status, status(reply)]).toEqual([200, 'bypass']);
  });
});

describe('settings', () => {
  const start = (cache: object | undefined, more: object = {}, clock?: TestClock): Promise<Started> =>
    startGateway({ config: { providers: providersAt(faultd), ...(cache && { cache }), ...more }, ...(clock && { clock }) });

  test('off by default: no header, and every request is sent', async () => {
    const plain = await start(undefined);
    const text = newText();
    faultd.play(answer('openai-chat', false), answer('openai-chat', false));
    const replies = [
      await send({ client: 'openai-chat', text }, plain.url),
      await send({ client: 'openai-chat', text }, plain.url),
    ];
    expect(replies.map(status)).toEqual([undefined, undefined]);
    expect(faultd.served).toHaveLength(2);
    await plain.close();
  });

  test('ttl', async () => {
    const clock = new TestClock();
    const timed = await start({ ttl: '5s' }, {}, clock);
    const text = newText();
    faultd.play(answer('openai-chat', false), answer('openai-chat', false));
    const statuses = [status(await send({ client: 'openai-chat', text }, timed.url))];
    await clock.advance(4999);
    statuses.push(status(await send({ client: 'openai-chat', text }, timed.url)));
    await clock.advance(1);
    statuses.push(status(await send({ client: 'openai-chat', text }, timed.url)));
    expect(statuses).toEqual(['miss', 'hit', 'miss']);
    await timed.close();
  });

  test('max_bytes: the least recently used response is dropped', async () => {
    const small = await start({ max_bytes: '16KiB' });
    const texts = Array.from({ length: 25 }, newText);
    faultd.play(...Array.from({ length: 26 }, () => answer('openai-chat', false)));
    const [kept = ''] = texts;
    for (const text of texts) {
      await send({ client: 'openai-chat', text }, small.url);
      expect(status(await send({ client: 'openai-chat', text: kept }, small.url))).toBe('hit');
      expect(small.services.cache?.bytes).toBeLessThanOrEqual(16 * 1024);
    }
    expect(status(await send({ client: 'openai-chat', text: texts[1] ?? '' }, small.url))).toBe('miss');
    await small.close();
  });

  test('models: patterns of names select what is cached', async () => {
    const some = await start({ models: ['pass-*'] });
    const text = newText();
    faultd.play(answer('openai-chat', false), answer('openai-chat', false));
    expect(status(await send({ client: 'openai-chat', text, way: 'mend' }, some.url))).toBeUndefined();
    expect(status(await send({ client: 'openai-chat', text, way: 'pass' }, some.url))).toBe('miss');
    await some.close();
  });

  test.each([
    ['key', ['miss', 'miss', 'hit']],
    ['shared', ['miss', 'hit', 'hit']],
  ])('scope: %s', async (scope, statuses) => {
    const keys = ['sk-first-0123456789abcdef', 'sk-second-0123456789abcdef'] as const;
    const scoped = await start({ scope }, { auth: { keys } });
    const text = newText();
    faultd.play(answer('openai-chat', false), answer('openai-chat', false));
    const found: unknown[] = [];
    for (const key of [keys[0], keys[1], keys[0]])
      found.push(status(await send({ client: 'openai-chat', text, headers: { authorization: `Bearer ${key}` } }, scoped.url)));
    expect(found).toEqual(statuses);
    await scoped.close();
  });

  test('another model, provider or beta header is another request', async () => {
    const text = newText();
    faultd.play(...Array.from({ length: 4 }, () => answer('anthropic-messages', false)));
    const base = { client: 'anthropic-messages', upstream: 'anthropic-messages', text } as const;
    const replies = [
      await send(base),
      await send({ ...base, body: { model: 'mend-anthropic-messages/other' } }),
      await send({ ...base, way: 'pass' }),
      await send({ ...base, headers: { 'anthropic-beta': 'context-1m-2025-08-07' } }),
    ];
    expect(replies.map(status)).toEqual(['miss', 'miss', 'miss', 'miss']);
  });
});

describe('the digest of a request', () => {
  const canonical = (protocol: ProtocolId, stream = false): CanonicalRequest => {
    const { path, body } = REQUESTS[protocol]('m', 'hi', stream);
    return decodeRequest(body, { from: CODECS[protocol], path, headers: {} });
  };

  test('is the same in every protocol, and for streams', () => {
    const digests = PROTOCOLS.flatMap((protocol) => [true, false].map((stream) => digestRequest(canonical(protocol, stream))));
    expect(new Set(digests).size).toBe(1);
  });

  const text = fc.string({ maxLength: 5 });
  const block = fc.oneof(
    fc.record({ type: fc.constant('text' as const), text }),
    fc.record({
      type: fc.constant('tool_use' as const),
      id: text,
      name: text,
      input: fc.dictionary(text, fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<unknown>, { maxKeys: 2 }),
    }),
    fc.record({ type: fc.constant('tool_result' as const), tool_use_id: text, content: text }),
    fc.record({ type: fc.constant('thinking' as const), thinking: text }),
    fc.record({ type: fc.constant('image' as const), source: fc.record({ type: fc.constant('url' as const), url: text }) }),
  );
  const optional: { requiredKeys: [] } = { requiredKeys: [] };
  const request = fc.record(
    {
      model: fc.constant('m'),
      system: fc.array(fc.record({ type: fc.constant('text' as const), text }), { minLength: 1, maxLength: 2 }),
      messages: fc.array(
        fc.record({ role: fc.constantFrom('user', 'assistant', 'tool'), content: fc.array(block, { maxLength: 3 }) }),
        { maxLength: 3 },
      ),
      tools: fc.array(
        fc.record({ name: text, description: text, input_schema: fc.dictionary(text, text, { maxKeys: 2 }) }, optional),
        { minLength: 1, maxLength: 2 },
      ),
      tool_choice: fc.constantFrom({ type: 'auto' }, { type: 'any' }, { type: 'none' }, { type: 'tool', name: 'f' }),
      parameters: fc.record(
        {
          max_tokens: fc.nat(3),
          temperature: fc.constantFrom(0, 0.5, 1),
          top_p: fc.constantFrom(0.1, 1),
          top_k: fc.nat(3),
          seed: fc.nat(3),
          n: fc.nat(3),
          stop_sequences: fc.array(text, { maxLength: 2 }),
          logprobs: fc.boolean(),
          logit_bias: fc.dictionary(text, fc.nat(2), { maxKeys: 2 }),
        },
        optional,
      ),
      output_format: fc.constantFrom(
        { type: 'json_object' },
        { type: 'json_schema', json_schema: { schema: { properties: { a: 1, b: 2 } } } },
        { type: 'json_schema', json_schema: { schema: { properties: { b: 2, a: 1 } } } },
      ),
      parallel_tool_use: fc.boolean(),
      thinking: fc.record({ type: fc.constantFrom('enabled', 'disabled'), budget_tokens: fc.nat(3) }, optional),
      service_tier: fc.constantFrom('flex', 'priority'),
      verbosity: fc.constantFrom('low', 'high'),
      extensions: fc.constantFrom({ 'openai-chat': { prediction: 'a' } }, { gemini: { safetySettings: ['b'] } }),
    },
    { requiredKeys: ['model', 'messages', 'parameters'] },
  ) as unknown as fc.Arbitrary<CanonicalRequest>; // a part of all requests
  const delivery = fc.record(
    {
      stream: fc.boolean(),
      user_id: text,
      metadata: fc.dictionary(text, text),
      prompt_cache: fc.record({ key: text }),
      model: text,
    },
    optional,
  );

  test('differs when any field differs that the response depends on', () => {
    fc.assert(
      fc.property(request, request, (a, b) => {
        // The generator makes nothing that the digest may ignore, except for the order of fields of the request.
        const isSame = JSON.stringify(sortFields(a)) === JSON.stringify(sortFields(b));
        expect(digestRequest(a) === digestRequest(b)).toBe(isSame);
      }),
      { numRuns: 1000 },
    );
  });

  test('differs when one field of a request is changed or removed', () => {
    fc.assert(
      fc.property(request, request, fc.nat(), (a, b, pick) => {
        const names = Object.keys(a).filter((name) => name !== 'model') as (keyof CanonicalRequest)[]; // keys of a request
        const name = names[pick % names.length] ?? 'messages';
        const changed = { ...a, [name]: b[name] } as CanonicalRequest; // a field of the same kind
        const isSame = JSON.stringify(sortFields(a)) === JSON.stringify(sortFields(changed));
        expect(digestRequest(a) === digestRequest(changed)).toBe(isSame);
      }),
      { numRuns: 1000 },
    );
  });

  test('does not depend on how the response is delivered', () => {
    fc.assert(
      fc.property(request, delivery, (a, how) => {
        expect(digestRequest({ ...a, ...how } as CanonicalRequest)).toBe(digestRequest(a)); // optional fields
      }),
      { numRuns: 500 },
    );
  });

  test('arguments with a number that is too long for JSON are not equal', () => {
    const call = (raw: string): CanonicalRequest => ({
      model: 'm',
      parameters: {},
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: JSON.parse(raw), input_raw: raw }] },
      ],
    });
    expect(digestRequest(call('{"a":9007199254740993}'))).not.toBe(digestRequest(call('{"a":9007199254740992}')));
    expect(digestRequest(call('{"a":1}'))).toBe(
      digestRequest({
        ...call('{"a":1}'),
        messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: { a: 1 } }] }],
      }),
    );
  });
});

/** The same fields in the same order, as far as decoders may differ: those of the request, its parameters and blocks. */
function sortFields(value: unknown, isVerbatim = false): unknown {
  if (Array.isArray(value)) return value.map((item) => sortFields(item, isVerbatim));
  if (typeof value !== 'object' || value === null || isVerbatim) return value;
  const names = Object.keys(value).toSorted();
  const fields = value as Record<string, unknown>; // any object
  return names
    .filter((name) => fields[name] !== undefined)
    .map((name) => [name, sortFields(fields[name], CLIENT_JSON.has(name))]);
}

const CLIENT_JSON = new Set(['input_schema', 'schema', 'input', 'logit_bias']);

test('a hit names the model as a miss does', async () => {
  const config = { providers: providersAt(faultd), model_in_answer: 'answered', cache: { ttl: '1h' } };
  const naming = await startGateway({ config });
  try {
    for (const client of PROTOCOLS) {
      const text = newText();
      faultd.play(answer('openai-chat', false));
      const replies = [await send({ client, text }, naming.url), await send({ client, text }, naming.url)];
      expect(replies.map(status)).toEqual(['miss', 'hit']);
      const [miss, hit] = replies.map(({ body }) => readWhole(client, body).model);
      expect([client, hit]).toEqual([client, miss]);
      expect(miss).toBe(ANSWER.model);
    }
  } finally {
    await naming.close();
  }
});
