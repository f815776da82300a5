/** Rows on their way to the database: bounded, written in groups, kept until they are durable. */
import type { Clock, Timer } from '../http/clock.ts';
import { StoreError } from './errors.ts';

/** Limits of a queue. */
export interface QueueLimits {
  /** Rows that may wait before new exchanges are refused. Rows of admitted exchanges may use as many again. */
  readonly maxQueuedRows: number;
  /** So many rows are written at once, without waiting for more. */
  readonly batchRows: number;
  /** The most rows of one transaction. When rows wait for the one before, a large transaction catches up. */
  readonly maxBatchRows: number;
  /**
   * The least time from one transaction to the next, unless a batch is full: many clients share a transaction. A row after a
   * pause, or after a small transaction, is written at once.
   */
  readonly batchMs: number;
  /** Transactions of at most this many rows are small: a few clients gain nothing by waiting for each other. */
  readonly smallRows: number;
}

/** Writes one batch in a transaction. Rejects when the batch may be written later; resolves with the rows that never can be. */
export type SendBatch<Row> = (rows: readonly Row[]) => Promise<readonly { readonly index: number; readonly message: string }[]>;

/** The state of a queue. */
export interface QueueStatus {
  readonly queued_rows: number;
  readonly written_rows: number;
  readonly rejected_rows: number;
  /** Transactions that failed and were repeated. */
  readonly failed_batches: number;
  /** Why the last transaction failed; null when it succeeded. */
  readonly last_error: string | null;
}

/**
 * A row on its way to the database. It can be awaited: it resolves when it is durable, and rejects with a `StoreError`. A row that is
 * not awaited costs no promise, and its failure is counted in the status only.
 */
export class Write implements PromiseLike<undefined> {
  #end: 'none' | 'durable' | StoreError = 'none';
  #listeners: ((error?: StoreError) => void)[] | undefined;

  get isDurable(): boolean {
    return this.#end === 'durable';
  }

