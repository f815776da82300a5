/** Usage as a table with bars for people, and as CSV and JSON for programs. */

import { formatCsvLine, formatExactDollars } from '../../store/csv.ts';
import { GRAIN_MS, type Grain, SUM_COLUMNS, type Sums, type UsageQuery, type UsageRow } from '../../store/index.ts';
import type { Colors } from '../../terminal/text.ts';
import {
  drawBar,
  fit,
  formatBucket,
  formatCount,
  formatDollars,
  formatTime,
  formatTimestamp,
  measure,
  padEnd,
  padStart,
} from './figures.ts';

/** Usage to show. */
export interface UsageReport {
  readonly by: UsageQuery['by'];
  readonly bucket: Grain | undefined;
  readonly since: number;
  readonly until: number | undefined;
  readonly rows: readonly UsageRow[];
  /** The sums of all exchanges in the range. */
  readonly total: Sums;
  /** What to show for client keys, by their ids. */
  readonly keyLabels?: ReadonlyMap<string, string>;
}

/** How to show it. */
export interface UsageStyle {
  readonly colors: Colors;
  /** Width of the terminal; undefined for a pipe, which gets neither bars nor shortened names. */
  readonly columns: number | undefined;
}

/** Adds up rows. */
export function sumRows(rows: readonly Sums[]): Sums {
  const total = Object.fromEntries(SUM_COLUMNS.map((column) => [column, 0])) as Sums; // every column, by the list of them
  for (const row of rows) for (const column of SUM_COLUMNS) total[column] += row[column];
  return total;
}

/** Adds the days without requests between the first and the last row, so that a chart by day is one of time. */
export function fillDays(rows: readonly UsageRow[]): UsageRow[] {
  const days = new Map(rows.map((row) => [row.ts ?? 0, row]));
  const [first = 0, last = 0] = [rows[0]?.ts ?? 0, rows.at(-1)?.ts ?? 0];
  if ((last - first) / GRAIN_MS.day > MAX_FILLED_DAYS) return [...rows];
  const filled: UsageRow[] = [];
  for (let ts = first; ts <= last && rows.length > 0; ts += GRAIN_MS.day)
    filled.push(days.get(ts) ?? { ...sumRows([]), group: null, ts });
  return filled;
}

/** Ten years. */
const MAX_FILLED_DAYS = 3660;

// ---- the table

interface Column {
  readonly title: string;
  format(sums: Sums): string;
  /** Columns with higher numbers are left out first when the terminal is narrow. */
  readonly rank: number;
}

const isUncertain = ({ uncertain }: Sums): boolean => uncertain > 0;

/** "~" marks sums over token counts that are not exact. */
const formatTokens = (tokens: number, sums: Sums): string => `${isUncertain(sums) ? '~' : ''}${formatCount(tokens)}`;

/** An unknown price is no price of 0. */
export function formatCost(sums: Pick<Sums, 'cost_micros' | 'unpriced' | 'uncertain'>): string {
  const known = `${sums.uncertain > 0 ? '~' : ''}${formatDollars(sums.cost_micros)}`;
  if (sums.unpriced === 0) return known;
  const unpriced = `${formatCount(sums.unpriced)} unpriced`;
  return sums.cost_micros === 0 ? unpriced : `${known} + ${unpriced}`;
}

const COLUMNS: readonly Column[] = [
  { title: 'REQUESTS', format: ({ requests }) => formatCount(requests), rank: 1 },
  { title: 'ERRORS', format: ({ errors }) => formatCount(errors), rank: 4 },
  { title: 'INPUT', format: (sums) => formatTokens(sums.input_tokens, sums), rank: 2 },
  { title: 'CACHED', format: (sums) => formatTokens(sums.cache_read_tokens, sums), rank: 5 },
  { title: 'OUTPUT', format: (sums) => formatTokens(sums.output_tokens, sums), rank: 3 },
  { title: 'COST', format: formatCost, rank: 0 },
];

