import { LimitError } from '../accumulate/tool-calls.ts';
import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { CanonicalUsage, StopReason } from '../canonical/message.ts';
import { type CanonicalError, ownError } from '../canonical/notes.ts';
import { NOTHING, type Stage } from '../canonical/stage.ts';
import { isObject, type JsonObject, parseJson, TOO_DEEP } from '../json/json.ts';
import { MAX_JSON_DEPTH } from '../json/limits.ts';
import { closeDocument, openDocument } from '../json/literals.ts';
import { JsonNesting, OPEN_OBJECT } from '../json/scanner.ts';
import type { SseFrame } from '../sse/encode.ts';
import type { Emit } from './block-emitter.ts';
import type { Context } from './context.ts';

/** The part of a stream decoder that all protocols share: JSON, `[DONE]`, keep-alives, framing errors. */
export class PayloadDecoder implements FrameDecoder {
  readonly #context: Context;
  readonly #onPayload: ((payload: JsonObject) => void) | undefined;
  readonly #onFrame: FrameObserver | undefined;
  readonly #machine: PayloadMachine;
  /** The parsed data of the current frame, for `onFrame`. */
  #parsed: unknown;
  #out: CanonicalStreamEvent[] = [];
  #ended = false;
  #sawDone = false;

  constructor(context: Context, options: StreamDecoderOptions, createMachine: (emit: Emit) => PayloadMachine) {
    this.#context = context;
    this.#onPayload = options.onPayload;
    this.#onFrame = options.onFrame;
    this.#machine = createMachine((event) => {
      if (this.#ended) return;
      this.#out.push(event);
      if (event.type === 'message_stop' || event.type === 'error') this.#ended = true;
    });
  }

  get isRepeatable(): boolean {
    return !this.#ended && this.#machine.isRepeatable === true;
  }

  get outcome(): StreamOutcome | undefined {
    return this.#ended ? undefined : this.#machine.outcome;
  }

  push(frame: SseFrame): Iterable<CanonicalStreamEvent> {
    this.#parsed = undefined;
    this.#accept(frame);
    this.#onFrame?.(frame, this.#parsed);
    return this.#take();
  }

  end(): Iterable<CanonicalStreamEvent> {
    try {
      if (!this.#ended) this.#machine.end();
    } catch (error) {
      this.#failWith(error);
    }
    return this.#take();
  }

  #take(): Iterable<CanonicalStreamEvent> {
    if (this.#out.length === 0) return NOTHING;
    const out = this.#out;
    this.#out = [];
    return out;
  }

  #accept(frame: SseFrame): void {
    const { data, offset = 0 } = frame;
    // Nearly every frame begins with `{` and needs no further tests.
    if (data.charCodeAt(0) === OPEN_OBJECT && !this.#ended && !frame.failure) {
      this.#acceptJson(frame, offset);
      return;
    }
    if (isDone(data)) {
      this.#acceptDone(data, offset);
      return;
    }
    if (this.#ended) {
      if (data !== '' || frame.payload !== undefined) this.#context.report('sse/after-end', offset);
      if (this.#onFrame) this.#parsed = parseJson(data);
      return;
    }
    if (frame.failure) this.#machine.fail(frame.failure);
    else if (isObject(frame.payload)) this.#run(frame.payload, frame.event, offset);
    else if (data.trim() === '') this.#acceptEmpty(frame.event, offset);
    else if (data.trimStart().startsWith(':')) this.#context.report('sse/keepalive-as-data', offset);
    else this.#acceptJson(frame, offset);
  }

  #acceptDone(data: string, offset: number): void {
    if (data !== '[DONE]') this.#context.report('sse/done-padded', offset);
    if (this.#sawDone) this.#context.report('sse/done-repeated', offset);
    else this.#machine.done(offset, this.#ended);
    this.#sawDone = true;
  }

  #acceptEmpty(event: string | undefined, offset: number): void {
    if (event === 'error')
      this.#machine.fail(ownError('stream_error', 'UPSTREAM_ERROR', 'the stream reported an error without details'));
    else this.#context.report('sse/empty-data', offset);
  }

  #acceptJson(frame: SseFrame, offset: number): void {
    this.#parsed = parseJson(frame.data);
    const value = this.#parsed ?? this.#salvage(frame, offset);
    if (isObject(value)) this.#run(value, frame.event, offset, frame.data);
    else if (value !== undefined) this.#acceptScalar(value, frame, offset);
  }

  /** `data`: the text of the value; empty when it is not known. */
  #run(value: JsonObject, event: string | undefined, offset: number, data = ''): void {
    try {
      this.#onPayload?.(value);
      if (data !== '') openDocument(value, data);
      this.#machine.payload(value, event, offset);
    } catch (error) {
      this.#failWith(error);
    } finally {
      if (data !== '') closeDocument();
    }
  }

  /** An exceeded limit ends the stream with an error event, never with an exception. */
  #failWith(error: unknown): void {
    if (!(error instanceof LimitError)) throw error;
    this.#machine.fail(ownError('too_large', 'PAYLOAD_TOO_LARGE', error.message));
  }

  /** A JSON string under `event: error` is the error message; any other bare value is malformed. */
  #acceptScalar(value: unknown, { event }: SseFrame, offset: number): void {
    if (event === 'error') this.#run({ error: value }, event, offset);
    else
      this.#context.report(
        'sse/malformed-json',
        offset,
        `a payload must be a JSON object, found ${Array.isArray(value) ? 'a list' : typeof value}`,
      );
  }

  /**
   * Data that is not JSON can still be used: plain text under `event: error`, several documents in one event, stray
   * characters after a document.
   */
  #salvage(frame: SseFrame, offset: number): unknown {
    const { data, event } = frame;
    if (event === 'error') return { error: data.trim() };
    if (this.#acceptLines(frame, offset)) return undefined;
    const nesting = new JsonNesting();
    nesting.push(data);
    if (nesting.deepest > MAX_JSON_DEPTH) {
      this.#machine.fail(ownError('too_large', 'PAYLOAD_TOO_LARGE', `an event is ${TOO_DEEP}`));
      return undefined;
    }
    const value = nesting.firstEnd < 0 ? undefined : parseJson(data.slice(0, nesting.firstEnd));
    this.#context.report(isObject(value) ? 'sse/trailing-garbage' : 'sse/malformed-json', offset);
    return isObject(value) ? value : undefined;
  }

  /** Servers that omit the blank lines put all payloads into one event, one per line. */
  #acceptLines(frame: SseFrame, offset: number): boolean {
    const lines = frame.data.split('\n').filter((line) => line.trim() !== '');
    if (lines.length < 2 || !lines.every((line) => isDone(line) || isObject(parseJson(line)))) return false;
    this.#context.report('sse/several-payloads', offset);
    for (const data of lines) this.#accept({ ...frame, data });
    this.#parsed = undefined;
    return true;
  }
}

