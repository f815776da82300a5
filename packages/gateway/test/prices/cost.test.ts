import type { CanonicalUsage } from '@sluice/core';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { computeCost, formatDollars, MAX_TOKENS } from '../../src/prices/cost.ts';
import { BUCKET_NAMES, type Bucket, formatRate, parsePrice, type Rate, type Rates } from '../../src/prices/rates.ts';

const rate = (price: string, tiers: Record<number, string> = {}): Rate => ({
  base: parsePrice(price) ?? -1,
  tiers: Object.entries(tiers).map(([above, tier]) => ({ above: Number(above), picos: parsePrice(tier) ?? -1 })),
});

const SONNET: Rates = {
  input: rate('3', { 200000: '6' }),
  cache_read: rate('0.3', { 200000: '0.6' }),
  cache_write: rate('3.75', { 200000: '7.5' }),
  cache_write_1h: rate('6', { 200000: '12' }),
  output: rate('15', { 200000: '22.5' }),
};

const AUDIO: Rates = {
  input: rate('2.5'),
  input_audio: rate('40'),
  output: rate('10'),
  output_audio: rate('80'),
  web_search: { base: 10_000_000_000, tiers: [] },
};

interface Row {
  name: string;
  rates: Rates;
  usage: CanonicalUsage;
  micros: number;
  parts: Partial<Record<Bucket, [count: number, micros: number]>>;
  flags?: string[];
}

const ROWS: Row[] = [
  {
    name: 'input and output',
    rates: SONNET,
    usage: { input_tokens: 1000, output_tokens: 100 },
    micros: 4500,
    parts: { input: [1000, 3000], output: [100, 1500] },
  },
  {
    name: 'input includes what was read from and written to the cache',
    rates: SONNET,
    usage: { input_tokens: 120, output_tokens: 30, cache_read_tokens: 90, cache_creation_tokens: 20 },
    micros: 582,
    parts: { input: [10, 30], cache_read: [90, 27], cache_write: [20, 75], output: [30, 450] },
  },
  {
    name: 'an hour in the cache costs more than five minutes',
    rates: SONNET,
    usage: {
      input_tokens: 100,
      output_tokens: 0,
      cache_creation_tokens: 100,
      details: { cache_creation_5m: 60, cache_creation_1h: 40 },
    },
    micros: 465,
    parts: { cache_write: [60, 225], cache_write_1h: [40, 240] },
  },
  {
    name: 'cache writes that only the details count',
    rates: SONNET,
    usage: { input_tokens: 100, output_tokens: 0, details: { cache_creation_5m: 60, cache_creation_1h: 40 } },
    micros: 465,
    parts: { cache_write: [60, 225], cache_write_1h: [40, 240] },
  },
  {
    name: 'at the border of a tier the base price applies',
    rates: SONNET,
    usage: { input_tokens: 200_000, output_tokens: 1 },
    micros: 600_015,
    parts: { input: [200_000, 600_000], output: [1, 15] },
  },
  {
    name: 'above it the whole request is charged by the tier',
    rates: SONNET,
    usage: { input_tokens: 200_001, output_tokens: 2, cache_read_tokens: 200_000 },
    micros: 120_051,
    parts: { input: [1, 6], cache_read: [200_000, 120_000], output: [2, 45] },
  },
  {
    name: 'output includes reasoning, which costs the same unless it has a price',
    rates: SONNET,
    usage: { input_tokens: 0, output_tokens: 100, reasoning_tokens: 80 },
    micros: 1500,
    parts: { output: [20, 300], reasoning: [80, 1200] },
  },
  {
    name: 'reasoning with its own price',
    rates: { ...SONNET, reasoning: rate('3') },
    usage: { input_tokens: 0, output_tokens: 100, reasoning_tokens: 80 },
    micros: 540,
    parts: { output: [20, 300], reasoning: [80, 240] },
  },
  {
    name: 'audio and searches',
    rates: AUDIO,
    usage: { input_tokens: 100, output_tokens: 50, details: { input_audio: 60, output_audio: 40, web_search_requests: 2 } },
    micros: 100 + 2400 + 100 + 3200 + 20_000,
    parts: {
      input: [40, 100],
      input_audio: [60, 2400],
      output: [10, 100],
      output_audio: [40, 3200],
      web_search: [2, 20_000],
    },
  },
  {
    name: 'cached audio is counted as cached',
    rates: AUDIO,
    usage: { input_tokens: 100, output_tokens: 0, cache_read_tokens: 90, details: { input_audio: 60 } },
    micros: 25 * 9 + 400,
    parts: { cache_read: [90, 225], input_audio: [10, 400] },
  },
  {
    name: 'a fee for each request',
    rates: { ...SONNET, request: { base: 12_000_000_000, tiers: [] } },
    usage: { input_tokens: 1, output_tokens: 0 },
    micros: 12_003,
    parts: { input: [1, 3], request: [1, 12_000] },
  },
  {
    name: 'half a millionth is rounded up, once: the parts add up',
    rates: { input: rate('0.25'), output: rate('0.25') },
    usage: { input_tokens: 1, output_tokens: 1 },
    micros: 1,
    parts: { input: [1, 0], output: [1, 1] },
  },
  {
    name: 'less than half is rounded down',
    rates: { input: rate('0.499999'), output: rate('1') },
    usage: { input_tokens: 1, output_tokens: 0 },
    micros: 0,
    parts: { input: [1, 0] },
  },
  {
    name: 'searches without a known price are flagged',
    rates: SONNET,
    usage: { input_tokens: 1000, output_tokens: 0, details: { web_search_requests: 3 } },
    micros: 3000,
    parts: { input: [1000, 3000] },
    flags: ['web_search_unpriced'],
  },
  {
    name: 'contradicting counts are flagged',
    rates: SONNET,
    usage: { input_tokens: 1000, output_tokens: 0, uncertain: true },
    micros: 3000,
    parts: { input: [1000, 3000] },
    flags: ['usage_uncertain'],
  },
  {
    name: 'more cached than read: recorded, 387 of 293',
    rates: SONNET,
    usage: { input_tokens: 293, output_tokens: 0, cache_read_tokens: 387 },
    micros: 88,
    parts: { cache_read: [293, 88] },
    flags: ['usage_clamped'],
  },
  {
    name: 'negative, fractional and missing numbers',
    rates: SONNET,
    usage: { input_tokens: -5, output_tokens: 10.9, cache_read_tokens: Number.NaN },
    micros: 150,
    parts: { output: [10, 150] },
    flags: ['usage_clamped'],
  },
  {
    name: 'endless numbers',
    rates: SONNET,
    usage: { input_tokens: Number.POSITIVE_INFINITY, output_tokens: 1e300 },
    micros: 6 * MAX_TOKENS + 22.5 * MAX_TOKENS,
    parts: { input: [MAX_TOKENS, 6 * MAX_TOKENS], output: [MAX_TOKENS, 22.5 * MAX_TOKENS] },
    flags: ['usage_clamped'],
  },
];

