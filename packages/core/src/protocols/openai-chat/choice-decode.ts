import {
  DistinctList,
  partsOf,
  ReasoningDetails,
  readContentParts,
  readLegacyCall,
  readReasoning,
  strongerFinish,
  usualChoice,
} from '../../accumulate/chat-delta.ts';
import { countKeys, isFilledText, isObject, isSet, type JsonObject, overlay } from '../../accumulate/overlay.ts';
import { Snapshots } from '../../accumulate/snapshots.ts';
import { CallTracker, callIdSeed } from '../../accumulate/tool-calls.ts';
import { UnknownFields } from '../../accumulate/unknown-fields.ts';
import type { Citation, TokenLogprob } from '../../canonical/blocks.ts';
import type { MessageDelta } from '../../canonical/events.ts';
import type { StopReason } from '../../canonical/response.ts';
import { BlockEmitter, type Emit, unplaced } from '../shared/block-writer.ts';
import type { Context } from '../shared/context.ts';
import type { Repeatable } from '../shared/payload-decoder.ts';
import { asContent, audioFlow, decodeCitation, decodeImage, decodeLogprobs, REFUSAL, TEXT, THINKING } from './blocks.ts';
import { CallEmitter } from './call-writer.ts';
import { inspectCall, inspectChoice } from './inspect.ts';
import { decodeStop, isStandardStop } from './stop.ts';
import { CHOICE_FIELDS, DELTA_FIELDS, type WireChoice, type WireDelta } from './wire.ts';

/** One choice of a chat stream, deltas to blocks. */
export class ChoiceDecoder implements Repeatable {
  readonly index: number;
  readonly #context: Context;
  readonly #blocks: BlockEmitter;
  readonly #idSeed: string;
  /** Most answers call nothing. */
  #calls: CallTracker | undefined;
  #live: CallEmitter | undefined;
  finishReason: string | null = null;
  /** Where the finish reason was. */
  finishAt = 0;
  isRepeatable = false;
  #role = '';
  readonly #seen = { delta: false, text: false, reasoning: false, refusal: false, audio: false };
  readonly #snapshots = new Snapshots();
  /** `message` in place of a delta; read at the end, for what no delta carried. */
  #whole: JsonObject | undefined;
  #wholeLogprobs: unknown;
  #details: ReasoningDetails | undefined;
  #thinking: ReasoningDetails | undefined;
  /** The reasoning before any details. */
  #reasoned = '';
  #legacy = false;
  readonly #annotations = new DistinctList();
  /** Annotations and logprobs that came while no text was open: they are for the next one. */
  readonly #late: { annotations: unknown[]; logprobs: TokenLogprob[] } = { annotations: [], logprobs: [] };
  readonly #choiceFields = new UnknownFields(CHOICE_FIELDS);
  readonly #deltaFields = new UnknownFields(DELTA_FIELDS);
  #offset = 0;

  constructor(index: number, context: Context, emit: Emit, idSeed: string) {
    this.index = index;
    this.#context = context;
    this.#idSeed = idSeed;
    this.#blocks = new BlockEmitter(emit, index);
  }

