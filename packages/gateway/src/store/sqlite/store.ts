/** The store on SQLite: a queue in front of a writer thread, and a reader thread beside it. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Clock, REAL_CLOCK } from '../../http/clock.ts';
import type { AuditEntry, AuditPage, AuditQuery, KeyRecord } from '../../keys/records.ts';
import { StoreError } from '../errors.ts';
import type { Filter } from '../filter.ts';
import { type Admission, IdSource } from '../ids.ts';
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
} from '../queries.ts';
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
} from '../rows.ts';
import type { Store, StoreOptions, StoreReader, StoreStatus } from '../store.ts';
import { WriteQueue } from '../write-queue.ts';
import { backUp, startCheck, type Task } from './backup.ts';
import { BUSY_TIMEOUT_MS } from './database.ts';
import type { Operation, Recovery, RejectedOperation } from './ledger.ts';
import type { WorkerRequest, WorkerSettings } from './messages.ts';
import { WorkerClient } from './worker-client.ts';

/** In memory, exchanges beyond this number are deleted, oldest first. */
const MEMORY_ROWS = 50_000;

const DEFAULTS = {
  maxQueuedRows: 10_000,
  batchRows: 100,
  batchMs: 20,
  smallRows: 4,
  ballastBytes: 16 << 20,
  retentionDays: 400,
  busyMs: BUSY_TIMEOUT_MS,
  closeMs: 10_000,
} as const;

type Settings = Omit<WorkerSettings, 'flags'>;

function buildSettings(options: StoreOptions, role: WorkerSettings['role']): Settings {
  const { retentionDays = DEFAULTS.retentionDays } = options;
  return {
    role,
    folder: options.folder ?? '',
    boot: options.boot ?? randomUUID(),
    node: options.node ?? hostname(),
    busyMs: options.busyMs ?? DEFAULTS.busyMs,
    ballastBytes: options.ballastBytes ?? DEFAULTS.ballastBytes,
    retention: { days: retentionDays, rows: role === 'memory' ? MEMORY_ROWS : null },
    heartbeatMs: 5000,
    maintenanceMs: 60_000,
  };
}

/** A worker that is started when it is needed, and again when it ended unexpectedly. */
class LastingWorker {
  readonly #settings: Settings;
  #client: Promise<WorkerClient> | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  async start<Value>(): Promise<Value> {
    const started = WorkerClient.start<Value>(this.#settings);
    this.#client = started.then(({ client }) => client);
    // Reported to the caller by `started`.
    this.#client.catch(() => {});
    return (await started).value;
  }

  async request<Value>(request: WorkerRequest): Promise<Value> {
    const known = this.#client;
    const client = await known?.catch(() => undefined);
    if (client?.isAlive) return client.request(request);
    // Another request may have started it meanwhile.
    if (this.#client === known) await this.start();
    return this.request(request);
  }

  async stop(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    if (client?.isAlive) await client.stop();
  }
}

/** Queries by a worker. */
class SqliteReader implements StoreReader {
  readonly #worker: LastingWorker;

  constructor(worker: LastingWorker) {
    this.#worker = worker;
  }

  list(query: ListQuery = {}): Promise<ExchangePage> {
    return this.#worker.request({ kind: 'list', query });
  }

  count(filter: Filter = []): Promise<ExchangeCount> {
    return this.#worker.request({ kind: 'count', filter });
  }

  get(exchange: string): Promise<ExchangeDetail | null> {
    return this.#worker.request({ kind: 'get', exchange });
  }

  sessions(limit?: number): Promise<SessionSummary[]> {
    return this.#worker.request({ kind: 'sessions', limit });
  }

  session(session: string, query: Omit<ListQuery, 'filter'> = {}): Promise<SessionDetail | null> {
    return this.#worker.request({ kind: 'session', session, query });
  }

  usage(query: UsageQuery): Promise<UsageRow[]> {
    return this.#worker.request({ kind: 'usage', query });
  }

  listKeys(): Promise<KeyRecord[]> {
    return this.#worker.request({ kind: 'keys' });
  }

  listAudit(query: AuditQuery = {}): Promise<AuditPage> {
    return this.#worker.request({ kind: 'audit', query });
  }

  spending(query: SpendingQuery): Promise<number> {
    return this.#worker.request({ kind: 'spending', query });
  }

  close(): Promise<unknown> {
    return this.#worker.stop();
  }
}

interface Workers {
  readonly writer: LastingWorker;
  /** In memory the same as `writer`. */
  readonly reader: LastingWorker;
  readonly recovery: Recovery;
}

class SqliteStore extends SqliteReader implements Store {
  readonly folder: string | null;
  readonly boot: string;
  readonly #writer: LastingWorker;
  readonly #queue: WriteQueue<Operation>;
  readonly #ids: IdSource;
  readonly #clock: Clock;
  readonly #closeMs: number;
  readonly #recovery: Recovery;
  #integrity: StoreStatus['integrity'] = 'unchecked';
  #check: Task | undefined;

