/** The worker thread of the store. All native calls happen here, inside `guard`, so that no fsync and no lock stops the event loop. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { StoreError, type StoreErrorCode } from '../errors.ts';
import type { Operation } from '../operations.ts';
import type { Queries } from '../queries.ts';
import { SCHEMA_VERSION } from '../rows.ts';
import {
  assertCurrent,
  type Database,
  type Guard,
  openReader,
  openWriter,
  RESULT,
  readResultCode,
  readVersion,
} from './database.ts';
import { createBallast, FolderLock, freeBallast, listFiles, prepareFolder, readFreeBytes } from './folder.ts';
import { SqliteKeys } from './key-table.ts';
import { type Opening, SqliteLedger } from './ledger.ts';
import type { NumberedRequest, WorkerFailure, WorkerReply, WorkerRequest, WorkerSettings } from './messages.ts';
import { countDroppedPages } from './write-ahead-log.ts';

const settings: WorkerSettings = workerData;

/**
 * A worker that ends inside a native call aborts the process. The main thread, before it exits, sets flag 1 and waits for flag 0; from
 * then on no native call begins here.
 */
const guard: Guard = (work) => {
  const { flags } = settings;
  Atomics.store(flags, 0, 1);
  if (Atomics.load(flags, 1) === 1) {
    Atomics.store(flags, 0, 0);
    Atomics.notify(flags, 0);
    Atomics.wait(flags, 2, 0);
  }
  try {
    return work();
  } finally {
    Atomics.store(flags, 0, 0);
    Atomics.notify(flags, 0);
  }
};

/** Reads with any role. */
class ReaderWorker {
  readonly db: Database;
  readonly keys: SqliteKeys;
  #queries: Promise<Queries> | undefined;

  constructor(db: Database) {
    this.db = db;
    this.keys = new SqliteKeys(db, settings.role === 'memory' ? MEMORY_AUDIT_ROWS : null);
  }

  async #loadQueries(): Promise<Queries> {
    const [{ Queries }, { createKysely }] = await Promise.all([import('../queries.ts'), import('./kysely.ts')]);
    return new Queries(createKysely(this.db, guard));
  }

  async handle(request: WorkerRequest): Promise<unknown> {
    // These need no Kysely, which takes 200 ms to load.
    if (request.kind === 'keys') return guard(() => this.keys.list());
    if (request.kind === 'audit') return guard(() => this.keys.listAudit(request.query));
    if (request.kind === 'stop') return guard(() => this.db.close());
    this.#queries ??= this.#loadQueries();
    const queries = await this.#queries;
    switch (request.kind) {
      case 'list':
        return queries.list(request.query);
      case 'count':
        return queries.count(request.filter);
      case 'get':
        return queries.get(request.exchange);
      case 'sessions':
        return queries.sessions(request.limit);
      case 'session':
        return queries.session(request.session, request.query);
      case 'usage':
        return queries.usage(request.query);
      case 'spending':
        return queries.spending(request.query);
      default:
        throw new StoreError('query', `a reader cannot ${request.kind}`);
    }
  }
}

/** Owns the folder and writes. */
class WriterWorker extends ReaderWorker {
  readonly #lock: FolderLock | undefined;
  readonly #ledger: SqliteLedger;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly opening: Opening;

