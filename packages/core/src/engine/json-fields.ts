const QUOTE = 0x22;
const COMMA = 0x2c;
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
  let open: Span | undefined;
  let depth = 0;
  let close = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      const end = endOfString(text, at);
      const name = depth === 1 && !open ? nameIn(text.slice(at, end), names) : undefined;
      const start = name === undefined ? undefined : valueAfter(text, end);
      if (name !== undefined && start !== undefined) {
        if (spans.some((span) => span.name === name)) return undefined;
        open = { name, start, end: start };
        spans.push(open);
      }
      at = (start ?? end) - 1;
    } else if (OPENERS.has(char)) depth++;
    else if (CLOSERS.has(char) || (char === COMMA && depth === 1)) {
      if (open && depth === 1) {
        open.end = open.start + text.slice(open.start, at).trimEnd().length;
        open = undefined;
      }
      if (char !== COMMA && --depth === 0) close = at;
    }
  }
  return { spans, close };
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
