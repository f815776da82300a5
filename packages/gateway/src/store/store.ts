/** What the gateway needs of a store, whatever database is behind it. */
import type { Clock } from '../http/clock.ts';
import type { KeyReader, KeyStore } from '../keys/records.ts';
import type { WatchedConfigs } from './configs.ts';
import type { Filter } from './filter.ts';
import type { Admission } from './ids.ts';
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
import type { AttemptOpening, AttemptProgress, AttemptSettlement, ExchangeOpening, ExchangeSettlement } from './rows.ts';
import type { QueueStatus, Write } from './write-queue.ts';

/** Queries. They run outside of the event loop and see every row that is durable. */
export interface StoreReader extends KeyReader {
  /** Exchanges, newest first, by pages. */
  list(query?: ListQuery): Promise<ExchangePage>;
  /** How many exchanges pass a filter. */
  count(filter?: Filter): Promise<ExchangeCount>;
  /** One exchange with its attempts; null when it is unknown. */
  get(exchange: string): Promise<ExchangeDetail | null>;
  /** Recent sessions, newest first. */
  sessions(limit?: number): Promise<SessionSummary[]>;
  /** One session with a page of its exchanges; null when it is unknown. */
  session(session: string, query?: Omit<ListQuery, 'filter'>): Promise<SessionDetail | null>;
  /** Sums of settled exchanges, from roll-ups. */
  usage(query: UsageQuery): Promise<UsageRow[]>;
  /** What a key or tag has spent since a time, in millionths of a dollar. */
  spending(query: SpendingQuery): Promise<number>;
  close(): Promise<unknown>;
}

/** The ledger. Every write can be repeated: only the first one counts. */
export interface Ledger {
  /** An id for a new exchange, with the time to pass along. */
  createId(): Admission;
  /** False while too many rows wait; refuse new requests with 503. `openExchange` then rejects with the code `full`. */
  readonly accepting: boolean;
  /** Whether the last transaction failed. */
  readonly isFailing: boolean;
  /** At admission. */
  openExchange(row: ExchangeOpening): Write;
  /** Before the request is sent to the upstream. */
  openAttempt(row: AttemptOpening): Write;
  /** Optional, such as at the first content: usage so far, which counts if the gateway crashes. */
  reportProgress(row: AttemptProgress): Write;
  /** At the end of an attempt. */
  settleAttempt(row: AttemptSettlement): Write;
  /** At the end, before the client receives the last bytes. Adds the exchange to the roll-ups in the same transaction. */
  settleExchange(row: ExchangeSettlement): Write;
}

/** The store of a gateway. */
export interface Store extends Ledger, StoreReader, KeyStore {
  /** The data folder; null without one, as in memory. */
  readonly folder: string | null;
  /** Whether keys and usage outlive the gateway; false while they are in memory only. */
  readonly isPersistent: boolean;
  /** The id of this run of the gateway. */
  readonly boot: string;
  /** The configuration that several nodes share; undefined for a store of this gateway alone. */
  readonly configs: WatchedConfigs | undefined;
  status(): StoreStatus;
  /** Resolves when no row waits. */
  flush(): Promise<void>;
  /** Resolves when the rows that wait now are written, whatever is added meanwhile. */
  sync(): Promise<void>;
  /** Starts to delete exchanges beyond the retention, in small transactions. Returns how many the first one deleted. */
  prune(): Promise<number>;
  /** Records where this gateway listens, for commands that have the same data. */
  announce(url: string): Promise<void>;
  /** Copies the database to a new file while the gateway runs. Rejects where other programs do that. */
  backup(file: string): Promise<void>;
  /** Writes what waits, and closes. Returns how many rows could not be written in time. */
  close(): Promise<number>;
}

/** The state of a store, for health pages and metrics. */
export interface StoreStatus extends QueueStatus {
  readonly accepting: boolean;
  /** Checked in the background after the gateway did not end in order. */
  readonly integrity: 'unchecked' | 'checking' | 'ok' | 'damaged';
  /** Exchanges that an earlier run or another node left open, and that were closed here. */
  readonly crashed_exchanges: number;
}

/** How to open a store. */
export interface StoreOptions {
  /** The data folder, created when missing; null keeps everything in memory, unless there is a `url`. */
  readonly folder: string | null;
  /** The address of a PostgreSQL database, which holds everything instead of the folder. */
  readonly url?: string | undefined;
  /** The name of this node; the host's name by default. */
  readonly node?: string;
  /** The id of this run; random by default. */
  readonly boot?: string;
  /** Rows that may wait; 10,000 by default. */
  readonly maxQueuedRows?: number;
  /** So many rows are written without waiting for more; 100 by default. */
  readonly batchRows?: number;
  /** The most rows of one transaction; 500 by default. */
  readonly maxBatchRows?: number;
  /** The least time from one transaction to the next; 20 by default. */
  readonly batchMs?: number;
  /** Space kept in reserve for a full disk; 16 MiB by default, 0 for none. */
  readonly ballastBytes?: number;
  /** Days that exchanges are kept; 400 by default, null for ever. Roll-ups are kept for ever. */
  readonly retentionDays?: number | null;
  /** SQLite: how long the writer waits for a lock of another process; 5,000 by default. */
  readonly busyMs?: number;
  /** PostgreSQL: how long to wait for it. */
  readonly patience?: { readonly connectMs?: number; readonly statementMs?: number; readonly lockMs?: number };
  /** PostgreSQL: a node that gave no sign of life for this time is dead; 15,000 by default. */
  readonly leaseMs?: number;
  /** PostgreSQL: how often changes of keys and of the configuration by other nodes are asked for; 500 by default. */
  readonly keyPollMs?: number;
  /** How long `close()` tries to write what waits; 10,000 by default. */
  readonly closeMs?: number;
  /** SQLite: the write-ahead log was damaged, so that many pages of it were lost. */
  readonly onDroppedPages?: (pages: number) => void;
  /** Timers and durations. */
  readonly clock?: Clock;
  /** Milliseconds since 1970, for ids. */
  readonly wallClock?: () => number;
}
