import { describe, expect, test } from 'vitest';
import { createAccumulator, mergeDelta, ToolCallAssembler } from '../../src/accumulate/index.ts';

// The four documents that the project began with, function by function, branch by branch and test by test. Where Sluice differs, `deviation`
// says what it does in place of the document, and why.

type Json = Record<string, unknown>;

interface Row {
  /** The function, branch or test of the document. */
  item: string;
  run: () => unknown;
  expected: unknown;
  deviation?: string;
}

const check = ({ run, expected }: Row): void => {
  expect(run()).toEqual(expected);
};

describe('000: accumulate_delta, deep merge of deltas', () => {
  const merge = (accumulated: Json, delta: Json) => (): unknown => mergeDelta(accumulated, delta);
  const rows: Row[] = [
    { item: 'an empty delta changes nothing', run: merge({ a: 1 }, {}), expected: { a: 1 } },
    { item: 'the first delta is taken as it is', run: merge({}, { a: 1, b: 'x' }), expected: { a: 1, b: 'x' } },
    { item: 'a new key is set', run: merge({ a: 'x' }, { b: 'y' }), expected: { a: 'x', b: 'y' } },
    { item: 'strings are concatenated', run: merge({ content: 'Hel' }, { content: 'lo' }), expected: { content: 'Hello' } },
    { item: 'numbers are added', run: merge({ tokens: 1 }, { tokens: 2.5 }), expected: { tokens: 3.5 } },
    {
      item: 'dictionaries are merged recursively',
      run: merge({ f: { arguments: '{', n: 1 } }, { f: { arguments: '}', n: 1 } }),
      expected: { f: { arguments: '{}', n: 2 } },
    },
    { item: 'primitive lists are extended', run: merge({ l: [1] }, { l: [2, 3] }), expected: { l: [1, 2, 3] } },
    {
      item: 'object lists are merged by index',
      run: merge(
        { l: [{ index: 0, t: 'a' }] },
        {
          l: [
            { index: 1, t: 'b' },
            { index: 0, t: 'c' },
          ],
        },
      ),
      expected: {
        l: [
          { index: 0, t: 'ac' },
          { index: 1, t: 'b' },
        ],
      },
    },
    ...(['index', 'type', 'id', 'name', 'call_id'] as const).map(
      (key): Row => ({ item: `${key} is overwritten`, run: merge({ [key]: 'x' }, { [key]: 'x' }), expected: { [key]: 'x' } }),
    ),
    { item: 'an index of 1 is not doubled', run: merge({ index: 1 }, { index: 1 }), expected: { index: 1 } },
    { item: 'other types are overwritten', run: merge({ a: 'x', b: { c: 1 } }, { a: 7, b: 'y' }), expected: { a: 7, b: 'y' } },
    {
      item: 'Codex adapter: id, type and name on every chunk do not grow',
      run: () => {
        let state: Json = {};
        const step = (text: string): Json => ({
          tool_calls: [{ index: 0, id: 'fc_a', type: 'function', function: { name: 'shell', arguments: text } }],
        });
        for (const text of ['{"a"', ':1}']) state = mergeDelta(state, step(text));
        return state;
      },
      expected: { tool_calls: [{ index: 0, id: 'fc_a', type: 'function', function: { name: 'shell', arguments: '{"a":1}' } }] },
    },
    {
      item: 'the input is not mutated',
      run: () => {
        const before = { a: 'x', n: { b: 'y' } };
        mergeDelta(before, { a: 'z', n: { b: 'z' } });
        return before;
      },
      expected: { a: 'x', n: { b: 'y' } },
    },
  ];
  test.each(rows)('$item', check);
});

const assemble = (...chunks: unknown[]): Json[] => {
  const calls = new ToolCallAssembler();
  for (const chunk of chunks) calls.push(chunk);
  return calls.finish().map(({ id, name, arguments: text, extra }) => ({ id, name, arguments: text, ...(extra && { extra }) }));
};
const at = (index: number, id: string | undefined, body?: Json, more: Json = {}): Json => ({
  index,
  ...(id !== undefined && { id }),
  ...(body && { function: body }),
  ...more,
});
const F = { id: 'a', name: 'f', arguments: '{"x":1}' };

