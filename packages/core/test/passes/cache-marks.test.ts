import { expect, test } from 'vitest';
import type { ContentBlock } from '../../src/canonical/message.ts';
import type { CacheControl } from '../../src/canonical/protocol.ts';
import type { CanonicalRequest } from '../../src/canonical/request.ts';
import { fitCacheMarks } from '../../src/passes/cache-marks.ts';
import type { TargetRules } from '../../src/passes/rules.ts';
import { type RuleChanges, testRules } from './telling.ts';

type Ttl = CacheControl['ttl'] | 'none';
const mark = (ttl: Ttl = undefined) =>
  ttl === 'none' ? {} : { cache_control: { type: 'ephemeral' as const, ...(ttl && { ttl }) } };

/** A request with a tool, an instruction and a block for each of these. */
const request = (tools: Ttl[], system: Ttl[], blocks: Ttl[]): CanonicalRequest => ({
  model: 'm',
  parameters: {},
  tools: tools.map((ttl, i) => ({ name: `t${i}`, ...mark(ttl) })),
  system: system.map((ttl) => ({ type: 'text', text: 's', ...mark(ttl) })),
  messages: [{ role: 'user', content: blocks.map((ttl): ContentBlock => ({ type: 'text', text: 'x', ...mark(ttl) })) }],
});
const ttls = ({ tools = [], system = [], messages }: CanonicalRequest): Ttl[][] =>
  [tools, system, messages.flatMap(({ content }) => content)].map((nodes) =>
    nodes.map((node) => ('cache_control' in node && node.cache_control ? node.cache_control.ttl : 'none')),
  );

const CLAUDE: RuleChanges = { cacheMarks: { places: 'everywhere', max: 4, ttls: ['5m', '1h'] } };
const places = (where: TargetRules['cacheMarks']['places']): RuleChanges => ({
  cacheMarks: { places: where, max: 4, ttls: ['30m', '12h'] },
});
const clamped = (path: string): string => `CLAMPED cache_control ${path}/cache_control`;
const longer = (path: string): string => `REPAIRED cache_control ${path}/cache_control`;
const life = (path: string): string => `APPROXIMATED cache_control.ttl ${path}`;
const _ = undefined;

test.each<[name: string, source: CanonicalRequest, expected: Ttl[][], told?: string[], rules?: RuleChanges]>([
  ['P73 four', request([_], [_], [_, _]), [[_], [_], [_, _]], [], CLAUDE],
  [
    'P73 five: the last of tools, of instructions, of messages',
    request([_, _], [_], [_, _]),
    [['none', _], [_], [_, _]],
    [clamped('/tools/0')],
    CLAUDE,
  ],
  [
    'P73 many in messages',
    request([_], [_], [_, _, _, _]),
    [[_], [_], ['none', 'none', _, _]],
    [clamped('/messages/0/content/0'), clamped('/messages/0/content/1')],
    CLAUDE,
  ],
  ['P73 1h behind 5m: both live an hour', request(['5m'], ['1h'], [_]), [['1h'], ['1h'], [_]], [longer('/tools/0')], CLAUDE],
  ['P73 1h before 5m', request(['1h'], ['5m'], ['5m']), [['1h'], ['5m'], ['5m']], [], CLAUDE],
  [
    'a day is an hour, and longer than none said',
    request([_], ['24h'], []),
    [['1h'], ['1h'], []],
    [life('/system/0/cache_control/ttl'), longer('/tools/0')],
    CLAUDE,
  ],
  [
    'P74 only parts, the last ones',
    request([_], [_], [_, _, _, _]),
    [['none'], ['none'], [_, _, _, _]],
    ['APPROXIMATED cache_control /tools/0/cache_control', clamped('/system/0')],
  ],
  [
    'the nearest life',
    request([], ['5m'], ['1h', '24h', '12h']),
    [[], ['30m'], ['30m', '12h', '12h']],
    [
      life('/system/0/cache_control/ttl'),
      life('/messages/0/content/0/cache_control/ttl'),
      life('/messages/0/content/1/cache_control/ttl'),
    ],
  ],
  [
    'the life of all marks, where each has to say it',
    { ...request([], [_], ['5m']), prompt_cache: { ttl: '30m' } },
    [[], ['1h'], ['5m']],
    [life('/prompt_cache/ttl')],
    CLAUDE,
  ],
  ['the life of all marks, where the request says it', { ...request([], [_], []), prompt_cache: { ttl: '30m' } }, [[], [_], []]],
  [
    'cache markers: a server that caches by itself',
    request([_], [], [_]),
    [['none'], [], ['none']],
    ['APPROXIMATED cache_control /tools/0/cache_control', 'APPROXIMATED cache_control /messages/0/content/0/cache_control'],
    places('automatic'),
  ],
  [
    'cache markers: a server that has none',
    { ...request([_], [_], []), prompt_cache: { key: 'k', cache_control: { type: 'ephemeral' } } },
    [['none'], ['none'], []],
    [
      'DROPPED cache_control /tools/0/cache_control',
      'DROPPED cache_control /system/0/cache_control',
      'DROPPED cache_control /prompt_cache/cache_control',
    ],
    places('none'),
  ],
  [
    'a mark of the whole request takes a place',
    { ...request([_], [_], [_, _]), prompt_cache: { cache_control: { type: 'ephemeral' } } },
    [[_], [_], ['none', _]],
    [clamped('/messages/0/content/0')],
    CLAUDE,
  ],
])('%s', (_name, source, expected, told = [], over = {}) => {
  const rules = testRules(over);
  const limited = fitCacheMarks(source, rules);
  expect(ttls(limited)).toEqual(expected);
  expect(rules.told).toEqual(told);
  expect(fitCacheMarks(limited, testRules(over))).toBe(limited);
});

test('P73 marks on results and inside them', () => {
  const block: ContentBlock = {
    type: 'tool_result',
    tool_use_id: 'a',
    content: Array.from({ length: 4 }, () => ({ type: 'text', text: 'x', ...mark() })),
    ...mark(),
  };
  const source: CanonicalRequest = { model: 'm', parameters: {}, messages: [{ role: 'tool', content: [block] }] };
  const text = JSON.stringify(fitCacheMarks(source, testRules(CLAUDE)));
  expect(text.match(/cache_control/g)).toHaveLength(4);
  expect(text.indexOf('"x"}')).toBeGreaterThan(0);
});

test('what the model wrote is marked only where it may be, and a mark in the words of the target goes back as it came', () => {
  const said = (): ContentBlock => ({ type: 'text', text: 'x', ...mark() });
  const own: ContentBlock = { ...said(), extensions: { 'openai-chat': { cache_control: {} } } };
  const source: CanonicalRequest = {
    model: 'm',
    parameters: {},
    messages: [
      { role: 'assistant', content: [said(), own] },
      { role: 'user', content: [said()], extensions: { 'openai-chat': { cache_control: {} } } },
    ],
  };
  expect(fitCacheMarks(source, testRules(places('parts')))).toBe(source);
  const rules = testRules(places('inputs'));
  expect(fitCacheMarks(source, rules).messages[0]?.content).toEqual([{ type: 'text', text: 'x' }, own]);
  expect(rules.told).toEqual(['APPROXIMATED cache_control /messages/0/content/0/cache_control']);
  expect(fitCacheMarks(source, testRules(places('none'))).messages[1]).toBe(source.messages[1]);
});
