/** The charts of docs/performance.md: which rows and subjects they show. A chart without any data is dropped. */
import { drawBars } from './bars.js';
import { drawCurves } from './curves.js';
import { findGoalValue, findProgram, findResult, findRow, listGroup } from './data.js';
import { describeBars, describeCurves } from './describe.js';
import { nameOf, PROTOCOLS, readDirection, readSize, roleOf, SIZE_KB, SIZES } from './names.js';

const US = ['sluice', 'sluice-full'];
const COMPARED = ['nginx', 'haproxy', 'undici', 'hand', 'portkey', ...US];
const CURVES = ['nginx', 'undici', 'hand', 'portkey', ...US];
const WAYS = [
  ['pass', 'Passing'],
  ['anthropic>chat', 'Converting, Anthropic → Chat'],
];

const BAR_NOTE = 'Bars: medians. Whiskers: p10 to p90; an arrow: p90 is outside. Green lines: goals.';
const RATIO_NOTE = `${BAR_NOTE} 2.0x: two times node:http + undici.`;

/** The bars of a row; none when it was not measured. */
export function buildBars(run, id, subjects = COMPARED) {
  const row = findRow(run, id);
  return subjects.flatMap((subject) => {
    const result = findResult(row, subject);
    if (!result) return [];
    const ratio = subject === row.reference ? undefined : result.ratio;
    return [
      { subject, label: nameOf(subject), role: roleOf(subject), value: result.value, ratio, goal: findGoalValue(row, subject) },
    ];
  });
}

/** Panels with at least one bar. */
const buildPanels = (run, panels) =>
  panels.map(([id, title, unit]) => ({ title, unit, bars: buildBars(run, id) })).filter(({ bars }) => bars.length > 0);

const keepBlocks = (blocks) => blocks.filter(({ panels }) => panels.length > 0);

function barChart(chart) {
  const blocks = keepBlocks(chart.blocks);
  if (blocks.length === 0) return [];
  const whole = { ...chart, blocks, description: describeBars({ ...chart, blocks }) };
  return [{ name: chart.name, alt: whole.description, title: chart.title, draw: (theme) => drawBars(theme, whole) }];
}

function curveChart(chart) {
  const panels = chart.panels.filter(({ curves }) => curves.length > 0);
  if (panels.length === 0) return [];
  const whole = { ...chart, panels, description: describeCurves({ ...chart, panels }) };
  return [{ name: chart.name, alt: whole.description, title: chart.title, draw: (theme) => drawCurves(theme, whole) }];
}

const sizeBlocks = (run, way) =>
  [
    ['0.1k', '1k'],
    ['100k', '1m'],
  ].map((sizes) => ({
    panels: buildPanels(
      run,
      sizes.map((size) => [`json-${size} ${way}`, `${SIZES[size]} request`, 'µs']),
    ),
  }));

const requestChart = (run, name, way, title) =>
  barChart({
    name,
    title,
    subtitle:
      'CPU time of all threads a JSON request, by size of the request, µs. Every panel has its own scale from 0. Less is better.',
    notes: [RATIO_NOTE],
    blocks: sizeBlocks(run, way),
  });

/** A curve over rows whose ids differ in one number. */
const buildCurve = (run, ids, subject, read = ({ value }) => value) => ({
  label: nameOf(subject),
  paint: ['roles', roleOf(subject)],
  isUs: roleOf(subject) === 'us',
  points: ids.flatMap(([id, x]) => {
    const result = findResult(findRow(run, id), subject);
    const value = result && read(result);
    return value ? [{ x, value }] : [];
  }),
});

/** Curves with at least one point. */
const buildCurves = (run, ids, subjects = CURVES) =>
  subjects.map((subject) => buildCurve(run, ids, subject)).filter(({ points }) => points.length > 0);

const withCommas = (value) => value.toLocaleString('en');
const STREAMS_BEFORE = [30, 300, 1000, 3000];

const firstByteChart = (run) =>
  curveChart({
    name: 'first-byte',
    title: 'Time that is added to the first byte of a stream',
    subtitle:
      'One stream at a time, after a process has served so many streams: its code is compiled while it runs. Less is better.',
    notes: ['Points: medians. Bands: p10 to p90.'],
    columns: 2,
    labels: 168,
    plot: 230,
    isShared: true,
    panels: WAYS.map(([way, title]) => ({
      title,
      unit: 'ms',
      xTitle: 'streams served before',
      xs: STREAMS_BEFORE.map((count) => [count, withCommas(count)]),
      curves: buildCurves(
        run,
        STREAMS_BEFORE.map((count) => [`first-${count} ${way}`, count]),
      ),
    })),
  });

const pacedChart = (run) =>
  barChart({
    name: 'paced',
    title: '500 streams of 20 chunks a second',
    subtitle:
      'CPU time of a chunk, and its delay between the upstream and the client. Every panel has its own scale from 0. Less is better.',
    notes: [RATIO_NOTE],
    blocks: WAYS.map(([way, title]) => ({
      title,
      panels: buildPanels(run, [
        [`paced ${way}`, 'CPU a chunk', 'µs'],
        [`paced ${way} p50`, 'Delay, p50', 'ms'],
        [`paced ${way} p99`, 'Delay, p99', 'ms'],
      ]),
    })),
  });

