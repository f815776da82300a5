import * as zlib from 'node:zlib';
import type { Receiver } from './dialer.ts';
import { NotUnpacked, TooLarge } from './failures.ts';

type Inflater = zlib.Gunzip | zlib.Inflate | zlib.InflateRaw | zlib.BrotliDecompress;

/**
 * Whether a truncated body is an error (`strict`), or its beginning is used (`lenient`) because the content shows
 * whether it is complete.
 */
type End = 'strict' | 'lenient';

const ZLIB = { strict: {}, lenient: { finishFlush: zlib.constants.Z_SYNC_FLUSH } } as const;
const BROTLI = { strict: {}, lenient: { finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH } } as const;

/** Servers disagree about what deflate is; the first byte tells. */
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

/**
 * RFC 9659: no more than 8 MiB of window for the content coding. By default a client could claim 128 MiB for each
 * request.
 */
const ZSTD_WINDOW_LOG = 23;

function zstd(): [string, CreateInflater][] {
  const { createZstdDecompress: create, constants } = zlib as MaybeZstd; // every member is optional
  const parameter = constants.ZSTD_d_windowLogMax;
  if (!create || parameter === undefined) return [];
  return [['zstd', () => create({ params: { [parameter]: ZSTD_WINDOW_LOG } })]];
}

/** Supported codings, as the value of `Accept-Encoding`. */
export const CODINGS = [...INFLATERS.keys()].join(', ');

/** The coding of a body; undefined for a plain one. Throws for unknown and nested codings. */
export function readCoding(header: string | undefined): string | undefined {
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

/** Up to this size the ratio does not matter: small bodies may be repetitive. */
const HARMLESS_BYTES = 1024 * 1024;

export interface UnpackerOptions {
  coding: string;
  end: End;
  /** How many times larger a body may become. */
  maxRatio: number;
  /** Paused while the decompressor is full. */
  source: { pause(): void; resume(): void };
}

/** Decompresses a body for another receiver, as it arrives. */
export class Unpacker implements Receiver {
  readonly #receiver: Receiver;
  readonly #options: UnpackerOptions;
  #inflater: Inflater | undefined;
  #bytesIn = 0;
  #bytesOut = 0;
  #isPaused = false;
  /** Why the source failed; reported after everything before it. */
  #failure: Error | undefined;

  constructor(receiver: Receiver, options: UnpackerOptions) {
    this.#receiver = receiver;
    this.#options = options;
  }

  start(): void {
    // Headers are not compressed.
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

  /** Stops without further events. */
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
