import { describe, expect, test } from 'vitest';
import { geminiContext, type Json } from '../../../../test/sdk/gemini.ts';
import { deriveId } from '../../src/accumulate/argument-text.ts';
import { SOURCE } from '../../src/canonical/source.ts';
import { encodeCarrier } from '../../src/codec/answers.ts';
import { geminiCodec } from '../../src/protocols/gemini/codec.ts';
import { decodeRequest, decodeRequestBody } from '../../src/protocols/gemini/request-decode.ts';
import { encodeRequestBody } from '../../src/protocols/gemini/request-encode.ts';
import { paramOf } from './param-of.ts';

const decode = (body: Json, context = geminiContext()) => decodeRequestBody(body, context, { model: 'm' });
const messagesOf = (contents: unknown) => decode({ contents } as Json).messages;

const call = (name: string, over: object = {}) => ({ functionCall: { name, args: {}, ...over } });
const answer = (name: string, over: object = {}) => ({ functionResponse: { name, response: { output: '1' }, ...over } });
const U = { role: 'user', parts: [{ text: 'hi' }] };

describe('the path', () => {
  test.each([
    ['/v1beta/models/m:generateContent', { model: 'm' }, false],
    ['/v1beta/models/m:streamGenerateContent?alt=sse', { model: 'm', stream: true }, false],
    ['/v1beta/models/m:streamGenerateContent', { model: 'm', stream: true }, true],
    ['/v1/models/openai/gpt-5:streamGenerateContent?alt=sse&key=k', { model: 'openai/gpt-5', stream: true }, false],
    ['/v1beta/models/org%2Fm:generateContent', { model: 'org/m' }, false],
    ['/v1beta/tunedModels/t:generateContent', { model: 'tunedModels/t' }, false],
    ['/v1/projects/p/locations/l/publishers/google/models/g:generateContent', { model: 'g' }, false],
    ['/v1beta/models/llama3:8b:generateContent', { model: 'llama3:8b' }, false],
  ])('%s', (path, expected, isArray) => {
    const request = decodeRequest({ method: 'POST', path, headers: {}, body: { contents: [U] } }, geminiContext());
    expect(request).toMatchObject(expected);
    expect(request.stream ?? false).toBe('stream' in expected);
    if (request.stream) expect(geminiCodec.framing?.(path)).toBe(isArray ? 'json-array' : 'sse');
    // How the answer is framed is no field of the body.
    expect(Object.keys(encodeRequestBody(request, geminiContext()))).toEqual(['contents']);
  });

  test('a body that names its model', () => {
    expect(decodeRequestBody({ model: 'models/x', contents: 'hi' }, geminiContext()).model).toBe('x');
    expect(paramOf(() => decodeRequestBody({ contents: 'hi' }, geminiContext()))).toBe('model');
  });
});

