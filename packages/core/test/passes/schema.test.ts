import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readCapturedRequests } from '../../../../test/corpus.ts';
import type { JsonSchema } from '../../src/canonical/protocol.ts';
import type { CanonicalRequest, CanonicalTool } from '../../src/canonical/request.ts';
import { isObject, type JsonObject } from '../../src/json/json.ts';
import type { SchemaDialect } from '../../src/passes/rules.ts';
import { convertSchema, convertSchemas } from '../../src/passes/schema/convert.ts';
import { DIALECTS } from '../../src/passes/schema/dialects.ts';
import { completeSchema, listChildren } from '../../src/passes/schema/nodes.ts';
import { geminiFaults } from './gemini-subset.ts';
import { testRules } from './telling.ts';

type Work = keyof typeof DIALECTS;
const GEMINI = ['gemini-json', 'gemini-openapi'] as const;

const convert = (schema: JsonSchema, dialect: Work): { schema: JsonSchema; lost: string[] } => {
  const { schema: after, lost } = convertSchema(schema, DIALECTS[dialect]);
  return { schema: after, lost: [...lost] };
};

/** A property of this schema, so that the root is not in the way. */
const inside = (schema: JsonSchema, dialect: Work): { schema: unknown; lost: string[] } => {
  const { schema: root, lost } = convert({ type: 'object', properties: { p: schema }, required: ['p'] }, dialect);
  return { schema: isObject(root['properties']) ? root['properties']['p'] : undefined, lost };
};

