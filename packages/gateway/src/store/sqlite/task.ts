/**
 * A process for long work on a database: `check FILE`, `copy FILE TARGET`. A process, because unlike a worker thread it can be killed
 * inside a native call. Prints one JSON value: the problems found.
 */
import { closeSync, openSync } from 'node:fs';
import { findDamage, openReader } from './database.ts';

const [, , task, file = '', target = ''] = process.argv;

const db = openReader(file);
if (task === 'copy') {
  // Created first, for its mode.
  closeSync(openSync(target, 'wx', 0o600));
  db.prepare('VACUUM INTO ?').run(target);
}
process.stdout.write(JSON.stringify(task === 'check' ? findDamage(db, 'quick_check') : []));
db.close();
