import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Operation } from '../../src/store/operations.ts';
import { migrate } from '../../src/store/schema.ts';
import { openWriter, UNGUARDED } from '../../src/store/sqlite/database.ts';
import { createKysely } from '../../src/store/sqlite/kysely.ts';
import { SqliteLedger } from '../../src/store/sqlite/ledger.ts';
import {
  attempt,
  createLedger,
  describeEngines,
  open,
  progress,
  readRows,
  readSums,
  readTable,
  settle,
  settleAttempt,
  type TestLedger,
} from './ledger-fixture.ts';

const ID = '01a1e75e-80cb-7000-b251-e1d75371c47d';

const TS = 1_794_883_092_683;

const LIFE: readonly Operation[] = [
  open({ id: ID, ts: TS, key_id: 'alice', tags: ['a', 'b', 'a'], model_requested: 'fast', is_stream: true }),
  attempt({ exchange_id: ID, number: 1, ts: TS, provider: 'groq', model: 'llama' }),
  settleAttempt({ exchange_id: ID, number: 1, ending: 'upstream_error', http_status: 503, possibly_billed: true }),
  attempt({ exchange_id: ID, number: 2, ts: TS + 5, provider: 'openai', model: 'gpt', upstream_protocol: 'openai-chat' }),
  progress({ exchange_id: ID, number: 2, input_tokens: 10 }),
  settleAttempt({ exchange_id: ID, number: 2, ending: 'answered', input_tokens: 10, output_tokens: 5, http_status: 200 }),
  settle({
    id: ID,
    ts: TS + 9,
    ending: 'answered',
    input_tokens: 10,
    output_tokens: 5,
    cost_micros: 7,
    http_status: 200,
    total_ms: 9,
  }),
];

const TABLES = ['exchanges', 'attempts', 'usage_rollups'];

const readAll = async (ledger: TestLedger) => Promise.all(TABLES.map((table) => readTable(ledger, table)));

async function expectSums(ledger: TestLedger): Promise<void> {
  const { stored, expected } = await readSums(ledger);
  expect(stored).toEqual(expected);
}

