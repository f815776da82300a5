import type { CanonicalStreamEvent, MessageDelta, MessageStart } from '../../canonical/events.ts';
import type { CanonicalUsage } from '../../canonical/message.ts';
import { type CanonicalError, CodecError } from '../../canonical/notes.ts';
import { NOTHING, type Stage } from '../../canonical/stage.ts';
import { buildStopError } from '../../codec/answers.ts';
import type { BlockEvent } from '../../codec/block-serializer.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { noteApproximated } from '../../codec/report.ts';
import type { JsonObject } from '../../json/json.ts';
import type { SseFrame } from '../../sse/encode.ts';
import { createResponseScope, dropChoices, encodeEnvelope, encodeTier, type ResponseScope } from './blocks.ts';
import { ContentEncoder, FrameSink, writeDeepJson } from './content-encode.ts';
import { encodeDeltaUsage, encodeErrorEvent, encodeStop, encodeStopDetails, encodeUsage } from './outcome.ts';
import { readExtensions } from './wire.ts';

/** Encodes canonical events as the events of a message stream, in the form that every official client accepts. */
export function encodeStream(context: CodecContext): Stage<CanonicalStreamEvent, SseFrame> {
  return new StreamEncoder(context);
}

const PING: SseFrame = { event: 'ping', data: '{"type":"ping"}' };

const STOP: SseFrame = { event: 'message_stop', data: '{"type":"message_stop"}' };

class StreamEncoder implements Stage<CanonicalStreamEvent, SseFrame> {
  readonly #context: CodecContext;
  #scope: ResponseScope | undefined;
  #content: ContentEncoder | undefined;
  /**
   * The end of the first choice. It is sent when the message stops: usage may come later, and a second message_delta
   * would undo the first (P95).
   */
  #final: MessageDelta | undefined;
  /** The latest usage; that of the start if no other one arrives. */
  #usage: Partial<CanonicalUsage> | undefined;
  #hasOthers = false;
  /**
   * The stop of a block and the frames after it. When a source breaks off, its open block stops before the error. Claude
   * Code takes a stopped block for a complete one, runs the call and does not retry. So a stop is held until the next
   * block starts or the message ends normally.
   */
  #held: SseFrame[] = [];
  #out: SseFrame[] = [];
  #ended = false;

  constructor(context: CodecContext) {
    this.#context = context;
  }

  push(event: CanonicalStreamEvent): Iterable<SseFrame> {
    if (this.#ended) return NOTHING;
    try {
      this.#write(event);
    } catch (error) {
      // The policy rejects a loss; the stream has begun, so only an error event can report it.
      if (!(error instanceof CodecError)) throw error;
      this.#fail(error.error);
    }
    return this.#take();
  }

  end(): Iterable<SseFrame> {
    if (!this.#ended) this.#fail({ code: 'STREAM_TRUNCATED', message: 'the stream ended early' });
    return this.#take();
  }

  #take(): Iterable<SseFrame> {
    if (this.#out.length === 0) return NOTHING;
    const out = this.#out;
    this.#out = [];
    return out;
  }

  #write(event: CanonicalStreamEvent): void {
    switch (event.type) {
      case 'content_block_delta':
      case 'content_block_start':
      case 'content_block_stop':
        this.#writeBlock(event);
        return;
      case 'message_start':
        if (!this.#scope) this.#start(event.message);
        return;
      case 'message_delta':
        this.#finish(event);
        return;
      case 'message_stop':
        this.#stop();
        return;
      case 'error':
        this.#fail(event.error);
        return;
      case 'ping':
        this.#out.push(PING);
        return;
      default:
        event satisfies never;
    }
  }

  #start(message: MessageStart['message']): ResponseScope {
    const scope = createResponseScope(message, this.#context);
    this.#scope = scope;
    this.#usage ??= message.usage;
    this.#content = new ContentEncoder(scope, new FrameSink((event, data) => this.#out.push({ event, data })));
    this.#send('message_start', {
      message: Object.assign(encodeEnvelope(message, scope), {
        content: [],
        stop_reason: null,
        stop_sequence: null,
        stop_details: null,
        container: null,
        diagnostics: null,
        usage: Object.assign(encodeUsage(message.usage), encodeTier(message.service_tier, scope)),
      }),
    });
    // Clients watch for silence, and the API itself pings after the start; pings of Anthropic are passed on.
    if (scope.isForeign) this.#out.push(PING);
    return scope;
  }

  #send(type: string, payload: JsonObject): void {
    this.#out.push({ event: type, data: writeDeepJson({ type, ...payload }) });
  }

  #writeBlock(event: BlockEvent): void {
    if (event.choice) {
      this.#dropChoice();
      return;
    }
    if (!this.#content) this.#start({ id: '', model: '' });
    if (event.type === 'content_block_start') this.#release();
    const before = this.#out.length;
    this.#content?.push(event);
    if (event.type === 'content_block_stop' || this.#held.length > 0)
      for (const frame of this.#out.splice(before)) this.#held.push(frame);
  }

  #release(): void {
    if (this.#held.length === 0) return;
    for (const frame of this.#held) this.#out.push(frame);
    this.#held = [];
  }

  #dropChoice(): void {
    if (!this.#hasOthers) dropChoices(this.#context);
    this.#hasOthers = true;
  }

  #finish(event: MessageDelta): void {
    if (event.usage) this.#usage = event.usage;
    if (event.choice) {
      this.#dropChoice();
      return;
    }
    const { stop_reason: stop, stop_details: details } = event.delta;
    if (stop === null) return; // an error follows
    if (stop === 'error') {
      this.#fail(buildStopError(stop, details));
      return;
    }
    this.#release();
    this.#final ??= event;
    for (const { index, content_block: block } of event.late_blocks ?? []) {
      if (block.type !== 'tool_use') continue;
      const message = 'the source changed a tool call after it was sent; the change is dropped';
      noteApproximated(this.#context, { path: `/content/${index}`, feature: 'content.tool_use', message });
    }
  }

  #stop(): void {
    const final = this.#final ?? this.#createEmptyEnd();
    const stop = final?.delta.stop_reason;
    if (!final || !stop || stop === 'error') {
      this.#fail(buildStopError(null, undefined));
      return;
    }
    const scope = this.#scope ?? this.#start({ id: '', model: '' });
    this.#release();
    this.#content?.end();
    const { finish_reason: reason, stop_details: raw, container = null, ...fields } = readExtensions(final);
    this.#send('message_delta', {
      ...fields,
      type: 'message_delta',
      delta: {
        stop_reason: encodeStop(stop, reason),
        stop_sequence: final.delta.stop_sequence ?? null,
        stop_details: encodeStopDetails(stop, final.delta.stop_details, raw),
        container,
      },
      usage: { ...encodeDeltaUsage(this.#usage), ...encodeTier(final.message?.service_tier, scope) },
    });
    this.#out.push(STOP);
    this.#ended = true;
  }

  /** The source sent only other choices: the first one is empty. */
  #createEmptyEnd(): MessageDelta | undefined {
    if (!this.#hasOthers) return undefined;
    const message = 'the source sent no first choice; an empty one is sent';
    this.#context.note({ code: 'REPAIRED', path: '/choices/0', feature: 'choices', message });
    return { type: 'message_delta', delta: { stop_reason: 'end_turn' } };
  }

  /** Ends without `message_stop`, which clients would take for a normal end. */
  #fail(error: CanonicalError): void {
    this.#held = [];
    this.#out.push({ event: 'error', data: writeDeepJson(encodeErrorEvent(error)) });
    this.#ended = true;
  }
}
