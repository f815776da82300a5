import { expect, test } from 'vitest';
import type { ContentBlock } from '../../src/canonical/blocks.ts';
import type { CacheControl } from '../../src/canonical/protocol.ts';
import type { CanonicalRequest } from '../../src/canonical/request.ts';
import { limitCacheMarks } from '../../src/passes/cache-marks.ts';
import type { Rules } from '../../src/passes/rules.ts';
import { testRules } from './telling.ts';

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

const CLAUDE: Partial<Rules> = { marksEverywhere: true };
const CLAMPED = 'CLAMPED cache_control /messages';
const LONGER = 'REPAIRED cache_control /messages';
const _ = undefined;

test.each<[name: string, source: CanonicalRequest, expected: Ttl[][], told?: string[], rules?: Partial<Rules>]>([
  ['P73 four', request([_], [_], [_, _]), [[_], [_], [_, _]], [], CLAUDE],
  [
    'P73 five: the last of tools, of instructions, of messages',
    request([_, _], [_], [_, _]),
    [['none', _], [_], [_, _]],
    [CLAMPED],
    CLAUDE,
  ],
  ['P73 many in messages', request([_], [_], [_, _, _, _]), [[_], [_], ['none', 'none', _, _]], [CLAMPED], CLAUDE],
  ['P73 1h behind 5m: both live an hour', request(['5m'], ['1h'], [_]), [['1h'], ['1h'], [_]], [LONGER], CLAUDE],
  ['P73 1h before 5m', request(['1h'], ['5m'], ['5m']), [['1h'], ['5m'], ['5m']], [], CLAUDE],
  ['a day is longer still', request([_], ['24h'], []), [['1h'], ['24h'], []], [LONGER], CLAUDE],
  ['P74 only parts, the last ones', request([_], [_], [_, _, _, _]), [[_], ['none'], [_, _, _, _]], [CLAMPED]],
  ['P74 their lives do not matter', request([], ['5m'], ['1h']), [[], ['5m'], ['1h']]],
  [
    'a mark of the whole request takes a place',
    { ...request([_], [_], [_, _]), prompt_cache: { cache_control: { type: 'ephemeral' } } },
    [[_], [_], ['none', _]],
    [CLAMPED],
    CLAUDE,
  ],
])('%s', (_name, source, expected, told = [], over = {}) => {
  const rules = testRules(over);
  const limited = limitCacheMarks(source, rules);
  expect(ttls(limited)).toEqual(expected);
  expect(rules.told).toEqual(told);
  expect(limitCacheMarks(limited, testRules(over))).toBe(limited);
});

test('P73 marks on results and inside them', () => {
  const block: ContentBlock = {
    type: 'tool_result',
    tool_use_id: 'a',
    content: Array.from({ length: 4 }, () => ({ type: 'text', text: 'x', ...mark() })),
    ...mark(),
  };
  const source: CanonicalRequest = { model: 'm', parameters: {}, messages: [{ role: 'tool', content: [block] }] };
  const text = JSON.stringify(limitCacheMarks(source, testRules(CLAUDE)));
  expect(text.match(/cache_control/g)).toHaveLength(4);
  expect(text.indexOf('"x"}')).toBeGreaterThan(0);
});
