import { expect, test } from 'vitest';
import type { Effort } from '../../src/canonical/request.ts';
import { EFFORTS, findBudget, findEffort, isEffort, nearestEffort } from '../../src/passes/unsupported.ts';

test.each<[budget: number | undefined, effort: Effort | undefined]>([
  [undefined, undefined],
  [-1, undefined],
  [1, 'minimal'],
  [512, 'minimal'],
  [513, 'low'],
  [1024, 'low'],
  [8192, 'medium'],
  [24576, 'high'],
  [32768, 'xhigh'],
  [32769, 'max'],
])('a budget of %s is %s', (budget, effort) => expect(findEffort(budget)).toBe(effort));

test('the budget of an effort is of that effort, but the least two are one', () => {
  expect(EFFORTS.map((effort) => findEffort(findBudget(effort)))).toEqual(['low', 'low', 'medium', 'high', 'xhigh', 'max']);
  expect(EFFORTS.map(findBudget)).toEqual([1024, 1024, 8192, 24576, 32768, 65536]);
});

test.each<[wanted: Effort, allowed: string[], effort: Effort | undefined]>([
  ['high', ['low', 'high'], 'high'],
  ['minimal', ['low', 'medium', 'high'], 'low'],
  ['max', ['low', 'xhigh', 'high'], 'xhigh'],
  ['medium', ['low', 'high'], 'low'],
  ['high', ['none'], undefined],
  ['high', [], undefined],
])('P87: %s of %j is %s', (wanted, allowed, effort) => expect(nearestEffort(wanted, allowed)).toBe(effort));

test('words', () => expect(['max', 'none', 3, '__proto__'].map(isEffort)).toEqual([true, false, false, false]));
