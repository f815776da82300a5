import { CLOSE_ARRAY, CLOSE_OBJECT, JsonScanner, OPEN_ARRAY, OPEN_OBJECT } from '../json/scanner.ts';
import { ByteBuffer, COMMA, CR, LF, SPACE, TAB } from './bytes.ts';

/** What may follow the opener: `{oops` and `[info] …` are no documents. */
const AFTER_OBJECT = '"}';

const AFTER_ARRAY = '{["]-0123456789tfn';

const isSpace = (byte: number | undefined): boolean => byte === SPACE || byte === LF || byte === CR || byte === TAB;

/** What may stand between two elements of an array. */
const isBetween = (byte: number | undefined): boolean => byte === COMMA || isSpace(byte);

const closesJson = (byte: number | undefined): boolean => byte === CLOSE_OBJECT || byte === CLOSE_ARRAY;

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
  /** Begins with the value: the bracket of an array around the values is not counted. */
  #scanner = new JsonScanner();
  /** The values are the elements of an array; otherwise the value is the document itself. */
  #isArray = false;
  #proven = false;
  /** Fields of an event may follow on the next line: the document has to show on the line of its opener. */
  #isInEvent = false;

  /** `bytes[at]` is the opener: a brace or a bracket. `isInEvent`: an event is open there, and has data. */
  open(bytes: Uint8Array, at: number, base: number, isInEvent: boolean): void {
    this.isOpen = this.isEmpty = true;
    this.#isInEvent = isInEvent;
    this.#leftLine = this.#isIndented = this.#proven = false;
    this.opener = bytes[at] ?? 0;
    this.#scanner = new JsonScanner();
    this.#isArray = this.opener === OPEN_ARRAY;
    this.offset = base + at;
    this.value.clear();
    if (this.#isArray) return;
    this.#scanner.step(this.opener);
    this.value.append(bytes, at, at + 1);
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
    if (!this.#isArray) this.value.append(bytes, from, at);
    this.position = at;
    if (at === bytes.length) return false;
    this.isOpen = this.#proven = (this.#isArray ? AFTER_ARRAY : AFTER_OBJECT).includes(String.fromCharCode(bytes[at] ?? 0));
    return this.#proven;
  }

  /** Goes to the next element of the array. False: not there yet, or the array closed (then the cutter is closed). */
  #seek(bytes: Uint8Array, base: number): boolean {
    let at = this.position;
    while (isBetween(bytes[at])) at++;
    this.position = at;
    if (at === bytes.length) return false;
    if (closesJson(bytes[at])) {
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
    const scanner = this.#scanner;
    while (at < bytes.length && !closed) {
      const byte = bytes[at] ?? 0;
      // A number or a word ends before the byte that follows it.
      if (scanner.depth === 0 && !scanner.isInString && (isBetween(byte) || closesJson(byte))) break;
      closed = scanner.step(byte) && scanner.depth === 0;
      at++;
    }
    this.value.append(bytes, from, at);
    this.position = at;
    if (closed && !this.#isArray) this.isOpen = false;
    return closed || at < bytes.length;
  }
}
