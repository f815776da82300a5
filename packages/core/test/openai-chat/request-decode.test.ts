import { describe, expect, test } from 'vitest';
import type { CanonicalMessage, CanonicalRequest, ThinkingConfig, ToolChoice } from '../../src/canonical/request.ts';
import { encodeCarrier } from '../../src/codec/answers.ts';
import type { Policy } from '../../src/codec/protocol.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { decodeRequest, decodeRequestBody } from '../../src/protocols/openai-chat/request-decode.ts';
import { bareContext } from './bare-context.ts';

const HI = { role: 'user', content: 'hi' };
const decode = (body: JsonObject, policy: Policy = {}): CanonicalRequest =>
  decodeRequestBody({ model: 'm', messages: [HI], ...body }, bareContext({ policy }));
const messages = (...list: JsonObject[]): CanonicalMessage[] => decode({ messages: list }).messages;
const contentOf = (message: JsonObject): unknown => messages(message)[0]?.content;
const call = (args: unknown, id = 'a', name = 'f'): JsonObject => ({ id, type: 'function', function: { name, arguments: args } });
const text = (value: string) => ({ type: 'text', text: value });

describe('roles', () => {
  test.each<[name: string, wire: JsonObject[], expected: Partial<CanonicalRequest>]>([
    [
      'seed role system; #7 blocks, not a string',
      [{ role: 'system', content: 'S' }, HI],
      {
        system: [{ type: 'text', text: 'S', role: 'system' }],
        messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
      },
    ],
    [
      'seed role developer; #35 keeps its role',
      [{ role: 'developer', content: 'S' }, HI],
      { system: [{ type: 'text', text: 'S', role: 'developer' }] },
    ],
    [
      '#7 parts of one message: only the first names the role',
      [{ role: 'system', content: [text('A'), text('B')] }, HI],
      {
        system: [
          { type: 'text', text: 'A', role: 'system' },
          { type: 'text', text: 'B' },
        ],
      },
    ],
    [
      '#6 P14: a later system message stays where it is',
      [{ role: 'system', content: 'S' }, HI, { role: 'developer', content: 'be brief' }, HI],
      {
        system: [{ type: 'text', text: 'S', role: 'system' }],
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'hi' }] },
          { role: 'system', content: [{ type: 'text', text: 'be brief' }], extensions: { 'openai-chat': { role: 'developer' } } },
          { role: 'user', content: [{ type: 'text', text: 'hi' }] },
        ],
      },
    ],
    ['seed role user', [HI], { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] }],
    [
      'seed role assistant',
      [{ role: 'assistant', content: 'A' }],
      { messages: [{ role: 'assistant', content: [{ type: 'text', text: 'A' }] }] },
    ],
    [
      'seed role tool; P01: a run of results is one message',
      [
        { role: 'assistant', tool_calls: [call('{}'), call('{}', 'b')] },
        { role: 'tool', tool_call_id: 'a', content: '1' },
        { role: 'tool', tool_call_id: 'b', content: '2' },
      ],
      {
        messages: [
          {
            role: 'assistant',
            content: [
              { type: 'tool_use', id: 'a', name: 'f', input: {}, input_raw: '{}' },
              { type: 'tool_use', id: 'b', name: 'f', input: {}, input_raw: '{}' },
            ],
          },
          {
            role: 'tool',
            content: [
              { type: 'tool_result', tool_use_id: 'a', content: '1', name: 'f' },
              { type: 'tool_result', tool_use_id: 'b', content: '2', name: 'f' },
            ],
          },
        ],
      },
    ],
    [
      'seed role function; #9 P19: the last open call of its name',
      [
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"a":1}' } },
        { role: 'function', name: 'f', content: '1' },
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '' } },
        { role: 'function', name: 'f', content: '2' },
      ],
      {
        messages: [
          { role: 'assistant', content: [{ type: 'tool_use', id: 'fc_0', name: 'f', input: { a: 1 }, input_raw: '{"a":1}' }] },
          { role: 'tool', content: [{ type: 'tool_result', tool_use_id: 'fc_0', content: '1', name: 'f' }] },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'fc_1', name: 'f', input: {} }] },
          { role: 'tool', content: [{ type: 'tool_result', tool_use_id: 'fc_1', content: '2', name: 'f' }] },
        ],
      },
    ],
    [
      '#19 names',
      [{ ...HI, name: 'Ann' }],
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }], name: 'Ann' }] },
    ],
    ['P11: same roles side by side stay apart', [HI, HI], { messages: [messages(HI)[0], messages(HI)[0]] as CanonicalMessage[] }],
  ])('%s', (_, wire, expected) => {
    const request = decode({ messages: wire });
    for (const [key, value] of Object.entries(expected)) expect(request[key as keyof CanonicalRequest]).toEqual(value);
  });

  test('#6: systemHoist "all" is the seed', () => {
    const request = decode({ messages: [HI, { role: 'system', content: 'S' }] }, { systemHoist: 'all' });
    expect([request.system?.[0]?.text, request.messages.length]).toEqual(['S', 1]);
  });
});

