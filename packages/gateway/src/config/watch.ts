import { type FSWatcher, watch } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { loadConfig } from './load.ts';
import { ConfigError } from './problem.ts';
import { type GatewayState, type ResolveOptions, resolveConfig } from './resolve.ts';

export interface WatchOptions extends ResolveOptions {
  readonly file: string;
  /** The new state is in use. `restart`: what takes effect only when the process starts anew. */
  readonly onReload: (state: GatewayState, restart: readonly string[]) => void;
  /** The file is not usable; everything stays as it was. */
  readonly onRefused: (reason: Error) => void;
  /** How long the file has to be quiet before it is read. */
  readonly quietMs?: number;
  /** How often it is looked at where nobody tells of changes: network drives, some containers. */
  readonly pollMs?: number;
}

/** Reads a file and makes a state of it. Rejects with a `ConfigError`, or with what the system said. */
export async function readConfig(file: string, options: ResolveOptions): Promise<GatewayState> {
  return (await readState(file, options)).state;
}

async function readState(file: string, options: ResolveOptions): Promise<{ text: string; state: GatewayState }> {
  const text = await readFile(file, 'utf8');
  return { text, state: resolveConfig(loadConfig(file, text, options.env), options) };
}

/**
 * The configuration that holds now. A new one is built whole and put in place in one step; who holds the old one keeps it. A file that cannot
 * be used is refused with its reason, and nothing changes.
 */
export class LiveConfig {
  readonly #options: WatchOptions;
  readonly #poll: NodeJS.Timeout;
  #watcher: FSWatcher | undefined;
  #quiet: NodeJS.Timeout | undefined;
  #state: GatewayState;
  #text: string;
  /** What the file was like when it was last looked at. */
  #stamp = '';
  /** The reason of the last refusal, so that a file that stays bad is told of once. */
  #refused: string | undefined;
  #running: Promise<void> = Promise.resolve();
  #isClosed = false;

  private constructor(options: WatchOptions, text: string, state: GatewayState) {
    this.#options = options;
    this.#text = text;
    this.#state = state;
    this.#watch();
    this.#poll = setInterval(() => void this.#look(), options.pollMs ?? 2000).unref();
  }

  /** Reads the file for the first time. Rejects when it cannot be used: there is nothing yet to fall back to. */
  static async open(options: WatchOptions): Promise<LiveConfig> {
    const { text, state } = await readState(options.file, options);
    return new LiveConfig(options, text, state);
  }

  get current(): GatewayState {
    return this.#state;
  }

  /** Reads the file again, changed or not: for SIGHUP, and for a command. */
  reload(): Promise<void> {
    return this.#enqueue(true);
  }

  close(): void {
    this.#isClosed = true;
    this.#watcher?.close();
    clearInterval(this.#poll);
    clearTimeout(this.#quiet);
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

  /** Editors write in several steps: what counts is the file when they are done. */
  #settle(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(
      () => void this.#enqueue(false).catch(this.#options.onRefused),
      this.#options.quietMs ?? 100,
    ).unref();
  }

  async #look(): Promise<void> {
    const stamp = await stampOf(this.#options.file);
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    this.#settle();
  }

  #enqueue(isForced: boolean): Promise<void> {
    const run = this.#running.then(() => this.#read(isForced));
    this.#running = run.catch(() => undefined); // whoever comes next need not suffer
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
    const restart = restartFor(this.#state, outcome.state);
    this.#refused = undefined;
    this.#text = outcome.text;
    this.#state = outcome.state;
    onReload(outcome.state, restart);
  }

  /** The whole new state, why there is none, or undefined when the file says what it said before. */
  async #build(isForced: boolean): Promise<{ text: string; state: GatewayState } | Error | undefined> {
    const { file, env } = this.#options;
    try {
      const text = await readFile(file, 'utf8');
      if (text === this.#text && !isForced && this.#refused === undefined) return undefined;
      // A file that is being written begins empty.
      if (text.trim() === '') return new ConfigError([{ message: `${file} is empty`, path: [] }]);
      return { text, state: resolveConfig(loadConfig(file, text, env), this.#options) };
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }
}

async function stampOf(file: string): Promise<string> {
  try {
    const { ino, size, mtimeMs } = await stat(file);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return 'absent';
  }
}

/** What the process was started with: its socket, its buffers and timers, its log. */
const FIXED = ['listen', 'limits', 'log'] as const;

const restartFor = (before: GatewayState, after: GatewayState): string[] =>
  FIXED.filter((section) => JSON.stringify(before[section]) !== JSON.stringify(after[section]));
