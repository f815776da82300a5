import { describe, expect, test } from 'vitest';
import { deriveId } from '../../src/accumulate/argument-text.ts';
import { ToolCallAssembler } from '../../src/accumulate/index.ts';
import { CallTracker, LimitError, readToolCall, type ToolCallLimits } from '../../src/accumulate/tool-calls.ts';

type Entry = Record<string, unknown>;
const json = (text: string): Entry => JSON.parse(text);

const NOTHING = {
  id: undefined,
  index: undefined,
  name: undefined,
  literalName: undefined,
  type: undefined,
  fragment: '',
  snapshot: undefined,
  extra: undefined,
};

describe('one delta', () => {
  test.each<[string, object]>([
    ['{}', {}],
    ['{"id":"a","index":1,"type":"function"}', { id: 'a', index: 1, type: 'function' }],
    ['{"id":7}', { id: '7' }],
    ...['""', '"null"', '"None"', '"undefined"', 'null', 'true', '{}'].map((id): [string, object] => [`{"id":${id}}`, {}]),
    ['{"index":"12"}', { index: 12 }],
    ['{"index":"-1"}', { index: -1 }],
    ['{"index":-1}', { index: -1 }],
    ['{"index":"999999999999999"}', { index: 999999999999999 }],
    ...['1.5', '1e300', '"1.5"', '"x"', '""', '"1x"', '"x1"', '"1234567890123456"', 'null', 'true', '[0]'].map(
      (index): [string, object] => [`{"index":${index}}`, {}],
    ),
    ['{"type":"FUNCTION"}', { type: 'function' }],
    ['{"type":""}', {}],
    ['{"type":7}', {}],
    ['{"function":{"name":"f","arguments":"{}"}}', { name: 'f', fragment: '{}' }],
    ['{"function":{"name":"null"}}', { literalName: 'null' }],
    ...['""', '" "', 'null', '7'].map((name): [string, object] => [`{"function":{"name":${name}}}`, {}]),
    ['{"function":{"arguments":{"a":1}}}', { snapshot: { a: 1 } }],
    ['{"function":{"arguments":[1]}}', { snapshot: [1] }],
    ['{"function":{"arguments":null}}', {}],
    ['{"function":{"arguments":7}}', { fragment: '7' }],
    ['{"function":{"arguments":false}}', { fragment: 'false' }],
    ['{"function":"f"}', {}],
    ['{"custom":{"name":"p","input":"x"}}', { type: 'custom', name: 'p', fragment: 'x' }],
    ['{"type":"function","custom":{"name":"p","input":"x"}}', { type: 'function', name: 'p', fragment: 'x' }],
    ['{"custom":null}', {}],
    ['{"function":{"name":"f","arguments":"{}"},"custom":{"name":"","input":""}}', { type: 'custom', name: 'f', fragment: '{}' }],
    ['{"function":{"name":"","arguments":""},"custom":{"name":"p","input":"x"}}', { type: 'custom', name: 'p', fragment: 'x' }],
    ['{"x":1,"y":null}', { extra: { x: 1 } }],
    ['{"function":{"name":"f","strict":true,"more":1}}', { name: 'f', extra: { function: { strict: true, more: 1 } } }],
    [
      '{"function":{"name":"f","arguments":"{}","strict":true}}',
      { name: 'f', fragment: '{}', extra: { function: { strict: true } } },
    ],
    [
      '{"custom":{"name":"p","input":"x","more":1}}',
      { type: 'custom', name: 'p', fragment: 'x', extra: { custom: { more: 1 } } },
    ],
    ['{"function":{"input":"x"}}', { extra: { function: { input: 'x' } } }],
    ['{"custom":{"arguments":"x"}}', { type: 'custom', extra: { custom: { arguments: 'x' } } }],
    ['{"id":"a","index":0,"type":"t","function":{},"custom":{},"x":1}', { id: 'a', index: 0, type: 't', extra: { x: 1 } }],
  ])('%s', (delta, expected) => {
    const reading = readToolCall(json(delta));
    expect({ ...reading, extra: reading.extra && { ...reading.extra } }).toStrictEqual({ ...NOTHING, ...expected });
  });

  test('undefined is nothing', () => {
    const reading = readToolCall({ index: undefined, function: { name: 'f', arguments: undefined }, custom: undefined });
    expect(reading).toStrictEqual({ ...NOTHING, name: 'f' });
  });

  test('a key that is a trap', () => {
    const { extra } = readToolCall(json('{"__proto__":{"x":1},"function":{"__proto__":{"y":1}}}'));
    expect(JSON.stringify(extra)).toBe('{"function":{"__proto__":{"y":1}},"__proto__":{"x":1}}');
  });
});

