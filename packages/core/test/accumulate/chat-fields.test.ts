import { describe, expect, test } from 'vitest';
import { deriveId } from '../../src/accumulate/argument-text.ts';
import { ChatAccumulator, createAccumulator } from '../../src/accumulate/index.ts';

const run = (chunks: readonly unknown[]): ChatAccumulator => {
  const accumulator = createAccumulator();
  accumulator.pushAll(chunks);
  return accumulator;
};

const restored = (accumulator: ChatAccumulator): ChatAccumulator =>
  ChatAccumulator.fromJSON(JSON.parse(JSON.stringify(accumulator)));

const resumedAt = (cut: number, chunks: readonly unknown[]): ChatAccumulator => {
  const resumed = restored(run(chunks.slice(0, cut)));
  resumed.pushAll(chunks.slice(cut));
  return resumed;
};

/** A chunk of one choice with one delta. */
const chunk = (delta: unknown, choice: object = {}): object => ({ choices: [{ index: 0, delta, ...choice }] });
const whole = (message: unknown, choice: object = {}): object => ({ choices: [{ index: 0, message, ...choice }] });
const call = (entry: object): object => chunk({ tool_calls: [{ index: 0, ...entry }] });
const detail = (entry: object): object => chunk({ reasoning_details: [{ type: 'reasoning.text', index: 0, ...entry }] });

interface Row {
  name: string;
  chunks: unknown[];
  /** Exactly what the message has beside its role, where that is `assistant`, and a refusal, where that is null. */
  message?: object;
  /** Exactly what the choice has beside index, message, logprobs and finish reason. */
  choice?: object;
  finish?: string | null;
  logprobs?: object;
}

const TEXT: Row[] = [
  { name: 'text', chunks: [chunk({ content: 'a' }), chunk({ content: 'b' })], message: { content: 'ab' } },
  { name: 'no text', chunks: [chunk({ role: 'assistant' })], message: { content: '' } },
  { name: 'a role of its own', chunks: [chunk({ role: 'model', content: 'a' })], message: { role: 'model', content: 'a' } },
  {
    name: 'a role that changes while text goes on',
    chunks: [chunk({ content: 'a' }), chunk({ role: 'model', content: 'b' })],
    message: { role: 'model', content: 'ab' },
  },
  { name: 'a blank role', chunks: [chunk({ role: '', content: 'a' })], message: { content: 'a' } },
  { name: 'a role that is no text', chunks: [chunk({ role: 7, content: 'a' })], message: { content: 'a' } },
  {
    name: 'null for everything',
    chunks: [
      chunk({ content: 'a' }),
      chunk({ role: null, content: null, tool_calls: null, refusal: null, audio: null, images: null, annotations: null }),
    ],
    message: { content: 'a' },
  },
  { name: 'no delta', chunks: [chunk({ content: 'a' }), chunk(null), chunk('x'), chunk(7)], message: { content: 'a' } },
  {
    name: 'a text completion',
    chunks: [
      { choices: [{ index: 0, text: 'a' }] },
      { choices: [{ index: 0, text: 'b' }] },
      { choices: [{ index: 0, text: 7 }] },
    ],
    message: { content: 'ab' },
  },
  { name: 'an empty delta beside a text', chunks: [chunk({}, { text: 'a' })], message: { content: '' } },
  { name: 'a lone surrogate', chunks: [chunk({ content: 'a\ud800' })], message: { content: 'a\ufffd' } },
  {
    name: 'a pair that was cut',
    chunks: [chunk({ content: '\ud83d' }), chunk({ content: '\ude00' })],
    message: { content: '😀' },
  },
  {
    name: 'parts: text in all its forms, thinking, images, and one that nobody knows',
    chunks: [
      chunk({
        content: [
          'a',
          { type: 'text', text: 'b' },
          { type: 'output_text', text: 'c' },
          { text: 'd' },
          { type: 'text', text: 7 },
          { type: 'thinking', thinking: 'e' },
          { type: 'thinking', thinking: [{ type: 'text', text: 'f' }, 'g'] },
          { type: 'thinking', thinking: 8 },
          { type: 'image_url', image_url: { url: 'u' } },
          { type: 'video', text: 'v' },
          null,
          9,
        ],
      }),
      chunk({ content: [{ type: 'map', place: 1 }] }),
    ],
    message: {
      content: 'abcd',
      reasoning_content: 'efg',
      images: [{ type: 'image_url', image_url: { url: 'u' } }],
      content_parts: [
        { type: 'text', text: 7 },
        { type: 'video', text: 'v' },
        { type: 'map', place: 1 },
      ],
    },
  },
  {
    name: 'parts that nobody knows, beside a list of the wire by that name',
    chunks: [
      chunk({ content: [{ type: 'x' }] }),
      chunk({ content_parts: [{ type: 'y' }] }),
      chunk({ content: [{ type: 'z' }] }),
      chunk({ content: [{ type: 'z' }] }),
    ],
    message: { content: '', content_parts: [{ type: 'y' }, { type: 'z' }, { type: 'z' }] },
  },
  {
    name: 'a thought within a thought',
    chunks: [chunk({ content: [{ type: 'thinking', thinking: [{ type: 'thinking', thinking: 'a' }, 'b'] }] })],
    message: { content: '', reasoning_content: 'b' },
  },
  { name: 'one part without its list', chunks: [chunk({ content: { type: 'text', text: 'a' } })], message: { content: 'a' } },
  {
    name: 'a refusal in pieces',
    chunks: [chunk({ refusal: '' }), chunk({ refusal: 'no' }), chunk({ refusal: 't' }), chunk({ refusal: 7 })],
    message: { content: null, refusal: 'not' },
  },
  { name: 'a blank refusal is none', chunks: [chunk({ refusal: '' })], message: { content: '' } },
  {
    name: 'a refusal beside text',
    chunks: [chunk({ content: 'a', refusal: 'no' })],
    message: { content: 'a', refusal: 'no' },
  },
];

