import { CODECS } from '@sluice/core/engine';
import { describe, expect, test } from 'vitest';
import { Demand, type DemandOptions } from '../../src/admission/demand.ts';
import { describeText, type Work } from '../../src/admission/work.ts';
import { createPriceTable } from '../../src/prices/table.ts';

const prices = createPriceTable({
  prices: {
    'p/cheap': { input: '1', output: '2' },
    'p/dear': { input: '3', output: '10' },
    'p/cached': { input: '1', cache_write_1h: '2', output: '2' },
    'p/input': { input: '1' },
    'p/free': 'free',
  },
  default_price: undefined,
  providers: new Map([['openai', { profileId: 'openai' }]]),
});

const at = (model: string, maxOutput?: number, isConverted = false) => ({ provider: 'p', model, maxOutput, isConverted });

interface Given extends Partial<Work> {
  targets?: DemandOptions['targets'];
}

const build = ({ targets = [at('cheap')], ...work }: Given): Demand =>
  new Demand({ work: { ...describeText(1000, { tokens: 100, choices: 1 }), ...work }, targets, prices, at: 0 });

/** A byte is at most a token. */
const ROWS: readonly [name: string, given: Given, micros: number][] = [
  ['the output that the request allows', {}, 1000 + 200],
  ['every choice', { output: { tokens: 100, choices: 3 } }, 1000 + 600],
  [
    'the limit of the model, without one in the request',
    { output: { tokens: undefined, choices: 1 }, targets: [at('cheap', 50)] },
    1000 + 100,
  ],
  ['the largest output there is, when nothing is known', { output: { tokens: undefined, choices: 1 } }, 1000 + 2 * 131_072],
  ['no output', { output: 'none', targets: [at('input')] }, 1000],
  ['the most expensive target', { targets: [at('cheap'), at('dear'), at('free')] }, 3000 + 1000],
  ['no cache of an hour that nothing asks for', { targets: [at('cached')] }, 1000 + 200],
  ['the most expensive kind of input', { isKeptLong: true, targets: [at('cached')] }, 2000 + 200],
  ['every image', { images: 2 }, 1000 + 100_000 + 200],
  ['the longest input, for what is only named', { isOpen: true }, 2_000_000 + 200],
  ['every reading of a tool loop', { uses: 2, resultTokens: 500 }, 1000 + 1500 + 2000 + 200],
  ['a low limit that a conversion may raise', { targets: [at('cheap', undefined, true)] }, 1000 + 2 * 2048],
  ['nothing for free models', { targets: [at('free')] }, 0],
  ['nothing for a model that no provider serves', { targets: [] }, 0],
];

const gpt = { provider: 'openai', model: 'gpt-4o', maxOutput: 10, isConverted: false };

/** Uses of tools that have no limit of their own, at a target. */
const OPEN_TOOLS: readonly [
  name: string,
  toolCalls: number | undefined,
  target: { maxToolUses?: number; isConverted?: boolean },
  uses: number,
][] = [
  ['the limit of the request', 7, { maxToolUses: 10 }, 7],
  ['what the provider does at most', undefined, { maxToolUses: 10 }, 10],
  ['once, where nothing is known', undefined, {}, 1],
  ['what the provider does at most, when the limit is dropped', 2, { maxToolUses: 10, isConverted: true }, 10],
];

test.each(OPEN_TOOLS)('tools without a limit are used as often as %s', (_, toolCalls, target, uses) => {
  const targets = [{ ...at('dear'), ...target }];
  const output = { tokens: 3000, choices: 1 };
  const stated = build({ targets, output, uses: uses + 2, resultTokens: 500 });
  const limit = toolCalls === undefined ? {} : { toolCalls };
  const open = build({ targets, output: { ...output, ...limit }, uses: 2, hasOpenTools: true, resultTokens: 500 });
  expect(open.micros).toBe(stated.micros);
});

