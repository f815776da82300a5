/** What all charts share: width, title, notes and the height that results. */
import { formatNumber } from '../method/statistics.js';
import { document, spans, text } from './svg.js';

export const WIDTH = 920;
export const PAD = 24;
const TITLE = 34;
const SUBTITLE = 55;
const NOTE_LINE = 17;
/** Where the first block of a chart begins. */
export const TOP = 74;

/** A chart around blocks that end at `bottom`. */
export function frame(theme, { title, subtitle, description, notes = [] }, parts, bottom) {
  const noteTop = bottom + 24;
  const body = [
    text(PAD, TITLE, title, { 'font-size': 17, 'font-weight': 600, fill: theme.text }),
    text(PAD, SUBTITLE, subtitle, { 'font-size': 12.5, fill: theme.muted }),
    ...parts,
    ...notes.map((note, i) => text(PAD, noteTop + i * NOTE_LINE, note, { 'font-size': 11.5, fill: theme.muted })),
  ];
  const height = notes.length > 0 ? noteTop + (notes.length - 1) * NOTE_LINE + 20 : bottom + 18;
  return document({ width: WIDTH, height: Math.ceil(height), title, description, background: theme.background, body });
}

/** `CPU a request, µs`: the unit is muted. */
export const panelTitle = (theme, x, y, title, unit) =>
  spans(
    x,
    y,
    [
      [title, { 'font-weight': 600, fill: theme.text }],
      [unit ? `  ${unit}` : '', { fill: theme.muted }],
    ].filter(([content]) => content !== ''),
    { 'font-size': 12.5, 'xml:space': 'preserve' },
  );

/** A whole number. */
export const formatCount = (count) => count.toLocaleString('en');

/** Short: an axis has no room for three digits that are zero. */
export const formatTick = (value) => (value >= 1000 ? value.toLocaleString('en') : String(Number(value.toPrecision(3))));

/** Two digits below 1: more would be noise. */
export const formatFigure = (value) => (Math.abs(value) < 1 ? String(Number(value.toPrecision(2))) : formatNumber(value));

/** `0.84x`, `2.4x`, `20x` */
export const formatRatio = (value) =>
  `${value >= 10 ? Math.round(value).toLocaleString('en') : value.toFixed(value < 1 ? 2 : 1)}x`;
