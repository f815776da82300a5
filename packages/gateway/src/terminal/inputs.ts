/** The one place that reads inputs: files, folders, tapes and standard input, with progress for long ones. */

import { findProtocol, PROTOCOLS, type Protocol } from '@sluice/core';
import { PROTOCOL_ALIASES } from '@sluice/core/engine';
import { didYouMean, oneLine } from '@sluice/lab/text';
import { EXIT, toUnreadable, UnreadableError, UsageError } from './errors.ts';
import type { CliIo, Input } from './io.ts';
import { formatBytes } from './text.ts';

/**
 * The bodies that the arguments of a command name, in order; standard input when there are no arguments. A folder
 * stands for the files below it, a tape for the responses of its exchanges.
 */
export async function findSources(words: readonly string[], io: CliIo): Promise<Source[]> {
  if (words.length === 0 && io.stdin.isTTY) throw new UsageError('no input; name a FILE, or pipe one to standard input');
  if (words.filter((word) => word === '-').length > 1) throw new UsageError('standard input ("-") can be read only once');
  const sources: Source[] = [];
  for (const word of words.length === 0 ? ['-'] : words) sources.push(...(await expandWord(word, io)));
  return sources;
}

/** A body to read. */
export interface Source {
  /** The argument as given; in a folder the path of the file, in a tape `TAPE/EXCHANGE`. */
  readonly file: string;
  /** The name below its folder or tape, by which two folders are compared. */
  readonly name: string;
  /** Found in a folder: it is skipped when it is not a response. */
  readonly isFound: boolean;
  /** The recorded HTTP status, for the exchanges of a tape. */
  readonly status?: number;
  /** The bytes, which can be read once. Rejects with an `UnreadableError`. */
  read(): AsyncGenerator<Uint8Array, void, undefined>;
}

async function expandWord(word: string, io: CliIo): Promise<Source[]> {
  const inside = word === '-' ? undefined : await io.listFolder(word);
  if (!inside) return [{ file: word, name: word, isFound: false, read: () => readInput(word, io) }];
  const folder = word.replace(/(?<=.)\/+$/, '');
  if (inside.some((file) => isTapeFile(file.slice(folder.length + 1)))) return readTapeSources(folder);
  if (inside.length === 0)
    return [createUnreadable(word, 'empty_folder', 'the folder is empty; name one with recorded responses')];
  return inside.map((file) => ({ file, name: file.slice(folder.length + 1), isFound: true, read: () => readInput(file, io) }));
}

/** Files that make a folder a tape: the facts of an exchange, or a list of recordings. */
const isTapeFile = (path: string): boolean => /^([^/]+\/)?exchange\.json$|^manifest\.json$/.test(path);

async function readTapeSources(folder: string): Promise<Source[]> {
  // Imported on demand: most inputs are files.
  const { readTape, TapeError } = await import('@sluice/lab/tape');
  try {
    return (await readTape(folder)).flatMap(({ name, response }) =>
      response ? [{ file: `${folder}/${name}`, name, isFound: false, status: response.status, read: () => once(response) }] : [],
    );
  } catch (error) {
    if (error instanceof TapeError) return [createUnreadable(folder, 'not_a_tape', withoutName(error.message, folder))];
    throw error;
  }

  function describe(error: unknown): unknown {
    if (!(error instanceof TapeError)) return toUnreadable(error, folder);
    const message = withoutName(error.message, folder);
    return new UnreadableError(folder, { code: 'not_a_tape', message, canonical: 'INVALID_INPUT' });
  }

  async function* once(response: { readBody(): Promise<Uint8Array> }): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield await response.readBody();
    } catch (error) {
      throw describe(error);
    }
  }
}

/** Messages about a tape may begin with its name, which reports print themselves. */
function withoutName(message: string, folder: string): string {
  const name = oneLine(folder);
  return message.startsWith(`${name}: `) || message.startsWith(`${name} `)
    ? message.slice(name.length).replace(/^:? /, '')
    : message;
}

