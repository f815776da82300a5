import { describe, expect, test } from 'vitest';
import type { ContentBlock } from '../../src/canonical/message.ts';
import type {
  CanonicalMessage,
  CanonicalRequest,
  CanonicalTool,
  SystemBlock,
  ThinkingConfig,
} from '../../src/canonical/request.ts';
import type { ProviderProfile } from '../../src/codec/profile.ts';
import type { Policy } from '../../src/codec/protocol.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { sha256 } from '../../src/passes/names.ts';
import { DEFAULT_CHAT_PROFILE } from '../../src/protocols/openai-chat/profiles.ts';
import { decodeRequestBody } from '../../src/protocols/openai-chat/request-decode.ts';
import { encodeRequest, encodeRequestBody } from '../../src/protocols/openai-chat/request-encode.ts';
import { bareContext, paramOf } from './bare-context.ts';

interface Given {
  profile?: Partial<ProviderProfile>;
  policy?: Policy;
}

const USER: CanonicalMessage = { role: 'user', content: [{ type: 'text', text: 'hi' }] };
const contextOf = ({ profile, policy = {} }: Given) => bareContext({ profile: { ...DEFAULT_CHAT_PROFILE, ...profile }, policy });

/** The body, and the notes as `CODE feature`. Whatever was written is read and written again: the same. */
function encode(request: Partial<CanonicalRequest>, given: Given = {}): { body: JsonObject; told: string[] } {
  const context = contextOf(given);
  const body = encodeRequestBody({ model: 'm', messages: [USER], parameters: {}, ...request }, context);
  const again = contextOf(given);
  expect(encodeRequestBody(decodeRequestBody(body, again), again), 'encode, decode, encode').toEqual(body);
  return { body, told: context.notes.map(({ code, feature }) => `${code} ${feature}`) };
}

const say = (...content: ContentBlock[]): CanonicalMessage => ({ role: 'assistant', content });
const text = (value: string): ContentBlock => ({ type: 'text', text: value });
const use = (id: string, over: Partial<Extract<ContentBlock, { type: 'tool_use' }>> = {}): ContentBlock => ({
  type: 'tool_use',
  id,
  name: 'f',
  input: {},
  ...over,
});
const result = (id: string, content: string | ContentBlock[] = '1', over: object = {}): CanonicalMessage => ({
  role: 'tool',
  content: [{ type: 'tool_result', tool_use_id: id, content, ...over } as ContentBlock],
});
const fn = (id: string, args = '{}', name = 'f') => ({ id, type: 'function', function: { name, arguments: args } });
const PNG: ContentBlock = { type: 'image', source: { data: 'AAA', media_type: 'image/png' } };
const PNG_PART = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAA' } };
const HI = { role: 'user', content: 'hi' };

