/** Text in the start of a block that has deltas: a first piece, or a repetition of what the deltas say. */

/**
 * The text in a `content_block_start`. The standard leaves it empty; some relays put the first piece there, others
 * repeat there what the deltas contain. So it is held back: deltas that repeat it decide for a repetition, anything
 * else for a first piece. Each character is compared once.
 */
export class StartText {
  readonly #text: string;
  /** How many characters the deltas have repeated so far. */
  #matched = 0;
  #isDecided: boolean;
  readonly #onDecision: (isRepeated: boolean) => void;

  constructor(text: string, onDecision: (isRepeated: boolean) => void) {
    this.#text = text;
    this.#isDecided = text === '';
    this.#onDecision = onDecision;
  }

  /** Whether the deltas have shown what the text is. */
  get isDecided(): boolean {
    return this.#isDecided;
  }

  /** Whether a second start with this text repeats the first one. */
  isRestatedBy(text: string): boolean {
    return text === '' || (text === this.#text && !this.#isDecided && this.#matched === 0);
  }

  /** Takes the text of a delta and returns the text to emit now. */
  push(piece: string): string {
    if (this.#isDecided) return piece;
    const missing = this.#text.length - this.#matched;
    if (piece.length < missing && this.#text.startsWith(piece, this.#matched)) {
      this.#matched += piece.length;
      return '';
    }
    const isRepeated = piece.length >= missing && piece.startsWith(this.#text.slice(this.#matched));
    const repeated = this.#text.slice(0, this.#matched) + piece;
    this.#decide(isRepeated);
    return isRepeated ? repeated : this.#text + repeated;
  }

  /** Called when the block stops: text that the deltas did not repeat completely was a piece of its own. */
  end(): string {
    if (this.#isDecided) return '';
    this.#decide(false);
    return this.#text + this.#text.slice(0, this.#matched);
  }

  #decide(isRepeated: boolean): void {
    this.#isDecided = true;
    this.#onDecision(isRepeated);
  }
}

/**
 * What was written of a text: enough to recognise a start that repeats it, without keeping all of it. A text that has the latest
 * piece at its place is taken for the same.
 */
export class WrittenText {
  #length = 0;
  #latest = '';

  push(piece: string): void {
    this.#length += piece.length;
    this.#latest = piece;
  }

  /** What a start that repeats the text adds to it; undefined if it has another text. */
  findRest(text: string): string | undefined {
    if (text === '') return '';
    const isSame = text.length >= this.#length && text.startsWith(this.#latest, this.#length - this.#latest.length);
    return isSame ? text.slice(this.#length) : undefined;
  }
}
