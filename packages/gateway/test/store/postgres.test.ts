import { afterEach, describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { eventually, quietFor } from '../../../../test/wait.ts';
import { openStore, type Store, type StoreOptions } from '../../src/store/index.ts';
import { describeAddress, readAddress } from '../../src/store/postgres/address.ts';
import { createPool, PATIENCE } from '../../src/store/postgres/connection.ts';
import { splitIntoGroups } from '../../src/store/postgres/ledger.ts';
import { Partitions } from '../../src/store/postgres/partitions.ts';
import { MIGRATIONS } from '../../src/store/schema.ts';
import { attempt, createAddress, createTables, open, progress, readSums, settle, startPostgres } from './ledger-fixture.ts';

const DAY = 86_400_000;

describe('the address', () => {
  test('has host, user, password and database, and its place has no secret', () => {
    const text = 'postgres://us%40er:pa%2Fss@db.example:6432/my%20data?application_name=x';
    expect(readAddress(text)).toEqual({
      host: 'db.example',
      port: 6432,
      database: 'my data',
      user: 'us@er',
      password: 'pa/ss',
      application_name: 'x',
      ssl: false,
    });
    expect(describeAddress(text)).toBe('db.example:6432/my data');
    expect(readAddress('postgresql://[::1]/d')).toMatchObject({ host: '::1', port: 5432, database: 'd' });
  });

  test.each([
    ['', false],
    ['?sslmode=disable', false],
    ['?sslmode=require', { rejectUnauthorized: false }],
    ['?sslmode=verify-full', { rejectUnauthorized: true }],
    ['?sslmode=verify-ca', { rejectUnauthorized: true, checkServerIdentity: expect.any(Function) }],
  ])('is encrypted by its sslmode: %s', (query, ssl) => {
    expect(readAddress(`postgres://h/d${query}`).ssl).toEqual(ssl);
  });

  test.each([
    ['mysql://secret@h/d', 'must begin with postgres://'],
    ['postgres://user:secret@h', 'names no database'],
    ['postgres://user:secret@h/d?sslmode=prefer', 'has the sslmode "prefer"'],
    ['postgres://user:secret@h/d?options=-c', 'does not know the parameter "options"'],
    ['postgres://user:secret%@h/d', 'has a % that is not followed'],
    ['postgres://user:secret@h/d?sslmode=verify-full&sslrootcert=/missing', 'cannot be read'],
    ['postgres://user:secret@h:port/d', 'is not a URL'],
  ])('%s is refused without repeating it', (text, message) => {
    const read = () => readAddress(text);
    expect(read).toThrow(message);
    expect(read).not.toThrow('secret');
  });
});

test('a batch is split where operations of one exchange would change places', () => {
  const life = [
    open({ id: 'a', ts: 1 }),
    attempt({ exchange_id: 'a', number: 1, ts: 1, provider: 'p' }),
    open({ id: 'b', ts: 1 }),
    progress({ exchange_id: 'a', number: 1, input_tokens: 1 }),
    progress({ exchange_id: 'a', number: 1, input_tokens: 2 }),
    settle({ id: 'a', ts: 1, ending: 'answered' }),
    attempt({ exchange_id: 'a', number: 2, ts: 1, provider: 'p' }),
  ];
  const sizes = splitIntoGroups(life).map((group) => Object.values(group).map((values) => values.length));
  expect(sizes).toEqual([
    [2, 1, 1, 0, 0],
    [0, 0, 1, 0, 1],
    [0, 1, 0, 0, 0],
  ]);
});

describe('a PostgreSQL database', needs('postgres'), () => {
  const closers: (() => Promise<unknown>)[] = [];

  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  async function start(url: string, options: Partial<StoreOptions> = {}): Promise<Store> {
    const store = await openStore({ folder: null, url, leaseMs: 1000, ...options });
    closers.push(() => store.close());
    return store;
  }

  const query = async (url: string, text: string) => (await startPostgres()).query(url, text);

  async function expectSums(url: string): Promise<void> {
    const { stored, expected } = await readSums({ all: (text) => query(url, text) });
    expect(stored).toEqual(expected);
  }

  async function settleOne(store: Store, key = 'k'): Promise<string> {
    const { id, ts } = store.createId();
    await store.openExchange({ id, ts, key_id: key, tags: ['t'] });
    await store.openAttempt({ exchange_id: id, number: 1, ts, provider: 'p', model: 'm' });
    await store.settleExchange({ id, ts, ending: 'answered', input_tokens: 5, cost_micros: 3 });
    return id;
  }

  test('is created once, by several nodes at the same time', async () => {
    const url = await createAddress();
    const stores = await Promise.all(['a', 'b', 'c'].map((node) => start(url, { node })));
    await Promise.all(stores.map((store) => settleOne(store)));
    expect(await query(url, 'SELECT count(*) AS n, max(version) AS version FROM schema_versions')).toEqual([
      { n: MIGRATIONS.length, version: MIGRATIONS.length },
    ]);
    expect(await stores[0]?.usage({ by: 'key' })).toMatchObject([{ group: 'k', requests: 3, cost_micros: 9 }]);
    await expectSums(url);
  });

  test('has a partition for each of the next days, and rows are in that of their day', async () => {
    const url = await createAddress();
    const store = await start(url);
    await settleOne(store);
    const today = new Date().toISOString().slice(0, 10).replaceAll('-', '');
    const parts = await query(
      url,
      "SELECT relname AS name FROM pg_class WHERE relname ~ '^(exchanges|attempts)_[0-9]+$' AND relkind = 'r'",
    );
    expect(parts).toHaveLength(2 * 9);
    expect(await query(url, `SELECT count(*) AS n FROM exchanges_${today}`)).toEqual([{ n: 1 }]);
    expect(await query(url, `SELECT count(*) AS n FROM attempts_${today}`)).toEqual([{ n: 1 }]);
  });

  test('moves rows that came before their partition, and drops whole days beyond the retention', async () => {
    const url = await createAddress();
    let now = Date.now() - 20 * DAY;
    const store = await start(url, { wallClock: () => now, retentionDays: 10 });
    const old = await settleOne(store);
    const pool = createPool(url, 1);
    closers.push(() => pool.end());
    await new Partitions(pool, PATIENCE).create([Math.floor(now / DAY)]);
    const day = new Date(now).toISOString().slice(0, 10).replaceAll('-', '');
    expect(await query(url, `SELECT id FROM exchanges_${day}`)).toEqual([{ id: old }]);
    now = Date.now();
    const kept = await settleOne(store);
    expect([await store.prune(), await store.prune()]).toEqual([1, 0]);
    expect((await store.list()).exchanges.map(({ id }) => id)).toEqual([kept]);
    expect(await query(url, `SELECT to_regclass('exchanges_${day}') AS name`)).toEqual([{ name: null }]);
    expect(await store.usage({ by: 'key' })).toMatchObject([{ requests: 2 }]);
  });

  test('gets the partition of a day while rows of this day are written, and none is rejected', async () => {
    const url = await createAddress();
    const now = Date.now() - 20 * DAY;
    const store = await start(url, { wallClock: () => now, batchMs: 1, batchRows: 5, maxBatchRows: 5 });
    let isDone = false;
    const work = Promise.all(
      Array.from({ length: 10 }, async () => {
        let count = 0;
        for (; !isDone; count++) await settleOne(store);
        return count;
      }),
    );
    const pool = createPool(url, 1);
    closers.push(() => pool.end());
    await eventually(async () => (await query(url, 'SELECT count(*) AS n FROM exchanges'))[0]?.['n'] !== 0);
    await new Partitions(pool, PATIENCE).create([Math.floor(now / DAY)]);
    await settleOne(store);
    isDone = true;
    const total = (await work).reduce((sum, count) => sum + count, 1);
    expect(store.status()).toMatchObject({ rejected_rows: 0, queued_rows: 0 });
    const day = new Date(now).toISOString().slice(0, 10).replaceAll('-', '');
    expect(await query(url, `SELECT count(*) AS n FROM exchanges_${day} WHERE state = 'settled'`)).toEqual([{ n: total }]);
    expect(await query(url, 'SELECT count(*) AS n FROM attempts_default')).toEqual([{ n: 0 }]);
    await expectSums(url);
  });

  test('has rows of a dead node closed by another, once, and its roll-ups folded', async () => {
    const url = await createTables();
    const [first, second] = [await start(url, { node: 'a' }), await start(url, { node: 'b' })];
    await settleOne(first);
    const { id, ts } = first.createId();
    await first.openExchange({ id, ts, key_id: 'k' });
    await first.openAttempt({ exchange_id: id, number: 1, ts, provider: 'p', model: 'm' });
    await first.reportProgress({ exchange_id: id, number: 1, input_tokens: 7 });
    const running = second.createId();
    await second.openExchange({ ...running });
    // As if it was killed: nothing renews its heartbeat any more.
    await query(url, `ALTER TABLE boots ADD CONSTRAINT frozen CHECK (node_id <> 'a' OR ended_ts IS NOT NULL) NOT VALID`);
    await eventually(async () => (await second.get(id))?.exchange.state === 'crashed');
    expect(await second.get(id)).toMatchObject({
      exchange: { ending: 'crashed', provenance: 'uncertain', input_tokens: 7, possibly_billed: true },
      attempts: [{ state: 'crashed' }],
    });
    expect(second.status().crashed_exchanges).toBe(1);
    expect((await second.get(running.id))?.exchange.state).toBe('open');
    const shards = async () => (await query(url, 'SELECT DISTINCT shard FROM usage_rollups')).map(({ shard }) => shard);
    await eventually(async () => !(await shards()).includes(first.boot));
    expect(await second.usage({ by: 'key' })).toMatchObject([{ group: 'k', requests: 2 }]);
    await expectSums(url);
    await query(url, 'ALTER TABLE boots DROP CONSTRAINT frozen');
    // It was only slow: what it settles too late changes nothing, what it opens is its own.
    await first.settleExchange({ id, ts, ending: 'answered', input_tokens: 9 });
    await settleOne(first);
    await expectSums(url);
  });

  test('that was away is not taken for a death of the nodes', async () => {
    const url = await createTables();
    const server = await startPostgres();
    const stores = [await start(url, { node: 'a' }), await start(url, { node: 'b' })];
    const ids = await Promise.all(
      stores.map(async (store) => {
        const { id, ts } = store.createId();
        await store.openExchange({ id, ts });
        return id;
      }),
    );
    await server.halt();
    const waiting = stores.map((store) => settleOne(store));
    await eventually(() => stores.every((store) => store.status().last_error !== null));
    // Longer than a lease, each.
    await quietFor(1500);
    await server.resume();
    await Promise.all(waiting);
    await quietFor(1500);
    expect(await query(url, "SELECT id FROM exchanges WHERE state = 'open' ORDER BY id")).toEqual(
      ids.sort().map((id) => ({ id })),
    );
    expect(stores.map((store) => store.status().rejected_rows)).toEqual([0, 0]);
    await expectSums(url);
  });

  test('that ends during commits loses nothing and counts nothing twice', async () => {
    const url = await createTables();
    const server = await startPostgres();
    const store = await start(url, { batchMs: 1, batchRows: 7, maxBatchRows: 7 });
    let isDone = false;
    let written = 0;
    const work = Promise.all(
      Array.from({ length: 10 }, async () => {
        const ids: string[] = [];
        for (; !isDone; written++) ids.push(await settleOne(store));
        return ids;
      }),
    );
    // Connections that are reading end, too.
    const reading = Promise.all(
      Array.from({ length: 3 }, async () => {
        while (!isDone) await store.usage({ by: 'key' }).catch(() => undefined);
      }),
    );
    for (let round = 0; round < 3; round++) {
      const before = written;
      await eventually(() => written >= before + 50);
      await server.halt('SIGQUIT');
      await server.resume();
    }
    isDone = true;
    await reading;
    const ids = (await work).flat();
    // A pooler may let a batch wait until the server is back.
    if (!process.env['SLUICE_POOLER']) expect(store.status().failed_batches).toBeGreaterThan(0);
    const rows = await query(url, "SELECT id FROM exchanges WHERE state = 'settled'");
    expect(rows.map(({ id }) => id).sort()).toEqual(ids.sort());
    await expectSums(url);
  });

  test('that does not respond is given up in time, and the queue is bounded', async () => {
    const url = await createTables();
    const store = await start(url, { patience: { statementMs: 300, lockMs: 300 }, maxQueuedRows: 5, closeMs: 100 });
    const pool = createPool(url, 1);
    closers.push(() => pool.end());
    const client = await pool.connect();
    await client.query('BEGIN; LOCK TABLE exchanges IN ACCESS EXCLUSIVE MODE');
    const written = Promise.allSettled(Array.from({ length: 6 }, () => store.openExchange({ ...store.createId() })));
    await eventually(() => store.status().failed_batches > 1);
    expect(store.status()).toMatchObject({
      accepting: false,
      queued_rows: 5,
      last_error: expect.stringContaining('PostgreSQL:'),
    });
    await client.query('ROLLBACK');
    client.release();
    expect((await written).map(({ status }) => status)).toEqual([...Array(5).fill('fulfilled'), 'rejected']);
  });

  test('that cannot be reached is refused at the start, without the password', async () => {
    const opening = openStore({ folder: null, url: 'postgres://user:secret-word@127.0.0.1:1/d' });
    await expect(opening).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/^PostgreSQL: .*ECONNREFUSED/),
    });
    await expect(opening).rejects.not.toMatchObject({ message: expect.stringContaining('secret') });
  });
});
