// Constants at the top of a file without imports: bundlers inline them.
export const TAB = 0x09;

export const LF = 0x0a;

export const CR = 0x0d;

export const SPACE = 0x20;

export const COMMA = 0x2c;

export const COLON = 0x3a;

export const LOWER_D = 0x64;

export const LOWER_E = 0x65;

export const LOWER_I = 0x69;

export const LOWER_R = 0x72;

export const FIRST_NOT_ASCII = 0x80;

const SMALLEST = 256;

/** Below this many bytes a loop is cheaper than `set` and `subarray`. */
const SHORT = 24;

// A BOM inside a value is text; the one before the first line is taken off by the decoder.
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true });

const STRICT_UTF8 = new TextDecoder('utf-8', { fatal: true });

export const decodeUtf8 = (bytes: Uint8Array, from?: number, to?: number): string => UTF8.decode(bytes.subarray(from, to));

/** Whether the first `length` bytes of `piece` stand in `bytes` at `from`. */
export function isAt(piece: Uint8Array, bytes: Uint8Array, from: number, length: number = piece.length): boolean {
  for (let at = 0; at < length; at++) if (piece[at] !== bytes[from + at]) return false;
  return true;
}

export function isUtf8(bytes: Uint8Array, from: number, to: number): boolean {
  try {
    STRICT_UTF8.decode(bytes.subarray(from, to));
    return true;
  } catch {
    return false;
  }
}

/** A buffer that grew beyond this for one big line is given back after it. */
const LARGEST_KEPT = 1 << 20;

const NO_BYTES: Uint8Array = new Uint8Array(0);

/** Bytes kept from one chunk to the next, copied, because the caller may use its chunk again. */
export class ByteBuffer {
  bytes: Uint8Array = NO_BYTES;
  length = 0;

  append(source: Uint8Array, from: number, to: number): void {
    const length = this.length + to - from;
    if (length > this.bytes.length) this.#grow(length);
    if (to - from > SHORT) this.bytes.set(source.subarray(from, to), this.length);
    else for (let at = from, put = this.length; at < to; at++, put++) this.bytes[put] = source[at] ?? 0;
    this.length = length;
  }

  clear(): void {
    this.length = 0;
    if (this.bytes.length > LARGEST_KEPT) this.free();
  }

  free(): void {
    this.length = 0;
    this.bytes = NO_BYTES;
  }

  // Doubling keeps a stream that comes byte by byte linear.
  #grow(needed: number): void {
    const grown = new Uint8Array(Math.max(needed, this.bytes.length * 2, SMALLEST));
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
  }
}

const NO_WORDS = new Int32Array(0);

/** Shorter chunks are read byte by byte: the view of words would cost more than it saves. */
const WORTH_A_VIEW = 128;

/** The longest run of lines decoded at once. Frames may keep all of it alive, so it is not the whole chunk. */
const WINDOW = 2048;

/**
 * The chunk in hand. Two things here are for speed alone (measured together: a quarter of the cost). Line ends are searched four bytes at a time, since
 * `indexOf` of a typed array is not vectorised and would run once for CR and once for LF. Runs of ASCII lines are decoded by one call and
 * sliced: a call of TextDecoder costs more than decoding a line.
 */
export class ChunkReader {
  #bytes: Uint8Array = NO_BYTES;
  #words: Int32Array = NO_WORDS;
  /** Bytes before the first aligned word. */
  #lead = 0;
  #window = '';
  #windowStart = 0;
  #windowEnd = 0;

  open(bytes: Uint8Array): void {
    if (bytes.length < WORTH_A_VIEW) return;
    this.#bytes = bytes;
    this.#lead = -bytes.byteOffset & 3;
    this.#words = new Int32Array(bytes.buffer, bytes.byteOffset + this.#lead, (bytes.length - this.#lead) >> 2);
  }

  /** Lets go of the caller's bytes. */
  close(): void {
    if (this.#bytes === NO_BYTES) return;
    this.#bytes = NO_BYTES;
    this.#words = NO_WORDS;
    this.#window = '';
    this.#windowEnd = 0;
  }

  /** Position of the first CR or LF at or after `from`, or the length. */
  lineEnd(bytes: Uint8Array, from: number): number {
    const { length } = bytes;
    const words = this.#words;
    const lead = this.#lead;
    let at = from;
    let stop = words.length === 0 ? length : from + ((lead - from) & 3);
    for (;;) {
      for (; at < stop; at++) if (bytes[at] === LF || bytes[at] === CR) return at;
      if (at >= length) return length;
      const word = nextControl(words, (at - lead) >> 2);
      at = lead + word * 4;
      stop = word < words.length ? at + 4 : length;
    }
  }

  /** The text, if it is ASCII and inside the chunk; else it has to be decoded by itself. */
  ascii(bytes: Uint8Array, from: number, to: number): string | undefined {
    if (bytes !== this.#bytes) return undefined;
    if (to > this.#windowEnd && !this.#moveWindow(from, to)) return undefined;
    return this.#window.slice(from - this.#windowStart, to - this.#windowStart);
  }

  #moveWindow(from: number, to: number): boolean {
    if (to - from > WINDOW) return false;
    const end = this.#asciiEnd(from);
    if (end < to) return false;
    this.#window = decodeUtf8(this.#bytes, from, end);
    this.#windowStart = from;
    this.#windowEnd = end;
    return true;
  }

  /** Where the run of ASCII bytes ends, or the window. */
  #asciiEnd(from: number): number {
    const bytes = this.#bytes;
    const words = this.#words;
    const aligned = from + ((this.#lead - from) & 3);
    const start = firstNotAscii(bytes, from, aligned);
    if (start < aligned) return start;
    const first = (aligned - this.#lead) >> 2;
    const last = Math.min(first + WINDOW / 4, words.length);
    const word = nextNotAscii(words, first, last);
    const end = this.#lead + word * 4;
    return word === words.length ? firstNotAscii(bytes, end, bytes.length) : end;
  }
}

const HIGH_BITS = 0x80808080 | 0;

/** High bits mark the bytes below 16: CR, LF and (rare in text) other control characters. */
function lowBytes(words: Int32Array, at: number): number {
  const word = words[at] ?? 0;
  return (word - 0x10101010) & ~word;
}

// Both searches take four words a step (measured: a tenth of the cost of reading a stream).
function nextControl(words: Int32Array, from: number): number {
  const { length } = words;
  let at = from;
  for (; at + 4 <= length; at += 4) {
    const low = lowBytes(words, at) | lowBytes(words, at + 1) | lowBytes(words, at + 2) | lowBytes(words, at + 3);
    if ((low & HIGH_BITS) !== 0) break;
  }
  while (at < length && (lowBytes(words, at) & HIGH_BITS) === 0) at++;
  return at;
}

function nextNotAscii(words: Int32Array, from: number, to: number): number {
  const word = (at: number): number => words[at] ?? 0;
  let at = from;
  while (at + 4 <= to && ((word(at) | word(at + 1) | word(at + 2) | word(at + 3)) & HIGH_BITS) === 0) at += 4;
  while (at < to && (word(at) & HIGH_BITS) === 0) at++;
  return at;
}

function firstNotAscii(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to && (bytes[at] ?? 0) < FIRST_NOT_ASCII) at++;
  return at;
}
