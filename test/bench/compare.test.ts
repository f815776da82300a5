import { describe, expect, test } from 'vitest';
import { decide, describeComparison, lookUntilSure } from '../../bench/method/compare.js';

interface Look {
  verdict?: string;
  note?: string;
}

const looks = (...verdicts: string[]): Look[] => verdicts.map((verdict) => ({ verdict }));

describe('the verdict of several looks', () => {
  test('one look is enough for equal builds and for rows that a build cannot do', () => {
    expect(decide(looks('equal'))).toBe('equal');
    expect(decide([{ note: 'no such entry point' }])).toBe('not measured');
  });

  test('a difference needs two looks in a row', () => {
    expect(decide(looks('slower'))).toBeUndefined();
    expect(decide(looks('slower', 'slower'))).toBe('slower');
    expect(decide(looks('slower', 'faster'))).toBeUndefined();
    expect(decide(looks('slower', 'faster', 'faster'))).toBe('faster');
    expect(decide(looks('slower', 'equal'))).toBe('equal');
  });

  test('unclear is never a verdict before the last look', () => {
    expect(decide(looks('unclear', 'unclear'))).toBeUndefined();
  });
});

describe('lookUntilSure', () => {
  const run = async (planned: Record<string, string[]>) => {
    const calls: { ids: string[]; factor: number }[] = [];
    const rows = await lookUntilSure(
      Object.keys(planned).map((id) => ({ id })),
      async (open: { id: string }[], factor: number) => {
        calls.push({ ids: open.map(({ id }) => id), factor });
        return open.map(({ id }) => ({ verdict: planned[id]?.[calls.length - 1] ?? 'none' }));
      },
    );
    return {
      calls,
      verdicts: rows.map(({ id, verdict, looks: count }: { id: string; verdict: string; looks: number }) => [id, verdict, count]),
    };
  };

  test('looks again, with twice the processes, at rows that are not sure yet', async () => {
    const { calls, verdicts } = await run({
      a: ['equal'],
      b: ['slower', 'slower'],
      c: ['unclear', 'equal'],
      d: ['faster', 'slower', 'unclear'],
    });
    expect(calls).toEqual([
      { ids: ['a', 'b', 'c', 'd'], factor: 1 },
      { ids: ['b', 'c', 'd'], factor: 2 },
      { ids: ['d'], factor: 2 },
    ]);
    expect(verdicts).toEqual([
      ['a', 'equal', 1],
      ['b', 'slower', 2],
      ['c', 'equal', 2],
      ['d', 'unclear', 3],
    ]);
  });

  test('looks once when everything is equal', async () => {
    const { calls } = await run({ a: ['equal'], b: ['equal'] });
    expect(calls).toHaveLength(1);
  });
});

test('every row is one line with both builds, the interval and the verdict', () => {
  const samples = (value: number) => [{ slice: 0, process: 0, value }];
  const text = describeComparison([
    {
      id: 'start',
      unit: 'ms',
      before: samples(100),
      after: samples(120),
      ratio: 1.2,
      low: 1.1,
      high: 1.3,
      verdict: 'slower',
      looks: 2,
    },
    { id: 'rss', unit: 'KB', note: '3 wrong', verdict: 'not measured', looks: 1 },
  ]);
  expect(text.split('\n').slice(2)).toEqual([
    '| start, ms | 100 | 120 | 1.20 [1.10-1.30] | slower (2 looks) |',
    '| rss | – | – | – | 3 wrong |',
  ]);
});
