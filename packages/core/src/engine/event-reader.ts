import type { JsonObject } from '../accumulate/overlay.ts';
import type { CanonicalError } from '../canonical/errors.ts';
import type { BlockDeltaEvent, CanonicalStreamEvent } from '../canonical/events.ts';
import type { Note } from '../canonical/notes.ts';
import type { Diagnostic, Report, RuleId } from '../doctor/rules.ts';
import type { FrameDecoder } from '../protocols/shared/payload-decoder.ts';
import type { ProviderProfile } from '../protocols/shared/profile.ts';
import type { Protocol, WireAccumulator } from '../protocols/shared/protocol.ts';
import type { SseFrame } from '../sse/frame.ts';
import type { Stage } from '../stage.ts';
import { Diagnostics } from './diagnostics.ts';
import { ProtocolSniffer } from './protocol-sniffer.ts';
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

type ErrorEvent = Extract<CanonicalStreamEvent, { type: 'error' }>;

const MALFORMED: RuleId = 'sse/malformed-json';
const NOT_JSON: CanonicalError = {
  code: 'UPSTREAM_ERROR',
  message: 'an event of the stream is not JSON',
  details: { code: 'stream_error', rule: MALFORMED },
};

/** Bytes to canonical events: framing, protocol detection, decoding, and a record of the departures. */
export class EventReader implements Stage<Uint8Array, CanonicalStreamEvent> {
  readonly #frames: RepeatedChunkCache;
  readonly #sniffer: ProtocolSniffer;
  readonly #onEvent: ((event: CanonicalStreamEvent) => void) | undefined;
  readonly #judge: EventReaderOptions['judge'];
  readonly #profile: EventReaderOptions['profile'];
  readonly #failsOnMalformed: boolean;
  readonly #met = new Diagnostics();
  readonly notes: Note[] = [];
  /** The protocol, once it is known; stays undefined when no payload shows it. */
  protocol: Protocol | undefined;
  /** Offset in the body of the frame with the first error that we detected ourselves; errors sent by the upstream do not count. */
  failedAt: number | undefined;
  /** A payload contained an error. Decoders may wait for more before they emit it. */
  hasError = false;
  /** After `end`: the last frame lacked its blank line but was complete. */
  hasLastFrame = false;
  /** `failed`: we ended the stream with an error, and the rest of the body is ignored. `ended`: `end` was called. */
  #state: 'reading' | 'failed' | 'ended' = 'reading';
  /** Undefined while the protocol is being detected. */
  #decoder: FrameDecoder | undefined;
  #whole: WireAccumulator | undefined;
  /** An error found while a frame is decoded; it ends the stream after the events of that frame. */
  #pending: CanonicalError | undefined;

  constructor({ protocol, profile, onEvent, judge, malformed, maxLineBytes, maxEventBytes }: EventReaderOptions) {
    this.#onEvent = onEvent;
    this.#judge = judge;
    this.#profile = profile;
    this.#failsOnMalformed = malformed === 'fail';
    this.#sniffer = new ProtocolSniffer(protocol);
    this.#frames = new RepeatedChunkCache({ maxLineBytes, maxEventBytes, report: this.#met.report });
    const [only, another] = this.#sniffer.candidates;
    if (only && !another) this.#use(only);
  }

  /** We ended the stream with an error (a limit, invalid JSON, a refused event). Reading on is of no use. */
  get hasFailed(): boolean {
    return this.#state === 'failed' || this.#frames.hasFailed;
  }

  get diagnostics(): Diagnostic[] {
    return this.#met.list();
  }

  /** The protocol's own whole object, where it has one and a payload was read. */
  get completion(): JsonObject | undefined {
    return this.#sniffer.hasPayload ? this.#whole?.finish() : undefined;
  }

