import { MUTATIONS } from '../../packages/lab/src/mutate/index.ts';
import { CORPUS } from '../corpus.ts';
import type { Row } from './tally.ts';

/** What is proven, in the order in which it is told, and the properties that belong to it. */
export const GROUPS = {
  'The same message however the bytes are split': ['two-way split', 'one byte at a time', 'random split', 'network reads'],
  'SSE framing: the rules of the standard, and `eventsource-parser`': [
    'format of the standard',
    'beyond the standard',
    'generated bodies',
    'framing of recordings',
  ],
  'Dialects: read as the clean stream, or the loss is reported': ['mutation of recordings', 'mutation of generated streams'],
  'Tool calls with every pair of quirks: read as intended, unless two readings are possible': ['tool calls with quirks'],
  'Every written stream follows the grammar of its protocol': ['grammar'],
  'Streamed, whole or split into any deltas: the same message': ['streamed or whole', 're-chunking'],
  'Responses through every pair of protocols, there and back': [
    'there and back',
    'recorded, there and back',
    'reported, there and back',
  ],
  'Requests through every pair of protocols: nothing is lost silently': [
    'request identity',
    'request conversion',
    'recorded requests',
  ],
  'Official SDKs read our streams correctly': ['official SDK', 'official SDK of recordings'],
  'Linear cost, bounded memory, no prototype pollution': ['linear cost', 'bounded memory', 'untouched prototypes'],
} as const satisfies Record<string, readonly string[]>;

/** Rows that count what was there rather than what was tried. */
export const COUNTED = { streams: 'recorded streams', bodies: 'recorded bodies', requests: 'requests' } as const;

export const number = (value: number): string => value.toLocaleString('en-US');
export const sum = (rows: readonly Row[], key: 'tried' | 'failed' | 'open'): number =>
  rows.reduce((total, row) => total + row[key], 0);

export function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, at) => (at === 0 ? '---' : '--:'))), ...lines.map(line)].join('\n');
}

const isCounted = ({ property }: Row): boolean => Object.values<string>(COUNTED).includes(property);
const isGenerated = ({ seed }: Row): boolean => seed !== null;

/** What was tried. */
export const triedRows = (rows: readonly Row[]): Row[] => rows.filter((row) => !isCounted(row));

const countOf = (rows: readonly Row[], kind: keyof typeof COUNTED): number =>
  sum(
    rows.filter(({ property }) => property === COUNTED[kind]),
    'tried',
  );

const rowsOf = (rows: readonly Row[], properties: readonly string[]): Row[] =>
  rows.filter(({ property }) => properties.includes(property));

/** Properties that belong nowhere, and groups of which nothing was tried: then the figures are not those of a full run. */
export function gapsOf(rows: readonly Row[]): string[] {
  const known = Object.values<readonly string[]>(GROUPS).flat();
  const strange = triedRows(rows).filter(({ property }) => !known.includes(property));
  return [
    ...new Set(strange.map(({ property }) => property)),
    ...known.filter((property) => !rows.some((row) => row.property === property)),
  ];
}

/** All in one line. */
export function lineOf(rows: readonly Row[]): string {
  const tried = triedRows(rows);
  const [failed, open] = [sum(tried, 'failed'), sum(tried, 'open')];
  const recorded = `${number(countOf(rows, 'streams') + countOf(rows, 'bodies'))} responses and ${number(countOf(rows, 'requests'))} requests of the ${CORPUS === 'recordings' ? 'recordings' : 'corpus'}`;
  const outcome = `${failed === 0 ? 'none failed' : `${number(failed)} failed`}${open > 0 ? `, ${number(open)} open` : ''}`;
  return `${number(sum(tried, 'tried'))} checks, ${number(sum(tried.filter(isGenerated), 'tried'))} of them on generated inputs, over ${recorded}, ${MUTATIONS.length} dialects and 16 pairs: ${outcome}.`;
}

/** Group by group. */
export const summaryTable = (rows: readonly Row[]): string =>
  table(
    ['what holds', 'checks', 'on generated inputs', 'failed', 'open'],
    Object.entries<readonly string[]>(GROUPS).map(([group, properties]) => {
      const own = rowsOf(rows, properties);
      return [
        group,
        ...[sum(own, 'tried'), sum(own.filter(isGenerated), 'tried'), sum(own, 'failed'), sum(own, 'open')].map(number),
      ];
    }),
  );

const BEGIN = '<!-- conformance: written by npm run prove -->';
const END = '<!-- /conformance -->';

/** The summary, as it stands on the page and in the README. */
export const blockOf = (rows: readonly Row[]): string => `${BEGIN}\n${lineOf(rows)}\n\n${summaryTable(rows)}\n${END}`;

/** The block in a text; undefined when there is none. */
export function findBlock(text: string): string | undefined {
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  return from < 0 || to < from ? undefined : text.slice(from, to + END.length);
}

/** The text with the block in the place of the one it has. */
export function replaceBlock(text: string, block: string): string {
  const old = findBlock(text);
  if (old === undefined) throw new Error(`no ${BEGIN} … ${END}`);
  return text.replace(old, () => block);
}
