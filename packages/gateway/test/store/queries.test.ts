import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseFilter } from '../../src/store/filter.ts';
import { IdSource } from '../../src/store/ids.ts';
import type { Operation } from '../../src/store/operations.ts';
import type { UsageQuery, UsageRow } from '../../src/store/queries.ts';
import { SUM_COLUMNS } from '../../src/store/rollups.ts';
import { attempt, createLedger, describeEngines, type Engine, open, settle, type TestLedger } from './ledger-fixture.ts';

const DAY = 86_400_000;

const HOUR = 3_600_000;

/** Midnight in UTC. */
const START = Math.floor(Date.parse('2026-11-01T00:00:00Z') / DAY) * DAY;

interface Example {
  ts: number;
  key: string;
  model: string;
  provider: string;
  tags: string[];
  tokens: number;
}

function build({ ts, key, model, provider, tags, tokens }: Example, id: string): Operation[] {
  return [
    open({ id, ts, key_id: key, tags, session_id: key === '' ? null : `session-${key}` }),
    attempt({ exchange_id: id, number: 1, ts, provider, model }),
    settle({ id, ts, ending: 'answered', input_tokens: tokens, cost_micros: 2 * tokens }),
  ];
}

async function fill(engine: Engine, examples: readonly Example[], ledger?: TestLedger) {
  const created = ledger ?? (await createLedger(engine));
  let time = 0;
  const ids = new IdSource(() => time);
  const made: string[] = [];
  const operations: Operation[] = [];
  for (const example of examples) {
    time = example.ts;
    const { id } = ids.next();
    made.push(id);
    operations.push(...build(example, id));
  }
  await created.write(operations);
  return { queries: created.queries, ledger: created, ids: made };
}

const repeat = (count: number, build: (index: number) => Partial<Example>): Example[] =>
  Array.from({ length: count }, (_, index) => ({
    ts: START + index,
    key: 'k',
    model: 'm',
    provider: 'p',
    tags: [],
    tokens: 1,
    ...build(index),
  }));

