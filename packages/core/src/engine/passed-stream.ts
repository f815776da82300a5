import type { StreamResult } from '../accumulate/message.ts';
import { isObject, parseJson } from '../accumulate/overlay.ts';
import type { CanonicalError } from '../canonical/errors.ts';
import type { CanonicalStreamEvent, MessageStart } from '../canonical/events.ts';
import type { Note } from '../canonical/notes.ts';
import type { Diagnostic } from '../doctor/rules.ts';
import { ByteBuffer, CR, decodeUtf8, LF, SPACE, TAB } from '../sse/bytes.ts';
import { encodeSse } from '../sse/encode.ts';
import { opensJson } from '../sse/json-array.ts';
import { NOTHING } from '../stage.ts';
import type { EventReader } from './event-reader.ts';
import { FrameEdge } from './frame-edge.ts';
import { type AnswerStream, brokenOff, encodeFailure, readerOf, type StreamOptions } from './stream-converter.ts';
import { Tap } from './tap.ts';

/** Ends the line and the event that a server left open. */
const BLANK_LINE = Uint8Array.of(0x0a, 0x0a);

/** White space and the bytes of the byte order mark: they do not show what a body is. */
const INSIGNIFICANT: ReadonlySet<number> = new Set([TAB, LF, CR, SPACE, 0xef, 0xbb, 0xbf]);

/** Passes an event stream on, byte for byte; a JSON body in its place is converted. The first significant byte decides. */
export function passOrConvert(options: StreamOptions, convert: () => AnswerStream): AnswerStream {
  const before: Uint8Array[] = [];
  let stream: AnswerStream | undefined;
  // A body without a significant byte is no stream, which the converter reports.
  const settle = (): AnswerStream => {
    stream ??= convert();
    return stream;
  };
  const choose = (chunk: Uint8Array): Iterable<Uint8Array> => {
    const at = chunk.findIndex((byte) => !INSIGNIFICANT.has(byte));
    if (at < 0) {
      before.push(chunk.slice());
      return NOTHING;
    }
    if (opensJson(chunk[at])) return settle().push(chunk.subarray(at));
    const passed = new PassedStream(options);
    stream = passed;
    const pieces = before.splice(0).flatMap((piece) => [...passed.push(piece)]);
    return pieces.length > 0 ? [...pieces, ...passed.push(chunk)] : passed.push(chunk);
  };
  return {
    push: (chunk) => (stream ? stream.push(chunk) : choose(chunk)),
    end: () => settle().end(),
    fail: (reason) => settle().fail(reason),
    get hasFailed() {
      return stream?.hasFailed ?? false;
    },
    get hasError() {
      return stream?.hasError ?? false;
    },
    get notes() {
      return stream?.notes ?? [];
    },
    get diagnostics() {
      return stream?.diagnostics ?? [];
    },
    get error() {
      return stream?.error;
    },
    get result() {
      return stream?.result;
    },
  };
}

/**
 * An event stream whose frames go through to the byte. A decoded copy is read along: it feeds the tap, and tells whether the stream has come to
 * its end. A frame is passed on when it is whole: behind half a one, nobody would read the error that ends a stream which broke off.
 */
