import { describe, expect, test } from 'vitest';
import { DeltaFold, mergeDelta } from '../../src/accumulate/merge-delta.ts';

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(Object.freeze(value))) freeze(inner);
  return value;
}

test.each<[string, unknown, unknown, unknown]>([
  ['text after a number replaces it', 1, 'a', 'a'],
  ['text after an object replaces it', { s: {} }, { s: 'a' }, { s: 'a' }],
  ['a number after text replaces it', 'a', 1, 1],
  ['a list after an object replaces it', { s: {} }, { s: [1] }, { s: [1] }],
  ['an object after a list replaces it', { s: [1] }, { s: {} }, { s: {} }],
  ['a list of values that was given', { p: [1] }, { p: [2] }, { p: [1, 2] }],
  ['a blank identity where there is none', {}, { id: '' }, { id: '' }],
  ['a blank identity after null', { id: null }, { id: '' }, { id: '' }],
  ['an identity of nothing at all', { id: null }, { id: undefined }, { id: null }],
  ['an identity after a blank one', { id: '' }, { id: 'a' }, { id: 'a' }],
  [
    'the time of a chunk is not added up',
    { created: 5, created_at: 6 },
    { created: 5, created_at: 6 },
    { created: 5, created_at: 6 },
  ],
  [
    'the envelope of a chunk does not grow',
    { object: 'chat.completion.chunk', model: 'm', role: 'assistant' },
    { object: 'chat.completion.chunk', model: 'm', role: 'assistant' },
    { object: 'chat.completion.chunk', model: 'm', role: 'assistant' },
  ],
  ['null where there is nothing', {}, { a: null, id: null }, { a: null, id: null }],
  ['two entries without an index stay two', [{ a: 1 }, { a: 2 }], [{ index: 0 }], [{ a: 1 }, { a: 2 }, { index: 0 }]],
  ['an index of two digits, as text', [{ index: 12, t: 'a' }], [{ index: '12', t: 'b' }], [{ index: '12', t: 'ab' }]],
])('%s', (_, before, delta, after) => {
  const given = structuredClone(before);
  expect(mergeDelta(freeze(given), freeze(delta))).toStrictEqual(after);
  expect(given).toStrictEqual(before);
  const fold = DeltaFold.fromJSON<unknown>(before);
  fold.push(delta);
  expect(fold.value).toStrictEqual(after);
});

test('an inherited index is none', () => {
  expect(mergeDelta([Object.create({ index: 0 })], [{ index: 0, t: 'a' }])).toEqual([{}, { index: 0, t: 'a' }]);
});

test('the state of a fold is live', () => {
  const fold = new DeltaFold<{ t: string; l: unknown[]; p: number[] }>();
  fold.push({ t: 'a', l: [{ index: 0, t: 'a' }], p: [1] });
  const live = fold.value;
  fold.push({ t: 'b', l: [{ index: 0, t: 'b' }], p: [2] });
  expect(fold.value).toBe(live);
  expect(live).toEqual({ t: 'ab', l: [{ index: 0, t: 'ab' }], p: [1, 2] });
});

describe('the depth limit counts', () => {
  test.each<[string, unknown, unknown, number]>([
    ['objects that are there', { a: { b: { c: 1 } } }, { a: { b: { c: 1 } } }, 3],
    ['objects that are new', undefined, { a: { b: {} } }, 3],
    ['lists that are there', { l: [1] }, { l: [2] }, 2],
    ['lists that are new', {}, { l: [] }, 2],
    ['lists in lists', { l: [[]] }, { l: [[]] }, 3],
    ['entries of lists', [{ index: 0, a: {} }], [{ index: 0, a: {} }], 3],
  ])('%s', (_, before, delta, depth) => {
    expect(() => mergeDelta(before, delta, { maxDepth: depth })).not.toThrow();
    expect(() => mergeDelta(before, delta, { maxDepth: depth - 1 })).toThrow(`nested deeper than ${depth - 1}`);
  });
});

test.each([
  [1.5, '1.5'],
  [Number.NaN, 'NaN'],
  [true, 'true'],
  ['x', '"x"'],
  [`${'y'.repeat(40)}z`, `"${'y'.repeat(40)}"`],
  [[0], 'a list'],
  [{}, 'an object'],
])('an index %j is named in the refusal', (index, name) => {
  expect(() => mergeDelta({ l: [{ index: 0 }] }, { l: [{ index }] })).toThrow(
    `the index of a list entry must be an integer, not ${name}, at /l/0/index of the delta`,
  );
});
