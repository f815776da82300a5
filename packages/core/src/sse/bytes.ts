/** Bytes of a stream. The constants come first, in a file without imports, so that bundlers inline them. */

/** Tab. */
export const TAB = 0x09;

/** Line feed. */
export const LF = 0x0a;

/** Carriage return. */
export const CR = 0x0d;

/** Space. */
export const SPACE = 0x20;

/** `,` */
export const COMMA = 0x2c;

/** `:` */
export const COLON = 0x3a;

/** `d` */
export const LOWER_D = 0x64;

/** `e` */
export const LOWER_E = 0x65;

/** `i` */
export const LOWER_I = 0x69;

/** `r` */
export const LOWER_R = 0x72;

/** The first byte value beyond ASCII. */
export const FIRST_NOT_ASCII = 0x80;

/** The first capacity of a buffer. */
const MIN_CAPACITY = 256;

/** A buffer that grew larger than this for one big line is released after it. */
const MAX_IDLE_CAPACITY = 1 << 20;

/** Up to this many bytes a loop is cheaper than `set` and `subarray`. */
const MAX_LOOP = 24;

/** Shorter chunks are read byte by byte: creating a view of words would cost more than it saves. */
const MIN_VIEW = 128;

/** The longest run of lines decoded at once. Frames may keep all of it in memory, so it is not the whole chunk. */
const WINDOW = 2048;

const HIGH_BITS = 0x80808080 | 0;

const NO_BYTES: Uint8Array = /* @__PURE__ */ new Uint8Array(0);

const NO_WORDS = /* @__PURE__ */ new Int32Array(0);

/** Bytes that are kept between chunks: a copy, because the caller may reuse its chunk. */
export class ByteBuffer {
  bytes: Uint8Array = NO_BYTES;
  length = 0;

  /** Appends `source` from `from` to `to`. */
  append(source: Uint8Array, from: number, to: number): void {
    const length = this.length + to - from;
    if (length > this.bytes.length) this.#grow(length);
    if (to - from > MAX_LOOP) this.bytes.set(source.subarray(from, to), this.length);
    else for (let at = from, put = this.length; at < to; at++, put++) this.bytes[put] = source[at] ?? 0;
    this.length = length;
  }

  /** Removes all bytes; keeps a buffer of ordinary size for the next ones. */
  clear(): void {
    this.length = 0;
    if (this.bytes.length > MAX_IDLE_CAPACITY) this.free();
  }

  /** Removes all bytes and releases the buffer. */
  free(): void {
    this.length = 0;
    this.bytes = NO_BYTES;
  }

  // Doubling keeps a stream that arrives byte by byte linear.
  #grow(needed: number): void {
    const grown = new Uint8Array(Math.max(needed, this.bytes.length * 2, MIN_CAPACITY));
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
  }
}

/**
 * Reads the current chunk. Two optimisations together save a quarter of the cost. Line ends are searched four bytes at
 * a time, because `indexOf` of a typed array is not vectorised and would run once for CR and once for LF. Runs of ASCII
 * lines are decoded by one call and sliced, because a TextDecoder call costs more than decoding a line.
 */
export class ChunkReader {
  #bytes: Uint8Array = NO_BYTES;
  #words: Int32Array = NO_WORDS;
  /** Bytes before the first aligned word. */
  #lead = 0;
  #window = '';
  #windowStart = 0;
  #windowEnd = 0;

  /** Starts reading a chunk. */
  open(bytes: Uint8Array): void {
    if (bytes.length < MIN_VIEW) return;
    this.#bytes = bytes;
    this.#lead = -bytes.byteOffset & 3;
    this.#words = new Int32Array(bytes.buffer, bytes.byteOffset + this.#lead, (bytes.length - this.#lead) >> 2);
  }

  /** Drops the references to the caller's bytes. */
  close(): void {
    if (this.#bytes === NO_BYTES) return;
    this.#bytes = NO_BYTES;
    this.#words = NO_WORDS;
    this.#window = '';
    this.#windowEnd = 0;
  }

  /** The position of the first CR or LF at or after `from`, or the length. */
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

  /** The text, if it is ASCII and inside the chunk; otherwise it must be decoded separately. */
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

  /** Where the run of ASCII bytes, or the window, ends. */
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

/** High bits mark the bytes below 16: CR, LF and other control characters, which are rare in text. */
function lowBytes(words: Int32Array, at: number): number {
  const word = words[at] ?? 0;
  return (word - 0x10101010) & ~word;
}

/**
 * The next word with a control character. This and `nextNotAscii` read four words a step, which saves a tenth of the
 * cost.
 */
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

/** Keeps a BOM inside a value; the decoder removes the one before the first line. */
const UTF8 = /* @__PURE__ */ new TextDecoder('utf-8', { ignoreBOM: true });

const STRICT_UTF8 = /* @__PURE__ */ new TextDecoder('utf-8', { fatal: true });

/** Decodes UTF-8; invalid bytes become U+FFFD. */
export const decodeUtf8 = (bytes: Uint8Array, from?: number, to?: number): string => UTF8.decode(bytes.subarray(from, to));

/** Whether bytes are valid UTF-8. */
export function isUtf8(bytes: Uint8Array, from: number, to: number): boolean {
  try {
    STRICT_UTF8.decode(bytes.subarray(from, to));
    return true;
  } catch {
    return false;
  }
}

/** Whether the first `length` bytes of `piece` are in `bytes` at `from`. */
export function hasBytesAt(piece: Uint8Array, bytes: Uint8Array, from: number, length: number = piece.length): boolean {
  for (let at = 0; at < length; at++) if (piece[at] !== bytes[from + at]) return false;
  return true;
}
