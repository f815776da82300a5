/** Runs a conversion over recorded bytes, and follows every frame to its events and to the text that the client gets. */

import type { CanonicalError, CanonicalStreamEvent, Diagnostic, Note, ResponseStream, StreamOptions } from '@sluice/core';
import { type Boundary, type Frame, findBoundary } from './frames.ts';

/** What a conversion reports while it runs. */
type TraceObservers = Required<Pick<StreamOptions, 'onEvent' | 'onEncoded'>>;

/** A stream to convert again. */
export interface TraceSource {
  body: Uint8Array;
  frames: readonly Frame[];
  reads: readonly Boundary[];
  /** Creates the conversion. */
  open(observers: TraceObservers): ResponseStream;
  /** How the stream ended: as usual, with an error, or not at all. */
  ending: 'end' | 'open' | CanonicalError;
  /** Text that is sent on its own after the stream, for its error. */
  repeat?(error: CanonicalError, diagnostics: readonly Diagnostic[]): Uint8Array | undefined;
  /** Applied to what is sent from the read on that has an error. */
  redact(text: string): string;
}

/** What a frame led to. */
export interface Trace {
  events: TracedEvent[];
  /** The client's bytes in the order in which they were written. */
  pieces: Piece[];
  notes: { note: Note; frame: number }[];
  stream: ResponseStream;
}

/** An event and its frame; the number of frames stands for the end of the stream. */
interface TracedEvent {
  event: CanonicalStreamEvent;
  frame: number;
}

/** Bytes for the client. */
export interface Piece {
  bytes: Uint8Array;
  frame: number;
  /** The event that they encode; undefined where bytes are passed on, and at the end of the stream. */
  event: number | undefined;
}

/** Converts a recorded stream again. The result is that of the gateway: conversions do not depend on how bytes are split. */
export function traceStream(source: TraceSource): Trace {
  return new Tracer(source).run();
}

class Tracer {
  readonly #source: TraceSource;
  readonly #trace: Trace;
  /** The frame that is converted. */
  #frame = 0;
  /** Events that were encoded, or passed on. */
  #encoded = 0;
  /** What the current call has encoded. */
  #written: { text: string; frame: number; event: number | undefined }[] = [];
  /** The first piece of the current read. */
  #readStart = 0;
  #read = 0;
  readonly #noted = new Set<Note>();

  constructor(source: TraceSource) {
    this.#source = source;
    const stream = source.open({
      onEvent: (event) => void this.#trace.events.push({ event, frame: this.#frame }),
      onEncoded: (event, text) => this.#onEncoded(event, text),
    });
    this.#trace = { events: [], pieces: [], notes: [], stream };
  }

  run(): Trace {
    const { body, frames, reads } = this.#source;
    const { stream } = this.#trace;
    let at = 0;
    for (const [index, { to }] of frames.entries()) {
      this.#frame = index;
      this.#enterRead(findBoundary(reads, to - 1));
      if (!stream.hasFailed) this.#add(stream.push(body.subarray(at, to)));
      at = to;
      this.#findNotes();
    }
    if (at < body.length && !stream.hasFailed) this.#add(stream.push(body.subarray(at)));
    this.#enterRead(-1);
    if (frames.at(-1)?.kind !== 'event' || isTerminated(body)) this.#frame = frames.length;
    this.#finish();
    this.#enterRead(-2);
    this.#findNotes(Number.POSITIVE_INFINITY);
    return this.#trace;
  }

  #finish(): void {
    const { ending, repeat } = this.#source;
    const { stream } = this.#trace;
    if (ending === 'open') return;
    this.#add(ending === 'end' ? stream.end() : stream.fail(ending));
    const repeated = stream.error && repeat?.(stream.error, stream.diagnostics);
    if (repeated) this.#add([repeated]);
  }

  #onEncoded(event: CanonicalStreamEvent | undefined, text: string): void {
    const index = event ? this.#encoded++ : undefined;
    const traced = index === undefined ? undefined : this.#trace.events[index];
    // The reason of a failure replaces the error that the reader found.
    if (event && traced) traced.event = event;
    if (text !== '') this.#written.push({ text, frame: traced?.frame ?? this.#frame, event: index });
  }

  /** Bytes that no event was encoded to are passed on. */
  #add(bytes: Iterable<Uint8Array>): void {
    const { pieces } = this.#trace;
    const [only, another] = this.#written;
    // Most calls encode one event, whose bytes need not be encoded again.
    if (!only || !another)
      for (const part of bytes) pieces.push({ bytes: part, frame: only?.frame ?? this.#frame, event: only?.event });
    else for (const { text, frame, event } of this.#written) pieces.push({ bytes: UTF8.encode(text), frame, event });
    if (only) this.#written = [];
  }

  /** The gateway writes once per read, and redacts what it writes as soon as the stream has an error. */
  #enterRead(read: number): void {
    if (read === this.#read) return;
    this.#read = read;
    const { pieces, stream } = this.#trace;
    if (stream.hasError)
      for (let at = this.#readStart; at < pieces.length; at++) {
        const piece = pieces[at];
        if (piece) piece.bytes = UTF8.encode(this.#source.redact(new TextDecoder().decode(piece.bytes)));
      }
    this.#readStart = pieces.length;
  }

  /** The place of a note is the frame after which it is there. Many notes are placed at the end, or this would be quadratic. */
  #findNotes(max = MAX_PLACED_NOTES): void {
    const { stream, notes } = this.#trace;
    if (notes.length >= max) return;
    for (const note of stream.notes) {
      if (this.#noted.has(note)) continue;
      this.#noted.add(note);
      notes.push({ note, frame: this.#frame });
    }
  }
}

const UTF8 = new TextEncoder();

const MAX_PLACED_NOTES = 200;

/** Whether the last frame was complete before the end of the body. */
const isTerminated = (body: Uint8Array): boolean => body.at(-1) === 0x0a && (body.at(-2) === 0x0a || body.at(-3) === 0x0a);
