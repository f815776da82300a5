import { assistant, call, type Deviation, decoded, type Json, type Row, user, valueAt } from './row.ts';

const decodes = (says: string, body: Json, path: string, wanted: unknown, deviation?: Deviation): Row => ({
  at: '4.1',
  says,
  actual: () => valueAt(decoded(body), path),
  wanted,
  deviation,
});

const text = (value: string): Json => ({ type: 'text', text: value });
const system = (content: unknown, role = 'system'): Json => ({ role, content });
const BLOCKS = 'Instructions are blocks that remember their role and cache marks (#7).';
const FIRST = [assistant({ content: null, tool_calls: [call('c1', 'f', '{}')] })];
const messages = (...list: Json[]): Json => ({ messages: list });

const SYSTEM: Row[] = [
  decodes('a system message becomes `system`', messages(system('S'), user()), 'system', 'S', {
    actual: [{ ...text('S'), role: 'system' }],
    reason: BLOCKS,
  }),
  decodes('a developer message becomes `system`', messages(system('D', 'developer'), user()), 'system', 'D', {
    actual: [{ ...text('D'), role: 'developer' }],
    reason: BLOCKS,
  }),
  decodes('several are joined by a blank line', messages(system('A'), system('B', 'developer'), user()), 'system', 'A\n\nB', {
    actual: [
      { ...text('A'), role: 'system' },
      { ...text('B'), role: 'developer' },
    ],
    reason: BLOCKS,
  }),
  decodes('their texts are taken out of parts', messages(system([text('A'), text('B')]), user()), 'system.0.text', 'A'),
  decodes('none: no `system`', messages(user()), 'system', undefined),
  decodes('system messages are not in `messages`', messages(system('S'), user('u')), 'messages', [
    { role: 'user', content: [text('u')] },
  ]),
  decodes('developer messages are not in `messages`', messages(system('S', 'developer'), user('u')), 'messages', [
    { role: 'user', content: [text('u')] },
  ]),
  decodes('a system message in the middle becomes `system`, too', messages(user('u'), system('S')), 'system', 'S', {
    actual: undefined,
    reason: 'It stays where it stands: moving it would change what it refers to and break caches (#6).',
  }),
  decodes(
    'other messages keep their order',
    messages(system('S'), user('a'), assistant({ content: 'b' }), user('c')),
    'messages.2.content',
    [text('c')],
  ),
];

const role = (message: Json, wanted: string): Row =>
  decodes(`role ${String(message['role'])} becomes ${wanted}`, messages(user(), ...FIRST, message), 'messages.2.role', wanted);

const ROLES: Row[] = [
  role(user(), 'user'),
  role(assistant({ content: 'b' }), 'assistant'),
  role({ role: 'tool', tool_call_id: 'c1', content: 'r' }, 'tool'),
  role({ role: 'function', name: 'f', content: 'r' }, 'tool'),
];

const part = (says: string, content: unknown, wanted: unknown, deviation?: Deviation): Row =>
  decodes(says, messages(user(content)), 'messages.0.content', wanted, deviation);

