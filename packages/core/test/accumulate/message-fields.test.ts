import { describe, expect, test } from 'vitest';
import { MessageAccumulator } from '../../src/accumulate/index.ts';
import type { BlockDelta, CanonicalStreamEvent, ContentBlock } from '../../src/canonical/index.ts';

type Event = CanonicalStreamEvent;

function run(events: readonly Event[]): ReturnType<MessageAccumulator['finish']> {
  const accumulator = new MessageAccumulator();
  for (const event of events) accumulator.push(event);
  return accumulator.finish();
}

const open = (content_block: ContentBlock, index = 0): Event => ({ type: 'content_block_start', index, content_block });
const add = (delta: BlockDelta, index = 0): Event => ({ type: 'content_block_delta', index, delta });
const close = (index = 0): Event => ({ type: 'content_block_stop', index });
const block = (content_block: ContentBlock, ...deltas: BlockDelta[]): Event[] => [
  open(content_block),
  ...deltas.map((delta) => add(delta)),
  close(),
];

const text: ContentBlock = { type: 'text', text: '' };
const thinking: ContentBlock = { type: 'thinking', thinking: '' };
const call: ContentBlock = { type: 'tool_use', id: 'c', name: 'f', input: {} };
const audio: ContentBlock = { type: 'audio', source: {} };
const opaque = (raw: unknown): ContentBlock => ({ type: 'opaque', origin: 'gemini', raw });
const signature = { origin: 'gemini', form: 'thought_signature', value: 's' } as const;
const citation = { kind: 'url', url: 'u', origin: 'gemini' } as const;
const thought = (part: string, summary_index?: number): BlockDelta => ({
  type: 'thinking_delta',
  thinking: part,
  ...(summary_index !== undefined && { summary_index }),
});
/** A delta of each kind, under the block that it is for. */
const DELTAS: [ContentBlock['type'], BlockDelta][] = [
  ['text', { type: 'text_delta', text: 'x' }],
  ['text', { type: 'citations_delta', citation }],
  ['tool_use', { type: 'input_json_delta', partial_json: '{"x":1}' }],
  ['tool_use', { type: 'input_text_delta', text: 'x' }],
  ['thinking', { type: 'thinking_delta', thinking: 'x' }],
  ['audio', { type: 'audio_delta', data: 'x' }],
  ['opaque', { type: 'opaque_delta', raw: { x: 1 } }],
];

