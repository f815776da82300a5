/** A worker of `sluice serve --workers`, and its messages with the primary process. */

import cluster from 'node:cluster';
import { joinMetrics } from '../observe/join-metrics.ts';
import type { Metrics } from '../observe/metrics.ts';

/** Messages to a worker. `metrics`: the texts of the other workers, by number. */
export type ToWorker =
  | { type: 'stop' }
  | { type: 'reload' }
  | { type: 'read metrics'; id: number }
  | { type: 'metrics'; texts: [number, string | null][] };

/** Messages from a worker. `listening`: with what the gateway prints when it listens. */
export type FromWorker =
  | { type: 'listening'; welcome: string }
  | { type: 'collect metrics' }
  | { type: 'metrics'; id: number; text: string };

/** The variable that tells a worker its number, and how many there are: `2/4`. */
export const WORKER_VARIABLE = 'SLUICE_WORKER';

/** The signals that the primary process passes on as messages: a terminal sends them to all processes at once. */
const PRIMARY_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The worker that this process is. */
export class WorkerLink {
  readonly number: number;
  /** How many workers there are. */
  readonly count: number;
  #metrics: Metrics | undefined;
  #collected: ((others: ReadonlyMap<number, string | undefined>) => void) | undefined;
  #joined: Promise<string> | undefined;
  #onStop: () => void = () => undefined;
  #onReload: () => void = () => undefined;

  private constructor(number: number, count: number) {
    this.number = number;
    this.count = count;
    for (const signal of PRIMARY_SIGNALS) process.on(signal, () => undefined);
    process.on('message', (message) => this.#receive(message as ToWorker)); // only the primary process sends any
  }

  /** Undefined in a process that is not a worker. */
  static find(env: Readonly<Record<string, string | undefined>>): WorkerLink | undefined {
    const [, number, count] = /^(\d+)\/(\d+)$/.exec(env[WORKER_VARIABLE] ?? '') ?? [];
    return cluster.isWorker && number !== undefined ? new WorkerLink(Number(number), Number(count)) : undefined;
  }

  /** `/metrics` shows all workers, whichever of them is asked. */
  watchMetrics(metrics: Metrics): void {
    this.#metrics = metrics;
    metrics.joinWith((own) => {
      // One collection at a time: requests that arrive meanwhile get the same page.
      this.#joined ??= this.#join(own).finally(() => (this.#joined = undefined));
      return this.#joined;
    });
  }

  /** Reports that the gateway listens. Resolves after `stop`, which the primary process asks for. */
  async serve(welcome: string, { stop, reload }: { stop: () => Promise<void>; reload: () => Promise<void> }): Promise<void> {
    const stopped = new Promise<void>((resolve, reject) => {
      this.#onStop = () => void stop().then(resolve, reject);
    });
    this.#onReload = () => void reload();
    send({ type: 'listening', welcome });
    await stopped;
  }

  /** Closes the channel to the primary process, which would keep this process alive. */
  leave(): void {
    cluster.worker?.disconnect();
  }

  async #join(own: string): Promise<string> {
    const others = await new Promise<ReadonlyMap<number, string | undefined>>((resolve) => {
      this.#collected = resolve;
      send({ type: 'collect metrics' });
    });
    return joinMetrics(new Map([...others, [this.number, own] as const].sort(([one], [other]) => one - other)));
  }

  #receive(message: ToWorker): void {
    switch (message.type) {
      case 'stop':
        this.#onStop();
        break;
      case 'reload':
        this.#onReload();
        break;
      case 'read metrics':
        void this.#metrics?.ownText().then((text) => send({ type: 'metrics', id: message.id, text }));
        break;
      case 'metrics':
        this.#collected?.(new Map(message.texts.map(([number, text]) => [number, text ?? undefined])));
        break;
    }
  }
}

/** Failures are ignored: without a primary process, node ends the worker. */
const send = (message: FromWorker): void => void process.send?.(message, undefined, undefined, () => undefined);
