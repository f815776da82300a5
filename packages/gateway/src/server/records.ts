/** Opens the store of a gateway by its configuration, and keeps the records of exchanges in it. */

import { existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ReadSpending } from '../admission/memory.ts';
import type { SharedBackend } from '../admission/shared/backend.ts';
import type { Driver, DriverEvents } from '../admission/shared/driver.ts';
import { Captures } from '../capture/captures.ts';
import { ConfigError } from '../config/problems.ts';
import type { GatewayState, LimitsAddress, StoreAddress } from '../config/resolve.ts';
import { Secret, type SecretRegistry } from '../config/secrets.ts';
import type { RecordKeeping } from '../exchange/record.ts';
import type { Services } from '../exchange/types.ts';
import type { Clock, Timer } from '../http/clock.ts';
import { KeyBook, KeyError } from '../keys/key-book.ts';
import type { Logger } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { SpanExporter } from '../observe/tracing/exporter.ts';
import { readTraceSettings } from '../observe/tracing/settings.ts';
import type { Tracer } from '../observe/tracing/tracer.ts';
import { findDefaultFolder, type Ledger, listFiles, MEMORY, openStore, type Store, StoreError } from '../store/index.ts';
import type { WorkerLink } from './worker.ts';

/** Where a gateway keeps its data: a folder, or `memory` for as long as it runs. */
export interface DataOptions {
  /** A folder or `memory`, which overrides the configuration, or `default`. Undefined: as configured, else memory. */
  data?: string | undefined;
  env: Readonly<Record<string, string | undefined>>;
}

type DataState = Pick<GatewayState, 'data' | 'retentionDays' | 'store' | 'nodeLeaseMs' | 'keys' | 'pepperFile'>;

/**
 * Opens the store. A folder that the operator has chosen must work; the default one is replaced by memory, with a
 * warning, when it is not writable or belongs to another gateway.
 */
export async function openRecords({ data, env }: DataOptions, state: DataState, log: Logger): Promise<Store> {
  const configured = env['SLUICE_DATA'] || state.data;
  if (state.store) return openDatabase(state.store, data === undefined || data === DEFAULT ? configured : data, state);
  const chosen = data === undefined ? (configured ?? MEMORY) : data === DEFAULT ? configured : data;
  const onDroppedPages = (pages: number): void =>
    log.error(
      { folder, pages },
      'the write-ahead log of the database was damaged: the last rows and keys that were written may be lost; check the disk, or restore a backup',
    );
  const open = (folder: string | null): Promise<Store> =>
    openStore({ folder, retentionDays: state.retentionDays, onDroppedPages });
  const folder = chosen ?? findDefaultFolder(env);
  if (folder === MEMORY) return open(null);
  try {
    return await open(folder);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    if (chosen !== undefined) throw new ConfigError([{ message: error.message, path: ['data'] }]);
    if (state.keys.length === 0 && existsSync(state.pepperFile ?? listFiles(folder).pepper))
      throw new ConfigError([{ message: `${error.message}. ${KEYS_IN_FOLDER}`, path: ['data'] }]);
    log.warn(
      { folder, reason: error.message },
      'the data folder cannot be used; usage is kept in memory until the gateway stops',
    );
    return open(null);
  }
}

const KEYS_IN_FOLDER =
  'Client keys were created there, and without them the gateway would admit everybody. If that is intended, set data to "memory"';

/** Opens a database. A folder that the operator has chosen holds what is of this node alone: captures, and the pepper by default. */
async function openDatabase(
  { url, place }: StoreAddress,
  data: string | undefined,
  { retentionDays, nodeLeaseMs: leaseMs }: DataState,
): Promise<Store> {
  const folder = data === undefined || data === MEMORY ? null : data;
  try {
    if (folder !== null) mkdirSync(folder, { recursive: true, mode: 0o700 });
    return await openStore({ folder, url: url.reveal(), retentionDays, leaseMs });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError([{ message: `the database ${place} cannot be used: ${reason}`, path: ['store'] }]);
  }
}

