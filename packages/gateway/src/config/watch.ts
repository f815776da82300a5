import { type FSWatcher, watch } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readStamp } from '../files/stamp.ts';
import { type Clock, REAL_CLOCK, sleep, type Timer } from '../http/clock.ts';
import type { StoredConfig } from '../store/configs.ts';
import { readFileVariables, SettingFiles } from './files.ts';
import { createDefaultSource, loadConfig, type Source } from './load.ts';
import { ConfigError, type Problem } from './problems.ts';
import type { ReloadCause } from './reloads.ts';
import { type GatewayState, type ResolveOptions, resolveConfig } from './resolve.ts';
import type { Env } from './secrets.ts';
import { findNodeProblems, isNodeFile, joinShared, readShared } from './shared.ts';

/**
 * The current configuration, reloaded when its file changes, or when the database has a new version of the shared part. A reload builds a complete new state and replaces the old
 * one in one step; running exchanges keep theirs. A file that cannot be used is rejected with a reason, and nothing
 * changes.
 */
export class LiveConfig {
  readonly #options: WatchOptions;
  readonly #clock: Clock;
  readonly #pollTimer: Timer;
  /** The newest version of the database, also one that is rejected; undefined when the file has everything. */
  #shared: StoredConfig | undefined;
  #watcher: FSWatcher | undefined;
  #quietTimer: Timer | undefined;
  /** What the gateway was started with: some settings stay in force until the next start. */
  readonly #started: Loaded;
  #loaded: Loaded;
  /** The files that the last configuration refers to, also a rejected one. */
  #files: SettingFiles;
  /** The address that reloads are checked against: the configured one until the listener reports its own. */
  #bound: string;
  /** State of the file, and of those that it refers to, at the last poll. */
  #stamp = '';
  /** The last rejection, so that a file that stays broken is reported once. */
  #rejected: string | undefined;
  #running: Promise<void> = Promise.resolve();
  /** The read that has not begun yet. */
  #waiting: { isForced: boolean; readonly run: Promise<void> } | undefined;
  #isClosed = false;

  private constructor(options: WatchOptions, loaded: Loaded) {
    this.#options = options;
    this.#clock = options.clock ?? REAL_CLOCK;
    this.#started = loaded;
    this.#loaded = loaded;
    this.#shared = loaded.shared;
    this.#files = loaded.source.files;
    this.#bound = loaded.state.listen.host;
    this.#watch();
    this.#pollTimer = this.#clock.setRepeating(() => void this.#poll(), options.pollMs ?? 2000).unref();
  }

  /** Reads the file for the first time. Rejects when it cannot be used. */
  static async open(options: WatchOptions): Promise<LiveConfig> {
    const text = await readFile(options.file, 'utf8');
    return new LiveConfig(options, await readLoaded({ ...(await describeFile(options.file)), text }, options));
  }

  /** The state in use. */
  get current(): GatewayState {
    return this.#loaded.state;
  }

  /** The text of the file that is in force. */
  get text(): string {
    return this.#loaded.text;
  }

  /** The version of the database that is in force; undefined when the file has everything. */
  get shared(): StoredConfig | undefined {
    return this.#loaded.shared;
  }

  /** The newest version of the database, which may have been rejected. */
  get newest(): StoredConfig | undefined {
    return this.#shared;
  }

