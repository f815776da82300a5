/** Prints an assembled message for people: text, tool calls, usage, diagnostics and notes. */

import {
  type AccumulatedCall,
  type AccumulatedMessage,
  type CanonicalUsage,
  type Diagnostic,
  type Note,
  RULES,
  type Severity,
  type ThinkSplit,
} from '@sluice/core';
import { oneLine, printable } from '@sluice/lab/text';
import { findAdvice } from '../terminal/errors.ts';
import { indentJson } from '../terminal/json.ts';
import { type Colors, wrapText } from '../terminal/text.ts';

/**
 * A message as sections of text; together they may exceed the maximum string length. Control characters are escaped.
 */
export function showMessage(file: string, result: AccumulatedMessage, style: ShowStyle): string[] {
  const { reasoning, text } = style.isSplit ? readSplit(result) : result;
  const { colors } = style;
  const sections = [
    formatHeader(file, result, style),
    formatText('reasoning', reasoning, colors.dim, style),
    formatText('text', text, String, style),
    formatText('refusal', result.refusal ?? '', colors.yellow, style),
    showCalls(result, style),
    formatFacts(result, style),
    showDiagnostics(result.diagnostics, style),
    showNotes(result.notes, style),
  ];
  return sections
    .filter((section) => section !== '')
    .flatMap((section, i) => (i === 0 ? [section, '\n'] : ['\n', section, '\n']));
}

/** How a message is printed. */
export interface ShowStyle {
  colors: Colors;
  /** Width of the terminal; undefined: lines are not wrapped. */
  columns: number | undefined;
  /** Show `<think>` sections of the text as reasoning. */
  isSplit: boolean;
}

/** The line between two messages. */
export const formatDivider = ({ colors, columns }: ShowStyle): string =>
  `\n${colors.dim('─'.repeat(Math.min(columns ?? 60, 60)))}\n\n`;

function formatHeader(file: string, { protocol, model, id }: AccumulatedMessage, { colors, columns }: ShowStyle): string {
  const name = file === '-' ? 'standard input' : oneLine(file);
  const rest = [protocol ?? '', oneLine(model), oneLine(id)].filter((word) => word !== '').join(' · ');
  const isWide = columns === undefined || name.length + rest.length + 3 <= columns;
  if (rest === '') return colors.bold(name);
  return colors.bold(name) + (isWide ? colors.dim(` · ${rest}`) : `\n${colors.dim(rest)}`);
}

function readSplit({ reasoning, text, extras }: AccumulatedMessage): ThinkSplit {
  const split = extras['think_split'] as ThinkSplit | undefined; // extras are untyped; this key always holds a split
  if (!split) return { reasoning, text };
  return {
    reasoning: [reasoning, split.reasoning.trim()].filter((part) => part !== '').join('\n'),
    text: split.text.trimStart(),
  };
}

function formatText(label: string, text: string, paint: (line: string) => string, { colors }: ShowStyle): string {
  if (text === '') return '';
  // Each line is coloured separately because pagers reset colours at line ends.
  const lines = printable(text).trimEnd().split('\n');
  return [colors.cyan(label), ...lines.map((line) => (line === '' ? line : paint(line)))].join('\n');
}

function showCalls({ tool_calls: calls, invalid_arguments: invalid }: AccumulatedMessage, style: ShowStyle): string {
  if (calls.length === 0) return '';
  const label = style.colors.cyan(calls.length === 1 ? 'tool call' : `tool calls (${calls.length})`);
  return [label, ...calls.map((call, i) => showCall(call, invalid.includes(i), style))].join('\n');
}

function showCall({ name, id, arguments: args, type }: AccumulatedCall, isInvalid: boolean, { colors }: ShowStyle): string {
  const title = `  ${colors.bold(oneLine(name) || 'unnamed')}${colors.dim(`(${oneLine(id)})`)}`;
  if (isInvalid) {
    const warning = `  ${colors.red('these arguments are not valid JSON, probably truncated; do not run this call')}`;
    return [title, warning, ...(args === '' ? [] : [indent(colors.red, args)])].join('\n');
  }
  return args === '' ? title : [title, indent(String, type === 'custom' ? args : indentJson(args))].join('\n');
}

const indent = (paint: (line: string) => string, text: string): string =>
  printable(text)
    .split('\n')
    .map((line) => `    ${paint(line)}`)
    .join('\n');

