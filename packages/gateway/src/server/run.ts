/** Starts a gateway: configuration, services and server. */

import { AdminAccess } from '../admin/access.ts';
import { AdminApi } from '../admin/api.ts';
import { ChangeFeed } from '../admin/live.ts';
import type { AdminContext } from '../admin/route.ts';
import type { LimitBackend } from '../admission/backend.ts';
import { AdmissionGate } from '../admission/gate.ts';
import { MemoryBackend } from '../admission/memory.ts';
import type { Captures } from '../capture/captures.ts';
import { listSettings } from '../config/effective.ts';
import { findConfig } from '../config/load.ts';
import type { CacheOptions, Durability, IdempotencyOptions, Limits, LogLevel } from '../config/options.ts';
import { ConfigError } from '../config/problems.ts';
import { type ReloadCause, ReloadHistory } from '../config/reloads.ts';
import { findExposure, type GatewayState, type ResolveOptions, type StoredKeys } from '../config/resolve.ts';
import { redactClientKeys } from '../config/secret-patterns.ts';
import { SecretRegistry } from '../config/secrets.ts';
import { LiveConfig, readConfig, resolveEnvironment, type WatchOptions } from '../config/watch.ts';
import { IdempotentResponses } from '../exchange/idempotent-responses.ts';
import { MemoryGuard, measureMemoryShare, readConnectionRoom, readConnectionShare, Streams } from '../exchange/load.ts';
import { ModelLists } from '../exchange/model-lists.ts';
import { PendingBytes } from '../exchange/pending-bytes.ts';
import { ResponseCache } from '../exchange/response-cache.ts';
import { REVOKED, type Services } from '../exchange/types.ts';
import { type Clock, REAL_CLOCK } from '../http/clock.ts';
import { CertificateWatch, readTlsPair, TlsError, type TlsFiles, type TlsPair } from '../http/tls.ts';
import type { KeyBook } from '../keys/key-book.ts';
import type { AuditEntry } from '../keys/records.ts';
import { createLog, type Logger } from '../observe/log.ts';
import { Metrics } from '../observe/metrics.ts';
import { createAddressRedact, createHostRedact, createRedact } from '../observe/redact.ts';
import type { Tracer } from '../observe/tracing/tracer.ts';
import { loadSnapshot } from '../prices/snapshot.ts';
import { openResponseState } from '../responses/open.ts';
import { Router } from '../routing/router.ts';
import type { Ledger, Store, StoredConfig } from '../store/index.ts';
import { Breakers } from '../upstream/breaker.ts';
import { DemoTransport } from '../upstream/demo.ts';
import { Dialer } from '../upstream/dialer.ts';
import { memo } from '../upstream/memo.ts';
import { LearnedRefusals, RetryBudget } from '../upstream/retry.ts';
import { createDirectory } from './directory.ts';
import { chooseInstance } from './instance.ts';
import { MetricsListener } from './metrics-page.ts';
import { combineObservers } from './observers.ts';
import { createKeeping, createReadSpending, openCaptures, openKeys, openLimits, openRecords, openTracing } from './records.ts';
import { Gateway } from './server.ts';
import type { WorkerLink } from './worker.ts';

