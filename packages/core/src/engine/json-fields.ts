const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENERS: ReadonlySet<number> = new Set([0x7b, 0x5b]);
const CLOSERS: ReadonlySet<number> = new Set([0x7d, 0x5d]);

/** Behind the string that begins at `from`; the text is valid JSON. */
function endOfString(text: string, from: number): number {
  let end = text.indexOf('"', from + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end + 1;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++;
  return backslashes % 2 === 1;
}

const AFTER_KEY = /\s*:\s*/y;

/** Where the value of a key begins that ends at `at`; undefined when what ended there is no key. */
function valueAfter(text: string, at: number): number | undefined {
  AFTER_KEY.lastIndex = at;
  return AFTER_KEY.test(text) ? AFTER_KEY.lastIndex : undefined;
}

/** The value of a top-level field: text from `start` up to `end`. */
interface Span {
  name: string;
  start: number;
  end: number;
}

interface Found {
  spans: Span[];
  /** Where the object closes. */
  close: number;
}

/** The values of these top-level fields, in their order; undefined when one of them is named twice. One pass over the text. */
function findFields(text: string, names: readonly string[]): Found | undefined {
  const spans: Span[] = [];
  let depth = 0;
  let close = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      const end = endOfString(text, at);
      const span = depth === 1 ? fieldAt(text, at, end, names) : undefined;
      if (span && spans.some(({ name }) => name === span.name)) return undefined;
      if (span) spans.push(span);
      at = (span?.end ?? end) - 1;
    } else if (OPENERS.has(char)) depth++;
    else if (CLOSERS.has(char) && --depth === 0) close = at;
  }
  return { spans, close };
}

/** The field whose key stands from `at` to `end`; undefined when it is none of these, or no key. */
function fieldAt(text: string, at: number, end: number, names: readonly string[]): Span | undefined {
  const name = nameIn(text.slice(at, end), names);
  const start = name === undefined ? undefined : valueAfter(text, end);
  return name === undefined || start === undefined ? undefined : { name, start, end: endOfValue(text, start) };
}

const AFTER_SCALAR = /[,}\]\s]/g;

/** Behind the value that begins at `from`. */
function endOfValue(text: string, from: number): number {
  const first = text.charCodeAt(from);
  if (first === QUOTE) return endOfString(text, from);
  if (!OPENERS.has(first)) {
    AFTER_SCALAR.lastIndex = from;
    return AFTER_SCALAR.exec(text)?.index ?? text.length;
  }
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at) - 1;
    else if (OPENERS.has(char)) depth++;
    else if (CLOSERS.has(char) && --depth === 0) return at + 1;
  }
  return text.length;
}

/** The JSON text of a key that has escapes is at most six times as long as the key. */
const ESCAPE_LENGTH = 6;

function nameIn(key: string, names: readonly string[]): string | undefined {
  const bare = key.slice(1, -1);
  if (!bare.includes('\\')) return names.includes(bare) ? bare : undefined;
  return names.find((name) => bare.length <= name.length * ESCAPE_LENGTH && JSON.parse(key) === name);
}

/**
 * The JSON text of an object with other values of these top-level fields, and everything else to the letter: big integers, `1.0`, the order and
 * the spaces by which prompts are cached. Fields that it lacks are added at its end. Undefined when a field is named more than once: two readers
 * might not see the same value.
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
