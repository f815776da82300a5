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

/**
 * The JSON text of a request with another name of the model, and everything else to the letter: big integers, `1.0`, the order and the spaces by
 * which prompts are cached. Undefined when the model is not named exactly once: then two readers might not see the same name.
 */
export function withModel(text: string, model: string): string | undefined {
  let found: number | undefined;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      const end = endOfString(text, at);
      const value = depth === 1 && isModel(text.slice(at, end)) ? valueAfter(text, end) : undefined;
      if (value !== undefined && found !== undefined) return undefined;
      found ??= value;
      at = (value ?? end) - 1;
    } else if (OPENERS.has(char)) depth++;
    else if (CLOSERS.has(char)) depth--;
  }
  if (found === undefined || text.charCodeAt(found) !== QUOTE) return undefined;
  return text.slice(0, found) + JSON.stringify(model) + text.slice(endOfString(text, found));
}

/** Every letter of the key may be written as an escape. */
const LONGEST_KEY = '"\\u006d\\u006f\\u0064\\u0065\\u006c"'.length;

const isModel = (key: string): boolean =>
  key === '"model"' || (key.length <= LONGEST_KEY && key.includes('\\') && JSON.parse(key) === 'model');
