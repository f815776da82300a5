import type { Report } from '../doctor/rules.ts';
import { OPEN_ARRAY } from '../json/scanner.ts';
import { NOTHING } from '../stage.ts';
import { ByteBuffer, COLON, decodeUtf8, isAt, isUtf8, LOWER_D, LOWER_E, LOWER_I, LOWER_R, SPACE } from './bytes.ts';
import type { ChunkReader } from './chunk.ts';
import type { SseFrame } from './frame.ts';

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
const DATA = ascii('data');
const EVENT = ascii('event');
const ID = ascii('id');
const RETRY = ascii('retry');
const ERROR = ascii('error');

/** Where the value of the field begins; -1 when the line is another field. A line without a colon is a field with an empty value. */
function valueStart(line: Uint8Array, from: number, to: number, name: Uint8Array): number {
  const end = from + name.length;
  if (end > to || !isAt(name, line, from)) return -1;
  if (end === to) return to;
  if (line[end] !== COLON) return -1;
  // Only one space is taken off: the rest belongs to the value.
  return end + 1 < to && line[end + 1] === SPACE ? end + 2 : end + 1;
}

const isDone = (data: string): boolean => data.trim() === '[DONE]';

/** `[DONE]`, or JSON. */
function isPayload(text: string): boolean {
  try {
    return isDone(text) || JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
}

/** Data that is worth keeping without its blank line: a payload, the sentinel, or several of them, a line each. */
const isWhole = (data: string): boolean => isPayload(data) || data.split('\n').every(isPayload);

/** Puts lines together to frames: the fields of the event that is open, by the rules of WHATWG EventSource. */
export class EventBlock {
  /** An event has more data than allowed. The reader looks after each line. */
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
  #saidBare = false;

  constructor(chunk: ChunkReader, maxBytes: number, report: Report | undefined) {
    this.#chunk = chunk;
    this.#maxBytes = maxBytes;
    this.#report = report;
  }

  /** No line of an event has come. */
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

  /** Where the open block, or else the line at `offset`, begins. */
  startOr(offset: number): number {
    return this.#offset < 0 ? offset : this.#offset;
  }

  /** One line, without its end. */
  line(line: Uint8Array, from: number, to: number, offset: number): void {
    if (this.#offset < 0) this.#offset = offset;
    // The first byte tells the fields apart: d(ata), e(vent, rror), i(d), r(etry); [ is that of a bare [DONE].
    switch (line[from]) {
      case LOWER_D:
        this.#dataField(line, valueStart(line, from, to, DATA), to, offset);
        break;
      case LOWER_E:
        this.#eventField(line, valueStart(line, from, to, EVENT), to);
        this.#errorField(line, valueStart(line, from, to, ERROR), to, offset);
        break;
      case LOWER_I:
        this.#idField(line, valueStart(line, from, to, ID), to);
        break;
      case LOWER_R:
        this.#retryField(line, valueStart(line, from, to, RETRY), to);
        break;
      case OPEN_ARRAY:
        this.#bareDone(line, from, to, offset);
    }
  }

  /** Would the unfinished line, read as data, pass the limit already? */
  wouldOverflow(line: Uint8Array, length: number): boolean {
    if (this.#dataBytes + length <= this.#maxBytes) return false;
    const start = valueStart(line, 0, length, DATA);
    return start >= 0 && this.#dataBytes + length - start > this.#maxBytes;
  }

  /** The blank line. */
  dispatch(): void {
    if (this.#data !== undefined) this.#putField(this.#data);
    else if (this.#event === 'error') {
      this.#report?.('sse/error-event-without-data', this.#offset);
      this.#putField('');
    }
    this.clear();
  }

  /** A JSON document outside SSE. An `event:` line right before it names it. */
  bare(bytes: Uint8Array, from: number, to: number, offset: number): void {
    if (!this.#saidBare) this.#report?.('sse/bare-json', offset);
    this.#saidBare = true;
    this.#putEvent({ data: this.#text(bytes, from, to, offset), bare: true, offset });
    this.clear();
  }

  /** The body ended; `line` is what came after the last line end. */
  end(line: Uint8Array, length: number, offset: number): void {
    this.#ended = true;
    this.line(line, 0, length, offset);
    if (this.isTooLarge || (this.#data === undefined && this.#event === '')) return;
    if (this.#data === undefined ? this.#event === 'error' : isWhole(this.#data)) {
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
    // For the line end that joins it to the next: many empty lines are a big event too.
    this.#dataBytes++;
  }

  #eventField(line: Uint8Array, start: number, to: number): void {
    if (start < 0) return;
    // Streams repeat a few names: comparing bytes is much cheaper than decoding them.
    const last = this.#lastName;
    if (to - start !== last.length || !isAt(last.bytes, line, start, last.length)) {
      last.clear();
      last.append(line, start, to);
      this.#lastEvent = decodeUtf8(line, start, to);
    }
    this.#event = this.#lastEvent;
  }

  // llama.cpp and servers built on it write `error: {json}` in place of `data: {"error":…}`.
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

  // NDJSON servers that were taught the sentinel write it as a line of its own.
  #bareDone(line: Uint8Array, from: number, to: number, offset: number): void {
    if (to - from > 64 || !isDone(decodeUtf8(line, from, to))) return;
    if (this.#data !== undefined) this.dispatch();
    this.bare(line, from, to, offset);
  }

  #text(bytes: Uint8Array, from: number, to: number, offset: number): string {
    const ascii = this.#chunk.ascii(bytes, from, to);
    if (ascii !== undefined) return ascii;
    const text = decodeUtf8(bytes, from, to);
    // U+FFFD may also stand in the bytes as such: only then is the second look needed.
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