  private constructor(db: Database, lock: FolderLock | undefined, droppedPages: number) {
    super(db);
    this.#lock = lock;
    this.#ledger = guard(() => new SqliteLedger(db, settings));
    this.opening = { ...guard(() => this.#ledger.recover(Date.now())), droppedPages };
    this.#every(settings.maintenanceMs, () => this.#maintain());
    if (lock) this.#every(settings.heartbeatMs, () => lock.beat(Date.now()));
    setImmediate(() => attempt(() => this.#restoreBallast()));
  }

  static async open(): Promise<WriterWorker> {
    const { folder, boot, role, busyMs } = settings;
    if (role === 'memory') return WriterWorker.#openFile(':memory:', undefined);
    prepareFolder(folder);
    const lock = guard(() => FolderLock.take(folder, boot, Date.now()));
    try {
      return await WriterWorker.#openFile(listFiles(folder).database, lock, busyMs);
    } catch (error) {
      guard(() => lock.release());
      throw error;
    }
  }

  static async #openFile(file: string, lock: FolderLock | undefined, busyMs?: number): Promise<WriterWorker> {
    // Before SQLite opens the file, which drops them.
    const droppedPages = lock ? countDroppedPages(`${file}-wal`) : 0;
    const db = guard(() => openWriter(file, busyMs));
    try {
      if (guard(() => readVersion(db)) < SCHEMA_VERSION) await bringUpToDate(db);
      return new WriterWorker(db, lock, droppedPages);
    } catch (error) {
      guard(() => db.close());
      throw error;
    }
  }

  #every(ms: number, run: () => void): void {
    this.#timers.push(setInterval(() => attempt(run), ms));
  }

  #maintain(): void {
    this.#restoreBallast();
    this.#prune();
  }

  #restoreBallast(): void {
    if (this.#lock) createBallast(settings.folder, settings.ballastBytes);
  }

  /** One small batch; the next follows after waiting messages, until nothing is left. */
  #prune(): number {
    const { days, rows } = settings.retention;
    const count = guard(
      () =>
        (days === null ? 0 : this.#ledger.prune(Date.now() - days * DAY_MS)) + (rows === null ? 0 : this.#ledger.pruneTo(rows)),
    );
    if (count > 0) setImmediate(() => attempt(() => this.#prune()));
    return count;
  }

  override async handle(request: WorkerRequest): Promise<unknown> {
    switch (request.kind) {
      case 'write':
        return this.#write(JSON.parse(request.operations));
      case 'saveKey':
        return this.#attemptWrite(() => this.keys.save(request.record, request.entry));
      case 'touchKeys':
        return this.#attemptWrite(() => this.keys.touch(request.uses));
      case 'addAudit':
        return this.#attemptWrite(() => this.keys.addAudit(request.entry));
      case 'prune':
        return this.#prune();
      case 'announce':
        return this.#lock?.announce(request.url, Date.now());
      case 'stop':
        return this.#stop();
      default:
        return super.handle(request);
    }
  }

  #write(operations: readonly Operation[]): unknown {
    return this.#attemptWrite(() => this.#ledger.write(operations));
  }

  #attemptWrite<Result>(work: () => Result): Result {
    try {
      return guard(work);
    } catch (error) {
      if (isDiskFull(error)) this.#makeRoom();
      throw error;
    }
  }

  /** Deleting rows needs room for the log, which the ballast gives. The batch is sent again afterwards. */
  #makeRoom(): void {
    if (!this.#lock || !freeBallast(settings.folder)) return;
    attempt(() => {
      this.#prune();
      guard(() => this.#ledger.checkpoint());
    });
  }

  #stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    // If this cannot be written, the next start checks the file.
    attempt(() => guard(() => this.#ledger.end(Date.now())));
    guard(() => this.db.close());
    guard(() => this.#lock?.release());
  }
}

/** Work that can wait: when the disk fails, the next batch reports it, and the next maintenance tries again. */
function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // Said above.
  }
}

async function bringUpToDate(db: Database): Promise<void> {
  const [{ migrate }, { createKysely }] = await Promise.all([import('../schema.ts'), import('./kysely.ts')]);
  await migrate(createKysely(db, guard), Date.now());
}

const DAY_MS = 86_400_000;

/** Lines of the audit log that a store in memory keeps. */
const MEMORY_AUDIT_ROWS = 10_000;

/** The index of the write-ahead log reports a full disk as an I/O error. */
function isDiskFull(error: unknown): boolean {
  const code = readResultCode(error);
  return code === RESULT.full || (code === RESULT.ioError && readFreeBytes(settings.folder) < settings.ballastBytes);
}

const ERROR_CODES: Readonly<Partial<Record<number, StoreErrorCode>>> = {
  [RESULT.corrupt]: 'damaged',
  [RESULT.notADatabase]: 'damaged',
};

function toFailure(error: unknown): WorkerFailure {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof StoreError) return { code: error.code, message };
  return { code: ERROR_CODES[readResultCode(error) ?? -1] ?? 'unavailable', message: `database: ${message}` };
}

const open = async (): Promise<ReaderWorker> => (settings.role === 'reader' ? openReaderWorker() : WriterWorker.open());

function openReaderWorker(): ReaderWorker {
  const db = guard(() => openReader(listFiles(settings.folder).database, settings.busyMs));
  try {
    guard(() => assertCurrent(db, SCHEMA_VERSION));
    return new ReaderWorker(db);
  } catch (error) {
    guard(() => db.close());
    throw error;
  }
}

async function serve(port: MessagePort): Promise<void> {
  const reply = (message: WorkerReply): void => port.postMessage(message);
  try {
    const worker = await open();
    const handle = async ({ number, request }: NumberedRequest): Promise<void> => {
      try {
        reply({ number, value: await worker.handle(request) });
      } catch (error) {
        reply({ number, failure: toFailure(error) });
      }
      if (request.kind === 'stop') port.close();
    };
    // In their order: `stop` waits for the queries before it.
    let last = Promise.resolve();
    port.on('message', (message: NumberedRequest) => {
      last = last.then(() => handle(message));
    });
    reply({ number: 0, value: worker instanceof WriterWorker ? worker.opening : null });
  } catch (error) {
    reply({ number: 0, failure: toFailure(error) });
    port.close();
  }
}

if (parentPort) await serve(parentPort);
