import { describe, expect, test } from 'vitest';
import { type Json, messagesContext } from '../../../../test/sdk/anthropic.ts';
import type { ContentBlock, ToolUseBlock } from '../../src/canonical/message.ts';
import { CodecError } from '../../src/canonical/notes.ts';
import type { CanonicalMessage, CanonicalRequest, CanonicalTool } from '../../src/canonical/request.ts';
import type { ProviderProfile } from '../../src/codec/profile.ts';
import type { CodecContext } from '../../src/codec/protocol.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { profileFor } from '../../src/protocols/anthropic-messages/profiles.ts';
import { encodeRequest } from '../../src/protocols/anthropic-messages/request-encode.ts';

const text = (value: string): ContentBlock => ({ type: 'text', text: value });
const user = (...content: (string | ContentBlock)[]): CanonicalMessage => ({ role: 'user', content: blocksOf(content) });
const assistant = (...content: (string | ContentBlock)[]): CanonicalMessage => ({
  role: 'assistant',
  content: blocksOf(content),
});
const system = (value: string): CanonicalMessage => ({ role: 'system', content: [text(value)] });
const blocksOf = (content: (string | ContentBlock)[]): ContentBlock[] =>
  content.map((item) => (typeof item === 'string' ? text(item) : item));
const call = (id: string, more: Partial<ToolUseBlock> = {}): ToolUseBlock => ({
  type: 'tool_use',
  id,
  name: 'f',
  input: {},
  ...more,
});
const results = (...ids: string[]): CanonicalMessage => ({
  role: 'tool',
  content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: `r${id}` })),
});
const tool = (name: string, more: Partial<CanonicalTool> = {}): CanonicalTool => ({
  name,
  input_schema: { type: 'object', properties: {} },
  ...more,
});
const TOOL = tool('f');

const HAIKU = profileFor('anthropic', 'claude-haiku-4-5');
const OPUS5 = profileFor('anthropic', 'claude-opus-5');
const SONNET4 = profileFor('anthropic', 'claude-sonnet-4-20250514');

const isWhole = (profile: Partial<ProviderProfile>): profile is ProviderProfile => profile.tool_name !== undefined;
const whole = (profile: Partial<ProviderProfile>): ProviderProfile => (isWhole(profile) ? profile : { ...HAIKU, ...profile });

interface Encoded {
  body: Json;
  notes: string[];
}

function encode(
  request: Partial<CanonicalRequest>,
  profile: Partial<ProviderProfile> = HAIKU,
  changes: Partial<CodecContext> = {},
): Encoded {
  const context = messagesContext({ profile: whole(profile), ...changes });
  const question: CanonicalRequest = {
    model: 'm',
    messages: [user('hi')],
    ...request,
    parameters: { max_tokens: 1000, ...request.parameters },
  };
  const { body } = encodeRequest(question, context);
  return { body: body as Json, notes: context.notes.map(({ code, feature }) => `${code} ${feature}`) };
}

const turnsOf = ({ body }: Encoded): unknown[] =>
  (body['messages'] as { role: string; content: JsonObject[] }[]).map(({ role, content }) => [role, ...content.map(brief)]);

function brief(block: JsonObject): string {
  const { type, text: said, id, tool_use_id: answered, thinking } = block;
  return [type === 'text' ? undefined : type, said ?? thinking ?? id ?? answered].filter((word) => word !== undefined).join(' ');
}

const contentOf = (...blocks: ContentBlock[]): Json[] => {
  const [turn] = encode({ messages: [user(...blocks)] }).body['messages'] as { content: Json[] }[];
  return turn?.content ?? [];
};

function errorOf(run: () => unknown) {
  try {
    run();
  } catch (error) {
    if (error instanceof CodecError) return error.error;
    throw error;
  }
  return undefined;
}

