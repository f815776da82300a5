import { parseJson, sameJson } from '../json/json.ts';
import { HEAD_AFTER_EMPTY_OBJECT, HEAD_EMPTY_OBJECT, HEAD_OTHER, JsonNesting } from '../json/scanner.ts';

/**
 * The argument text of one call. Most servers send fragments of one document; some send the whole text so far each
 * time, an empty object first, or everything again at the end. This is known only when the call ends, so `decide()`
 * settles the text then. Until then `push` releases only a prefix of every reading that is still possible. A conforming
 * stream is never delayed by more than the current fragment.
 */
export class ArgumentText implements ArgumentTextState {
  // The public fields are the state that is saved.
  text = '';
  last: string | null = '';
  fragments = 0;
  released = 0;
  snapshot = false;
  #nesting = new JsonNesting();
  /** The JSON nesting was read: from then on every fragment is scanned when it arrives. */
  #isInspected = false;
  /** Nothing about the text is uncertain and the nesting was never read: fragments need not be scanned. */
  #isPlain = false;

  /** Whether no fragment arrived. */
  get isEmpty(): boolean {
    return this.fragments === 0;
  }

  /** Whether the last document is closed: an object or array, followed only by white space. */
  get isComplete(): boolean {
    const snapshot = this.#latestSnapshot;
    return snapshot === null ? this.#scanned().complete : isClosed(snapshot);
  }

  /** Whether the text is only `{}`, which some servers send before the real arguments. */
  get isEmptyObject(): boolean {
    return this.#scanned().head === HEAD_EMPTY_OBJECT;
  }

  /**
   * Closed, and no later fragment of a known kind can change it: `{}` may still be a prefix, and a snapshot be
   * replaced.
   */
  get isSettled(): boolean {
    return this.#scanned().complete && this.isComplete && !this.isEmptyObject && !this.snapshot;
  }

  /** Adds a fragment and returns the text that can be released. */
  push(fragment: string): string {
    if (fragment === '') return '';
    const nesting = this.#scanned();
    const before = this.text.length;
    if (nesting.head === HEAD_EMPTY_OBJECT) {
      // The real arguments follow the empty object, and may be cumulative, too.
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
   * Adds a fragment for a caller that needs the text only at the end. Once the fragments are known to be pieces of one
   * document, they are scanned all at once when needed.
   */
  append(fragment: string): void {
    if (this.#isPlain) {
      this.text += fragment;
      return;
    }
    this.push(fragment);
    this.#isPlain = this.last === null && this.#nesting.head === HEAD_OTHER && !this.#isInspected;
  }

  /** The nesting of the whole text. Slicing flattens the text, which would be quadratic if done for every fragment. */
  #scanned(): JsonNesting {
    const nesting = this.#nesting;
    if (nesting.length < this.text.length) {
      this.#isInspected = true;
      this.#isPlain = false;
      nesting.push(this.text.slice(nesting.length));
    }
    return nesting;
  }

  /** Sets arguments that arrived as an object instead of text: each snapshot replaces the one before. */
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

  /** The final text, and how it was read. */
  decide(): { text: string; reading: Reading } {
    const text = this.text;
    const last = this.#latestSnapshot;
    const { firstEnd, head } = this.#scanned();
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

  /** Ends the call: the text that `push` has not released yet, and how the whole was read. */
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

/** How the fragments of one call were read. Only `plain` follows the standard. */
export type Reading = 'plain' | 'cumulative' | 'after-empty-object' | 'sent-again' | 'unreadable';

/** The state of an `ArgumentText` as JSON; everything else is derived from it. */
export interface ArgumentTextState {
  /** Everything received, in order. */
  text: string;
  /** The last fragment, while every fragment began with the one before it; null once one did not. */
  last: string | null;
  fragments: number;
  released: number;
  /** The arguments arrived as an object: another object replaces it. */
  snapshot: boolean;
}

function isClosed(text: string): boolean {
  const nesting = new JsonNesting();
  nesting.push(text);
  return nesting.complete;
}

/**
 * A short stable id for a call or message without one. The same input gives the same id, so that prompt caches stay
 * warm and outputs can be compared. Three FNV-1a hashes over UTF-16 units; uniqueness comes from the position in
 * `parts`, not from the hash.
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
