import { isObject, type JsonObject, parseJson } from '../accumulate/overlay.ts';
import { type CanonicalError, ownError } from '../canonical/errors.ts';
import type { BlockDeltaEvent, CanonicalStreamEvent } from '../canonical/events.ts';
import type { Note } from '../canonical/notes.ts';
import type { Diagnostic, Report, RuleId } from '../doctor/rules.ts';
import type { FrameDecoder } from '../protocols/shared/payload-decoder.ts';
import type { ProviderProfile } from '../protocols/shared/profile.ts';
import type { Protocol, WireAccumulator } from '../protocols/shared/protocol.ts';
import { NO_BYTES } from '../sse/bytes.ts';
import type { SseFrame } from '../sse/frame.ts';
import type { Stage } from '../stage.ts';
import { describeBody, describeEvents, looksLikeSse } from './body.ts';
import { Diagnostics } from './diagnostics.ts';
import { RepeatedChunkCache } from './repeated-chunks.ts';

export interface EventReaderOptions {
  /** The protocol of the stream, or several to choose from: the first payload that one of them recognises decides. */
  protocol: Protocol | readonly Protocol[];
  /** Longest line, in bytes; 32 MiB when absent. */
  maxLineBytes?: number | undefined;
  /** Longest event, in bytes; 32 MiB when absent. */
  maxEventBytes?: number | undefined;
  /** What becomes of an event whose data is no JSON: it is named and skipped, or it ends the stream in an error. `skip` when absent. */
  malformed?: 'skip' | 'fail' | undefined;
  /** What is known of the server, where the numbers of its usage leave a doubt. */
  profile?: Partial<ProviderProfile> | undefined;
  /** Told every event as it leaves the decoder; in debug mode, the `push` of a StreamValidator. */
  onEvent?: ((event: CanonicalStreamEvent) => void) | undefined;
  /** Asked about every event of the decoder: the error that it gives back takes the place of the event, and ends the stream. */
  judge?: ((event: CanonicalStreamEvent) => CanonicalError | undefined) | undefined;
}

/** How many frames may pass before one of the protocols has to recognise its own. */
const MAX_UNRECOGNISED = 256;
const HEAD_BYTES = 1024;
const MALFORMED: RuleId = 'sse/malformed-json';
const NOT_JSON: CanonicalError = {
  code: 'UPSTREAM_ERROR',
  message: 'an event of the stream is not JSON',
  details: { code: 'stream_error', rule: MALFORMED },
};

/** Bytes to canonical events: framing, finding out the protocol, decoding, and a record of what was met on the way. */
export class EventReader implements Stage<Uint8Array, CanonicalStreamEvent> {
  readonly #candidates: readonly Protocol[];
  readonly #frames: RepeatedChunkCache;
  readonly #onEvent: ((event: CanonicalStreamEvent) => void) | undefined;
  readonly #judge: EventReaderOptions['judge'];
  readonly #profile: EventReaderOptions['profile'];
  readonly #failsOnMalformed: boolean;
  readonly #met = new Diagnostics();
  readonly notes: Note[] = [];
  /** The protocol, as soon as it is known; it stays undefined when nothing in the body tells. */
  protocol: Protocol | undefined;
  /** The framing failed (a limit was passed, or an event that is no JSON): whatever follows is ignored, and reading on is of no use. */
  hasFailed = false;
  /** Where the frame began in which we found an error ourselves, in bytes from the start of the body; what the source calls an error is none. */
  failedAt: number | undefined;
  /** A payload speaks of an error. Decoders may wait for more before they tell. */
  hasError = false;
  /** After `end`: the last frame lacked the blank line behind it, and was whole all the same. */
  hasLastFrame = false;
  #decoder: FrameDecoder | undefined;
  #whole: WireAccumulator | undefined;
  #payloads = 0;
  /** Frames that came before the protocol was known. */
  #waiting: SseFrame[] = [];
  /** The beginning of the body, up to the first payload: it tells what was sent in place of a stream. */
  #head: Uint8Array = NO_BYTES;
  #ended = false;
  /** We ended the stream ourselves: nothing of it is decoded any more. */
  #isOver = false;
  #hasMalformed = false;

  constructor({ protocol, profile, onEvent, judge, malformed, maxLineBytes, maxEventBytes }: EventReaderOptions) {
    this.#onEvent = onEvent;
    this.#judge = judge;
    this.#profile = profile;
    this.#failsOnMalformed = malformed === 'fail';
    this.#candidates = 'id' in protocol ? [protocol] : protocol;
    this.#frames = new RepeatedChunkCache({ maxLineBytes, maxEventBytes, report: this.#met.report });
    const [only, another] = this.#candidates;
    if (only && !another) this.#use(only);
  }

  get diagnostics(): Diagnostic[] {
    return this.#met.list();
  }

  /** The protocol's own whole object, where there is such a thing and something was read. */
  get completion(): JsonObject | undefined {
    return this.#payloads > 0 ? this.#whole?.finish() : undefined;
  }

  push(chunk: Uint8Array): CanonicalStreamEvent[] {
    const offset = this.#frames.position;
    const repeated = this.#ended ? undefined : this.#frames.replay(chunk);
    return this.#tell(repeated ? this.#inspectRepeated(repeated, offset) : this.#read(chunk));
  }