const REASONING: Row[] = [
  ...['reasoning_content', 'reasoning', 'reasoning_text'].map((field) => ({
    name: field,
    chunks: [chunk({ [field]: 'a' }), chunk({ [field]: '' }), chunk({ [field]: 'b', content: '' }), chunk({ [field]: 7 })],
    message: { content: '', reasoning_content: 'ab' },
  })),
  {
    name: 'two fields say it twice, the first counts',
    chunks: [
      chunk({ reasoning_content: 'a', reasoning: 'b', reasoning_text: 'c' }),
      chunk({ reasoning_content: '', reasoning: 'd', reasoning_text: 'e' }),
    ],
    message: { content: '', reasoning_content: 'ad' },
  },
  {
    name: 'a blank field beside one that says something',
    chunks: [
      chunk({ reasoning: '', reasoning_text: 'a' }),
      chunk({ reasoning_text: '', reasoning_details: [{ type: 't', text: 'b' }] }),
    ],
    message: { content: '', reasoning_content: 'ab', reasoning_details: [{ type: 't', text: 'b' }] },
  },
  {
    name: 'details alone: their text and summary',
    chunks: [
      detail({ text: 'a' }),
      chunk({ reasoning_details: [{ type: 'reasoning.summary', summary: 'b' }, { type: 'x', summary: 7 }, 9, null] }),
    ],
    message: {
      content: '',
      reasoning_content: 'ab',
      reasoning_details: [
        { type: 'reasoning.text', index: 0, text: 'a' },
        { type: 'reasoning.summary', summary: 'b' },
        { type: 'x', summary: 7 },
      ],
    },
  },
  {
    name: 'details whose type and index are no words',
    chunks: [detail({ type: { toString: 1 }, text: 'a' }), detail({ type: [{ toString: 1 }], index: { valueOf: 1 }, text: 'b' })],
    message: {
      content: '',
      reasoning_content: 'ab',
      reasoning_details: [
        { type: { toString: 1 }, index: 0, text: 'a' },
        { type: [{ toString: 1 }], index: { valueOf: 1 }, text: 'b' },
      ],
    },
  },
  {
    name: 'details that say again what came before them',
    chunks: [chunk({ reasoning: 'ab' }), detail({ text: 'ab', signature: 's' })],
    message: {
      content: '',
      reasoning_content: 'ab',
      reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'ab', signature: 's' }],
    },
  },
  {
    name: 'details that go on',
    chunks: [detail({ text: 'ab' }), detail({ text: 'cd' })],
    message: {
      content: '',
      reasoning_content: 'abcd',
      reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'abcd' }],
    },
  },
  {
    name: 'details that repeat a word',
    chunks: [detail({ text: 'ha' }), detail({ text: 'ha' })],
    message: {
      content: '',
      reasoning_content: 'haha',
      reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'haha' }],
    },
  },
  {
    name: 'details grow where they are text, are told apart by type and index or id, and keep signatures that are repeated',
    chunks: [
      detail({ text: 'a', format: 'f', data: 'd', signature: null }),
      detail({ text: 'b', data: 'd', signature: 's', format: null }),
      detail({ text: null, summary: 'x', signature: 's', more: 1 }),
      detail({ summary: 'y', data: 'e', signature: 't', text: 7 }),
      detail({ index: 1, text: 'c' }),
      detail({ type: 'reasoning.encrypted', data: 'z' }),
      chunk({ reasoning_details: [{ type: 'n', id: 'i', text: '1' }] }),
      chunk({ reasoning_details: [{ type: 'n', id: 'j', text: '2' }] }),
      chunk({ reasoning_details: [{ type: 'n', id: 'i', text: '3' }] }),
      chunk({ reasoning_details: 'none' }),
      chunk({ reasoning_details: 7 }),
    ],
    message: {
      content: '',
      reasoning_content: 'abxyc123',
      reasoning_details: [
        { type: 'reasoning.text', index: 0, text: 'ab', format: 'f', data: 'de', signature: 'st', summary: 'xy', more: 1 },
        { type: 'reasoning.text', index: 1, text: 'c' },
        { type: 'reasoning.encrypted', index: 0, data: 'z' },
        { type: 'n', id: 'i', text: '13' },
        { type: 'n', id: 'j', text: '2' },
      ],
    },
  },
];

