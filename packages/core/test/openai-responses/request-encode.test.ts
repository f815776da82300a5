import { describe, expect, test } from 'vitest';
import { type Json, responsesContext } from '../../../../test/sdk/responses.ts';
import type { ContentBlock } from '../../src/canonical/message.ts';
import type { CanonicalMessage, CanonicalRequest, CanonicalTool } from '../../src/canonical/request.ts';
import type { CodecContext } from '../../src/codec/protocol.ts';
import { sha256 } from '../../src/passes/names.ts';
import { profileFor } from '../../src/protocols/openai-responses/profiles.ts';
import { encodeRequestBody } from '../../src/protocols/openai-responses/request-encode.ts';
import { paramOf } from './bare.ts';

const text = (words: string): ContentBlock => ({ type: 'text', text: words });
const user = (words: string): CanonicalMessage => ({ role: 'user', content: [text(words)] });
const assistant = (...content: ContentBlock[]): CanonicalMessage => ({ role: 'assistant', content });
const call = (id: string, name = 'f'): ContentBlock => ({ type: 'tool_use', id, name, input: {} });
const result = (id: string, content: Extract<ContentBlock, { type: 'tool_result' }>['content']): CanonicalMessage => ({
  role: 'tool',
  content: [{ type: 'tool_result', tool_use_id: id, content }],
});
const tool: CanonicalTool = { name: 'f', input_schema: { type: 'object', properties: {} } };

const said = (words: string): Json => ({
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text: words, annotations: [] }],
});
const asked = (words: string): Json => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text: words }] });

interface Row {
  name: string;
  request: Partial<CanonicalRequest>;
  /** What the body holds at least; undefined: the field is not there. */
  want: Json;
  /** `CODE feature`. */
  notes?: string[];
  context?: Partial<CodecContext>;
}

const encode = ({ request, context }: Row, extra: Partial<CodecContext> = {}) => {
  const scope = responsesContext({ ...context, ...extra });
  const body = encodeRequestBody({ model: 'm', messages: [user('hi')], parameters: {}, ...request }, scope);
  return { body, notes: scope.notes.map(({ code, feature }) => `${code} ${feature}`) };
};

