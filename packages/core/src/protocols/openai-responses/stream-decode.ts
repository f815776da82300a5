import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import { type CanonicalError, ownError } from '../../canonical/errors.ts';
import type { CanonicalStreamEvent, MessageDelta } from '../../canonical/events.ts';
import { recomputeStop, type StopReason } from '../../canonical/response.ts';
import type { SseFrame } from '../../sse/frame.ts';
import type { Stage } from '../../stage.ts';
import { BlockEmitter, type Emit } from '../shared/block-writer.ts';
import type { Context } from '../shared/context.ts';
import { PayloadDecoder, type PayloadMachine, type StreamDecoderOptions } from '../shared/payload-decoder.ts';
import { isBareError } from '../shared/wire-error.ts';
import { asTerminal, decodeError, decodeFailure, findError } from './errors.ts';
import { type Action, readType } from './event-types.ts';
import { ItemReader } from './item-reader.ts';
import type { ReportHere } from './items.ts';
import {
  decodeStart,
  envelopeFields,
  isWholeResponse,
  lateFields,
  reasonOf,
  responseExtras,
  responseOf,
  statusOf,
} from './response-fields.ts';
import { decodeStop } from './stop.ts';
import { decodeUsage } from './usage.ts';
import { filled, looseText, type WireEvent, type WireResponse } from './wire.ts';

export function decodeStream(context: Context, options: StreamDecoderOptions = {}): Stage<SseFrame, CanonicalStreamEvent> {
  return new PayloadDecoder(context, options, (emit) => new ResponsesMachine(context, emit));
}

class ResponsesMachine implements PayloadMachine {
  readonly #context: Context;
  readonly #emit: Emit;
  readonly #emitter: BlockEmitter;
  readonly #items: ItemReader;
  #offset = 0;
  #sequence = Number.NEGATIVE_INFINITY;
  /** The form in which the response started; undefined before that. */
  #first: WireResponse | undefined;
  /** The latest form of the response, and the event that brought it. */
  #response: WireResponse = {};
  #envelope: JsonObject | undefined;
  /** An `error` event says why; `response.failed`, which usually follows, ends the stream. */
  #error: CanonicalError | undefined;

  constructor(context: Context, emit: Emit) {
    this.#context = context;
    this.#emit = emit;
    this.#emitter = new BlockEmitter(emit);
    this.#items = new ItemReader(this.#emitter, () => this.#offset, this.#report);
  }

  readonly #report: ReportHere = (rule, detail, offset = this.#offset) => this.#context.report(rule, offset, detail);

  payload(value: JsonObject, event: string | undefined, offset: number): void {
    this.#offset = offset;
    const type = typeof value['type'] === 'string' ? value['type'] : event;
    if (isWholeResponse(value) && !type?.startsWith('response.')) this.#readWhole(value);
    else if (type === undefined) this.#readUntyped(value);
    else this.#readEvent(value, type, event);
  }