const url = (value: string): object => ({ type: 'url_citation', url_citation: { url: value } });

const LISTS: Row[] = [
  {
    name: 'annotations, each once',
    chunks: [chunk({ annotations: [url('a')] }), chunk({ annotations: [url('a'), url('b')] }), chunk({ annotations: 'no' })],
    message: { content: '', annotations: [url('a'), url('b')] },
  },
  {
    name: 'images, as often as they come',
    chunks: [chunk({ images: [1] }), chunk({ images: [1, 2] }), chunk({ images: 'no' })],
    message: { content: '', images: [1, 1, 2] },
  },
  {
    name: 'audio: data and transcript grow, id and expiry do not',
    chunks: [
      chunk({ audio: { id: 'a', data: 'AA' } }),
      chunk({ audio: { id: 'a', transcript: 'h', expires_at: 5 } }),
      chunk({ audio: { data: 'BB', transcript: 'i' } }),
      chunk({ audio: { data: '', transcript: '' } }),
      chunk({ audio: {} }),
    ],
    message: { content: '', audio: { id: 'a', data: 'AABB', transcript: 'hi', expires_at: 5 } },
  },
  { name: 'audio that is a blank', chunks: [chunk({ audio: { data: '', expires_at: 0 } })], message: { content: '' } },
  ...[{ id: 'a' }, { data: 'A' }, { transcript: 't' }].map((audio) => ({
    name: `audio with nothing but ${Object.keys(audio)}`,
    chunks: [chunk({ audio })],
    message: { content: '', audio },
  })),
  {
    name: 'logprobs of both sides',
    chunks: [
      chunk({}, { logprobs: { content: [1] } }),
      chunk({ content: 'a' }, { logprobs: { content: [2, 3], refusal: null } }),
      chunk({}, { logprobs: { refusal: [4] } }),
      chunk({ content: 'b' }, { logprobs: 'no' }),
    ],
    message: { content: 'ab' },
    logprobs: { content: [1, 2, 3], refusal: [4] },
  },
  { name: 'logprobs that are none', chunks: [chunk({ content: 'a' }, { logprobs: 'no' })], message: { content: 'a' } },
  {
    name: 'logprobs of one side',
    chunks: [chunk({}, { logprobs: { content: [1] } })],
    message: { content: '' },
    logprobs: { content: [1], refusal: null },
  },
];

