import { ownError } from '../canonical/notes.ts';
import { NOTHING, type Stage } from '../canonical/stage.ts';
import { OPEN_ARRAY } from '../json/scanner.ts';
import type { Report } from '../rules/index.ts';
import {
  ByteBuffer,
  ChunkReader,
  COLON,
  CR,
  decodeUtf8,
  hasBytesAt,
  isUtf8,
  LF,
  LOWER_D,
  LOWER_E,
  LOWER_I,
  LOWER_R,
  SPACE,
  TAB,
} from './bytes.ts';
import type { SseFrame } from './encode.ts';
import { JsonCutter, opensJson } from './json-array.ts';

/**
 * Decodes bytes to frames by the rules of WHATWG EventSource, however the bytes are split. Beyond the standard, each
 * with its report: a last event without its blank line is kept when its data is complete; `error: {json}` and an
 * `event: error` without data are error frames; JSON outside SSE (a whole body, NDJSON, Gemini's array) becomes `bare`
 * frames. Never throws.
 *
 * ```ts
 * const decoder = createSseDecoder();
 * for (const bytes of chunks) for (const { event, data } of decoder.push(bytes)) console.log(event, data);
 * for (const { event, data } of decoder.end()) console.log(event, data);
 * ```
 */
export function createSseDecoder(options: SseDecoderOptions = {}): SseDecoder {
  return new FrameReader(options);
}

/** Decodes bytes to SSE frames. */
export interface SseDecoder extends Stage<Uint8Array, SseFrame> {
  /** Number of body bytes consumed so far. */
  readonly position: number;
}

/** Settings of an SSE decoder. */
export interface SseDecoderOptions {
  /** A longer line ends the stream with a failure. Default 32 MiB. */
  maxLineBytes?: number | undefined;
  /** The limit for the data of one event, or a JSON document outside SSE. Default 32 MiB. */
  maxEventBytes?: number | undefined;
  /** Called for every violation of the standard. */
  report?: Report | undefined;
}

const DEFAULT_LIMIT = 32 * 1024 * 1024;

const BOM = Uint8Array.of(0xef, 0xbb, 0xbf);

/** The decoder behind `createSseDecoder`. The protected members are for the cache of repeated chunks. */
export class FrameReader implements SseDecoder {
  readonly #maxLineBytes: number;
  readonly #maxEventBytes: number;
  readonly #report: Report | undefined;
  readonly #chunk = new ChunkReader();
  readonly #block: EventBlock;
  readonly #cutter = new JsonCutter();

  /** The unfinished line, copied: chunks belong to the caller. */
  readonly #tail = new ByteBuffer();
  #tailOffset = 0;
  #tailIsBlank = true;

  /** Position of the chunk in the body. */
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

  /** Counts complete frames that the caller has read itself. Only valid between frames. */
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

  /** The byte order mark may arrive in three pieces. Bytes that only begin like one belong to the first line. */
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

  /** Reads to the end of the line or of the chunk; returns the next position. */
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
      // A document ends the open event; a line that only begins like one does not.
      if (this.#block.hasData) this.#block.dispatch();
      this.#block.bare(cutter.value.bytes, 0, cutter.value.length, cutter.offset);
      cutter.value.clear();
    } else if (cut === 'refused') this.#resumeLine(cutter.lineStart);
    // An empty array is read as an unknown line, which is ignored.
    else if (cut === 'end' && cutter.isEmpty) this.#resumeLine(cutter.opener);
    // After a document a new line begins: concatenated documents, or the line end.
    this.#tailIsBlank = this.#tail.length === 0;
    return cutter.position;
  }

  /** The brace or bracket began no document: an ordinary line begins with this byte. */
  #resumeLine(byte: number | undefined): void {
    if (byte !== undefined) this.#keep(Uint8Array.of(byte), 0, 1, this.#cutter.offset);
  }

  /** One message for both limits, because the split of the bytes decides which is exceeded first. */
  #fail(offset: number): void {
    const limits = `maxLineBytes ${formatBytes(this.#maxLineBytes)}, maxEventBytes ${formatBytes(this.#maxEventBytes)}`;
    const failure = ownError(
      'too_large',
      'PAYLOAD_TOO_LARGE',
      `a line or an event of the stream is longer than allowed (${limits})`,
    );
    this.hasFailed = true;
    this.#block.put({ data: '', failure, offset: this.#block.startOr(offset) });
    this.#close();
  }

  /** Stops reading and releases the buffers. */
  #close(): void {
    this.#closed = true;
    this.#tail.free();
    this.#cutter.value.free();
    this.#block.clear();
  }
}

