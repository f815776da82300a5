import { describe, expect, test } from 'vitest';
import { CODECS, convertEmbeddingsResponse, convertResponseToStream, convertStreamToResponse } from '../../src/engine/index.ts';
import { convertResponse, createStreamConverter, PROTOCOLS, type ProtocolId } from '../../src/index.ts';

type Json = Record<string, unknown>;

const IDS = Object.keys(PROTOCOLS) as ProtocolId[]; // the keys of a record closed by its type

const chat = (over: Json = {}, choice: Json = {}, message: Json = {}): Json => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi', ...message }, finish_reason: 'stop', ...choice }],
  ...over,
});
const claude = (over: Json = {}): Json => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'hi' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
  ...over,
});
const responses = (over: Json = {}, item: Json = {}): Json => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  temperature: 1,
  tools: [],
  text: { format: { type: 'text' } },
  output: [
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'hi', annotations: [] }],
      ...item,
    },
  ],
  ...over,
});
const google = (over: Json = {}, candidate: Json = {}, part: Json = {}): Json => ({
  responseId: 'r',
  modelVersion: 'm',
  createTime: '2026-01-01T00:00:00Z',
  candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'hi', ...part }] }, finishReason: 'STOP', ...candidate }],
  ...over,
});

interface Row {
  name: string;
  from: ProtocolId;
  body: Json;
  told: string[];
}