/** Creates the gateway and starts to listen. Rejects with a `ConfigError` when the configuration is invalid. */
export async function run({
  config: given,
  folder,
  env,
  listen,
  log: level,
  formatLog,
  data,
  watch = {},
  worker,
}: RunOptions): Promise<Running> {
  const secrets = new SecretRegistry();
  const file = given ?? findConfig(folder);
  let book: KeyBook | undefined;
  // The store is opened by the configuration, so its keys are checked after that.
  const storedKeys = (): StoredKeys => (book && !book.isUsed ? 'none' : 'some');
  const options: ResolveOptions = { env, secrets, listen, storedKeys };
  const live = file === undefined ? undefined : await openLive(file, { ...options, ...watch });
  const first = live?.config.current ?? resolveEnvironment(options);
  const redact = createRedact(secrets);
  const log = createLog(level ?? first.log.level, redact, undefined, formatLog);
  const demo = new DemoTransport();
  let state = first;
  let directory = createDirectory(first, demo);
  let captures: Captures | undefined;
  const reloads = new ReloadHistory();
  const version = (): { version?: number } => describeVersion(live?.config.shared);
  reloads.add('start', { warnings: first.warnings.length, ...version() });
  live?.onState(
    (reloaded, restart, by) => {
      state = reloaded;
      reloads.add(by, { restart, warnings: state.warnings.length, ...version() });
      directory = createDirectory(state, demo, book);
      captures?.configure(state.capture, hasKeys());
      log.info(version(), 'configuration reloaded');
      auditReload();
      warnOfSharedNames();
      for (const { message } of state.warnings) log.warn({ reason: message }, 'configuration warning');
      if (restart.length > 0) log.warn({ sections: restart }, 'changes in these sections take effect after a restart');
    },
    (reason, by) => {
      const rejected = describeVersion(live.config.newest);
      reloads.add(by, { reason, ...rejected });
      log.error({ reason, ...rejected }, 'configuration rejected; keeping the previous one');
    },
  );

  const closeLive = (error: unknown): never => {
    live?.config.close();
    throw error;
  };
  const tls = await readTls(first.listen.tls).catch(closeLive);
  const hasKeys = (): boolean => state.keys.length > 0 || (book?.isUsed ?? false);
  let auditReload = (): void => undefined;
  const warnOfSharedNames = (): void => {
    for (const { caller } of state.keys)
      if (book?.find(caller.name))
        log.warn({ name: caller.name }, 'a key of the configuration and a stored key have the same name');
  };
  const store = await openRecords({ data, env }, first, log).catch(closeLive);
  const openCheckedKeys = async (): Promise<KeyBook> => {
    book = await openKeys(store, first, { log, isTaken: (name) => state.keys.some(({ caller }) => caller.name === name) });
    // Throws, with the place in the file, for an address that needs keys when there are none.
    if (storedKeys() === 'none' && findExposure(first.listen.host, first.keys, 'none') !== undefined)
      await (file === undefined ? resolveEnvironment(options) : readConfig(file, options));
    return book;
  };
  const keys = await openCheckedKeys().catch(async (error: unknown) => {
    live?.config.close();
    await store.close();
    throw error;
  });
  directory = createDirectory(state, demo, keys);
  auditReload = () => auditConfig(store, { file: file ?? null, ...version() }, log);
  const shared = live?.config.shared;
  if (shared) store.configs?.watch(shared.version, (config) => live?.config.replaceShared(config));
  warnOfSharedNames();
  const { durability, idempotency, cache, timeZone } = first;
  const feed = new ChangeFeed({
    boot: store.boot,
    clock: REAL_CLOCK,
    read: async (id) => (await store.get(id))?.exchange ?? null,
  });
  const kept = await openResponseState({
    options: first.responses,
    clock: REAL_CLOCK,
    folder: store.folder,
    log,
    keySecret: keys.deriveSecret('sluice capsules'),
  }).catch(async (error: unknown) => {
    live?.config.close();
    feed.close();
    await keys.close();
    await store.close();
    throw error;
  });
  const limitBackend = await openLimits(first, {
    ...{ store, clock: REAL_CLOCK, log },
    metrics: () => services.metrics,
    workers: worker?.count,
  });
  const tracing = await openTracing({ env, secrets, clock: REAL_CLOCK, log, metrics: () => services.metrics });
  const services: Services = createServices({
    limits: first.limits,
    limitBackend,
    tracer: tracing?.tracer,
    log,
    redact,
    directory: () => directory,
    store,
    feed,
    durability,
    secrets,
    timeZone,
    idempotency,
    cache,
    state: kept,
    processes: worker?.count,
    hasTls: tls !== undefined,
  });
  worker?.watchMetrics(services.metrics);
  if (shared) services.metrics.watchConfig(() => live?.config.shared?.version ?? 0);
  if (limitBackend) services.metrics.watchLimitsStore(() => limitBackend.isShared);
  await services.gate.prepare(first.budgets);
  captures = await openCaptures(first, { store, secrets, services, worker });
  services.metrics.watchProcess();
  const access = new AdminAccess({ policy: () => ({ adminKey: state.adminKey, hasClientKeys: hasKeys() }) });
  keys.listen(({ record, endsRequests }) => {
    captures?.configure(state.capture, hasKeys());
    if (endsRequests) services.streams.stopKey(record.id, REVOKED);
  });
  const listBudgets = () => services.gate.list(state.budgets, [...state.keys.map(({ caller }) => caller), ...keys.listCallers()]);
  const flags = listFlags(listen, level, data);
  // The file is parsed for it, so the list is kept until the next reload.
  const readSettings = memoByState((current) =>
    listSettings({
      text: live?.config.text ?? null,
      shared: live?.config.shared?.text ?? null,
      ...{ env, state: current, flags, folder: store.folder, pending: live?.config.pending },
    }),
  );
  const config: AdminContext['config'] = {
    settings: () => readSettings(state),
    reloads: () => reloads.list(),
    version: () => version().version,
  };
  const admin = createAdmin(
    {
      ...{ store, keys, feed, access, captures, listBudgets, state: () => state, file: file ?? null, config, hasKeys, redact },
      admitKey: (reference) => directory.gatekeeper.admitReference(reference),
      send: (request) => gateway.send(request),
    },
    services,
  );
  const observed = { ...services, observers: combineObservers(captures, tracing?.tracer) };
  const gateway = new Gateway(observed, admin, tls, chooseInstance(store, file));
  const certificate = first.listen.tls && (await watchCertificate(first.listen.tls, gateway, log, watch.pollMs));
  const metricsListener = first.metricsListen && new MetricsListener(services);
  const close = async (deadlineMs: number, delayMs = 0): Promise<void> => {
    live?.config.close();
    certificate?.close();
    feed.close();
    await gateway.close(deadlineMs, delayMs);
    const exported = tracing?.exporter.close();
    await captures?.close();
    await metricsListener?.close();
    services.metrics.close();
    await kept.close();
    services.gate.close();
    await limitBackend?.close();
    await keys.close();
    const lost = await store.close();
    await exported;
    if (lost > 0) log.error({ rows: lost }, 'usage records could not be written before the gateway stopped');
  };
  try {
    const url = await gateway.listen(first.listen);
    const address = new URL(url).hostname.replace(/^\[|\]$/g, '');
    checkBound(address, live?.config.current ?? first, storedKeys());
    live?.config.setBoundAddress(address);
    if (metricsListener && first.metricsListen)
      log.info({ url: await metricsListener.listen(first.metricsListen) }, 'metrics are served on their own address');
    await announce(store, url, log);
    setImmediate(() => warmPrices(log));
    const reload = async (): Promise<void> => {
      await live?.config.reload().catch((error: unknown) => log.error({ error: String(error) }, 'reload failed'));
      await certificate?.reload();
    };
    return {
      url,
      state: first,
      file,
      log,
      store,
      keys,
      captures,
      issueConsoleToken: () => access.issueToken(),
      reload,
      close: (deadlineMs = first.limits.drainMs) => close(deadlineMs, deadlineMs === 0 ? 0 : first.limits.drainDelayMs),
    };
  } catch (error) {
    // Close everything that would keep the process alive.
    await close(0);
    throw error;
  }
}