/** Opens the client keys of a store. The pepper must be the one that they were created with. */
export async function openKeys(
  store: Store,
  { pepperFile }: Pick<GatewayState, 'pepperFile'>,
  { log, isTaken }: { log: Logger; isTaken: (name: string) => boolean },
): Promise<KeyBook> {
  const onFailure = (reason: string): void => log.warn({ reason }, 'when client keys were used could not be recorded');
  if (store.shared && store.folder === null && pepperFile === undefined)
    throw new ConfigError([{ message: PEPPER_REQUIRED, path: ['auth', 'pepper_file'] }]);
  const file = choosePepperFile(store, pepperFile);
  try {
    const keys = await KeyBook.open({ store, pepperFile: file, requiresPepper: true, isTaken, onFailure });
    if (keys.isLost) log.error({ pepper_file: file }, KEYS_LOST);
    warnOfModes([file, store.folder], log);
    return keys;
  } catch (error) {
    if (error instanceof StoreError) throw new ConfigError([{ message: error.message, path: ['data'] }]);
    if (!(error instanceof KeyError)) throw error;
    throw new ConfigError([{ message: error.message, path: ['auth', 'pepper_file'] }]);
  }
}

/** Other users of the machine could take the pepper and the database from there, or put others in their places. */
function warnOfModes(paths: readonly (string | null)[], log: Logger): void {
  if (process.platform === 'win32') return;
  for (const path of paths) {
    const stats = path === null ? undefined : statSync(path, { throwIfNoEntry: false });
    if (!stats || path === null) continue;
    // A folder that others may enter and read is common; its files can be read by their owner alone.
    const isOpen = (stats.mode & (stats.isDirectory() ? OTHERS_WRITE : OTHERS)) !== 0;
    const mode = (stats.mode & 0o777).toString(8).padStart(4, '0');
    if (isOpen) log.warn({ path, mode }, stats.isDirectory() ? OPEN_FOLDER : OPEN_PEPPER);
  }
}

const OTHERS = 0o007;

const OTHERS_WRITE = 0o002;

const OPEN_PEPPER = 'other users of this machine can read the pepper file; give it mode 0600';

const OPEN_FOLDER = 'other users of this machine can replace the files of the data folder; give it mode 0700';

const KEYS_LOST =
  'the pepper file shows that client keys were created, but the database has none: it was emptied, replaced or lost, and clients with such keys are refused. Restore a backup, or create new keys with "sluice keys create". Without keys, only a gateway without this file admits everybody';

const PEPPER_REQUIRED =
  'with a PostgreSQL store every node needs the same pepper; set auth.pepper_file to a file that all nodes have';

/** The file of the pepper; null for a store in memory, whose keys end with it. */
const choosePepperFile = ({ folder, shared }: Store, configured: string | undefined): string | null =>
  folder === null ? ((shared && configured) ?? null) : (configured ?? listFiles(folder).pepper);

/** Opens the captures of a gateway: in memory, and beside the store for exchanges that the configuration names. */
export async function openCaptures(state: GatewayState, { store, secrets, services, worker }: CaptureParts): Promise<Captures> {
  const { limits, clock, log, metrics } = services;
  const { models, providers, keys } = state.capture;
  // Each worker has a folder of its own, as it has limits for its files of its own.
  const folder =
    store.folder === null ? null : join(store.folder, CAPTURES_FOLDER, ...(worker ? [`worker-${worker.number}`] : []));
  if (folder === null && models.length + providers.length + keys.length > 0)
    log.warn('there is no data folder, so captures are kept in memory until the gateway stops');
  let isLogged = false;
  const onFailure = (reason: string): void => {
    metrics.failedCaptures.inc();
    if (!isLogged) log.error({ reason }, 'an exchange could not be captured; further failures are only counted');
    isLogged = true;
  };
  return Captures.open({ options: state.capture, folder, secrets, limits, clock, onFailure });
}

interface CaptureParts {
  store: Store;
  secrets: SecretRegistry;
  services: Pick<Services, 'limits' | 'clock' | 'log' | 'metrics'>;
  worker: WorkerLink | undefined;
}

/** The folder for captures, in the data folder. */
const CAPTURES_FOLDER = 'captures';

/** The folder of the configuration, else that of the user. */
const DEFAULT = 'default';

/** Reads what was spent before from the ledger. Without a store, nothing was. */
export function createReadSpending(store: Store | undefined, clock: Clock): ReadSpending {
  if (!store) return async () => 0;
  const read: ReadSpending = async ({ by, of }, since) => {
    const { last_error: reason } = store.status();
    if (reason !== null) throw new StoreError('unavailable', reason);
    // The exchanges of this run count, too: a budget may be added while the gateway runs.
    await store.sync();
    return store.spending({ by, of, since });
  };
  return async (account, since) => {
    let timer: Timer | undefined;
    const late = new Promise<never>((_, reject) => {
      const error = new StoreError('unavailable', `the ledger did not respond within ${SPENDING_MS / 1000} s`);
      timer = clock.setTimer(() => reject(error), SPENDING_MS).unref();
    });
    try {
      return await Promise.race([read(account, since), late]);
    } finally {
      timer?.close();
    }
  };
}

