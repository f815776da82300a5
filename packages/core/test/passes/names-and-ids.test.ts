import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CanonicalRequest } from '../../src/canonical/request.ts';
import { buildRenamedTools } from '../../src/engine/restore.ts';
import { mapIds, mapNames } from '../../src/passes/names.ts';
import type { NameRule, ToolRules } from '../../src/passes/rules.ts';
import { testRules } from './telling.ts';

const CHAT: NameRule = { pattern: /^[a-zA-Z0-9_-]+$/, max: 64 };
const GEMINI: NameRule = { pattern: /^[A-Za-z_][A-Za-z0-9_.:-]*$/, max: 128 };
const withTools = (...names: string[]): CanonicalRequest => ({
  model: 'm',
  messages: [],
  parameters: {},
  tools: names.map((name) => ({ name })),
});

const RULES: ToolRules = { toolName: CHAT, custom: false, namespaces: false, objectRoot: false };
const map = (request: CanonicalRequest, rules: Partial<ToolRules> = {}): CanonicalRequest =>
  mapNames(request, testRules({ ...RULES, ...rules }), request);

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
    const request = map(withTools(...names), { toolName: rule });
    const found = request.tools?.map(({ name }) => name) ?? [];
    found.forEach((name, i) => {
      expect(name).toMatch(typeof expected[i] === 'string' ? new RegExp(`^${expected[i]}$`) : (expected[i] ?? ''));
    });
    expect(new Set(found).size).toBe(names.length);
  });

  test('P26: the same name in definition, choice, calls and results; and back', () => {
    const source: CanonicalRequest = {
      ...withTools(LONG),
      tool_choice: { type: 'tool', name: LONG },
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: LONG, input: {} }] },
        { role: 'tool', content: [{ type: 'tool_result', tool_use_id: '1', name: LONG, content: '' }] },
      ],
    };
    const request = map(source);
    const short = request.tools?.[0]?.name ?? '';
    expect(short).toMatch(/^.{48}_[0-9a-f]{8}$/);
    expect(JSON.stringify(request)).not.toContain(LONG);
    expect(request).toMatchObject({
      tool_choice: { name: short },
      messages: [{ content: [{ name: short }] }, { content: [{ name: short }] }],
    });
    expect([...buildRenamedTools(source, RULES)]).toEqual([[short, { name: LONG, form: 'plain' }]]);
  });

  test('P61: allowed tools are renamed too; RENAMED is told once', () => {
    const rules = testRules();
    const source: CanonicalRequest = { ...withTools('a.b'), tool_choice: { type: 'auto', allowed_tools: ['a.b'] } };
    expect(mapNames(source, rules, source).tool_choice).toEqual({ type: 'auto', allowed_tools: ['a_b'] });
    expect(rules.told).toEqual(['RENAMED tools.name /tools/0']);
  });

  test('tools of the provider keep their names', () => {
    const tool = { name: 'openrouter:web_search', kind: 'server' as const };
    expect(map({ ...withTools(), tools: [tool] }).tools).toEqual([tool]);
  });

  test('the names are those of the source, whatever earlier passes took away', () => {
    const orphan = {
      role: 'tool' as const,
      content: [{ type: 'tool_result' as const, tool_use_id: 'z', name: 'a_b', content: '' }],
    };
    const source: CanonicalRequest = { ...withTools('a.b'), messages: [orphan] };
    const [tool] = mapNames({ ...source, messages: [] }, testRules(), source).tools ?? [];
    expect(tool?.name).toMatch(/^a_b_[0-9a-f]{8}$/);
    expect(buildRenamedTools(source, RULES).get(tool?.name ?? '')).toEqual({ name: 'a.b', form: 'plain' });
  });

  test('any names: legal, distinct, reversible, the same again', () => {
    const space = fc.option(fc.constantFrom('crm', 'a.b', 'x__y'), { nil: undefined });
    const called = fc.record({
      name: fc.oneof(fc.string({ unit: 'binary', maxLength: 100 }), fc.constantFrom('get', 'crm__get', 'a.b')),
      namespace: space,
    });
    fc.assert(
      fc.property(
        fc.uniqueArray(called, { maxLength: 20, selector: ({ name, namespace }) => `${namespace}\0${name}` }),
        (all) => {
          const tools = all.map(({ name, namespace }) => ({ name, ...(namespace !== undefined && { namespace }) }));
          const request = { ...withTools(), tools };
          const mapped = map(request);
          const names = mapped.tools?.map(({ name }) => name) ?? [];
          expect(new Set(names).size).toBe(tools.length);
          for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
          const table = buildRenamedTools(request, RULES);
          const back = names.map((name) => {
            const { form: _, ...known } = table.get(name) ?? { name, form: 'plain' };
            return known;
          });
          expect(back).toEqual(tools);
          expect(map(request)).toEqual(mapped);
          expect(map(mapped)).toEqual(mapped);
        },
      ),
    );
  });
});

