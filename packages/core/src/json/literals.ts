/**
 * Numbers that JSON.parse changes, such as ids above 2^53. While a document is being decoded, its text is at hand, so
 * that values can be written with the numbers that they had. Nothing is searched unless a number may have changed.
 */
import { getOwn, isObject, type JsonObject, parseJson, sameJson, writeJson } from './json.ts';
import { MAX_JSON_DEPTH } from './limits.ts';
import { endOfString, QUOTE } from './scanner.ts';

/** The document that is being decoded. Decoders are synchronous, so there is one at a time. */
let root: unknown;
let rootText = '';
/** Its objects and lists, each with one whose long numbers are marked texts. */
let twins: Map<unknown, unknown> | undefined;

/** Begins to decode a document. `text` is what `value` was parsed from; empty when it is not known. */
export function openDocument(value: unknown, text: string): void {
  root = value;
  rootText = text;
  twins = undefined;
}

/** Ends what `openDocument` began. */
export const closeDocument = (): void => openDocument(undefined, '');

/** The JSON of a value of the document, with the numbers that it had; undefined if JSON.parse cannot have changed one. */
export function findSource(value: unknown): string | undefined {
  if (rootText === '' || !hasSuspect(value, 0)) return undefined;
  if (!twins) {
    twins = new Map();
    // The mark must not occur in the document itself.
    if (!rootText.includes('\\u0000')) pair(root, parseJson(markNumbers(rootText)));
  }
  const text = writeJson(twins.get(value))?.replace(MARKED, '$1');
  // The caller may have changed the value since.
  return text !== undefined && sameJson(parseJson(text), value) ? text : undefined;
}

/** `writeJson`, with the numbers of the document. */
export const writeExact = (value: unknown): string | undefined => findSource(value) ?? writeJson(value);

/** Whether a value has a number that may have been another one in its text. Short fractions are exact. */
function hasSuspect(value: unknown, depth: number): boolean {
  if (typeof value === 'number')
    return !Number.isSafeInteger(value) && (!Number.isFinite(value) || Number.isInteger(value) || String(value).length > 16);
  return isContainer(value) && depth <= MAX_JSON_DEPTH && Object.values(value).some((item) => hasSuspect(item, depth + 1));
}

function pair(value: unknown, twin: unknown): void {
  if (!isContainer(value) || !isContainer(twin)) return;
  twins?.set(value, twin);
  for (const key of Object.keys(value)) pair(getOwn(value, key), getOwn(twin, key));
}

const isContainer = (value: unknown): value is JsonObject => isObject(value) || Array.isArray(value);

/** JSON with its long numbers as texts that begin with U+0000. */
function markNumbers(text: string): string {
  let marked = '';
  let from = 0;
  for (const { at, literal } of eachNumber(text)) {
    if (literal.length < 16 && !/e/i.test(literal)) continue;
    marked += `${text.slice(from, at)}"\\u0000${literal}"`;
    from = at + literal.length;
  }
  return marked + text.slice(from);
}

const MARKED = /"\\u0000([^"]*)"/g;

function* eachNumber(text: string): Generator<{ at: number; literal: string }> {
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) === QUOTE) at = endOfString(text, at) - 1;
    else {
      NUMBER.lastIndex = at;
      const literal = NUMBER.exec(text)?.[0];
      if (literal === undefined) continue;
      yield { at, literal };
      at += literal.length - 1;
    }
  }
}

const NUMBER = /-?\d[\d.eE+-]*/y;

/** The numbers of a JSON text that JSON.parse changes, in order. */
export function listInexactNumbers(text: string): string[] {
  return SUSPICIOUS.test(text) ? [...eachInexactNumber(text)] : [];
}

/**
 * The first number of a JSON text that JSON.parse changes: a long integer, too many decimals, an exponent out of range.
 */
export function findInexactNumber(text: string): string | undefined {
  return SUSPICIOUS.test(text) ? eachInexactNumber(text).next().value : undefined;
}

function* eachInexactNumber(text: string): Generator<string, undefined> {
  for (const { literal } of eachNumber(text)) if (!isExact(literal)) yield literal;
  return undefined;
}

/** A cheap test before the scan: only long numbers and those with an exponent can be inexact. */
const SUSPICIOUS = /[\d.]{16}|\d[eE]/;

const isExact = (literal: string): boolean => {
  const value = Number(literal);
  return Number.isFinite(value) && normalizeDecimal(literal) === normalizeDecimal(String(value));
};

/** The significant digits and the exponent of a literal: equal for equal decimal values. */
function normalizeDecimal(literal: string): string {
  const [mantissa = '', exponent = '0'] = literal.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const digits = whole + fraction;
  // Loops, because /0+$/ is quadratic on long runs of zeros.
  let start = 0;
  while (digits.charCodeAt(start) === ZERO) start++;
  let end = digits.length;
  while (end > start && digits.charCodeAt(end - 1) === ZERO) end--;
  return `${digits.slice(start, end)}e${start === end ? 0 : Number(exponent) - fraction.length + digits.length - end}`;
}

const ZERO = 0x30;
