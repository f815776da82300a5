/** Repairs a stream for readers of its own protocol: bytes are unchanged until the first violation. */

import type { StreamResult } from '../accumulate/message.ts';
import type { BlockDelta, CanonicalStreamEvent, MessageDelta } from '../canonical/events.ts';
import type { CanonicalError, Note } from '../canonical/notes.ts';
import { NOTHING } from '../canonical/stage.ts';
import type { ProviderProfile } from '../codec/profile.ts';
import type { RepairCodec } from '../codec/protocol.ts';
import type { Watch } from '../codec/repair.ts';
import { hasLoneSurrogate } from '../doctor/checks.ts';
import { isRepairable } from '../doctor/violations.ts';
import { createStreamRewriter, type ResponseStream, type StreamOptions, type StreamSplice } from '../engine/stream.ts';
import { isObject } from '../json/json.ts';
import { Diagnostics } from '../rules/diagnostics.ts';
import type { Diagnostic, RuleId } from '../rules/index.ts';
import { ByteBuffer, COLON, CR, decodeUtf8, LF } from '../sse/bytes.ts';
import type { SseFrame } from '../sse/encode.ts';

/** Options of a repair. */
export interface RepairOptions extends Pick<StreamOptions, 'maxLineBytes' | 'maxEventBytes' | 'profile' | 'tap'> {
  /** The model that was requested, for responses that name none. */
  model?: string | undefined;
  /** The protocol of the stream. */
  codec: RepairCodec;
  /** Also removes what only readers that validate every event fail on: unknown events of Anthropic streams. */
  strict?: boolean | undefined;
  /** Called with the first violation of every rule, also with one that needs no repair. */
  onFinding?: ((rule: RuleId) => void) | undefined;
}

/**
 * Passes frames on byte for byte, until one violates its protocol; from there on the stream is written anew. A
 * converter follows from the start, so that it continues exactly where the unchanged bytes end.
 *
 * A frame that the converter has nothing to say about yet (a call without its name, the stop reason before the end) waits
 * for the next one: once its bytes are out, they cannot be repaired.
 */
export class RepairStream implements ResponseStream {
  readonly #codec: RepairCodec;
  readonly #create: (profile: Partial<ProviderProfile>) => ResponseStream;
  readonly #watch: Watch;
  #created: ResponseStream | undefined;
  /** What the converter has written so far: the number of calls or items, of ended items, and the characters of arguments. */
  #started = 0;
  #closed = 0;
  #argumentLength = 0;
  readonly #splitter = new FrameSplitter();
  readonly #found: Diagnostics;
  /** `passing`: frames are unchanged; `repairing`: they are written by the converter. */
  #state: 'passing' | 'repairing' | 'ended' = 'passing';
  /** The current frame violates the protocol. */
  #isHarmed = false;
  #hasPayload = false;
  #held: Held = EMPTY;

