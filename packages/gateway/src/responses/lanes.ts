/** What a WebSocket connection keeps: the latest response of each lane, also of those that are not stored. */

import type { ConnectionLanes } from '../exchange/state.ts';
import type { ResponseStore, StoredResponse } from './store.ts';

/**
 * The lanes of one connection. Their responses are entries of the store that no other connection finds, so that they count
 * towards the limits of the key; they are removed when the lane continues and when the connection closes.
 */
export class StoredLanes implements ConnectionLanes {
  readonly #store: ResponseStore;
  readonly #latest = new Map<string, StoredResponse>();
  #isClosed = false;

  constructor(store: ResponseStore) {
    this.#store = store;
  }

  find(id: string, caller: string): StoredResponse | undefined {
    return this.#store.find('response', id, caller, this);
  }

  /** Keeps a response as the latest of its lane, in place of the one before. */
  keep(lane: string, entry: StoredResponse): void {
    if (this.#isClosed) return;
    void this.#store.put(entry);
    this.forget(lane);
    this.#latest.set(lane, entry);
  }

  /** The latest response of the lane is kept elsewhere. */
  forget(lane: string): void {
    const before = this.#latest.get(lane);
    this.#latest.delete(lane);
    if (before) this.#store.remove(before);
  }

  /** A request that continued the response was refused. */
  drop(entry: StoredResponse): void {
    for (const [lane, latest] of this.#latest) if (latest === entry) this.forget(lane);
  }

  close(): void {
    this.#isClosed = true;
    for (const lane of [...this.#latest.keys()]) this.forget(lane);
  }
}

/** The lane of a request: its name, and the connection that it belongs to. */
export interface StoredLane {
  readonly lanes: StoredLanes;
  readonly name: string;
}
