import { MessageAccumulator, type StreamResult } from '../accumulate/message.ts';
import type { CanonicalStreamEvent, MessageStart } from '../canonical/events.ts';
import { type CanonicalError, type Note, ownError } from '../canonical/notes.ts';
import { NOTHING, type Stage } from '../canonical/stage.ts';
import type { Codec, Framing } from '../codec/protocol.ts';
import type { Diagnostic } from '../rules/index.ts';
import { encodeSse, type SseFrame } from '../sse/encode.ts';
import { type AnswerOptions, createDepthInspection, NoteList, profileOf } from './context.ts';
import { EventReader, type EventReaderOptions } from './reader.ts';
import { answerContext, UnknownTeller } from './response.ts';
import { callsOf, restoreEvents } from './restore.ts';

/** Frames to the text of a body. */
export interface Framer {
  frame(frame: SseFrame): string;
  /** What closes the body. */
  end(): string;
}

/** What `framing` makes of the frames of a protocol. */
export function createFramer({ lineEnd = '\n' }: Pick<Codec, 'lineEnd'>, framing: Framing): Framer {
  if (framing === 'json-array') return createArrayFramer();
  const options = { lineEnd };
  return { frame: (frame) => encodeSse(frame, options), end: () => '' };
}

/** Every event is an element, an error too; its repetition as bare JSON is for readers of event streams. */
function createArrayFramer(): Framer {
  let isOpen = false;
  let isClosed = false;
  return {
    frame: ({ data, bare }) => {
      if (bare) return '';
      const before = isOpen ? ',\r\n' : '[';
      isOpen = true;
      return before + data;
    },
    end: () => {
      if (isClosed) return '';
      isClosed = true;
      return isOpen ? ']' : '[]';
    },
  };
}

/** What is kept of a stream that goes by: nothing, the whole message, or only what it used. */
export class Tap {
  readonly #message: MessageAccumulator | undefined;
  readonly #keepsContent: boolean;

  constructor(kept: boolean | 'usage' | undefined) {
    this.#message = kept ? new MessageAccumulator() : undefined;
    this.#keepsContent = kept === true;
  }

  push(event: CanonicalStreamEvent): void {
    if (this.#keepsContent || !isContent(event)) this.#message?.push(event);
  }

  get result(): StreamResult | undefined {
    return this.#message?.finish();
  }
}

const isContent = ({ type }: CanonicalStreamEvent): boolean =>
  type === 'content_block_delta' || type === 'content_block_start' || type === 'content_block_stop';

type ReaderOptions = Pick<EventReaderOptions, 'maxLineBytes' | 'maxEventBytes' | 'malformed' | 'onEvent' | 'inspect'>;

/** Without `inspect`, tool arguments nested more than 256 levels deep end the stream in an error. */
export interface StreamOptions extends AnswerOptions, ReaderOptions {
  /** How the client wants the stream framed; SSE when left out. */
  framing?: Framing;
  /** Keeps the whole message beside the stream: `result` has it. `usage`: only what it used, and not what it said, so that nothing grows. */
  tap?: boolean | 'usage';
}

/** A stream on its way to the client, and what is known of it afterwards. */
export interface AnswerStream extends Stage<Uint8Array, Uint8Array> {
  /** In place of `end`: the source broke off for this reason, and the client is told so in its own protocol. */
  fail(reason: string | CanonicalError): Iterable<Uint8Array>;
  /** A limit was passed: whatever follows is ignored, and reading on is of no use. */
  readonly hasFailed: boolean;
  /** Among what has been passed on are words of the source about an error. */
  readonly hasError: boolean;
  /** What could not be carried, or was carried in other words. */
  readonly notes: Note[];
  /** What the source did wrong. */
  readonly diagnostics: Diagnostic[];
  /** The error in which the client's stream ends: the source's own, its early end, or a loss that the policy refuses. */
  readonly error: CanonicalError | undefined;
  /** The whole message, when it is tapped. */
  readonly result: StreamResult | undefined;
}

/**
 * A stream of one protocol as a stream of another, bytes to bytes, without I/O. What the source does wrong is repaired on the way; an early
 * end, or a failure, ends in an error of the client's own protocol.
 *
 * ```ts
 * const converter = streamConverter({ from: openaiChatCodec, to: anthropicMessagesCodec, request });
 * for await (const chunk of upstream) for (const bytes of converter.push(chunk)) client.write(bytes);
 * for (const bytes of converter.end()) client.write(bytes);
 * converter.notes;
 * ```
 */
export const streamConverter = (options: StreamOptions): AnswerStream => new StreamConverter(options);

const UTF8 = new TextEncoder();

class StreamConverter implements AnswerStream {
  readonly #reader: EventReader;
  readonly #restore: Stage<CanonicalStreamEvent, CanonicalStreamEvent> | undefined;
  readonly #encoder: Stage<CanonicalStreamEvent, SseFrame>;
  readonly #framer: Framer;
  readonly #notes = new NoteList();
  readonly #tap: Tap;
  readonly #unknown: UnknownTeller | undefined;
  readonly #model: string | undefined;
  #id = '';
  #error: CanonicalError | undefined;
  #ended = false;