const run = (chunks: readonly unknown[], limits?: ToolCallLimits): ToolCallAssembler => {
  const calls = new ToolCallAssembler(limits);
  for (const chunk of chunks) calls.push(chunk);
  return calls;
};
const f = (name: string, text?: unknown): Entry => ({ name, ...(text !== undefined && { arguments: text }) });
const args = (text: unknown): Entry => ({ arguments: text });

interface Row {
  name: string;
  chunks: Entry[][];
  /** Exactly the calls; `id` may be left out where it is derived. */
  calls: object[];
}

const call = (name: string, text: string, more: object = {}): object => ({ type: 'function', name, arguments: text, ...more });

const ROWS: Row[] = [
  {
    name: 'a name in pieces',
    chunks: [
      [{ index: 0, id: 'a', function: f('get_') }],
      [{ index: 0, function: f('weather') }],
      [{ index: 0, function: args('{}') }],
    ],
    calls: [call('get_weather', '{}', { id: 'a', index: 0 })],
  },
  {
    name: 'a name that grows',
    chunks: [[{ index: 0, id: 'a', function: f('get_') }], [{ index: 0, function: f('get_weather', '{}') }]],
    calls: [call('get_weather', '{}', { id: 'a', index: 0 })],
  },
  {
    name: 'no name at all',
    chunks: [[{ index: 0, id: 'a', function: args('{}') }], [{ index: 1, id: 'b', function: args('{}') }]],
    calls: [
      call('tool_0', '{}', { id: 'a', index: 0, invalid: true }),
      call('tool_1', '{}', { id: 'b', index: 1, invalid: true }),
    ],
  },
  {
    name: 'a type of the provider',
    chunks: [[{ index: 0, id: 'a', type: 'web_search_call', function: f('f', '{}') }]],
    calls: [call('f', '{}', { id: 'a', index: 0, providerExecuted: true })],
  },
  {
    name: 'a type of the provider is not taken back',
    chunks: [
      [{ index: 0, id: 'a', type: 'web_search_call', function: f('f', '{"x"') }],
      [{ index: 0, id: 'a', function: args(':') }],
      [{ index: 0, id: 'a', type: 'function', function: args('1}') }],
    ],
    calls: [call('f', '{"x":1}', { id: 'a', index: 0, providerExecuted: true })],
  },
  {
    name: 'a type that nobody knows',
    chunks: [[{ index: 0, id: 'a', type: 'builtin', function: f('f', '{}') }]],
    calls: [call('f', '{}', { id: 'a', index: 0 })],
  },
  ...[{ builtin: true }, { provider_executed: true }].map((flag) => ({
    name: `the flag ${Object.keys(flag)}`,
    chunks: [[{ index: 0, id: 'a', function: f('f', '{}'), ...flag }]],
    calls: [call('f', '{}', { id: 'a', index: 0, providerExecuted: true, extra: flag })],
  })),
  {
    name: 'flags that are not set',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{}'), builtin: false, provider_executed: 'no' }]],
    calls: [call('f', '{}', { id: 'a', index: 0, extra: { builtin: false, provider_executed: 'no' } })],
  },
  {
    name: 'extra fields add up',
    chunks: [
      [{ index: 0, id: 'a', function: f('f', '{"x"'), extra: { p: 1 } }],
      [{ index: 0, function: args(':1}'), extra: { q: 2 } }],
    ],
    calls: [call('f', '{"x":1}', { id: 'a', index: 0, extra: { extra: { p: 1, q: 2 } } })],
  },
  {
    name: 'a custom call keeps an empty text',
    chunks: [[{ index: 0, id: 'a', type: 'custom', custom: { name: 'p', input: '' } }]],
    calls: [{ id: 'a', type: 'custom', name: 'p', arguments: '', index: 0 }],
  },
  {
    name: 'without an index of each the order is that of coming',
    chunks: [
      [{ index: 5, id: 'a', function: f('f', '{}') }],
      [{ id: 'b', function: f('g', '{}') }],
      [{ index: 1, id: 'c', function: f('h', '{}') }],
    ],
    calls: [call('f', '{}', { id: 'a', index: 5 }), call('g', '{}', { id: 'b' }), call('h', '{}', { id: 'c', index: 1 })],
  },
  {
    name: 'with one index for all the order is that of coming',
    chunks: [
      [{ index: 5, id: 'a', function: f('f', '{}') }],
      [{ index: 5, id: 'b', function: f('g', '{}') }],
      [{ index: 1, id: 'c', function: f('h', '{}') }],
    ],
    calls: [
      call('f', '{}', { id: 'a', index: 5 }),
      call('g', '{}', { id: 'b', index: 5 }),
      call('h', '{}', { id: 'c', index: 1 }),
    ],
  },
  {
    name: '1 a known id without a name goes on, whatever its index',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{"x"') }], [{ index: 3, id: 'a', function: args(':1}') }]],
    calls: [call('f', '{"x":1}', { id: 'a', index: 0 })],
  },
  {
    name: '1 a known id with its own name goes on, also after a closed document',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{}') }], [{ index: 0, id: 'a', function: f('f', '{"x":1}') }]],
    calls: [call('f', '{"x":1}', { id: 'a', index: 0 })],
  },
  {
    name: '1 a known id whose name comes late',
    chunks: [[{ id: 'a', function: args('{}') }], [{ id: 'a', function: f('f') }]],
    calls: [call('f', '{}', { id: 'a' })],
  },
  {
    name: '1 a known id with the rest of its name in an open document',
    chunks: [[{ id: 'a', function: f('get_', '') }], [{ id: 'a', function: f('weather', '{}') }]],
    calls: [call('get_weather', '{}', { id: 'a' })],
  },
  {
    name: '1 a known id with an index for the first time',
    chunks: [[{ id: 'a', function: f('f', '{"x"') }], [{ index: 2, id: 'a', function: f('f', ':1}') }]],
    calls: [call('f', '{"x":1}', { id: 'a', index: 2 })],
  },
  {
    name: '1 a known id with its name, without its index',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{"x"') }], [{ id: 'a', function: f('f', ':1}') }]],
    calls: [call('f', '{"x":1}', { id: 'a', index: 0 })],
  },
  {
    name: '2 a new id on a known index without a name yet',
    chunks: [[{ index: 0, id: 'a', function: args('{}') }], [{ index: 0, id: 'b', function: f('f') }]],
    calls: [call('f', '{}', { id: 'a', index: 0 })],
  },
  {
    name: '2 a new id and another name within an open document',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{"x"') }], [{ index: 0, id: 'b', function: f('g', '{}') }]],
    calls: [call('f', '{"x"', { id: 'a', index: 0, invalid: true }), call('g', '{}', { id: 'b', index: 0 })],
  },
  {
    name: '2 a new id, the same name, within an open document',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{"x"') }], [{ index: 0, id: 'b', function: f('f', ':1}') }]],
    calls: [call('f', '{"x":1}', { id: 'a', index: 0 })],
  },
  {
    name: '2 a new id that brings the first arguments, as text or as an object',
    chunks: [
      [{ index: 0, id: 'a', function: f('f', '') }],
      [{ index: 0, id: 'b', function: f('f', '{"x":1}') }],
      [{ index: 1, id: 'c', function: f('g', '') }],
      [{ index: 1, id: 'd', function: f('g', { y: 2 }) }],
    ],
    calls: [call('f', '{"x":1}', { id: 'a', index: 0 }), call('g', '{"y":2}', { id: 'c', index: 1 })],
  },
  {
    name: '3 a new id without index or name, before the first call has a name',
    chunks: [[{ id: 'a', function: args('{"x"') }], [{ id: 'b', function: args('{"y"') }]],
    calls: [call('tool_0', '{"x"', { id: 'a', invalid: true }), call('tool_1', '{"y"', { id: 'b', invalid: true })],
  },
  {
    name: '3 a new id on a new index is another call, name or not',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{"x"') }], [{ index: 1, id: 'b', function: args('{}') }]],
    calls: [call('f', '{"x"', { id: 'a', index: 0, invalid: true }), call('tool_1', '{}', { id: 'b', index: 1, invalid: true })],
  },
  {
    name: '3 a new id with a name is another call',
    chunks: [[{ id: 'a', function: f('f', '{"x"') }], [{ id: 'b', function: f('f', '{}') }]],
    calls: [call('f', '{"x"', { id: 'a', invalid: true }), call('f', '{}', { id: 'b' })],
  },
  {
    name: '4 the same name with nothing to say after a closed document',
    chunks: [
      [{ index: 0, id: 'a', function: f('f', '{"x":1}') }],
      [{ index: 0, function: f('f', ' ') }],
      [{ index: 0, function: f('f', {}) }],
    ],
    calls: [call('f', '{"x":1} ', { id: 'a', index: 0 }), call('f', '{}', { index: 0 })],
  },
  {
    name: '4 said again as an object',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{"x":1}') }], [{ index: 0, function: f('f', { x: 1 }) }]],
    calls: [call('f', '{"x":1}', { id: 'a', index: 0 })],
  },
  {
    name: '4 another name with nothing to say after a closed document',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{"x":1}') }], [{ index: 0, function: f('g', '') }]],
    calls: [call('f', '{"x":1}', { id: 'a', index: 0 }), call('g', '{}', { index: 0 })],
  },
  {
    name: '4 a name that comes late, beside what closed before it',
    chunks: [[{ index: 0, id: 'a', function: args('{"x":1}') }], [{ index: 0, function: f('f', '{"x":1}') }]],
    calls: [call('f', '{"x":1}', { id: 'a', index: 0 })],
  },
  {
    name: '4 nonsense is not said again',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{x}') }], [{ index: 0, function: f('f', '{x}') }]],
    calls: [call('f', '{x}', { id: 'a', index: 0, invalid: true }), call('f', '{x}', { index: 0, invalid: true })],
  },
  {
    name: '5 a new index with a name is another call, also within an open document',
    chunks: [[{ index: 0, id: 'a', function: f('f', '{"x"') }], [{ index: 1, function: f('g', '{}') }]],
    calls: [call('f', '{"x"', { id: 'a', index: 0, invalid: true }), call('g', '{}', { index: 1 })],
  },
  {
    name: '6 a batch of another size is no continuation',
    chunks: [
      [{ function: f('f', '{"x"') }, { function: f('g', '{"y"') }],
      [{ function: args(':') }, { function: args('1') }, { function: args('}') }],
    ],
    calls: [call('f', '{"x"', { invalid: true }), call('g', '{"y":1}')],
  },
  {
    name: '6 single deltas and empty lists between two batches',
    chunks: [
      [{ function: f('f', '{"x"') }, { function: f('g', '{"y"') }],
      [{ function: args(':') }],
      [],
      [{ function: args(':1}') }, { function: args('2}') }],
    ],
    calls: [call('f', '{"x":1}'), call('g', '{"y":2}')],
  },
  {
    name: '6 other names within open documents are other calls',
    chunks: [
      [{ function: f('f', '{"x"') }, { function: f('g', '{"y"') }],
      [{ function: f('h', '{}') }, { function: f('i', '{}') }],
    ],
    calls: [call('f', '{"x"', { invalid: true }), call('g', '{"y"', { invalid: true }), call('h', '{}'), call('i', '{}')],
  },
  {
    name: '6 one other name makes it no continuation',
    chunks: [
      [{ function: f('f', '{"x"') }, { function: f('g', '{"y"') }],
      [{ function: args(':1}') }, { function: f('h', '{}') }],
    ],
    calls: [call('f', '{"x"', { invalid: true }), call('g', '{"y":1}'), call('h', '{}')],
  },
  ...[
    { by: 'ids', one: { id: 'a' }, two: { id: 'b' } },
    { by: 'indexes', one: { index: 0 }, two: { index: 1 } },
  ].map(({ by, one, two }) => ({
    name: `6 a batch in another order goes by its ${by}`,
    chunks: [
      [
        { ...one, function: f('f', '{"x"') },
        { ...two, function: f('g', '{"y"') },
      ],
      [
        { ...two, function: args(':2}') },
        { ...one, function: args(':1}') },
      ],
    ],
    calls: [call('f', '{"x":1}', one), call('g', '{"y":2}', two)],
  })),
  {
    name: '6 a batch with the names again, while the documents are open',
    chunks: [
      [{ function: f('f', '{"x"') }, { function: f('g', '{"y"') }],
      [{ function: f('f', ':1}') }, { function: f('g', ':2}') }],
      [{ function: f('f', '{}') }, { function: f('g', '{}') }],
    ],
    calls: [call('f', '{"x":1}'), call('g', '{"y":2}'), call('f', '{}'), call('g', '{}')],
  },
  {
    name: '6 a batch with ids or indexes goes by those',
    chunks: [
      [{ function: f('f', '{"x"') }, { function: f('g', '{"y"') }],
      [
        { index: 0, id: 'a', function: f('h', '{}') },
        { index: 1, id: 'b', function: f('i', '{}') },
      ],
    ],
    calls: [
      call('f', '{"x"', { invalid: true }),
      call('g', '{"y"', { invalid: true }),
      call('h', '{}', { id: 'a', index: 0 }),
      call('i', '{}', { id: 'b', index: 1 }),
    ],
  },
  {
    name: '7 a name after a nameless call is its name',
    chunks: [[{ function: args('{}') }], [{ function: f('f') }], [{ function: f('g', '{}') }]],
    calls: [call('f', '{}'), call('g', '{}')],
  },
  {
    name: '7 another name within an open document is another call',
    chunks: [[{ function: f('f', '{"x"') }], [{ function: f('g', '{}') }]],
    calls: [call('f', '{"x"', { invalid: true }), call('g', '{}')],
  },
  {
    name: '8 nothing but arguments continue the latest, not the first',
    chunks: [
      [{ id: 'a', function: f('f', '') }],
      [{ id: 'b', function: f('g', '') }],
      [{ id: 'a', function: args('{"x"') }],
      [{ function: args(':1}') }],
    ],
    calls: [call('f', '{"x":1}', { id: 'a' }), call('g', '{}', { id: 'b' })],
  },
  {
    name: '8 plain continuations make a call the latest',
    chunks: [
      [{ index: 0, id: 'a', function: f('f', '') }],
      [{ index: 1, id: 'b', function: f('g', '') }],
      [{ index: 0, function: args('{"x"') }],
      [{ function: args(':1}') }],
    ],
    calls: [call('f', '{"x":1}', { id: 'a', index: 0 }), call('g', '{}', { id: 'b', index: 1 })],
  },
];

describe.each(ROWS)('$name', ({ chunks, calls }) => {
  const found = (assembler: ToolCallAssembler): object[] =>
    assembler.finish().map(({ id, ...rest }, i) => ({
      ...rest,
      ...(calls[i] && 'id' in calls[i] && { id }),
      // Without a prototype, and for toStrictEqual therefore another type.
      ...('extra' in rest && { extra: { ...rest.extra } }),
    }));

  test('the calls, field by field', () => {
    expect(found(run(chunks))).toStrictEqual(calls);
  });

  test('the same when resumed from JSON at any point', () => {
    for (let cut = 0; cut <= chunks.length; cut++) {
      const resumed = ToolCallAssembler.fromJSON(JSON.parse(JSON.stringify(run(chunks.slice(0, cut)))));
      for (const chunk of chunks.slice(cut)) resumed.push(chunk);
      expect(found(resumed)).toStrictEqual(calls);
    }
  });

  test('the same when they are wanted live: what goes out is the text in the end', () => {
    const live = new Map<unknown, string>();
    const tracker = new CallTracker({}, '', (pending, text) => live.set(pending, (live.get(pending) ?? '') + text));
    for (const chunk of chunks) tracker.push(chunk);
    for (const pending of tracker.calls) {
      const { rest, text } = pending.arguments.end();
      expect((live.get(pending) ?? '') + rest).toBe(text);
    }
    expect(tracker.calls.length).toBe(calls.length);
    expect(tracker.calls.map((pending) => tracker.nameOf(pending)).sort()).toEqual(calls.map((one) => Object(one).name).sort());
    expect(tracker.hasClientCall).toBe(calls.some((one) => !('providerExecuted' in one)));
  });
});

test('plain continuations are known as such', () => {
  const calls = run([[{ index: 0, id: 'a', function: f('f', '') }]]);
  const rows: [unknown, boolean][] = [
    [[{ index: 0, function: args('{"x":') }], true],
    [[{ index: 1, function: args('x') }], false],
    [[{ index: '0', function: args('x') }], false],
    [[{ index: 0, id: 'a', function: args('x') }], false],
    [[{ index: 0, function: f('f', 'x') }], false],
    [[{ index: 0, function: args({}) }], false],
    [[{ index: 0, function: null }], false],
    [[{ index: 0, function: 'x' }], false],
    [[{ index: 0 }], false],
    [[null], false],
    [['x'], false],
    [[], false],
    [
      [
        { index: 0, function: args('x') },
        { index: 0, function: args('x') },
      ],
      false,
    ],
    ['x', false],
    [undefined, false],
    [[{ index: 0, function: args('1}') }], true],
  ];
  for (const [entries, isPlain] of rows) expect(calls.continue(entries), JSON.stringify(entries)).toBe(isPlain);
  expect(calls.finish()).toEqual([{ id: 'a', type: 'function', name: 'f', arguments: '{"x":1}', index: 0 }]);
});

describe('limits', () => {
  const opener = (index: number, text = ''): Entry => ({ index, id: `${index}`, function: f('f', text) });

  test('of calls', () => {
    const calls = run([[opener(0)], [opener(1)]], { maxCalls: 2 });
    expect(() => calls.push([opener(2)])).toThrow(new LimitError('more than 2 tool calls in one message'));
  });

  test('of calls by default', () => {
    const tracker = new CallTracker({}, '');
    for (let count = 0; count < 4096; count++) tracker.open();
    expect(() => tracker.open()).toThrow(new LimitError('more than 4096 tool calls in one message'));
    expect(tracker.calls.length).toBe(4096);
  });

  test.each([
    ['in the first delta', 5, [[opener(0, '12345')]]],
    ['in pieces', 5, [[opener(0, '123')], [{ index: 0, function: args('45') }]]],
    ['of several calls', 5, [[opener(0, '123')], [opener(1, '45')]]],
    ['as an object', 7, [[{ index: 0, id: 'a', function: f('f', { a: 1 }) }]]],
  ])('of characters, %s', (_, count, chunks) => {
    expect(run(chunks, { maxCharacters: count }).size).toBeGreaterThan(0);
    expect(() => run(chunks, { maxCharacters: count - 1 })).toThrow(
      new LimitError(`more than ${count - 1} characters of tool arguments`),
    );
  });

  test('of characters by default', () => {
    const most = 64 * 1024 * 1024;
    const calls = run([[opener(0, `"${'x'.repeat(most - 1)}`)]]);
    expect(() => calls.push([{ index: 0, function: args('x') }])).toThrow(`more than ${most} characters`);
  });

  test('of nesting', () => {
    const nested: Entry = {};
    nested['in'] = nested;
    expect(() => run([[{ index: 0, function: f('f', nested) }]])).toThrow(
      new LimitError('arguments nested too deeply to be written as text'),
    );
    expect(new LimitError('x').name).toBe('LimitError');
  });
});

test('a derived id is not one that the wire gave', () => {
  const nameless = [{ function: f('f', '{}') }];
  const [first] = run([nameless]).finish();
  const [derived, given] = run([nameless, [{ id: first?.id, function: f('g', '{}') }]]).finish();
  expect(given?.id).toBe(first?.id);
  expect([first?.id, derived?.id]).toEqual([0, 1].map((salt) => deriveId('call_', '', 0, 'f', salt)));
});

test('the first id is kept', () => {
  const calls = run([[{ function: f('f', '{"x"') }]]);
  const [before] = calls.finish();
  calls.push([{ function: f('f', ':1}') }]);
  expect(calls.finish()).toMatchObject([{ id: before?.id, arguments: '{"x":1}' }]);
  const resumed = ToolCallAssembler.fromJSON(JSON.parse(JSON.stringify(calls)), {}, 'another seed');
  expect(resumed.finish()).toMatchObject([{ id: before?.id }]);
});

test('a saved state that points nowhere is refused', () => {
  const saved = { ...run([[{ index: 0, function: f('f', '{}') }]]).toJSON(), latest: 3 };
  expect(() => ToolCallAssembler.fromJSON(saved)).toThrow(new RangeError('no call at position 3 in the saved state'));
});

test('a state is saved and restored after a piece of a name joined its call within a chunk', () => {
  const calls = new ToolCallAssembler();
  calls.push([{ index: 0, id: 'a', function: { name: 'get_' } }]);
  calls.push([
    { index: 0, id: 'b', function: { name: 'weather' } },
    { index: 0, id: 'c', function: { arguments: '{"q":' } },
  ]);
  const restored = ToolCallAssembler.fromJSON(JSON.parse(JSON.stringify(calls)));
  restored.push([{ index: 0, id: 'd', function: { arguments: '1}' } }]);
  expect(restored.finish()).toMatchObject([{ name: 'get_weather', arguments: '{"q":1}' }]);
});

test('a call without a document of its own is invalid, unless it is free text', () => {
  const text = (type: string): Entry => ({ index: 0, id: 'a', type, [type]: { name: 'f', arguments: 'x', input: 'x' } });
  expect(run([[text('function')]]).finish()).toMatchObject([{ arguments: 'x', invalid: true }]);
  expect(run([[text('custom')]]).finish()[0]).not.toHaveProperty('invalid');
});
