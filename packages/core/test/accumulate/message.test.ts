import { describe, expect, test } from 'vitest';
import { MessageAccumulator } from '../../src/accumulate/index.ts';
import type { BlockDelta, CanonicalStreamEvent, ContentBlock } from '../../src/canonical/index.ts';

type Event = CanonicalStreamEvent;
const start: Event = { type: 'message_start', message: { id: 'm', model: 'x', created: 7 } };
const finish: Event = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { input_tokens: 1, output_tokens: 2 } };
const end: Event = { type: 'message_stop' };

const block = (content_block: ContentBlock, deltas: BlockDelta[], final?: ContentBlock): Event[] => [
  { type: 'content_block_start', index: 0, content_block },
  ...deltas.map((delta): Event => ({ type: 'content_block_delta', index: 0, delta })),
  { type: 'content_block_stop', index: 0, ...(final && { content_block: final }) },
];

function run(...events: Event[]): ReturnType<MessageAccumulator['finish']> {
  const accumulator = new MessageAccumulator();
  for (const event of events) accumulator.push(event);
  return accumulator.finish();
}

const call: ContentBlock = { type: 'tool_use', id: 'c', name: 'f', input: {} };
const json = (partial_json: string): BlockDelta => ({ type: 'input_json_delta', partial_json });

test.each<[string, Event[], object]>([
  [
    'text with logprobs',
    block({ type: 'text', text: '' }, [
      { type: 'text_delta', text: 'a', logprobs: [{ token: 'a', logprob: -1 }] },
      { type: 'text_delta', text: 'b' },
    ]),
    { type: 'text', text: 'ab', logprobs: [{ token: 'a', logprob: -1 }] },
  ],
  ['a lone surrogate', block({ type: 'text', text: '' }, [{ type: 'text_delta', text: 'a\udc00' }]), { text: 'a\ufffd' }],
  [
    'citations',
    block({ type: 'text', text: 'x' }, [{ type: 'citations_delta', citation: { kind: 'url', url: 'u', origin: 'gemini' } }]),
    { text: 'x', citations: [{ url: 'u' }] },
  ],
  [
    'thinking in parts, signed',
    block({ type: 'thinking', thinking: '' }, [
      { type: 'thinking_delta', thinking: 'a', summary_index: 0 },
      { type: 'thinking_delta', thinking: '\n\n', summary_index: 1 },
      { type: 'thinking_delta', thinking: 'b', summary_index: 1 },
      { type: 'signature_delta', signature: { origin: 'gemini', form: 'thought_signature', value: 's' } },
    ]),
    { thinking: 'a\n\nb', summary_parts: ['a', 'b'], signature: { value: 's' } },
  ],
  ['a call', block(call, [json('{"a"'), json(': 1}')]), { input: { a: 1 }, input_raw: '{"a": 1}' }],
  ['a call without arguments', block(call, []), { input: {} }],
  ['a call whose arguments are cut', block(call, [json('{"a"')]), { input: {}, input_raw: '{"a"' }],
  [
    'a call corrected when it stops',
    block(call, [json('{"a":1}')], { ...call, id: 'late', extensions: { 'openai-chat': { x: 1 } } }),
    { id: 'late', input: { a: 1 }, extensions: { 'openai-chat': { x: 1 } } },
  ],
  [
    'a custom call',
    block({ ...call, kind: 'custom', input: '' }, [{ type: 'input_text_delta', text: 'raw' }]),
    { input: 'raw', input_raw: 'raw' },
  ],
  [
    'audio',
    block({ type: 'audio', source: {} }, [
      { type: 'audio_delta', data: 'AA', transcript: 'h' },
      { type: 'audio_delta', data: 'BB', transcript: 'i' },
    ]),
    { source: { data: 'AABB' }, transcript: 'hi' },
  ],
  [
    'an opaque block',
    block({ type: 'opaque', origin: 'anthropic-messages', raw: { type: 'compaction', content: '' } }, [
      { type: 'opaque_delta', raw: { content: 'Sum' } },
      { type: 'opaque_delta', raw: { content: null } },
      { type: 'opaque_delta', raw: { content: 'mary' } },
    ]),
    { raw: { type: 'compaction', content: 'Summary' } },
  ],
])('%s', (_, events, expected) => {
  const { message, complete, error } = run(start, ...events, finish, end);
  expect(message).toMatchObject({
    id: 'm',
    model: 'x',
    created: 7,
    content: [expected],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1 },
  });
  expect({ complete, error }).toEqual({ complete: true, error: null });
});

describe('a stream that does not come to its end', () => {
  const truncated: Event = { type: 'error', error: { code: 'STREAM_TRUNCATED', message: 'cut' } };
  const failed: Event = { type: 'error', error: { code: 'OVERLOADED', message: 'busy' } };
  const text = block({ type: 'text', text: '' }, [{ type: 'text_delta', text: 'half' }]);

  test.each<[string, Event[], object]>([
    [
      'an early end is told by complete alone',
      [start, ...text, truncated],
      { complete: false, error: null, message: { stop_reason: null, content: [{ text: 'half' }] } },
    ],
    [
      'an error is kept',
      [start, ...text, failed],
      { complete: false, error: { code: 'OVERLOADED' }, message: { error: { code: 'OVERLOADED' }, content: [{ text: 'half' }] } },
    ],
    ['an error before the start', [failed], { complete: false, error: { code: 'OVERLOADED' }, message: { id: '', content: [] } }],
    [
      'usage of the start is better than none',
      [{ ...start, message: { id: 'm', model: 'x', usage: { input_tokens: 9 } } }, truncated],
      { message: { usage: { input_tokens: 9 } } },
    ],
    ['no events at all', [], { complete: false, error: null }],
  ])('%s', (_, events, expected) => {
    expect(run(...events)).toMatchObject(expected);
  });
});

test('several choices', () => {
  const other = (event: Event): Event => ({ ...event, choice: 1 }) as Event;
  const { message } = run(
    start,
    ...block({ type: 'text', text: 'a' }, []),
    ...block({ type: 'text', text: 'b' }, []).map(other),
    finish,
    other({ ...finish, delta: { stop_reason: 'max_tokens' } } as Event),
    end,
  );
  expect(message).toMatchObject({
    content: [{ text: 'a' }],
    stop_reason: 'end_turn',
    choices: [
      { index: 0, content: [{ text: 'a' }] },
      { index: 1, content: [{ text: 'b' }], stop_reason: 'max_tokens' },
    ],
  });
});

test('the events stay the caller’s own', () => {
  const events = [
    start,
    ...block({ type: 'text', text: '', citations: [] }, [
      { type: 'text_delta', text: 'a' },
      { type: 'citations_delta', citation: { kind: 'url', origin: 'gemini' } },
    ]),
    finish,
    end,
  ];
  const before = structuredClone(events);
  run(...events);
  expect(events).toEqual(before);
});
