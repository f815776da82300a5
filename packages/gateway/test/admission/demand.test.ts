import { CODECS } from '@sluice/core/engine';
import { describe, expect, test } from 'vitest';
import { Demand, type DemandOptions } from '../../src/admission/demand.ts';
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

const build = (options: Partial<DemandOptions>): Demand =>
  new Demand({ bytes: 1000, output: { tokens: 100, choices: 1 }, targets: [at('cheap')], prices, at: 0, ...options });

/** Input is half of the bytes. */
const ROWS: readonly [name: string, options: Partial<DemandOptions>, micros: number][] = [
  ['the output that the request allows', {}, 500 + 200],
  ['every choice', { output: { tokens: 100, choices: 3 } }, 500 + 600],
  [
    'the limit of the model, without one in the request',
    { output: { tokens: undefined, choices: 1 }, targets: [at('cheap', 50)] },
    500 + 100,
  ],
  ['the largest output there is, when nothing is known', { output: { tokens: undefined, choices: 1 } }, 500 + 2 * 131_072],
  ['no output', { output: 'none', targets: [at('input')] }, 500],
  ['the most expensive target', { targets: [at('cheap'), at('dear'), at('free')] }, 1500 + 1000],
  ['the most expensive kind of input', { targets: [at('cached')] }, 1000 + 200],
  ['a low limit that a conversion may raise', { targets: [at('cheap', undefined, true)] }, 500 + 2 * 2048],
  ['nothing for free models', { targets: [at('free')] }, 0],
  ['nothing for a model that no provider serves', { targets: [] }, 0],
];

describe('the most that a request can cost', () => {
  test.each(ROWS)('counts %s', (_, options, micros) => expect(build(options).micros).toBe(micros));

  test.each([
    ['a model', [at('cheap'), at('unknown')], 'unknown'],
    ['its output', [at('input')], 'input'],
  ])('is unknown without the price of %s', (_, targets, model) =>
    expect(build({ targets }).micros).toMatchObject({ provider: 'p', model }),
  );

  test('counts no more input than the context window', () => {
    const target = { provider: 'openai', model: 'gpt-4o', maxOutput: 10, isConverted: false };
    const small = build({ bytes: 4_000_000, targets: [target] }).micros;
    expect(small).toBe(build({ bytes: 400_000_000, targets: [target] }).micros);
    expect(build({ bytes: 4_000_000, targets: [target] }).tokens).toBe(128_000 + 100);
  });

  test('stays a safe integer for absurd requests', () => {
    const micros = build({ bytes: 1e15, output: { tokens: 1e300, choices: 1e300 }, targets: [at('dear')] }).micros;
    expect(Number.isSafeInteger(micros)).toBe(true);
  });
});

test.each([
  [0, 250],
  [100, 250 + 2 * 50],
  [60_000, 250 + 2 * 100],
])('an attempt without usage that took %d ms may have cost %d', (ms, micros) => expect(build({}).assume(ms)).toBe(micros));

describe('the output that a request allows', () => {
  test.each([
    ['openai-chat', { max_tokens: 5 }, { tokens: 5, choices: 1 }],
    ['openai-chat', { max_tokens: 5, max_completion_tokens: 7, n: 4 }, { tokens: 7, choices: 4 }],
    ['openai-chat', { max_tokens: null, n: -1 }, { tokens: undefined, choices: 1 }],
    ['openai-responses', { max_output_tokens: 5 }, { tokens: 5, choices: 1 }],
    ['anthropic-messages', { max_tokens: 5 }, { tokens: 5, choices: 1 }],
    ['anthropic-messages', { max_tokens: 'many' }, { tokens: undefined, choices: 1 }],
    ['gemini', { generationConfig: { maxOutputTokens: '5', candidateCount: 2 } }, { tokens: 5, choices: 2 }],
    ['gemini', { generation_config: { max_output_tokens: 5 } }, { tokens: 5, choices: 1 }],
    ['gemini', { generationConfig: [] }, { tokens: undefined, choices: 1 }],
  ] as const)('%s %j', (protocol, body, limit) => expect(CODECS[protocol].readOutputLimit?.(body)).toEqual(limit));
});
