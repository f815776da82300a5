import { ownError } from '../canonical/errors.ts';
import type { Report } from '../doctor/rules.ts';
import { NOTHING, type Stage } from '../stage.ts';
import { EventBlock } from './block.ts';
import { ByteBuffer, CR, LF, SPACE, TAB } from './bytes.ts';
import { ChunkReader } from './chunk.ts';
import type { SseFrame } from './frame.ts';
import { JsonCutter, opensJson } from './json-array.ts';

export interface SseDecoderOptions {
  /** A longer line ends the stream with a failure. 32 MiB unless said. */
  maxLineBytes?: number | undefined;
  /** The same for the data of one event, or a JSON document outside SSE. 32 MiB unless said. */
  maxEventBytes?: number | undefined;
  /** Told of every departure from the standard that was met. */
  report?: Report | undefined;
}

const DEFAULT_LIMIT = 32 * 1024 * 1024;
const BOM = Uint8Array.of(0xef, 0xbb, 0xbf);

/** Bytes to SSE frames. */
export interface SseDecoder extends Stage<Uint8Array, SseFrame> {
  /** Number of body bytes consumed so far. */
  readonly position: number;
}

/**
 * Bytes to frames by the rules of WHATWG EventSource, however the bytes are split. Beyond the standard, each with its report:
 * a last event without its blank line is kept when its data is whole; `error: {json}` and an `event: error` without data are error frames;
 * JSON outside SSE (a whole body, NDJSON, Gemini's array) comes out as `bare` frames. Never throws.
 */
export function createSseDecoder(options: SseDecoderOptions = {}): SseDecoder {
  return new FrameReader(options);
}

/** The decoder behind `createSseDecoder`. The protected members are for the cache of repeated chunks. */
export class FrameReader implements SseDecoder {
  readonly #maxLineBytes: number;
  readonly #maxEventBytes: number;
  readonly #report: Report | undefined;
  readonly #chunk = new ChunkReader();
  readonly #block: EventBlock;
  readonly #cutter = new JsonCutter();

  /** The line that has begun and not ended, copied: chunks belong to the caller. */
  readonly #tail = new ByteBuffer();
  #tailOffset = 0;
  #tailIsBlank = true;

  /** Place of the chunk in the body. */
  #base = 0;
  #bomBytes = 0;
  #afterCr = false;
  #closed = false;
  /** A limit was exceeded; the frame with the `failure` was the last one. */
  hasFailed = false;

  constructor({ maxLineBytes = DEFAULT_LIMIT, maxEventBytes = DEFAULT_LIMIT, report }: SseDecoderOptions) {
    this.#maxLineBytes = maxLineBytes;
    this.#maxEventBytes = maxEventBytes;
    this.#report = report;
    this.#block = new EventBlock(this.#chunk, maxEventBytes, report);
  }

  /** No frame is open: the next byte starts a new one. */
  protected get isBetweenFrames(): boolean {
    const isStarted = this.#bomBytes === BOM.length && !this.#closed;
    return isStarted && !this.#afterCr && this.#tail.length === 0 && !this.#cutter.isOpen && this.#block.isEmpty;
  }

  get position(): number {
    return this.#base;
  }

  /** Counts whole frames that the caller has read itself. Only valid between frames. */
  protected skip(bytes: number): void {
    this.#base += bytes;
  }