  /** The settings that wait for a restart, and the configuration whose values of them are in force. */
  get pending(): PendingSettings {
    const { text, shared, state } = this.#started;
    return { settings: listPending(state, this.#loaded.state), text, shared: shared?.text ?? null, state };
  }

  /** Uses a new version of the database, if it can be used here. */
  replaceShared(config: StoredConfig): void {
    this.#shared = config;
    this.#enqueue(false).catch((error: Error) => this.#options.onRefused(error, 'store'));
  }

  /** Checks later reloads against the address that the listener is bound to. */
  setBoundAddress(address: string): void {
    this.#bound = address;
  }

  /** Reads the file again even if it has not changed, as on SIGHUP. */
  reload(): Promise<void> {
    return this.#enqueue(true);
  }

  close(): void {
    this.#isClosed = true;
    this.#watcher?.close();
    this.#pollTimer.close();
    this.#quietTimer?.close();
  }

  /** Watches the folder, because editors and Kubernetes replace the file. */
  #watch(): void {
    try {
      this.#watcher = watch(dirname(this.#options.file), { persistent: false }, () => this.#scheduleRead());
      this.#watcher.on('error', () => this.#watcher?.close()); // polling continues
    } catch {
      // Watching is not supported here; polling remains.
    }
  }

  /** One change causes several events. Later ones do not postpone the read, or a busy folder would prevent it. */
  #scheduleRead(): void {
    if (this.#isClosed || this.#quietTimer) return;
    const read = (): void => {
      this.#quietTimer = undefined;
      this.#enqueue(false).catch((error: Error) => this.#options.onRefused(error, 'file'));
    };
    this.#quietTimer = this.#clock.setTimer(read, this.#options.quietMs ?? 100).unref();
  }

  async #poll(): Promise<void> {
    const stamp = `${await readStamp(this.#options.file)} ${await this.#files.readStamps()}`;
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    this.#scheduleRead();
  }

