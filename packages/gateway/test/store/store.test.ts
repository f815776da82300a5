import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, type TestOptions, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { eventually, pace } from '../../../../test/wait.ts';
import { openStore, openStoreReader, restore, type Store, type StoreOptions } from '../../src/store/index.ts';
import { openReader, openWriter } from '../../src/store/sqlite/database.ts';
import { createAddress, createFolder, createTables, readRows, readSums, startPostgres } from './ledger-fixture.ts';
import { assertBuilt, runScript } from './processes.ts';

beforeAll(assertBuilt);

const stores: Store[] = [];

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

async function start(options: Partial<StoreOptions> = {}): Promise<Store> {
  const store = await openStore({ folder: createFolder(), ballastBytes: 0, ...options });
  stores.push(store);
  return store;
}

/** The whole life of an exchange, all writes awaited together. */
async function exchange(store: Store, key = 'alice', tokens = 10): Promise<string> {
  const { id, ts } = store.createId();
  const counts = { input_tokens: tokens, output_tokens: 1, ending: 'answered', http_status: 200 };
  await Promise.all([
    store.openExchange({ id, ts, key_id: key, tags: ['t'] }),
    store.openAttempt({ exchange_id: id, number: 1, ts, provider: 'groq', model: 'llama' }),
    store.reportProgress({ exchange_id: id, number: 1, input_tokens: tokens }),
    store.settleAttempt({ exchange_id: id, number: 1, ...counts }),
    store.settleExchange({ id, ts, cost_micros: 3, ...counts }),
  ]);
  return id;
}

type Choose = () => Promise<Partial<StoreOptions>>;

/** Where a store can be. */
const PLACES: readonly { where: string; options?: TestOptions; choose: Choose }[] = [
  { where: 'in a folder', choose: async () => ({ folder: createFolder() }) },
  { where: 'in memory', choose: async () => ({ folder: null }) },
  { where: 'on PostgreSQL', options: needs('postgres'), choose: async () => ({ folder: null, url: await createTables() }) },
];

/** Those that keep their data. */
const LASTING = PLACES.filter(({ where }) => where !== 'in memory');

for (const place of PLACES)
  test(`a store ${place.where} knows whether it keeps its data`, place.options ?? {}, async () => {
    expect((await start(await place.choose())).isPersistent).toBe(LASTING.includes(place));
  });

const describePlaces = (define: (choose: Choose) => void): void => {
  for (const { where, options = {}, choose } of PLACES) describe(where, options, () => define(choose));
};

describePlaces((choose) => {
  test('what was written is found by every query', async () => {
    const store = await start(await choose());
    const id = await exchange(store);
    expect(await store.get(id)).toMatchObject({
      exchange: { id, state: 'settled', boot_id: store.boot },
      attempts: [{ number: 1 }],
    });
    expect((await store.list()).exchanges.map((row) => row.id)).toEqual([id]);
    expect(await store.usage({ by: 'key' })).toMatchObject([{ group: 'alice', requests: 1, input_tokens: 10, cost_micros: 3 }]);
    expect(await store.sessions()).toEqual([]);
    expect(await store.session('x')).toBeNull();
    expect(store.status()).toMatchObject({ queued_rows: 0, written_rows: 5, accepting: true, last_error: null });
  });

  test('close writes what waits, and refuses what follows', async () => {
    const store = await start(await choose());
    const { id, ts } = store.createId();
    const written = store.openExchange({ id, ts });
    expect(await store.close()).toBe(0);
    await written;
    expect(store.accepting).toBe(false);
    await expect(store.openExchange({ id, ts })).rejects.toMatchObject({ code: 'closed' });
  });

  test('a query that fails rejects, and the next one works', async () => {
    const store = await start(await choose());
    await expect(store.usage({ by: 'nonsense' as 'key' })).rejects.toMatchObject({ code: 'query' });
    expect(await store.usage({ by: 'key' })).toEqual([]);
  });
});

/** A test of each place that keeps its data; `%s` in the name is the place. */
const testLasting = (name: string, run: (choose: Choose) => Promise<void>): void => {
  for (const { where, options = {}, choose } of LASTING) test(name.replace('%s', where), options, () => run(choose));
};

testLasting('a store %s that was closed and opened again has its rows, none of them crashed', async (choose) => {
  const place = await choose();
  const first = await start(place);
  const id = await exchange(first);
  await first.close();
  const second = await start(place);
  expect((await second.list()).exchanges.map((row) => row.id)).toEqual([id]);
  expect(second.status()).toMatchObject({ crashed_exchanges: 0, integrity: 'unchecked' });
});