const MIB = 1024 * 1024;

const formatBytes = (bytes: number): string => (bytes % MIB === 0 ? `${bytes / MIB} MiB` : `${bytes} bytes`);

function skipBlanks(bytes: Uint8Array, from: number): number {
  let at = from;
  while (bytes[at] === SPACE || bytes[at] === TAB) at++;
  return at;
}

/** Assembles lines into frames: the fields of the open event, by the rules of WHATWG EventSource. */
class EventBlock {
  /** An event has more data than allowed. The reader checks it after each line. */
  isTooLarge = false;

  readonly #chunk: ChunkReader;
  readonly #maxBytes: number;
  readonly #report: Report | undefined;
  #frames: SseFrame[] = [];

  #offset = -1;
  #data: string | undefined;
  #dataBytes = 0;
  #event = '';
  #id: string | undefined;
  #retry: number | undefined;

  readonly #lastName = new ByteBuffer();
  #lastEvent = '';
  #ended = false;
  #reportedBare = false;

  constructor(chunk: ChunkReader, maxBytes: number, report: Report | undefined) {
    this.#chunk = chunk;
    this.#maxBytes = maxBytes;
    this.#report = report;
  }

  /** No line of an event was read. */
  get isEmpty(): boolean {
    return this.#offset < 0;
  }

  get hasData(): boolean {
    return this.#data !== undefined;
  }