  constructor({ codec, onFinding, model, strict = false, ...options }: RepairOptions) {
    const known = new Set<RuleId>();
    const observe = (rule: RuleId): void => {
      this.#isHarmed ||= isHarmful(rule) || (strict && STRICT.has(rule));
      if (!onFinding || known.has(rule)) return;
      known.add(rule);
      onFinding(rule);
    };
    this.#codec = codec;
    this.#watch = codec.watch();
    this.#found = new Diagnostics(observe);
    const check = codec.check(this.#found.report);
    let isOver = false;
    const onFrame = (frame: SseFrame, payload: unknown): void => {
      isOver ||= frame.data.trim() === '[DONE]';
      if (hasLoneSurrogate(frame.data)) this.#found.report('sse/lone-surrogate', frame.offset ?? 0);
      this.#hasPayload ||= isObject(payload);
      // The end without a message is an error, which readers take for an empty response.
      if (isOver && !this.#hasPayload) this.#isHarmed = true;
      if (isOver || !isObject(payload)) return;
      check.payload(payload, frame);
      if (!this.#watch.push(payload)) this.#isHarmed = true;
    };
    const onEvent = (event: CanonicalStreamEvent): void => {
      if (event.type === 'content_block_start' && event.content_block.type === 'tool_use' && !this.#watch.opening)
        this.#started++;
      else if (event.type === 'content_block_delta') this.#argumentLength += measureArguments(event.delta);
    };
    const common = {
      from: codec,
      to: codec,
      onViolation: observe,
      onFrame,
      onEvent,
      splice: createSplice(model, this.#watch),
    };
    this.#create = (profile) => createStreamRewriter({ ...options, ...common, profile: { ...profile, ...options.profile } });
  }

  push(chunk: Uint8Array): Iterable<Uint8Array> {
    switch (this.#state) {
      case 'passing':
        return this.#pass(chunk);
      case 'repairing':
        return this.#converter.push(chunk);
      case 'ended':
        return NOTHING;
      default:
        return this.#state satisfies never;
    }
  }

  end(): Iterable<Uint8Array> {
    return this.#finish((rest) => [...(rest.length > 0 ? this.#converter.push(rest) : NOTHING), ...this.#converter.end()]);
  }

  fail(reason: string | CanonicalError): Iterable<Uint8Array> {
    this.#isHarmed = true;
    return this.#finish(() => this.#converter.fail(reason));
  }

  /** The converter follows the habits of the server, which the first frame shows. */
  #convert(frame: Uint8Array): Iterable<Uint8Array> {
    this.#created ??= this.#create(findHabits(this.#codec, frame));
    return this.#created.push(frame);
  }

  get #converter(): ResponseStream {
    this.#created ??= this.#create({});
    return this.#created;
  }

  get #mayComment(): boolean {
    return this.#codec.id !== 'gemini';
  }

  /** Whether anything was repaired. */
  get hasRepaired(): boolean {
    return this.#isHarmed;
  }

  get hasFailed(): boolean {
    return this.#converter.hasFailed;
  }

  get hasError(): boolean {
    return this.#converter.hasError;
  }

  get hasStopReason(): boolean {
    return this.#converter.hasStopReason;
  }

  get notes(): Note[] {
    return this.#converter.notes;
  }

  get diagnostics(): Diagnostic[] {
    return [...this.#converter.diagnostics, ...this.#found.list(this.#codec.rules)].toSorted((a, b) => a.offset - b.offset);
  }

  get error(): CanonicalError | undefined {
    return this.#converter.error;
  }

  get result(): StreamResult | undefined {
    return this.#converter.result;
  }

  #pass(chunk: Uint8Array): Iterable<Uint8Array> {
    const out: Uint8Array[] = [];
    for (const frame of this.#splitter.push(chunk)) {
      if (this.#state === 'passing') out.push(...this.#passFrame(frame));
      else out.push(...this.#converter.push(frame));
    }
    // From now on the converter gets whole chunks.
    if (this.#state !== 'passing') out.push(...this.#converter.push(this.#splitter.takeRest()));
    return out;
  }

  #passFrame(frame: Uint8Array): Iterable<Uint8Array> {
    // What keeps a connection alive must not wait. Google's clients fail on comments.
    if (this.#held === EMPTY && isComment(frame)) return this.#mayComment || frame[0] !== COLON ? [frame] : NOTHING;
    if (!this.#mayComment && hasComment(frame)) this.#isHarmed = true;
    const written = [...this.#convert(frame)];
    const held = addTo(this.#held, frame, written);
    if (this.#isHarmed) return this.#repair(held);
    const { isEnding, opened, closed = 0, argumentLength, opening, closing } = this.#watch;
    this.#started += countIn(written, opening);
    this.#closed += countIn(written, closing);
    const isBehind = opened > this.#started || closed > this.#closed || argumentLength > this.#argumentLength;
    const mayWait =
      (written.length === 0 || isEnding || isBehind) && held.bytes <= MAX_HELD_BYTES && held.frames.length <= MAX_HELD_FRAMES;
    this.#held = mayWait ? held : EMPTY;
    return mayWait ? NOTHING : held.frames;
  }

  #repair({ written }: Held): Iterable<Uint8Array> {
    this.#state = 'repairing';
    this.#held = EMPTY;
    return written;
  }

  #finish(close: (rest: Uint8Array) => Iterable<Uint8Array>): Iterable<Uint8Array> {
    const before = this.#state;
    this.#state = 'ended';
    if (before === 'ended') return NOTHING;
    const rest = this.#splitter.takeRest();
    const written = [...close(rest)];
    if (before === 'repairing') return written;
    const { frames, written: held } = this.#held;
    this.#held = EMPTY;
    const isClean = !this.#isHarmed && this.#converter.error === undefined;
    return isClean ? [...frames, ...(rest.length > 0 ? [rest] : [])] : [...held, ...written];
  }
}

/** How often frames have a marker. Quotes in strings are escaped, so that no text of a model looks like one. */
function countIn(written: readonly Uint8Array[], marker: string | undefined): number {
  if (marker === undefined) return 0;
  return written.reduce((count, text) => count + decodeUtf8(text).split(marker).length - 1, 0);
}

/** Names the model where the server does not, and leaves out what the client has read already. */
const createSplice = (model: string | undefined, watch: Watch): StreamSplice => ({
  isCut: false,
  push(event) {
    if (event.type === 'message_start' && model !== undefined && !event.message.model)
      return [{ ...event, message: { ...event.message, model } }];
    return [event.type === 'message_delta' ? withoutSentDetails(event, watch) : event];
  },
});

/** Encoders collect `reasoning_details` for the last chunk; those that were passed on would be read twice. */
function withoutSentDetails(event: MessageDelta, { isSentDetail }: Watch): MessageDelta {
  const own = event.extensions?.['openai-chat'];
  const message = isObject(own) ? own['message'] : undefined;
  const details = isObject(message) ? message['reasoning_details'] : undefined;
  if (!isObject(own) || !isObject(message) || !Array.isArray(details) || !isSentDetail) return event;
  const left = details.filter((entry) => !isSentDetail(entry));
  return {
    ...event,
    extensions: { ...event.extensions, 'openai-chat': { ...own, message: { ...message, reasoning_details: left } } },
  };
}

const measureArguments = (delta: BlockDelta): number =>
  delta.type === 'input_json_delta' ? delta.partial_json.length : delta.type === 'input_text_delta' ? delta.text.length : 0;

/** Frames that wait, as they came and as they would be written. */
interface Held {
  readonly frames: readonly Uint8Array[];
  readonly written: readonly Uint8Array[];
  readonly bytes: number;
}

const EMPTY: Held = { frames: [], written: [], bytes: 0 };

const addTo = ({ frames, written, bytes }: Held, frame: Uint8Array, more: readonly Uint8Array[]): Held => ({
  frames: [...frames, frame],
  written: [...written, ...more],
  bytes: bytes + frame.length,
});

/** Frames of a server that sends many without content are not kept back for ever. */
const MAX_HELD_BYTES = 256 * 1024;
const MAX_HELD_FRAMES = 64;

/** Whether a violation is a reason to rewrite the stream: some client misreads it, and rewriting removes it. */
export const isHarmful = (rule: RuleId): boolean =>
  !HARMLESS.has(rule) && rule !== 'gemini/nameless-call' && isRepairable({ rule });

/** Violations that no client misreads, apart from those that validate every event. */
export const HARMLESS: ReadonlySet<RuleId> = /* @__PURE__ */ new Set<RuleId>([
  'anthropic/unknown-event',
  'anthropic/unknown-delta',
  'gemini/unknown-part',
  'gemini/unknown-finish-reason',
  'chat/tool-calls-blank',
  'chat/tool-header-repeated',
  'chat/role-repeated',
  'chat/finish-with-content',
  'chat/usage-with-choices',
  'chat/usage-repeated',
  'chat/usage-elsewhere',
  'chat/model-varies',
  'chat/id-missing',
  'chat/id-varies',
  'responses/sequence-number',
  'responses/reasoning-twice',
  'responses/done-sentinel',
  'sse/done-repeated',
]);

/** Of these, what readers that validate every event fail on. Others may need unknown events: the server may be newer than Sluice. */
const STRICT: ReadonlySet<RuleId> = /* @__PURE__ */ new Set<RuleId>(['anthropic/unknown-event', 'anthropic/unknown-delta']);

/** Servers send reasoning in one of two fields; what is written continues with the same one. */
function findHabits({ id }: RepairCodec, frame: Uint8Array): Partial<ProviderProfile> {
  return id === 'openai-chat' && /"reasoning"\s*:/.test(decodeUtf8(frame)) ? { reasoning_field: 'reasoning' } : {};
}

/** Whether a frame has only comments, lines that begin with a colon, or only blank lines. */
function isComment(frame: Uint8Array): boolean {
  let isStart = true;
  for (const byte of frame) {
    const isLineEnd = byte === LF || byte === CR;
    if (isStart && byte !== COLON && !isLineEnd) return false;
    isStart = isLineEnd;
  }
  return true;
}

/** Whether a line of a frame begins with a colon. */
const hasComment = (frame: Uint8Array): boolean =>
  frame.some((byte, at) => byte === COLON && (at === 0 || isLineEnd(frame[at - 1] ?? 0)));

/** Cuts a body after every blank line, however it is split into chunks. */
class FrameSplitter {
  readonly #rest = new ByteBuffer();
  /** The last two bytes. A body starts as if a line had just ended. */
  #last = LF;
  #beforeLast = 0;

  /** The frames that the chunk completes. */
  push(chunk: Uint8Array): Uint8Array[] {
    const frames: Uint8Array[] = [];
    let start = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0;
      // The LF of a CRLF belongs to the frame that its CR ends.
      if (this.#isBlankLine(byte) && !(byte === CR && chunk[at + 1] === LF)) {
        frames.push(this.#take(chunk, start, at + 1));
        start = at + 1;
      }
      this.#beforeLast = this.#last;
      this.#last = byte;
    }
    if (start < chunk.length) this.#rest.append(chunk, start, chunk.length);
    return frames;
  }

  /** The bytes of a frame that has begun and not ended. */
  takeRest(): Uint8Array {
    return this.#take(new Uint8Array(0), 0, 0);
  }

  #take(chunk: Uint8Array, start: number, end: number): Uint8Array {
    if (this.#rest.length === 0) return chunk.subarray(start, end);
    this.#rest.append(chunk, start, end);
    const whole = this.#rest.bytes.slice(0, this.#rest.length);
    this.#rest.clear();
    return whole;
  }

  /** CR, LF and CRLF all end lines; the LF of a CRLF ends the same line as its CR. */
  #isBlankLine(byte: number): boolean {
    if (byte === LF && this.#last === CR) return isLineEnd(this.#beforeLast);
    return isLineEnd(byte) && isLineEnd(this.#last);
  }
}

const isLineEnd = (byte: number): boolean => byte === LF || byte === CR;