/** The certificate of the listener. A problem with it is one of the configuration. */
async function readTls(files: TlsFiles | undefined): Promise<TlsPair | undefined> {
  try {
    return files && (await readTlsPair(files));
  } catch (error) {
    if (!(error instanceof TlsError)) throw error;
    throw new ConfigError([{ message: error.message, path: ['listen', 'tls', error.setting] }]);
  }
}

const watchCertificate = (files: TlsFiles, gateway: Gateway, log: Logger, pollMs?: number): Promise<CertificateWatch> =>
  CertificateWatch.start({
    files,
    clock: REAL_CLOCK,
    pollMs,
    onPair: (pair) => {
      gateway.replaceCertificate(pair);
      log.info({ expires: new Date(pair.expires).toISOString() }, 'TLS certificate reloaded');
    },
    onRefused: (reason) => log.error({ reason }, 'TLS certificate rejected; keeping the previous one'),
  });

/** Computes something once for each configuration. */
function memoByState<Value extends object>(compute: (state: GatewayState) => Value): (state: GatewayState) => Value {
  const known = new WeakMap<GatewayState, Value>();
  return (state) => {
    const value = known.get(state) ?? compute(state);
    known.set(state, value);
    return value;
  };
}

/** What the command line decides, by the paths of the settings. `default` leaves the data folder to the configuration. */
function listFlags(
  listen: RunOptions['listen'],
  log: LogLevel | undefined,
  data: string | undefined,
): ReadonlyMap<string, string> {
  const values = {
    'listen.host': listen.host,
    'listen.port': listen.port?.toString(),
    'listen.tls': listen.tls,
    'log.level': log,
    data: data === 'default' ? undefined : data,
  };
  return new Map(Object.entries(values).flatMap(([path, value]) => (value === undefined ? [] : [[path, value] as const])));
}

