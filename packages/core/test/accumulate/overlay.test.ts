import { describe, expect, test } from 'vitest';
import { deriveId } from '../../src/accumulate/argument-text.ts';
import { overlay } from '../../src/accumulate/overlay.ts';
import { addCopies, UnknownFields } from '../../src/accumulate/unknown-fields.ts';
import { countKeys, isSet, present } from '../../src/json/fast.ts';
import { isObject, parseJson, sameJson, setOwn, writeJson } from '../../src/json/json.ts';

const json = (text: string): Record<string, unknown> => JSON.parse(text);
const deep = (levels: number, inner: string): Record<string, unknown> =>
  json(`${'{"a":'.repeat(levels)}${inner}${'}'.repeat(levels)}`);
/** Shows an own `__proto__`, which toEqual does not. */
const shown = (value: unknown): string => JSON.stringify(value);

describe('overlay', () => {
  test.each([
    ['fields are added', '{"a":1}', '{"b":2}', '{"a":1,"b":2}'],
    ['the later value wins', '{"a":1,"b":"x"}', '{"a":2,"b":"y"}', '{"a":2,"b":"y"}'],
    ['null takes nothing back', '{"a":1,"b":0,"c":""}', '{"a":null,"b":null,"c":null}', '{"a":1,"b":0,"c":""}'],
    ['null is kept where there is nothing', '{}', '{"a":null}', '{"a":null}'],
    ['objects field by field', '{"a":{"b":1,"c":{"d":1}}}', '{"a":{"c":{"e":2}}}', '{"a":{"b":1,"c":{"d":1,"e":2}}}'],
    ['an object over a value', '{"a":1}', '{"a":{"b":1}}', '{"a":{"b":1}}'],
    ['a value over an object', '{"a":{"b":1}}', '{"a":1}', '{"a":1}'],
    ['lists as a whole', '{"a":[1,2]}', '{"a":[3]}', '{"a":[3]}'],
    ['traps are keys', '{}', '{"__proto__":{"x":1},"constructor":null}', '{"__proto__":{"x":1},"constructor":null}'],
    ['traps field by field', '{"__proto__":{"x":1}}', '{"__proto__":{"y":2}}', '{"__proto__":{"x":1,"y":2}}'],
  ])('%s', (_, target, source, expected) => {
    expect(shown(overlay(json(target), json(source)))).toBe(expected);
  });

  test('undefined says nothing', () => {
    expect(overlay({ a: 1 }, { a: undefined })).toStrictEqual({ a: 1 });
  });

  test('the source is not changed later, down to the depth of real data', () => {
    const source = deep(64, '{"x":1}');
    const before = shown(source);
    const target = overlay({}, source);
    overlay(target, deep(64, '{"x":2}'));
    expect(shown(source)).toBe(before);
    expect(shown(target)).toBe(shown(deep(64, '{"x":2}')));
    // Beyond it the later value replaces the former as a whole.
    expect(shown(overlay(deep(65, '{"x":1}'), deep(65, '{"y":2}')))).toBe(shown(deep(65, '{"y":2}')));
    expect(shown(overlay(deep(64, '{"x":1}'), deep(64, '{"y":2}')))).toBe(shown(deep(64, '{"x":1,"y":2}')));
  });
});

describe('sameJson', () => {
  test.each([
    ['1', '1', true],
    ['1', '2', false],
    ['1', '"1"', false],
    ['null', '{}', false],
    ['{}', 'null', false],
    ['{}', '[]', false],
    ['[]', '{}', false],
    ['[]', '[]', true],
    ['[1,{"a":[]}]', '[1,{"a":[]}]', true],
    ['[1,2]', '[2,1]', false],
    ['[1]', '[1,2]', false],
    ['[1,2]', '[1]', false],
    ['{"a":1,"b":2}', '{"b":2,"a":1}', true],
    ['{"a":1}', '{"a":1,"b":2}', false],
    ['{"a":1,"b":2}', '{"a":1}', false],
    ['{"a":1,"b":2}', '{"a":1,"c":2}', false],
    ['{"a":1,"b":2}', '{"a":1,"b":3}', false],
    ['{"toString":null}', '{"a":null}', false],
    ['[]', '{"length":0}', false],
    ['7', '{}', false],
    ['{}', '7', false],
  ])('%s and %s: %s', (a, b, expected) => {
    expect(sameJson(JSON.parse(a), JSON.parse(b))).toBe(expected);
  });

  test('an inherited field is none', () => {
    expect(sameJson({ toString: Object.prototype.toString }, { x: 1 })).toBe(false);
  });

  test('beyond the depth of real arguments everything counts as different', () => {
    expect(sameJson(deep(256, '{}'), deep(256, '{}'))).toBe(true);
    expect(sameJson(deep(257, '{}'), deep(257, '{}'))).toBe(false);
    const lists = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
    expect(sameJson(lists(257), lists(257))).toBe(true);
    expect(sameJson(lists(258), lists(258))).toBe(false);
  });
});