describeEngines('%s', (engine) => {
  describe('list', () => {
    test('pages newest first, without gaps or repetitions', async () => {
      const { queries, ids } = await fill(
        engine,
        repeat(25, () => ({})),
      );
      const seen: string[] = [];
      let cursor: string | null = null;
      let pages = 0;
      do {
        const page: Awaited<ReturnType<typeof queries.list>> = await queries.list({ cursor, limit: 10 });
        seen.push(...page.exchanges.map(({ id }) => id));
        cursor = page.next;
        pages += 1;
      } while (cursor !== null);
      expect([seen, pages]).toEqual([[...ids].reverse(), 3]);
    });

    test('a page that ends with the last row has no next page', async () => {
      const { queries } = await fill(
        engine,
        repeat(10, () => ({})),
      );
      expect((await queries.list({ limit: 10 })).next).toBeNull();
    });

    test('rows that arrive between two pages do not move the second', async () => {
      const { queries, ledger, ids } = await fill(
        engine,
        repeat(10, () => ({})),
      );
      const first = await queries.list({ limit: 5 });
      await ledger.write(build(repeat(1, () => ({ ts: START + DAY }))[0] as Example, `ffffffff-ffff-7000-8000-000000000000`));
      const second = await queries.list({ limit: 5, cursor: first.next });
      expect(second.exchanges.map(({ id }) => id)).toEqual(ids.slice(0, 5).reverse());
    });

    test('a rare match is found beyond the first window of rows', async () => {
      const ledger = await createLedger(engine);
      const { queries } = ledger;
      const ids = new IdSource(() => START);
      const operations = Array.from({ length: 45_000 }, (_, index) =>
        open({ id: ids.next().id, ts: START, key_id: index === 3 || index === 30_000 ? 'rare' : 'common' }),
      );
      await ledger.write(operations);
      const { filter } = parseFilter('key:rare', START);
      const page = await queries.list({ filter, limit: 10 });
      expect([page.exchanges.length, page.next]).toEqual([2, null]);
      const one = await queries.list({ filter, limit: 1 });
      const two = await queries.list({ filter, limit: 1, cursor: one.next });
      expect([...one.exchanges, ...two.exchanges].map(({ id }) => id)).toEqual(page.exchanges.map(({ id }) => id));
    });

    test('a query that finds nothing stops after 200,000 rows with a cursor to continue', async () => {
      const { queries, all } = await createLedger(engine);
      await all(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200500)
        INSERT INTO exchanges (id, ts, boot_id, node_id, key_id) SELECT substr(cast(1000000000000 + i AS text), 2), 0, 'b', 'n', CASE i WHEN 7 THEN 'rare' END FROM n`);
      const { filter } = parseFilter('key:rare', START);
      const first = await queries.list({ filter });
      expect(first).toEqual({ exchanges: [], next: '000000000501' });
      const second = await queries.list({ filter, cursor: first.next });
      expect([second.exchanges.length, second.next]).toEqual([1, null]);
    });
  });

  describe('one exchange', () => {
    test('comes with its attempts; an unknown id is null', async () => {
      const { queries, ids } = await fill(
        engine,
        repeat(1, () => ({ tags: ['t'] })),
      );
      expect(await queries.get(ids[0] ?? '')).toMatchObject({
        exchange: { tags: ['t'], is_stream: false },
        attempts: [{ number: 1 }],
      });
      expect(await queries.get('x')).toBeNull();
    });
  });

  describe('sessions', () => {
    test('are listed newest first with their sums', async () => {
      const { queries } = await fill(
        engine,
        repeat(6, (index) => ({ key: index % 3 === 0 ? '' : `s${index % 3}`, tokens: index })),
      );
      expect(await queries.sessions()).toMatchObject([
        { session_id: 'session-s2', exchanges: 2, input_tokens: 7, cost_micros: 14, first_ts: START + 2, last_ts: START + 5 },
        { session_id: 'session-s1', exchanges: 2, input_tokens: 5 },
      ]);
      expect(await queries.sessions(1)).toHaveLength(1);
    });

    test('one has its exchanges by pages', async () => {
      const { queries, ids } = await fill(
        engine,
        repeat(5, () => ({})),
      );
      const first = await queries.session('session-k', { limit: 3 });
      expect(first).toMatchObject({ session: { exchanges: 5 }, next: ids[2] });
      const second = await queries.session('session-k', { limit: 3, cursor: first?.next ?? null });
      expect([second?.exchanges.map(({ id }) => id), second?.next]).toEqual([ids.slice(0, 2).reverse(), null]);
      expect(await queries.session('unknown')).toBeNull();
    });
  });

  describe('usage', () => {
    const example = fc.record({
      ts: fc.integer({ min: START, max: START + 4 * DAY - 1 }),
      key: fc.constantFrom('', 'alice', 'bob'),
      model: fc.constantFrom('m1', 'm2'),
      provider: fc.constantFrom('p1', 'p2'),
      tags: fc.subarray(['red', 'blue']),
      tokens: fc.nat(1000),
    });
    const where = fc.record(
      {
        key: fc.constantFrom('', 'alice'),
        model: fc.constantFrom('m1', 'none'),
        provider: fc.constantFrom('p1'),
        tag: fc.constantFrom('red'),
      },
      { requiredKeys: [] },
    );
    const query = fc.record(
      {
        by: fc.constantFrom('day' as const, 'key' as const, 'model' as const, 'provider' as const, 'tag' as const),
        since: fc.integer({ min: START - DAY, max: START + 4 * DAY }),
        until: fc.integer({ min: START - DAY, max: START + 5 * DAY }),
        bucket: fc.constantFrom('hour' as const, 'day' as const),
        where,
      },
      { requiredKeys: ['by'] },
    );

    const isChosen = (row: Example, { since = 0, until = 10 * START, where: { tag, ...others } = {} }: UsageQuery): boolean =>
      row.ts >= Math.floor(since / HOUR) * HOUR &&
      row.ts < Math.ceil(until / HOUR) * HOUR &&
      (tag === undefined || row.tags.includes(tag)) &&
      Object.entries(others).every(([name, value]) => row[name as 'key'] === value);

    function listGroups(row: Example, { by, where: { tag } = {} }: UsageQuery): (string | null)[] {
      if (by === 'day') return [null];
      return by === 'tag' ? row.tags.filter((name) => tag === undefined || name === tag) : [row[by]];
    }

    /** Sums the examples the slow way. */
    function sumUp(examples: readonly Example[], asked: UsageQuery) {
      const bucket = asked.bucket ?? (asked.by === 'day' ? 'day' : undefined);
      const length = bucket === 'hour' ? HOUR : DAY;
      const sums = new Map<string, Pick<UsageRow, 'group' | 'ts' | 'requests' | 'input_tokens' | 'cost_micros'>>();
      for (const row of examples.filter((one) => isChosen(one, asked))) {
        const ts = bucket === undefined ? null : Math.floor(row.ts / length) * length;
        for (const group of listGroups(row, asked)) {
          const known = sums.get(`${ts} ${group}`) ?? { group, ts, requests: 0, input_tokens: 0, cost_micros: 0 };
          known.requests += 1;
          known.input_tokens += row.tokens;
          known.cost_micros += 2 * row.tokens;
          sums.set(`${ts} ${group}`, known);
        }
      }
      return [...sums.values()];
    }

    const sort = (rows: readonly Pick<UsageRow, 'ts' | 'group'>[]) =>
      [...rows].sort((a, b) => (`${a.ts} ${a.group}` < `${b.ts} ${b.group}` ? -1 : 1));

    test('equals the sum over exchanges for any grouping, selection and range', async () => {
      const ledger = await createLedger(engine);
      await fc.assert(
        fc.asyncProperty(
          fc.array(example, { maxLength: 30 }),
          fc.array(query, { minLength: 5, maxLength: 5 }),
          async (examples, asked) => {
            await ledger.clear();
            const { queries } = await fill(engine, examples, ledger);
            for (const next of asked) {
              const rows = await queries.usage(next as UsageQuery);
              const sums = rows.map(({ group, ts, requests, input_tokens, cost_micros }) => ({
                group,
                ts,
                requests,
                input_tokens,
                cost_micros,
              }));
              expect(sort(sums)).toEqual(sort(sumUp(examples, next as UsageQuery)));
            }
          },
        ),
        { numRuns: engine === 'SQLite' ? 100 : 40 },
      );
    });

    test('is ordered by time, then by cost', async () => {
      const { queries } = await fill(
        engine,
        repeat(4, (index) => ({ model: `m${index % 2}`, tokens: 1 + (index % 2), ts: START + Math.floor(index / 2) * DAY })),
      );
      const rows = await queries.usage({ by: 'model', bucket: 'day' });
      expect(rows.map(({ ts, group }) => [ts, group])).toEqual([
        [START, 'm1'],
        [START, 'm0'],
        [START + DAY, 'm1'],
        [START + DAY, 'm0'],
      ]);
    });

    test('a result with too many rows is refused instead of cut', async () => {
      const { queries, all } = await createLedger(engine);
      const sums = SUM_COLUMNS.map(() => 0).join(', ');
      await all(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50001)
        INSERT INTO usage_rollups (rollup, bucket, tag, key_id, model, provider, ${SUM_COLUMNS.join(', ')}) SELECT 4, ${START / HOUR}, '', 'k' || i, '', '', ${sums} FROM n`);
      await expect(queries.usage({ by: 'key', bucket: 'hour' })).rejects.toMatchObject({ code: 'query' });
    });
  });
});
