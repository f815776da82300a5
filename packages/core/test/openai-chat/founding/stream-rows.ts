import { chunksOf } from '../../../../../test/sdk/chat.ts';
import type { BlockDelta, CanonicalStreamEvent } from '../../../src/canonical/events.ts';
import type { CanonicalUsage, ContentBlock, StopReason } from '../../../src/canonical/message.ts';
import type { SseFrame } from '../../../src/sse/encode.ts';
import { clientContext, codec, type Deviation, events, type Json, type Row, valueAt } from './row.ts';

const chunk = (delta: Json, finish_reason: string | null = null): Json => ({
  id: 'r',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
});
const USAGE_CHUNK = {
  id: 'r',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
};
const ROLE = chunk({ role: 'assistant' });
const STOP = chunk({}, 'stop');
const DONE = '[DONE]';
const entry = (index: number, fields: Json): Json => chunk({ tool_calls: [{ index, ...fields }] });
const begin = (index: number, id: string, name: string, args = ''): Json =>
  entry(index, { id, type: 'function', function: { name, arguments: args } });
const more = (index: number, args: string): Json => entry(index, { function: { arguments: args } });

const types = (list: CanonicalStreamEvent[]): string => list.map(short).join(' ');
const SHORT = {
  message_start: 'start',
  content_block_start: 'open',
  content_block_delta: 'delta',
  content_block_stop: 'close',
  message_delta: 'finish',
  message_stop: 'stop',
  ping: 'ping',
  error: 'error',
} as const;
const short = (event: CanonicalStreamEvent): string =>
  'index' in event ? `${SHORT[event.type]}${event.index}` : SHORT[event.type];

const order = (at: string, says: string, payloads: (Json | string)[], wanted: string, deviation?: Deviation): Row => ({
  at,
  says,
  actual: () => types(events(...payloads)),
  wanted,
  deviation,
});
const decodes = (
  at: string,
  says: string,
  payloads: (Json | string)[],
  path: string,
  wanted: unknown,
  deviation?: Deviation,
): Row => ({
  at,
  says,
  actual: () => valueAt(events(...payloads), path),
  wanted,
  deviation,
});

const FORM: Row[] = [
  order(
    '6.1',
    'payloads stand in unnamed data lines',
    [ROLE, chunk({ content: 'T' }), STOP, DONE],
    'start open0 delta0 close0 finish stop',
  ),
  order('6.1', '[DONE] ends the stream', [ROLE, STOP, DONE], 'start finish stop'),
  decodes('6.1', 'a role of a delta is optional', [chunk({ content: 'T' }), STOP, DONE], '2.delta.text', 'T'),
  decodes('6.1', 'content is text', [ROLE, chunk({ content: 'T' }), STOP, DONE], '2.delta', { type: 'text_delta', text: 'T' }),
  decodes(
    '6.1',
    'function_call is read',
    [ROLE, chunk({ function_call: { name: 'f', arguments: '{}' } }), chunk({}, 'function_call'), DONE],
    '1.content_block.name',
    'f',
  ),
];

