/** A data folder as texts: its database as SQL, which can be read and compared, and its other files as they are. */
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';

const DATABASE = 'sluice.db';
const SQL = 'sluice.sql';

/** Files that a gateway writes anew: its lock, and space in reserve. */
const LEFT_OUT = /^(sluice\.db.*|owner\..*|ballast)$/;

/** Writes a data folder to a folder of a fixture. */
export function packFolder(data, fixture) {
  mkdirSync(join(fixture, 'data'), { recursive: true });
  const db = openDatabase(data);
  writeFileSync(join(fixture, SQL), dumpSql(db));
  db.close();
  for (const name of readdirSync(data).filter((one) => !LEFT_OUT.test(one)))
    cpSync(join(data, name), join(fixture, 'data', name), { recursive: true });
}

/** Makes a data folder from a fixture. */
export function unpackFolder(fixture, data) {
  mkdirSync(data, { recursive: true, mode: 0o700 });
  if (existsSync(join(fixture, 'data'))) cpSync(join(fixture, 'data'), data, { recursive: true });
  unpackDatabase(fixture, join(data, DATABASE));
}

/** Makes the database alone, which is what a backup is. */
export function unpackDatabase(fixture, file) {
  const db = new DatabaseSync(file);
  db.exec(readFileSync(join(fixture, SQL), 'utf8'));
  db.close();
}

/** Copies what a backup does not contain. */
export const copyPepper = (fixture, data) => copyFileSync(join(fixture, 'data/pepper'), join(data, 'pepper'));

const openDatabase = (data) => new DatabaseSync(join(data, DATABASE), { readOnly: true });

function dumpSql(db) {
  const pragma = (name) => `PRAGMA ${name} = ${db.prepare(`PRAGMA ${name}`).get()[name]};`;
  const objects = db
    .prepare("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type = 'index', name")
    .all();
  const tables = objects.filter(({ type }) => type === 'table');
  const lines = [
    ...objects.map(({ sql }) => `${sql.replace(/\s+/g, ' ')};`),
    ...tables.flatMap(({ name }) => dumpRows(db, name)),
  ];
  return [pragma('application_id'), pragma('user_version'), 'BEGIN;', ...lines, 'COMMIT;', 'PRAGMA journal_mode = WAL;', ''].join(
    '\n',
  );
}

function dumpRows(db, table) {
  const rows = db
    .prepare(`SELECT * FROM "${table}"`)
    .all()
    .map((row) => `(${Object.values(row).map(formatValue).join(',')})`);
  return rows.length === 0 ? [] : [`INSERT INTO "${table}" VALUES`, `${rows.toSorted().join(',\n')};`];
}

/** Null, a number or a text; the store has no other values. */
const formatValue = (value) => (typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value));

// ---- what the folder contains, read without the code that is tested

const SUMS = ['requests', 'errors', 'attempts', 'input_tokens', 'output_tokens', 'cost_micros'];

/** Sums over the rows of exchanges, by model, key and day. */
export function readSums(data) {
  const db = openDatabase(data);
  const sum = (group) =>
    db
      .prepare(`
        SELECT ${group} AS "group", count(*) AS requests, sum(http_status >= 400) AS errors, sum(attempts) AS attempts,
          sum(coalesce(input_tokens, 0)) AS input_tokens, sum(coalesce(output_tokens, 0)) AS output_tokens,
          sum(coalesce(cost_micros, 0)) AS cost_micros
        FROM exchanges GROUP BY 1 ORDER BY 1`)
      .all();
  const sums = {
    model: sum("coalesce(model, '')"),
    key: sum("coalesce(key_name, '')"),
    day: sum("date(ts / 1000, 'unixepoch')"),
  };
  const { schema } = db.prepare('SELECT max(version) AS schema FROM schema_versions').get();
  db.close();
  return { schema, sums };
}

/**
 * The same columns of a line of `sluice usage --json`.
 *
 * @returns {any}
 */
export function pickSums(line) {
  const { by, group, key_name, bucket_at, ...sums } = line;
  const label = { model: group, key: key_name ?? group, day: bucket_at?.slice(0, 10) };
  return { group: label[by] ?? '', ...Object.fromEntries(SUMS.map((name) => [name, sums[name]])) };
}
