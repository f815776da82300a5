import { describe, expect, test } from 'vitest';
import { findLimit, judge, KINDS } from '../../../bench/check/judge.js';
import { buildParts, listChecks } from '../../../bench/check/parts.js';

describe('a limit', () => {
  test('is the record with the tolerance of its kind', () => {
    expect(findLimit('ratio', 2)).toBeCloseTo(2.3, 10);
    expect(findLimit('files', 500)).toBe(505);
    expect(findLimit('other calls', 0.1)).toBeCloseTo(0.5, 10);
  });

  test('shows a closure more for each stream, a file more of a short program, and a send more for each request', () => {
    expect(findLimit('closures', 115)).toBeLessThan(116);
    expect(findLimit('files', 9)).toBeLessThan(10);
    expect(findLimit('sends', 2)).toBeLessThan(2.1);
  });

  test('of every ratio is 15 % above its record', () => expect(KINDS.ratio).toEqual({ share: 0.15 }));

  test('exists for every kind of check, and no kind is unused', () => {
    const kinds = listChecks(buildParts({ port: 1 })).map(({ kind }: { kind: string }) => kind);
    expect([...new Set(kinds)].sort()).toEqual(Object.keys(KINDS).sort());
  });
});

describe('a value', () => {
  test('at its limit is within it, and fails with a limit that is lower', () => {
    expect(judge('ratio', 2, [2.3])).toMatchObject({ state: 'ok' });
    expect(judge('ratio', 1.99, [2.3, 2.3])).toMatchObject({ state: 'FAILED' });
  });

  test('above its limit twice fails, with both measurements and the record', () => {
    expect(judge('objects', 280, [300, 290])).toEqual({
      state: 'FAILED',
      note: 'above its record of 280 (3.6 %); measured again: 290',
    });
  });

  test('above its limit once is ok, with both measurements', () => {
    expect(judge('ratio', 1, [1.4, 1.1])).toEqual({
      state: 'ok',
      note: 'above the limit in one of two measurements; the other is 1.1',
    });
  });

  test('without a record fails', () => {
    expect(judge('files', undefined, [10])).toEqual({ state: 'FAILED', note: 'has no recorded value' });
  });

  test('10 % below its record is low, unless the slack of its kind explains it', () => {
    expect(judge('ratio', 2, [1.81])).toEqual({ state: 'ok', isLow: false });
    expect(judge('ratio', 2, [1.79])).toEqual({ state: 'ok', isLow: true });
    expect(judge('other calls', 0.1, [0])).toEqual({ state: 'ok', isLow: false });
  });
});