const f = (name: string, text: string): object => ({ id: 'a', type: 'function', function: { name, arguments: text } });

const CALLS: Row[] = [
  {
    name: 'a call in pieces',
    chunks: [call(f('f', '')), call({ function: { arguments: '{"x"' } }), call({ function: { arguments: ':1}' } })],
    message: { content: null, tool_calls: [f('f', '{"x":1}')] },
  },
  {
    name: 'the deprecated form of a call, beside its blanks',
    chunks: [
      chunk({ content: null, function_call: { name: 'f', arguments: '' } }),
      chunk({ function_call: { arguments: '{"x"' } }),
      chunk({ function_call: { name: '', arguments: ':1}' } }),
      chunk({ content: '', function_call: { name: '', arguments: '' } }),
      chunk({ function_call: null }, { finish_reason: 'function_call' }),
    ],
    message: {
      content: null,
      tool_calls: [{ id: deriveId('call_', '', 0, 'f', 0), type: 'function', function: { name: 'f', arguments: '{"x":1}' } }],
    },
    finish: 'function_call',
  },
  {
    name: 'text between the pieces of a call',
    chunks: [call(f('f', '{"x"')), chunk({ content: 'a', tool_calls: [{ index: 0, function: { arguments: ':1}' } }] })],
    message: { content: 'a', tool_calls: [f('f', '{"x":1}')] },
  },
  {
    name: 'a piece of a call beside empty or no text',
    chunks: [
      call(f('f', '{"x"')),
      chunk({ content: '', tool_calls: [{ index: 0, function: { arguments: ':' } }] }),
      chunk({ content: null, tool_calls: [{ index: 0, function: { arguments: '1}' } }] }),
    ],
    message: { content: null, tool_calls: [f('f', '{"x":1}')] },
  },
  {
    name: 'calls as an object',
    chunks: [chunk({ tool_calls: { index: 0, ...f('f', '{}') } })],
    message: { content: null, tool_calls: [f('f', '{}')] },
  },
  {
    name: 'stop beside calls is tool_calls',
    chunks: [call(f('f', '{}')), chunk({}, { finish_reason: 'stop' })],
    message: { content: null, tool_calls: [f('f', '{}')] },
    finish: 'tool_calls',
  },
  {
    name: 'length beside calls stays',
    chunks: [call(f('f', '')), chunk({}, { finish_reason: 'length' })],
    message: { content: null, tool_calls: [f('f', '')] },
    finish: 'length',
  },
  {
    name: 'a call without arguments in a message that ended has none',
    chunks: [call(f('f', '')), chunk({}, { finish_reason: 'tool_calls' })],
    message: { content: null, tool_calls: [f('f', '{}')] },
    finish: 'tool_calls',
  },
  {
    name: 'a call without arguments in a message that did not end may have lost them',
    chunks: [call(f('f', ''))],
    message: { content: null, tool_calls: [f('f', '')] },
  },
  {
    name: 'fields of a call that nobody knows',
    chunks: [call({ ...f('f', '{}'), extra: 1, function: { name: 'f', arguments: '{}', strict: true } })],
    message: {
      content: null,
      tool_calls: [{ extra: 1, id: 'a', type: 'function', function: { strict: true, name: 'f', arguments: '{}' } }],
    },
  },
  {
    name: 'a custom call',
    chunks: [call({ id: 'a', type: 'custom', custom: { name: 'p', input: 'x', more: 1 } })],
    message: { content: null, tool_calls: [{ id: 'a', type: 'custom', custom: { more: 1, name: 'p', input: 'x' } }] },
  },
];