const GAP = '  ';

const MAX_LABEL = 40;

const MIN_LABEL = 10;

const MIN_BAR = 6;

const MAX_BAR = 40;

/** The whole table, with its range, totals and remarks. */
export function formatUsage(report: UsageReport, { colors, columns }: UsageStyle): string {
  const { rows, total } = report;
  const range = colors.dim(formatRange(report));
  if (rows.length === 0) return `${describeEmpty(report)}\n${range}\n`;
  const measured = chooseMeasure(report);
  const layout = planLayout(report, columns);
  const max = rows.reduce((most, row) => Math.max(most, measured.read(row)), 0);
  const head = formatLine(layout, report.by.toUpperCase(), '', (column) => column.title);
  const lines = rows.map((row) => {
    const bar = colors.cyan(padEnd(drawBar(measured.read(row), max, layout.bar), layout.bar));
    return formatLine(layout, formatLabel(row, report), bar, (column) => column.format(row));
  });
  const sum = formatLine(layout, 'total', ' '.repeat(layout.bar), (column) => column.format(total));
  return [
    colors.bold(head),
    ...lines,
    colors.bold(sum),
    '',
    ...(layout.bar > 0 ? [colors.dim(`Bars show ${measured.name}.`)] : []),
    ...(layout.hidden.length > 0 ? [colors.dim(`Hidden in this width: ${layout.hidden.join(', ')}.`)] : []),
    ...listRemarks(report).map((line) => colors.dim(line)),
    range,
    '',
  ].join('\n');
}

interface Layout {
  label: number;
  /** Cells for bars; 0 for none. */
  bar: number;
  shown: readonly { column: Column; cells: number }[];
  hidden: readonly string[];
}

/** Decides what fits: first bars are left out, then names shortened, then columns left out. */
function planLayout(report: UsageReport, columns: number | undefined): Layout {
  const { rows, total, by } = report;
  // A loop: 50,000 rows are too many arguments of Math.max.
  const findWidest = (texts: Iterable<string>): number => {
    let widest = 0;
    for (const text of texts) widest = Math.max(widest, measure(text));
    return widest;
  };
  const all = [...rows, total];
  const measured = COLUMNS.map((column) => ({
    column,
    cells: Math.max(column.title.length, findWidest(all.map((sums) => column.format(sums)))),
  }));
  const labels = findWidest([by, 'total', ...rows.map((row) => formatLabel(row, report))]);
  if (columns === undefined) return { label: labels, bar: 0, shown: measured, hidden: [] };
  const widest = Math.min(labels, MAX_LABEL);
  const narrowest = Math.min(widest, MIN_LABEL);
  const shown = [...measured];
  const countCells = (): number => shown.reduce((sum, { cells }) => sum + cells + GAP.length, 0);
  while (shown.length > 1 && narrowest + countCells() > columns)
    shown.splice(
      shown.findIndex(({ column }) => column.rank === Math.max(...shown.map((other) => other.column.rank))),
      1,
    );
  const room = columns - countCells();
  const label = Math.max(narrowest, Math.min(widest, room));
  const bar = Math.min(MAX_BAR, room - label - GAP.length);
  const hidden = measured.filter((column) => !shown.includes(column)).map(({ column }) => column.title.toLowerCase());
  return { label, bar: bar < MIN_BAR ? 0 : bar, shown, hidden };
}

function formatLine(layout: Layout, label: string, bar: string, formatCell: (column: Column) => string): string {
  const name = padEnd(fit(label, layout.label), layout.label);
  const figures = layout.shown.map(({ column, cells }) => padStart(formatCell(column), cells));
  const chart = layout.bar > 0 ? [bar === '' ? ' '.repeat(layout.bar) : bar] : [];
  return [name, ...chart, ...figures].join(GAP).trimEnd();
}

