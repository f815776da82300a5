import { deriveId } from '../../accumulate/argument-text.ts';
import { mergeUsage } from '../../accumulate/chat-delta.ts';
import { overlay } from '../../accumulate/overlay.ts';
import { UnknownFields } from '../../accumulate/unknown-fields.ts';
import type { MessageDelta } from '../../canonical/events.ts';
import { recomputeStop, type StopReason } from '../../canonical/message.ts';
import { type CanonicalError, type Note, ownError } from '../../canonical/notes.ts';
import type { Emit } from '../../codec/block-emitter.ts';
import type { Context } from '../../codec/context.ts';
import { findBareError } from '../../codec/errors.ts';
import { textOrEmpty } from '../../codec/read.ts';
import {
  type FrameDecoder,
  PayloadDecoder,
  type PayloadMachine,
  type StreamDecoderOptions,
  type StreamOutcome,
} from '../../codec/stream-decoder.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { ContentDecoder, writeInput } from './content-decode.ts';
import { decodeError, decodeStop, decodeStopDetails, decodeUsage, isCutStop, isStandardStop } from './outcome.ts';
import { DELTA_FIELDS, EVENT_FIELDS, MESSAGE_FIELDS, type WireBlock, type WireMessage } from './wire.ts';

/** Decodes the frames of a message stream, or of a whole message in place of one. */
export function decodeStream(context: Context, options: StreamDecoderOptions = {}): FrameDecoder {
  return new PayloadDecoder(context, options, (emit) => new MessagesMachine(context, emit));
}

/** The state of one message stream. */
class MessagesMachine implements PayloadMachine {
  readonly #context: Context;
  readonly #emit: Emit;
  readonly #content: ContentDecoder;
  isRepeatable = false;
  #offset = 0;
  #id: string | undefined;
  #isWholeBody = false;
  #usage: JsonObject | undefined;
  #tier: string | undefined;
  #stopReason: string | null = null;
  /** Offsets of the events with the start and with the stop reason. */
  #startAt = 0;
  #stopAt = 0;
  #stopSequence: string | undefined;
  #deltas = 0;
  /** Content that a relay put into message_start; it is used only if no block follows. */
  #early: JsonObject[] = [];
  /** Unknown fields of the message and of its delta events, collected in one object. */
  readonly #extensions: JsonObject = {};
  readonly #messageFields = new UnknownFields(MESSAGE_FIELDS, this.#extensions);
  readonly #eventFields = new UnknownFields(EVENT_FIELDS, this.#extensions);
  readonly #deltaFields = new UnknownFields(DELTA_FIELDS, this.#extensions);

  constructor(context: Context, emit: Emit) {
    this.#context = context;
    this.#emit = emit;
    this.#content = new ContentDecoder(
      emit,
      () => this.#offset,
      (rule, detail, offset = this.#offset) => this.#context.report(rule, offset, detail),
    );
  }

  payload(payload: JsonObject, event: string | undefined, offset: number): void {
    this.#offset = offset;
    this.isRepeatable = isObject(payload['delta']) && payload['delta']['type'] === 'text_delta';
    if (this.#id === undefined && isWholeMessage(payload)) this.#readWhole(payload);
    else this.#read(this.#findType(payload, event), payload);
  }

  #readWhole(message: WireMessage): void {
    this.#isWholeBody = true;
    this.#context.report('sse/json-body-instead-of-stream', this.#offset);
    for (const payload of splitMessage(message)) this.#read(textOrEmpty(payload['type']), payload);
  }

