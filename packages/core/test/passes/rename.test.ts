import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CanonicalRequest } from '../../src/canonical/request.ts';
import { mapIds, mapNames, nameTable, reverse } from '../../src/passes/rename.ts';
import type { NameRule } from '../../src/passes/rules.ts';
import { testRules } from './telling.ts';

const CHAT: NameRule = { pattern: /^[a-zA-Z0-9_-]+$/, max: 64 };
const GEMINI: NameRule = { pattern: /^[A-Za-z_][A-Za-z0-9_.:-]*$/, max: 128 };
const withTools = (...names: string[]): CanonicalRequest => ({
  model: 'm',
  messages: [],
  parameters: {},
  tools: names.map((name) => ({ name })),
});

describe('names', () => {
  const LONG = 'mcp__plugin_chrome-devtools-mcp_chrome-devtools__performance_analyze_insight';

  test.each<[name: string, names: string[], rule: NameRule, expected: (string | RegExp)[]]>([
    ['legal names stay', ['get_weather', 'a-b'], CHAT, ['get_weather', 'a-b']],
    ['P26 too long: 48 characters and a hash', [LONG], CHAT, [/^.{48}_[0-9a-f]{8}$/]],
    ['P27 dots', ['josef.prochazka--singer'], CHAT, ['josef_prochazka--singer']],
    ['P27 dots that the target takes', ['a.b'], GEMINI, ['a.b']],
    ['P27 begins with a digit', ['2d_plot'], GEMINI, ['_2d_plot']],
    ['P20 two that collide', ['a.b', 'a:b', 'a_b'], CHAT, [/^a_b_[0-9a-f]{8}$/, /^a_b_[0-9a-f]{8}$/, 'a_b']],
    ['letters of other scripts', ['wetter_für'], CHAT, ['wetter_f_r']],
    ['nothing', [''], CHAT, [/^tool_[0-9a-f]{8}$/]],
    ['__proto__ is a name', ['__proto__'], CHAT, ['__proto__']],
  ])('%s', (_, names, rule, expected) => {
    const { request } = mapNames(withTools(...names), rule, testRules());
    const found = request.tools?.map(({ name }) => name) ?? [];
    found.forEach((name, i) => {
      expect(name).toMatch(typeof expected[i] === 'string' ? new RegExp(`^${expected[i]}$`) : (expected[i] ?? ''));
    });
    expect(new Set(found).size).toBe(names.length);
  });

  test('P26: the same name in definition, choice, calls and results; and back', () => {
    const { request, names } = mapNames(
      {
        ...withTools(LONG),
        tool_choice: { type: 'tool', name: LONG },
        messages: [
          { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: LONG, input: {} }] },
          { role: 'tool', content: [{ type: 'tool_result', tool_use_id: '1', name: LONG, content: '' }] },
        ],
      },
      CHAT,
      testRules(),
    );
    const short = request.tools?.[0]?.name ?? '';
    expect(short).toMatch(/^.{48}_[0-9a-f]{8}$/);
    expect(JSON.stringify(request)).not.toContain(LONG);
    expect(request).toMatchObject({
      tool_choice: { name: short },
      messages: [{ content: [{ name: short }] }, { content: [{ name: short }] }],
    });
    expect(reverse(names).get(short)).toBe(LONG);
  });

  test('P61: allowed tools are renamed too; RENAMED is told once', () => {
    const rules = testRules();
    const source: CanonicalRequest = { ...withTools('a.b'), tool_choice: { type: 'auto', allowed_tools: ['a.b'] } };
    expect(mapNames(source, CHAT, rules).request.tool_choice).toEqual({ type: 'auto', allowed_tools: ['a_b'] });
    expect(rules.told).toEqual(['RENAMED tools.name /tools']);
  });

  test('tools of the provider keep their names', () => {
    const tool = { name: 'openrouter:web_search', kind: 'server' as const };
    expect(mapNames({ ...withTools(), tools: [tool] }, CHAT, testRules()).request.tools).toEqual([tool]);
  });

  test('any names: legal, distinct, reversible, the same again', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ unit: 'binary', maxLength: 100 }), { maxLength: 20 }), (names) => {
        const request = withTools(...names);
        const table = nameTable(request, CHAT);
        const mapped = names.map((name) => table.get(name) ?? name);
        expect(new Set(mapped).size).toBe(names.length);
        for (const name of mapped) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
        expect(mapped.map((name) => reverse(table).get(name) ?? name)).toEqual(names);
        expect(nameTable(request, CHAT)).toEqual(table);
      }),
    );
  });
});

describe('ids', () => {
  const turn = (...ids: string[]): CanonicalRequest['messages'] => [
    { role: 'assistant', content: ids.map((id) => ({ type: 'tool_use', id, name: 'f', input: {} })) },
    { role: 'tool', content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: '' })) },
  ];
  const idsOf = (request: CanonicalRequest): [calls: string[], results: string[]] => {
    const blocks = request.messages.flatMap(({ content }) => content);
    return [
      blocks.flatMap((block) => (block.type === 'tool_use' ? [block.id] : [])),
      blocks.flatMap((block) => (block.type === 'tool_result' ? [block.tool_use_id] : [])),
    ];
  };
  const rule: NameRule = { pattern: /^[a-zA-Z0-9_-]+$/, max: 40 };

  test.each<[name: string, messages: CanonicalRequest['messages'], expected: (string | RegExp)[]]>([
    ['legal ids stay', turn('call_1', 'b'), ['call_1', 'b']],
    ['P20 illegal characters', turn('functions.Bash:0'), ['functions_Bash_0']],
    ['P20 two that collide', turn('a.b', 'a:b'), ['a_b', /^call_[0-9a-f]{24}$/]],
    ['P21 53 characters', turn(`fc_${'0f'.repeat(25)}`), [/^call_[0-9a-f]{24}$/]],
    ['P22 an empty one', turn(''), [/^call_[0-9a-f]{24}$/]],
    ['an id used again, by a later turn', [...turn('a'), ...turn('a')], ['a', /^call_[0-9a-f]{24}$/]],
    ['an id used twice in one turn', turn('a', 'a'), ['a', /^call_[0-9a-f]{24}$/]],
  ])('%s', (_, messages, expected) => {
    const { request } = mapIds({ model: 'm', parameters: {}, messages }, rule, testRules());
    const [calls, results] = idsOf(request);
    calls.forEach((id, i) => {
      expect(id).toMatch(typeof expected[i] === 'string' ? new RegExp(`^${expected[i]}$`) : (expected[i] ?? ''));
    });
    expect(results).toEqual(calls);
    expect(new Set(calls).size).toBe(calls.length);
    expect(mapIds(request, rule, testRules()).request).toEqual(request);
  });
});
