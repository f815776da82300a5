import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { isDeeperThan, isDeepJson, isDeepText, parseJson } from '../../src/json/json.ts';
import { MAX_JSON_DEPTH } from '../../src/json/limits.ts';
import { isTextDeeperThan } from '../../src/json/scanner.ts';

describe('the depth of a text', () => {
  test('is that of its value', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), fc.nat(9), (text, limit) => {
        expect(isTextDeeperThan(text, limit)).toBe(isDeeperThan(JSON.parse(text), limit));
      }),
    );
  });

  test.each([
    ['[[[', 2, true],
    ['"[[["', 0, false],
    [String.raw`["\"[[[["]`, 1, false],
    ['', 0, false],
  ])('of %j is more than %d: %s', (text, limit, expected) => {
    expect(isTextDeeperThan(text, limit)).toBe(expected);
  });
});

describe('a long text that is too deep', () => {
  const text = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;

  test('is not parsed', () => {
    const parse = vi.spyOn(JSON, 'parse');
    try {
      expect([isDeepText(text, MAX_JSON_DEPTH), parseJson(text), isDeepJson(text)]).toEqual([true, undefined, true]);
      expect(parse).not.toHaveBeenCalled();
    } finally {
      parse.mockRestore();
    }
  });

  test('is unlike one that is long only', () => {
    const long = JSON.stringify({ a: '['.repeat(200_000), b: Array.from({ length: 20_000 }, () => [1]) });
    expect([isDeepText(long, MAX_JSON_DEPTH), isDeepJson(long), parseJson(long)]).toEqual([false, false, JSON.parse(long)]);
  });
});
