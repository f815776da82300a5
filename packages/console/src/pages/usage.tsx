/** Usage and cost by key, model, provider, tag or day: a plot over time, and the table of `sluice usage`. */

import type { Usage as UsageRow } from '@gateway/admin/types';
import type { Sums } from '@gateway/store/rollups';
import type { ComponentType, JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { save } from '../exchanges/export.ts';
import { call, useLoaded } from '../lib/data.ts';
import { formatCost } from '../lib/format.ts';
import { formatRoute, route, setParameters } from '../lib/router.ts';
import type { PlotProps } from '../manage/plot.tsx';
import {
  add,
  type Bucket,
  buildSeries,
  formatUsageCsv,
  formatUsageJson,
  GROUPS,
  type Group,
  MAX_POINTS,
  MEASURES,
  type Measure,
  readMoment,
  sumRows,
} from '../manage/usage-data.ts';
import { Await, announcement, ScrollRegion } from '../ui/parts.tsx';
import '../manage/manage.css';

const RANGES = ['24h', '7d', '30d', '90d', '365d'] as const;

/** What the address says, with the defaults of `sluice usage`. */
function readQuery() {
  const { by = '', since = '7d', until = '', bucket = '', measure = '' } = route.value.parameters;
  return {
    by: GROUPS.find((group) => group === by) ?? 'model',
    since,
    until,
    bucket: bucket === 'hour' || bucket === 'day' ? bucket : chooseBucket(since),
    measure: measure in MEASURES ? (measure as Measure) : undefined, // a name of the table
  };
}

/** Hours for up to three days, else days. */
function chooseBucket(since: string): Bucket {
  const [, digits = '', unit = ''] = /^(\d+)([mhd])$/.exec(since) ?? [];
  return unit !== '' && (unit !== 'd' || Number(digits) <= 3) && (unit !== 'h' || Number(digits) <= 72) ? 'hour' : 'day';
}

/** The page of usage. */
export default function Usage(): JSX.Element {
  const { by, since, until, bucket, measure } = readQuery();
  const load = async (signal: AbortSignal) => {
    const query = { since, until };
    const [rows, split, counted, keyNames] = await Promise.all([
      call('GET usage', { signal, query: { ...query, by } }),
      call('GET usage', { signal, query: { ...query, by, bucket: by === 'day' ? 'day' : bucket } }),
      // A request has any number of tags, so their sums are not the sum of the requests.
      by === 'tag' ? call('GET usage', { signal, query: { ...query, by: 'provider' } }) : undefined,
      by === 'key' ? readKeyNames(signal) : undefined,
    ]);
    // With what was requested: until another request has ended, the address may already say something else.
    const now = Date.now();
    const range = [readMoment(since, now), until === '' ? now : readMoment(until, now)] as const;
    return { by, bucket, range, rows: rows.usage, split: split.usage, total: sumRows((counted ?? rows).usage), keyNames };
  };
  const state = useLoaded(load, [by, since, until, bucket]);
  return (
    <div class="page">
      <header class="section">
        <h1>Usage and cost</h1>
      </header>
      <Controls by={by} since={since} until={until} bucket={bucket} />
      <Await state={state}>{(report) => <Report {...report} measure={measure ?? chooseMeasure(report.total)} />}</Await>
    </div>
  );
}

/** Names of keys by their ids; the first thousand. */
async function readKeyNames(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const { keys } = await call('GET keys', { signal, query: { limit: 1000 } });
  return new Map(keys.map(({ id, name }) => [id, name]));
}

const chooseMeasure = ({ cost_micros, input_tokens, output_tokens }: Sums): Measure =>
  cost_micros > 0 ? 'cost' : input_tokens + output_tokens > 0 ? 'tokens' : 'requests';

interface ControlsProps {
  by: Group;
  since: string;
  until: string;
  bucket: Bucket;
}

function Controls({ by, since, until, bucket }: ControlsProps): JSX.Element {
  const isPreset = RANGES.some((range) => range === since) && until === '';
  return (
    <form class="row controls" aria-label="What is shown" onSubmit={(event) => event.preventDefault()}>
      <label>
        By{' '}
        <select value={by} onChange={(event) => setParameters({ by: event.currentTarget.value })}>
          {GROUPS.map((group) => (
            <option key={group}>{group}</option>
          ))}
        </select>
      </label>
      <label>
        Range{' '}
        <select
          value={isPreset ? since : ''}
          onChange={(event) => event.currentTarget.value !== '' && setParameters({ since: event.currentTarget.value, until: '' })}
        >
          {RANGES.map((range) => (
            <option key={range} value={range}>
              last {range}
            </option>
          ))}
          <option value="">other</option>
        </select>
      </label>
      <label>
        Since{' '}
        <input class="short" value={since} onChange={(event) => setParameters({ since: event.currentTarget.value.trim() })} />
      </label>
      <label>
        Until{' '}
        <input
          class="short"
          value={until}
          placeholder="now"
          onChange={(event) => setParameters({ until: event.currentTarget.value.trim() })}
        />
      </label>
      <label>
        Points{' '}
        <select
          value={by === 'day' ? 'day' : bucket}
          disabled={by === 'day'}
          onChange={(event) => setParameters({ bucket: event.currentTarget.value })}
        >
          <option value="hour">hours</option>
          <option value="day">days</option>
        </select>
      </label>
    </form>
  );
}

interface ReportProps {
  by: Group;
  bucket: Bucket;
  measure: Measure;
  range: readonly [since: number | undefined, until: number | undefined];
  rows: readonly UsageRow[];
  split: readonly UsageRow[];
  total: Sums;
  keyNames: ReadonlyMap<string, string> | undefined;
}

function Report({ by, bucket, measure, range, rows, split, total, keyNames }: ReportProps): JSX.Element {
  const label = (row: UsageRow): string =>
    by === 'day' ? (row.bucket_at ?? '').slice(0, 10) : keyNames?.get(row.group ?? '') || row.group || '(none)';
  const plot = useMemo(
    () =>
      buildSeries(split, { bucket: by === 'day' ? 'day' : bucket, measure, label: by === 'day' ? () => measure : label, range }),
    [split, measure],
  );
  if (total.requests === 0) return <p>No requests were completed in this time. A longer range may have some.</p>;
  const format = measure === 'cost' ? formatDollars : String;
  const exportAs = (kind: 'csv' | 'json'): void => {
    const text = (kind === 'csv' ? formatUsageCsv : formatUsageJson)(rows, by, keyNames);
    save(
      new Blob([text], { type: kind === 'csv' ? 'text/csv' : 'application/jsonl' }),
      `usage.${kind === 'csv' ? 'csv' : 'jsonl'}`,
    );
    announcement.value = `Exported ${rows.length} rows.`;
  };
  return (
    <>
      <div class="row controls">
        <label>
          Plot{' '}
          <select value={measure} onChange={(event) => setParameters({ measure: event.currentTarget.value })}>
            {Object.entries(MEASURES).map(([id, { title }]) => (
              <option key={id} value={id}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <span class="grow" />
        <button type="button" class="small" onClick={() => exportAs('csv')}>
          export CSV
        </button>
        <button type="button" class="small" onClick={() => exportAs('json')}>
          export JSON lines
        </button>
      </div>
      {plot.times.length > 0 ? (
        <figure>
          <LazyPlot times={plot.times} series={plot.series} format={format} />
          <figcaption class="visually-hidden">
            {MEASURES[measure].title} of {plot.times.length} {by === 'day' ? 'day' : bucket}s:{' '}
            {plot.series.map(({ label: name, values }) => `${name} ${format(add(values))}`).join('; ')}
          </figcaption>
        </figure>
      ) : (
        <p class="muted">The range has more than {MAX_POINTS} points; choose days to see a plot.</p>
      )}
      <UsageTable by={by} rows={rows} total={total} label={label} />
      <Remarks by={by} total={total} />
    </>
  );
}

const formatDollars = (dollars: number): string => formatCost(Math.round(dollars * 1e6));

type PlotComponent = ComponentType<PlotProps>;

/** Loads the code of the plot when it is first shown. The table does not wait for it. */
function LazyPlot(props: PlotProps): JSX.Element {
  const [state, setState] = useState<{ component?: PlotComponent; message?: string }>({});
  useEffect(() => {
    import('../manage/plot.tsx').then(
      ({ default: component }) => setState({ component }),
      (error: unknown) => setState({ message: String(error) }),
    );
  }, []);
  const { component: Plot, message } = state;
  if (message !== undefined) return <p class="muted">The plot cannot be loaded: {message}</p>;
  return Plot ? <Plot {...props} /> : <div class="plot" />;
}

const COLUMNS: readonly { title: string; read: (sums: Sums) => number; format?: (value: number) => string }[] = [
  { title: 'requests', read: ({ requests }) => requests },
  { title: 'errors', read: ({ errors }) => errors },
  { title: 'input', read: ({ input_tokens }) => input_tokens },
  { title: 'cached', read: ({ cache_read_tokens }) => cache_read_tokens },
  { title: 'output', read: ({ output_tokens }) => output_tokens },
  { title: 'reasoning', read: ({ reasoning_tokens }) => reasoning_tokens },
  { title: 'unpriced', read: ({ unpriced }) => unpriced },
  { title: 'cost', read: ({ cost_micros }) => cost_micros, format: (micros) => `$${(micros / 1e6).toFixed(6)}` },
];

const GROUPED = new Intl.NumberFormat('en-US');

/** Rows of the table; the export has all. */
const MAX_ROWS = 500;

interface UsageTableProps {
  by: Group;
  rows: readonly UsageRow[];
  total: Sums;
  label: (row: UsageRow) => string;
}

function UsageTable({ by, rows, total, label }: UsageTableProps): JSX.Element {
  const cells = (sums: Sums): JSX.Element[] =>
    COLUMNS.map(({ title, read, format = (value: number) => GROUPED.format(value) }) => (
      <td key={title} class="number" data-value={read(sums)}>
        {format(read(sums))}
      </td>
    ));
  return (
    <ScrollRegion label={`Usage by ${by}`}>
      <table class="figures usage">
        <thead>
          <tr>
            <th scope="col">{by}</th>
            {COLUMNS.map(({ title }) => (
              <th key={title} scope="col" class="number">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, MAX_ROWS).map((row) => (
            <tr key={`${row.group} ${row.bucket_at}`}>
              <th scope="row" class="cut">
                <GroupLink by={by} row={row} text={label(row)} />
              </th>
              {cells(row)}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">total</th>
            {cells(total)}
          </tr>
        </tfoot>
      </table>
      {rows.length > MAX_ROWS && <p class="muted">{rows.length - MAX_ROWS} more rows are in the exports.</p>}
    </ScrollRegion>
  );
}

/** The exchanges of a group, where the language of filters can name it. */
function GroupLink({ by, row: { group }, text }: { by: Group; row: UsageRow; text: string }): JSX.Element {
  if (by === 'day' || !group || /["\\]/.test(group)) return <>{text}</>;
  const filter = `${by}:${/[\s*]/.test(group) ? `"${group}"` : group}`;
  return <a href={formatRoute({ page: 'exchanges', parameters: { filter } })}>{text}</a>;
}

/** What a reader of the sums has to know, as `sluice usage` says it. */
function Remarks({ by, total: { uncertain, unpriced, requests } }: { by: Group; total: Sums }): JSX.Element {
  return (
    <div class="muted">
      {uncertain > 0 && (
        <p>
          Token counts of {uncertain} of {requests} requests are estimated or uncertain.
        </p>
      )}
      {unpriced > 0 && (
        <p>
          The cost of {unpriced} of {requests} requests is unknown and not included; the page <a href="#/models">Models</a> shows
          what is known.
        </p>
      )}
      {by === 'tag' && <p>A request counts for each of its tags; the total counts every request once, also without a tag.</p>}
      <p>Times are in UTC and rounded to whole hours.</p>
    </div>
  );
}