const AUDIO = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };
const CONTENT: Row[] = [
  part('a text of the user is one text block', 'hi', [text('hi')]),
  part('a text part is a text block', [text('a'), text('b')], [text('a'), text('b')]),
  part(
    'an image part is an image block',
    [{ type: 'image_url', image_url: { url: 'https://h/i.png' } }],
    [{ type: 'image', source: { url: 'https://h/i.png' } }],
  ),
  part(
    'its detail is kept',
    [{ type: 'image_url', image_url: { url: 'https://h/i.png', detail: 'low' } }],
    [{ type: 'image', source: { url: 'https://h/i.png', detail: 'low' } }],
  ),
  part(
    'a data: URL is the url of an image',
    [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
    [{ type: 'image', source: { url: 'data:image/png;base64,AAAA' } }],
    {
      actual: [{ type: 'image', source: { data: 'AAAA', media_type: 'image/png' } }],
      reason: 'Other protocols take data and media type apart (#15).',
    },
  ),
  decodes('audio is an audio block', messages(user([AUDIO])), 'messages.0.content.0.type', 'audio'),
  decodes('audio keeps its data', messages(user([AUDIO])), 'messages.0.content.0.source.data', 'AAAA'),
  decodes('audio keeps its format', messages(user([AUDIO])), 'messages.0.content.0.source.format', 'wav'),
  part(
    'a file keeps file_id',
    [{ type: 'file', file: { file_id: 'file-1' } }],
    [{ type: 'file', source: { file_id: 'file-1' } }],
  ),
  part(
    'a file keeps file_data and filename',
    [{ type: 'file', file: { file_data: 'AAAA', filename: 'a.pdf' } }],
    [{ type: 'file', source: { file_data: 'AAAA', filename: 'a.pdf' } }],
  ),
];

const said = (says: string, fields: Json, wanted: unknown, deviation?: Deviation): Row =>
  decodes(says, messages(user(), assistant(fields)), 'messages.1.content', wanted, deviation);
const use = (id: string, name: string, input: unknown): Json => ({ type: 'tool_use', id, name, input });
const REFUSAL = 'A flag lets the encoder restore `refusal` (#14).';

const ASSISTANT: Row[] = [
  said("an assistant's text is a text block", { content: 'T' }, [text('T')]),
  said('text parts are text blocks', { content: [text('A'), text('B')] }, [text('A'), text('B')]),
  said('refusal parts are text blocks', { content: [{ type: 'refusal', refusal: 'R' }] }, [text('R')], {
    actual: [{ ...text('R'), refusal: true }],
    reason: REFUSAL,
  }),
  said(
    'refusal parts come after text parts',
    { content: [{ type: 'refusal', refusal: 'R' }, text('T')] },
    [text('T'), text('R')],
    { actual: [text('T'), { ...text('R'), refusal: true }], reason: REFUSAL },
  ),
  said('`refusal` is a text block', { content: null, refusal: 'R' }, [text('R')], {
    actual: [{ ...text('R'), refusal: true }],
    reason: REFUSAL,
  }),
  said('null content is no block', { content: null, tool_calls: [call('c', 'f', '{}')] }, [use('c', 'f', {})]),
  said('a function call is a tool_use block with parsed input', { tool_calls: [call('c', 'f', '{"a":1}')] }, [
    use('c', 'f', { a: 1 }),
  ]),
  said('calls come after the text', { content: 'T', tool_calls: [call('c', 'f', '{}')] }, [text('T'), use('c', 'f', {})]),
  said('several calls keep their order', { tool_calls: [call('a', 'f', '{}'), call('b', 'g', '{}')] }, [
    use('a', 'f', {}),
    use('b', 'g', {}),
  ]),
  said('arguments that are no JSON throw', { tool_calls: [call('c', 'f', '{"a')] }, 'an error', {
    actual: [use('c', 'f', {})],
    reason: 'The text is kept beside an empty input; one broken call in the history does not end the conversation (#8).',
  }),
  said(
    'a custom call is a tool_use block whose input is text',
    { tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'f', input: 'x' } }] },
    [use('c', 'f', 'x')],
    { actual: [{ ...use('c', 'f', 'x'), kind: 'custom' }], reason: 'Its kind is kept, so that it can go back as one (#10).' },
  ),
  decodes(
    'function_call is a tool_use block',
    messages(user(), assistant({ content: null, function_call: { name: 'f', arguments: '{"a":1}' } })),
    'messages.1.content.0.name',
    'f',
  ),
  decodes(
    'its input is parsed',
    messages(user(), assistant({ content: null, function_call: { name: 'f', arguments: '{"a":1}' } })),
    'messages.1.content.0.input',
    { a: 1 },
  ),
  {
    at: '4.1',
    says: 'it gets an id of its own',
    actual: () =>
      typeof valueAt(
        decoded(messages(user(), assistant({ content: null, function_call: { name: 'f', arguments: '{}' } }))),
        'messages.1.content.0.id',
      ),
    wanted: 'string',
  },
];

const result = (says: string, message: Json, path: string, wanted: unknown, deviation?: Deviation): Row =>
  decodes(says, messages(user(), ...FIRST, message), `messages.2.content.0.${path}`, wanted, deviation);