  /** Ciphertexts, and parts that nobody knows (`content_parts`, when they are written again), are no blocks and yet an answer. */
  get hasContent(): boolean {
    if (!this.#blocks.isEmpty || this.#hasCalls || this.#seen.audio || this.#whole) return true;
    return Boolean(this.#details?.entries.length || this.#deltaFields.kept['content_parts']);
  }

  /** The fields of a choice that ended well and never had a delta or a message; "" for any other. */
  get unread(): string {
    const isRead = this.#seen.delta || this.hasContent || this.stopReason !== 'end_turn';
    return isRead ? '' : Object.keys(this.#choiceFields.kept).join(', ');
  }

  push(wire: WireChoice, offset: number): void {
    const choice = wire.messages === undefined && wire.finish_details === undefined ? wire : usualChoice(wire);
    this.#offset = offset;
    inspectChoice(choice, this.finishReason, offset, this.#context.report);
    const { delta, message, finish_reason: finish, logprobs } = choice;
    this.isRepeatable = false;
    if (isObject(delta)) {
      this.#seen.delta = true;
      this.#pushDelta(delta, logprobs);
      this.isRepeatable = isOnlyText(delta) && !isSet(logprobs) && this.#snapshots.last === null;
    } else if (typeof choice.text === 'string') this.#pushDelta({ content: choice.text }, asContent(logprobs));
    if (isObject(message)) {
      this.#wholeLogprobs = logprobs;
      this.#whole = overlay(this.#whole ?? {}, message);
    }
    if (isSet(finish)) this.#pushFinish(finish, isSet(wire.finish_reason) || !wire.finish_details);
    if (message !== undefined || this.finishReason !== null) this.isRepeatable = false;
    this.#choiceFields.look(choice);
    if (this.#blocks.isHolding) this.#live?.resume();
  }

  /** `isNamed`: the word does not stand in `finish_details` alone, where no client looks for it. */
  #pushFinish(finish: unknown, isNamed: boolean): void {
    this.finishReason = strongerFinish(this.finishReason, finish);
    this.finishAt = this.#offset;
    if (!isNamed) this.#context.report('chat/finish-missing', this.#offset);
    else if (isFilledText(finish) && !isStandardStop(finish)) {
      this.#context.report('chat/finish-nonstandard', this.#offset, `finish_reason is ${JSON.stringify(finish)}`);
    }
  }

  #pushDelta(delta: WireDelta, logprobs: unknown): void {
    const { content, refusal, tool_calls: calls, function_call: legacy, role } = delta;
    if (isFilledText(role)) this.#role ||= role;
    const reasoning = readReasoning(delta, this.#reasoned);
    if (reasoning !== '') this.#pushReasoning(reasoning);
    if (delta.reasoning_details) this.#pushDetails(delta.reasoning_details);
    if (delta.thinking_blocks) this.#pushThinking(delta.thinking_blocks);
    if (typeof content === 'string') this.#pushText(content, logprobs);
    else if (typeof content === 'object' && content) this.#pushParts(partsOf(content), logprobs);
    else if (logprobs) this.#pushText('', logprobs);
    if (isFilledText(refusal)) this.#pushRefusal(refusal, logprobs);
    if (Array.isArray(calls)) this.#pushCalls(calls);
    else if (isObject(calls)) this.#pushCalls([calls]);
    const legacyCall = readLegacyCall(legacy);
    if (legacyCall) this.#pushLegacyCall(legacyCall);
    this.#pushMedia(delta);
    this.#deltaFields.look(delta);
  }

  #pushReasoning(thinking: string): void {
    this.#seen.reasoning = true;
    if (!this.#details) this.#reasoned += thinking;
    this.#giveWay();
    this.#blocks.write(THINKING, { type: 'thinking_delta', thinking });
  }

  #pushDetails(details: unknown): void {
    this.#details ??= new ReasoningDetails();
    this.#reasoned = '';
    this.#details.push(details);
  }

  /** The reasoning once more, with its signature. */
  #pushThinking(blocks: unknown): void {
    this.#thinking ??= new ReasoningDetails();
    this.#thinking.push(blocks);
    const value = this.#thinking.entries.at(-1)?.['signature'];
    if (!isFilledText(value)) return;
    this.#blocks.sign(THINKING.kind, { type: 'signature_delta', signature: { origin: 'openai-chat', form: 'signature', value } });
  }

  /** Lets out text that may have been a snapshot. */
  #flushText(): void {
    if (this.#snapshots.held !== '') this.#writeText(this.#snapshots.flush(), undefined);
  }

  #pushText(delta: string, logprobs: unknown): void {
    this.#writeText(this.#snapshots.push(delta, isSet(logprobs)), logprobs);
  }

  #writeText(text: string, wireLogprobs: unknown): void {
    const logprobs = decodeLogprobs(wireLogprobs, 'content');
    if (text === '' && !this.#blocks.isOpen('text')) {
      for (const token of logprobs ?? []) this.#late.logprobs.push(token);
      return;
    }
    if (text === '' && !logprobs) return;
    this.#seen.text = true;
    this.#live?.giveWay();
    const all = this.#late.logprobs.length > 0 ? [...this.#late.logprobs.splice(0), ...(logprobs ?? [])] : logprobs;
    this.#blocks.write(TEXT, all ? { type: 'text_delta', text, logprobs: all } : { type: 'text_delta', text });
    if (this.#late.annotations.length > 0)
      for (const annotation of this.#late.annotations.splice(0)) this.#cite(decodeCitation(annotation));
  }

  #pushParts(parts: readonly unknown[], logprobs: unknown): void {
    this.#context.report('chat/content-parts', this.#offset);
    const { text, thinking, images, other } = readContentParts(parts);
    if (thinking !== '') this.#pushReasoning(thinking);
    this.#pushText(text, logprobs);
    if (images.length > 0 || other.length > 0) this.#giveWay();
    for (const image of images) this.#blocks.whole(decodeImage(image));
    for (const raw of other) this.#blocks.whole({ type: 'opaque', origin: 'openai-chat', raw });
  }

  #pushRefusal(text: string, wireLogprobs: unknown): void {
    this.#seen.refusal = true;
    const logprobs = decodeLogprobs(wireLogprobs, 'refusal');
    this.#giveWay();
    this.#blocks.write(REFUSAL, { type: 'text_delta', text, refusal: true, ...(logprobs && { logprobs }) });
  }

  #pushCalls(entries: unknown[]): void {
    for (const entry of entries) inspectCall(entry, this.#offset, this.#context.report);
    this.#tracker().push(entries);
  }

