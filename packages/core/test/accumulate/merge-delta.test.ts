import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DeltaError, DeltaFold, mergeDelta } from '../../src/accumulate/merge-delta.ts';

const reduce = (deltas: readonly unknown[], start?: unknown): unknown =>
  deltas.reduce((whole, delta) => mergeDelta<unknown>(whole, delta), start);

function fold(deltas: readonly unknown[]): DeltaFold<unknown> {
  const result = new DeltaFold<unknown>();
  for (const delta of deltas) result.push(delta);
  return result;
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(Object.freeze(value))) freeze(inner);
  return value;
}

function thrown(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
}

// Compared as text: it shows an own `__proto__`, an own undefined and the order of keys, and is not led astray by a field
// called `constructor`, as toEqual and toStrictEqual are.
const text = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => (inner === undefined ? '(undefined)' : inner), 1);

function expectSame(actual: unknown, expected: unknown): void {
  expect(text(actual)).toBe(text(expected));
}

// JSON.parse is the way in which an own `__proto__` comes about; a literal would set the prototype.
const json = (text: string): unknown => JSON.parse(text);

const call = (index: unknown, rest: object): object => ({ tool_calls: [{ index, ...rest }] });

interface Rule {
  rule: string;
  deltas: unknown[];
  whole: unknown;
}

