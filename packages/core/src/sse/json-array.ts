import { CLOSE_ARRAY, CLOSE_OBJECT, JsonScanner, OPEN_ARRAY, OPEN_OBJECT } from '../json/scanner.ts';
import { ByteBuffer, COMMA, CR, LF, SPACE, TAB } from './bytes.ts';

/**
 * Cuts JSON documents out of bytes by their nesting: an object when its brace closes, the elements of a top-level array
 * one by one (Gemini without `alt=sse` streams one array over the whole response: `[{…}\n,\r\n{…}]`). It does not check
 * whether a value is valid.
 */
export class JsonCutter {
  /** The value that is being collected. The reader clears it after `value`. */
  readonly value: ByteBuffer = new ByteBuffer();
  /** Where the value began, in bytes from the start of the body. */
  offset = 0;
  /** After `read`: the first byte that was not read. */
  position = 0;
  /** The brace or bracket that the document began with. */
  opener = 0;
  /** A document is open. */
  isOpen = false;
  /** No value has begun since the opener. */
  isEmpty = true;

  /** A line ended between the opener and what `read` refused. */
  #leftLine = false;
  /** Blanks were before it on its line. */
  #isIndented = false;
  /** Starts with the value: the bracket of an array around the values is not counted. */
  #scanner = new JsonScanner();
  /** The values are the elements of an array; otherwise the value is the document itself. */
  #isArray = false;
  #isConfirmed = false;
  /** Fields of an event may follow on the next line, so the document must be confirmed on the line of its opener. */
  #isInEvent = false;

  /** `bytes[at]` is the opener: a brace or a bracket. `isInEvent`: an event with data is open. */
  open(bytes: Uint8Array, at: number, base: number, isInEvent: boolean): void {
    this.isOpen = this.isEmpty = true;
    this.#isInEvent = isInEvent;
    this.#leftLine = this.#isIndented = this.#isConfirmed = false;
    this.opener = bytes[at] ?? 0;
    this.#scanner = new JsonScanner();
    this.#isArray = this.opener === OPEN_ARRAY;
    this.offset = base + at;
    this.value.clear();
    if (this.#isArray) return;
    this.#scanner.step(this.opener);
    this.value.append(bytes, at, at + 1);
  }

  /** After `refused`: the byte that the ordinary line begins with; undefined for none. */
  get lineStart(): number | undefined {
    if (!this.#leftLine) return this.opener;
    return this.#isIndented ? SPACE : undefined;
  }

  /** Reads on from `from`. `base` is the position of `bytes[0]` in the body. */
  read(bytes: Uint8Array, from: number, base: number): Cut {
    this.position = from;
    if (!this.#isConfirmed && !this.#confirm(bytes)) return this.isOpen ? 'more' : 'refused';
    if (this.value.length === 0 && !this.#seek(bytes, base)) return this.isOpen ? 'more' : 'end';
    return this.#collect(bytes) ? 'value' : 'more';
  }

  /** Checks the first byte after the opener. False: not there yet, or refused (then the cutter is closed). */
  #confirm(bytes: Uint8Array): boolean {
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
    this.isOpen = this.#isConfirmed = (this.#isArray ? AFTER_ARRAY : AFTER_OBJECT).includes(String.fromCharCode(bytes[at] ?? 0));
    return this.#isConfirmed;
  }

  /** Moves to the next element of the array. False: not there yet, or the array closed (then the cutter is closed). */
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

/**
 * `more`: the bytes ran out. `value`: `value` holds a complete one. `end`: the array closed. `refused`: not a JSON
 * document.
 */
export type Cut = 'more' | 'value' | 'end' | 'refused';

/** The characters that may follow an opening brace: `{oops` is not a document. */
const AFTER_OBJECT = '"}';

/** The characters that may follow an opening bracket: `[info] …` is not a document. */
const AFTER_ARRAY = '{["]-0123456789tfn';

/** Whether a byte opens an object or an array. */
export const opensJson = (byte: number | undefined): boolean => byte === OPEN_OBJECT || byte === OPEN_ARRAY;

const closesJson = (byte: number | undefined): boolean => byte === CLOSE_OBJECT || byte === CLOSE_ARRAY;

/** Whether a byte may occur between two elements of an array. */
const isBetween = (byte: number | undefined): boolean => byte === COMMA || isSpace(byte);

const isSpace = (byte: number | undefined): boolean => byte === SPACE || byte === LF || byte === CR || byte === TAB;