describe('content', () => {
  test.each<[name: string, part: unknown, expected: unknown]>([
    ['seed text', text('x'), text('x')],
    [
      'seed image_url with detail',
      { type: 'image_url', image_url: { url: 'https://x/y.png', detail: 'low' } },
      { type: 'image', source: { url: 'https://x/y.png', detail: 'low' } },
    ],
    [
      '#15 P33: a data URL is no URL',
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAA' } },
      { type: 'image', source: { media_type: 'image/png', data: 'AAA' } },
    ],
    [
      'Mistral: image_url is a string',
      { type: 'image_url', image_url: 'https://x' },
      { type: 'image', source: { url: 'https://x' } },
    ],
    [
      'seed input_audio; P36',
      { type: 'input_audio', input_audio: { data: 'A', format: 'wav' } },
      { type: 'audio', source: { data: 'A', format: 'wav', media_type: 'audio/wav' } },
    ],
    [
      'seed file; P34',
      { type: 'file', file: { file_data: 'data:application/pdf;base64,A', filename: 'a.pdf' } },
      { type: 'file', source: { file_data: 'A', media_type: 'application/pdf', filename: 'a.pdf' } },
    ],
    ['P34: raw base64', { type: 'file', file: { file_data: 'A' } }, { type: 'file', source: { file_data: 'A' } }],
    [
      'file by id',
      { type: 'file', file: { file_id: 'f' } },
      { type: 'file', source: { file_id: 'f' }, extensions: { 'openai-chat': { file: { file_id: 'f' } } } },
    ],
    [
      '#12: an unknown part is opaque',
      { type: 'document_url', document_url: 'u' },
      { type: 'opaque', origin: 'openai-chat', raw: { type: 'document_url', document_url: 'u' } },
    ],
    [
      'a part called __proto__ is opaque',
      { type: '__proto__' },
      { type: 'opaque', origin: 'openai-chat', raw: { type: '__proto__' } },
    ],
    [
      '#19: cache breakpoints',
      { ...text('x'), prompt_cache_breakpoint: { mode: 'explicit' } },
      { ...text('x'), cache_control: { type: 'ephemeral' } },
    ],
    [
      'OpenRouter: cache_control, kept too',
      { ...text('x'), cache_control: { type: 'ephemeral', ttl: '1h' } },
      {
        ...text('x'),
        cache_control: { type: 'ephemeral', ttl: '1h' },
        extensions: { 'openai-chat': { cache_control: { type: 'ephemeral', ttl: '1h' } } },
      },
    ],
    [
      'unknown fields of a part',
      { ...text('x'), foo: 1, bar: null },
      { ...text('x'), extensions: { 'openai-chat': { foo: 1 } } },
    ],
    ['a bare string among parts', 'x', text('x')],
  ])('%s', (_, part, expected) => expect(contentOf({ role: 'user', content: [part] })).toEqual([expected]));

  test('#19: the life of a breakpoint is its own, or that of prompt_cache_options', () => {
    const own = { ...text('x'), prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } };
    const usual = { ...text('y'), prompt_cache_breakpoint: { mode: 'explicit' } };
    const request = decode({ messages: [{ role: 'user', content: [own, usual] }], prompt_cache_options: { ttl: '30m' } });
    expect(request.prompt_cache).toEqual({ ttl: '30m' });
    expect(request.messages[0]?.content).toEqual([
      { ...text('x'), cache_control: { type: 'ephemeral', ttl: '12h' } },
      { ...text('y'), cache_control: { type: 'ephemeral' } },
    ]);
  });

  const mark = { type: 'ephemeral', ttl: '1h' };
  const image = { type: 'image_url', image_url: { url: 'https://a.test/x.png' } };
  const audio = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };
  const file = { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' } };

  test.each<[name: string, part: JsonObject]>([
    ['text', text('x')],
    ['an image', image],
    ['audio', audio],
    ['a file', file],
  ])('a cache mark of the message is one of its last part: %s', (_, part) => {
    const content = contentOf({ role: 'user', content: [text('a'), part], cache_control: mark });
    expect(content).toMatchObject([text('a'), { cache_control: mark }]);
  });

  test('a cache mark after a part of unknown type is one of the part before it', () => {
    const content = [image, { type: 'document_url', document_url: 'u' }];
    expect(contentOf({ role: 'user', content, cache_control: mark })).toMatchObject([
      { cache_control: mark },
      { type: 'opaque' },
    ]);
  });

  test.each<[name: string, content: unknown]>([
    ['P29 an empty text', ''],
    ['P29 an empty list', []],
    ['P29 an empty part', [text('')]],
  ])('%s makes no block', (_, content) => expect(contentOf({ role: 'user', content })).toEqual([]));
});

