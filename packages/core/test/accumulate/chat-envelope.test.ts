import { describe, expect, test } from 'vitest';
import { deriveId } from '../../src/accumulate/argument-text.ts';
import { DistinctList, readContentParts, readLegacyCall, readUsage, wellFormed } from '../../src/accumulate/chat-delta.ts';
import { ChatAccumulator, type ChatAccumulatorOptions, createAccumulator } from '../../src/accumulate/index.ts';

const run = (chunks: readonly unknown[], options?: ChatAccumulatorOptions): ChatAccumulator => {
  const accumulator = createAccumulator(options);
  accumulator.pushAll(chunks);
  return accumulator;
};

const text = (content: string, index: unknown = 0, more: object = {}): object => ({
  choices: [{ index, delta: { content } }],
  ...more,
});
const choice = (index: number, content: string): object => ({
  index,
  message: { role: 'assistant', content, refusal: null },
  logprobs: null,
  finish_reason: null,
});

interface Row {
  name: string;
  chunks: unknown[];
  /** Exactly what the completion has beside id, object, created and model, where those are blank. */
  completion: object;
}

const ROWS: Row[] = [
  { name: 'nothing', chunks: [], completion: { choices: [] } },
  {
    name: 'what is no chunk',
    chunks: [undefined, null, 'x', 7, {}, [], { choices: 'x' }, { choices: [null, 7] }],
    completion: { choices: [] },
  },
  {
    name: 'what is no choice, while one goes on',
    chunks: [text('a'), { choices: [null] }, { choices: [7] }, text('b')],
    completion: { choices: [choice(0, 'ab')] },
  },
  {
    name: 'the first id, model and time count',
    chunks: [
      text('a', 0, { id: '', model: '', created: 0 }),
      text('b', 0, { id: 'i', model: 'm', created: 5 }),
      text('c', 0, { id: 'j', model: 'n', created: 6 }),
    ],
    completion: { id: 'i', model: 'm', created: 5, choices: [choice(0, 'abc')] },
  },
  {
    name: 'an id, model, time and usage of the wrong type',
    chunks: [text('a', 0, { id: 7, model: 8, created: '9', usage: 'x' })],
    completion: { choices: [choice(0, 'a')] },
  },
  {
    name: 'choices by index, and without one the first',
    chunks: [text('b', 1), text('a', 0), text('c', 1), text('d', undefined), text('e', 'x'), { choices: [] }],
    completion: { choices: [choice(0, 'ade'), choice(1, 'bc')] },
  },
  {
    name: 'two choices in one chunk',
    chunks: [
      text('a'),
      {
        choices: [
          { index: 0, delta: { content: 'b' } },
          { index: 1, delta: { content: 'c' } },
        ],
      },
    ],
    completion: { choices: [choice(0, 'ab'), choice(1, 'c')] },
  },
  {
    name: 'usage on any chunk, the last value that is one wins',
    chunks: [
      text('a', 0, { usage: { prompt_tokens: 1, details: { cached: 1, audio: null } } }),
      text('b', 0, { usage: { prompt_tokens: null, completion_tokens: 2, details: { cached: 3 } } }),
      text('c', 0, { usage: null }),
      text('d', 0, { usage: 'x' }),
    ],
    completion: {
      choices: [choice(0, 'abcd')],
      usage: { prompt_tokens: 1, completion_tokens: 2, details: { cached: 3, audio: null } },
    },
  },
  {
    name: 'usage of zeros takes nothing back',
    chunks: [
      text('a', 0, { usage: { prompt_tokens: 0, cost: null, tier: 'x' } }),
      text('b', 0, { usage: { prompt_tokens: 3, completion_tokens: 0 } }),
      text('c', 0, { usage: { prompt_tokens: 0, completion_tokens: 0 } }),
      text('d', 0, { usage: { prompt_tokens: 4, completion_tokens: 0 } }),
    ],
    completion: { choices: [choice(0, 'abcd')], usage: { prompt_tokens: 4, completion_tokens: 0, cost: null, tier: 'x' } },
  },
  {
    name: 'usage of zeros at the end takes no count back',
    chunks: [
      text('a', 0, { usage: { prompt_tokens: 3, completion_tokens: 0, tier: 'x' } }),
      text('b', 0, { usage: { prompt_tokens: 0, completion_tokens: 0, tier: 'y' } }),
    ],
    completion: { choices: [choice(0, 'ab')], usage: { prompt_tokens: 3, completion_tokens: 0, tier: 'y' } },
  },
  {
    name: 'a zero replaces no count',
    chunks: [text('a', 0, { usage: { a: 3, b: 1 } }), text('b', 0, { usage: { a: 0, b: 2 } })],
    completion: { choices: [choice(0, 'ab')], usage: { a: 3, b: 2 } },
  },
  {
    name: 'a zero beside another size of the prompt counts',
    chunks: [text('a', 0, { usage: { prompt_tokens: 3, b: 1 } }), text('b', 0, { usage: { prompt_tokens: 4, b: 0 } })],
    completion: { choices: [choice(0, 'ab')], usage: { prompt_tokens: 4, b: 0 } },
  },
  {
    name: 'usage of zeros after zeros',
    chunks: [text('a', 0, { usage: { a: 0 } }), text('b', 0, { usage: { b: 0 } })],
    completion: { choices: [choice(0, 'ab')], usage: { a: 0, b: 0 } },
  },
  {
    name: 'usage in the choice',
    chunks: [text('a'), { choices: [{ index: 0, delta: { content: 'b' }, usage: { total_tokens: 5 } }] }],
    completion: { choices: [choice(0, 'ab')], usage: { total_tokens: 5 } },
  },
  {
    name: 'usage under x_groq',
    chunks: [text('a'), { choices: [], x_groq: { id: 'r', usage: { total_tokens: 5 } } }],
    completion: {
      choices: [choice(0, 'a')],
      usage: { total_tokens: 5 },
      x_groq: { id: 'r', usage: { total_tokens: 5 } },
    },
  },
  {
    name: 'fields of OpenAI that have no meaning here',
    chunks: [
      text('a', 0, { service_tier: 'default', system_fingerprint: null }),
      text('b', 0, { service_tier: null, system_fingerprint: 'fp' }),
    ],
    completion: { choices: [choice(0, 'ab')], service_tier: 'default', system_fingerprint: 'fp' },
  },
  {
    name: 'fields that nobody knows, in changing company',
    chunks: [
      text('a', 0, { x: { y: 1 }, z: null }),
      text('b', 0, { x: { w: 2 }, z: null }),
      text('c', 0, { z: 3, service_tier: 't' }),
      text('d', 0, { z: 4 }),
    ],
    completion: { choices: [choice(0, 'abcd')], x: { y: 1, w: 2 }, z: 4, service_tier: 't' },
  },
];

