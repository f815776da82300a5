/**
 * Horizontal bars from 0, with whiskers from p10 to p90 and a line at the goal. A chart is a column of blocks; the panels of a block are beside
 * each other and share the names of their rows.
 *
 * @typedef {import('../method/results.js').Summary} Summary
 * @typedef {{ subject: string, label: string, role: string, value: Summary, ratio?: Summary, goal?: number }} Bar
 * @typedef {{ title: string, unit: string, bars: Bar[] }} Panel
 * @typedef {{ title?: string, panels: Panel[] }} Block
 */
import { formatFigure, formatRatio, formatTick, frame, PAD, panelTitle, TOP, WIDTH } from './frame.js';
import { linearScale } from './scale.js';
import { element, line, round, spans, text } from './svg.js';

const ROW = 24;
const BAR = 13;
const NAMES = 146;
const GAP = 26;
/** Room for the figures at the right of the longest bar. */
const FIGURES = 84;
const PANEL_TITLE = 20;
const AXIS = 24;
const BLOCK_TITLE = 24;
const BLOCK_GAP = 20;
/** A whisker that is longer than this many times the largest median or goal ends in an arrow: bars would be too short to compare. */
const LONGEST_WHISKER = 1.4;

/** @param {{ title: string, subtitle: string, description: string, notes?: string[], blocks: Block[] }} chart */
export function drawBars(theme, chart) {
  const parts = [];
  let y = TOP;
  for (const block of chart.blocks) {
    parts.push(...drawBlock(theme, block, y));
    y += heightOf(block) + BLOCK_GAP;
  }
  return frame(theme, chart, parts, y - BLOCK_GAP);
}

const titleHeight = ({ title }) => (title ? BLOCK_TITLE : 0);
const heightOf = (block) => titleHeight(block) + PANEL_TITLE + listRows(block).length * ROW + AXIS;

/** The subjects of a block, in the order of its panels. */
const listRows = ({ panels }) => [
  ...new Map(panels.flatMap(({ bars }) => bars.map(({ subject, label, role }) => [subject, { subject, label, role }]))).values(),
];

function drawBlock(theme, block, top) {
  const rows = listRows(block);
  const width = (WIDTH - 2 * PAD - NAMES - GAP * (block.panels.length - 1)) / block.panels.length;
  const head = top + titleHeight(block);
  const first = head + PANEL_TITLE;
  const names = rows.map(({ label, role }, i) =>
    text(PAD + NAMES - 12, first + i * ROW + ROW / 2 + 4, label, {
      'text-anchor': 'end',
      'font-size': 12.5,
      'font-weight': role === 'us' ? 600 : undefined,
      fill: role === 'us' ? theme.roles.us : theme.text,
    }),
  );
  const panels = block.panels.flatMap((panel, i) =>
    drawPanel(theme, panel, rows, { x: PAD + NAMES + i * (width + GAP), head, first, width }),
  );
  const title = block.title
    ? [text(PAD, top + 13, block.title, { 'font-size': 13.5, 'font-weight': 600, fill: theme.text })]
    : [];
  return [...title, ...names, ...panels];
}

function drawPanel(theme, panel, rows, { x, head, first, width }) {
  const scale = buildScale(panel, [x, x + width - FIGURES]);
  const bottom = first + rows.length * ROW;
  const top = (subject) => first + rows.findIndex((row) => row.subject === subject) * ROW;
  const bars = panel.bars.map((bar) => ({ ...bar, y: top(bar.subject) + ROW / 2 }));
  const missing = rows.filter(({ subject }) => !panel.bars.some((bar) => bar.subject === subject));
  return [
    panelTitle(theme, x, head + 9, panel.title, panel.unit),
    ...scale.ticks.flatMap((tick) => drawTick(theme, scale.place(tick), first, bottom, tick)),
    ...bars.map((bar) => drawBar(theme, bar, scale)),
    twice(theme, bars.map((bar) => whiskerOf(bar, scale)).join(''), { stroke: theme.text, 'stroke-width': 1.2 }),
    twice(theme, bars.map((bar) => goalOf(bar, scale)).join(''), { stroke: theme.goal, 'stroke-width': 2 }),
    element('g', { fill: theme.text }, bars.map((bar) => drawFigures(theme, bar, scale)).join('')),
    ...missing.map(({ subject }) => drawMissing(theme, x, top(subject))),
  ];
}

function buildScale({ bars }, range) {
  const most = Math.max(0, ...bars.flatMap(({ value, goal = 0 }) => [value.median, goal]));
  const furthest = Math.max(most, ...bars.map(({ value }) => value.p90));
  return linearScale(Math.min(furthest, most * LONGEST_WHISKER), range);
}

const drawTick = (theme, x, first, bottom, tick) => [
  line(x, first, x, bottom, { stroke: tick === 0 ? theme.axis : theme.grid }),
  text(x, bottom + 14, formatTick(tick), { 'text-anchor': 'middle', 'font-size': 11, fill: theme.muted }),
];

const drawMissing = (theme, x, y) => text(x + 6, y + ROW / 2 + 4, 'not measured', { 'font-size': 11, fill: theme.muted });

const drawBar = (theme, { role, value, y }, scale) =>
  element('rect', {
    x: scale.place(0),
    y: y - BAR / 2,
    width: Math.max(1, scale.place(value.median) - scale.place(0)),
    height: BAR,
    fill: theme.roles[role],
  });

/** Lines with an edge in the colour of the background, so that they are visible on a bar and beside it. */
function twice(theme, d, attributes) {
  if (d === '') return '';
  const edge = { stroke: theme.background, 'stroke-width': attributes['stroke-width'] + 2 };
  return element('path', { d, fill: 'none', ...edge }) + element('path', { d, fill: 'none', ...attributes });
}

/** From p10 to p90; an arrow at the end of the axis when p90 is outside. */
function whiskerOf({ value: { p10, p90, count }, y }, scale) {
  if (count < 2) return '';
  const [from, to] = [round(scale.place(p10)), round(scale.place(p90))];
  const end = p90 > scale.top * (1 + 1e-9) ? 'm-4 -3.5l4 3.5l-4 3.5' : 'm0 -3v6';
  return `M${from} ${round(y - 3)}v6M${from} ${round(y)}H${to}${end}`;
}

const goalOf = ({ goal, y }, scale) =>
  goal === undefined ? '' : `M${round(scale.place(goal))} ${round(y - ROW / 2 + 1.5)}v${round(ROW - 3)}`;

/** Beside the bar, its whisker and its goal. */
function drawFigures(theme, { value, ratio, goal = 0, y }, scale) {
  const furthest = Math.max(scale.place(value.median), scale.place(goal), value.count > 1 ? scale.place(value.p90) + 3 : 0);
  const figures = [
    [formatFigure(value.median), { 'font-weight': 600 }],
    ...(ratio ? [[formatRatio(ratio.median), { fill: theme.muted, dx: 5 }]] : []),
  ];
  return spans(furthest + 7, y + 4, figures);
}
