/** An exchange that is under way. */
export interface Entry {
  /** Aborted when the gateway has to stop. */
  readonly stopped: AbortSignal;
  /** The client does not read any more, or does again. */
  stall(isStalled: boolean): void;
  leave(): void;
}

interface Place {
  controller: AbortController;
  cancel: () => void;
}

/** The exchanges that are under way: counted, and ended together when the gateway has to stop. */
export class Streams {
  readonly #most: number;
  readonly #open = new Set<Place>();
  /** Those whose clients do not read, the one that has waited longest first. */
  readonly #stalled = new Set<Place>();
  #isStopped = false;
  #onEmpty: () => void = () => undefined;

  constructor(most: number) {
    this.#most = most;
  }

  get count(): number {
    return this.#open.size;
  }

  get isFull(): boolean {
    return this.#open.size > this.#most;
  }

  /** `cancel`: how it is ended at once. */
  enter(cancel: () => void): Entry {
    const place: Place = { controller: new AbortController(), cancel };
    this.#open.add(place);
    if (this.#isStopped) place.controller.abort(STOPS);
    return {
      stopped: place.controller.signal,
      stall: (isStalled) => {
        this.#stalled.delete(place);
        if (isStalled) this.#stalled.add(place);
      },
      leave: () => {
        this.#open.delete(place);
        this.#stalled.delete(place);
        if (this.#open.size === 0) this.#onEmpty();
      },
    };
  }

  /** Resolves when none is under way: all of them are recorded. */
  empty(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  /** Frees what a client that does not read holds. */
  cancelLongestStalled(): void {
    const [place] = this.#stalled;
    place?.cancel();
  }

  /** From now on, nothing goes on. */
  stop(): void {
    this.#isStopped = true;
    for (const { controller } of this.#open) controller.abort(STOPS);
  }
}

const STOPS = new Error('the gateway stops');