  #read(chunk: Uint8Array): CanonicalStreamEvent[] {
    if (this.#payloads === 0 && this.#head.length < HEAD_BYTES) this.#keepHead(chunk);
    const out: CanonicalStreamEvent[] = [];
    if (this.#ended) return out;
    const reported = this.#met.total + this.notes.length;
    for (const frame of this.#frames.push(chunk)) this.#accept(frame, out);
    const isSilent = reported === this.#met.total + this.notes.length;
    // An accumulator of whole objects has to see every payload.
    if (isSilent && this.#decoder?.isRepeatable && !this.#whole) this.#frames.learn(chunk, out);
    return out;
  }

  #inspectRepeated(event: BlockDeltaEvent, offset: number): CanonicalStreamEvent[] {
    const refusal = this.#judge?.(event);
    if (!refusal) return [event];
    const out: CanonicalStreamEvent[] = [];
    this.#failAt(offset, refusal, out);
    return out;
  }

  end(): CanonicalStreamEvent[] {
    if (this.#ended) return [];
    this.#ended = true;
    const out: CanonicalStreamEvent[] = [];
    for (const frame of this.#frames.end()) {
      this.hasLastFrame = true;
      this.#accept(frame, out);
    }
    // An error body has the same shape in three protocols and none recognises it: the first one may read it.
    const [first] = this.#candidates;
    if (!this.#decoder && first) this.#release(this.#decodeWith(first), out);
    if (!this.#isOver) this.#takeLast(this.#decoder?.end() ?? [], out);
    return this.#tell(
      out.map((event) => (event.type === 'error' ? { type: 'error', error: this.#explain(event.error) } : event)),
    );
  }

  #tell(events: CanonicalStreamEvent[]): CanonicalStreamEvent[] {
    if (this.#onEvent) for (const event of events) this.#onEvent(event);
    return events;
  }

  #keepHead(chunk: Uint8Array): void {
    const head = new Uint8Array(Math.min(HEAD_BYTES, this.#head.length + chunk.length));
    head.set(this.#head);
    head.set(chunk.subarray(0, head.length - this.#head.length), this.#head.length);
    this.#head = head;
  }

  #accept(frame: SseFrame, out: CanonicalStreamEvent[]): void {
    if (frame.failure) this.hasFailed = true;
    if (this.#decoder) {
      this.#decode(frame, this.#decoder, out);
      return;
    }
    this.#waiting.push(frame);
    const protocol = this.#recognise(frame);
    if (protocol) this.#release(this.#use(protocol), out);
  }

  #release(decoder: FrameDecoder, out: CanonicalStreamEvent[]): void {
    for (const frame of this.#waiting.splice(0)) this.#decode(frame, decoder, out);
  }

  #decode(frame: SseFrame, decoder: FrameDecoder, out: CanonicalStreamEvent[]): void {
    if (this.#isOver) return;
    for (const event of decoder.push(frame)) {
      const refusal = this.#judge?.(event);
      if (refusal) {
        this.#failAt(frame.offset, refusal, out);
        return;
      }
      const isOwn = event.type === 'error' && !event.error.upstream;
      out.push(isOwn ? { type: 'error', error: this.#explain(event.error) } : event);
      if (isOwn) this.failedAt ??= frame.offset;
    }
    if (this.#hasMalformed) this.#failAt(frame.offset, NOT_JSON, out);
  }

  /** What the frame said is lost: an answer that goes on as if nothing had been would be wrong. */
  #failAt(offset = 0, error: CanonicalError, out: CanonicalStreamEvent[]): void {
    out.push({ type: 'error', error });
    this.failedAt ??= offset;
    this.hasFailed = true;
    this.#isOver = true;
    this.#ended = true;
  }

  /** What a decoder has kept to the end. */
  #takeLast(events: Iterable<CanonicalStreamEvent>, out: CanonicalStreamEvent[]): void {
    for (const event of events) {
      const error = this.#judge?.(event);
      out.push(error ? { type: 'error', error } : event);
      if (error) return;
    }
  }

  readonly #report: Report = (rule, offset, detail) => {
    this.#met.report(rule, offset, detail);
    if (rule === MALFORMED && this.#failsOnMalformed) this.#hasMalformed = true;
  };

  #recognise({ data, event }: SseFrame): Protocol | undefined {
    // Without blank lines, an event holds a payload a line.
    const payload = parseJson(data) ?? parseJson(data.split('\n', 1).join());
    const known = isObject(payload) ? this.#candidates.find((protocol) => protocol.recognises(payload, event)) : undefined;
    return known ?? (this.#waiting.length < MAX_UNRECOGNISED ? undefined : this.#candidates[0]);
  }

  #use(protocol: Protocol): FrameDecoder {
    this.protocol = protocol;
    return this.#decodeWith(protocol);
  }

  #decodeWith(protocol: Protocol): FrameDecoder {
    const whole = protocol.accumulator?.();
    this.#whole = whole;
    const onPayload = (payload: JsonObject): void => {
      this.#payloads++;
      if (payload['error'] || payload['type'] === 'error') this.hasError = true;
      whole?.push(payload);
    };
    const context = { report: this.#report, note: (note: Note) => this.notes.push(note), profile: this.#profile };
    this.#decoder = protocol.streamDecoder(context, { onPayload });
    return this.#decoder;
  }

  /** An "empty" stream may be no stream at all: say what was expected and what was found. */
  #explain(error: CanonicalError): CanonicalError {
    const isEmpty = error.details?.['code'] === 'empty_stream' && !error.details['isRead'];
    const isSse = looksLikeSse(this.#head);
    if (!isEmpty || (isSse && this.#payloads === 0)) return error;
    if (this.#head.length === 0) return ownError('empty_stream', 'UPSTREAM_ERROR', 'the body is empty: 0 bytes');
    const expected = this.#candidates.map(({ id }) => id).join(', ');
    const found = isSse ? `an event stream of something else (${describeEvents(this.#head)})` : describeBody(this.#head);
    const own = ownError('not_a_stream', 'UPSTREAM_ERROR', `expected a response stream (${expected}), found ${found}`);
    return { ...own, details: { ...error.details, ...own.details } };
  }
}