const CONVERSATION: Row[] = [
  {
    name: 'P04 a call that nobody answered gets an answer that says so',
    request: { messages: [assistant(call('a')), user('go on')] },
    want: {
      input: [
        { type: 'function_call', call_id: 'a' },
        { type: 'function_call_output', call_id: 'a', output: 'Error: No result was recorded for this call.' },
        asked('go on'),
      ],
    },
    notes: ['REPAIRED messages.tool_use', 'APPROXIMATED tool_result.is_error'],
  },
  {
    name: 'P05 a result without its call becomes text of the user',
    request: { messages: [result('z', '42')] },
    want: { input: [asked('Result of an earlier tool call: 42')] },
    notes: ['REPAIRED messages.tool_result'],
  },
  {
    name: 'P05 not when the server remembers the call',
    request: { messages: [result('z', '42')], state: { previous_response_id: 'resp_1' } },
    want: { previous_response_id: 'resp_1', input: [{ type: 'function_call_output', call_id: 'z', output: '42' }] },
  },
  {
    name: 'P05 nor when the input refers to items that the server has',
    request: {
      messages: [
        assistant({ type: 'opaque', origin: 'openai-responses', raw: { type: 'item_reference', id: 'fc_1' }, held: 'fc_1' }),
        result('z', '42'),
      ],
    },
    want: {
      input: [
        { type: 'item_reference', id: 'fc_1' },
        { type: 'function_call_output', call_id: 'z', output: '42' },
      ],
    },
  },
  {
    name: 'P15 instructions in the middle stay there, from the developer',
    request: { messages: [user('a'), { role: 'system', content: [text('be brief')] }, user('b')] },
    want: {
      input: [
        asked('a'),
        { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'be brief' }] },
        asked('b'),
      ],
    },
  },
  {
    name: 'P17 text and calls keep their order',
    request: {
      messages: [
        assistant(text('A'), call('1'), text('B'), call('2')),
        {
          role: 'tool',
          content: [
            { type: 'tool_result', tool_use_id: '1', content: 'x' },
            { type: 'tool_result', tool_use_id: '2', content: 'y' },
          ],
        },
      ],
    },
    want: {
      input: [
        said('A'),
        { type: 'function_call', call_id: '1' },
        said('B'),
        { type: 'function_call', call_id: '2' },
        { type: 'function_call_output', call_id: '1', output: 'x' },
        { type: 'function_call_output', call_id: '2', output: 'y' },
      ],
    },
  },
  {
    name: 'P18 reasoning goes before what it led to',
    request: { messages: [assistant(encrypted('rs_1'), text('A'), call('1')), result('1', 'x')] },
    want: {
      input: [
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAA' },
        said('A'),
        { type: 'function_call' },
        { type: 'function_call_output' },
      ],
    },
  },
  {
    name: 'P18 and not without it',
    request: {
      messages: [
        user('a'),
        assistant(encrypted('rs_1'), { type: 'tool_use', id: 'srv', name: 'web_search', input: {}, kind: 'server' }),
        user('b'),
      ],
    },
    want: { input: [asked('a'), asked('b')] },
    notes: ['DROPPED assistant.tool_use', 'DROPPED assistant.thinking'],
  },
  {
    name: 'P22 ids of calls are 64 characters at most, with their outputs',
    request: { messages: [assistant(call('c'.repeat(86))), result('c'.repeat(86), 'x')] },
    want: {
      input: [
        { type: 'function_call', call_id: `call_${sha256('c'.repeat(86)).slice(0, 24)}` },
        { type: 'function_call_output', call_id: `call_${sha256('c'.repeat(86)).slice(0, 24)}` },
      ],
    },
    notes: ['RENAMED messages.tool_use.id'],
  },
  {
    name: 'P23 only ids of this API are sent back',
    request: {
      messages: [
        { role: 'user', content: [text('a')], id: 'msg_1' },
        assistant(
          { type: 'text', text: 'A', extensions: { 'openai-responses': { item_id: 'msg-proxy 1' } } },
          { type: 'tool_use', id: '1', name: 'f', input: {}, item_id: 'chatcmpl-1' },
        ),
        result('1', 'x'),
        assistant({ type: 'text', text: 'B', extensions: { 'openai-responses': { item_id: 'msg_2', phase: 'final_answer' } } }),
      ],
    },
    want: {
      input: [
        { id: 'msg_1', role: 'user' },
        said('A'),
        { type: 'function_call', call_id: '1', name: 'f', arguments: '{}' },
        { type: 'function_call_output' },
        { id: 'msg_2', role: 'assistant', status: 'completed', phase: 'final_answer' },
      ],
    },
  },
  {
    name: 'P31 images stay in the output of their call',
    request: {
      messages: [
        assistant(call('1')),
        result('1', [
          { type: 'text', text: 'shot' },
          { type: 'image', source: { data: 'AAA', media_type: 'image/png' } },
        ]),
      ],
    },
    want: {
      input: [
        { type: 'function_call' },
        {
          type: 'function_call_output',
          output: [
            { type: 'input_text', text: 'shot' },
            { type: 'input_image', image_url: 'data:image/png;base64,AAA', detail: 'auto' },
          ],
        },
      ],
    },
  },
  {
    name: 'P34 a PDF is a data URL with a name',
    request: {
      messages: [{ role: 'user', content: [{ type: 'file', source: { file_data: 'JVBE', media_type: 'application/pdf' } }] }],
    },
    want: {
      input: [{ content: [{ type: 'input_file', filename: 'document.pdf', file_data: 'data:application/pdf;base64,JVBE' }] }],
    },
  },
  {
    name: 'P34 a document by its URL',
    request: { messages: [{ role: 'user', content: [{ type: 'file', source: { file_url: 'https://x/a.pdf' } }] }] },
    want: { input: [{ content: [{ type: 'input_file', file_url: 'https://x/a.pdf' }] }] },
  },
  {
    name: 'P36 audio has no declared form',
    request: { messages: [{ role: 'user', content: [text('hi'), { type: 'audio', source: { data: 'UklG', format: 'wav' } }] }] },
    want: { input: [asked('hi')] },
    notes: ['DROPPED audio'],
  },
  {
    name: 'P37 a refusal is a refusal',
    request: { messages: [assistant({ type: 'text', text: 'No.', refusal: true }), user('please')] },
    want: { input: [{ role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }, asked('please')] },
  },
  {
    name: 'P39 the assistant says output_text, neighbours share a message',
    request: { messages: [assistant(text('A'), text('B')), user('hi')] },
    want: {
      input: [
        {
          role: 'assistant',
          content: [
            { type: 'output_text', text: 'A' },
            { type: 'output_text', text: 'B' },
          ],
        },
        asked('hi'),
      ],
    },
  },
  {
    name: 'P40 an error is told in the output',
    request: {
      messages: [
        assistant(call('1')),
        { role: 'tool', content: [{ type: 'tool_result', tool_use_id: '1', content: 'boom', is_error: true }] },
      ],
    },
    want: { input: [{ type: 'function_call' }, { type: 'function_call_output', output: 'Error: boom' }] },
    notes: ['APPROXIMATED tool_result.is_error'],
  },
  {
    name: 'P42, P43 arguments: none are the empty object, others go as they came',
    request: {
      messages: [
        assistant(call('1'), { type: 'tool_use', id: '2', name: 'f', input: {}, input_raw: '{"a":1' }),
        {
          role: 'tool',
          content: [
            { type: 'tool_result', tool_use_id: '1', content: '' },
            { type: 'tool_result', tool_use_id: '2', content: '' },
          ],
        },
      ],
    },
    want: {
      input: [
        { call_id: '1', arguments: '{}' },
        { call_id: '2', arguments: '{"a":1' },
        { call_id: '1', output: '' },
        { call_id: '2', output: '' },
      ],
    },
  },
  {
    name: 'P46 the input of a custom tool is text, and its output answers a custom call',
    request: {
      messages: [assistant({ type: 'tool_use', id: '1', name: 'sql', input: 'SELECT 1', kind: 'custom' }), result('1', '1')],
      tools: [{ name: 'sql', kind: 'custom', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } }],
    },
    want: {
      input: [
        { type: 'custom_tool_call', call_id: '1', name: 'sql', input: 'SELECT 1' },
        { type: 'custom_tool_call_output', call_id: '1', output: '1' },
      ],
      tools: [{ type: 'custom', name: 'sql', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } }],
    },
    context: { profile: profileFor('openai', 'gpt-5') },
  },
  {
    name: 'P118 calls out of a parallel call go back into it, and so do their results',
    request: {
      messages: [
        assistant({ ...parallel(0), input_raw: '{"q":1}' }, parallel(1)),
        {
          role: 'tool',
          content: [
            { type: 'tool_result', tool_use_id: 'w_0', name: 'f', content: 'x' },
            { type: 'tool_result', tool_use_id: 'w_1', name: 'f', content: 'y' },
          ],
        },
      ],
    },
    want: {
      input: [
        {
          type: 'function_call',
          call_id: 'w',
          name: 'parallel',
          arguments: JSON.stringify({
            tool_uses: [
              { recipient_name: 'functions.f', parameters: { q: 1 } },
              { recipient_name: 'functions.f', parameters: {} },
            ],
          }),
        },
        {
          type: 'function_call_output',
          call_id: 'w',
          output: JSON.stringify([
            { recipient_name: 'functions.f', output: 'x' },
            { recipient_name: 'functions.f', output: 'y' },
          ]),
        },
      ],
    },
  },
  {
    name: 'thinking that nobody signed stays here',
    request: { messages: [assistant({ type: 'thinking', thinking: 'hm', variant: 'full' }, text('A')), user('hi')] },
    want: { input: [said('A'), asked('hi')] },
    notes: ['DROPPED assistant.thinking'],
  },
  {
    name: 'a name of a participant has no place',
    request: { messages: [{ role: 'user', content: [text('hi')], name: 'ann' }] },
    want: { input: [asked('hi')] },
    notes: ['DROPPED messages.name'],
  },
  {
    name: 'system text is the instructions',
    request: {
      system: [
        { type: 'text', text: 'A' },
        { type: 'text', text: 'B', role: 'system' },
      ],
    },
    want: { instructions: 'A\n\nB', input: [asked('hi')] },
  },
  {
    name: 'a developer speaks in the input, and all who follow',
    request: {
      system: [
        { type: 'text', text: 'A', role: 'system' },
        { type: 'text', text: 'B', role: 'developer' },
        { type: 'text', text: 'C', role: 'system' },
      ],
    },
    want: {
      instructions: 'A',
      input: [{ role: 'developer', content: [{ text: 'B' }] }, { role: 'system', content: [{ text: 'C' }] }, asked('hi')],
    },
  },
  {
    name: 'a cache mark is a breakpoint where models know them',
    request: { system: [{ type: 'text', text: 'A', cache_control: { type: 'ephemeral' } }] },
    want: {
      instructions: undefined,
      input: [
        { role: 'developer', content: [{ type: 'input_text', text: 'A', prompt_cache_breakpoint: { mode: 'explicit' } }] },
        asked('hi'),
      ],
    },
    context: { profile: profileFor('openai', 'gpt-5.6') },
  },
];