/** Finish reason, usage, extras and error, one per line. */
function formatFacts(result: AccumulatedMessage, { colors, columns }: ShowStyle): string {
  const lines: string[] = [];
  const add = (label: string, text: string, paint: (line: string) => string = String): void => {
    const rows = wrapText(text, columns === undefined ? undefined : columns - LABEL_WIDTH);
    lines.push(
      ...rows.map((row, i) => (i === 0 ? colors.cyan(label.padEnd(LABEL_WIDTH)) : ' '.repeat(LABEL_WIDTH)) + paint(row)),
    );
  };
  const { error, usage } = result;
  if (!error || (result.finish_reason !== null && result.finish_reason !== 'error'))
    add('finish', describeFinish(result), result.complete ? String : colors.yellow);
  if (usage) add('usage', describeUsage(usage));
  const others = Object.keys(result.extras).filter((name) => !SHOWN_EXTRAS.has(name));
  if (others.length > 0) add('more', `${others.join(', ')} (with --json)`, colors.dim);
  if (error) {
    add('error', `${oneLine(String(error.code))}: ${oneLine(error.message)}`, colors.red);
    const advice = findAdvice(error);
    if (advice !== undefined) add('', advice, colors.dim);
  }
  return lines.join('\n');
}

const LABEL_WIDTH = 9;

/** Extras that repeat what the report shows anyway. */
const SHOWN_EXTRAS: ReadonlySet<string> = new Set(['block_order', 'think_split', 'malformed_frames']);

function describeFinish({ finish_reason: reason, wire_finish_reason: wire, complete }: AccumulatedMessage): string {
  const wireReason = wire !== null && wire !== reason ? ` (on the wire: ${JSON.stringify(oneLine(wire))})` : '';
  if (reason === null) return complete ? `none${wireReason}` : `none: the stream ended early${wireReason}`;
  return reason + wireReason;
}

function describeUsage(usage: CanonicalUsage): string {
  const counts: [string, number | undefined][] = [
    ['input', usage.input_tokens],
    ['output', usage.output_tokens],
    ['cached', usage.cache_read_tokens],
    ['cache written', usage.cache_creation_tokens],
    ['reasoning', usage.reasoning_tokens],
  ];
  return counts.flatMap(([name, count]) => (count === undefined ? [] : [`${name} ${count.toLocaleString('en-US')}`])).join(' · ');
}

/** Violations of the standard, by severity and then by offset. */
function showDiagnostics(diagnostics: readonly Diagnostic[], style: TableStyle): string {
  const rows = diagnostics
    .map((diagnostic) => ({ ...diagnostic, severity: diagnostic.severity ?? RULES[diagnostic.rule].severity }))
    .toSorted((a, b) => RANK[a.severity] - RANK[b.severity] || a.offset - b.offset)
    .map(({ rule, severity, message, count, offset }) => ({
      cells: [WORD[severity], rule],
      paint: style.colors[PAINT[severity]],
      message,
      place: `(${count > 1 ? `×${count}, from ` : ''}byte ${offset})`,
    }));
  return formatTable('violations', rows, style);
}

const PAINT = { error: 'red', warning: 'yellow', info: 'blue' } as const;

PAINT satisfies Record<Severity, keyof Colors>;

const WORD = { error: 'error', warning: 'warn', info: 'info' } as const;

WORD satisfies Record<Severity, string>;

const RANK = { error: 0, warning: 1, info: 2 } as const;

RANK satisfies Record<Severity, number>;

/** Changes and omissions made while reading. */
function showNotes(notes: readonly Note[], style: TableStyle): string {
  const rows = notes.map(({ code, path, message }) => ({
    cells: [code.toLowerCase(), path],
    paint: style.colors.yellow,
    message,
    place: '',
  }));
  return formatTable('notes', rows, style);
}

interface TableStyle {
  colors: Colors;
  columns: number | undefined;
}

interface Row {
  cells: string[];
  paint: (text: string) => string;
  message: string;
  /** Follows the message and is never wrapped. */
  place: string;
}

function formatTable(title: string, rows: readonly Row[], { colors, columns }: TableStyle): string {
  if (rows.length === 0) return '';
  const widths = (rows[0]?.cells ?? []).map((_, at) => Math.max(...rows.map(({ cells }) => oneLine(cells[at] ?? '').length)));
  const lead = widths.reduce((sum, width) => sum + width + 2, 2);
  const room = columns === undefined ? undefined : columns - lead;
  const isStacked = room !== undefined && room < MIN_MESSAGE_WIDTH;
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

/** In a narrower column, the message is printed below its row instead. */
const MIN_MESSAGE_WIDTH = 28;

function wrapMessage({ message, place }: Row, width: number | undefined, colors: Colors): string[] {
  if (place === '') return wrapText(oneLine(message), width);
  const glued = place.replaceAll(' ', '\u00a0'); // no-break spaces keep it on one line while wrapping
  return wrapText(`${oneLine(message)} ${glued}`, width).map((line) => line.replace(glued, colors.dim(place)));
}