const TEXT: Row[] = [
  decodes('6.2', 'the first chunk starts the message with its id', [ROLE, STOP, DONE], '0.message.id', 'r'),
  decodes('6.2', 'and its model', [ROLE, STOP, DONE], '0.message.model', 'm'),
  decodes('6.2', 'and no usage', [ROLE, STOP, DONE], '0.message.usage', null, { actual: undefined, reason: 'Absent, not null.' }),
  order('6.2', 'a role makes no event', [ROLE, ROLE, STOP, DONE], 'start finish stop'),
  decodes('6.2', 'the first content opens a text block', [ROLE, chunk({ content: 'T' }), STOP, DONE], '1.content_block', {
    type: 'text',
    text: '',
  }),
  order('6.2', 'and is a delta', [ROLE, chunk({ content: 'T' }), STOP, DONE], 'start open0 delta0 close0 finish stop'),
  order(
    '6.2',
    'later content is a delta only',
    [ROLE, chunk({ content: 'a' }), chunk({ content: 'b' }), STOP, DONE],
    'start open0 delta0 delta0 close0 finish stop',
  ),
  order('6.2', 'content "" opens a block', [ROLE, chunk({ content: '' }), STOP, DONE], 'start open0 delta0 close0 finish stop', {
    actual: 'start finish stop',
    reason: 'Nearly every stream of calls begins this way; an empty text block has no content (#56).',
  }),
  decodes(
    '6.2',
    'reasoning_content opens a thinking block',
    [ROLE, chunk({ reasoning_content: 'H' }), STOP, DONE],
    '1.content_block',
    { type: 'thinking', thinking: '' },
  ),
  decodes('6.2', 'and is a thinking delta', [ROLE, chunk({ reasoning_content: 'H' }), STOP, DONE], '2.delta', {
    type: 'thinking_delta',
    thinking: 'H',
  }),
  order(
    '6.2',
    'later reasoning is a delta only',
    [ROLE, chunk({ reasoning_content: 'a' }), chunk({ reasoning_content: 'b' }), STOP, DONE],
    'start open0 delta0 delta0 close0 finish stop',
  ),
  decodes(
    '6.2',
    'refusal opens a text block',
    [ROLE, chunk({ refusal: 'R' }), STOP, DONE],
    '1.content_block',
    { type: 'text', text: '' },
    { actual: { type: 'text', text: '', refusal: true }, reason: 'A flag lets the encoder restore `refusal` (#14).' },
  ),
  order('6.2', 'and is a text delta', [ROLE, chunk({ refusal: 'R' }), STOP, DONE], 'start open0 delta0 close0 finish stop'),
  order(
    '6.2',
    'of one chunk, text comes before reasoning',
    [ROLE, chunk({ content: 'T', reasoning_content: 'H' }), STOP, DONE],
    'start open0 delta0 open1 delta1 close0 close1 finish stop',
    {
      actual: 'start open0 delta0 close0 open1 delta1 close1 finish stop',
      reason: 'Reasoning comes first (#55), and a block closes when another kind begins (#54).',
    },
  ),
  order(
    '6.2',
    'a block stays open until the end',
    [ROLE, chunk({ content: 'T' }), begin(0, 'c', 'f', '{}'), chunk({}, 'tool_calls'), DONE],
    'start open0 delta0 open1 delta1 close0 close1 finish stop',
    {
      actual: 'start open0 delta0 close0 open1 delta1 close1 finish stop',
      reason: 'Readers that take blocks one after another would wait forever (#54).',
    },
  ),
];

/** The calls of a stream: `id name arguments` of each block. How their arguments are cut into deltas is free. */
function calls(list: CanonicalStreamEvent[]): string[] {
  const texts = new Map<number, string>();
  for (const event of list) {
    if (event.type === 'content_block_start' && event.content_block.type === 'tool_use')
      texts.set(event.index, `${event.content_block.id} ${event.content_block.name} `);
    if (event.type === 'content_block_delta' && event.delta.type === 'input_json_delta')
      texts.set(event.index, `${texts.get(event.index) ?? ''}${event.delta.partial_json}`);
  }
  return [...texts.values()];
}
const called = (at: string, says: string, payloads: (Json | string)[], wanted: string[], deviation?: Deviation): Row => ({
  at,
  says,
  actual: () => calls(events(ROLE, ...payloads, chunk({}, 'tool_calls'), DONE)),
  wanted,
  deviation,
});

