/** Usage as tables, series and files: the sums of `sluice usage`, without elements. */

import type { Usage } from '@gateway/admin/types';
import { formatCsvLine, formatExactDollars } from '@gateway/store/csv';
import { SUM_COLUMNS, type Sums } from '@gateway/store/rollups';

/** What usage is grouped by. */
export const GROUPS = ['model', 'provider', 'key', 'tag', 'day'] as const;

/** One of `GROUPS`. */
export type Group = (typeof GROUPS)[number];

/** What the plot shows. */
export const MEASURES = {
  cost: { title: 'cost in US dollars', read: (sums: Sums) => sums.cost_micros / 1e6 },
  tokens: { title: 'input and output tokens', read: (sums: Sums) => sums.input_tokens + sums.output_tokens },
  requests: { title: 'requests', read: (sums: Sums) => sums.requests },
  errors: { title: 'errors', read: (sums: Sums) => sums.errors },
} as const;

/** One of `MEASURES`. */
export type Measure = keyof typeof MEASURES;

/** Adds up rows. */
export function sumRows(rows: readonly Sums[]): Sums {
  const total = Object.fromEntries(SUM_COLUMNS.map((column) => [column, 0])) as Sums; // every column, by the list of them
  for (const row of rows) for (const column of SUM_COLUMNS) total[column] += row[column];
  return total;
}

/** A line of the plot. */
export interface Series {
  readonly label: string;
  readonly values: readonly number[];
}

/** Lines that a plot can tell apart; the rest is one more. */
const MAX_LINES = 6;

const BUCKET_SECONDS = { hour: 3600, day: 86_400 } as const;

/** The length of a bucket. */
export type Bucket = keyof typeof BUCKET_SECONDS;

/** Points of a plot; a longer range with hours is not drawn. */
export const MAX_POINTS = 5000;

/** What the lines of a plot are made by. */
interface SeriesOptions {
  readonly bucket: Bucket;
  readonly measure: Measure;
  readonly label: (row: Usage) => string;
  /** Milliseconds since 1970; undefined where the rows decide. */
  readonly range: readonly [since: number | undefined, until: number | undefined];
}

/** Lines over time, the largest first. Hours and days without requests are 0, so that the axis is one of time. */
export function buildSeries(
  rows: readonly Usage[],
  { bucket, measure, label, range }: SeriesOptions,
): { times: readonly number[]; series: readonly Series[] } {
  const times = listTimes(rows, BUCKET_SECONDS[bucket], range);
  const places = new Map(times.map((time, index) => [time, index]));
  const { read } = MEASURES[measure];
  const lines = new Map<string, number[]>();
  for (const row of rows) {
    const place = places.get(toSeconds(row.bucket_at));
    if (place === undefined) continue;
    const values = lines.get(label(row)) ?? times.map(() => 0);
    values[place] = (values[place] ?? 0) + read(row);
    lines.set(label(row), values);
  }
  const sorted = [...lines].map(([name, values]) => ({ label: name, values })).sort((a, b) => add(b.values) - add(a.values));
  if (sorted.length <= MAX_LINES) return { times, series: sorted };
  const others = sorted.slice(MAX_LINES - 1);
  const rest = times.map((_, index) => add(others.map(({ values }) => values[index] ?? 0)));
  return { times, series: [...sorted.slice(0, MAX_LINES - 1), { label: `${others.length} others`, values: rest }] };
}

/** The sum of a line. */
export const add = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

const toSeconds = (iso: string | null): number => Date.parse(iso ?? '') / 1000;

function listTimes(rows: readonly Usage[], step: number, [since, until]: SeriesOptions['range']): number[] {
  const given = rows.map(({ bucket_at }) => toSeconds(bucket_at)).filter((time) => !Number.isNaN(time));
  const ends = [since, until].flatMap((ms) => (ms === undefined ? [] : [Math.floor(ms / 1000 / step) * step]));
  const times = [...given, ...ends];
  const first = times.reduce((least, time) => Math.min(least, time), Number.POSITIVE_INFINITY);
  const last = times.reduce((most, time) => Math.max(most, time), Number.NEGATIVE_INFINITY);
  if (first > last || (last - first) / step >= MAX_POINTS) return [];
  return Array.from({ length: (last - first) / step + 1 }, (_, index) => first + index * step);
}

const AGES: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** The moment of `7d` or `2026-11-17`; undefined when it is written in another way, which the gateway may know. */
export function readMoment(text: string, now: number): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  const moment = digits === '' ? Date.parse(text) : now - Number(digits) * (AGES[unit] ?? 0);
  return Number.isNaN(moment) ? undefined : moment;
}

/** The file of `sluice usage --csv`. */
export function formatUsageCsv(rows: readonly Usage[], by: Group, keyNames?: ReadonlyMap<string, string>): string {
  const head = ['by', 'group', 'bucket_at', ...SUM_COLUMNS, 'cost_usd', ...(keyNames ? ['key_name'] : [])];
  const lines = rows.map((row) => [
    by,
    row.group ?? '',
    row.bucket_at ?? '',
    ...SUM_COLUMNS.map((column) => row[column]),
    formatExactDollars(row.cost_micros),
    ...(keyNames ? [keyNames.get(row.group ?? '') ?? row.group ?? ''] : []),
  ]);
  return [head, ...lines].map(formatCsvLine).join('');
}

/** The lines of `sluice usage --json`. */
export const formatUsageJson = (rows: readonly Usage[], by: Group, keyNames?: ReadonlyMap<string, string>): string =>
  rows
    .map((row) => {
      const name = keyNames && { key_name: keyNames.get(row.group ?? '') ?? row.group };
      const sums = Object.fromEntries(SUM_COLUMNS.map((column) => [column, row[column]]));
      return `${JSON.stringify({ by, group: row.group, ...name, bucket_at: row.bucket_at, ...sums })}\n`;
    })
    .join('');