const createUnreadable = (file: string, code: string, message: string): Source => ({
  file,
  name: file,
  isFound: false,
  // biome-ignore lint/correctness/useYield: it fails before the first chunk
  read: async function* () {
    throw new UnreadableError(file, { code, message, canonical: 'INVALID_INPUT' });
  },
});

/** Codes of bodies that are not responses. Files found in a folder are skipped for these. */
const NOT_RESPONSES: ReadonlySet<unknown> = new Set(['not_a_stream', 'empty_stream', 'not_json']);

/** Whether an error means that a body is not a response at all. */
export const isNoResponse = (error: { code: unknown } | null | undefined): boolean => NOT_RESPONSES.has(error?.code);

/** Whether to skip a source: a folder of recordings also holds other files. */
export const isSkipped = ({ isFound }: Source, error: { code: unknown } | null | undefined): boolean =>
  isFound && isNoResponse(error);

/**
 * Runs `use` for each source, in order, and returns the worst exit code. Reports on stderr how many inputs failed, and
 * how many files of folders were skipped; the exit code is 1 when nothing else was there.
 */
export async function forEachSource(sources: readonly Source[], io: CliIo, use: UseSource): Promise<number> {
  const counts = { failed: 0, skipped: 0 };
  let worst: number = EXIT.ok;
  for (const source of sources) {
    const code = await use(source);
    if (code === 'skipped') counts.skipped++;
    else if (code !== EXIT.ok) counts.failed++;
    if (code !== 'skipped') worst = Math.max(worst, code);
  }
  if (counts.failed > 0 && sources.length > 1)
    await io.stderr.write(`sluice: ${counts.failed} of ${sources.length} inputs failed\n`);
  if (counts.skipped === 0) return worst;
  await io.stderr.write(`sluice: ${counts.skipped} file${counts.skipped === 1 ? '' : 's'} skipped: not a response\n`);
  return counts.skipped === sources.length ? EXIT.failed : worst;
}

/** Resolves with the exit code for the source, or with `skipped`. */
type UseSource = (source: Source) => Promise<number | 'skipped'>;

/** The chunks of a file ("-" is standard input), with progress when it is long. Rejects with an `UnreadableError`. */
async function* readInput(file: string, io: CliIo): AsyncGenerator<Uint8Array, void, undefined> {
  const { size, chunks } = await openInput(file, io);
  const progress = new Progress(io, oneLine(file), size);
  const reader = chunks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await reader.next().catch((error: unknown) => {
        throw toUnreadable(error, file);
      });
      if (next.done) return;
      yield next.value;
      await progress.advance(next.value.length);
    }
  } finally {
    await reader.return?.();
    await progress.clear();
  }
}

async function openInput(file: string, io: CliIo): Promise<Input> {
  try {
    return file === '-' ? io.stdin.open() : await io.openFile(file);
  } catch (error) {
    throw toUnreadable(error, file);
  }
}

