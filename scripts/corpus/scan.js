/**
 * Cuts a body into frames, and each frame into literal text, strings and numbers. It reads broken JSON as well: what is derived from a
 * cut stream must be cut at the same place.
 */

/**
 * @typedef {object} Piece
 * @property {'text' | 'string' | 'number'} kind A string is given without its quotes, which are in the text around it.
 * @property {string} raw As written.
 * @property {(string | number)[]} [path] Keys and positions that lead to it.
 * @property {boolean} [isKey]
 */

/** Frames of a stream, each with the blank line that ends it; a whole body is one frame. */
export function splitFrames(body, isStream) {
  return isStream ? body.split(/(?<=\n\n|\r\n\r\n|\r\r)/).filter((frame) => frame !== '') : [body];
}

/** A line of a stream: what comes before the payload, and the payload. */
const LINE = /^(\uFEFF?[^{[\r\n]*?)(\{.*|\[\{.*|)$/s;

/** The pieces of a frame. Lines without JSON are text. */
export function scanFrame(frame, isStream) {
  if (!isStream) return /^\s*[[{]/.test(frame) ? scanJson(frame) : [{ kind: 'string', raw: frame, path: [], isPlain: true }];
  return frame.split(/(?<=\n)/).flatMap((line) => {
    const end = /[\r\n]*$/.exec(line)[0];
    const content = line.slice(0, line.length - end.length);
    const [, start, payload] = LINE.exec(content) ?? [undefined, content, ''];
    const pieces = payload === '' ? [] : scanJson(payload);
    return [{ kind: 'line', raw: start }, ...pieces, { kind: 'text', raw: end }];
  });
}

const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** Strings, numbers and what is between them, with the path of each. */
export function scanJson(text) {
  const scanner = new Scanner(text);
  return scanner.run();
}

class Scanner {
  #text;
  #at = 0;
  #literalFrom = 0;
  #pieces = [];
  /** Open objects and arrays: the key or position that is being read. */
  #open = [];

  constructor(text) {
    this.#text = text;
  }

  run() {
    while (this.#at < this.#text.length) this.#step(this.#text[this.#at]);
    this.#endLiteral();
    return this.#pieces;
  }

  #step(character) {
    if (character === '"') return this.#readString();
    if (/[-\d]/.test(character)) return this.#readNumber();
    this.#at++;
    const top = this.#open.at(-1);
    if (character === '{') this.#open.push({ isObject: true, isKeyNext: true, at: undefined });
    else if (character === '[') this.#open.push({ isObject: false, at: 0 });
    else if (character === '}' || character === ']') this.#open.pop();
    else if (character === ',' && top) this.#next(top);
    else if (character === ':' && top) top.isKeyNext = false;
  }

  #next(top) {
    if (top.isObject) top.isKeyNext = true;
    else top.at++;
  }

  #readString() {
    const from = this.#at + 1;
    let to = from;
    while (to < this.#text.length && this.#text[to] !== '"') to += this.#text[to] === '\\' ? 2 : 1;
    to = Math.min(to, this.#text.length);
    const raw = this.#text.slice(from, to);
    const top = this.#open.at(-1);
    const isKey = top?.isObject === true && top.isKeyNext;
    if (isKey) top.at = decodeString(raw);
    this.#at = from;
    this.#add('string', raw, isKey);
    this.#at = Math.min(to + 1, this.#text.length);
  }

  #readNumber() {
    NUMBER.lastIndex = this.#at;
    const raw = NUMBER.exec(this.#text)?.[0];
    if (raw === undefined) this.#at++;
    else this.#add('number', raw, false);
  }

  #add(kind, raw, isKey) {
    this.#endLiteral();
    this.#pieces.push({ kind, raw, path: this.#open.map(({ at }) => at), isKey });
    this.#at += raw.length;
    this.#literalFrom = this.#at;
  }

  #endLiteral() {
    if (this.#at > this.#literalFrom) this.#pieces.push({ kind: 'text', raw: this.#text.slice(this.#literalFrom, this.#at) });
    this.#literalFrom = this.#at;
  }
}

/** The text of a raw string; a cut escape at its end is left out. */
export function decodeString(raw) {
  const escaped = raw.replace(/\p{Cc}/gu, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`);
  for (let cut = 0; cut <= 6; cut++)
    try {
      return JSON.parse(`"${escaped.slice(0, escaped.length - cut)}"`);
    } catch {}
  return raw;
}