describe('the conversation', () => {
  const rows: [
    name: string,
    messages: CanonicalMessage[],
    turns: unknown[],
    notes?: string[],
    profile?: Partial<ProviderProfile>,
  ][] = [
    [
      'P01 parallel results are one turn',
      [user('q'), assistant(call('a'), call('b')), results('a'), results('b')],
      [
        ['user', 'q'],
        ['assistant', 'tool_use a', 'tool_use b'],
        ['user', 'tool_result a', 'tool_result b'],
      ],
    ],
    [
      'P02 results stand first in it',
      [user('q'), assistant(call('a')), results('a'), user('thanks')],
      [
        ['user', 'q'],
        ['assistant', 'tool_use a'],
        ['user', 'tool_result a', 'thanks'],
      ],
    ],
    [
      'P04 a call without a result gets one',
      [user('q'), assistant(call('a')), user('never mind')],
      [
        ['user', 'q'],
        ['assistant', 'tool_use a'],
        ['user', 'tool_result a', 'never mind'],
      ],
      ['REPAIRED messages.tool_use'],
    ],
    [
      'P05 a result without a call is told',
      [user('q'), results('z'), user('so?')],
      [['user', 'q', 'Result of an earlier tool call: rz', 'so?']],
      ['REPAIRED messages.tool_result'],
    ],
    ['P11 neighbours are one turn', [user('a'), user('b')], [['user', 'a', 'b']]],
    [
      'P12 the user speaks first',
      [assistant('Hi'), user('yo')],
      [
        ['user', '(continued)'],
        ['assistant', 'Hi'],
        ['user', 'yo'],
      ],
      ['APPROXIMATED messages.first_user'],
    ],
    [
      'P13 a prefill is kept, without white space at its end',
      [user('q'), assistant('{  ')],
      [
        ['user', 'q'],
        ['assistant', '{'],
      ],
      ['APPROXIMATED messages.prefill'],
    ],
    [
      'P13 where none is taken, the user asks to go on',
      [user('q'), assistant('{')],
      [
        ['user', 'q'],
        ['assistant', '{'],
        ['user', 'Continue.'],
      ],
      ['APPROXIMATED messages.prefill'],
      { prefill: false },
    ],
    [
      'P14 instructions behind a user stay, where the model knows them',
      [user('a'), system('be brief')],
      [
        ['user', 'a'],
        ['system', 'be brief'],
      ],
      [],
      { mid_system: true },
    ],
    [
      'P14 behind an assistant they are a reminder',
      [user('a'), assistant('b'), system('be brief'), user('c')],
      [
        ['user', 'a'],
        ['assistant', 'b'],
        ['user', '<system-reminder>be brief</system-reminder>', 'c'],
      ],
      ['APPROXIMATED messages.system'],
      { mid_system: true },
    ],
    [
      'P29 what says nothing is not sent',
      [user('q'), assistant(' ', call('a')), results('a'), user('\n')],
      [
        ['user', 'q'],
        ['assistant', 'tool_use a'],
        ['user', 'tool_result a'],
      ],
      ['REPAIRED messages.whitespace', 'REPAIRED messages.empty'],
    ],
  ];

  test.each(rows)('%s', (_name, messages, turns, notes = [], profile = {}) => {
    const encoded = encode({ messages, tools: [TOOL] }, profile);
    expect(turnsOf(encoded)).toEqual(turns);
    expect(encoded.notes).toEqual(notes);
  });

  test('P29 a request without content is rejected', () => {
    expect(errorOf(() => encode({ messages: [user('')] }))).toMatchObject({ code: 'INVALID_INPUT', param: 'messages' });
  });

  test('fields that nobody knows stay with their turn, whatever they are called', () => {
    const fields = JSON.parse('{"__proto__":{"x":1},"new":2}');
    const odd: CanonicalMessage = { ...user('b'), extensions: { 'anthropic-messages': fields } };
    const { body } = encode({ messages: [user('q'), assistant(call('a')), results('a'), odd] });
    expect(Object.keys((body['messages'] as Json[])[2] ?? {})).toEqual(['role', 'content', '__proto__', 'new']);
  });

  test('P20 P130 odd ids are replaced in call and result alike', () => {
    const messages = [user('q'), assistant(call('functions.Bash:0')), results('functions.Bash:0')];
    expect(turnsOf(encode({ messages }))).toEqual([
      ['user', 'q'],
      ['assistant', 'tool_use functions_Bash_0'],
      ['user', 'tool_result functions_Bash_0'],
    ]);
  });

  test('P27 odd names of tools, too', () => {
    const { body } = encode({
      tools: [tool('josef.prochazka--singer')],
      tool_choice: { type: 'tool', name: 'josef.prochazka--singer' },
    });
    expect(body).toMatchObject({
      tools: [{ name: 'josef_prochazka--singer' }],
      tool_choice: { name: 'josef_prochazka--singer' },
    });
  });

  test('instructions: a string when one is plain, else blocks', () => {
    const mark = { cache_control: { type: 'ephemeral' as const } };
    expect(encode({ system: [{ type: 'text', text: 'a' }] }).body['system']).toBe('a');
    expect(
      encode({
        system: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b', ...mark },
        ],
      }).body['system'],
    ).toEqual([
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b', ...mark },
    ]);
    expect(encode({ system: [{ type: 'text', text: ' ' }] }).body).not.toHaveProperty('system');
  });
});

