import type { CanonicalResponse, ContentBlock, StopReason } from '../../../src/canonical/message.ts';
import { call, clientContext, codec, context, type Deviation, type Json, type Row, valueAt } from './row.ts';

const body = (message: Json, choice: Json = {}, rest: Json = {}): Json => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: null, refusal: null, ...message },
      finish_reason: 'stop',
      logprobs: null,
      ...choice,
    },
  ],
  ...rest,
});
const USAGE = {
  prompt_tokens: 9,
  completion_tokens: 5,
  total_tokens: 14,
  prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 2,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
};

const decode = (wire: Json): CanonicalResponse => codec.response.decode(wire, context());
const decodes = (at: string, says: string, wire: Json, path: string, wanted: unknown, deviation?: Deviation): Row => ({
  at,
  says,
  actual: () => valueAt(decode(wire), path),
  wanted,
  deviation,
});

const text = (value: string): ContentBlock => ({ type: 'text', text: value });
const content = (says: string, message: Json, wanted: unknown, deviation?: Deviation): Row =>
  decodes('5.2', says, body(message), 'content', wanted, deviation);
const use = (id: string, name: string, input: unknown): Json => ({ type: 'tool_use', id, name, input });
const FLAG = 'A flag lets the encoder restore `refusal` (#14).';

const CONTENT: Row[] = [
  decodes('5.1', 'the id', body({ content: 'T' }), 'id', 'chatcmpl-1'),
  decodes('5.1', 'the model', body({ content: 'T' }), 'model', 'm'),
  content('content is a text block', { content: 'T' }, [text('T')]),
  content('null content is none', {}, []),
  content('empty content is none', { content: '' }, []),
  content('refusal is a text block', { refusal: 'R' }, [text('R')], { actual: [{ ...text('R'), refusal: true }], reason: FLAG }),
  content('refusal comes after the text', { content: 'T', refusal: 'R' }, [text('T'), text('R')], {
    actual: [text('T'), { ...text('R'), refusal: true }],
    reason: FLAG,
  }),
  content('reasoning_content is a thinking block', { reasoning_content: 'H' }, [{ type: 'thinking', thinking: 'H' }]),
  content(
    'thinking comes after the text',
    { content: 'T', reasoning_content: 'H' },
    [text('T'), { type: 'thinking', thinking: 'H' }],
    {
      actual: [{ type: 'thinking', thinking: 'H' }, text('T')],
      reason: 'Thinking comes first: it did, and Anthropic demands it (#38).',
    },
  ),
  content('a function call is a tool_use block', { tool_calls: [call('c', 'f', '{"a":1}')] }, [use('c', 'f', { a: 1 })]),
  content('calls come last', { content: 'T', tool_calls: [call('c', 'f', '{}')] }, [text('T'), use('c', 'f', {})]),
  content('several calls keep their order', { tool_calls: [call('a', 'f', '{}'), call('b', 'g', '{}')] }, [
    use('a', 'f', {}),
    use('b', 'g', {}),
  ]),
  content('tool_calls null is none', { content: 'T', tool_calls: null }, [text('T')]),
  content(
    'a custom call has a text as input',
    { tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'f', input: 'x' } }] },
    [use('c', 'f', 'x')],
    { actual: [{ ...use('c', 'f', 'x'), kind: 'custom' }], reason: 'Its kind is kept, so that it can go back as one (#10).' },
  ),
  content('arguments that are no JSON throw', { tool_calls: [call('c', 'f', '{"a')] }, 'an error', {
    actual: [use('c', 'f', {})],
    reason: 'The text is kept in input_raw; who runs tools can see that it is no JSON (#8).',
  }),
];

const stop = (finish: unknown, wanted: StopReason, message: Json = { content: 'T' }, deviation?: Deviation): Row =>
  decodes(
    '5.2',
    `finish_reason ${JSON.stringify(finish)} is ${wanted}${message['tool_calls'] ? ' beside a call' : ''}`,
    body(message, { finish_reason: finish }),
    'stop_reason',
    wanted,
    deviation,
  );