describe('messages', () => {
  const foreign = { origin: 'anthropic-messages', form: 'signature', value: 's' } as const;
  const think = (over: object = {}): ContentBlock => ({ type: 'thinking', thinking: 'R', ...over });
  const deepseek: Given = { profile: { reasoning_replay: 'tool_turns' } };

  test.each<[name: string, messages: CanonicalMessage[], expected: JsonObject[], told?: string[], given?: Given]>([
    ['seed user: one text is a string; #22 the conversation is sent once', [USER], [HI]],
    [
      'seed user: parts',
      [{ role: 'user', content: [text('a'), PNG] }],
      [{ role: 'user', content: [{ type: 'text', text: 'a' }, PNG_PART] }],
    ],
    ['#26 P33: a data URL is built again', [{ role: 'user', content: [PNG] }], [{ role: 'user', content: [PNG_PART] }]],
    [
      'image by URL with detail',
      [{ role: 'user', content: [{ type: 'image', source: { url: 'u', detail: 'low' } }] }],
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'u', detail: 'low' } }] }],
    ],
    [
      'detail original',
      [{ role: 'user', content: [{ type: 'image', source: { url: 'u', detail: 'original' } }] }],
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'u', detail: 'high' } }] }],
      ['APPROXIMATED image.detail'],
    ],
    [
      'seed audio; P36',
      [{ role: 'user', content: [{ type: 'audio', source: { data: 'A', media_type: 'audio/mpeg' } }] }],
      [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'A', format: 'mp3' } }] }],
    ],
    [
      'seed file; P34',
      [{ role: 'user', content: [{ type: 'file', source: { file_data: 'A', media_type: 'application/pdf' } }] }],
      [
        {
          role: 'user',
          content: [{ type: 'file', file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,A' } }],
        },
      ],
    ],
    [
      'P34 raw base64 by its name',
      [{ role: 'user', content: [{ type: 'file', source: { file_data: 'A', filename: 'a.TXT' } }] }],
      [{ role: 'user', content: [{ type: 'file', file: { filename: 'a.TXT', file_data: 'data:text/plain;base64,A' } }] }],
    ],
    ['P29 empty texts are left out', [{ role: 'user', content: [text(''), text('a')] }], [{ role: 'user', content: 'a' }]],
    [
      'no parts for servers that take none',
      [{ role: 'user', content: [text('a'), text('b')] }],
      [{ role: 'user', content: 'a\n\nb' }],
      [],
      { profile: { content_parts: false } },
    ],
    [
      'opaque of others: the stand-in',
      [{ role: 'user', content: [{ type: 'opaque', origin: 'gemini', raw: 1, text: 't' }, text('a')] }],
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 't' },
            { type: 'text', text: 'a' },
          ],
        },
      ],
      ['APPROXIMATED messages.opaque'],
    ],
    [
      'opaque of others without one',
      [{ role: 'user', content: [{ type: 'opaque', origin: 'gemini', raw: 1 }, text('a')] }],
      [{ role: 'user', content: 'a' }],
      ['DROPPED messages.opaque'],
    ],
    ['#27 P11: no merging', [USER, USER], [HI, HI]],
    [
      '#27 strict_alternation',
      [USER, USER],
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'hi' },
            { type: 'text', text: 'hi' },
          ],
        },
      ],
      [],
      { profile: { strict_alternation: true } },
    ],
    [
      'P14 P15 a system message in the middle',
      [USER, { role: 'system', content: [text('s')] }, USER],
      [HI, { role: 'system', content: 's' }, HI],
    ],
    ['seed assistant: text', [say(text('a'))], [{ role: 'assistant', content: 'a' }]],
    ['seed assistant: texts are joined', [say(text('a'), text('b'))], [{ role: 'assistant', content: 'ab' }]],
    ['seed assistant: only calls', [say(use('a'))], [{ role: 'assistant', content: null, tool_calls: [fn('a')] }]],
    ['seed assistant: nothing', [say()], [{ role: 'assistant', content: '' }]],
    [
      '#14 P37 refusal',
      [say({ type: 'text', text: 'No.', refusal: true })],
      [{ role: 'assistant', content: null, refusal: 'No.' }],
    ],
    [
      'P17 text between calls',
      [say(text('A'), use('1'), text('B'), use('2'))],
      [{ role: 'assistant', content: 'AB', tool_calls: [fn('1'), fn('2')] }],
      ['APPROXIMATED assistant.order'],
    ],
    [
      'the argument text goes verbatim',
      [say(use('a', { input: { b: 1 }, input_raw: '{ "b": 1 }' }))],
      [{ role: 'assistant', content: null, tool_calls: [fn('a', '{ "b": 1 }')] }],
    ],
    [
      'P43 broken arguments go back',
      [say(use('a', { input_raw: '{"a":1' }))],
      [{ role: 'assistant', content: null, tool_calls: [fn('a', '{"a":1')] }],
    ],
    [
      '#25 P46 a custom call',
      [say(use('a', { kind: 'custom', input: 'SELECT 1' }))],
      [{ role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'f', input: 'SELECT 1' } }] }],
      [],
      { profile: { custom_tools: true } },
    ],
    [
      '#25 P46 a custom call as a function',
      [say(use('a', { kind: 'custom', input: 'SELECT 1' }))],
      [{ role: 'assistant', content: null, tool_calls: [fn('a', '{"input":"SELECT 1"}')] }],
    ],
    [
      'calls of another provider are dropped',
      [say(text('a'), use('s', { kind: 'server' }))],
      [{ role: 'assistant', content: 'a' }],
      ['DROPPED assistant.tool_use'],
    ],
    ['an image that the model made', [say(text('a'), PNG)], [{ role: 'assistant', content: 'a' }], ['DROPPED assistant.image']],
    [
      '#19 audio by its id',
      [say({ type: 'audio', source: {}, audio_id: 'au' })],
      [{ role: 'assistant', content: null, audio: { id: 'au' } }],
    ],
    [
      'audio without an id: what was said',
      [say({ type: 'audio', source: { data: 'A' }, transcript: 't' })],
      [{ role: 'assistant', content: 't' }],
      ['APPROXIMATED assistant.audio'],
    ],
    [
      'citations',
      [say({ type: 'text', text: 'a', citations: [{ kind: 'url', origin: 'gemini' }] })],
      [{ role: 'assistant', content: 'a' }],
      ['DROPPED messages.citations'],
    ],
    [
      'P13 prefix',
      [USER, say(text('{'))],
      [HI, { role: 'assistant', content: '{', prefix: true }],
      [],
      { profile: { prefix: true } },
    ],

    ['#28 thinking: never', [say(think(), text('a'))], [{ role: 'assistant', content: 'a' }], ['DROPPED assistant.thinking']],
    [
      '#28 P84 thinking: with calls',
      [say(think(), use('a')), result('a')],
      [
        { role: 'assistant', reasoning_content: 'R', content: null, tool_calls: [fn('a')] },
        { role: 'tool', tool_call_id: 'a', content: '1' },
      ],
      [],
      deepseek,
    ],
    [
      'P84 thinking: with calls even when there is none',
      [say(use('a'))],
      [{ role: 'assistant', reasoning_content: '', content: null, tool_calls: [fn('a')] }],
      [],
      deepseek,
    ],
    [
      'P84 thinking: without calls',
      [say(think(), text('a'))],
      [{ role: 'assistant', content: 'a' }],
      ['DROPPED assistant.thinking'],
      deepseek,
    ],
    [
      'thinking: always, in its field',
      [say(think(), text('a'))],
      [{ role: 'assistant', reasoning: 'R', content: 'a' }],
      [],
      { profile: { reasoning_replay: 'always', reasoning_field: 'reasoning' } },
    ],
    [
      'thinking: as a part',
      [say(think(), text('a'))],
      [
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: [{ type: 'text', text: 'R' }] },
            { type: 'text', text: 'a' },
          ],
        },
      ],
      [],
      { profile: { reasoning_replay: 'always', reasoning_field: 'parts' } },
    ],
    [
      'P77 thinking that another signed',
      [say(think({ signature: foreign }), text('a'))],
      [{ role: 'assistant', content: 'a' }],
      ['DROPPED assistant.thinking'],
      { profile: { reasoning_replay: 'always' } },
    ],
    [
      'thinking that another signed, as text',
      [say(think({ signature: foreign }), text('a'))],
      [{ role: 'assistant', content: '<thinking>R</thinking>a' }],
      [],
      { policy: { foreignThinking: 'text' } },
    ],

    [
      '#23 P01 P03: one message a result',
      [say(use('a'), use('b')), { role: 'tool', content: [...result('a').content, ...result('b').content] }],
      [
        { role: 'assistant', content: null, tool_calls: [fn('a'), fn('b')] },
        { role: 'tool', tool_call_id: 'a', content: '1' },
        { role: 'tool', tool_call_id: 'b', content: '1' },
      ],
    ],
    ['#24 a tool message without results', [USER, { role: 'tool', content: [] }], [HI]],
    [
      'P06 results follow their call',
      [say(use('a')), USER, result('a')],
      [{ role: 'assistant', content: null, tool_calls: [fn('a')] }, { role: 'tool', tool_call_id: 'a', content: '1' }, HI],
      ['REPAIRED messages.tool_order'],
    ],
    [
      'P04 a call without a result',
      [say(use('a')), USER],
      [
        { role: 'assistant', content: null, tool_calls: [fn('a')] },
        { role: 'tool', tool_call_id: 'a', content: 'Error: No result was recorded for this call.' },
        HI,
      ],
      ['REPAIRED messages.tool_use', 'APPROXIMATED tool_result.is_error'],
    ],
    [
      'P05 a result without a call',
      [USER, result('z')],
      [HI, { role: 'user', content: 'Result of an earlier tool call: 1' }],
      ['REPAIRED messages.tool_result'],
    ],
    [
      '#29 P40 is_error',
      [say(use('a')), result('a', 'boom', { is_error: true })],
      [
        { role: 'assistant', content: null, tool_calls: [fn('a')] },
        { role: 'tool', tool_call_id: 'a', content: 'Error: boom' },
      ],
      ['APPROXIMATED tool_result.is_error'],
    ],
    [
      '#29 P40 is_error that says so',
      [say(use('a')), result('a', 'error: x', { is_error: true })],
      [
        { role: 'assistant', content: null, tool_calls: [fn('a')] },
        { role: 'tool', tool_call_id: 'a', content: 'error: x' },
      ],
      ['APPROXIMATED tool_result.is_error'],
    ],
    [
      '#29 P30 media in a result follow in a user message, behind all results',
      [say(use('a'), use('b')), { role: 'tool', content: [...result('a', [text('shot'), PNG]).content, ...result('b').content] }],
      [
        { role: 'assistant', content: null, tool_calls: [fn('a'), fn('b')] },
        { role: 'tool', tool_call_id: 'a', content: 'shot' },
        { role: 'tool', tool_call_id: 'b', content: '1' },
        { role: 'user', content: [{ type: 'text', text: 'Attachment of tool call a:' }, PNG_PART] },
      ],
      ['APPROXIMATED tool_result.media'],
    ],
    [
      'media in a result where they may be',
      [say(use('a')), result('a', [PNG])],
      [
        { role: 'assistant', content: null, tool_calls: [fn('a')] },
        { role: 'tool', tool_call_id: 'a', content: [PNG_PART] },
      ],
      [],
      { profile: { tool_images: true } },
    ],
    [
      'texts of a result',
      [say(use('a')), result('a', [text('x'), text('y')])],
      [
        { role: 'assistant', content: null, tool_calls: [fn('a')] },
        { role: 'tool', tool_call_id: 'a', content: 'x\ny' },
      ],
    ],
  ])('%s', (_, messages, expected, told = [], given = {}) => {
    const found = encode({ messages }, given);
    expect(found.body['messages']).toEqual(expected);
    expect(found.told).toEqual(told);
  });

  test.each<[name: string, system: SystemBlock[], expected: JsonObject[], profile?: Partial<ProviderProfile>]>([
    [
      'seed: blocks are joined',
      [
        { type: 'text', text: 'A' },
        { type: 'text', text: 'B' },
      ],
      [{ role: 'system', content: 'A\n\nB' }],
    ],
    [
      'each role begins a message',
      [
        { type: 'text', text: 'A', role: 'system' },
        { type: 'text', text: 'B', role: 'system' },
      ],
      [
        { role: 'system', content: 'A' },
        { role: 'system', content: 'B' },
      ],
    ],
    [
      '#35 P16 developer for who knows it',
      [{ type: 'text', text: 'A', role: 'developer' }],
      [{ role: 'developer', content: 'A' }],
      { system_role: 'developer' },
    ],
    ['#35 P16 developer for who does not', [{ type: 'text', text: 'A', role: 'developer' }], [{ role: 'system', content: 'A' }]],
    [
      '#35 of another protocol',
      [{ type: 'text', text: 'A' }],
      [{ role: 'developer', content: 'A' }],
      { system_role: 'developer' },
    ],
    [
      '#35 system stays',
      [{ type: 'text', text: 'A', role: 'system' }],
      [{ role: 'system', content: 'A' }],
      { system_role: 'developer' },
    ],
    [
      'P74 cache marks for who knows none',
      [{ type: 'text', text: 'A', cache_control: { type: 'ephemeral' } }],
      [{ role: 'system', content: 'A' }],
    ],
    [
      'P74 cache marks',
      [{ type: 'text', text: 'A', cache_control: { type: 'ephemeral' } }],
      [{ role: 'system', content: [{ type: 'text', text: 'A', prompt_cache_breakpoint: { mode: 'explicit' } }] }],
      { cache_breakpoints: true },
    ],
  ])('system: %s', (_, system, expected, profile = {}) => {
    expect(encode({ system }, { profile }).body['messages']).toEqual([...expected, HI]);
  });

  test('P35: a file of OpenAI’s other protocol is known to OpenAI, and to nobody else', () => {
    const file: ContentBlock = { type: 'file', source: { file_id: 'file-1' }, extensions: { 'openai-responses': {} } };
    const messages: CanonicalMessage[] = [{ role: 'user', content: [file] }];
    const context = contextOf({ profile: { official: true } });
    expect(encodeRequestBody({ model: 'm', messages, parameters: {} }, context)['messages']).toEqual([
      { role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] },
    ]);
    expect(paramOf(() => encode({ messages }))).toBe('/messages/0/content/0');
  });

  test('P74: the last four breakpoints', () => {
    const content = Array.from(
      { length: 6 },
      (_, i): ContentBlock => ({ type: 'text', text: `${i}`, cache_control: { type: 'ephemeral' } }),
    );
    const { body, told } = encode({ messages: [{ role: 'user', content }] }, { profile: { cache_breakpoints: true } });
    const [message] = body['messages'] as { content: JsonObject[] }[];
    expect(message?.content.map((part) => part['prompt_cache_breakpoint'] !== undefined)).toEqual([
      false,
      false,
      true,
      true,
      true,
      true,
    ]);
    expect(told).toEqual(['CLAMPED cache_control', 'CLAMPED cache_control']);
  });

  test('#37 P20 P21 ids and P26 P27 names', () => {
    const long = 'x'.repeat(53);
    const name = 'a.b';
    const { body, told } = encode({
      tools: [{ name }],
      tool_choice: { type: 'tool', name },
      messages: [say(use(long, { name })), result(long)],
    });
    const [call, answer] = body['messages'] as [{ tool_calls: { id: string; function: JsonObject }[] }, JsonObject];
    expect(call.tool_calls[0]?.id).toMatch(/^call_[0-9a-f]{24}$/);
    expect(answer['tool_call_id']).toBe(call.tool_calls[0]?.id);
    expect([call.tool_calls[0]?.function['name'], body['tool_choice']]).toEqual([
      'a_b',
      { type: 'function', function: { name: 'a_b' } },
    ]);
    expect(told).toEqual(['RENAMED tools.name', 'RENAMED messages.tool_use.id']);
  });
});

