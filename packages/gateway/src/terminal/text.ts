/** Text for terminals: colours, columns, wrapping, JSON lines and byte counts. */

import { printable, safeJson } from '@sluice/lab/text';
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

/** Writes the bytes of a stream: unchanged to a pipe or file, as text without control characters to a terminal. */
export class StreamOutput {
  readonly #output: Output;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });

  constructor(output: Output) {
    this.#output = output;
  }

  async write(bytes: Uint8Array): Promise<void> {
    const { isTTY } = this.#output;
    await this.#output.write(isTTY ? printable(this.#decoder.decode(bytes, { stream: true })) : bytes);
  }

  /** Writes the replacement character for a character that was cut at the end. */
  async end(): Promise<void> {
    const rest = this.#decoder.decode();
    if (rest !== '') await this.#output.write(rest);
  }
}

/** A text of at most `width` characters. Its middle is left out: names differ at their ends. */
export function shorten(text: string, width: number): string {
  if (text.length <= width) return text;
  const end = Math.floor((width - 1) / 2);
  return `${text.slice(0, Math.max(width - 1 - end, 0))}…${end > 0 ? text.slice(-end) : ''}`;
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