describe('the most that a request can cost', () => {
  test.each(ROWS)('counts %s', (_, given, micros) => expect(build(given).micros).toBe(micros));

  test.each([
    ['a model', [at('cheap'), at('unknown')], 'unknown'],
    ['its output', [at('input')], 'input'],
  ])('is unknown without the price of %s', (_, targets, model) =>
    expect(build({ targets }).micros).toMatchObject({ provider: 'p', model }),
  );

  test('counts no more input than the context window, for every input', () => {
    const small = build({ bytes: 4_000_000, targets: [gpt] });
    expect(small.micros).toBe(build({ bytes: 400_000_000, targets: [gpt] }).micros);
    expect(small.tokens).toBe(128_000 + 100);
    const read = (inputs: number) => build({ bytes: 400_000_000, inputs, output: 'none', targets: [gpt] }).micros;
    expect(read(3)).toBe(3 * Number(read(1)));
  });

  test('a full context window is read again after every use of a tool', () => {
    const of = (uses: number) => Number(build({ bytes: 120_000, uses, resultTokens: 10_000, targets: [gpt] }).micros);
    // A search costs a cent.
    expect(of(100) - of(99)).toBe(128_000 * 2.5 + 10_000);
  });

  test('audio has a price of its own, which text has not', () => {
    const target = { provider: 'google', model: 'gemini-2.5-flash', maxOutput: 10, isConverted: false };
    const text = Number(build({ bytes: 500_000, targets: [target] }).micros);
    expect(Number(build({ bytes: 500_000, isOpen: true, targets: [target] }).micros)).toBeGreaterThan(3 * text);
  });

  test('stays a safe integer for absurd requests', () => {
    const micros = build({ bytes: 1e15, output: { tokens: 1e300, choices: 1e300 }, targets: [at('dear')] }).micros;
    expect(Number.isSafeInteger(micros)).toBe(true);
  });
});

test.each([
  [0, 1, 250],
  [100, 1, 250 + 2 * 50],
  [100, 3, 250 + 2 * 150],
  [60_000, 1, 250 + 2 * 100],
])('an attempt without usage that took %d ms and has %d choices may have cost %d', (ms, choices, micros) =>
  expect(build({ output: { tokens: 100, choices } }).assume(ms)).toBe(micros),
);

describe('the output that a request allows', () => {
  test.each([
    ['openai-chat', { max_tokens: 5 }, { tokens: 5, choices: 1 }],
    ['openai-chat', { max_tokens: 5, max_completion_tokens: 7, n: 4 }, { tokens: 7, choices: 4 }],
    ['openai-chat', { max_tokens: 10_000, max_completion_tokens: 1 }, { tokens: 10_000, choices: 1 }],
    ['openai-chat', { max_tokens: 1, MAX_TOKENS: 5, n_predict: 9 }, { tokens: 9, choices: 1 }],
    ['openai-chat', { max_tokens: 1, max_completion_tokens: -1 }, { tokens: undefined, choices: 1 }],
    ['openai-chat', { max_tokens: 5, max_completion_tokens: null }, { tokens: 5, choices: 1 }],
    ['openai-chat', { max_tokens: null, n: -1 }, { tokens: undefined, choices: 1 }],
    ['openai-chat', { max_tokens: 5, n: 2, best_of: 20 }, { tokens: 5, choices: 20 }],
    ['openai-chat', { max_tokens: 5, n: '3' }, { tokens: 5, choices: 3 }],
    ['openai-chat', { max_tokens: 5, n: 0.01 }, { tokens: 5, choices: 1 }],
    ['openai-chat', { max_tokens: 5, n: '1_000' }, { tokens: 5, choices: 1e9 }],
    ['anthropic-messages', { max_tokens: 1, best_of: 3 }, { tokens: 1, choices: 3 }],
    ['openai-responses', { max_output_tokens: 5 }, { tokens: 5, choices: 1 }],
    ['anthropic-messages', { max_tokens: 5 }, { tokens: 5, choices: 1 }],
    ['anthropic-messages', { max_tokens: 'many' }, { tokens: undefined, choices: 1 }],
    ['gemini', { generationConfig: { maxOutputTokens: '5', candidateCount: 2 } }, { tokens: 5, choices: 2 }],
    ['gemini', { generation_config: { max_output_tokens: 5 } }, { tokens: 5, choices: 1 }],
    [
      'gemini',
      { generationConfig: { maxOutputTokens: 1 }, generation_config: { max_output_tokens: 5, candidate_count: 3 } },
      { tokens: 5, choices: 3 },
    ],
    ['gemini', { generationConfig: { maxOutputTokens: 1 }, generation_config: {} }, { tokens: undefined, choices: 1 }],
    ['gemini', { generationConfig: [] }, { tokens: undefined, choices: 1 }],
  ] as const)('%s %j', (protocol, body, limit) => expect(CODECS[protocol].readOutputLimit?.(body)).toEqual(limit));
});