describe('the schema dialects of docs/canonical.md, row by row', () => {
  type Row = [name: string, dialect: Work, schema: JsonSchema, expected: JsonSchema, lost?: string[]];
  const CLOSED = { additionalProperties: false };

  test.each<Row>([
    // additionalProperties
    ['an open object', 'anthropic-strict', { type: 'object', properties: {} }, { type: 'object', properties: {}, ...CLOSED }],
    [
      'a map',
      'anthropic-strict',
      { type: 'object', additionalProperties: { type: 'string' } },
      { description: '(other properties {"type":"string"})', type: 'object', ...CLOSED },
      ['additionalProperties'],
    ],
    [
      'a map',
      'gemini-json',
      { type: 'object', additionalProperties: { const: 'a' } },
      { type: 'object', additionalProperties: { enum: ['a'] } },
    ],
    [
      'P47 a closed object',
      'gemini-openapi',
      { type: 'object', properties: { a: { type: 'string' } }, ...CLOSED },
      { description: '(no other properties)', type: 'OBJECT', properties: { a: { type: 'STRING' } } },
      ['additionalProperties'],
    ],
    // const
    ['const', 'openai-strict', { const: 'x' }, { const: 'x' }],
    ['const', 'anthropic-strict', { const: 1 }, { const: 1 }],
    ['const', 'gemini-json', { type: 'string', const: 'x' }, { type: 'string', enum: ['x'] }],
    ['P47 const', 'gemini-openapi', { const: 'x' }, { type: 'STRING', enum: ['x'] }],
    ['const of an object', 'anthropic-strict', { const: { a: 1 } }, { description: '(always {"a":1})' }, ['const']],
    // enum
    ['enum of scalars', 'anthropic-strict', { enum: [1, true, null, 'a'] }, { enum: [1, true, null, 'a'] }],
    ['enum of objects', 'anthropic-strict', { enum: [{}] }, { description: '(one of {})' }, ['enum']],
    ['P51 enum of numbers', 'gemini-json', { type: 'integer', enum: [1, 2] }, { type: 'integer', enum: [1, 2] }],
    [
      'P51 enum of numbers',
      'gemini-openapi',
      { type: 'integer', enum: [1, 2] },
      { type: 'INTEGER', format: 'enum', enum: ['1', '2'] },
    ],
    [
      'enum of booleans',
      'gemini-openapi',
      { type: 'boolean', enum: [true] },
      { description: '(one of true)', type: 'BOOLEAN' },
      ['enum'],
    ],
    ['enum with null', 'gemini-openapi', { enum: ['a', null] }, { type: 'STRING', nullable: true, enum: ['a'] }],
    ['enum with null', 'gemini-json', { type: ['string', 'null'], enum: ['a', null] }, { type: ['string', 'null'], enum: ['a'] }],
    ['enum with null, no type', 'gemini-json', { enum: ['a', null] }, { type: ['string', 'null'], enum: ['a'] }],
    ['enum of several types', 'gemini-json', { enum: ['a', 1, null] }, { type: ['string', 'number', 'null'], enum: ['a', 1] }],
    ['only null', 'gemini-json', { enum: [null] }, { type: 'null' }],
    ['only null', 'gemini-openapi', { enum: [null] }, { type: 'NULL' }],
    [
      'enum with an empty text',
      'gemini-openapi',
      { type: 'string', enum: ['', 'a'] },
      { description: '(one of , a)', type: 'STRING' },
      ['enum'],
    ],
    // type lists
    ['null among types', 'openai-strict', { type: ['string', 'null'] }, { type: ['string', 'null'] }],
    ['null among types', 'gemini-json', { type: ['string', 'null'] }, { type: ['string', 'null'] }],
    ['P48 null among types', 'gemini-openapi', { type: ['string', 'null'] }, { type: 'STRING', nullable: true }],
    [
      'P48 several types',
      'gemini-openapi',
      { type: ['string', 'array', 'null'], items: { type: 'integer' }, maxLength: 5, description: 'D' },
      {
        description: 'D',
        anyOf: [
          { type: 'STRING', maxLength: 5 },
          { type: 'ARRAY', items: { type: 'INTEGER' } },
        ],
        nullable: true,
      },
    ],
    ['the flag of OpenAPI', 'gemini-json', { type: 'string', nullable: true }, { type: ['string', 'null'] }],
    ['only null', 'gemini-openapi', { type: 'null' }, { type: 'NULL' }],
    // alternatives
    ['oneOf', 'openai-strict', { oneOf: [{ type: 'string' }] }, { anyOf: [{ type: 'string' }] }],
    ['oneOf', 'anthropic-strict', { oneOf: [{ type: 'string' }] }, { anyOf: [{ type: 'string' }] }],
    ['oneOf', 'gemini-json', { oneOf: [{ type: 'string' }] }, { anyOf: [{ type: 'string' }] }],
    [
      'oneOf',
      'gemini-openapi',
      { oneOf: [{ type: 'string' }, { type: 'integer' }] },
      { anyOf: [{ type: 'STRING' }, { type: 'INTEGER' }] },
    ],
    [
      'P50 anyOf with null',
      'gemini-openapi',
      { anyOf: [{ type: 'string' }, { type: 'null' }] },
      { type: 'STRING', nullable: true },
    ],
    [
      'allOf is merged',
      'gemini-openapi',
      {
        allOf: [
          { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
          { properties: { b: { type: 'integer', minimum: 1 } } },
          { properties: { b: { minimum: 3 } } },
        ],
      },
      { type: 'OBJECT', properties: { a: { type: 'STRING' }, b: { type: 'INTEGER', minimum: 3 } }, required: ['a'] },
    ],
    [
      'allOf that nothing fits',
      'gemini-json',
      { allOf: [{ type: 'string' }, { type: 'integer' }] },
      { type: 'string' },
      ['allOf'],
    ],
    // bounds
    [
      'bounds',
      'anthropic-strict',
      { type: 'integer', minimum: 1, maximum: 10 },
      { description: '(min 1, max 10)', type: 'integer' },
      ['minimum', 'maximum'],
    ],
    [
      'bounds',
      'openai-strict',
      { type: 'string', description: 'D', minLength: 1, pattern: 'a' },
      { description: 'D (min length 1)', type: 'string', pattern: 'a' },
      ['minLength'],
    ],
    [
      'bounds',
      'gemini-json',
      { type: 'array', items: {}, minItems: 1, uniqueItems: true },
      { description: '(unique items)', type: 'array', items: {}, minItems: 1 },
      ['uniqueItems'],
    ],
    [
      'bounds',
      'gemini-openapi',
      { type: 'string', minLength: 1, pattern: 'a', multipleOf: 2 },
      { description: '(multiple of 2)', type: 'STRING', minLength: 1, pattern: 'a' },
      ['multipleOf'],
    ],
    ['few items', 'anthropic-strict', { type: 'array', minItems: 1 }, { type: 'array', minItems: 1 }],
    [
      'a bound that is none',
      'gemini-json',
      { type: 'string', minItems: 'x' },
      { description: '(min items x)', type: 'string' },
      ['minItems'],
    ],
    // format
    ['format', 'anthropic-strict', { type: 'string', format: 'uri' }, { type: 'string', format: 'uri' }],
    ['format', 'openai-strict', { type: 'string', format: 'uri' }, { description: '(format uri)', type: 'string' }, ['format']],
    ['format', 'gemini-json', { type: 'string', format: 'uri' }, { type: 'string', format: 'uri' }],
    ['format', 'gemini-openapi', { type: 'string', format: 'date-time' }, { type: 'STRING', format: 'date-time' }],
    [
      'format',
      'gemini-openapi',
      { type: 'string', format: 'int32' },
      { description: '(format int32)', type: 'STRING' },
      ['format'],
    ],
    // annotations
    [
      'annotations',
      'openai-strict',
      { type: 'string', $schema: 's', title: 'T', default: 'd' },
      { description: '(default d)', type: 'string', title: 'T' },
      ['default'],
    ],
    [
      'annotations',
      'anthropic-strict',
      { type: 'string', $id: 'i', title: 'T', examples: ['e', 1] },
      { description: '(for example e, 1)', type: 'string', title: 'T' },
      ['$id', 'examples'],
    ],
    [
      'annotations',
      'gemini-json',
      { type: 'string', $id: 'i', title: 'T', default: 'd' },
      { description: '(default d)', type: 'string', $id: 'i', title: 'T' },
      ['default'],
    ],
    [
      'annotations',
      'gemini-openapi',
      { type: 'string', title: 'T', default: 'd', not: { const: 'x' } },
      { description: '(not {"const":"x"})', type: 'STRING', title: 'T', default: 'd' },
      ['not'],
    ],
    // optional properties
    [
      'optional properties',
      'openai-strict',
      {
        type: 'object',
        properties: {
          a: { type: 'string' },
          b: { enum: ['x'], type: 'string' },
          c: { const: 1 },
          d: { anyOf: [{ type: 'string' }] },
        },
        required: ['a'],
      },
      {
        type: 'object',
        properties: {
          a: { type: 'string' },
          b: { type: ['string', 'null'], enum: ['x', null] },
          c: { anyOf: [{ const: 1 }, { type: 'null' }] },
          d: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        },
        required: ['a', 'b', 'c', 'd'],
        ...CLOSED,
      },
      ['optional properties'],
    ],
    // lists
    ['P54 a list of nothing', 'openai-strict', { type: 'array' }, { type: 'array', items: { type: 'string' } }],
    ['P54 a list of nothing', 'anthropic-strict', { type: 'array' }, { type: 'array' }],
    ['P54 a list of nothing', 'gemini-json', { type: 'array' }, { type: 'array', items: { type: 'string' } }],
    ['P54 a list of nothing', 'gemini-openapi', { type: 'array' }, { type: 'ARRAY', items: { type: 'STRING' } }],
    [
      'a tuple',
      'gemini-json',
      { type: 'array', items: [{ type: 'string' }] },
      { type: 'array', prefixItems: [{ type: 'string' }] },
    ],
    [
      'a tuple',
      'gemini-openapi',
      { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }] },
      { description: '(2 items in order)', type: 'ARRAY', items: { anyOf: [{ type: 'STRING' }, { type: 'INTEGER' }] } },
      ['prefixItems'],
    ],
    // required
    [
      'P52 unknown names',
      'gemini-openapi',
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a', 'b'] },
      { type: 'OBJECT', properties: { a: { type: 'STRING' } }, required: ['a'] },
      ['required'],
    ],
    [
      'P52 unknown names',
      'anthropic-strict',
      { type: 'object', properties: {}, required: ['b'] },
      { type: 'object', properties: {}, ...CLOSED },
      ['required'],
    ],
    ['P53 an object of nothing, inside', 'gemini-openapi', { type: 'object', properties: {} }, { type: 'OBJECT' }],
    // OpenAPI has no schema without a type
    ['anything', 'gemini-openapi', {}, { description: '(any value)', type: 'STRING' }, ['type']],
    ['anything', 'gemini-json', {}, {}],
    ['a type by its keywords', 'gemini-openapi', { minimum: 1 }, { type: 'NUMBER', minimum: 1 }],
  ])('%s: %s', (_, dialect, schema, expected, lost = []) => {
    expect(inside(schema, dialect)).toEqual({ schema: expected, lost });
  });
});

