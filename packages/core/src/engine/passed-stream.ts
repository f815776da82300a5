import { MessageAccumulator, type StreamResult } from '../accumulate/message.ts';
import type { CanonicalError } from '../canonical/errors.ts';
import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { Note } from '../canonical/notes.ts';
import type { Diagnostic } from '../doctor/rules.ts';
import { NOTHING } from '../stage.ts';
import { EventReader } from './event-reader.ts';
import { type AnswerStream, encodeFailure, type StreamOptions } from './stream-converter.ts';

/** Ends the line and the event that may have been cut. */
const CUT = new TextEncoder().encode('\n\n');

/** Bytes that go through untouched; a decoded copy feeds the tap, when there is one. */
export class PassedStream implements AnswerStream {
  readonly #options: StreamOptions;
  readonly #reader: EventReader | undefined;
  readonly #message = new MessageAccumulator();
  #error: CanonicalError | undefined;
  #hasEnded = false;

  constructor(options: StreamOptions) {
    const { from, tap, onEvent } = options;
    this.#options = options;
    this.#reader = tap ? new EventReader({ protocol: from.protocol, ...(onEvent && { onEvent }) }) : undefined;
  }

  push(chunk: Uint8Array): Iterable<Uint8Array> {
    if (this.#reader) this.#take(this.#reader.push(chunk));
    return [chunk];
  }

  end(): Iterable<Uint8Array> {
    if (this.#reader) this.#take(this.#reader.end());
    return NOTHING;
  }

  /** A body that breaks off says nothing; the error behind it does. A list cannot be closed from here, and stays open. */
  fail(reason: string | CanonicalError): Iterable<Uint8Array> {
    this.end();
    if (this.#hasEnded || this.#options.framing === 'json-array') return NOTHING;
    return [CUT, ...encodeFailure(reason, this.#options)];
  }

  get hasFailed(): boolean {
    return false;
  }

  get notes(): Note[] {
    return this.#reader?.notes ?? [];
  }

  get diagnostics(): Diagnostic[] {
    return this.#reader?.diagnostics ?? [];
  }

  get error(): CanonicalError | undefined {
    return this.#error;
  }

  get result(): StreamResult | undefined {
    return this.#reader && this.#message.finish();
  }

  #take(events: Iterable<CanonicalStreamEvent>): void {
    for (const event of events) {
      if (event.type === 'error') this.#error ??= event.error;
      if (event.type === 'message_stop') this.#hasEnded = true;
      this.#message.push(event);
    }
  }
}
