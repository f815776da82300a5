/** docs/performance.md: the part between its markers. */
import { describeNoise } from '../method/machine.js';
import { listGroup, listSubjects } from './data.js';
import { formatCount } from './frame.js';
import { nameOf, readSize, SIZES } from './names.js';
import { writeSummary } from './summary.js';
import { escapeText } from './svg.js';
import { buildDirectionTable, buildGoalTable, buildRowTable, escapeCell, sortGoals } from './tables.js';

/** Both files of a chart, where Markdown of `folder` finds them. */
export const showChart = ({ name, alt }, folder) =>
  [
    '<picture>',
    `  <source media="(prefers-color-scheme: dark)" srcset="${folder}/performance-${name}-dark.svg">`,
    `  <img alt="${escapeText(alt)}" src="${folder}/performance-${name}-light.svg">`,
    '</picture>',
  ].join('\n');

/** Groups of the gateway's run, in the order of the page. `isSplit`: rows with other subjects have a table of their own. */
const GATEWAY_TABLES = [
  { group: 'json', title: 'JSON requests' },
  { group: 'response', title: 'Large responses' },
  { group: 'extras', title: 'What the parts of a full gateway cost' },
  { group: 'latency', title: 'Added time at a fixed rate' },
  { group: 'stream', title: 'Streams' },
  { group: 'first', title: 'First byte of a stream' },
  { group: 'memory', title: 'Memory' },
  { group: 'stalled', title: 'Clients that do not read' },
  { group: 'start', title: 'Start and idle' },
  { group: 'growth', title: 'Growth', isSplit: true },
];

const STREAM_KINDS = { 'stream-text': 'text', 'stream-call': 'one call', 'stream-calls': '64 calls' };
const nameStream = (before) => STREAM_KINDS[before] ?? before;
const nameRequest = (before) => SIZES[readSize(before)] ?? before;

/** Groups of the library's run. `columns`: a table of directions, whose cells are multiples of parse + stringify. */
const LIBRARY_TABLES = [
  { group: 'accumulate', title: 'Parsed chunks to a message' },
  { group: 'bytes', title: 'Bytes to a message' },
  { group: 'message', title: 'Bytes to a message' },
  { group: 'sse', title: 'SSE framing' },
  { group: 'stream', title: 'Conversion of a stream', columns: nameStream },
  { group: 'convert', title: 'Conversion of a stream', columns: nameStream },
  { group: 'request', title: 'Conversion of a request, by size', columns: nameRequest },
  { group: 'import', title: 'Import' },
  { group: 'size', title: 'Size' },
];

/** A group without a table would be dropped silently. */
function checkGroups(run, tables) {
  const unknown = run?.rows.find(({ group }) => !tables.some((one) => one.group === group));
  if (unknown)
    throw new Error(`row "${unknown.id}": no table is known for the group "${unknown.group}"; add it to bench/report/page.js`);
}

/** Rows by their subjects. */
function splitBySubjects(rows) {
  const tables = new Map();
  for (const row of rows) {
    const key = listSubjects([row]).join('\n');
    tables.set(key, [...(tables.get(key) ?? []), row]);
  }
  return [...tables.values()];
}

const DIRECTION_TEXT = 'Times parsing and stringifying the same JSON, median [p10-p90]:';

/** Sections without a row are dropped, and so are tables without a line. */
const section = (title, ...parts) => {
  const known = parts.filter(Boolean);
  return known.length === 0 ? [] : [title, ...known];
};

/** What the ratios of a table refer to, when it is not the usual. */
function nameReferences(rows, usual) {
  const references = [...new Set(rows.flatMap(({ reference }) => reference ?? []))];
  if (references.length === 0 || references.every((reference) => reference === usual)) return undefined;
  return `In brackets: times ${references.map((reference) => escapeCell(nameOf(reference))).join(' or ')}.`;
}

function gatewaySections(run) {
  checkGroups(run, GATEWAY_TABLES);
  return GATEWAY_TABLES.flatMap(({ group, title, isSplit }) => {
    const rows = listGroup(run, group);
    const tables = isSplit ? splitBySubjects(rows) : [rows];
    const parts = tables.flatMap((own) => [nameReferences(own, 'undici'), buildRowTable(own, { hasWrong: true })]);
    return section(`### ${title}`, ...parts, listNotes(rows));
  });
}

function librarySections(run) {
  checkGroups(run, LIBRARY_TABLES);
  return LIBRARY_TABLES.flatMap(({ group, title, columns }) => {
    const rows = listGroup(run, group);
    const directions = columns && buildDirectionTable(rows, 'Sluice', columns);
    if (!directions) return section(`### ${title}`, nameReferences(rows), buildRowTable(rows));
    const compared = selectCompared(rows);
    return section(`### ${title}`, DIRECTION_TEXT, directions, nameReferences(compared), buildRowTable(compared));
  });
}

