import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Json, responsesContext } from '../../../../test/sdk/responses.ts';
import { CodecError } from '../../src/canonical/notes.ts';
import { SOURCE } from '../../src/canonical/source.ts';
import { encodeCarrier } from '../../src/codec/answers.ts';
import { decodeRequestBody } from '../../src/protocols/openai-responses/request-decode.ts';
import { encodeRequestBody } from '../../src/protocols/openai-responses/request-encode.ts';
import { paramOf } from './bare.ts';

const OWN = 'openai-responses';
const decode = (body: Json, context = responsesContext()) => decodeRequestBody({ model: 'm', input: 'hi', ...body }, context);

const ROWS: { name: string; body: Json; want: Json }[] = [
  {
    name: 'a text is what the user says',
    body: {},
    want: { model: 'm', messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }], parameters: {} },
  },
  {
    name: 'instructions and the leading messages are the system, with their roles',
    body: {
      instructions: 'A',
      input: [
        {
          type: 'message',
          id: 'msg_1',
          role: 'developer',
          content: [
            { type: 'input_text', text: 'B' },
            { type: 'input_text', text: 'C' },
          ],
        },
        { role: 'system', content: 'D' },
        { role: 'user', content: 'hi' },
        { role: 'developer', content: 'E' },
      ],
    },
    want: {
      system: [
        { text: 'A', extensions: { [OWN]: { instructions: true } } },
        { text: 'B', role: 'developer', extensions: { [OWN]: { message: { id: 'msg_1' } } } },
        { text: 'C' },
        { text: 'D', role: 'system' },
      ],
      messages: [{ role: 'user' }, { role: 'system', content: [{ text: 'E' }], extensions: { [OWN]: { role: 'developer' } } }],
    },
  },
  {
    name: 'reasoning, words and calls are one turn, outputs one message',
    body: {
      input: [
        {
          type: 'reasoning',
          id: 'rs_1',
          summary: [
            { type: 'summary_text', text: 'a' },
            { type: 'summary_text', text: 'b' },
          ],
          encrypted_content: 'X',
        },
        {
          type: 'message',
          role: 'assistant',
          id: 'msg_1',
          status: 'completed',
          phase: 'commentary',
          content: [{ type: 'output_text', text: 'T' }],
        },
        {
          type: 'function_call',
          id: 'fc_1',
          call_id: 'c1',
          name: 'f',
          namespace: 'ns',
          arguments: '{"a":1}',
          status: 'completed',
        },
        { type: 'custom_tool_call', call_id: 'c2', name: 'g', input: 'raw' },
        { type: 'function_call_output', call_id: 'c1', output: 'x' },
        { type: 'custom_tool_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'y' }] },
      ],
    },
    want: {
      messages: [
        {
          role: 'assistant',
          content: [
            {
              type: 'thinking',
              thinking: 'a\n\nb',
              variant: 'summary',
              summary_parts: ['a', 'b'],
              signature: { origin: OWN, form: 'encrypted', value: 'X', item_id: 'rs_1' },
            },
            { type: 'text', text: 'T', extensions: { [OWN]: { item_id: 'msg_1', phase: 'commentary', status: 'completed' } } },
            { type: 'tool_use', id: 'c1', name: 'f', namespace: 'ns', input: { a: 1 }, input_raw: '{"a":1}', item_id: 'fc_1' },
            { type: 'tool_use', id: 'c2', name: 'g', kind: 'custom', input: 'raw' },
          ],
        },
        {
          role: 'tool',
          content: [
            { type: 'tool_result', tool_use_id: 'c1', name: 'f', content: 'x' },
            { type: 'tool_result', tool_use_id: 'c2', name: 'g', kind: 'custom', content: [{ type: 'text', text: 'y' }] },
          ],
        },
      ],
    },
  },
  {
    name: 'an output closes the turn',
    body: {
      input: [
        { type: 'function_call', call_id: '1', name: 'f', arguments: '' },
        { type: 'function_call_output', call_id: '1', output: 'x', status: 'incomplete' },
        { type: 'function_call', call_id: '2', name: 'f', arguments: '[1]' },
        { type: 'function_call_output', call_id: '2', output: { a: 1 } },
      ],
    },
    want: {
      messages: [
        { role: 'assistant', content: [{ id: '1', input: {} }] },
        { role: 'tool', content: [{ tool_use_id: '1', is_error: true }] },
        { role: 'assistant', content: [{ id: '2', input: {}, input_raw: '[1]' }] },
        { role: 'tool', content: [{ tool_use_id: '2', content: '{"a":1}' }] },
      ],
    },
  },
  {
    name: 'items that only the server understands are kept as they are',
    body: {
      input: [
        { type: 'item_reference', id: 'rs_1' },
        { type: 'web_search_call', id: 'ws_1', status: 'completed' },
        { type: 'from_the_future', id: 'x' },
      ],
    },
    want: {
      messages: [
        {
          role: 'assistant',
          content: [
            { type: 'opaque', origin: OWN, raw: { type: 'item_reference', id: 'rs_1' } },
            { type: 'opaque', raw: { type: 'web_search_call' } },
            { type: 'opaque', raw: { type: 'from_the_future', id: 'x' } },
          ],
        },
      ],
    },
  },
  {
    name: 'images, files, audio',
    body: {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_image', image_url: 'data:image/png;base64,AAA', detail: 'high' },
            { type: 'input_image', file_id: 'file-1' },
            { type: 'input_file', file_data: 'data:application/pdf;base64,JVBE', filename: 'a.pdf' },
            { type: 'input_file', file_url: 'https://x/b.pdf' },
            { type: 'input_audio', input_audio: { data: 'UklG', format: 'wav' } },
          ],
        },
      ],
    },
    want: {
      messages: [
        {
          content: [
            { type: 'image', source: { data: 'AAA', media_type: 'image/png', detail: 'high' } },
            { type: 'image', source: { file_id: 'file-1' }, extensions: { [OWN]: { file_id: 'file-1' } } },
            { type: 'file', source: { file_data: 'JVBE', media_type: 'application/pdf', filename: 'a.pdf' } },
            { type: 'file', source: { file_url: 'https://x/b.pdf' } },
            { type: 'audio', source: { data: 'UklG', format: 'wav' } },
          ],
        },
      ],
    },
  },
  {
    name: 'P28 tools of a namespace, custom tools with a grammar, tools of the server',
    body: {
      tools: [
        { type: 'namespace', name: 'crm', description: 'CRM', tools: [{ type: 'function', name: 'get', strict: false }] },
        { type: 'custom', name: 'sql', format: { type: 'grammar', syntax: 'lark', definition: 's' } },
        { type: 'web_search_preview', search_context_size: 'low' },
        { type: 'mcp', server_label: 'docs', server_url: 'https://x' },
        { type: 'code_interpreter', container: { type: 'auto' } },
      ],
      tool_choice: { type: 'mcp', server_label: 'docs' },
    },
    want: {
      tools: [
        { name: 'get', namespace: 'crm', strict: false, extensions: { [OWN]: { group: { description: 'CRM' } } } },
        { name: 'sql', kind: 'custom', format: { type: 'grammar', syntax: 'lark', definition: 's' } },
        {
          name: 'web_search_preview',
          kind: 'server',
          server: { type: 'web_search', wire_type: 'web_search_preview', origin: OWN },
        },
        { name: 'docs', kind: 'mcp', server: { type: 'mcp', config: { server_url: 'https://x' } } },
        { kind: 'server', server: { type: 'code_execution', wire_type: 'code_interpreter' } },
      ],
      tool_choice: { type: 'tool', name: 'docs' },
    },
  },
  {
    name: 'parameters and options',
    body: {
      max_output_tokens: 100,
      temperature: 0,
      top_p: null,
      top_logprobs: 3,
      max_tool_calls: 2,
      text: { format: { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true }, verbosity: 'high' },
      reasoning: { effort: 'low', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
      metadata: { a: 'b' },
      service_tier: 'default',
      store: false,
      truncation: 'auto',
      prompt_cache_key: 'k',
      safety_identifier: 'u',
      parallel_tool_calls: false,
      previous_response_id: 'resp_1',
      conversation: { id: 'conv_1' },
      background: true,
      stream: true,
    },
    want: {
      parameters: { max_tokens: 100, temperature: 0, top_logprobs: 3, logprobs: true, max_tool_calls: 2 },
      output_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' }, strict: true } },
      verbosity: 'high',
      thinking: { type: 'enabled', effort: 'low', summary: 'auto', display: 'summarized' },
      include: ['reasoning.encrypted_content'],
      metadata: { a: 'b' },
      service_tier: 'standard',
      store: false,
      truncation: 'auto',
      prompt_cache: { key: 'k' },
      user_id: 'u',
      parallel_tool_use: false,
      state: { previous_response_id: 'resp_1', conversation_id: 'conv_1', background: true },
      stream: true,
    },
  },
  { name: 'effort none', body: { reasoning: { effort: 'none' } }, want: { thinking: { type: 'disabled' } } },
  {
    name: 'a summary alone',
    body: { reasoning: { summary: 'auto' } },
    want: { thinking: { type: 'adaptive', display: 'summarized' } },
  },
  {
    name: "a carrier is taken apart, and its id is nobody's",
    body: {
      input: [
        {
          type: 'reasoning',
          id: 'rs_sl_0123456789abcdef01234567',
          summary: [{ type: 'summary_text', text: 'T' }],
          encrypted_content: encodeCarrier({ origin: 'anthropic-messages', form: 'signature', value: 'sig' }, 'a.b', 'self'),
        },
      ],
    },
    want: {
      messages: [
        {
          content: [
            {
              type: 'thinking',
              thinking: 'T',
              signature: { origin: 'anthropic-messages', form: 'signature', value: 'sig', provider: 'a.b' },
            },
          ],
        },
      ],
    },
  },
];

