import { expect, test } from 'vitest';
import type { ContentBlock } from '../../src/canonical/message.ts';
import type { CanonicalMessage } from '../../src/canonical/request.ts';
import { pairTools } from '../../src/passes/tools.ts';
import { testRules } from './telling.ts';

const call = (id: string, kind?: 'server'): ContentBlock => ({
  type: 'tool_use',
  id,
  name: 'f',
  input: {},
  ...(kind && { kind }),
});
const result = (id: string, content = id.toUpperCase()): ContentBlock => ({ type: 'tool_result', tool_use_id: id, content });
const assistant = (...ids: string[]): CanonicalMessage => ({ role: 'assistant', content: ids.map((id) => call(id)) });
const tool = (...ids: string[]): CanonicalMessage => ({ role: 'tool', content: ids.map((id) => result(id)) });
const user = (text: string): CanonicalMessage => ({ role: 'user', content: [{ type: 'text', text }] });
const none = (id: string): ContentBlock => ({
  type: 'tool_result',
  tool_use_id: id,
  name: 'f',
  content: 'No result was recorded for this call.',
  is_error: true,
});

interface Row {
  name: string;
  messages: CanonicalMessage[];
  expected: CanonicalMessage[];
  told?: string[];
}

const ROWS: Row[] = [
  {
    name: 'pairs in place stay',
    messages: [assistant('a', 'b'), tool('a', 'b'), user('x')],
    expected: [assistant('a', 'b'), tool('a', 'b'), user('x')],
  },
  {
    name: 'P06: a result behind a user message moves to its call',
    messages: [assistant('a'), user('wait'), tool('a')],
    expected: [assistant('a'), tool('a'), user('wait')],
    told: ['REPAIRED messages.tool_order /messages/2/content/0'],
  },
  {
    name: 'P07: results stand in the order of the calls',
    messages: [assistant('a', 'b'), tool('b', 'a'), user('x')],
    expected: [assistant('a', 'b'), tool('a', 'b'), user('x')],
  },
  {
    name: 'results in two messages become one',
    messages: [assistant('a', 'b'), tool('a'), tool('b')],
    expected: [assistant('a', 'b'), tool('a', 'b')],
  },
  {
    name: 'P04: a call without a result gets one that says so',
    messages: [assistant('a'), user('go on')],
    expected: [assistant('a'), { role: 'tool', content: [none('a')] }, user('go on')],
    told: ['REPAIRED messages.tool_use /messages/0/content/0'],
  },
  {
    name: 'P08: one of two results is missing',
    messages: [assistant('a', 'b'), tool('b')],
    expected: [assistant('a', 'b'), { role: 'tool', content: [none('a'), result('b')] }],
    told: ['REPAIRED messages.tool_use /messages/0/content/0'],
  },
  {
    name: 'P05: a result without a call becomes text of the user',
    messages: [user('x'), tool('z')],
    expected: [user('x'), user('Result of an earlier tool call: Z')],
    told: ['REPAIRED messages.tool_result /messages/1/content/0'],
  },
  {
    name: 'P05: a result before its call answers nothing',
    messages: [tool('a'), assistant('a')],
    expected: [user('Result of an earlier tool call: A'), assistant('a')],
    told: ['REPAIRED messages.tool_result /messages/0/content/0'],
  },
  { name: 'calls of the last message may wait', messages: [user('x'), assistant('a')], expected: [user('x'), assistant('a')] },
  {
    name: 'an id used twice is answered twice, in order',
    messages: [
      assistant('a'),
      { role: 'tool', content: [result('a', '1')] },
      assistant('a'),
      { role: 'tool', content: [result('a', '2')] },
    ],
    expected: [
      assistant('a'),
      { role: 'tool', content: [result('a', '1')] },
      assistant('a'),
      { role: 'tool', content: [result('a', '2')] },
    ],
  },
  {
    name: 'a second result of one call is an orphan',
    messages: [assistant('a'), tool('a', 'a')],
    expected: [assistant('a'), tool('a'), user('Result of an earlier tool call: A')],
    told: ['REPAIRED messages.tool_result /messages/1/content/1'],
  },
  {
    name: 'calls that the provider ran itself need no result',
    messages: [{ role: 'assistant', content: [call('s', 'server')] }, user('x')],
    expected: [{ role: 'assistant', content: [call('s', 'server')] }, user('x')],
  },
  {
    name: 'an orphan keeps its images and its name',
    messages: [
      user('x'),
      {
        role: 'tool',
        content: [{ type: 'tool_result', tool_use_id: 'z', name: 'shot', content: [{ type: 'image', source: { url: 'u' } }] }],
      },
    ],
    expected: [
      user('x'),
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Result of an earlier tool call (shot):' },
          { type: 'image', source: { url: 'u' } },
        ],
      },
    ],
    told: ['REPAIRED messages.tool_result /messages/1/content/0'],
  },
];

test.each(ROWS)('$name', ({ messages, expected, told = [] }) => {
  const rules = testRules();
  const request = { model: 'm', messages, parameters: {} };
  const before = structuredClone(request);
  const paired = pairTools(request, rules);
  expect(paired.messages).toEqual(expected);
  expect(rules.told).toEqual(told);
  expect(request).toEqual(before);
  expect(pairTools(paired, testRules()).messages).toEqual(paired.messages);
});

test('100,000 calls with results far behind take linear time', () => {
  const ids = Array.from({ length: 100_000 }, (_, i) => `c${i}`);
  const messages = [...ids.map((id) => assistant(id)), ...ids.map((id) => tool(id))];
  expect(pairTools({ model: 'm', messages, parameters: {} }, testRules()).messages).toHaveLength(200_000);
});

test('P05: results may answer calls that the upstream remembers', () => {
  const rules = testRules({ remembersCalls: true });
  const source = [tool('z'), assistant('a'), tool('a', 'y'), user('x')];
  const { messages } = pairTools({ model: 'm', messages: source, parameters: {} }, rules);
  expect(messages).toEqual([tool('z'), assistant('a'), tool('a'), tool('y'), user('x')]);
  expect(rules.told).toEqual([]);
});
