/**
 * A process that measures: `node child.js '{"ids":[…],…}'`. Prints JSON values, one a line: `{ trying }` and `{ tried }` for every subject, and
 * `{ id, … }` for every row. With `other`, the folder of another build, it compares the two.
 */
import { writeSync } from 'node:fs';
import { loadSluice } from './load.js';

const { ids, other, process: index = 0, except = {}, slices, sliceMs, warmMs } = JSON.parse(process.argv[2]);
/** At once, because the next run may be endless. */
const say = (value) => writeSync(1, `${JSON.stringify(value)}\n`);

if (other === undefined) await measureRows();
else await compareBuilds();
process.exit(0);

async function measureRows() {
  const { measureRow, FAMILY_WARM_MS } = await import('./measure.js');
  const { findRow } = await import('./rows.js');
  for (const [i, row] of ids.map(findRow).entries()) {
    const options = { slices, sliceMs, warmMs: i === 0 ? (row.warmMs ?? warmMs) : FAMILY_WARM_MS, except: except[row.id], say };
    say({ id: row.id, ...(await measureRow(row, options)) });
  }
}

/** Processes take turns in which build is loaded first; the rows import Sluice, too, so they come last. */
async function compareBuilds() {
  const builds = {};
  for (const folder of index % 2 === 0 ? [undefined, other] : [other, undefined])
    builds[folder === undefined ? 'after' : 'before'] = await loadSluice(folder);
  const { measurePair } = await import('./measure.js');
  const { findRow } = await import('./rows.js');
  const rows = ids.map(findRow);
  for (const row of index % 4 < 2 ? rows : rows.toReversed())
    say({ id: row.id, ...(await measurePair(row, builds, { slices, sliceMs, warmMs, isReversed: index % 2 === 1 })) });
}
