/** The store on SQLite: a queue in front of a writer thread, and a reader thread beside it. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { AuditEntry, AuditPage, AuditQuery, KeyRecord } from '../../keys/records.ts';
import { StoreError } from '../errors.ts';
import type { Filter } from '../filter.ts';
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
import { QueuedStore } from '../queued-store.ts';
import type { Store, StoreOptions, StoreReader, StoreStatus } from '../store.ts';
import { backUp, startCheck, type Task } from './backup.ts';
import { BUSY_TIMEOUT_MS } from './database.ts';
import type { Opening } from './ledger.ts';
import type { WorkerRequest, WorkerSettings } from './messages.ts';
import { WorkerClient } from './worker-client.ts';

/** In memory, exchanges beyond this number are deleted, oldest first. */
const MEMORY_ROWS = 50_000;

const DEFAULTS = {
  ballastBytes: 16 << 20,
  retentionDays: 400,
  busyMs: BUSY_TIMEOUT_MS,
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
  readonly opening: Opening;
}

class SqliteStore extends QueuedStore implements Store {
  readonly folder: string | null;
  readonly isPersistent: boolean;
  readonly boot: string;
  readonly shared = undefined;
  readonly configs = undefined;
  readonly #reader: SqliteReader;
  readonly #writer: LastingWorker;
  readonly #opening: Opening;
  #integrity: StoreStatus['integrity'] = 'unchecked';
  #check: Task | undefined;

  constructor(options: StoreOptions, boot: string, { writer, reader, opening }: Workers) {
    const queries = new SqliteReader(reader);
    super(options, queries, (operations) => writer.request({ kind: 'write', operations: JSON.stringify(operations) }));
    this.folder = options.folder;
    this.isPersistent = options.folder !== null;
    this.boot = boot;
    this.#reader = queries;
    this.#writer = writer;
    this.#opening = opening;
    if (opening.droppedPages > 0) options.onDroppedPages?.(opening.droppedPages);
    if (opening.isUnclean && options.folder !== null) this.#startCheck(options.folder);
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
      ...this.queueStatus,
      accepting: this.accepting,
      integrity: this.#integrity,
      crashed_exchanges: this.#opening.crashed,
    };
  }

  prune(): Promise<number> {
    return this.#writer.request({ kind: 'prune' });
  }

  announce(url: string): Promise<void> {
    return this.#writer.request({ kind: 'announce', url });
  }

  async backup(file: string): Promise<void> {
    if (this.folder === null) throw new StoreError('query', 'a store in memory has no file to back up; set a data folder');
    await this.flush();
    await backUp(this.folder, file);
  }

  async close(): Promise<number> {
    const lost = await this.closeQueue();
    this.#check?.cancel();
    await this.#check?.result.catch(() => {});
    if (this.folder !== null) await this.#reader.close();
    await this.#writer.stop();
    return lost;
  }
}

/** Opens the store of a gateway. */
export async function openSqliteStore(options: StoreOptions): Promise<Store> {
  const settings = buildSettings(options, options.folder === null ? 'memory' : 'writer');
  const writer = new LastingWorker(settings);
  const opening = await writer.start<Opening>();
  const reader = options.folder === null ? writer : new LastingWorker({ ...settings, role: 'reader' });
  return new SqliteStore(options, settings.boot, { writer, reader, opening });
}

/** Opens the database of a folder for reading, also while a gateway owns it. */
export async function openSqliteReader(folder: string): Promise<StoreReader> {
  const reader = new LastingWorker(buildSettings({ folder }, 'reader'));
  await reader.start();
  return new SqliteReader(reader);
}