test.each(ROWS)('$name', ({ body, want }) => {
  expect(decode(body)).toMatchObject(want);
});

test('plain text is what is meant when nothing is said; a format of the future goes back as it came', () => {
  const textOf = (format: Json): unknown => encodeRequestBody(decode({ text: { format } }), responsesContext())['text'];
  expect(textOf({ type: 'text' })).toBeUndefined();
  expect(textOf({ type: 'grammar', definition: 'x' })).toEqual({ format: { type: 'grammar', definition: 'x' } });
});

test('thinking that we named comes back without a name', () => {
  const item = { type: 'reasoning', id: 'rs_sl_0123456789abcdef01234567', summary: [{ type: 'summary_text', text: 'T' }] };
  expect(decode({ input: [item] }).messages[0]?.content).toEqual([{ type: 'thinking', thinking: 'T', variant: 'summary' }]);
});

test('P22 calls and outputs without an id are paired', () => {
  const context = responsesContext();
  const input = [
    { type: 'function_call', call_id: '', name: 'f', arguments: '{}' },
    { type: 'function_call_output', output: 'x' },
  ];
  const [turn, results] = decode({ input }, context).messages;
  const [call] = turn?.content ?? [];
  expect(call).toMatchObject({ type: 'tool_use', id: expect.stringMatching(/^call_/) });
  expect(results?.content).toMatchObject([{ tool_use_id: call?.type === 'tool_use' ? call.id : '' }]);
  expect(context.notes.map(({ path }) => path)).toEqual(['/input/0/call_id', '/input/1/call_id']);
});