const FULL: Row = {
  name: 'known fields beside one that nobody knows',
  chunks: [
    text('a', 0, { id: 'i', object: 'chat.completion.chunk', created: 5, model: 'm', usage: { n: 3 }, x: 1 }),
    text('b', 0, { id: 'j', object: 'chat.completion.chunk', created: 6, model: 'n', usage: { n: 0 }, x: 2 }),
  ],
  completion: { id: 'i', created: 5, model: 'm', choices: [choice(0, 'ab')], usage: { n: 3 }, x: 2 },
};

const BLANK = { id: '', object: 'chat.completion', created: 0, model: '' };

describe.each([...ROWS, FULL])('$name', ({ chunks, completion }) => {
  test('the completion, field by field', () => {
    expect(run(chunks).finish()).toStrictEqual({ ...BLANK, ...completion });
    expect(run(chunks, { everyField: true }).finish()).toStrictEqual({ ...BLANK, ...completion });
  });

  test('the same when resumed from JSON at any point', () => {
    for (let cut = 0; cut <= chunks.length; cut++) {
      const resumed = ChatAccumulator.fromJSON(JSON.parse(JSON.stringify(run(chunks.slice(0, cut)))));
      resumed.pushAll(chunks.slice(cut));
      expect(resumed.finish()).toStrictEqual({ ...BLANK, ...completion });
    }
  });
});

test('a state that is a live object is not shared', () => {
  const first = run([text('a', 0, { usage: { n: 1, m: { x: 1 } } })]);
  const second = ChatAccumulator.fromJSON(first.toJSON());
  second.push(text('b', 0, { usage: { n: 2, m: { x: 2 } } }));
  expect([first.text, first.usage]).toEqual(['a', { n: 1, m: { x: 1 } }]);
  expect([second.text, second.usage]).toEqual(['ab', { n: 2, m: { x: 2 } }]);
});

test('of an accumulator with nothing in it everything can be read', () => {
  const { id, model, text, reasoning, refusal, toolCalls, usage, finishReason, logprobs, reasoningDetails, choices } = run([]);
  expect({ id, model, text, reasoning, refusal, toolCalls, usage, finishReason, logprobs, reasoningDetails, choices }).toEqual({
    id: '',
    model: '',
    text: '',
    reasoning: '',
    refusal: null,
    toolCalls: [],
    usage: null,
    finishReason: null,
    logprobs: null,
    reasoningDetails: [],
    choices: [],
  });
  expect(run([]).finalizeToolCalls()).toEqual([]);
});