function encrypted(id: string): ContentBlock {
  return {
    type: 'thinking',
    thinking: '',
    signature: { origin: 'openai-responses', form: 'encrypted', value: 'gAAA', item_id: id },
    extensions: { 'openai-responses': { item_id: id } },
  };
}

function parallel(at: number): Extract<ContentBlock, { type: 'tool_use' }> {
  return { type: 'tool_use', id: `w_${at}`, name: 'f', input: {}, extensions: { 'openai-responses': { parallel_call_id: 'w' } } };
}

const FIELDS: Row[] = [
  {
    name: 'P28 tools of one namespace are one entry',
    request: {
      tools: [
        { ...tool, namespace: 'crm' },
        { name: 'other', input_schema: tool.input_schema ?? {} },
        { ...tool, name: 'g', namespace: 'crm' },
      ],
    },
    want: {
      tools: [
        { type: 'namespace', name: 'crm', tools: [{ name: 'f' }, { name: 'g' }] },
        { type: 'function', name: 'other' },
      ],
    },
    context: { profile: profileFor('openai', 'gpt-5') },
  },
  {
    name: 'P28 elsewhere they are flat',
    request: { tools: [{ ...tool, namespace: 'crm' }] },
    want: { tools: [{ type: 'function', name: 'crm__f' }] },
    notes: ['RENAMED tools.name'],
  },
  {
    name: 'P53, P54 schemas are whole',
    request: { tools: [{ name: 'f', input_schema: { type: 'object' } }] },
    want: { tools: [{ parameters: { type: 'object', properties: {} } }] },
    notes: ['REPAIRED tools.schema'],
  },
  {
    name: 'P55 strict is said: left out, it would mean "if possible"',
    request: { tools: [tool] },
    want: { tools: [{ strict: false }] },
  },
  {
    name: 'P58 no choice without tools',
    request: { tool_choice: { type: 'auto' }, parallel_tool_use: false },
    want: { tool_choice: undefined, parallel_tool_calls: undefined, tools: undefined },
  },
  {
    name: 'P61 allowed tools',
    request: { tools: [tool], tool_choice: { type: 'any', allowed_tools: ['f'] } },
    want: { tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'f' }] } },
  },
  {
    name: 'P64 somebody has to say JSON, and instructions do not count',
    request: { output_format: { type: 'json_object' }, system: [{ type: 'text', text: 'JSON please' }] },
    want: {
      text: { format: { type: 'json_object' } },
      input: [{ role: 'developer', content: [{ text: 'Respond in JSON.' }] }, asked('hi')],
    },
    notes: ['REPAIRED output_format.json_word'],
  },
  {
    name: 'a schema is flat and has a name',
    request: {
      output_format: { type: 'json_schema', json_schema: { schema: { type: 'object' }, strict: false } },
      verbosity: 'low',
    },
    want: {
      text: { format: { type: 'json_schema', name: 'response', schema: { type: 'object' }, strict: false }, verbosity: 'low' },
    },
    notes: ['APPROXIMATED output_format.name'],
  },
  {
    name: 'P67 at least 16 tokens',
    request: { parameters: { max_tokens: 5 } },
    want: { max_output_tokens: 16 },
    notes: ['CLAMPED parameters.max_tokens'],
  },
  {
    name: 'P72, P75 what the API has no field for',
    request: { parameters: { stop_sequences: ['x'], n: 2, seed: 1, top_k: 3, frequency_penalty: 1, logit_bias: { a: 1 } } },
    want: { stop: undefined, n: undefined, seed: undefined },
    notes: ['top_k', 'frequency_penalty', 'stop_sequences', 'seed', 'logit_bias', 'n'].map(
      (name) => `DROPPED parameters.${name}`,
    ),
  },
  {
    name: 'P76 a long user id is hashed',
    request: { user_id: 'u'.repeat(65) },
    want: { safety_identifier: sha256('u'.repeat(65)), user: undefined },
    notes: ['RENAMED user_id'],
    context: { profile: profileFor('openai', 'gpt-5') },
  },
  {
    name: 'P121 a client of another protocol asked for nothing to be stored',
    request: {},
    want: { store: false, include: ['reasoning.encrypted_content'] },
    context: { profile: profileFor('openai', 'gpt-5') },
  },
  {
    name: 'a server about which nothing is known is not asked for encrypted reasoning',
    request: {},
    want: { store: false, include: undefined },
  },
  {
    name: 'a server about which nothing is known is asked for encrypted reasoning by a client',
    request: { include: ['reasoning.encrypted_content'] },
    want: { include: ['reasoning.encrypted_content'] },
  },
  {
    name: 'a server about which nothing is known is asked for the encrypted reasoning of a model that is known to reason',
    request: {},
    want: { include: ['reasoning.encrypted_content'] },
    context: { profile: profileFor('own', 'openai/gpt-5.1') },
  },
  {
    name: 'P121 a model that cannot reason is not asked for its reasoning',
    request: { parameters: { logprobs: true, top_logprobs: 2 } },
    want: { store: false, include: ['message.output_text.logprobs'], top_logprobs: 2 },
    context: { profile: profileFor('openai', 'gpt-4o') },
  },
  {
    name: 'P121 a client of this protocol is taken at its word',
    request: { extensions: { 'openai-responses': {} }, tools: [tool] },
    want: {
      store: undefined,
      include: undefined,
      tools: [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }],
    },
  },
  {
    name: 'effort and summary',
    request: { thinking: { type: 'enabled', budget_tokens: 9000, display: 'summarized' } },
    want: { reasoning: { effort: 'high', summary: 'auto' } },
    notes: ['APPROXIMATED thinking.effort'],
  },
  { name: 'no thinking', request: { thinking: { type: 'disabled' } }, want: { reasoning: { effort: 'none' } } },
  {
    name: 'no thinking where it cannot be said',
    request: { thinking: { type: 'disabled' }, parameters: { temperature: 0.5 } },
    want: { reasoning: undefined, temperature: undefined },
    notes: ['DROPPED thinking.type', 'DROPPED parameters.temperature'],
    context: { profile: profileFor('openai', 'gpt-5') },
  },
  {
    name: 'web search of another protocol',
    request: {
      tools: [
        {
          name: 'web_search',
          kind: 'server',
          server: {
            type: 'web_search',
            wire_type: 'web_search_20260318',
            config: { max_uses: 3, allowed_domains: ['a.org'], user_location: { type: 'approximate', city: 'Rome' } },
            origin: 'anthropic-messages',
          },
        },
      ],
    },
    want: {
      tools: [
        { type: 'web_search', filters: { allowed_domains: ['a.org'] }, user_location: { type: 'approximate', city: 'Rome' } },
      ],
    },
    notes: ['DROPPED tools.web_search.max_uses', 'APPROXIMATED tools.web_search'],
  },
  {
    name: 'a conversation of the server',
    request: { state: { conversation_id: 'conv_1', background: true } },
    want: { conversation: 'conv_1', background: true },
  },
  {
    name: 'what only others can be asked for',
    request: { modalities: ['text', 'audio'], audio_output: { format: 'wav' }, service_tier: 'batch' },
    want: { modalities: undefined, service_tier: undefined },
    notes: ['DROPPED service_tier', 'DROPPED modalities', 'DROPPED audio_output'],
  },
  {
    name: 'options',
    request: {
      metadata: { a: 'b' },
      service_tier: 'standard',
      truncation: 'auto',
      prompt_cache: { key: 'k', ttl: '24h' },
      stream: true,
      user_id: 'ann',
    },
    want: {
      metadata: { a: 'b' },
      service_tier: 'default',
      truncation: 'auto',
      prompt_cache_key: 'k',
      prompt_cache_retention: '24h',
      stream: true,
      user: 'ann',
    },
  },
];

