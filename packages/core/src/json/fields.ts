/**
 * Finds and replaces values in JSON text, so that everything else stays verbatim: big integers, `1.0`, and the order
 * and spacing that prompt caches depend on. The text must be valid JSON; it is not checked again.
 */
import { CLOSE_ARRAY, CLOSE_OBJECT, endOfString, JsonScanner, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './scanner.ts';

/**
 * The JSON text of an object with new values for these top-level fields; missing ones are added at the end. Everything
 * else stays verbatim. Undefined when a field occurs twice, because readers may disagree about its value.
 */
export function withFields(text: string, fields: Readonly<Record<string, unknown>>): string | undefined {
  const found = findFields(text, Object.keys(fields));
  if (!found) return undefined;
  let written = '';
  let at = 0;
  for (const { name, start, end } of found.spans) {
    written += text.slice(at, start) + JSON.stringify(fields[name]);
    at = end;
  }
  const added = Object.keys(fields).filter((name) => !found.spans.some((span) => span.name === name));
  const before = text.slice(at, found.close);
  let isFirst = written === '' && before.trim() === '{';
  written += before;
  for (const name of added) {
    written += `${isFirst ? '' : ','}${JSON.stringify(name)}:${JSON.stringify(fields[name])}`;
    isFirst = false;
  }
  return written + text.slice(found.close);
}

/** The same for the object at this path of keys. Undefined also when there is none. */
export function withFieldsAt(
  text: string,
  [key, ...rest]: readonly string[],
  fields: Readonly<Record<string, unknown>>,
): string | undefined {
  if (key === undefined) return withFields(text, fields);
  const span = findFields(text, [key])?.spans[0];
  const inner = span && withFieldsAt(text.slice(span.start, span.end), rest, fields);
  return inner === undefined ? undefined : text.slice(0, span?.start) + inner + text.slice(span?.end);
}

interface Found {
  spans: Field[];
  /** The position of the closing brace. */
  close: number;
}

/** The value of a top-level field. */
interface Field extends Span {
  name: string;
}

/** A value in a text, from its first character to the one after its last. */
export interface Span {
  start: number;
  end: number;
}

/** The values of these top-level fields, in order; undefined when one of them occurs twice. One pass over the text. */
function findFields(text: string, names: readonly string[]): Found | undefined {
  const spans: Field[] = [];
  const scanner = new JsonScanner();
  let close = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      const end = endOfString(text, at);
      const span = scanner.depth === 1 ? fieldAt(text, at, end, names) : undefined;
      if (span && spans.some(({ name }) => name === span.name)) return undefined;
      if (span) spans.push(span);
      at = (span?.end ?? end) - 1;
    } else if (scanner.step(char) && scanner.depth === 0) close = at;
  }
  return { spans, close };
}

/** The field whose key is between `at` and `end`; undefined when it is none of `names`, or not a key. */
function fieldAt(text: string, at: number, end: number, names: readonly string[]): Field | undefined {
  const name = findName(text.slice(at, end), names);
  const start = name === undefined ? undefined : findValueStart(text, end);
  return name === undefined || start === undefined ? undefined : { name, start, end: endOfValue(text, start) };
}

function findName(key: string, names: readonly string[]): string | undefined {
  const bare = key.slice(1, -1);
  if (!bare.includes('\\')) return names.includes(bare) ? bare : undefined;
  return names.find((name) => bare.length <= name.length * ESCAPE_LENGTH && JSON.parse(key) === name);
}

/** Every character of a key may be written as an escape of six characters. */
const ESCAPE_LENGTH = 6;

/** The start of the value whose key ends at `at`; undefined when no key ends there. */
function findValueStart(text: string, at: number): number | undefined {
  AFTER_KEY.lastIndex = at;
  return AFTER_KEY.test(text) ? AFTER_KEY.lastIndex : undefined;
}

const AFTER_KEY = /\s*:\s*/y;

/** The position after the value that begins at `from`. */
function endOfValue(text: string, from: number): number {
  const first = text.charCodeAt(from);
  if (first === QUOTE) return endOfString(text, from);
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) {
    AFTER_SCALAR.lastIndex = from;
    return AFTER_SCALAR.exec(text)?.index ?? text.length;
  }
  const scanner = new JsonScanner();
  for (let at = from; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at) - 1;
    else if (scanner.step(char) && scanner.depth === 0) return at + 1;
  }
  return text.length;
}

const AFTER_SCALAR = /[,}\]\s]/g;

/**
 * The strings at a path of a JSON text: `['requests', '*', 'params', 'model']`. Undefined when a key of the path occurs
 * twice in its object, because readers may disagree about its value.
 */
export function findJsonStrings(text: string, path: readonly string[]): readonly Span[] | undefined {
  const found: Span[] = [];
  return collect(text, skip(SPACE, text, 0), path, found) === AMBIGUOUS ? undefined : found;
}

/** Any entry of a list. */
const EACH = '*';

const AMBIGUOUS = -1;

/** The position after the value that starts at `at`, or AMBIGUOUS. Recursion is as deep as the path. */
function collect(text: string, at: number, path: readonly string[], found: Span[]): number {
  const [key] = path;
  const first = text.charCodeAt(at);
  if (key === undefined) {
    const end = endOfValue(text, at);
    if (first === QUOTE) found.push({ start: at, end });
    return end;
  }
  if (first === OPEN_ARRAY && key === EACH) return collectEntries(text, at, path, found);
  return first === OPEN_OBJECT && key !== EACH ? collectMember(text, at, path, found) : endOfValue(text, at);
}

function collectEntries(text: string, from: number, [, ...rest]: readonly string[], found: Span[]): number {
  let at = skip(SPACE, text, from + 1);
  const first = text.charCodeAt(at);
  if (first === CLOSE_ARRAY || first === CLOSE_OBJECT) return at + 1;
  for (;;) {
    const end = collect(text, at, rest, found);
    if (end === AMBIGUOUS) return AMBIGUOUS;
    at = skip(SPACE, text, end);
    if (text.charCodeAt(at) !== COMMA) return at + 1;
    at = skip(SPACE, text, at + 1);
  }
}

function collectMember(text: string, from: number, [key = '', ...rest]: readonly string[], found: Span[]): number {
  let isFound = false;
  let at = skip(SPACE, text, from + 1);
  while (text.charCodeAt(at) === QUOTE) {
    const endOfKey = endOfString(text, at);
    const isMatch = isKey(text, at, endOfKey, key);
    if (isMatch && isFound) return AMBIGUOUS;
    isFound ||= isMatch;
    const value = skip(AFTER_KEY, text, endOfKey);
    const end = isMatch ? collect(text, value, rest, found) : endOfValue(text, value);
    if (end === AMBIGUOUS) return AMBIGUOUS;
    at = skip(SPACE, text, end);
    if (text.charCodeAt(at) !== COMMA) return at + 1;
    at = skip(SPACE, text, at + 1);
  }
  return at + 1;
}

function isKey(text: string, start: number, end: number, key: string): boolean {
  const length = end - start - 2;
  if (length === key.length) return text.startsWith(key, start + 1);
  if (length < key.length || length > ESCAPE_LENGTH * key.length) return false;
  const written = text.slice(start, end);
  return written.includes('\\') && JSON.parse(written) === key;
}

function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  pattern.test(text);
  return pattern.lastIndex;
}

const SPACE = /\s*/y;

const COMMA = 0x2c;
