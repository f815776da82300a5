import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { eventually } from '../../../../test/wait.ts';
import { KeyBook } from '../../src/keys/key-book.ts';
import { createKeyText } from '../../src/keys/key-text.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { createKysely, createPool } from '../../src/store/postgres/connection.ts';
import { CONFIG_CHANNEL } from '../../src/store/postgres/notices.ts';
import { migratePostgres } from '../../src/store/postgres/store.ts';
import { MIGRATIONS, type Migration } from '../../src/store/schema.ts';
import { killProcesses, startProcess } from '../admission/process.ts';
import { createAddress, createFolder, createTables, startPostgres } from './ledger-fixture.ts';
import { assertBuilt } from './processes.ts';

beforeAll(assertBuilt);

const closers: (() => unknown)[] = [];

afterEach(async () => {
  await killProcesses();
  for (const close of closers.splice(0).reverse()) await close();
});

/** What a next release may add: tables, and columns that have a default or may be empty. */
const NEXT: Migration = {
  name: 'next',
  up: async (db) => {
    await sql`create table regions (id text primary key not null)`.execute(db);
    await sql`alter table exchanges add column region text`.execute(db);
    await sql`alter table attempts add column priority integer not null default 3`.execute(db);
    await sql`alter table usage_rollups add column retries bigint not null default 0`.execute(db);
    await sql`alter table client_keys add column owner text`.execute(db);
  },
};

describe('nodes of two releases', needs('postgres'), () => {
  test('this release writes and reads while the next one migrates, and starts on its database', async () => {
    const url = await createAddress();
    const running = await openStore({ folder: null, url });
    closers.push(() => running.close());
    const record = async (store: Store): Promise<void> => {
      const { id, ts } = store.createId();
      const usage = { input_tokens: 100, output_tokens: 50, cost_micros: 9, ending: 'answered', http_status: 200 } as const;
      await store.openExchange({ id, ts, key_id: 'k', model_requested: 'm' });
      await store.openAttempt({ exchange_id: id, number: 1, ts, provider: 'p', model: 'm' });
      await store.settleAttempt({ exchange_id: id, number: 1, ...usage });
      await store.settleExchange({ id, ts, ...usage });
    };
    await record(running);
    const during = record(running);
    const pool = createPool(url, 1);
    await migratePostgres(createKysely(pool), [...MIGRATIONS, NEXT]);
    await pool.end();
    await during;
    await record(running);
    const started = await openStore({ folder: null, url });
    closers.push(() => started.close());
    await record(started);
    expect((await started.list()).exchanges.map(({ state, cost_micros }) => [state, cost_micros])).toEqual(
      Array.from({ length: 4 }, () => ['settled', 9]),
    );
    expect(await running.spending({ by: 'key', of: 'k', since: 0 })).toBe(36);
    const [{ version } = {}] = await (await startPostgres()).query(url, 'SELECT max(version) AS version FROM schema_versions');
    expect(version).toBe(MIGRATIONS.length + 1);
  });
});

