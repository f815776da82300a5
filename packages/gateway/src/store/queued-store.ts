/** What the stores of all databases share: a queue in front of their writer, and queries by a reader. */
import { type Clock, REAL_CLOCK } from '../http/clock.ts';
import type { AuditPage, AuditQuery, KeyRecord } from '../keys/records.ts';
import type { Filter } from './filter.ts';
import { type Admission, IdSource } from './ids.ts';
import type { Operation } from './operations.ts';
import type {
  ExchangeCount,
  ExchangeDetail,
  ExchangePage,
  ListQuery,
  SessionDetail,
  SessionSummary,
  SpendingQuery,
  UsageQuery,
  UsageRow,
} from './queries.ts';
import {
  type AttemptOpening,
  type AttemptProgress,
  type AttemptSettlement,
  type ExchangeOpening,
  type ExchangeSettlement,
  listAttempt,
  listAttemptSettlement,
  listExchangeSettlement,
  listOpening,
  listProgress,
} from './rows.ts';
import type { Ledger, StoreOptions, StoreReader } from './store.ts';
import { type QueueStatus, type SendBatch, type Write, WriteQueue } from './write-queue.ts';

const DEFAULTS = {
  maxQueuedRows: 10_000,
  batchRows: 100,
  maxBatchRows: 500,
  batchMs: 20,
  smallRows: 4,
  closeMs: 10_000,
} as const;

/** A ledger whose rows wait in a queue until they are durable. */
export abstract class QueuedStore implements Ledger, StoreReader {
  protected readonly clock: Clock;
  readonly #reader: StoreReader;
  readonly #queue: WriteQueue<Operation>;
  readonly #ids: IdSource;
  readonly #closeMs: number;

  constructor(options: StoreOptions, reader: StoreReader, send: SendBatch<Operation>) {
    this.clock = options.clock ?? REAL_CLOCK;
    this.#reader = reader;
    this.#ids = new IdSource(options.wallClock);
    this.#closeMs = options.closeMs ?? DEFAULTS.closeMs;
    const { maxQueuedRows, batchRows, maxBatchRows, batchMs, smallRows } = { ...DEFAULTS, ...options };
    this.#queue = new WriteQueue(send, { maxQueuedRows, batchRows, maxBatchRows, batchMs, smallRows }, this.clock);
  }

  // ---- the ledger

  createId(): Admission {
    return this.#ids.next();
  }

  get accepting(): boolean {
    return this.#queue.accepting;
  }

  get isFailing(): boolean {
    return this.#queue.isFailing;
  }

  openExchange(row: ExchangeOpening): Write {
    return this.#queue.push({ kind: 'openExchange', values: listOpening(row) }, true);
  }

  openAttempt(row: AttemptOpening): Write {
    return this.#queue.push({ kind: 'openAttempt', values: listAttempt(row) }, false);
  }

  reportProgress(row: AttemptProgress): Write {
    return this.#queue.push({ kind: 'reportProgress', values: listProgress(row) }, false);
  }

  settleAttempt(row: AttemptSettlement): Write {
    return this.#queue.push({ kind: 'settleAttempt', values: listAttemptSettlement(row) }, false);
  }

  settleExchange(row: ExchangeSettlement): Write {
    return this.#queue.push({ kind: 'settleExchange', values: listExchangeSettlement(row) }, false);
  }

  flush(): Promise<void> {
    return this.#queue.flush();
  }

  sync(): Promise<void> {
    return this.#queue.sync();
  }

  protected get queueStatus(): QueueStatus {
    return this.#queue.status;
  }

  /** Writes what waits, for a limited time. Returns how many rows could not be written. */
  protected async closeQueue(): Promise<number> {
    const timeout = new Promise<void>((resolve) => {
      this.clock.setTimer(resolve, this.#closeMs).unref();
    });
    await Promise.race([this.#queue.flush(), timeout]);
    return this.#queue.close();
  }

  // ---- queries

  list(query?: ListQuery): Promise<ExchangePage> {
    return this.#reader.list(query);
  }

  count(filter?: Filter): Promise<ExchangeCount> {
    return this.#reader.count(filter);
  }

  get(exchange: string): Promise<ExchangeDetail | null> {
    return this.#reader.get(exchange);
  }

  sessions(limit?: number): Promise<SessionSummary[]> {
    return this.#reader.sessions(limit);
  }

  session(session: string, query?: Omit<ListQuery, 'filter'>): Promise<SessionDetail | null> {
    return this.#reader.session(session, query);
  }

  usage(query: UsageQuery): Promise<UsageRow[]> {
    return this.#reader.usage(query);
  }

  spending(query: SpendingQuery): Promise<number> {
    return this.#reader.spending(query);
  }

  listKeys(): Promise<KeyRecord[]> {
    return this.#reader.listKeys();
  }

  listAudit(query?: AuditQuery): Promise<AuditPage> {
    return this.#reader.listAudit(query);
  }

  abstract close(): Promise<number>;
}
