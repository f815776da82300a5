import { decodeUtf8 } from '../sse/bytes.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const FIRST_PRINTABLE = 0x20;
const FIRST_NOT_ASCII = 0x80;
/** A longer text gains nothing: reading it is what costs. */
const LONGEST_TEXT = 1024;
/** So many chunks in a row were unlike the one before them: those that follow will be, too. */
const PATIENCE = 8;

/**
 * A chunk that is like the one before it in all but its text. Most servers repeat everything around the next piece of a text, to the byte; such a
 * chunk needs no parser. Exact by construction: a JSON document in which one literal is exchanged for another says the same, but for that
 * text. Servers that send counters or noise with every piece are not imitated for long.
 */
export class Echo {
  #head: Uint8Array | undefined;
  #tail: Uint8Array | undefined;
  #misses = 0;

  /** Whether it is worth showing it another chunk. */
  get isLearning(): boolean {
    return this.#misses < PATIENCE;
  }

  /** What the chunk says in place of the text of the one before; undefined when it differs in more, or has to be read to be certain. */
  textIn(chunk: Uint8Array): string | undefined {
    const head = this.#head;
    const tail = this.#tail;
    if (head === undefined || tail === undefined) return undefined;
    const end = chunk.length - tail.length;
    const length = end - head.length;
    if (length <= 0 || length > LONGEST_TEXT || !isAt(head, chunk, 0) || !isAt(tail, chunk, end)) return undefined;
    this.#misses = 0;
    return plainText(chunk, head.length, end);
  }

  /** The chunk, which is one whole frame, says this text and nothing else that is new. */
  learn(chunk: Uint8Array, text: string): void {
    this.#misses++;
    const whole = decodeUtf8(chunk, 0, chunk.length);
    const literal = JSON.stringify(text);
    const at = whole.indexOf(literal);
    // Where nothing is escaped, a text stands as it is; where it stands but once, that is its place.
    if (!isPlainAscii(chunk) || at < 0 || whole.indexOf(literal, at + 1) >= 0) this.forget();
    else {
      this.#head = chunk.slice(0, at + 1);
      this.#tail = chunk.slice(at + literal.length - 1);
    }
  }

  forget(): void {
    this.#head = this.#tail = undefined;
  }
}

function isAt(piece: Uint8Array, chunk: Uint8Array, from: number): boolean {
  for (let at = 0; at < piece.length; at++) if (piece[at] !== chunk[from + at]) return false;
  return true;
}

function isPlainAscii(chunk: Uint8Array): boolean {
  for (const byte of chunk) if (byte >= FIRST_NOT_ASCII || byte === BACKSLASH) return false;
  return true;
}

/** The inside of a string literal that stands for itself. Bytes that are no UTF-8 are somebody else's business. */
function plainText(chunk: Uint8Array, from: number, to: number): string | undefined {
  let text = '';
  for (let at = from; at < to; at++) {
    const byte = chunk[at] ?? 0;
    if (byte === QUOTE || byte === BACKSLASH || byte < FIRST_PRINTABLE) return undefined;
    if (byte >= FIRST_NOT_ASCII) return wholeText(chunk, from, to);
    text += String.fromCharCode(byte);
  }
  return text;
}

function wholeText(chunk: Uint8Array, from: number, to: number): string | undefined {
  for (let at = from; at < to; at++) {
    const byte = chunk[at] ?? 0;
    if (byte === QUOTE || byte === BACKSLASH || byte < FIRST_PRINTABLE) return undefined;
  }
  const text = decodeUtf8(chunk, from, to);
  return text.includes('\ufffd') ? undefined : text;
}