const FINISH: Row[] = [
  ...['tool_calls', 'function_call'].map((strong) => ({
    name: `${strong} is not weakened beside a call`,
    chunks: [call(f('f', '{}')), chunk({}, { finish_reason: strong }), chunk({}, { finish_reason: 'stop' })],
    message: { content: null, tool_calls: [f('f', '{}')] },
    finish: strong,
  })),
  ...['tool_calls', 'function_call'].map((announced) => ({
    name: `${announced} without a call is a normal end`,
    chunks: [chunk({ content: 'a' }), chunk({}, { finish_reason: announced })],
    message: { content: 'a' },
    finish: 'stop',
  })),
  ...['length', 'content_filter', 'tool_use', 'max_tokens'].map((strong) => ({
    name: `${strong} is not weakened`,
    chunks: [chunk({}, { finish_reason: strong }), chunk({}, { finish_reason: 'stop' }), chunk({}, { finish_reason: '' })],
    message: { content: '' },
    finish: strong,
  })),
  {
    name: 'stop is strengthened, and a strong reason replaced by another',
    chunks: ['stop', 'odd', 'length', 'content_filter', 7, {}].map((finish_reason) => chunk({ content: 'a' }, { finish_reason })),
    message: { content: 'aaaaaa' },
    finish: 'content_filter',
  },
  {
    name: 'what is no reason replaces none',
    chunks: ['stop', 7, {}, '', null].map((finish_reason) => chunk({ content: 'a' }, { finish_reason })),
    message: { content: 'aaaaa' },
    finish: 'stop',
  },
  {
    name: 'a weak reason replaced by another',
    chunks: ['stop', 'odd'].map((finish_reason) => chunk({ content: 'a' }, { finish_reason })),
    message: { content: 'aa' },
    finish: 'odd',
  },
  ...['length', 'max_tokens', 'content_filter', 'error'].map((cut) => ({
    name: `${cut}: a call without arguments may have lost them`,
    chunks: [call(f('f', '')), chunk({}, { finish_reason: cut })],
    message: { content: null, tool_calls: [f('f', '')] },
    finish: cut,
  })),
];

const WHOLE: Row[] = [
  {
    name: 'a whole message instead of deltas',
    chunks: [
      whole(
        { role: 'model', content: 'a', refusal: 'r', reasoning: 'x', images: [1], annotations: [2], audio: { id: 'i' }, more: 3 },
        { finish_reason: 'stop' },
      ),
    ],
    message: {
      role: 'model',
      content: 'a',
      refusal: 'r',
      reasoning_content: 'x',
      images: [1],
      annotations: [2],
      audio: { id: 'i' },
      more: 3,
    },
    finish: 'stop',
  },
  {
    name: 'a whole message after the deltas says nothing twice',
    chunks: [
      chunk({ content: 'a', refusal: 'r', reasoning: 'x', images: [1], annotations: [2], audio: { data: 'A' } }),
      call(f('f', '{}')),
      whole({
        content: 'a',
        refusal: 'r',
        reasoning: 'x',
        reasoning_content: 'x',
        images: [1],
        annotations: [3],
        audio: { data: 'A' },
        tool_calls: [f('f', '{}')],
        function_call: { name: 'f', arguments: '{}' },
        more: 3,
      }),
    ],
    message: {
      content: 'a',
      refusal: 'r',
      reasoning_content: 'x',
      images: [1],
      annotations: [2],
      audio: { data: 'A' },
      tool_calls: [f('f', '{}')],
      more: 3,
    },
  },
  {
    name: 'a whole message brings what no delta did',
    chunks: [
      chunk({ content: 'a' }),
      whole({ content: 'no', refusal: 'r', reasoning: 'x', images: [1], annotations: [2], tool_calls: [f('f', '{}')] }),
    ],
    message: {
      content: 'a',
      refusal: 'r',
      reasoning_content: 'x',
      images: [1],
      annotations: [2],
      tool_calls: [f('f', '{}')],
    },
  },
  {
    name: 'a whole message brings no calls when deltas did',
    chunks: [
      call(f('f', '{}')),
      whole({ tool_calls: [{ ...f('g', '{}'), id: 'b' }], function_call: { name: 'h', arguments: '{}' } }),
    ],
    message: { content: null, tool_calls: [f('f', '{}')] },
  },
  {
    name: 'a whole message beside a delta that goes on',
    chunks: [chunk({ content: 'a' }), chunk({ content: 'b' }, { message: { more: 3, content: [{ type: 'map' }] } })],
    message: { content: 'ab', more: 3 },
  },
  {
    name: 'a part that nobody knows in a whole message',
    chunks: [whole({ content: [{ type: 'map' }] })],
    message: { content: '', content_parts: [{ type: 'map' }] },
  },
  {
    name: 'a whole message twice, the later laid over the first',
    chunks: [whole({ content: 'a', x: { y: 1 } }), whole({ content: 'b', x: { z: 2 } }), whole('no')],
    message: { content: 'b', x: { y: 1, z: 2 } },
  },
  {
    name: 'a whole body without a finish reason is whole: no arguments are none',
    chunks: [whole({ tool_calls: [f('f', '')] })],
    message: { content: null, tool_calls: [f('f', '{}')] },
  },
  {
    name: 'a whole message after text, without a finish reason, may be cut',
    chunks: [chunk({ content: 'a' }), whole({ tool_calls: [f('f', '')] })],
    message: { content: 'a', tool_calls: [f('f', '')] },
  },
  {
    name: 'a whole message that was cut',
    chunks: [whole({ tool_calls: [f('f', '')] }, { finish_reason: 'length' })],
    message: { content: null, tool_calls: [f('f', '')] },
    finish: 'length',
  },
];

