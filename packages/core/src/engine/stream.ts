import { MessageAccumulator, type StreamResult } from '../accumulate/message.ts';
import type { CanonicalStreamEvent, MessageStart } from '../canonical/events.ts';
import { type CanonicalError, type Note, ownError } from '../canonical/notes.ts';
import { NOTHING, type Stage } from '../canonical/stage.ts';
import type { Codec, Framing, RepairCodec } from '../codec/protocol.ts';
import type { FrameObserver } from '../codec/stream-decoder.ts';
import type { Diagnostic } from '../rules/index.ts';
import { encodeSse, type SseFrame } from '../sse/encode.ts';
import { createDepthInspection, findProfile, NoteList, type ResponseOptions } from './context.ts';
import { estimateTokens } from './estimate.ts';
import { EventReader, type EventReaderOptions } from './reader.ts';
import { createResponseContext, findCalls, ProtocolOnlyFieldReporter } from './response.ts';
import { restoreEvents } from './restore.ts';

/**
 * Converts a stream of one protocol to another, bytes to bytes, without I/O. Violations of the source are repaired; an
 * early end or a failure becomes an error of the client's protocol.
 *
 * ```ts
 * const converter = createStreamConverter({ from: openaiChatCodec, to: anthropicMessagesCodec, request });
 * for await (const chunk of upstream) for (const bytes of converter.push(chunk)) client.write(bytes);
 * for (const bytes of converter.end()) client.write(bytes);
 * converter.notes;
 * ```
 */
export const createStreamConverter = (options: StreamOptions): ResponseStream =>
  new StreamConverter(options, (notes) => createStreamAdapter(options, notes));

/** The same without an adapter: repairs a stream in its own protocol. */
export const createStreamRewriter = (options: StreamOptions<RepairCodec>): ResponseStream => new StreamConverter(options);

/**
 * Options of a stream conversion. Without `inspect`, tool arguments nested more than 256 levels deep end the stream in
 * an error.
 */
export interface StreamOptions<C extends RepairCodec = Codec> extends ResponseOptions<C>, ReaderOptions {
  /** The framing that the client expects; SSE by default. */
  framing?: Framing;
  /** Keeps the whole message for `result`. `usage`: only the usage, so that memory does not grow with the content. */
  tap?: boolean | 'usage';
  /** Decides what the client receives of this source; absent: every event. */
  splice?: StreamSplice | undefined;
  /** The conversion of an earlier source to the same client: its message is continued instead of a new one. */
  onto?: ResponseStream | undefined;
  /**
   * Called with every event and the text that the client receives for it, in order; without an event for the text that
   * ends the stream. Not called where bytes are passed on.
   */
  onEncoded?: ((event: CanonicalStreamEvent | undefined, text: string) => void) | undefined;
  /** Called with every frame of the source and its parsed data. */
  onFrame?: FrameObserver | undefined;
  /** False: `onFrame` is not called with a frame that equals the one before except for its text. */
  showsRepeats?: boolean | undefined;
}

/** Joins the streams of several sources, one after the other, to one message for the client. */
export interface StreamSplice {
  /** The events that the client receives for an event of the current source. */
  push(event: CanonicalStreamEvent): Iterable<CanonicalStreamEvent>;
  /** Another source may continue: the client's stream stays open when the current source ends. */
  readonly isCut: boolean;
}

type ReaderOptions = Pick<
  EventReaderOptions,
  'maxLineBytes' | 'maxEventBytes' | 'malformed' | 'onEvent' | 'inspect' | 'onViolation'
>;

/** A stream on its way to the client, and what is known about it afterwards. */
export interface ResponseStream extends Stage<Uint8Array, Uint8Array> {
  /** Call instead of `end` when the source broke off: the client's stream ends in an error with this reason. */
  fail(reason: string | CanonicalError): Iterable<Uint8Array>;
  /** A limit was exceeded: the rest of the body is ignored, so reading on is of no use. */
  readonly hasFailed: boolean;
  /** The source has sent an error. */
  readonly hasError: boolean;
  /** The source has sent its stop reason, and not yet its end. Decodes its usage: not for every chunk. */
  readonly hasStopReason: boolean;
  /** What was dropped or approximated. */
  readonly notes: Note[];
  /** how the source violates its protocol. */
  readonly diagnostics: Diagnostic[];
  /** The error that ends the client's stream: the source's own, its early end, or a loss that the policy refuses. */
  readonly error: CanonicalError | undefined;
  /** The whole message, with `tap`. */
  readonly result: StreamResult | undefined;
  /** The conversion that follows the stream, for `onto`; absent where this is one. */
  readonly converter?: ResponseStream | undefined;
}

