/**
 * A process for long work on a database: `check FILE`, `copy FILE TARGET`. A process, because unlike a worker thread it can be killed
 * inside a native call. Prints one JSON value: the problems found.
 */
import { findDamage, openReader } from './database.ts';

const [, , task, file = '', target = ''] = process.argv;

const db = openReader(file);
if (task === 'copy') db.prepare('VACUUM INTO ?').run(target);
process.stdout.write(JSON.stringify(task === 'check' ? findDamage(db, 'quick_check') : []));
db.close();