const UNKNOWN: Row[] = [
  {
    name: 'unknown fields of the choice: the last value that is one wins',
    chunks: [
      chunk({ content: 'a' }, { x: 1, y: null }),
      chunk({ content: 'b' }, { x: null, y: 2 }),
      chunk({ content: 'c' }, { z: 3 }),
    ],
    message: { content: 'abc' },
    choice: { x: 1, y: 2, z: 3 },
  },
  {
    name: 'unknown fields that are never more than null',
    chunks: [chunk({ content: 'a', x: null }, { y: null }), chunk({ content: 'b', x: null }, { y: null })],
    message: { content: 'ab' },
  },
  {
    name: 'the filter of Azure, other with every chunk',
    chunks: [
      chunk({ content: 'a' }, { content_filter_results: { hate: { filtered: false } } }),
      chunk({ content: 'b' }, { content_filter_results: { hate: { severity: 'safe' } } }),
    ],
    message: { content: 'ab' },
    choice: { content_filter_results: { hate: { filtered: false, severity: 'safe' } } },
  },
  {
    name: 'unknown fields of the delta, in changing company',
    chunks: [
      chunk({ content: 'a', x: 1 }),
      chunk({ content: 'b', x: 2, y: 1 }),
      chunk({ y: 2, content: 'c' }),
      chunk({ content: 'd' }),
    ],
    message: { content: 'abcd', x: 2, y: 2 },
  },
  {
    name: 'a key that is a trap',
    chunks: [chunk(JSON.parse('{"content":"a","__proto__":{"x":1}}'))],
    message: JSON.parse('{"content":"a","__proto__":{"x":1}}'),
  },
];

const ROWS = [...TEXT, ...REASONING, ...LISTS, ...CALLS, ...FINISH, ...WHOLE, ...UNKNOWN];

describe.each(ROWS)('$name', ({ chunks, message, choice = {}, finish = null, logprobs = null }) => {
  const expected = {
    id: '',
    object: 'chat.completion',
    created: 0,
    model: '',
    choices: [
      { index: 0, message: { role: 'assistant', refusal: null, ...message }, logprobs, finish_reason: finish, ...choice },
    ],
  };

  test('the completion, field by field', () => {
    const accumulator = run(chunks);
    expect(accumulator.finish()).toStrictEqual(expected);
    expect(accumulator.finish(), 'asked again').toStrictEqual(expected);
    expect(restored(accumulator).finish(), 'restored at the end').toStrictEqual(expected);
  });

  test('the same when resumed from JSON at any point', () => {
    for (let cut = 0; cut <= chunks.length; cut++) expect(resumedAt(cut, chunks).finish(), `at ${cut}`).toStrictEqual(expected);
  });

  test('the chunks stay the caller’s own', () => {
    const before = structuredClone(chunks);
    run(chunks).finish();
    expect(chunks).toEqual(before);
  });
});

test('many parts that nobody knows: were all copied with each, this would not end', () => {
  const accumulator = createAccumulator();
  const part = chunk({ content: [{ type: 'x' }] });
  for (let i = 0; i < 200_000; i++) accumulator.push(part);
  expect(accumulator.finish().choices[0]?.message['content_parts']).toHaveLength(200_000);
});