const STOPS: Row[] = [
  stop('stop', 'end_turn'),
  stop('length', 'max_tokens'),
  stop('tool_calls', 'tool_use', { tool_calls: [call('c', 'f', '{}')] }),
  stop('content_filter', 'content_filter'),
  stop('function_call', 'tool_use', { function_call: { name: 'f', arguments: '{}' } }),
  stop('something', 'end_turn'),
  stop(
    'stop',
    'end_turn',
    { tool_calls: [call('c', 'f', '{}')] },
    { actual: 'tool_use', reason: 'Servers say stop although a tool is called, and agents would end early (#39).' },
  ),
  stop('max_tokens', 'end_turn', { content: 'T' }, { actual: 'max_tokens', reason: 'Words of vendors are known, too (#39).' }),
];

const usage = (says: string, wire: unknown, path: string, wanted: unknown, deviation?: Deviation): Row =>
  decodes('5.2', says, body({ content: 'T' }, {}, wire === undefined ? {} : { usage: wire }), `usage${path}`, wanted, deviation);

const USED: Row[] = [
  usage('prompt_tokens is input_tokens', USAGE, '.input_tokens', 9),
  usage('completion_tokens is output_tokens', USAGE, '.output_tokens', 5),
  usage('cached_tokens is cache_read_tokens', USAGE, '.cache_read_tokens', 4),
  usage('cache_creation_tokens is null', USAGE, '.cache_creation_tokens', null, {
    actual: undefined,
    reason: 'Absent means unknown; OpenAI reports it as cache_write_tokens today, which is read (#44).',
  }),
  usage('reasoning_tokens is reasoning_tokens', USAGE, '.reasoning_tokens', 2),
  usage('no details: none', { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }, '.cache_read_tokens', undefined),
  usage(
    'no usage is zeros',
    undefined,
    '',
    { input_tokens: 0, output_tokens: 0 },
    { actual: undefined, reason: 'Unknown is not zero (#42).' },
  ),
];

const KEPT = 'It is kept, so that chat to chat loses nothing (#18, #47).';
const ANNOTATION = { type: 'url_citation', url_citation: { start_index: 0, end_index: 1, title: 't', url: 'https://h' } };
const OWN: Row[] = [
  decodes(
    '5.2',
    'annotations are ignored',
    body({ content: 'T', annotations: [ANNOTATION] }),
    'content.0.citations.0.url',
    undefined,
    { actual: 'https://h', reason: KEPT },
  ),
  decodes(
    '5.2',
    'audio is ignored',
    body({ audio: { id: 'a', data: 'AAAA', expires_at: 1, transcript: 't' } }),
    'content.0.audio_id',
    undefined,
    { actual: 'a', reason: KEPT },
  ),
  decodes(
    '5.2',
    'logprobs are ignored',
    body(
      { content: 'T' },
      { logprobs: { content: [{ token: 'T', logprob: -1, bytes: null, top_logprobs: [] }], refusal: null } },
    ),
    'content.0.logprobs.0.logprob',
    undefined,
    { actual: -1, reason: KEPT },
  ),
  decodes('5.2', 'service_tier is ignored', body({ content: 'T' }, {}, { service_tier: 'default' }), 'service_tier', undefined, {
    actual: 'default',
    reason: KEPT,
  }),
  decodes(
    '5.2',
    'system_fingerprint is ignored',
    body({ content: 'T' }, {}, { system_fingerprint: 'fp' }),
    'system_fingerprint',
    undefined,
    { actual: 'fp', reason: KEPT },
  ),
  decodes('5.2', 'created is ignored', body({ content: 'T' }), 'created', undefined, { actual: 1, reason: KEPT }),
];

const RESPONSE: CanonicalResponse = {
  id: 'r',
  model: 'm',
  content: [],
  stop_reason: 'end_turn',
  usage: { input_tokens: 9, output_tokens: 5 },
};
const encode = (response: Partial<CanonicalResponse>): unknown =>
  codec.response.encode({ ...RESPONSE, ...response }, clientContext());
const encodes = (
  says: string,
  response: Partial<CanonicalResponse>,
  path: string,
  wanted: unknown,
  deviation?: Deviation,
): Row => ({
  at: '5.3',
  says,
  actual: () => valueAt(encode(response), path),
  wanted,
  deviation,
});
const message = (says: string, blocks: ContentBlock[], path: string, wanted: unknown, deviation?: Deviation): Row =>
  encodes(says, { content: blocks }, `choices.0.message.${path}`, wanted, deviation);