const answer = (content: unknown): Json => ({ role: 'tool', tool_call_id: 'c1', content });

const RESULTS: Row[] = [
  result('a tool message is a tool_result', answer('r'), 'type', 'tool_result'),
  result('tool_call_id becomes tool_use_id', answer('r'), 'tool_use_id', 'c1'),
  result('its text is the content', answer('r'), 'content', 'r'),
  result('parts become their text', answer([text('a'), text('b')]), 'content', 'ab', {
    actual: [text('a'), text('b')],
    reason: 'Blocks are kept; vendors send images there (#13).',
  }),
  result('is_error is false', answer('r'), 'is_error', false, {
    actual: undefined,
    reason: 'OpenAI does not say whether a tool failed; absent means that nothing is known.',
  }),
  result('a function message is a tool_result', { role: 'function', name: 'f', content: 'r' }, 'type', 'tool_result'),
  {
    at: '4.1',
    says: 'its name is the tool_use_id',
    actual: () => {
      const request = decoded(
        messages(user(), assistant({ content: null, function_call: { name: 'f', arguments: '{}' } }), {
          role: 'function',
          name: 'f',
          content: 'r',
        }),
      );
      return valueAt(request, 'messages.2.content.0.tool_use_id') === valueAt(request, 'messages.1.content.0.id')
        ? 'the id of the call'
        : 'another id';
    },
    wanted: 'f',
    deviation: {
      actual: 'the id of the call',
      reason: 'A result refers to the last open call of that name; by its name the pair would never match (#9).',
    },
  },
  result('its content is kept', { role: 'function', name: 'f', content: 'r' }, 'content', 'r'),
];

const TOOL = { type: 'function', function: { name: 'f', description: 'D', parameters: { type: 'object' }, strict: true } };
const tool = (says: string, body: Json, path: string, wanted: unknown, deviation?: Deviation): Row =>
  decodes(says, body, path, wanted, deviation);

const TOOLS: Row[] = [
  tool('a function tool keeps its name', { tools: [TOOL] }, 'tools.0.name', 'f'),
  tool('its description', { tools: [TOOL] }, 'tools.0.description', 'D'),
  tool('its parameters are input_schema', { tools: [TOOL] }, 'tools.0.input_schema', { type: 'object' }),
  tool('the wrapper `function` is gone', { tools: [TOOL] }, 'tools.0.function', undefined),
  tool('strict is ignored', { tools: [TOOL] }, 'tools.0.strict', undefined, {
    actual: true,
    reason: 'Chat to chat keeps it, others have it too (#18).',
  }),
  tool('a custom tool is dropped', { tools: [{ type: 'custom', custom: { name: 'g' } }] }, 'tools', undefined, {
    actual: [{ name: 'g', kind: 'custom' }],
    reason: 'Its calls and choices stay, so it stays (#10).',
  }),
  tool('no tools: none', {}, 'tools', undefined),
  tool('an empty list: none', { tools: [] }, 'tools', undefined),
];

const choice = (says: string, tool_choice: unknown, wanted: unknown, deviation?: Deviation): Row =>
  decodes(`tool_choice ${says}`, { tools: [TOOL], tool_choice }, 'tool_choice', wanted, deviation);
const allowed = (mode: string): Json => ({
  type: 'allowed_tools',
  allowed_tools: { mode, tools: [{ type: 'function', function: { name: 'f' } }] },
});
const SUBSET = 'The subset is kept (#11).';

const CHOICES: Row[] = [
  choice('"auto" is auto', 'auto', { type: 'auto' }),
  choice('"none" is none', 'none', { type: 'none' }),
  choice('"required" is any', 'required', { type: 'any' }),
  choice('with a function names that tool', { type: 'function', function: { name: 'f' } }, { type: 'tool', name: 'f' }),
  choice('with a custom tool names that tool', { type: 'custom', custom: { name: 'g' } }, { type: 'tool', name: 'g' }),
  choice(
    'allowed_tools with mode auto is auto',
    allowed('auto'),
    { type: 'auto' },
    { actual: { type: 'auto', allowed_tools: ['f'] }, reason: SUBSET },
  ),
  choice(
    'allowed_tools with mode required is any',
    allowed('required'),
    { type: 'any' },
    { actual: { type: 'any', allowed_tools: ['f'] }, reason: SUBSET },
  ),
  choice('of an unknown word is nothing', 'sometimes', undefined, {
    actual: { type: 'auto', native: { origin: 'openai-chat', value: 'sometimes' } },
    reason: 'In chat it goes on unchanged; other protocols get auto, with a note (#12).',
  }),
];

