import * as zlib from 'node:zlib';
import type { Receiver } from './dialer.ts';
import { NotUnpacked, TooLarge } from './failures.ts';

type Inflater = zlib.Gunzip | zlib.Inflate | zlib.InflateRaw | zlib.BrotliDecompress;

/** What a body that ends too early is: an error, or worth what has come of it (then its content tells whether it was whole). */
type End = 'strict' | 'lenient';

const ZLIB = { strict: {}, lenient: { finishFlush: zlib.constants.Z_SYNC_FLUSH } } as const;
const BROTLI = { strict: {}, lenient: { finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH } } as const;

/** The first byte tells: servers disagree about what deflate is. */
const hasZlibHeader = (chunk: Uint8Array): boolean => ((chunk[0] ?? 0) & 0x0f) === 8;

type CreateInflater = (end: End, first: Uint8Array) => Inflater;

const INFLATERS: ReadonlyMap<string, CreateInflater> = new Map<string, CreateInflater>([
  ['gzip', (end) => zlib.createGunzip(ZLIB[end])],
  ['x-gzip', (end) => zlib.createGunzip(ZLIB[end])],
  ['br', (end) => zlib.createBrotliDecompress(BROTLI[end])],
  ['deflate', (end, first) => (hasZlibHeader(first) ? zlib.createInflate(ZLIB[end]) : zlib.createInflateRaw(ZLIB[end]))],
  ...zstd(),
]);

/** Zstd as far as it is used here. Node has it since 22.15; the types are those of node 20. */
interface MaybeZstd {
  createZstdDecompress?(options: { params: Record<number, number> }): Inflater;
  constants: { ZSTD_d_windowLogMax?: number };
}

/** RFC 9659: no more than 8 MiB of window for the content coding. By default a client could claim 128 MiB for each request. */
const ZSTD_WINDOW_LOG = 23;

function zstd(): [string, CreateInflater][] {
  const { createZstdDecompress: create, constants } = zlib as MaybeZstd; // every member is optional
  const parameter = constants.ZSTD_d_windowLogMax;
  if (!create || parameter === undefined) return [];
  return [['zstd', () => create({ params: { [parameter]: ZSTD_WINDOW_LOG } })]];
}

/** The codings that are read, as an `Accept-Encoding` names them. */
export const CODINGS = [...INFLATERS.keys()].join(', ');

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
  end: End;
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
    const { coding, end, source } = this.#options;
    const inflater = INFLATERS.get(coding)?.(end, first) ?? zlib.createGunzip(ZLIB[end]);
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