/** Creates the admin API. */
const createAdmin = (
  context: Omit<AdminContext, 'document' | 'audit' | 'breakers' | 'now' | 'stallMs'>,
  { breakers, log, limits }: Services,
): AdminApi => new AdminApi({ ...context, breakers, log, now: Date.now, stallMs: limits.stallMs });

/** Commands find this gateway by its data folder. Without that, they still find it by the configuration. */
async function announce(store: Store, url: string, log: Logger): Promise<void> {
  await store
    .announce(url)
    .catch((error: unknown) => log.warn({ error: String(error) }, 'the address could not be written to the data folder'));
}

/** Reads the price snapshot before the first response needs it, and after clients can connect. */
function warmPrices(log: Logger): void {
  const { problem } = loadSnapshot();
  if (problem !== undefined) log.error({ reason: problem }, 'the price snapshot cannot be read; costs are unknown');
}

/** What a gateway is started with. */
export interface RunOptions {
  /** The configuration file; without one, a `sluice.yaml` in `folder`, else the environment alone. */
  config?: string;
  folder: string;
  env: Readonly<Record<string, string | undefined>>;
  /** `tls: 'off'`: plain HTTP, whatever the configuration says. */
  listen: { host?: string; port?: number; tls?: 'off' };
  /** The log level; overrides the configuration. */
  log?: LogLevel;
  /** The data folder, `memory`, or `default` for the folder of the user; by default as the configuration says, else memory. */
  data?: string;
  /** Rewrites the JSON lines of the log, for a terminal. */
  formatLog?: (line: string) => string;
  /** Delays before a changed file is read, for tests. */
  watch?: WatchDelays;
  /** The worker that this process is; undefined for a gateway in one process. */
  worker?: WorkerLink | undefined;
}

type WatchDelays = Pick<WatchOptions, 'quietMs' | 'pollMs' | 'stableMs'>;

/** A running gateway. */
export interface Running {
  url: string;
  state: GatewayState;
  file: string | undefined;
  log: Logger;
  /** Where exchanges are recorded. */
  store: Store;
  /** The client keys of the store. */
  keys: KeyBook;
  /** Exchanges that are kept with their bodies. */
  captures: Captures;
  /** A token that opens one session of the console, by `POST /admin/v1/session`. For the operator's terminal, never for a log. */
  issueConsoleToken(): string;
  /** Reads the configuration again. Never rejects. */
  reload(): Promise<void>;
  /** Waits for running requests, at most for as long as the configuration says. */
  close(deadlineMs?: number): Promise<void>;
}

/** A host name can resolve to any address, so the bound address is checked. */
function checkBound(address: string, { keys }: GatewayState, stored: StoredKeys): void {
  const exposure = findExposure(address, keys, stored);
  if (exposure !== undefined) throw new ConfigError([{ message: `${address} ${exposure}`, path: ['listen', 'host'] }]);
}

const describeVersion = (config: StoredConfig | undefined): { version?: number } => (config ? { version: config.version } : {});

/** A configuration that is in force is worth a line of the audit log. */
function auditConfig(store: Store, details: AuditEntry['details'], log: Logger): void {
  store
    .addAudit({ ...store.createId(), actor: 'config', action: 'config.reload', object: '', details })
    .catch((error: unknown) => log.warn({ error: String(error) }, 'the audit log could not be written'));
}

type OnState = (state: GatewayState, restart: readonly string[], by: ReloadCause) => void;

type OnRejected = (reason: string, by: ReloadCause) => void;

/** Opens the watched configuration. Its listeners are set later, because they need the log, whose level it has. */
async function openLive(file: string, options: ResolveOptions & WatchDelays) {
  let onState: OnState = () => undefined;
  let onRejected: OnRejected = () => undefined;
  const config = await LiveConfig.open({
    ...options,
    file,
    onReload: (state, restart, by) => onState(state, restart, by),
    onRefused: (reason, by) => onRejected(reason.message, by),
  });
  return {
    config,
    onState: (reloaded: OnState, rejected: OnRejected) => {
      onState = reloaded;
      onRejected = rejected;
    },
  };
}

