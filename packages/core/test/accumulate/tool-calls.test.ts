import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deriveId } from '../../src/accumulate/argument-text.ts';
import { ToolCallAssembler } from '../../src/accumulate/index.ts';

type Entry = Record<string, unknown>;
interface Row {
  name: string;
  /** The `tool_calls` list of each chunk. */
  chunks: Entry[][];
  calls: { id?: string; name: string; arguments: string }[];
}

const f = (name?: unknown, args?: unknown): Entry => ({
  ...(name !== undefined && { name }),
  ...(args !== undefined && { arguments: args }),
});

/** One row a branch of the identity rule (docs/tool-call-identity.md); the numbers are those of the rule. */
const ROWS: Row[] = [
  {
    name: '1 known id continues its call',
    chunks: [
      [{ id: 'a', function: f('f', '') }],
      [{ id: 'b', function: f('g', '') }],
      [{ id: 'a', function: f(undefined, '{"x":1}') }],
      [{ id: 'b', function: f(undefined, '{}') }],
    ],
    calls: [
      { id: 'a', name: 'f', arguments: '{"x":1}' },
      { id: 'b', name: 'g', arguments: '{}' },
    ],
  },
  {
    name: '1 known id on another index with a name is another call',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{"x":1}') }], [{ index: 1, id: 'a', function: f('f', '{"x":2}') }]],
    calls: [
      { id: 'a', name: 'f', arguments: '{"x":1}' },
      { name: 'f', arguments: '{"x":2}' },
    ],
  },
  {
    name: '1 fragments of two calls with one id go by index',
    chunks: [
      [{ index: 0, id: 'a', function: f('f', '{"x"') }],
      [{ index: 1, id: 'a', function: f('f', '{"y"') }],
      [{ index: 0, id: 'a', function: f(undefined, ':1}') }],
      [{ index: 1, id: 'a', function: f(undefined, ':2}') }],
    ],
    calls: [
      { id: 'a', name: 'f', arguments: '{"x":1}' },
      { name: 'f', arguments: '{"y":2}' },
    ],
  },
  {
    name: '1 known id with another name after a closed document is another call',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{}') }], [{ index: 0, id: 'a', function: f('g', '{"y":2}') }]],
    calls: [
      { id: 'a', name: 'f', arguments: '{}' },
      { name: 'g', arguments: '{"y":2}' },
    ],
  },
  {
    name: '6 entries of one chunk with other names and whole arguments are two calls, whatever their id',
    chunks: [
      [
        { id: 'a', function: f('f', '{}') },
        { id: 'a', function: f('g', '{}') },
      ],
    ],
    calls: [
      { id: 'a', name: 'f', arguments: '{}' },
      { name: 'g', arguments: '{}' },
    ],
  },
  {
    name: '6 entries of one chunk with one index, other names and whole arguments are two calls',
    chunks: [
      [
        { index: 0, function: f('f', '{"x":1}') },
        { index: 0, function: f('fg', '{"x":1}') },
      ],
    ],
    calls: [
      { name: 'f', arguments: '{"x":1}' },
      { name: 'fg', arguments: '{"x":1}' },
    ],
  },
  {
    name: '2 an id that changes within a call stays in the call',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{"x"') }], [{ index: 0, id: 'b', function: f(undefined, ':1}') }]],
    calls: [{ id: 'a', name: 'f', arguments: '{"x":1}' }],
  },
  {
    name: '2 a reused index with a new id and a name is another call',
    chunks: [
      [{ index: 0, id: 'a', function: f('f', '') }],
      [{ index: 0, function: f(undefined, '{"x":1}') }],
      [{ index: 0, id: 'b', function: f('f', '') }],
      [{ index: 0, function: f(undefined, '{"x":2}') }],
    ],
    calls: [
      { id: 'a', name: 'f', arguments: '{"x":1}' },
      { id: 'b', name: 'f', arguments: '{"x":2}' },
    ],
  },
  {
    name: '2 a late id that repeats the name belongs to the call',
    chunks: [
      [{ index: 0, function: f('f', '') }],
      [{ index: 0, id: 'a', function: f('f') }],
      [{ index: 0, function: f(undefined, '{"x":1}') }],
    ],
    calls: [{ id: 'a', name: 'f', arguments: '{"x":1}' }],
  },
  {
    name: '2 a second id on a call with nothing to say is another call without arguments',
    chunks: [[{ index: 0, id: 'a', function: f('f', '') }], [{ index: 0, id: 'b', function: f('f', '') }]],
    calls: [
      { id: 'a', name: 'f', arguments: '{}' },
      { id: 'b', name: 'f', arguments: '{}' },
    ],
  },
  {
    name: '3 an unstable id without an index continues the open call',
    chunks: [
      [{ id: '1', function: f('f', '') }],
      [{ id: '2', function: f(undefined, '{"x"') }],
      [{ id: '3', function: f(undefined, ':1}') }],
    ],
    calls: [{ id: '1', name: 'f', arguments: '{"x":1}' }],
  },
  {
    name: '3 an id after a closed document opens a call',
    chunks: [
      [{ id: '1', function: f('f', '{}') }],
      [{ id: '2', function: f(undefined, '{"x":1}') }],
      [{ id: '2', function: f('g') }],
    ],
    calls: [
      { id: '1', name: 'f', arguments: '{}' },
      { id: '2', name: 'g', arguments: '{"x":1}' },
    ],
  },
  {
    name: '4 index 0 for everything: a name after a closed document opens a call',
    chunks: [
      [{ index: 0, function: f('f', '{"x":1}') }],
      [{ index: 0, function: f('g', '{"y":2}') }],
      [{ index: 0, function: f('g', '{"y":3}') }],
    ],
    calls: [
      { name: 'f', arguments: '{"x":1}' },
      { name: 'g', arguments: '{"y":2}' },
      { name: 'g', arguments: '{"y":3}' },
    ],
  },
  {
    name: '4 the same call said again is one call, whatever the order of its keys',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{"x":1,"y":2}') }], [{ index: 0, function: f('f', '{"y":2, "x":1}') }]],
    calls: [{ id: 'a', name: 'f', arguments: '{"x":1,"y":2}' }],
  },
  {
    name: '4 a repeated name within an open document is one call',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{"x"') }], [{ index: 0, function: f('f', ':1}') }]],
    calls: [{ id: 'a', name: 'f', arguments: '{"x":1}' }],
  },
  {
    name: '5 a drifting index continues the open call',
    chunks: [
      [{ index: 0, id: 'a', function: f('f', '{"x"') }],
      [{ index: 1, function: f(undefined, ':') }],
      [{ index: 2, function: f(undefined, '1}') }],
    ],
    calls: [{ id: 'a', name: 'f', arguments: '{"x":1}' }],
  },
  {
    name: '5 a new index after a closed document is a call whose arguments came first',
    chunks: [
      [{ index: 0, id: 'a', function: f('f', '{}') }],
      [{ index: 1, function: f(undefined, '{"x":1}') }],
      [{ index: 1, id: 'b', function: f('g') }],
    ],
    calls: [
      { id: 'a', name: 'f', arguments: '{}' },
      { id: 'b', name: 'g', arguments: '{"x":1}' },
    ],
  },
  {
    name: '6 anonymous entries go by position in the batch',
    chunks: [
      [{ function: f('f', '{"x"') }, { function: f('g', '{"y"') }],
      [{ function: f(undefined, ':1}') }, { function: f(undefined, ':2}') }],
    ],
    calls: [
      { name: 'f', arguments: '{"x":1}' },
      { name: 'g', arguments: '{"y":2}' },
    ],
  },
  {
    name: '6 a second batch of named calls is new',
    chunks: [
      [{ function: f('f', '{}') }, { function: f('g', '{}') }],
      [{ function: f('h', '{}') }, { function: f('i', '{}') }],
    ],
    calls: ['f', 'g', 'h', 'i'].map((name) => ({ name, arguments: '{}' })),
  },
  {
    name: '7 only a name: the open call of that name, or a new one',
    chunks: [
      [{ function: f('f', '{"x"') }],
      [{ function: f('f', ':1}') }],
      [{ function: f('f', '{"x":2}') }],
      [{ function: f('g', '{}') }],
    ],
    calls: [
      { name: 'f', arguments: '{"x":1}' },
      { name: 'f', arguments: '{"x":2}' },
      { name: 'g', arguments: '{}' },
    ],
  },
  {
    name: '8 nothing at all continues the latest call, or opens a nameless one',
    chunks: [[{ function: f(undefined, '{"x"') }], [{ function: f(undefined, ':1}') }], [{ function: f('f') }]],
    calls: [{ name: 'f', arguments: '{"x":1}' }],
  },
  {
    name: 'seed 002: id "" and name "" on continuations',
    chunks: [
      [{ id: 'call_1', function: f('get_weather', '') }],
      [{ id: '', function: f('', '{"lo') }],
      [{ id: '', function: f('', 'cation":"Tokyo"}') }],
    ],
    calls: [{ id: 'call_1', name: 'get_weather', arguments: '{"location":"Tokyo"}' }],
  },
  {
    name: 'seed 001: no function object, several deltas in a chunk',
    chunks: [
      [
        { index: 0, id: 'a', function: f('f', '') },
        { index: 1, id: 'b', function: f('g', '') },
      ],
      [
        { index: 0, id: '' },
        { index: 1, id: '', function: f(undefined, '{"y":1}') },
      ],
      [{ index: 0, function: f(undefined, '{"x":1}') }],
    ],
    calls: [
      { id: 'a', name: 'f', arguments: '{"x":1}' },
      { id: 'b', name: 'g', arguments: '{"y":1}' },
    ],
  },
  {
    name: 'the calls are ordered by index when every call has its own',
    chunks: [3, 5, -2, 0, 4].map((index) => [{ index, id: `${index}`, function: f('f', '{}') }]),
    calls: ['-2', '0', '3', '4', '5'].map((id) => ({ id, name: 'f', arguments: '{}' })),
  },
  {
    name: 'a tool really named null keeps its name',
    chunks: [[{ index: 0, id: 'a', function: f('null', '{') }], [{ index: 0, id: 'a', function: f(undefined, '}') }]],
    calls: [{ id: 'a', name: 'null', arguments: '{}' }],
  },
  {
    name: 'object arguments: the last snapshot counts',
    chunks: [[{ index: 0, id: 'a', function: f('f', {}) }], [{ index: 0, function: f(undefined, { x: 1 }) }]],
    calls: [{ id: 'a', name: 'f', arguments: '{"x":1}' }],
  },
  {
    name: 'cumulative arguments: the last fragment counts',
    chunks: [
      [{ index: 0, id: 'a', function: f('f', '{"x') }],
      [{ index: 0, function: f(undefined, '{"x":') }],
      [{ index: 0, function: f(undefined, '{"x":1}') }],
    ],
    calls: [{ id: 'a', name: 'f', arguments: '{"x":1}' }],
  },
  {
    name: 'an empty object first, then parallel calls on one index',
    chunks: [
      [{ index: 0, id: 'a', function: f('f', '{}') }],
      [{ index: 0, function: f(undefined, '{"x":1}') }],
      [{ index: 0, id: 'b', function: f('f', '{}') }],
      [{ index: 0, function: f(undefined, '{"x":2}') }],
    ],
    calls: [
      { id: 'a', name: 'f', arguments: '{"x":1}' },
      { id: 'b', name: 'f', arguments: '{"x":2}' },
    ],
  },
];

