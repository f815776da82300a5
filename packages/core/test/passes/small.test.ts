import { describe, expect, test } from 'vitest';
import type { CanonicalRequest, RequestParameters } from '../../src/canonical/request.ts';
import { convertCustomTool } from '../../src/passes/tools.ts';
import { mergeRoles } from '../../src/passes/turns.ts';
import { clampParameters } from '../../src/passes/unsupported.ts';
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
    expect(clampParameters(request({ parameters }), rules).parameters).toEqual(expected);
    expect(rules.told).toEqual(told);
  });

  test('more tools than the limit are refused, never cut', () => {
    const tools = ['a', 'b', 'c'].map((name) => ({ name }));
    const whole = request({ tools, tool_choice: { type: 'tool', name: 'c' } });
    expect(clampParameters(whole, testRules({ maxTools: 3 }))).toBe(whole);
    expect(() => clampParameters(whole, testRules({ maxTools: 2 }))).toThrow('at most 2 tools; the request has 3');
  });
});

describe('merge roles', () => {
  const said = (role: 'user' | 'assistant', text: string) => ({ role, content: [{ type: 'text' as const, text }] });

  test('#27 P11: neighbours become one, never across a tool message', () => {
    const tool = { role: 'tool' as const, content: [] };
    const { messages } = mergeRoles(
      request({ messages: [said('user', 'a'), said('user', 'b'), said('assistant', 'c'), tool, said('assistant', 'd')] }),
      testRules({ alternate: true }),
    );
    expect(messages.map(({ role, content }) => [role, content.length])).toEqual([
      ['user', 2],
      ['assistant', 1],
      ['tool', 0],
      ['assistant', 1],
    ]);
  });
});

describe('merge roles of named participants', () => {
  test('one message has no two names', () => {
    const rules = testRules({ alternate: true });
    const said = (name: string) => ({ role: 'user' as const, name, content: [{ type: 'text' as const, text: name }] });
    const { messages } = mergeRoles(request({ messages: [said('a'), said('a'), said('b')] }), rules);
    expect(messages).toEqual([{ role: 'user', content: ['a', 'a', 'b'].map((text) => ({ type: 'text', text })) }]);
    expect(rules.told).toEqual(['DROPPED messages.name /messages/2']);
  });
});

test('#10 P46: a custom tool as a function', () => {
  const tool = convertCustomTool({
    name: 'sql',
    kind: 'custom',
    format: { type: 'grammar', syntax: 'lark', definition: 'start: "a"' },
  });
  expect(tool).toEqual({
    name: 'sql',
    input_schema: {
      type: 'object',
      properties: { input: { type: 'string', description: 'Text by this lark grammar:\nstart: "a"' } },
      required: ['input'],
    },
  });
});