describe('references', () => {
  const $defs = { P: { type: 'object', properties: { x: { type: 'string' } } } };

  test('P49: inlined for OpenAPI with their sibling keywords', () => {
    const schema = { type: 'object', properties: { p: { $ref: '#/$defs/P', description: 'D' } }, $defs };
    expect(convert(schema, 'gemini-openapi')).toEqual({
      schema: {
        type: 'OBJECT',
        properties: { p: { description: 'D', type: 'OBJECT', properties: { x: { type: 'STRING' } } } },
      },
      lost: [],
    });
  });

  test('P49: recursion is cut, and the description says where', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/Node' } } };
    const { schema, lost } = convert({ $ref: '#/$defs/Node', $defs: { Node: node } }, 'gemini-openapi');
    expect(schema).toEqual({ type: 'OBJECT', properties: { next: { description: 'see Node', type: 'OBJECT' } } });
    expect(lost).toEqual(['$ref']);
  });

  test.each<[name: string, dialect: Work]>([
    ['gemini-json', 'gemini-json'],
    ['openai-strict', 'openai-strict'],
    ['anthropic-strict', 'anthropic-strict'],
  ])('%s: a reference stands alone, its company around it; definitions have one name', (_, dialect) => {
    const schema = {
      type: 'object',
      properties: { a: { $ref: '#/definitions/P' }, b: { allOf: [{ $ref: '#/definitions/P' }], description: 'D' } },
      required: ['a', 'b'],
      definitions: $defs,
    };
    const { schema: after, lost } = convert({ ...schema, definitions: $defs }, dialect);
    expect(after).toMatchObject({
      properties: { a: { $ref: '#/$defs/P' }, b: { description: 'D', anyOf: [{ $ref: '#/$defs/P' }] } },
      $defs: { P: { type: 'object' } },
    });
    expect(after).not.toHaveProperty('definitions');
    expect(lost.filter((keyword) => keyword !== 'optional properties')).toEqual([]);
  });

  test.each<[name: string, ref: string]>([
    ['nowhere', '#/$defs/missing'],
    ['elsewhere', 'https://example.com/s.json'],
    ['into the prototype', '#/__proto__/x'],
    ['a broken escape', '#/%'],
  ])('%s: told, not thrown', (_, $ref) => {
    for (const dialect of GEMINI) {
      const found = convert({ type: 'object', properties: { p: { $ref } } }, dialect);
      expect(found.lost).toContain('$ref');
      expect(geminiFaults(found.schema, dialect)).toEqual([]);
    }
  });

  test('escaped names', () => {
    const schema = { type: 'object', properties: { p: { $ref: '#/$defs/a~1b%20c' } }, $defs: { 'a/b c': { type: 'string' } } };
    expect(convert(schema, 'gemini-openapi').schema).toMatchObject({ properties: { p: { type: 'STRING' } } });
  });
});

