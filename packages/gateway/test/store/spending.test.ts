import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore, type Store } from '../../src/store/index.ts';
import { createTables, describeEngines } from './ledger-fixture.ts';

const HOUR = 3_600_000;

/** A day whose hours can be written down. */
const START = Date.UTC(2026, 10, 17);

/** When, by which key, with which tags, and what it cost: known and assumed. */
const ROWS: readonly [at: number, key: string, tags: string[], cost: number | null, assumed: number][] = [
  [START - 24 * HOUR, 'a', ['team=x'], 1, 0],
  [START, 'a', ['team=x', 'b'], 10, 0],
  [START + 0.5 * HOUR - 1, 'a', [], 100, 0],
  [START + 0.5 * HOUR, 'a', ['team=x'], 1000, 0],
  [START + HOUR, 'a', ['Team=X'], null, 10_000],
  [START + 30 * HOUR, 'a', ['team=xy'], 100_000, 1],
  [START + HOUR, 'b', ['team=x'], 7, 0],
];

describeEngines('spending on %s', (engine) => {
  let store: Store;
  let now = 0;

  beforeAll(async () => {
    const url = engine === 'PostgreSQL' ? await createTables() : undefined;
    store = await openStore({ folder: null, url, wallClock: () => now });
    for (const [at, key, tags, cost, assumed] of ROWS) {
      now = at;
      const { id, ts } = store.createId();
      void store.openExchange({ id, ts, key_id: key, tags });
      void store.openAttempt({ exchange_id: id, number: 1, ts, provider: 'p' });
      void store.settleExchange({ id, ts, ending: 'answered', cost_micros: cost, assumed_micros: assumed });
    }
    // Open: it counts when it is settled.
    void store.openExchange({ ...store.createId(), key_id: 'a', tags: ['team=x'] });
    await store.flush();
  });

  afterAll(() => store.close());

  test.each([
    ['key', 'a', 0, 111_112],
    ['key', 'a', START, 111_111],
    ['key', 'a', START + 1, 111_101],
    ['key', 'a', START + 0.5 * HOUR, 111_001],
    ['key', 'a', START + 0.75 * HOUR, 110_001],
    ['key', 'b', 0, 7],
    ['key', 'none', 0, 0],
    ['tag', 'team=x', 0, 1 + 10 + 1000 + 7],
    ['tag', 'team=x', START + 0.25 * HOUR, 1000 + 7],
    ['tag', 'b', START - 0.25 * HOUR, 10],
  ] as const)('of %s %s since %d', async (by, of, since, micros) => {
    expect(await store.spending({ by, of, since })).toBe(micros);
  });
});
