import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PAGE_ROWS, RowList } from '../src/lib/row-list.ts';

interface Row {
  id: string;
  value: number;
}

const name = (number: number): string => String(number).padStart(8, '0');
const row = (number: number, value = 0): Row => ({ id: name(number), value });

/** A server with the rows 1 to `count`, newest first. */
class Server {
  readonly ids: number[];

  constructor(count: number) {
    this.ids = Array.from({ length: count }, (_, index) => count - index);
  }

  page(cursor: string | null, limit: number): { rows: Row[]; next: string | null } {
    const first = cursor === null ? 0 : this.ids.length - Number(cursor) + 1;
    const rows = this.ids.slice(first, first + limit).map((id) => row(id));
    return { rows, next: this.ids.length > first + limit ? (rows.at(-1)?.id ?? null) : null };
  }
}

/** Loads until the rows are there. */
function load(list: RowList<Row>, server: Server, from: number, to: number): number {
  for (let requests = 0; requests < 1000; requests++) {
    const wanted = list.findRequest(from, to);
    if (!wanted) return requests;
    const { rows, next } = server.page(wanted.cursor, wanted.limit);
    list.addPage(wanted, rows, next);
  }
  throw new Error('the list requests pages without an end');
}

const ids = (rows: readonly (Row | undefined)[]): (number | undefined)[] => rows.map((one) => one && Number(one.id));

describe('RowList', () => {
  test('loads pages when they come into view', () => {
    const list = new RowList<Row>();
    const server = new Server(1200);
    expect([list.isNew, list.length]).toEqual([true, 0]);
    expect(load(list, server, 0, 40)).toBe(1);
    expect([list.length, list.isComplete]).toEqual([PAGE_ROWS, false]);
    expect(load(list, server, 490, 530)).toBe(1);
    expect(load(list, server, 1190, 1230)).toBe(1);
    expect([list.length, list.isComplete]).toEqual([1200, true]);
    expect(ids(list.slice(498, 502))).toEqual([702, 701, 700, 699]);
  });

  test('keeps at most 5,000 of 100,000 rows, and loads the others again', () => {
    const list = new RowList<Row>();
    const server = new Server(100_000);
    for (let at = 0; at < 100_000; at += 1600) {
      load(list, server, at, at + 50);
      expect(list.kept).toBeLessThanOrEqual(5000);
      expect(ids(list.slice(at, at + 1))).toEqual([100_000 - at]);
    }
    load(list, server, 99_960, 100_000);
    expect(list.length).toBe(100_000);
    expect(ids(list.slice(20_000, 20_001))).toEqual([undefined]);
    expect(load(list, server, 20_000, 20_040)).toBe(1);
    expect(ids(list.slice(20_000, 20_001))).toEqual([80_000]);
    expect(list.length).toBe(100_000);
  });

  test('new rows are put on top, and changed rows in their place', () => {
    const list = new RowList<Row>();
    load(list, new Server(3), 0, 10);
    expect(list.put(row(4))).toBe('added');
    expect(list.put(row(2, 7))).toBe('changed');
    expect(ids(list.slice(0, 10))).toEqual([4, 3, 2, 1]);
    expect(list.slice(2, 3)).toEqual([row(2, 7)]);
    expect([list.indexOf(name(3)), list.indexOf(name(9))]).toEqual([1, -1]);
    expect([list.remove(name(3)), list.remove(name(3)), list.length]).toEqual([true, false, 3]);
  });

  test('a response that comes twice or late changes nothing', () => {
    const list = new RowList<Row>();
    const server = new Server(1200);
    load(list, server, 0, 600);
    const before = list.length;
    const { rows, next } = server.page(null, PAGE_ROWS);
    list.addPage({ cursor: null, limit: PAGE_ROWS }, rows, next);
    list.addPage({ cursor: name(1100), limit: PAGE_ROWS }, rows, next);
    expect(list.length).toBe(before);
  });

  test('any order of new rows, changes and views shows what the server has', () => {
    const step = fc.oneof(
      fc.record({ type: fc.constant('new' as const), count: fc.integer({ min: 1, max: 900 }) }),
      fc.record({ type: fc.constant('view' as const), at: fc.double({ min: 0, max: 1, noNaN: true }) }),
      fc.record({ type: fc.constant('change' as const), at: fc.double({ min: 0, max: 1, noNaN: true }) }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3000 }), fc.array(step, { maxLength: 12 }), (count, steps) => {
        const list = new RowList<Row>();
        const server = new Server(count);
        load(list, server, 0, 1);
        for (const one of steps) {
          if (one.type === 'new')
            for (let i = 0; i < one.count; i++) {
              const id = (server.ids[0] ?? 0) + 1;
              server.ids.unshift(id);
              list.put(row(id));
            }
          else {
            const at = Math.floor(one.at * server.ids.length);
            if (one.type === 'change') list.put(row(server.ids[at] ?? 0, 1));
            load(list, server, at, at + 40);
            expect(ids(list.slice(at, at + 40))).toEqual(server.ids.slice(at, at + 40));
          }
          expect(list.kept).toBeLessThanOrEqual(5000 + PAGE_ROWS);
        }
        for (let at = 0; at < server.ids.length; at += PAGE_ROWS) load(list, server, at, at + PAGE_ROWS);
        expect(list.length).toBe(server.ids.length);
      }),
      { numRuns: 15 },
    );
  });
});