describe('tools', () => {
  const f: CanonicalTool = { name: 'f', description: 'd', input_schema: { type: 'object', properties: {} }, strict: true };
  const custom: CanonicalTool = { name: 'c', kind: 'custom', format: { type: 'grammar', syntax: 'regex', definition: 'a+' } };
  const wireF = {
    type: 'function',
    function: { name: 'f', description: 'd', parameters: { type: 'object', properties: {} }, strict: true },
  };
  const wireG = { type: 'function', function: { name: 'g', parameters: { type: 'object', properties: {} } } };
  const search = (origin: 'anthropic-messages' | 'openai-chat'): CanonicalTool => ({
    name: 'web_search',
    kind: 'server',
    server: {
      type: 'web_search',
      wire_type: 'web_search_20260318',
      config: { user_location: { type: 'approximate', city: 'Rome' } },
      origin,
    },
  });

  test.each<
    [name: string, request: Partial<CanonicalRequest>, expected: JsonObject, told?: string[], profile?: Partial<ProviderProfile>]
  >([
    ['seed function', { tools: [f] }, { tools: [wireF] }],
    ['#34 P53 no schema', { tools: [{ name: 'g' }] }, { tools: [wireG] }],
    [
      'P53 an object without properties',
      { tools: [{ name: 'g', input_schema: { type: 'object' } }] },
      { tools: [wireG] },
      ['REPAIRED tools.schema'],
    ],
    [
      'custom',
      { tools: [custom] },
      {
        tools: [
          { type: 'custom', custom: { name: 'c', format: { type: 'grammar', grammar: { definition: 'a+', syntax: 'regex' } } } },
        ],
      },
      [],
      { custom_tools: true },
    ],
    [
      '#10 custom as a function, and chosen as one',
      { tools: [custom], tool_choice: { type: 'tool', name: 'c' } },
      {
        tools: [
          {
            type: 'function',
            function: {
              name: 'c',
              parameters: {
                type: 'object',
                properties: { input: { type: 'string', description: 'Text by this regex grammar:\na+' } },
                required: ['input'],
              },
            },
          },
        ],
        tool_choice: { type: 'function', function: { name: 'c' } },
      },
      ['APPROXIMATED tools.custom'],
    ],
    [
      'what only others say of a tool',
      { tools: [{ name: 'g', defer_loading: true }] },
      { tools: [wireG] },
      ['DROPPED tools.defer_loading'],
    ],
    ['seed choice auto', { tools: [f], tool_choice: { type: 'auto' } }, { tools: [wireF], tool_choice: 'auto' }],
    ['seed choice none', { tools: [f], tool_choice: { type: 'none' } }, { tools: [wireF], tool_choice: 'none' }],
    ['seed choice any', { tools: [f], tool_choice: { type: 'any' } }, { tools: [wireF], tool_choice: 'required' }],
    [
      'seed choice tool',
      { tools: [f], tool_choice: { type: 'tool', name: 'f' } },
      { tools: [wireF], tool_choice: { type: 'function', function: { name: 'f' } } },
    ],
    [
      'choice of a custom tool',
      { tools: [{ name: 'c', kind: 'custom' }], tool_choice: { type: 'tool', name: 'c' } },
      { tools: [{ type: 'custom', custom: { name: 'c' } }], tool_choice: { type: 'custom', custom: { name: 'c' } } },
      [],
      { custom_tools: true },
    ],
    [
      '#11 P61 allowed tools',
      { tools: [f, { name: 'g' }], tool_choice: { type: 'any', allowed_tools: ['f'] } },
      {
        tools: [wireF, wireG],
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'f' } }] },
        },
      },
      [],
      { allowed_tools: true },
    ],
    [
      '#11 P61 allowed tools: the others are not sent',
      { tools: [f, { name: 'g' }], tool_choice: { type: 'any', allowed_tools: ['f'] } },
      { tools: [wireF], tool_choice: 'required' },
      ['APPROXIMATED tool_choice.allowed_tools'],
    ],
    ['seed parallel; P60', { tools: [f], parallel_tool_use: false }, { tools: [wireF], parallel_tool_calls: false }],
    ['#34 P58 nothing to choose', { tools: [], tool_choice: { type: 'auto' }, parallel_tool_use: true }, {}],
    ['#34 P58 a choice without tools', { tool_choice: { type: 'any' } }, {}, ['DROPPED tool_choice']],
    ['a search of another', { tools: [f, search('anthropic-messages')] }, { tools: [wireF] }, ['DROPPED tools.web_search']],
    [
      'a search of another, for a search model',
      { tools: [search('anthropic-messages')] },
      { web_search_options: { user_location: { type: 'approximate', approximate: { city: 'Rome' } } } },
      ['APPROXIMATED tools.web_search'],
      { web_search_options: true },
    ],
  ])('%s', (_, request, expected, told = [], profile = {}) => {
    const found = encode(request, { profile });
    const { model: _model, messages: _messages, ...rest } = found.body;
    expect(rest).toEqual(expected);
    expect(found.told).toEqual(told);
  });

  test('a tool that must be called and cannot be sent is refused', () => {
    const request: CanonicalRequest = {
      model: 'm',
      messages: [USER],
      parameters: {},
      tools: [search('anthropic-messages')],
      tool_choice: { type: 'tool', name: 'web_search' },
    };
    expect(paramOf(() => encodeRequestBody(request, contextOf({})))).toBe('/tool_choice');
  });
});

