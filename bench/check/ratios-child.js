/**
 * One row of bench/library in this process, Sluice and the reference only: prints `{ ratio, share }`, the median of Sluice over the reference within
 * slices, and the share of a core that the process had. Arguments: the row, and `{ slices, sliceMs, warmMs }` as JSON.
 */
import { loadSluice } from '../library/load.js';
import { measureSlice, prepareSubject, readCpu, warmUp } from '../library/measure.js';
import { findRow } from '../library/rows.js';
import { alternate } from '../method/slices.js';
import { summarizeRatio } from '../method/statistics.js';

/** The reference runs little code of its own, which is compiled soon. */
const REFERENCE_WARM_MS = 300;

const [, , id, options] = process.argv;
const { slices, sliceMs, warmMs } = JSON.parse(options);
const row = findRow(id);
const sluice = await loadSluice();
const input = row.buildInput();

const [ours, reference] = [await prepare(({ isSluice }) => isSluice), await prepare(({ name }) => name === row.reference)];
await warmUp(reference, REFERENCE_WARM_MS, sliceMs);
await warmUp(ours, warmMs, sliceMs);
const begun = { us: performance.now() * 1000, cpu: readCpu() };
const samples = await alternate([reference, ours], slices, async (subject) => ({ value: await measureSlice(subject) }));
const share = (readCpu() - begun.cpu) / (performance.now() * 1000 - begun.us);
for (const subject of [reference, ours]) expectRight(subject, row.check(subject.last, input, subject));
console.log(JSON.stringify({ ratio: summarizeRatio(samples[1], samples[0]).median, share }));

async function prepare(isWanted) {
  const subject = await prepareSubject(row.subjects.find(isWanted), { row, input, sluice });
  expectRight(subject, subject.isRight);
  // On a slow machine, the first run of Sluice takes longer than those of libraries that are quadratic, which are not warmed up.
  return { ...subject, isSlow: false };
}

function expectRight({ name }, isRight) {
  if (!isRight) throw new Error(`${id}: ${name} has a wrong result`);
}