/** Exactly the block that comes of the events. */
const BLOCKS: [name: string, events: Event[], expected: object][] = [
  ['text', block(text, { type: 'text_delta', text: 'a' }), { type: 'text', text: 'a' }],
  [
    'logprobs are added',
    block(
      text,
      { type: 'text_delta', text: 'a', logprobs: [{ token: 'a', logprob: -1 }] },
      { type: 'text_delta', text: 'b', logprobs: [{ token: 'b', logprob: -2 }] },
    ),
    {
      type: 'text',
      text: 'ab',
      logprobs: [
        { token: 'a', logprob: -1 },
        { token: 'b', logprob: -2 },
      ],
    },
  ],
  [
    'citations are added to those of the start',
    block({ type: 'text', text: 'x', citations: [citation] }, { type: 'citations_delta', citation: { ...citation, url: 'v' } }),
    { type: 'text', text: 'x', citations: [citation, { ...citation, url: 'v' }] },
  ],
  ['a signature on text', block(text, { type: 'signature_delta', signature }), { type: 'text', text: '', signature }],
  ['a signature on a call', block(call, { type: 'signature_delta', signature }), { ...call, signature }],
  ['a signature on thinking', block(thinking, { type: 'signature_delta', signature }), { ...thinking, signature }],
  ['a signature on anything else', block(audio, { type: 'signature_delta', signature }), audio],
  ['thinking without parts', block(thinking, thought('a'), thought('b')), { type: 'thinking', thinking: 'ab' }],
  ['thinking with a lone surrogate', block(thinking, thought('a\ud800')), { type: 'thinking', thinking: 'a\ufffd' }],
  [
    'thinking in parts; the blank line between them is no part of the next',
    block(
      thinking,
      thought('a', 0),
      thought('\n\n', 0),
      thought('b', 0),
      thought('\n\n', 1),
      thought('c', 1),
      thought('\n\n', 1),
    ),
    { type: 'thinking', thinking: 'a\n\nb\n\nc\n\n', summary_parts: ['a\n\nb', 'c\n\n'] },
  ],
  [
    'parts that begin with a blank line',
    block(thinking, thought('\n\n', 0), thought('a', 0), thought('\n\n', 1), thought('\n\n', 1)),
    { type: 'thinking', thinking: '\n\na\n\n\n\n', summary_parts: ['\n\na', '\n\n'] },
  ],
  [
    'parts numbered by a stranger leave no holes',
    block(thinking, thought('a', 7), thought('b', 9), thought('c', -3), thought('d', 1)),
    { type: 'thinking', thinking: 'abcd', summary_parts: ['ac', 'bd'] },
  ],
  ['a call without arguments', block(call), call],
  [
    'a call whose arguments are no object',
    block(call, { type: 'input_json_delta', partial_json: '[1]' }),
    { ...call, input_raw: '[1]' },
  ],
  [
    'a call with arguments already in the start',
    block({ ...call, input: { a: 1 }, input_raw: '{"a":1}' }),
    { ...call, input: { a: 1 } },
  ],
  ['a custom call without text', block({ ...call, kind: 'custom', input: '' }), { ...call, kind: 'custom', input: '' }],
  [
    'a custom call with its text already in the start',
    block({ ...call, kind: 'custom', input: 'x' }),
    { ...call, kind: 'custom', input: 'x' },
  ],
  [
    'a custom call without text, opened like any other',
    block({ ...call, kind: 'custom' }),
    { ...call, kind: 'custom', input: '' },
  ],
  [
    'a custom call with text that is JSON',
    block(
      { ...call, kind: 'custom', input: '' },
      { type: 'input_text_delta', text: '{"a"' },
      { type: 'input_text_delta', text: ':1}' },
    ),
    { ...call, kind: 'custom', input: '{"a":1}', input_raw: '{"a":1}' },
  ],
  ['audio data alone', block(audio, { type: 'audio_delta', data: 'A' }), { type: 'audio', source: { data: 'A' } }],
  ['a transcript alone', block(audio, { type: 'audio_delta', transcript: 'a' }), { type: 'audio', source: {}, transcript: 'a' }],
  [
    'audio keeps the rest of its source',
    block(
      { type: 'audio', source: { data: 'A', media_type: 'audio/wav' }, transcript: 'x' },
      { type: 'audio_delta', data: 'B', transcript: 'y' },
    ),
    { type: 'audio', source: { data: 'AB', media_type: 'audio/wav' }, transcript: 'xy' },
  ],
  [
    'opaque: text grows, anything else is replaced, null says nothing',
    block(
      opaque({ s: 'a', n: 1, o: { x: 1 }, k: 'k' }),
      { type: 'opaque_delta', raw: { s: 'b', n: 2, o: { y: 2 }, k: null, t: 'new' } },
      { type: 'opaque_delta', raw: { n: 'text', t: 7 } },
    ),
    { type: 'opaque', origin: 'gemini', raw: { s: 'ab', n: 'text', o: { y: 2 }, k: 'k', t: 7 } },
  ],
  [
    'opaque: an object in place of another value, then one more',
    block(opaque('a'), { type: 'opaque_delta', raw: { x: 'a' } }, { type: 'opaque_delta', raw: { x: 'b' } }),
    { ...opaque({ x: 'ab' }) },
  ],
  ['opaque: not an object before', block(opaque('a'), { type: 'opaque_delta', raw: { x: 1 } }), { ...opaque({ x: 1 }) }],
  ['opaque: not an object after', block(opaque({ x: 1 }), { type: 'opaque_delta', raw: 'a' }), { ...opaque('a') }],
  ...[text, thinking, call, audio, opaque('r')].map((start): [string, Event[], object] => [
    `deltas of other kinds change no ${start.type}`,
    block(start, ...DELTAS.flatMap(([type, delta]) => (type === start.type ? [] : [delta]))),
    start,
  ]),
];

test.each(BLOCKS)('%s', (_, events, expected) => {
  const before = structuredClone(events);
  expect(run(events).message.content).toStrictEqual([expected]);
  expect(events).toEqual(before);
});