describe('001: merge tool-call deltas by index (Spring AI #6381)', () => {
  const rows: Row[] = [
    {
      item: 'omitted ids on continuations',
      run: () =>
        assemble(
          [at(0, 'a', { name: 'f', arguments: '' })],
          [at(0, undefined, { arguments: '{"x"' })],
          [at(0, undefined, { arguments: ':1}' })],
        ),
      expected: [F],
    },
    {
      item: 'empty ids on continuations',
      run: () =>
        assemble(
          [at(0, 'a', { name: 'f', arguments: '' })],
          [at(0, '', { arguments: '{"x"' })],
          [at(0, '', { arguments: ':1}' })],
        ),
      expected: [F],
    },
    {
      item: 'parallel calls',
      run: () =>
        assemble(
          [at(0, 'a', { name: 'f', arguments: '' })],
          [at(1, 'b', { name: 'g', arguments: '' })],
          [at(0, '', { arguments: '{"x":1}' })],
          [at(1, '', { arguments: '{"y":2}' })],
        ),
      expected: [F, { id: 'b', name: 'g', arguments: '{"y":2}' }],
    },
    {
      item: 'several deltas in one chunk',
      run: () =>
        assemble(
          [at(0, 'a', { name: 'f', arguments: '' }), at(1, 'b', { name: 'g', arguments: '' })],
          [at(0, undefined, { arguments: '{"x":1}' }), at(1, undefined, { arguments: '{"y":2}' })],
        ),
      expected: [F, { id: 'b', name: 'g', arguments: '{"y":2}' }],
    },
    {
      item: '#6365: additional properties of a call are kept',
      run: () => assemble([at(0, 'a', { name: 'f', arguments: '{"x":1}' }, { extra_content: { k: 1 } })]),
      expected: [{ ...F, extra: { extra_content: { k: 1 } } }],
    },
    {
      item: 'mergeDeltas: a continuation with arguments only, after a delta without a function object',
      run: () => assemble([at(0, 'a')], [at(0, undefined, { name: 'f', arguments: '{"x":1}' })]),
      expected: [F],
    },
    {
      item: 'chunkToChatCompletion: a delta without a function object',
      run: () => assemble([at(0, 'a', { name: 'f', arguments: '{"x":1}' })], [at(0, '')]),
      expected: [F],
    },
    {
      item: 'chunkToChatCompletion: missing id and name',
      run: () => assemble([at(0, undefined, { arguments: '{"x":1}' })]),
      expected: [{ id: expect.stringMatching(/^call_/), name: 'tool_0', arguments: '{"x":1}' }],
      deviation:
        'the document writes empty strings; here the id is derived, so that the call can be answered, and a nameless call is flagged as invalid',
    },
    {
      item: 'chunkToChatCompletion: missing arguments',
      run: () => assemble([at(0, 'a', { name: 'f' })]),
      expected: [{ id: 'a', name: 'f', arguments: '{}' }],
      deviation:
        'the document writes an empty string, on which JSON.parse throws; in a message that was cut the text stays empty and is flagged',
    },
    {
      item: 'the index is required',
      run: () =>
        assemble([{ id: 'a', function: { name: 'f', arguments: '' } }], [{ id: '', function: { arguments: '{"x":1}' } }]),
      expected: [F],
      deviation:
        'the document relies on the index alone; servers leave it out or send 0 for everything, so ids, names and open documents count as well',
    },
    {
      item: 'one index is one call',
      run: () => assemble([at(0, 'a', { name: 'f', arguments: '{"x":1}' })], [at(0, 'b', { name: 'g', arguments: '{"y":2}' })]),
      expected: [F, { id: 'b', name: 'g', arguments: '{"y":2}' }],
      deviation: 'the document would join both; a new id with a name after whole arguments is a new call',
    },
  ];
  test.each(rows)('$item', check);
});