const USE: ContentBlock = { type: 'tool_use', id: 'c', name: 'f', input: { a: 1 } };

const ENCODED: Row[] = [
  encodes('the id', {}, 'id', 'r'),
  encodes('object is chat.completion', {}, 'object', 'chat.completion'),
  encodes('the model', {}, 'model', 'm'),
  encodes('one choice', {}, 'choices.length', 1),
  encodes('its index is 0', {}, 'choices.0.index', 0),
  encodes('no created', {}, 'created', undefined, {
    actual: 1_700_000_000,
    reason: 'The official type demands created, refusal and logprobs (#41).',
  }),
  message('the role is assistant', [], 'role', 'assistant'),
  message('texts are joined', [text('a'), text('b')], 'content', 'ab'),
  message('calls without text: content is null', [USE], 'content', null),
  message('neither: content is ""', [], 'content', ''),
  message('thinking is reasoning_content', [{ type: 'thinking', thinking: 'H' }, text('T')], 'reasoning_content', 'H'),
  message(
    'several are joined',
    [{ type: 'thinking', thinking: 'A' }, { type: 'thinking', thinking: 'B' }, text('T')],
    'reasoning_content',
    'AB',
  ),
  message('no thinking: none', [text('T')], 'reasoning_content', undefined),
  message('a call has id, type and function', [USE], 'tool_calls', [
    { id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
  ]),
  message('no call: none', [text('T')], 'tool_calls', undefined),
  encodes('usage: prompt_tokens', {}, 'usage.prompt_tokens', 9),
  encodes('usage: completion_tokens', {}, 'usage.completion_tokens', 5),
  encodes('usage: total_tokens is the sum', {}, 'usage.total_tokens', 14),
  encodes(
    'usage: cached_tokens',
    { usage: { input_tokens: 9, output_tokens: 5, cache_read_tokens: 4 } },
    'usage.prompt_tokens_details',
    { cached_tokens: 4 },
  ),
  encodes('usage: nothing cached is null', {}, 'usage.prompt_tokens_details', null, {
    actual: { cached_tokens: 0 },
    reason: 'Clients read through the details: they are always objects (#45).',
  }),
  encodes(
    'usage: reasoning_tokens',
    { usage: { input_tokens: 9, output_tokens: 5, reasoning_tokens: 2 } },
    'usage.completion_tokens_details',
    { reasoning_tokens: 2 },
  ),
  encodes('usage: no reasoning is null', {}, 'usage.completion_tokens_details', null, {
    actual: { reasoning_tokens: 0 },
    reason: 'Clients read through the details: they are always objects (#45).',
  }),
  encodes(
    'cache_creation_tokens is dropped',
    { usage: { input_tokens: 9, output_tokens: 5, cache_creation_tokens: 3 } },
    'usage.prompt_tokens_details.cache_write_tokens',
    undefined,
    { actual: 3, reason: 'OpenAI has the field today (#44).' },
  ),
];

const finish = (stop_reason: StopReason, wanted: string, blocks: ContentBlock[] = [text('T')], deviation?: Deviation): Row =>
  encodes(
    `stop_reason ${stop_reason} is ${wanted}${blocks.some((block) => 'refusal' in block) ? ' with a text of refusal' : ''}`,
    { stop_reason, content: blocks },
    'choices.0.finish_reason',
    wanted,
    deviation,
  );

const FINISHES: Row[] = [
  finish('end_turn', 'stop'),
  finish('max_tokens', 'length'),
  finish('tool_use', 'tool_calls', [USE]),
  finish('content_filter', 'content_filter'),
  finish('stop_sequence', 'stop'),
  finish('refusal', 'stop', [{ type: 'text', text: 'R', refusal: true }]),
  finish('refusal', 'stop', [text('T')], {
    actual: 'content_filter',
    reason: 'Without a text in `refusal`, stop would hide that the answer was refused (#46).',
  }),
  finish('pause_turn', 'stop'),
  finish('context_window', 'stop', [text('T')], {
    actual: 'length',
    reason: 'The answer was cut off; length is what clients know for that.',
  }),
];

export const RESPONSE_ROWS: readonly Row[] = [...CONTENT, ...STOPS, ...USED, ...OWN, ...ENCODED, ...FINISHES];