const run = (chunks: Entry[][]): ToolCallAssembler => {
  const calls = new ToolCallAssembler();
  for (const chunk of chunks) calls.push(chunk);
  return calls;
};

test.each(ROWS)('$name', ({ chunks, calls }) => {
  const found = run(chunks).finish();
  expect(found).toMatchObject(calls);
  expect(found).toHaveLength(calls.length);
  expect(new Set(found.map(({ id }) => id)).size).toBe(found.length);
});

test.each(ROWS)('$name, resumed from JSON at every point', ({ chunks }) => {
  const whole = run(chunks).finish();
  for (let cut = 0; cut <= chunks.length; cut++) {
    const saved = JSON.parse(JSON.stringify(run(chunks.slice(0, cut))));
    const resumed = ToolCallAssembler.fromJSON(saved);
    for (const chunk of chunks.slice(cut)) resumed.push(chunk);
    expect(resumed.finish()).toEqual(whole);
  }
});

describe('11 the list of a whole message has one call for every name', () => {
  const entry = (name: string | undefined, args: string, more: Entry = { id: 'a' }): Entry => ({
    ...more,
    function: f(name, args),
  });
  const read = (tool_calls: Entry[]): unknown[] => {
    const calls = new ToolCallAssembler();
    calls.push({ choices: [{ index: 0, message: { role: 'assistant', tool_calls } }] });
    return calls.finish().map(({ name, arguments: text }) => `${name}(${text})`);
  };

  test.each<[string, Entry[], string[]]>([
    ['one id and the same arguments', [entry('f', '{}'), entry('g', '{}'), entry('h', '{}')], ['f({})', 'g({})', 'h({})']],
    ['the same call twice', [entry('f', '{"x":1}'), entry('f', '{"x":1}')], ['f({"x":1})', 'f({"x":1})']],
    ['one name begins like the other', [entry('f', '{}'), entry('fg', '{}')], ['f({})', 'fg({})']],
    [
      'one index',
      [entry('f', '{"a":1}', { index: 0, id: 'a' }), entry('g', '{"a":1}', { index: 0, id: 'a' })],
      ['f({"a":1})', 'g({"a":1})'],
    ],
    ['no ids', [entry('f', '{}', {}), entry('f', '{}', {})], ['f({})', 'f({})']],
    ['arguments that were cut', [entry('f', '{"a":'), entry('g', '{"b":1}')], ['f({"a":)', 'g({"b":1})']],
    ['pieces without a name', [entry('f', '{"a":'), entry(undefined, '1}'), entry('g', '{}')], ['f({"a":1})', 'g({})']],
  ])('%s', (_, entries, expected) => {
    expect(read(entries)).toEqual(expected);
  });

  test('ids stay unique', () => {
    const calls = new ToolCallAssembler();
    calls.push([entry('f', '{}'), entry('f', '{}')], true);
    const [first, second] = calls.finish();
    expect(first?.id).toBe('a');
    expect(second?.id).not.toBe('a');
  });
});

