import { expect, test } from 'vitest';
import { formatBudget, formatUsd, parseBudget } from '../../src/keys/amounts.ts';

const ROWS: readonly [text: string, micros: number, period: string][] = [
  ['20usd/month', 20_000_000, 'month'],
  ['0.50usd/day', 500_000, 'day'],
  ['100 usd/week', 100_000_000, 'week'],
  ['0.000001usd/total', 1, 'total'],
  ['999999999usd/total', 999_999_999_000_000, 'total'],
  ['0usd/day', 0, 'day'],
];

test.each(ROWS)('%s', (text, micros, period) => {
  expect(parseBudget(text)).toEqual({ micros, period });
  const budget = parseBudget(text);
  expect(budget && parseBudget(formatBudget(budget))).toEqual(budget);
});

test.each([
  '',
  '20',
  '20usd',
  '20/month',
  '20eur/month',
  '-1usd/day',
  '1e3usd/day',
  '1.0000001usd/day',
  '20usd/hour',
  '1kusd/day',
  '9999999999usd/day',
])('%j is no budget', (text) => expect(parseBudget(text)).toBeUndefined());

test.each([
  [0, '0'],
  [1, '0.000001'],
  [-500_000, '-0.5'],
  [20_000_000, '20'],
])('%d micro-dollars are %s', (micros, text) => expect(formatUsd(micros)).toBe(text));