test('nodes keep their source position', () => {
  const body = {
    instructions: 'A',
    tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f' }] }],
    input: [
      { role: 'user', content: [{ type: 'input_text', text: 'a' }] },
      { type: 'function_call', call_id: '1', name: 'f', arguments: '{}' },
    ],
  };
  const { system, tools, messages } = decode(body, responsesContext({ trace: true }));
  const place = (node: object | undefined): unknown => (node && SOURCE in node ? node[SOURCE] : undefined);
  expect(place(system?.[0])).toBe('/instructions');
  expect(place(tools?.[0])).toBe('/tools/0/tools/0');
  expect(messages.map(place)).toEqual(['/input/0', '/input/1']);
  expect(messages.map(({ content }) => place(content[0]))).toEqual(['/input/0/content/0', '/input/1']);
});

describe('refused', () => {
  const deep = JSON.parse(`${'['.repeat(400)}${']'.repeat(400)}`);
  test.each<[string, unknown, string]>([
    ['no body', null, 'body'],
    ['no model', { input: 'hi' }, 'model'],
    ['no input', { model: 'm' }, 'input'],
    ['a number', { model: 'm', input: 3 }, 'input'],
    ['an item that is none', { model: 'm', input: ['x'] }, 'input[0]'],
    ['an item without a type', { model: 'm', input: [{}] }, 'input[0].type'],
    ['a role of chat', { model: 'm', input: [{ role: 'tool', content: 'x' }] }, 'input[0].role'],
    ['a message without content', { model: 'm', input: [{ role: 'user' }] }, 'input[0].content'],
    [
      'an image without a source',
      { model: 'm', input: [{ role: 'user', content: [{ type: 'input_image' }] }] },
      'input[0].content[0].image_url',
    ],
    ['a call without a name', { model: 'm', input: [{ type: 'function_call', call_id: '1', arguments: '{}' }] }, 'input[0].name'],
    ['a tool without a name', { model: 'm', input: 'x', tools: [{ type: 'function' }] }, 'tools[0].name'],
    ['a choice that is neither a word nor an object', { model: 'm', input: 'x', tool_choice: 5 }, 'tool_choice'],
    ['a temperature that is none', { model: 'm', input: 'x', temperature: 'hot' }, 'temperature'],
    ['an include that is none', { model: 'm', input: 'x', include: [1] }, 'include[0]'],
    ['a deep body', { model: 'm', input: [{ type: 'x', deep }] }, 'input[0]'],
  ])('%s', (_, body, param) => {
    expect(paramOf(() => decodeRequestBody(body, responsesContext()))).toBe(param);
  });

  test('a stored prompt and the conversation so far need no input', () => {
    expect(decodeRequestBody({ prompt: { id: 'pmpt_1' } }, responsesContext())).toMatchObject({ model: '', messages: [] });
    expect(decodeRequestBody({ model: 'm', previous_response_id: 'resp_1' }, responsesContext()).messages).toEqual([]);
  });
});