const memoryChart = (run) =>
  barChart({
    name: 'memory',
    title: 'Memory of a stream',
    subtitle: 'Resident memory at 2,000 streams, and what is alive after a garbage collection. Less is better.',
    notes: [RATIO_NOTE],
    blocks: WAYS.map(([way, title]) => ({
      title,
      panels: buildPanels(run, [
        [`rss ${way}`, 'Resident memory', 'KB a stream'],
        [`heap ${way}`, 'Live heap', 'KB a stream'],
      ]),
    })),
  });

const short = (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e4 ? `${value / 1e3}k` : withCommas(value));

/** The size in the name of a subject such as `10,000 keys`. */
const readCount = (subject) => Number(/^[\d,]+/.exec(subject)?.[0].replaceAll(',', ''));

/** A curve over the subjects of one row, which are sizes. */
function buildGrowthCurve(run, id) {
  const row = findRow(run, id);
  const program = row && findProgram(row);
  const points = (row?.results ?? []).flatMap(({ subject, value }) => (value ? [{ x: readCount(subject), value }] : []));
  return points.length === 0
    ? []
    : [{ label: nameOf(program), paint: ['roles', roleOf(program)], isUs: roleOf(program) === 'us', points }];
}

function growthPanel(run, title, unit, xTitle, ids) {
  const curves = ids.flatMap((id) => buildGrowthCurve(run, id));
  const counts = [...new Set(curves.flatMap(({ points }) => points.map(({ x }) => x)))].toSorted((a, b) => a - b);
  return { title, unit, xTitle, xs: counts.map((count) => [count, short(count)]), curves };
}

const growthChart = (run) =>
  curveChart({
    name: 'growth',
    title: 'What grows with use, and what does not',
    subtitle:
      'CPU time beside the number of client keys, ledger entries and open streams; requests a second beside the number of workers.',
    notes: ['Points: medians. Bands: p10 to p90. Across: log scale.'],
    columns: 2,
    labels: 150,
    plot: 150,
    panels: [
      growthPanel(run, 'CPU a request, by client keys', 'µs', 'client keys', ['growth-keys']),
      growthPanel(run, 'CPU a request, by entries in the ledger', 'µs', 'entries in the ledger', ['growth-ledger']),
      growthPanel(
        run,
        'CPU a paced chunk, by open streams',
        'µs',
        'open streams',
        ['undici', ...US].map((subject) => `growth-streams ${subject}`),
      ),
      growthPanel(run, 'Requests a second, by workers', 'more is better', 'workers', ['growth-workers']),
    ],
  });

/** Conversions of requests by the library: one panel a source, one curve a target. */
function conversionPanels(run) {
  const rows = listGroup(run, 'request').flatMap((row) => {
    const [direction, size] = [readDirection(row.id), readSize(row.id)];
    const result = findResult(row, 'Sluice');
    return direction && size && result?.ratio ? [{ row, ...direction, size, value: result.ratio }] : [];
  });
  return Object.keys(PROTOCOLS).map((from) => {
    const own = rows.filter((row) => row.from === from);
    return {
      title: `From ${PROTOCOLS[from]}`,
      unit: 'times parse + stringify',
      xTitle: 'size of the request',
      xs: Object.keys(SIZES)
        .filter((size) => own.some((row) => row.size === size))
        .map((size) => [SIZE_KB[size], SIZES[size]]),
      curves: targetCurves(own),
      marks: goalMarks(own),
    };
  });
}

const targetCurves = (rows) =>
  Object.keys(PROTOCOLS).flatMap((to) => {
    const points = rows.filter((row) => row.to === to).map(({ size, value }) => ({ x: SIZE_KB[size], value }));
    if (points.length === 0) return [];
    return [{ label: `to ${PROTOCOLS[to]}`, paint: ['protocols', to], points: points.toSorted((a, b) => a.x - b.x) }];
  });

function goalMarks(rows) {
  const goals = rows.flatMap(({ row }) => row.goals.filter(({ subject, of }) => subject === 'Sluice' && of === row.reference));
  return [...new Set(goals.map(({ most }) => most))].map((most) => ({ value: most, label: `goal ${most}x` }));
}

const conversionChart = (run) =>
  curveChart({
    name: 'conversion',
    title: 'Conversion of a request by the library',
    subtitle: 'CPU time from bytes to bytes, as a multiple of JSON.parse and JSON.stringify of the same request. Less is better.',
    notes: ['Points: medians. Bands: p10 to p90. Dashed: the goal.'],
    columns: 2,
    labels: 136,
    plot: 170,
    isShared: true,
    panels: conversionPanels(run),
  });

/** `{ name, title, alt, draw(theme) }` for each chart that has data. */
export const buildCharts = ({ gateway, library }) => [
  ...requestChart(gateway, 'passing', 'pass', 'CPU a request, passing'),
  ...requestChart(gateway, 'converting', 'anthropic>chat', 'CPU a request, converting from Anthropic to Chat'),
  ...firstByteChart(gateway),
  ...pacedChart(gateway),
  ...memoryChart(gateway),
  ...growthChart(gateway),
  ...conversionChart(library),
];