test('after an unclean end the file is checked in the background', async () => {
  const folder = createFolder();
  const other = runScript(
    `const store = await openStore({ folder: args[0], ballastBytes: 0 });
     await store.openExchange({ id: '1', ts: 1 }); process.kill(process.pid, 'SIGKILL');`,
    folder,
  );
  expect(await other.ended).toBe('SIGKILL');
  const store = await start({ folder });
  expect(store.status()).toMatchObject({ crashed_exchanges: 1, integrity: 'checking' });
  await eventually(() => store.status().integrity !== 'checking');
  expect(store.status().integrity).toBe('ok');
});

testLasting('%s exchanges beyond the retention are deleted, their roll-ups stay', async (choose) => {
  let now = Date.now() - 10 * 86_400_000;
  const store = await start({ ...(await choose()), retentionDays: 5, wallClock: () => now });
  await exchange(store, 'old');
  now = Date.now();
  const id = await exchange(store, 'new');
  expect(await store.prune()).toBe(1);
  expect((await store.list()).exchanges.map((row) => row.id)).toEqual([id]);
  expect((await store.usage({ by: 'key' })).map(({ group }) => group).sort()).toEqual(['new', 'old']);
});

describe('readers', () => {
  test('another process reads while the gateway writes', async () => {
    const folder = createFolder();
    const store = await start({ folder });
    await exchange(store);
    const reader = await openStoreReader(folder);
    expect(await reader.usage({ by: 'model' })).toMatchObject([{ group: 'llama', requests: 1 }]);
    await exchange(store);
    expect((await reader.list()).exchanges).toHaveLength(2);
    await reader.close();
  });

  test('a folder without a gateway can be read; one without a database cannot', async () => {
    const folder = createFolder();
    await expect(openStoreReader(folder)).rejects.toMatchObject({ code: 'unavailable' });
    const store = await openStore({ folder, ballastBytes: 0 });
    await exchange(store);
    await store.close();
    const reader = await openStoreReader(folder);
    expect((await reader.list()).exchanges).toHaveLength(1);
    await reader.close();
  });
});

describe('a locked database', () => {
  test('delays writes and loses none; the event loop and reads go on', async () => {
    const folder = createFolder();
    const store = await start({ folder, busyMs: 100 });
    await exchange(store);
    const other = runScript(
      `globalThis.db = new DatabaseSync(args[0]); db.exec('BEGIN IMMEDIATE'); console.log('locked');
       process.on('SIGTERM', () => { db.exec('ROLLBACK'); process.exit(0); }); setInterval(() => {}, 1000);`,
      join(folder, 'sluice.db'),
    );
    await other.printed('locked');
    let isWritten = false;
    const written = Promise.all([exchange(store), exchange(store)]).then(() => {
      isWritten = true;
    });
    let turns = 0;
    while (store.status().failed_batches < 2) {
      await pace(1);
      turns += 1;
    }
    expect(turns, 'timers fire while the writer waits for the lock').toBeGreaterThan(10);
    expect([isWritten, store.status().last_error]).toEqual([false, 'database: database is locked']);
    expect((await store.list()).exchanges).toHaveLength(1);
    other.child.kill('SIGTERM');
    await written;
    await other.ended;
    expect((await store.list()).exchanges).toHaveLength(3);
    expect(store.status()).toMatchObject({ written_rows: 15, rejected_rows: 0, last_error: null });
  });

  test('close gives up after its time and counts what is lost', async () => {
    const folder = createFolder();
    const store = await openStore({ folder, ballastBytes: 0, busyMs: 50, closeMs: 200 });
    const other = openWriter(join(folder, 'sluice.db'));
    other.exec('BEGIN IMMEDIATE');
    const written = Promise.allSettled([store.openExchange({ id: '1', ts: 1 })]);
    const closed = store.close();
    expect(await written).toMatchObject([{ status: 'rejected', reason: { code: 'closed' } }]);
    other.exec('ROLLBACK');
    other.close();
    expect(await closed).toBe(1);
  });
});