describe('cost', () => {
  test.each(ROWS)('$name', ({ rates, usage, micros, parts, flags = [] }) => {
    const cost = computeCost(usage, rates);
    expect(cost).toEqual({
      micros,
      parts: Object.fromEntries(Object.entries(parts).map(([bucket, [count, part]]) => [bucket, { count, micros: part }])),
      flags,
    });
  });

  test.each<[string, CanonicalUsage, Rates]>([
    ['output without a price', { input_tokens: 1, output_tokens: 1 }, { input: rate('1') }],
    ['zeros instead of usage', { input_tokens: 0, output_tokens: 0 }, SONNET],
    ['input without a price', { input_tokens: 1, output_tokens: 1 }, { output: rate('1') }],
  ])('%s: unknown, not 0', (_, usage, rates) => expect(computeCost(usage, rates)).toBeUndefined());

  test('values that are no numbers at all do not throw', () => {
    const usage = { input_tokens: 12, output_tokens: {}, cache_read_tokens: null, details: { input_audio: [] } } as unknown;
    // The type is that of the codecs; this is what must not happen.
    expect(computeCost(usage as CanonicalUsage, SONNET)).toMatchObject({ micros: 36, flags: ['usage_clamped'] });
  });
});

// ---- properties, against rational arithmetic

const anyCount = fc.oneof(fc.nat(300_000), fc.nat(MAX_TOKENS), fc.constantFrom(0, 1, 200_000, 200_001));

const anyPrice = fc.oneof(fc.nat(100_000_000), fc.nat(1_000_000_000_000));

const anyRates: fc.Arbitrary<Rates> = fc
  .record(Object.fromEntries(BUCKET_NAMES.map((bucket) => [bucket, fc.option(anyPrice, { nil: undefined })])))
  .map((prices) => ({
    ...Object.fromEntries(
      Object.entries(prices).flatMap(([bucket, base]) =>
        base === undefined ? [] : [[bucket, { base, tiers: [{ above: 200_000, picos: base * 2 }] }]],
      ),
    ),
    input: { base: 1_250_000, tiers: [{ above: 200_000, picos: 2_500_000 }] },
    output: { base: 10_000_000, tiers: [] },
  }));

/** Usage whose parts are within their wholes. */
const anyUsage = fc
  .tuple(
    anyCount.map((count) => count || 1),
    anyCount,
    fc.array(fc.double({ min: 0, max: 0.3, noNaN: true }), { minLength: 3, maxLength: 3 }),
  )
  .map(([input, output, [read = 0, written = 0, thought = 0]]) => ({
    input_tokens: input,
    output_tokens: output,
    cache_read_tokens: Math.floor(input * read),
    cache_creation_tokens: Math.floor(input * written),
    reasoning_tokens: Math.floor(output * thought),
    details: { cache_creation_1h: Math.floor((input * written) / 2) },
  }));

