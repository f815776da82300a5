/** Notifications of other nodes, on a connection of their own: they belong to a session. */
import pg, { type ClientConfig } from 'pg';
import type { Clock, Timer } from '../../http/clock.ts';

/** The channel on which nodes tell each other that a key was changed. */
export const KEY_CHANNEL = 'sluice_keys';

/** The channel on which a new version of the configuration is announced. */
export const CONFIG_CHANNEL = 'sluice_config';

/** Where notifications come from, and what each of them calls. */
export interface NoticeOptions {
  readonly connection: ClientConfig;
  readonly clock: Clock;
  /** By channel. None of them throws. */
  readonly listeners: Readonly<Record<string, () => void>>;
}

/** How long to wait before another attempt to listen. */
const RECONNECT_MS = 2000;

/** Listens as long as it runs. What is announced while there is no connection must be found by polling. */
export class Notices {
  readonly #options: NoticeOptions;
  #retry: Timer | undefined;
  #client: pg.Client | undefined;
  #isStopped = false;

  constructor(options: NoticeOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#listen();
  }

  async #listen(): Promise<void> {
    const { connection, clock, listeners } = this.#options;
    const client = new pg.Client(connection);
    this.#client = client;
    let isOver = false;
    const again = (): void => {
      if (isOver) return;
      isOver = true;
      void client.end().catch(() => undefined);
      if (!this.#isStopped) this.#retry = clock.setTimer(() => void this.#listen(), RECONNECT_MS).unref();
    };
    client.on('error', again);
    client.on('end', again);
    client.on('notification', ({ channel }) => listeners[channel]?.());
    try {
      await client.connect();
      for (const channel of Object.keys(listeners)) await client.query(`LISTEN ${channel}`);
    } catch {
      again();
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#retry?.close();
    await this.#client?.end().catch(() => undefined);
  }
}
