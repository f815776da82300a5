import { existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { lacks } from '../../../../test/needs/needs.ts';
import { pace } from '../../../../test/wait.ts';
import { openStore } from '../../src/store/index.ts';
import { migrate } from '../../src/store/schema.ts';
import { openReader, openWriter, RESULT, readResultCode, UNGUARDED } from '../../src/store/sqlite/database.ts';
import { createKysely } from '../../src/store/sqlite/kysely.ts';
import { SqliteLedger } from '../../src/store/sqlite/ledger.ts';
import { mountSmallDisk } from '../real-parts/programs.js';
import { open, readRows, readSums, settle } from './ledger-fixture.ts';
import { assertBuilt } from './processes.ts';

const disks = [mountSmallDisk(6 << 20), mountSmallDisk(6 << 20)];
const [small, other] = disks.map((disk) => disk?.folder);

beforeAll(assertBuilt);

afterAll(() => {
  for (const disk of disks) disk?.remove();
});

const LONG = 'x'.repeat(200);

test(
  'on a full disk nothing acknowledged is lost, the queue fills, and space that returns lets it drain',
  small ? {} : lacks('tmpfs'),
  async () => {
    const folder = join(small ?? '', 'data');
    const store = await openStore({ folder, ballastBytes: 1 << 20, maxQueuedRows: 500 });
    await expect.poll(() => existsSync(join(folder, 'ballast'))).toBe(true);
    const filler = join(small ?? '', 'filler');
    const { bavail, bsize } = statfsSync(folder);
    writeFileSync(filler, Buffer.alloc(bavail * bsize - (256 << 10)));

    const acknowledged: string[] = [];
    const refused: unknown[] = [];
    let number = 0;
    while (store.accepting) {
      const { id, ts } = store.createId();
      const written = store.openExchange({ id, ts, key_id: LONG, user_agent: LONG, session_id: `${LONG.slice(20)}${number++}` });
      written.then(
        () => acknowledged.push(id),
        (error) => refused.push(error),
      );
      if (store.status().queued_rows > 100) await pace(1);
    }
    expect(existsSync(join(folder, 'ballast')), 'the ballast was freed').toBe(false);
    expect(store.status()).toMatchObject({
      accepting: false,
      queued_rows: 500,
      rejected_rows: 0,
      last_error: 'database: database or disk is full',
    });
    await expect(store.openExchange({ id: 'x', ts: 1 })).rejects.toMatchObject({ code: 'full' });
    expect((await store.list({ limit: 1 })).exchanges, 'reads go on').toHaveLength(1);

    const before = acknowledged.length;
    rmSync(filler);
    await store.flush();
    expect(store.accepting).toBe(true);
    expect([acknowledged.length, refused]).toEqual([before + 500, []]);
    await store.close();
    const db = openReader(join(folder, 'sluice.db'));
    const stored = new Set(
      db
        .prepare('SELECT id FROM exchanges')
        .all()
        .map(({ id }) => id),
    );
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
    expect(stored.size).toBe(acknowledged.length);
    db.close();
  },
);

test('a batch that finds the disk full is rolled back as a whole and reported as full', other ? {} : lacks('tmpfs'), async () => {
  const db = openWriter(join(other ?? '', 'sluice.db'));
  await migrate(createKysely(db, UNGUARDED), 0);
  const ledger = new SqliteLedger(db, { boot: 'b', node: 'n' });
  ledger.recover(0);
  let full: unknown;
  for (let batch = 0; full === undefined; batch++) {
    const operations = Array.from({ length: 100 }, (_, index) => [
      open({ id: `${batch}-${index}`, ts: 1, key_id: LONG, user_agent: LONG }),
      settle({ id: `${batch}-${index}`, ts: 1, ending: 'answered', cost_micros: 1 }),
    ]).flat();
    try {
      ledger.write(operations);
    } catch (error) {
      full = error;
    }
  }
  expect(readResultCode(full)).toBe(RESULT.full);
  expect(db.isTransaction).toBe(false);
  expect(db.prepare('SELECT count(*) AS n FROM exchanges').get().n % 100).toBe(0);
  const { stored, expected } = await readSums({ all: async (text) => readRows(db, text) });
  expect(stored).toEqual(expected);
  db.close();
});