describe('blocks', () => {
  const pdf = 'application/pdf';
  const rows: [name: string, block: ContentBlock, wire: Json][] = [
    [
      'P33 image data',
      { type: 'image', source: { data: 'AA', media_type: 'image/png' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } },
    ],
    [
      'an image that does not say what it is',
      { type: 'image', source: { data: '/9j/AA' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: '/9j/AA' } },
    ],
    [
      'an image by its wrong name',
      { type: 'image', source: { data: 'AA', media_type: 'image/jpg' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'AA' } },
    ],
    ['image url', { type: 'image', source: { url: 'https://a' } }, { type: 'image', source: { type: 'url', url: 'https://a' } }],
    [
      'P34 PDF',
      { type: 'file', source: { file_data: 'AA', media_type: pdf, filename: 'a.pdf' } },
      { type: 'document', source: { type: 'base64', media_type: pdf, data: 'AA' }, title: 'a.pdf' },
    ],
    [
      'a text file',
      { type: 'file', source: { file_data: btoa('abc'), media_type: 'text/csv' } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'abc' } },
    ],
    [
      'a document of text',
      { type: 'file', source: { text: 'abc' }, title: 't', context: 'c', citations_enabled: true },
      {
        type: 'document',
        source: { type: 'text', media_type: 'text/plain', data: 'abc' },
        title: 't',
        context: 'c',
        citations: { enabled: true },
      },
    ],
    [
      'a document by URL',
      { type: 'file', source: { file_url: 'https://a/b.pdf' } },
      { type: 'document', source: { type: 'url', url: 'https://a/b.pdf' } },
    ],
    [
      'a search result',
      { type: 'file', source: { content: [text('a')] }, search_result: { source: 's' }, title: 't' },
      { type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: 'a' }] },
    ],
  ];

  test.each(rows)('%s', (_name, block, wire) => {
    expect(contentOf(block)).toEqual([wire]);
  });

  const lost: [name: string, block: ContentBlock, note: string][] = [
    ['P36 audio', { type: 'audio', source: { data: 'AA', format: 'wav' } }, 'DROPPED audio'],
    ['an image it cannot see', { type: 'image', source: { data: 'AA', media_type: 'image/svg+xml' } }, 'DROPPED image'],
    ['an image behind http', { type: 'image', source: { url: 'http://a' } }, 'DROPPED image'],
    ['a file it cannot read', { type: 'file', source: { file_data: 'AA', media_type: 'application/zip' } }, 'DROPPED file'],
  ];

  test.each(lost)('%s is dropped with a note', (_name, block, note) => {
    const encoded = encode({ messages: [user('q', block)] });
    expect(turnsOf(encoded)).toEqual([['user', 'q']]);
    expect(encoded.notes).toEqual([note]);
  });

  test('P35 the id of a file elsewhere is refused', () => {
    const block: ContentBlock = { type: 'file', source: { file_id: 'file-1' }, extensions: { 'openai-responses': {} } };
    expect(errorOf(() => encode({ messages: [user(block)] }))).toMatchObject({ code: 'INCOMPATIBLE_FEATURE' });
  });

  test('media stay in results, errors are told, nothing is nothing', () => {
    const image: ContentBlock = { type: 'image', source: { data: 'AA', media_type: 'image/png' } };
    const messages: CanonicalMessage[] = [
      user('q'),
      assistant(call('a'), call('b')),
      {
        role: 'tool',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: [text('x'), image] as never, is_error: true },
          { type: 'tool_result', tool_use_id: 'b', content: '' },
        ],
      },
    ];
    expect((encode({ messages }).body['messages'] as Json[])[2]).toEqual({
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'a',
          is_error: true,
          content: [
            { type: 'text', text: 'x' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } },
          ],
        },
        { type: 'tool_result', tool_use_id: 'b' },
      ],
    });
  });

  test.each([
    ['P43 arguments that are no JSON', { input_raw: '{"a":1' }, { input: '{"a":1' }, ['REPAIRED tool_use.input']],
    ['P44 a list', { input_raw: '[1]' }, { input: [1] }, ['REPAIRED tool_use.input']],
    ['P42 none', { input_raw: '' }, {}, []],
    ['an object', { input: { a: 1 }, input_raw: '{"a":1}' }, { a: 1 }, []],
    ['P46 the text of a custom tool', { kind: 'custom', input: 'SELECT 1' }, { input: 'SELECT 1' }, []],
  ] as [string, Partial<ToolUseBlock>, Json, string[]][])('%s', (_name, block, input, notes) => {
    const encoded = encode({ messages: [user('q'), assistant(call('a', block)), results('a')] });
    expect((encoded.body['messages'] as { content: Json[] }[])[1]?.content[0]?.['input']).toEqual(input);
    expect(encoded.notes).toEqual(notes);
  });

  test('citations of others are not sent', () => {
    const cited: ContentBlock = {
      type: 'text',
      text: 'a',
      citations: [{ kind: 'url', url: 'https://a', origin: 'openai-chat' }],
    };
    const encoded = encode({ messages: [user('q'), assistant(cited), user('r')] });
    expect(JSON.stringify(encoded.body)).not.toContain('https://a');
    expect(encoded.notes).toEqual(['DROPPED messages.citations']);
  });
});

