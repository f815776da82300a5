import { deriveId } from '../../accumulate/argument-text.ts';
import { UnknownFields } from '../../accumulate/unknown-fields.ts';
import type { MessageDelta } from '../../canonical/events.ts';
import { type CanonicalError, ownError } from '../../canonical/notes.ts';
import type { Emit } from '../../codec/block-emitter.ts';
import type { Context } from '../../codec/context.ts';
import { textOrEmpty } from '../../codec/read.ts';
import {
  type FrameDecoder,
  PayloadDecoder,
  type PayloadMachine,
  type StreamDecoderOptions,
  type StreamOutcome,
} from '../../codec/stream-decoder.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { CandidateDecoder } from './content-decode.ts';
import { decodeError, decodeUsage, findError, hasCounts } from './outcome.ts';
import {
  decodeEnvelope,
  hasUsage,
  isResponse,
  isWrapped,
  normaliseNames,
  RESPONSE_FIELDS,
  toCamelObject,
  type WireResponse,
  WRAPPER_FIELDS,
} from './wire.ts';

/**
 * Decodes GenerateContentResponses: SSE events, elements of a JSON array, or the single body of an unstreamed
 * response.
 */
export function decodeStream(context: Context, options: StreamDecoderOptions = {}): FrameDecoder {
  return new PayloadDecoder(context, options, (emit) => new GeminiMachine(context, emit, options.isWhole));
}

/** The state of one stream. */
class GeminiMachine implements PayloadMachine {
  readonly #context: Context;
  readonly #emit: Emit;
  readonly #isWhole: boolean;
  #started = false;
  #id = '';
  #usage: JsonObject | undefined;
  #blockReason: string | undefined;
  #sawPayload = false;
  #offset = 0;
  readonly #candidates = new Map<number, CandidateDecoder>();
  readonly #fields = new UnknownFields(RESPONSE_FIELDS);
  readonly #wrapper = new UnknownFields(WRAPPER_FIELDS, this.#fields.kept);

  constructor(context: Context, emit: Emit, isWhole = false) {
    this.#context = context;
    this.#emit = emit;
    this.#isWhole = isWhole;
  }

  payload(value: JsonObject, event: string | undefined, offset: number): void {
    this.#offset = offset;
    this.#sawPayload = true;
    const raw = this.#unwrap(value);
    const error = findError(raw, event) ?? findError(value, undefined);
    // A payload may consist of usage alone, once the response has started.
    if (isResponse(raw) || (this.#started && hasUsage(raw))) this.#read(raw);
    else if (error === undefined) this.#context.report('gemini/unknown-payload', offset);
    if (error !== undefined) this.fail(decodeError(error));
  }

  #unwrap(value: JsonObject): JsonObject {
    const { response }: { response?: unknown } = value;
    if (!isObject(response) || !isWrapped(value)) return value;
    this.#context.report('gemini/response-wrapper', this.#offset);
    this.#wrapper.look(value);
    return response;
  }

  #read(raw: JsonObject): void {
    const response: WireResponse = normaliseNames(raw);
    if (response !== raw) this.#context.report('gemini/snake-case', this.#offset);
    this.#fields.look(response);
    this.#readUsage(response.usageMetadata);
    this.#readBlockReason(response.promptFeedback);
    if (!this.#started) this.#start(response);
    const { candidates } = response;
    if (Array.isArray(candidates)) for (const [place, candidate] of candidates.entries()) this.#pushCandidate(candidate, place);
  }

  /** Each object replaces the one before, unless it has no counts. */
  #readUsage(usage: unknown): void {
    if (isObject(usage) && (hasCounts(usage) || !this.#usage)) this.#usage = usage;
  }

  #readBlockReason(feedback: unknown): void {
    const { blockReason }: { blockReason?: unknown } = toCamelObject(feedback);
    // An unset enum value, by name or number, is not a block.
    const isSet =
      typeof blockReason === 'string'
        ? blockReason !== '' && !blockReason.endsWith('_UNSPECIFIED')
        : typeof blockReason === 'number' && blockReason > 0;
    if (isSet) this.#blockReason = String(blockReason);
  }

  #start(response: WireResponse): void {
    this.#started = true;
    const envelope = decodeEnvelope(response);
    // Older models and many mocks send no responseId.
    this.#id = envelope.id || deriveId('resp_', envelope.model, textOrEmpty(response.createTime));
    const time = textOrEmpty(response.createTime);
    // The canonical time has whole seconds; Gemini's encoder needs the exact time from the first fragment on.
    const extensions = time === '' ? {} : { extensions: { gemini: { createTime: time } } };
    this.#emit({ type: 'message_start', message: { ...envelope, id: this.#id, ...extensions } });
  }

