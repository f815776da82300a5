import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  drawBar,
  fit,
  formatBucket,
  formatDollars,
  formatMs,
  formatShort,
  formatTime,
  measure,
  padEnd,
  padStart,
} from '../../src/cli/ledger/figures.ts';
import { formatExactDollars } from '../../src/store/csv.ts';
import { NIGHT } from './rows.ts';

test.each([
  [0, '$0'],
  [1, '$0.000001'],
  [884, '$0.000884'],
  [12_345, '$0.0123'],
  [999_999, '$1.0000'],
  [1_230_000, '$1.23'],
  [12_345_678_900, '$12,345.68'],
])('%d millionths are %s', (micros, text) => {
  expect(formatDollars(micros)).toBe(text);
});

test.each([
  [0, '0.000000'],
  [1, '0.000001'],
  [1_000_000_000_000, '1000000.000000'],
])('%d millionths are exactly %s', (micros, text) => {
  expect(formatExactDollars(micros)).toBe(text);
});

test.each([
  [null, '–'],
  [0, '0'],
  [999, '999'],
  [1234, '1.2k'],
  [999_949, '999.9k'],
  [999_950, '1.0M'],
  [2_500_000_000, '2.5G'],
])('%s tokens are %s', (count, text) => {
  expect(formatShort(count)).toBe(text);
});

test.each([
  [null, '–'],
  [0, '0 ms'],
  [999, '999 ms'],
  [2310, '2.31 s'],
  [59_999, '1m00s'],
  [75_000, '1m15s'],
  [7_260_000, '2h01m'],
])('%s ms are %s', (ms, text) => {
  expect(formatMs(ms)).toBe(text);
});

test('times are those of UTC, whatever the zone of the machine', () => {
  const zone = process.env['TZ'];
  for (const other of ['America/New_York', 'Asia/Kathmandu', 'UTC']) {
    process.env['TZ'] = other;
    expect(formatTime(NIGHT)).toBe('2026-11-17 03:30:00Z');
    expect(formatBucket(NIGHT, 'day')).toBe('2026-11-17');
    expect(formatBucket(NIGHT, 'hour')).toBe('2026-11-17 03:30');
  }
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});

describe('cells', () => {
  test.each([
    ['llama', 5],
    ['模型', 4],
    ['🙂', 2],
    ['e\u0301', 1],
    ['', 0],
  ])('%j takes %d', (text, cells) => {
    expect(measure(text)).toBe(cells);
    expect(measure(padEnd(text, 9))).toBe(9);
    expect(measure(padStart(text, 9))).toBe(9);
  });

  test.each([
    ['llama-3.3-70b', 8, 'llama-3…'],
    ['模型模型', 5, '模型…'],
    ['abc', 3, 'abc'],
    ['abc', 0, ''],
    ['a\u001b[2Jb', 20, 'a\\u001b[2Jb'],
    ['a\nb\u202ec', 20, 'a\\nb\\u202ec'],
  ])('%j fits %d cells as %j', (text, cells, shown) => {
    expect(fit(text, cells)).toBe(shown);
  });

  test('any text fits, without control characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat(60), (text, cells) => {
        const shown = fit(text, cells);
        expect(measure(shown)).toBeLessThanOrEqual(cells);
        expect(shown).not.toMatch(/\p{Cc}/u);
      }),
    );
  });
});

test('bars grow with their values, and never beyond their room', () => {
  fc.assert(
    fc.property(fc.nat(1e9), fc.nat(1e9), fc.integer({ min: 1, max: 60 }), (a, b, cells) => {
      const [small, large] = a < b ? [a, b] : [b, a];
      expect(drawBar(large, large, cells)).toBe(large === 0 ? '' : '█'.repeat(cells));
      expect(drawBar(small, large, cells).length).toBeLessThanOrEqual(cells);
      expect(drawBar(small, large, cells) === '').toBe(small === 0);
    }),
  );
});