const parameter = (says: string, body: Json, path: string, wanted: unknown): Row =>
  decodes(says, body, `parameters.${path}`, wanted);

const PARAMETERS: Row[] = [
  parameter('max_completion_tokens is max_tokens', { max_completion_tokens: 5 }, 'max_tokens', 5),
  parameter('max_tokens is max_tokens', { max_tokens: 6 }, 'max_tokens', 6),
  parameter('max_completion_tokens counts when both are there', { max_completion_tokens: 5, max_tokens: 6 }, 'max_tokens', 5),
  parameter('temperature', { temperature: 0.5 }, 'temperature', 0.5),
  parameter('temperature 0 is a value', { temperature: 0 }, 'temperature', 0),
  parameter('top_p', { top_p: 0.5 }, 'top_p', 0.5),
  parameter('frequency_penalty', { frequency_penalty: 1 }, 'frequency_penalty', 1),
  parameter('presence_penalty', { presence_penalty: 1 }, 'presence_penalty', 1),
  parameter('a text as stop is a list of one', { stop: 'a' }, 'stop_sequences', ['a']),
  parameter('a list as stop is that list', { stop: ['a', 'b'] }, 'stop_sequences', ['a', 'b']),
  parameter('no stop: none', {}, 'stop_sequences', undefined),
  decodes('stream true', { stream: true }, 'stream', true),
  decodes('stream false', { stream: false }, 'stream', false),
  decodes('no stream: none', {}, 'stream', undefined),
];

const SCHEMA = { name: 'n', schema: { type: 'object' } };
const COMMON: Row[] = [
  decodes('user is user_id', { user: 'u' }, 'user_id', 'u'),
  decodes('json_object', { response_format: { type: 'json_object' } }, 'output_format', { type: 'json_object' }),
  decodes('json_schema with its schema', { response_format: { type: 'json_schema', json_schema: SCHEMA } }, 'output_format', {
    type: 'json_schema',
    json_schema: SCHEMA,
  }),
  decodes('the format text is the default, and absent', { response_format: { type: 'text' } }, 'output_format', undefined),
  decodes('no format: none', {}, 'output_format', undefined),
  decodes('parallel_tool_calls true', { tools: [TOOL], parallel_tool_calls: true }, 'parallel_tool_use', true),
  decodes('parallel_tool_calls false', { tools: [TOOL], parallel_tool_calls: false }, 'parallel_tool_use', false),
  decodes('reasoning_effort none: thinking is disabled', { reasoning_effort: 'none' }, 'thinking', { type: 'disabled' }),
  decodes(
    'reasoning_effort minimal is low',
    { reasoning_effort: 'minimal' },
    'thinking',
    { type: 'enabled', effort: 'low' },
    { actual: { type: 'enabled', effort: 'minimal' }, reason: 'The effort keeps its name; only an encoder lowers it (#16).' },
  ),
  ...['low', 'medium', 'high', 'xhigh'].map((effort) =>
    decodes(`reasoning_effort ${effort} keeps its name`, { reasoning_effort: effort }, 'thinking', { type: 'enabled', effort }),
  ),
  decodes('no reasoning_effort: none', {}, 'thinking', undefined),
];