const CALLS: Row[] = [
  called('6.1', 'the id of a call is optional in later deltas', [begin(0, 'c', 'f', '{'), more(0, '}')], ['c f {}']),
  decodes(
    '6.2',
    'a first entry opens a tool_use block with id and name',
    [ROLE, begin(0, 'c', 'f', '{}'), chunk({}, 'tool_calls'), DONE],
    '1.content_block',
    { type: 'tool_use', id: 'c', name: 'f', input: {} },
  ),
  decodes('6.2', 'arguments are deltas of it', [ROLE, begin(0, 'c', 'f', '{}'), chunk({}, 'tool_calls'), DONE], '2.delta', {
    type: 'input_json_delta',
    partial_json: '{}',
  }),
  called('6.2', 'later arguments go on', [begin(0, 'c', 'f', '{"a"'), more(0, ':1'), more(0, '}')], ['c f {"a":1}']),
  called(
    '6.2',
    'an id begins a new call',
    [begin(0, 'c', 'f', '{'), entry(0, { id: 'c', function: { arguments: '}' } })],
    ['c f {', 'c  }'],
    { actual: ['c f {}'], reason: 'Servers repeat the id in every delta; the index tells calls apart (#50).' },
  ),
  called(
    '6.2',
    'calls with other indexes are other blocks',
    [begin(0, 'a', 'f', '{}'), begin(1, 'b', 'g', '{}')],
    ['a f {}', 'b g {}'],
  ),
  called('6.3', 'indexes may have gaps', [begin(2, 'a', 'f', '{}'), begin(7, 'b', 'g', '{}')], ['a f {}', 'b g {}']),
  called(
    '6.3',
    'arguments of several calls may alternate',
    [begin(0, 'a', 'f', '{'), begin(1, 'b', 'g', '{'), more(0, '}'), more(1, '}')],
    ['a f {}', 'b g {}'],
  ),
];

const END: Row[] = [
  ...(['stop', 'length', 'content_filter'] as const).map((finish) =>
    decodes(
      '6.2',
      `finish_reason ${finish} is told by the message delta`,
      [ROLE, chunk({ content: 'T' }), chunk({}, finish), DONE],
      '4.delta.stop_reason',
      { stop: 'end_turn', length: 'max_tokens', content_filter: 'content_filter' }[finish],
    ),
  ),
  decodes(
    '6.2',
    'finish_reason tool_calls is told by the message delta',
    [ROLE, begin(0, 'c', 'f', '{}'), chunk({}, 'tool_calls'), DONE],
    '4.delta.stop_reason',
    'tool_use',
  ),
  order(
    '6.2',
    'finish_reason closes all blocks, then message delta and stop',
    [ROLE, chunk({ content: 'T' }), STOP],
    'start open0 delta0 close0 finish stop',
  ),
  order('6.2', 'usage makes a message delta of its own', [ROLE, STOP, USAGE_CHUNK, DONE], 'start finish stop finish stop', {
    actual: 'start finish stop',
    reason: 'The finish waits for usage: one message delta and one stop (#49).',
  }),
  decodes('6.2', 'the usage chunk is read', [ROLE, STOP, USAGE_CHUNK, DONE], '1.usage.input_tokens', 3),
  decodes('6.2', 'usage beside choices is not read', [ROLE, { ...STOP, usage: USAGE_CHUNK.usage }, DONE], '1.usage', undefined, {
    actual: { input_tokens: 3, output_tokens: 4 },
    reason: 'Many servers put it on the last chunk (#58).',
  }),
  order('6.2', '[DONE] closes what is open', [ROLE, chunk({ content: 'T' }), DONE], 'start open0 delta0 close0 stop', {
    actual: 'start open0 delta0 close0 finish stop',
    reason: 'A finish is always told, or clients have no stop reason (#62).',
  }),
  {
    at: '6.3',
    says: 'characters that are cut between two chunks are whole',
    actual: () => valueAt(events(ROLE, chunk({ content: 'ü' }), STOP, DONE), '2.delta.text'),
    wanted: 'ü',
  },
];

const start: CanonicalStreamEvent = { type: 'message_start', message: { id: 'r', model: 'm' } };
const open = (index: number, content_block: ContentBlock): CanonicalStreamEvent => ({
  type: 'content_block_start',
  index,
  content_block,
});
const delta = (index: number, value: BlockDelta): CanonicalStreamEvent => ({ type: 'content_block_delta', index, delta: value });
const close = (index: number): CanonicalStreamEvent => ({ type: 'content_block_stop', index });
const finish = (stop_reason: StopReason, usage?: CanonicalUsage): CanonicalStreamEvent => ({
  type: 'message_delta',
  delta: { stop_reason },
  ...(usage && { usage }),
});
const stop: CanonicalStreamEvent = { type: 'message_stop' };
const TEXT_BLOCK: ContentBlock = { type: 'text', text: '' };
const USE: ContentBlock = { type: 'tool_use', id: 'c', name: 'f', input: {} };
const args = (index: number, partial_json: string): CanonicalStreamEvent =>
  delta(index, { type: 'input_json_delta', partial_json });
