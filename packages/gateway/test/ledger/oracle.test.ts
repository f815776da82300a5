import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cutAfter, errorFrames, errorOf, TEXT } from '../gateway/dialects.ts';
import type { Script } from '../gateway/faultd.ts';
import { chunk, head, streamHead, whole } from '../gateway/http.ts';
import { modelOf, PAIRS, type Pair, sparedModelOf, waysOf } from '../gateway/pairs.ts';
import { RawClient, requestText } from '../gateway/raw-client.ts';
import { ask } from '../gateway/start.ts';
import { ALL_PAIRS, type ExpectedExchange, expectFields, expectRow, Rig } from './rig.ts';

// The ledger equals what the upstreams themselves have logged, whatever happens to a request.

let rig: Rig;
/** For upstreams that do not respond in time. */
let impatient: Rig;

beforeAll(async () => {
  rig = await Rig.start();
  impatient = await Rig.start({ limits: { first_event_timeout: '100ms', idle_timeout: '100ms', response_timeout: '100ms' } });
});

afterAll(async () => {
  await rig.expectRollups();
  await rig.stop();
  await impatient.stop();
});

const ANSWERED = { status: 200, ending: 'answered' } as const;

describe.each(waysOf(ALL_PAIRS))('$name', ({ pair, stream }) => {
  const send = (model = modelOf(pair)) => ask(rig.gateway.url, { client: pair.client, model, stream });

  test('a completed request has one row with the reported usage', async () => {
    rig.first.play(rig.good(pair, stream));
    const reply = await send();
    const row = await rig.takeRow();
    expectRow(row, rig.takeLog(), { ...ANSWERED, attempts: [{ ending: 'answered' }] });
    expectFields(row.exchange, 'exchange', {
      request_id: reply.headers['x-sluice-request-id'],
      client_protocol: pair.client,
      upstream_protocol: pair.upstream,
      provider: modelOf(pair).split('/')[0],
      model: 'm',
      model_requested: modelOf(pair),
      model_answered: 'm',
      is_stream: stream,
      endpoint: 'chat',
    });
    expect(row.exchange.first_token_ms).not.toBeNull();
    expect(row.exchange.connect_ms).not.toBeNull();
  });

  test('every retry and the fallback has its row', async () => {
    const failing: Script = [
      rig.note('first', { status: 500 }),
      { send: whole(500, errorOf(pair.upstream, { code: 'UPSTREAM_ERROR', message: 'no', http_status: 500 }).body) },
    ];
    rig.first.play(failing);
    rig.second.play(rig.good(pair, stream, 'second'));
    await send(sparedModelOf(pair));
    const row = await rig.takeRow();
    const log = rig.takeLog();
    expectRow(row, log, { ...ANSWERED, attempts: [{ ending: 'upstream_error' }, { ending: 'answered' }] });
    expect(row.attempts.map(({ provider }) => provider)).toEqual([modelOf(pair).split('/')[0], `spare-${pair.upstream}`]);

    rig.first.play(failing, failing, rig.good(pair, stream));
    await send();
    expectRow(await rig.takeRow(), rig.takeLog(), {
      ...ANSWERED,
      attempts: [{ ending: 'upstream_error' }, { ending: 'upstream_error' }, { ending: 'answered' }],
    });
  });
});

const BEGUN = 'two';

/** The beginning of a stream, up to its second word. */
const begun = ({ upstream }: Pair): Script => [
  { send: streamHead() },
  { send: chunk(cutAfter(upstream, BEGUN).before.join('')) },
];

const refused = ({ upstream }: Pair, status: number, code: 'INVALID_INPUT' | 'RATE_LIMIT' | 'AUTHENTICATION'): Script => [
  rig.note('first', { status }),
  { send: whole(status, errorOf(upstream, { code, message: 'no', http_status: status }).body, { 'retry-after': '3600' }) },
];

interface Fault {
  name: string;
  script: (pair: Pair, at: Rig) => Script;
  isTimeout?: boolean;
  only?: 'stream' | 'whole';
  expected: (pair: Pair, stream: boolean) => ExpectedExchange;
}

const thrice = (attempt: ExpectedExchange['attempts'][number]) => [attempt, attempt, attempt];