describe('thinking in history', () => {
  const own = { origin: 'anthropic-messages', form: 'signature', value: 's' } as const;
  const thinking: ContentBlock = { type: 'thinking', thinking: 'hm', signature: own };
  const server: ContentBlock = {
    type: 'tool_use',
    id: 'srv',
    name: 'web_search',
    input: {},
    kind: 'server',
    extensions: { 'anthropic-messages': { type: 'server_tool_use' } },
  };
  const found: ContentBlock = {
    type: 'tool_result',
    tool_use_id: 'srv',
    content: '',
    kind: 'server',
    extensions: { 'anthropic-messages': { type: 'web_search_tool_result', content: [] } },
  };

  test('P78 goes back byte for byte, in its order, with what the provider ran between', () => {
    const messages = [user('q'), assistant(thinking, server, found, { ...thinking, thinking: 'hm2' }, call('a')), results('a')];
    expect((encode({ messages }).body['messages'] as Json[])[1]?.['content']).toEqual([
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'server_tool_use', id: 'srv', name: 'web_search', input: {} },
      { type: 'web_search_tool_result', tool_use_id: 'srv', content: [] },
      { type: 'thinking', thinking: 'hm2', signature: 's' },
      { type: 'tool_use', id: 'a', name: 'f', input: {} },
    ]);
  });

  test.each([
    ['P77 that another signed', { ...own, origin: 'gemini', form: 'thought_signature' }],
    ['P80 that nobody signed', undefined],
  ] as const)('%s is dropped', (_name, signature) => {
    const block: ContentBlock = { type: 'thinking', thinking: 'hm', ...(signature && { signature }) };
    const encoded = encode({ messages: [user('q'), assistant(block, 'a'), user('r')] });
    expect(turnsOf(encoded)[1]).toEqual(['assistant', 'a']);
    expect(encoded.notes).toEqual(['DROPPED assistant.thinking']);
  });

  test('or told as text, when the policy says so', () => {
    const block: ContentBlock = { type: 'thinking', thinking: 'hm' };
    const encoded = encode(
      { messages: [user('q'), assistant(block, 'a'), user('r')] },
      {},
      { policy: { foreignThinking: 'text' } },
    );
    expect(turnsOf(encoded)[1]).toEqual(['assistant', '<thinking>hm</thinking>', 'a']);
  });

  test('redacted thinking', () => {
    const block: ContentBlock = { type: 'thinking', thinking: '', variant: 'redacted', signature: { ...own, form: 'redacted' } };
    const encoded = encode({ messages: [user('q'), assistant(block, 'a'), user('r')] });
    expect((encoded.body['messages'] as { content: Json[] }[])[1]?.content[0]).toEqual({ type: 'redacted_thinking', data: 's' });
  });
});

