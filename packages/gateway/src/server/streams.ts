import type { Presence } from '../exchange/presence.ts';

/** The exchanges that are running: counted, and stopped together on shutdown. */
export class Streams {
  readonly #most: number;
  /**
   * An array, because a growing Set keeps references to removed entries in its old tables until a full garbage
   * collection.
   */
  readonly #open: Presence[] = [];
  /** Exchanges whose clients do not read, the longest stalled first. */
  readonly #stalled = new Set<Presence>();
  #isStopped = false;
  #onEmpty: () => void = () => undefined;

  constructor(most: number) {
    this.#most = most;
  }

  get count(): number {
    return this.#open.length;
  }

  get isFull(): boolean {
    return this.#open.length > this.#most;
  }

  /** All running exchanges, in no order. */
  get underWay(): readonly Presence[] {
    return this.#open;
  }

  enter(presence: Presence): void {
    presence.place = this.#open.push(presence) - 1;
    if (this.#isStopped) presence.stop();
  }

  leave(presence: Presence): void {
    const last = this.#open.pop();
    if (last && last !== presence) {
      this.#open[presence.place] = last;
      last.place = presence.place;
    }
    if (this.#stalled.size > 0) this.#stalled.delete(presence);
    if (this.#open.length === 0) this.#onEmpty();
  }

  /** The client has stopped reading, or reads again. */
  stall(presence: Presence, isStalled: boolean): void {
    this.#stalled.delete(presence);
    if (isStalled) this.#stalled.add(presence);
  }

  /** Resolves when no exchange is running and all are recorded. */
  empty(): Promise<void> {
    if (this.#open.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  /** Frees the memory that the longest stalled client holds. */
  cancelLongestStalled(): void {
    const [presence] = this.#stalled;
    presence?.response.destroy();
  }

  /** Stops all exchanges, also those that begin later. */
  stop(): void {
    this.#isStopped = true;
    for (const presence of [...this.#open]) presence.stop();
  }
}
