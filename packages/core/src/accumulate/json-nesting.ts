const QUOTE = 34;
const BACKSLASH = 92;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
/** `[` and `{`, `]` and `}` differ in this bit only. */
const BRACE_BIT = 32;

/** What begins the text, as far as it is known: only an empty object can be a prefix that some servers send before the real arguments. */
export const Head = { blank: 0, brace: 1, emptyObject: 2, afterEmptyObject: 3, other: 4 } as const;
export type Head = (typeof Head)[keyof typeof Head];

export interface JsonNestingState {
  depth: number;
  inString: boolean;
  escaped: boolean;
  complete: boolean;
  head: Head;
  length: number;
  firstEnd: number;
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
  head: Head = Head.blank;
  /** Characters seen. */
  length = 0;
  /** Where the first document ended, or -1. */
  firstEnd = -1;

  /** One loop over local copies of the state: this runs for every character of every call. */
  push(fragment: string): void {
    let depth = this.#depth;
    let inString = this.#inString;
    let escaped = this.#escaped;
    let complete = this.complete;
    let head: Head = this.head;
    for (let i = 0; i < fragment.length; i++) {
      const c = fragment.charCodeAt(i);
      if (inString) {
        if (escaped) escaped = false;
        else if (c === BACKSLASH) escaped = true;
        else if (c === QUOTE) {
          inString = false;
          if (depth === 0) this.#endDocument(i);
        }
        continue;
      }
      if (c <= 32) continue;
      if (head !== Head.other) head = nextHead(head, c);
      if (depth === 0) complete = false;
      if (c === QUOTE) inString = true;
      else if ((c | BRACE_BIT) === OPEN_BRACE) depth++;
      else if ((c | BRACE_BIT) === CLOSE_BRACE && depth > 0 && --depth === 0) {
        complete = true;
        this.#endDocument(i);
      }
    }
    this.length += fragment.length;
    this.#depth = depth;
    this.#inString = inString;
    this.#escaped = escaped;
    this.complete = complete;
    this.head = head;
  }

  #endDocument(at: number): void {
    if (this.firstEnd < 0) this.firstEnd = this.length + at + 1;
  }

  toJSON(): JsonNestingState {
    const { complete, head, length, firstEnd } = this;
    return { depth: this.#depth, inString: this.#inString, escaped: this.#escaped, complete, head, length, firstEnd };
  }

  static fromJSON(state: JsonNestingState): JsonNesting {
    const nesting = new JsonNesting();
    nesting.#depth = state.depth;
    nesting.#inString = state.inString;
    nesting.#escaped = state.escaped;
    nesting.complete = state.complete;
    nesting.head = state.head;
    nesting.length = state.length;
    nesting.firstEnd = state.firstEnd;
    return nesting;
  }
}

/** The head after one more character that is no white space. */
function nextHead(head: Head, c: number): Head {
  if (head === Head.blank) return c === OPEN_BRACE ? Head.brace : Head.other;
  if (head === Head.brace) return c === CLOSE_BRACE ? Head.emptyObject : Head.other;
  return Head.afterEmptyObject;
}