describe('keys of several nodes', needs('postgres'), () => {
  async function startNode(url: string, pepperFile: string, keyPollMs = 500): Promise<{ store: Store; book: KeyBook }> {
    const store = await openStore({ folder: null, url, keyPollMs });
    closers.push(() => store.close());
    const book = await KeyBook.open({ store, pepperFile, requiresPepper: true });
    closers.push(() => book.close());
    return { store, book };
  }

  /** The connections that have begun to listen to all channels. */
  const LISTENING = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN ${CONFIG_CHANNEL}'`;

  const isAdmitted = (book: KeyBook, text: string): boolean => book.check(text)?.admitted ?? false;

  /** Without notifications, as behind a pooler, changes are found by asking. */
  test.each([...(process.env['SLUICE_POOLER'] ? [] : [['by notification', 600_000] as const]), ['by asking', 20] as const])(
    'a change reaches the other node %s',
    async (how, keyPollMs) => {
      const [url, pepper] = [await createTables(), join(createFolder(), 'pepper')];
      const { book: one } = await startNode(url, pepper, keyPollMs);
      const { book: two } = await startNode(url, pepper, keyPollMs);
      const server = await startPostgres();
      // Nodes listen some time after their start.
      if (how === 'by notification') await eventually(async () => (await server.query(url, LISTENING)).length === 2);
      else await server.query(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'");
      const ended: string[] = [];
      two.listen(({ record, endsRequests }) => endsRequests && ended.push(record.name));
      const { text } = await one.create('alice', { tags: ['a'] }, 'cli');
      await eventually(() => isAdmitted(two, text));
      await one.edit('alice', { name: 'bob' }, 'cli');
      await eventually(() => two.find('bob') !== undefined);
      const next = await one.rotate('bob', 0, 'cli');
      await eventually(() => isAdmitted(two, next.text) && !isAdmitted(two, text));
      await one.revoke('bob', true, 'cli');
      await eventually(() => two.check(next.text)?.admitted === false);
      expect(ended).toContain('bob');
      expect((await one.create('bob', {}, 'cli')).record.name).toBe('bob');
    },
  );

  test('a key that one node has revoked is not restored by another that changes it', async () => {
    const [url, pepper] = [await createTables(), join(createFolder(), 'pepper')];
    const { book: one } = await startNode(url, pepper);
    const { book: two, store } = await startNode(url, pepper);
    const { record, text } = await one.create('alice', {}, 'cli');
    await one.revoke('alice', false, 'cli');
    await expect(two.edit(record.id, { tags: ['a'] }, 'cli')).rejects.toMatchObject({ code: 'revoked' });
    // As a node writes it that does not know of the revocation yet.
    await store.saveKey(record, { ...store.createId(), actor: 'cli', action: 'key.edit', object: record.id, details: {} }, false);
    expect((await store.listKeys())[0]?.revoked_ts).not.toBeNull();
    expect(isAdmitted(two, text)).toBe(false);
  });

  test('a node with another pepper, or without one, is refused; after all keys are revoked the only node may change it', async () => {
    const url = await createTables();
    const [first, second] = [join(createFolder(), 'pepper'), join(createFolder(), 'pepper')];
    const node = await startNode(url, first);
    await expect(startNode(url, second)).rejects.toThrow(
      `the pepper file "${second}" is missing, and other nodes use this database`,
    );
    writeFileSync(second, `${'ab'.repeat(32)}\n`);
    await expect(startNode(url, second)).rejects.toThrow(`the pepper file "${second}" is not the one of the other nodes`);
    await node.book.close();
    for (const close of closers.splice(0).reverse()) await close();
    await startNode(url, second);
  });

  test('while the database is away, known keys are admitted for a minute, and unknown ones get 503', async () => {
    const [url, pepper] = [await createTables(), join(createFolder(), 'pepper')];
    const { store } = await startNode(url, pepper);
    let ageMs = 0;
    const shared = { ...store.shared, watch: () => undefined, sync: async () => undefined, readPepper: async () => undefined };
    const aging = {
      ...shared,
      claimPepper: async (text: string) => text,
      get ageMs() {
        return ageMs;
      },
    };
    const kept = Object.assign(Object.create(null), {
      listKeys: () => store.listKeys(),
      saveKey: (...args: Parameters<Store['saveKey']>) => store.saveKey(...args),
      touchKeys: async () => undefined,
      createId: () => store.createId(),
      shared: aging,
    });
    const book = await KeyBook.open({ store: kept, pepperFile: pepper, requiresPepper: true });
    closers.push(() => book.close());
    const { text } = await book.create('alice', {}, 'cli');
    const { text: unknown } = createKeyText();
    const tell = (key: string): string => {
      const admission = book.check(key);
      return admission === undefined ? 'unknown' : admission.admitted ? 'admitted' : admission.isTemporary ? '503' : '401';
    };
    const seen = [0, 2000, 10_000, 59_000, 61_000].map((age) => {
      ageMs = age;
      return [tell(text), tell(unknown)];
    });
    expect(seen).toEqual([
      ['admitted', 'unknown'],
      ['admitted', 'unknown'],
      ['admitted', '503'],
      ['admitted', '503'],
      ['503', '503'],
    ]);
  });
});

describe('two gateways on one database', needs('postgres'), () => {
  const ADMIN_KEY = 'admin-key-0123456789';

  function serve(config: object): Promise<{ url: string }> {
    const file = join(createFolder(), 'sluice.json');
    writeFileSync(file, JSON.stringify({ log: { level: 'warn' }, ...config }));
    return startProcess(undefined, file, { env: { SLUICE_ADMIN_KEY: ADMIN_KEY } });
  }

  const callAdmin = async (url: string, method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' };
    const response = await fetch(`${url}/admin/v1/${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    expect(response.status).toBeLessThan(300);
    return response.json();
  };

  const ask = async (url: string, key: string): Promise<number> =>
    (
      await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'demo/hello', messages: [{ role: 'user', content: 'hi' }] }),
      })
    ).status;

  test('share keys and usage, and a key that is revoked on one is refused by the other', async () => {
    const config = { store: await createAddress(), auth: { pepper_file: join(createFolder(), 'pepper') } };
    const one = await serve(config);
    const two = await serve(config);
    const { secret, key } = await callAdmin(one.url, 'POST', 'keys', { name: 'alice' });
    // Before it knows a key, it admits everybody.
    await eventually(async () => (await ask(two.url, 'unknown')) === 401);
    for (const { url } of [one, two]) expect(await ask(url, secret)).toBe(200);
    const usage = await callAdmin(two.url, 'GET', 'usage?by=key');
    expect(JSON.stringify(usage)).toContain('"requests":2');
    await callAdmin(one.url, 'DELETE', `keys/${key.id}`);
    await eventually(async () => (await ask(two.url, secret)) === 401);
  });

  test('with different peppers the second does not start, and the error names the remedy', async () => {
    const store = await createAddress();
    await serve({ store, auth: { pepper_file: join(createFolder(), 'pepper') } });
    const other = join(createFolder(), 'pepper');
    await expect(serve({ store, auth: { pepper_file: other } })).rejects.toThrow('copy the file from a node that works');
    await expect(serve({ store })).rejects.toThrow('every node needs the same pepper');
  });
});