describe('namespaces', () => {
  const source: CanonicalRequest = {
    model: 'm',
    parameters: {},
    tools: [{ name: 'get', namespace: 'crm' }, { name: 'get' }, { name: 'put', namespace: 'crm' }],
    tool_choice: { type: 'tool', name: 'put' },
    messages: [
      { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: 'get', namespace: 'crm', input: {} }] },
      { role: 'tool', content: [{ type: 'tool_result', tool_use_id: '1', name: 'get', content: '' }] },
    ],
  };

  test('P28: part of the name, everywhere; and back', () => {
    expect(map(source)).toEqual({
      ...source,
      tools: [{ name: 'crm__get' }, { name: 'get' }, { name: 'crm__put' }],
      tool_choice: { type: 'tool', name: 'crm__put' },
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: 'crm__get', input: {} }] },
        { role: 'tool', content: [{ type: 'tool_result', tool_use_id: '1', name: 'crm__get', content: '' }] },
      ],
    });
    expect([...buildRenamedTools(source, RULES)]).toEqual([
      ['crm__get', { name: 'get', namespace: 'crm', form: 'plain' }],
      ['crm__put', { name: 'put', namespace: 'crm', form: 'plain' }],
    ]);
  });

  test('a choice without a namespace means the tool without one', () => {
    expect(map({ ...source, tool_choice: { type: 'tool', name: 'get' } }).tool_choice).toEqual({ type: 'tool', name: 'get' });
  });

  test('a tool that has the name already', () => {
    const tools = [{ name: 'get', namespace: 'crm' }, { name: 'crm__get' }];
    const [first, second] = map({ ...withTools(), tools }).tools ?? [];
    expect(first?.name).toMatch(/^crm__get_[0-9a-f]{8}$/);
    expect(second?.name).toBe('crm__get');
  });

  test('where they are known they stay', () => expect(map(source, { namespaces: true })).toBe(source));
});

describe('the table that restores names in responses', () => {
  const request: CanonicalRequest = {
    ...withTools('plain'),
    tools: [
      { name: 'plain', input_schema: { type: 'object' } },
      { name: 'no schema' },
      { name: 'sql', kind: 'custom' },
      { name: 'any', input_schema: { anyOf: [{ type: 'string' }, { type: 'integer' }] } },
      { name: 'search', kind: 'server', input_schema: { type: 'string' } },
    ],
  };

  test.each<[name: string, rules: Partial<ToolRules>, expected: [string, object][]]>([
    [
      'P46 P57 all forms',
      { objectRoot: true },
      [
        ['no_schema', { name: 'no schema', form: 'plain' }],
        ['sql', { name: 'sql', form: 'custom' }],
        ['any', { name: 'any', form: 'wrapped' }],
      ],
    ],
    ['a target that knows them', { custom: true }, [['no_schema', { name: 'no schema', form: 'plain' }]]],
  ])('%s', (_, rules, expected) => expect([...buildRenamedTools(request, { ...RULES, ...rules })]).toEqual(expected));
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
    const request = mapIds({ model: 'm', parameters: {}, messages }, testRules({ toolId: rule }));
    const [calls, results] = idsOf(request);
    calls.forEach((id, i) => {
      expect(id).toMatch(typeof expected[i] === 'string' ? new RegExp(`^${expected[i]}$`) : (expected[i] ?? ''));
    });
    expect(results).toEqual(calls);
    expect(new Set(calls).size).toBe(calls.length);
    expect(mapIds(request, testRules({ toolId: rule }))).toBe(request);
  });

  test('a result that precedes its call leaves the name of the call to the result behind it', () => {
    const [, result] = turn('a');
    const messages = [...turn('a'), ...(result ? [result] : []), ...turn('a')];
    const [calls, results] = idsOf(mapIds({ model: 'm', parameters: {}, messages }, testRules({ toolId: rule })));
    expect(results).toEqual(['a', 'a', calls[1]]);
    expect(calls[1]).not.toBe('a');
  });
});