/**
 * What a conversion between two protocols does with decoded events. An argument, so that a bundle that only repairs does
 * not contain it.
 */
interface StreamAdapter {
  /** Restores the client's tools. */
  readonly restore: Stage<CanonicalStreamEvent, CanonicalStreamEvent> | undefined;
  /** Notes what the client's protocol does not have. */
  readonly reporter: ProtocolOnlyFieldReporter | undefined;
  /** Estimates the tokens of the request for clients that read them first, where the source counts them last. */
  readonly estimate: (() => number) | undefined;
}

function createStreamAdapter(options: StreamOptions, { add }: NoteList): StreamAdapter {
  const { from, to, request } = options;
  const calls = findCalls(options);
  const isLate = to.beginsWithUsage && !from.beginsWithUsage;
  return {
    restore: calls && restoreEvents(calls, add),
    reporter: to.id === from.id ? undefined : new ProtocolOnlyFieldReporter({ from, to }, add),
    estimate: isLate && request ? () => estimateTokens(request).input_tokens : undefined,
  };
}

class StreamConverter implements ResponseStream {
  readonly output: StreamOutput;
  readonly #reader: EventReader;
  readonly #splice: StreamSplice | undefined;
  readonly #restore: StreamAdapter['restore'];
  readonly #encoder: Stage<CanonicalStreamEvent, SseFrame>;
  readonly #framer: Framer;
  readonly #tap: Tap;
  readonly #reporter: StreamAdapter['reporter'];
  readonly #estimate: StreamAdapter['estimate'];
  readonly #model: string | undefined;
  readonly #onEncoded: StreamOptions['onEncoded'];
  #error: CanonicalError | undefined;
  #ended = false;

  constructor(options: StreamOptions<RepairCodec>, adapt?: (notes: NoteList) => StreamAdapter) {
    const { tap = false, model, splice, onto, onEncoded } = options;
    this.#onEncoded = onEncoded;
    const before = onto?.converter ?? onto;
    this.output = before instanceof StreamConverter ? before.output : new StreamOutput(options, !adapt && !options.request);
    this.#splice = splice;
    this.#reader = createReader({ ...options, inspect: options.inspect ?? createDepthInspection() });
    const { encoder, framer, notes } = this.output;
    const adapter = adapt?.(notes);
    this.#restore = adapter?.restore;
    this.#reporter = adapter?.reporter;
    this.#estimate = adapter?.estimate;
    this.#encoder = encoder;
    this.#framer = framer;
    this.#tap = new Tap(tap);
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
    const error = createFailure(reason);
    const events = this.#reader.end().map((event) => (event.type === 'error' ? { type: event.type, error } : event));
    return this.#send(this.#write(events) + this.#finish());
  }

  get hasFailed(): boolean {
    return this.#reader.hasFailed;
  }

  get hasError(): boolean {
    return this.error !== undefined || this.#reader.hasError;
  }

  get hasStopReason(): boolean {
    return hasStopReason(this.#reader);
  }

  get notes(): Note[] {
    return [...this.#reader.notes, ...this.output.notes.list];
  }

  get diagnostics(): Diagnostic[] {
    return this.#reader.diagnostics;
  }

  get error(): CanonicalError | undefined {
    return this.#error ?? this.output.refusal;
  }

  get result(): StreamResult | undefined {
    return this.#tap.result;
  }

  // One string per chunk, encoded once: cheaper than encoding every frame.
  #write(events: Iterable<CanonicalStreamEvent>): string {
    let text = '';
    for (const event of events) {
      const piece = this.#splice ? this.#join(event, this.#splice) : this.#convert(event);
      this.#onEncoded?.(event, piece);
      text += piece;
    }
    return text;
  }

  /** The tap sees what the source has sent, of which the client may receive only a part. */
  #join(event: CanonicalStreamEvent, splice: StreamSplice): string {
    this.#tap.push(event);
    let text = '';
    for (const joined of splice.push(event)) text += this.#convert(joined);
    return text;
  }

