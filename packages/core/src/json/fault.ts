/** Where a text stops being JSON. `JSON.parse` words its errors differently in every engine, and some have no position. */

/** The first place at which a text is not JSON. */
export interface JsonFault {
  /** `line 2, column 15: expected "," or "}"`. Both count from 1; a column is a UTF-16 code unit. */
  message: string;
  /** The text around the place, on one line: at most 60 printable characters. It may contain secrets of the sender. */
  excerpt: string;
}

/** Finds the place, in linear time; undefined for JSON, and for text that is too long or nested too deeply to be judged. */
export function findJsonFault(text: string): JsonFault | undefined {
  const fault = text.length > MAX_LENGTH ? undefined : new FaultFinder(text).find();
  if (!fault) return undefined;
  const { at, reason } = fault;
  const lineStart = text.lastIndexOf('\n', at - 1) + 1;
  let line = 1;
  for (let end = text.indexOf('\n'); end >= 0 && end < at; end = text.indexOf('\n', end + 1)) line++;
  return { message: `line ${line}, column ${at - lineStart + 1}: ${reason}`, excerpt: readExcerpt(text, at) };
}

const SHOWN_BEFORE = 40;

const SHOWN_AFTER = 20;

function readExcerpt(text: string, at: number): string {
  const shown = text.slice(Math.max(0, at - SHOWN_BEFORE), at + SHOWN_AFTER);
  return shown.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, ' ').trim();
}

/** What may come next; `first` only after an opening bracket. */
type Next = 'value' | 'first value' | 'key' | 'first key' | 'colon' | 'comma' | 'end';

interface Fault {
  at: number;
  reason: string;
}

class FaultFinder {
  readonly #text: string;
  #at = 0;
  #next: Next = 'value';
  /** The brackets that are open: true for objects. */
  readonly #open: boolean[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  find(): Fault | undefined {
    for (;;) {
      this.#match(BLANKS);
      if (this.#at === this.#text.length) return this.#next === 'end' ? undefined : this.#fail(CUT);
      if (this.#open.length > MAX_DEPTH) return undefined;
      const fault = this.#step(this.#text[this.#at] ?? '');
      if (fault) return fault;
    }
  }

  /** Reads one token. */
  #step(char: string): Fault | undefined {
    switch (this.#next) {
      case 'value':
      case 'first value':
        return char === ']' && this.#next === 'first value' ? this.#close() : this.#value(char);
      case 'key':
      case 'first key':
        if (char === '}' && this.#next === 'first key') return this.#close();
        return char === '"' ? this.#string('colon') : this.#fail('expected a name in double quotes');
      case 'colon':
        return char === ':' ? this.#take('value') : this.#fail('expected ":"');
      case 'comma':
        return this.#comma(char);
      case 'end':
        return this.#fail('expected the end of the document');
      default:
        return this.#next satisfies never;
    }
  }

  #comma(char: string): Fault | undefined {
    const isObject = this.#open.at(-1) === true;
    const close = isObject ? '}' : ']';
    if (char === close) return this.#close();
    return char === ',' ? this.#take(isObject ? 'key' : 'value') : this.#fail(`expected "," or "${close}"`);
  }

  #value(char: string): Fault | undefined {
    if (char === '"') return this.#string(this.#following);
    if (char === '{' || char === '[') {
      this.#open.push(char === '{');
      return this.#take(char === '{' ? 'first key' : 'first value');
    }
    if (!this.#match(SCALAR)) return this.#fail('expected a value');
    this.#next = this.#following;
    return undefined;
  }

  #string(next: Next): Fault | undefined {
    this.#at++;
    while (this.#match(PLAIN_TEXT) || this.#match(ESCAPE));
    const end = this.#text[this.#at];
    if (end === '"') return this.#take(next);
    if (end === undefined) return this.#fail(CUT);
    return this.#fail(end === '\\' ? 'invalid escape in a string' : 'a string has an unescaped control character');
  }

  /** What follows a value. */
  get #following(): Next {
    return this.#open.length > 0 ? 'comma' : 'end';
  }

  #close(): undefined {
    this.#open.pop();
    this.#take(this.#following);
  }

  #take(next: Next): undefined {
    this.#at++;
    this.#next = next;
  }

  #match(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return false;
    const isProgress = pattern.lastIndex > this.#at;
    this.#at = pattern.lastIndex;
    return isProgress;
  }

  #fail(reason: string): Fault {
    return { at: this.#at, reason };
  }
}

const CUT = 'the text ends in the middle of the document';

const BLANKS = /[ \t\n\r]*/y;

const SCALAR = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON strings must not contain them
const PLAIN_TEXT = /[^"\\\u0000-\u001f]+/y;

const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;

/** Takes 150 ms at worst; a client must not be able to block others for longer. */
const MAX_LENGTH = 2 * 1024 * 1024;

/** Deeper texts are refused for their depth. */
const MAX_DEPTH = 10_000;