describe('hostile schemas', () => {
  /** Each definition has the next one twice: two to the power of their number. */
  const bomb = (levels: number, twice: (ref: JsonObject) => JsonObject): JsonSchema => ({
    type: 'object',
    properties: { p: { $ref: '#/$defs/d0' } },
    $defs: Object.fromEntries(
      Array.from({ length: levels }, (_, i) => [
        `d${i}`,
        i === levels - 1 ? { type: 'string' } : twice({ $ref: `#/$defs/d${i + 1}` }),
      ]),
    ),
  });

  test.each<[name: string, twice: (ref: JsonObject) => JsonObject]>([
    ['properties', (ref) => ({ type: 'object', properties: { a: ref, b: ref } })],
    ['anyOf', (ref) => ({ anyOf: [ref, ref] })],
    ['allOf', (ref) => ({ allOf: [ref, ref] })],
    ['a long text', (ref) => ({ type: 'object', description: 'x'.repeat(10_000), properties: { a: ref, b: ref } })],
  ])('a bomb of references: %s', (_, twice) => {
    for (const dialect of Object.keys(DIALECTS) as Work[]) {
      const { schema } = convert(bomb(60, twice), dialect);
      expect(JSON.stringify(schema).length).toBeLessThan(1_500_000);
    }
  });

  test('a chain of references, and a deep schema, end', () => {
    const chain = bomb(5000, (ref) => ({ type: 'object', properties: { a: ref } }));
    let deep: JsonObject = { type: 'string' };
    for (let i = 0; i < 3000; i++) deep = { type: 'object', properties: { a: deep } };
    for (const dialect of GEMINI)
      for (const schema of [chain, deep]) expect(geminiFaults(convert(schema, dialect).schema, dialect)).toEqual([]);
  });

  test('__proto__ is a property like any other', () => {
    const schema = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"string","const":"a"}},"required":["__proto__"]}',
    );
    for (const dialect of Object.keys(DIALECTS) as Work[]) {
      const text = JSON.stringify(convert(schema, dialect).schema);
      expect(text).toContain('"properties":{"__proto__":');
      expect(text).toContain('"required":["__proto__"]');
    }
    expect(Object.prototype).not.toHaveProperty('type');
  });

  const WORDS = [
    'type',
    'properties',
    'required',
    'items',
    'enum',
    'const',
    'anyOf',
    'oneOf',
    'allOf',
    '$ref',
    '$defs',
    'format',
    'nullable',
    'additionalProperties',
    'prefixItems',
    'minimum',
    'description',
    'default',
    'not',
    '__proto__',
    'x',
  ];
  const VALUES = ['string', 'object', 'array', 'null', 'STRING', '#', '#/$defs/x', '#/properties/x', 'date-time', '', 'x'];
  const { schema: anySchema } = fc.letrec<{ schema: JsonObject; value: unknown }>((tie) => ({
    schema: fc.dictionary(fc.constantFrom(...WORDS), tie('value'), { maxKeys: 5, noNullPrototype: true }),
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom<unknown>(...VALUES, 0, 1.5, true, false, null),
      tie('schema'),
      fc.array(tie('value'), { maxLength: 3 }),
    ),
  }));

  test.each(Object.keys(DIALECTS) as Work[])('%s: anything becomes a schema of the dialect, once and for all', (dialect) => {
    fc.assert(
      fc.property(anySchema, (schema) => {
        const source = structuredClone(schema);
        const { schema: after } = convert(schema, dialect);
        expect(schema).toEqual(source);
        if (dialect === 'gemini-json' || dialect === 'gemini-openapi') expect(geminiFaults(after, dialect)).toEqual([]);
        expect(convert(after, dialect)).toEqual({ schema: after, lost: [] });
      }),
      { numRuns: 400 },
    );
  });
});