  /** One read at a time. Calls that arrive while a read is waiting share it. */
  #enqueue(isForced: boolean): Promise<void> {
    if (this.#waiting) {
      this.#waiting.isForced ||= isForced;
      return this.#waiting.run;
    }
    const run = this.#running.then(() => {
      const force = this.#waiting?.isForced ?? isForced;
      this.#waiting = undefined;
      return this.#read(force);
    });
    this.#waiting = { isForced, run };
    this.#running = run.catch(() => undefined); // a failed read does not fail the next one
    return run;
  }

  async #read(isForced: boolean): Promise<void> {
    const { onReload, onRefused } = this.#options;
    const shared = this.#shared;
    // A read because of the file may find a new version, too.
    const isNewVersion = shared?.version !== this.#loaded.shared?.version;
    const by = isForced ? 'signal' : isNewVersion ? 'store' : 'file';
    const outcome = await this.#build(isForced, shared);
    if (outcome === undefined || this.#isClosed) return;
    if (outcome instanceof Error) {
      const isKnown = outcome.message === this.#rejected;
      this.#rejected = outcome.message;
      if (!isKnown || isForced) onRefused(outcome, by);
      return;
    }
    const restart = listPending(this.#started.state, outcome.state);
    this.#rejected = undefined;
    this.#loaded = outcome;
    onReload(outcome.state, restart, by);
  }

  /** The new configuration, why it is rejected, or undefined when the text has not changed. */
  async #build(isForced: boolean, shared: StoredConfig | undefined): Promise<Loaded | Error | undefined> {
    try {
      const first = await readSnapshot(this.#options.file);
      const isNewVersion = shared?.version !== this.#loaded.shared?.version;
      const isKnown = first.text === this.#loaded.text && !isNewVersion && !(await this.#files.haveChanged());
      if (isKnown && !isForced && this.#rejected === undefined) return undefined;
      // The file of a node rarely changes; a new version need not wait for it.
      const text = isNewVersion && first.text === this.#loaded.text ? first.text : await this.#readStable(first);
      const described = await describeFile(this.#options.file);
      this.#files = described.files;
      const next = buildLoaded(readNodeFile({ ...described, text }, this.#options), shared, {
        ...this.#options,
        bound: this.#bound,
      });
      const problems = [...findCut(this.#loaded, next), ...findRemovals(this.#loaded, next)];
      return problems.length === 0 ? next : new ConfigError(problems);
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  /** The text once two reads are equal. A file that is being written differs, or is absent for a moment. */
  async #readStable(first: Snapshot): Promise<string> {
    const { file, stableMs = STABLE_MS } = this.#options;
    let last = first;
    for (let reads = 1; reads < MAX_READS; reads++) {
      await sleep(this.#clock, stableMs);
      const next = await readSnapshot(file);
      if (next.text !== undefined && next.text === last.text) return next.text;
      if (next.text === undefined && String(next.error) === String(last.error)) throw next.error;
      last = next;
    }
    this.#stamp = ''; // the next poll tries again
    throw new ConfigError([{ message: `${file} keeps changing; it is reloaded when it has been stable`, path: [] }]);
  }
}

/** Settings that the file has changed, and that are in force as they were at the start. */
export interface PendingSettings {
  readonly settings: readonly string[];
  readonly text: string;
  readonly shared: string | null;
  readonly state: GatewayState;
}

/** Which file is watched, and the callbacks for its changes. */
export interface WatchOptions extends ResolveOptions {
  readonly file: string;
  /** Called after a reload. `restart` lists settings that differ from those of the start and need a restart. */
  readonly onReload: (state: GatewayState, restart: readonly string[], by: ReloadCause) => void;
  /** Called when a reload is rejected; the previous configuration stays in use. */
  readonly onRefused: (reason: Error, by: ReloadCause) => void;
  /** Delay between the first sign of a change and the read. */
  readonly quietMs?: number;
  /** Poll interval, for file systems without change events: network drives, some containers. */
  readonly pollMs?: number;
  /** A reload uses the file when two reads this far apart are equal. */
  readonly stableMs?: number;
  readonly clock?: Clock;
}

const STABLE_MS = 200;

/** A longer write is left to the next poll: 25 reads take 5 seconds. */
const MAX_READS = 25;

/** Reads a configuration file once, or uses the text that was read. Rejects with a `ConfigError` or the system error. */
export async function readConfig(file: string, options: ResolveOptions, given?: string): Promise<GatewayState> {
  const text = given ?? (await readFile(file, 'utf8'));
  return (await readLoaded({ ...(await describeFile(file)), text }, options)).state;
}

/** The configuration of the environment alone. */
export function resolveEnvironment(options: ResolveOptions): GatewayState {
  const source = createDefaultSource();
  const { env, problems } = readFileVariables(options.env, source.files);
  if (problems.length > 0) throw new ConfigError(problems);
  return resolveConfig(source, { ...options, env });
}

/** A configuration, and the texts it was read from. */
interface Loaded {
  /** Of the file. */
  readonly text: string;
  /** The version of the database, for the file of a node. */
  readonly shared: StoredConfig | undefined;
  readonly source: Source;
  readonly state: GatewayState;
}

/** A configuration file, and what surrounds it. */
interface FileContent {
  readonly file: string;
  readonly text: string;
  readonly files: SettingFiles;
  readonly isWorldReadable: boolean;
}

async function describeFile(file: string): Promise<Omit<FileContent, 'text'>> {
  // Windows has no such bits; a file that is gone by now cannot be read by others.
  const mode =
    process.platform === 'win32'
      ? 0
      : await stat(file).then(
          ({ mode }) => mode,
          () => 0,
        );
  return { file, files: new SettingFiles(dirname(file)), isWorldReadable: (mode & 0o004) !== 0 };
}

/** A file, before the shared part is added. */
interface ReadFile extends Pick<FileContent, 'text' | 'isWorldReadable'> {
  readonly env: Env;
  readonly source: Source;
}

function readNodeFile({ file, text, files, isWorldReadable }: FileContent, options: ResolveOptions): ReadFile {
  const { env, problems } = readFileVariables(options.env, files);
  if (problems.length > 0) throw new ConfigError(problems);
  return { text, isWorldReadable, env, source: loadConfig(file, text, env, files) };
}

/** Reads the shared part from the database, too, if the file says so. */
async function readLoaded(content: FileContent, options: ResolveOptions): Promise<Loaded> {
  const read = readNodeFile(content, options);
  return buildLoaded(read, await readShared(read.source), options);
}

function buildLoaded(
  { text, isWorldReadable, env, source: own }: ReadFile,
  shared: StoredConfig | undefined,
  options: ResolveOptions,
): Loaded {
  const problems = findNodeProblems(own);
  if (isNodeFile(own) !== (shared !== undefined)) problems.push(own.problem(['config'], 'a change needs a restart'));
  if (problems.length > 0) throw new ConfigError(problems);
  const source = shared ? joinShared(own, shared, env) : own;
  return { text, shared, source, state: resolveConfig(source, { ...options, env, isWorldReadable }) };
}

/** Result of one read: the text or the system error. */
interface Snapshot {
  readonly text?: string;
  readonly error?: unknown;
}

async function readSnapshot(file: string): Promise<Snapshot> {
  try {
    return { text: await readFile(file, 'utf8') };
  } catch (error) {
    return { error };
  }
}

/**
 * Rejects a file that lost its last newline and became shorter, as if cut within a line. A truncated map in braces, as
 * in JSON, is a syntax error anyway.
 */
function findCut({ text: before }: Loaded, { text: after, source }: Loaded): Problem[] {
  const isCut = before.endsWith('\n') && !after.endsWith('\n') && after.length < before.length && !/^\s*\{/.test(after);
  if (!isCut) return [];
  return [
    source.problem(
      [],
      'the file looks truncated: it is shorter and its last newline is missing; add the newline if it is complete',
    ),
  ];
}

/**
 * Rejects the removal of all client keys or of the last provider unless the file confirms it: the gateway would be open
 * to everyone, or respond with the demo model.
 */
function findRemovals(before: Loaded, after: Loaded): Problem[] {
  const written = findRemovedSettings(before.source, after.source);
  const losesLast = countProviders(before) > 0 && countProviders(after) === 0;
  const isTold = after.source.options.reset || written.some(({ path }) => path[0] === 'providers');
  return losesLast && !isTold ? [...written, describeLastProvider(after.source)] : written;
}

/** The same, as far as it can be seen without the environment. */
export function findRemovedSettings(before: Source, after: Source): Problem[] {
  const { options, problem } = after;
  if (options.reset) return [];
  const problems: Problem[] = [];
  // Keys of the environment admit other clients, so they do not make up for those of the file.
  if (before.options.auth.keys.length > 0 && options.auth.keys.length === 0)
    problems.push(problem(['auth', 'keys'], `the reload would remove all client keys; ${CONFIRM}`));
  if (before.options.admin.key && !options.admin.key)
    problems.push(problem(['admin', 'key'], 'the reload would remove the admin key; keep it, or add "reset: true" to confirm'));
  if (countFileProviders(before) > 0 && countFileProviders(after) === 0) problems.push(describeLastProvider(after));
  return problems;
}

const CONFIRM = 'keep one, or add "reset: true" to confirm';

const describeLastProvider = ({ problem }: Source): Problem =>
  problem(['providers'], `the reload would remove the last provider; ${CONFIRM}`);

/** Providers of the file alone. */
const countFileProviders = ({ options }: Source): number =>
  Object.values(options.providers).filter((settings) => settings !== false).length;

/** Providers of the file and of the environment. */
const countProviders = ({ state }: Loaded): number => [...state.providers.values()].filter(({ isDemo }) => !isDemo).length;

/** What is read at the start only: socket, buffers, timers and log. The names are those of the settings. */
const FIXED_SETTINGS = {
  listen: 'listen',
  limits: 'limits',
  log: 'log',
  data: 'data',
  store: 'store',
  nodeLeaseMs: 'node_lease',
  durability: 'durability',
  retentionDays: 'retention',
  responses: 'responses',
  idempotency: 'idempotency',
  cache: 'cache',
  metricsListen: 'metrics.listen',
  pepperFile: 'auth.pepper_file',
  timeZone: 'time_zone',
  limitsStore: 'limits_store',
} as const satisfies Partial<Record<keyof GatewayState, string>>;

const FIXED = Object.keys(FIXED_SETTINGS) as (keyof typeof FIXED_SETTINGS)[]; // its own keys

/** The settings that differ from those of the start, which are in force. */
const listPending = (started: GatewayState, now: GatewayState): string[] =>
  FIXED.filter((name) => JSON.stringify(started[name]) !== JSON.stringify(now[name])).map((name) => FIXED_SETTINGS[name]);
