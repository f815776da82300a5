import type { JsonObject } from '../accumulate/overlay.ts';
import type { CanonicalError } from '../canonical/errors.ts';
import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { Note } from '../canonical/notes.ts';
import type { Diagnostic, Report, RuleId } from '../doctor/rules.ts';
import type { FrameDecoder, FrameObserver } from '../protocols/shared/payload-decoder.ts';
import type { ProviderProfile } from '../protocols/shared/profile.ts';
import type { Protocol, WireAccumulator } from '../protocols/shared/protocol.ts';
import type { SseFrame } from '../sse/frame.ts';
import type { Stage } from '../stage.ts';
import { Diagnostics } from './diagnostics.ts';
import { ProtocolSniffer } from './protocol-sniffer.ts';
import { RepeatedChunkCache } from './repeated-chunks.ts';

/** Looks at an event; returns an error to refuse it. */
export type Inspect = (event: CanonicalStreamEvent) => CanonicalError | undefined;

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
  /** Called with every event that the reader returns, also with the error that replaces a refused one. */
  onEvent?: ((event: CanonicalStreamEvent) => void) | undefined;
  /** Called with every event before it is returned. An error refuses the event: it replaces it and ends the stream. */
  inspect?: Inspect | undefined;
}

const MALFORMED: RuleId = 'sse/malformed-json';
const NOT_JSON: CanonicalStreamEvent = {
  type: 'error',
  error: {
    code: 'UPSTREAM_ERROR',
    message: 'an event of the stream is not JSON',
    details: { code: 'stream_error', rule: MALFORMED },
  },
};

/** Bytes to canonical events: framing, protocol detection, decoding, and a record of the departures. */
export class EventReader implements Stage<Uint8Array, CanonicalStreamEvent> {
  readonly #frames: RepeatedChunkCache;
  readonly #sniffer: ProtocolSniffer;
  readonly #inspect: Inspect | undefined;
  readonly #onFrame: FrameObserver | undefined;
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
  /** The frame being decoded is not JSON: the stream ends after its events. Only set when such frames are fatal. */
  #isMalformed = false;

  /** `onFrame` sees every frame once the protocol is known, or at the end; chunks that repeat are then parsed like all others. */
  constructor(options: EventReaderOptions, onFrame?: FrameObserver) {
    const { protocol, profile, onEvent, inspect, malformed, maxLineBytes, maxEventBytes } = options;
    this.#profile = profile;
    this.#failsOnMalformed = malformed === 'fail';
    this.#onFrame = onFrame;
    this.#inspect = onEvent ? notify(onEvent, inspect) : inspect;
    this.#sniffer = new ProtocolSniffer(protocol);
    this.#frames = new RepeatedChunkCache({ maxLineBytes, maxEventBytes, report: this.#met.report });
    const [only, another] = this.#sniffer.candidates;
    if (!only || another) return;
    this.protocol = only;
    this.#begin(only, []);
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
    const out: CanonicalStreamEvent[] = [];
    if (this.#state !== 'reading') return out;
    const offset = this.#frames.position;
    const repeated = this.#frames.replay(chunk);
    if (repeated) this.#put(repeated, offset, out);
    else this.#read(chunk, out);
    return out;
  }

  #read(chunk: Uint8Array, out: CanonicalStreamEvent[]): void {
    this.#sniffer.record(chunk);
    const reported = this.#met.total + this.notes.length;
    for (const frame of this.#frames.push(chunk)) this.#accept(frame, out);
    const isSilent = reported === this.#met.total + this.notes.length;
    // An accumulator of whole objects has to see every payload, and an observer every frame.
    if (isSilent && this.#decoder?.isRepeatable && !this.#whole && !this.#onFrame) this.#frames.learn(chunk, out);
  }

  end(): CanonicalStreamEvent[] {
    const out: CanonicalStreamEvent[] = [];
    if (this.#state !== 'reading') return out;
    for (const frame of this.#frames.end()) {
      this.hasLastFrame = true;
      this.#accept(frame, out);
    }
    // An error body has the same form in three protocols, so none recognises it: the first candidate decodes it.
    const [first] = this.#sniffer.candidates;
    if (!this.#decoder && first) this.#begin(first, out);
    if (this.#state === 'reading') {
      this.#state = 'ended';
      if (this.#decoder) this.#putAll(this.#decoder.end(), undefined, out);
    }
    return out;
  }

  #accept(frame: SseFrame, out: CanonicalStreamEvent[]): void {
    if (this.#decoder) {
      this.#decode(frame, this.#decoder, out);
      return;
    }
    this.protocol = this.#sniffer.recognise(frame);
    if (this.protocol) this.#begin(this.protocol, out);
  }

  #decode(frame: SseFrame, decoder: FrameDecoder, out: CanonicalStreamEvent[]): void {
    if (this.#state === 'failed') return;
    const isWhole = this.#putAll(decoder.push(frame), frame.offset, out);
    if (!isWhole || !this.#isMalformed) return;
    // The content of the frame is lost: the response cannot continue as if it were complete.
    this.#put(NOT_JSON, frame.offset, out);
    this.#state = 'failed';
  }

  /** False when an event was refused. */
  #putAll(events: Iterable<CanonicalStreamEvent>, offset: number | undefined, out: CanonicalStreamEvent[]): boolean {
    for (const event of events) if (!this.#put(event, offset, out)) return false;
    return true;
  }

  #put(event: CanonicalStreamEvent, offset: number | undefined, out: CanonicalStreamEvent[]): boolean {
    const isOwnError = event.type === 'error' && !event.error.upstream;
    const explained = isOwnError ? errorEvent(this.#sniffer.explain(event.error)) : event;
    const refusal = this.#inspect?.(explained);
    out.push(refusal ? errorEvent(refusal) : explained);
    if (refusal) this.#state = 'failed';
    if (refusal || isOwnError) this.failedAt ??= offset;
    return !refusal;
  }

  readonly #report: Report = (rule, offset, detail) => {
    this.#met.report(rule, offset, detail);
    if (rule === MALFORMED && this.#failsOnMalformed) this.#isMalformed = true;
  };

  /** Creates the decoder, and decodes the frames that waited for it. */
  #begin(protocol: Protocol, out: CanonicalStreamEvent[]): void {
    const whole = protocol.accumulator?.();
    this.#whole = whole;
    const onPayload = (payload: JsonObject): void => {
      this.#sniffer.hasPayload = true;
      if (payload['error'] || payload['type'] === 'error') this.hasError = true;
      whole?.push(payload);
    };
    const context = { report: this.#report, note: (note: Note) => this.notes.push(note), profile: this.#profile };
    const decoder = protocol.streamDecoder(context, { onPayload, onFrame: this.#onFrame });
    this.#decoder = decoder;
    for (const frame of this.#sniffer.waiting.splice(0)) this.#decode(frame, decoder, out);
  }
}

const errorEvent = (error: CanonicalError): CanonicalStreamEvent => ({ type: 'error', error });

/** `onEvent` as an inspection that refuses nothing by itself. */
const notify =
  (onEvent: (event: CanonicalStreamEvent) => void, inspect: Inspect | undefined): Inspect =>
  (event) => {
    const refusal = inspect?.(event);
    onEvent(refusal ? errorEvent(refusal) : event);
    return refusal;
  };