test('an opaque block of many deltas, each with a key of its own: were all copied with each, this would not end', () => {
  const deltas = Array.from({ length: 100_000 }, (_, i): BlockDelta => ({ type: 'opaque_delta', raw: { [`k${i}`]: i } }));
  const [merged] = run(block(opaque({}), ...deltas)).message.content;
  expect(merged?.type === 'opaque' && Object.keys(Object(merged.raw))).toHaveLength(100_000);
});

test('an opaque key that is a trap', () => {
  const { message } = run(block(opaque({}), { type: 'opaque_delta', raw: JSON.parse('{"__proto__":{"x":1}}') }));
  expect(JSON.stringify(message.content)).toContain('{"__proto__":{"x":1}}');
});

const start: Event = { type: 'message_start', message: { id: 'm', model: 'x' } };
const stop = (more: object = {}, delta: object = {}): Event =>
  ({ type: 'message_delta', delta: { stop_reason: 'end_turn', ...delta }, ...more }) as Event;
const a: ContentBlock = { type: 'text', text: 'a' };

/** Exactly the result. */
const RESULTS: [name: string, events: Event[], message: object, rest?: object][] = [
  ['nothing', [], { id: '', model: '', content: [], stop_reason: null }],
  ['a ping', [{ type: 'ping' }], { id: '', model: '', content: [], stop_reason: null }],
  ['only a stop', [{ type: 'message_stop' }], { id: '', model: '', content: [], stop_reason: null }, { complete: true }],
  [
    'a block that was never opened',
    [start, add({ type: 'text_delta', text: 'x' }, 3), close(4)],
    { id: 'm', model: 'x', content: [], stop_reason: null },
  ],
  [
    'blocks in the order they began, open ones too',
    [
      start,
      open(a, 5),
      open(call, 2),
      add({ type: 'input_json_delta', partial_json: '{' }, 2),
      add({ type: 'text_delta', text: 'b' }, 5),
    ],
    {
      id: 'm',
      model: 'x',
      content: [
        { type: 'text', text: 'ab' },
        { ...call, input_raw: '{' },
      ],
      stop_reason: null,
    },
  ],
  [
    'everything that the last delta says',
    [
      start,
      stop(
        { usage: { input_tokens: 1, output_tokens: 2 }, extensions: { gemini: { x: 1 } }, message: { id: 'n' } },
        { stop_sequence: 'S', stop_details: { type: 'd' } },
      ),
    ],
    {
      id: 'n',
      model: 'x',
      content: [],
      stop_reason: 'end_turn',
      stop_sequence: 'S',
      stop_details: { type: 'd' },
      usage: { input_tokens: 1, output_tokens: 2 },
      extensions: { gemini: { x: 1 } },
    },
  ],
  [
    'extensions of the start and of the end',
    [
      { type: 'message_start', message: { id: 'm', model: 'x', extensions: { gemini: { a: 1 }, 'openai-chat': { b: 1 } } } },
      stop({ extensions: { gemini: { c: 1 } } }),
    ],
    { id: 'm', model: 'x', content: [], stop_reason: 'end_turn', extensions: { gemini: { c: 1 }, 'openai-chat': { b: 1 } } },
  ],
  [
    'a stop sequence that is null',
    [start, stop({}, { stop_sequence: null })],
    { id: 'm', model: 'x', content: [], stop_reason: 'end_turn', stop_sequence: null },
  ],
  [
    'usage of the start, as far as it goes',
    [{ type: 'message_start', message: { id: 'm', model: 'x', usage: { output_tokens: 3 } } }],
    { id: 'm', model: 'x', content: [], stop_reason: null, usage: { input_tokens: 0, output_tokens: 3 } },
  ],
  [
    'usage of the end instead of that of the start',
    [
      { type: 'message_start', message: { id: 'm', model: 'x', usage: { output_tokens: 3 } } },
      stop({ usage: { input_tokens: 1, output_tokens: 2 } }),
    ],
    { id: 'm', model: 'x', content: [], stop_reason: 'end_turn', usage: { input_tokens: 1, output_tokens: 2 } },
  ],
  [
    'blocks that are known late',
    [
      start,
      open(a, 0),
      close(0),
      stop({
        late_blocks: [
          { index: 1, content_block: { ...call, input_raw: '{"a":1}' } },
          { index: 2, content_block: { ...call, kind: 'custom', input: 'x' } },
          { index: 0, content_block: { type: 'text', text: 'b' } },
        ],
      }),
    ],
    {
      id: 'm',
      model: 'x',
      content: [
        { type: 'text', text: 'b' },
        { ...call, input: { a: 1 }, input_raw: '{"a":1}' },
        { ...call, kind: 'custom', input: 'x' },
      ],
      stop_reason: 'end_turn',
    },
  ],
  [
    'an error that ends the stream for good',
    [start, { type: 'error', error: { code: 'OVERLOADED', message: 'busy', details: { terminal: true } } }],
    {
      id: 'm',
      model: 'x',
      content: [],
      stop_reason: null,
      error: { code: 'OVERLOADED', message: 'busy', details: { terminal: true } },
    },
    { complete: true, error: { code: 'OVERLOADED', message: 'busy', details: { terminal: true } } },
  ],
  [
    'an error that says nothing of the end',
    [start, { type: 'error', error: { code: 'OVERLOADED', message: 'busy', details: { terminal: 'no' } } }],
    {
      id: 'm',
      model: 'x',
      content: [],
      stop_reason: null,
      error: { code: 'OVERLOADED', message: 'busy', details: { terminal: 'no' } },
    },
    { error: { code: 'OVERLOADED', message: 'busy', details: { terminal: 'no' } } },
  ],
  [
    'an error before the end',
    [start, { type: 'error', error: { code: 'OVERLOADED', message: 'busy' } }, { type: 'message_stop' }],
    { id: 'm', model: 'x', content: [], stop_reason: null, error: { code: 'OVERLOADED', message: 'busy' } },
    { complete: true, error: { code: 'OVERLOADED', message: 'busy' } },
  ],
  [
    'an early end',
    [start, { type: 'error', error: { code: 'STREAM_TRUNCATED', message: 'cut' } }],
    { id: 'm', model: 'x', content: [], stop_reason: null },
  ],
];

