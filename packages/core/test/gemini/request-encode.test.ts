import { describe, expect, test } from 'vitest';
import { geminiContext, type Json } from '../../../../test/sdk/gemini.ts';
import type { ContentBlock } from '../../src/canonical/message.ts';
import type { SignedBlob } from '../../src/canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest, CanonicalTool, ThinkingConfig } from '../../src/canonical/request.ts';
import type { ProviderProfile } from '../../src/codec/profile.ts';
import type { CodecContext, Policy } from '../../src/codec/protocol.ts';
import { DEFAULT_GEMINI_PROFILE, profileFor } from '../../src/protocols/gemini/profiles.ts';
import { decodeRequestBody } from '../../src/protocols/gemini/request-decode.ts';
import { encodeRequest, encodeRequestBody } from '../../src/protocols/gemini/request-encode.ts';
import { paramOf } from './param-of.ts';

interface Given {
  profile?: Partial<ProviderProfile>;
  policy?: Policy;
  target?: CodecContext['target'];
}

const GEMINI_3: Given = { profile: profileFor('google', 'gemini-3-flash-preview') };
const USER: CanonicalMessage = { role: 'user', content: [{ type: 'text', text: 'hi' }] };
const contextOf = ({ profile, policy = {}, target }: Given) =>
  geminiContext({ profile: { ...DEFAULT_GEMINI_PROFILE, ...profile }, policy, ...(target && { target }) });

/** The body, and the notes as `CODE feature`. Whatever was written is read and written again: the same. */
function encode(request: Partial<CanonicalRequest>, given: Given = {}): { body: Json; told: string[] } {
  const context = contextOf(given);
  const body = encodeRequestBody({ model: 'm', messages: [USER], parameters: {}, ...request }, context);
  const again = contextOf(given);
  expect(encodeRequestBody(decodeRequestBody(body, again, { model: 'm' }), again), 'encode, decode, encode').toEqual(body);
  return { body, told: context.notes.map(({ code, feature }) => `${code} ${feature}`) };
}

const user = (...content: ContentBlock[]): CanonicalMessage => ({ role: 'user', content });
const say = (...content: ContentBlock[]): CanonicalMessage => ({ role: 'assistant', content });
const text = (value: string, over: object = {}): ContentBlock => ({ type: 'text', text: value, ...over });
const use = (id: string, over: Partial<Extract<ContentBlock, { type: 'tool_use' }>> = {}): ContentBlock => ({
  type: 'tool_use',
  id,
  name: 'f',
  input: {},
  ...over,
});
const result = (id: string, content: string | ContentBlock[] = '1', over: object = {}): ContentBlock =>
  ({ type: 'tool_result', tool_use_id: id, content, ...over }) as ContentBlock;
const tool = (...content: ContentBlock[]): CanonicalMessage => ({ role: 'tool', content });
const think = (over: object = {}): ContentBlock => ({ type: 'thinking', thinking: 'T', ...over });
const signature = (origin: SignedBlob['origin'], over: object = {}): { signature: SignedBlob } => ({
  signature: { origin, form: origin === 'gemini' ? 'thought_signature' : 'signature', value: 'S', ...over },
});

const HI = { role: 'user', parts: [{ text: 'hi' }] };
const call = (id: string, args: object = {}, over: object = {}, name = 'f') => ({ functionCall: { id, name, args }, ...over });
const answer = (id: string, output = '1', name = 'f') => ({ functionResponse: { id, name, response: { output } } });
const PNG: ContentBlock = { type: 'image', source: { data: 'AAA', media_type: 'image/png' } };
const PNG_PART = { inlineData: { mimeType: 'image/png', data: 'AAA' } };
const SKIP = { thoughtSignature: 'skip_thought_signature_validator' };

type Row = [name: string, messages: CanonicalMessage[], contents: Json[], told?: string[], given?: Given];