describe('fields', () => {
  const schema = { type: 'object', properties: {} };
  const json = { type: 'json_schema', json_schema: { schema } } as const;
  const sent = (fields: JsonObject): Partial<CanonicalRequest> => ({ extensions: { 'openai-chat': fields } });

  test.each<[name: string, request: Partial<CanonicalRequest>, expected: JsonObject, told?: string[], given?: Given]>([
    ['seed max_tokens; #30 P66', { parameters: { max_tokens: 9 } }, { max_tokens: 9 }],
    [
      'seed max_completion_tokens; P66',
      { parameters: { max_tokens: 9 } },
      { max_completion_tokens: 9 },
      [],
      { profile: { max_tokens_field: 'max_completion_tokens' } },
    ],
    ['#30 zero', { parameters: { max_tokens: 0 } }, { max_tokens: 1 }, ['CLAMPED parameters.max_tokens']],
    [
      'seed sampling',
      { parameters: { temperature: 0, top_p: 1, frequency_penalty: -1, presence_penalty: 1 } },
      { temperature: 0, top_p: 1, frequency_penalty: -1, presence_penalty: 1 },
    ],
    [
      'sampling for a model that reasons',
      { parameters: { temperature: 0, top_p: 0.5 } },
      {},
      ['DROPPED parameters.temperature', 'DROPPED parameters.top_p'],
      { profile: { supports_sampling: false } },
    ],
    ['sampling as it is anyway', { parameters: { temperature: 1, top_p: 1 } }, {}, [], { profile: { supports_sampling: false } }],
    [
      'sampling for one that is told not to',
      { parameters: { temperature: 1 }, thinking: { type: 'disabled' } },
      { temperature: 1, reasoning_effort: 'none' },
      [],
      { profile: { supports_sampling: false } },
    ],
    ['seed top_k', { parameters: { top_k: 5 } }, {}, ['DROPPED parameters.top_k']],
    ['top_k of a client of this protocol', { parameters: { top_k: 5 }, ...sent({ top_k: 5 }) }, { top_k: 5 }],
    ['seed stop', { parameters: { stop_sequences: ['a'] } }, { stop: ['a'] }],
    [
      '#33 P72 six stops',
      { parameters: { stop_sequences: ['1', '2', '3', '4', '5', '6'] } },
      { stop: ['1', '2', '3', '4'] },
      ['CLAMPED parameters.stop_sequences'],
    ],
    [
      'seed stop on o3',
      { parameters: { stop_sequences: ['a'] } },
      {},
      ['DROPPED parameters.stop_sequences'],
      { profile: { supports_stop: false } },
    ],
    [
      'seed, n, logprobs, bias',
      { parameters: { seed: 1, n: 2, logprobs: true, top_logprobs: 2, logit_bias: { 5: -1 } } },
      { seed: 1, n: 2, logprobs: true, top_logprobs: 2, logit_bias: { 5: -1 } },
    ],
    ['max_tool_calls', { parameters: { max_tool_calls: 2 } }, {}, ['DROPPED parameters.max_tool_calls']],
    [
      'seed json_schema; #36 a name',
      { output_format: json },
      { response_format: { type: 'json_schema', json_schema: { name: 'response', schema } } },
      ['APPROXIMATED output_format.name'],
    ],
    ['seed user', { user_id: 'u' }, { user: 'u' }],
    ['user on OpenAI', { user_id: 'u' }, { user: 'u', safety_identifier: 'u' }, [], { profile: { official: true } }],
    ['P76 a long user id', { user_id: 'u'.repeat(65) }, { user: sha256('u'.repeat(65)) }, ['RENAMED user_id']],
    ['#31 P96 usage is asked for', { stream: true }, { stream: true, stream_options: { include_usage: true } }],
    [
      'P96 unless the server refuses',
      { stream: true, stream_options: { include_usage: true } },
      { stream: true },
      ['DROPPED stream_options.include_usage'],
      { profile: { stream_usage: false } },
    ],
    ['no stream, no stream_options', { stream: false, stream_options: { include_usage: true } }, { stream: false }],
    [
      'options on OpenAI',
      { store: true, metadata: { a: 'b' }, service_tier: 'standard', verbosity: 'low', prompt_cache: { key: 'k', ttl: '24h' } },
      {
        store: true,
        metadata: { a: 'b' },
        service_tier: 'default',
        verbosity: 'low',
        prompt_cache_key: 'k',
        prompt_cache_retention: '24h',
      },
      [],
      { profile: { official: true } },
    ],
    ['options elsewhere', { store: true, metadata: { a: 'b' } }, {}, ['DROPPED metadata', 'DROPPED store']],
    ['options elsewhere: not to store is no loss', { store: false }, {}],
    [
      'options that the client sent itself',
      { prompt_cache: { key: 'k' }, ...sent({ prompt_cache_key: 'k' }) },
      { prompt_cache_key: 'k' },
    ],
    [
      'an option that is not even a word',
      sent({ verbosity: { toString: 1, valueOf: 1 } }),
      { verbosity: { toString: 1, valueOf: 1 } },
    ],
    ['an option that was taken out', sent({ prompt_cache_key: 'k', store: true }), {}],
    ['service tier batch', { service_tier: 'batch' }, {}, ['DROPPED service_tier'], { profile: { official: true } }],
    ['unknown fields', sent({ min_p: 0.1 }), { min_p: 0.1 }],
    [
      'truncation and background',
      { truncation: 'auto', state: { background: true } },
      {},
      ['DROPPED state.background', 'DROPPED truncation'],
    ],
  ])('%s', (_, request, expected, told = [], given = {}) => {
    const found = encode(request, given);
    const { model: _model, messages: _messages, ...rest } = found.body;
    expect(rest).toEqual(expected);
    expect(found.told).toEqual(told);
  });

  test.each<[name: string, thinking: ThinkingConfig, expected: JsonObject, told?: string[], profile?: Partial<ProviderProfile>]>([
    ['seed disabled', { type: 'disabled' }, { reasoning_effort: 'none' }],
    [
      '#32 disabled, where there is no "none"',
      { type: 'disabled' },
      {},
      ['DROPPED thinking.type'],
      { effort_values: ['low', 'high'] },
    ],
    ['seed effort; P87', { type: 'enabled', effort: 'max' }, { reasoning_effort: 'max' }],
    [
      '#16 #32 P87 the nearest',
      { type: 'enabled', effort: 'max' },
      { reasoning_effort: 'high' },
      ['APPROXIMATED thinking.effort'],
      { effort_values: ['low', 'medium', 'high'] },
    ],
    [
      'the nearest: of two the lesser',
      { type: 'enabled', effort: 'medium' },
      { reasoning_effort: 'low' },
      ['APPROXIMATED thinking.effort'],
      { effort_values: ['low', 'high'] },
    ],
    [
      'seed budget; #32',
      { type: 'enabled', budget_tokens: 8000 },
      { reasoning_effort: 'medium' },
      ['APPROXIMATED thinking.effort'],
    ],
    ['#32 enabled, no more said', { type: 'enabled' }, {}],
    ['adaptive', { type: 'adaptive' }, {}, ['APPROXIMATED thinking.type']],
    ['a summary', { type: 'enabled', effort: 'low', summary: 'auto' }, { reasoning_effort: 'low' }, ['DROPPED thinking.summary']],
    [
      '27 thinking',
      { type: 'enabled', effort: 'high' },
      { thinking: { type: 'enabled' }, reasoning_effort: 'high' },
      [],
      { thinking_field: 'thinking' },
    ],
    ['27 thinking disabled', { type: 'disabled' }, { thinking: { type: 'disabled' } }, [], { thinking_field: 'thinking' }],
    [
      '27 reasoning',
      { type: 'enabled', budget_tokens: 7 },
      { reasoning: { max_tokens: 7 } },
      [],
      { thinking_field: 'reasoning' },
    ],
    ['27 reasoning disabled', { type: 'disabled' }, { reasoning: { enabled: false } }, [], { thinking_field: 'reasoning' }],
    [
      '27 enable_thinking',
      { type: 'enabled', budget_tokens: 7 },
      { enable_thinking: true, thinking_budget: 7 },
      [],
      { thinking_field: 'enable_thinking' },
    ],
  ])('thinking: %s', (_, thinking, expected, told = [], profile = {}) => {
    const found = encode({ thinking }, { profile });
    const { model: _model, messages: _messages, ...rest } = found.body;
    expect(rest).toEqual(expected);
    expect(found.told).toEqual(told);
  });

  test.each<[name: string, thinking: ThinkingConfig | undefined, expected: JsonObject, profile?: Partial<ProviderProfile>]>([
    ['goes back as it came', { type: 'enabled', effort: 'low' }, { reasoning: { effort: 'low', exclude: true } }],
    ['unless the request says something else now', { type: 'disabled' }, { reasoning_effort: 'none' }],
    ['or nothing', undefined, {}],
    ['or the server is OpenAI', { type: 'enabled', effort: 'low' }, { reasoning_effort: 'low' }, { official: true }],
    [
      'or has its own words',
      { type: 'enabled', effort: 'low' },
      { thinking: { type: 'enabled' }, reasoning_effort: 'low' },
      { thinking_field: 'thinking' },
    ],
  ])('27 a dialect of the client %s', (_, thinking, expected, profile = {}) => {
    const request = { ...sent({ reasoning: { effort: 'low', exclude: true } }), ...(thinking && { thinking }) };
    const { model: _model, messages: _messages, ...rest } = encode(request, { profile }).body;
    expect(rest).toEqual(expected);
  });

  test.each<
    [name: string, request: Partial<CanonicalRequest>, expected: unknown[], told: string[], profile?: Partial<ProviderProfile>]
  >([
    ['P64 nobody says json', {}, [{ role: 'system', content: 'Respond in JSON.' }, HI], ['REPAIRED output_format.json_word']],
    [
      'P64 the system is told',
      { system: [{ type: 'text', text: 'S' }] },
      [{ role: 'system', content: 'S\n\nRespond in JSON.' }, HI],
      ['REPAIRED output_format.json_word'],
    ],
    [
      'P64 someone does',
      { messages: [{ role: 'user', content: [text('as Json')] }] },
      [{ role: 'user', content: 'as Json' }],
      [],
    ],
    [
      'a schema for a server without',
      { output_format: json },
      [{ role: 'system', content: `Respond in JSON that matches this schema: ${JSON.stringify(schema)}` }, HI],
      ['APPROXIMATED output_format.json_schema'],
      { json_schema: false },
    ],
  ])('seed json_object: %s', (_, request, expected, told, profile = {}) => {
    const found = encode({ output_format: { type: 'json_object' }, ...request }, { profile });
    expect(found.body['messages']).toEqual(expected);
    expect(found.body['response_format']).toEqual({ type: 'json_object' });
    expect(found.told).toEqual(told);
  });

  test('seed model: the name that the provider knows; the target says whether it streams', () => {
    const target = {
      provider: { id: 'p', protocol: 'openai-chat', base_url: 'https://x' },
      model: 'real',
      stream: true,
    } as const;
    const wire = encodeRequest({ model: 'alias', messages: [USER], parameters: {} }, { ...contextOf({}), target });
    expect(wire).toMatchObject({ method: 'POST', path: '/v1/chat/completions', body: { model: 'real', stream: true } });
  });

  test.each<[name: string, request: Partial<CanonicalRequest>, param: string, policy?: Policy]>([
    ['P122 a conversation that the server holds', { state: { previous_response_id: 'r' } }, '/state/previous_response_id'],
    [
      'P35 a file of another provider',
      { messages: [{ role: 'user', content: [{ type: 'file', source: { file_id: 'f' } }] }] },
      '/messages/0/content/0',
    ],
    ['strict: top_k', { parameters: { top_k: 1 } }, '/parameters/top_k', { strict: true }],
    ['strict about one feature', { parameters: { top_k: 1 } }, '/parameters/top_k', { strict: ['parameters.top_k'] }],
    ['strict: an orphan', { messages: [USER, result('z')] }, '/messages/1/content/0', { strict: true }],
  ])('refused: %s', (_, request, param, policy = {}) => {
    const run = () => encodeRequestBody({ model: 'm', messages: [USER], parameters: {}, ...request }, contextOf({ policy }));
    expect(paramOf(run)).toBe(param);
  });

  test('P130: the same bytes again', () => {
    const request: CanonicalRequest = {
      model: 'm',
      parameters: { temperature: 1 },
      messages: [USER, say(use('x'.repeat(50))), USER],
      tools: [{ name: 'a.b' }],
      user_id: 'u'.repeat(99),
    };
    expect(JSON.stringify(encodeRequestBody(request, contextOf({})))).toBe(
      JSON.stringify(encodeRequestBody(structuredClone(request), contextOf({}))),
    );
  });
});
