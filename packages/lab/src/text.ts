/** Text for terminals: escaping of untrusted text, system error codes, and suggestions for mistyped words. */

/** Escapes untrusted text for a terminal; line ends and tabs are kept. */
export const printable = (text: string): string => text.replaceAll('\r\n', '\n').replace(UNSAFE, escapeCharacter);

/** Escapes untrusted text that has to stay on one line: names, ids, messages. */
export const oneLine = (text: string): string => text.replace(UNSAFE, escapeCharacter).replace(LINE_MARKS, escapeCharacter);

/** Escapes JSON text for a terminal; the value stays the same. */
export const safeJson = (json: string): string => json.replace(UNSAFE_IN_JSON, escapeCharacter);

/**
 * Characters that can control a terminal or deceive its reader: C0 (except tab and line feed), DEL, C1, the separators
 * U+2028 and U+2029, which end a line for some readers, and Unicode's Bidi_Control, which can make a command look like
 * another one.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters on purpose
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

const LINE_MARKS = /[\t\n]/g;

/** JSON.stringify escapes C0 itself. */
const UNSAFE_IN_JSON = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

const SHORT: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

const escapeCharacter = (char: string): string => SHORT[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** The code of a system error, such as `ENOENT`; undefined for every other error. */
export function systemCode(error: unknown): string | undefined {
  const code = readCode(error);
  return code !== undefined && /^E(?!RR_)[A-Z0-9]+$/.test(code) ? code : undefined;
}

/** The `code` of an error, if it is a string. */
export function readCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Finds the known word nearest to a mistyped one, if it is near enough to be meant. */
export function suggest(word: string, known: Iterable<string>): string | undefined {
  const typed = word.slice(0, MAX_LENGTH).toLowerCase();
  let nearest: string | undefined;
  let least = Math.min(MAX_DISTANCE, Math.max(1, Math.floor(typed.length / 3))) + 1;
  let compared = 0;
  for (const candidate of known) {
    const isBegun = candidate.startsWith(typed) && typed.length > 2;
    const distance = isBegun ? 1 : editDistance(typed, candidate.slice(0, 2 * MAX_LENGTH).toLowerCase(), least);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
    if (++compared === MAX_COMPARED) break;
  }
  return nearest;
}

/** Words come from clients, and there may be thousands of known ones: the three limits bound the work. */
const MAX_LENGTH = 64;

const MAX_DISTANCE = 8;

const MAX_COMPARED = 1000;

/** Builds `; did you mean "…"?`, or an empty text. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const nearest = suggest(word, known);
  return nearest === undefined ? '' : `; did you mean "${nearest}"?`;
}

/**
 * Counts the insertions, deletions, replacements and swaps of neighbours between two words; infinite if there are
 * `limit` or more.
 */
export function editDistance(a: string, b: string, limit = Number.POSITIVE_INFINITY): number {
  if (Math.abs(a.length - b.length) >= limit) return Number.POSITIVE_INFINITY;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  let leastOfLast = 0;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwap ? (beforeLast[j - 2] ?? 0) + 1 : replaced;
      const distance = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced, swapped);
      row.push(distance);
      least = Math.min(least, distance);
    }
    // A swap builds on the row before the last: both must be beyond the limit.
    if (least >= limit && leastOfLast >= limit) return Number.POSITIVE_INFINITY;
    beforeLast = last;
    last = row;
    leastOfLast = least;
  }
  const distance = last[b.length] ?? 0;
  return distance < limit ? distance : Number.POSITIVE_INFINITY;
}