const isDone = (data: string): boolean => data.length < 32 && data.trim() === '[DONE]';

/**
 * The part of a stream decoder that differs by protocol. It emits events; the last one is `message_stop` or `error`.
 */
export interface PayloadMachine extends Repeatable, Foreseeable {
  /** One JSON object, with the `event:` name of its frame. */
  payload(value: JsonObject, event: string | undefined, offset: number): void;
  /** The first `[DONE]`: the end for chat, ignored by protocols that may have ended before it. */
  done(offset: number, hasEnded: boolean): void;
  /** The stream reported an error, or is broken. */
  fail(error: CanonicalError): void;
  /** The body ended. */
  end(): void;
}

/** A decoder that knows the outcome of a message before the stream confirms it by its end. */
interface Foreseeable {
  /** What was read of the outcome so far. Absent: the protocol has it in its last event. */
  readonly outcome?: StreamOutcome | undefined;
}

/** The stop reason and the usage that a stream has reported so far. */
export interface StreamOutcome {
  stop_reason: StopReason | null;
  usage?: CanonicalUsage | undefined;
}

/** A decoder that knows when input like its last one may bypass it. */
export interface Repeatable {
  /**
   * True when the last input was one piece of text, and the same input with another text would only emit that text.
   * Such input may bypass the decoder (see RepeatedChunkCache). False or absent is always safe.
   */
  readonly isRepeatable?: boolean;
}

/** Decodes frames to canonical events. */
export interface FrameDecoder extends Stage<SseFrame, CanonicalStreamEvent>, Repeatable, Foreseeable {}

/** Observers of a stream that is decoded. */
export interface StreamDecoderOptions {
  /** The only payload is a whole response, so nothing is missing where it has no finish reason. */
  isWhole?: boolean;
  /** Called with every parsed payload, so that observers do not parse it again. */
  onPayload?: (payload: JsonObject) => void;
  /** Called with every frame, even after the end of the message, and the payload that was parsed for the decoder. */
  onFrame?: FrameObserver | undefined;
}

/** Called once with every frame and its parsed data; undefined when the data is not JSON. */
export type FrameObserver = (frame: SseFrame, payload: unknown) => void;