const FUNCTION = { name: 'f', description: 'D', parameters: { type: 'object' } };
const DEPRECATED: Row[] = [
  decodes('functions become tools', { functions: [FUNCTION] }, 'tools', [
    { name: 'f', description: 'D', input_schema: { type: 'object' } },
  ]),
  decodes('functions do not count beside tools', { functions: [{ name: 'old' }], tools: [TOOL] }, 'tools.0.name', 'f'),
  decodes('function_call none is the choice none', { functions: [FUNCTION], function_call: 'none' }, 'tool_choice', {
    type: 'none',
  }),
  decodes('function_call auto is the choice auto', { functions: [FUNCTION], function_call: 'auto' }, 'tool_choice', {
    type: 'auto',
  }),
  decodes(
    'function_call with a name is a choice of that tool',
    { functions: [FUNCTION], function_call: { name: 'f' } },
    'tool_choice',
    { type: 'tool', name: 'f' },
  ),
  decodes(
    'function_call does not count beside tool_choice',
    { functions: [FUNCTION], function_call: 'auto', tool_choice: 'none' },
    'tool_choice',
    { type: 'none' },
  ),
  {
    at: '4.1',
    says: 'the body is rewritten with the new names',
    actual: () => {
      const body: Json = { model: 'm', messages: [user()], functions: [FUNCTION] };
      decoded(body);
      return 'tools' in body;
    },
    wanted: true,
    deviation: { actual: false, reason: 'Decoding has no side effect: the body may be passed through (#17).' },
  },
];

const KEPT = 'It has a canonical field or is kept, so that chat to chat loses nothing and others get a note (#18).';
const ignored = (name: string, value: unknown, path: string): Row => ({
  at: '4.1',
  says: `${name} is ignored`,
  actual: () => path.split('.').reduce<unknown>((node, key) => (node as Json | undefined)?.[key], decoded({ [name]: value })), // as in valueAt, extensions included
  wanted: undefined,
  deviation: { actual: value, reason: KEPT },
});

const IGNORED: Row[] = [
  ignored('seed', 7, 'parameters.seed'),
  ignored('logprobs', true, 'parameters.logprobs'),
  ignored('top_logprobs', 2, 'parameters.top_logprobs'),
  ignored('logit_bias', { 1: 2 }, 'parameters.logit_bias'),
  ignored('n', 2, 'parameters.n'),
  ignored('service_tier', 'flex', 'service_tier'),
  ignored('store', true, 'store'),
  ignored('metadata', { a: 'b' }, 'metadata'),
  ignored('modalities', ['text'], 'modalities'),
  ignored('audio', { voice: 'alloy', format: 'mp3' }, 'audio_output'),
  ignored('prediction', { type: 'content', content: 'x' }, 'extensions.openai-chat.prediction'),
  ignored('stream_options', { include_usage: true }, 'stream_options'),
  ignored('safety_identifier', 's', 'extensions.openai-chat.safety_identifier'),
  ignored('prompt_cache_key', 'k', 'prompt_cache.key'),
  ignored('prompt_cache_retention', '24h', 'prompt_cache.ttl'),
  ignored('verbosity', 'low', 'verbosity'),
  {
    at: '4.1',
    says: 'web_search_options is ignored',
    actual: () => valueAt(decoded({ web_search_options: { search_context_size: 'low' } }), 'tools.0.server.type'),
    wanted: undefined,
    deviation: { actual: 'web_search', reason: 'It is a server tool of other protocols (#18).' },
  },
];

const roles = (request: { messages: { role: string }[] }): string[] => request.messages.map(({ role: name }) => name);
const CONSTRAINTS: Row[] = [
  {
    at: '4.1',
    says: 'a tool message stands behind the assistant message with its call',
    actual: () => roles(decoded(messages(user(), ...FIRST, answer('r')))),
    wanted: ['user', 'assistant', 'tool'],
  },
  decodes(
    'its tool_call_id is that of the call',
    messages(user(), ...FIRST, answer('r')),
    'messages.2.content.0.tool_use_id',
    'c1',
  ),
  decodes(
    'stream_options.include_usage is optional: given',
    { stream: true, stream_options: { include_usage: true } },
    'stream_options.include_usage',
    true,
  ),
  decodes('stream_options.include_usage is optional: absent', { stream: true }, 'stream_options', undefined),
];

export const REQUEST_DECODE_ROWS: readonly Row[] = [
  ...SYSTEM,
  ...ROLES,
  ...CONTENT,
  ...ASSISTANT,
  ...RESULTS,
  ...TOOLS,
  ...CHOICES,
  ...PARAMETERS,
  ...COMMON,
  ...DEPRECATED,
  ...IGNORED,
  ...CONSTRAINTS,
];