describe('the pass', () => {
  const request = (tool: Partial<CanonicalTool>): CanonicalRequest => ({
    model: 'm',
    messages: [],
    parameters: {},
    tools: [{ name: 'f', ...tool }],
  });
  const run = (tool: Partial<CanonicalTool>, dialect: SchemaDialect) => {
    const rules = testRules({ schemas: { tool: dialect, strictTool: dialect, output: dialect, strictOutput: dialect } });
    const [converted] = convertSchemas(request(tool), rules).tools ?? [];
    return { schema: converted?.input_schema, told: rules.told };
  };

  test.each<
    [name: string, dialect: SchemaDialect, schema: JsonSchema | undefined, expected: JsonSchema | undefined, told?: string[]]
  >([
    ['P53 no schema', 'gemini-openapi', undefined, undefined],
    ['P53 nothing', 'gemini-openapi', { type: 'object', properties: {} }, undefined],
    [
      'P53 nothing',
      'openai',
      { type: 'object' },
      { type: 'object', properties: {} },
      ['REPAIRED tools.schema /tools/0/input_schema'],
    ],
    ['#34 an empty schema', 'openai', {}, { type: 'object', properties: {} }, ['REPAIRED tools.schema /tools/0/input_schema']],
    ['no type', 'anthropic', { properties: { a: {} } }, { type: 'object', properties: { a: {} } }],
    ['everything else stays', 'anthropic', { type: 'object', not: {} }, { type: 'object', not: {} }],
    [
      'a root that is a reference',
      'anthropic',
      { $ref: '#/definitions/A', definitions: { A: { type: 'object', properties: {} } } },
      { type: 'object', properties: {}, definitions: { A: { type: 'object', properties: {} } } },
    ],
    [
      'strict without arguments',
      'openai-strict',
      undefined,
      { type: 'object', properties: {}, required: [], additionalProperties: false },
    ],
    [
      'the language of the source, which it is no longer in, is no loss',
      'gemini-openapi',
      { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', properties: { a: { type: 'string' } } },
      { type: 'OBJECT', properties: { a: { type: 'STRING' } } },
    ],
    [
      'nor where the dialect is near',
      'gemini-json',
      { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', properties: { a: { type: 'string' } } },
      { type: 'object', properties: { a: { type: 'string' } } },
    ],
    [
      'one note, whatever is lost',
      'gemini-openapi',
      { type: 'object', properties: { a: { type: 'string', format: 'uri', contentEncoding: 'b' } } },
      { type: 'OBJECT', properties: { a: { description: '(format uri, contentEncoding b)', type: 'STRING' } } },
      ['DROPPED tools.schema /tools/0/input_schema'],
    ],
  ])('%s: %s', (_, dialect, schema, expected, told = []) => {
    expect(run(schema ? { input_schema: schema, strict: true } : { strict: true }, dialect)).toEqual({ schema: expected, told });
  });

  test('a schema in OpenAI’s own strict shape is left to OpenAI', () => {
    const own = {
      type: 'object',
      properties: { a: { type: 'string', minLength: 1 } },
      required: ['a'],
      additionalProperties: false,
    };
    const { schema, told } = run({ input_schema: own, strict: true }, 'openai-strict');
    expect(schema).toBe(own);
    expect(told).toEqual([]);
  });

  test('P56 the answer’s schema too', () => {
    const rules = testRules({
      schemas: {
        tool: 'anthropic',
        strictTool: 'anthropic-strict',
        output: 'anthropic-strict',
        strictOutput: 'anthropic-strict',
      },
    });
    const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 1 } } };
    const { output_format: format } = convertSchemas(
      { model: 'm', messages: [], parameters: {}, output_format: { type: 'json_schema', json_schema: { schema, strict: true } } },
      rules,
    );
    expect(format).toEqual({
      type: 'json_schema',
      json_schema: {
        strict: true,
        schema: { type: 'object', properties: { n: { description: '(min 1)', type: 'integer' } }, additionalProperties: false },
      },
    });
    expect(rules.told).toEqual(['DROPPED output_format.schema /output_format/json_schema/schema']);
  });

  test('words about the schema are nobody’s loss: strict policies do not refuse them', () => {
    const rules = testRules({
      schemas: { tool: 'gemini-openapi', strictTool: 'gemini-openapi', output: 'openai', strictOutput: 'openai' },
      drop: () => {
        throw new Error('refused');
      },
    });
    const schema = { $comment: 'x', type: 'object', properties: { a: { type: 'string' } } };
    expect(() => convertSchemas(request({ input_schema: schema }), rules)).not.toThrow();
    expect(rules.told).toEqual(['DROPPED tools.schema /tools/0/input_schema']);
  });

  test('tools that a provider runs, and free text, have no schema of ours', () => {
    for (const kind of ['server', 'custom'] as const) {
      const tool = { kind, input_schema: { type: 'array' } };
      expect(run(tool, 'gemini-openapi').schema).toBe(tool.input_schema);
    }
  });
});