describe('one call', () => {
  test.each([
    [
      'unknown fields survive',
      { extra_content: { google: { thought_signature: 's' } } },
      { extra: { extra_content: { google: { thought_signature: 's' } } } },
    ],
    [
      'a custom tool keeps its text',
      { type: 'custom', custom: { name: 'p', input: 'not json' } },
      { type: 'custom', name: 'p', arguments: 'not json' },
    ],
    ['a provider-run call is flagged', { type: 'web_search_call' }, { providerExecuted: true }],
    ['a builtin flag is kept', { builtin: true }, { providerExecuted: true }],
    ['invalid arguments are flagged', { function: f('f', '{"x":') }, { arguments: '{"x":', invalid: true }],
    ['a number id is text', { id: 7 }, { id: '7' }],
  ])('%s', (_, entry, expected) => {
    expect(
      run([[{ index: 0, id: 'a', ...(!('custom' in entry) && { function: f('f', '{}') }), ...entry }]]).finish(),
    ).toMatchObject([expected]);
  });

  test.each(['', 'null', 'None', 'undefined', null, {}, [], true])('the id %j is none', (id) => {
    expect(run([[{ index: 0, id, function: f('f', '{}') }]]).finish()[0]?.id).toMatch(/^call_[0-9a-f]{24}$/);
  });

  test.each([true, false])('no arguments, whole: %s', (isWhole) => {
    const [call] = run([[{ index: 0, id: 'a', function: f('f', '') }]]).finish(isWhole);
    expect(call).toMatchObject(isWhole ? { arguments: '{}' } : { arguments: '', invalid: true });
  });

  test.each([[undefined], [null], ['x'], [1], [{}], [[]], [[null]], [[7]], [[[]]], [[null, 1, 'x', []]]])(
    '%j is not a list of deltas',
    (entries) => {
      const calls = new ToolCallAssembler();
      calls.push(entries);
      expect(calls.size).toBe(0);
    },
  );
});