describe('the assistant', () => {
  const thinking = (value: string, fields?: JsonObject) => ({
    type: 'thinking',
    thinking: value,
    variant: value === '' ? 'redacted' : 'full',
    ...(fields && { extensions: { 'openai-chat': fields } }),
  });
  const details = [{ type: 'reasoning.text', text: 'R', signature: 's', index: 0 }];
  const encrypted = [{ type: 'reasoning.encrypted', data: 'D', id: '1' }];
  const blob = { origin: 'anthropic-messages', form: 'signature', value: 'sig', provider: 'claude' } as const;
  const carried = (attach: 'self' | 'next') => [{ type: 'reasoning.encrypted', data: encodeCarrier(blob, 'claude', attach) }];

  test.each<[name: string, message: JsonObject, expected: unknown[]]>([
    ['null content', { content: null }, []],
    ['parts', { content: [text('A'), text('B')] }, [text('A'), text('B')]],
    ['#14 P37 refusal field', { content: null, refusal: 'No.' }, [{ ...text('No.'), refusal: true }]],
    [
      '#14 refusal part, behind the text',
      { content: [{ type: 'refusal', refusal: 'No.' }, text('A')] },
      [text('A'), { ...text('No.'), refusal: true }],
    ],
    ['#20 #28 reasoning_content comes first', { content: 'A', reasoning_content: 'R' }, [thinking('R'), text('A')]],
    ['#20 reasoning', { content: 'A', reasoning: 'R' }, [thinking('R'), text('A')]],
    ['both names', { content: 'A', reasoning_content: 'R', reasoning: 'R' }, [thinking('R', { reasoning: 'R' }), text('A')]],
    [
      'reasoning_details with text',
      { content: 'A', reasoning_details: details },
      [thinking('R', { reasoning_details: details }), text('A')],
    ],
    [
      'reasoning_details without text',
      { content: 'A', reasoning_details: encrypted },
      [thinking('', { reasoning_details: encrypted }), text('A')],
    ],
    ['empty reasoning', { content: 'A', reasoning_content: '' }, [text('A')]],
    ['Mistral thinking part', { content: [{ type: 'thinking', thinking: [text('R')] }, text('A')] }, [thinking('R'), text('A')]],
    [
      'a carrier of its own',
      { content: 'A', reasoning_details: carried('self') },
      [{ ...thinking(''), signature: blob }, text('A')],
    ],
    [
      'a carrier for the next block',
      { content: null, reasoning_details: carried('next'), tool_calls: [call('{}')] },
      [{ type: 'tool_use', id: 'a', name: 'f', input: {}, input_raw: '{}', signature: blob }],
    ],
    [
      '#19 audio by id',
      { content: null, audio: { id: 'au', transcript: 't' } },
      [{ type: 'audio', source: {}, audio_id: 'au', extensions: { 'openai-chat': { transcript: 't' } } }],
    ],
    [
      'tool_calls beside text; P29 no empty text',
      { content: '', tool_calls: [call('{"a": 1}')] },
      [{ type: 'tool_use', id: 'a', name: 'f', input: { a: 1 }, input_raw: '{"a": 1}' }],
    ],
    [
      'seed custom call; P46',
      { content: null, tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'sql', input: 'SELECT 1' } }] },
      [{ type: 'tool_use', id: 'a', name: 'sql', input: 'SELECT 1', kind: 'custom' }],
    ],
    ['#8 P42 empty arguments', { tool_calls: [call('')] }, [{ type: 'tool_use', id: 'a', name: 'f', input: {} }]],
    [
      '#8 P43 cut arguments',
      { tool_calls: [call('{"a":1')] },
      [{ type: 'tool_use', id: 'a', name: 'f', input: {}, input_raw: '{"a":1' }],
    ],
    [
      'P44 arguments that are a list',
      { tool_calls: [call('[1]')] },
      [{ type: 'tool_use', id: 'a', name: 'f', input: {}, input_raw: '[1]' }],
    ],
    ['P45 arguments as an object', { tool_calls: [call({ a: 1 })] }, [{ type: 'tool_use', id: 'a', name: 'f', input: { a: 1 } }]],
    ['no arguments', { tool_calls: [call(null)] }, [{ type: 'tool_use', id: 'a', name: 'f', input: {} }]],
    [
      'fields of a call',
      { tool_calls: [{ ...call('{}'), index: 0 }] },
      [{ type: 'tool_use', id: 'a', name: 'f', input: {}, input_raw: '{}', extensions: { 'openai-chat': { index: 0 } } }],
    ],
    [
      'Gemini signature of a call',
      { tool_calls: [{ ...call('{}'), extra_content: { google: { thought_signature: 'S' } } }] },
      [
        {
          type: 'tool_use',
          id: 'a',
          name: 'f',
          input: {},
          input_raw: '{}',
          signature: { origin: 'gemini', form: 'thought_signature', value: 'S' },
          extensions: { 'openai-chat': { extra_content: { google: { thought_signature: 'S' } } } },
        },
      ],
    ],
  ])('%s', (_, message, expected) => expect(contentOf({ role: 'assistant', ...message })).toEqual(expected));

  test('prefix stays on the message', () => {
    expect(messages({ role: 'assistant', content: '{', prefix: true })[0]?.extensions).toEqual({
      'openai-chat': { prefix: true },
    });
  });

  test('P24: a call without an id gets the same one each time, and is told', () => {
    const body = {
      model: 'm',
      messages: [
        { role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: '{}' } }] },
        { role: 'tool', content: '1' },
      ],
    };
    const context = bareContext();
    const request = decodeRequestBody(body, context);
    const [block] = request.messages[0]?.content ?? [];
    const id = block?.type === 'tool_use' ? block.id : '';
    expect(id).toMatch(/^call_[0-9a-f]{24}$/);
    expect(request.messages[1]?.content[0]).toMatchObject({ tool_use_id: id });
    expect(decodeRequestBody(body, bareContext())).toEqual(request);
    expect(context.notes.map(({ code, path }) => [code, path])).toEqual([
      ['REPAIRED', '/messages/0/tool_calls/0/id'],
      ['REPAIRED', '/messages/1/tool_call_id'],
    ]);
  });
});

