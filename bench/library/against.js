/** The library of this build beside that of another commit: both in one process, row by row, in several processes. */
import { lookUntilSure } from '../method/compare.js';
import { comparePaired } from '../method/statistics.js';
import { comparePair } from './processes.js';
import { ROWS } from './rows.js';
import { prepareSources } from './sources.js';

/** An even number: processes take turns in which build is loaded and measured first. */
const PROCESSES = 8;
const OPTIONS = { slices: 7, sliceMs: 15, warmMs: 150 };

/** Rows with a verdict each; `folder`: a checkout that is built. */
export async function compareLibrary(folder, { say }) {
  prepareSources();
  return lookUntilSure(
    ROWS.filter(({ isCompared }) => isCompared),
    async (rows, factor) => {
      const runs = [];
      for (let process = 0; process < PROCESSES * factor; process++) {
        say(`library, process ${process + 1} of ${PROCESSES * factor}, ${rows.length} rows`);
        runs.push(await comparePair(rows, { other: folder, process, ...OPTIONS }));
      }
      return rows.map(({ id }) => judgeRow(runs.map((found, process) => ({ process, ...found.get(id) }))));
    },
  );
}

function judgeRow(results) {
  const note = results.find((result) => result.note !== undefined)?.note;
  if (note !== undefined) return { note };
  const samples = (side) => results.map(({ process, [side]: value }) => ({ slice: process, process, value }));
  return { before: samples('before'), after: samples('after'), ...comparePaired(results.map(({ ratio }) => ratio)) };
}
