/** The connection to Redis or Valkey, which runs the operations as scripts. */

import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { explainConnectError } from '../../http/connect-errors.ts';
import { type Driver, type DriverEvents, delayConnect, type Operation } from '../shared/driver.ts';
import { SCRIPTS } from './scripts.ts';

/** Sends scripts by their hash. */
export class RedisDriver implements Driver {
  readonly name = 'Redis';
  readonly prefix: string;
  readonly #redis: Redis;
  readonly #hashes = new Map<string, string>();

  constructor({ url, prefix, connectTimeoutMs }: RedisOptions, { onReady, onLost, onError }: DriverEvents) {
    this.prefix = `${prefix}${FORMAT}:`;
    this.#redis = new Redis(url, {
      lazyConnect: true,
      connectTimeout: connectTimeoutMs,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      retryStrategy: delayConnect,
    });
    // Without a listener, ioredis writes errors to the console.
    this.#redis.on('error', (error: Error) => onError(describeError(error)));
    this.#redis.on('ready', onReady);
    this.#redis.on('close', onLost);
  }

  get isReady(): boolean {
    return this.#redis.status === 'ready';
  }

  connect(): void {
    // A failure is followed by the next try.
    this.#redis.connect().catch(() => undefined);
  }

  async send(operation: Operation, request: string): Promise<unknown> {
    const key = `${this.prefix}state`;
    const text = SCRIPTS[operation];
    const hash = this.#hashes.get(text) ?? createHash('sha1').update(text).digest('hex');
    this.#hashes.set(text, hash);
    try {
      return await this.#redis.evalsha(hash, 1, key, request);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return this.#redis.eval(text, 1, key, request);
    }
  }

  async readRun(): Promise<string> {
    const info = await this.#redis.info('server').catch(() => '');
    return /run_id:(\w+)/.exec(info)?.[1] ?? '';
  }

  reconnect(): void {
    if (this.isReady) this.#redis.disconnect(true);
  }

  close(): void {
    this.#redis.disconnect();
  }
}

/** Where Redis is. */
export interface RedisOptions {
  /** `redis://` or `rediss://`, with user, password and database. */
  readonly url: string;
  /** Before every key. */
  readonly prefix: string;
  readonly connectTimeoutMs: number;
}

/** An error of the connection or of the login, with what to check. */
function describeError(error: Error): string {
  const advice = LOGIN_ERRORS.find(([pattern]) => pattern.test(error.message))?.[1];
  if (advice !== undefined) return `${error.message} Check ${advice}.`;
  return explainConnectError(error, { setting: 'limits_store' }) ?? error.message;
}

const LOGIN_ERRORS: readonly (readonly [text: RegExp, advice: string])[] = [
  [/^WRONGPASS/, 'the user and the password in limits_store'],
  [/^NOAUTH/, 'that limits_store has a password: redis://:PASSWORD@host'],
  [/^ERR invalid DB index|^ERR DB index/, 'the number of the database in limits_store'],
];

/** The version of keys and scripts. */
const FORMAT = 1;