/** The exact cost in trillionths, written down independently: one line for each kind of token. */
function oracle(usage: CanonicalUsage, rates: Rates): bigint {
  const input = BigInt(usage.input_tokens);
  const price = (...buckets: Bucket[]): bigint => {
    const found = buckets.map((bucket) => rates[bucket]).find((candidate) => candidate !== undefined);
    return found ? BigInt(found.tiers.findLast(({ above }) => input > BigInt(above))?.picos ?? found.base) : 0n;
  };
  const read = BigInt(usage.cache_read_tokens ?? 0);
  const written = BigInt(usage.cache_creation_tokens ?? 0);
  const hour = BigInt(usage.details?.cache_creation_1h ?? 0);
  const thought = BigInt(usage.reasoning_tokens ?? 0);
  return (
    (input - read - written) * price('input') +
    read * price('cache_read', 'input') +
    (written - hour) * price('cache_write', 'input') +
    hour * price('cache_write_1h', 'cache_write', 'input') +
    (BigInt(usage.output_tokens) - thought) * price('output') +
    thought * price('reasoning', 'output') +
    price('request')
  );
}

const micros = (usage: CanonicalUsage, rates: Rates): number => computeCost(usage, rates)?.micros ?? Number.NaN;

describe('properties of cost', () => {
  test('it is the exact cost, rounded once, half up', () => {
    fc.assert(
      fc.property(anyUsage, anyRates, (usage, rates) => {
        const exact = oracle(usage, rates);
        const low = exact / 1_000_000n;
        const expected = exact - low * 1_000_000n >= 500_000n ? low + 1n : low;
        const cost = computeCost(usage, rates);
        expect(BigInt(cost?.micros ?? -1)).toBe(expected);
        expect(Number.isSafeInteger(cost?.micros)).toBe(true);
        expect(cost?.flags).toEqual([]);
      }),
    );
  });

  test('the parts add up to the whole, and none is negative', () => {
    fc.assert(
      fc.property(anyUsage, anyRates, (usage, rates) => {
        const parts = Object.values(computeCost(usage, rates)?.parts ?? {});
        expect(parts.reduce((sum, part) => sum + part.micros, 0)).toBe(micros(usage, rates));
        expect(parts.every((part) => part.micros >= 0)).toBe(true);
      }),
    );
  });

  test('more tokens never cost less', () => {
    fc.assert(
      fc.property(anyUsage, anyRates, fc.nat(1000), fc.nat(1000), (usage, rates, input, output) => {
        const more = { ...usage, input_tokens: usage.input_tokens + input, output_tokens: usage.output_tokens + output };
        fc.pre(more.input_tokens <= MAX_TOKENS && more.output_tokens <= MAX_TOKENS);
        expect(micros(more, rates)).toBeGreaterThanOrEqual(micros(usage, rates));
      }),
    );
  });

  test('without tiers and fees, two responses cost together what they cost apart, but for the rounding', () => {
    fc.assert(
      fc.property(fc.nat(1e8), fc.nat(1e8), fc.nat(1e8), fc.nat(1e8), anyPrice, anyPrice, (a, b, c, d, input, output) => {
        const rates: Rates = { input: { base: input, tiers: [] }, output: { base: output, tiers: [] } };
        const apart = micros({ input_tokens: a, output_tokens: b }, rates) + micros({ input_tokens: c, output_tokens: d }, rates);
        fc.pre(a + b > 0 && c + d > 0);
        expect(Math.abs(micros({ input_tokens: a + c, output_tokens: b + d }, rates) - apart)).toBeLessThanOrEqual(1);
      }),
    );
  });

  test('no usage makes it throw, negative or unsafe', () => {
    const anything = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(undefined, Number.MAX_VALUE, -0, Number.NaN));
    const names = ['cache_creation_5m', 'cache_creation_1h', 'input_audio', 'output_audio', 'input_image', 'web_search_requests'];
    const hostile = fc.record({
      input_tokens: anything,
      output_tokens: anything,
      cache_read_tokens: anything,
      cache_creation_tokens: anything,
      reasoning_tokens: anything,
      details: fc.record(Object.fromEntries(names.map((name) => [name, anything]))),
    });
    fc.assert(
      fc.property(hostile, anyRates, (usage, rates) => {
        const cost = computeCost(usage as CanonicalUsage, rates)?.micros; // undefined where the type wants a number
        expect(cost === undefined || (Number.isSafeInteger(cost) && cost >= 0)).toBe(true);
      }),
    );
  });
});

describe('decimals', () => {
  test.each([
    ['0', 0],
    ['1.25', 1_250_000],
    ['0.003625', 3625],
    ['1000000', 1_000_000_000_000],
    ['0.000001', 1],
  ])('%s is a price', (text, picos) => {
    expect(parsePrice(text)).toBe(picos);
    expect(formatRate(picos, 'input')).toBe(text);
  });

  test.each(['', '-1', '1e3', '.5', '1.', '0.0000001', '1,5', 'NaN', ' 1', '12345678'])('%j is no price', (text) =>
    expect(parsePrice(text)).toBeUndefined(),
  );

  test('events are priced by the thousand', () => expect(formatRate(10_000_000_000, 'web_search')).toBe('10'));

  test.each([
    [0, '0.000000'],
    [1, '0.000001'],
    [1234, '0.001234'],
    [1_000_000, '1.000000'],
    [28_500_000_001, '28500.000001'],
  ])('%d millionths are $%s', (amount, text) => expect(formatDollars(amount)).toBe(text));
});
