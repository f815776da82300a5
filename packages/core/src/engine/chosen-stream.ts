import type { StreamResult } from '../accumulate/message.ts';
import type { CanonicalError } from '../canonical/errors.ts';
import type { Note } from '../canonical/notes.ts';
import type { Diagnostic } from '../doctor/rules.ts';
import { CR, LF, SPACE, TAB } from '../sse/bytes.ts';
import { opensJson } from '../sse/json-array.ts';
import { NOTHING } from '../stage.ts';
import { PassedStream } from './passed-stream.ts';
import type { AnswerStream, StreamOptions } from './stream-converter.ts';

/** White space, and the byte order mark. */
const SAYS_NOTHING: ReadonlySet<number> = new Set([TAB, LF, CR, SPACE, 0xef, 0xbb, 0xbf]);

/** The first byte chooses: an event stream is passed on, a JSON body in the place of one is told as the stream that was asked for. */
export class ChosenStream implements AnswerStream {
  readonly #options: StreamOptions;
  readonly #convert: () => AnswerStream;
  #stream: AnswerStream | undefined;
  /** What came before the byte that chooses. */
  #before: Uint8Array[] = [];

  constructor(options: StreamOptions, convert: () => AnswerStream) {
    this.#options = options;
    this.#convert = convert;
  }

  push(chunk: Uint8Array): Iterable<Uint8Array> {
    return this.#stream ? this.#stream.push(chunk) : this.#choose(chunk);
  }

  end(): Iterable<Uint8Array> {
    return this.#settled().end();
  }

  fail(reason: string | CanonicalError): Iterable<Uint8Array> {
    return this.#settled().fail(reason);
  }

  get hasFailed(): boolean {
    return this.#stream?.hasFailed ?? false;
  }

  get hasError(): boolean {
    return this.#stream?.hasError ?? false;
  }

  get notes(): Note[] {
    return this.#stream?.notes ?? [];
  }

  get diagnostics(): Diagnostic[] {
    return this.#stream?.diagnostics ?? [];
  }

  get error(): CanonicalError | undefined {
    return this.#stream?.error;
  }

  get result(): StreamResult | undefined {
    return this.#stream?.result;
  }

  #choose(chunk: Uint8Array): Iterable<Uint8Array> {
    const at = chunk.findIndex((byte) => !SAYS_NOTHING.has(byte));
    if (at < 0) {
      this.#before.push(chunk.slice());
      return NOTHING;
    }
    const isJson = opensJson(chunk[at]);
    const stream = isJson ? this.#convert() : new PassedStream(this.#options);
    this.#stream = stream;
    // A reader of JSON need not know of what says nothing; an event stream goes through to the byte.
    if (isJson) return stream.push(chunk.subarray(at));
    const pieces = this.#before.splice(0).flatMap((piece) => [...stream.push(piece)]);
    return pieces.length > 0 ? [...pieces, ...stream.push(chunk)] : stream.push(chunk);
  }

  /** A body that says nothing is no stream, and is told so. */
  #settled(): AnswerStream {
    this.#stream ??= this.#convert();
    return this.#stream;
  }
}
