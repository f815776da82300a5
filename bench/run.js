/**
 * The library beside hand-written code, `JSON.parse` and `JSON.stringify`, and other libraries: `npm run bench`. bench/README.md has the method.
 *
 * `--quick`: short, to see that everything works. `--only TEXT`: rows whose id contains it. `--differ A B`: how far the medians of two runs differ.
 * A whole run is kept in bench/results; `npm run bench:report` writes the page and the charts from it.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { CORES, startHelper } from './gateway/processes.js';
import { measureFamily } from './library/processes.js';
import { ROWS } from './library/rows.js';
import { prepareSources } from './library/sources.js';
import { measureBundles, measureImports } from './library/start.js';
import { describeDifferences } from './method/differ.js';
import { NoiseMeter } from './method/machine.js';
import { describeRow, fail, finishRun, say } from './method/program.js';
import { buildRow, readRun } from './method/results.js';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean' }, only: { type: 'string', default: '' }, differ: { type: 'boolean' } },
});
const { imports, ...effort } = options.quick
  ? { processes: 1, slices: 3, sliceMs: 10, warmMs: 60, imports: 2 }
  : { processes: 3, slices: 7, sliceMs: 25, warmMs: 500, imports: 15 };

if (options.differ) describeDiffering();
else await measure();
process.exit(process.exitCode ?? 0);

function describeDiffering() {
  if (positionals.length !== 2) fail('--differ: give the files of two runs; `npm run bench` prints where it keeps them');
  console.log(describeDifferences(...positionals.map((file) => readRun('library', file))));
}

/** Rows of one family run the same code, one after the other in one process. */
function listFamilies() {
  const families = new Map();
  for (const row of ROWS.filter(({ id }) => id.includes(options.only))) {
    const family = row.family ?? row.id;
    families.set(family, [...(families.get(family) ?? []), row]);
  }
  return [...families].map(([name, rows]) => ({ name, measure: () => measureRows(rows) }));
}

async function measureRows(rows) {
  const found = await measureFamily(rows, effort);
  return found.map(({ row, found: results }) => {
    const { id, group, title, unit, reference, goals } = row;
    return buildRow({ id, group, title, unit, kind: 'cpu', reference, goals, found: results });
  });
}

async function measure() {
  const others = [
    { name: 'import', measure: () => measureImports(imports) },
    { name: 'size', measure: measureBundles },
  ].filter(({ name }) => name.includes(options.only));
  const parts = [...listFamilies(), ...others];
  if (parts.length === 0) fail(`--only: no row has "${options.only}" in its id; known: ${ROWS.map(({ id }) => id).join(', ')}`);
  prepareSources();
  const readSpeed = startHelper('../method/speed.js', CORES.all);
  const noise = new NoiseMeter();
  const rows = [];
  for (const part of parts) {
    say(part.name);
    noise.addSpeed(await readSpeed('speed'));
    const found = await part.measure();
    for (const row of found) console.log(describeRow(row));
    rows.push(...found);
  }
  finishRun({ kind: 'library', rows, noise: noise.read(), isWhole: !options.quick && !options.only, versions: listVersions() });
}

/** The libraries beside Sluice, as package.json pins them. */
function listVersions() {
  const { devDependencies } = JSON.parse(readFileSync(new URL('./package.json', import.meta.url), 'utf8'));
  return Object.fromEntries(
    Object.entries(devDependencies).filter(([name]) => !name.startsWith('@sluice/') && name !== 'esbuild'),
  );
}