/** The group of a row, and its bucket. */
function formatLabel({ group, ts }: UsageRow, { by, bucket, keyLabels }: UsageReport): string {
  const time = ts === null ? undefined : formatBucket(ts, bucket ?? 'day');
  if (by === 'day') return time ?? '';
  const name = fit(keyLabels?.get(group ?? '') || group || NO_GROUP, MAX_NAME);
  return time === undefined ? name : `${time}  ${name}`;
}

/** Labels of keys by their ids: the name, with the id where another key, such as a revoked one, has the same name. */
export function labelKeys(names: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const counts = new Map<string, number>();
  for (const name of names.values()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return new Map([...names].map(([id, name]) => [id, (counts.get(name) ?? 0) > 1 ? `${name} (${id})` : name]));
}

const NO_GROUP = '(none)';

/** Names of the store have at most 200 characters, each of which may be escaped. */
const MAX_NAME = 1200;

/** Cost if anything has one, else tokens, else requests. */
function chooseMeasure({ total }: UsageReport): { name: string; read(sums: Sums): number } {
  if (total.cost_micros > 0) return { name: 'cost', read: ({ cost_micros }) => cost_micros };
  if (total.input_tokens + total.output_tokens > 0)
    return { name: 'input and output tokens', read: ({ input_tokens, output_tokens }) => input_tokens + output_tokens };
  return { name: 'requests', read: ({ requests }) => requests };
}

function formatRange({ since, until }: UsageReport): string {
  const end = until === undefined ? 'now' : formatTime(Math.ceil(until / GRAIN_MS.hour) * GRAIN_MS.hour);
  return `From ${formatTime(Math.floor(since / GRAIN_MS.hour) * GRAIN_MS.hour)} to ${end}; hours and days in UTC.`;
}

const describeEmpty = ({ by, total }: UsageReport): string =>
  by === 'tag' && total.requests > 0
    ? `None of ${formatCount(total.requests)} requests has a tag.`
    : 'No requests were completed in this time.';

/** What a reader of the sums has to know. */
function listRemarks({ by, total }: UsageReport): string[] {
  const { uncertain, unpriced, requests } = total;
  const ofAll = `of ${formatCount(requests)} requests`;
  return [
    ...(uncertain > 0 ? [`~ Token counts of ${formatCount(uncertain)} ${ofAll} are estimated or uncertain.`] : []),
    ...(unpriced > 0
      ? [`The cost of ${formatCount(unpriced)} ${ofAll} is unknown and not included; "sluice prices" shows what is known.`]
      : []),
    ...(by === 'tag' ? ['A request counts for each of its tags; the total counts every request once, also without a tag.'] : []),
  ];
}

// ---- for programs

/** One line of JSON for each row. */
export const describeUsage = (
  { group, ts, ...sums }: UsageRow,
  by: UsageQuery['by'],
  keyNames?: ReadonlyMap<string, string>,
): object => ({
  by,
  group,
  ...(keyNames && { key_name: keyNames.get(group ?? '') ?? group }),
  bucket_at: ts === null ? null : formatTimestamp(ts),
  ...Object.fromEntries(SUM_COLUMNS.map((column) => [column, sums[column]])),
});

/** CSV by RFC 4180: a header, and CRLF after each line. */
export function* formatCsv(
  rows: Iterable<UsageRow>,
  by: UsageQuery['by'],
  keyNames?: ReadonlyMap<string, string>,
): Generator<string, void, undefined> {
  yield formatCsvLine(['by', 'group', 'bucket_at', ...SUM_COLUMNS, 'cost_usd', ...(keyNames ? ['key_name'] : [])]);
  for (const { group, ts, ...sums } of rows)
    yield formatCsvLine([
      by,
      group ?? '',
      ts === null ? '' : formatTimestamp(ts),
      ...SUM_COLUMNS.map((column) => sums[column]),
      formatExactDollars(sums.cost_micros),
      ...(keyNames ? [keyNames.get(group ?? '') ?? group ?? ''] : []),
    ]);
}