const MESSAGES: Row[] = [
  ['a text', [USER], [HI]],
  [
    'P11 neighbours of one role are one turn',
    [user(text('a')), user(text('b'))],
    [{ role: 'user', parts: [{ text: 'a' }, { text: 'b' }] }],
  ],
  [
    'P07 results in the order of the calls',
    [USER, say(use('a'), use('b')), tool(result('b', '2'), result('a', '1'))],
    [HI, { role: 'model', parts: [call('a'), call('b')] }, { role: 'user', parts: [answer('a', '1'), answer('b', '2')] }],
  ],
  [
    'P08 P04 as many results as calls',
    [USER, say(use('a'), use('b')), tool(result('a'))],
    [
      HI,
      { role: 'model', parts: [call('a'), call('b')] },
      {
        role: 'user',
        parts: [
          answer('a'),
          { functionResponse: { id: 'b', name: 'f', response: { error: 'No result was recorded for this call.' } } },
        ],
      },
    ],
    ['REPAIRED messages.tool_use'],
  ],
  [
    'P05 a result without a call is text',
    [USER, tool(result('z', 'x'))],
    [{ role: 'user', parts: [{ text: 'hi' }, { text: 'Result of an earlier tool call: x' }] }],
    ['REPAIRED messages.tool_result'],
  ],
  [
    'P09 P02 results are the user\u2019s, and what the user says stands behind them',
    [USER, say(use('a')), user(text('wait')), tool(result('a'))],
    [HI, { role: 'model', parts: [call('a')] }, { role: 'user', parts: [answer('a'), { text: 'wait' }] }],
    ['REPAIRED messages.tool_order'],
  ],
  [
    'P10 a call is not the first word',
    [say(use('a')), tool(result('a'))],
    [
      { role: 'user', parts: [{ text: '(continued)' }] },
      { role: 'model', parts: [call('a')] },
      { role: 'user', parts: [answer('a')] },
    ],
    ['APPROXIMATED messages.first_user'],
  ],
  [
    'P12 the user speaks first',
    [say(text('Hi')), user(text('yo'))],
    [
      { role: 'user', parts: [{ text: '(continued)' }] },
      { role: 'model', parts: [{ text: 'Hi' }] },
      { role: 'user', parts: [{ text: 'yo' }] },
    ],
    ['APPROXIMATED messages.first_user'],
  ],
  [
    'P14 an instruction in the middle is a reminder',
    [USER, say(text('a')), { role: 'system', content: [text('be brief')] }, user(text('b'))],
    [
      HI,
      { role: 'model', parts: [{ text: 'a' }] },
      { role: 'user', parts: [{ text: expect.stringContaining('<system-reminder>') }, { text: 'b' }] },
    ],
    ['APPROXIMATED messages.system'],
  ],
  [
    'P17 parts in their order',
    [USER, say(text('A'), use('1'), text('B'), use('2')), tool(result('1'), result('2'))],
    [
      HI,
      { role: 'model', parts: [{ text: 'A' }, call('1'), { text: 'B' }, call('2')] },
      { role: 'user', parts: [answer('1'), answer('2')] },
    ],
  ],
  [
    'P29 what is empty is not sent',
    [USER, say(text('')), user(text('b'))],
    [{ role: 'user', parts: [{ text: 'hi' }, { text: 'b' }] }],
    ['REPAIRED messages.empty'],
  ],
  ['P33 inline data', [user(PNG)], [{ role: 'user', parts: [PNG_PART] }]],
  [
    'P34 a PDF, whose type the bytes show',
    [user({ type: 'file', source: { file_data: 'JVBERi0x', filename: 'x' } })],
    [{ role: 'user', parts: [{ inlineData: { mimeType: 'application/pdf', data: 'JVBERi0x' } }] }],
    ['DROPPED file.filename'],
  ],
  [
    'a name that says no more than the type',
    [user({ type: 'file', source: { file_data: 'YQ==', filename: 'document.csv' } })],
    [{ role: 'user', parts: [{ inlineData: { mimeType: 'text/csv', data: 'YQ==' } }] }],
  ],
  [
    'P36 audio',
    [user({ type: 'audio', source: { data: 'A', format: 'wav' } })],
    [{ role: 'user', parts: [{ inlineData: { mimeType: 'audio/wav', data: 'A' } }] }],
  ],
  [
    'an image by URL, whose type its name shows',
    [user({ type: 'image', source: { url: 'https://x/y.jpg?z' } })],
    [{ role: 'user', parts: [{ fileData: { mimeType: 'image/jpeg', fileUri: 'https://x/y.jpg?z' } }] }],
    ['APPROXIMATED image.url'],
  ],
  [
    'P32 media in a result: before Gemini 3 behind all results',
    [USER, say(use('a'), use('b')), tool(result('a', [text('shot') as never, PNG as never]), result('b'))],
    [
      HI,
      { role: 'model', parts: [call('a'), call('b')] },
      { role: 'user', parts: [answer('a', 'shot'), answer('b'), { text: 'Media of the result of f (a):' }, PNG_PART] },
    ],
    ['APPROXIMATED tool_result.media'],
  ],
  [
    'P32 media in a result: Gemini 3',
    [USER, say(use('a', signature('gemini'))), tool(result('a', [text('shot') as never, PNG as never]))],
    [
      HI,
      { role: 'model', parts: [call('a', {}, { thoughtSignature: 'S' })] },
      { role: 'user', parts: [{ functionResponse: { ...answer('a', 'shot').functionResponse, parts: [PNG_PART] } }] },
    ],
    [],
    GEMINI_3,
  ],
  [
    'P40 an error of a tool',
    [USER, say(use('a')), tool(result('a', 'boom', { is_error: true }))],
    [
      HI,
      { role: 'model', parts: [call('a')] },
      { role: 'user', parts: [{ functionResponse: { id: 'a', name: 'f', response: { error: 'boom' } } }] },
    ],
  ],
  [
    'P42 P43 P44 arguments are an object',
    [
      USER,
      say(
        use('a', { input_raw: '' }),
        use('b', { input_raw: '[1]' }),
        use('c', { input_raw: '{"a":1' }),
        use('d', { input_raw: '{"x":2}' }),
      ),
      tool(result('a'), result('b'), result('c'), result('d')),
    ],
    [
      HI,
      { role: 'model', parts: [call('a'), call('b', { input: [1] }), call('c', { input: '{"a":1' }), call('d', { x: 2 })] },
      { role: 'user', parts: ['a', 'b', 'c', 'd'].map((id) => answer(id)) },
    ],
    ['APPROXIMATED tool_use.input', 'APPROXIMATED tool_use.input'],
  ],
  [
    'ids only where they are known',
    [USER, say(use('a')), tool(result('a'))],
    [
      HI,
      { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: { output: '1' } } }] },
    ],
    [],
    { profile: { function_call_ids: false } },
  ],
  [
    'P81 what Gemini signed goes back on its own part',
    [
      USER,
      say(think(signature('gemini')), text('t', signature('gemini')), use('a', signature('gemini')), use('b')),
      tool(result('a'), result('b')),
    ],
    [
      HI,
      {
        role: 'model',
        parts: [
          { text: 'T', thought: true, thoughtSignature: 'S' },
          { text: 't', thoughtSignature: 'S' },
          call('a', {}, { thoughtSignature: 'S' }),
          call('b'),
        ],
      },
      { role: 'user', parts: [answer('a'), answer('b')] },
    ],
    [],
    GEMINI_3,
  ],
  [
    'P82 P77 a foreign or lost signature: the first call of the turn says that it has none, its siblings say nothing',
    [USER, say(think(signature('anthropic-messages')), use('a'), use('b')), tool(result('a'), result('b'))],
    [HI, { role: 'model', parts: [call('a', {}, SKIP), call('b')] }, { role: 'user', parts: [answer('a'), answer('b')] }],
    ['DROPPED assistant.thinking', 'REPAIRED messages.signature'],
    GEMINI_3,
  ],
  [
    'P83 a signature on an empty text is not empty',
    [USER, say(text('a'), text('', signature('gemini'))), user(text('b'))],
    [
      HI,
      { role: 'model', parts: [{ text: 'a' }, { text: '', thoughtSignature: 'S' }] },
      { role: 'user', parts: [{ text: 'b' }] },
    ],
  ],
  [
    'thinking that nobody signed is not sent',
    [USER, say(think(), text('a')), user(text('b'))],
    [HI, { role: 'model', parts: [{ text: 'a' }] }, { role: 'user', parts: [{ text: 'b' }] }],
    ['DROPPED assistant.thinking'],
  ],
  [
    'P27 a name begins with a letter',
    [USER, say(use('a', { name: '2d_plot' })), tool(result('a'))],
    [HI, { role: 'model', parts: [call('a', {}, {}, '_2d_plot')] }, { role: 'user', parts: [answer('a', '1', '_2d_plot')] }],
    ['RENAMED tools.name'],
  ],
  [
    'the detail of an image, from Gemini 3 on',
    [user({ type: 'image', source: { data: 'AAA', media_type: 'image/png', detail: 'high' } })],
    [{ role: 'user', parts: [{ ...PNG_PART, mediaResolution: { level: 'MEDIA_RESOLUTION_HIGH' } }] }],
    [],
    GEMINI_3,
  ],
];

