/** The connection to Redis: scripts with a time limit, and a breaker. A slow server costs a few requests some milliseconds. */

import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import type { Clock } from '../../http/clock.ts';
import { SCRIPTS } from './scripts.ts';

/** The first part of a reply, and the rest after the time of the server. */
export interface Reply {
  readonly status: string;
  /** Milliseconds since 1970, by the server. */
  readonly now: number;
  readonly rest: readonly unknown[];
}

/** Where Redis is, and how long it may take. */
export interface ClientOptions {
  /** `redis://` or `rediss://`, with user, password and database. */
  readonly url: string;
  /** Before every key. */
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly clock: Clock;
  /** A connection failed; the next try follows by itself. */
  readonly onConnectError?: ((reason: string) => void) | undefined;
  /** Instead of the clock of the server, for tests. */
  readonly serverTime?: (() => number) | undefined;
}

/** Sends scripts. Nothing is queued while there is no connection, and nothing is sent twice. */
export class RedisClient {
  readonly #options: ClientOptions;
  readonly #redis: Redis;
  readonly #hashes = new Map<string, string>();
  #running = 0;
  #failures = 0;
  #opensAt = 0;
  /** The time of the server when the last call that was answered was sent, too late by as long as that call took. */
  #seen: { server: number; local: number } | undefined;

  /** `onReady`: a connection can be used. `onLost`: there is none any more. */
  constructor(options: ClientOptions, { onReady, onLost }: { onReady: () => void; onLost: () => void }) {
    this.#options = options;
    this.#redis = new Redis(options.url, {
      lazyConnect: true,
      connectTimeout: options.connectTimeoutMs,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      retryStrategy: (tries) => Math.min(50 * tries, MAX_RECONNECT_MS),
    });
    // Without a listener, ioredis writes errors to the console.
    this.#redis.on('error', (error: Error) => options.onConnectError?.(error.message));
    this.#redis.on('ready', () => {
      this.#seen = undefined;
      onReady();
    });
    this.#redis.on('close', onLost);
  }

  /** Connects, and again whenever the connection is lost. */
  connect(): void {
    // A failure is followed by the next try.
    this.#redis.connect().catch(() => undefined);
  }

  /** Whether requests may use it: it is connected, and has not failed repeatedly. */
  get isUsable(): boolean {
    return this.#redis.status === 'ready' && !this.isPaused;
  }

  /** Whether it failed repeatedly a moment ago. */
  get isPaused(): boolean {
    return this.#options.clock.now() < this.#opensAt;
  }

  /** Runs a script. Rejects when it takes too long; then it may or may not have been run. */
  async call(script: keyof typeof SCRIPTS, request: object, epoch: string): Promise<Reply> {
    if (this.#running >= MAX_RUNNING) throw new Error('too many calls of Redis are running');
    this.#running++;
    const startedAt = this.#options.clock.now();
    try {
      const reply = await this.#limit(this.#send(SCRIPTS[script], this.#encode(request, epoch, startedAt)));
      this.#failures = 0;
      return this.#read(reply, startedAt);
    } catch (error) {
      this.#fail();
      throw error;
    } finally {
      this.#running--;
    }
  }

  /** The id of this run of the server; empty where the server does not tell. */
  async readRun(): Promise<string> {
    const info = await this.#limit(this.#redis.info('server').catch(() => ''));
    return /run_id:(\w+)/.exec(info)?.[1] ?? '';
  }

  get #prefix(): string {
    return `${this.#options.prefix}${FORMAT}:`;
  }

  #encode(request: object, epoch: string, startedAt: number): string {
    const { serverTime, timeoutMs } = this.#options;
    const prefix = this.#prefix;
    const now = serverTime?.();
    // A server that stood still would run a script long after its caller has stopped waiting.
    const deadline = now === undefined && this.#seen ? this.#seen.server + startedAt - this.#seen.local + timeoutMs : undefined;
    return JSON.stringify({ ...request, prefix, epoch, now, deadline: deadline && Math.ceil(deadline) });
  }

  async #send(text: string, request: string): Promise<unknown> {
    const key = `${this.#prefix}state`;
    const hash = this.#hashes.get(text) ?? createHash('sha1').update(text).digest('hex');
    this.#hashes.set(text, hash);
    try {
      return await this.#redis.evalsha(hash, 1, key, request);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return this.#redis.eval(text, 1, key, request);
    }
  }

  /** Rejects after the time limit. The reply may wait in the socket while this process was busy: that is read first. */
  #limit<T>(sent: Promise<T>): Promise<T> {
    const { clock, timeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      const expire = (): void => reject(new Error(`Redis did not answer within ${timeoutMs} ms`));
      const timer = clock.setTimer(() => setImmediate(() => setImmediate(expire)), timeoutMs);
      sent.then(resolve, reject).finally(() => timer.close());
    });
  }

  #read(reply: unknown, startedAt: number): Reply {
    if (!Array.isArray(reply)) throw new Error('Redis sent an unexpected reply');
    const [status, now, ...rest] = reply as unknown[]; // an array of unknown values
    const server = Number(now);
    // Of the last reply: clocks drift apart, and that of the server may be set.
    this.#seen = { server, local: startedAt };
    return { status: String(status), now: server, rest };
  }

  /** After some failures in a row, Redis is left alone for a while, on a new connection. */
  #fail(): void {
    this.#failures++;
    if (this.#failures < MAX_FAILURES || this.isPaused) return;
    this.#failures = 0;
    this.#opensAt = this.#options.clock.now() + PAUSE_MS;
    if (this.#redis.status === 'ready') this.#redis.disconnect(true);
  }

  close(): void {
    this.#redis.disconnect();
  }
}

/** The version of keys and scripts: gateways with another one do not share limits with this one, and cannot harm them. */
const FORMAT = 1;

const MAX_RECONNECT_MS = 1000;

const MAX_FAILURES = 3;

const PAUSE_MS = 5000;

/** More than all requests of a gateway at once. */
const MAX_RUNNING = 10_000;
