import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { floorId, IdSource, MAX_ID_LEAD_MS } from '../../src/store/ids.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const readMs = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

describe('IdSource', () => {
  test('makes version 7 UUIDs that hold the time', () => {
    const { id, ts } = new IdSource(() => 1_794_883_092_683).next();
    expect(id).toMatch(UUID_V7);
    expect([ts, readMs(id)]).toEqual([1_794_883_092_683, 1_794_883_092_683]);
  });

  test('ids of one millisecond rise, also more than 4,096 of them', () => {
    const ids = new IdSource(() => 1000);
    const made = Array.from({ length: 10_000 }, () => ids.next().id);
    expect(made).toEqual([...made].sort());
    expect(new Set(made).size).toBe(10_000);
  });

  test('ids rise over a small step back of the clock and follow a large one', () => {
    const times = [100_000, 99_000, 100_000 - MAX_ID_LEAD_MS, 100_000 - MAX_ID_LEAD_MS - 1];
    const ids = new IdSource(() => times.shift() ?? 0);
    const [a = '', b = '', c = '', d = ''] = [ids.next(), ids.next(), ids.next(), ids.next()].map(({ id }) => id);
    expect([a < b, b < c, readMs(d)]).toEqual([true, true, 100_000 - MAX_ID_LEAD_MS - 1]);
  });

  test('however the clock jumps, the time of an id is at most the lead ahead of its ts, so that a range of times is a range of ids', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 100_000_000 }), { minLength: 1 }), (times) => {
        const rest = [...times];
        const ids = new IdSource(() => rest.shift() ?? 0);
        for (const _ of times) {
          const { id, ts } = ids.next();
          expect(id >= floorId(ts)).toBe(true);
          expect(id < floorId(ts + MAX_ID_LEAD_MS + 1)).toBe(true);
        }
      }),
    );
  });
});
