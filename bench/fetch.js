/**
 * What the repair costs beside the bare SDK, and the linear concat beside that of LangChain: `npm run bench:fetch [-- --rounds N]`. Writes the
 * table of docs/fetch.md.
 *
 * Both sides of a ratio take turns within a round, each in a process of its own, as in bench/run.js.
 */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { formatNumber, orderOf, summarize, summarizeRatio } from './statistics.js';

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } });
const rounds = Number(options.rounds);
const CHILD = fileURLToPath(new URL('./child.js', import.meta.url));
const PAGE = new URL('../docs/fetch.md', import.meta.url);
const BEGIN = '<!-- cost: written by npm run bench:fetch -->';
const END = '<!-- /cost -->';

/** A few chunks in each piece, as a network delivers them. */
const stream = (kind, n) => ({ section: 'endToEnd', kind, n, pieceBytes: 1024 });
/** An SDK and the repair together need longer to warm up than either. */
const EFFORT = { warmMs: 2000, cpuMs: 400 };
const parsed = (kind, n) => ({ section: 'accumulate', kind, n });

const repair = (client, run, kind) => ({
  client,
  what: kind === 'text' ? 'text, 1000 chunks' : 'one call, 1000 chunks',
  test: stream(kind, 1000),
  sides: [
    { name: 'bare', run },
    { name: 'repaired', run, function: 'endToEndRepaired' },
  ],
});

const concat = (n) => ({
  client: '`concat` of LangChain, then `concatChunks`',
  what: `one call, ${n} chunks, parsed`,
  test: parsed('tool', n),
  sides: [
    { name: 'bare', run: 'langchain' },
    { name: 'linear', run: 'langchain', function: 'accumulateLinear' },
  ],
});

const CASES = [
  repair('openai', 'openai', 'text'),
  repair('openai', 'openai', 'tool'),
  repair('ai', 'ai', 'text'),
  repair('ai', 'ai', 'tool'),
  repair('langchain', 'langchain', 'text'),
  repair('langchain', 'langchain', 'tool'),
  concat(1000),
  concat(4000),
];

const rows = [];
for (const one of CASES) {
  const row = await runCase(one);
  rows.push(row);
  console.log(row);
}
writePage(rows);

async function runCase({ client, what, test, sides }) {
  const costs = new Map(sides.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (const side of orderOf(sides, round)) costs.get(side.name).push(await measureOnce(test, side));
  const [before, after] = sides.map(({ name }) => costs.get(name));
  const cells = [formatUs(summarize(before)), formatUs(summarize(after)), formatRatio(summarizeRatio(after, before))];
  return `| ${[client, what, ...cells].join(' | ')} |`;
}

/** CPU nanoseconds a chunk. */
async function measureOnce(test, subject) {
  const { stdout } = await promisify(execFile)(process.execPath, [
    CHILD,
    JSON.stringify({ case: { ...test, effort: EFFORT }, subject: { ...subject, light: true } }),
  ]);
  const { right, cpuNs, units } = JSON.parse(stdout);
  if (!right) throw new Error(`${subject.run} ${subject.name}: the result is wrong`);
  return cpuNs / units;
}

function formatUs({ median }) {
  return `${formatNumber(median / 1000)} µs`;
}

function formatRatio({ median, min, max }) {
  return `${median.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})`;
}

function writePage(lines) {
  const text = readFileSync(PAGE, 'utf8');
  const [start, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (start < 0 || end < start) throw new Error(`docs/fetch.md: the markers ${BEGIN} and ${END} are missing`);
  const table = [
    'CPU time for each chunk of a stream that conforms, without the repair and with it: the median of ' +
      `${rounds} rounds, and the ratio within a round with its range (node ${process.version}). The rows of langchain include \`concatChunks\` on the side of the repair.`,
    '',
    '| client | stream | without | with | ratio |',
    '|---|---|--:|--:|--:|',
    ...lines,
  ];
  writeFileSync(PAGE, text.slice(0, start) + [BEGIN, ...table, END].join('\n') + text.slice(end + END.length));
}
