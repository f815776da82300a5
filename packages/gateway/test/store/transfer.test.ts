import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { KeyBook } from '../../src/keys/key-book.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { transfer } from '../../src/store/transfer.ts';
import { createAddress, createFolder, readSums, startPostgres } from './ledger-fixture.ts';

const DAY = 86_400_000;

describe('copying a folder to PostgreSQL', needs('postgres'), () => {
  /** Exchanges of some days, one of them left open, and two keys. */
  async function fill(folder: string, count: number): Promise<{ text: string }> {
    let now = Date.now() - 3 * DAY;
    const store = await openStore({ folder, ballastBytes: 0, wallClock: () => now });
    const book = await KeyBook.open({ store, pepperFile: join(folder, 'pepper'), requiresPepper: true });
    const { record, text } = await book.create('alice', { budget: '5usd/day', tags: ['team=a'] }, 'cli');
    await book.create('bob', {}, 'cli');
    await book.revoke('bob', false, 'cli');
    for (let index = 0; index < count; index++) {
      now += (3 * DAY) / count;
      const { id, ts } = store.createId();
      void store.openExchange({ id, ts, key_id: record.id, tags: ['t'], session_id: `s${index % 5}` });
      void store.openAttempt({ exchange_id: id, number: 1, ts, provider: 'p', model: `m${index % 3}` });
      if (index > 0) void store.settleExchange({ id, ts, ending: 'answered', input_tokens: index, cost_micros: 2 * index });
    }
    await store.flush();
    await book.close();
    await store.close();
    return { text };
  }

  async function describeStore(store: Store) {
    const sort = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row, Object.keys(row).sort())).sort();
    const { exchanges } = await store.list({ limit: 1000 });
    return {
      exchanges: sort(exchanges),
      detail: sort((await store.get(exchanges[3]?.id ?? ''))?.attempts ?? []),
      keys: sort(await store.listKeys()),
      audit: sort((await store.listAudit()).entries),
      usage: sort(await store.usage({ by: 'model', bucket: 'hour' })),
      tags: sort(await store.usage({ by: 'tag' })),
      sessions: sort(await store.sessions()),
      spending: await store.spending({ by: 'tag', of: 't', since: Date.now() - 2 * DAY }),
    };
  }

  test('every query has the same result, and repeating it copies nothing', async () => {
    const [folder, url] = [createFolder(), await createAddress()];
    const { text } = await fill(folder, 150);
    const first = await transfer({ folder, url });
    expect(first).toMatchObject({ exchanges: 150, attempts: 150, keys: 2, audit: 3 });
    const second = await transfer({ folder, url });
    // Roll-ups and the run that closed the folder are written again.
    expect({ ...second, copied: 0 }).toEqual({ ...first, copied: 0 });
    expect(second.copied).toBeLessThan(first.copied - 150);
    const before = await openStore({ folder, ballastBytes: 0 });
    const after = await openStore({ folder: null, url });
    expect(await describeStore(after)).toEqual(await describeStore(before));
    const book = await KeyBook.open({ store: after, pepperFile: join(folder, 'pepper'), requiresPepper: true });
    expect(book.check(text)).toMatchObject({ admitted: true, caller: { name: 'alice', policy: { budgets: [{}] } } });
    await book.close();
    await before.close();
    await after.close();
    const server = await startPostgres();
    const { stored, expected } = await readSums({ all: (query) => server.query(url, query) });
    expect(stored).toEqual(expected);
    const days = await server.query(url, 'SELECT count(*) AS n FROM exchanges_default');
    expect(days).toEqual([{ n: 0 }]);
  });

  test('one that was interrupted is continued', async () => {
    const [folder, url] = [createFolder(), await createAddress()];
    await fill(folder, 2500);
    let isStopped = false;
    const stop = (): void => {
      if (isStopped) return;
      isStopped = true;
      throw new Error('stop');
    };
    const interrupted = transfer({ folder, url, onProgress: ({ exchanges }) => exchanges >= 1000 && stop() });
    await expect(interrupted).rejects.toThrow('stop');
    const counts = await transfer({ folder, url });
    expect(counts).toMatchObject({ exchanges: 2500, attempts: 2500 });
    const server = await startPostgres();
    const { stored, expected } = await readSums({ all: (query) => server.query(url, query) });
    expect(stored).toEqual(expected);
  });

  test('rows that differ are found, and a folder that is in use is refused', async () => {
    const [folder, url] = [createFolder(), await createAddress()];
    await fill(folder, 20);
    await transfer({ folder, url });
    const server = await startPostgres();
    await server.query(url, 'UPDATE exchanges SET cost_micros = cost_micros + 1 WHERE input_tokens = 7');
    await expect(transfer({ folder, url })).rejects.toThrow('rows of exchanges in the database differ');
    const owner = await openStore({ folder, ballastBytes: 0 });
    await expect(transfer({ folder, url })).rejects.toMatchObject({ code: 'owned' });
    await owner.close();
  });

  test('keys of another pepper are refused', async () => {
    const [one, two, url] = [createFolder(), createFolder(), await createAddress()];
    await fill(one, 1);
    await fill(two, 1);
    await transfer({ folder: one, url });
    await expect(transfer({ folder: two, url })).rejects.toThrow('the database is used with another pepper');
  });
});
