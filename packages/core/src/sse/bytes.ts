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
export const NO_BYTES: Uint8Array = new Uint8Array(0);

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