describe('completeSchema', () => {
  test.each<[name: string, schema: JsonSchema, expected: JsonSchema]>([
    ['#34 none', {}, { type: 'object', properties: {} }],
    ['P53 without properties', { type: 'object' }, { type: 'object', properties: {} }],
    [
      'P54 a list without items',
      { type: 'object', properties: { a: { type: 'array' } } },
      { type: 'object', properties: { a: { type: 'array', items: { type: 'string' } } } },
    ],
    [
      'P54 deep inside',
      { type: 'object', properties: {}, $defs: { x: { anyOf: [{ type: 'array' }, { type: 'null' }] } } },
      {
        type: 'object',
        properties: {},
        $defs: { x: { anyOf: [{ type: 'array', items: { type: 'string' } }, { type: 'null' }] } },
      },
    ],
    [
      'a map inside stays',
      { type: 'object', properties: { m: { type: 'object' } } },
      { type: 'object', properties: { m: { type: 'object' } } },
    ],
    [
      'a tuple stays',
      { type: 'object', properties: { t: { type: 'array', prefixItems: [{}] } } },
      { type: 'object', properties: { t: { type: 'array', prefixItems: [{}] } } },
    ],
  ])('%s', (_, schema, expected) => expect(completeSchema(schema)).toEqual(expected));

  test('what is whole is the same object', () => {
    const whole = { type: 'object', properties: { a: { type: 'array', items: { type: 'string' } } } };
    expect(completeSchema(whole)).toBe(whole);
  });

  test('a property called __proto__', () => {
    const schema = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"array"}}}');
    expect(JSON.stringify(completeSchema(schema))).toBe(
      '{"type":"object","properties":{"__proto__":{"type":"array","items":{"type":"string"}}}}',
    );
  });
});

