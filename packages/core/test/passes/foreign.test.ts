import { describe, expect, test } from 'vitest';
import type { ContentBlock, OpaqueBlock, ToolResultBlock } from '../../src/canonical/message.ts';
import type { ProtocolId } from '../../src/canonical/protocol.ts';
import type { CanonicalRequest, CanonicalTool, ToolChoice } from '../../src/canonical/request.ts';
import { filterForeign } from '../../src/passes/content.ts';
import { BUILT_IN_TOOLS, mapServerTools } from '../../src/passes/tools.ts';
import { Refused, type RuleChanges, testRules } from './telling.ts';

const of = (protocol: ProtocolId) => ({ extensions: { [protocol]: {} } });
const call = (id: string, over: object = {}): ContentBlock => ({
  type: 'tool_use',
  id,
  name: 'web_search',
  input: {},
  kind: 'server',
  ...over,
});
const result = (id: string, over: object = {}): ContentBlock => ({
  type: 'tool_result',
  tool_use_id: id,
  content: 'r',
  kind: 'server',
  ...over,
});
const opaque = (origin: ProtocolId, text?: string): OpaqueBlock => ({
  type: 'opaque',
  origin,
  raw: { x: 1 },
  ...(text && { text }),
});
const TEXT: ContentBlock = { type: 'text', text: 't' };
const reasoning = (value: string): ContentBlock => ({
  type: 'thinking',
  thinking: '',
  signature: { origin: 'openai-responses', form: 'encrypted', value, item_id: `rs_${value}` },
});

describe('blocks', () => {
  type Row = [name: string, content: ContentBlock[], expected: ContentBlock[], told?: string[]];

  test.each<Row>([
    ['its own', [opaque('openai-responses')], [opaque('openai-responses')]],
    ['of another', [opaque('gemini'), TEXT], [TEXT], ['DROPPED messages.opaque /messages/0/content/0']],
    [
      'a stand-in that the source gave',
      [opaque('gemini', 'shown')],
      [{ type: 'text', text: 'shown' }],
      ['APPROXIMATED messages.opaque /messages/0/content/0'],
    ],
    [
      'a call and its result go together, each told where it stands',
      [call('a'), result('a'), TEXT],
      [TEXT],
      ['DROPPED assistant.tool_use /messages/0/content/0', 'DROPPED assistant.tool_result /messages/0/content/1'],
    ],
    ['P78 its own call', [call('a', of('openai-responses')), result('a')], [call('a', of('openai-responses')), result('a')]],
    [
      'P78 its own result tells of the call',
      [call('a'), result('a', of('openai-responses'))],
      [call('a'), result('a', of('openai-responses'))],
    ],
    [
      'mcp of another',
      [call('a', { kind: 'mcp', ...of('anthropic-messages') })],
      [],
      ['DROPPED assistant.tool_use /messages/0/content/0'],
    ],
    ['a result alone', [result('a')], [], ['DROPPED assistant.tool_result /messages/0/content/0']],
    [
      'what the client ran stays',
      [call('a', { kind: 'function' }), call('b', { kind: 'custom' })],
      [call('a', { kind: 'function' }), call('b', { kind: 'custom' })],
    ],
    [
      'P18 reasoning whose follower is gone goes too',
      [reasoning('1'), reasoning('2'), call('a'), reasoning('3'), TEXT],
      [reasoning('3'), TEXT],
      [
        'DROPPED assistant.tool_use /messages/0/content/2',
        'DROPPED assistant.thinking /messages/0/content/1',
        'DROPPED assistant.thinking /messages/0/content/0',
      ],
    ],
    [
      'P18 a stand-in is a follower',
      [reasoning('1'), opaque('gemini', 'x')],
      [reasoning('1'), { type: 'text', text: 'x' }],
      ['APPROXIMATED messages.opaque /messages/0/content/1'],
    ],
  ])('%s', (_, content, expected, told = []) => {
    const rules = testRules({ protocol: 'openai-responses' });
    const request: CanonicalRequest = { model: 'm', parameters: {}, messages: [{ role: 'assistant', content }] };
    expect(filterForeign(request, rules).messages[0]?.content ?? []).toEqual(expected);
    expect(rules.told).toEqual(told);
  });

  test('inside the result of a tool', () => {
    const rules = testRules();
    const block = (content: ToolResultBlock['content']): ToolResultBlock => ({ type: 'tool_result', tool_use_id: 'a', content });
    const request: CanonicalRequest = {
      model: 'm',
      parameters: {},
      messages: [{ role: 'tool', content: [block([opaque('gemini'), { type: 'text', text: 't' }])] }],
    };
    expect(filterForeign(request, rules).messages[0]?.content).toEqual([block([{ type: 'text', text: 't' }])]);
    expect(rules.told).toEqual(['DROPPED messages.opaque /messages/0/content/0/content/0']);
  });
});