  #pushCandidate(candidate: unknown, place: number): void {
    if (!isObject(candidate)) {
      this.#context.report('gemini/malformed-part', this.#offset);
      return;
    }
    const { index }: { index?: unknown } = candidate;
    // proto3 leaves out a 0, so candidates without an index are numbered by position.
    this.#candidate(Number.isSafeInteger(index) && Number(index) >= 0 ? Number(index) : place).push(candidate, this.#offset);
  }

  #candidate(index: number): CandidateDecoder {
    let candidate = this.#candidates.get(index);
    if (!candidate) {
      candidate = new CandidateDecoder(index, this.#context, this.#emit, this.#id);
      this.#candidates.set(index, candidate);
    }
    return candidate;
  }

  /** Gemini has no sentinel, but some proxies add one. */
  done(offset: number): void {
    this.#context.report('gemini/done-sentinel', offset);
  }

  end(): void {
    if (this.#isWhole && this.#blockReason === undefined) for (const candidate of this.#candidates.values()) candidate.complete();
    if (!this.#started) this.fail(this.#explainEmpty());
    else if (this.#isFinished) this.#finish();
    else {
      this.#context.report('gemini/finish-missing', this.#offset);
      this.fail({ code: 'STREAM_TRUNCATED', message: 'the stream ended without a finishReason' });
    }
  }

  #explainEmpty(): CanonicalError {
    if (!this.#sawPayload) return ownError('empty_stream', 'UPSTREAM_ERROR', 'the stream ended without a message');
    return ownError('not_a_stream', 'UPSTREAM_ERROR', 'the body contains no GenerateContentResponse');
  }

  /** A blocked prompt has no candidates, or none that finished. */
  get #isFinished(): boolean {
    if (this.#blockReason !== undefined) return true;
    for (const { isFinished } of this.#candidates.values()) if (!isFinished) return false;
    return this.#candidates.size > 0;
  }

  /** The candidate that reports what belongs to the whole message: candidate 0, which need not be the first to open. */
  get #main(): CandidateDecoder | undefined {
    return this.#candidates.get(0) ?? this.#candidates.values().next().value;
  }

  get outcome(): StreamOutcome {
    const main = this.#main;
    const usage = this.#usage && hasCounts(this.#usage) ? decodeUsage(this.#usage, () => undefined) : undefined;
    return { stop_reason: this.#isFinished ? (main?.stop ?? this.#buildBlockedDelta()).stop_reason : null, usage };
  }

  #finish(): void {
    if (this.#candidates.size === 0) this.#candidate(0);
    for (const candidate of this.#candidates.values()) {
      candidate.end(true);
      this.#emit(this.#messageDelta(candidate, candidate.stop ?? this.#buildBlockedDelta()));
    }
    this.#emit({ type: 'message_stop' });
  }

  #buildBlockedDelta(): MessageDelta['delta'] {
    const { promptFeedback }: { promptFeedback?: unknown } = this.#fields.kept;
    const explanation = textOrEmpty(toCamelObject(promptFeedback)['blockReasonMessage']);
    const reason = this.#blockReason ?? '';
    return {
      stop_reason: 'content_filter',
      stop_details: { category: reason, ...(explanation !== '' && { explanation }), raw: reason },
    };
  }

  fail(error: CanonicalError): void {
    if (this.#started && this.#candidates.size === 0) this.#candidate(0);
    for (const candidate of this.#candidates.values()) {
      candidate.end(false);
      this.#emit(this.#messageDelta(candidate, { stop_reason: null }));
    }
    this.#emit({ type: 'error', error });
  }

  #messageDelta(candidate: CandidateDecoder, delta: MessageDelta['delta']): MessageDelta {
    const isMain = candidate === this.#main;
    const usage = isMain && this.#usage && hasCounts(this.#usage) ? this.#usage : undefined;
    const tier = usage && textOrEmpty(toCamelObject(usage)['serviceTier']);
    const uncounted = isMain && !usage && this.#usage ? { usageMetadata: this.#usage } : {};
    return {
      type: 'message_delta',
      ...(candidate.index !== 0 && { choice: candidate.index }),
      delta,
      ...(usage && { usage: decodeUsage(usage, this.#context.note) }),
      extensions: { gemini: { ...(isMain && this.#fields.kept), ...uncounted, ...candidate.extensions } },
      ...(tier && { message: { service_tier: tier.toLowerCase() } }),
    };
  }
}
