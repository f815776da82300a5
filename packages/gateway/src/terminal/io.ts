/** Everything a command touches outside the process: streams, files, programs, signals and the clock. */

import { type ChildProcess, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isatty, type WriteStream } from 'node:tty';
import { renameFile } from '../files/rename.ts';

/** The outside world as commands see it. Tests pass their own. */
export interface CliIo {
  readonly stdout: Output;
  /** Its `write` never rejects, because an error of stderr cannot be reported anywhere. */
  readonly stderr: Output;
  readonly stdin: { readonly isTTY: boolean; open(): Input };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The working folder, where a configuration is looked for. */
  readonly folder: string;
  /** Where a gateway is looked for that is not configured; only tests have another than http://127.0.0.1:4141. */
  readonly defaultUrl?: string;
  /** Rejects with the system error (`ENOENT`, `EACCES` …). */
  openFile(path: string): Promise<Input>;
  /** The files below a folder, sorted, without hidden ones; undefined when it is not a folder. */
  listFolder(path: string): Promise<string[] | undefined>;
  /** Creates a directory and its parents for the owner only; an existing one is fine. */
  makeDirectory(path: string): Promise<void>;
  /** Creates a file for the owner only. It appears under its name, complete, on `commit`. */
  createFile(path: string): Promise<OutputFile>;
  /** Calls `use` with a folder that exists, for the owner only, until it resolves. */
  inTemporaryFolder<T>(use: (path: string) => Promise<T>): Promise<T>;
  /**
   * Starts a program that shares our terminal and receives our signals. Resolves with its exit code, or 128 plus the
   * number of the signal that ended it. Rejects with `ENOENT` when there is no such program.
   */
  runProgram(program: Program): Promise<number>;
  /** Milliseconds, for rates and intervals only. */
  now(): number;
  /** CPU milliseconds of this process; independent of the load of the machine. */
  cpuTime(): number;
}

/** A stream to write to. */
export interface Output {
  readonly isTTY: boolean;
  /** Width of the terminal; undefined when there is none. */
  readonly columns: number | undefined;
  /** Resolves when it is written; rejects with `EPIPE` when the reader has closed the pipe. */
  write(data: string | Uint8Array): Promise<void>;
}

/** A source of bytes. */
export interface Input {
  /** In bytes; undefined when it is unknown. */
  readonly size: number | undefined;
  /** Leaving the loop early closes the source. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** A file that is being written. */
export interface OutputFile {
  write(bytes: Uint8Array): Promise<void>;
  commit(): Promise<void>;
  /** Removes what was written. */
  discard(): Promise<void>;
}

/** A program to start. */
export interface Program {
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  /** The command is a shell line whose output is discarded. */
  isQuiet?: boolean;
}

/** The real world. */
export function createNodeIo(): CliIo {
  return {
    stdout: createOutput(process.stdout),
    stderr: ignoreErrors(createOutput(process.stderr)),
    // A function, because the first access to `process.stdin` opens the descriptor.
    stdin: { isTTY: isatty(0), open: () => ({ size: undefined, chunks: process.stdin }) },
    env: process.env,
    folder: process.cwd(),
    openFile,
    listFolder,
    makeDirectory: async (path) => void (await mkdir(path, { recursive: true, mode: 0o700 }).catch(nameFile(path))),
    createFile,
    inTemporaryFolder,
    runProgram,
    now: () => performance.now(),
    cpuTime: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    },
  };
}

async function openFile(path: string): Promise<Input> {
  const file = await open(path);
  const { size } = await file.stat();
  // Pipes and devices report 0.
  return { size: size || undefined, chunks: file.createReadStream({ highWaterMark: CHUNK_BYTES }) };
}

/** Large enough to make system calls negligible, small enough for smooth progress. */
const CHUNK_BYTES = 256 * 1024;

async function listFolder(path: string): Promise<string[] | undefined> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    const lists = await Promise.all(
      entries
        .filter(({ name }) => !name.startsWith('.'))
        .map(async (entry) => {
          const inside = join(path, entry.name);
          return (entry.isDirectory() && (await listFolder(inside))) || [inside];
        }),
    );
    return lists.flat().toSorted();
  } catch {
    return undefined; // not a folder; opening it reports any error
  }
}

const OWNER_ONLY = 0o600;

