import { describe, expect, test } from 'vitest';
import { memo, memoWeak } from '../../src/codec/profile.ts';
import { BoundedCache } from '../../src/internal.ts';

const limits = { entries: 100, bytes: 20_000 };

describe('BoundedCache', () => {
  test('returns what was stored, and undefined for anything else', () => {
    const cache = new BoundedCache<number>(limits);
    cache.set('a', 1);
    cache.set('a', 2);
    cache.set('b', 3);
    cache.delete('b');
    expect([cache.get('a'), cache.get('b'), cache.get('c'), cache.size]).toEqual([2, undefined, undefined, 1]);
  });

  test.each([
    ['entries', (i: number) => `k${i}`],
    ['bytes', (i: number) => `${i}`.padEnd(900, 'x')],
    ['entries and bytes', (i: number) => `${i}`.padEnd((i * 37) % 400, 'x')],
  ])('never holds more %s than allowed', (_, keyOf) => {
    const cache = new BoundedCache<number>(limits);
    const keys = Array.from({ length: 5000 }, (_unused, i) => keyOf(i));
    keys.forEach((key, i) => {
      cache.set(key, i);
      expect(cache.size).toBeLessThanOrEqual(limits.entries);
      expect(cache.bytes).toBeLessThanOrEqual(limits.bytes);
    });
    expect(cache.get(keys.at(-1) ?? '')).toBe(keys.length - 1);
    for (const key of keys) cache.delete(key);
    expect([cache.size, cache.bytes]).toEqual([0, 0]);
  });

  test('does not store a key that is longer than its share', () => {
    const cache = new BoundedCache<number>(limits);
    cache.set('short', 1);
    cache.set('x'.repeat(limits.bytes / 2), 2);
    expect([cache.get('short'), cache.size, cache.bytes]).toEqual([1, 1, 10]);
  });

  test('keeps an entry that is read while thousands of others come and go', () => {
    const cache = new BoundedCache<number>(limits);
    cache.set('used', 1);
    for (let i = 0; i < 5000; i++) {
      cache.set(`invented-${i}`, i);
      expect(cache.get('used')).toBe(1);
    }
  });

  test('evicts what is not used', () => {
    const cache = new BoundedCache<number>(limits);
    cache.set('idle', 1);
    for (let i = 0; i < limits.entries; i++) cache.set(`k${i}`, i);
    expect(cache.get('idle')).toBeUndefined();
  });

  test('forgets a deleted entry in whichever generation it is', () => {
    const cache = new BoundedCache<number>(limits);
    cache.set('old', 1);
    for (let i = 0; i < limits.entries / 2; i++) cache.set(`k${i}`, i);
    cache.delete('old');
    expect(cache.get('old')).toBeUndefined();
    expect(cache.size).toBe(limits.entries / 2);
  });
});

test('memo calls its function once for each key in use', () => {
  const calls: string[] = [];
  const find = memo(limits, (text) => {
    calls.push(text);
    return { text };
  });
  expect(find('a')).toBe(find('a'));
  for (let i = 0; i < 1000; i++) {
    find(`b${i}`);
    find('a');
  }
  expect(calls.filter((text) => text === 'a')).toHaveLength(1);
});

describe('memoWeak', () => {
  test('computes once for each object, not for each equal value', () => {
    let count = 0;
    const double = memoWeak(({ n }: { n: number }) => {
      count++;
      return n * 2;
    });
    const key = { n: 2 };
    expect([double(key), double(key), double({ n: 2 })]).toEqual([4, 4, 4]);
    expect(count).toBe(2);
  });
});

test('memo passes further arguments to the first computation of a key', () => {
  const join = memo(limits, (key, more: string) => key + more);
  expect([join('a', '1'), join('a', '2'), join('b', '3')]).toEqual(['a1', 'a1', 'b3']);
});