describeEngines('%s', (engine) => {
  describe('operations', () => {
    test('an exchange has one row, each attempt one, and the last attempt names the upstream', async () => {
      const ledger = await createLedger(engine);
      expect(await ledger.write(LIFE)).toEqual([]);
      expect(await readTable(ledger, 'exchanges')).toMatchObject([
        {
          id: ID,
          state: 'settled',
          provider: 'openai',
          model: 'gpt',
          attempts: 2,
          cost_micros: 7,
          tags: '["a","b"]',
          boot_id: 'boot-1',
        },
      ]);
      expect(await readTable(ledger, 'attempts')).toMatchObject([
        { number: 1, state: 'settled', ending: 'upstream_error', possibly_billed: 1 },
        { number: 2, state: 'settled', ending: 'answered', input_tokens: 10 },
      ]);
      await expectSums(ledger);
    });

    test('a settlement that names an upstream replaces that of the last attempt, whole or in parts', async () => {
      const upstream = { provider: 'groq', upstream_protocol: 'gemini', model: 'llama' };
      const life = [...LIFE.slice(0, -1), settle({ id: ID, ts: TS + 9, ending: 'answered', http_status: 200, ...upstream })];
      const [whole, cut] = [await createLedger(engine), await createLedger(engine)];
      await whole.write(life);
      for (const operation of life) await cut.write([operation]);
      expect(await readTable(whole, 'exchanges')).toMatchObject([{ ...upstream, attempts: 2 }]);
      expect(await readAll(cut)).toEqual(await readAll(whole));
    });

    test.each(LIFE.map((operation, index) => ({ index, kind: operation.kind })))(
      'repeating operation $index ($kind), at once or at the end, changes nothing',
      async ({ index }) => {
        const once = await createLedger(engine);
        await once.write(LIFE);
        const twice = await createLedger(engine);
        const repeated = LIFE.slice(index, index + 1);
        await twice.write([...LIFE.slice(0, index), ...repeated, ...repeated]);
        await twice.write([...LIFE.slice(index + 1), ...repeated]);
        expect(await readAll(twice)).toEqual(await readAll(once));
      },
    );

    test.each(LIFE.map((_, index) => index))(
      'a batch that ends after operation %i gives the same rows as one batch',
      async (end) => {
        const [whole, cut] = [await createLedger(engine), await createLedger(engine)];
        await whole.write(LIFE);
        await cut.write(LIFE.slice(0, end + 1));
        await cut.write(LIFE.slice(end + 1));
        expect(await readAll(cut)).toEqual(await readAll(whole));
      },
    );

    test('a batch that was committed without anybody knowing may be repeated with what came later', async () => {
      const [whole, repeated] = [await createLedger(engine), await createLedger(engine)];
      await whole.write(LIFE);
      await repeated.write(LIFE.slice(0, 4));
      await repeated.write(LIFE);
      expect(await readAll(repeated)).toEqual(await readAll(whole));
    });

    test('repeating everything, in batches, changes nothing', async () => {
      const ledger = await createLedger(engine);
      await ledger.write(LIFE);
      const before = await readAll(ledger);
      for (const operation of LIFE) await ledger.write([operation]);
      await ledger.write(LIFE);
      expect(await readAll(ledger)).toEqual(before);
    });

    test('progress only rises', async () => {
      const ledger = await createLedger(engine);
      const report = (input_tokens: number | null, output_tokens: number | null): Operation =>
        progress({ exchange_id: ID, number: 1, input_tokens, output_tokens });
      await ledger.write([...LIFE.slice(0, 2), report(10, 1), report(null, 5), report(3, 4)]);
      expect(await readTable(ledger, 'attempts')).toMatchObject([{ input_tokens: 10, output_tokens: 5, reasoning_tokens: null }]);
    });

    test('an operation that the database rejects is returned, the others are written', async () => {
      const ledger = await createLedger(engine);
      const wrong: Operation = { kind: 'openExchange', values: [...open({ id: ID, ts: TS }).values.slice(0, 1), null] };
      const rejected = await ledger.write([...LIFE.slice(0, 3), wrong, ...LIFE.slice(3)]);
      expect(rejected).toMatchObject([{ index: 3 }]);
      expect(await readTable(ledger, 'exchanges')).toMatchObject([{ state: 'settled', cost_micros: 7 }]);
      await expectSums(ledger);
    });

    test('values of any size and kind are bounded, and impossible counts are marked', async () => {
      const ledger = await createLedger(engine);
      const long = `\0\ud800${'x'.repeat(10_000)}`;
      const tags = Array.from({ length: 100 }, (_, index) => `${index}","${long}`);
      const notes = Array.from({ length: 500 }, () => ({ code: 'DROPPED', path: long, message: long }));
      const rejected = await ledger.write([
        open({ id: ID, ts: TS + 0.5, key_id: long, user_agent: long, tags }),
        settle({
          id: ID,
          ts: TS,
          ending: long,
          input_tokens: 1e300,
          output_tokens: -5,
          cost_micros: Number.NaN,
          total_ms: -1,
          notes,
        }),
      ]);
      expect(rejected).toEqual([]);
      const [row = {}] = await readTable(ledger, 'exchanges');
      expect(row).toMatchObject({
        input_tokens: 500_000_000,
        output_tokens: 0,
        cost_micros: null,
        total_ms: 0,
        notes_count: 500,
      });
      expect(row['provenance']).toBe('uncertain');
      expect(JSON.parse(String(row['tags']))).toHaveLength(32);
      expect(JSON.stringify(row).length).toBeLessThan(10_000);
      expect(JSON.stringify(row)).not.toMatch(/\\u0000|\\ud800/);
      await expectSums(ledger);
    });
  });

  describe('recovery', () => {
    test('open rows of an earlier run become crashed, with the usage reported until then', async () => {
      const ledger = await createLedger(engine, 'boot-1');
      await ledger.write([
        ...LIFE.slice(0, 2),
        settleAttempt({ exchange_id: ID, number: 1, ending: 'timeout', input_tokens: 3, cost_micros: 2 }),
        ...LIFE.slice(3, 4),
        progress({ exchange_id: ID, number: 2, input_tokens: 10, output_tokens: 4 }),
      ]);
      expect(await ledger.next('boot-2').recover(TS + 100)).toEqual({ crashed: 1, isUnclean: true });
      expect(await readTable(ledger, 'exchanges')).toMatchObject([
        {
          state: 'crashed',
          ending: 'crashed',
          provenance: 'uncertain',
          input_tokens: 13,
          output_tokens: 4,
          cost_micros: 2,
          possibly_billed: 1,
        },
      ]);
      expect(await readTable(ledger, 'attempts')).toMatchObject([
        { state: 'settled' },
        { state: 'crashed', possibly_billed: 1, provenance: 'uncertain' },
      ]);
      await expectSums(ledger);
    });

    test('an exchange that was not sent to an upstream is not billed', async () => {
      const ledger = await createLedger(engine);
      await ledger.write(LIFE.slice(0, 1));
      await ledger.next('boot-2').recover(TS);
      expect(await readTable(ledger, 'exchanges')).toMatchObject([{ state: 'crashed', possibly_billed: 0, input_tokens: null }]);
    });

    test('repeating it, and settling late, changes nothing', async () => {
      const ledger = await createLedger(engine);
      await ledger.write(LIFE.slice(0, 4));
      const next = ledger.next('boot-2');
      await next.recover(TS);
      const before = await readAll(ledger);
      expect(await next.recover(TS + 1)).toEqual({ crashed: 0, isUnclean: false });
      await ledger.write(LIFE);
      expect(await readAll(ledger)).toEqual(before);
    });

    test('rows of this run stay open, so that its writer can be started again', async () => {
      const ledger = await createLedger(engine);
      await ledger.write(LIFE.slice(0, 2));
      expect(await ledger.recover(TS)).toEqual({ crashed: 0, isUnclean: false });
      expect(await readTable(ledger, 'exchanges')).toMatchObject([{ state: 'open' }]);
    });

    test('thousands of open rows are all closed', async () => {
      const ledger = await createLedger(engine);
      await ledger.write(Array.from({ length: 2500 }, (_, index) => open({ id: `id-${index}`, ts: TS })));
      expect((await ledger.next('boot-2').recover(TS)).crashed).toBe(2500);
      await expectSums(ledger);
    });

    test('a run that ended in order is clean', async () => {
      const ledger = await createLedger(engine);
      await ledger.end(5);
      expect((await ledger.next('boot-2').recover(TS)).isUnclean).toBe(false);
    });
  });

  describe('roll-ups', () => {
    const ending = fc.constantFrom('answered', 'client_aborted', 'client_stalled', 'upstream_error', 'refused');
    const count = fc.option(fc.nat(1_000_000), { nil: null });
    const settlement = fc.record({
      ending,
      input_tokens: count,
      output_tokens: count,
      cache_read_tokens: count,
      cost_micros: count,
      total_ms: count,
      http_status: fc.constantFrom(null, 200, 404, 502),
      provenance: fc.constantFrom(null, 'reported', 'estimated', 'uncertain', 'derived'),
    });
    const exchange = fc.record({
      ts: fc.integer({ min: TS, max: TS + 3 * 86_400_000 }),
      key_id: fc.constantFrom(null, 'alice', 'bob'),
      tags: fc.subarray(['red', 'green', 'blue']),
      provider: fc.constantFrom('openai', 'groq'),
      model: fc.constantFrom('a', 'b'),
      settlement,
    });
    /** What happens, in any order: an index of an exchange and a step of its life, a repeated batch, or a crash. */
    const step = fc.oneof(
      { weight: 20, arbitrary: fc.record({ is: fc.constant('life' as const), exchange: fc.nat(9), step: fc.nat(4) }) },
      { weight: 3, arbitrary: fc.record({ is: fc.constant('commit' as const) }) },
      { weight: 1, arbitrary: fc.record({ is: fc.constant('replay' as const) }) },
      { weight: 1, arbitrary: fc.record({ is: fc.constant('crash' as const) }) },
    );

    test('an exchange counts for the hour in which it was admitted, however long it runs', async () => {
      const ledger = await createLedger(engine);
      await ledger.write([
        open({ id: ID, ts: TS }),
        settle({ id: ID, ts: TS + 86_400_000, ending: 'answered', total_ms: 86_400_000 }),
      ]);
      const buckets = await ledger.all('SELECT DISTINCT bucket FROM usage_rollups ORDER BY 1');
      expect(buckets.map(({ bucket }) => bucket)).toEqual([Math.floor(TS / 86_400_000), Math.floor(TS / 3_600_000)]);
    });

    /** Three attempts, of which the second is the one that the client got. */
    const SPLIT: readonly Operation[] = [
      open({ id: ID, ts: TS, key_id: 'alice', tags: ['red'] }),
      attempt({ exchange_id: ID, number: 1, ts: TS, provider: 'one', model: 'a' }),
      attempt({ exchange_id: ID, number: 2, ts: TS, provider: 'two', model: 'b' }),
      attempt({ exchange_id: ID, number: 3, ts: TS, provider: 'three', model: 'a' }),
      settleAttempt({ exchange_id: ID, number: 1, ending: 'hedge_lost', input_tokens: 10, cost_micros: 7 }),
      settleAttempt({ exchange_id: ID, number: 3, ending: 'upstream_error' }),
      settleAttempt({ exchange_id: ID, number: 2, ending: 'answered', input_tokens: 11, output_tokens: 5, cost_micros: 300 }),
      settle({
        ...{ id: ID, ts: TS + 9, ending: 'answered', http_status: 200, provider: 'two', model: 'b' },
        ...{ input_tokens: 21, output_tokens: 5, cost_micros: 307, assumed_micros: 4, total_ms: 9 },
      }),
    ];

    test.each([
      ['one batch', [SPLIT]],
      ['many batches', SPLIT.map((operation) => [operation])],
    ])('by provider and model, what each attempt used counts where it was used: %s', async (_, batches) => {
      const ledger = await createLedger(engine);
      for (const batch of batches) await ledger.write(batch);
      const read = async (by: 'provider' | 'model' | 'key') =>
        (await ledger.queries.usage({ by, since: TS - 1, until: TS + 1 })).map(
          ({ group, requests, attempts, input_tokens, cost_micros, assumed_micros }) => [
            ...[group, requests, attempts, input_tokens, cost_micros, assumed_micros],
          ],
        );
      expect(new Set(await read('provider'))).toEqual(
        new Set([
          ['one', 0, 0, 10, 7, 0],
          ['two', 1, 3, 11, 300, 4],
        ]),
      );
      expect(new Set(await read('model'))).toEqual(
        new Set([
          ['a', 0, 0, 10, 7, 0],
          ['b', 1, 3, 11, 300, 4],
        ]),
      );
      expect(await read('key')).toEqual([['alice', 1, 3, 21, 307, 4]]);
      await expectSums(ledger);
    });

    test.each([
      ['one batch', [[0, 1, 2, 3, 4, 5, 6]]],
      ['many batches', [[0], [1], [2], [3], [4], [5], [6]]],
    ])('what is known of a cost counts, and the exchange as unpriced: %s', async (_, batches) => {
      const life: readonly Operation[] = [
        open({ id: ID, ts: TS, key_id: 'alice' }),
        attempt({ exchange_id: ID, number: 1, ts: TS, provider: 'one', model: 'priced' }),
        attempt({ exchange_id: ID, number: 2, ts: TS, provider: 'two', model: 'unpriced' }),
        attempt({ exchange_id: ID, number: 3, ts: TS, provider: 'two', model: 'unpriced' }),
        settleAttempt({ exchange_id: ID, number: 1, ending: 'broken', input_tokens: 10, output_tokens: 1, cost_micros: 7 }),
        settleAttempt({ exchange_id: ID, number: 3, ending: 'answered', input_tokens: 10, output_tokens: 5 }),
        settle({ id: ID, ts: TS + 9, ending: 'answered', http_status: 200, input_tokens: 20, output_tokens: 6, cost_micros: 7 }),
      ];
      const ledger = await createLedger(engine);
      for (const batch of batches) await ledger.write(batch.flatMap((index) => life[index] ?? []));
      const read = async (by: 'model' | 'key') =>
        (await ledger.queries.usage({ by, since: TS - 1, until: TS + 1 })).map((row) => [
          ...[row.group, row.requests, row.unpriced, row.cost_micros],
        ]);
      expect(new Set(await read('model'))).toEqual(
        new Set([
          ['priced', 0, 0, 7],
          ['unpriced', 1, 1, 0],
        ]),
      );
      expect(await read('key')).toEqual([['alice', 1, 1, 7]]);
      await expectSums(ledger);
    });

    test('equal the sums over rows after any schedule of writes, repetitions and crashes', async () => {
      const first = await createLedger(engine);
      await fc.assert(
        fc.asyncProperty(
          fc.array(exchange, { minLength: 10, maxLength: 10 }),
          fc.array(step, { maxLength: 150 }),
          async (exchanges, steps) => {
            await first.clear();
            await first.recover(TS);
            let ledger = first;
            let boot = 1;
            let batch: Operation[] = [];
            let last: Operation[] = [];
            for (const next of steps) {
              if (next.is === 'life') batch.push(buildStep(exchanges[next.exchange], `id-${next.exchange}`, next.step));
              else if (next.is === 'replay') await ledger.write(last);
              else if (next.is === 'commit') {
                await ledger.write(batch);
                last = batch;
                batch = [];
              } else {
                // What was not committed is gone.
                batch = [];
                ledger = ledger.next(`boot-${++boot}`);
                await ledger.recover(TS);
                expect(await ledger.all("SELECT id FROM exchanges WHERE state = 'open'")).toEqual([]);
              }
            }
            await expectSums(ledger);
          },
        ),
        { numRuns: engine === 'SQLite' ? 150 : 40 },
      );
    });

    interface Example {
      ts: number;
      key_id: string | null;
      tags: string[];
      provider: string;
      model: string;
      settlement: { ending: string };
    }

    function buildStep(example: Example | undefined, id: string, number: number): Operation {
      if (!example) throw new Error('no such exchange');
      const { ts, key_id, tags, provider, model, settlement: end } = example;
      const steps = [
        open({ id, ts, key_id, tags }),
        attempt({ exchange_id: id, number: 1, ts, provider, model }),
        progress({ exchange_id: id, number: 1, input_tokens: 5 }),
        settleAttempt({ exchange_id: id, number: 1, ...end }),
        settle({ id, ts, ...end }),
      ];
      return steps[number] ?? (steps[0] as Operation);
    }
  });
});