describe('results', () => {
  test.each<[name: string, message: JsonObject, expected: unknown]>([
    ['a text', { content: '1' }, { content: '1' }],
    ['null', { content: null }, { content: '' }],
    [
      '#13 parts are kept',
      { content: [text('1'), { type: 'image_url', image_url: { url: 'u' } }] },
      { content: [text('1'), { type: 'image', source: { url: 'u' } }] },
    ],
    ['a name', { content: '1', name: 'f' }, { content: '1', name: 'f', extensions: { 'openai-chat': { name: 'f' } } }],
  ])('%s', (_, message, expected) => {
    expect(contentOf({ role: 'tool', tool_call_id: 'z', ...message })).toEqual([
      { type: 'tool_result', tool_use_id: 'z', ...(expected as object) },
    ]);
  });
});

describe('tools', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } } };
  /** Of functions that came without `parameters`. */
  const NO_SCHEMA = { extensions: { 'openai-chat': { function: { parameters: null } } } };
  test.each<[name: string, body: JsonObject, expected: unknown]>([
    [
      'seed function: name, description, parameters',
      { tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters: schema } }] },
      [{ name: 'f', description: 'd', input_schema: schema }],
    ],
    [
      'seed strict; #18',
      { tools: [{ type: 'function', function: { name: 'f', strict: true } }] },
      [{ name: 'f', strict: true, ...NO_SCHEMA }],
    ],
    ['no type', { tools: [{ function: { name: 'f' } }] }, [{ name: 'f', ...NO_SCHEMA }]],
    ['seed custom; #10', { tools: [{ type: 'custom', custom: { name: 'c' } }] }, [{ name: 'c', kind: 'custom' }]],
    [
      'custom with a grammar',
      {
        tools: [
          { type: 'custom', custom: { name: 'c', format: { type: 'grammar', grammar: { syntax: 'regex', definition: 'a+' } } } },
        ],
      },
      [{ name: 'c', kind: 'custom', format: { type: 'grammar', syntax: 'regex', definition: 'a+' } }],
    ],
    [
      'a tool of the provider',
      { tools: [{ type: 'openrouter:web_search', parameters: { max_uses: 1 } }] },
      [
        {
          name: 'web_search',
          kind: 'server',
          server: {
            type: 'web_search',
            wire_type: 'openrouter:web_search',
            config: { parameters: { max_uses: 1 } },
            origin: 'openai-chat',
          },
        },
      ],
    ],
    [
      'fields of a tool',
      { tools: [{ type: 'function', x: 1, function: { name: 'f', y: 2 } }] },
      [{ name: 'f', extensions: { 'openai-chat': { x: 1, function: { y: 2, parameters: null } } } }],
    ],
    [
      'seed functions',
      { functions: [{ name: 'f', description: 'd', parameters: schema }] },
      [{ name: 'f', description: 'd', input_schema: schema }],
    ],
    [
      'seed functions: tools win',
      { tools: [{ type: 'function', function: { name: 'g' } }], functions: [{ name: 'f' }] },
      [{ name: 'g', ...NO_SCHEMA }],
    ],
    [
      'web_search_options',
      { web_search_options: { search_context_size: 'low' } },
      [
        {
          name: 'web_search',
          kind: 'server',
          server: {
            type: 'web_search',
            wire_type: 'web_search_options',
            config: { search_context_size: 'low' },
            origin: 'openai-chat',
          },
        },
      ],
    ],
    ['P58 an empty list', { tools: [] }, undefined],
    ['null', { tools: null }, undefined],
  ])('%s', (_, body, expected) => expect(decode(body).tools).toEqual(expected));

  const allowed = {
    mode: 'required',
    tools: [
      { type: 'function', function: { name: 'f' } },
      { type: 'custom', custom: { name: 'c' } },
    ],
  };
  test.each<[name: string, body: JsonObject, expected: ToolChoice | undefined]>([
    ['seed "auto"', { tool_choice: 'auto' }, { type: 'auto' }],
    ['seed "none"', { tool_choice: 'none' }, { type: 'none' }],
    ['seed "required"', { tool_choice: 'required' }, { type: 'any' }],
    ['Mistral\'s "any"', { tool_choice: 'any' }, { type: 'any' }],
    ['"__proto__"', { tool_choice: '__proto__' }, { type: 'auto', native: { value: '__proto__', origin: 'openai-chat' } }],
    ['seed function', { tool_choice: { type: 'function', function: { name: 'f' } } }, { type: 'tool', name: 'f' }],
    ['seed custom', { tool_choice: { type: 'custom', custom: { name: 'c' } } }, { type: 'tool', name: 'c' }],
    [
      'seed allowed_tools required; #11',
      { tool_choice: { type: 'allowed_tools', allowed_tools: allowed } },
      { type: 'any', allowed_tools: ['f', 'c'] },
    ],
    [
      'seed allowed_tools auto',
      { tool_choice: { type: 'allowed_tools', allowed_tools: { ...allowed, mode: 'auto' } } },
      { type: 'auto', allowed_tools: ['f', 'c'] },
    ],
    [
      'allowed_tools, flat',
      { tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }] } },
      { type: 'auto', allowed_tools: ['f'] },
    ],
    ['in the words of Anthropic', { tool_choice: { type: 'tool', name: 'f' } }, { type: 'tool', name: 'f' }],
    ['#12 null', { tool_choice: null }, undefined],
    ['seed function_call "none"', { function_call: 'none' }, { type: 'none' }],
    ['seed function_call "auto"', { function_call: 'auto' }, { type: 'auto' }],
    ['seed function_call by name', { function_call: { name: 'f' } }, { type: 'tool', name: 'f' }],
    ['seed function_call: tool_choice wins', { function_call: 'none', tool_choice: 'auto' }, { type: 'auto' }],
  ])('choice: %s', (_, body, expected) => expect(decode(body).tool_choice).toEqual(expected));
});