/** Written next to its path and then renamed, so readers never see a partial file. */
async function createFile(path: string): Promise<OutputFile> {
  const draft = `${path}.${process.pid}.part`;
  // The mode is ignored for an existing file, so a leftover draft needs chmod.
  const file = await open(draft, 'w', OWNER_ONLY).catch(nameFile(path));
  await file.chmod(OWNER_ONLY);
  return {
    write: (bytes) => file.writeFile(bytes),
    commit: async () => {
      await file.close();
      await renameFile(draft, path).catch(async (error: unknown) => {
        await rm(draft, { force: true });
        return nameFile(path)(error);
      });
    },
    discard: async () => {
      await file.close();
      await rm(draft, { force: true });
    },
  };
}

/** Errors name the path that the user has given, not that of the draft. */
const nameFile =
  (path: string) =>
  (error: unknown): never => {
    throw error instanceof Error ? Object.assign(error, { path }) : error;
  };

async function inTemporaryFolder<T>(use: (path: string) => Promise<T>): Promise<T> {
  const path = await mkdtemp(join(tmpdir(), 'sluice-'));
  try {
    return await use(path);
  } finally {
    // Windows deletes nothing that a program, which may just be ending, has open.
    await rm(path, { recursive: true, force: true, maxRetries: 5 });
  }
}

type PlanStart = typeof import('./windows.ts')['planWindowsStart'];

/** Signals that do not end us while a program runs: it decides. SIGBREAK is Ctrl+Break of Windows. */
const CAUGHT_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGBREAK'] as const;

async function runProgram(program: Program): Promise<number> {
  // Imported on demand: most commands start no program.
  const { isPassedOn, planWindowsStart } = await import('./windows.ts');
  return new Promise((resolve, reject) => {
    const child = startChild(program, planWindowsStart);
    const pass = (signal: NodeJS.Signals): void => {
      if (isPassedOn(signal, process.platform, isatty(0))) child.kill(signal);
    };
    for (const signal of CAUGHT_SIGNALS) process.on(signal, pass);
    const removeListeners = (): void => {
      for (const signal of CAUGHT_SIGNALS) process.off(signal, pass);
    };
    child.once('error', (error) => {
      removeListeners();
      reject(error);
    });
    child.once('exit', (code, signal) => {
      removeListeners();
      resolve(code ?? 128 + (signal ? constants.signals[signal] : 0));
    });
  });
}

function startChild({ command, args, env, isQuiet = false }: Program, planWindowsStart: PlanStart): ChildProcess {
  if (isQuiet) return spawn(command, args, { stdio: 'ignore', shell: true, env });
  if (process.platform !== 'win32') return spawn(command, args, { stdio: 'inherit', env });
  const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  const start = planWindowsStart({ command, args, env }, isFile);
  if (!start) throw Object.assign(new Error(`no program "${command}" was found`), { code: 'ENOENT' });
  return spawn(start.file, start.args, { stdio: 'inherit', env, windowsVerbatimArguments: start.isVerbatim });
}

function createOutput(stream: WriteStream): Output {
  // A closed pipe is also reported as an event, which would end the process without a listener.
  stream.on('error', () => undefined);
  return {
    isTTY: stream.isTTY === true,
    get columns() {
      return stream.isTTY ? stream.columns : undefined;
    },
    write: (data) => new Promise((resolve, reject) => stream.write(data, (error) => (error ? reject(error) : resolve()))),
  };
}

function ignoreErrors(inner: Output): Output {
  const { isTTY } = inner;
  return {
    isTTY,
    get columns() {
      return inner.columns;
    },
    write: (data) => inner.write(data).catch(() => undefined),
  };
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

interface StopOptions {
  /** SIGHUP stops as well. Otherwise its handling is unchanged; by default it ends the process. */
  stopsOnHangup?: boolean;
}

/** On SIGTERM or SIGINT calls `close`, then resolves with the signal. A second one exits at once. */
export function untilStopped(close: () => Promise<void>, { stopsOnHangup = false }: StopOptions = {}): Promise<NodeJS.Signals> {
  const signals = stopsOnHangup ? [...SIGNALS, 'SIGHUP' as const] : SIGNALS;
  return new Promise((resolve, reject) => {
    let isStopping = false;
    const stop = (signal: NodeJS.Signals): void => {
      // A closed terminal sends SIGHUP several times: from the shell and from the kernel.
      if (isStopping && signal === 'SIGHUP') return;
      if (isStopping) process.exit(1);
      isStopping = true;
      close()
        .finally(() => {
          for (const name of signals) process.off(name, stop);
        })
        .then(() => resolve(signal), reject);
    };
    for (const name of signals) process.on(name, stop);
  });
}