describe('tools', () => {
  const choose = (request: Partial<CanonicalRequest>, profile: Partial<ProviderProfile> = {}) => {
    const { body, notes } = encode({ tools: [TOOL, tool('g')], ...request }, profile);
    return { choice: body['tool_choice'], tools: (body['tools'] as Json[] | undefined)?.map(({ name }) => name), notes };
  };

  test.each([
    ['any', { tool_choice: { type: 'any' } }, { type: 'any' }],
    ['none', { tool_choice: { type: 'none' }, parallel_tool_use: false }, { type: 'none' }],
    ['P60 one at a time', { parallel_tool_use: false }, { type: 'auto', disable_parallel_tool_use: true }],
    [
      'P60 one, and which',
      { tool_choice: { type: 'tool', name: 'f' }, parallel_tool_use: false },
      { type: 'tool', name: 'f', disable_parallel_tool_use: true },
    ],
    ['several, which is usual', { parallel_tool_use: true }, undefined],
  ] as [string, Partial<CanonicalRequest>, unknown][])('%s', (_name, request, choice) => {
    expect(choose(request)).toEqual({ choice, tools: ['f', 'g'], notes: [] });
  });

  test('P61 allowed tools are those that are sent', () => {
    expect(choose({ tool_choice: { type: 'any', allowed_tools: ['g'] } })).toEqual({
      choice: { type: 'any' },
      tools: ['g'],
      notes: ['APPROXIMATED tool_choice.allowed_tools'],
    });
  });

  test('P58 no choice without tools', () => {
    const { body, notes } = encode({ tools: [], tool_choice: { type: 'auto' } });
    expect(body).not.toHaveProperty('tools');
    expect(body).not.toHaveProperty('tool_choice');
    expect(notes).toEqual([]);
    expect(encode({ tool_choice: { type: 'any' } }).notes).toEqual(['DROPPED tool_choice']);
  });

  test('P59 who thinks cannot be forced', () => {
    const request = { tool_choice: { type: 'any' as const }, thinking: { type: 'enabled' as const, effort: 'high' as const } };
    expect(choose(request, OPUS5)).toMatchObject({ choice: { type: 'auto' }, notes: ['APPROXIMATED tool_choice'] });
    const strict = { policy: { strict: ['tool_choice'] } };
    expect(errorOf(() => encode({ ...request, tools: [TOOL] }, OPUS5, strict))).toMatchObject({ code: 'INCOMPATIBLE_FEATURE' });
  });

  test('P57 a schema that is not an object is wrapped in one', () => {
    const { body } = encode({ tools: [tool('f', { input_schema: { anyOf: [{ type: 'string' }] } })] });
    expect(body['tools']).toMatchObject([
      { input_schema: { type: 'object', properties: { input: { anyOf: [{ type: 'string' }] } } } },
    ]);
  });

  test('P56 strict where the model has it', () => {
    const strict = tool('f', { strict: true });
    expect(encode({ tools: [strict] }).body['tools']).toMatchObject([
      { strict: true, input_schema: { additionalProperties: false } },
    ]);
    expect(encode({ tools: [strict] }, SONNET4).notes).toEqual(['DROPPED tools.strict']);
  });

  test('a search of another provider is ours', () => {
    const server = {
      type: 'web_search',
      wire_type: 'web_search',
      origin: 'openai-responses' as const,
      config: { filters: { allowed_domains: ['a.org'] }, user_location: { type: 'approximate', city: 'Oslo' } },
    };
    const { body, notes } = encode({ tools: [{ name: 'web_search', kind: 'server', server }] });
    expect(body['tools']).toEqual([
      {
        type: 'web_search_20250305',
        name: 'web_search',
        allowed_domains: ['a.org'],
        user_location: { type: 'approximate', city: 'Oslo' },
      },
    ]);
    expect(notes).toEqual(['APPROXIMATED tools.web_search']);
  });
});

