/**
 * Curves with a band from p10 to p90 and their names at the end. The panels of a chart are in a grid.
 *
 * @typedef {{ label: string, paint: [palette: string, key: string], isUs?: boolean, points: { x: number, value: import('../method/results.js').Summary }[] }} Curve
 * @typedef {{ title: string, unit: string, xTitle: string, xs: [number, string][], curves: Curve[], marks?: { value: number, label: string }[] }} Panel
 */
import { formatFigure, formatTick, frame, PAD, panelTitle, TOP, WIDTH } from './frame.js';
import { chooseScale, logScale, spreadLabels } from './scale.js';
import { element, line, path, spans, text } from './svg.js';

const AXIS = 46;
const GAP = 28;
const TITLE = 22;
const FOOT = 42;
const LABEL_LINE = 15;

/** @param {{ title: string, subtitle: string, description: string, notes?: string[], panels: Panel[], columns: number, labels: number, plot: number, isShared?: boolean }} chart
 *   `labels`: the width for the names of curves; `plot`: the height of a panel; `isShared`: all panels have the same axis. */
export function drawCurves(theme, chart) {
  const { panels, columns, plot } = chart;
  const width = (WIDTH - 2 * PAD - GAP * (columns - 1)) / columns;
  const height = TITLE + plot + FOOT;
  const shared = chart.isShared ? panels.flatMap(listValues) : undefined;
  const parts = panels.flatMap((panel, i) => {
    const x = PAD + (i % columns) * (width + GAP);
    const y = TOP + Math.floor(i / columns) * (height + 12);
    return drawPanel(theme, panel, { x, y, width, plot, labels: chart.labels, values: shared ?? listValues(panel) });
  });
  const rows = Math.ceil(panels.length / columns);
  return frame(theme, chart, parts, TOP + rows * (height + 12) - 12);
}

const listValues = ({ curves, marks = [] }) => [
  ...curves.flatMap(({ points }) => points.flatMap(({ value }) => [value.median, value.p10, value.p90])),
  ...marks.map(({ value }) => value),
];

function drawPanel(theme, { curves: given, ...panel }, { x, y, width, plot, labels, values }) {
  const [left, right] = [x + AXIS, x + width - labels];
  const [top, bottom] = [y + TITLE, y + TITLE + plot];
  const across = placeAcross(panel.xs, [left + 8, right - 8]);
  const up = chooseScale(values, [bottom, top]);
  const curves = given.map((curve) => ({ ...curve, colour: theme[curve.paint[0]][curve.paint[1]] }));
  const unit = up.isLog ? `${panel.unit}, log scale` : panel.unit;
  return [
    panelTitle(theme, x, y + 8, panel.title, unit),
    ...up.ticks.flatMap((tick) => drawTick(theme, up.place(tick), [left, right], tick)),
    line(left, bottom, right, bottom, { stroke: theme.axis }),
    ...panel.xs.map(([value, label]) =>
      text(across(value), bottom + 16, label, { 'text-anchor': 'middle', 'font-size': 11, fill: theme.muted }),
    ),
    text((left + right) / 2, bottom + 33, panel.xTitle, { 'text-anchor': 'middle', 'font-size': 11.5, fill: theme.muted }),
    ...(panel.marks ?? []).map((mark) => drawMark(theme, mark, up, [left, right])),
    ...curves.map((curve) => drawBand(curve, across, up)),
    ...curves.map((curve) => drawCurve(theme, curve, across, up)),
    ...drawNames(theme, curves, across, up, { top, bottom, right: right - 8 }),
  ];
}

function placeAcross(xs, range) {
  const values = xs.map(([value]) => value);
  if (values.length < 2) return () => (range[0] + range[1]) / 2;
  return logScale([Math.min(...values), Math.max(...values)], range).place;
}

const drawTick = (theme, y, [left, right], tick) => [
  line(left, y, right, y, { stroke: theme.grid }),
  text(left - 7, y + 4, formatTick(tick), { 'text-anchor': 'end', 'font-size': 11, fill: theme.muted }),
];

const drawMark = (theme, { value, label }, up, [left, right]) =>
  line(left, up.place(value), right, up.place(value), { stroke: theme.goal, 'stroke-width': 1.3, 'stroke-dasharray': '5 3' }) +
  text(left + 4, up.place(value) - 4, label, { 'font-size': 11, fill: theme.goal });

function drawBand({ points, colour }, across, up) {
  const known = points.filter(({ value }) => value.count > 1);
  if (known.length < 2) return '';
  const edge = (key) => known.map(({ x, value }) => [across(x), up.place(value[key])]);
  return path([...edge('p90'), ...edge('p10').toReversed()], { fill: colour, 'fill-opacity': 0.11 });
}

const drawCurve = (theme, { points, colour, isUs }, across, up) => {
  const places = points.map(({ x, value }) => [across(x), up.place(value.median)]);
  return (
    path(places, { stroke: colour, 'stroke-width': isUs ? 2.6 : 1.8, 'stroke-linejoin': 'round' }) +
    places.map(([cx, cy]) => element('circle', { cx, cy, r: isUs ? 3.6 : 2.8, fill: colour, stroke: theme.background })).join('')
  );
};

/** Names with the last figure, at the height of the last point or as near as there is room; a thin line leads to a name that was moved. */
function drawNames(theme, curves, across, up, { top, bottom, right }) {
  const ends = curves.map(({ points }) => points.at(-1));
  const places = ends.map(({ value }) => up.place(value.median));
  const moved = spreadLabels(places, LABEL_LINE, [top + 2, bottom - 2]);
  return curves.map(({ label, colour, isUs }, i) => {
    const [x, value] = [across(ends[i].x), ends[i].value.median];
    return (
      line(x + 6, places[i], right + 18, moved[i], { stroke: colour, 'stroke-opacity': 0.55 }) +
      spans(
        right + 22,
        moved[i] + 4,
        [
          [formatFigure(value), { fill: theme.text, 'font-weight': 600 }],
          [label, { fill: colour, dx: 5, 'font-weight': isUs ? 600 : undefined }],
        ],
        { 'font-size': 12 },
      )
    );
  });
}
