import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { SCHEMA_VERSION } from '../../src/store/rows.ts';
import { MIGRATIONS, type Migration, migrate } from '../../src/store/schema.ts';
import { openWriter, readVersion, UNGUARDED } from '../../src/store/sqlite/database.ts';
import { createKysely } from '../../src/store/sqlite/kysely.ts';
import { SqliteLedger } from '../../src/store/sqlite/ledger.ts';
import { createFolder, open, readRows, settle } from './ledger-fixture.ts';

/** What a next release may add. */
const NEXT: Migration = {
  name: 'keys',
  up: async (db) => {
    await sql`create table virtual_keys (id text primary key not null, name text not null)`.execute(db);
    await sql`alter table exchanges add column region text`.execute(db);
    await sql`alter table exchanges add column priority integer not null default 3`.execute(db);
  },
};

const openVersion = async (file: string, migrations: readonly Migration[], boot: string) => {
  const db = openWriter(file);
  await migrate(createKysely(db, UNGUARDED), 1, migrations);
  const ledger = new SqliteLedger(db, { boot, node: 'n' });
  return { db, ledger };
};

test('the version that rows need is the newest', () => {
  expect(SCHEMA_VERSION).toBe(MIGRATIONS.length);
});

test('a database is migrated forward with its rows, and each step is recorded once', async () => {
  const file = `${createFolder()}/sluice.db`;
  const first = openWriter(file);
  await migrate(createKysely(first, UNGUARDED), 1, MIGRATIONS.slice(0, 1));
  first.exec("INSERT INTO exchanges (id, ts, boot_id, node_id) VALUES ('1', 1, 'a', 'n')");
  first.close();
  for (const boot of ['b', 'c']) {
    const next = await openVersion(file, [...MIGRATIONS, NEXT], boot);
    next.ledger.recover(0);
    expect(readRows(next.db, 'SELECT * FROM schema_versions ORDER BY version')).toMatchObject(
      [...MIGRATIONS, NEXT].map(({ name }, i) => ({ version: i + 1, name })),
    );
    expect(readRows(next.db, 'SELECT * FROM exchanges ORDER BY id')).toMatchObject([
      { id: '1', state: 'crashed', cache_break: null, priority: 3 },
    ]);
    next.db.close();
  }
});

test('rows and roll-ups of version 1 count no assumed cost', async () => {
  const file = `${createFolder()}/sluice.db`;
  const db = openWriter(file);
  await migrate(createKysely(db, UNGUARDED), 1, MIGRATIONS.slice(0, 1));
  db.exec("INSERT INTO exchanges (id, ts, boot_id, node_id) VALUES ('1', 1, 'a', 'n')");
  await migrate(createKysely(db, UNGUARDED), 1);
  expect(readRows(db, 'SELECT * FROM exchanges')).toMatchObject([{ id: '1', assumed_micros: 0 }]);
  db.close();
});

test('the previous release reads and writes a migrated database, also while the next one uses it', async () => {
  const file = `${createFolder()}/sluice.db`;
  const next = await openVersion(file, [...MIGRATIONS, NEXT], 'next');
  const previous = await openVersion(file, MIGRATIONS, 'previous');
  expect(readVersion(previous.db)).toBe(MIGRATIONS.length + 1);
  next.ledger.write([open({ id: '1', ts: 1 })]);
  previous.ledger.write([open({ id: '2', ts: 1 }), settle({ id: '1', ts: 2, ending: 'answered' })]);
  expect(readRows(next.db, 'SELECT * FROM exchanges ORDER BY id')).toMatchObject([
    { id: '1', state: 'settled' },
    { id: '2', state: 'open' },
  ]);
  next.db.close();
  previous.db.close();
});

test('a migration that fails leaves nothing behind', async () => {
  const file = `${createFolder()}/sluice.db`;
  const broken: Migration = {
    name: 'broken',
    up: async (db) => {
      await sql`create table half (id text)`.execute(db);
      throw new Error('stop');
    },
  };
  const db = openWriter(file);
  await expect(migrate(createKysely(db, UNGUARDED), 1, [...MIGRATIONS, broken])).rejects.toThrow('stop');
  expect(readVersion(db)).toBe(MIGRATIONS.length);
  expect(db.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'half'").get().n).toBe(0);
  db.close();
});

test('a file of another application is refused', () => {
  const file = `${createFolder()}/other.db`;
  const other = openWriter(file);
  other.exec('PRAGMA application_id = 1; CREATE TABLE t (a)');
  other.close();
  expect(() => openWriter(file)).toThrow(`"${file}" is not a database of Sluice`);
});