describe('thinking', () => {
  const think = (
    thinking: CanonicalRequest['thinking'],
    profile: Partial<ProviderProfile>,
    more: Partial<CanonicalRequest> = {},
  ) => {
    const { body, notes } = encode({ ...(thinking && { thinking }), ...more }, profile);
    return { thinking: body['thinking'], config: body['output_config'], max: body['max_tokens'], notes };
  };
  const BUDGET = HAIKU;

  const rows: [
    name: string,
    thinking: CanonicalRequest['thinking'],
    profile: Partial<ProviderProfile>,
    limit: number,
    wanted: Json,
  ][] = [
    ['P71 none has to be said', { type: 'disabled' }, BUDGET, 1000, { thinking: { type: 'disabled' }, notes: [] }],
    [
      'none, and less effort than that allows',
      { type: 'disabled', effort: 'max' },
      OPUS5,
      1000,
      { thinking: { type: 'disabled' }, config: { effort: 'high' }, notes: ['APPROXIMATED thinking.effort'] },
    ],
    [
      'adaptive with an effort',
      { type: 'enabled', effort: 'max' },
      OPUS5,
      1000,
      { thinking: { type: 'adaptive' }, config: { effort: 'max' }, notes: [] },
    ],
    [
      'P87 minimal is low',
      { type: 'enabled', effort: 'minimal' },
      OPUS5,
      1000,
      { config: { effort: 'low' }, notes: ['APPROXIMATED thinking.effort'] },
    ],
    [
      'a budget as an effort',
      { type: 'enabled', budget_tokens: 8000, display: 'summarized' },
      OPUS5,
      1000,
      {
        thinking: { type: 'adaptive', display: 'summarized' },
        config: { effort: 'medium' },
        notes: ['APPROXIMATED thinking.effort'],
      },
    ],
    [
      'an effort as a budget',
      { type: 'enabled', effort: 'medium' },
      BUDGET,
      20_000,
      { thinking: { type: 'enabled', budget_tokens: 8192 }, config: undefined, notes: ['APPROXIMATED thinking.budget_tokens'] },
    ],
    [
      'P70 a budget that does not fit',
      { type: 'enabled', budget_tokens: 2000 },
      BUDGET,
      1500,
      { thinking: { type: 'enabled', budget_tokens: 1024 }, max: 1500, notes: ['APPROXIMATED thinking.budget_tokens'] },
    ],
    [
      'one that cannot fit',
      { type: 'enabled', budget_tokens: 1024 },
      BUDGET,
      1000,
      { thinking: { type: 'enabled', budget_tokens: 1024 }, max: 2048, notes: ['CLAMPED parameters.max_tokens'] },
    ],
    [
      'a model that does not think',
      { type: 'enabled', effort: 'low' },
      { thinking_mode: 'none' },
      1000,
      { thinking: undefined, notes: ['DROPPED thinking'] },
    ],
    ['and need not be told', { type: 'disabled' }, { thinking_mode: 'none' }, 1000, { thinking: undefined, notes: [] }],
  ];

  test.each(rows)('%s', (_name, thinking, profile, max_tokens, wanted) => {
    expect(think(thinking, profile, { parameters: { max_tokens } })).toMatchObject(wanted);
  });

  test('P79 the turn with the last calls came from elsewhere: thinking is off', () => {
    const messages = [user('q'), assistant(call('a')), results('a')];
    const found = think({ type: 'enabled', budget_tokens: 1024 }, BUDGET, { messages, parameters: { max_tokens: 9000 } });
    expect(found).toMatchObject({ thinking: { type: 'disabled' }, notes: ['APPROXIMATED thinking'] });
  });

  test('but on for an earlier one', () => {
    const messages = [user('q'), assistant(call('a')), results('a'), assistant('done'), user('next')];
    const found = think({ type: 'enabled', budget_tokens: 1024 }, BUDGET, { messages, parameters: { max_tokens: 9000 } });
    expect(found).toMatchObject({ thinking: { type: 'enabled' }, notes: [] });
  });

  test('thinking between calls may take more than the answer', () => {
    const extensions = { 'anthropic-messages': { 'anthropic-beta': 'interleaved-thinking-2025-05-14' } };
    expect(think({ type: 'enabled', budget_tokens: 5000 }, BUDGET, { extensions })).toMatchObject({
      thinking: { budget_tokens: 5000 },
      notes: [],
    });
  });
});

