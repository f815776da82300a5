const CR = 13;
const LF = 10;
const COLON = 58;

/** Beyond this there are no excerpts any more; findings there still have their offsets. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024;

/** The body as it came, for excerpts, and the comments in it, which no frame tells of. */
export class BodyRecord {
  readonly #chunks: Uint8Array[] = [];
  #last = LF;
  length = 0;
  comments = 0;
  firstComment = 0;

  push(chunk: Uint8Array): void {
    this.#countComments(chunk);
    // Chunks belong to the caller.
    if (this.length < MAX_KEPT_BYTES) this.#chunks.push(chunk.slice());
    this.length += chunk.length;
  }

  /** The text between two places. Bytes that are no text become U+FFFD. */
  text(start: number, end: number): string {
    const piece = new Uint8Array(Math.max(0, Math.min(end, this.length) - start));
    let at = 0;
    for (const chunk of this.#chunks) {
      const part = chunk.subarray(Math.max(0, start - at), Math.max(0, end - at));
      if (part.length > 0) piece.set(part, Math.max(0, at - start));
      at += chunk.length;
      if (at >= end) break;
    }
    return new TextDecoder().decode(piece);
  }

  #countComments(chunk: Uint8Array): void {
    for (let at = chunk.indexOf(COLON); at >= 0; at = chunk.indexOf(COLON, at + 1)) {
      const before = at === 0 ? this.#last : chunk[at - 1];
      if (before !== LF && before !== CR) continue;
      if (this.comments++ === 0) this.firstComment = this.length + at;
    }
    this.#last = chunk.at(-1) ?? this.#last;
  }
}