/** Names of models that are remembered with their redaction. Clients can invent any number of names. */
const NAME_LIMITS = { entries: 1000, bytes: 256 * 1024 };

/** Creates the services of one gateway. */
export function createServices(options: ServiceOptions): Services {
  const { limits, redact, directory, log, store, feed, durability = 'strict', clock = REAL_CLOCK, secrets } = options;
  const { timeZone = 'UTC', idempotency, cache, wallClock = Date.now, state, hasTls = false } = options;
  const { now } = clock;
  const dialer = new Dialer(limits);
  const share = readConnectionShare();
  const streams = new Streams(Math.min(limits.streams, share));
  const redactHosts = createHostRedact(redact, () => directory().privateHosts);
  const metrics = new Metrics(() => streams.count, store && (() => store.status()));
  const breakers = new Breakers(now, { maxPauseMs: limits.pauseMs });
  return {
    limits,
    directory,
    log,
    redact: redactHosts,
    redactName: memo(NAME_LIMITS, redactHosts),
    redactUpstream: createAddressRedact(redactHosts),
    clock,
    now,
    random: Math.random,
    streams,
    gate: new AdmissionGate({
      backend: options.limitBackend ?? new MemoryBackend(clock, createReadSpending(store, clock)),
      timeZone,
      clock,
      wallClock,
      metrics,
      log,
    }),
    maxConnections: limits.connections || Math.min(share, readConnectionRoom(hasTls ? 'tls' : 'plain', options.processes)),
    dialer,
    breakers,
    router: new Router({ breakers, now, random: Math.random }),
    budget: new RetryBudget(limits.retryShare, now),
    refusals: new LearnedRefusals(),
    metrics,
    keeping:
      store &&
      createKeeping(watchLedger(feed?.watch(store) ?? store, options.tracer), {
        durability,
        clock,
        log,
        metrics,
        redact: (text) => redactClientKeys(secrets?.redactKnown(text) ?? text),
      }),
    idempotency: idempotency && new IdempotentResponses(idempotency, clock),
    cache: cache && new ResponseCache(cache, clock),
    pending: new PendingBytes(limits),
    responses: state?.responses,
    sealing: state?.sealing,
    observers: undefined,
    tracer: options.tracer,
    modelLists: new ModelLists({
      dialer,
      clock,
      onFailure: (provider, reason) => log.warn({ provider, reason }, 'listing the models of a provider failed'),
    }),
    memory: new MemoryGuard({
      ...{ limits, clock },
      onScarce: () => streams.cancelLongestStalled(),
      isFull: () => streams.isFull,
      measure: () => measureMemoryShare(options.processes),
    }),
  };
}

/** The tracer sees what is recorded. */
const watchLedger = (ledger: Ledger, tracer: Tracer | undefined): Ledger => tracer?.watch(ledger) ?? ledger;

interface ServiceOptions extends Pick<Services, 'directory' | 'log' | 'redact'> {
  limits: Limits;
  clock?: Clock;
  /** Where exchanges are recorded; without it, they are not. */
  store?: Store;
  /** Is told of every exchange that is recorded. */
  feed?: ChangeFeed;
  durability?: Durability;
  /** What keeps the state of responses; without it, none is kept. */
  state?: Pick<Services, 'responses' | 'sealing'>;
  /** Removed from what is recorded. */
  secrets?: SecretRegistry;
  /** Where limits are kept; in memory by default. */
  limitBackend?: LimitBackend | undefined;
  /** Makes spans of exchanges; without it, there are none. */
  tracer?: Tracer | undefined;
  /** The time zone of budgets; UTC by default. */
  timeZone?: string;
  /** Milliseconds since 1970, for budgets. */
  wallClock?: () => number;
  /** How responses are shared between requests with the same `Idempotency-Key`; without it, they are not. */
  idempotency?: IdempotencyOptions | undefined;
  /** How many processes like this one share the memory of the machine; 1 by default. */
  processes?: number | undefined;
  /** Whether clients connect by TLS. */
  hasTls?: boolean;
  /** Which responses are sent again for equal requests; without it, none are. */
  cache?: CacheOptions | undefined;
}