test.each(MESSAGES)('%s', (_, messages, contents, told = [], given = {}) => {
  const encoded = encode({ messages }, given);
  expect(encoded.body['contents']).toEqual(contents);
  expect(encoded.told).toEqual(told);
});

describe('tools', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
  const F: CanonicalTool = { name: 'f', description: 'd', input_schema: schema };
  const SEARCH: CanonicalTool = {
    name: 'web_search',
    kind: 'server',
    server: { type: 'web_search', wire_type: 'web_search_20250305', config: {}, origin: 'anthropic-messages' },
  };
  const declared = { functionDeclarations: [{ name: 'f', description: 'd', parametersJsonSchema: schema }] };
  const mode = (word: string, ...names: string[]) => ({
    toolConfig: { functionCallingConfig: { mode: word, ...(names.length > 0 && { allowedFunctionNames: names }) } },
  });

  test.each<[name: string, request: Partial<CanonicalRequest>, fields: Json, told?: string[], given?: Given]>([
    ['functions', { tools: [F] }, { tools: [declared] }],
    [
      'P47 P48 the subset of OpenAPI where JSON Schema is not known',
      {
        tools: [
          {
            name: 'f',
            input_schema: {
              type: 'object',
              additionalProperties: false,
              properties: { k: { const: 'x' }, n: { type: ['string', 'null'] } },
            },
          },
        ],
      },
      {
        tools: [
          {
            functionDeclarations: [
              {
                name: 'f',
                parameters: {
                  type: 'OBJECT',
                  description: '(no other properties)',
                  properties: {
                    k: expect.objectContaining({ type: 'STRING', enum: ['x'] }),
                    n: { type: 'STRING', nullable: true },
                  },
                },
              },
            ],
          },
        ],
      },
      expect.anything() as never,
      { profile: { json_schema_params: false } },
    ],
    [
      'P53 no arguments, no schema',
      { tools: [{ name: 'f', input_schema: { type: 'object', properties: {} } }] },
      { tools: [{ functionDeclarations: [{ name: 'f' }] }] },
    ],
    ['choice: auto', { tools: [F], tool_choice: { type: 'auto' } }, { tools: [declared], ...mode('AUTO') }],
    ['choice: none', { tools: [F], tool_choice: { type: 'none' } }, { tools: [declared], ...mode('NONE') }],
    ['choice: any', { tools: [F], tool_choice: { type: 'any' } }, { tools: [declared], ...mode('ANY') }],
    ['choice: one', { tools: [F], tool_choice: { type: 'tool', name: 'f' } }, { tools: [declared], ...mode('ANY', 'f') }],
    [
      'P61 any of some',
      { tools: [F, { ...F, name: 'g' }], tool_choice: { type: 'any', allowed_tools: ['f'] } },
      {
        tools: [{ functionDeclarations: [declared.functionDeclarations[0], { ...declared.functionDeclarations[0], name: 'g' }] }],
        ...mode('ANY', 'f'),
      },
    ],
    [
      'P61 some, or none: the others are not offered',
      { tools: [F, { ...F, name: 'g' }], tool_choice: { type: 'auto', allowed_tools: ['f'] } },
      { tools: [declared], ...mode('AUTO') },
      ['APPROXIMATED tool_choice.allowed_tools'],
    ],
    [
      'P60 calls in parallel cannot be forbidden',
      { tools: [F], parallel_tool_use: false },
      { tools: [declared] },
      ['DROPPED parallel_tool_use'],
    ],
    ['P58 a choice without tools', { tool_choice: { type: 'any' } }, {}, ['DROPPED tool_choice']],
    ['a search of another', { tools: [SEARCH] }, { tools: [{ googleSearch: {} }] }, ['APPROXIMATED tools.web_search']],
    [
      'P63 search beside functions, before Gemini 3',
      { tools: [F, SEARCH] },
      { tools: [declared] },
      ['APPROXIMATED tools.web_search', 'DROPPED tools.web_search'],
    ],
    [
      'P63 search beside functions, Gemini 3',
      { tools: [F, SEARCH] },
      { tools: [declared, { googleSearch: {} }] },
      ['APPROXIMATED tools.web_search'],
      GEMINI_3,
    ],
    [
      'code beside functions',
      {
        tools: [
          F,
          {
            name: 'c',
            kind: 'server',
            server: { type: 'code_execution', wire_type: 'codeExecution', config: {}, origin: 'gemini' },
          },
        ],
      },
      { tools: [declared, { codeExecution: {} }] },
    ],
    ['strict is not known', { tools: [{ ...F, strict: true }] }, { tools: [declared] }, ['DROPPED tools.strict']],
  ])('%s', (_, request, fields, told = [], given = {}) => {
    const { body, told: found } = encode(request, given);
    const { contents: _contents, ...rest } = body;
    expect(rest).toEqual(fields);
    expect(found).toEqual(told);
  });

  test('a function that must be called and is not there', () => {
    expect(paramOf(() => encode({ tools: [F], tool_choice: { type: 'tool', name: 'x' } }))).toBe('/tool_choice');
  });
});

