import { expect, test } from 'vitest';
import { toNanoseconds } from '../../src/observe/tracing/exporter.ts';

test.each([
  [0, '0'],
  [1.5, '1500000'],
  [0.9999996, '1000000'],
  [41.9999999, '42000000'],
  [1_700_000_000_000.25, '1700000000000250000'],
])('%d ms are %s ns', (ms, expected) => {
  expect(toNanoseconds(ms)).toBe(expected);
});
