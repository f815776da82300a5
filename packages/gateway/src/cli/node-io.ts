import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, open, readdir, rename, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isatty, type WriteStream } from 'node:tty';
import type { CliIo, Input, Output, OutputFile, Program } from './io.ts';

/** Large enough that a system call costs nothing beside the decoding, small enough that progress is smooth. */
const CHUNK_BYTES = 256 * 1024;

/** The real world. */
export function nodeIo(): CliIo {
  return {
    stdout: output(process.stdout),
    stderr: quiet(output(process.stderr)),
    // `process.stdin` opens the descriptor when it is first touched: only when it is to be read.
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
  // A pipe or a device has no size: it is 0 there.
  return { size: size || undefined, chunks: file.createReadStream({ highWaterMark: CHUNK_BYTES }) };
}

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
    return undefined; // a file, or nothing: opening it will tell
  }
}

const OWNER_ONLY = 0o600;

/** Written beside its place and then moved there: a reader never sees half of it, and what stood there stays until the new one is whole. */
async function createFile(path: string): Promise<OutputFile> {
  const draft = `${path}.${process.pid}.part`;
  // Streams, conversations and settings with keys: for their owner only, also where such a draft was left behind.
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
      // What is typed at a terminal reaches the program without us, and would come twice.
      const isTyped = isatty(0) && (signal === 'SIGINT' || signal === 'SIGQUIT');
      if (!isTyped) child.kill(signal);
    };
    for (const signal of PASSED_SIGNALS) process.on(signal, pass);
    const settle = (): void => {
      for (const signal of PASSED_SIGNALS) process.off(signal, pass);
    };
    child.once('error', (error) => {
      settle();
      reject(error);
    });
    child.once('exit', (code, signal) => {
      settle();
      resolve(code ?? 128 + (signal ? constants.signals[signal] : 0));
    });
  });
}

function quiet(inner: Output): Output {
  const { isTTY } = inner;
  return {
    isTTY,
    get columns() {
      return inner.columns;
    },
    write: (text) => inner.write(text).catch(() => undefined),
  };
}

function output(stream: WriteStream): Output {
  // A closed pipe is told twice, to the callback and as an event; without a listener the event would end the process.
  stream.on('error', () => undefined);
  return {
    isTTY: stream.isTTY === true,
    get columns() {
      return stream.isTTY ? stream.columns : undefined;
    },
    write: (text) => new Promise((resolve, reject) => stream.write(text, (error) => (error ? reject(error) : resolve()))),
  };
}
