import type { Usage } from '@gateway/admin/types';
import { describe, expect, test } from 'vitest';
import { buildSeries, readMoment, sumRows } from '../src/manage/usage-data.ts';

const HOUR = 3_600_000;

const row = (group: string, hour: number, requests: number): Usage => ({
  ...sumRows([]),
  group,
  bucket_at: new Date(hour * HOUR).toISOString(),
  requests,
});

const build = (rows: Usage[], range: [number?, number?] = []) =>
  buildSeries(rows, { bucket: 'hour', measure: 'requests', label: ({ group }) => group ?? '', range: [range[0], range[1]] });

describe('lines of a plot', () => {
  test.each<[string, Usage[], [number?, number?], number[], Record<string, number[]>]>([
    ['no rows', [], [], [], {}],
    ['hours without requests are 0', [row('a', 1, 5), row('a', 3, 2)], [], [1, 2, 3], { a: [5, 0, 2] }],
    ['the range is filled', [row('a', 2, 5)], [HOUR, 3 * HOUR + 1], [1, 2, 3], { a: [0, 5, 0] }],
    ['the largest is first', [row('a', 1, 1), row('b', 1, 2)], [], [1], { b: [2], a: [1] }],
    ['a range that is too long has no plot', [row('a', 1, 1), row('a', 6000, 1)], [], [], {}],
  ])('%s', (_, rows, range, hours, lines) => {
    const { times, series } = build(rows, range);
    expect(times).toEqual(hours.map((hour) => hour * 3600));
    expect(series.map(({ label, values }) => [label, values])).toEqual(Object.entries(lines));
  });

  test('more than six are summed, and nothing is lost', () => {
    const rows = Array.from({ length: 20 }, (_, index) => row(`m${index}`, 1, index + 1));
    const { series } = build(rows);
    expect(series.map(({ label }) => label)).toEqual(['m19', 'm18', 'm17', 'm16', 'm15', '15 others']);
    expect(series.reduce((sum, { values }) => sum + (values[0] ?? 0), 0)).toBe(210);
  });
});

test.each([
  ['7d', 10 * 86_400_000, 3 * 86_400_000],
  ['30m', HOUR, HOUR / 2],
  ['1970-01-02', 0, 86_400_000],
  ['soon', 0, undefined],
])('%s is a moment', (text, now, moment) => expect(readMoment(text, now)).toBe(moment));
