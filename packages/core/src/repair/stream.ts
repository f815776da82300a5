/** Repairs a stream for readers of its own protocol: bytes are unchanged until the first violation. */

import type { BlockDelta, CanonicalStreamEvent, MessageDelta } from '../canonical/events.ts';
import type { CanonicalError } from '../canonical/notes.ts';
import { NOTHING, type Stage } from '../canonical/stage.ts';
import type { ProviderProfile } from '../codec/profile.ts';
import type { RepairCodec } from '../codec/protocol.ts';
import type { FrameEditor, Watch } from '../codec/repair.ts';
import { hasLoneSurrogate } from '../doctor/checks.ts';
import { isRepairable } from '../doctor/violations.ts';
import { createStreamRewriter, type ResponseStream, type StreamOptions, type StreamSplice } from '../engine/stream.ts';
import { isFilledText, isObject, type JsonObject } from '../json/json.ts';
import { Diagnostics } from '../rules/diagnostics.ts';
import type { RuleId } from '../rules/index.ts';
import { ByteBuffer, COLON, CR, decodeUtf8, LF } from '../sse/bytes.ts';
import { encodeSse, type SseFrame } from '../sse/encode.ts';

/** Options of a repair. */
export interface RepairOptions
  extends Omit<StreamOptions<RepairCodec>, 'from' | 'to' | 'framing' | 'onto' | 'onFrame' | 'onViolation' | 'onEncoded'> {
  /** The model that was requested, for responses that name none. */
  model?: string | undefined;
  /** The protocol of the stream. */
  codec: RepairCodec;
  /** Changes frames that conform. */
  editor?: FrameEditor | undefined;
  /**
   * Leaves a stream as it came when every part of it has ended and only the end of the message is missing. Otherwise it ends in an
   * error.
   */
  allowMissingEnd?: boolean | undefined;
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
export class RepairStream implements Stage<Uint8Array, Uint8Array> {
  readonly #codec: RepairCodec;
  readonly #create: (profile: Partial<ProviderProfile>) => ResponseStream;
  readonly #watch: Watch;
  readonly #allowsMissingEnd: boolean;
  #created: ResponseStream | undefined;
  /** What the converter has written so far: the number of calls or items, of ended items, and the characters of arguments. */
  #started = 0;
  #closed = 0;
  #argumentLength = 0;
  readonly #splitter = new FrameSplitter();
  /** `passing`: frames are unchanged; `repairing`: they are written by the converter. */
  #state: 'passing' | 'repairing' | 'ended' = 'passing';
  /** The current frame violates the protocol. */
  #isHarmed = false;
  #hasPayload = false;
  /** The payload of the current frame. */
  #payload: JsonObject | undefined;
  /** The current frame lacks the name of its event, or is an event that the protocol does not have. */
  #isNameless = false;
  #isUnknown = false;
  /** The current frame says something of the message. */
  #hasEvent = false;
  readonly #editor: FrameEditor | undefined;
  readonly #splice: StreamSplice | undefined;
  /** The message has ended, or failed: nothing has to wait any more. */
  #isOver = false;
  /** The stream ended without its terminal frame, or without the blank line of its last one. */
  #lacksTerminal = false;
  #lacksBlankLine = false;
  #held: Held = EMPTY;
  readonly #maxFrameBytes: number;
  /** What the check of the protocol found. */
  protected readonly found: Diagnostics;

  constructor(given: RepairOptions) {
    const {
      codec,
      onFinding,
      model,
      strict = false,
      allowMissingEnd = false,
      editor,
      onEvent: notify,
      splice,
      ...options
    } = given;
    this.#allowsMissingEnd = allowMissingEnd;
    this.#editor = editor;
    this.#splice = splice;
    this.#maxFrameBytes = options.maxEventBytes ?? MAX_FRAME_BYTES;
    const known = new Set<RuleId>();
    const observe = (rule: RuleId): void => {
      // Some violations are repaired in the frame itself, and what is missing at the end is added there.
      if (rule === codec.terminal?.rule) this.#lacksTerminal = true;
      else if (rule === 'sse/unterminated-event') this.#lacksBlankLine = true;
      else if (NAMELESS.has(rule)) this.#isNameless = true;
      else if (rule === 'responses/unknown-event' || (strict && rule === 'anthropic/unknown-event')) this.#isUnknown = true;
      else if (!this.#isExcused(rule)) this.#isHarmed ||= isHarmful(rule) || (strict && STRICT.has(rule));
      if (!onFinding || known.has(rule)) return;
      known.add(rule);
      onFinding(rule);
    };
    this.#codec = codec;
    this.#watch = codec.watch();
    this.found = new Diagnostics(observe);
    const check = codec.check(this.found.report);
    let isOver = false;
    const onFrame = (frame: SseFrame, payload: unknown): void => {
      isOver ||= frame.data.trim() === '[DONE]';
      if (hasLoneSurrogate(frame.data)) this.found.report('sse/lone-surrogate', frame.offset ?? 0);
      this.#hasPayload ||= isObject(payload);
      // The end without a message is an error, which readers take for an empty response.
      if (isOver && !this.#hasPayload) this.#isHarmed = true;
      if (isOver || !isObject(payload)) return;
      this.#payload = payload;
      check.payload(payload, frame);
      if (!this.#watch.push(payload)) this.#isHarmed = true;
    };
    const onEvent = (event: CanonicalStreamEvent): void => {
      this.#hasEvent = true;
      if (event.type === 'content_block_start' && event.content_block.type === 'tool_use' && !this.#watch.opening)
        this.#started++;
      else if (event.type === 'content_block_delta') this.#argumentLength += measureArguments(event.delta);
      else if (event.type === 'message_stop') this.#isOver = true;
      else if (event.type === 'error') {
        this.#isOver = true;
        const isEndless = event.error.code === 'STREAM_TRUNCATED' && this.#mayEnd;
        if (!isEndless && (!event.error.upstream || !isStandardError(this.#payload))) this.#isHarmed = true;
      }
      notify?.(event);
    };
    const common = {
      from: codec,
      to: codec,
      onViolation: observe,
      onFrame,
      // A frame that differs from the one before only in its text is as right as that one.
      showsRepeats: editor?.editsText ?? false,
      onEvent,
      onEncoded: (event: CanonicalStreamEvent | undefined, text: string) => this.follow(event, text),
      splice: createSplice(model, this.#watch, splice),
    };
    this.#create = (profile) => createStreamRewriter({ ...options, ...common, profile: { ...profile, ...options.profile } });
  }

  /** Whether a violation misleads no client in the form that it has here. */
  #isExcused(rule: RuleId): boolean {
    if (rule === 'chat/envelope-incomplete') return isPreface(this.#payload);
    return ENDLESS.has(rule) && this.#mayEnd;
  }

  /** Whether nothing shows that something is missing if the stream ends here. */
  get #mayEnd(): boolean {
    return this.#allowsMissingEnd && this.#watch.isWhole === true;
  }

  push(chunk: Uint8Array): Iterable<Uint8Array> {
    switch (this.#state) {
      case 'passing':
        return this.#pass(chunk);
      case 'repairing':
        return this.converter.push(chunk);
      case 'ended':
        return NOTHING;
      default:
        return this.#state satisfies never;
    }
  }

  end(): Iterable<Uint8Array> {
    return this.#finish((rest) => [...(rest.length > 0 ? this.#convert(rest) : NOTHING), ...this.converter.end()]);
  }

  fail(reason: string | CanonicalError): Iterable<Uint8Array> {
    this.#isHarmed = true;
    return this.#finish(() => this.converter.fail(reason));
  }

  /**
   * Ends the stream because its connection broke: what waits for the next frame is what a reader has without a repair.
   * The reader gets the failure itself afterwards.
   */
  release(): Iterable<Uint8Array> {
    if (this.#state === 'repairing') return this.converter.hasStopReason ? this.end() : NOTHING;
    const held = this.#state === 'passing' ? this.#held.frames : NOTHING;
    this.#state = 'ended';
    this.#held = EMPTY;
    const rest = this.#splitter.takeRest();
    return rest.length > 0 ? [...held, rest] : held;
  }

  /** The converter follows the habits of the server, which the first frame shows. */
  #convert(frame: Uint8Array): readonly Uint8Array[] {
    this.#payload = undefined;
    this.#isNameless = false;
    this.#isUnknown = false;
    this.#hasEvent = false;
    if (!this.#mayComment && hasComment(frame)) this.#isHarmed = true;
    this.#created ??= this.#create(findHabits(this.#codec, frame));
    const written = [...this.#created.push(frame)];
    // Another source continues what the converter has written.
    if (this.#created.hasFailed || this.#splice?.isCut) this.#isHarmed = true;
    this.#checkUnknown(written.length > 0);
    return written;
  }

  /** Some servers have other names for events of the message. */
  #checkUnknown(hasWritten: boolean): void {
    if (this.#isUnknown && (this.#hasEvent || hasWritten || !this.#watch.isAlone)) this.#isHarmed = true;
  }

  /** Sees what the converter writes. */
  protected follow(_event: CanonicalStreamEvent | undefined, text: string): void {
    if (this.#state !== 'passing') return;
    this.#started += countIn(text, this.#watch.opening);
    this.#closed += countIn(text, this.#watch.closing);
  }

  /** Called when nothing waits any more. `isWriting`: the client gets what the converter writes, from what waited on. */
  protected settle(_isWriting: boolean): void {}

  /** The conversion that follows the stream. */
  get converter(): ResponseStream {
    this.#created ??= this.#create({});
    return this.#created;
  }

  get #mayComment(): boolean {
    return this.#codec.id !== 'gemini';
  }

  #pass(chunk: Uint8Array): Iterable<Uint8Array> {
    const out: Uint8Array[] = [];
    for (const frame of this.#splitter.push(chunk)) {
      if (this.#state !== 'passing') out.push(...this.converter.push(frame));
      else for (const piece of this.#passFrame(frame)) addPiece(out, piece);
    }
    // A frame that is longer than any may be: the converter says so.
    if (this.#state === 'passing' && this.#splitter.length > this.#maxFrameBytes) {
      this.#isHarmed = true;
      out.push(...this.#repair(NOTHING));
    }
    // From now on the converter gets whole chunks.
    if (this.#state !== 'passing') out.push(...this.converter.push(this.#splitter.takeRest()));
    return out;
  }

  #passFrame(frame: Uint8Array): Iterable<Uint8Array> {
    // What keeps a connection alive must not wait. Google's clients fail on comments.
    if (this.#held === EMPTY && isComment(frame)) return this.#mayComment || frame[0] !== COLON ? [frame] : NOTHING;
    const written = this.#convert(frame);
    const edited = this.#edit(frame);
    if (this.#isHarmed) return this.#repair(written);
    if (this.#mayWait(written, frame.length)) {
      this.#held = addTo(this.#held, edited, written);
      return NOTHING;
    }
    const { frames } = this.#held;
    this.#held = EMPTY;
    this.settle(false);
    return frames.length === 0 ? [edited] : [...frames, edited];
  }

  /** Whether a frame may still turn out to be a part of a violation. */
  #mayWait(written: readonly Uint8Array[], length: number): boolean {
    const { isEnding, opened, closed = 0, argumentLength, isAlone } = this.#watch;
    const isBehind = opened > this.#started || closed > this.#closed || argumentLength > this.#argumentLength;
    const isOpen = isEnding || isBehind || (written.length === 0 && !(isAlone && this.#held === EMPTY));
    return isOpen && !this.#isOver && this.#held.bytes + length <= MAX_HELD_BYTES && this.#held.frames.length < MAX_HELD_FRAMES;
  }

  /** A frame with what is changed in it. A frame in which that is not possible is written by the converter. */
  #edit(frame: Uint8Array): Uint8Array {
    const payload = this.#payload;
    if (!payload || this.#isHarmed) return frame;
    if (this.#isUnknown) return NO_BYTES;
    const edited = this.#editor ? this.#editor.edit(frame, payload) : frame;
    const named = edited && this.#isNameless ? nameEvent(edited, payload['type']) : edited;
    if (!named) this.#isHarmed = true;
    return named ?? frame;
  }

  #repair(written: Iterable<Uint8Array>): Iterable<Uint8Array> {
    const pieces = [...this.#held.written, ...written];
    this.#state = 'repairing';
    this.#held = EMPTY;
    this.settle(true);
    return pieces;
  }

  #finish(close: (rest: Uint8Array) => Iterable<Uint8Array>): Iterable<Uint8Array> {
    const before = this.#state;
    this.#state = 'ended';
    if (before === 'ended') return NOTHING;
    const rest = this.#splitter.takeRest();
    const written = [...close(rest)];
    if (before === 'repairing') return written;
    // Without its blank line, the last frame is only read at the end.
    if (rest.length > 0) this.#checkUnknown(false);
    const { frames, written: held } = this.#held;
    this.#held = EMPTY;
    const last = rest.length > 0 ? this.#edit(rest) : NO_BYTES;
    this.settle(this.#isHarmed);
    return this.#isHarmed ? [...held, ...written] : [...frames, ...this.#addMissing(last)];
  }

  /** The last frame, with what a stream ends with. */
  #addMissing(last: Uint8Array): Uint8Array[] {
    const { terminal, lineEnd = '\n' } = this.#codec;
    const pieces = last.length > 0 ? [last] : [];
    if (this.#lacksBlankLine && last.length > 0) pieces.push(UTF8.encode(lineEnd + lineEnd));
    if (this.#lacksTerminal && terminal) pieces.push(UTF8.encode(encodeSse(terminal.frame, { lineEnd })));
    return pieces;
  }
}

/** The frame with a line that names its event; undefined when the type of its payload is no name. */
function nameEvent(frame: Uint8Array, type: unknown): Uint8Array | undefined {
  if (typeof type !== 'string' || !EVENT_NAME.test(type) || frame[0] === BYTE_ORDER_MARK || frame.length === 0) return undefined;
  const line = UTF8.encode(`event: ${type}\n`);
  const named = new Uint8Array(line.length + frame.length);
  named.set(line);
  named.set(frame, line.length);
  return named;
}

const EVENT_NAME = /^[\w.-]{1,100}$/;

const BYTE_ORDER_MARK = 0xef;

const UTF8 = /* @__PURE__ */ new TextEncoder();

const NO_BYTES: Uint8Array = /* @__PURE__ */ new Uint8Array(0);

/** Adds bytes to those before; parts of one chunk that follow each other stay one part. */
function addPiece(out: Uint8Array[], piece: Uint8Array): void {
  const last = out.at(-1);
  if (piece.length === 0) return;
  if (last && last.buffer === piece.buffer && last.byteOffset + last.length === piece.byteOffset)
    out[out.length - 1] = new Uint8Array(last.buffer, last.byteOffset, last.length + piece.length);
  else out.push(piece);
}

/** Azure begins with a chunk that has the results of its filters, and blanks for everything else. */
const isPreface = (payload: JsonObject | undefined): boolean =>
  Array.isArray(payload?.['choices']) && payload['choices'].length === 0 && !payload['usage'];

/** Whether an error has the form in which every client finds it. */
function isStandardError(payload: JsonObject | undefined): boolean {
  if (isObject(payload?.['error'])) return isFilledText(payload['error']['message']);
  return payload?.['type'] === 'response.failed' || (payload?.['type'] === 'error' && isFilledText(payload['message']));
}

/** How often a text has a marker. Quotes in strings are escaped, so that no text of a model looks like one. */
const countIn = (text: string, marker: string | undefined): number =>
  marker !== undefined && text.includes(marker) ? text.split(marker).length - 1 : 0;

/** Names the model where the server does not, and leaves out what the client has read already. */
function createSplice(model: string | undefined, watch: Watch, before: StreamSplice | undefined): StreamSplice {
  const adapt = (event: CanonicalStreamEvent): CanonicalStreamEvent => {
    if (event.type === 'message_start' && model !== undefined && !event.message.model)
      return { ...event, message: { ...event.message, model } };
    return event.type === 'message_delta' ? withoutSentDetails(event, watch) : event;
  };
  return {
    get isCut() {
      return before?.isCut ?? false;
    },
    push: (event) => (before ? Array.from(before.push(event), adapt) : [adapt(event)]),
  };
}

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

/** As the reader of events allows where nothing else is set. */
const MAX_FRAME_BYTES = 32 * 1024 * 1024;

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
const STRICT: ReadonlySet<RuleId> = /* @__PURE__ */ new Set<RuleId>(['anthropic/unknown-delta']);

/** The stream ended before its message did. */
const ENDLESS: ReadonlySet<RuleId> = /* @__PURE__ */ new Set<RuleId>(['anthropic/ended-early', 'responses/terminal-missing']);

/** A frame has no line with the name of its event; the type of its payload is the same. */
const NAMELESS: ReadonlySet<RuleId> = /* @__PURE__ */ new Set<RuleId>([
  'responses/event-line-missing',
  'anthropic/event-name-missing',
]);

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
    return this.#last !== CR && chunk.indexOf(CR) < 0 ? this.#pushLines(chunk) : this.#pushBytes(chunk);
  }

  /** Without CR only line feeds matter, which a native search finds. */
  #pushLines(chunk: Uint8Array): Uint8Array[] {
    const frames: Uint8Array[] = [];
    let start = 0;
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, at + 1)) {
      if ((at > 0 ? chunk[at - 1] : this.#last) !== LF) continue;
      frames.push(this.#take(chunk, start, at + 1));
      start = at + 1;
    }
    if (chunk.length > 0) {
      this.#beforeLast = chunk[chunk.length - 2] ?? this.#last;
      this.#last = chunk[chunk.length - 1] ?? LF;
    }
    if (start < chunk.length) this.#rest.append(chunk, start, chunk.length);
    return frames;
  }

  #pushBytes(chunk: Uint8Array): Uint8Array[] {
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

  /** The number of bytes of a frame that has begun and not ended. */
  get length(): number {
    return this.#rest.length;
  }

  /** These bytes. */
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