  takeFrames(): readonly SseFrame[] {
    if (this.#frames.length === 0) return NOTHING;
    const frames = this.#frames;
    this.#frames = [];
    return frames;
  }

  put(frame: SseFrame): void {
    this.#frames.push(frame);
  }

  /** Where the open event begins, or `offset` when none is open. */
  startOr(offset: number): number {
    return this.#offset < 0 ? offset : this.#offset;
  }

  /** Reads one line, without its end. */
  line(line: Uint8Array, from: number, to: number, offset: number): void {
    if (this.#offset < 0) this.#offset = offset;
    // The first byte distinguishes the fields: d(ata), e(vent, rror), i(d), r(etry); [ begins a bare [DONE].
    switch (line[from]) {
      case LOWER_D:
        this.#dataField(line, findValue(line, from, to, DATA), to, offset);
        break;
      case LOWER_E:
        this.#eventField(line, findValue(line, from, to, EVENT), to);
        this.#errorField(line, findValue(line, from, to, ERROR), to, offset);
        break;
      case LOWER_I:
        this.#idField(line, findValue(line, from, to, ID), to);
        break;
      case LOWER_R:
        this.#retryField(line, findValue(line, from, to, RETRY), to);
        break;
      case OPEN_ARRAY:
        this.#bareDone(line, from, to, offset);
    }
  }

  /** Whether the unfinished line, read as data, already exceeds the limit. */
  wouldOverflow(line: Uint8Array, length: number): boolean {
    if (this.#dataBytes + length <= this.#maxBytes) return false;
    const start = findValue(line, 0, length, DATA);
    return start >= 0 && this.#dataBytes + length - start > this.#maxBytes;
  }

  /** A blank line: the event is complete. */
  dispatch(): void {
    if (this.#data !== undefined) this.#putField(this.#data);
    else if (this.#event === 'error') {
      this.#report?.('sse/error-event-without-data', this.#offset);
      this.#putField('');
    }
    this.clear();
  }

  /** Adds a JSON document outside SSE. An `event:` line right before it names it. */
  bare(bytes: Uint8Array, from: number, to: number, offset: number): void {
    if (!this.#reportedBare) this.#report?.('sse/bare-json', offset);
    this.#reportedBare = true;
    this.#putEvent({ data: this.#text(bytes, from, to, offset), bare: true, offset });
    this.clear();
  }

  /** The body ended; `line` is what follows the last line end. */
  end(line: Uint8Array, length: number, offset: number): void {
    this.#ended = true;
    this.line(line, 0, length, offset);
    if (this.isTooLarge || (this.#data === undefined && this.#event === '')) return;
    if (this.#data === undefined ? this.#event === 'error' : isComplete(this.#data)) {
      this.#report?.('sse/unterminated-event', this.#offset);
      this.dispatch();
    } else this.#report?.('sse/truncated-event', this.#offset);
  }

  #dataField(line: Uint8Array, start: number, to: number, offset: number): void {
    if (start < 0) return;
    this.#dataBytes += to - start;
    if (this.#dataBytes > this.#maxBytes) {
      this.isTooLarge = true;
      return;
    }
    const text = this.#text(line, start, to, offset);
    this.#data = this.#data === undefined ? text : `${this.#data}\n${text}`;
    // Count the line end, too: many empty data lines also make a large event.
    this.#dataBytes++;
  }

  #eventField(line: Uint8Array, start: number, to: number): void {
    if (start < 0) return;
    // Streams repeat a few names, and comparing bytes is much cheaper than decoding them.
    const last = this.#lastName;
    if (to - start !== last.length || !hasBytesAt(last.bytes, line, start, last.length)) {
      last.clear();
      last.append(line, start, to);
      this.#lastEvent = decodeUtf8(line, start, to);
    }
    this.#event = this.#lastEvent;
  }

  /** llama.cpp and servers built on it write `error: {json}` instead of `data: {"error":…}`. */
  #errorField(line: Uint8Array, start: number, to: number, offset: number): void {
    if (start < 0) return;
    if (this.#data !== undefined) this.dispatch();
    this.#report?.('sse/error-field', offset);
    this.#offset = this.startOr(offset);
    this.#event = 'error';
    this.#dataField(line, start, to, offset);
    if (!this.#ended && !this.isTooLarge) this.dispatch();
  }

  #idField(line: Uint8Array, start: number, to: number): void {
    if (start < 0) return;
    const id = decodeUtf8(line, start, to);
    if (!id.includes('\0')) this.#id = id;
  }

  #retryField(line: Uint8Array, start: number, to: number): void {
    if (start < 0) return;
    const text = decodeUtf8(line, start, to);
    if (/^[0-9]{1,15}$/.test(text)) this.#retry = Number(text);
  }

  /** NDJSON servers that send the sentinel write it as a line without a field. */
  #bareDone(line: Uint8Array, from: number, to: number, offset: number): void {
    if (to - from > 64 || !isDone(decodeUtf8(line, from, to))) return;
    if (this.#data !== undefined) this.dispatch();
    this.bare(line, from, to, offset);
  }

  #text(bytes: Uint8Array, from: number, to: number, offset: number): string {
    const ascii = this.#chunk.ascii(bytes, from, to);
    if (ascii !== undefined) return ascii;
    const text = decodeUtf8(bytes, from, to);
    // U+FFFD may also be in the source itself, so check the bytes again.
    if (this.#report !== undefined && text.includes('\ufffd') && !isUtf8(bytes, from, to))
      this.#report('sse/invalid-utf8', offset);
    return text;
  }

  #putField(data: string): void {
    const frame: SseFrame = { data, offset: this.#offset };
    if (this.#id !== undefined) frame.id = this.#id;
    if (this.#retry !== undefined) frame.retry = this.#retry;
    this.#putEvent(frame);
  }

  #putEvent(frame: SseFrame): void {
    if (this.#event !== '') frame.event = this.#event;
    this.#frames.push(frame);
  }

  clear(): void {
    this.#offset = -1;
    this.#data = this.#id = this.#retry = undefined;
    this.#dataBytes = 0;
    this.#event = '';
  }
}

/** Whether data without its blank line is complete: a payload, `[DONE]`, or several of them, one per line. */
const isComplete = (data: string): boolean => isPayload(data) || data.split('\n').every(isPayload);

/** Whether a text is `[DONE]` or JSON. */
function isPayload(text: string): boolean {
  try {
    return isDone(text) || JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
}

const isDone = (data: string): boolean => data.trim() === '[DONE]';

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);

const DATA = /* @__PURE__ */ ascii('data');

const EVENT = /* @__PURE__ */ ascii('event');

const ID = /* @__PURE__ */ ascii('id');

const RETRY = /* @__PURE__ */ ascii('retry');

const ERROR = /* @__PURE__ */ ascii('error');

/**
 * Where the value of the field begins; -1 when the line is another field. A line without a colon has an empty value.
 */
function findValue(line: Uint8Array, from: number, to: number, name: Uint8Array): number {
  const end = from + name.length;
  if (end > to || !hasBytesAt(name, line, from)) return -1;
  if (end === to) return to;
  if (line[end] !== COLON) return -1;
  // Only one space is removed: further ones belong to the value.
  return end + 1 < to && line[end + 1] === SPACE ? end + 2 : end + 1;
}
