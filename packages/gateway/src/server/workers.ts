/** The primary process of `sluice serve --workers`: starts workers, replaces those that crash, and stops all of them. */

import cluster, { type Worker } from 'node:cluster';
import { findConfig } from '../config/load.ts';
import { ConfigError } from '../config/problems.ts';
import type { GatewayState, ResolveOptions } from '../config/resolve.ts';
import { readConfig, resolveEnvironment } from '../config/watch.ts';
import type { Logger } from '../observe/log.ts';
import { type FromWorker, type ToWorker, WORKER_VARIABLE } from './worker.ts';

/** Reads the configuration as workers do, and checks that they can share it. Rejects with a `ConfigError`. */
export async function readState(
  { config, folder, count }: { config: string | undefined; folder: string; count: number },
  options: Omit<ResolveOptions, 'storedKeys'>,
): Promise<GatewayState> {
  const file = config ?? findConfig(folder);
  // Whether keys are stored is checked by the first worker, which opens the store.
  const resolve: ResolveOptions = { ...options, storedKeys: () => 'some' };
  const state = file === undefined ? resolveEnvironment(resolve) : await readConfig(file, resolve);
  checkShared(state, count);
  return state;
}

/** Workers are nodes, so they need what nodes share, and must not use what belongs to one process. */
function checkShared({ store, limitsStore, responses }: Shared, count: number): void {
  const refuse = (fact: string, remedy: string): never => {
    throw new ConfigError([{ message: `--workers ${count}: ${fact}; ${remedy}, or use --workers 1`, path: [] }]);
  };
  const isNode = 'every worker is a node, and nodes share their keys, usage and limits';
  if (!store) refuse(isNode, 'set store: postgres://…');
  if (!limitsStore) refuse(isNode, 'remove limits_store: memory');
  if (responses.store === 'disk')
    refuse('responses.store: disk keeps responses in a file that one process writes', 'set responses.store: memory or off');
}

type Shared = Pick<GatewayState, 'store' | 'limitsStore' | 'responses'>;

/** One of the workers: the process may be replaced, the number stays. */
interface Slot {
  readonly number: number;
  worker: Worker | undefined;
  isListening: boolean;
  startedAt: number;
  /** Crashes in a row. */
  crashes: number;
  timer: NodeJS.Timeout | undefined;
}

interface WorkersOptions {
  readonly count: number;
  readonly log: Logger;
  /** The longest time that a worker needs to stop. */
  readonly stopMs: number;
}

/** The workers of a gateway. */
export class Workers {
  readonly #options: WorkersOptions;
  readonly #slots: readonly Slot[];
  readonly #collections = new Map<number, (number: number, text: string) => void>();
  #lastId = 0;
  #isStopping = false;
  #onListening: (slot: Slot, welcome: string) => void = () => undefined;
  #onExit: (slot: Slot, code: number) => void = () => undefined;
  #onStop: () => void = () => undefined;