  #readWhole(response: JsonObject): void {
    const status = filled(response['status']) ?? 'completed';
    this.#start(response);
    this.#items.readOutput(response['output'], true);
    if (status === 'queued' || status === 'in_progress') this.#truncate(`the response is ${status}: it has not been finished`);
    else this.#finish(response, status);
  }

  #readUntyped(value: JsonObject): void {
    if (value['error'] || value['detail'] || isBareError(value)) this.fail(this.#error ?? decodeError(findError(value)));
    else this.#report('responses/type-missing');
  }

  #readEvent(value: JsonObject, type: string, event: string | undefined): void {
    const { action, isStandard } = readType(type);
    this.#inspect(value, event, isStandard);
    if (action) this.#act(action, value);
  }

  #inspect({ type, sequence_number: sequence }: WireEvent, event: string | undefined, isStandard: boolean): void {
    if (event === undefined) this.#report('responses/event-line-missing');
    if (typeof type !== 'string') this.#report('responses/type-missing');
    if (!isStandard)
      this.#report(
        'responses/unknown-event',
        typeof type === 'string' ? `The standard has no event ${type.slice(0, 60)}` : undefined,
      );
    if (typeof sequence !== 'number') return;
    if (sequence <= this.#sequence) this.#report('responses/sequence-number');
    this.#sequence = sequence;
  }

  #act(action: Action, event: JsonObject): void {
    switch (action.does) {
      case 'ping':
        this.#emit({ type: 'ping' });
        return;
      case 'error':
        this.#error ??= decodeError(findError(event));
        return;
      case 'start':
        this.#start(responseOf(event));
        return;
      case 'end':
        this.#end(event, action.status);
        return;
      case 'audio':
        this.#require();
        this.#items.content.audio({ type: 'audio_delta', [action.field]: looseText(event['delta']) });
        return;
      default:
        this.#require();
        this.#items.read(action, event);
    }
  }

  /** `response.created` must come first; content that comes without it is read all the same. */
  #require(): void {
    if (this.#first) return;
    this.#report('responses/created-missing');
    this.#start({});
  }

  #start(response: WireResponse): void {
    this.#response = response;
    if (this.#first) return;
    this.#first = response;
    const message = decodeStart(response);
    this.#items.open(message.id, response.tools);
    this.#emit({ type: 'message_start', message });
  }

  /** `named`: the status that the name of the event stands for, if it does. */
  #end(event: JsonObject, named: string | undefined): void {
    const response = responseOf(event);
    const status = statusOf(response, named);
    if (filled(response.status) !== (named ?? status)) this.#report('responses/status-differs');
    this.#start(response);
    this.#envelope = event;
    this.#items.readOutput(response.output, false);
    if (status === 'completed' && this.#items.isOutputMissing(response.output)) this.#report('responses/output-empty');
    this.#finish(response, status);
  }

  #finish(response: WireResponse, status: string): void {
    if (status === 'failed' || status === 'cancelled') {
      if (!this.#error && !response.error) this.#report('responses/failed-without-error');
      this.#error ??= decodeFailure(status, response.error);
    }
    if (this.#error) {
      this.#fail(asTerminal(this.#error), status);
      return;
    }
    this.#close();
    this.#emit(this.#messageDelta(this.#stopOf(decodeStop(status, reasonOf(response))), status));
    this.#emit({ type: 'message_stop' });
  }

  /** A refusal is the stop reason only when nothing else was said. */
  #stopOf(stop: StopReason): StopReason {
    const { calls, content } = this.#items;
    const recomputed = recomputeStop(stop, calls.blocks);
    return recomputed === 'end_turn' && content.hasRefusal && !content.hasText ? 'refusal' : recomputed;
  }

  #messageDelta(stop_reason: StopReason | null, status: string | undefined): MessageDelta {
    const { usage } = this.#response;
    const message = { ...lateFields(this.#first, this.#response), ...envelopeFields(this.#response) };
    const reason = reasonOf(this.#response);
    const { content, calls } = this.#items;
    const { late } = content;
    const lateCalls = [...calls.late].map(([index, content_block]) => ({ index, content_block }));
    const lateBlocks = [...content.lateBlocks, ...lateCalls];
    const extensions: JsonObject = {
      ...(status !== undefined && { finish_reason: status }),
      ...responseExtras(this.#response, this.#envelope),
      ...(late.length > 0 && { late_items: late }),
    };
    return {
      type: 'message_delta',
      delta: { stop_reason, ...(status === 'incomplete' && reason !== undefined && { stop_details: { raw: reason } }) },
      ...(isObject(usage) && { usage: decodeUsage(usage, (note) => this.#context.note(note)) }),
      ...(Object.keys(extensions).length > 0 && { extensions: { 'openai-responses': extensions } }),
      ...(lateBlocks.length > 0 && { late_blocks: lateBlocks }),
      ...(Object.keys(message).length > 0 && { message }),
    };
  }

  #close(): void {
    this.#items.end();
    this.#emitter.end();
  }

  /** Noise in this protocol: only a terminal event says that the response is whole. */
  done(offset: number, hasEnded: boolean): void {
    this.#offset = offset;
    this.#report('responses/done-sentinel');
    if (this.#error && !hasEnded) this.#fail(this.#error, undefined);
  }

  fail(error: CanonicalError): void {
    this.#fail(error, undefined);
  }

  #fail(error: CanonicalError, status: string | undefined): void {
    if (this.#first) {
      this.#close();
      this.#emit(this.#messageDelta(null, status));
    }
    this.#emit({ type: 'error', error });
  }

  #truncate(message: string): void {
    this.#fail({ code: 'STREAM_TRUNCATED', message }, undefined);
  }

  end(): void {
    if (this.#error) {
      this.#report('responses/error-without-failed');
      this.#fail(this.#error, undefined);
    } else if (this.#first) {
      this.#report('responses/terminal-missing');
      this.#truncate('the stream ended without response.completed, response.incomplete or response.failed');
    } else this.#fail(ownError('empty_stream', 'UPSTREAM_ERROR', 'the stream ended without any event of a response'), undefined);
  }
}
