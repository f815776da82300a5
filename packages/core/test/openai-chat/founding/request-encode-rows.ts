import type { ContentBlock } from '../../../src/canonical/message.ts';
import type { CanonicalMessage, CanonicalRequest, RequestParameters } from '../../../src/canonical/request.ts';
import type { CodecContext } from '../../../src/codec/protocol.ts';
import { codec, type Deviation, encoded, type Row, valueAt } from './row.ts';

interface Encoding {
  request: Partial<CanonicalRequest>;
  path: string;
  wanted: unknown;
  deviation?: Deviation;
  over?: Partial<CodecContext>;
}

const encodes = (says: string, { request, path, wanted, deviation, over }: Encoding): Row => ({
  at: '4.2',
  says,
  actual: () => valueAt(encoded(request, over), path),
  wanted,
  deviation,
});

const text = (value: string): ContentBlock => ({ type: 'text', text: value });
const USER: CanonicalMessage = { role: 'user', content: [text('hi')] };

const HEAD: Row[] = [
  encodes("the provider's name of the model is sent", { request: {}, path: 'model', wanted: 'upstream-model' }),
  encodes('`system` is the first message', {
    request: { system: [{ type: 'text', text: 'S' }] },
    path: 'messages.0',
    wanted: { role: 'system', content: 'S' },
  }),
  encodes('several blocks are joined by a blank line', {
    request: {
      system: [
        { type: 'text', text: 'A' },
        { type: 'text', text: 'B' },
      ],
    },
    path: 'messages.0.content',
    wanted: 'A\n\nB',
  }),
  encodes('the messages follow', {
    request: { system: [{ type: 'text', text: 'S' }] },
    path: 'messages.1',
    wanted: { role: 'user', content: 'hi' },
  }),
  encodes('no `system`: no message', { request: {}, path: 'messages', wanted: [{ role: 'user', content: 'hi' }] }),
  encodes('messages are sent by encodeSystemPrompt and by encodeRequest', {
    request: {},
    path: 'messages.length',
    wanted: 2,
    deviation: { actual: 1, reason: 'The pseudo code sends the conversation twice (#22).' },
  }),
];

const content = (says: string, blocks: ContentBlock[], wanted: unknown, deviation?: Deviation): Row =>
  encodes(says, {
    request: { messages: [{ role: 'user', content: blocks }] },
    path: 'messages.0.content',
    wanted,
    ...(deviation && { deviation }),
  });

const CONTENT: Row[] = [
  content('one text block is a text', [text('a')], 'a'),
  content(
    'several are parts',
    [text('a'), text('b')],
    [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ],
  ),
  content(
    'an image is image_url',
    [{ type: 'image', source: { url: 'https://h/i.png' } }],
    [{ type: 'image_url', image_url: { url: 'https://h/i.png' } }],
  ),
  content(
    'with its detail',
    [{ type: 'image', source: { url: 'https://h/i.png', detail: 'low' } }],
    [{ type: 'image_url', image_url: { url: 'https://h/i.png', detail: 'low' } }],
  ),
  content(
    'the url of an image is source.url',
    [{ type: 'image', source: { data: 'AAAA', media_type: 'image/png' } }],
    [{ type: 'image_url', image_url: {} }],
    {
      actual: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
      reason: 'Data of other protocols becomes a data: URL (#26).',
    },
  ),
  content(
    'audio is input_audio',
    [{ type: 'audio', source: { data: 'AAAA', format: 'wav' } }],
    [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }],
  ),
  content(
    'a file is file with its id',
    [{ type: 'file', source: { file_id: 'file-1' }, extensions: { 'openai-chat': {} } }],
    [{ type: 'file', file: { file_id: 'file-1' } }],
  ),
  content(
    'a file is file with data and name',
    [{ type: 'file', source: { file_data: 'AAAA', filename: 'a.pdf', media_type: 'application/pdf' } }],
    [{ type: 'file', file: { file_data: 'AAAA', filename: 'a.pdf' } }],
    {
      actual: [{ type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' } }],
      reason: 'OpenAI takes a data: URL (#26).',
    },
  ),
];

const use = (id: string, name = 'f', input: Record<string, unknown> | string = {}): ContentBlock => ({
  type: 'tool_use',
  id,
  name,
  input,
});
const RESULT: CanonicalMessage = { role: 'tool', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'r' }] };
const said = (says: string, blocks: ContentBlock[], path: string, wanted: unknown, deviation?: Deviation): Row =>
  encodes(says, {
    request: {
      messages: [
        USER,
        { role: 'assistant', content: blocks },
        ...(blocks.some(({ type }) => type === 'tool_use') ? [RESULT] : []),
        USER,
      ],
    },
    path: `messages.1.${path}`,
    wanted,
    ...(deviation && { deviation }),
  });