/** How long a request with a budget waits for a database that does not respond. The database itself may take longer for a statement. */
const SPENDING_MS = 5000;

/** Opens the limits that several gateways share; undefined when they are in memory. */
export async function openLimits(
  { limitsStore }: Pick<GatewayState, 'limitsStore'>,
  { store, clock, log, metrics, workers = 1 }: LimitParts,
): Promise<SharedBackend | undefined> {
  if (!limitsStore) return undefined;
  // Imported on demand: most gateways keep their limits in memory.
  const { SharedBackend } = await import('../admission/shared/backend.ts');
  let lastLogAt = Number.NEGATIVE_INFINITY;
  const onConnectError = (reason: string): void => {
    if (clock.now() - lastLogAt < LOG_EVERY_MS) return;
    lastLogAt = clock.now();
    log.warn({ reason }, 'the limits store cannot be connected');
  };
  return new SharedBackend({
    createDriver: await chooseDriver(limitsStore, clock),
    timeoutMs: limitsStore.timeoutMs,
    // Every worker counts as a gateway.
    nodes: limitsStore.nodes * workers,
    clock,
    log,
    readSpending: createReadSpending(store, clock),
    onConnectError,
    onInsured: () => metrics().insuredRequests.inc(),
    onFailure: () => metrics().limitsStoreFailures.inc(),
  });
}

/** Imports the driver of a server. */
async function chooseDriver(
  { server, url, prefix, connectTimeoutMs }: LimitsAddress,
  clock: Clock,
): Promise<(events: DriverEvents) => Driver> {
  const options = { url: url.reveal(), prefix, connectTimeoutMs, clock };
  if (server === 'redis') {
    const { RedisDriver } = await import('../admission/redis/driver.ts');
    return (events) => new RedisDriver(options, events);
  }
  const { PostgresDriver } = await import('../admission/postgres/driver.ts');
  return (events) => new PostgresDriver(options, events);
}

/** Opens the export of traces; undefined when the environment does not configure it. */
export async function openTracing({ env, secrets, clock, log, metrics }: TracingParts): Promise<Tracing | undefined> {
  const settings = readTraceSettings(env, (message) => log.warn({ reason: message }, 'tracing is not configured correctly'));
  if (!settings) return undefined;
  for (const value of Object.values(settings.headers)) secrets.add(new Secret(value));
  const [{ SpanExporter }, { Tracer }] = await Promise.all([
    import('../observe/tracing/exporter.ts'),
    import('../observe/tracing/tracer.ts'),
  ]);
  let lastLogAt = Number.NEGATIVE_INFINITY;
  const onDropped = (count: number, reason = 'the queue is full'): void => {
    metrics().droppedSpans.inc(count);
    if (clock.now() - lastLogAt < LOG_EVERY_MS) return;
    lastLogAt = clock.now();
    log.warn({ reason, spans: count }, 'spans were not exported');
  };
  const exporter = new SpanExporter({ settings, clock, onDropped });
  const tracer = new Tracer({ settings, add: (span) => exporter.add(span), redact: (text) => secrets.redact(text) });
  return { tracer, exporter };
}

interface Tracing {
  tracer: Tracer;
  exporter: SpanExporter;
}

interface TracingParts extends Omit<LimitParts, 'store'> {
  env: DataOptions['env'];
  secrets: SecretRegistry;
}

interface LimitParts {
  store: Store;
  clock: Clock;
  log: Logger;
  /** Created after the limits. */
  metrics: () => Metrics;
  /** How many workers this gateway has. */
  workers?: number | undefined;
}

/** How the exchanges of a gateway are recorded. */
export function createKeeping(ledger: Ledger, { durability, clock, log, metrics, redact }: KeepingOptions): RecordKeeping {
  let isLogged = false;
  return {
    ledger,
    durability,
    clock,
    ...(redact && { redact }),
    onLate: (reason) => {
      metrics.lateRecords.inc();
      // One line per outage: every response of it would log the same.
      if (isLogged) return;
      log.error({ reason }, 'usage could not be recorded before the response was sent; it will be recorded later');
      isLogged = true;
      clock.setTimer(() => (isLogged = false), LOG_EVERY_MS).unref();
    },
  };
}

interface KeepingOptions {
  durability: RecordKeeping['durability'];
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** Removes the secrets of the gateway. */
  redact?: ((text: string) => string) | undefined;
}

const LOG_EVERY_MS = 60_000;