describe('SQLite alone', () => {
  async function createSqlite() {
    const db = openWriter(':memory:');
    await migrate(createKysely(db, UNGUARDED), 0);
    return { db, ledger: new SqliteLedger(db, { boot: 'boot-1', node: 'node' }) };
  }

  test.each(['exchanges', 'attempts'])('open rows of %s are found by an index', async (table) => {
    const { db } = await createSqlite();
    const [plan] = db.prepare(`EXPLAIN QUERY PLAN SELECT rowid FROM ${table} WHERE state = 'open' AND boot_id <> 'x'`).all();
    expect(plan.detail).toContain(`${table}_open`);
  });

  describe('pruning', () => {
    test('deletes old settled exchanges with their attempts in batches, and keeps open ones and roll-ups', async () => {
      const { db, ledger } = await createSqlite();
      const id = (ms: number): string =>
        `${ms
          .toString(16)
          .padStart(12, '0')
          .replace(/(.{8})/, '$1-')}-7000-8000-000000000000`;
      for (let ms = 1; ms <= 10; ms++)
        ledger.write([
          open({ id: id(ms), ts: ms }),
          attempt({ exchange_id: id(ms), number: 1, ts: ms, provider: 'p' }),
          ...(ms === 2 ? [] : [settle({ id: id(ms), ts: ms, ending: 'answered' })]),
        ]);
      const rollups = readRows(db, 'SELECT * FROM usage_rollups');
      expect([ledger.prune(6, 3), ledger.prune(6, 3), ledger.prune(6, 3)]).toEqual([3, 1, 0]);
      expect(readRows(db, 'SELECT ts FROM exchanges ORDER BY ts').map(({ ts }) => ts)).toEqual([2, 6, 7, 8, 9, 10]);
      expect(readRows(db, 'SELECT ts FROM attempts ORDER BY ts').map(({ ts }) => ts)).toEqual([2, 6, 7, 8, 9, 10]);
      expect(readRows(db, 'SELECT * FROM usage_rollups')).toEqual(rollups);
      expect([ledger.pruneTo(3), ledger.pruneTo(3), ledger.pruneTo(100)]).toEqual([2, 0, 0]);
      expect(readRows(db, 'SELECT ts FROM exchanges ORDER BY ts').map(({ ts }) => ts)).toEqual([2, 8, 9, 10]);
    });
  });
});