test.each([
  [undefined, false, false],
  [null, false, false],
  [0, true, false],
  ['', true, false],
  [[], true, false],
  [{}, true, true],
  [Object.create(null), true, true],
])('%j is set: %s, an object: %s', (value, set, object) => {
  expect([isSet(value), isObject(value), present(value)]).toEqual([set, object, value === undefined ? 0 : 1]);
});

test('keys are counted, also one that is a trap', () => {
  expect([{}, { a: undefined }, json('{"__proto__":1,"a":2}')].map(countKeys)).toEqual([0, 1, 2]);
});

test('every key is data, and stays an ordinary property', () => {
  const target: Record<string, unknown> = {};
  for (const key of ['__proto__', 'a']) setOwn(target, key, { x: 1 });
  expect(Object.getPrototypeOf(target)).toBe(Object.prototype);
  for (const key of ['__proto__', 'a'])
    expect(Object.getOwnPropertyDescriptor(target, key)).toEqual({
      value: { x: 1 },
      writable: true,
      enumerable: true,
      configurable: true,
    });
});

test('JSON in and out, undefined for what is none', () => {
  const cyclic: Record<string, unknown> = {};
  cyclic['a'] = cyclic;
  expect([parseJson('{"a":1}'), parseJson('null'), parseJson('{'), parseJson('')]).toEqual([
    { a: 1 },
    null,
    undefined,
    undefined,
  ]);
  expect([writeJson({ a: 1 }), writeJson(cyclic)]).toEqual(['{"a":1}', undefined]);
});

// Derived ids are in the histories of clients: they may not change. The first eight digits are FNV-1a as published.
test.each([
  [[''], 'call_811c9dc59747b28c5bd1e995'],
  [['a'], 'call_e40c292c'],
  [['foobar'], 'call_bf9cf968'],
  [['ab', 'c'], undefined],
  [['a', 'bc'], undefined],
  [['ab\u0000c'], undefined],
])('the id of %j', (parts, id) => {
  expect(deriveId('call_', ...parts)).toMatch(/^call_[0-9a-f]{24}$/);
  if (id) expect(deriveId('call_', ...parts).startsWith(id)).toBe(true);
  expect(deriveId('call_', 'ab', 'c')).not.toBe(deriveId('call_', 'a', 'bc'));
});

test('derived ids are those of the first release', () => {
  expect(deriveId('call_', 'resp_1', 0, 'get_weather', 0)).toBe('call_92907bbc2553fbeda53cfe8c');
  expect(deriveId('x', 12)).toBe('x1deb2d6ad910a9efcfb8e63a');
});

describe('unknown fields', () => {
  const looked = (...sources: object[]): UnknownFields => {
    const fields = new UnknownFields(new Set(['a', 'b']), {});
    for (const source of sources) fields.look(source);
    return fields;
  };

  test.each([
    ['none', [{ a: 1 }, { a: 2, b: 3 }], {}],
    [
      'one layout again and again',
      [
        { a: 1, x: 1 },
        { a: 2, x: 2 },
        { a: 3, x: null },
      ],
      { x: 2 },
    ],
    ['null alone', [{ x: null }, { x: null }], {}],
    ['a layout that grows', [{ x: 1 }, { x: 2, y: 3 }], { x: 2, y: 3 }],
    ['a layout that shrinks', [{ x: 1, y: 2 }, { x: 3 }], { x: 3, y: 2 }],
    [
      'a layout in another order',
      [
        { x: 1, a: 0 },
        { a: 0, x: 2 },
      ],
      { x: 2 },
    ],
    ['objects field by field', [{ x: { m: 1 } }, { x: { n: 2 } }], { x: { m: 1, n: 2 } }],
  ])('%s', (_, sources, kept) => {
    const fields = looked(...sources);
    expect(fields.kept).toEqual(kept);
    expect(addCopies({ a: 1 }, fields.kept)).toEqual({ a: 1, ...kept });
  });

  test('they go on from what was kept', () => {
    const fields = new UnknownFields(new Set(), { x: { m: 1 } });
    fields.look({ x: { n: 2 } });
    expect(fields.kept).toEqual({ x: { m: 1, n: 2 } });
  });

  test('a trap is a key', () => {
    expect(shown(addCopies({}, looked(json('{"__proto__":{"x":1}}')).kept))).toBe('{"__proto__":{"x":1}}');
  });
});
