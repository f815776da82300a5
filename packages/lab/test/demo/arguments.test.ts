import { describe, expect, test } from 'vitest';
import { sampleArguments } from '../../src/demo/arguments.ts';
import { violations } from './schema-check.ts';

const one = (schema: unknown, $defs: object = {}) => ({ type: 'object', properties: { a: schema }, required: ['a'], $defs });

const SCHEMAS: readonly (readonly [string, Record<string, unknown>])[] = [
  ['nothing', {}],
  ['optional properties', { type: 'object', properties: { a: { type: 'string' } } }],
  ['a property without a schema', { type: 'object', required: ['a'] }],
  ['a property for which others have a schema', { type: 'object', required: ['a'], additionalProperties: { type: 'integer' } }],
  ['minProperties', { type: 'object', properties: { a: { type: 'integer' }, b: {} }, minProperties: 3 }],
  ['const', one({ const: 'x' })],
  ['enum', one({ type: 'string', enum: ['x', 'y'] })],
  ['a list of types', one({ type: ['integer', 'null'] })],
  ['types in capitals', one({ type: 'OBJECT', properties: { b: { type: 'INTEGER' } }, required: ['b'] })],
  ['counts as text', one({ type: 'ARRAY', items: { type: 'STRING' }, minItems: '2' })],
  ['minLength', one({ type: 'string', minLength: 40 })],
  ['maxLength', one({ type: 'string', maxLength: 3 })],
  ['pattern', one({ type: 'string', pattern: '^wf_[a-z0-9-]{6,}$' })],
  ['pattern with groups', one({ type: 'string', pattern: '^(?:[A-Z]{2}|x)-(\\d+)(\\.\\d+)?[^a]\\/$' })],
  ['pattern with a set of brackets', one({ type: 'string', pattern: '^[\\]\\[]\\w?z+$' })],
  ['format uri', one({ type: 'string', format: 'uri' })],
  ['format date-time', one({ type: 'string', format: 'date-time' })],
  ['format date', one({ type: 'string', format: 'date' })],
  ['format email', one({ type: 'string', format: 'email' })],
  ['format uuid', one({ type: 'string', format: 'uuid' })],
  ['format ipv4', one({ type: 'string', format: 'ipv4' })],
  ['an unknown format', one({ type: 'string', format: 'planet' })],
  ['minimum', one({ type: 'integer', minimum: 7 })],
  ['a broken minimum', one({ type: 'integer', minimum: 6.5 })],
  ['maximum', one({ type: 'number', maximum: -2.5 })],
  ['exclusiveMinimum', one({ type: 'integer', exclusiveMinimum: 1 })],
  ['exclusiveMinimum and minimum', one({ type: 'integer', exclusiveMinimum: 5, minimum: 9 })],
  ['exclusiveMaximum', one({ type: 'integer', exclusiveMaximum: 0 })],
  ['exclusiveMinimum of draft 4', one({ type: 'integer', minimum: 3, exclusiveMinimum: true })],
  ['between two numbers', one({ type: 'number', exclusiveMinimum: 2, maximum: 3 })],
  ['multipleOf', one({ type: 'integer', multipleOf: 5, minimum: 12 })],
  ['minItems', one({ type: 'array', items: { type: 'boolean' }, minItems: 3 })],
  ['uniqueItems', one({ type: 'array', items: { type: 'string' }, minItems: 3, uniqueItems: true })],
  ['unique numbers', one({ type: 'array', items: { type: 'integer', minimum: 4 }, minItems: 3, uniqueItems: true })],
  ['unique values', one({ type: 'array', items: { enum: ['x', 'y', 'z'] }, minItems: 2, uniqueItems: true })],
  ['prefixItems', one({ type: 'array', prefixItems: [{ type: 'integer' }, { const: 'x' }], minItems: 2 })],
  ['anyOf', one({ anyOf: [{ type: 'integer', minimum: 3 }, { type: 'null' }] })],
  ['oneOf', one({ oneOf: [{ enum: ['all'] }, { type: 'string', pattern: '^[1-9][0-9]*$' }] })],
  ['anyOf beside properties', { ...one({}), anyOf: [{ required: ['b'] }, { required: ['c'] }] }],
  ['allOf', one({ allOf: [{ type: 'integer', minimum: 3 }, { minimum: 9 }] })],
  [
    'allOf of objects',
    one({
      allOf: [
        { type: 'object', properties: { b: { type: 'integer' } }, required: ['b'] },
        { properties: { b: { minimum: 5 }, c: {} }, required: ['c'] },
      ],
    }),
  ],
  ['$ref', one({ $ref: '#/$defs/color' }, { color: { enum: ['red'] } })],
  ['$ref with siblings', one({ $ref: '#/$defs/size', minimum: 8 }, { size: { type: 'integer' } })],
  [
    'recursion that ends',
    one({ $ref: '#/$defs/node' }, { node: { ...one({ anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] }) } }),
  ],
];

test.each(SCHEMAS)('a sample satisfies %s', (_, schema) => {
  expect(violations(sampleArguments(schema), schema)).toEqual([]);
});

test('the checker finds what is wrong', () => {
  expect(violations({ a: 5 }, one({ type: 'string' }))).toEqual(['$.a: type']);
  expect(violations({}, one({}))).toEqual(['$: a is required']);
});

test('samples have required properties only', () => {
  expect(sampleArguments({ properties: { a: { type: 'string' }, b: { type: 'string' } }, required: ['b'] })).toEqual({
    b: 'sluice-demo-sample',
  });
});

test('a default is not used: it is advice, and may not satisfy the schema', () => {
  expect(sampleArguments(one({ type: 'integer', default: 'rm -rf /' }))).toEqual({ a: 1 });
});

describe('schemas without a finite sample end', () => {
  const twice = { $ref: '#/$defs/node' };
  const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`p${i}`, {}]));
  const numbers = Array.from({ length: 300_000 }, (_, i) => i);
  test.each([
    ['recursion', one(twice, { node: one(twice) })],
    [
      'recursion that doubles',
      one(twice, { node: { type: 'object', properties: { l: twice, r: twice }, required: ['l', 'r'] } }),
    ],
    ['a reference to itself', one(twice, { node: twice })],
    ['endless arrays', one({ type: 'array', items: { type: 'array', items: {}, minItems: 1e9 }, minItems: 1e9 })],
    ['endless text', one({ type: 'string', minLength: 1e9 })],
    ['endless patterns', one({ type: 'string', pattern: '((((a{999}){999}){999}){999})' })],
    ['endless properties', { type: 'object', minProperties: 1e9 }],
    ['two long enums', one({ allOf: [{ enum: numbers }, { enum: numbers.toReversed() }] })],
    ['many copies of a wide schema', one({ allOf: Array(5000).fill(twice) }, { node: { type: 'object', properties: wide } })],
  ])('%s', (_, schema) => {
    expect(JSON.stringify(sampleArguments(schema)).length).toBeLessThan(100_000);
  });
});

test.each(['(?=a)b', '(a)\\1', '\\p{L}', '[', '(', 'a**', '^[^\\s\\S]$', 'x'.repeat(501)])(
  'a pattern that cannot be sampled gets the plain text: %s',
  (pattern) => {
    expect(typeof sampleArguments(one({ type: 'string', pattern }))['a']).toBe('string');
  },
);
