/** Changes of keys by other nodes: asked for several times a second, and at once when a node tells of one. */
import type { Clock, Timer } from '../../http/clock.ts';
import type { KeyChange } from '../../keys/records.ts';
import type { PostgresKeys } from './key-table.ts';

/** What a watch needs. */
export interface WatchOptions {
  readonly keys: PostgresKeys;
  readonly clock: Clock;
  /** How often changes are asked for. Behind a pooler no notification arrives, so this alone must be fast enough. */
  readonly pollMs: number;
}

/** Watches the keys of one database. */
export class KeyWatch {
  readonly #options: WatchOptions;
  readonly #listeners: ((change: KeyChange) => void)[] = [];
  /** Changes since the last horizon, which the next question returns again. */
  #seen = new Map<string, string>();
  #horizon = '0';
  #syncedAt = 0;
  #timer: Timer | undefined;
  #isStopped = false;
  #polling: Promise<void> | undefined;
  /** Somebody asked while a question was under way, which may have been too early. */
  #next: Promise<void> | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** Begins with the changes that are committed from now on. */
  async start(): Promise<void> {
    const { keys, clock, pollMs } = this.#options;
    this.#horizon = await keys.readHorizon();
    this.#syncedAt = clock.now();
    this.#timer = clock.setRepeating(() => void this.sync().catch(() => undefined), pollMs).unref();
  }

  /** Calls the listener after each change of another node, and again for some. */
  subscribe(listener: (change: KeyChange) => void): void {
    this.#listeners.push(listener);
  }

  /** How long ago all changes were known. */
  get ageMs(): number {
    return this.#options.clock.now() - this.#syncedAt;
  }

  /** Resolves when every change that was committed before this call is known. */
  sync(): Promise<void> {
    if (!this.#polling) return this.#start();
    this.#next ??= this.#polling
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        return this.#start();
      });
    return this.#next;
  }

  #start(): Promise<void> {
    this.#polling = this.#poll().finally(() => {
      this.#polling = undefined;
    });
    return this.#polling;
  }

  async #poll(): Promise<void> {
    if (this.#isStopped) return;
    const startedAt = this.#options.clock.now();
    const { changes, horizon } = await this.#options.keys.listChanges(this.#horizon);
    const news = changes.filter(({ record, number }) => this.#seen.get(record.id) !== number);
    this.#seen = new Map(changes.map(({ record, number }) => [record.id, number]));
    this.#horizon = horizon;
    this.#syncedAt = startedAt;
    for (const { record, endsRequests } of news) for (const listener of this.#listeners) listener({ record, endsRequests });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.close();
    await this.#polling?.catch(() => undefined);
  }
}
