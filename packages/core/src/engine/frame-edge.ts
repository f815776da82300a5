import { CR, LF } from '../sse/bytes.ts';

const isLineEnd = (byte: number): boolean => byte === LF || byte === CR;

/** Finds where frames end in the bytes of an event stream, however they are split: behind a blank line. */
export class FrameEdge {
  /** The last two bytes before the chunk. A body begins like one that has just ended a line. */
  #last = LF;
  #beforeLast = 0;

  /** How many bytes of the chunk belong to frames that have ended; 0 when none ends in it. */
  in(chunk: Uint8Array): number {
    const edge = this.#search(chunk);
    this.#beforeLast = this.#at(chunk, chunk.length - 2);
    this.#last = this.#at(chunk, chunk.length - 1);
    return edge;
  }

  // From the end: nearly every chunk ends with its last frame.
  #search(chunk: Uint8Array): number {
    for (let at = chunk.length - 1; at >= 0; at--) {
      const byte = chunk[at] ?? 0;
      if (isLineEnd(byte) && this.#endsBlankLine(chunk, at, byte)) return at + 1;
    }
    return 0;
  }

  /** CR, LF and CRLF all end lines: the LF of a CRLF ends nothing that its CR has not ended. */
  #endsBlankLine(chunk: Uint8Array, at: number, byte: number): boolean {
    const before = this.#at(chunk, at - 1);
    if (byte === LF && before === CR) return isLineEnd(this.#at(chunk, at - 2));
    return isLineEnd(before);
  }

  #at(chunk: Uint8Array, at: number): number {
    if (at >= 0) return chunk[at] ?? 0;
    return at === -1 ? this.#last : this.#beforeLast;
  }
}