test('the main choice is number 0, and without one the first that came', () => {
  expect(run([text('b', 2), text('c', 1)]).text).toBe('b');
  expect(run([text('b', 2), text('a', 0)]).text).toBe('a');
});

test('everything of the main choice can be read while it comes', () => {
  const accumulator = run([
    {
      choices: [{ index: 0, delta: { reasoning_details: [{ type: 't', text: 'x' }], refusal: 'no' }, finish_reason: 'length' }],
      usage: { n: 1 },
    },
  ]);
  const { reasoning, refusal, usage, finishReason, reasoningDetails } = accumulator;
  expect({ reasoning, refusal, usage, finishReason, reasoningDetails }).toEqual({
    reasoning: 'x',
    refusal: 'no',
    usage: { n: 1 },
    finishReason: 'length',
    reasoningDetails: [{ type: 't', text: 'x' }],
  });
});

describe('around the deltas of a long stream', () => {
  const stream = (odd: number): object[] => Array.from({ length: 200 }, (_, i) => text('x', 0, i === odd ? { x: 1 } : {}));

  // The first chunk opens the choice; of those that only continue it, 16 are looked at, then every 64th.
  test.each([
    [0, true],
    [1, true],
    [16, true],
    [17, false],
    [64, false],
    [65, true],
    [66, false],
    [129, true],
  ])('a field on chunk %i is found: %s', (odd, isFound) => {
    expect('x' in run(stream(odd)).finish()).toBe(isFound);
    expect(run(stream(odd), { everyField: true }).finish()).toHaveProperty('x', 1);
    expect(run(stream(odd)).text).toBe('x'.repeat(200));
  });
});

test.each<[string, object, object]>([
  ['usage of the chunk', { usage: { n: 1 } }, { usage: { n: 1 } }],
  ['usage of the choice', { choices: [{ index: 0, delta: { content: 'x' }, usage: { n: 1 } }] }, { usage: { n: 1 } }],
  [
    'the filter of Azure',
    { choices: [{ index: 0, delta: { content: 'x' }, content_filter_results: { hate: 1 } }] },
    { choices: [{ content_filter_results: { hate: 1 } }] },
  ],
  ['a field beside an empty text', { choices: [{ index: 0, delta: { content: '' } }], x: 1 }, { x: 1 }],
  [
    'a field beside an empty text and a call',
    { choices: [{ index: 0, delta: { content: '', tool_calls: [{ index: 0, function: { arguments: '1' } }] } }], x: 1 },
    { x: 1 },
  ],
])('%s is found on any chunk', (_, odd, found) => {
  const opener = { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: 'a', function: { name: 'f' } }] } }] };
  const stream = [opener, ...Array.from({ length: 30 }, (_, i) => ({ ...text('x'), ...(i === 20 && odd) }))];
  expect(run(stream).finish()).toMatchObject(found);
  expect(run(stream).text).toMatch(/^x{29,30}$/);
});

test('resumed without choice 0, the first that came is still the main one', () => {
  const resumed = ChatAccumulator.fromJSON(JSON.parse(JSON.stringify(run([text('b', 2)]))));
  expect(resumed.text).toBe('b');
});

test('a whole message counts as long as no delta brings the same', () => {
  const accumulator = run([{ choices: [{ index: 0, message: { content: 'a' } }] }]);
  expect(accumulator.snapshot().choices[0]?.message.content).toBe('a');
  accumulator.push(text('b'));
  expect(accumulator.finish().choices[0]?.message.content).toBe('b');
  expect(run([{ choices: [{ index: 0, message: { content: 'a' } }] }]).finish().choices[0]?.message.content).toBe('a');
});

