import { describe, expect, test } from 'vitest';
import {
  collectStream,
  convertEmbeddingsResponse,
  convertResponse,
  PROTOCOLS,
  type ProtocolId,
  replayResponse,
} from '../../src/index.ts';

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
    expect(unknown(replayResponse(body, { from, to }).notes).toSorted()).toEqual(to === from ? [] : told.toSorted());
  });

  test('nothing is refused for it', () => {
    const to = from === 'openai-chat' ? 'anthropic-messages' : 'openai-chat';
    expect(() => convertResponse(body, { from, to, policy: { strict: true } })).not.toThrow();
  });
});

test('a stream that is collected tells the same', () => {
  const chunk = { id: 'c', choices: [{ index: 0, delta: { content: 'hi' }, finish_reason: 'stop' }], x_groq: { id: 'r' } };
  const bytes = new TextEncoder().encode(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
  const { notes } = collectStream([bytes], { from: 'openai-chat', to: 'gemini' });
  expect(unknown(notes)).toEqual(['/extensions/openai-chat/x_groq']);
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
  const { notes } = convertEmbeddingsResponse(body, { from, to, policy: { strict: true } });
  expect(unknown(notes)).toEqual(told);
});