describe('the tools of real clients', () => {
  /** Every object below a key that holds the schema of a tool, in whatever protocol. */
  function* schemasIn(value: unknown): Iterable<JsonObject> {
    if (Array.isArray(value)) for (const item of value) yield* schemasIn(item);
    else if (isObject(value))
      for (const [key, item] of Object.entries(value)) {
        const isSchema = ['input_schema', 'parameters', 'parametersJsonSchema', 'schema'].includes(key) && isObject(item);
        if (isSchema && (item['type'] !== undefined || item['properties'] !== undefined)) yield item;
        else yield* schemasIn(item);
      }
  }

  const schemas = readCapturedRequests().flatMap(({ name, body }) =>
    [...schemasIn(body)].map((schema) => ({ file: name, schema })),
  );

  /** Keywords that are said in other words without loss. */
  const REWORDED = new Set(['$schema', '$ref', '$defs', 'definitions', 'const', 'allOf', 'oneOf', 'anyOf', 'nullable']);

  function keywordsOf(schema: JsonObject, found = new Set<string>()): Set<string> {
    for (const key of Object.keys(schema)) if (schema[key] !== undefined) found.add(key);
    for (const child of listChildren(schema)) keywordsOf(child, found);
    return found;
  }

  test('there are many', () => expect(schemas.length).toBeGreaterThan(100));

  test.each(GEMINI)('%s: all are taken whole, and every keyword that is gone is named', (dialect) => {
    for (const { file, schema } of schemas) {
      const { schema: after, lost } = convert(schema, dialect);
      expect(geminiFaults(after, dialect), `${file} ${JSON.stringify(schema).slice(0, 200)}`).toEqual([]);
      const left = keywordsOf(after);
      const gone = [...keywordsOf(schema)].filter((keyword) => !left.has(keyword) && !REWORDED.has(keyword));
      const isEmpty = dialect === 'gemini-openapi' ? ['properties', 'required'] : ['required'];
      expect(lost, file).toEqual(expect.arrayContaining(gone.filter((keyword) => !isEmpty.includes(keyword))));
    }
  });
});