  constructor(options: WorkersOptions) {
    this.#options = options;
    this.#slots = Array.from({ length: options.count }, (_, index) => ({
      number: index + 1,
      worker: undefined,
      isListening: false,
      startedAt: 0,
      crashes: 0,
      timer: undefined,
    }));
    // Workers accept from one queue. With node's default, this process accepts and hands connections over: one that is on its way to a
    // worker that dies is never answered, and never closed.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    // After a second signal, too: workers must not outlive this process.
    process.on('exit', this.#kill);
  }

  /**
   * Starts the first worker alone: it creates tables and the pepper, and reports mistakes. Then starts the others. Resolves with what
   * the first one prints, or with its exit code if it ends before it listens.
   */
  async start(): Promise<{ welcome: string } | { code: number }> {
    const [first, ...others] = this.#slots;
    if (!first) throw new Error('there is no worker');
    const result = await new Promise<{ welcome: string } | { code: number }>((resolve) => {
      this.#onListening = (slot, welcome) => slot === first && resolve({ welcome });
      this.#onExit = (_, code) => resolve({ code });
      this.#fork(first);
    });
    this.#onExit = (slot, code) => this.#replace(slot, code);
    if ('code' in result || this.#isStopping) return result;
    const ready = Promise.all(others.map((slot) => this.#untilListening(slot)));
    const stopping = new Promise<void>((resolve) => {
      this.#onStop = resolve;
    });
    for (const slot of others) this.#fork(slot);
    // A worker that is stopped before it listens never will.
    await Promise.race([ready, stopping]);
    return result;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  reload(): void {
    for (const { worker } of this.#slots) if (worker) send(worker, { type: 'reload' });
  }

  /** Lets all workers finish their requests. One that takes too long is killed. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#onStop();
    const deadline = setTimeout(this.#kill, this.#options.stopMs + STOP_MARGIN_MS);
    await Promise.all(this.#slots.map((slot) => this.#stopSlot(slot)));
    clearTimeout(deadline);
    process.off('exit', this.#kill);
  }

  readonly #kill = (): void => {
    for (const { worker } of this.#slots) worker?.process.kill('SIGKILL');
  };

  async #stopSlot({ worker, isListening, timer }: Slot): Promise<void> {
    clearTimeout(timer);
    if (!worker || worker.isDead()) return;
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    // One that does not listen yet has no requests, and may not read messages yet.
    if (isListening) send(worker, { type: 'stop' });
    else worker.process.kill('SIGKILL');
    await ended;
  }

  #untilListening(slot: Slot): Promise<void> {
    return new Promise((resolve) => {
      const before = this.#onListening;
      this.#onListening = (other, welcome) => (other === slot ? resolve() : before(other, welcome));
    });
  }

  #fork(slot: Slot): void {
    const worker = cluster.fork({ [WORKER_VARIABLE]: `${slot.number}/${this.#options.count}` });
    Object.assign(slot, { worker, isListening: false, startedAt: performance.now() });
    worker.on('message', (message: FromWorker) => this.#receive(slot, worker, message));
    // Sending to a worker that has just ended fails.
    worker.on('error', () => undefined);
    worker.once('exit', (code, signal) => {
      slot.worker = undefined;
      const { isListening } = slot;
      slot.isListening = false;
      if (this.#isStopping && isListening) return;
      this.#onExit(slot, code ?? 1);
      if (signal) this.#options.log.debug({ worker: slot.number, signal }, 'a worker was ended by a signal');
    });
  }

  #replace(slot: Slot, code: number): void {
    if (this.#isStopping) return;
    if (performance.now() - slot.startedAt > STABLE_MS) slot.crashes = 0;
    const delayMs = Math.min(MAX_DELAY_MS, MIN_DELAY_MS * 2 ** slot.crashes);
    slot.crashes++;
    this.#options.log.error({ worker: slot.number, code, delay_ms: delayMs }, 'a worker has ended; it is replaced');
    slot.timer = setTimeout(() => this.#fork(slot), delayMs);
  }

  #receive(slot: Slot, worker: Worker, message: FromWorker): void {
    switch (message.type) {
      case 'listening':
        slot.isListening = true;
        this.#onListening(slot, message.welcome);
        break;
      case 'collect metrics':
        void this.#collect(slot).then((texts) => send(worker, { type: 'metrics', texts }));
        break;
      case 'metrics':
        this.#collections.get(message.id)?.(slot.number, message.text);
        break;
    }
  }

  /** The metrics of all other workers; null for those that do not respond in time. */
  #collect(asking: Slot): Promise<[number, string | null][]> {
    const id = ++this.#lastId;
    const others = this.#slots.filter((slot) => slot !== asking);
    const texts = new Map<number, string | null>(others.map(({ number }) => [number, null]));
    let missing = others.filter(({ isListening }) => isListening).length;
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#collections.delete(id);
        resolve([...texts]);
      };
      const timer = setTimeout(end, COLLECT_MS);
      this.#collections.set(id, (number, text) => {
        texts.set(number, text);
        if (--missing === 0) end();
      });
      if (missing === 0) end();
      for (const { worker, isListening } of others) if (worker && isListening) send(worker, { type: 'read metrics', id });
    });
  }
}

const send = (worker: Worker, message: ToWorker): void => {
  if (worker.isConnected()) worker.send(message, () => undefined);
};

const MIN_DELAY_MS = 100;

const MAX_DELAY_MS = 30_000;

/** A worker that ran for this long was not ended by its start. */
const STABLE_MS = 60_000;

/** Below the usual timeout of a scrape, 10 s. */
const COLLECT_MS = 2000;

/** Beyond the drain: clients read the last error, and the store is closed. */
const STOP_MARGIN_MS = 15_000;
