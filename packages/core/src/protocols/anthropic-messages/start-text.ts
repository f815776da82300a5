/**
 * The text that a `content_block_start` brings. It is empty in the standard; some relays put the first piece there, others repeat there
 * what the deltas then say. So it waits: deltas that say the same again decide for the one, anything else for the other. Each character
 * is compared once.
 */
export class StartText {
  readonly #text: string;
  /** How much of the text the deltas have repeated. */
  #matched = 0;
  #isDecided: boolean;
  readonly #onDecision: (isRepeated: boolean) => void;

  constructor(text: string, onDecision: (isRepeated: boolean) => void) {
    this.#text = text;
    this.#isDecided = text === '';
    this.#onDecision = onDecision;
  }

  /** Whether a second start with this text is the same start said again. */
  isRestatedBy(text: string): boolean {
    return text === '' || (text === this.#text && !this.#isDecided && this.#matched === 0);
  }

  /** Takes the text of a delta and returns what can go out now. */
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

  /** The block stops: what the deltas did not repeat to its end was a piece of its own. */
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