describe('parameters', () => {
  const ON = { type: 'enabled' as const, budget_tokens: 1024 };
  const rows: [
    name: string,
    request: Partial<CanonicalRequest>,
    profile: Partial<ProviderProfile>,
    body: Json,
    notes: string[],
  ][] = [
    [
      'P68 a temperature beyond 1',
      { parameters: { temperature: 1.6 } },
      {},
      { temperature: 1 },
      ['CLAMPED parameters.temperature'],
    ],
    [
      'P68 models that take none',
      { parameters: { temperature: 0.2 } },
      OPUS5,
      { temperature: undefined },
      ['DROPPED parameters.temperature'],
    ],
    [
      'P68 of which 1 is told, too',
      { parameters: { temperature: 1 } },
      OPUS5,
      { temperature: undefined },
      ['DROPPED parameters.temperature'],
    ],
    [
      'P69 temperature or top_p',
      { parameters: { temperature: 0.5, top_p: 0.9 } },
      {},
      { temperature: 0.5, top_p: undefined },
      ['DROPPED parameters.top_p'],
    ],
    [
      'P69 older models take both',
      { parameters: { temperature: 0.5, top_p: 0.9 } },
      SONNET4,
      { temperature: 0.5, top_p: 0.9 },
      [],
    ],
    [
      'P70 thinking takes neither temperature nor top_k, and top_p from 0.95 on',
      { thinking: ON, parameters: { max_tokens: 9000, temperature: 0.2, top_k: 40, top_p: 0.95 } },
      {},
      { temperature: undefined, top_k: undefined, top_p: 0.95 },
      ['DROPPED parameters.temperature', 'DROPPED parameters.top_k'],
    ],
    [
      'P72 stop sequences',
      { parameters: { stop_sequences: ['a', '\n', 'b', 'c', 'd', 'e'] } },
      {},
      { stop_sequences: ['a', 'b', 'c', 'd', 'e'] },
      ['DROPPED parameters.stop_sequences'],
    ],
    [
      'P72 none is left',
      { parameters: { stop_sequences: ['\n'] } },
      {},
      { stop_sequences: undefined },
      ['DROPPED parameters.stop_sequences'],
    ],
    [
      'what nobody here knows',
      { parameters: { frequency_penalty: 1, seed: 1, logprobs: true, logit_bias: { a: 1 } } },
      {},
      {},
      [
        'DROPPED parameters.frequency_penalty',
        'DROPPED parameters.seed',
        'DROPPED parameters.logprobs',
        'DROPPED parameters.logit_bias',
      ],
    ],
    ['P75 one answer', { parameters: { n: 2 } }, {}, { n: undefined }, ['DROPPED parameters.n']],
    ['the user', { user_id: 'u' }, {}, { metadata: { user_id: 'u' } }, []],
    ['the tier', { service_tier: 'standard' }, {}, { service_tier: 'standard_only' }, []],
    ['a tier of others', { service_tier: 'flex' }, {}, { service_tier: 'auto' }, ['APPROXIMATED service_tier']],
    [
      'a mark of the whole',
      { prompt_cache: { cache_control: { type: 'ephemeral', ttl: '24h' } } },
      {},
      { cache_control: { type: 'ephemeral', ttl: '1h' } },
      ['APPROXIMATED cache_control.ttl'],
    ],
    [
      'what only others have',
      { verbosity: 'low', store: true, metadata: { a: 'b' } },
      {},
      {},
      ['DROPPED metadata', 'DROPPED store', 'DROPPED verbosity'],
    ],
  ];

  test.each(rows)('%s', (_name, request, profile, wanted, notes) => {
    const encoded = encode(request, profile);
    for (const [name, value] of Object.entries(wanted)) expect(encoded.body[name], name).toEqual(value);
    expect(encoded.notes).toEqual(notes);
  });

  test.each([
    [true, 64_000],
    [false, 32_000],
  ])('P65 without max_tokens it is the most of the model, streamed %s: %d', (stream, limit) => {
    const context = messagesContext({ profile: HAIKU });
    const { body } = encodeRequest({ model: 'm', messages: [user('q')], parameters: {}, stream }, context);
    expect(body).toMatchObject({ max_tokens: limit });
    expect(context.notes.map(({ code, feature }) => `${code} ${feature}`)).toEqual(['REPAIRED parameters.max_tokens']);
  });

  test.each(['previous_response_id', 'conversation_id', 'cached_content'])('P122 %s is refused', (name) => {
    expect(errorOf(() => encode({ state: { [name]: 'x' } }))).toMatchObject({
      code: 'INCOMPATIBLE_FEATURE',
      param: `/state/${name}`,
    });
  });
});

