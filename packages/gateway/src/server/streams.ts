import type { Presence } from '../exchange/presence.ts';

/** The exchanges that are under way: counted, and ended together when the gateway has to stop. */
export class Streams {
  readonly #most: number;
  /** A Set would leave its old tables behind whenever it makes a new one, and with them all who stood there, until V8 cleans up everything. */
  readonly #open: Presence[] = [];
  /** Those whose clients do not read, the one that has waited longest first. */
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

  /** In no order. */
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

  /** Its client does not read any more, or does again. */
  stall(presence: Presence, isStalled: boolean): void {
    this.#stalled.delete(presence);
    if (isStalled) this.#stalled.add(presence);
  }

  /** Resolves when none is under way: all of them are recorded. */
  empty(): Promise<void> {
    if (this.#open.length === 0) return Promise.resolve();
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
    for (const presence of [...this.#open]) presence.stop();
  }
}