describe.each([...CONVERSATION, ...FIELDS])('$name', (row) => {
  const { body, notes } = encode(row);

  test('is written', () => {
    const absent = Object.keys(row.want).filter((name) => row.want[name] === undefined);
    for (const name of absent) expect(body).not.toHaveProperty(name);
    expect(body).toMatchObject(JSON.parse(JSON.stringify(row.want)) as Json);
  });

  test('is told', () => {
    expect(notes.toSorted()).toEqual((row.notes ?? []).toSorted());
  });

  test('P130 is the same twice', () => {
    expect(JSON.stringify(encode(row).body)).toBe(JSON.stringify(body));
  });
});

describe('refused', () => {
  const image = { type: 'image', source: { file_id: 'file-1' } } as const;
  const rows: [string, Partial<CanonicalRequest>, string][] = [
    ['P35 the id of a file that others hold', { messages: [{ role: 'user', content: [image] }] }, '/messages/0/content/0'],
    ['cached content of Gemini', { state: { cached_content: 'cachedContents/1' } }, '/state/cached_content'],
    ['nobody says anything', { messages: [] }, 'input'],
    [
      'a tool that must be called and is not there',
      {
        tools: [
          {
            name: 'maps',
            kind: 'server',
            server: { type: 'google_maps', wire_type: 'googleMaps', config: {}, origin: 'gemini' },
          },
        ],
        tool_choice: { type: 'tool', name: 'maps' },
      },
      '/tool_choice',
    ],
  ];

  test.each(rows)('%s', (_, request, param) => {
    expect(paramOf(() => encode({ name: '', request, want: {} }))).toBe(param);
  });

  test('what strict does not let go', () => {
    const row: Row = { name: '', request: { parameters: { seed: 1 } }, want: {} };
    expect(paramOf(() => encode(row, { policy: { strict: true } }))).toBe('/parameters/seed');
  });
});

describe('a message of the assistant', () => {
  const itemsOf = (...messages: CanonicalMessage[]): Json[] =>
    encode({ name: '', request: { messages }, want: {} }).body['input'] as Json[];

  test('that came without an id gets one of its own, which stays the same as the conversation grows', () => {
    const history = [user('hi'), assistant(text('A'), call('1'), text('A')), result('1', 'x'), assistant(text('A'))];
    const idsOf = (items: Json[]): unknown[] => items.filter(({ role }) => role === 'assistant').map(({ id }) => id);
    const first = idsOf(itemsOf(...history));
    expect(new Set(first).size).toBe(3);
    for (const id of first) expect(id).toMatch(/^msg_[0-9a-f]{24}$/);
    expect(idsOf(itemsOf(...history, user('go on'))).slice(0, 3)).toEqual(first);
  });

  test('that a client of this protocol sent without an id stays without one', () => {
    const own: ContentBlock = { type: 'text', text: 'A', extensions: { 'openai-responses': {} } };
    expect(itemsOf(user('hi'), assistant(own))[1]).not.toHaveProperty('id');
  });
});
