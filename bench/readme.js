/** The performance table of the README: `npm run bench -- --readme` measures its cases and writes it between the markers. */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { formatNumber } from './statistics.js';

const README = new URL('../README.md', import.meta.url);
const BEGIN = '<!-- performance: written by npm run bench -- --readme -->';
const END = '<!-- /performance -->';

/** The cases of the table, and how the README calls them. */
const ROWS = [
  ['accumulate text 10k', 'parsed chunks → message, text'],
  ['accumulate one call 10k', 'parsed chunks → message, one tool call'],
  ['accumulate 64 calls x 1k', 'parsed chunks → message, 64 interleaved calls'],
  ['endToEnd text 10k', 'bytes → message, text'],
  ['endToEnd one call 10k', 'bytes → message, one tool call'],
];
const PEERS = ['openai', '@anthropic-ai/sdk', 'ai', 'langchain'];
const SLUICE = ['sluice', 'sluice accumulate()'];

/** Whether a case of the benchmark is a row of the README. */
export const isReadmeCase = ({ section, name }) => ROWS.some(([key]) => key === `${section} ${name}`);

/** Writes the table. `results` are those of bench/run.js; every row of the table must be among them. */
export function writeReadme(results, rounds) {
  const text = readFileSync(README, 'utf8');
  const [start, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (start < 0 || end < start) throw new Error(`README.md: the markers ${BEGIN} and ${END} are missing`);
  const block = [BEGIN, '', ...table(results), '', legend(rounds), END].join('\n');
  writeFileSync(README, text.slice(0, start) + block + text.slice(end + END.length));
  console.log(`\nwrote the performance table of ${fileURLToPath(README)}`);
}

function table(results) {
  const head = ['CPU per chunk', 'Sluice', 'x hand-written', ...PEERS.map((name) => `${name}, x Sluice`)];
  const rows = ROWS.map(([key, title]) => {
    const found = results.find(({ section, name }) => `${section} ${name}` === key);
    if (!found) throw new Error(`no result for ${key}`);
    const sluice = found.rows.findLast(({ name }) => SLUICE.includes(name));
    const peers = PEERS.map((peer) => found.rows.find(({ name }) => name === peer));
    return [title, `${range(sluice.cpuNs)} ns`, range(sluice.toFirst), ...peers.map((row) => row?.note ?? range(row?.toSluice))];
  });
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [
    line(head),
    `|---|${head
      .slice(1)
      .map(() => '--:')
      .join('|')}|`,
    ...rows.map(line),
  ];
}

/** Median and the range of all rounds. */
function range(summary) {
  if (summary === undefined) return '–';
  const { median, min, max } = summary;
  return `${formatNumber(median)} (${formatNumber(min)}–${formatNumber(max)})`;
}

const legend = (rounds) =>
  `Median (range) of ${rounds} rounds that alternate between the subjects, 10,000 chunks (64 × 1,000); ${cpus()[0]?.model.trim() ?? 'unknown CPU'}, ${cpus().length} shared cores, Node ${process.versions.node}. ` +
  '"Hand-written" is the least code that reads a clean stream. [bench](bench/README.md) has all cases and how they are measured.';