class PassedStream implements AnswerStream {
  readonly #options: StreamOptions;
  readonly #reader: EventReader;
  readonly #edge = new FrameEdge();
  readonly #tap: Tap;
  /** The frame that has begun and not ended. */
  readonly #held = new ByteBuffer();
  /** Bytes that were passed on. */
  #passed = 0;
  #start: MessageStart | undefined;
  #error: CanonicalError | undefined;
  #hasEnded = false;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#reader = readerOf(options);
    this.#tap = new Tap(options.tap);
  }

  push(chunk: Uint8Array): Iterable<Uint8Array> {
    if (this.#hasEnded) return NOTHING;
    for (const event of this.#reader.push(chunk)) this.#observe(event);
    if (this.#reader.failedAt !== undefined) return this.#breakOff(chunk, this.#reader.failedAt);
    const edge = this.#edge.in(chunk);
    const pieces = edge === chunk.length && this.#held.length === 0 ? [chunk] : this.#cut(chunk, edge);
    this.#passed += edge;
    return pieces;
  }

  end(): Iterable<Uint8Array> {
    return this.#finish();
  }

  fail(reason: string | CanonicalError): Iterable<Uint8Array> {
    return this.#finish(brokenOff(reason));
  }

  get hasFailed(): boolean {
    return this.#reader.hasFailed;
  }

  get hasError(): boolean {
    return this.#error !== undefined || this.#reader.hasError;
  }

  get notes(): Note[] {
    return this.#reader.notes;
  }

  get diagnostics(): Diagnostic[] {
    return this.#reader.diagnostics;
  }

  get error(): CanonicalError | undefined {
    return this.#error;
  }

  get result(): StreamResult | undefined {
    return this.#tap.result;
  }

  /**
   * An early end is told as the reason for it, where there is one. A stream that had said everything needs none. An error of Gemini comes in one
   * of two forms, each of which some clients miss: it is repeated in both.
   */
  #finish(reason?: CanonicalError): Iterable<Uint8Array> {
    if (this.#hasEnded) return NOTHING;
    this.#hasEnded = true;
    for (const event of this.#reader.end()) this.#observe(reason && isOwnError(event) ? { type: 'error', error: reason } : event);
    if (this.#error && !this.#error.upstream) return [this.#failure(this.#error)];
    const rest = this.#takeRest();
    if (this.#error && this.#options.from.repeatsErrors) return [...rest, BLANK_LINE, this.#failure(this.#error)];
    const terminal = this.#missingTerminal();
    return terminal ? [...rest, terminal] : rest;
  }

  /** The last frame, if it is whole; half a frame is dropped. */
  #takeRest(): readonly Uint8Array[] {
    if (this.#reader.hasLastFrame) return [this.#takeHeld(), BLANK_LINE];
    return isDocument(this.#held) ? [this.#takeHeld()] : NOTHING;
  }

  /** Clients wait for the terminal frame or throw without it: it is added when the upstream sent a finish reason and left it out. */
  #missingTerminal(): Uint8Array | undefined {
    const { terminal } = this.#options.from;
    const isMissing = terminal && this.#reader.diagnostics.some(({ rule }) => rule === terminal.rule);
    return isMissing ? UTF8.encode(encodeSse(terminal.frame)) : undefined;
  }

  #observe(event: CanonicalStreamEvent): void {
    this.#tap.push(event);
    if (event.type === 'content_block_delta') return;
    if (event.type === 'message_start') this.#start = event;
    else if (event.type === 'error') this.#error ??= event.error;
  }

  /** What was held back and the whole frames of the chunk; the rest of it is held back in turn. */
  #cut(chunk: Uint8Array, edge: number): Uint8Array[] {
    const pieces =
      edge === 0 ? [] : this.#held.length > 0 ? [this.#takeHeld(), chunk.subarray(0, edge)] : [chunk.subarray(0, edge)];
    if (edge < chunk.length) this.#held.append(chunk, edge, chunk.length);
    return pieces;
  }

  #takeHeld(): Uint8Array {
    const held = this.#held.bytes.slice(0, this.#held.length);
    this.#passed += held.length;
    this.#held.clear();
    return held;
  }

  /** The frames before the one that cannot be read, and why nothing follows. */
  #breakOff(chunk: Uint8Array, offset: number): Uint8Array[] {
    this.#hasEnded = true;
    this.#held.append(chunk, 0, chunk.length);
    const whole = this.#held.bytes.slice(0, Math.max(0, Math.min(offset - this.#passed, this.#held.length)));
    this.#held.free();
    return [whole, this.#failure(this.#error ?? brokenOff('it cannot be read'))];
  }

  #failure(reason: CanonicalError): Uint8Array {
    return encodeFailure(reason, this.#options, this.#start);
  }
}

const UTF8 = new TextEncoder();

/** Gemini tells an error in a stream as a document without `data:`, and without a blank line behind it. */
const isDocument = ({ bytes, length }: ByteBuffer): boolean => length > 0 && isObject(parseJson(decodeUtf8(bytes, 0, length)));

/** One that we found ourselves. */
const isOwnError = (event: CanonicalStreamEvent): boolean => event.type === 'error' && !event.error.upstream;