/** Ended by a fault after content: nothing is estimated, because the upstream failed. */
const FAULTS: readonly Fault[] = [
  {
    name: 'a refusal',
    script: (pair) => refused(pair, 400, 'INVALID_INPUT'),
    expected: () => ({ status: 400, ending: 'upstream_error', attempts: [{ ending: 'upstream_error', status: 400 }] }),
  },
  {
    name: 'a rate limit that is too long to wait for',
    script: (pair) => refused(pair, 429, 'RATE_LIMIT'),
    expected: () => ({ status: 429, ending: 'upstream_error', attempts: [{ ending: 'upstream_error', status: 429 }] }),
  },
  {
    name: 'no response in time',
    isTimeout: true,
    script: (_, at) => [at.note('first', {}), { hang: true }],
    only: 'stream',
    expected: () => ({ status: 504, ending: 'timeout', attempts: [{ ending: 'timeout', status: null, possiblyBilled: true }] }),
  },
  {
    name: 'silence after the headers',
    isTimeout: true,
    script: (_, at) => [at.note('first', {}), { send: streamHead() }, { hang: true }],
    only: 'stream',
    expected: () => ({ status: 504, ending: 'timeout', attempts: [{ ending: 'timeout', status: 200, possiblyBilled: true }] }),
  },
  {
    name: 'silence in the stream',
    isTimeout: true,
    script: (pair, at) => [at.note('first', {}), ...begun(pair), { hang: true }],
    only: 'stream',
    expected: () => ({ status: 200, ending: 'timeout', attempts: [{ ending: 'timeout', status: 200, possiblyBilled: true }] }),
  },
  {
    name: 'an error in place of content',
    script: ({ upstream }) => [
      rig.note('first', {}),
      { send: streamHead() },
      { send: chunk(errorFrames(upstream, { code: 'OVERLOADED', message: 'busy', http_status: 529 })) },
      { send: '0\r\n\r\n' },
    ],
    only: 'stream',
    expected: (pair) => ({
      status: pair.client === 'anthropic-messages' ? 529 : 503,
      ending: 'upstream_error',
      attempts: thrice({ ending: 'upstream_error', status: 200 }),
    }),
  },
  {
    name: 'an error in the stream',
    script: (pair) => [
      rig.note('first', {}),
      ...begun(pair),
      { send: chunk(errorFrames(pair.upstream, { code: 'OVERLOADED', message: 'busy', http_status: 529 })) },
      { send: '0\r\n\r\n' },
    ],
    only: 'stream',
    expected: () => ({
      status: 200,
      ending: 'upstream_error',
      attempts: [{ ending: 'upstream_error', status: 200, possiblyBilled: true }],
    }),
  },
  {
    name: 'a stream that ends early',
    script: (pair) => [rig.note('first', {}), ...begun(pair), { send: '0\r\n\r\n' }],
    only: 'stream',
    expected: () => ({
      status: 200,
      ending: 'upstream_truncated',
      attempts: [{ ending: 'upstream_truncated', status: 200, possiblyBilled: true }],
    }),
  },
  {
    name: 'a connection that breaks in the stream',
    script: (pair) => [rig.note('first', {}), ...begun(pair), { wait: 20 }, { reset: true }],
    only: 'stream',
    expected: () => ({
      status: 200,
      ending: 'upstream_error',
      attempts: [{ ending: 'upstream_error', status: 200, possiblyBilled: true }],
    }),
  },
  {
    name: 'half a response',
    script: () => [rig.note('first', {}), { send: head(200, { 'content-length': '99' }) }, { send: '{' }, { fin: true }],
    only: 'whole',
    expected: () => ({
      status: 502,
      ending: 'upstream_error',
      attempts: thrice({ ending: 'upstream_error', status: 200, possiblyBilled: true }),
    }),
  },
  {
    name: 'a page in place of a response',
    script: () => [rig.note('first', {}), { send: whole(200, '<html>hello</html>', { 'content-type': 'text/html' }) }],
    expected: () => ({
      status: 502,
      ending: 'upstream_error',
      attempts: [{ ending: 'upstream_error', status: 200, possiblyBilled: true }],
    }),
  },
];

