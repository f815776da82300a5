import { describe, expect, test } from 'vitest';
import { buildRow } from '../../bench/method/results.js';

const samples = (...values: number[]) => values.map((value, slice) => ({ slice, process: slice % 3, value }));
const ROW = { id: 'a', group: 'json', title: 'A', unit: 'us', kind: 'cpu' as const };

describe('a row of its samples', () => {
  test('the value is the summary of the samples, and the ratio is to the reference in the same slice', () => {
    const found = [
      { subject: 'pipe', samples: samples(10, 20, 40) },
      { subject: 'sluice', samples: samples(20, 30, 40), wrong: 0 },
    ];
    const { results } = buildRow({ ...ROW, reference: 'pipe', found });
    expect(results[0]).toMatchObject({ subject: 'pipe', value: { median: 20, count: 3 }, ratio: { median: 1, p10: 1, p90: 1 } });
    expect(results[1]).toMatchObject({
      subject: 'sluice',
      value: { median: 30, count: 3 },
      ratio: { median: 1.5, count: 3 },
      wrong: 0,
    });
  });

  test('all samples stay, with five digits', () => {
    const { results } = buildRow({ ...ROW, found: [{ subject: 'sluice', samples: samples(1.2345678, 123_456.7) }] });
    expect(results[0]?.samples).toEqual([
      { slice: 0, process: 0, value: 1.2346 },
      { slice: 1, process: 1, value: 123_460 },
    ]);
  });

  test('there is no ratio without a reference, or without its samples', () => {
    const found = [
      { subject: 'pipe', samples: [] },
      { subject: 'sluice', samples: samples(1) },
    ];
    expect(buildRow({ ...ROW, found }).results[1]).not.toHaveProperty('ratio');
    expect(buildRow({ ...ROW, reference: 'pipe', found }).results[1]).not.toHaveProperty('ratio');
  });

  test('a subject without samples keeps its note and has no value', () => {
    const { results } = buildRow({ ...ROW, found: [{ subject: 'ai', samples: [], note: '> 2 s', wrong: 1 }] });
    expect(results[0]).toEqual({ subject: 'ai', note: '> 2 s', wrong: 1, value: undefined, samples: [] });
  });
});

describe('goals', () => {
  const found = [
    { subject: 'pipe', samples: samples(10, 20, 40) },
    { subject: 'sluice', samples: samples(20, 30, 40) },
    { subject: 'broken', samples: [] },
  ];
  const judge = (goals: { subject: string; of?: string; most: number }[]) =>
    buildRow({ ...ROW, reference: 'pipe', found, goals }).goals.map(({ isReached }) => isReached);

  test('a goal of another subject is reached by the median of the ratios', () => {
    expect(judge([{ subject: 'sluice', of: 'pipe', most: 1.5 }])).toEqual([true]);
    expect(judge([{ subject: 'sluice', of: 'pipe', most: 1.49 }])).toEqual([false]);
  });

  test('a goal without another subject is reached by the median of the values', () => {
    expect(judge([{ subject: 'sluice', most: 30 }])).toEqual([true]);
    expect(judge([{ subject: 'sluice', most: 29.9 }])).toEqual([false]);
  });

  test('a goal without a measurement is not judged', () => {
    expect(
      judge([
        { subject: 'broken', of: 'pipe', most: 1 },
        { subject: 'sluice', of: 'broken', most: 1 },
        { subject: 'unknown', most: 1 },
      ]),
    ).toEqual([]);
  });

  test('a row without goals has none', () => expect(buildRow({ ...ROW, found }).goals).toEqual([]));
});
