import { describe, expect, test } from 'vitest';
import type { ContentBlock } from '../../src/canonical/message.ts';
import type { JsonSchema } from '../../src/canonical/protocol.ts';
import type { CanonicalRequest, CanonicalTool } from '../../src/canonical/request.ts';
import { isObjectRoot, wrapRoot } from '../../src/passes/schema/nodes.ts';
import { convertCustomTools, wrapRoots } from '../../src/passes/tools.ts';
import { testRules } from './telling.ts';

const request = (tool: CanonicalTool, ...content: ContentBlock[]): CanonicalRequest => ({
  model: 'm',
  parameters: {},
  tools: [tool],
  messages: [{ role: 'assistant', content }],
});
const use = (over: object): ContentBlock => ({ type: 'tool_use', id: 'a', name: 'f', input: {}, ...over });

describe('custom tools', () => {
  const source = request(
    { name: 'f', kind: 'custom', description: 'D' },
    use({ kind: 'custom', input: 'SELECT 1', input_raw: 'SELECT 1' }),
    { type: 'tool_result', tool_use_id: 'a', content: 'r', kind: 'custom' },
  );

  test('P46: functions with one text, in history too', () => {
    const rules = testRules();
    const { tools, messages } = convertCustomTools(source, rules);
    expect(tools).toEqual([
      {
        name: 'f',
        description: 'D',
        input_schema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
      },
    ]);
    expect(messages[0]?.content).toEqual([
      use({ input: { input: 'SELECT 1' } }),
      { type: 'tool_result', tool_use_id: 'a', content: 'r' },
    ]);
    expect(rules.told).toEqual(['APPROXIMATED tools.custom /tools/0']);
  });

  test('where they are known they stay', () => expect(convertCustomTools(source, testRules({ custom: true }))).toBe(source));
});

describe('roots', () => {
  test.each<[name: string, isObject: boolean, schema: JsonSchema | undefined]>([
    ['none', true, undefined],
    ['nothing', true, {}],
    ['an object', true, { type: 'object' }],
    ['properties', true, { properties: {} }],
    ['an object or null', true, { type: ['object', 'null'] }],
    ['in capitals', true, { type: 'OBJECT' }],
    ['a reference to one', true, { $ref: '#/$defs/A', $defs: { A: { type: 'object' } } }],
    ['P57 alternatives', false, { anyOf: [{ type: 'object' }] }],
    ['P57 alternatives of an object', false, { type: 'object', oneOf: [{ required: ['a'] }] }],
    ['a text', false, { type: 'string' }],
    ['an object or a text', false, { type: ['object', 'string'] }],
    ['a reference to nothing', false, { $ref: '#/$defs/A' }],
    ['a reference to itself', false, { $ref: '#' }],
  ])('%s', (_, isObject, schema) => expect(isObjectRoot(schema)).toBe(isObject));

  test('definitions stay at the root, and references find them', () => {
    const schema = {
      type: 'array',
      items: { anyOf: [{ $ref: '#/$defs/A' }, { $ref: '#' }, { $ref: '#/items' }] },
      $defs: { A: { $ref: '#/$defs/B' } },
    };
    expect(wrapRoot(schema)).toEqual({
      type: 'object',
      properties: {
        input: {
          type: 'array',
          items: { anyOf: [{ $ref: '#/$defs/A' }, { $ref: '#/properties/input' }, { $ref: '#/properties/input/items' }] },
        },
      },
      required: ['input'],
      $defs: { A: { $ref: '#/$defs/B' } },
    });
  });

  const LIST = { type: 'array', items: { type: 'string' } };

  test.each<[name: string, call: object, input: unknown]>([
    ['P44 what a decoder kept as text', { input_raw: '[1]' }, [1]],
    ['P43 a text that is no JSON', { input_raw: '[1' }, '[1'],
    ['an object', { input: { a: 1 } }, { a: 1 }],
    ['null', { input_raw: 'null' }, null],
  ])('P57: the value is a property, in history too: %s', (_, call, input) => {
    const rules = testRules({ objectRoot: true });
    const { tools, messages } = wrapRoots(request({ name: 'f', input_schema: LIST }, use(call)), rules);
    expect(tools?.[0]?.input_schema).toEqual({ type: 'object', properties: { input: LIST }, required: ['input'] });
    expect(messages[0]?.content).toEqual([use({ input: { input } })]);
    expect(rules.told).toEqual(['APPROXIMATED tools.schema /tools/0']);
  });

  test('P57: calls of other tools stay, and all where roots are free', () => {
    const other = request({ name: 'g', input_schema: LIST }, use({ input: { a: 1 } }));
    expect(wrapRoots(other, testRules({ objectRoot: true })).messages).toBe(other.messages);
    expect(wrapRoots(other, testRules())).toBe(other);
  });
});
