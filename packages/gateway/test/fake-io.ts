import { main } from '../src/cli/main.ts';
import { type CliIo, createNodeIo, type Input, type Output, type OutputFile, type Program } from '../src/terminal/io.ts';

type Source = string | Uint8Array | Error | (() => AsyncIterable<Uint8Array>);

/** The world a command runs in. What is left out: no such file, an empty stdin, no terminal. */
export interface World {
  files?: Record<string, Source>;
  /** The files in folders, by the paths of these. */
  folders?: Record<string, string[]>;
  stdin?: Source;
  /** Which of the three streams are terminals. */
  terminals?: readonly ('stdin' | 'stdout' | 'stderr')[];
  columns?: number;
  env?: Record<string, string>;
  /** The working folder; by default one without a configuration. */
  folder?: string;
  /** Where a gateway is looked for that is not configured; by default nothing listens there. */
  defaultUrl?: string;
  /** What happens to every write to stdout. */
  stdoutError?: Error;
  size?: number;
  /** Paths that are not listed are those of the machine. */
  hasDisk?: true;
  /** What the process has worked so far, in milliseconds. */
  cpuTime?: () => number;
  /** Told everything that is written to stdout and stderr, as it is written. */
  onText?: (text: string) => void;
  /** What happens when a file of this name is created. */
  createErrors?: Record<string, Error>;
  /** What a program does that is started: its exit code, or the error of the system. */
  program?: (program: Program) => number | Promise<number>;
}

/** Nothing listens there. */
export const UNUSED_URL = 'http://127.0.0.1:1';

export interface Outcome {
  code: number;
  stdout: string;
  /** The same as bytes, which need not be UTF-8. */
  bytes: Buffer;
  stderr: string;
  /** What was written to files, by their paths. */
  files: Record<string, string>;
}

export const systemError = (code: string): Error => Object.assign(new Error(`${code}: made up`), { code });

export async function run(argv: readonly string[], world: World = {}): Promise<Outcome> {
  const isTTY = (name: 'stdin' | 'stdout' | 'stderr'): boolean => world.terminals?.includes(name) ?? false;
  const stdout = new Recorder(isTTY('stdout'), world, world.stdoutError);
  const stderr = new Recorder(isTTY('stderr'), world);
  const files: Record<string, string> = {};
  let clock = 0;
  const io: CliIo = {
    stdout,
    stderr,
    stdin: { isTTY: isTTY('stdin'), open: () => open(world.stdin ?? '') },
    env: world.env ?? {},
    folder: world.folder ?? '/nowhere',
    defaultUrl: world.defaultUrl ?? UNUSED_URL,
    openFile: async (path) => {
      const source = world.files?.[path];
      if (source === undefined && world.hasDisk) return nodeIo().openFile(path);
      return { ...open(source ?? systemError('ENOENT')), size: world.size };
    },
    listFolder: async (path) => world.folders?.[path] ?? (world.hasDisk && nodeIo().listFolder(path)) ?? undefined,
    makeDirectory: async () => undefined,
    createFile: async (path) => createFile(path, files, world.createErrors?.[path]),
    inTemporaryFolder: (use) => use('/own'),
    runProgram: async (program) => {
      if (!world.program) throw systemError('ENOENT');
      return world.program(program);
    },
    now: () => (clock += 60),
    cpuTime: world.cpuTime ?? (() => (clock += 60)),
    ...(world.hasDisk && diskOf(nodeIo())),
  };
  const code = await main(argv, io);
  return { code, stdout: stdout.text, bytes: Buffer.concat(stdout.bytes), stderr: stderr.text, files };
}

let node: CliIo | undefined;

/** One for all runs: each adds listeners to the streams of the process. */
const nodeIo = (): CliIo => (node ??= createNodeIo());

const diskOf = ({ makeDirectory, createFile, inTemporaryFolder }: CliIo) => ({ makeDirectory, createFile, inTemporaryFolder });

export const jsonLines = ({ stdout }: Outcome): Record<string, unknown>[] =>
  stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);

class Recorder implements Output {
  readonly isTTY: boolean;
  readonly columns: number | undefined;
  readonly bytes: Buffer[] = [];
  readonly #error: Error | undefined;
  readonly #onText: World['onText'];

  constructor(isTTY: boolean, { columns = 80, onText }: Pick<World, 'columns' | 'onText'>, error?: Error) {
    this.isTTY = isTTY;
    this.columns = isTTY ? columns : undefined;
    this.#error = error;
    this.#onText = onText;
  }

  async write(data: string | Uint8Array): Promise<void> {
    if (this.#error) throw this.#error;
    this.bytes.push(Buffer.from(data));
    this.#onText?.(Buffer.from(data).toString());
  }

  get text(): string {
    return Buffer.concat(this.bytes).toString();
  }
}

function open(source: Source): Input {
  if (source instanceof Error) throw source;
  if (typeof source === 'function') return { size: undefined, chunks: source() };
  return { size: undefined, chunks: once(typeof source === 'string' ? new TextEncoder().encode(source) : source) };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}

/** Shows up in `files` when it is committed, as a real one does. */
function createFile(path: string, files: Record<string, string>, error: Error | undefined): OutputFile {
  if (error) throw error;
  const pieces: Uint8Array[] = [];
  return {
    write: async (bytes) => void pieces.push(bytes.slice()),
    commit: async () => {
      files[path] = Buffer.concat(pieces).toString();
    },
    discard: async () => undefined,
  };
}