  constructor(options: StoreOptions, boot: string, { writer, reader, recovery }: Workers) {
    super(reader);
    this.folder = options.folder;
    this.boot = boot;
    this.#writer = writer;
    this.#recovery = recovery;
    this.#clock = options.clock ?? REAL_CLOCK;
    this.#closeMs = options.closeMs ?? DEFAULTS.closeMs;
    this.#ids = new IdSource(options.wallClock);
    const { maxQueuedRows, batchRows, batchMs, smallRows } = { ...DEFAULTS, ...dropUndefined(options) };
    const send = (operations: readonly Operation[]): Promise<RejectedOperation[]> =>
      writer.request({ kind: 'write', operations });
    this.#queue = new WriteQueue(send, { maxQueuedRows, batchRows, batchMs, smallRows }, this.#clock);
    if (recovery.isUnclean && options.folder !== null) this.#startCheck(options.folder);
  }

  /** A power loss or a bad disk may have damaged the file; the gateway serves meanwhile. */
  #startCheck(folder: string): void {
    this.#integrity = 'checking';
    this.#check = startCheck(folder);
    this.#check.result.then(
      (problems) => {
        this.#integrity = problems.length === 0 ? 'ok' : 'damaged';
      },
      () => {
        this.#integrity = 'unchecked';
      },
    );
  }

  createId(): Admission {
    return this.#ids.next();
  }

  get accepting(): boolean {
    return this.#queue.accepting;
  }

  openExchange(row: ExchangeOpening): Promise<void> {
    return this.#queue.push({ kind: 'openExchange', values: listOpening(row) }, true);
  }

  openAttempt(row: AttemptOpening): Promise<void> {
    return this.#queue.push({ kind: 'openAttempt', values: listAttempt(row) }, false);
  }

  reportProgress(row: AttemptProgress): Promise<void> {
    return this.#queue.push({ kind: 'reportProgress', values: listProgress(row) }, false);
  }

  settleAttempt(row: AttemptSettlement): Promise<void> {
    return this.#queue.push({ kind: 'settleAttempt', values: listAttemptSettlement(row) }, false);
  }

  settleExchange(row: ExchangeSettlement): Promise<void> {
    return this.#queue.push({ kind: 'settleExchange', values: listExchangeSettlement(row) }, false);
  }

  /** By the writer, which runs already: the reader is not started for this. */
  override listKeys(): Promise<KeyRecord[]> {
    return this.#writer.request({ kind: 'keys' });
  }

  saveKey(record: KeyRecord, entry: AuditEntry): Promise<void> {
    return this.#writer.request({ kind: 'saveKey', record, entry });
  }

  touchKeys(uses: readonly (readonly [id: string, ts: number])[]): Promise<void> {
    return this.#writer.request({ kind: 'touchKeys', uses });
  }

  addAudit(entry: AuditEntry): Promise<void> {
    return this.#writer.request({ kind: 'addAudit', entry });
  }

  status(): StoreStatus {
    return {
      ...this.#queue.status,
      accepting: this.accepting,
      integrity: this.#integrity,
      crashed_exchanges: this.#recovery.crashed,
    };
  }

  flush(): Promise<void> {
    return this.#queue.flush();
  }

  sync(): Promise<void> {
    return this.#queue.sync();
  }

  prune(): Promise<number> {
    return this.#writer.request({ kind: 'prune' });
  }

  async backup(file: string): Promise<void> {
    if (this.folder === null) throw new StoreError('query', 'a store in memory has no file to back up; set a data folder');
    await this.#queue.flush();
    await backUp(this.folder, file);
  }

  override async close(): Promise<number> {
    const timeout = new Promise<void>((resolve) => {
      this.#clock.setTimer(resolve, this.#closeMs).unref();
    });
    await Promise.race([this.#queue.flush(), timeout]);
    const lost = this.#queue.close();
    this.#check?.cancel();
    await this.#check?.result.catch(() => {});
    if (this.folder !== null) await super.close();
    await this.#writer.stop();
    return lost;
  }
}

const dropUndefined = <Value extends object>(value: Value): Partial<Value> =>
  Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as Partial<Value>;

/** Opens the store of a gateway. */
export async function openSqliteStore(options: StoreOptions): Promise<Store> {
  const settings = buildSettings(options, options.folder === null ? 'memory' : 'writer');
  const writer = new LastingWorker(settings);
  const recovery = await writer.start<Recovery>();
  const reader = options.folder === null ? writer : new LastingWorker({ ...settings, role: 'reader' });
  return new SqliteStore(options, settings.boot, { writer, reader, recovery });
}

/** Opens the database of a folder for reading, also while a gateway owns it. */
export async function openSqliteReader(folder: string): Promise<StoreReader> {
  const reader = new LastingWorker(buildSettings({ folder }, 'reader'));
  await reader.start();
  return new SqliteReader(reader);
}