describe('fields', () => {
  test.each<[name: string, body: JsonObject, expected: { [K in keyof CanonicalRequest]?: CanonicalRequest[K] | undefined }]>([
    ['seed max_completion_tokens', { max_completion_tokens: 7, max_tokens: 9 }, { parameters: { max_tokens: 7 } }],
    ['seed max_tokens', { max_tokens: 9 }, { parameters: { max_tokens: 9 } }],
    ['#21 0 is a value, null is absence', { max_tokens: 0, stop: null, temperature: null }, { parameters: { max_tokens: 0 } }],
    ['seed temperature', { temperature: 0 }, { parameters: { temperature: 0 } }],
    ['seed top_p', { top_p: 0.5 }, { parameters: { top_p: 0.5 } }],
    ['seed frequency_penalty', { frequency_penalty: -1 }, { parameters: { frequency_penalty: -1 } }],
    ['seed presence_penalty', { presence_penalty: 1 }, { parameters: { presence_penalty: 1 } }],
    ['seed stop, a string', { stop: 'x' }, { parameters: { stop_sequences: ['x'] } }],
    ['seed stop, a list', { stop: ['x', 'y'] }, { parameters: { stop_sequences: ['x', 'y'] } }],
    ['seed stream', { stream: true }, { stream: true }],
    ['seed user', { user: 'u' }, { user_id: 'u' }],
    ['safety_identifier ?? user', { user: 'u', safety_identifier: 's' }, { user_id: 's' }],
    [
      'seed response_format json_object',
      { response_format: { type: 'json_object' } },
      { output_format: { type: 'json_object' } },
    ],
    [
      'seed response_format json_schema',
      { response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' }, strict: true } } },
      { output_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' }, strict: true } } },
    ],
    ['seed response_format text', { response_format: { type: 'text' } }, { output_format: undefined }],
    [
      'a format of one server',
      { response_format: { type: 'grammar', x: 1 } },
      { output_format: undefined, extensions: { 'openai-chat': { response_format: { type: 'grammar', x: 1 } } } },
    ],
    ['seed parallel_tool_calls; P60', { parallel_tool_calls: false }, { parallel_tool_use: false }],
    ['seed seed; #18', { seed: 1 }, { parameters: { seed: 1 } }],
    ['seed logprobs, top_logprobs', { logprobs: true, top_logprobs: 3 }, { parameters: { logprobs: true, top_logprobs: 3 } }],
    ['logprobs as Together counts them', { logprobs: 1 }, { parameters: {}, extensions: { 'openai-chat': { logprobs: 1 } } }],
    ['seed logit_bias', { logit_bias: { 5: -100 } }, { parameters: { logit_bias: { 5: -100 } } }],
    ['seed n', { n: 2 }, { parameters: { n: 2 } }],
    ['seed service_tier default', { service_tier: 'default' }, { service_tier: 'standard' }],
    ['service_tier fast', { service_tier: 'fast' }, { service_tier: 'priority' }],
    ['seed store', { store: false }, { store: false }],
    ['seed metadata', { metadata: { a: 'b' } }, { metadata: { a: 'b' } }],
    [
      'metadata of other kinds',
      { metadata: { a: 1 } },
      { metadata: undefined, extensions: { 'openai-chat': { metadata: { a: 1 } } } },
    ],
    ['seed modalities', { modalities: ['text', 'audio'] }, { modalities: ['text', 'audio'] }],
    ['seed audio', { audio: { format: 'wav', voice: 'alloy' } }, { audio_output: { format: 'wav', voice: 'alloy' } }],
    [
      'seed prediction',
      { prediction: { type: 'content', content: 'x' } },
      { extensions: { 'openai-chat': { prediction: { type: 'content', content: 'x' } } } },
    ],
    [
      'seed stream_options',
      { stream_options: { include_usage: true, include_obfuscation: false, x: 1 } },
      {
        stream_options: { include_usage: true, include_obfuscation: false },
        extensions: { 'openai-chat': { stream_options: { x: 1 } } },
      },
    ],
    ['seed safety_identifier', { safety_identifier: 's' }, { user_id: 's' }],
    ['seed prompt_cache_key', { prompt_cache_key: 'k' }, { prompt_cache: { key: 'k' } }],
    ['seed prompt_cache_retention', { prompt_cache_retention: '24h' }, { prompt_cache: { ttl: '24h' } }],
    [
      'prompt_cache_options',
      { prompt_cache_options: { mode: 'explicit', ttl: '30m' } },
      { prompt_cache: { mode: 'explicit', ttl: '30m' } },
    ],
    ['seed verbosity', { verbosity: 'low' }, { verbosity: 'low' }],
    ['moderation', { moderation: { x: 1 } }, { extensions: { 'openai-chat': { moderation: { x: 1 } } } }],
    ['unknown fields', { min_p: 0.1, gone: null }, { extensions: { 'openai-chat': { min_p: 0.1 } } }],
  ])('%s', (_, body, expected) => {
    const request = decode(body);
    for (const [key, value] of Object.entries(expected)) expect(request[key as keyof CanonicalRequest]).toEqual(value);
  });

  test.each<[name: string, body: JsonObject, expected: ThinkingConfig | undefined]>([
    ['seed none', { reasoning_effort: 'none' }, { type: 'disabled' }],
    ['#16 seed minimal', { reasoning_effort: 'minimal' }, { type: 'enabled', effort: 'minimal' }],
    ['seed low', { reasoning_effort: 'low' }, { type: 'enabled', effort: 'low' }],
    ['seed medium', { reasoning_effort: 'medium' }, { type: 'enabled', effort: 'medium' }],
    ['seed high', { reasoning_effort: 'high' }, { type: 'enabled', effort: 'high' }],
    ['seed xhigh', { reasoning_effort: 'xhigh' }, { type: 'enabled', effort: 'xhigh' }],
    ['#16 max', { reasoning_effort: 'max' }, { type: 'enabled', effort: 'max' }],
    ['null', { reasoning_effort: null }, undefined],
    ['a word of Groq', { reasoning_effort: 'default' }, undefined],
    ['27 thinking enabled', { thinking: { type: 'enabled' } }, { type: 'enabled' }],
    ['27 thinking disabled', { thinking: { type: 'disabled' } }, { type: 'disabled' }],
    ['27 thinking with a budget', { thinking: { type: 'enabled', budget_tokens: 9 } }, { type: 'enabled', budget_tokens: 9 }],
    [
      '27 thinking and an effort',
      { thinking: { type: 'enabled' }, reasoning_effort: 'high' },
      { type: 'enabled', effort: 'high' },
    ],
    ['27 reasoning effort', { reasoning: { effort: 'low' } }, { type: 'enabled', effort: 'low' }],
    ['27 reasoning max_tokens', { reasoning: { max_tokens: 99 } }, { type: 'enabled', budget_tokens: 99 }],
    ['27 reasoning enabled', { reasoning: { enabled: true } }, { type: 'enabled' }],
    ['27 reasoning off', { reasoning: { enabled: false } }, { type: 'disabled' }],
    ['27 enable_thinking', { enable_thinking: true, thinking_budget: 5 }, { type: 'enabled', budget_tokens: 5 }],
    ['27 enable_thinking false', { enable_thinking: false }, { type: 'disabled' }],
    ['disable_thinking', { disable_thinking: true }, { type: 'disabled' }],
  ])('thinking: %s', (_, body, expected) => expect(decode(body).thinking).toEqual(expected));

  test('Azure: the path names the model', () => {
    const wire = {
      method: 'POST',
      path: '/openai/deployments/my%20gpt/chat/completions?api-version=1',
      headers: {},
      body: { messages: [HI] },
    };
    expect(decodeRequest(wire, bareContext()).model).toBe('my gpt');
  });

  test('__proto__ is data', () => {
    const body = JSON.parse('{"model":"m","messages":[{"role":"user","content":"x","__proto__":{"b":2}}],"__proto__":{"a":1}}');
    const request = decodeRequestBody(body, bareContext());
    expect(JSON.stringify(request.extensions)).toBe('{"openai-chat":{"__proto__":{"a":1}}}');
    expect(JSON.stringify(request.messages[0]?.extensions)).toBe('{"openai-chat":{"__proto__":{"b":2}}}');
    expect(({} as JsonObject)['a']).toBeUndefined();
  });
});