describe('002: StreamingToolCallAggregator', () => {
  const delta = (id: string, name: string, text: string): Json => ({ id, function: { name, arguments: text } });
  const rows: Row[] = [
    {
      item: 'a complete single delta',
      run: () => assemble([delta('a', 'f', '{"x":1}')]),
      expected: [F],
    },
    {
      item: 'a sequence of fragments is put together again',
      run: () => assemble([delta('call_1', 'get_weather', '')], [delta('', '', '{"lo')], [delta('', '', 'cation":"Tokyo"}')]),
      expected: [{ id: 'call_1', name: 'get_weather', arguments: '{"location":"Tokyo"}' }],
    },
    {
      item: 'ids are the borders of several calls',
      run: () => assemble([delta('a', 'f', '')], [delta('', '', '{"x":1}')], [delta('b', 'g', '')], [delta('', '', '{"y":2}')]),
      expected: [F, { id: 'b', name: 'g', arguments: '{"y":2}' }],
    },
    {
      item: 'a fragment of the name is appended',
      run: () =>
        assemble(
          [delta('a', 'get_', '')],
          [{ id: '', function: { name: 'weather' } }],
          [{ id: '', function: { arguments: '{"q":1}' } }],
        ),
      expected: [{ id: 'a', name: 'get_weather', arguments: '{"q":1}' }],
    },
    {
      item: 'an orphaned fragment before any call',
      run: () => assemble([delta('', '', '{"x":1}')]),
      expected: [{ id: expect.stringMatching(/^call_/), name: 'tool_0', arguments: '{"x":1}' }],
      deviation:
        'the document drops it; here it is kept as a nameless call that is flagged as invalid, because names can come late',
    },
    { item: 'an empty chunk changes nothing', run: () => assemble([], [delta('a', 'f', '{"x":1}')], []), expected: [F] },
    { item: 'an empty aggregator has no calls', run: () => assemble(), expected: [] },
    {
      item: 'a non-empty id starts a new call',
      run: () =>
        assemble([{ id: 'a', function: { name: 'f', arguments: '{"x"' } }], [{ id: 'a', function: { arguments: ':1}' } }]),
      expected: [F],
      deviation: 'the document starts a call at every id; servers repeat the id on every delta, so a known id continues its call',
    },
    {
      item: 'interleaved calls need an index',
      run: () =>
        assemble(
          [at(0, 'a', { name: 'f', arguments: '{"x"' })],
          [at(1, 'b', { name: 'g', arguments: '{"y"' })],
          [at(0, '', { arguments: ':1}' })],
          [at(1, '', { arguments: ':2}' })],
        ),
      expected: [F, { id: 'b', name: 'g', arguments: '{"y":2}' }],
      deviation: 'a future extension in the document; read here',
    },
  ];
  test.each(rows)('$item', check);
});