// Mostly what a client could mean, now and then anything at all.
const odd = fc.oneof(fc.constantFrom(null, 0, true, '', '__proto__'), fc.jsonValue({ maxDepth: 2 }));
const mostly = <T>(usual: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 60, arbitrary: usual }, { weight: 1, arbitrary: odd });
const words = mostly(fc.constantFrom('hi', '', 'json', '{}', '{"a":1}', '{"a"', '__proto__'));

const part = fc.record(
  {
    type: mostly(fc.constantFrom('input_text', 'output_text', 'refusal', 'input_image', 'input_file', 'summary_text', 'x')),
    text: words,
    refusal: words,
    image_url: mostly(fc.constantFrom('https://x', 'data:image/png;base64,AAA')),
    file_data: mostly(fc.constant('data:application/pdf;base64,JVBE')),
    prompt_cache_breakpoint: fc.constant({ mode: 'explicit' }),
  },
  { requiredKeys: ['type', 'text', 'refusal', 'image_url', 'file_data'] },
);
const parts = mostly(fc.oneof(words, fc.array(part, { maxLength: 3 })));
const item = fc.record(
  {
    type: fc.constantFrom(
      'message',
      'reasoning',
      'function_call',
      'function_call_output',
      'custom_tool_call',
      'custom_tool_call_output',
      'shell_call',
      'shell_call_output',
      'item_reference',
      '__proto__',
    ),
    role: mostly(fc.constantFrom('user', 'assistant', 'system', 'developer')),
    content: parts,
    summary: parts,
    call_id: mostly(fc.constantFrom('a', 'b', '')),
    id: mostly(fc.constantFrom('msg_1', 'rs_1', 'fc_1', 'odd', 'rs_sl_0123456789abcdef01234567')),
    name: mostly(fc.constantFrom('f', 'parallel', '__proto__')),
    arguments: words,
    input: mostly(fc.string()),
    output: parts,
    action: fc.constant({ commands: ['ls'] }),
    encrypted_content: mostly(
      fc.constantFrom('gAAA', 'cv1.gemini.g.thought_signature.next.UzE', 'cv1.gemini.g.thought_signature.self.UzE'),
    ),
    ['__proto__']: odd,
  },
  { requiredKeys: ['type', 'role', 'content', 'name', 'input'] },
);
const request = fc.record(
  {
    model: fc.constant('m'),
    input: mostly(fc.array(item, { maxLength: 8 })),
    text: mostly(fc.constantFrom({ format: { type: 'json_object' } }, { verbosity: 'low' })),
    reasoning: mostly(fc.constantFrom({ effort: 'low' }, { summary: 'auto', mode: 'pro' })),
    tool_choice: mostly(fc.constantFrom('auto', { type: 'function', name: 'f' })),
  },
  { requiredKeys: ['model', 'input'] },
);

test('whatever comes is read or refused with a place, never a bug, and what is in normal form stays as it is', () => {
  let read = 0;
  fc.assert(
    fc.property(request, (source) => {
      try {
        const written = encodeRequestBody(decodeRequestBody(structuredClone(source), responsesContext()), responsesContext());
        const again = encodeRequestBody(decodeRequestBody(written, responsesContext()), responsesContext());
        expect(JSON.stringify(again)).toBe(JSON.stringify(written));
        read++;
      } catch (error) {
        if (!(error instanceof CodecError)) throw error;
      }
    }),
    { numRuns: 1000 },
  );
  expect(read).toBeGreaterThan(100);
});
