import type { CanonicalStreamEvent, MessageDelta, MessageStart } from '../../canonical/events.ts';
import type { CanonicalUsage } from '../../canonical/message.ts';
import { type CanonicalError, CodecError } from '../../canonical/notes.ts';
import { NOTHING, type Stage } from '../../canonical/stage.ts';
import { buildStopError } from '../../codec/answers.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { objectOrEmpty } from '../../codec/read.ts';
import { noteDropped } from '../../codec/report.ts';
import type { JsonObject } from '../../json/json.ts';
import type { SseFrame } from '../../sse/encode.ts';
import { type Echo, type Envelope, encodeEnvelope, encodeTier, OutputEncoder, readEnvelopeExtensions } from './content-encode.ts';
import { encodeFailure, encodeFinalUsage, encodeStreamError, encodeUsage } from './outcome.ts';
import { encodeEnding, endOutput } from './response.ts';
import { PROTOCOL } from './wire.ts';

/** Encodes canonical events as events of a response, in the order that every official client accepts. */
export function encodeStream(context: CodecContext, echo?: Echo): Stage<CanonicalStreamEvent, SseFrame> {
  return new StreamEncoder(context, echo);
}

class StreamEncoder implements Stage<CanonicalStreamEvent, SseFrame> {
  readonly #context: CodecContext;
  readonly #echo: Echo | undefined;
  #envelope: Envelope | undefined;
  #output: OutputEncoder | undefined;
  #usage: CanonicalUsage | undefined;
  /** The end of the response, sent when nothing can follow. */
  #ending: JsonObject | undefined;
  #hasOtherChoices = false;
  #sequence = 0;
  #out: SseFrame[] = [];
  #hasEnded = false;

  constructor(context: CodecContext, echo: Echo | undefined) {
    this.#context = context;
    this.#echo = echo;
  }

  push(event: CanonicalStreamEvent): Iterable<SseFrame> {
    if (this.#hasEnded) return NOTHING;
    try {
      this.#write(event);
    } catch (error) {
      // The policy rejects a loss, but the stream has started: only an event can report it.
      if (error instanceof CodecError) this.#fail(error.error);
      else this.#failDeep(error);
    }
    return this.#take();
  }

  end(): Iterable<SseFrame> {
    if (!this.#hasEnded) this.#fail({ code: 'STREAM_TRUNCATED', message: 'the stream ended early' });
    return this.#take();
  }

  /** Handles content that is nested too deeply to be serialized: none of it is sent. */
  #failDeep(error: unknown): void {
    if (!(error instanceof RangeError)) throw error;
    this.#output = undefined;
    this.#usage = undefined;
    this.#fail({ code: 'PAYLOAD_TOO_LARGE', message: 'the response is nested too deeply to be encoded' });
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
        if (!this.#isOther(event.choice)) this.#output?.delta(event.index, event.delta);
        return;
      case 'content_block_start':
        if (!this.#isOther(event.choice)) this.#requireStart().output.start(event.index, event.content_block);
        return;
      case 'content_block_stop':
        if (!this.#isOther(event.choice)) this.#output?.stop(event.index, event.content_block);
        return;
      case 'message_start':
        if (!this.#envelope) this.#start(event.message);
        return;
      case 'message_delta':
        if (event.usage) this.#usage = event.usage; // may come with another choice
        if (!this.#isOther(event.choice)) this.#finish(event);
        return;
      case 'message_stop':
        this.#stop();
        return;
      case 'error':
        this.#fail(event.error);
        return;
      case 'ping':
        return; // written as a comment line, which is not a frame; clients throw on unknown events
      default:
        event satisfies never;
    }
  }

  /** Whether an event belongs to another choice, which is noted once, or follows the end. */
  #isOther(choice = 0): boolean {
    if (choice === 0) return this.#ending !== undefined; // nothing follows the end
    if (!this.#hasOtherChoices)
      noteDropped(this.#context, {
        path: '/choices',
        feature: 'choices',
        message: 'OpenAI Responses has one choice; the first is sent',
      });
    this.#hasOtherChoices = true;
    return true;
  }

  #start(message: MessageStart['message']): { envelope: Envelope; output: OutputEncoder } {
    const envelope = encodeEnvelope(message, this.#context, this.#echo);
    const output = new OutputEncoder(envelope.id, this.#context, this.#send);
    this.#envelope = envelope;
    this.#output = output;
    const response = `"response":${JSON.stringify(envelope.fields)}`;
    this.#send('response.created', response);
    this.#send('response.in_progress', response);
    return { envelope, output };
  }

  /** The started response; a stream with nothing but an error has one, too. */
  #requireStart(): { envelope: Envelope; output: OutputEncoder } {
    const envelope = this.#envelope;
    if (!envelope) return this.#start({ id: '', model: '' });
    this.#output ??= new OutputEncoder(envelope.id, this.#context);
    return { envelope, output: this.#output };
  }

  readonly #send = (type: string, fields: string): void => {
    this.#out.push({ event: type, data: `{"type":"${type}","sequence_number":${this.#sequence++},${fields}}` });
  };

  #finish(event: MessageDelta): void {
    const { delta, extensions, late_blocks: late } = event;
    const { stop_reason: stop, stop_details: details } = delta;
    if (stop === null) return; // an error follows
    if (stop === 'error') {
      this.#fail(buildStopError(stop, details));
      return;
    }
    const { envelope, output } = this.#requireStart();
    if (late) output.amend(late);
    const kept = objectOrEmpty(extensions?.[PROTOCOL]);
    const ending = endOutput(output, { stop, details, kept }, this.#context);
    this.#ending = {
      ...readEnvelopeExtensions(extensions),
      ...encodeTier(event.message?.service_tier, envelope.isForeign, this.#context),
      ...encodeEnding(ending, kept),
      ...(envelope.isForeign && ending.status === 'completed' && { completed_at: Math.floor(this.#context.now()) }),
    };
  }

  #stop(): void {
    if (!this.#ending) {
      this.#fail({ code: 'STREAM_TRUNCATED', message: 'the stream ended without a terminal event' });
      return;
    }
    const type = this.#ending['status'] === 'incomplete' ? 'response.incomplete' : 'response.completed';
    this.#sendWhole(type, { ...this.#ending, usage: encodeFinalUsage(this.#usage, this.#context) });
    this.#hasEnded = true;
  }

  /** Sends the whole response, because some clients read all items and the usage from it. */
  #sendWhole(type: string, changes: JsonObject): void {
    const { envelope, output } = this.#requireStart();
    const response = {
      ...envelope.fields,
      ...changes,
      ...this.#context.envelope,
      id: envelope.id,
      model: envelope.fields['model'],
      output: output.items,
    };
    this.#send(type, `"response":${JSON.stringify(response)}`);
  }

  /**
   * Sends the error and then the failed response, like the live API. openai-node throws on the first and takes the
   * second for a normal end; Codex reads only the second. The live form of the error is nested, the official type is
   * flat: both are written.
   */
  #fail(error: CanonicalError): void {
    this.#requireStart();
    const object = encodeStreamError(error);
    const { code, message, param } = object;
    this.#send('error', JSON.stringify({ code, message, param, error: object }).slice(1, -1));
    const usage = this.#usage ? encodeUsage(this.#usage) : null;
    this.#sendWhole('response.failed', { status: 'failed', error: encodeFailure(error), usage });
    this.#hasEnded = true;
  }
}