/** Rows with subjects that most of the others do not have: other programs convert in a few directions only. */
function selectCompared(rows) {
  const isRare = (subject) =>
    rows.filter(({ results }) => results.some((one) => one.subject === subject)).length * 2 < rows.length;
  return rows.filter(({ results }) => results.some(({ subject }) => isRare(subject)));
}

/** Remarks of results that have a value; those without have the remark in their cell. */
function listNotes(rows) {
  const notes = rows.flatMap((row) =>
    row.results
      .filter(({ value, note }) => value && note)
      .map(({ subject, note }) => `- ${escapeCell(row.title)}, ${escapeCell(nameOf(subject))}: ${escapeCell(note)}`),
  );
  return notes.length === 0 ? undefined : [...new Set(notes)].join('\n');
}

const details = (summary, content) => `<details>\n<summary>${summary}</summary>\n\n${content}\n\n</details>`;

function goalSection(runs) {
  const all = sortGoals(runs);
  const goals = all.filter(({ isJudged }) => isJudged);
  const others = all.filter(({ isJudged }) => !isJudged);
  const [missed, reached] = [goals.filter(({ isReached }) => !isReached), goals.filter(({ isReached }) => isReached)];
  const counts = goals.length > 0 && `${formatCount(reached.length)} of ${formatCount(goals.length)} goals are reached.`;
  const text = [counts, ...runs.map(describeJudging)].filter(Boolean).join(' ');
  return section(
    '## Goals',
    text,
    missed.length > 0 && buildGoalTable(missed),
    reached.length > 0 && details(`Reached: ${formatCount(reached.length)}`, buildGoalTable(reached)),
    others.length > 0 && details(`Not judged: ${formatCount(others.length)}`, buildGoalTable(others)),
  );
}

/** What the noise of a run does to its goals. */
function describeJudging({ kind, noise: { state } }) {
  if (state === 'quiet') return '';
  const was = `The machine was ${state} while the ${kind} was measured:`;
  return state === 'busy' ? `${was} its goals of the clock are not judged.` : `${was} none of its goals is judged.`;
}

function formatMinutes(seconds) {
  const minutes = Math.max(1, Math.round(seconds / 60));
  return `${formatCount(minutes)} ${minutes === 1 ? 'minute' : 'minutes'}`;
}

/** Machine, versions, date and noise of a run. */
function describeRun(name, { commit, begun, seconds, machine, noise }) {
  const versions = Object.entries(machine.versions ?? {}).map(([program, version]) => `${program} ${version}`);
  const parts = [
    `Node ${machine.node}`,
    `${machine.cores} cores (${machine.cpu})`,
    machine.kernel && `Linux ${machine.kernel}`,
    ...versions,
  ];
  const when = [begun.slice(0, 10), formatMinutes(seconds), commit && `commit ${commit}`];
  return `- **${name}**: ${when.filter(Boolean).join(', ')}. ${escapeCell(parts.filter(Boolean).join(', '))}. ${describeNoise(noise)}`;
}

const listMissing = (runs) =>
  runs.flatMap(({ missing = {} }) =>
    Object.entries(missing).map(
      ([subject, reason]) => `- ${escapeCell(nameOf(subject))} was not measured: ${escapeCell(reason)}`,
    ),
  );

const NOT_YET = {
  gateway: 'The gateway is not measured yet: `npm run bench:gateway`.',
  library: 'The library is not measured yet: `npm run bench`.',
};

/** @param {{ gateway?: object, library?: object }} found The newest runs. */
export function writePage({ gateway, library }, charts) {
  const runs = [gateway, library].filter(Boolean);
  const shown = (names) =>
    charts.filter(({ name }) => names === undefined || names(name)).map((chart) => showChart(chart, './images'));
  return [
    gateway ? writeSummary(gateway).join(' ') : NOT_YET.gateway,
    ...(library ? [] : [NOT_YET.library]),
    ...shown((name) => name !== 'conversion'),
    ...goalSection(runs),
    ...section('## Gateway', gateway && CELLS, ...gatewaySections(gateway)),
    ...section('## Library', ...shown((name) => name === 'conversion'), ...librarySections(library)),
    ...section(
      '## The runs',
      [gateway && describeRun('Gateway', gateway), library && describeRun('Library', library), ...listMissing(runs)]
        .filter(Boolean)
        .join('\n'),
    ),
  ].join('\n\n');
}

const CELLS =
  'Cells: median, in brackets how many times node:http + undici, and the range from p10 to p90. A goal is a multiple of another subject, or a value.';
