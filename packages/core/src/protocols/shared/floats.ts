const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const BYTES_PER_FLOAT = 4;
const PAD = 0x3d;
const NO_DIGIT = 255;

/** base64 of little-endian 32-bit floats. */
export function packFloats(floats: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(floats.length * BYTES_PER_FLOAT));
  for (const [i, float] of floats.entries()) view.setFloat32(i * BYTES_PER_FLOAT, float, true);
  return encodeBase64(new Uint8Array(view.buffer));
}

/** The floats of such a text; undefined when it is none. */
export function unpackFloats(text: string): number[] | undefined {
  const bytes = decodeBase64(text);
  if (!bytes || bytes.length % BYTES_PER_FLOAT !== 0) return undefined;
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / BYTES_PER_FLOAT }, (_, i) => view.getFloat32(i * BYTES_PER_FLOAT, true));
}

/** No runtime but node has Buffer, and btoa wants a string of bytes. */
function encodeBase64(bytes: Uint8Array): string {
  const text = new Uint8Array(Math.ceil(bytes.length / 3) * 4).fill(PAD);
  for (let at = 0, to = 0; at < bytes.length; at += 3, to += 4) {
    const digits = Math.min(bytes.length - at, 3) + 1;
    const group = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    for (let digit = 0; digit < digits; digit++) text[to + digit] = ALPHABET.charCodeAt((group >> (18 - 6 * digit)) & 63);
  }
  return new TextDecoder().decode(text);
}

/** What each character stands for, in both alphabets of base64. */
const DIGITS: Uint8Array = digitTable();

function digitTable(): Uint8Array {
  const table = new Uint8Array(128).fill(NO_DIGIT);
  for (const alphabet of [ALPHABET, ALPHABET.replace('+/', '-_')])
    for (let digit = 0; digit < alphabet.length; digit++) table[alphabet.charCodeAt(digit)] = digit;
  return table;
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  let length = text.length;
  while (length > 0 && text.length - length < 2 && text.charCodeAt(length - 1) === PAD) length--;
  if (length % 4 === 1) return undefined;
  const bytes = new Uint8Array(Math.floor((length * 3) / 4));
  let bits = 0;
  let group = 0;
  let to = 0;
  for (let at = 0; at < length; at++) {
    const digit = DIGITS[text.charCodeAt(at)] ?? NO_DIGIT;
    if (digit === NO_DIGIT) return undefined;
    group = ((group << 6) | digit) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes[to++] = group >> bits;
  }
  return bytes;
}
