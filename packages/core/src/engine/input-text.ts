import { BACKSLASH, QUOTE } from '../json/scanner.ts';

const HEAD = /^\s*\{\s*"input"\s*:\s*"/;
const COMPACT_HEAD = '{"input":"';
/** More white space than this before the text is nobody's way to write it. */
const LONGEST_HEAD = 64;

const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|([^u]))/y;
const ESCAPED: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const LONGEST_ESCAPE = 6;

/**
 * The arguments of a custom tool that went out as a function, `{"input":"…"}`, back to the text inside, piece by piece. Arguments of any other
 * form are the text themselves.
 */
export class InputText {
  #state: 'head' | 'text' | 'tail' | 'raw' = 'head';
  /** What cannot be read before more of it is there. */
  #held = '';
  /** The first half of a character: text never ends in one. */
  #half = '';
  #hasMore = false;

  /** The arguments held something beside the text. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  push(piece: string): string {
    switch (this.#state) {
      case 'head':
        return this.#head(this.#held + piece);
      case 'text':
        return this.#text(this.#held + piece);
      case 'raw':
        return piece;
      case 'tail':
        this.#tail(piece);
        return '';
      default:
        return this.#state satisfies never;
    }
  }

  end(): string {
    const rest = this.#half === '' ? this.#held : `\ufffd${this.#held}`;
    this.#half = this.#held = '';
    return rest;
  }

  #head(begun: string): string {
    const head = HEAD.exec(begun);
    if (head) {
      this.#state = 'text';
      return this.#text(begun.slice(head[0].length));
    }
    const compact = begun.replace(/\s+/g, '');
    const isBegun = begun.length <= LONGEST_HEAD && compact.length < COMPACT_HEAD.length && COMPACT_HEAD.startsWith(compact);
    this.#state = isBegun ? 'head' : 'raw';
    this.#held = isBegun ? begun : '';
    return isBegun ? '' : begun;
  }

  #text(source: string): string {
    this.#held = '';
    let out = this.#half;
    let at = 0;
    while (at < source.length) {
      const stop = nextMark(source, at);
      out += source.slice(at, stop);
      if (source[stop] === '"') {
        this.#state = 'tail';
        this.#tail(source.slice(stop + 1));
        break;
      }
      ESCAPE.lastIndex = stop;
      const found = ESCAPE.exec(source);
      if (!found && source.length - stop < LONGEST_ESCAPE) {
        this.#held = source.slice(stop);
        break;
      }
      // What is no escape is what it says.
      out += found ? unescaped(found) : '\\';
      at = stop + (found?.[0].length ?? 1);
    }
    return this.#whole(out);
  }

  #whole(text: string): string {
    const last = text.charCodeAt(text.length - 1);
    const isHalf = last >= 0xd800 && last <= 0xdbff;
    this.#half = isHalf ? text.slice(-1) : '';
    return isHalf ? text.slice(0, -1) : text;
  }

  #tail(piece: string): void {
    this.#hasMore ||= /[^\s}]/.test(piece);
  }
}

/** The position of the next quote or backslash, or the length of the text. */
function nextMark(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE || code === BACKSLASH) return at;
  }
  return text.length;
}

const unescaped = ([, code, char = '']: RegExpExecArray): string =>
  code === undefined ? (ESCAPED[char] ?? char) : String.fromCharCode(Number.parseInt(code, 16));

const WRAPPER = /^\s*\{\s*"input"\s*:/;

/** The value inside `{"input": …}`, as its text; anything else as it is. */
export function unwrapped(text: string): string {
  const [head] = WRAPPER.exec(text) ?? [];
  const whole = text.trimEnd();
  if (head === undefined || !whole.endsWith('}')) return text;
  const inner = whole.slice(head.length, -1).trim();
  return isJson(inner) ? inner : text;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
