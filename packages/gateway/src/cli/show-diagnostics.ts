import { type Diagnostic, type Note, RULES, type Severity } from '@sluice/core';
import type { Colors } from './colors.ts';
import { oneLine } from './escape.ts';
import { wrap } from './layout.ts';

interface TableStyle {
  colors: Colors;
  columns: number | undefined;
}

const PAINT = { error: 'red', warning: 'yellow', info: 'blue' } as const;
PAINT satisfies Record<Severity, keyof Colors>;

const WORD = { error: 'error', warning: 'warn', info: 'info' } as const;
WORD satisfies Record<Severity, string>;

const RANK = { error: 0, warning: 1, info: 2 } as const;
RANK satisfies Record<Severity, number>;

/** A message column narrower than this goes under its row. */
const NARROWEST_MESSAGE = 28;

/** What was wrong with the stream: the worst first, then by place. */
export function showDiagnostics(diagnostics: readonly Diagnostic[], style: TableStyle): string {
  const rows = diagnostics
    .map((met) => ({ ...met, severity: met.severity ?? RULES[met.rule].severity }))
    .toSorted((a, b) => RANK[a.severity] - RANK[b.severity] || a.offset - b.offset)
    .map(({ rule, severity, message, count, offset }) => ({
      cells: [WORD[severity], rule],
      paint: style.colors[PAINT[severity]],
      message,
      place: `(${count > 1 ? `×${count}, from ` : ''}byte ${offset})`,
    }));
  return table('departures from the standard', rows, style);
}

/** What was changed or left out while reading. */
export function showNotes(notes: readonly Note[], style: TableStyle): string {
  const rows = notes.map(({ code, path, message }) => ({
    cells: [code.toLowerCase(), path],
    paint: style.colors.yellow,
    message,
    place: '',
  }));
  return table('notes', rows, style);
}

interface Row {
  cells: string[];
  paint: (text: string) => string;
  message: string;
  /** Stands behind the message and is never broken. */
  place: string;
}

function table(title: string, rows: readonly Row[], { colors, columns }: TableStyle): string {
  if (rows.length === 0) return '';
  const widths = (rows[0]?.cells ?? []).map((_, at) => Math.max(...rows.map(({ cells }) => oneLine(cells[at] ?? '').length)));
  const lead = widths.reduce((sum, width) => sum + width + 2, 2);
  const room = columns === undefined ? undefined : columns - lead;
  const isStacked = room !== undefined && room < NARROWEST_MESSAGE;
  const lines = rows.flatMap((row) => {
    const cells = row.cells.map((cell, at) => row.paint(isStacked ? oneLine(cell) : oneLine(cell).padEnd(widths[at] ?? 0)));
    const left = `  ${cells.join('  ')}`;
    if (isStacked)
      return [left, ...wrapMessage(row, columns === undefined ? columns : columns - 4, colors).map((line) => `    ${line}`)];
    const [first = '', ...rest] = wrapMessage(row, room, colors);
    return [`${left}  ${first}`, ...rest.map((line) => ' '.repeat(lead) + line)];
  });
  return [colors.cyan(title), ...lines].join('\n');
}

function wrapMessage({ message, place }: Row, width: number | undefined, colors: Colors): string[] {
  if (place === '') return wrap(oneLine(message), width);
  const glued = place.replaceAll(' ', '\u00a0'); // one word, for as long as lines are broken
  return wrap(`${oneLine(message)} ${glued}`, width).map((line) => line.replace(glued, colors.dim(place)));
}
