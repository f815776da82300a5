/** Cells of CSV, for programs and spreadsheets. Pure: the console writes its exports by it, too. */

/** A line by RFC 4180, with CRLF. */
export const formatCsvLine = (cells: readonly (string | number)[]): string => `${cells.map(formatCsvCell).join(',')}\r\n`;

/** Spreadsheets run text that begins so as a formula, also after blanks. */
const FORMULA = /^\s*[=+\-@\uff0b\uff0d\uff1d\uff20]|^[\t\r\n]/;

/** Quotes what needs it. An apostrophe before a formula makes it text. */
export function formatCsvCell(cell: string | number): string {
  if (typeof cell === 'number') return String(cell);
  const safe = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Exact dollars: six decimals. */
export const formatExactDollars = (micros: number): string =>
  `${Math.floor(micros / 1e6)}.${String(micros % 1e6).padStart(6, '0')}`;
