import {
  type BrotliDecompress,
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  type Gunzip,
  type Inflate,
  type InflateRaw,
} from 'node:zlib';
import type { Receiver } from './dialer.ts';
import { NotUnpacked, TooLarge } from './failures.ts';

type Inflater = Gunzip | Inflate | InflateRaw | BrotliDecompress;

// Whatever has come is given out, also of a body that breaks off: whether it was whole is told by what stands in it.
const ZLIB = { finishFlush: constants.Z_SYNC_FLUSH } as const;
const BROTLI = { finishFlush: constants.BROTLI_OPERATION_FLUSH } as const;

/** The first byte tells: servers disagree about what deflate is. */
const hasZlibHeader = (chunk: Uint8Array): boolean => ((chunk[0] ?? 0) & 0x0f) === 8;

const INFLATERS: ReadonlyMap<string, (first: Uint8Array) => Inflater> = new Map<string, (first: Uint8Array) => Inflater>([
  ['gzip', () => createGunzip(ZLIB)],
  ['x-gzip', () => createGunzip(ZLIB)],
  ['br', () => createBrotliDecompress(BROTLI)],
  ['deflate', (first) => (hasZlibHeader(first) ? createInflate(ZLIB) : createInflateRaw(ZLIB))],
]);

/** The coding of a body; undefined for a plain one. Throws for those that are not read: unknown ones, and one inside another. */
export function codingOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  const [coding, ...others] = header
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');
  if (coding === undefined) return undefined;
  if (others.length === 0 && INFLATERS.has(coding)) return coding;
  const shown = header.replace(/[^\w, -]/g, '').slice(0, 40);
  throw new NotUnpacked(`used content-encoding "${shown}", which is not supported`);
}

/** Small bodies may be repetitive, and can do no harm. */
const HARMLESS_BYTES = 1024 * 1024;

export interface UnpackerOptions {
  coding: string;
  /** How many times larger a body may become. */
  maxRatio: number;
  /** Holds the source while there is more than can be unpacked at once. */
  source: { pause(): void; resume(): void };
}

/** Takes packed bytes and gives another receiver what is in them, as soon as it can be told. */
export class Unpacker implements Receiver {
  readonly #receiver: Receiver;
  readonly #options: UnpackerOptions;
  #inflater: Inflater | undefined;
  #bytesIn = 0;
  #bytesOut = 0;
  #isPaused = false;
  /** Why the source broke off: told when everything before it is. */
  #failure: Error | undefined;

  constructor(receiver: Receiver, options: UnpackerOptions) {
    this.#receiver = receiver;
    this.#options = options;
  }

  start(): void {
    // The head is not packed.
  }

  data(chunk: Uint8Array): void {
    this.#inflater ??= this.#begin(chunk);
    this.#bytesIn += chunk.length;
    if (!this.#inflater.write(chunk)) this.#options.source.pause();
  }

  end(): void {
    if (this.#inflater) this.#inflater.end();
    else this.#finish();
  }

  fail(error: Error): void {
    this.#failure = error;
    this.end();
  }

  pause(): void {
    this.#isPaused = true;
    this.#inflater?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#inflater?.resume();
    if (!this.#inflater?.writableNeedDrain) this.#options.source.resume();
  }

  /** Nobody wants to hear more. */
  close(): void {
    this.#inflater
      ?.removeAllListeners()
      .on('error', () => undefined)
      .destroy();
  }

  #begin(first: Uint8Array): Inflater {
    const { coding, source } = this.#options;
    const inflater = INFLATERS.get(coding)?.(first) ?? createGunzip(ZLIB);
    inflater.on('data', (piece: Buffer) => this.#take(piece));
    inflater.on('drain', () => this.#isPaused || source.resume());
    inflater.on('end', () => this.#finish());
    inflater.on('error', () => this.#break(new NotUnpacked('sent a compressed response that cannot be decompressed')));
    return inflater;
  }

  #take(piece: Buffer): void {
    this.#bytesOut += piece.length;
    const most = Math.max(HARMLESS_BYTES, this.#bytesIn * this.#options.maxRatio);
    if (this.#bytesOut > most)
      this.#break(new TooLarge(`sent a compressed response that grows more than ${this.#options.maxRatio} times`));
    else this.#receiver.data(piece);
  }

  #finish(): void {
    if (this.#failure) this.#receiver.fail(this.#failure);
    else this.#receiver.end();
  }

  #break(error: Error): void {
    this.close();
    this.#receiver.fail(error);
  }
}
