/**
 * The guard of CI: `npm run bench:check`. Compares what a stream, a request and a start cost with the values in limits.json. Counts do not depend on
 * the clock, and ratios are of CPU time, so that it may run on a busy machine.
 *
 * `--only TEXT`: only checks whose name contains the text. `--write`: measures several times, and writes limits.json.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { closeAll } from './gateway.js';
import { recordLimits, runChecks } from './guard.js';
import { buildParts, listChecks, selectParts } from './parts.js';
import { startUpstream } from './upstream.js';

const FILE = fileURLToPath(new URL('./limits.json', import.meta.url));
const WRONG_USAGE = 2;

// Processes of the check end with it, also after an error and a signal.
process.on('exit', closeAll);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(128 + constants.signals[signal]));

const options = readOptions();
const upstream = await startUpstream();
try {
  const all = buildParts(upstream);
  const parts = selectParts(all, options.only);
  if (parts.length === 0) {
    const names = listChecks(all).map(({ name }) => `  ${name}`);
    console.error(`--only: no check has ${JSON.stringify(options.only)} in its name; known:\n${names.join('\n')}`);
    process.exitCode = WRONG_USAGE;
  } else if (options.write) await write(parts, all);
  else await check(parts);
} finally {
  upstream.stop();
}

function readOptions() {
  try {
    return parseArgs({ options: { only: { type: 'string' }, write: { type: 'boolean' } } }).values;
  } catch (error) {
    console.error(`${error.message}\nusage: npm run bench:check -- [--only TEXT] [--write]`);
    return process.exit(WRONG_USAGE);
  }
}

async function check(parts) {
  const required = (process.env.SLUICE_REQUIRE ?? '').split(',');
  const limits = JSON.parse(readFileSync(FILE, 'utf8'));
  const isWithin = await runChecks({ parts, limits, node: process.version, required, print: console.log });
  process.exitCode = isWithin ? 0 : 1;
}

async function write(parts, all) {
  await recordLimits({
    parts,
    names: listChecks(all).map(({ name }) => name),
    limits: JSON.parse(readFileSync(FILE, 'utf8')),
    node: process.version,
    save: (limits) => writeFileSync(FILE, `${JSON.stringify(limits, undefined, 2)}\n`),
    print: console.log,
  });
  console.log(`wrote ${FILE}`);
}
