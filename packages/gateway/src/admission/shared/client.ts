/** Calls of the server that keeps the limits: with a time limit and a breaker. A slow server costs a few requests some milliseconds. */

import type { Clock } from '../../http/clock.ts';
import type { Driver, DriverEvents, Operation } from './driver.ts';

/** The first part of a reply, and the rest after the time of the server. */
export interface Reply {
  readonly status: string;
  /** Milliseconds since 1970, by the server. */
  readonly now: number;
  readonly rest: readonly unknown[];
  /** Of the call. */
  readonly epoch: string;
}

/** How long a server may take. */
export interface ClientOptions {
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Creates the connection to the server. */
  readonly createDriver: (events: DriverEvents) => Driver;
  /** A connection failed; the next try follows by itself. */
  readonly onConnectError?: ((reason: string) => void) | undefined;
  /** How long the server is not used after repeated failures; shorter in tests. */
  readonly pauseMs?: number | undefined;
  /** Instead of the clock of the server, for tests. */
  readonly serverTime?: (() => number) | undefined;
}

/** Calls a server. */
export class LimitsClient {
  readonly #options: ClientOptions;
  readonly #driver: Driver;
  #running = 0;
  #failures = 0;
  #opensAt = 0;
  /** The time of the server when the last call that was answered was sent, too late by as long as that call took. */
  #seen: { server: number; local: number } | undefined;

  /** `onReady`: a connection can be used. `onLost`: there is none any more. */
  constructor(options: ClientOptions, { onReady, onLost }: Pick<DriverEvents, 'onReady' | 'onLost'>) {
    this.#options = options;
    this.#driver = options.createDriver({
      onReady: () => {
        this.#seen = undefined;
        onReady();
      },
      onLost,
      onError: (reason) => options.onConnectError?.(reason),
    });
  }

  /** Connects, and again whenever the connection is lost. */
  connect(): void {
    this.#driver.connect();
  }

  /** Whether it is connected. */
  get isReady(): boolean {
    return this.#driver.isReady;
  }

  /** Whether requests may use it: it is connected, and has not failed repeatedly. */
  get isUsable(): boolean {
    return this.isReady && !this.isPaused;
  }

  /** Whether it failed repeatedly a moment ago. */
  get isPaused(): boolean {
    return this.#options.clock.now() < this.#opensAt;
  }

  /** Runs an operation. Rejects when it takes too long; then it may or may not have been run. `onReply` also sees a reply that is late. */
  async call(operation: Operation, request: object, epoch: string, onReply?: (reply: Reply) => void): Promise<Reply> {
    if (this.#running >= MAX_RUNNING) throw new Error(`too many calls of ${this.#driver.name} are running`);
    this.#running++;
    const startedAt = this.#options.clock.now();
    try {
      const sent = this.#driver.send(operation, this.#encode(request, epoch, startedAt)).then((received) => {
        const reply = this.#read(received, epoch);
        onReply?.(reply);
        return reply;
      });
      const reply = await this.#limit(sent);
      this.#failures = 0;
      // Of the last reply: clocks drift apart, and that of the server may be set. One that is late says too little.
      this.#seen = { server: reply.now, local: startedAt };
      return reply;
    } catch (error) {
      this.#fail();
      throw error;
    } finally {
      this.#running--;
    }
  }

  /** The id of this run of the server; empty where the server does not tell. */
  readRun(): Promise<string> {
    return this.#limit(this.#driver.readRun());
  }

  #encode(request: object, epoch: string, startedAt: number): string {
    const { serverTime, timeoutMs } = this.#options;
    const { prefix } = this.#driver;
    const now = serverTime?.();
    // A server that stood still would run a call long after its caller has stopped waiting.
    const deadline = now === undefined && this.#seen ? this.#seen.server + startedAt - this.#seen.local + timeoutMs : undefined;
    return JSON.stringify({ ...request, prefix, epoch, now, timeout: timeoutMs, deadline: deadline && Math.ceil(deadline) });
  }

  /** Rejects after the time limit. The reply may wait in the socket while this process was busy: that is read first. */
  #limit<T>(sent: Promise<T>): Promise<T> {
    const { clock, timeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      const expire = (): void => reject(new Error(`${this.#driver.name} did not answer within ${timeoutMs} ms`));
      const timer = clock.setTimer(() => setImmediate(() => setImmediate(expire)), timeoutMs);
      sent.then(resolve, reject).finally(() => timer.close());
    });
  }

  #read(reply: unknown, epoch: string): Reply {
    if (!Array.isArray(reply)) throw new Error(`${this.#driver.name} sent an unexpected reply`);
    const [status, now, ...rest] = reply as unknown[]; // an array of unknown values
    return { status: String(status), now: Number(now), rest, epoch };
  }

  /** After some failures in a row, the server is left alone for a while, on new connections. */
  #fail(): void {
    this.#failures++;
    if (this.#failures < MAX_FAILURES || this.isPaused) return;
    this.#failures = 0;
    this.#opensAt = this.#options.clock.now() + (this.#options.pauseMs ?? PAUSE_MS);
    this.#driver.reconnect();
  }

  close(): void | Promise<void> {
    return this.#driver.close();
  }
}

const MAX_FAILURES = 3;

const PAUSE_MS = 5000;

/** More than all requests of a gateway at once. */
const MAX_RUNNING = 10_000;