const say = (index: number, value: string): CanonicalStreamEvent => delta(index, { type: 'text_delta', text: value });

function frames(list: CanonicalStreamEvent[], asksUsage: boolean): SseFrame[] {
  const request = {
    model: 'm',
    messages: [],
    parameters: {},
    stream: true,
    ...(asksUsage && { stream_options: { include_usage: true } }),
  };
  const encoder = codec.streamEncoder(clientContext({ request }));
  return [...list.flatMap((event) => [...encoder.push(event)]), ...encoder.end()];
}

const encodes = (says: string, list: CanonicalStreamEvent[], path: string, wanted: unknown, deviation?: Deviation): Row => ({
  at: '6.4',
  says,
  actual: () => valueAt(chunksOf(frames(list, true).filter(({ data }) => data !== '')), path),
  wanted,
  deviation,
});
const ends = [finish('end_turn'), stop];
const CALLED = [start, open(0, USE), args(0, '{"a":'), args(0, '1}'), close(0), finish('tool_use'), stop];
const REPEATED = 'Every chunk repeats id, object, created and model, as the type demands (#70).';
const HEADER = 'The header of a call goes out at once, so that calls without arguments are announced (#66, #67).';

const ENCODED: Row[] = [
  encodes('the first chunk has the id', [start, ...ends], '0.id', 'r'),
  encodes('and the model', [start, ...ends], '0.model', 'm'),
  encodes('and object chat.completion.chunk', [start, ...ends], '0.object', 'chat.completion.chunk'),
  encodes('and created', [start, ...ends], '0.created', 1_700_000_000),
  encodes('and the role', [start, ...ends], '0.choices.0.delta.role', 'assistant'),
  encodes('its index is 0', [start, ...ends], '0.choices.0.index', 0),
  encodes('its finish_reason is null', [start, ...ends], '0.choices.0.finish_reason', null),
  encodes('a text block that starts sends nothing', [start, open(0, TEXT_BLOCK), close(0), ...ends], 'length', 2),
  encodes('a text delta is content', [start, open(0, TEXT_BLOCK), say(0, 'T'), close(0), ...ends], '1.choices.0.delta', {
    content: 'T',
  }),
  encodes(
    'every text delta is a chunk',
    [start, open(0, TEXT_BLOCK), say(0, 'a'), say(0, 'b'), close(0), ...ends],
    '2.choices.0.delta',
    { content: 'b' },
  ),
  encodes('later chunks have no id', [start, open(0, TEXT_BLOCK), say(0, 'T'), close(0), ...ends], '1.id', undefined, {
    actual: 'r',
    reason: REPEATED,
  }),
  encodes('later chunks have no model', [start, open(0, TEXT_BLOCK), say(0, 'T'), close(0), ...ends], '1.model', undefined, {
    actual: 'm',
    reason: REPEATED,
  }),
  encodes('a call that starts waits for its first delta', CALLED, '1.choices.0.delta.tool_calls.0.function.arguments', '{"a":', {
    actual: '',
    reason: HEADER,
  }),
  encodes(
    'its first chunk has index, id, type and name',
    CALLED,
    '1.choices.0.delta.tool_calls',
    [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":' } }],
    { actual: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '' } }], reason: HEADER },
  ),
  encodes('later ones only index and arguments', CALLED, '3.choices.0.delta.tool_calls', [
    { index: 0, function: { arguments: '1}' } },
  ]),
  encodes(
    'a call without arguments is not announced',
    [start, open(0, USE), close(0), finish('tool_use'), stop],
    '1.choices.0.delta.tool_calls.0.id',
    undefined,
    { actual: 'c', reason: HEADER },
  ),
  encodes(
    'a second call has index 1',
    [
      start,
      open(0, USE),
      args(0, '{}'),
      close(0),
      open(1, { ...USE, type: 'tool_use', id: 'd', name: 'g', input: {} }),
      args(1, '{}'),
      close(1),
      finish('tool_use'),
      stop,
    ],
    '3.choices.0.delta.tool_calls.0.index',
    1,
  ),
  encodes(
    'indexes of calls count calls, not blocks',
    [start, open(0, TEXT_BLOCK), say(0, 'T'), close(0), open(1, USE), args(1, '{}'), close(1), finish('tool_use'), stop],
    '2.choices.0.delta.tool_calls.0.index',
    0,
  ),
  encodes(
    'a thinking block that starts sends nothing',
    [start, open(0, { type: 'thinking', thinking: '' }), delta(0, { type: 'thinking_delta', thinking: 'H' }), close(0), ...ends],
    'length',
    3,
  ),
  encodes(
    'a thinking delta is reasoning_content',
    [start, open(0, { type: 'thinking', thinking: '' }), delta(0, { type: 'thinking_delta', thinking: 'H' }), close(0), ...ends],
    '1.choices.0.delta',
    { reasoning_content: 'H' },
  ),
  encodes('a block that stops sends nothing', [start, open(0, TEXT_BLOCK), say(0, 'T'), close(0), ...ends], 'length', 3),
  ...(
    [
      ['end_turn', 'stop'],
      ['max_tokens', 'length'],
      ['content_filter', 'content_filter'],
      ['stop_sequence', 'stop'],
    ] as const
  ).map(([reason, wanted]) =>
    encodes(
      `stop_reason ${reason} is finish_reason ${wanted}`,
      [start, open(0, TEXT_BLOCK), say(0, 'T'), close(0), finish(reason), stop],
      '2.choices.0.finish_reason',
      wanted,
    ),
  ),
  encodes('stop_reason tool_use is finish_reason tool_calls', CALLED, '4.choices.0.finish_reason', 'tool_calls'),
  encodes('its delta is empty', [start, ...ends], '1.choices.0.delta', {}),
  encodes(
    'usage is a chunk without choices',
    [start, finish('end_turn', { input_tokens: 3, output_tokens: 4 }), stop],
    '2.choices',
    [],
  ),
  encodes(
    'usage has the counts',
    [start, finish('end_turn', { input_tokens: 3, output_tokens: 4 }), stop],
    '2.usage.total_tokens',
    7,
  ),
  {
    at: '6.4',
    says: 'the usage chunk is always sent',
    actual: () => chunksOf(frames([start, finish('end_turn', { input_tokens: 3, output_tokens: 4 }), stop], false)).length,
    wanted: 3,
    deviation: { actual: 2, reason: 'Clients that did not ask for it crash on a chunk without choices (#73).' },
  },
  { at: '6.4', says: 'message_stop is [DONE]', actual: () => frames([start, ...ends], true).at(-1)?.data, wanted: '[DONE]' },
  {
    at: '6.4',
    says: '[DONE] is sent once',
    actual: () => frames([start, ...ends], true).filter(({ data }) => data === '[DONE]').length,
    wanted: 1,
  },
  { at: '6.4', says: 'a ping sends nothing', actual: () => frames([start, { type: 'ping' }, ...ends], true).length, wanted: 3 },
  {
    at: '6.4',
    says: 'an error sends nothing',
    actual: () =>
      valueAt(
        chunksOf(frames([start, { type: 'error', error: { code: 'OVERLOADED', message: 'busy' } }], true)),
        '1.error.message',
      ),
    wanted: undefined,
    deviation: {
      actual: 'busy',
      reason: 'An error would look like an answer that is whole; official SDKs throw on an error chunk (#72).',
    },
  },
];

export const STREAM_ROWS: readonly Row[] = [...FORM, ...TEXT, ...CALLS, ...END, ...ENCODED];
