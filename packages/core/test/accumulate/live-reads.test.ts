import { describe, expect, test } from 'vitest';
import { createAccumulator, ToolCallAssembler } from '../../src/accumulate/index.ts';

const CALL = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } };
const WHOLE = {
  id: 'c',
  model: 'm',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'hi', refusal: null, reasoning_content: 'why', tool_calls: [CALL] } },
  ],
};

describe('a whole message in place of deltas', () => {
  const accumulator = createAccumulator();
  accumulator.push(WHOLE);

  test.each<[string, unknown, unknown]>([
    ['text', accumulator.text, 'hi'],
    ['reasoning', accumulator.reasoning, 'why'],
    ['toolCalls', accumulator.toolCalls, [{ id: 'a', name: 'f', arguments: '{"x":1}' }]],
    ['finalizeToolCalls', accumulator.finalizeToolCalls(), [{ id: 'a', name: 'f', arguments: { x: 1 } }]],
    ['finalizeMessage', accumulator.finalizeMessage(), { message: { content: 'hi', tool_calls: [CALL] } }],
    ['choices', accumulator.choices.map(({ text }) => text), ['hi']],
    ['snapshot', accumulator.snapshot(), { choices: [{ message: { content: 'hi' } }] }],
  ])('%s shows it before finish()', (_, found, expected) => {
    expect({ found }).toMatchObject({ found: expected });
  });

  test('reading it changes nothing: deltas that follow win', () => {
    const late = createAccumulator();
    late.push(WHOLE);
    expect(late.text).toBe('hi');
    expect(late.finish().choices[0]?.message.content).toBe('hi');
    late.push({ choices: [{ index: 0, delta: { content: 'other' } }] });
    expect(late.text).toBe('other');
    expect(late.toolCalls).toHaveLength(1);
    expect(late.finish().choices[0]?.message.content).toBe('other');
  });
});

describe('what was returned does not change', () => {
  const first = {
    id: 'c',
    model: 'm',
    meta: { a: { b: 1 } },
    usage: { n: 1, details: { cached: 0 } },
    choices: [
      {
        index: 0,
        logprobs: { content: [{ token: 'a' }] },
        seen: { x: { y: 1 } },
        delta: {
          content: 'a',
          reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'r' }],
          annotations: [{ type: 'url_citation', n: 1 }],
          images: [{ type: 'image_url', image_url: { url: 'u' } }],
          audio: { id: 'au', data: 'AA' },
          odd: { p: { q: 1 } },
          content_parts: [1],
          tool_calls: [{ index: 0, id: 'a', extra_content: { k: { v: 1 } }, function: { name: 'f', arguments: '{' } }],
        },
      },
    ],
  };
  const second = {
    meta: { a: { b: 2 } },
    usage: { n: 2, details: { cached: 5 } },
    choices: [
      {
        index: 0,
        logprobs: { content: [{ token: 'b' }] },
        seen: { x: { y: 2 } },
        finish_reason: 'tool_calls',
        delta: {
          content: 'b',
          reasoning_details: [{ type: 'reasoning.text', index: 0, text: 's' }],
          annotations: [{ type: 'url_citation', n: 2 }],
          images: [{ type: 'image_url', image_url: { url: 'v' } }],
          audio: { data: 'BB' },
          odd: { p: { q: 2 } },
          tool_calls: [{ index: 0, extra_content: { k: { v: 2 } }, function: { arguments: '}' } }],
        },
      },
    ],
  };

  test.each(['snapshot', 'finish'] as const)('%s()', (method) => {
    const accumulator = createAccumulator();
    accumulator.push(first);
    const [before, calls] = [accumulator[method](), accumulator.toolCalls];
    const copy = structuredClone({ before, calls });
    accumulator.push(second);
    expect({ before, calls }).toEqual(copy);
    expect(accumulator.finish()).not.toEqual(before);
  });
});

const delta = (text: string): object => ({ index: 0, id: 'a', function: { name: 'f', arguments: text } });

test.each<[string, unknown]>([
  ['one delta', delta('{}')],
  ['a list of deltas', [delta('{}')]],
  ['a chunk', { choices: [{ index: 0, delta: { tool_calls: [delta('{}')] } }] }],
  ['a choice', { index: 0, delta: { tool_calls: [delta('{}')] } }],
  ['the delta of a choice', { content: null, tool_calls: [delta('{}')] }],
  ['a chunk whose tool_calls is one object', { choices: [{ index: 0, delta: { tool_calls: delta('{}') } }] }],
  ['a whole completion', { choices: [{ index: 0, message: { tool_calls: [delta('{}')] } }] }],
  ['one delta with nothing but a name', { function: { name: 'f' } }],
])('ToolCallAssembler.push takes %s', (_, input) => {
  const calls = new ToolCallAssembler();
  calls.push(input);
  expect(calls.finish()).toMatchObject([{ name: 'f', arguments: '{}' }]);
});

test.each<[unknown]>([
  [{ choices: [] }],
  [{ choices: [{ index: 0, delta: {} }] }],
  [{ choices: [{ delta: { content: 'a' } }] }],
  [{ x: 1 }],
  [{ id: 'c', usage: {} }],
  [{ choices: [{ index: 0, finish_reason: 'stop' }] }],
])('ToolCallAssembler.push ignores %j', (input) => {
  const calls = new ToolCallAssembler();
  calls.push(input);
  expect(calls.size).toBe(0);
});
