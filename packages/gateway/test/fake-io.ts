import type { CliIo, Input, Output } from '../src/cli/io.ts';
import { main } from '../src/cli/main.ts';

type Source = string | Uint8Array | Error | (() => AsyncIterable<Uint8Array>);

/** The world a command runs in. What is left out: no such file, an empty stdin, no terminal. */
export interface World {
  files?: Record<string, Source>;
  stdin?: Source;
  /** Which of the three streams are terminals. */
  terminals?: readonly ('stdin' | 'stdout' | 'stderr')[];
  columns?: number;
  env?: Record<string, string>;
  /** What happens to every write to stdout. */
  stdoutError?: Error;
  size?: number;
}

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

export const systemError = (code: string): Error => Object.assign(new Error(`${code}: made up`), { code });

export async function run(argv: readonly string[], world: World = {}): Promise<Outcome> {
  const isTTY = (name: 'stdin' | 'stdout' | 'stderr'): boolean => world.terminals?.includes(name) ?? false;
  const stdout = new Recorder(isTTY('stdout'), world.columns, world.stdoutError);
  const stderr = new Recorder(isTTY('stderr'), world.columns);
  let clock = 0;
  const io: CliIo = {
    stdout,
    stderr,
    stdin: { isTTY: isTTY('stdin'), open: () => open(world.stdin ?? '') },
    env: world.env ?? {},
    openFile: async (path) => ({ ...open(world.files?.[path] ?? systemError('ENOENT')), size: world.size }),
    now: () => (clock += 60),
  };
  return { code: await main(argv, io), stdout: stdout.text, stderr: stderr.text };
}

export const jsonLines = ({ stdout }: Outcome): Record<string, unknown>[] =>
  stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);

class Recorder implements Output {
  readonly isTTY: boolean;
  readonly columns: number | undefined;
  text = '';
  readonly #error: Error | undefined;

  constructor(isTTY: boolean, columns = 80, error?: Error) {
    this.isTTY = isTTY;
    this.columns = isTTY ? columns : undefined;
    this.#error = error;
  }

  async write(text: string): Promise<void> {
    if (this.#error) throw this.#error;
    this.text += text;
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