const rules: Rule[] = [
  { rule: 'strings concatenate', deltas: [{ text: 'Hel' }, { text: 'lo' }, { text: '' }], whole: { text: 'Hello' } },
  { rule: 'numbers add', deltas: [{ n: 1 }, { n: 2.5 }], whole: { n: 3.5 } },
  { rule: 'objects merge', deltas: [{ a: { b: 'x' } }, { a: { b: 'y', c: 1 } }], whole: { a: { b: 'xy', c: 1 } } },
  { rule: 'plain lists extend', deltas: [{ l: [1] }, { l: ['a', null] }, { l: [] }], whole: { l: [1, 'a', null] } },
  { rule: 'lists of lists extend', deltas: [{ l: [[1, 2]] }, { l: [[3]] }], whole: { l: [[1, 2], [3]] } },
  { rule: 'an empty list is filled', deltas: [{ l: [] }, { l: [{ type: 'text' }] }], whole: { l: [{ type: 'text' }] } },
  { rule: 'an empty list brings nothing', deltas: [{ l: [{ a: 1 }] }, { l: [] }], whole: { l: [{ a: 1 }] } },
  { rule: 'a boolean overwrites', deltas: [{ done: false }, { done: true }], whole: { done: true } },
  {
    rule: 'a changed type overwrites',
    deltas: [
      { a: 'x', b: 1 },
      { a: 1, b: { c: [1] } },
    ],
    whole: { a: 1, b: { c: [1] } },
  },
  { rule: 'a list and an object overwrite each other', deltas: [{ a: [1] }, { a: { b: 1 } }, { a: [2] }], whole: { a: [2] } },
  { rule: 'null is stored when new', deltas: [{}, { a: null }], whole: { a: null } },
  { rule: 'null gives way', deltas: [{ a: null }, { a: 'x' }], whole: { a: 'x' } },
  {
    rule: 'null overwrites nothing',
    deltas: [
      { a: 'x', id: 'i' },
      { a: null, id: null },
    ],
    whole: { a: 'x', id: 'i' },
  },
  { rule: 'undefined is not said', deltas: [{ a: 'x' }, { a: undefined, b: undefined }], whole: { a: 'x' } },
  { rule: 'undefined is not said inside a new value', deltas: [{}, { a: { b: undefined, c: 1 } }], whole: { a: { c: 1 } } },
  { rule: 'the root may be text', deltas: ['a', 'b'], whole: 'ab' },
  { rule: 'the root may be a list', deltas: [[{ index: 4, t: 'a' }], [{ index: 4, t: 'b' }]], whole: [{ index: 4, t: 'ab' }] },
  { rule: 'nothing is nothing', deltas: [undefined, undefined], whole: undefined },
  {
    rule: 'identity overwrites',
    deltas: [
      { id: 'a', name: 'f' },
      { id: 'b', name: 'g' },
    ],
    whole: { id: 'b', name: 'g' },
  },
  {
    rule: 'a blank takes no identity',
    deltas: [
      { id: 'a', index: 1 },
      { id: '', index: '' },
    ],
    whole: { id: 'a', index: 1 },
  },
  { rule: 'a blank is stored when new', deltas: [{ name: '' }, { name: 'f' }], whole: { name: 'f' } },
  { rule: 'index is not added', deltas: [{ index: 1 }, { index: 1 }], whole: { index: 1 } },
  {
    rule: 'the seed: identity sent again on every chunk',
    deltas: [
      call(1, { id: 'fc_abc', call_id: 'c1', type: 'function', function: { name: 'shell', arguments: '' } }),
      call(1, { id: 'fc_abc', call_id: 'c1', type: 'function', function: { name: 'shell', arguments: '{"cmd":' } }),
      call(1, { id: 'fc_abc', call_id: 'c1', type: 'function', function: { name: 'shell', arguments: '"ls"}' } }),
    ],
    whole: call(1, { id: 'fc_abc', call_id: 'c1', type: 'function', function: { name: 'shell', arguments: '{"cmd":"ls"}' } }),
  },
  {
    rule: 'the seed: identity on the first chunk only',
    deltas: [call(0, { id: 'a', type: 'function', function: { name: 'f' } }), call(0, { function: { arguments: '{}' } })],
    whole: call(0, { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }),
  },
  {
    rule: 'entries stand in the order of their first delta, gaps or not',
    deltas: [call(7, { a: 'x' }), call(2, { a: 'y' }), call(7, { a: 'z' }), call(1e9, { a: 'w' }), call(-1, { a: 'v' })],
    whole: {
      tool_calls: [
        { index: 7, a: 'xz' },
        { index: 2, a: 'y' },
        { index: 1e9, a: 'w' },
        { index: -1, a: 'v' },
      ],
    },
  },
  { rule: 'index "1" is index 1', deltas: [call(1, { a: 'x' }), call('1', { a: 'y' })], whole: call('1', { a: 'xy' }) },
  {
    rule: 'two pieces of an entry in one delta',
    deltas: [
      [{ index: 0 }],
      [
        { index: 3, t: 'a' },
        { index: 3, t: 'b' },
      ],
    ],
    whole: [{ index: 0 }, { index: 3, t: 'ab' }],
  },
  {
    rule: 'two pieces in the first delta',
    deltas: [
      [
        { index: 3, t: 'a' },
        { index: 3, t: 'b' },
      ],
      [{ index: 3, t: 'c' }],
    ],
    whole: [{ index: 3, t: 'abc' }],
  },
  {
    rule: 'two pieces in the first delta, one of which says nothing',
    deltas: [[{ index: 3, t: 'a' }, { index: 3 }], [{ index: 3 }]],
    whole: [{ index: 3, t: 'a' }],
  },
  {
    rule: 'first content is data',
    deltas: [{ l: [1, { index: 'x' }], m: [{ index: 0 }, { index: 0 }] }],
    whole: { l: [1, { index: 'x' }], m: [{ index: 0 }, { index: 0 }] },
  },
  {
    rule: 'entries without index stay',
    deltas: [[{ type: 'text' }], [{ index: 0, t: 'a' }], [{ index: 0, t: 'b' }]],
    whole: [{ type: 'text' }, { index: 0, t: 'ab' }],
  },
  {
    rule: '__proto__ is a key',
    deltas: [json('{"__proto__":{"a":"x"}}'), json('{"__proto__":{"a":"y"}}')],
    whole: json('{"__proto__":{"a":"xy"}}'),
  },
  {
    rule: 'constructor is a key',
    deltas: [{}, { constructor: { prototype: { a: 'x' } } }],
    whole: { constructor: { prototype: { a: 'x' } } },
  },
];

describe('rules', () => {
  test.each(rules)('$rule', ({ deltas, whole }) => {
    expectSame(reduce(freeze(deltas)), whole);
    expectSame(fold(freeze(deltas)).value, whole);
  });
});

