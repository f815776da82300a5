import { parseJson, sameJson } from '../json/json.ts';
import { HEAD_AFTER_EMPTY_OBJECT, HEAD_EMPTY_OBJECT, HEAD_OTHER, JsonNesting } from '../json/scanner.ts';

/** How the fragments of one call were read in the end. Only `plain` is what the standard says. */
export type Reading = 'plain' | 'cumulative' | 'after-empty-object' | 'sent-again' | 'unreadable';

/** What is saved of an `ArgumentText`; the rest follows from it. */
export interface ArgumentTextState {
  /** Everything received, in order. */
  text: string;
  /** The fragment before, as long as every fragment began with the one before it; null once one did not. */
  last: string | null;
  fragments: number;
  released: number;
  /** The arguments came as an object: another one replaces it. */
  snapshot: boolean;
}

/**
 * The argument text of one call. Most servers send fragments of one document; some send the whole text so far each time, an empty object
 * first, or everything once more at the end. Which of these it was is known only when the call ends, so the text is decided once, by
 * `decide()`; until then `push` releases only what is a prefix of every reading that is still possible. A conforming stream is never held
 * back by more than the fragment in hand.
 */
export class ArgumentText implements ArgumentTextState {
  // The public fields are the state: a copy of them is the saved one.
  text = '';
  last: string | null = '';
  fragments = 0;
  released = 0;
  snapshot = false;
  #nesting = new JsonNesting();
  /** Somebody wanted to know how far the JSON is: from then on every fragment is looked at when it comes. */
  #isAsked = false;
  /** Nothing about the text is uncertain and nobody asked: fragments need not be looked at. */
  #isPlain = false;

  get isEmpty(): boolean {
    return this.fragments === 0;
  }

  /** The last document is closed: an object or array, with nothing but white space behind it. */
  get isComplete(): boolean {
    const snapshot = this.#latestSnapshot;
    return snapshot === null ? this.#nested().complete : isClosed(snapshot);
  }

  /** Nothing but `{}`: some servers send it before the real arguments. */
  get isEmptyObject(): boolean {
    return this.#nested().head === HEAD_EMPTY_OBJECT;
  }

  /** Closed, and no later fragment of a known kind can change it: `{}` may still be a prefix, and a snapshot be replaced by the next. */
  get isSettled(): boolean {
    return this.#nested().complete && this.isComplete && !this.isEmptyObject && !this.snapshot;
  }

  /** Takes a fragment and returns the text that can go out now. */
  push(fragment: string): string {
    if (fragment === '') return '';
    const nesting = this.#nested();
    const before = this.text.length;
    if (nesting.head === HEAD_EMPTY_OBJECT) {
      // The real arguments begin after an empty object, and may be cumulative as well.
      this.last = '';
      this.fragments = 0;
    }
    this.text += fragment;
    this.fragments++;
    nesting.push(fragment);
    if (this.last !== null) this.last = fragment.startsWith(this.last) ? fragment : null;
    if (nesting.head !== HEAD_OTHER || this.#latestSnapshot !== null) return '';
    const end = nesting.firstEnd < 0 ? this.text.length : nesting.firstEnd;
    if (end <= this.released) return '';
    const out = this.released === before && end === this.text.length ? fragment : this.text.slice(this.released, end);
    this.released = end;
    return out;
  }

  /**
   * Takes a fragment for a caller that needs the text only at its end. As soon as the fragments are known to be pieces of one document,
   * they are not looked at any more, and all at once when it matters.
   */
  append(fragment: string): void {
    if (this.#isPlain) {
      this.text += fragment;
      return;
    }
    this.push(fragment);
    this.#isPlain = this.last === null && this.#nesting.head === HEAD_OTHER && !this.#isAsked;
  }

  /** The nesting of the whole text. Being asked once makes the text flat; asked with every fragment, that would be quadratic. */
  #nested(): JsonNesting {
    const nesting = this.#nesting;
    if (nesting.length < this.text.length) {
      this.#isAsked = true;
      this.#isPlain = false;
      nesting.push(this.text.slice(nesting.length));
    }
    return nesting;
  }

  /** Takes arguments that arrived as an object instead of text: each snapshot replaces the one before. */
  replace(text: string): void {
    if (this.released > 0) {
      this.push(text);
      return;
    }
    this.text = text;
    this.last = null;
    this.fragments++;
    this.snapshot = true;
    this.#nesting = new JsonNesting();
  }

  /** The text as finally read. */
  decide(): { text: string; reading: Reading } {
    const text = this.text;
    const last = this.#latestSnapshot;
    const { firstEnd, head } = this.#nested();
    const overrun = firstEnd >= 0 && text.slice(firstEnd).trim() !== '';
    if ((last === null && !overrun) || parseJson(text) !== undefined) return { text, reading: 'plain' };
    if (last !== null && parseJson(last) !== undefined) return { text: last, reading: 'cumulative' };
    if (!overrun) return { text, reading: 'plain' };
    const rest = text.slice(firstEnd);
    if (head === HEAD_AFTER_EMPTY_OBJECT && parseJson(rest) !== undefined) return { text: rest, reading: 'after-empty-object' };
    const first = text.slice(0, firstEnd);
    const value = parseJson(first);
    if (value !== undefined && sameJson(value, parseJson(rest))) return { text: first, reading: 'sent-again' };
    return { text, reading: 'unreadable' };
  }

  /** Ends the call: what `push` has not released yet, and how the whole was read. */
  end(): { rest: string; text: string; reading: Reading } {
    const { text, reading } = this.decide();
    const rest = text.slice(this.released);
    this.released = text.length;
    return { rest, text, reading };
  }

  /** The last fragment, if there are several and each begins with the one before; otherwise null. */
  get #latestSnapshot(): string | null {
    return this.fragments > 1 ? this.last : null;
  }
}

function isClosed(text: string): boolean {
  const nesting = new JsonNesting();
  nesting.push(text);
  return nesting.complete;
}

/**
 * A short stable id for what the wire left unnamed: the same input gives the same id, so that prompt caches stay warm and outputs can be
 * compared. Two rounds of FNV-1a over UTF-16 units; uniqueness comes from the position in `parts`, not from the hash.
 */
export function deriveId(prefix: string, ...parts: (string | number)[]): string {
  const text = parts.join('\u0000');
  return prefix + hash(text, 0x811c9dc5) + hash(text, 0x9747b28c) + hash(text, 0x5bd1e995);
}

function hash(text: string, seed: number): string {
  let h = seed;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return (h >>> 0).toString(16).padStart(8, '0');
}