describe('contents', () => {
  test('a text, one content, a part alone', () => {
    const expected = [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }];
    expect(messagesOf('hi')).toEqual(expected);
    expect(messagesOf(['hi'])).toEqual(expected);
    expect(messagesOf({ parts: { text: 'hi' } })).toEqual(expected);
    expect(messagesOf([{ role: 'user', parts: ['hi'] }])).toEqual(expected);
  });

  test('P24 calls without ids get stable ones, and parallel calls of one name stay apart', () => {
    const contents = [U, { role: 'model', parts: [call('f'), call('f')] }];
    const [, message] = messagesOf(contents);
    const ids = message?.content.map((block) => (block.type === 'tool_use' ? block.id : ''));
    expect(ids).toEqual([deriveId('call_', 1, 0, 'f'), deriveId('call_', 1, 1, 'f')]);
    expect(
      messagesOf([...contents, { role: 'user', parts: [answer('f'), answer('f')] }])[1]?.content,
      'the same in the next turn',
    ).toEqual(message?.content);
  });

  test.each([
    ['P25 by name, the first that waits', [call('f'), call('g'), call('f')], [answer('f'), answer('f'), answer('g')], [0, 2, 1]],
    [
      'by id, in any order',
      [call('f', { id: 'a' }), call('f', { id: 'b' })],
      [answer('f', { id: 'b' }), answer('f', { id: 'a' })],
      [1, 0],
    ],
    ['by id and by name', [call('f', { id: 'a' }), call('f')], [answer('f', { id: 'a' }), answer('f')], [0, 1]],
    ['a number is an id', [call('f', { id: 7 })], [answer('f', { id: 7 })], [0]],
  ])('results find their calls: %s', (_, calls, answers, order) => {
    const [, asked, told] = messagesOf([U, { role: 'model', parts: calls }, { role: 'user', parts: answers }]);
    const ids = asked?.content.map((block) => (block.type === 'tool_use' ? block.id : ''));
    expect(told?.role).toBe('tool');
    expect(told?.content.map((block) => (block.type === 'tool_result' ? ids?.indexOf(block.tool_use_id) : -1))).toEqual(order);
  });

  test('a result never answers a call of an earlier turn that another of the name has followed', () => {
    const messages = messagesOf([
      U,
      { role: 'model', parts: [call('f')] },
      { role: 'user', parts: [{ text: 'wait' }] },
      { role: 'model', parts: [call('f')] },
      { role: 'function', parts: [answer('f')] },
    ]);
    expect(messages.at(-1)?.content[0]).toMatchObject({ tool_use_id: deriveId('call_', 3, 0, 'f') });
  });

  test('results are a message of their own, before what the user says beside them', () => {
    const messages = messagesOf([
      U,
      { role: 'model', parts: [call('f')] },
      { role: 'user', parts: [{ text: 'so' }, answer('f')] },
    ]);
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
  });

  test.each([
    [{ output: 'x' }, 'x', undefined],
    [{ result: 'x' }, 'x', undefined],
    [{ error: 'x' }, 'x', true],
    [{ a: 1 }, '{"a":1}', undefined],
    [{ output: { a: 1 } }, '{"a":1}', undefined],
    [undefined, '', undefined],
  ])('the response %j says %s', (response, text, isError) => {
    const messages = messagesOf([U, { role: 'model', parts: [call('f')] }, { role: 'user', parts: [answer('f', { response })] }]);
    expect(messages[2]?.content[0]).toMatchObject({ type: 'tool_result', name: 'f', content: text });
    expect(messages[2]?.content[0]).toEqual(
      isError ? expect.objectContaining({ is_error: true }) : expect.not.objectContaining({ is_error: true }),
    );
  });

  test('a call that Google answered itself', () => {
    const contents = [U, { role: 'model', parts: [call('f', { id: 'a' }), answer('f', { id: 'a' }), { text: 'so' }] }, U];
    for (const trace of [true, false])
      expect(decode({ contents }, geminiContext({ trace })).messages[1]?.content).toMatchObject([
        { type: 'tool_use', kind: 'server' },
        { type: 'tool_result', kind: 'server', tool_use_id: 'a' },
        { type: 'text' },
      ]);
    const context = geminiContext();
    expect(encodeRequestBody(decode({ contents }), context)['contents']).toEqual(contents);
    expect(context.notes).toEqual([]);
  });

  test('P81 P86 what another provider signed comes back as its own, and whole', () => {
    const blob = { origin: 'anthropic-messages', form: 'signature', value: 'SIG' } as const;
    const thoughtSignature = btoa(encodeCarrier(blob, 'claude', 'self'));
    const pieces = (...parts: Json[]) => parts.map((part) => ({ role: 'model', parts: [part] }));
    const messages = messagesOf([
      U,
      ...pieces({ text: 'I ', thought: true }, { text: 'think', thought: true }, { text: '', thought: true, thoughtSignature }),
      ...pieces({ text: 'so' }, { ...call('f', { id: 'a' }), thoughtSignature: thoughtSignature.replaceAll('+', '-') }),
    ]);
    const signature = { ...blob, provider: 'claude' };
    expect(messages[1]?.content).toMatchObject([
      { type: 'thinking', thinking: 'I think', signature },
      { type: 'text', text: 'so' },
      { type: 'tool_use', id: 'a', signature },
    ]);
  });

  test('what Google signed stays where it stood', () => {
    const parts = [
      { text: 'a', thought: true },
      { text: 'b', thought: true, thoughtSignature: 'S' },
      { text: 'c' },
      { text: '', thoughtSignature: 'S2' },
      { ...call('f', { id: 'x' }), thoughtSignature: 'S3' },
    ];
    const contents = [U, { role: 'model', parts }, { role: 'user', parts: [answer('f', { id: 'x' })] }];
    expect(encodeRequestBody(decode({ contents }), geminiContext())['contents']).toEqual(contents);
  });

  test('media of every kind', () => {
    const [message] = messagesOf([
      {
        parts: [
          { inlineData: { mimeType: 'image/png', data: 'a-_b' }, mediaResolution: { level: 'MEDIA_RESOLUTION_LOW' } },
          { inlineData: { mimeType: 'audio/mpeg', data: 'AA' } },
          { fileData: { mimeType: 'audio/mpeg', fileUri: 'gs://b/a' } },
          {
            fileData: { mimeType: 'video/mp4', fileUri: 'https://youtu.be/x' },
            videoMetadata: { startOffset: '1s', endOffset: '2s', fps: 5 },
          },
          { fileData: { mimeType: 'application/pdf', fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/f' } },
          { executableCode: { language: 'PYTHON', code: '1' } },
          { future: 1 },
        ],
      },
    ]);
    expect(message?.content).toMatchObject([
      { type: 'image', source: { data: 'a+/b', media_type: 'image/png', detail: 'low' } },
      { type: 'audio', source: { data: 'AA', media_type: 'audio/mpeg' } },
      { type: 'file', source: { file_id: 'gs://b/a', media_type: 'audio/mpeg' } },
      { type: 'file', source: { file_url: 'https://youtu.be/x', video: { start: '1s', end: '2s', fps: 5 } } },
      { type: 'file', source: { file_id: expect.any(String) }, extensions: { gemini: {} } },
      { type: 'opaque', origin: 'gemini', raw: { executableCode: { language: 'PYTHON', code: '1' } } },
      { type: 'opaque', origin: 'gemini', raw: { future: 1 } },
    ]);
  });

  test('P128 snake case, everywhere', () => {
    const request = decode({
      system_instruction: { parts: [{ text: 's' }] },
      generation_config: {
        max_output_tokens: 5,
        thinking_config: { include_thoughts: true, thinking_level: 'low' },
        response_mime_type: 'application/json',
      },
      tool_config: { function_calling_config: { mode: 'ANY', allowed_function_names: ['f', 'g'] } },
      tools: [{ function_declarations: [{ name: 'f', parameters_json_schema: { type: 'object' } }], google_search: {} }],
      contents: [
        {
          parts: [
            { inline_data: { mime_type: 'image/png', data: 'A' } },
            { file_data: { mime_type: 'image/png', file_uri: 'https://x' } },
          ],
        },
        { role: 'model', parts: [{ function_call: { name: 'f', args: { snake_case: 1 } }, thought_signature: 'S' }] },
        { parts: [{ function_response: { name: 'f', response: { snake_case: 1 } } }] },
      ],
      cached_content: 'c',
    });
    expect(request).toMatchObject({
      system: [{ text: 's' }],
      parameters: { max_tokens: 5 },
      thinking: { type: 'enabled', effort: 'low', display: 'summarized' },
      output_format: { type: 'json_object' },
      tool_choice: { type: 'any', allowed_tools: ['f', 'g'] },
      tools: [{ name: 'f' }, { kind: 'server', server: { type: 'web_search', wire_type: 'googleSearch' } }],
      state: { cached_content: 'c' },
      messages: [
        { content: [{ type: 'image' }, { type: 'image', source: { url: 'https://x' } }] },
        { content: [{ type: 'tool_use', input: { snake_case: 1 }, signature: { value: 'S' } }] },
        { content: [{ type: 'tool_result', content: '{"snake_case":1}' }] },
      ],
    });
  });
});

describe('the rest of the body', () => {
  const body = (over: Json) => decode({ contents: 'hi', ...over });

  test.each([
    ['s', ['s']],
    [{ parts: [{ text: 'a' }, { text: 'b' }] }, ['a', 'b']],
    [{ role: 'system', parts: { text: 'a' } }, ['a']],
    [{ parts: [{ text: '' }] }, undefined],
  ])('instructions %j', (systemInstruction, texts) => {
    expect(body({ systemInstruction }).system?.map(({ text }) => text)).toEqual(texts);
  });

  test.each([
    [{ mode: 'AUTO' }, { type: 'auto' }],
    [{ mode: 'none' }, { type: 'none' }],
    [{ mode: 'ANY' }, { type: 'any' }],
    [
      { mode: 'ANY', allowedFunctionNames: ['f'] },
      { type: 'tool', name: 'f' },
    ],
    [
      { mode: 'ANY', allowedFunctionNames: ['f', 'g'] },
      { type: 'any', allowed_tools: ['f', 'g'] },
    ],
    [{ mode: 'VALIDATED' }, { type: 'auto', validated: true }],
    [{ mode: 'FUTURE' }, { type: 'auto', native: { value: 'FUTURE', origin: 'gemini' } }],
    [{ mode: 'MODE_UNSPECIFIED' }, undefined],
    [{}, undefined],
  ])('the choice %j', (functionCallingConfig, choice) => {
    const request = body({
      toolConfig: { functionCallingConfig },
      tools: [{ functionDeclarations: [{ name: 'f' }, { name: 'g' }] }],
    });
    expect(request.tool_choice).toEqual(choice);
  });

  test('VALIDATED goes back as it came', () => {
    const toolConfig = { functionCallingConfig: { mode: 'VALIDATED', allowedFunctionNames: ['f'] } };
    const request = body({ toolConfig, tools: [{ functionDeclarations: [{ name: 'f' }, { name: 'g' }] }] });
    expect(encodeRequestBody(request, geminiContext())['toolConfig']).toEqual(toolConfig);
  });

  test('a schema in Google\u2019s own dialect', () => {
    const parameters = {
      type: 'OBJECT',
      properties: {
        a: { type: 'STRING', nullable: true, enum: ['x'], format: 'enum' },
        b: { type: 'ARRAY', items: { type: 'INTEGER' }, minItems: '1' },
        c: { anyOf: [{ type: 'NUMBER' }, { type: 'TYPE_UNSPECIFIED' }] },
      },
      required: ['a'],
    };
    const request = body({
      tools: [{ functionDeclarations: [{ name: 'f', parameters, behavior: 'BLOCKING', response: { type: 'STRING' } }] }],
    });
    expect(request.tools).toMatchObject([
      {
        name: 'f',
        input_schema: {
          type: 'object',
          properties: {
            a: { type: ['string', 'null'], enum: ['x', null] },
            b: { type: 'array', items: { type: 'integer' }, minItems: 1 },
            c: { anyOf: [{ type: 'number' }, {}] },
          },
          required: ['a'],
        },
        output_schema: { type: 'string' },
      },
    ]);
  });

  test.each([
    ['googleSearch', {}, 'web_search'],
    ['googleSearchRetrieval', { dynamicRetrievalConfig: {} }, 'web_search'],
    ['codeExecution', {}, 'code_execution'],
    ['urlContext', {}, 'web_fetch'],
    ['googleMaps', {}, 'google_maps'],
    ['computerUse', { environment: 'ENVIRONMENT_BROWSER' }, 'computer'],
    ['fileSearch', { file_search_store_names: ['x'] }, 'file_search'],
    ['mcpServers', [{ name: 's' }], 'mcp'],
    ['future', { x: 1 }, 'future'],
  ])('the tool %s', (key, config, type) => {
    const request = body({ tools: [{ [key]: config }] });
    expect(request.tools).toMatchObject([{ kind: 'server', server: { type, wire_type: key, origin: 'gemini' } }]);
    expect(encodeRequestBody(request, geminiContext())['tools']).toEqual([{ [key]: config }]);
  });

  test.each([
    [{ thinkingBudget: 0 }, { type: 'disabled' }],
    [
      { thinkingBudget: -1, includeThoughts: true },
      { type: 'adaptive', display: 'summarized' },
    ],
    [{ thinkingBudget: 2000 }, { type: 'enabled', budget_tokens: 2000 }],
    [
      { thinkingLevel: 'HIGH', includeThoughts: false },
      { type: 'enabled', effort: 'high', display: 'omitted' },
    ],
    [{ includeThoughts: true }, { type: 'adaptive', display: 'summarized' }],
  ])('thinking %j', (thinkingConfig, thinking) => {
    const request = body({ generationConfig: { thinkingConfig } });
    expect(request.thinking).toEqual(thinking);
    expect(encodeRequestBody(request, geminiContext())['generationConfig']).toEqual({ thinkingConfig });
  });

  test('unknown fields round-trip at every level', () => {
    const wire = {
      contents: [{ role: 'user', parts: [{ text: 'hi', partMetadata: { a: 1 } }], turn: 1 }],
      systemInstruction: { role: 'system', parts: [{ text: 's', x: 1 }] },
      tools: [{ functionDeclarations: [{ name: 'f', behavior: 'NON_BLOCKING' }] }],
      toolConfig: { retrievalConfig: { languageCode: 'de' }, functionCallingConfig: { streamFunctionCallArguments: true } },
      generationConfig: {
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
        mediaResolution: 'MEDIA_RESOLUTION_LOW',
        audioTimestamp: true,
        responseMimeType: 'text/x.enum',
        responseSchema: { type: 'STRING', enum: ['a'] },
      },
      safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
      labels: { team: 'x' },
      serviceTier: 'flex',
      cachedContent: 'cachedContents/1',
      modelArmorConfig: {},
      __proto__x: { __proto__y: 1 },
    };
    const context = geminiContext();
    expect(encodeRequestBody(decode(wire, context), context)).toEqual(wire);
    expect(context.notes).toEqual([]);
  });

  test('nodes keep their source position', () => {
    const request = decode(
      {
        contents: [{ parts: [{ text: 'a' }, { text: 'b' }] }],
        systemInstruction: 's',
        tools: [{ functionDeclarations: [{ name: 'f' }] }],
      },
      geminiContext({ trace: true }),
    );
    const place = (node: object | undefined) => (node as Record<symbol, unknown> | undefined)?.[SOURCE];
    expect(place(request.messages[0])).toBe('/contents/0');
    expect(place(request.messages[0]?.content[1])).toBe('/contents/0/parts/1');
    expect(place(request.system?.[0])).toBe('/systemInstruction/parts/0');
    expect(place(request.tools?.[0])).toBe('/tools/0/functionDeclarations/0');
  });
});

let deep: unknown = 1;
for (let i = 0; i < 300; i++) deep = { a: deep };

test.each<[unknown, string]>([
  [undefined, 'body'],
  ['x', 'body'],
  [[], 'body'],
  [{}, 'contents'],
  [{ contents: [] }, 'contents'],
  [{ contents: 5 }, 'contents[0]'],
  [{ contents: Array(100_001).fill('x') }, 'contents'],
  [{ contents: [{ role: 'x', parts: [] }] }, 'contents[0].role'],
  [{ contents: [{ role: 5, parts: [] }] }, 'contents[0].role'],
  [{ contents: [{ parts: 5 }] }, 'contents[0].parts'],
  [{ contents: [{ parts: [5] }] }, 'contents[0].parts[0]'],
  [{ contents: [{ role: 'model', parts: [{ functionCall: {} }] }] }, 'contents[0].parts[0].functionCall.name'],
  [{ contents: [{ role: 'user', parts: [call('f')] }] }, 'contents[0].parts[0].functionCall'],
  [{ contents: [{ parts: [{ functionResponse: {} }] }] }, 'contents[0].parts[0].functionResponse.name'],
  [{ contents: [{ parts: [{ x: deep }] }] }, 'contents[0]'],
  [{ contents: 'x', tools: 5 }, 'tools'],
  [{ contents: 'x', tools: [5] }, 'tools[0]'],
  [{ contents: 'x', tools: [{ functionDeclarations: [{}] }] }, 'tools[0].functionDeclarations[0].name'],
  [{ contents: 'x', generationConfig: 5 }, 'generationConfig'],
  [{ contents: 'x', generationConfig: { temperature: 'x' } }, 'generationConfig.temperature'],
  [{ contents: 'x', generationConfig: { stopSequences: 'x' } }, 'generationConfig.stopSequences'],
  [{ contents: 'x', generationConfig: { thinkingConfig: 5 } }, 'generationConfig.thinkingConfig'],
  [
    { contents: 'x', generationConfig: { responseMimeType: 'application/json', responseSchema: 5 } },
    'generationConfig.responseSchema',
  ],
  [{ contents: 'x', systemInstruction: 5 }, 'systemInstruction'],
  [{ contents: 'x', cachedContent: 5 }, 'cachedContent'],
])('%j is refused at %s', (body, param) => {
  expect(paramOf(() => decodeRequestBody(body, geminiContext(), { model: 'm' }))).toBe(param);
});