const deep = (levels: number): unknown => json(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`);
const cyclic: Record<string, unknown> = {};
cyclic['a'] = cyclic;

interface Refusal {
  what: string;
  first: unknown;
  delta: unknown;
  path: string;
  problem: RegExp;
}

const refusals: Refusal[] = [
  { what: 'objects, then values', first: { l: [{ index: 0 }] }, delta: { l: [1] }, path: '/l', problem: /mixes/ },
  { what: 'values, then objects', first: { l: [1] }, delta: { l: [{ index: 0 }] }, path: '/l', problem: /mixes/ },
  { what: 'both in the delta', first: { l: [1] }, delta: { l: [1, { index: 0 }] }, path: '/l', problem: /mixes/ },
  { what: 'both in each', first: { l: [1, {}] }, delta: { l: [1, {}] }, path: '/l', problem: /mixes/ },
  { what: 'both in what is there', first: { l: [1, {}] }, delta: { l: [1] }, path: '/l', problem: /mixes/ },
  {
    what: 'no index',
    first: { l: [{ index: 0 }] },
    delta: { l: [{ index: 0 }, { a: 1 }] },
    path: '/l/1',
    problem: /has no index/,
  },
  { what: 'null index', first: { l: [{ index: 0 }] }, delta: { l: [{ index: null }] }, path: '/l/0', problem: /has no index/ },
  ...[1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 'x', '', '1e9', '1.0', ' 1', '9'.repeat(400), true, {}, [0]].map(
    (index) => ({
      what: `index ${String(index).slice(0, 20)} (${typeof index})`,
      first: { l: [{ index: 0 }] },
      delta: { l: [{ index }] },
      path: '/l/0/index',
      problem: /must be an integer/,
    }),
  ),
  { what: 'inherited index', first: [{ index: 0 }], delta: [Object.create({ index: 0 })], path: '/0', problem: /has no index/ },
  { what: 'a key with / and ~', first: { 'a/b~': [1] }, delta: { 'a/b~': [{}] }, path: '/a~1b~0', problem: /at \/a~1b~0 / },
  { what: 'the root', first: [1], delta: [{}], path: '', problem: /at the root/ },
  { what: 'too deep when new', first: {}, delta: deep(513), path: '/a'.repeat(512), problem: /deeper than 512/ },
  { what: 'too deep in a list', first: deep(512), delta: { b: [deep(511)] }, path: `/b/0${'/a'.repeat(510)}`, problem: /deeper/ },
  { what: 'a delta within itself', first: {}, delta: cyclic, path: '/a'.repeat(512), problem: /deeper/ },
];

describe('refusals', () => {
  test.each(refusals)('$what', ({ first, delta, path, problem }) => {
    const folded = fold([first]);
    for (const run of [() => mergeDelta(first, delta), () => folded.push(delta)]) {
      const error = thrown(run);
      expect(error).toBeInstanceOf(DeltaError);
      expect(error).toMatchObject({ name: 'DeltaError', path, message: expect.stringMatching(problem) });
      expect(error).toHaveProperty('message', expect.stringContaining(path));
    }
    expectSame(folded.value, first);
  });

  test('the depth limit is an option, and exact', () => {
    expect(mergeDelta(undefined, deep(3), { maxDepth: 3 })).toEqual(deep(3));
    expect(() => mergeDelta(deep(2), deep(3), { maxDepth: 2 })).toThrow(DeltaError);
    expect(() => DeltaFold.fromJSON(deep(3), { maxDepth: 2 })).toThrow(DeltaError);
    expect(mergeDelta(undefined, deep(512))).toEqual(deep(512));
  });

  test('a refused delta leaves no trace in the fold, and the next one goes on', () => {
    const folded = fold([{ l: [{ index: 0, t: 'a' }], p: [1] }]);
    folded.push({ l: [{ index: 1 }] });
    const bad = json('{"t":"x","__proto__":1,"p":[2],"l":[{"index":0,"t":"b","u":"c"},{"index":2},{"index":1.5}]}');
    for (const again of [1, 2])
      expect(
        thrown(() => folded.push(bad)),
        `time ${again}`,
      ).toMatchObject({ path: '/l/2/index' });
    expect(folded.value).toStrictEqual({ l: [{ index: 0, t: 'a' }, { index: 1 }], p: [1] });
    folded.push({
      l: [
        { index: 2, t: 'd' },
        { index: 0, t: 'e' },
      ],
      p: [3],
    });
    expect(folded.value).toStrictEqual({ l: [{ index: 0, t: 'ae' }, { index: 1 }, { index: 2, t: 'd' }], p: [1, 3] });
  });
});

// Few keys, so that deltas meet; among them identities and the names that are traps in JavaScript.
const key = fc.constantFrom('a', 'b', 'text', 'id', 'name', 'type', 'index', '__proto__', 'constructor', 'prototype', 'toString');
const scalar = fc.oneof(fc.string({ maxLength: 4 }), fc.integer(), fc.boolean(), fc.constant(null));

const fields = (value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.array(fc.tuple(key, value), { maxLength: 4 }).map((pairs) => Object.fromEntries(pairs));

const { delta: anyDelta } = fc.letrec<{ value: unknown; entry: unknown; delta: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    scalar,
    tie('delta'),
    fc.array(scalar, { maxLength: 3 }),
    fc.array(tie('entry'), { maxLength: 3 }),
  ),
  entry: fc.tuple(fc.integer({ min: -1, max: 2 }), tie('delta')).map(([index, rest]) => ({ ...Object(rest), index })),
  delta: fields(tie('value')),
}));
const stream = fc.array(anyDelta, { maxLength: 8 });

// The key says what kind of value it holds, as in a real stream: text never turns into an object.
const texts = fc.dictionary(fc.constantFrom('text', 'id', 'toString'), fc.string({ maxLength: 3 }));
const treeOf = (levels: number): fc.Arbitrary<object> => {
  if (levels === 0) return texts;
  const inner = fc.array(fc.tuple(fc.constantFrom('a', '__proto__', 'constructor'), treeOf(levels - 1)), { maxLength: 2 });
  return fc.tuple(texts, inner).map(([own, pairs]) => ({ ...own, ...Object.fromEntries(pairs) }));
};
const tree = treeOf(3);

interface Attempt {
  value: unknown;
  refused: number[];
}

/** Goes on after a refused delta, as a caller may. Returns which ones were. */
function refusedOf(deltas: readonly unknown[], push: (delta: unknown) => void): number[] {
  return [...deltas.keys()].filter((at) => {
    const error = thrown(() => push(deltas[at]));
    if (error !== undefined && !(error instanceof DeltaError)) throw error;
    return error !== undefined;
  });
}

function attemptMerge(deltas: readonly unknown[]): Attempt {
  let value: unknown;
  const refused = refusedOf(deltas, (delta) => {
    value = mergeDelta(value, delta);
  });
  return { value, refused };
}

function attemptFold(deltas: readonly unknown[]): Attempt {
  const folded = new DeltaFold<unknown>();
  const refused = refusedOf(deltas, (delta) => folded.push(delta));
  return { value: folded.value, refused };
}

describe('properties', () => {
  test('folding equals reducing, refused deltas included', () => {
    fc.assert(
      fc.property(stream, (deltas) => expectSame(attemptFold(deltas), attemptMerge(deltas))),
      { numRuns: 1000 },
    );
  });

  test('text cut anywhere is whole again', () => {
    const pieces = fc.array(fc.string({ unit: 'binary' }), { minLength: 1 });
    const chunk = (content: string, index: number): object => ({ choices: [{ index, delta: { content, role: null } }] });
    fc.assert(
      fc.property(pieces, fc.integer(), (cut, index) => {
        expectSame(fold(cut.map((piece) => chunk(piece, index))).value, chunk(cut.join(''), index));
      }),
    );
  });

  test('inputs are never changed', () => {
    fc.assert(fc.property(stream, (deltas) => void expect(() => attemptMerge(freeze(deltas))).not.toThrow()));
    fc.assert(fc.property(stream, (deltas) => void expect(() => attemptFold(freeze(deltas))).not.toThrow()));
  });

  test('changing a delta afterwards changes nothing', () => {
    const entry = { index: 0, t: 'a', deep: { l: [1] } };
    const run = (push: (delta: unknown) => void): void => {
      push({ l: [entry], m: [[0]] });
      push({ l: [{ ...entry, index: 1 }], m: [entry.deep.l] });
      entry.deep.l.push(2);
    };
    const folded = new DeltaFold<unknown>();
    let merged: unknown;
    run((delta) => folded.push(delta));
    entry.deep.l.pop();
    run((delta) => {
      merged = mergeDelta(merged, delta);
    });
    expect(folded.value).toEqual(merged);
    expect(JSON.stringify(merged)).not.toContain('2');
  });

  test('what a delta does not touch is shared', () => {
    const before = freeze({
      a: { x: {} },
      l: [
        { index: 0, u: {} },
        { index: 1, u: {}, t: 'a' },
      ],
      p: [{}],
    });
    const after = mergeDelta<typeof before>(before, { l: [{ index: 1, t: 'b' }] });
    expect(after).not.toBe(before);
    expect(after.a).toBe(before.a);
    expect(after.p).toBe(before.p);
    expect(after.l[0]).toBe(before.l[0]);
    expect(after.l[1]?.u).toBe(before.l[1]?.u);
    expect(after.l[1]?.t).toBe('ab');
    expect(before.l[1]?.t).toBe('a');
  });

  test.each([{}, null, undefined, { a: {} }, { l: [] }, { l: [{ index: 0, t: '' }] }, { id: '' }, { id: 'i' }, { s: '' }])(
    'nothing new is the same object: %j',
    (delta) => {
      const before = freeze({ a: { x: 1 }, id: 'i', s: 's', l: [{ index: 0, t: 'a' }] });
      expect(mergeDelta(before, delta)).toBe(before);
    },
  );

  test('merging text and objects is associative', () => {
    fc.assert(
      fc.property(tree, tree, tree, (one, two, three) =>
        expectSame(reduce([reduce([one, two]), three]), reduce([one, reduce([two, three])])),
      ),
    );
  });

  test('a fold goes on from its JSON', () => {
    fc.assert(
      fc.property(stream, stream, (first, second) => {
        const resumed = DeltaFold.fromJSON<unknown>(json(JSON.stringify(fold([attemptFold(first).value]))));
        for (const delta of second) thrown(() => resumed.push(delta));
        expectSame(resumed.toJSON(), attemptMerge([...first, ...second]).value ?? null);
      }),
    );
  });

  test('toJSON stands still while the fold goes on', () => {
    const folded = fold([{ l: [{ index: 0, t: 'a' }] }]);
    const still = folded.toJSON();
    folded.push({ l: [{ index: 0, t: 'b' }] });
    expect(still).toEqual({ l: [{ index: 0, t: 'a' }] });
    expect(new DeltaFold().toJSON()).toBeNull();
    expect(DeltaFold.fromJSON(null).value).toBeUndefined();
  });
});

describe('strangers', () => {
  const prototypes = [Object.prototype, Array.prototype, Function.prototype];
  const keysOf = (): PropertyKey[][] => prototypes.map((prototype) => Reflect.ownKeys(prototype));

  function expectPlain(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    expect(Object.getPrototypeOf(value)).toBe(Array.isArray(value) ? Array.prototype : Object.prototype);
    for (const name of Object.keys(value)) expectPlain(Object.getOwnPropertyDescriptor(value, name)?.value);
  }

  test('no key changes a prototype', () => {
    const before = keysOf();
    const bad = json('{"__proto__":{"polluted":"x"},"constructor":{"prototype":{"polluted":"x"}},"prototype":{"polluted":"x"}}');
    fc.assert(
      fc.property(stream, (deltas) => {
        const all = [bad, ...deltas, bad, { l: [bad] }, { l: [bad] }];
        for (const { value } of [attemptMerge(all), attemptFold(all)]) expectPlain(value);
      }),
    );
    expect(keysOf()).toEqual(before);
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
    expect(Object.hasOwn(Object(mergeDelta({ a: 1 }, bad)), '__proto__')).toBe(true);
  });

  test('no index makes a long list', () => {
    const wild = fc.constantFrom<unknown>(-1, 0, 1.5, 1e9, '1e9', '1', '-7', Number.NaN, 2 ** 53, 2 ** 53 - 1, -0, 'x', null);
    const index = fc.oneof(wild, fc.integer(), fc.double(), fc.string());
    fc.assert(
      fc.property(fc.array(index, { maxLength: 10 }), (indexes) => {
        const deltas = indexes.map((at) => [{ index: at, t: 'a' }]);
        for (const { value } of [attemptMerge(deltas), attemptFold(deltas)]) {
          expect(Object(value ?? []).length).toBeLessThanOrEqual(indexes.length);
        }
      }),
    );
  });
});