describe('tools', () => {
  const server = (type: string, origin: ProtocolId = 'anthropic-messages'): CanonicalTool => ({
    name: type,
    kind: 'server',
    server: { type, wire_type: `${type}_20250101`, config: { max_uses: 3 }, origin },
  });
  const run = (tools: CanonicalTool[], tool_choice?: ToolChoice, over: RuleChanges = {}) => {
    const rules = testRules({
      serverTools: {
        web_search: {
          reads: ['max_uses'],
          write: (config) => ({ wire_type: 'googleSearch', config: { of: config['max_uses'] } }),
        },
      },
      ...over,
    });
    const request = mapServerTools(
      { model: 'm', messages: [], parameters: {}, tools, ...(tool_choice && { tool_choice }) },
      rules,
    );
    return { tools: request.tools, choice: request.tool_choice, told: rules.told };
  };

  test('a web search tool becomes the counterpart of the target', () => {
    expect(run([server('web_search')])).toEqual({
      tools: [
        {
          name: 'web_search',
          kind: 'server',
          server: { type: 'web_search', wire_type: 'googleSearch', config: { of: 3 }, origin: 'openai-chat' },
        },
      ],
      choice: undefined,
      told: ['APPROXIMATED tools.web_search /tools/0'],
    });
  });

  test.each([...BUILT_IN_TOOLS.keys()])('a tool that clients run: %s becomes a function', (type) => {
    const { tools, told } = run([server(type)]);
    expect(tools).toEqual([
      { name: type, description: expect.any(String), input_schema: expect.objectContaining({ type: 'object' }) },
    ]);
    expect(told).toEqual([`APPROXIMATED tools.${type} /tools/0`]);
  });

  test.each<[name: string, tool: CanonicalTool]>([
    ['its own', server('anything', 'openai-chat')],
    ['a function', { name: 'f' }],
  ])('%s stays', (_, tool) => expect(run([tool])).toEqual({ tools: [tool], choice: undefined, told: [] }));

  test.each<[name: string, choice: ToolChoice | undefined, expected: ToolChoice | undefined, told: string[]]>([
    ['no choice', undefined, undefined, []],
    ['another is named', { type: 'tool', name: 'f' }, { type: 'tool', name: 'f' }, []],
    ['any', { type: 'any' }, { type: 'any' }, []],
    [
      'one of the allowed',
      { type: 'any', allowed_tools: ['computer', 'f'] },
      { type: 'any', allowed_tools: ['f'] },
      ['DROPPED tool_choice.allowed_tools /tool_choice'],
    ],
    [
      'all of the allowed',
      { type: 'any', allowed_tools: ['computer'] },
      { type: 'none' },
      ['DROPPED tool_choice.allowed_tools /tool_choice'],
    ],
  ])('a lost tool: %s', (_, choice, expected, told) => {
    const found = run([server('computer'), { name: 'f' }], choice);
    expect(found).toEqual({ tools: [{ name: 'f' }], choice: expected, told: ['DROPPED tools.computer /tools/0', ...told] });
  });

  test('a lost tool that must be called is refused', () => {
    expect(() => run([server('computer')], { type: 'tool', name: 'computer' })).toThrow(Refused);
  });

  test('a type called __proto__', () => {
    expect(run([server('__proto__')])).toEqual({ tools: [], choice: undefined, told: ['DROPPED tools.__proto__ /tools/0'] });
  });
});