test.each(RESULTS)('%s', (_, events, message, rest = {}) => {
  const before = structuredClone(events);
  expect(run(events)).toStrictEqual({ message, complete: false, error: null, ...rest });
  expect(events).toEqual(before);
});

describe('several choices', () => {
  const at = (choice: number, ...events: Event[]): Event[] => events.map((event) => ({ ...event, choice }) as Event);
  const usage = { input_tokens: 1, output_tokens: 2 };
  const said = (index: number, content: string, more: object = {}): object => ({
    index,
    content: [{ type: 'text', text: content }],
    stop_reason: null,
    ...more,
  });

  test.each<[string, Event[], object]>([
    [
      'by number, the first is the message',
      [start, ...at(1, open({ type: 'text', text: 'b\ud800' })), ...at(0, open(a))],
      { content: [{ type: 'text', text: 'a' }], stop_reason: null, choices: [said(0, 'a'), said(1, 'b\ufffd')] },
    ],
    [
      'without number 0 the first that came is the message',
      [start, ...at(2, open(a)), ...at(1, open({ type: 'text', text: 'b' }))],
      { content: [{ type: 'text', text: 'a' }], stop_reason: null, choices: [said(1, 'b'), said(2, 'a')] },
    ],
    ['only one, with a number', [start, ...at(2, open(a))], { content: [{ type: 'text', text: 'a' }], stop_reason: null }],
    [
      'usage and extensions wherever they stand',
      [
        start,
        ...at(0, open(a), stop()),
        ...at(
          1,
          open({ type: 'text', text: 'b' }),
          stop({ usage, extensions: { gemini: { x: 1 } } }, { stop_reason: 'max_tokens' }),
        ),
      ],
      {
        content: [{ type: 'text', text: 'a' }],
        stop_reason: 'end_turn',
        usage,
        choices: [
          said(0, 'a', { stop_reason: 'end_turn' }),
          said(1, 'b', { stop_reason: 'max_tokens', extensions: { gemini: { x: 1 } } }),
        ],
      },
    ],
  ])('%s', (_, events, message) => {
    expect(run(events).message).toStrictEqual({ id: 'm', model: 'x', ...message });
  });
});