  push(chunk: Uint8Array): readonly SseFrame[] {
    if (this.#closed) return NOTHING;
    this.#chunk.open(chunk);
    let at = this.#bomBytes < BOM.length ? this.#skipBom(chunk) : 0;
    while (at < chunk.length && !this.#closed) at = this.#cutter.isOpen ? this.#cutJson(chunk, at) : this.#readLine(chunk, at);
    this.#chunk.close();
    this.#base += chunk.length;
    return this.#block.takeFrames();
  }

  end(): readonly SseFrame[] {
    if (this.#closed) return NOTHING;
    if (this.#cutter.isOpen) this.#report?.('sse/truncated-event', this.#cutter.offset);
    this.#block.end(this.#tail.bytes, this.#tail.length, this.#tailOffset);
    if (this.#block.isTooLarge) this.#fail(this.#tailOffset);
    this.#close();
    return this.#block.takeFrames();
  }

  /** The byte order mark may come in three pieces. What only began like one is the beginning of the first line. */
  #skipBom(chunk: Uint8Array): number {
    let at = 0;
    while (chunk[at] === BOM[this.#bomBytes]) {
      at++;
      if (++this.#bomBytes === BOM.length) return at;
    }
    if (at === chunk.length) return at;
    this.#keep(BOM, 0, this.#bomBytes, 0);
    this.#tailIsBlank = this.#bomBytes === 0;
    this.#bomBytes = BOM.length;
    return at;
  }

  /** Reads to the end of the line or of the chunk, and says where it stopped. */
  #readLine(chunk: Uint8Array, at: number): number {
    const first = chunk[at];
    if (this.#afterCr) {
      this.#afterCr = false;
      if (first === LF) return at + 1;
    }
    if (this.#tailIsBlank) {
      if (first === LF && this.#tail.length === 0) {
        this.#block.dispatch();
        return at + 1;
      }
      const start = first === SPACE || first === TAB ? skipBlanks(chunk, at) : at;
      if (opensJson(chunk[start])) {
        this.#tail.clear();
        this.#cutter.open(chunk, start, this.#base, this.#block.hasData);
        return start + 1;
      }
      this.#tailIsBlank = start === chunk.length;
    }
    const end = this.#chunk.lineEnd(chunk, at);
    if (end === chunk.length) this.#keepOpenLine(chunk, at);
    else this.#endLine(chunk, at, end);
    return end + 1;
  }

  #endLine(chunk: Uint8Array, at: number, end: number): void {
    const tail = this.#tail;
    const offset = this.#lineOffset(at);
    const length = tail.length + end - at;
    this.#afterCr = chunk[end] === CR;
    this.#tailIsBlank = true;
    if (length > this.#maxLineBytes) this.#fail(offset);
    else if (length === 0) this.#block.dispatch();
    else if (tail.length === 0) this.#block.line(chunk, at, end, offset);
    else {
      tail.append(chunk, at, end);
      this.#block.line(tail.bytes, 0, length, offset);
      tail.clear();
    }
    if (this.#block.isTooLarge) this.#fail(offset);
  }

  #keepOpenLine(chunk: Uint8Array, at: number): void {
    const offset = this.#lineOffset(at);
    if (this.#tail.length + chunk.length - at > this.#maxLineBytes) {
      this.#fail(offset);
      return;
    }
    this.#keep(chunk, at, chunk.length, offset);
    if (this.#block.wouldOverflow(this.#tail.bytes, this.#tail.length)) this.#fail(offset);
  }

  #lineOffset(at: number): number {
    return this.#tail.length === 0 ? this.#base + at : this.#tailOffset;
  }

  #keep(bytes: Uint8Array, from: number, to: number, offset: number): void {
    this.#tail.append(bytes, from, to);
    this.#tailOffset = offset;
  }

  #cutJson(chunk: Uint8Array, at: number): number {
    const cutter = this.#cutter;
    const cut = cutter.read(chunk, at, this.#base);
    if (cutter.value.length > this.#maxEventBytes) this.#fail(cutter.offset);
    else if (cut === 'value') {
      // A document ends the event that is open; a line that only begins like one does not.
      if (this.#block.hasData) this.#block.dispatch();
      this.#block.bare(cutter.value.bytes, 0, cutter.value.length, cutter.offset);
      cutter.value.clear();
    } else if (cut === 'refused') this.#resumeLine(cutter.lineStart);
    // An empty array says nothing: its line is one that nobody knows.
    else if (cut === 'end' && cutter.isEmpty) this.#resumeLine(cutter.opener);
    // What follows a document is read like a new line: concatenated documents, or the line end.
    this.#tailIsBlank = this.#tail.length === 0;
    return cutter.position;
  }

  /** The brace or bracket was no document: an ordinary line begins with this byte. */
  #resumeLine(byte: number | undefined): void {
    if (byte !== undefined) this.#keep(Uint8Array.of(byte), 0, 1, this.#cutter.offset);
  }

  // One message for both limits: which of them is passed first would depend on how the bytes were split.
  #fail(offset: number): void {
    const limits = `maxLineBytes ${readable(this.#maxLineBytes)}, maxEventBytes ${readable(this.#maxEventBytes)}`;
    const failure = ownError(
      'too_large',
      'PAYLOAD_TOO_LARGE',
      `a line or an event of the stream is longer than allowed (${limits})`,
    );
    this.hasFailed = true;
    this.#block.put({ data: '', failure, offset: this.#block.startOr(offset) });
    this.#close();
  }

  /** Nothing more is read, and nothing more is held. */
  #close(): void {
    this.#closed = true;
    this.#tail.free();
    this.#cutter.value.free();
    this.#block.clear();
  }
}

const MIB = 1024 * 1024;

const readable = (bytes: number): string => (bytes % MIB === 0 ? `${bytes / MIB} MiB` : `${bytes} bytes`);

function skipBlanks(bytes: Uint8Array, from: number): number {
  let at = from;
  while (bytes[at] === SPACE || bytes[at] === TAB) at++;
  return at;
}
