import { type FSWatcher, watch } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Clock, REAL_CLOCK, sleep, type Timer } from '../http/clock.ts';
import { ConfigError, type Problem } from './document.ts';
import { loadConfig, type Source } from './load.ts';
import { type GatewayState, type ResolveOptions, resolveConfig } from './resolve.ts';

export interface WatchOptions extends ResolveOptions {
  readonly file: string;
  /** The new state is in use. `restart`: what takes effect only when the process starts anew. */
  readonly onReload: (state: GatewayState, restart: readonly string[]) => void;
  /** The file is not usable; everything stays as it was. */
  readonly onRefused: (reason: Error) => void;
  /** Time from the first sign of a change to the read. */
  readonly quietMs?: number;
  /** How often it is looked at where nobody tells of changes: network drives, some containers. */
  readonly pollMs?: number;
  /** A reload uses the file when two reads this far apart are equal. */
  readonly stableMs?: number;
  readonly clock?: Clock;
}

const STABLE_MS = 200;

/** A writer that takes longer is waited for by the next poll: 25 reads are 5 seconds. */
const MAX_READS = 25;

/** A configuration together with the text it was read from. */
interface Loaded {
  readonly text: string;
  readonly source: Source;
  readonly state: GatewayState;
}

function load(file: string, text: string, options: ResolveOptions): Loaded {
  const source = loadConfig(file, text, options.env);
  return { text, source, state: resolveConfig(source, options) };
}

/** Reads a file and makes a state of it. Rejects with a `ConfigError`, or with what the system said. */
export async function readConfig(file: string, options: ResolveOptions): Promise<GatewayState> {
  return load(file, await readFile(file, 'utf8'), options).state;
}

/**
 * The configuration that holds now. A new one is built whole and put in place in one step; who holds the old one keeps it. A file that cannot
 * be used is refused with its reason, and nothing changes.
 */
export class LiveConfig {
  readonly #options: WatchOptions;
  readonly #clock: Clock;
  readonly #poll: Timer;
  #watcher: FSWatcher | undefined;
  #quiet: Timer | undefined;
  #loaded: Loaded;
  /** The address that reloads are checked against: the configured one until the listener reports its own. */
  #bound: string;
  /** What the file was like when it was last looked at. */
  #stamp = '';
  /** The reason of the last refusal, so that a file that stays bad is told of once. */
  #refused: string | undefined;
  #running: Promise<void> = Promise.resolve();
  /** The read that has not begun yet. */
  #waiting: { isForced: boolean; readonly run: Promise<void> } | undefined;
  #isClosed = false;

  private constructor(options: WatchOptions, loaded: Loaded) {
    this.#options = options;
    this.#clock = options.clock ?? REAL_CLOCK;
    this.#loaded = loaded;
    this.#bound = loaded.state.listen.host;
    this.#watch();
    this.#poll = this.#clock.setRepeating(() => void this.#look(), options.pollMs ?? 2000).unref();
  }

  /** Reads the file for the first time. Rejects when it cannot be used: there is nothing yet to fall back to. */
  static async open(options: WatchOptions): Promise<LiveConfig> {
    const text = await readFile(options.file, 'utf8');
    return new LiveConfig(options, load(options.file, text, options));
  }

  get current(): GatewayState {
    return this.#loaded.state;
  }

  /** Checks later reloads against the address that the listener is bound to. */
  setBoundAddress(address: string): void {
    this.#bound = address;
  }

  /** Reads the file again, changed or not: for SIGHUP, and for a command. */
  reload(): Promise<void> {
    return this.#enqueue(true);
  }

  close(): void {
    this.#isClosed = true;
    this.#watcher?.close();
    this.#poll.close();
    this.#quiet?.close();
  }