describe('003: ReqLLM ChunkAccumulator', () => {
  const chunk = (delta: Json, more: Json = {}, finish: string | null = null): Json => ({
    id: 'c',
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finish, ...more }],
  });
  const CALL = { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":' } }] };
  const REST = { tool_calls: [{ index: 0, function: { arguments: '1}' } }] };
  const after = (...chunks: Json[]) => {
    const accumulator = createAccumulator();
    for (const one of chunks) accumulator.push(one);
    return accumulator;
  };
  const rows: Row[] = [
    {
      item: 'new/0: an empty accumulator',
      run: () => [after().text, after().toolCalls, after().finishReason],
      expected: ['', [], null],
    },
    {
      item: 'push/2 and finalize_text/1',
      run: () => after(chunk({ content: 'a' }), chunk({ content: 'b' })).text,
      expected: 'ab',
    },
    {
      item: 'reduce/2 is push/2 over a list',
      run: () => {
        const accumulator = createAccumulator();
        accumulator.pushAll([chunk({ content: 'a' }), chunk({ content: 'b' })]);
        return accumulator.text;
      },
      expected: 'ab',
    },
    {
      item: 'finalize_thinking/1',
      run: () => after(chunk({ reasoning_content: 'a' }), chunk({ reasoning_content: 'b' })).reasoning,
      expected: 'ab',
    },
    { item: 'finalize_finish_reason/1: the raw value', run: () => after(chunk({}, {}, 'odd')).finishReason, expected: 'odd' },
    {
      item: 'finalize_finish_reason/1: the most recently observed',
      run: () => after(chunk({}, {}, 'tool_calls'), chunk({}, {}, 'stop')).finishReason,
      expected: 'tool_calls',
      deviation:
        'the document takes the last one; servers say "stop" again after the real reason, so a stronger reason is never weakened',
    },
    {
      item: 'finalize_finish_reason/1: null without one',
      run: () => after(chunk({ content: 'a' })).finishReason,
      expected: null,
    },
    {
      item: 'finalize_logprobs/1: tokens in the order of arrival',
      run: () =>
        after(
          chunk({ content: 'a' }, { logprobs: { content: [{ token: 'a' }] } }),
          chunk({ content: 'b' }, { logprobs: { content: [{ token: 'b' }] } }),
        ).logprobs,
      expected: { content: [{ token: 'a' }, { token: 'b' }], refusal: null },
    },
    {
      item: 'finalize_reasoning_details/1: in the order of arrival',
      run: () =>
        after(chunk({ reasoning_details: [{ type: 'a', index: 0 }] }), chunk({ reasoning_details: [{ type: 'b', index: 1 }] }))
          .reasoningDetails,
      expected: [
        { type: 'a', index: 0 },
        { type: 'b', index: 1 },
      ],
    },
    {
      item: 'finalize_usage/1: merged',
      run: () => after({ ...chunk({}), usage: { a: 1 } }, { ...chunk({}), usage: { b: 2 } }).usage,
      expected: { a: 1, b: 2 },
    },
    { item: 'finalize_usage/1: null without any', run: () => after(chunk({})).usage, expected: null },
    {
      item: 'finalize_tool_calls_for_response/1: fragments are decoded',
      run: () => after(chunk(CALL), chunk(REST), chunk({}, {}, 'tool_calls')).finalizeToolCalls(),
      expected: [{ id: 'a', type: 'function', name: 'f', arguments: { x: 1 } }],
    },
    {
      item: 'finalize_tool_calls_for_response/1: fragments that do not decode fall back to the raw arguments',
      run: () => after(chunk(CALL)).finalizeToolCalls(),
      expected: [{ id: 'a', type: 'function', name: 'f', arguments: '{"x":', invalid: true }],
      deviation: 'the same text, and flagged: a call with half its arguments must not be run',
    },
    {
      item: 'finalize_tool_calls_for_response/1: arguments that came whole as an object',
      run: () =>
        after(chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: { x: 1 } } }] })).finalizeToolCalls(),
      expected: [{ id: 'a', type: 'function', name: 'f', arguments: { x: 1 } }],
    },
    {
      item: 'finalize_tool_calls_for_response/1: the builtin flag',
      run: () =>
        after(
          chunk({ tool_calls: [{ index: 0, id: 'a', builtin: true, function: { name: 'f', arguments: '{}' } }] }),
        ).finalizeToolCalls(),
      expected: [{ id: 'a', type: 'function', name: 'f', arguments: {}, providerExecuted: true }],
      deviation: 'the flag is called providerExecuted, and is set for types such as web_search_call as well',
    },
    {
      item: 'finalize_message/1: null when there is neither text nor a call',
      run: () => after(chunk({ reasoning_content: 'a' })).finalizeMessage(),
      expected: null,
    },
    {
      item: 'finalize_message/1: text and calls, without the reasoning',
      run: () =>
        after(
          chunk({ content: 'hi', reasoning_content: 'secret' }),
          chunk(CALL),
          chunk(REST),
          chunk({}, {}, 'tool_calls'),
        ).finalizeMessage(),
      expected: {
        message: {
          role: 'assistant',
          content: 'hi',
          refusal: null,
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }],
        },
        finish_reason: 'tool_calls',
      },
      deviation: 'the finish reason stands beside the message',
    },
    {
      item: 'arg_fragments are keyed by index',
      run: () =>
        after(
          chunk({
            tool_calls: [
              { index: 0, id: 'a', function: { name: 'f', arguments: '' } },
              { index: 1, id: 'b', function: { name: 'g', arguments: '' } },
            ],
          }),
          chunk({ tool_calls: [{ index: 1, function: { arguments: '{"y":2}' } }] }),
          chunk({ tool_calls: [{ index: 0, function: { arguments: '{"x":1}' } }] }, {}, 'tool_calls'),
        ).toolCalls.map(({ id, arguments: text }) => [id, text]),
      expected: [
        ['a', '{"x":1}'],
        ['b', '{"y":2}'],
      ],
    },
    {
      item: 'metadata of a call is kept',
      run: () =>
        after(chunk({ tool_calls: [{ index: 0, id: 'a', metadata: { k: 1 }, function: { name: 'f', arguments: '{}' } }] }))
          .toolCalls[0]?.extra,
      expected: { metadata: { k: 1 } },
    },
  ];
  test.each(rows)('$item', check);
});
