/** Text for terminals: colours, columns, wrapping, indented JSON, JSON lines and byte counts. */

import { endOfString } from '@sluice/core/internal';
import { safeJson } from '@sluice/lab/text';
import pico from 'picocolors';
import type { CliIo, Output } from './io.ts';

/** Functions that colour a text. */
export type Colors = ReturnType<typeof pico.createColors>;

/** Colours for a terminal that supports them (https://no-color.org); else functions that return their input. */
export function chooseColors(output: Output, env: CliIo['env']): Colors {
  if (env['NO_COLOR']) return pico.createColors(false);
  const isForced = Boolean(env['FORCE_COLOR']) && env['FORCE_COLOR'] !== '0';
  return pico.createColors(isForced || (output.isTTY && env['TERM'] !== 'dumb'));
}

/** Rows as aligned lines; the last cell of a row is not padded. `paint` colours cells after padding. */
export function formatColumns(rows: readonly (readonly string[])[], paint: readonly ((cell: string) => string)[] = []): string[] {
  const widths: number[] = [];
  for (const row of rows) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  return rows.map((row) =>
    row
      .map((cell, at) => {
        const padded = at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0);
        return paint[at]?.(padded) ?? padded;
      })
      .join('  '),
  );
}

/** Deeper levels are not indented further, or 1000 brackets would produce a million spaces. */
const MAX_INDENT = 24;

/**
 * Indents JSON as text instead of parsing it, so that long numbers keep their digits and duplicate keys stay visible.
 * The text must be valid JSON.
 */
export function indentJson(json: string): string {
  let out = '';
  let depth = 0;
  for (const token of readTokens(json)) {
    if (token === '{' || token === '[') out += token + startLine(++depth);
    else if (token === '}' || token === ']') out += startLine(--depth) + token;
    else if (token === ',') out += token + startLine(depth);
    else out += token === ':' ? ': ' : token;
  }
  return out;
}

const startLine = (depth: number): string => `\n${'  '.repeat(Math.min(depth, MAX_INDENT))}`;

/** An empty container, punctuation, a number or a literal. */
const TOKEN = /\{\s*\}|\[\s*\]|[{}[\],:]|[^\s{}[\],:"]+/y;

const BLANKS = /\s*/y;

function* readTokens(json: string): Generator<string, void, undefined> {
  let at = 0;
  while (at < json.length) {
    BLANKS.lastIndex = at;
    BLANKS.test(json);
    at = BLANKS.lastIndex;
    TOKEN.lastIndex = at;
    const token = json[at] === '"' ? json.slice(at, endOfString(json, at)) : TOKEN.exec(json)?.[0];
    if (token === undefined) return;
    at += token.length;
    yield /^[{[]\s/.test(token) ? token.replace(/\s+/, '') : token;
  }
}

/**
 * A record as one line of JSON in pieces, because the whole may exceed the maximum string length although each field
 * does not. Undefined when even a field is too long.
 */
export function formatJsonLine(record: object): string[] | undefined {
  try {
    const fields = Object.entries(record).filter(([, value]) => value !== undefined);
    return [
      ...fields.map(([key, value], i) => `${i === 0 ? '{' : ','}${JSON.stringify(key)}:${safeJson(JSON.stringify(value))}`),
      '}\n',
    ];
  } catch (error) {
    if (error instanceof RangeError) return undefined; // "Invalid string length"
    throw error;
  }
}

/** Narrower terminals are treated as this wide. */
const MIN_WIDTH = 16;

/** Breaks a text between words, and within a word only when it is longer than a line. Without a width, one line. */
export function wrapText(text: string, width: number | undefined): string[] {
  if (width === undefined) return [text];
  const limit = Math.max(width, MIN_WIDTH);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > limit) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
    while (line.length > limit) {
      lines.push(line.slice(0, limit));
      line = line.slice(limit);
    }
  }
  return [...lines, line];
}

const UNITS = ['B', 'kB', 'MB', 'GB'] as const;

/** Formats a byte count: 1536 is "1.5 kB". */
export function formatBytes(count: number): string {
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}
