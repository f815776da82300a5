import {
  BACKSLASH,
  ByteBuffer,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  CR,
  LF,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  SPACE,
  TAB,
} from './bytes.ts';

/** What may follow the opener: `{oops` and `[info] …` are no documents. */
const AFTER_OBJECT = '"}';
const AFTER_ARRAY = '{["]-0123456789tfn';

const isSpace = (byte: number | undefined): boolean => byte === SPACE || byte === LF || byte === CR || byte === TAB;
export const opensJson = (byte: number | undefined): boolean => byte === OPEN_OBJECT || byte === OPEN_ARRAY;

/** `more`: the bytes ran out. `value`: `value` holds a whole one. `end`: the array closed. `refused`: this is no JSON document. */
export type Cut = 'more' | 'value' | 'end' | 'refused';

/**
 * Cuts JSON documents out of bytes by their nesting, live: an object when its brace closes, the elements of a top-level array one by one
 * (Gemini without `alt=sse` streams one array over the whole reply: `[{…}\n,\r\n{…}]`). Whether a value is valid is the reader's business.
 */
export class JsonCutter {
  /** The value being collected. The reader clears it after `value`. */
  readonly value: ByteBuffer = new ByteBuffer();
  /** Where the value began, in bytes from the start of the body. */
  offset = 0;
  /** After `read`: the first byte it did not take. */
  position = 0;
  /** The brace or bracket the document began with. */
  opener = 0;
  /** A document has been opened and has not closed. */
  isOpen = false;
  /** No value has begun since the opener. */
  isEmpty = true;

  /** Set when a line ended between the opener and what `read` refused. */
  #leftLine = false;
  /** Set when blanks stood before it, on its line. */
  #isIndented = false;
  #depth = 0;
  /** The depth at which values stand: 0 for an object, 1 for the elements of an array. */
  #floor = 0;
  #proven = false;
  /** Fields of an event may follow on the next line: the document has to show on the line of its opener. */
  #isInEvent = false;
  #inString = false;
  #escaped = false;

  /** `bytes[at]` is the opener: a brace or a bracket. `isInEvent`: an event is open there, and has data. */
  open(bytes: Uint8Array, at: number, base: number, isInEvent: boolean): void {
    this.isOpen = this.isEmpty = true;
    this.#isInEvent = isInEvent;
    this.#leftLine = this.#isIndented = this.#proven = this.#inString = this.#escaped = false;
    this.#depth = 1;
    this.opener = bytes[at] ?? 0;
    this.#floor = this.opener === OPEN_ARRAY ? 1 : 0;
    this.offset = base + at;
    this.value.clear();
    if (this.#floor === 0) this.value.append(bytes, at, at + 1);
  }

  /** After `refused`: what the ordinary line begins with, of which the brace or bracket was a part; undefined for nothing. */
  get lineStart(): number | undefined {
    if (!this.#leftLine) return this.opener;
    return this.#isIndented ? SPACE : undefined;
  }

  /** `base` is the place of `bytes[0]` in the body. */
  read(bytes: Uint8Array, from: number, base: number): Cut {
    this.position = from;
    if (!this.#proven && !this.#prove(bytes)) return this.isOpen ? 'more' : 'refused';
    if (this.value.length === 0 && !this.#seek(bytes, base)) return this.isOpen ? 'more' : 'end';
    return this.#collect(bytes) ? 'value' : 'more';
  }

  /** Looks at the first byte after the opener. False: not there yet, or refused (then the cutter is closed). */
  #prove(bytes: Uint8Array): boolean {
    const from = this.position;
    let at = from;
    while (isSpace(bytes[at])) {
      this.#isIndented = bytes[at] === SPACE || bytes[at] === TAB;
      if (!this.#isIndented) {
        if (this.#isInEvent) break;
        this.#leftLine = true;
      }
      at++;
    }
    if (this.#floor === 0) this.value.append(bytes, from, at);
    this.position = at;
    if (at === bytes.length) return false;
    this.#proven = (this.#floor === 0 ? AFTER_OBJECT : AFTER_ARRAY).includes(String.fromCharCode(bytes[at] ?? 0));
    this.isOpen = this.#proven;
    return this.#proven;
  }

  /** Goes to the next element of the array. False: not there yet, or the array closed (then the cutter is closed). */
  #seek(bytes: Uint8Array, base: number): boolean {
    let at = this.position;
    while (isSpace(bytes[at]) || bytes[at] === COMMA) at++;
    this.position = at;
    if (at === bytes.length) return false;
    if (bytes[at] === CLOSE_ARRAY || bytes[at] === CLOSE_OBJECT) {
      this.position = at + 1;
      this.isOpen = false;
      return false;
    }
    this.offset = base + at;
    this.isEmpty = false;
    return true;
  }

  #collect(bytes: Uint8Array): boolean {
    const from = this.position;
    let at = from;
    let closed = false;
    while (at < bytes.length && !closed) {
      const byte = bytes[at];
      if (this.#inString) closed = this.#stepInString(byte);
      // A number or a word ends before the byte that follows it.
      else if (this.#depth === this.#floor && this.#endsScalar(byte)) break;
      else closed = this.#step(byte);
      at++;
    }
    this.value.append(bytes, from, at);
    this.position = at;
    if (closed && this.#floor === 0) this.isOpen = false;
    return closed || at < bytes.length;
  }

  #stepInString(byte: number | undefined): boolean {
    if (this.#escaped) this.#escaped = false;
    else if (byte === BACKSLASH) this.#escaped = true;
    else if (byte === QUOTE) {
      this.#inString = false;
      return this.#depth === this.#floor;
    }
    return false;
  }

  #step(byte: number | undefined): boolean {
    if (byte === QUOTE) this.#inString = true;
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) this.#depth++;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) return --this.#depth === this.#floor;
    return false;
  }

  #endsScalar(byte: number | undefined): boolean {
    return byte === COMMA || byte === CLOSE_ARRAY || byte === CLOSE_OBJECT || isSpace(byte);
  }
}
