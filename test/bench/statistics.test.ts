import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  comparePaired,
  compareProcesses,
  format,
  formatNumber,
  quantile,
  summarize,
  summarizeRatio,
  table,
} from '../../bench/method/statistics.js';

const costs = fc.array(fc.double({ min: 1, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 40 });
const shares = fc.double({ min: 0, max: 1, noNaN: true });

/** A generator of random numbers with a normal distribution. */
function createNormal(seed: number): () => number {
  let state = seed >>> 0;
  const uniform = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** Processes whose medians differ by `spread`, each with three samples. */
const drawProcesses = (normal: () => number, { processes, cost, spread }: { processes: number; cost: number; spread: number }) =>
  Array.from({ length: processes }, (_, process) => {
    const own = cost * Math.exp(spread * normal());
    return [0.97, 1, 1.03].map((factor, i) => ({ slice: process * 3 + i, process, value: own * factor }));
  }).flat();

const drawRatios = (
  normal: () => number,
  { processes, cost, spread }: { processes: number; cost: number; spread: number },
): number[] => Array.from({ length: processes }, () => cost * Math.exp(spread * normal()));

describe('quantile', () => {
  test('is undefined without values', () => expect(quantile([], 0.5)).toBeUndefined());

  test('interpolates between neighbours', () => {
    expect(quantile([40, 10, 30, 20], 0.5)).toBe(25);
    expect([0, 0.25, 0.5, 0.75, 1].map((share) => quantile([5, 1, 4, 2, 3], share))).toEqual([1, 2, 3, 4, 5]);
  });

  test('is between the smallest and the largest value, and grows with the share', () => {
    fc.assert(
      fc.property(costs, shares, shares, (values, a, b) => {
        const [low, high] = [quantile(values, Math.min(a, b)), quantile(values, Math.max(a, b))];
        expect(low).toBeGreaterThanOrEqual(Math.min(...values));
        expect(high).toBeLessThanOrEqual(Math.max(...values) * (1 + 1e-12));
        expect(low).toBeLessThanOrEqual((high ?? 0) * (1 + 1e-12));
      }),
    );
  });
});

describe('summarize', () => {
  test('ignores what is not a finite number', () => {
    expect(summarize([3, Number.NaN, 1, Number.POSITIVE_INFINITY, 2])).toEqual({ median: 2, p10: 1.2, p90: 2.8, count: 3 });
    expect(summarize([Number.NaN])).toBeUndefined();
    expect(summarize([])).toBeUndefined();
  });

  test('does not depend on the order of the values', () => {
    fc.assert(
      fc.property(costs, (values) => {
        expect(summarize(values.toReversed())).toEqual(summarize(values));
      }),
    );
  });
});

describe('summarizeRatio', () => {
  const ratios = fc.array(
    fc.tuple(fc.double({ min: 1, max: 1000, noNaN: true }), fc.double({ min: 0.1, max: 100, noNaN: true })),
    {
      minLength: 1,
      maxLength: 20,
    },
  );

  test('a slow moment that affects both sides of a slice does not change the ratio', () => {
    fc.assert(
      fc.property(ratios, fc.double({ min: 0.5, max: 2, noNaN: true }), (slices, ratio) => {
        const references = slices.map(([cost, slowness], slice) => ({ slice, process: 0, value: cost * slowness }));
        const samples = references.map(({ slice, value }) => ({ slice, process: 0, value: value * ratio }));
        expect(summarizeRatio(samples, references)?.median).toBeCloseTo(ratio, 9);
      }),
    );
  });

  test('pairs samples by their slice; slices that only one side has do not count', () => {
    const samples = [0, 2, 3].map((slice) => ({ slice, process: 0, value: 10 * (slice + 1) }));
    const references = [3, 1, 0].map((slice) => ({ slice, process: 0, value: 10 }));
    expect(summarizeRatio(samples, references)).toEqual({ median: 2.5, p10: 1.3, p90: 3.7, count: 2 });
    expect(summarizeRatio(samples, [])).toBeUndefined();
  });

  test('a reference of 0 has no ratio', () => {
    const [sample] = [{ slice: 0, process: 0, value: 1 }];
    expect(summarizeRatio([sample], [{ ...sample, value: 0 }])).toBeUndefined();
  });
});

/** How often two equal builds are called different. */
function countDifferent(trials: number, compare: () => string): number {
  let different = 0;
  for (let i = 0; i < trials; i++) if (['faster', 'slower'].includes(compare())) different++;
  return different / trials;
}

describe('two builds', () => {
  const setups = fc.record({
    seed: fc.integer(),
    processes: fc.integer({ min: 3, max: 12 }),
    spread: fc.double({ min: 0.005, max: 0.3, noNaN: true }),
  });
  const TRIALS = 600;
  /** 1 % is 6 of 600; more than 21 happen by chance once in a million times. */
  const MOST = 21 / TRIALS;

  test('equal builds are called different in at most 1 % of all comparisons', () => {
    const normal = createNormal(1);
    const draw = () => drawProcesses(normal, { processes: 5, cost: 100, spread: 0.1 });
    expect(countDifferent(20_000, () => compareProcesses(draw(), draw()).verdict)).toBeLessThan(0.0115);
    const pairs = () => drawRatios(normal, { processes: 8, cost: 1, spread: 0.1 });
    const share = countDifferent(20_000, () => comparePaired(pairs()).verdict);
    expect(share).toBeLessThan(0.0115);
    expect(share).toBeGreaterThan(0.006);
  });

  test('equal builds are called different in at most 1 %, with any number of processes and any noise', () => {
    fc.assert(
      fc.property(setups, ({ seed, processes, spread }) => {
        const normal = createNormal(seed);
        const draw = () => drawProcesses(normal, { processes, cost: 100, spread });
        expect(countDifferent(TRIALS, () => compareProcesses(draw(), draw()).verdict)).toBeLessThanOrEqual(MOST);
        const pairs = () => drawRatios(normal, { processes, cost: 1, spread });
        expect(countDifferent(TRIALS, () => comparePaired(pairs()).verdict)).toBeLessThanOrEqual(MOST);
      }),
    );
  });

  test('a difference of 10 % or more is called when processes differ by 1 %', () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.integer({ min: 5, max: 12 }),
        fc.double({ min: 1.1, max: 3, noNaN: true }),
        (seed, processes, factor) => {
          const normal = createNormal(seed);
          const draw = (cost: number) => drawProcesses(normal, { processes, cost, spread: 0.01 });
          const [cheap, dear] = [draw(100), draw(100 * factor)];
          expect(compareProcesses(cheap, dear).verdict).toBe('slower');
          expect(compareProcesses(dear, cheap).verdict).toBe('faster');
          expect(comparePaired(drawRatios(normal, { processes, cost: factor, spread: 0.01 })).verdict).toBe('slower');
          expect(comparePaired(drawRatios(normal, { processes, cost: 1 / factor, spread: 0.01 })).verdict).toBe('faster');
        },
      ),
    );
  });

  test('a certain difference below 3 % is equal', () => {
    expect(comparePaired([1.02, 1.0201, 1.0199, 1.02]).verdict).toBe('equal');
    expect(comparePaired([1.04, 1.0401, 1.0399, 1.04]).verdict).toBe('slower');
    expect(comparePaired([0.96, 0.9601, 0.9599, 0.96]).verdict).toBe('faster');
  });

  test('an interval that reaches beyond 15 % and contains 1 is unclear', () => {
    expect(comparePaired([0.9, 1, 1.1])).toMatchObject({ verdict: 'unclear' });
    expect(comparePaired([0.999, 1, 1.001])).toMatchObject({ verdict: 'equal' });
  });

  test('the verdict follows from the interval, and is the opposite when the builds change places', () => {
    const opposite: Record<string, string> = { slower: 'faster', faster: 'slower', equal: 'equal', unclear: 'unclear' };
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0.5, max: 2, noNaN: true }), { minLength: 3, maxLength: 12 }), (ratios) => {
        const { ratio, low, high, verdict } = comparePaired(ratios);
        expect(low).toBeLessThanOrEqual(ratio * (1 + 1e-9));
        expect(high).toBeGreaterThanOrEqual(ratio * (1 - 1e-9));
        if (verdict === 'slower') expect([low > 1, ratio >= 1.03]).toEqual([true, true]);
        if (verdict === 'equal') expect([low >= 1 / 1.15, high <= 1.15]).toEqual([true, true]);
        if (verdict === 'unclear') expect(high / low).toBeGreaterThan(1.15);
        expect(comparePaired(ratios.map((one) => 1 / one)).verdict).toBe(opposite[verdict]);
      }),
    );
  });

  test('the interval is that of Student for a confidence of 99 %', () => {
    // Logarithms with mean 0 and standard deviation 0.1; the critical value for 3 degrees of freedom is 5.841.
    const deviation = Math.sqrt(3) * 0.05;
    const { low, high } = comparePaired([deviation, -deviation, deviation, -deviation].map(Math.exp));
    expect(Math.log(high)).toBeCloseTo(5.841 * 0.05, 9);
    expect(Math.log(low)).toBeCloseTo(-5.841 * 0.05, 9);
  });

  test('many samples of few processes are few values', () => {
    const draw = (cost: number) => drawProcesses(() => 0, { processes: 3, cost, spread: 0 });
    const many = (cost: number) => Array.from({ length: 100 }, () => draw(cost)).flat();
    expect(compareProcesses(many(100), many(150))).toEqual(compareProcesses(draw(100), draw(150)));
  });

  test('fewer than three processes are an error', () => {
    const draw = (processes: number) => drawProcesses(() => 0, { processes, cost: 100, spread: 0 });
    expect(() => compareProcesses(draw(2), draw(5))).toThrow('a comparison needs three processes of each build');
    expect(() => compareProcesses(draw(5), draw(2))).toThrow('a comparison needs three processes of each build');
    expect(() => comparePaired([1, 1])).toThrow('a comparison needs three processes');
    expect(compareProcesses(draw(3), draw(3)).verdict).toBe('equal');
  });
});

describe('figures as text', () => {
  test('three digits, or whole numbers from 100 on', () => {
    expect([0.12345, 1.2345, 12.345, 123.45, 12_345.6].map(formatNumber)).toEqual(['0.123', '1.23', '12.3', '123', '12,346']);
    expect([undefined, Number.NaN].map(formatNumber)).toEqual(['–', '–']);
  });

  test('the range is dropped for a single value', () => {
    expect(format({ median: 2, p10: 1, p90: 3, count: 9 })).toBe('2.00 [1.00-3.00]');
    expect(format({ median: 2, p10: 2, p90: 2, count: 1 })).toBe('2.00');
    expect(format(undefined)).toBe('–');
  });

  test('a table of Markdown', () => {
    expect(table(['', 'a'], [['b', '1']])).toBe('|  | a |\n| --- | --: |\n| b | 1 |');
  });
});