  /** Calls a function when the row is durable, or with the error when it will never be; at once when that is known. */
  onEnd(listener: (error?: StoreError) => void): void {
    if (this.#end !== 'none') listener(this.#end === 'durable' ? undefined : this.#end);
    else if (this.#listeners) this.#listeners.push(listener);
    else this.#listeners = [listener];
  }

  /** For those who write: the row is durable, or never will be. Only the first call counts. */
  end(error?: StoreError): void {
    if (this.#end !== 'none') return;
    this.#end = error ?? 'durable';
    for (const listener of this.#listeners ?? []) listener(error);
    this.#listeners = undefined;
  }

  // biome-ignore lint/suspicious/noThenProperty: writes are awaited like promises, but most have no promise.
  then<Value = undefined, Failure = never>(
    onDurable?: ((value: undefined) => Value | PromiseLike<Value>) | null,
    onFailure?: ((error: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Value | Failure> {
    const ended = new Promise<undefined>((resolve, reject) => {
      this.onEnd((error) => (error ? reject(error) : resolve(undefined)));
    });
    return ended.then(onDurable, onFailure);
  }
}

/** A row in the queue. */
class Entry<Row> extends Write {
  readonly row: Row;

  constructor(row: Row) {
    super();
    this.row = row;
  }
}

type State = 'idle' | 'scheduled' | 'sending' | 'retrying' | 'closed';

const FIRST_RETRY_MS = 50;

const MAX_RETRY_MS = 2000;

/** A queue in front of one writer. At most one batch is under way, so that rows are written in their order. */
export class WriteQueue<Row> {
  readonly #send: SendBatch<Row>;
  readonly #limits: QueueLimits;
  readonly #clock: Clock;
  #entries: Entry<Row>[] = [];
  #state: State = 'idle';
  #timer: Timer | undefined;
  /** When the last transaction that was not small began. */
  #lastSent: number;
  #retries = 0;
  #written = 0;
  #rejected = 0;
  #failed = 0;
  #lastError: string | null = null;
  #idleListeners: (() => void)[] = [];
  /** In the order of their rows. */
  #syncListeners: { readonly rows: number; readonly resolve: () => void }[] = [];

  constructor(send: SendBatch<Row>, limits: QueueLimits, clock: Clock) {
    this.#send = send;
    this.#limits = limits;
    this.#clock = clock;
    this.#lastSent = Number.NEGATIVE_INFINITY;
  }

  /** Whether a new exchange can be admitted. */
  get accepting(): boolean {
    return this.#state !== 'closed' && this.#entries.length < this.#limits.maxQueuedRows;
  }

  /** Whether the last transaction failed. */
  get isFailing(): boolean {
    return this.#lastError !== null;
  }

  get status(): QueueStatus {
    return {
      queued_rows: this.#entries.length,
      written_rows: this.#written,
      rejected_rows: this.#rejected,
      failed_batches: this.#failed,
      last_error: this.#lastError,
    };
  }

  /** Adds a row. `isNew`: a row of a new exchange, which is refused earlier than the rows that complete admitted ones. */
  push(row: Row, isNew: boolean): Write {
    const entry = new Entry(row);
    const problem = this.#findProblem(isNew);
    if (problem) entry.end(problem);
    else this.#entries.push(entry);
    this.#schedule();
    return entry;
  }

  #findProblem(isNew: boolean): StoreError | undefined {
    if (this.#state === 'closed') return new StoreError('closed', 'the store is closed');
    const { maxQueuedRows } = this.#limits;
    if (this.#entries.length < (isNew ? maxQueuedRows : 2 * maxQueuedRows)) return undefined;
    const reason = this.#lastError === null ? '' : `: ${this.#lastError}`;
    return new StoreError('full', `${this.#entries.length} rows wait to be written${reason}; retry later`);
  }

  #schedule(): void {
    if (this.#entries.length === 0) return;
    const isFull = this.#entries.length >= this.#limits.batchRows;
    if (this.#state !== 'idle' && !(this.#state === 'scheduled' && isFull)) return;
    this.#state = 'scheduled';
    const wait = this.#lastSent + this.#limits.batchMs - this.#clock.now();
    if (isFull) void this.#sendBatch();
    else if (wait > 0) this.#timer = this.#clock.setTimer(() => void this.#sendBatch(), wait);
    // At the end of this turn, with the other rows of it.
    else queueMicrotask(() => void this.#sendBatch());
  }

  async #sendBatch(): Promise<void> {
    if (this.#state !== 'scheduled' && this.#state !== 'retrying') return;
    this.#timer?.close();
    this.#state = 'sending';
    const batch = this.#entries.slice(0, this.#limits.maxBatchRows);
    if (batch.length > this.#limits.smallRows) this.#lastSent = this.#clock.now();
    try {
      const rejected = await this.#send(batch.map(({ row }) => row));
      this.#complete(batch, new Map(rejected.map(({ index, message }) => [index, message])));
    } catch (error) {
      this.#retryLater(error);
    }
  }

  #complete(batch: readonly Entry<Row>[], rejected: ReadonlyMap<number, string>): void {
    this.#entries.splice(0, batch.length);
    this.#retries = 0;
    this.#lastError = null;
    this.#written += batch.length - rejected.size;
    this.#rejected += rejected.size;
    // First the next batch: the listeners take their time.
    if (this.#state !== 'closed') this.#state = 'idle';
    this.#schedule();
    for (const [index, entry] of batch.entries()) {
      const message = rejected.get(index);
      entry.end(message === undefined ? undefined : new StoreError('rejected', `the database rejected a row: ${message}`));
    }
    this.#notifySynced();
    if (this.#entries.length === 0) this.#notifyIdle();
  }

  /** The batch stays at the head of the queue: nothing is lost while the database is locked or the disk is full. */
  #retryLater(error: unknown): void {
    this.#failed += 1;
    this.#lastError = error instanceof Error ? error.message : String(error);
    if (this.#state === 'closed') return;
    this.#state = 'retrying';
    const wait = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(this.#retries++, 10));
    this.#timer = this.#clock.setTimer(() => void this.#sendBatch(), wait);
  }

  /** Resolves when no row waits. */
  flush(): Promise<void> {
    if (this.#entries.length === 0 || this.#state === 'closed') return Promise.resolve();
    return new Promise((resolve) => {
      this.#idleListeners.push(resolve);
    });
  }

  /** Resolves when the rows that wait now are written, whatever is added meanwhile. */
  sync(): Promise<void> {
    if (this.#entries.length === 0 || this.#state === 'closed') return Promise.resolve();
    const rows = this.#written + this.#rejected + this.#entries.length;
    return new Promise((resolve) => {
      this.#syncListeners.push({ rows, resolve });
    });
  }

  #notifyIdle(): void {
    for (const listener of this.#idleListeners.splice(0)) listener();
  }

  #notifySynced(): void {
    const done = this.#state === 'closed' ? Number.POSITIVE_INFINITY : this.#written + this.#rejected;
    while (this.#syncListeners[0] && this.#syncListeners[0].rows <= done) this.#syncListeners.shift()?.resolve();
  }

  /** Refuses further rows. Rows that still wait are rejected; their number is returned. */
  close(): number {
    this.#state = 'closed';
    this.#timer?.close();
    const lost = this.#entries.splice(0);
    for (const entry of lost) entry.end(new StoreError('closed', 'the store was closed before the row was known to be written'));
    this.#notifyIdle();
    this.#notifySynced();
    return lost.length;
  }
}