  /** The folder is watched, not the file: editors and Kubernetes put another file in its place. */
  #watch(): void {
    try {
      this.#watcher = watch(dirname(this.#options.file), { persistent: false }, () => this.#settle());
      this.#watcher.on('error', () => this.#watcher?.close()); // polling goes on
    } catch {
      // No watching here: polling alone.
    }
  }

  /** One change causes several events. Later ones do not postpone the read, or a busy folder would prevent it. */
  #settle(): void {
    if (this.#isClosed || this.#quiet) return;
    const read = (): void => {
      this.#quiet = undefined;
      this.#enqueue(false).catch(this.#options.onRefused);
    };
    this.#quiet = this.#clock.setTimer(read, this.#options.quietMs ?? 100).unref();
  }

  async #look(): Promise<void> {
    const stamp = await readStamp(this.#options.file);
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    this.#settle();
  }

  /** One read at a time. Calls that come while a read waits its turn share it: a flood of signals makes no queue. */
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
    const outcome = await this.#build(isForced);
    if (outcome === undefined || this.#isClosed) return;
    if (outcome instanceof Error) {
      const isKnown = outcome.message === this.#refused;
      this.#refused = outcome.message;
      if (!isKnown || isForced) onRefused(outcome);
      return;
    }
    const restart = restartFor(this.#loaded.state, outcome.state);
    this.#refused = undefined;
    this.#loaded = outcome;
    onReload(outcome.state, restart);
  }

  /** The whole new configuration, why there is none, or undefined when the file says what it said before. */
  async #build(isForced: boolean): Promise<Loaded | Error | undefined> {
    try {
      const first = await readSnapshot(this.#options.file);
      if (first.text === this.#loaded.text && !isForced && this.#refused === undefined) return undefined;
      const text = await this.#readStable(first);
      const next = load(this.#options.file, text, { ...this.#options, bound: this.#bound });
      const problems = [...findCut(this.#loaded, next), ...findRemovals(this.#loaded, next)];
      return problems.length === 0 ? next : new ConfigError(problems);
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  /** The text of the file when two reads were equal. A file that is being written differs, or is absent for a moment. */
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
    throw new ConfigError([{ message: `${file} keeps changing; it is read again when it stops`, path: [] }]);
  }
}

/** What one read of the file found: its text, or the error of the system. */
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

async function readStamp(file: string): Promise<string> {
  try {
    const { ino, size, mtimeMs } = await stat(file);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return 'absent';
  }
}

/**
 * A file that lost its last newline and became shorter was cut in the middle of a line. A map in braces, as in JSON, cannot be cut without a
 * syntax error.
 */
function findCut({ text: before }: Loaded, { text: after, source }: Loaded): Problem[] {
  const isCut = before.endsWith('\n') && !after.endsWith('\n') && after.length < before.length && !/^\s*\{/.test(after);
  if (!isCut) return [];
  return [
    source.problem([], 'the file looks cut: it became shorter and has lost its last newline; add the newline if it is complete'),
  ];
}

/** Without client keys everybody is let in, and without providers the demo responds: a reload does neither unless the file confirms it. */
function findRemovals(before: Loaded, after: Loaded): Problem[] {
  const { options, problem } = after.source;
  if (options.reset) return [];
  const confirm = 'keep one, or add "reset: true" to confirm';
  const problems: Problem[] = [];
  // Keys of the environment do not replace those of the file: they let other clients in.
  if (before.source.options.auth.keys.length > 0 && options.auth.keys.length === 0)
    problems.push(problem(['auth', 'keys'], `the reload would remove all client keys; ${confirm}`));
  const losesLast = (count: (loaded: Loaded) => number): boolean => count(before) > 0 && count(after) === 0;
  if (losesLast(countOwnProviders) || losesLast(countProviders))
    problems.push(problem(['providers'], `the reload would remove the last provider; ${confirm}`));
  return problems;
}

/** Providers of the file alone. */
const countOwnProviders = ({ source }: Loaded): number =>
  Object.values(source.options.providers).filter((settings) => settings !== false).length;

/** Providers of the file and of the environment. */
const countProviders = ({ state }: Loaded): number => [...state.providers.values()].filter(({ isDemo }) => !isDemo).length;

/** What the process was started with: its socket, its buffers and timers, its log. */
const FIXED = ['listen', 'limits', 'log'] as const;

const restartFor = (before: GatewayState, after: GatewayState): string[] =>
  FIXED.filter((section) => JSON.stringify(before[section]) !== JSON.stringify(after[section]));
