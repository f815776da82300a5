import { describe, expect, test } from 'vitest';
import { readCases } from '../../../../test/corpus.ts';
import { ChatAccumulator, createAccumulator, splitThink } from '../../src/accumulate/index.ts';

const chunk = (delta: object, more: object = {}): object => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 7,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: null, ...more }],
});
const run = (...chunks: unknown[]): ChatAccumulator => {
  const accumulator = createAccumulator();
  accumulator.pushAll(chunks);
  return accumulator;
};

/** The payloads of a case, as a program would push them. */
const payloadsOf = (raw: string): unknown[] =>
  raw
    .split(/\r?\n\r?\n/)
    .flatMap((block) => block.split(/\r?\n/).filter((line) => /^data: ?\{/.test(line)))
    .map((line) => JSON.parse(line.replace(/^data: ?/, '')));

const chatCases = readCases().filter(
  ({ id, protocol, expected }) =>
    protocol === 'openai-chat' && /^(tc|content|reasoning|choices|finish)-/.test(id) && !expected.error,
);

describe.each(chatCases)('case $id', ({ raw, expected }) => {
  const chunks = payloadsOf(raw);

  test('can be read while it comes and as a whole', () => {
    const accumulator = run(...chunks);
    expect(accumulator.text).toBe(expected.text);
    expect(accumulator.toolCalls).toMatchObject(expected.tool_calls.map(({ name }) => ({ name })));
    const message = accumulator.finish().choices[0]?.message;
    expect(message?.content ?? '').toBe(expected.text);
  });

  test('can be resumed from JSON at every chunk', () => {
    const whole = run(...chunks).finish();
    for (let cut = 0; cut <= chunks.length; cut++) {
      const resumed = ChatAccumulator.fromJSON(JSON.parse(JSON.stringify(run(...chunks.slice(0, cut)))));
      resumed.pushAll(chunks.slice(cut));
      expect(resumed.finish()).toEqual(whole);
    }
  });
});

test('everything can be read at any time', () => {
  const accumulator = run(
    chunk({ role: 'assistant', content: 'He', reasoning_content: 'hm' }),
    chunk({ content: 'llo' }, { logprobs: { content: [{ token: 'llo', logprob: -1 }] } }),
  );
  expect(accumulator).toMatchObject({
    id: 'c1',
    model: 'm',
    text: 'Hello',
    reasoning: 'hm',
    refusal: null,
    toolCalls: [],
    usage: null,
    finishReason: null,
    reasoningDetails: [],
  });
  expect(accumulator.logprobs).toMatchObject({ content: [{ token: 'llo' }] });
  expect(accumulator.choices.map(({ index, text }) => ({ index, text }))).toEqual([{ index: 0, text: 'Hello' }]);
  expect(accumulator.snapshot()).toMatchObject({
    object: 'chat.completion',
    created: 7,
    choices: [{ message: { content: 'Hello' }, finish_reason: null }],
  });
});

test('fields outside the standard survive at every level', () => {
  const completion = run(
    {
      ...chunk(
        { content: 'a', channel: 'final', provider_metadata: { x: 1 } },
        { native_finish_reason: null, filter: { hate: 1 } },
      ),
      provider: 'P',
      x: { a: 1 },
    },
    {
      ...chunk({ content: 'b', provider_metadata: { y: 2 } }, { native_finish_reason: 'STOP', finish_reason: 'stop' }),
      x: { b: 2 },
      system_fingerprint: 'fp',
    },
  ).finish();
  expect(completion).toMatchObject({ provider: 'P', x: { a: 1, b: 2 }, system_fingerprint: 'fp' });
  expect(completion.choices[0]).toMatchObject({
    native_finish_reason: 'STOP',
    filter: { hate: 1 },
    message: { content: 'ab', channel: 'final', provider_metadata: { x: 1, y: 2 } },
  });
});

test('a field on a single chunk of a long stream is always found inside the delta, and around it when asked', () => {
  const odd = { ...chunk({ content: 'x', inner: 1 }), outer: 1 };
  const stream = Array.from({ length: 500 }, (_, i) => (i === 301 ? odd : chunk({ content: 'x' })));
  expect(run(...stream).finish().choices[0]?.message).toMatchObject({ inner: 1 });
  const exact = createAccumulator({ everyField: true });
  exact.pushAll(stream);
  expect(exact.finish()).toMatchObject({ outer: 1, choices: [{ message: { inner: 1 } }] });
});

describe('the two finalizers', () => {
  const calls = (args: string, more: object = {}): object =>
    chunk(
      {
        content: 'T',
        reasoning: 'R',
        tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: args }, ...more }],
      },
      { finish_reason: 'stop' },
    );

  test.each([
    ['decoded when they are JSON', calls('{"x":[1]}'), { arguments: { x: [1] } }],
    ['raw and flagged when they are not', calls('{"x":'), { arguments: '{"x":', invalid: true }],
    ['with the provider-executed flag', calls('{}', { builtin: true }), { arguments: {}, providerExecuted: true }],
  ])('arguments %s', (_, input, expected) => {
    expect(run(input).finalizeToolCalls()).toEqual([{ id: 'a', type: 'function', name: 'f', ...expected }]);
  });

  test('a message for tracing: no reasoning, the raw finish reason, null when empty', () => {
    expect(run(calls('{}')).finalizeMessage()).toEqual({
      message: {
        role: 'assistant',
        content: 'T',
        refusal: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      finish_reason: 'stop',
    });
    expect(run(chunk({ role: 'assistant', content: '' })).finalizeMessage()).toBeNull();
    expect(run().finalizeMessage()).toBeNull();
  });
});

test.each([
  ['none', 'plain text', null],
  ['whole', '<think>a</think>b', { reasoning: 'a', text: 'b' }],
  ['closing only', 'a\n</think>\n\nb', { reasoning: 'a\n', text: '\n\nb' }],
  ['never closed', '<think>a', { reasoning: 'a', text: '' }],
  ['twice', 'x<think>a</think>y<thinking>b</thinking>z', { reasoning: 'ab', text: 'xyz' }],
  ['a stray closing tag', '<think>a</think>b</think>c', { reasoning: 'a', text: 'b</think>c' }],
  ['an opener inside', '<think>a<think>b</think>c', { reasoning: 'a<think>b', text: 'c' }],
])('think tags: %s', (_, text, expected) => {
  expect(splitThink(text)).toEqual(expected);
});
