import type { ClientConnection } from '../exchange/presence.ts';

/** The exchanges that are running: counted, and stopped together on shutdown. */
export class Streams {
  readonly #most: number;
  /**
   * An array, because a growing Set keeps references to removed entries in its old tables until a full garbage
   * collection.
   */
  readonly #open: ClientConnection[] = [];
  /** Exchanges whose clients do not read, the longest stalled first. */
  readonly #stalled = new Set<ClientConnection>();
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
  get underWay(): readonly ClientConnection[] {
    return this.#open;
  }

  enter(connection: ClientConnection): void {
    connection.place = this.#open.push(connection) - 1;
    if (this.#isStopped) connection.stop();
  }

  leave(connection: ClientConnection): void {
    const last = this.#open.pop();
    if (last && last !== connection) {
      this.#open[connection.place] = last;
      last.place = connection.place;
    }
    if (this.#stalled.size > 0) this.#stalled.delete(connection);
    if (this.#open.length === 0) this.#onEmpty();
  }

  /** The client has stopped reading, or reads again. */
  stall(connection: ClientConnection, isStalled: boolean): void {
    this.#stalled.delete(connection);
    if (isStalled) this.#stalled.add(connection);
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
    const [connection] = this.#stalled;
    connection?.response.destroy();
  }

  /** Stops all exchanges, also those that begin later. */
  stop(): void {
    this.#isStopped = true;
    for (const connection of [...this.#open]) connection.stop();
  }
}
