import type { Presence } from '../exchange/presence.ts';

/** The exchanges that are under way: counted, and ended together when the gateway has to stop. */
export class Streams {
  readonly #most: number;
  readonly #open = new Set<Presence>();
  /** Those whose clients do not read, the one that has waited longest first. */
  readonly #stalled = new Set<Presence>();
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

  enter(presence: Presence): void {
    this.#open.add(presence);
    if (this.#isStopped) presence.stop();
  }

  leave(presence: Presence): void {
    this.#open.delete(presence);
    this.#stalled.delete(presence);
    if (this.#open.size === 0) this.#onEmpty();
  }

  /** Its client does not read any more, or does again. */
  stall(presence: Presence, isStalled: boolean): void {
    this.#stalled.delete(presence);
    if (isStalled) this.#stalled.add(presence);
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
    const [presence] = this.#stalled;
    presence?.response.destroy();
  }

  /** From now on, nothing goes on. */
  stop(): void {
    this.#isStopped = true;
    for (const presence of this.#open) presence.stop();
  }
}
