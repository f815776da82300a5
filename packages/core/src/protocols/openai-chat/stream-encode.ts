import type { CanonicalStreamEvent, MessageDelta, MessageStart } from '../../canonical/events.ts';
import type { CanonicalUsage } from '../../canonical/message.ts';
import { type CanonicalError, CodecError } from '../../canonical/notes.ts';
import { NOTHING, type Stage } from '../../canonical/stage.ts';
import { isForeign } from '../../codec/answers.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import type { JsonObject } from '../../json/json.ts';
import type { SseFrame } from '../../sse/encode.ts';
import { encodeEnvelope, encodeTier } from './blocks.ts';
import { ChoiceStreamEncoder } from './content-encode.ts';
import { encodeErrorChunk, encodeUsage, isBesideChoices } from './outcome.ts';

/** Canonical events to chunks, in the form that every official client accepts. */
export function encodeStream(context: CodecContext): Stage<CanonicalStreamEvent, SseFrame> {
  return new StreamEncoder(context);
}

const DONE: SseFrame = { data: '[DONE]' };

class StreamEncoder implements Stage<CanonicalStreamEvent, SseFrame> {
  readonly #context: CodecContext;
  /** Clients that did not request usage fail on a chunk without choices. */
  readonly #wantsUsage: boolean;
  /** Usage beside the last choice stays there, for clients that know the server. */
  readonly #followsServer: boolean;
  #isForeign = false;
  /** Id, created and model: the same on every chunk, so serialized once. */
  #envelope: JsonObject = {};
  #head = '{';
  readonly #tail: string;
  readonly #choices = new Map<number, ChoiceStreamEncoder>();
  #usage: CanonicalUsage | undefined;
  #out: SseFrame[] = [];
  #hasEnded = false;

  constructor(context: CodecContext) {
    this.#context = context;
    this.#wantsUsage = context.request === undefined || context.request.stream_options?.include_usage === true;
    this.#followsServer = !this.#wantsUsage || context.isRepair === true;
    this.#tail = this.#wantsUsage ? ',"usage":null}' : '}';
  }

  push(event: CanonicalStreamEvent): Iterable<SseFrame> {
    if (this.#hasEnded) return NOTHING;
    try {
      this.#write(event);
    } catch (error) {
      // The policy rejects a loss, but the stream has started: only an error chunk can report it.
      if (!(error instanceof CodecError)) throw error;
      this.#fail(error.error);
    }
    return this.#take();
  }

  end(): Iterable<SseFrame> {
    if (!this.#hasEnded) this.#fail({ code: 'STREAM_TRUNCATED', message: 'the stream ended early' });
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
        this.#choice(event.choice).delta(event.index, event.delta);
        return;
      case 'content_block_start':
        this.#choice(event.choice).start(event.index, event.content_block);
        return;
      case 'content_block_stop':
        this.#choice(event.choice).stop(event);
        return;
      case 'message_start':
        this.#start(event.message);
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
        return; // written as a comment line, which is not a frame
      default:
        event satisfies never;
    }
  }

  #start(message: MessageStart['message']): void {
    this.#isForeign = isForeign(message, 'openai-chat', this.#context);
    const { id, created, model } = encodeEnvelope(message, this.#isForeign, this.#context);
    const tier = encodeTier(message.service_tier, this.#isForeign, this.#context);
    const { system_fingerprint: fingerprint } = message;
    this.#envelope = {
      id,
      object: 'chat.completion.chunk',
      created,
      model,
      ...(tier !== undefined && { service_tier: tier }),
      ...(fingerprint !== undefined && { system_fingerprint: fingerprint }),
    };
    this.#head = `${JSON.stringify(this.#envelope).slice(0, -1)},`;
    this.#choice(0);
  }

  #choice(index = 0): ChoiceStreamEncoder {
    let choice = this.#choices.get(index);
    if (!choice) {
      choice = new ChoiceStreamEncoder(index, this.#isForeign, this.#context, (value, fields) => this.#send(value, fields));
      this.#choices.set(index, choice);
    }
    return choice;
  }

  #send(choice: JsonObject, fields?: JsonObject): void {
    // Unknown fields are rare, so a chunk that has them is serialized as a whole.
    const head = fields ? `${JSON.stringify({ ...fields, ...this.#envelope }).slice(0, -1)},` : this.#head;
    const tail = fields?.['usage'] ? '}' : this.#tail;
    this.#out.push({ data: `${head}"choices":[${JSON.stringify(choice)}]${tail}` });
  }

  #finish(event: MessageDelta): void {
    const { delta, message, usage } = event;
    const beside = usage && this.#followsServer && isBesideChoices(usage) ? usage : undefined;
    if (usage && !beside) this.#usage = usage;
    if (delta.stop_reason === null) return; // an error follows
    if (delta.stop_reason === 'error') {
      const { explanation, raw } = delta.stop_details ?? {};
      this.#fail({ code: 'UPSTREAM_ERROR', message: explanation || raw || 'the provider aborted the generation' });
      return;
    }
    const tier = encodeTier(message?.service_tier, this.#isForeign, this.#context);
    this.#choice(event.choice).finish(event, delta.stop_reason, {
      ...(tier !== undefined && { service_tier: tier }),
      ...(message?.system_fingerprint !== undefined && { system_fingerprint: message.system_fingerprint }),
      ...(beside && { usage: encodeUsage(beside) }),
    });
  }

  #stop(): void {
    for (const choice of this.#choices.values()) if (!choice.isFinished) this.#finishEmpty(choice);
    if (this.#wantsUsage && this.#usage)
      this.#out.push({ data: `${this.#head}"choices":[],"usage":${JSON.stringify(encodeUsage(this.#usage))}}` });
    this.#out.push(DONE);
    this.#hasEnded = true;
  }

  /** Finishes a choice that was announced although the source never sent it. */
  #finishEmpty(choice: ChoiceStreamEncoder): void {
    const message = 'the source sent no first choice; an empty one is sent';
    this.#context.note({ code: 'REPAIRED', path: '/choices/0', feature: 'choices', message });
    choice.finish({ type: 'message_delta', delta: { stop_reason: 'end_turn' } }, 'end_turn', {});
  }

  /** Sends an error without `[DONE]`, which clients would take for a normal end. */
  #fail(error: CanonicalError): void {
    this.#out.push({ data: JSON.stringify(encodeErrorChunk(error)) });
    this.#hasEnded = true;
  }
}