/** All bytes of a source. */
export async function readBytes(source: Pick<Source, 'read'>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Reads all bodies of one input into memory. Throws an `UnreadableError` when one cannot be read. */
export async function readBodies(word: string, io: CliIo): Promise<RecordedBody[]> {
  const bodies: RecordedBody[] = [];
  for (const source of await findSources([word], io)) {
    const { name, status } = source;
    bodies.push({ name, bytes: await readBytes(source), ...(status !== undefined && { status }) });
  }
  return bodies;
}

/** A body in memory. */
export interface RecordedBody extends Pick<Source, 'name' | 'status'> {
  bytes: Uint8Array;
}

/** All bytes of a file ("-" is standard input). */
export const readFileBytes = (file: string, io: CliIo): Promise<Buffer> => readBytes({ read: () => readInput(file, io) });

/** Whether a path is taken, also by a folder or by a file that cannot be read. */
export async function fileExists(path: string, io: CliIo): Promise<boolean> {
  try {
    await readFileBytes(path, io);
    return true;
  } catch (error) {
    if (error instanceof UnreadableError) return !ABSENT.has(error.failure.code);
    throw error;
  }
}

const ABSENT: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR']);

/** The protocols that `--protocol` allows: the named one, or all, of which the bytes decide. */
export function chooseProtocols(name: string | undefined): readonly Protocol[] {
  if (name === undefined) return Object.values(PROTOCOLS);
  const found = findProtocol(name);
  if (found) return [found];
  throw createUnknownProtocolError(name);
}

/** The error for a protocol name that does not exist, with a suggestion and the known names. */
export function createUnknownProtocolError(name: string): UsageError {
  const aliases = Object.entries(PROTOCOL_ALIASES);
  const list = Object.keys(PROTOCOLS).map((id) =>
    [id, ...aliases.flatMap(([alias, of]) => (of === id ? [alias] : []))].join(' or '),
  );
  const names = [...Object.keys(PROTOCOLS), ...Object.keys(PROTOCOL_ALIASES)];
  return new UsageError(`unknown protocol "${oneLine(name)}"${didYouMean(name, names)}\nKnown protocols: ${list.join(', ')}`);
}

/** One line on stderr about a long read. Shows nothing for small inputs, or when stderr is not a terminal. */
class Progress {
  readonly #io: CliIo;
  readonly #label: string;
  readonly #size: number | undefined;
  readonly #started: number;
  readonly #isPossible: boolean;
  #read = 0;
  #shownAt = Number.NEGATIVE_INFINITY;
  #isShown = false;

  constructor(io: CliIo, label: string, size: number | undefined) {
    this.#io = io;
    this.#label = label;
    this.#size = size;
    this.#started = io.now();
    this.#isPossible = io.stderr.isTTY && io.env['TERM'] !== 'dumb' && (size ?? Number.POSITIVE_INFINITY) > MIN_SHOWN_BYTES;
  }

  async advance(count: number): Promise<void> {
    this.#read += count;
    if (!this.#isPossible || (this.#size === undefined && this.#read <= MIN_SHOWN_BYTES)) return;
    const now = this.#io.now();
    if (now - this.#shownAt < INTERVAL_MS) return;
    this.#shownAt = now;
    this.#isShown = true;
    await this.#io.stderr.write(CLEAR + this.#line(now));
  }

  async clear(): Promise<void> {
    if (this.#isShown) await this.#io.stderr.write(CLEAR);
    this.#isShown = false;
  }

  #line(now: number): string {
    const rate = `${formatBytes((this.#read * 1000) / Math.max(now - this.#started, 1))}/s`;
    const facts = this.#size === undefined ? `${formatBytes(this.#read)}  ${rate}` : `${this.#share(this.#size)}  ${rate}`;
    // A line that wraps cannot be cleared, so the label is shortened to the room left.
    const columns = this.#io.stderr.columns ?? 80;
    const room = columns - facts.length - 3;
    const label = this.#label.length <= room ? this.#label : `…${this.#label.slice(Math.max(this.#label.length - room + 1, 0))}`;
    return room < 8 ? facts.slice(0, columns - 1) : `${facts}  ${label}`;
  }

  #share(size: number): string {
    const share = Math.min(this.#read / size, 1); // a file that is being written grows
    const done = Math.round(share * BAR_WIDTH);
    const isWide = (this.#io.stderr.columns ?? 80) >= 72;
    const bar = isWide ? `${'█'.repeat(done)}${'░'.repeat(BAR_WIDTH - done)} ` : '';
    return `${bar}${String(Math.floor(share * 100)).padStart(3)} %  ${formatBytes(this.#read)} of ${formatBytes(size)}`;
  }
}

/** Smaller inputs are read within a moment. */
const MIN_SHOWN_BYTES = 8 * 1024 * 1024;

const INTERVAL_MS = 100;

const BAR_WIDTH = 24;

const CLEAR = '\r\u001b[K';