  #convert(event: CanonicalStreamEvent): string {
    if (!this.#restore) return this.#encode(event);
    let text = '';
    for (const restored of this.#restore.push(event)) text += this.#encode(restored);
    return text;
  }

  #finish(): string {
    if (this.#splice?.isCut) return '';
    let text = '';
    for (const frame of this.#encoder.end()) text += this.#framer.frame(frame);
    text += this.#framer.end();
    this.#onEncoded?.(undefined, text);
    return text;
  }

  #encode(source: CanonicalStreamEvent): string {
    const event = source.type === 'content_block_delta' ? source : this.#observe(source);
    if (!this.#splice) this.#tap.push(event);
    let text = '';
    const sent = event.type === 'message_start' ? this.#withEstimate(event) : event;
    for (const frame of this.#encoder.push(sent)) text += this.#framer.frame(frame);
    return text;
  }

  /** For the client alone: what is recorded is what the source reports. */
  #withEstimate(event: MessageStart): MessageStart {
    if (!this.#estimate || event.message.usage) return event;
    return { ...event, message: { ...event.message, usage: { input_tokens: this.#estimate() } } };
  }

  #observe(event: CanonicalStreamEvent): CanonicalStreamEvent {
    this.#reporter?.event(event);
    if (event.type === 'error') {
      this.#error ??= toClient(event.error);
      return { type: 'error', error: this.#error };
    }
    if (event.type !== 'message_start') return event;
    this.output.id = event.message.id;
    return this.#model === undefined ? event : { ...event, message: { ...event.message, model: this.#model } };
  }

  #send(text: string): Iterable<Uint8Array> {
    return text === '' ? NOTHING : [UTF8.encode(text)];
  }
}

/** The client's side of a conversion, which a later source may continue. */
class StreamOutput {
  readonly encoder: Stage<CanonicalStreamEvent, SseFrame>;
  readonly framer: Framer;
  readonly notes = new NoteList();
  /** The id of the message. */
  id = '';
  /** A loss that the policy refuses. */
  refusal: CanonicalError | undefined;

  constructor(options: StreamOptions<RepairCodec>, isRepair: boolean) {
    const { to, framing = 'sse' } = options;
    this.encoder = to.streamEncoder(
      createResponseContext(options, this.notes, {
        seed: () => this.id,
        onRefusal: (error) => (this.refusal ??= error),
        stream: true,
        isRepair,
      }),
    );
    this.framer = createFramer(to, framing);
  }
}

/** Whether a stop reason was read that the end of the stream has not confirmed yet. */
export const hasStopReason = ({ outcome }: EventReader): boolean => (outcome?.stop_reason ?? null) !== null;

const UTF8 = /* @__PURE__ */ new TextEncoder();

/** Creates the reader of the source's stream. */
export function createReader(options: StreamOptions<RepairCodec>): EventReader {
  const { from, request, maxLineBytes, maxEventBytes, malformed, onEvent, inspect, onViolation, onFrame, showsRepeats } = options;
  const profile = findProfile(from, options, request?.model);
  const limits = { maxLineBytes, maxEventBytes, malformed };
  return new EventReader({ protocol: from, profile, ...limits, onEvent, inspect, onViolation }, onFrame, showsRepeats);
}

/** Builds the error of a stream whose source broke off. */
export const createFailure = (reason: string | CanonicalError): CanonicalError =>
  typeof reason === 'string' ? ownError('stream_error', 'UPSTREAM_ERROR', `reading the stream failed: ${reason}`) : reason;

/** A limit exceeded by the source is not the client's fault, although `too_large` in a request would be. */
const toClient = (error: CanonicalError): CanonicalError =>
  error.details?.['code'] === 'too_large' ? { ...error, code: 'UPSTREAM_ERROR', http_status: 502 } : error;

/** Encodes an error alone for a stream that has begun; `start` is the beginning that the client has read. */
export function encodeFailure(error: CanonicalError, options: StreamOptions, start?: MessageStart): Uint8Array {
  const { to, framing = 'sse' } = options;
  const encoder = to.streamEncoder(
    createResponseContext(options, new NoteList(), { seed: () => start?.message.id ?? '', stream: true }),
  );
  const framer = createFramer(to, framing);
  if (start) encoder.push(start);
  let text = '';
  for (const frame of encoder.push({ type: 'error', error: toClient(error) })) text += framer.frame(frame);
  return UTF8.encode(text + framer.end());
}

/** Keeps nothing of a stream, the whole message, or only its usage. */
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

/** Turns frames into the text of a body. */
interface Framer {
  frame(frame: SseFrame): string;
  /** The text that closes the body. */
  end(): string;
}

/** Creates the framer for SSE with the protocol's line ends, or for a JSON array. */
export function createFramer({ lineEnd = '\n' }: Pick<Codec, 'lineEnd'>, framing: Framing): Framer {
  if (framing === 'json-array') return createArrayFramer();
  const options = { lineEnd };
  return { frame: (frame) => encodeSse(frame, options), end: () => '' };
}

/** Every event is an element, also an error; bare JSON repeats an error for readers of SSE and is left out. */
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