  /** The type is in the data and in the `event:` line; the data wins, unless the line is `error`. */
  #findType(payload: JsonObject, event: string | undefined): string {
    const type = textOrEmpty(payload['type']);
    if (event === 'error' || type === 'error') return 'error';
    if (type === '') {
      if (payload['error'] || findBareError(payload)) return 'error';
      if (event !== undefined) this.#context.report('anthropic/type-missing', this.#offset);
      return event ?? '';
    }
    if (event === undefined) this.#context.report('anthropic/event-name-missing', this.#offset);
    else if (event !== type) this.#context.report('anthropic/event-name-differs', this.#offset);
    return type;
  }

  #read(type: string, payload: JsonObject): void {
    switch (type) {
      case 'content_block_delta':
        this.#beginContent();
        this.#content.delta(payload);
        return;
      case 'content_block_start':
        this.#beginContent();
        this.#content.start(payload);
        return;
      case 'content_block_stop':
        this.#beginContent();
        this.#content.stop(payload);
        return;
      case 'ping':
        this.#emit({ type: 'ping' });
        return;
      case 'message_start':
        this.#readStart(isObject(payload['message']) ? payload['message'] : {});
        return;
      case 'message_delta':
        this.#readDelta(payload);
        return;
      case 'message_stop':
        this.#readStop(payload);
        return;
      case 'error':
        this.fail(decodeError(payload));
        return;
      default:
        this.#readUnknown(type, payload);
    }
  }

  #readUnknown(type: string, payload: JsonObject): void {
    if (payload['error']) this.fail(decodeError(payload));
    else
      this.#context.report(
        'anthropic/unknown-event',
        this.#offset,
        `an event of type ${JSON.stringify(type.slice(0, 40))} was skipped`,
      );
  }

  #readStart(message: WireMessage): void {
    if (this.#id !== undefined) {
      this.#readSecondStart(textOrEmpty(message.id));
      return;
    }
    this.#begin(message);
    const { content } = message;
    if (Array.isArray(content) && content.length > 0) this.#early = [...splitContent(content)];
  }

  #begin(message: WireMessage): void {
    const model = textOrEmpty(message.model);
    this.#id = textOrEmpty(message.id) || deriveId('msg_', model);
    if (this.#id !== message.id) this.#context.report('anthropic/message-id-missing', this.#offset);
    this.#startAt = this.#offset;
    this.#content.model = model;
    this.#content.calls.messageId = this.#id;
    this.#stopReason = textOrEmpty(message.stop_reason) || null;
    this.#messageFields.look(message);
    this.#readUsage(message.usage);
    this.#emit({
      type: 'message_start',
      message: {
        id: this.#id,
        model,
        ...(this.#usage && { usage: decodeUsage(overlay({}, this.#usage)) }),
        ...(this.#tier !== undefined && { service_tier: this.#tier }),
      },
    });
  }

  #readSecondStart(id: string): void {
    const isSame = id === '' || id === this.#id;
    this.#context.report(isSame ? 'anthropic/message-start-repeated' : 'anthropic/spliced-stream', this.#offset);
    if (isSame) return;
    // The first message is complete except for its message_stop.
    if (this.#isFinished) this.#finish();
    else this.fail(ownError('stream_error', 'UPSTREAM_ERROR', 'a second message began before the first one ended'));
  }

  #beginContent(): void {
    this.#ensureBegun();
    if (this.#early.length > 0) this.#early = [];
    if (this.#deltas > 0 && this.#stopReason !== null)
      this.#context.report('anthropic/content-after-message-delta', this.#offset);
  }

  #ensureBegun(): void {
    if (this.#id !== undefined) return;
    this.#context.report('anthropic/message-start-missing', this.#offset);
    this.#begin({});
  }

  #readDelta(payload: JsonObject): void {
    this.#ensureBegun();
    this.#replayEarly();
    if (this.#deltas++ > 0) this.#context.report('anthropic/message-delta-repeated', this.#offset);
    this.#eventFields.look(payload);
    this.#readUsage(payload['usage']);
    const { delta } = payload;
    if (!isObject(delta)) return;
    this.#deltaFields.look(delta);
    if (typeof delta['stop_reason'] === 'string' && delta['stop_reason'] !== '') {
      this.#stopReason = delta['stop_reason'];
      this.#stopAt = this.#offset;
    }
    if (typeof delta['stop_sequence'] === 'string') this.#stopSequence = delta['stop_sequence'];
  }

  #replayEarly(): void {
    const early = this.#early;
    this.#early = [];
    if (early.length === 0 || !this.#content.isEmpty) return;
    this.#context.report('anthropic/content-in-message-start', this.#startAt);
    for (const payload of early) this.#read(textOrEmpty(payload['type']), payload);
  }

  #readUsage(usage: unknown): void {
    if (!isObject(usage)) return;
    this.#usage ??= {};
    if (mergeUsage(this.#usage, usage)) this.#context.report('anthropic/usage-of-zeros', this.#offset);
    if (typeof this.#usage['service_tier'] === 'string') this.#tier = this.#usage['service_tier'];
  }

  #readStop(payload: JsonObject): void {
    if (this.#id === undefined) {
      this.end();
      return;
    }
    this.#replayEarly();
    this.#eventFields.look(payload);
    if (!this.#isFinished) this.#reportMissingReason();
    this.#finish();
  }

  #reportMissingReason(): void {
    if (!this.#isWholeBody) this.#context.report('anthropic/stop-reason-missing', this.#offset);
    this.#context.note({
      code: 'REPAIRED',
      path: '/stop_reason',
      feature: 'stop_reason',
      message: 'the message ended without a stop_reason; derived from its content',
    });
  }

  /** `[DONE]` belongs to OpenAI; some relays add it. */
  done(offset: number, hasEnded: boolean): void {
    this.#offset = offset;
    this.#context.report('anthropic/done-sentinel', offset);
    if (!hasEnded && this.#isFinished) this.end();
  }

  end(): void {
    if (this.#isFinished) {
      this.#context.report('anthropic/message-stop-missing', this.#offset);
      this.#finish();
    } else if (this.#id !== undefined) {
      this.#context.report('anthropic/ended-early', this.#offset);
      this.fail({ code: 'STREAM_TRUNCATED', message: 'the stream ended without a stop_reason and without message_stop' });
    } else {
      this.fail(ownError('empty_stream', 'UPSTREAM_ERROR', 'the stream ended without a message'));
    }
  }

  fail(error: CanonicalError): void {
    if (this.#id !== undefined) {
      this.#content.end(true);
      this.#emit(this.#messageDelta(null));
    }
    this.#emit({ type: 'error', error });
  }

  get #isFinished(): boolean {
    return this.#deltas > 0 && this.#stopReason !== null;
  }

  get outcome(): StreamOutcome {
    const stop = this.#stopReason === null ? null : this.#recomputeStop(decodeStop(this.#stopReason));
    return { stop_reason: stop, usage: this.#usage && decodeUsage(this.#usage) };
  }

  #finish(): void {
    const reported = decodeStop(this.#stopReason);
    this.#content.end(isCutStop(reported));
    const stop = this.#recomputeStop(reported);
    const delta = this.#messageDelta(stop); // also settles calls that continued after their stop
    this.#inspectStop(reported, stop);
    this.#emit(delta);
    this.#emit({ type: 'message_stop' });
  }

  /** The reason as the calls of the message show it. A block of unknown type may be a call. */
  #recomputeStop(reported: StopReason): StopReason {
    const { client, isEmpty } = this.#content.calls;
    return reported === 'tool_use' && isEmpty ? 'end_turn' : recomputeStop(reported, client);
  }

  #inspectStop(reported: StopReason, stop: StopReason): void {
    const reason = this.#stopReason;
    if (reason !== null && !isStandardStop(reason)) this.#context.report('anthropic/stop-reason-unknown', this.#stopAt);
    if (reason !== null && stop !== reported) {
      const isLost = reported === 'tool_use';
      this.#context.report(isLost ? 'anthropic/tool-use-without-calls' : 'anthropic/end-turn-with-calls', this.#stopAt);
      if (isLost) this.#context.note(NO_CALLS);
    }
    if (!isCutStop(reported))
      for (const at of this.#content.calls.broken.values()) this.#context.report('anthropic/input-not-json', at);
  }

  #messageDelta(stop: StopReason | null): MessageDelta {
    const details = decodeStopDetails(this.#extensions['stop_details']);
    const late = [...this.#content.calls.late].map(([index, call]) => ({ index, content_block: call() }));
    return {
      type: 'message_delta',
      delta: {
        stop_reason: stop,
        ...(this.#stopSequence !== undefined && { stop_sequence: this.#stopSequence }),
        ...(details && { stop_details: details }),
      },
      ...(this.#usage && { usage: decodeUsage(this.#usage) }),
      extensions: { 'anthropic-messages': { ...this.#extensions, finish_reason: this.#stopReason } },
      ...(late.length > 0 && { late_blocks: late }),
      ...(this.#tier !== undefined && { message: { service_tier: this.#tier } }),
    };
  }
}

const NO_CALLS: Note = {
  code: 'REPAIRED',
  path: '/stop_reason',
  feature: 'stop_reason',
  message: 'the stop reason is "tool_use" although the message has no calls; treated as "end_turn"',
};

/** Whether a payload is a whole message instead of an event. */
export const isWholeMessage = ({ type, role, content }: JsonObject): boolean =>
  Array.isArray(content) && (type === 'message' || (type === undefined && role === 'assistant'));

/** The events that would have streamed a whole message, so that both are read the same way. */
function* splitMessage(message: WireMessage): Generator<JsonObject> {
  const { content, stop_reason, stop_sequence, stop_details, ...start } = message;
  yield { type: 'message_start', message: start };
  if (Array.isArray(content)) yield* splitContent(content);
  yield { type: 'message_delta', delta: { stop_reason, stop_sequence, stop_details } };
  yield { type: 'message_stop' };
}

function* splitContent(content: readonly unknown[]): Generator<JsonObject> {
  for (const [index, block] of content.entries()) {
    if (!isObject(block)) continue;
    const { start, deltas } = splitBlock(block);
    yield { type: 'content_block_start', index, content_block: start };
    for (const delta of deltas) yield { type: 'content_block_delta', index, delta };
    yield { type: 'content_block_stop', index };
  }
}

/** Splits a block into its start, without the streamed fields, and the deltas that bring these. */
function splitBlock(block: WireBlock): { start: WireBlock; deltas: JsonObject[] } {
  const { type } = block;
  if (type === 'text') {
    const citations = Array.isArray(block.citations) ? block.citations : [];
    const deltas = citations.map((citation: unknown): JsonObject => ({ type: 'citations_delta', citation }));
    return { start: { ...block, text: '', citations: [] }, deltas: [{ type: 'text_delta', text: block.text }, ...deltas] };
  }
  if (type === 'thinking') {
    const { thinking, signature } = block;
    return {
      start: { ...block, thinking: '', signature: '' },
      deltas: [
        { type: 'thinking_delta', thinking },
        { type: 'signature_delta', signature },
      ],
    };
  }
  if (!textOrEmpty(type).endsWith('tool_use')) return { start: block, deltas: [] };
  return { start: { ...block, input: {} }, deltas: [{ type: 'input_json_delta', partial_json: writeInput(block.input) }] };
}
