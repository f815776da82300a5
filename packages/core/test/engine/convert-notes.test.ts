import { describe, expect, test } from 'vitest';
import { CODECS, convertEmbeddingsRequest } from '../../src/engine/index.ts';
import { type CodecError, convertRequest, type ProtocolId } from '../../src/index.ts';

type Json = Record<string, unknown>;

const MODELS = {
  'openai-chat': { provider: 'openai', model: 'gpt-5.6' },
  'anthropic-messages': { provider: 'anthropic', model: 'claude-opus-5' },
  'openai-responses': { provider: 'openai', model: 'gpt-5.6' },
  gemini: { provider: 'google', model: 'gemini-3-pro' },
} satisfies Record<ProtocolId, Json>;

const USER = { role: 'user', content: 'hi' };
const chat = (over: Json): Json => ({ model: 'm', max_completion_tokens: 99, messages: [USER], ...over });
const claude = (over: Json): Json => ({ model: 'm', max_tokens: 9000, messages: [USER], ...over });
const responses = (over: Json): Json => ({ model: 'm', max_output_tokens: 99, input: 'hi', ...over });
const google = (over: Json): Json => ({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }], ...over });

/** What the model calls, and what the user answers. */
const answered = (answer: Json): Json[] => [
  { role: 'model', parts: [{ functionCall: { id: 'c', name: 'f', args: {} } }] },
  { role: 'user', parts: [{ functionResponse: { id: 'c', name: 'f', ...answer } }] },
];

interface Row {
  name: string;
  from: ProtocolId;
  to: ProtocolId;
  body: Json;
  /** Another model than the usual one there. */
  model?: string;
  /** What of the result counts. */
  sends?: Json;
  told: string[];
}

