/**
 * Waits for signs of life. An event loop that was blocked fires its timers before it reads what has come in the meantime: a sign that is
 * already there still counts.
 */
export class Silence {
  readonly #onSilence: () => void;
  #timer: NodeJS.Timeout | undefined;
  #isDue = false;

  constructor(onSilence: () => void) {
    this.#onSilence = onSilence;
  }

  /** From now on, this much is too long. */
  expect(ms: number): void {
    this.stop();
    this.#timer = setTimeout(() => this.#check(), ms);
  }

  heard(): void {
    this.#isDue = false;
    this.#timer?.refresh();
  }

  stop(): void {
    this.#isDue = false;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #check(): void {
    this.#isDue = true;
    setImmediate(() => {
      if (this.#isDue) this.#onSilence();
    });
  }
}
