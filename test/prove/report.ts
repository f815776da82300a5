import { MUTATIONS } from '../../packages/gateway/src/mutate/index.ts';
import { OPEN } from './open.ts';
import type { Row } from './tally.ts';

const PAIR = ' → ';

const number = (value: number): string => value.toLocaleString('en-US');
const sum = (rows: readonly Row[], key: 'tried' | 'failed' | 'open'): number => rows.reduce((total, row) => total + row[key], 0);

/** A cell: how many inputs held, and what did not. */
function cell(rows: readonly Row[]): string {
  if (rows.length === 0) return '';
  const [failed, open] = [sum(rows, 'failed'), sum(rows, 'open')];
  return `${number(sum(rows, 'tried'))}${failed > 0 ? `, **${number(failed)} failed**` : ''}${open > 0 ? `, ${number(open)} open` : ''}`;
}

function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, at) => (at === 0 ? '---' : '--:'))), ...lines.map(line)].join('\n');
}

const unique = (values: readonly string[]): string[] => [...new Set(values)];
const isPair = ({ subject }: Row): boolean => subject.includes(PAIR);

/** Property by property, a column for each subject. */
function properties(rows: readonly Row[]): string {
  const subjects = unique(rows.map(({ subject }) => subject)).toSorted();
  return table(
    ['', ...subjects],
    unique(rows.map(({ property }) => property)).map((property) => [
      property,
      ...subjects.map((subject) => cell(rows.filter((row) => row.property === property && row.subject === subject))),
    ]),
  );
}

/** Pair by pair: from the line to the column. */
function pairs(rows: readonly Row[], property: string): string {
  const own = rows.filter((row) => row.property === property);
  const subjects = unique(own.flatMap(({ subject }) => subject.split(PAIR)));
  return table(
    [`${property}: from, to`, ...subjects],
    subjects.map((from) => [from, ...subjects.map((to) => cell(own.filter(({ subject }) => subject === from + PAIR + to)))]),
  );
}

/** What was seen, by name, with the counts of all rows together. */
function seen(rows: readonly Row[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const row of rows) for (const [name, count] of Object.entries(row.seen)) counts.set(name, (counts.get(name) ?? 0) + count);
  return [...counts].toSorted(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
}

function dialects(): string {
  const kinds = unique(MUTATIONS.map(({ kind }) => kind));
  const protocols = unique(MUTATIONS.flatMap((mutation) => [...mutation.protocols]));
  return table(
    ['dialects', ...protocols],
    kinds.map((kind) => [
      kind,
      ...protocols.map((protocol) =>
        String(MUTATIONS.filter((one) => one.kind === kind && one.protocols.some((own) => own === protocol)).length),
      ),
    ]),
  );
}

/** One line for the README. */
export function summaryOf(rows: readonly Row[]): string {
  const tried = rows.filter(({ property }) => property !== 'recordings');
  const [failed, open] = [sum(tried, 'failed'), sum(tried, 'open')];
  const recordings = sum(
    rows.filter(({ property }) => property === 'recordings'),
    'tried',
  );
  return `${number(sum(tried, 'tried'))} inputs, ${number(recordings)} recorded streams, ${MUTATIONS.length} dialects, 16 pairs: ${failed === 0 ? 'none failed' : `${number(failed)} failed`}${open > 0 ? `, ${number(open)} open` : ''}.`;
}

/** The figures of a run as a page: the same run gives the same page. */
export function reportOf(rows: readonly Row[], version: string): string {
  const plain = rows.filter((row) => !isPair(row));
  const sdks = plain.filter(({ property }) => property === 'official SDK');
  const recordings = plain.filter(({ property }) => property === 'recordings');
  const own = plain.filter((row) => !sdks.includes(row) && !recordings.includes(row));
  const seeds = unique(rows.flatMap(({ seed }) => (seed === null ? [] : [String(seed)])));
  const paired = unique(rows.filter(isPair).map(({ property }) => property));
  return `${[
    '# Conformance',
    `Sluice ${version}, \`npm run prove\`, seed ${seeds.join(', ')}. ${summaryOf(rows)}`,
    '## Property by property',
    'Inputs tried; every input held unless the cell says otherwise.',
    properties(own),
    '## Pair by pair',
    'A stream or a request of one protocol, converted to the other and, for answers, back.',
    ...paired.map((property) => pairs(rows, property)),
    '## Official readers',
    'What they hear of our streams is what our own reader reads.',
    table(
      ['reader', 'streams'],
      sdks.map((row) => [row.subject, cell([row])]),
    ),
    '## Dialects',
    'Departures from the standards that are made out of clean streams. Each must be read as the clean stream, or the loss be told.',
    dialects(),
    '## Recordings',
    table(
      ['provider', 'streams'],
      seen(recordings).map(([name, count]) => [name, String(count)]),
    ),
    '## Notes',
    'What conversions could not carry, or carried in other words.',
    table(
      ['note', 'times'],
      seen(rows.filter(isPair)).map(([name, count]) => [name, number(count)]),
    ),
    '## Open',
    OPEN.length === 0 ? 'Nothing.' : OPEN.map(({ reason }) => `- ${reason}.`).join('\n'),
  ].join('\n\n')}\n`;
}