const rows: Row[] = [
  {
    name: 'a field with an old name stands where the body says it',
    from: 'openai-chat',
    to: 'openai-responses',
    body: { model: 'm', messages: [USER], max_tokens: 5 },
    told: ['CLAMPED /max_tokens'],
  },
  {
    name: 'the id of a user: the new name counts, and the old one is lost',
    from: 'openai-chat',
    to: 'gemini',
    body: chat({ user: 'a', safety_identifier: 'b' }),
    told: ['DROPPED /user', 'DROPPED /safety_identifier'],
  },
  {
    name: 'the id of a user under its old name',
    from: 'openai-responses',
    to: 'gemini',
    body: responses({ user: 'a' }),
    told: ['DROPPED /user'],
  },
  {
    name: 'the name of a file, which may still tell its type',
    from: 'openai-chat',
    to: 'gemini',
    body: chat({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'hi' },
            { type: 'file', file: { filename: 'a.csv', file_data: 'data:;base64,YQ==' } },
          ],
        },
      ],
    }),
    sends: {
      contents: [{ role: 'user', parts: [{ text: 'hi' }, { inlineData: { mimeType: 'text/csv', data: 'YQ==' } }] }],
    },
    told: ['DROPPED /messages/0/content/1/file/filename'],
  },
  {
    name: 'the name of a file in the result of a tool',
    from: 'openai-responses',
    to: 'gemini',
    body: responses({
      input: [
        { role: 'user', content: 'hi' },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        {
          type: 'function_call_output',
          call_id: 'c',
          output: [{ type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0x' }],
        },
      ],
    }),
    model: 'gemini-2.5-flash',
    told: ['DROPPED /input/2/output/0/filename'],
  },
  {
    name: 'thinking in the words of another vendor',
    from: 'openai-chat',
    to: 'openai-responses',
    model: 'gpt-4o',
    body: chat({ thinking: { type: 'enabled' } }),
    told: ['DROPPED /thinking'],
  },
  {
    name: 'a model that does not think is not told how much',
    from: 'openai-responses',
    to: 'openai-chat',
    model: 'gpt-4.1',
    body: responses({ reasoning: { effort: 'high' } }),
    sends: { reasoning_effort: undefined },
    told: ['DROPPED /reasoning'],
  },
  {
    name: 'nor is it told not to',
    from: 'openai-responses',
    to: 'openai-chat',
    model: 'gpt-4.1',
    body: responses({ reasoning: { effort: 'none' } }),
    told: [],
  },
  {
    name: 'an effort and a budget: one of them',
    from: 'anthropic-messages',
    to: 'openai-responses',
    body: claude({ thinking: { type: 'enabled', budget_tokens: 2000 }, output_config: { effort: 'high' } }),
    sends: { reasoning: { effort: 'high' } },
    told: ['DROPPED /thinking/budget_tokens'],
  },
  {
    name: 'the same where budgets count',
    from: 'anthropic-messages',
    to: 'gemini',
    model: 'gemini-2.5-flash',
    body: claude({ thinking: { type: 'enabled', budget_tokens: 2000 }, output_config: { effort: 'high' } }),
    told: ['DROPPED /output_config/effort'],
  },
  {
    name: 'a mark and a name on instructions in parts',
    from: 'openai-chat',
    to: 'gemini',
    body: chat({
      messages: [
        { role: 'system', name: 's', content: [{ type: 'text', text: 'x', prompt_cache_breakpoint: { mode: 'explicit' } }] },
        USER,
      ],
    }),
    told: ['DROPPED /messages/0/name', 'DROPPED /messages/0/content/0/prompt_cache_breakpoint'],
  },
  {
    name: 'the mark of a document that became text',
    from: 'anthropic-messages',
    to: 'gemini',
    body: claude({
      messages: [
        {
          role: 'user',
          content: [
            {
              type: 'search_result',
              source: 's',
              title: 't',
              content: [{ type: 'text', text: 'x' }],
              cache_control: { type: 'ephemeral' },
            },
          ],
        },
      ],
    }),
    told: ['APPROXIMATED /messages/0/content/0', 'DROPPED /messages/0/content/0/cache_control'],
  },
  {
    name: 'a call that the server ran, and its result',
    from: 'anthropic-messages',
    to: 'openai-chat',
    body: claude({
      messages: [
        USER,
        {
          role: 'assistant',
          content: [
            { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
            { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
            { type: 'text', text: 'x' },
          ],
        },
        USER,
      ],
    }),
    told: ['DROPPED /messages/1/content/0', 'DROPPED /messages/1/content/1'],
  },
  {
    name: 'a namespace that only a call names',
    from: 'openai-responses',
    to: 'openai-chat',
    body: responses({
      input: [
        { type: 'function_call', call_id: 'c', name: 'f', namespace: 'n', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: 'x' },
      ],
    }),
    told: ['RENAMED /input/0'],
  },
  {
    name: 'what a namespace says of itself',
    from: 'openai-responses',
    to: 'openai-chat',
    body: responses({ tools: [{ type: 'namespace', name: 'n', description: 'd', tools: [{ type: 'function', name: 'f' }] }] }),
    told: ['DROPPED /tools/0/description', 'RENAMED /tools/0/tools/0'],
  },
  {
    name: 'the phase of a message, and how likely its words were',
    from: 'openai-responses',
    to: 'anthropic-messages',
    body: responses({
      input: [
        USER,
        {
          type: 'message',
          id: 'msg_1',
          status: 'completed',
          role: 'assistant',
          phase: 'commentary',
          content: [
            { type: 'output_text', text: 'x', annotations: [], logprobs: [{ token: 'x', logprob: -1, top_logprobs: [] }] },
          ],
        },
        USER,
      ],
    }),
    told: ['DROPPED /input/1/phase', 'DROPPED /input/1/content/0/logprobs'],
  },
  {
    name: 'results without a call each point at their own item',
    from: 'openai-responses',
    to: 'openai-chat',
    body: responses({
      input: [
        USER,
        { type: 'function_call_output', call_id: 'a', output: 'x' },
        { type: 'function_call_output', call_id: 'b', output: 'y' },
      ],
    }),
    told: ['REPAIRED /input/1', 'REPAIRED /input/2'],
  },
  {
    name: 'calls without a result, and a result that comes late, each point at their own item',
    from: 'openai-responses',
    to: 'openai-chat',
    body: responses({
      input: [
        USER,
        { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
        { type: 'function_call', call_id: 'b', name: 'f', arguments: '{}' },
        USER,
        { type: 'function_call_output', call_id: 'z', output: 'x' },
        { type: 'function_call_output', call_id: 'b', output: 'y' },
      ],
    }),
    told: ['REPAIRED /input/1', 'REPAIRED /input/5', 'REPAIRED /input/4', 'APPROXIMATED /input/1'],
  },
  {
    name: 'calls without a signature point at the first of them',
    from: 'openai-responses',
    to: 'gemini',
    body: responses({
      input: [
        USER,
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'x' }] },
        { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'a', output: 'x' },
      ],
    }),
    told: ['REPAIRED /input/2'],
  },
  {
    name: 'what a shell call says beside its action',
    from: 'openai-responses',
    to: 'openai-chat',
    body: responses({
      input: [
        USER,
        { type: 'shell_call', id: 'sh_1', call_id: 'c', action: { commands: ['ls'] }, environment: { type: 'local' } },
        { type: 'shell_call_output', call_id: 'c', output: [], max_output_length: 5 },
      ],
    }),
    told: ['DROPPED /input/1/environment', 'DROPPED /input/2/max_output_length'],
  },
  {
    name: 'stop sequences that a model does not take are lost, whatever their number',
    from: 'anthropic-messages',
    to: 'openai-chat',
    body: claude({ stop_sequences: ['a', 'b', 'c', 'd', 'e'] }),
    told: ['DROPPED /stop_sequences'],
  },
  {
    name: 'OpenAI refuses metadata of what it does not store, images, and voices of others',
    from: 'gemini',
    to: 'openai-chat',
    body: google({
      labels: { a: 'b' },
      generationConfig: {
        responseModalities: ['TEXT', 'IMAGE'],
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
      },
    }),
    sends: { metadata: undefined, modalities: undefined, audio: undefined },
    told: ['DROPPED /labels', 'DROPPED /generationConfig/responseModalities', 'DROPPED /generationConfig/speechConfig'],
  },
  {
    name: 'metadata of what is stored',
    from: 'openai-responses',
    to: 'openai-chat',
    body: responses({ store: true, metadata: { a: 'b' } }),
    sends: { store: true, metadata: { a: 'b' } },
    told: [],
  },
  {
    name: 'proto3 JSON in its other spelling',
    from: 'gemini',
    to: 'openai-chat',
    body: google({
      system_instruction: { role: 'user', parts: [{ text: 's' }] },
      safety_settings: [{}],
      generation_config: { top_k: 4, media_resolution: 'MEDIA_RESOLUTION_LOW' },
    }),
    told: ['DROPPED /safety_settings', 'DROPPED /generation_config/media_resolution', 'DROPPED /generation_config/top_k'],
  },
  {
    name: 'what a part says beside its data',
    from: 'gemini',
    to: 'anthropic-messages',
    body: google({
      generationConfig: { maxOutputTokens: 9 },
      contents: [
        {
          role: 'user',
          parts: [
            {
              inlineData: { mimeType: 'image/png', data: 'QUJD', displayName: 'd' },
              mediaResolution: { level: 'MEDIA_RESOLUTION_LOW', numTokens: 4 },
            },
          ],
        },
      ],
    }),
    told: [
      'DROPPED /contents/0/parts/0/mediaResolution/numTokens',
      'DROPPED /contents/0/parts/0/inlineData/displayName',
      'DROPPED /contents/0/parts/0/mediaResolution/level',
    ],
  },
  {
    name: 'a film in a result stands among its parts',
    from: 'gemini',
    to: 'openai-responses',
    body: google({
      contents: answered({ response: { output: 'x' }, parts: [{ inlineData: { mimeType: 'video/mp4', data: 'QUJD' } }] }),
    }),
    told: ['DROPPED /contents/1/parts/0/functionResponse/parts/0'],
  },
  {
    name: 'a call without a result',
    from: 'gemini',
    to: 'openai-chat',
    body: google({
      contents: [
        { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
        { role: 'user', parts: [{ text: 'x' }] },
      ],
    }),
    told: ['REPAIRED /contents/0/parts/0', 'APPROXIMATED /contents/0/parts/0'],
  },
  {
    name: 'an empty list says nothing',
    from: 'openai-chat',
    to: 'gemini',
    body: chat({ transforms: [], messages: [{ role: 'user', content: [{ type: 'text', text: 'x', annotations: [] }] }] }),
    told: [],
  },
];

describe('what is told of a request, and where it stands in it', () => {
  test.each(rows)('$name', ({ from, to, body, model, sends = {}, told }) => {
    const path = from === 'gemini' ? { path: '/v1beta/models/m:generateContent' } : {};
    const { body: sent, notes } = convertRequest(body, { from, to, ...MODELS[to], ...(model && { model }), ...path });
    expect(notes.map(({ code, path: place }) => `${code} ${place}`)).toEqual(told);
    expect(sent).toEqual({ ...(sent as Json), ...sends });
  });
});

describe('results of Google, as text', () => {
  test.each<[name: string, response: Json, text: string]>([
    ['its own word', { output: 'x' }, 'x'],
    ['a word that says nothing beside it', { output: 'x', error: null }, 'x'],
    ['one that says more is sent whole', { output: 'x', code: 1 }, '{"output":"x","code":1}'],
    ['any other object', { a: 1 }, '{"a":1}'],
  ])('%s', (_, response, text) => {
    const body = google({ contents: answered({ response }) });
    const options = { from: 'gemini', to: 'openai-chat', path: '/v1beta/models/m:generateContent' } as const;
    expect(convertRequest(body, options).body).toMatchObject({ messages: [{}, { role: 'tool', content: text }] });
  });
});

test.each<[name: string, body: Json, schema: Json]>([
  ['a type by its number', { type: 1 }, { type: 'string' }],
  ['null beside a type', { type: 'STRING', nullable: true }, { type: ['string', 'null'] }],
  ['null beside several', { nullable: true, anyOf: [{ type: 'STRING' }] }, { anyOf: [{ type: 'string' }, { type: 'null' }] }],
  ['null beside values', { type: 'STRING', nullable: true, enum: ['a'] }, { type: ['string', 'null'], enum: ['a', null] }],
  ['null beside nothing', { type: 'TYPE_UNSPECIFIED', nullable: true }, {}],
])('schemas of Google: %s', (_, schema, expected) => {
  const body = google({ generationConfig: { responseMimeType: 'application/json', responseSchema: schema } });
  const options = { from: 'gemini', to: 'openai-chat', path: '/v1beta/models/m:generateContent' } as const;
  expect(convertRequest(body, options).body).toMatchObject({ response_format: { json_schema: { schema: expected } } });
});

test('a refusal points into the source, too', () => {
  const refused = (): unknown =>
    convertRequest(google({ generation_config: { top_k: 4 } }), {
      from: 'gemini',
      to: 'openai-chat',
      path: '/v1beta/models/m:generateContent',
      policy: { strict: true },
    });
  const held = (): unknown => convertRequest(responses({ conversation: 'c' }), { from: 'openai-responses', to: 'gemini' });
  const paramOf = (run: () => unknown): unknown => {
    try {
      return run();
    } catch (error) {
      return (error as CodecError).error.param;
    }
  };
  expect([paramOf(refused), paramOf(held)]).toEqual(['/generation_config/top_k', '/conversation']);
});

test.each<[name: string, from: ProtocolId, to: ProtocolId, body: Json, told: string[]]>([
  ['the user', 'openai-chat', 'gemini', { model: 'm', input: 'x', user: 'u' }, ['DROPPED /user']],
  [
    'settings of a batch',
    'gemini',
    'openai-chat',
    { requests: [{ model: 'models/m', content: { parts: [{ text: 'x' }] }, taskType: 'CLUSTERING', title: 't' }] },
    ['DROPPED /requests/0/taskType', 'DROPPED /requests/0/title'],
  ],
  [
    'a field that only its protocol knows',
    'openai-chat',
    'gemini',
    { model: 'm', input: 'x', input_type: 'query' },
    ['DROPPED /input_type'],
  ],
  [
    'the same, of a batch',
    'gemini',
    'openai-chat',
    { requests: [{ model: 'models/m', content: { parts: [{ text: 'x' }] }, autoTruncate: true }] },
    ['DROPPED /requests/0/autoTruncate'],
  ],
  [
    'the same, of one entry of it',
    'gemini',
    'openai-chat',
    {
      requests: [
        { model: 'models/m', content: { parts: [{ text: 'x' }] } },
        { model: 'models/m', content: { parts: [{ text: 'y' }] }, autoTruncate: true },
      ],
    },
    ['DROPPED /requests/1'],
  ],
])('embeddings: %s', (_, from, to, body, told) => {
  const { notes } = convertEmbeddingsRequest(body, {
    from: CODECS[from],
    to: CODECS[to],
    path: '/v1beta/models/m:batchEmbedContents',
  });
  expect(notes.map(({ code, path }) => `${code} ${path}`)).toEqual(told);
});
