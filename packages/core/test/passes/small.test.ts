import { describe, expect, test } from 'vitest';
import type { JsonSchema } from '../../src/canonical/protocol.ts';
import type { CanonicalRequest, RequestParameters } from '../../src/canonical/request.ts';
import { clamp } from '../../src/passes/clamp.ts';
import { asFunction } from '../../src/passes/custom-tools.ts';
import { mergeRoles } from '../../src/passes/merge-roles.ts';
import { prepare } from '../../src/passes/prepare.ts';
import { completeSchema } from '../../src/passes/schema.ts';
import { testRules } from './telling.ts';

const request = (over: Partial<CanonicalRequest> = {}): CanonicalRequest => ({
  model: 'm',
  messages: [],
  parameters: {},
  ...over,
});

describe('clamp', () => {
  test.each<[name: string, parameters: RequestParameters, expected: RequestParameters, told?: string[]]>([
    ['inside', { temperature: 1.5, max_tokens: 7 }, { temperature: 1.5, max_tokens: 7 }],
    ['P68 above', { temperature: 3 }, { temperature: 2 }, ['CLAMPED parameters.temperature /parameters/temperature']],
    [
      'below',
      { frequency_penalty: -9 },
      { frequency_penalty: -2 },
      ['CLAMPED parameters.frequency_penalty /parameters/frequency_penalty'],
    ],
    ['#21 #30 zero is a value', { max_tokens: 0 }, { max_tokens: 1 }, ['CLAMPED parameters.max_tokens /parameters/max_tokens']],
    ['no bounds', { seed: -5 }, { seed: -5 }],
    [
      'P72 #33 stop',
      { stop_sequences: ['1', '2', '3', '4', '5', '6'] },
      { stop_sequences: ['1', '2', '3', '4'] },
      ['CLAMPED parameters.stop_sequences /parameters/stop_sequences'],
    ],
  ])('%s', (_, parameters, expected, told = []) => {
    const rules = testRules();
    expect(clamp(request({ parameters }), rules).parameters).toEqual(expected);
    expect(rules.told).toEqual(told);
  });

  test('too many tools: the one that must be called stays', () => {
    const rules = testRules({ maxTools: 2 });
    const tools = ['a', 'b', 'c'].map((name) => ({ name }));
    expect(clamp(request({ tools, tool_choice: { type: 'tool', name: 'c' } }), rules).tools).toEqual([
      { name: 'a' },
      { name: 'c' },
    ]);
    expect(rules.told).toEqual(['DROPPED tools /tools']);
  });
});

describe('schema', () => {
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

describe('merge roles', () => {
  const said = (role: 'user' | 'assistant', text: string) => ({ role, content: [{ type: 'text' as const, text }] });

  test('#27 P11: neighbours become one, never across a tool message', () => {
    const tool = { role: 'tool' as const, content: [] };
    const { messages } = mergeRoles(
      request({ messages: [said('user', 'a'), said('user', 'b'), said('assistant', 'c'), tool, said('assistant', 'd')] }),
    );
    expect(messages.map(({ role, content }) => [role, content.length])).toEqual([
      ['user', 2],
      ['assistant', 1],
      ['tool', 0],
      ['assistant', 1],
    ]);
  });
});

test('#10 P46: a custom tool as a function', () => {
  const tool = asFunction({ name: 'sql', kind: 'custom', format: { type: 'grammar', syntax: 'lark', definition: 'start: "a"' } });
  expect(tool).toEqual({
    name: 'sql',
    input_schema: {
      type: 'object',
      properties: { input: { type: 'string', description: 'Text by this lark grammar:\nstart: "a"' } },
      required: ['input'],
    },
  });
});

test('prepare: pairs first, then names and ids, then media, then numbers; the tables come back', () => {
  const rules = testRules({ alternate: true });
  const prepared = prepare(
    request({
      tools: [{ name: 'a.b' }],
      parameters: { temperature: 9 },
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', id: 'x:1', name: 'a.b', input: {} }] },
        { role: 'user', content: [{ type: 'text', text: 'wait' }] },
        {
          role: 'tool',
          content: [{ type: 'tool_result', tool_use_id: 'x:1', content: [{ type: 'image', source: { url: 'u' } }] }],
        },
      ],
    }),
    rules,
  );
  expect([[...prepared.names], [...prepared.ids]]).toEqual([[['a.b', 'a_b']], [['x:1', 'x_1']]]);
  expect(prepared.request.messages.map(({ role }) => role)).toEqual(['assistant', 'tool', 'user']);
  expect(prepared.request.messages[2]?.content[0]).toEqual({ type: 'text', text: 'Attachment of tool call x_1:' });
  expect(rules.told.map((line) => line.split(' ')[0])).toEqual(['REPAIRED', 'RENAMED', 'RENAMED', 'APPROXIMATED', 'CLAMPED']);
});
