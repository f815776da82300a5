/** The main thread's side of a worker: starts it, sends requests, stops it by a message. */
import { Worker } from 'node:worker_threads';
import { findProgram } from '../../http/program.ts';
import { StoreError } from '../errors.ts';
import type { NumberedRequest, WorkerReply, WorkerRequest, WorkerSettings } from './messages.ts';

/** A script of this folder. */
export const findScript = (name: string): string => findProgram(`store/sqlite/${name}`);

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: StoreError) => void;
}

/** How long an exiting process waits for a native call of a worker: longer than a statement waits for a lock. */
const EXIT_WAIT_MS = 7000;

/** One worker thread. */
export class WorkerClient {
  readonly #worker: Worker;
  readonly #flags: Int32Array = new Int32Array(new SharedArrayBuffer(12));
  readonly #waiting = new Map<number, Waiting>();
  readonly #exited: Promise<void>;
  #number = 0;
  #isAlive = true;

  private constructor(settings: Omit<WorkerSettings, 'flags'>) {
    const workerData: WorkerSettings = { ...settings, flags: this.#flags };
    // Options of the process, such as --input-type, may not suit the worker.
    this.#worker = new Worker(findScript('worker.js'), { workerData, name: `store-${settings.role}`, execArgv: [] });
    this.#worker.on('message', (reply: WorkerReply) => this.#settle(reply));
    // An error ends the worker; `exit` follows.
    this.#worker.on('error', (error) => this.#fail(`the worker of the store failed: ${error.message}`));
    const guardExit = (): void => this.#waitForNativeCall();
    process.on('exit', guardExit);
    this.#exited = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        process.off('exit', guardExit);
        this.#fail('the worker of the store ended');
        resolve();
      });
    });
  }

  /** Starts a worker. `value` is what it reports when it is ready. */
  static async start<Value>(settings: Omit<WorkerSettings, 'flags'>): Promise<{ client: WorkerClient; value: Value }> {
    const client = new WorkerClient(settings);
    try {
      return { client, value: await client.#wait<Value>(0) };
    } catch (error) {
      await client.#exited;
      throw error;
    }
  }

  /** False after the worker ended. */
  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Sends a request. */
  request<Value>(request: WorkerRequest): Promise<Value> {
    if (!this.#isAlive) return Promise.reject(new StoreError('unavailable', 'the worker of the store ended'));
    const number = ++this.#number;
    const reply = this.#wait<Value>(number);
    this.#worker.postMessage({ number, request } satisfies NumberedRequest);
    return reply;
  }

  /** Stops the worker after the requests before. Never by `terminate()`, which inside a native call aborts the process. */
  async stop(): Promise<void> {
    try {
      await this.request({ kind: 'stop' });
    } finally {
      await this.#exited;
    }
  }

  #wait<Value>(number: number): Promise<Value> {
    return new Promise<Value>((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject });
    });
  }

  #settle({ number, value, failure }: WorkerReply): void {
    const waiting = this.#waiting.get(number);
    this.#waiting.delete(number);
    if (failure) waiting?.reject(new StoreError(failure.code, failure.message));
    // The caller of `request` knows the type of its reply.
    else waiting?.resolve(value as never);
  }

  #fail(message: string): void {
    this.#isAlive = false;
    for (const { reject } of this.#waiting.values()) reject(new StoreError('unavailable', message));
    this.#waiting.clear();
  }

  #waitForNativeCall(): void {
    Atomics.store(this.#flags, 1, 1);
    Atomics.wait(this.#flags, 0, 1, EXIT_WAIT_MS);
  }
}
