/** The section "Performance" of README.md: one picture of the gateway, and the library beside SDKs. */
import { formatNumber, table } from '../method/statistics.js';
import { findResult, listGroup } from './data.js';
import { formatRatio } from './frame.js';
import { showChart } from './page.js';
import { writeShortSummary } from './summary.js';
import { escapeCell } from './tables.js';

const GROUPS = { accumulate: 'parsed chunks → message', bytes: 'bytes → message', message: 'bytes → message' };
const PEERS = ['openai', '@anthropic-ai/sdk', 'ai', 'langchain'];
const HAND = ['hand-written', 'hand'];

/** The first subject of Sluice is the one that goals refer to. */
const findSluice = (row) => row.results.find(({ subject, value }) => value && /^sluice/i.test(subject));

/** How many times the cost of Sluice, from medians; the note of one that did not finish. */
function timesSluice(row, sluice, subject) {
  const value = findResult(row, subject)?.value;
  if (value) return formatRatio(value.median / sluice.value.median);
  const note = row.results.find((result) => result.subject === subject)?.note;
  return note ? escapeCell(note) : '–';
}

function buildLine(row) {
  const sluice = findSluice(row);
  if (!sluice) return [];
  const hand = HAND.map((subject) => findResult(row, subject)).find(Boolean);
  return [
    [
      `${GROUPS[row.group]}, ${row.title}`,
      `${formatNumber(sluice.value.median)} ns`,
      hand ? formatRatio(sluice.value.median / hand.value.median) : '–',
      ...PEERS.map((peer) => timesSluice(row, sluice, peer)),
    ],
  ];
}

function libraryTable(run) {
  const lines = Object.keys(GROUPS).flatMap((group) => listGroup(run, group).flatMap(buildLine));
  if (lines.length === 0) return undefined;
  return table(['CPU time a chunk', 'Sluice', 'x hand-written', ...PEERS.map((peer) => `${peer}, x Sluice`)], lines);
}

const legend = ({ begun, machine }) =>
  `Medians; Node ${machine.node}, ${machine.cores} shared cores (${machine.cpu}), ${begun.slice(0, 10)}. "Hand-written" is the least code that reads a clean stream.`;

export function writeReadme({ gateway, library }, overview) {
  const table = library && libraryTable(library);
  return [
    ...overview.map((chart) => showChart(chart, 'docs/images')),
    gateway && writeShortSummary(gateway).join(' '),
    table && 'The library beside SDKs:',
    table,
    table && legend(library),
  ]
    .filter(Boolean)
    .join('\n\n');
}