const ROWS: Row[] = [
  { name: 'nothing', from: 'openai-chat', body: chat(), told: [] },
  {
    name: 'fields around the choices',
    from: 'openai-chat',
    body: chat({ x_groq: { id: 'r' } }),
    told: ['/extensions/openai-chat/x_groq'],
  },
  {
    name: 'of the choice and its message',
    from: 'openai-chat',
    body: chat({}, { native_finish_reason: 'STOP' }, { 'a/b': 1 }),
    told: ['/extensions/openai-chat/choice/native_finish_reason', '/extensions/openai-chat/message/a~1b'],
  },
  {
    name: 'of a call',
    from: 'openai-chat',
    body: chat({}, {}, { tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' }, rank: 1 }] }),
    told: ['/content/1/extensions/openai-chat/rank'],
  },
  { name: 'nothing', from: 'anthropic-messages', body: claude(), told: [] },
  {
    name: 'fields of the message',
    from: 'anthropic-messages',
    body: claude({ container: { id: 'c' } }),
    told: ['/extensions/anthropic-messages/container'],
  },
  {
    name: 'of blocks, once',
    from: 'anthropic-messages',
    body: claude({ content: ['a', 'b'].map((text) => ({ type: 'text', text, tone: 'dry' })) }),
    told: ['/content/0/extensions/anthropic-messages/tone'],
  },
  { name: 'what repeats the question is no loss', from: 'openai-responses', body: responses(), told: [] },
  {
    name: 'fields of the response and of an item',
    from: 'openai-responses',
    body: responses({ billing: { payer: 'developer' } }, { phase: 'commentary' }),
    told: ['/extensions/openai-responses/billing', '/content/0/extensions/openai-responses/phase'],
  },
  { name: 'nothing', from: 'gemini', body: google(), told: [] },
  {
    name: 'fields of the response, of the candidate, of a part',
    from: 'gemini',
    body: google({ turnToken: 't' }, { avgLogprobs: -1, groundingMetadata: { webSearchQueries: ['q'] } }, { mood: 'dry' }),
    told: [
      '/extensions/gemini/turnToken',
      '/extensions/gemini/avgLogprobs',
      '/extensions/gemini/groundingMetadata/webSearchQueries',
      '/content/0/extensions/gemini/mood',
    ],
  },
];

const unknown = (notes: readonly { code: string; path: string; feature: string }[]): string[] =>
  notes.flatMap(({ code, path, feature }) => (code === 'DROPPED' && feature.startsWith('unknown.') ? [path] : []));

describe.each(ROWS)('$from: $name', ({ from, body, told }) => {
  test.each(IDS)('to %s', (to) => {
    expect(unknown(convertResponse(body, { from, to }).notes).toSorted()).toEqual(to === from ? [] : told.toSorted());
    expect(unknown(convertResponseToStream(body, { from: CODECS[from], to: CODECS[to] }).notes).toSorted()).toEqual(
      to === from ? [] : told.toSorted(),
    );
  });

  test('nothing is refused for it', () => {
    const to = from === 'openai-chat' ? 'anthropic-messages' : 'openai-chat';
    expect(() => convertResponse(body, { from, to, policy: { strict: true } })).not.toThrow();
  });
});

const framesOf = (...payloads: Json[]): Uint8Array =>
  new TextEncoder().encode(payloads.map((payload) => `event: ${payload['type']}\ndata: ${JSON.stringify(payload)}\n\n`).join(''));

interface StreamRow {
  from: ProtocolId;
  bytes: Uint8Array;
  told: string[];
}

const STREAMS: StreamRow[] = [
  {
    from: 'openai-chat',
    bytes: framesOf(
      { id: 'c', choices: [{ index: 0, delta: { content: 'hi' }, finish_reason: null, mood: 'dry' }], x_groq: { id: 'r' } },
      { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], x_groq: { id: 'r' } },
    ),
    told: ['/extensions/openai-chat/choice/mood', '/extensions/openai-chat/x_groq'],
  },
  {
    from: 'anthropic-messages',
    bytes: framesOf(
      { type: 'message_start', message: { ...claude({ container: { id: 'c' } }), content: [], stop_reason: null } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'hi', tone: 'dry' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ),
    told: ['/content/0/extensions/anthropic-messages/tone', '/extensions/anthropic-messages/container'],
  },
  {
    from: 'openai-responses',
    bytes: framesOf({ type: 'response.completed', response: responses({ billing: { payer: 'developer' } }) }),
    told: ['/extensions/openai-responses/billing'],
  },
  {
    from: 'gemini',
    bytes: framesOf(google({ turnToken: 't' }, {}, { mood: 'dry' })),
    told: ['/content/0/extensions/gemini/mood', '/extensions/gemini/turnToken'],
  },
];

describe.each(STREAMS)('a stream of $from', ({ from, bytes, told }) => {
  test.each(IDS)('tells the same, collected or live, to %s', (to) => {
    const want = to === from ? [] : told;
    expect(unknown(convertStreamToResponse([bytes], { from: CODECS[from], to: CODECS[to] }).notes).toSorted()).toEqual(want);
    const live = createStreamConverter({ from: CODECS[from], to: CODECS[to] });
    expect([...live.push(bytes), ...live.end()].length).toBeGreaterThan(0);
    expect(unknown(live.notes).toSorted()).toEqual(want);
  });
});

test('a fingerprint that somebody else has reaches OpenAI Chat', () => {
  const { body, notes } = convertResponse(responses({ system_fingerprint: 'fp_1' }), {
    from: 'openai-responses',
    to: 'openai-chat',
  });
  expect(body).toMatchObject({ system_fingerprint: 'fp_1' });
  expect(notes.filter(({ code }) => code === 'DROPPED')).toEqual([]);
});

test.each(IDS)('the fingerprint of a system is lost to %s, and told', (to) => {
  const body = chat({ system_fingerprint: 'fp_1' });
  const fingerprints = (notes: readonly { feature: string }[]) => notes.filter(({ feature }) => feature === 'system_fingerprint');
  const want = to === 'openai-chat' ? [] : [{ code: 'DROPPED', path: '/system_fingerprint' }];
  expect(fingerprints(convertResponse(body, { from: 'openai-chat', to }).notes)).toMatchObject(want);
  const live = createStreamConverter({ from: CODECS['openai-chat'], to: CODECS[to] });
  const chunk = { id: 'c', system_fingerprint: 'fp_1', choices: [{ index: 0, delta: { content: 'hi' }, finish_reason: 'stop' }] };
  expect([...live.push(framesOf(chunk)), ...live.end()].length).toBeGreaterThan(0);
  expect(fingerprints(live.notes)).toMatchObject(want);
});

test.each<[name: string, from: ProtocolId, to: ProtocolId, body: Json, told: string[]]>([
  [
    'around the embeddings, and of what they cost',
    'openai-chat',
    'gemini',
    {
      object: 'list',
      data: [{ index: 0, embedding: [1] }],
      model: 'm',
      usage: { prompt_tokens: 1, total_tokens: 1, cost: 2 },
      id: 'e',
    },
    ['/extensions/openai-chat/id', '/extensions/openai-chat/usage/cost'],
  ],
  [
    'of the entries, once',
    'gemini',
    'openai-chat',
    {
      embeddings: [{ values: [1] }, { values: [2], statistics: { truncated: true } }, { values: [3], statistics: {} }],
      usageMetadata: { promptTokenCount: 1, trafficType: 'ON_DEMAND' },
    },
    ['/extensions/gemini/usageMetadata/trafficType', '/data/1/extensions/gemini/statistics'],
  ],
  ['nothing', 'gemini', 'gemini', { embedding: { values: [1] }, mood: 'dry' }, []],
])('embeddings: %s', (_, from, to, body, told) => {
  const { notes } = convertEmbeddingsResponse(body, { from: CODECS[from], to: CODECS[to], policy: { strict: true } });
  expect(unknown(notes)).toEqual(told);
});
