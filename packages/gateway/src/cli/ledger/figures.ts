/** Figures for people: dollars, tokens, durations, times, and text that fits a number of terminal cells. */

import { oneLine } from '@sluice/lab/text';

const GROUPED = new Intl.NumberFormat('en-US');

/** 1234567 is "1,234,567". */
export const formatCount = (count: number): string => GROUPED.format(count);

/** 1234 is "1.2k". */
export function formatShort(count: number | null): string {
  if (count === null) return '–';
  if (count < 1000) return String(count);
  const [scale, unit] = count < 999_950 ? [1e3, 'k'] : count < 999_950_000 ? [1e6, 'M'] : [1e9, 'G'];
  return `${(count / scale).toFixed(1)}${unit}`;
}

const withDigits = (digits: number): Intl.NumberFormat =>
  new Intl.NumberFormat('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** Made once: a format costs 20 µs to make. */
const DOLLARS = { 2: withDigits(2), 4: withDigits(4), 6: withDigits(6) } as const;

/** Dollars, with more decimals for small sums: $12.34, $0.0123, $0.000123. */
export function formatDollars(micros: number): string {
  if (micros === 0) return '$0';
  const digits = micros >= 1_000_000 ? 2 : micros >= 10_000 ? 4 : 6;
  return `$${DOLLARS[digits].format(micros / 1e6)}`;
}

/** 2310 is "2.31 s". */
export function formatMs(ms: number | null): string {
  if (ms === null) return '–';
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_995) return `${(ms / 1000).toFixed(2)} s`;
  const seconds = Math.round(ms / 1000);
  return seconds < 3600
    ? `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, '0')}s`
    : `${Math.floor(seconds / 3600)}h${String(Math.floor((seconds % 3600) / 60)).padStart(2, '0')}m`;
}

/** The latest time that a date can have. */
const MAX_DATE_MS = 8.64e15;

/** RFC 3339 in UTC, for programs. */
export const formatTimestamp = (ms: number): string => new Date(Math.max(0, Math.min(ms, MAX_DATE_MS))).toISOString();

/** The time of an exchange, in UTC to the second. */
export const formatTime = (ms: number): string =>
  formatTimestamp(ms)
    .replace('T', ' ')
    .replace(/\.\d+Z$/, 'Z');

/** The start of a bucket: a day, or an hour of one. */
export const formatBucket = (ms: number, length: 'hour' | 'day'): string =>
  length === 'day' ? formatTimestamp(ms).slice(0, 10) : formatTimestamp(ms).slice(0, 16).replace('T', ' ');

// ---- cells of a terminal

/** Characters that take two cells, and marks that take none. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;

const NARROWEST = /[\p{Mn}\p{Me}\p{Cf}]/u;

const measureCharacter = (character: string): number => (WIDE.test(character) ? 2 : NARROWEST.test(character) ? 0 : 1);

/** How many cells a text takes. */
export function measure(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let cells = 0;
  for (const character of text) cells += measureCharacter(character);
  return cells;
}

/** Untrusted text on one line, shortened with "…" to a number of cells. */
export function fit(text: string, cells: number): string {
  // A character is at most six when it is escaped; nothing behind this can be visible.
  const safe = oneLine(text.slice(0, MAX_TEXT));
  if (measure(safe) <= cells) return safe;
  let kept = '';
  let room = cells - 1;
  for (const character of safe) {
    room -= measureCharacter(character);
    if (room < 0) break;
    kept += character;
  }
  return cells < 1 ? '' : `${kept}…`;
}

const MAX_TEXT = 4000;

/** Fills up with spaces to a number of cells. */
export const padEnd = (text: string, cells: number): string => text + ' '.repeat(Math.max(0, cells - measure(text)));

/** Fills up with spaces before the text. */
export const padStart = (text: string, cells: number): string => ' '.repeat(Math.max(0, cells - measure(text))) + text;

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const;

/** A bar of at most `cells`, in eighths. What is not zero has at least one eighth. */
export function drawBar(value: number, max: number, cells: number): string {
  if (value <= 0 || max <= 0) return '';
  const eighths = Math.max(1, Math.round((Math.min(value, max) / max) * cells * 8));
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '');
}
