/** Reads inputs as chunks or text, with a progress line on stderr for long ones. */

import { oneLine } from '@sluice/lab/text';
import type { CliIo } from './io.ts';
import { formatBytes } from './text.ts';

/** The chunks of an input ("-" is standard input), with progress when it is long. Rejects with the system error. */
export async function* readInput(file: string, io: CliIo): AsyncGenerator<Uint8Array, void, undefined> {
  const { size, chunks } = file === '-' ? io.stdin.open() : await io.openFile(file);
  const progress = new Progress(io, oneLine(file), size);
  try {
    for await (const chunk of chunks) {
      yield chunk;
      await progress.advance(chunk.length);
    }
  } finally {
    await progress.clear();
  }
}

/** The whole input as text, without its byte order mark. */
export async function readText(file: string, io: CliIo): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of readInput(file, io)) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
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