describe('backup and restore', () => {
  test('a backup of a running gateway holds what was written, in a file of mode 600', async () => {
    const folder = createFolder();
    const store = await start({ folder });
    const id = await exchange(store);
    const file = join(createFolder(), 'backup.db');
    await store.backup(file);
    const later = await exchange(store);
    await expect(store.backup(file)).rejects.toMatchObject({ code: 'exists' });
    expect(readdirSync(join(file, '..'))).toEqual(['backup.db']);
    expect(() => restore(folder, file)).toThrow(`data folder "${folder}" is in use by process ${process.pid}`);
    await store.close();
    const replaced = restore(folder, file);
    expect(existsSync(replaced ?? '')).toBe(true);
    const restored = await start({ folder });
    expect([await restored.get(later), (await restored.get(id))?.exchange.id]).toEqual([null, id]);
    const old = openReader(replaced ?? '');
    expect(old.prepare('SELECT count(*) AS n FROM exchanges').get().n, 'the replaced database is complete').toBe(2);
    old.close();
  });

  test('a backup that was killed does not prevent the next one of a process with the same id', async () => {
    const store = await start();
    const file = join(createFolder(), 'backup.db');
    writeFileSync(`${file}.${process.pid}.unfinished`, 'a part');
    await store.backup(file);
    expect(readdirSync(join(file, '..'))).toEqual(['backup.db']);
  });

  test('a new folder can be filled from a backup', async () => {
    const store = await start();
    const id = await exchange(store);
    const file = join(createFolder(), 'backup.db');
    await store.backup(file);
    const folder = join(createFolder(), 'new');
    expect(restore(folder, file)).not.toBeUndefined();
    const restored = await start({ folder });
    expect((await restored.get(id))?.exchange.id).toBe(id);
  });

  test.each([
    ['no database', 'x'.repeat(5000)],
    ['an empty file', ''],
  ])('%s is refused, and the folder stays as it is', async (_, text) => {
    const folder = createFolder();
    const file = join(createFolder(), 'backup.db');
    writeFileSync(file, text);
    expect(() => restore(folder, file)).toThrow(`backup "${file}" cannot be restored`);
    expect(readdirSync(folder)).toEqual([]);
    expect(() => restore(folder, `${file}.missing`)).toThrow('does not exist');
  });

  test('memory has nothing to back up', async () => {
    const store = await start({ folder: null });
    await expect(store.backup(join(createFolder(), 'x'))).rejects.toMatchObject({ code: 'query' });
  });
});

describe('the end of the process', () => {
  // The lock keeps the writer inside a native call while the process ends. It is global, or it may be collected.
  const WRITE = `const store = await openStore({ folder: args[0], ballastBytes: 0, busyMs: 1500 });
    await store.openExchange({ id: String(process.pid), ts: 1 });
    globalThis.db = new DatabaseSync(args[0] + '/sluice.db'); db.exec('BEGIN IMMEDIATE');
    store.openExchange({ id: 'waits', ts: 1 });`;

  // Inside a native call of a worker each of these would abort the process with code 134.
  test.each([
    ['process.exit', 'setTimeout(() => process.exit(7), 300);', 7],
    ['an uncaught exception', "setTimeout(() => { throw new Error('bug'); }, 300);", 1],
    ['an unhandled rejection', "setTimeout(() => { Promise.reject(new Error('bug')); }, 300);", 1],
  ])('by %s during writes keeps its exit code', async (_, text, code) => {
    const folder = createFolder();
    expect(await runScript(WRITE + text, folder).ended).toBe(code);
    const store = await start({ folder });
    expect(store.status().crashed_exchanges).toBe(1);
  });

  test('a closed store does not keep the process alive', async () => {
    const script = runScript(
      `const store = await openStore({ folder: args[0] }); await store.list(); await store.close();`,
      createFolder(),
    );
    expect([await script.ended, script.output()]).toEqual([0, '']);
  });
});

test('hundreds of exchanges at once are all written to PostgreSQL, each once', needs('postgres'), async () => {
  const url = await createAddress();
  const store = await start({ folder: null, url });
  const ids = await Promise.all(Array.from({ length: 800 }, (_, index) => exchange(store, `key-${index % 7}`, index)));
  expect(store.status()).toMatchObject({ written_rows: 4000, queued_rows: 0, failed_batches: 0 });
  const server = await startPostgres();
  const { stored, expected } = await readSums({ all: (text) => server.query(url, text) });
  expect(stored).toEqual(expected);
  expect(await server.query(url, 'SELECT count(*)::int AS n FROM exchanges')).toEqual([{ n: new Set(ids).size }]);
});

test('hundreds of exchanges at once are all written, each once', async () => {
  const folder = createFolder();
  const store = await start({ folder });
  const ids = await Promise.all(Array.from({ length: 800 }, (_, index) => exchange(store, `key-${index % 7}`, index)));
  expect(store.status()).toMatchObject({ written_rows: 4000, queued_rows: 0 });
  const db = openReader(join(folder, 'sluice.db'));
  expect(db.prepare('SELECT count(*) AS n FROM exchanges').get().n).toBe(new Set(ids).size);
  const { stored, expected } = await readSums({ all: async (text) => readRows(db, text) });
  expect(stored).toEqual(expected);
  db.close();
});
