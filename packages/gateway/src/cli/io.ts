/** Everything of the outside world that a command may touch. Tests hand in their own. */
export interface CliIo {
  readonly stdout: Output;
  /** Its `write` never rejects: with stderr gone, there is nobody left to tell. */
  readonly stderr: Output;
  readonly stdin: { readonly isTTY: boolean; open(): Input };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Rejects with the error of the system (`ENOENT`, `EACCES` …). */
  openFile(path: string): Promise<Input>;
  /** The files in a folder and in those below it, in order, without hidden ones; undefined when it is no folder. */
  listFolder(path: string): Promise<string[] | undefined>;
  /** Makes a directory, and those above it, for the owner only; one that is there is fine. */
  makeDirectory(path: string): Promise<void>;
  /** A file for the owner only. It appears whole or not at all: it has its name only after `commit`. */
  createFile(path: string): Promise<OutputFile>;
  /** A folder that is there, for nobody else, for as long as `use` runs. */
  inTemporaryFolder<T>(use: (path: string) => Promise<T>): Promise<T>;
  /**
   * Starts a program that has our terminal and gets our signals. Resolves with its exit code, or with 128 and the number of the signal that
   * ended it; rejects with `ENOENT` when there is none of that name.
   */
  runProgram(program: Program): Promise<number>;
  /** Milliseconds, for rates and intervals only. */
  now(): number;
  /** Milliseconds that this process has worked: unlike the clock, no other process makes it run. */
  cpuTime(): number;
}

export interface Program {
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  /** The command is a line for the shell, and nobody wants to see what it writes: its exit code is all. */
  isQuiet?: boolean;
}

export interface Output {
  readonly isTTY: boolean;
  /** Width of the terminal; undefined when there is none. */
  readonly columns: number | undefined;
  /** Resolves when the text is taken; rejects with `EPIPE` when nobody reads any more. */
  write(text: string): Promise<void>;
}

export interface OutputFile {
  write(bytes: Uint8Array): Promise<void>;
  commit(): Promise<void>;
  /** Leaves nothing behind. */
  discard(): Promise<void>;
}

export interface Input {
  /** In bytes; undefined when it cannot be known beforehand. */
  readonly size: number | undefined;
  /** Leaving the loop early closes the source. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Whoever read our output has gone, as `head` does after its lines. */
export function isBrokenPipe(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'EPIPE' || code === 'ERR_STREAM_DESTROYED';
}

/** The code of an error of the system, such as `ENOENT`; undefined for every other error. */
export function systemCode(error: unknown): string | undefined {
  const code = codeOf(error);
  return code !== undefined && /^E(?!RR_)[A-Z0-9]+$/.test(code) ? code : undefined;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