describe('generationConfig', () => {
  const json = {
    type: 'json_schema',
    json_schema: { schema: { type: 'object', properties: { a: { type: 'string' } } } },
  } as const;
  const tools: CanonicalTool[] = [{ name: 'f', input_schema: { type: 'object', properties: { a: { type: 'string' } } } }];

  test.each<[name: string, request: Partial<CanonicalRequest>, config: Json | undefined, told?: string[], given?: Given]>([
    [
      'every parameter',
      {
        parameters: {
          max_tokens: 9,
          temperature: 1,
          top_p: 0.5,
          top_k: 4,
          frequency_penalty: 1,
          presence_penalty: 1,
          seed: 7,
          n: 2,
          logprobs: true,
          top_logprobs: 3,
          stop_sequences: ['x'],
        },
      },
      {
        maxOutputTokens: 9,
        temperature: 1,
        topP: 0.5,
        topK: 4,
        frequencyPenalty: 1,
        presencePenalty: 1,
        seed: 7,
        candidateCount: 2,
        responseLogprobs: true,
        logprobs: 3,
        stopSequences: ['x'],
      },
    ],
    [
      'P72 five stop sequences',
      { parameters: { stop_sequences: ['1', '2', '3', '4', '5', '6'] } },
      { stopSequences: ['1', '2', '3', '4', '5'] },
      ['CLAMPED parameters.stop_sequences'],
    ],
    ['P68 bounds', { parameters: { temperature: 3 } }, { temperature: 2 }, ['CLAMPED parameters.temperature']],
    ['P75 a stream has one candidate', { parameters: { n: 2 }, stream: true }, undefined, ['CLAMPED parameters.n']],
    [
      'what has no word',
      { parameters: { logit_bias: { a: 1 }, max_tool_calls: 1 } },
      undefined,
      ['DROPPED parameters.logit_bias', 'DROPPED parameters.max_tool_calls'],
    ],
    ['JSON', { output_format: { type: 'json_object' } }, { responseMimeType: 'application/json' }],
    [
      'JSON by a schema',
      { output_format: json },
      { responseMimeType: 'application/json', responseJsonSchema: json.json_schema.schema },
    ],
    [
      'JSON by a schema in the subset of OpenAPI',
      { output_format: json },
      { responseMimeType: 'application/json', responseSchema: { type: 'OBJECT', properties: { a: { type: 'STRING' } } } },
      [],
      { profile: { json_schema_params: false } },
    ],
    ['P62 JSON beside functions', { output_format: json, tools }, undefined, ['APPROXIMATED output_format']],
    [
      'P62 JSON beside functions, Gemini 3',
      { output_format: { type: 'json_object' }, tools },
      { responseMimeType: 'application/json' },
      [],
      GEMINI_3,
    ],
    ['modalities', { modalities: ['text', 'image'] }, { responseModalities: ['TEXT', 'IMAGE'] }],
  ])('%s', (_, request, config, told = [], given = {}) => {
    const { body, told: found } = encode(request, given);
    expect(body['generationConfig']).toEqual(config);
    expect(found).toEqual(told);
  });

  test('P62 the schema is sent in the system prompt', () => {
    expect(encode({ output_format: json, tools }).body['systemInstruction']).toEqual({
      parts: [{ text: expect.stringMatching(/^Respond in JSON that matches this schema: \{/) }],
    });
  });

  const pro: Given = { profile: profileFor('google', 'gemini-2.5-pro') };
  const pro3: Given = { profile: profileFor('google', 'gemini-3-pro-preview') };
  const old: Given = { profile: profileFor('google', 'gemini-2.0-flash') };
  const effort = 'APPROXIMATED thinking.effort';

  test.each<[name: string, thinking: ThinkingConfig, wire: Json | undefined, told?: string[], given?: Given]>([
    ['an effort as a budget', { type: 'enabled', effort: 'low' }, { includeThoughts: true, thinkingBudget: 1024 }, [effort]],
    [
      'the largest effort, within the model',
      { type: 'enabled', effort: 'max' },
      { includeThoughts: true, thinkingBudget: 24_576 },
      [effort],
    ],
    ['a budget', { type: 'enabled', budget_tokens: 2000 }, { includeThoughts: true, thinkingBudget: 2000 }],
    [
      'a budget beyond the model',
      { type: 'enabled', budget_tokens: 31_999 },
      { includeThoughts: true, thinkingBudget: 24_576 },
      ['CLAMPED thinking.budget_tokens'],
    ],
    ['off', { type: 'disabled' }, { thinkingBudget: 0 }],
    ['off, where it cannot be', { type: 'disabled' }, { thinkingBudget: 128 }, [effort], pro],
    ['left to the model', { type: 'adaptive' }, { includeThoughts: true, thinkingBudget: -1 }],
    ['not shown', { type: 'enabled', budget_tokens: 2000, display: 'omitted' }, { includeThoughts: false, thinkingBudget: 2000 }],
    ['P87 a level', { type: 'enabled', effort: 'medium' }, { includeThoughts: true, thinkingLevel: 'MEDIUM' }, [], GEMINI_3],
    [
      'P87 a level that Pro does not offer',
      { type: 'enabled', effort: 'medium' },
      { includeThoughts: true, thinkingLevel: 'HIGH' },
      [effort],
      pro3,
    ],
    ['P87 the most', { type: 'enabled', effort: 'max' }, { includeThoughts: true, thinkingLevel: 'HIGH' }, [effort], GEMINI_3],
    [
      'a budget as a level',
      { type: 'enabled', budget_tokens: 1024 },
      { includeThoughts: true, thinkingLevel: 'LOW' },
      [effort],
      GEMINI_3,
    ],
    ['off, on Gemini 3', { type: 'disabled' }, { thinkingLevel: 'MINIMAL' }, [effort], GEMINI_3],
    ['off, on Gemini 3 Pro', { type: 'disabled' }, { thinkingLevel: 'LOW' }, [effort], pro3],
    ['left to Gemini 3', { type: 'adaptive' }, { includeThoughts: true }, [], GEMINI_3],
    ['a model that does not think', { type: 'enabled', effort: 'high' }, undefined, ['DROPPED thinking'], old],
    ['a model that does not think need not be told', { type: 'disabled' }, undefined, [], old],
  ])('thinking: %s', (_, thinking, wire, told = [], given = {}) => {
    const { body, told: found } = encode({ thinking }, given);
    expect((body['generationConfig'] as Json | undefined)?.['thinkingConfig']).toEqual(wire);
    expect(found).toEqual(told);
  });
});

test('options: what Gemini takes, and what is dropped', () => {
  const { body, told } = encode({
    state: { cached_content: 'cachedContents/1' },
    service_tier: 'flex',
    user_id: 'u',
    store: true,
    verbosity: 'low',
    metadata: { a: 'b' },
  });
  expect(body).toEqual({ contents: [HI], cachedContent: 'cachedContents/1', serviceTier: 'flex' });
  expect(told).toEqual(['DROPPED user_id', 'DROPPED store', 'DROPPED verbosity', 'DROPPED metadata']);
});

test('P122 a conversation that another server holds is refused', () => {
  expect(paramOf(() => encode({ state: { previous_response_id: 'resp_1' } }))).toBe('/state/previous_response_id');
});

test('P35 a file that only another provider has is refused', () => {
  expect(paramOf(() => encode({ messages: [user({ type: 'file', source: { file_id: 'file-1' } })] }))).toMatch(/^\/messages\/0/);
});

test('strict: a loss is an error', () => {
  expect(paramOf(() => encode({ user_id: 'u' }, { policy: { strict: true } }))).toBe('/user_id');
});

test('a request without content is rejected', () => {
  expect(paramOf(() => encode({ messages: [user()] }))).toBe('contents');
});

test.each([
  [undefined, false, '/v1beta/models/m:generateContent'],
  [undefined, true, '/v1beta/models/m:streamGenerateContent?alt=sse'],
  ['openai/gpt-5', true, '/v1beta/models/openai/gpt-5:streamGenerateContent?alt=sse'],
])('the path of %s, streaming %s', (model, stream, path) => {
  const provider = { id: 'p', protocol: 'gemini', base_url: 'https://x' } as const;
  const context = geminiContext(model ? { target: { provider, model, stream } } : {});
  expect(encodeRequest({ model: 'm', messages: [USER], parameters: {}, stream }, context)).toMatchObject({
    method: 'POST',
    path,
  });
});
