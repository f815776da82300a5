/**
 * What the repair costs beside the bare SDK, and the linear concat beside that of LangChain: `npm run bench:fetch`. Writes the table of
 * docs/fetch.md. `--slices N` and `--processes N` change how much is measured; `--only TEXT` measures the rows whose ids contain it and writes
 * nothing.
 *
 * Both sides of a ratio are alive and take turns in short slices. Each has a process of its own: in one process, the repair changes the state of the
 * garbage collector, and the bare LangChain takes two thirds of the time that it takes alone.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ROWS } from './fetch/rows.js';
import { startSide } from './fetch/side.js';
import { alternate } from './method/slices.js';
import { formatNumber, summarize, summarizeRatio } from './method/statistics.js';

const { values: options } = parseArgs({
  options: {
    slices: { type: 'string', default: '9' },
    processes: { type: 'string', default: '3' },
    only: { type: 'string' },
  },
});
const [slices, processes] = ['slices', 'processes'].map(readCount);
const PAGE = new URL('../docs/fetch.md', import.meta.url);
const BEGIN = '<!-- cost: written by npm run bench:fetch -->';
const END = '<!-- /cost -->';
/** An SDK and the repair together need longer to warm up than either. */
const EFFORT = { sliceMs: 100, warmMs: 2000 };

const rows = ROWS.filter(({ id }) => options.only === undefined || id.includes(options.only));
if (rows.length === 0) fail(`--only: no row has "${options.only}" in its name; known: ${ROWS.map(({ id }) => id).join(', ')}`);
const lines = [];
for (const row of rows) {
  lines.push(describeRow(row, await measureRow(row)));
  console.log(lines.at(-1));
}
if (options.only === undefined) writePage(lines);

function readCount(name) {
  const count = Number(options[name]);
  if (!Number.isInteger(count) || count < 1) fail(`--${name}: must be a positive integer`);
  return count;
}

/** The samples of both sides from all processes, in nanoseconds a chunk. */
async function measureRow(row) {
  const found = row.subjects.map(() => []);
  for (let process = 0; process < processes; process++) {
    const sides = [];
    for (const subject of row.subjects) sides.push(await startSide(row, subject, EFFORT));
    const samples = await alternate(sides, slices, async (side) => ({ value: await side.measure() }));
    for (const side of sides) await side.end();
    samples.forEach((own, i) => {
      found[i].push(...own.map(({ slice, value }) => ({ slice: process * slices + slice, process, value })));
    });
  }
  return found;
}

function describeRow({ client, stream }, [without, repaired]) {
  const cells = [client, stream, formatCost(without), formatCost(repaired), formatRatio(summarizeRatio(repaired, without))];
  return `| ${cells.join(' | ')} |`;
}

function formatCost(samples) {
  return `${formatNumber(summarize(samples.map(({ value }) => value)).median / 1000)} µs`;
}

function formatRatio({ median, p10, p90 }) {
  return `${median.toFixed(2)} (${p10.toFixed(2)}–${p90.toFixed(2)})`;
}

function writePage(rowLines) {
  const text = readFileSync(PAGE, 'utf8');
  const [start, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (start < 0 || end < start) throw new Error(`docs/fetch.md: the markers ${BEGIN} and ${END} are missing`);
  const block = [
    BEGIN,
    'CPU time for each chunk of a stream that conforms, without the repair and with it: the median of ' +
      `${slices * processes} slices in ${processes} process${processes === 1 ? '' : 'es'}, and the ratio within a slice with its range from p10 to p90 (node ${process.version}). The rows of langchain include \`concatChunks\` on the side of the repair.`,
    '',
    '| client | stream | without | with | ratio |',
    '|---|---|--:|--:|--:|',
    ...rowLines,
    END,
  ];
  writeFileSync(PAGE, text.slice(0, start) + block.join('\n') + text.slice(end + END.length));
}

function fail(message) {
  console.error(message);
  process.exit(2);
}