describe.each(FAULTS)('$name', ({ script, only, isTimeout, expected }) => {
  const ways = waysOf(PAIRS).filter(({ stream }) => only === undefined || stream === (only === 'stream'));
  test.each(ways)('$name', async ({ pair, stream }) => {
    const at = isTimeout ? impatient : rig;
    at.first.play(script(pair, at));
    await ask(at.gateway.url, { client: pair.client, model: modelOf(pair), stream });
    const row = await at.takeRow();
    const log = at.takeLog();
    expect(log.length, 'requests at the upstream').toBe(row.attempts.length);
    expectRow(row, log, expected(pair, stream));
  });
});

test.each(waysOf(PAIRS))('a repeat on a stale connection is a second attempt: $name', async ({ pair, stream }) => {
  rig.first.dropConnections();
  rig.first.play(rig.good(pair, stream), [rig.note('first', {}), { reset: true }], rig.good(pair, stream));
  const asking = { client: pair.client, model: modelOf(pair), stream };
  await ask(rig.gateway.url, asking);
  await rig.takeRow();
  rig.takeLog();
  await ask(rig.gateway.url, asking);
  expectRow(await rig.takeRow(), rig.takeLog(), {
    ...ANSWERED,
    attempts: [{ ending: 'upstream_error', status: null, possiblyBilled: true }, { ending: 'answered' }],
  });
});

test.each(PAIRS)('a stream without usage is estimated: $name', async (pair) => {
  const frames = cutAfter(pair.upstream, 'five')
    .before.concat(cutAfter(pair.upstream, 'five').after)
    .join('')
    .replace(/,"usage":\{[^{}]*(\{[^{}]*\}[^{}]*)*\}/g, '')
    .replace(/,"usageMetadata":\{[^{}]*\}/g, '');
  rig.first.play([rig.note('first', { status: 200 }), { send: streamHead() }, { send: chunk(frames) }, { send: '0\r\n\r\n' }]);
  await ask(rig.gateway.url, { client: pair.client, model: modelOf(pair), stream: true });
  const row = await rig.takeRow();
  rig.takeLog();
  expectFields(row.exchange, 'exchange', { ending: 'answered', provenance: 'estimated', possibly_billed: true });
  expect(row.exchange.output_tokens).toBe(Math.ceil(TEXT.length / 4));
  expect(row.exchange.input_tokens).toBeGreaterThan(0);
});

describe('requests that reach no upstream have one row without attempts', () => {
  const REFUSED: readonly (readonly [string, string, number, string])[] = [
    ['an unknown model', requestText('POST', '/v1/chat/completions', {}, '{"model":"none/x","messages":[]}'), 404, 'refused'],
    ['a body that is no JSON', requestText('POST', '/v1/chat/completions', {}, '{'), 400, 'refused'],
    ['the wrong method', requestText('GET', '/v1/chat/completions'), 405, 'refused'],
    ['an unknown path', requestText('GET', '/v1/nothing-of-the-kind'), 404, 'refused'],
  ];
  test.each(REFUSED)('%s', async (_, text, status, ending) => {
    rig.first.play([]);
    rig.second.play([]);
    const client = await RawClient.open(rig.gateway.url);
    expect((await client.send(text).reply()).status).toBe(status);
    client.leave();
    expectRow(await rig.takeRow(), [], { status, ending, attempts: [] });
    expect(rig.served).toEqual([]);
  });

  test('a request that the target cannot express', async () => {
    rig.first.play([]);
    rig.second.play([]);
    const body = { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'x' } }] }] };
    await ask(rig.gateway.url, { client: 'openai-chat', model: 'mend-gemini/m', stream: false, body });
    const row = await rig.takeRow();
    expect(rig.served.length).toBe(row.attempts.length);
    expect(row.exchange.attempts).toBe(row.attempts.length);
  });
});

test('connections that are refused are attempts that cannot be billed', async () => {
  const closed = await Rig.start();
  await closed.first.stop();
  await ask(closed.gateway.url, { client: 'openai-chat', model: 'mend-openai-chat/m', stream: false });
  expectRow(await closed.takeRow(), [], {
    status: 502,
    ending: 'upstream_error',
    attempts: thrice({ ending: 'upstream_error', status: null }),
  });
  await closed.gateway.close();
  await closed.second.stop();
  await closed.store.close();
});