  constructor(options: StreamOptions) {
    const { from, to, request, framing = 'sse', tap = false, model, isRenamed = true } = options;
    this.#reader = readerOf({ ...options, inspect: options.inspect ?? createDepthInspection() });
    const calls = request && isRenamed ? callsOf(request, from.toolRules(profileOf(from, options, request.model))) : undefined;
    this.#restore = calls && restoreEvents(calls, this.#notes.add);
    this.#encoder = to.streamEncoder(
      answerContext(options, this.#notes, { seed: () => this.#id, onRefusal: (error) => (this.#error ??= error), stream: true }),
    );
    this.#framer = createFramer(to, framing);
    this.#tap = new Tap(tap);
    this.#unknown = to.id === from.id ? undefined : new UnknownTeller({ from, to }, this.#notes.add);
    this.#model = model;
  }

  push(chunk: Uint8Array): Iterable<Uint8Array> {
    return this.#ended ? NOTHING : this.#send(this.#write(this.#reader.push(chunk)));
  }

  end(): Iterable<Uint8Array> {
    if (this.#ended) return NOTHING;
    this.#ended = true;
    return this.#send(this.#write(this.#reader.end()) + this.#finish());
  }

  fail(reason: string | CanonicalError): Iterable<Uint8Array> {
    if (this.#ended) return NOTHING;
    this.#ended = true;
    const error = brokenOff(reason);
    const events = this.#reader.end().map((event) => (event.type === 'error' ? { type: event.type, error } : event));
    return this.#send(this.#write(events) + this.#finish());
  }

  get hasFailed(): boolean {
    return this.#reader.hasFailed;
  }

  get hasError(): boolean {
    return this.#error !== undefined || this.#reader.hasError;
  }

  get notes(): Note[] {
    return [...this.#reader.notes, ...this.#notes.list];
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

  // One text a chunk, and one conversion to bytes: cheaper than a piece of bytes a frame.
  #write(events: Iterable<CanonicalStreamEvent>): string {
    let text = '';
    for (const event of events) {
      if (!this.#restore) text += this.#encode(event);
      else for (const restored of this.#restore.push(event)) text += this.#encode(restored);
    }
    return text;
  }

  #finish(): string {
    let text = '';
    for (const frame of this.#encoder.end()) text += this.#framer.frame(frame);
    return text + this.#framer.end();
  }

  #encode(source: CanonicalStreamEvent): string {
    const event = source.type === 'content_block_delta' ? source : this.#observe(source);
    this.#tap.push(event);
    let text = '';
    for (const frame of this.#encoder.push(event)) text += this.#framer.frame(frame);
    return text;
  }

  #observe(event: CanonicalStreamEvent): CanonicalStreamEvent {
    this.#unknown?.event(event);
    if (event.type === 'error') {
      this.#error ??= toClient(event.error);
      return { type: 'error', error: this.#error };
    }
    if (event.type !== 'message_start') return event;
    this.#id = event.message.id;
    return this.#model === undefined ? event : { ...event, message: { ...event.message, model: this.#model } };
  }

  #send(text: string): Iterable<Uint8Array> {
    return text === '' ? NOTHING : [UTF8.encode(text)];
  }
}

/** The reader of the source's side. */
export function readerOf(options: StreamOptions): EventReader {
  const { from, request, maxLineBytes, maxEventBytes, malformed, onEvent, inspect } = options;
  const profile = profileOf(from, options, request?.model);
  return new EventReader({ protocol: from, profile, maxLineBytes, maxEventBytes, malformed, onEvent, inspect });
}

export const brokenOff = (reason: string | CanonicalError): CanonicalError =>
  typeof reason === 'string' ? ownError('stream_error', 'UPSTREAM_ERROR', `reading the stream failed: ${reason}`) : reason;

/** A limit that the source passed is no fault of the client's request, which the same code stands for. */
const toClient = (error: CanonicalError): CanonicalError =>
  error.details?.['code'] === 'too_large' ? { ...error, code: 'UPSTREAM_ERROR', http_status: 502 } : error;

/** An error alone, as a stream that has begun tells it; `start` is what the client has read of the beginning. */
export function encodeFailure(error: CanonicalError, options: StreamOptions, start?: MessageStart): Uint8Array {
  const { to, framing = 'sse' } = options;
  const encoder = to.streamEncoder(answerContext(options, new NoteList(), { seed: () => start?.message.id ?? '', stream: true }));
  const framer = createFramer(to, framing);
  if (start) encoder.push(start);
  let text = '';
  for (const frame of encoder.push({ type: 'error', error: toClient(error) })) text += framer.frame(frame);
  return UTF8.encode(text + framer.end());
}