describe('for tracing', () => {
  const traced = (delta: object): unknown => run([{ choices: [{ index: 0, delta }] }]).finalizeMessage()?.message;
  test.each([
    ['text', { content: 'a\ud800' }, { role: 'assistant', content: 'a\ufffd', refusal: null }],
    ['a refusal', { refusal: 'no' }, { role: 'assistant', content: null, refusal: 'no' }],
    [
      'calls',
      { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{' } }] },
      {
        role: 'assistant',
        content: null,
        refusal: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{' } }],
      },
    ],
    ['nothing', { role: 'assistant', reasoning: 'x' }, undefined],
  ])('%s', (_, delta, message) => {
    expect(traced(delta)).toEqual(message);
  });
});

test('a custom call is run with its text', () => {
  const entry = { index: 0, id: 'a', type: 'custom', custom: { name: 'p', input: '{"x":1}' } };
  expect(run([{ choices: [{ index: 0, delta: { tool_calls: [entry] } }] }]).finalizeToolCalls()).toStrictEqual([
    { id: 'a', type: 'custom', name: 'p', arguments: '{"x":1}' },
  ]);
});

test('other choices derive other ids', () => {
  const calls = [{ function: { name: 'f', arguments: '{}' } }];
  const ids = (id: string): string[] => {
    const accumulator = run([0, 1].map((index) => ({ id, choices: [{ index, delta: { tool_calls: calls } }] })));
    return accumulator.choices.flatMap(({ toolCalls }) => toolCalls.map((call) => call.id));
  };
  expect(ids('r')).toEqual([deriveId('call_', 'r', 0, 'f', 0), deriveId('call_', 'r#1', 0, 'f', 0)]);
  expect(new Set([...ids('r'), ...ids('s')]).size).toBe(4);
});

test('limits hold, also after JSON', () => {
  const call = (index: number, args = '{}'): object => ({
    choices: [{ index: 0, delta: { tool_calls: [{ index, id: `${index}`, function: { name: 'f', arguments: args } }] } }],
  });
  const first = run([call(0)], { maxCalls: 1, maxCharacters: 10 });
  expect(() => first.push(call(1))).toThrow('more than 1 tool calls in one message');
  const resumed = ChatAccumulator.fromJSON(JSON.parse(JSON.stringify(run([call(0)]))), { maxCalls: 1, maxCharacters: 4 });
  expect(() => resumed.push(call(1))).toThrow('more than 1 tool calls in one message');
  resumed.push({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '  ' } }] } }] });
  expect(() =>
    resumed.push({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: ' ' } }] } }] }),
  ).toThrow('more than 4 characters of tool arguments');
});

test.each([
  ['of the chunk', { usage: { n: 1 }, x_groq: { usage: { n: 2 } } }, { n: 1 }],
  ['of a choice', { usage: null, choices: [null, { usage: 1 }, { usage: { n: 3 } }], x_groq: { usage: { n: 2 } } }, { n: 3 }],
  ['of Groq', { choices: [{}], x_groq: { usage: { n: 2 } } }, { n: 2 }],
  ['of nobody', { usage: 1, choices: 'x', x_groq: { usage: 3 } }, undefined],
  ['of nobody at all', {}, undefined],
])('usage %s', (_, chunk, usage) => {
  expect(readUsage(chunk)).toEqual(usage);
});

test.each([
  [{ name: 'f' }, true],
  [{ arguments: '{' }, true],
  [{ name: '', arguments: '' }, false],
  [{}, false],
  [null, false],
  ['f', false],
])('the deprecated call %j is one: %s', (call, isCall) => {
  expect(readLegacyCall(call)).toBe(isCall ? call : undefined);
});

test('a list of distinct values reports whether a value was new', () => {
  const list = new DistinctList();
  const deep: Record<string, unknown> = {};
  deep['in'] = deep;
  expect([1, { a: 1 }, { a: 1 }, 1, '1', deep, deep].map((value) => list.add(value))).toEqual([
    true,
    true,
    false,
    false,
    true,
    true,
    true,
  ]);
  expect(list.items.slice(0, 3)).toEqual([1, { a: 1 }, '1']);
});

test('nested thoughts are dropped at any depth', () => {
  let part: object = { type: 'thinking', thinking: 'a' };
  for (let level = 0; level < 50_000; level++) part = { type: 'thinking', thinking: [part, 'b'] };
  expect(readContentParts([part])).toEqual({ text: '', thinking: 'b', images: [], other: [] });
});

test('details whose type cannot be written are one', () => {
  const type: Record<string, unknown> = {};
  type['in'] = type;
  const accumulator = run(['a', 'b'].map((part) => ({ choices: [{ delta: { reasoning_details: [{ type, text: part }] } }] })));
  expect(accumulator.reasoningDetails.map((entry) => entry['text'])).toEqual(['ab']);
});

test('parts without anything', () => {
  expect(readContentParts([])).toEqual({ text: '', thinking: '', images: [], other: [] });
});

test('lone surrogates, also where the runtime does not help', () => {
  const rows = [
    ['a\ud800b', 'a\ufffdb'],
    ['\udc00', '\ufffd'],
    ['😀', '😀'],
  ];
  for (const [input = '', output] of rows) expect(wellFormed(input)).toBe(output);
  const own = Object.getOwnPropertyDescriptor(String.prototype, 'isWellFormed');
  try {
    Object.defineProperty(String.prototype, 'isWellFormed', { value: undefined, configurable: true });
    for (const [input = '', output] of rows) expect(wellFormed(input)).toBe(output);
  } finally {
    if (own) Object.defineProperty(String.prototype, 'isWellFormed', own);
  }
});
