import { deriveId } from '../../accumulate/argument-text.ts';
import { mergeUsage, readUsage } from '../../accumulate/chat-delta.ts';
import { ChunkFields } from '../../accumulate/unknown-fields.ts';
import type { MessageDelta } from '../../canonical/events.ts';
import type { StopReason } from '../../canonical/message.ts';
import { type CanonicalError, ownError } from '../../canonical/notes.ts';
import type { Emit } from '../../codec/block-emitter.ts';
import type { Context } from '../../codec/context.ts';
import {
  type FrameDecoder,
  PayloadDecoder,
  type PayloadMachine,
  type StreamDecoderOptions,
  type StreamOutcome,
} from '../../codec/stream-decoder.ts';
import { isFilledText, isObject, type JsonObject } from '../../json/json.ts';
import { ChoiceDecoder } from './content-decode.ts';
import { decodeError, decodeStop, decodeUsage, findError, isEmptyObject, markBesideChoices } from './outcome.ts';
import type { WireChoice, WireChunk } from './wire.ts';

/** Decodes a chat stream, or a whole body in place of one, to canonical events. */
export function decodeStream(context: Context, options: StreamDecoderOptions = {}): FrameDecoder {
  return new PayloadDecoder(context, options, (emit) => new ChatMachine(context, emit));
}

const NO_CHOICES: CanonicalError = { code: 'UPSTREAM_ERROR', message: 'the response has no choices', http_status: 502 };

/** The event machine: envelope, usage, errors and the end of the stream; the content is decoded per choice. */
class ChatMachine implements PayloadMachine {
  readonly #context: Context;
  readonly #emit: Emit;
  #hasStarted = false;
  #id = '';
  #model = '';
  #created: number | undefined;
  #usage: JsonObject | undefined;
  /** The last usage came in a chunk with choices. */
  #isUsageBeside = false;
  #isWholeBody = false;
  isRepeatable = false;
  #offset = 0;
  readonly #choices = new Map<number, ChoiceDecoder>();
  readonly #fields = new ChunkFields();

  constructor(context: Context, emit: Emit) {
    this.#context = context;
    this.#emit = emit;
  }

  payload(chunk: WireChunk & JsonObject, event: string | undefined, offset: number): void {
    this.#offset = offset;
    this.isRepeatable = false;
    const hasUsage = this.#readEnvelope(chunk);
    const { choices } = chunk;
    if (Array.isArray(choices)) this.#pushChoices(choices);
    else if (chunk.error === undefined) this.#context.report('chat/choices-missing', offset);
    if (isEmptyObject(chunk.error) && Array.isArray(choices)) this.#context.report('chat/error-empty', offset);
    if (hasUsage) this.isRepeatable = false;
    const error = findError(chunk, event);
    if (error === undefined) return;
    this.#context.report('chat/error-in-stream', offset);
    this.fail(decodeError(error));
  }