describe('endpoints beside chat', () => {
  const post = async (path: string, body: object, method = 'POST'): Promise<number> => {
    const client = await RawClient.open(rig.gateway.url);
    const text = method === 'POST' ? JSON.stringify(body) : '';
    const version = path.includes('/messages') ? { 'anthropic-version': '2023-06-01' } : {};
    const reply = await client.send(requestText(method, path, { connection: 'close', ...version }, text)).reply();
    client.leave();
    return reply.status;
  };

  test('counting tokens is an attempt without usage', async () => {
    rig.first.play([rig.note('first', { status: 200 }), { send: whole(200, '{"input_tokens":42}') }]);
    const body = { model: 'mend-anthropic-messages/m', messages: [{ role: 'user', content: 'x' }] };
    expect(await post('/v1/messages/count_tokens', body)).toBe(200);
    const row = await rig.takeRow();
    expectRow(row, rig.takeLog(), { ...ANSWERED, attempts: [{ ending: 'answered' }] });
    expect(row.exchange.endpoint).toBe('count_tokens');
  });

  test('counting tokens without an upstream for it has no attempt', async () => {
    rig.first.play([]);
    const body = { model: 'mend-openai-chat/m', messages: [{ role: 'user', content: 'x' }] };
    expect(await post('/v1/messages/count_tokens', body)).toBe(200);
    expectRow(await rig.takeRow(), [], { ...ANSWERED, attempts: [] });
  });

  test.each(['mend', 'pass'])('embeddings have their reported usage (%s)', async (way) => {
    const usage = { input_tokens: 17, output_tokens: 0 };
    const body = { object: 'list', model: 'm', data: [{ object: 'embedding', index: 0, embedding: [0.5] }] };
    const sent = JSON.stringify({ ...body, usage: { prompt_tokens: 17, total_tokens: 17 } });
    rig.first.play([rig.note('first', { status: 200, usage }), { send: whole(200, sent) }]);
    expect(await post('/v1/embeddings', { model: `${way}-openai-chat/m`, input: 'x' })).toBe(200);
    const row = await rig.takeRow();
    expectRow(row, rig.takeLog(), { ...ANSWERED, attempts: [{ ending: 'answered' }] });
    expect(row.exchange.endpoint).toBe('embeddings');
  });

  test('a ranking may be billed, because it reports no tokens', async () => {
    rig.first.play([
      rig.note('first', { status: 200 }),
      { send: whole(200, '{"id":"r","results":[{"index":0,"relevance_score":0.5}]}') },
    ]);
    expect(await post('/v1/rerank', { model: 'mend-openai-chat/m', query: 'x', documents: ['a'] })).toBe(200);
    expectRow(await rig.takeRow(), rig.takeLog(), { ...ANSWERED, attempts: [{ ending: 'answered', possiblyBilled: true }] });
  });

  test('bytes that are passed on have a row, which may be billed', async () => {
    rig.first.play([rig.note('first', { status: 200 }), { send: whole(200, '{"any":"thing"}') }]);
    expect(await post('/v1/moderations', { model: 'pass-openai-chat/m', input: 'x' })).toBe(200);
    const row = await rig.takeRow();
    expectRow(row, rig.takeLog(), { ...ANSWERED, attempts: [{ ending: 'answered', possiblyBilled: true }] });
    expect(row.exchange.endpoint).toBe('passthrough');
  });

  test.each(['GET', 'HEAD'])('%s costs nothing', async (method) => {
    rig.first.play([
      rig.note('first', { status: 200 }),
      { send: method === 'HEAD' ? head(200, { 'content-length': '2' }) : whole(200, '{}') },
    ]);
    await post('/v1/files', {}, method);
    expectRow(await rig.takeRow(), rig.takeLog(), { ...ANSWERED, attempts: [{ ending: 'answered' }] });
  });

  test('a refusal of passed bytes', async () => {
    rig.first.play([rig.note('first', { status: 403 }), { send: whole(403, '{"error":{"message":"no"}}') }]);
    expect(await post('/v1/moderations', { model: 'pass-openai-chat/m', input: 'x' })).toBe(403);
    expectRow(await rig.takeRow(), rig.takeLog(), {
      status: 403,
      ending: 'upstream_error',
      attempts: [{ ending: 'upstream_error' }],
    });
  });
});
