const QUOTE = 34;
const BACKSLASH = 92;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
/** `[` and `{`, `]` and `}` differ in this bit only. */
const BRACE_BIT = 32;

/** What begins the text, as far as it is known: only an empty object can be a prefix that some servers send before the real arguments. */
const HEAD_BLANK = 0;
const HEAD_BRACE = 1;
export const HEAD_EMPTY_OBJECT = 2;
export const HEAD_AFTER_EMPTY_OBJECT = 3;
export const HEAD_OTHER = 4;
/** Constants at the top of a file without imports: bundlers inline them. */
type Head = typeof HEAD_BLANK | typeof HEAD_BRACE | typeof HEAD_EMPTY_OBJECT | typeof HEAD_AFTER_EMPTY_OBJECT | typeof HEAD_OTHER;

/** After so many characters without a mark, the native search for the next one is cheaper than going on one by one. */
const WORTH_A_SEARCH = 24;
const STRING_MARK = /["\\]/g;
const STRUCTURE_MARK = /["{}[\]]/g;

/** Where the next mark is, or the length. */
function find(mark: RegExp, text: string, from: number): number {
  mark.lastIndex = from;
  return mark.test(text) ? mark.lastIndex - 1 : text.length;
}

/**
 * Follows the nesting of a JSON text that arrives in fragments: each character is looked at once, nothing is parsed and nothing is kept.
 * It does not validate: whether a closed document is JSON is decided once, by JSON.parse, when it matters.
 */
export class JsonNesting {
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** The text ends in a closed object or array, and nothing but white space follows. */
  complete = false;
  head: Head = HEAD_BLANK;
  /** The most levels that were open at a time. */
  deepest = 0;
  /** Characters seen. */
  length = 0;
  /** Where the first document ended, or -1. */
  firstEnd = -1;

  push(fragment: string): void {
    let at = 0;
    while (at < fragment.length) at = this.#inString ? this.#readString(fragment, at) : this.#readStructure(fragment, at);
    this.length += fragment.length;
  }

  /** Reads to the end of the string or of the fragment, and says where it stopped. */
  #readString(fragment: string, from: number): number {
    let escaped = this.#escaped;
    let mark = from;
    for (let at = from; at < fragment.length; at++) {
      const c = fragment.charCodeAt(at);
      if (escaped) escaped = false;
      else if (c === BACKSLASH) {
        escaped = true;
        mark = at;
      } else if (c === QUOTE) {
        this.#inString = false;
        this.#escaped = false;
        if (this.#depth === 0) this.#endDocument(at);
        return at + 1;
      } else if (at - mark >= WORTH_A_SEARCH) at = find(STRING_MARK, fragment, at + 1) - 1;
    }
    this.#escaped = escaped;
    return fragment.length;
  }

  /** Reads to the beginning of a string or to the end of the fragment, over local copies of the state: this runs for every character. */
  #readStructure(fragment: string, from: number): number {
    let depth = this.#depth;
    let head: Head = this.head;
    let mark = from;
    let at = from;
    while (at < fragment.length && !this.#inString) {
      const c = fragment.charCodeAt(at++);
      if (c <= 32) continue;
      if (head !== HEAD_OTHER) head = nextHead(head, c);
      if (depth === 0) this.complete = false;
      if (c === QUOTE) this.#inString = true;
      else if ((c | BRACE_BIT) === OPEN_BRACE) {
        if (++depth > this.deepest) this.deepest = depth;
        mark = at;
      } else if ((c | BRACE_BIT) === CLOSE_BRACE) {
        if (depth > 0 && --depth === 0) {
          this.complete = true;
          this.#endDocument(at - 1);
        }
        mark = at;
      } else if (at - mark >= WORTH_A_SEARCH) at = find(STRUCTURE_MARK, fragment, at);
    }
    this.#depth = depth;
    this.head = head;
    return at;
  }

  #endDocument(at: number): void {
    if (this.firstEnd < 0) this.firstEnd = this.length + at + 1;
  }
}

/** The head after one more character that is no white space. */
function nextHead(head: Head, c: number): Head {
  if (head === HEAD_BLANK) return c === OPEN_BRACE ? HEAD_BRACE : HEAD_OTHER;
  if (head === HEAD_BRACE) return c === CLOSE_BRACE ? HEAD_EMPTY_OBJECT : HEAD_OTHER;
  return HEAD_AFTER_EMPTY_OBJECT;
}
