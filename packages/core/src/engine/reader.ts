import { type BlockDeltaEvent, blockDelta, type CanonicalStreamEvent } from '../canonical/events.ts';
import { type CanonicalError, type Note, ownError } from '../canonical/notes.ts';
import type { Stage } from '../canonical/stage.ts';
import type { ProviderProfile } from '../codec/profile.ts';
import type { Protocol, WireAccumulator } from '../codec/protocol.ts';
import type { FrameDecoder, FrameObserver, StreamOutcome } from '../codec/stream-decoder.ts';
import { countKeys } from '../json/fast.ts';
import { isDeeperThan, isObject, type JsonObject, parseJson, TOO_DEEP } from '../json/json.ts';
import { MAX_JSON_DEPTH } from '../json/limits.ts';
import { BACKSLASH, QUOTE } from '../json/scanner.ts';
import { Diagnostics } from '../rules/diagnostics.ts';
import type { Diagnostic, Report, RuleId, RuleTexts } from '../rules/index.ts';
import { ByteBuffer, decodeUtf8, FIRST_NOT_ASCII, hasBytesAt, SPACE } from '../sse/bytes.ts';
import { FrameReader } from '../sse/decode.ts';
import type { SseFrame } from '../sse/encode.ts';

/** Options of every reader of streams. */
export interface EventReaderOptions {
  /** The protocol of the stream, or several to choose from: the first payload that one of them recognises decides. */
  protocol: Protocol | readonly Protocol[];
  /** Longest line, in bytes; 32 MiB when absent. */
  maxLineBytes?: number | undefined;
  /** Longest event, in bytes; 32 MiB when absent. */
  maxEventBytes?: number | undefined;
  /**
   * What happens to an event whose data is not JSON: it is reported and skipped, or it ends the stream in an error.
   * `skip` when absent.
   */
  malformed?: 'skip' | 'fail' | undefined;
  /** What is known about the server, for usage numbers that would be ambiguous without it. */
  profile?: Partial<ProviderProfile> | undefined;
  /** Called with every event that the reader returns, also with the error that replaces a refused one. */
  onEvent?: ((event: CanonicalStreamEvent) => void) | undefined;
  /** Called with every event before it is returned. An error refuses the event: it replaces it and ends the stream. */
  inspect?: Inspect | undefined;
  /** Called with the rule of every violation, when it is met. */
  onViolation?: ((rule: RuleId) => void) | undefined;
}

/** Examines an event; returns an error to refuse it. */
export type Inspect = (event: CanonicalStreamEvent) => CanonicalError | undefined;

/** Bytes to canonical events: framing, protocol detection, decoding, and a record of the violations. */
export class EventReader implements Stage<Uint8Array, CanonicalStreamEvent> {
  readonly #frames: RepeatedChunkCache;
  readonly #sniffer: ProtocolSniffer;
  readonly #inspect: Inspect | undefined;
  readonly #onFrame: FrameObserver | undefined;
  readonly #showsRepeats: boolean;
  readonly #profile: EventReaderOptions['profile'];
  readonly #failsOnMalformed: boolean;
  readonly #met: Diagnostics;
  /** Those of the protocol that is decoded. */
  #texts: RuleTexts | undefined;
  readonly notes: Note[] = [];
  /** The protocol, once it is known; stays undefined when no payload shows it. */
  protocol: Protocol | undefined;
  /**
   * Offset in the body of the frame with the first error that we detected ourselves; errors sent by the upstream do not
   * count.
   */
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
  /** Payloads were pushed that somebody else had framed and parsed. */
  #hasPayloads = false;

