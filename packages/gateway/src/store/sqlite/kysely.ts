/** Kysely on our connections. Loaded only where it is needed: loading it takes 200 ms. */
import { Kysely, SqliteDialect, type SqliteStatement } from 'kysely';
import type { Tables } from '../schema.ts';
import type { Database, Guard } from './database.ts';

/** A connection for Kysely, whose SQLite dialect is written for better-sqlite3. */
export function createKysely(db: Database, guard: Guard): Kysely<Tables> {
  const prepare = (text: string): SqliteStatement => {
    const statement = guard(() => db.prepare(text));
    return {
      reader: guard(() => statement.columns()).length > 0,
      all: (values) => guard(() => statement.all(...values)),
      run: (values) => guard(() => statement.run(...values)),
      iterate: (values) => guard(() => statement.all(...values)).values(),
    };
  };
  return new Kysely<Tables>({ dialect: new SqliteDialect({ database: { close: () => guard(() => db.close()), prepare } }) });
}