  push(chunk: Uint8Array): CanonicalStreamEvent[] {
    if (this.#state !== 'reading') return [];
    const offset = this.#frames.position;
    const repeated = this.#frames.replay(chunk);
    return this.#tell(repeated ? this.#inspectRepeated(repeated, offset) : this.#read(chunk));
  }

  #read(chunk: Uint8Array): CanonicalStreamEvent[] {
    this.#sniffer.record(chunk);
    const out: CanonicalStreamEvent[] = [];
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
    if (this.#state !== 'reading') return [];
    const out: CanonicalStreamEvent[] = [];
    for (const frame of this.#frames.end()) {
      this.hasLastFrame = true;
      this.#accept(frame, out);
    }
    // An error body has the same form in three protocols, so none recognises it: the first candidate decodes it.
    const [first] = this.#sniffer.candidates;
    if (!this.#decoder && first) this.#release(this.#decodeWith(first), out);
    if (this.#state === 'reading') {
      this.#state = 'ended';
      this.#takeLast(this.#decoder?.end() ?? [], out);
    }
    return this.#tell(out.map((event) => (event.type === 'error' ? this.#explain(event) : event)));
  }

  #tell(events: CanonicalStreamEvent[]): CanonicalStreamEvent[] {
    if (this.#onEvent) for (const event of events) this.#onEvent(event);
    return events;
  }

  #accept(frame: SseFrame, out: CanonicalStreamEvent[]): void {
    if (this.#decoder) {
      this.#decode(frame, this.#decoder, out);
      return;
    }
    const protocol = this.#sniffer.recognise(frame);
    if (protocol) this.#release(this.#use(protocol), out);
  }

  #release(decoder: FrameDecoder, out: CanonicalStreamEvent[]): void {
    for (const frame of this.#sniffer.takeWaiting()) this.#decode(frame, decoder, out);
  }

  #decode(frame: SseFrame, decoder: FrameDecoder, out: CanonicalStreamEvent[]): void {
    if (this.#state === 'failed') return;
    for (const event of decoder.push(frame)) {
      const refusal = this.#judge?.(event);
      if (refusal) {
        this.#failAt(frame.offset, refusal, out);
        return;
      }
      const isOwn = event.type === 'error' && !event.error.upstream;
      out.push(isOwn ? this.#explain(event) : event);
      if (isOwn) this.failedAt ??= frame.offset;
    }
    if (this.#pending) this.#failAt(frame.offset, this.#pending, out);
  }

  /** The content of the frame is lost, so the response cannot continue as if it were complete. */
  #failAt(offset = 0, error: CanonicalError, out: CanonicalStreamEvent[]): void {
    out.push({ type: 'error', error });
    this.failedAt ??= offset;
    this.#state = 'failed';
  }

  /** The events that the decoder held back until the end. */
  #takeLast(events: Iterable<CanonicalStreamEvent>, out: CanonicalStreamEvent[]): void {
    for (const event of events) {
      const error = this.#judge?.(event);
      out.push(error ? { type: 'error', error } : event);
      if (error) return;
    }
  }

  readonly #report: Report = (rule, offset, detail) => {
    this.#met.report(rule, offset, detail);
    if (rule === MALFORMED && this.#failsOnMalformed) this.#pending = NOT_JSON;
  };

  #use(protocol: Protocol): FrameDecoder {
    this.protocol = protocol;
    return this.#decodeWith(protocol);
  }

  #decodeWith(protocol: Protocol): FrameDecoder {
    const whole = protocol.accumulator?.();
    this.#whole = whole;
    const onPayload = (payload: JsonObject): void => {
      this.#sniffer.hasPayload = true;
      if (payload['error'] || payload['type'] === 'error') this.hasError = true;
      whole?.push(payload);
    };
    const context = { report: this.#report, note: (note: Note) => this.notes.push(note), profile: this.#profile };
    this.#decoder = protocol.streamDecoder(context, { onPayload });
    return this.#decoder;
  }

  #explain({ error }: ErrorEvent): ErrorEvent {
    return { type: 'error', error: this.#sniffer.explain(error) };
  }
}