  /**
   * `onFrame` sees every frame once the protocol is known, or at the end; chunks that repeat are then parsed like all
   * others, unless `showsRepeats` is false.
   */
  constructor(options: EventReaderOptions, onFrame?: FrameObserver, showsRepeats = true) {
    const { protocol, profile, onEvent, inspect, malformed, maxLineBytes, maxEventBytes, onViolation } = options;
    this.#met = new Diagnostics(onViolation);
    this.#profile = profile;
    this.#failsOnMalformed = malformed === 'fail';
    this.#onFrame = onFrame;
    this.#showsRepeats = showsRepeats && onFrame !== undefined;
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

  /** The stop reason and usage that were read before the end of the stream confirms them. */
  get outcome(): StreamOutcome | undefined {
    return this.#decoder?.outcome;
  }

  get diagnostics(): Diagnostic[] {
    return this.#met.list(this.#texts);
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

  /** Adds a payload that was parsed elsewhere, such as a chunk of an SDK's stream or a whole response. */
  pushPayload(payload: JsonObject): CanonicalStreamEvent[] {
    const out: CanonicalStreamEvent[] = [];
    if (this.#state !== 'reading') return out;
    this.#frames.forget();
    this.#hasPayloads = true;
    this.#sniffer.recordPayload(payload);
    // What parsed the payload may have no limit of its own.
    const isDeep = isDeeperThan(payload, MAX_JSON_DEPTH);
    this.#accept(isDeep ? { data: '', failure: TOO_DEEP_PAYLOAD } : { data: '', payload }, out);
    return out;
  }

  #read(chunk: Uint8Array, out: CanonicalStreamEvent[]): void {
    this.#sniffer.record(chunk);
    const reported = this.#met.total + this.notes.length;
    for (const frame of this.#frames.push(chunk)) this.#accept(frame, out);
    const isSilent = reported === this.#met.total + this.notes.length;
    // An accumulator of whole objects has to see every payload, and an observer every frame.
    if (isSilent && this.#decoder?.isRepeatable && !this.#whole && !this.#showsRepeats) this.#frames.learn(chunk, out);
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
    if (this.#hasPayloads && FRAMING_RULES.has(rule)) return;
    this.#met.report(rule, offset, detail);
    if (rule === MALFORMED && this.#failsOnMalformed) this.#isMalformed = true;
  };

  /** Creates the decoder, and decodes the frames that waited for it. */
  #begin(protocol: Protocol, out: CanonicalStreamEvent[]): void {
    const whole = protocol.accumulator?.();
    this.#texts = protocol.rules;
    this.#whole = whole;
    const onPayload = (payload: JsonObject): void => {
      this.#sniffer.hasPayload = true;
      if (payload['type'] === 'error' || holdsError(payload['error'])) this.hasError = true;
      whole?.push(payload);
    };
    const context = { report: this.#report, note: (note: Note) => this.notes.push(note), profile: this.#profile };
    const decoder = protocol.streamDecoder(context, { onPayload, onFrame: this.#onFrame });
    this.#decoder = decoder;
    for (const frame of this.#sniffer.waiting.splice(0)) this.#decode(frame, decoder, out);
  }
}

/** Whether the field reports an error: some servers send null or an empty object with every payload. */
const holdsError = (value: unknown): boolean => Boolean(value) && !(isObject(value) && countKeys(value) === 0);

const MALFORMED: RuleId = 'sse/malformed-json';

/** Violations in what surrounds a payload: who parsed the payloads has removed it. */
const FRAMING_RULES: ReadonlySet<RuleId> = new Set([
  'sse/missing-done',
  'sse/json-body-instead-of-stream',
  'anthropic/event-name-missing',
  'responses/event-line-missing',
] as const);

const NOT_JSON: CanonicalStreamEvent = {
  type: 'error',
  error: {
    code: 'UPSTREAM_ERROR',
    message: 'an event of the stream is not JSON',
    details: { code: 'stream_error', rule: MALFORMED },
  },
};

const TOO_DEEP_PAYLOAD: CanonicalError = /* @__PURE__ */ ownError('too_large', 'PAYLOAD_TOO_LARGE', `a payload is ${TOO_DEEP}`);

const errorEvent = (error: CanonicalError): CanonicalStreamEvent => ({ type: 'error', error });

/** `onEvent` as an inspection that refuses nothing by itself. */
const notify =
  (onEvent: (event: CanonicalStreamEvent) => void, inspect: Inspect | undefined): Inspect =>
  (event) => {
    const refusal = inspect?.(event);
    onEvent(refusal ? errorEvent(refusal) : event);
    return refusal;
  };

// ---- protocol detection

/** Finds the protocol of a body among candidates, and describes a body that is not a stream of any of them. */
class ProtocolSniffer {
  readonly candidates: readonly Protocol[];
  /** A payload was parsed: from then on the beginning of the body is not recorded. */
  hasPayload = false;
  /** Frames that arrived before the protocol was known. */
  readonly waiting: SseFrame[] = [];
  readonly #head = new ByteBuffer();
  #fields: string | undefined;

  constructor(protocol: Protocol | readonly Protocol[]) {
    this.candidates = 'id' in protocol ? [protocol] : protocol;
  }

  /** Records the beginning of the body for `explain`. */
  record(chunk: Uint8Array): void {
    if (!this.hasPayload) this.#head.append(chunk, 0, Math.min(chunk.length, HEAD_BYTES - this.#head.length));
  }

  /** Records the fields of the first payload that was pushed as an object, for `explain`. */
  recordPayload(payload: JsonObject): void {
    this.#fields ??= Object.keys(payload)
      .slice(0, 3)
      .map((name) => quote(name))
      .join(', ');
  }

  /** The protocol that recognises the frame. The frame is kept in `waiting` either way. */
  recognise(frame: SseFrame): Protocol | undefined {
    const { data, event } = frame;
    this.waiting.push(frame);
    // A stream without blank lines has one payload per line of its only event.
    const payload = frame.payload ?? parseJson(data) ?? parseJson(data.split('\n', 1).join());
    const known = isObject(payload) ? this.candidates.find((protocol) => protocol.recognises(payload, event)) : undefined;
    return known ?? (this.waiting.length < MAX_UNRECOGNISED ? undefined : this.candidates[0]);
  }

  /** Replaces the error of an empty stream by what was expected and what the body contains instead. */
  explain(error: CanonicalError): CanonicalError {
    const isEmpty = error.details?.['code'] === 'empty_stream' && !error.details['isRead'];
    const head = this.#head.bytes.subarray(0, this.#head.length);
    const text = decodeUtf8(head);
    const isSse = looksLikeSse(text);
    if (!isEmpty || (isSse && !this.hasPayload)) return error;
    if (head.length === 0 && this.#fields === undefined)
      return ownError('empty_stream', 'UPSTREAM_ERROR', 'the body is empty: 0 bytes');
    const expected = this.candidates.map(({ id }) => id).join(', ');
    const found = head.length === 0 ? `objects of another kind (${this.#fields})` : describeHead(head, text, isSse);
    const own = ownError('not_a_stream', 'UPSTREAM_ERROR', `expected a response stream (${expected}), found ${found}`);
    return { ...own, details: { ...error.details, ...own.details } };
  }
}

/** After this many unrecognised frames the first candidate is used. */
const MAX_UNRECOGNISED = 256;

const HEAD_BYTES = 1024;

/** Describes the beginning of a body that no protocol recognises. */
const describeHead = (head: Uint8Array, text: string, isSse: boolean): string =>
  isSse ? `an event stream of another kind (${describeEvents(text)})` : describeBody(head, text);

/**
 * Describes the beginning of a body that is neither empty nor an event stream, for an error message. `head` decodes to
 * `decoded`.
 */
function describeBody(head: Uint8Array, decoded: string): string {
  if (head[0] === 0x1f && head[1] === 0x8b) return 'gzip data (decompress it first)';
  const text = decoded.trimStart();
  if (text === '') return 'only whitespace';
  if (text.includes('\u0000') || isMostlyUnprintable(text)) return 'binary data';
  if (/^<(!doctype )?html/i.test(text)) return `an HTML page (${quote(text)})`;
  if (text.startsWith('<')) return `XML or HTML (${quote(text)})`;
  if (/^[{[]/.test(text)) return `other JSON (${quote(text)})`;
  return `text that is not an event stream (${quote(text)})`;
}

/** Whether a body has a line with an SSE field or a comment. */
const looksLikeSse = (head: string): boolean => /^\uFEFF?(data|event|id|retry)?:/m.test(head);

/** The first event name, or the first JSON key, of an event stream that no protocol recognises. */
const describeEvents = (head: string): string => /^event:.{1,60}|"\w{1,60}"/m.exec(head)?.[0] ?? '';

function isMostlyUnprintable(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  const strange = text.match(/[\x01-\x08\x0e-\x1f\ufffd]/g)?.length ?? 0;
  return strange * 10 > text.length;
}

const quote = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);

// ---- repeated chunks

/**
 * A frame reader with a shortcut for chunks that equal the previous one except for their text. Most servers send the
 * same bytes around every piece of text, so such a chunk needs neither framing nor JSON.parse. The shortcut is exact:
 * replacing one string literal of a JSON document by another changes only that text. All byte comparison happens here.
 */
class RepeatedChunkCache extends FrameReader {
  #template: Template | undefined;
  #misses = 0;
  /** The last chunk passed to `push` began at the start of a frame. */
  #beganFrame = false;

  /** The event of a chunk that repeats the previous one; the chunk is consumed. Undefined: pass the chunk to `push`. */
  replay(chunk: Uint8Array): BlockDeltaEvent | undefined {
    const event = this.#template && this.#match(chunk, this.#template);
    if (event) this.skip(chunk.length);
    return event;
  }

  /** The decoder's state changes by other means than `push`: what was learned no longer holds. */
  forget(): void {
    this.#template = undefined;
  }

  override push(chunk: Uint8Array): readonly SseFrame[] {
    this.#template = undefined;
    this.#beganFrame = this.isBetweenFrames;
    return super.push(chunk);
  }

  /** Call after `push` with the events of that chunk, if its decoder is repeatable and reported nothing. */
  learn(chunk: Uint8Array, events: readonly CanonicalStreamEvent[]): void {
    const [event] = events;
    const isWholeFrames = this.#beganFrame && this.isBetweenFrames;
    if (isWholeFrames && events.length === 1 && event?.type === 'content_block_delta') this.#keep(chunk, event);
  }

  #match(chunk: Uint8Array, { head, tail, event }: Template): BlockDeltaEvent | undefined {
    const end = chunk.length - tail.length;
    const length = end - head.length;
    if (length <= 0 || length > MAX_TEXT || !hasBytesAt(head, chunk, 0) || !hasBytesAt(tail, chunk, end)) return undefined;
    this.#misses = 0;
    const text = readLiteral(chunk, head.length, end);
    return text === undefined ? undefined : blockDelta(event.index, event.choice, { type: 'text_delta', text });
  }

  #keep(chunk: Uint8Array, event: BlockDeltaEvent): void {
    if (event.delta.type !== 'text_delta' || chunk.length > MAX_CHUNK || this.#misses++ >= MAX_MISSES) return;
    const body = decodeUtf8(chunk);
    const literal = JSON.stringify(event.delta.text);
    const at = body.indexOf(literal);
    // Without escapes the literal appears verbatim; if it occurs once, its position is known.
    if (!isUnescapedAscii(chunk) || at < 0 || body.indexOf(literal, at + 1) >= 0) return;
    this.#template = { head: chunk.slice(0, at + 1), tail: chunk.slice(at + literal.length - 1), event };
  }
}

/** A chunk split around its text: everything before and after it, and the event it decoded to. */
interface Template {
  head: Uint8Array;
  tail: Uint8Array;
  event: BlockDeltaEvent;
}

/** Longer texts gain nothing: decoding the text dominates. */
const MAX_TEXT = 1024;

/** Bounds the memory a template holds. */
const MAX_CHUNK = 8192;

/** After this many chunks in a row that did not repeat, no further template is built. */
const MAX_MISSES = 8;

function isUnescapedAscii(chunk: Uint8Array): boolean {
  for (const byte of chunk) if (byte >= FIRST_NOT_ASCII || byte === BACKSLASH) return false;
  return true;
}

/**
 * The inside of a string literal without escapes. Undefined when a parser has to read it, and for invalid UTF-8, which
 * is reported there.
 */
function readLiteral(chunk: Uint8Array, from: number, to: number): string | undefined {
  let ascii = '';
  let isAscii = true;
  for (let at = from; at < to; at++) {
    const byte = chunk[at] ?? 0;
    if (byte === QUOTE || byte === BACKSLASH || byte < SPACE) return undefined;
    isAscii &&= byte < FIRST_NOT_ASCII;
    if (isAscii) ascii += String.fromCharCode(byte);
  }
  if (isAscii) return ascii;
  const text = decodeUtf8(chunk, from, to);
  return text.includes('\ufffd') ? undefined : text;
}