test('the same deltas give the same ids, and other responses other ones', () => {
  const ids = (seed: string): string[] => {
    const calls = new ToolCallAssembler({}, seed);
    calls.push([
      { index: 0, function: f('f', '{}') },
      { index: 1, function: f('f', '{}') },
    ]);
    return calls.finish().map(({ id }) => id);
  };
  expect(ids('r1')).toEqual([deriveId('call_', 'r1', 0, 'f', 0), deriveId('call_', 'r1', 1, 'f', 0)]);
  expect(new Set([...ids('r1'), ...ids('r2')]).size).toBe(4);
});

test('a conforming stream is told apart however it is cut and interleaved', () => {
  const call = fc.record({ name: fc.stringMatching(/^[a-z_]{1,12}$/), value: fc.dictionary(fc.string(), fc.jsonValue()) });
  fc.assert(
    fc.property(fc.array(call, { minLength: 1, maxLength: 5 }), fc.array(fc.nat(), { maxLength: 60 }), (calls, turns) => {
      const texts = calls.map(({ value }) => JSON.stringify(value));
      const rest = [...texts];
      const assembler = new ToolCallAssembler();
      assembler.push(calls.map(({ name }, index) => ({ index, id: `c${index}`, type: 'function', function: f(name, '') })));
      for (const turn of turns) {
        const index = turn % calls.length;
        const size = 1 + (turn % 5);
        assembler.push([{ index, function: f(undefined, rest[index]?.slice(0, size)) }]);
        rest[index] = rest[index]?.slice(size) ?? '';
      }
      for (const [index, text] of rest.entries()) assembler.push([{ index, function: f(undefined, text) }]);
      expect(assembler.finish()).toMatchObject(
        calls.map(({ name }, index) => ({ id: `c${index}`, name, arguments: texts[index] })),
      );
    }),
  );
});