const ASSISTANT: Row[] = [
  said('texts are joined', [text('a'), text('b')], 'content', 'ab'),
  said('calls without text: content is null', [use('c1')], 'content', null),
  said('neither: content is ""', [], 'content', ''),
  said('a call has id, type and function', [use('c1', 'f', { a: 1 })], 'tool_calls', [
    { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
  ]),
  said('text and calls stand side by side', [text('T'), use('c1')], 'content', 'T'),
  said('the role is assistant', [text('T')], 'role', 'assistant'),
  said(
    'a custom call is a function whose arguments are its input as JSON',
    [{ type: 'tool_use', id: 'c1', name: 'g', input: 'x', kind: 'custom' }],
    'tool_calls.0.function.arguments',
    '"x"',
    { actual: '{"input":"x"}', reason: 'Arguments are an object; models that know custom tools get a custom call (#25).' },
  ),
];

const TOOL_TURN: CanonicalMessage[] = [USER, { role: 'assistant', content: [use('c1'), use('c2')] }];
const results = (says: string, blocks: ContentBlock[], path: string, wanted: unknown, deviation?: Deviation): Row =>
  encodes(says, {
    request: { messages: [...TOOL_TURN, { role: 'tool', content: blocks }] },
    path,
    wanted,
    ...(deviation && { deviation }),
  });
const BOTH: ContentBlock[] = [
  { type: 'tool_result', tool_use_id: 'c1', content: 'r' },
  { type: 'tool_result', tool_use_id: 'c2', content: 's' },
];

const RESULTS: Row[] = [
  results('a result is a tool message', BOTH, 'messages.2.role', 'tool'),
  results('tool_use_id is tool_call_id', BOTH, 'messages.2.tool_call_id', 'c1'),
  results('its content is kept', BOTH, 'messages.2.content', 'r'),
  results('only the first result is sent', BOTH, 'messages.3', undefined, {
    actual: { role: 'tool', tool_call_id: 'c2', content: 's' },
    reason: 'Every result is a message, or the next request is refused (#23).',
  }),
];

const TURNS: Row[] = [
  encodes('messages of one role in a row are merged', {
    request: { messages: [USER, USER] },
    path: 'messages.length',
    wanted: 1,
    deviation: { actual: 2, reason: 'OpenAI does not ask for it; only servers that are known to do get it (#27).' },
  }),
  encodes('they are merged for a server that wants alternating roles', {
    request: { messages: [USER, USER] },
    path: 'messages.length',
    wanted: 1,
    over: { profile: codec.profileFor('perplexity') },
  }),
];

const TOOL = { name: 'f', description: 'D', input_schema: { type: 'object', properties: {} } };
const TOOLS: Row[] = [
  encodes('a tool is wrapped in function', {
    request: { tools: [TOOL] },
    path: 'tools',
    wanted: [{ type: 'function', function: { name: 'f', description: 'D', parameters: { type: 'object', properties: {} } } }],
  }),
  encodes('no tools: none', { request: {}, path: 'tools', wanted: undefined }),
  encodes('a tool without schema has no parameters', {
    request: { tools: [{ name: 'f' }] },
    path: 'tools.0.function.parameters',
    wanted: undefined,
    deviation: { actual: { type: 'object', properties: {} }, reason: 'Several servers refuse a tool without (#34).' },
  }),
  ...(
    [
      [{ type: 'auto' }, 'auto'],
      [{ type: 'none' }, 'none'],
      [{ type: 'any' }, 'required'],
      [
        { type: 'tool', name: 'f' },
        { type: 'function', function: { name: 'f' } },
      ],
    ] as const
  ).map(([tool_choice, wanted]) =>
    encodes(`the choice ${tool_choice.type} is ${JSON.stringify(wanted)}`, {
      request: { tools: [TOOL], tool_choice },
      path: 'tool_choice',
      wanted,
    }),
  ),
  encodes('no choice: none', { request: { tools: [TOOL] }, path: 'tool_choice', wanted: undefined }),
  encodes('a choice is sent without tools, too', {
    request: { tool_choice: { type: 'auto' } },
    path: 'tool_choice',
    wanted: 'auto',
    deviation: { actual: undefined, reason: 'Several servers refuse a choice without tools (#34).' },
  }),
];

const parameter = (says: string, parameters: RequestParameters, path: string, wanted: unknown, deviation?: Deviation): Row =>
  encodes(says, { request: { parameters }, path, wanted, ...(deviation && { deviation }) });

const PARAMETERS: Row[] = [
  parameter('max_tokens is max_completion_tokens', { max_tokens: 5 }, 'max_completion_tokens', 5),
  parameter('not max_tokens', { max_tokens: 5 }, 'max_tokens', undefined),
  parameter('max_tokens 0 is left out', { max_tokens: 0 }, 'max_completion_tokens', undefined, {
    actual: 1,
    reason: 'It is a value: raised to the least that is legal, with a note (#30).',
  }),
  parameter('no max_tokens: none', {}, 'max_completion_tokens', undefined),
  parameter('temperature', { temperature: 0.5 }, 'temperature', 0.5),
  parameter('temperature 0', { temperature: 0 }, 'temperature', 0),
  parameter('no temperature: none', {}, 'temperature', undefined),
  parameter('top_p', { top_p: 0.5 }, 'top_p', 0.5),
  parameter('no top_p: none', {}, 'top_p', undefined),
  parameter('frequency_penalty', { frequency_penalty: 1 }, 'frequency_penalty', 1),
  parameter('no frequency_penalty: none', {}, 'frequency_penalty', undefined),
  parameter('presence_penalty', { presence_penalty: 1 }, 'presence_penalty', 1),
  parameter('no presence_penalty: none', {}, 'presence_penalty', undefined),
  parameter('stop_sequences is stop', { stop_sequences: ['a'] }, 'stop', ['a']),
  parameter('all of them', { stop_sequences: ['a', 'b', 'c', 'd', 'e'] }, 'stop', ['a', 'b', 'c', 'd', 'e'], {
    actual: ['a', 'b', 'c', 'd'],
    reason: 'OpenAI refuses more than four (#33).',
  }),
  parameter('top_k is dropped', { top_k: 5 }, 'top_k', undefined),
];

const STREAMING = {
  target: { provider: { id: 'openai', protocol: 'openai-chat', base_url: 'https://h' }, model: 'm', stream: true },
} as const;
const FIELDS: Row[] = [
  encodes('stream true', { request: { stream: true }, over: STREAMING, path: 'stream', wanted: true }),
  encodes('stream false', { request: { stream: false }, path: 'stream', wanted: false }),
  encodes('no stream_options', {
    request: { stream: true },
    over: STREAMING,
    path: 'stream_options',
    wanted: undefined,
    deviation: { actual: { include_usage: true }, reason: 'Without it the usage that section 6 reads would never come (#31).' },
  }),
  encodes('user_id is user', { request: { user_id: 'u' }, path: 'user', wanted: 'u' }),
  encodes('no user_id: none', { request: {}, path: 'user', wanted: undefined }),
  encodes('json_object', {
    request: { messages: [{ role: 'user', content: [text('as JSON')] }], output_format: { type: 'json_object' } },
    path: 'response_format',
    wanted: { type: 'json_object' },
  }),
  encodes('json_schema with its schema', {
    request: { output_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } } },
    path: 'response_format',
    wanted: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } },
  }),
  encodes('a schema without name stays without', {
    request: { output_format: { type: 'json_schema', json_schema: { schema: { type: 'object' } } } },
    path: 'response_format.json_schema.name',
    wanted: undefined,
    deviation: { actual: 'response', reason: 'OpenAI refuses a schema without name (#36).' },
  }),
  encodes('no output_format: none', { request: {}, path: 'response_format', wanted: undefined }),
  encodes('parallel_tool_use true', {
    request: { tools: [TOOL], parallel_tool_use: true },
    path: 'parallel_tool_calls',
    wanted: true,
  }),
  encodes('parallel_tool_use false', {
    request: { tools: [TOOL], parallel_tool_use: false },
    path: 'parallel_tool_calls',
    wanted: false,
  }),
  encodes('no parallel_tool_use: none', { request: { tools: [TOOL] }, path: 'parallel_tool_calls', wanted: undefined }),
  encodes('thinking disabled is effort none', {
    request: { thinking: { type: 'disabled' } },
    path: 'reasoning_effort',
    wanted: 'none',
  }),
  encodes('an effort is sent', {
    request: { thinking: { type: 'enabled', effort: 'high' } },
    path: 'reasoning_effort',
    wanted: 'high',
  }),
  encodes('thinking without effort is medium', {
    request: { thinking: { type: 'enabled' } },
    path: 'reasoning_effort',
    wanted: 'medium',
    deviation: { actual: undefined, reason: 'Nothing was asked for: the default of the model counts (#32).' },
  }),
  encodes('a budget becomes an effort', {
    request: { thinking: { type: 'enabled', budget_tokens: 2000 } },
    path: 'reasoning_effort',
    wanted: 'medium',
  }),
  encodes('no thinking: none', { request: {}, path: 'reasoning_effort', wanted: undefined }),
  encodes('thinking blocks are dropped', {
    request: { messages: [USER, { role: 'assistant', content: [{ type: 'thinking', thinking: 'H' }, text('T')] }, USER] },
    path: 'messages.1',
    wanted: { role: 'assistant', content: 'T' },
  }),
];

export const REQUEST_ENCODE_ROWS: readonly Row[] = [
  ...HEAD,
  ...CONTENT,
  ...ASSISTANT,
  ...RESULTS,
  ...TURNS,
  ...TOOLS,
  ...PARAMETERS,
  ...FIELDS,
];
