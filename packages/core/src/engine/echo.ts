import { type BlockDeltaEvent, blockDelta } from '../canonical/events.ts';
import { BACKSLASH, decodeUtf8, FIRST_NOT_ASCII, isAt, QUOTE, SPACE } from '../sse/bytes.ts';

/** A longer text gains nothing: reading it is what costs. */
const LONGEST_TEXT = 1024;
/** What is kept of a chunk stays small. */
const LONGEST_CHUNK = 8192;
/** So many chunks in a row were unlike the one before them: those that follow will be, too. */
const PATIENCE = 8;

/**
 * A chunk that is like the one before it in all but its text. Most servers repeat everything around the next piece of a text, to the byte; such a
 * chunk needs no parser. Exact by construction: a JSON document in which one literal is exchanged for another says the same, but for that
 * text. Servers that send counters or noise with every piece are not imitated for long.
 */
export class Echo {
  #last: { head: Uint8Array; tail: Uint8Array; event: BlockDeltaEvent } | undefined;
  #misses = 0;

  /** What the chunk says: the event of the one before, with its own text. Undefined when it has to be read to be certain. */
  eventIn(chunk: Uint8Array): BlockDeltaEvent | undefined {
    if (!this.#last) return undefined;
    const { head, tail, event } = this.#last;
    const end = chunk.length - tail.length;
    const length = end - head.length;
    if (length <= 0 || length > LONGEST_TEXT || !isAt(head, chunk, 0) || !isAt(tail, chunk, end)) return undefined;
    this.#misses = 0;
    const text = plainText(chunk, head.length, end);
    return text === undefined ? undefined : blockDelta(event.index, event.choice, { type: 'text_delta', text });
  }

  /** The chunk, which is one whole frame, says this event and nothing else that is new. */
  learn(chunk: Uint8Array, event: BlockDeltaEvent): void {
    this.forget();
    if (event.delta.type !== 'text_delta' || chunk.length > LONGEST_CHUNK || this.#misses++ >= PATIENCE) return;
    const whole = decodeUtf8(chunk);
    const literal = JSON.stringify(event.delta.text);
    const at = whole.indexOf(literal);
    // Where nothing is escaped, a text stands as it is; where it stands but once, that is its place.
    if (!isPlainAscii(chunk) || at < 0 || whole.indexOf(literal, at + 1) >= 0) return;
    this.#last = { head: chunk.slice(0, at + 1), tail: chunk.slice(at + literal.length - 1), event };
  }

  forget(): void {
    this.#last = undefined;
  }
}

function isPlainAscii(chunk: Uint8Array): boolean {
  for (const byte of chunk) if (byte >= FIRST_NOT_ASCII || byte === BACKSLASH) return false;
  return true;
}

/** The inside of a string literal that stands for itself. Bytes that are no UTF-8 are somebody else's business. */
function plainText(chunk: Uint8Array, from: number, to: number): string | undefined {
  let ascii = '';
  let isAscii = true;
  for (let at = from; at < to; at++) {
    const byte = chunk[at] ?? 0;
    if (byte === QUOTE || byte === BACKSLASH || byte < SPACE) return undefined;
    isAscii &&= byte < FIRST_NOT_ASCII;
    if (isAscii) ascii += String.fromCharCode(byte);
  }
  if (isAscii) return ascii;
  const text = decodeUtf8(chunk, from, to);
  return text.includes('\ufffd') ? undefined : text;
}
