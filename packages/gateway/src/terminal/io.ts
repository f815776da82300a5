/** Everything a command touches outside the process: streams, files, programs, signals and the clock. */

import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, open, readdir, rename, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isatty, type WriteStream } from 'node:tty';
import type { AccumulatedError, AccumulatedMessage, ErrorCode } from '@sluice/core';
import { readCode } from '@sluice/lab/text';

/** The outside world as commands see it. Tests pass their own. */
export interface CliIo {
  readonly stdout: Output;
  /** Its `write` never rejects, because an error of stderr cannot be reported anywhere. */
  readonly stderr: Output;
  readonly stdin: { readonly isTTY: boolean; open(): Input };
  readonly env: Readonly<Record<string, string | undefined>>;
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

/** A stream to write text to. */
export interface Output {
  readonly isTTY: boolean;
  /** Width of the terminal; undefined when there is none. */
  readonly columns: number | undefined;
  /** Resolves when the text is written; rejects with `EPIPE` when the reader has closed the pipe. */
  write(text: string): Promise<void>;
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
    openFile,
    listFolder,
    makeDirectory: async (path) => void (await mkdir(path, { recursive: true, mode: 0o700 })),
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
  const file = await open(draft, 'w', OWNER_ONLY);
  await file.chmod(OWNER_ONLY);
  return {
    write: (bytes) => file.writeFile(bytes),
    commit: async () => {
      await file.close();
      await rename(draft, path);
    },
    discard: async () => {
      await file.close();
      await rm(draft, { force: true });
    },
  };
}

async function inTemporaryFolder<T>(use: (path: string) => Promise<T>): Promise<T> {
  const path = await mkdtemp(join(tmpdir(), 'sluice-'));
  try {
    return await use(path);
  } finally {
    await rm(path, { recursive: true, force: true });
  }
}

const PASSED_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

function runProgram({ command, args, env, isQuiet = false }: Program): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: isQuiet ? 'ignore' : 'inherit', shell: isQuiet, env });
    const pass = (signal: NodeJS.Signals): void => {
      // The terminal sends these to the whole process group; passing them on would deliver them twice.
      const isTyped = isatty(0) && (signal === 'SIGINT' || signal === 'SIGQUIT');
      if (!isTyped) child.kill(signal);
    };
    for (const signal of PASSED_SIGNALS) process.on(signal, pass);
    const removeListeners = (): void => {
      for (const signal of PASSED_SIGNALS) process.off(signal, pass);
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

function createOutput(stream: WriteStream): Output {
  // A closed pipe is also reported as an event, which would end the process without a listener.
  stream.on('error', () => undefined);
  return {
    isTTY: stream.isTTY === true,
    get columns() {
      return stream.isTTY ? stream.columns : undefined;
    },
    write: (text) => new Promise((resolve, reject) => stream.write(text, (error) => (error ? reject(error) : resolve()))),
  };
}

function ignoreErrors(inner: Output): Output {
  const { isTTY } = inner;
  return {
    isTTY,
    get columns() {
      return inner.columns;
    },
    write: (text) => inner.write(text).catch(() => undefined),
  };
}

/** Whether the reader of our output has closed the pipe, as `head` does after its lines. */
export function isBrokenPipe(error: unknown): boolean {
  const code = readCode(error);
  return code === 'EPIPE' || code === 'ERR_STREAM_DESTROYED';
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

/** A system error as a message with advice. `command` is suggested when the file is a URL. */
export function describeSystemError(code: string, error: unknown, file: string, command = 'assemble'): AccumulatedError {
  const known = Object.hasOwn(SYSTEM_ERRORS, code) ? SYSTEM_ERRORS[code] : undefined;
  const isUrl = code === 'ENOENT' && /^https?:\/\//.test(file);
  const message = isUrl ? `this is a URL, not a file; try: curl -N ${file} | sluice ${command}` : known?.message;
  return { code, message: message ?? `reading failed: ${String(error)}`, canonical: known?.canonical ?? 'INTERNAL' };
}

/** What system errors mean, and what to do about them. */
const SYSTEM_ERRORS: Readonly<Record<string, { canonical: ErrorCode; message: string }>> = {
  ENOENT: { canonical: 'NOT_FOUND', message: 'no such file; check the path' },
  ENOTDIR: { canonical: 'NOT_FOUND', message: 'a part of the path is not a directory; check the path' },
  EISDIR: { canonical: 'INVALID_INPUT', message: 'this is a directory; name the files in it (DIR/*.sse)' },
  EACCES: { canonical: 'PERMISSION', message: 'permission denied; check who may read the file (ls -l)' },
  EPERM: { canonical: 'PERMISSION', message: 'operation not permitted; check who may read the file (ls -l)' },
  EMFILE: { canonical: 'INTERNAL', message: 'too many open files; raise the limit (ulimit -n)' },
  ENAMETOOLONG: {
    canonical: 'INVALID_INPUT',
    message: 'the name is too long; is it the content of a file? Send that to standard input',
  },
  ELOOP: { canonical: 'INVALID_INPUT', message: 'too many symbolic links; check the path' },
};

/** Why an input counts as failed, in one line; undefined when it does not. */
export function describeFailure({ error, complete }: AccumulatedMessage): string | undefined {
  if (error) return `${error.code}: ${error.message}`;
  return complete ? undefined : 'the stream ended early: no finish reason and no end marker';
}

/** What to do about an error; undefined when its message already says so. */
export function findAdvice({ code, canonical }: AccumulatedError): string | undefined {
  if (Object.hasOwn(SYSTEM_ERRORS, code)) return undefined; // their messages include advice
  return Object.hasOwn(OWN_ADVICE, code) ? OWN_ADVICE[code] : ADVICE[canonical];
}

/** Advice for codes of our own, which are more specific than the canonical ones. */
const OWN_ADVICE: Readonly<Record<string, string>> = {
  empty_stream: 'Nothing to assemble: check that the body was saved (curl -N … > FILE), not only the headers.',
  not_a_stream: 'Check that the file is the body of a streaming response, and name its protocol with --protocol.',
  too_large: 'A single event of this size is no answer of a model: check what was recorded.',
  stream_error: 'The source broke off or reported a failure; what came before it is shown.',
  response_failed: 'The provider gave up on this response; what came before it is shown.',
};

const ADVICE = {
  INVALID_INPUT: 'The provider, or the system, refused the input.',
  MISSING_REQUIRED_FIELD: 'The request lacked a field that the provider needs.',
  INCOMPATIBLE_FEATURE: 'The request asked for something this model or provider does not have.',
  TOOL_CALL_PARSE_ERROR: 'The provider could not read the tool call that the model wrote.',
  JSON_PARSE_ERROR: 'The provider could not read the JSON.',
  RATE_LIMIT: 'Too many requests or tokens: wait, then retry.',
  AUTHENTICATION: 'The key is missing, wrong or expired.',
  PERMISSION: 'Not allowed: the key, or the user, lacks the right to do this.',
  NOT_FOUND: 'The file, model or endpoint does not exist.',
  CONTEXT_LENGTH: 'The prompt is longer than the model takes: shorten it.',
  PAYLOAD_TOO_LARGE: 'Larger than the limits allow.',
  CONTENT_POLICY: 'A content filter stopped it.',
  BILLING: 'The account has no credit left or is over its quota.',
  CONFLICT: 'Another operation was in the way: retry.',
  OVERLOADED: 'The provider is overloaded: wait, then retry.',
  TIMEOUT: 'The provider took too long: retry.',
  CANCELLED: 'The request was cancelled before its end.',
  STREAM_TRUNCATED: 'The connection ended before the message did: retry.',
  UNSUPPORTED_INTERFACE: 'The provider does not offer this kind of request.',
  UPSTREAM_ERROR: 'The provider failed: retry, or ask its status page.',
  INTERNAL: 'Not the fault of the stream: the machine or sluice itself failed.',
} as const;

ADVICE satisfies Record<ErrorCode, string>;