describe('output formats', () => {
  const format = {
    type: 'json_schema',
    json_schema: { name: 'dog', schema: { type: 'object', properties: {}, additionalProperties: false } },
  } as const;

  test('a schema where the model has structured outputs', () => {
    const { body, notes } = encode({ output_format: format });
    expect(body['output_config']).toEqual({ format: { type: 'json_schema', schema: format.json_schema.schema } });
    expect(notes).toEqual(['DROPPED output_format.name']);
  });

  test('in the instructions where it has not', () => {
    const { body, notes } = encode({ output_format: format, system: [{ type: 'text', text: 'Be brief.' }] }, SONNET4);
    expect(body).not.toHaveProperty('output_config');
    expect(body['system']).toEqual([
      { type: 'text', text: 'Be brief.' },
      { type: 'text', text: expect.stringContaining('"additionalProperties":false') },
    ]);
    expect(notes).toEqual(['DROPPED output_format.name', 'APPROXIMATED output_format.json_schema']);
  });

  test('JSON of any form', () => {
    const { body, notes } = encode({ output_format: { type: 'json_object' } });
    expect(body['system']).toContain('JSON');
    expect(notes).toEqual(['APPROXIMATED output_format.json_object']);
  });
});

describe('P73 cache marks', () => {
  const marked = (ttl?: '5m' | '1h') => ({ cache_control: { type: 'ephemeral' as const, ...(ttl && { ttl }) } });
  const part = (value: string, ttl?: '5m' | '1h'): ContentBlock => ({ type: 'text', text: value, ...marked(ttl) });

  test('four of them: the tools, the instructions, and the latest', () => {
    const { body, notes } = encode({
      tools: [tool('f', marked())],
      system: [{ type: 'text', text: 's', ...marked() }],
      messages: [user(part('1'), part('2'), part('3'))],
    });
    const [turn] = body['messages'] as { content: Json[] }[];
    expect(turn?.content.map((block) => 'cache_control' in block)).toEqual([false, true, true]);
    expect(body['tools']).toMatchObject([marked()]);
    expect(notes).toEqual(['CLAMPED cache_control']);
  });

  test('what stands before an hour lasts an hour', () => {
    const { body } = encode({ tools: [tool('f', marked('5m'))], system: [{ type: 'text', text: 's', ...marked('1h') }] });
    expect(body['tools']).toMatchObject([marked('1h')]);
    expect(body['system']).toMatchObject([marked('1h')]);
  });
});

describe('the envelope', () => {
  test('headers of the client go back, where the model is called by its name there', () => {
    const extensions = { 'anthropic-messages': { 'anthropic-beta': 'a', 'anthropic-version': '2026-10-21', container: 'c' } };
    const provider = { id: 'p', protocol: 'anthropic-messages' as const, base_url: 'http://localhost' };
    const context = messagesContext({ profile: HAIKU, target: { provider, model: 'claude-haiku-4-5', stream: true } });
    const wire = encodeRequest({ model: 'm', messages: [user('q')], parameters: { max_tokens: 1 }, extensions }, context);
    expect(wire).toEqual({
      method: 'POST',
      path: '/v1/messages',
      headers: { 'content-type': 'application/json', 'anthropic-beta': 'a', 'anthropic-version': '2026-10-21' },
      body: {
        container: 'c',
        model: 'claude-haiku-4-5',
        max_tokens: 1,
        messages: [{ role: 'user', content: [{ type: 'text', text: 'q' }] }],
        stream: true,
      },
    });
  });
});