  /** The form before tool calls: one call, without an id. */
  #pushLegacyCall(call: JsonObject): void {
    this.#legacy = true;
    this.#context.report('chat/legacy-function-call', this.#offset);
    this.#tracker().push([{ index: 0, type: 'function', function: call }]);
  }

  /** Before content that is no text. */
  #giveWay(): void {
    this.#flushText();
    this.#live?.giveWay();
  }

  #tracker(): CallTracker {
    this.#flushText();
    if (this.#calls) return this.#calls;
    const calls = new CallTracker({}, callIdSeed(this.#idSeed, this.index), (call, text, name) =>
      live.accept(call, text, name, this.#offset),
    );
    const live = new CallEmitter(this.#blocks, calls, this.#context.report);
    this.#calls = calls;
    this.#live = live;
    return calls;
  }

  get #hasCalls(): boolean {
    return Boolean(this.#calls?.calls.length);
  }

  #pushMedia({ annotations, images, audio }: WireDelta): void {
    if (Array.isArray(annotations)) for (const annotation of annotations) this.#pushAnnotation(annotation);
    if (Array.isArray(images)) {
      this.#giveWay();
      for (const image of images) if (isObject(image)) this.#blocks.whole(decodeImage(image));
    }
    if (isObject(audio)) this.#pushAudio(audio);
  }

  /** Annotations are repeated word for word on later chunks. */
  #pushAnnotation(annotation: unknown): void {
    if (!this.#annotations.add(annotation)) return;
    if (this.#blocks.isOpen('text')) this.#cite(decodeCitation(annotation));
    else this.#late.annotations.push(annotation);
  }

  #cite(citation: Citation): void {
    this.#blocks.write(TEXT, { type: 'citations_delta', citation });
  }

  #pushAudio(audio: JsonObject): void {
    const { id, data, transcript, expires_at: expires } = audio;
    if (!id && !data && !transcript) return; // a blank, from servers that dump a whole struct
    this.#seen.audio = true;
    this.#flushText();
    if (expires !== undefined) this.#deltaFields.kept['audio'] = { expires_at: expires };
    if (typeof data !== 'string' && typeof transcript !== 'string') {
      if (!this.#blocks.isOpen('audio') && typeof id === 'string') this.#blocks.open(audioFlow(audio));
      return;
    }
    this.#blocks.write(audioFlow(audio), {
      type: 'audio_delta',
      ...(typeof data === 'string' && { data }),
      ...(typeof transcript === 'string' && { transcript }),
    });
  }

  /** Closes everything. Afterwards nothing more is pushed. */
  end(offset: number): void {
    this.#offset = offset;
    this.#readWhole();
    this.#flushText();
    this.#live?.end(this.#legacy);
    // They came when the text had closed, and it never went on.
    for (const annotation of this.#late.annotations) this.#cite(unplaced(decodeCitation(annotation)));
    this.#blocks.end();
  }

  #readWhole(): void {
    const whole = this.#whole;
    if (!whole) return;
    const missing: WireDelta & JsonObject = { ...whole };
    const drop = (isSeen: boolean, ...keys: string[]) => {
      if (isSeen) for (const key of keys) delete missing[key];
    };
    drop(this.#seen.text, 'content');
    drop(this.#seen.refusal, 'refusal');
    drop(this.#seen.reasoning, 'reasoning_content', 'reasoning', 'reasoning_text', 'reasoning_details');
    drop(this.#thinking !== undefined, 'thinking_blocks');
    drop(this.#hasCalls, 'tool_calls', 'function_call');
    drop(this.#seen.audio, 'audio');
    this.#pushDelta(missing, this.#seen.text ? undefined : this.#wholeLogprobs);
  }

  /** Calls that went on after their blocks had stopped. */
  get lateBlocks(): MessageDelta['late_blocks'] {
    return this.#live?.late;
  }

  /** `finish_reason` in the canonical words, corrected by what the choice holds. */
  get stopReason(): StopReason {
    const stop = decodeStop(this.finishReason);
    const { text, refusal } = this.#seen;
    if (stop !== 'end_turn') return stop;
    if (this.#calls?.hasClientCall) return 'tool_use';
    return refusal && !text ? 'refusal' : stop;
  }

  /** What the canonical model has no place for, under wire names: beside the finish reason, of the choice, of its message. */
  get extensions(): JsonObject {
    const message: JsonObject = { ...this.#deltaFields.kept };
    if (this.#role !== '') message['role'] = this.#role;
    if (this.#details) message['reasoning_details'] = this.#details.entries;
    if (this.#thinking) message['thinking_blocks'] = this.#thinking.entries;
    if (this.#late.logprobs.length > 0) message['logprobs'] = this.#late.logprobs;
    if (this.#legacy) message['function_call'] = true;
    return {
      finish_reason: this.finishReason,
      ...(countKeys(this.#choiceFields.kept) > 0 && { choice: this.#choiceFields.kept }),
      ...(countKeys(message) > 0 && { message }),
    };
  }
}

const isOnlyText = (delta: WireDelta): boolean => typeof delta.content === 'string' && countKeys(delta) === 1;