  /** Returns whether the chunk has usage. */
  #readEnvelope(chunk: WireChunk & JsonObject): boolean {
    const { id, model, created, object } = chunk;
    if (isFilledText(id)) {
      if (this.#id !== '' && id !== this.#id) this.#context.report('chat/id-varies', this.#offset);
      this.#id ||= id;
    }
    if (typeof model === 'string') this.#model ||= model;
    if (typeof created === 'number' && created !== 0) this.#created ??= created;
    // A whole body in place of a stream; some servers also send one at the end of a stream.
    if (object === 'chat.completion') this.#isWholeBody = !this.#hasStarted;
    const usage = readUsage(chunk);
    if (usage) {
      this.#usage ??= {};
      mergeUsage(this.#usage, usage);
      this.#isUsageBeside = !this.#isWholeBody && Array.isArray(chunk.choices) && chunk.choices.length > 0;
    }
    this.#fields.look(chunk);
    return usage !== undefined;
  }

  #pushChoices(choices: unknown[]): void {
    // Azure's first chunk has no choices and a blank id: wait for a chunk with an id.
    if (!this.#hasStarted && (choices.length > 0 || this.#id !== '')) this.#start();
    for (const choice of choices) if (isObject(choice)) this.#pushChoice(choice);
    if (choices.length > 1) this.isRepeatable = false;
  }

  #pushChoice(choice: WireChoice & JsonObject): void {
    if (isObject(choice.message) && !this.#isWholeBody) this.#context.report('chat/message-instead-of-delta', this.#offset);
    const decoder = this.#findChoice(choice.index);
    decoder.push(choice, this.#offset);
    this.isRepeatable = decoder.isRepeatable;
  }

  #start(): void {
    this.#hasStarted = true;
    if (this.#id === '') this.#context.report('chat/id-missing', this.#offset);
    this.#emit({
      type: 'message_start',
      message: {
        id: this.#id || deriveId('chatcmpl-', this.#model, this.#created ?? 0),
        model: this.#model,
        ...(this.#created !== undefined && { created: this.#created }),
      },
    });
  }

  #findChoice(wireIndex: unknown): ChoiceDecoder {
    const index = Number.isSafeInteger(wireIndex) ? Number(wireIndex) : 0;
    let choice = this.#choices.get(index);
    if (!choice) {
      choice = new ChoiceDecoder(index, this.#context, this.#emit, this.#id);
      this.#choices.set(index, choice);
    }
    return choice;
  }

  done(offset: number, hasEnded: boolean): void {
    if (hasEnded) return; // after an error
    this.#offset = offset;
    if (!this.#hasAnything) {
      const message = 'the stream ended without a message: only [DONE]';
      // A choice that was understood, but is empty, shows that this is a chat stream.
      const isRead = [...this.#choices.values()].some(({ unread }) => unread === '');
      this.fail({ code: 'UPSTREAM_ERROR', message, details: { code: 'empty_stream', terminal: true, isRead } });
      return;
    }
    this.#finish();
  }

  end(): void {
    if (this.#isWholeBody && this.#choices.size === 0) this.fail(NO_CHOICES);
    else if (this.#isFinished || (this.#isWholeBody && this.#hasStarted)) {
      if (!this.#isWholeBody) this.#context.report('sse/missing-done', this.#offset);
      this.#finish();
    } else if (this.#hasStarted) {
      this.fail({ code: 'STREAM_TRUNCATED', message: 'the stream ended without a finish_reason and without [DONE]' });
    } else {
      this.fail(ownError('empty_stream', 'UPSTREAM_ERROR', 'the stream ended without a message'));
    }
  }

  fail(error: CanonicalError): void {
    this.#endChoices(true);
    this.#emit({ type: 'error', error });
  }

  get outcome(): StreamOutcome {
    const main = this.#main;
    const usage = this.#usage && decodeUsage(this.#usage, { profile: this.#context.profile, note: () => undefined });
    return { stop_reason: main && main.finishReason !== null ? main.stopReason : null, usage };
  }

  /** The choice that reports what belongs to the whole message: choice 0, which need not be the first to open. */
  get #main(): ChoiceDecoder | undefined {
    return this.#choices.get(0) ?? this.#choices.values().next().value;
  }

  get #isFinished(): boolean {
    return [...this.#choices.values()].some((choice) => choice.finishReason !== null);
  }

  get #hasAnything(): boolean {
    return this.#isFinished || [...this.#choices.values()].some((choice) => choice.hasContent);
  }

  /**
   * Some servers (Snowflake) never send a finish reason; `[DONE]` or the end of a whole body shows that nothing is
   * missing.
   */
  #reportMissingFinish(): void {
    this.#context.report('chat/finish-missing', this.#offset);
    this.#context.note({
      code: 'REPAIRED',
      path: '/choices/0/finish_reason',
      feature: 'finish_reason',
      message: 'the message ended without a finish_reason; derived from its content',
    });
  }

  #finish(): void {
    // Choices with unknown fields only are another format, which must not pass for an empty message.
    const unread = [...this.#choices.values()].map((choice) => choice.unread);
    const last = unread.at(-1);
    if (last && !unread.includes('')) {
      this.fail(ownError('not_a_stream', 'UPSTREAM_ERROR', `choices have no delta or message, only: ${last.slice(0, 200)}`));
      return;
    }
    if (!this.#isFinished) this.#reportMissingFinish();
    this.#endChoices(false);
    this.#emit({ type: 'message_stop' });
  }

  #endChoices(hasFailed: boolean): void {
    for (const choice of this.#choices.values()) {
      choice.end(this.#offset);
      const stop = hasFailed ? null : choice.stopReason;
      if (stop) this.#inspectStop(choice, stop);
      this.#emit(this.#messageDelta(choice, { stop_reason: stop }));
    }
  }

  #inspectStop({ index, finishReason: finish, finishAt }: ChoiceDecoder, stop: StopReason): void {
    if (stop === 'tool_use' && finish === 'stop') this.#context.report('chat/finish-stop-with-calls', finishAt);
    if (stop === 'tool_use' || decodeStop(finish) !== 'tool_use') return;
    this.#context.report('chat/finish-calls-missing', finishAt);
    this.#context.note({
      code: 'REPAIRED',
      path: `/choices/${index}/finish_reason`,
      feature: 'finish_reason',
      message: `finish_reason is ${JSON.stringify(finish)} although there are no tool calls; treated as "stop"`,
    });
  }

  #messageDelta(choice: ChoiceDecoder, delta: MessageDelta['delta']): MessageDelta {
    const isMain = choice === this.#main;
    if (this.#usage && this.#isUsageBeside) markBesideChoices(this.#usage);
    const late = choice.lateBlocks;
    const { service_tier: tier, system_fingerprint: fingerprint, error, ...others } = this.#fields.kept;
    const fields = error === undefined || isEmptyObject(error) ? others : { ...others, error };
    return {
      type: 'message_delta',
      ...(choice.index !== 0 && { choice: choice.index }),
      delta,
      ...(isMain && this.#usage && { usage: decodeUsage(this.#usage, this.#context) }),
      extensions: { 'openai-chat': { ...(isMain && fields), ...choice.extensions } },
      ...(late?.length && { late_blocks: late }),
      ...(isMain && {
        message: {
          ...(typeof tier === 'string' && { service_tier: tier }),
          ...(typeof fingerprint === 'string' && { system_fingerprint: fingerprint }),
        },
      }),
    };
  }
}
