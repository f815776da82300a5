/** The content of a chat stream: choices to blocks, tool-call deltas to calls. */

import {
  DistinctList,
  normalizeChoice,
  ReasoningDetails,
  readContentParts,
  readLegacyCall,
  readReasoning,
  readReasoningText,
  Snapshots,
  strongerFinish,
  toParts,
} from '../../accumulate/chat-delta.ts';
import { overlay } from '../../accumulate/overlay.ts';
import {
  ABSENT_IDS,
  CallTracker,
  callIdSeed,
  isNameless,
  isProviderExecuted,
  type PendingCall,
  type ToolCallSink,
} from '../../accumulate/tool-calls.ts';
import { UnknownFields } from '../../accumulate/unknown-fields.ts';
import type { MessageDelta } from '../../canonical/events.ts';
import type { Citation, StopReason, TokenLogprob, ToolUseBlock } from '../../canonical/message.ts';
import { BlockEmitter, type Emit, withoutOffsets } from '../../codec/block-emitter.ts';
import type { Context } from '../../codec/context.ts';
import type { Repeatable } from '../../codec/stream-decoder.ts';
import { countKeys, isSet } from '../../json/fast.ts';
import { isFilledText, isObject, type JsonObject, parseJson, sameJson } from '../../json/json.ts';
import { closeDocument, findSource, openDocument, writeExact } from '../../json/literals.ts';
import type { Report, RuleId } from '../../rules/index.ts';
import { audioFlow, decodeCitation, decodeImage, decodeLogprobs, REFUSAL, TEXT, THINKING, toChatLogprobs } from './blocks.ts';
import { decodeStop, isStandardStop } from './outcome.ts';
import { CHOICE_FIELDS, DELTA_FIELDS, isWholeMessage, WHOLE_MESSAGE, type WireChoice, type WireDelta } from './wire.ts';

/** Decodes one choice of a chat stream: deltas to blocks. */
export class ChoiceDecoder implements Repeatable {
  readonly index: number;
  readonly #context: Context;
  readonly #blocks: BlockEmitter;
  readonly #idSeed: string;
  /** Created with the first call: most responses have none. */
  #calls: CallTracker | undefined;
  #live: CallEmitter | undefined;
  finishReason: string | null = null;
  /** The offset of the finish reason. */
  finishAt = 0;
  isRepeatable = false;
  #role = '';
  readonly #seen = { delta: false, text: false, reasoning: false, refusal: false, audio: false };
  readonly #snapshots = new Snapshots();
  /** A `message` in place of a delta; read at the end for fields that no delta had. */
  #whole: JsonObject | undefined;
  /** Its JSON, if JSON.parse has changed numbers in it. */
  #wholeText = '';
  #wholeLogprobs: unknown;
  #details: ReasoningDetails | undefined;
  #thinking: ReasoningDetails | undefined;
  /** The reasoning text before the first details. */
  #earlyReasoning = '';
  #isLegacy = false;
  readonly #annotations = new DistinctList();
  /** Annotations and logprobs that arrived while no text block was open: they belong to the next one. */
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

  /**
   * Whether the choice has content. Encrypted reasoning and unknown parts (`content_parts` of our own encoder) are no
   * blocks, but are content.
   */
  get hasContent(): boolean {
    if (!this.#blocks.isEmpty || this.#hasCalls || this.#seen.audio || this.#whole) return true;
    return Boolean(this.#details?.entries.length || this.#deltaFields.kept['content_parts']);
  }

  /** The fields of a choice that ended without an error, a delta or a message; '' for any other choice. */
  get unread(): string {
    const isRead = this.#seen.delta || this.hasContent || decodeStop(this.finishReason) !== 'end_turn';
    return isRead ? '' : Object.keys(this.#choiceFields.kept).join(', ');
  }

  /** Reads the choice of one chunk. */
  push(wire: WireChoice, offset: number): void {
    const choice = wire.messages === undefined && wire.finish_details === undefined ? wire : normalizeChoice(wire);
    this.#offset = offset;
    inspectChoice(choice, this.finishReason, offset, this.#context.report);
    const { delta, message, finish_reason: finish, logprobs } = choice;
    this.isRepeatable = false;
    if (isObject(delta)) {
      this.#seen.delta = true;
      this.#pushDelta(delta, logprobs);
      this.isRepeatable = isOnlyText(delta) && !isSet(logprobs) && this.#snapshots.last === null;
    } else if (typeof choice.text === 'string') this.#pushDelta({ content: choice.text }, toChatLogprobs(logprobs));
    if (isObject(message)) {
      this.#wholeLogprobs = logprobs;
      this.#whole = overlay(this.#whole ?? {}, message);
      this.#wholeText = findSource(message) ?? '';
    }
    if (isSet(finish)) this.#pushFinish(finish, isFilledText(wire.finish_reason) || !wire.finish_details);
    if (message !== undefined || this.finishReason !== null) this.isRepeatable = false;
    this.#choiceFields.look(choice);
    if (this.#blocks.isHolding) this.#live?.resume();
  }

  /** `isNamed`: the reason is in `finish_reason`; clients do not read `finish_details`. */
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
    const reasoning = readReasoning(delta, this.#earlyReasoning);
    if (reasoning !== '') {
      this.#pushReasoning(reasoning);
      if (typeof delta.reasoning_content !== 'string' && hasReasoningObject(delta))
        this.#context.report('chat/reasoning-object', this.#offset);
    }
    if (delta.reasoning_details) this.#pushDetails(delta.reasoning_details);
    if (delta.thinking_blocks) this.#pushThinking(delta.thinking_blocks);
    if (typeof content === 'string') this.#pushText(content, logprobs);
    else if (typeof content === 'object' && content) this.#pushParts(toParts(content), logprobs);
    else if (logprobs) this.#pushText('', logprobs);
    if (isFilledText(refusal)) this.#pushRefusal(refusal, logprobs);
    if (Array.isArray(calls)) this.#pushCalls(calls, isWholeMessage(delta));
    else if (isObject(calls)) this.#pushCalls([calls], false);
    const legacyCall = readLegacyCall(legacy);
    if (legacyCall) this.#pushLegacyCall(legacyCall);
    this.#pushMedia(delta);
    this.#deltaFields.look(delta);
  }

  #pushReasoning(thinking: string): void {
    this.#seen.reasoning = true;
    if (!this.#details) this.#earlyReasoning += thinking;
    this.#makeRoom();
    this.#blocks.write(THINKING, { type: 'thinking_delta', thinking });
  }

  #pushDetails(details: unknown): void {
    this.#details ??= new ReasoningDetails();
    this.#earlyReasoning = '';
    this.#details.push(details);
  }

  /** Thinking blocks repeat the reasoning; only their signature is new. */
  #pushThinking(blocks: unknown): void {
    this.#thinking ??= new ReasoningDetails();
    this.#thinking.push(blocks);
    const value = this.#thinking.entries.at(-1)?.['signature'];
    if (!isFilledText(value)) return;
    this.#blocks.sign(THINKING.kind, { type: 'signature_delta', signature: { origin: 'openai-chat', form: 'signature', value } });
  }

  /** Writes text that was held back because it could be a cumulative snapshot. */
  #flushText(): void {
    if (this.#snapshots.held !== '') this.#writeReleased(this.#snapshots.flush(), undefined);
  }

  #pushText(delta: string, logprobs: unknown): void {
    this.#writeReleased(this.#snapshots.push(delta, isSet(logprobs)), logprobs);
  }

  #writeReleased(text: string, logprobs: unknown): void {
    if (this.#snapshots.isCumulative) this.#context.report('chat/content-cumulative', this.#offset);
    this.#writeText(text, logprobs);
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
    if (images.length > 0 || other.length > 0) this.#makeRoom();
    for (const image of images) this.#blocks.whole(decodeImage(image));
    for (const raw of other) this.#blocks.whole({ type: 'opaque', origin: 'openai-chat', raw });
  }

  #pushRefusal(text: string, wireLogprobs: unknown): void {
    this.#seen.refusal = true;
    const logprobs = decodeLogprobs(wireLogprobs, 'refusal');
    this.#makeRoom();
    this.#blocks.write(REFUSAL, { type: 'text_delta', text, refusal: true, ...(logprobs && { logprobs }) });
  }

  #pushCalls(entries: unknown[], isWhole: boolean): void {
    for (const entry of entries) inspectCall(entry, this.#offset, this.#context.report);
    this.#tracker().push(entries, isWhole);
  }

  /** The deprecated form: one call without an id. */
  #pushLegacyCall(call: JsonObject): void {
    this.#isLegacy = true;
    this.#context.report('chat/legacy-function-call', this.#offset);
    this.#tracker().push([{ index: 0, type: 'function', function: call }]);
  }

  /** Makes room for content that is not text. */
  #makeRoom(): void {
    this.#flushText();
    this.#live?.giveWay();
  }

  #tracker(): CallTracker {
    this.#flushText();
    if (this.#calls) return this.#calls;
    const accept: ToolCallSink = (call, text, name) => live.accept(call, text, name, this.#offset);
    const calls = new CallTracker({}, callIdSeed(this.#idSeed, this.index), accept, writeExact);
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
      this.#makeRoom();
      for (const image of images) if (isObject(image)) this.#blocks.whole(decodeImage(image));
    }
    if (isObject(audio)) this.#pushAudio(audio);
  }

  /** Later chunks repeat annotations unchanged. */
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
    if (!id && !data && !transcript) return; // blank: some servers send every field of their struct
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

  /** Closes all blocks; nothing may be pushed afterwards. */
  end(offset: number): void {
    this.#offset = offset;
    this.#readWhole();
    this.#flushText();
    this.#live?.end(this.#isLegacy);
    // These arrived after the text block had closed, and no text followed.
    for (const annotation of this.#late.annotations) this.#cite(withoutOffsets(decodeCitation(annotation)));
    this.#blocks.end();
  }

  /** Reads from `message` what no delta had. */
  #readWhole(): void {
    const whole = this.#whole;
    if (!whole) return;
    const missing: WireDelta & JsonObject & { [WHOLE_MESSAGE]: true } = { ...whole, [WHOLE_MESSAGE]: true };
    const drop = (isSeen: boolean, ...keys: string[]) => {
      if (isSeen) for (const key of keys) delete missing[key];
    };
    drop(this.#seen.text, 'content');
    drop(this.#seen.refusal, 'refusal');
    drop(this.#seen.reasoning, 'reasoning_content', 'reasoning', 'reasoning_text', 'reasoning_details');
    drop(this.#thinking !== undefined, 'thinking_blocks');
    drop(this.#hasCalls, 'tool_calls', 'function_call');
    drop(this.#seen.audio, 'audio');
    if (this.#wholeText !== '') openDocument(missing, this.#wholeText);
    this.#pushDelta(missing, this.#seen.text ? undefined : this.#wholeLogprobs);
    if (this.#wholeText !== '') closeDocument();
  }

  /** Calls that continued after their blocks had stopped. */
  get lateBlocks(): MessageDelta['late_blocks'] {
    return this.#live?.late;
  }

  /** The canonical stop reason, corrected by the content of the choice. */
  get stopReason(): StopReason {
    const reported = decodeStop(this.finishReason);
    const { text, refusal } = this.#seen;
    const stop = reported === 'tool_use' && !this.#hasCalls ? 'end_turn' : reported;
    if (stop !== 'end_turn') return stop;
    if (this.#calls?.hasClientCall) return 'tool_use';
    return refusal && !text ? 'refusal' : stop;
  }

  /**
   * Wire fields without a canonical place: the finish reason, and the unknown fields of the choice and of its message.
   */
  get extensions(): JsonObject {
    const message: JsonObject = { ...this.#deltaFields.kept };
    if (this.#role !== '') message['role'] = this.#role;
    if (this.#details) message['reasoning_details'] = this.#details.entries;
    if (this.#thinking) message['thinking_blocks'] = this.#thinking.entries;
    if (this.#late.logprobs.length > 0) message['logprobs'] = this.#late.logprobs;
    if (this.#isLegacy) message['function_call'] = true;
    return {
      finish_reason: this.finishReason,
      ...(countKeys(this.#choiceFields.kept) > 0 && { choice: this.#choiceFields.kept }),
      ...(countKeys(message) > 0 && { message }),
    };
  }
}

/** Reports how a choice violates the chunk format; only reads. */
function inspectChoice(choice: WireChoice, finish: string | null, offset: number, report: Report): void {
  const { delta, message, finish_reason: next } = choice;
  if (!isSet(delta) && message === undefined)
    report(typeof choice.text === 'string' ? 'chat/text-completion' : 'chat/delta-missing', offset);
  if (next === '') report('chat/finish-empty', offset);
  else if (finish !== null && typeof next === 'string') report('chat/finish-repeated', offset);
  else if (finish !== null && isObject(delta) && (delta['content'] || delta['tool_calls']))
    report('chat/content-after-finish', offset);
  if (!isObject(delta)) return;
  const { role, reasoning_content, reasoning } = delta;
  if (role === '' || role === null) report('chat/role-blank', offset);
  if (isFilledText(reasoning_content) && isFilledText(reasoning)) report('chat/reasoning-twice', offset);
}

/** Whether a field has reasoning in another form than text. */
const hasReasoningObject = ({ reasoning_content, reasoning, reasoning_text }: WireDelta): boolean =>
  isReasoningObject(reasoning_content) || isReasoningObject(reasoning) || isReasoningObject(reasoning_text);

const isReasoningObject = (value: unknown): boolean => typeof value === 'object' && readReasoningText(value) !== '';

/** Reports how a tool-call delta violates the format. */
function inspectCall(entry: unknown, offset: number, report: Report): void {
  if (!isObject(entry)) return;
  const { id, index, type, function: body } = entry;
  if (ABSENT_IDS.has(typeof id === 'string' ? id.trim() : id)) report('chat/tool-id-empty', offset);
  else if (typeof id === 'number') report('chat/tool-id-number', offset);
  if (!isSet(index)) report('chat/tool-index-missing', offset);
  else if (typeof index === 'string') report('chat/tool-index-string', offset);
  else if (typeof index === 'number' && (index < 0 || !Number.isInteger(index))) report('chat/tool-index-wild', offset);
  if (typeof type === 'string' && type !== type.toLowerCase()) report('chat/tool-type-case', offset);
  if (body === null) report('chat/tool-function-null', offset);
  else if (isObject(body)) inspectFunction(body, offset, report);
}

function inspectFunction(body: Record<string, unknown>, offset: number, report: Report): void {
  const { name, arguments: text } = body;
  if (name === '' || name === null || name === 'null') report('chat/tool-name-empty', offset);
  if (text === null) report('chat/tool-args-null', offset);
  else if (typeof text === 'object') report('chat/tool-args-object', offset);
}

const isOnlyText = (delta: WireDelta): boolean => typeof delta.content === 'string' && countKeys(delta) === 1;

/** A call of the stream and how far it has been written. */
interface LiveCall {
  call: PendingCall;
  /** The block, once the call has started; after the end of the call, its final form. */
  started: { index: number; block: ToolUseBlock } | undefined;
  isStopped: boolean;
  /** Argument text that is certain but arrived before the call could start. */
  waiting: string;
  /** The call can start as soon as the calls before it have. */
  isReady: boolean;
  /** The name after the previous delta. */
  name: string;
  /** Offsets of its first and latest delta, where findings about the whole call are reported. */
  first: number;
  last: number;
}

const READING_RULES = {
  cumulative: 'chat/tool-args-cumulative',
  'after-empty-object': 'chat/tool-args-leading-empty-object',
  'sent-again': 'chat/tool-args-sent-again',
  unreadable: 'chat/tool-args-invalid',
} as const satisfies Record<string, RuleId>;

/**
 * Writes the calls of a choice as blocks: decides when a call starts, which arguments can be sent, and when it stops.
 */
export class CallEmitter {
  readonly #blocks: BlockEmitter;
  readonly #calls: CallTracker;
  readonly #report: Report;
  readonly #live = new Map<PendingCall, LiveCall>();
  /** Calls that have not started, in order of arrival. */
  readonly #waiting = new Set<LiveCall>();
  /** Calls that continued after they had stopped. */
  readonly #resumed = new Set<LiveCall>();
  /** Calls that have started and not stopped, in order. */
  readonly #open = new Set<LiveCall>();
  /** The open calls that nothing can change any more; kept apart so that a new call does not search thousands. */
  readonly #settled = new Set<LiveCall>();

  constructor(blocks: BlockEmitter, calls: CallTracker, report: Report) {
    this.#blocks = blocks;
    this.#calls = calls;
    this.#report = report;
  }

  /** Takes a delta of a call; `name` is the name in the delta. */
  accept(call: PendingCall, text: string, name: string | undefined, offset: number): void {
    let live = this.#live.get(call);
    if (!live) {
      live = { call, started: undefined, isStopped: false, waiting: '', isReady: false, name: '', first: offset, last: offset };
      this.#live.set(call, live);
      this.#waiting.add(live);
    }
    live.last = offset;
    if (name !== undefined && name === live.name) this.#report('chat/tool-name-repeated', offset);
    if (live.isStopped) {
      this.#resumed.add(live);
      this.#report('chat/tool-call-resumed', offset);
      return;
    }
    live.waiting += text;
    if (!live.isReady && canStart(live)) {
      live.isReady = true;
      this.#startReady();
    }
    if (live.name !== '' && call.name !== live.name) this.#report('chat/tool-name-fragmented', offset);
    live.name = call.name;
    this.#flush(live);
    this.#settle(live);
    if (live.started && call.name !== live.started.block.name) this.#report('chat/tool-name-late', offset);
  }

  /** Makes room for other content: calls before it start, and calls that nothing can change any more stop. */
  giveWay(): void {
    // A call in the middle of its arguments continues after the content.
    if (this.#waiting.size > 0)
      for (const live of this.#listWaiting()) {
        if (live.call.name === '' || !live.call.arguments.isEmpty) break;
        this.#start(live);
      }
    this.closeSettled();
  }

  /**
   * Stops the calls that nothing can change any more, so that their successors need not wait for the end of the
   * message.
   */
  closeSettled(): void {
    if (this.#settled.size === 0) return; // called with every text delta
    for (const live of [...this.#settled].toSorted(compareIndex)) this.#stop(live);
  }

  /** Updates the set of settled calls after a change. */
  #settle(live: LiveCall): void {
    if (live.started && live.call.arguments.isSettled && live.call.type === 'function') this.#settled.add(live);
    else if (this.#settled.size > 0) this.#settled.delete(live);
  }

  /** Starts the calls that could not start before and stops all. `isLegacy`: a `function_call`, which has no id. */
  end(isLegacy: boolean): void {
    const indexes = new Set<number | undefined>();
    if (this.#blocks.isHolding) for (const live of this.#open) this.#stop(live);
    for (const live of this.#listWaiting()) this.#start(live);
    for (const live of this.#live.values()) if (live.started) this.#inspect(live, indexes, isLegacy);
    for (const live of this.#open) this.#stop(live);
  }

  /** After `end`: the final blocks of calls that changed after their blocks had stopped. */
  get late(): { index: number; content_block: ToolUseBlock }[] {
    return [...this.#live.values()].flatMap((live) => {
      const { call, started } = live;
      // A longer name that follows complete arguments may belong to another call.
      if (!started || (started.block.name === this.#calls.nameOf(call) && !this.#resumed.has(live))) return [];
      const now = { ...this.#block(call), input_raw: call.arguments.decide().text };
      return isSameBlock(started.block, now) ? [] : [{ index: started.index, content_block: now }];
    });
  }

  #inspect({ call, first, last }: LiveCall, indexes: Set<number | undefined>, isLegacy: boolean): void {
    if (call.id === undefined && !isLegacy)
      this.#report(call.wireId === undefined ? 'chat/tool-id-missing' : 'chat/tool-id-duplicate', first);
    if (call.name === '') this.#report('chat/tool-name-missing', first);
    if (indexes.has(call.index)) this.#report('chat/tool-index-reused', first);
    if (call.index !== undefined) indexes.add(call.index);
    if (call.type !== 'function' || call.arguments.isEmpty) return;
    const { text, reading } = call.arguments.decide();
    if (reading !== 'plain') this.#report(READING_RULES[reading], last);
    else if (!call.arguments.isComplete)
      this.#report(parseJson(text) === undefined ? 'chat/tool-args-invalid' : 'chat/tool-args-not-object', last);
  }

  /** Releases the content that waits for calls, and then starts the calls that came after it. */
  resume(): void {
    this.closeSettled();
    this.#startReady();
  }

  /** Starts the calls that are ready, in order: a call that is not ready holds back those after it. */
  #startReady(): void {
    if (this.#waiting.size === 0 || !this.#releaseContent()) return;
    for (const live of this.#listWaiting()) {
      if (!live.isReady) return;
      this.#start(live);
      this.#flush(live);
    }
  }

  /**
   * Stops the calls that held content waits for, unless they are in the middle of their arguments. Held content
   * precedes every call that has not started.
   */
  #releaseContent(): boolean {
    if (!this.#blocks.isHolding) return true;
    for (const live of this.#open) if (live.call.arguments.isEmpty || live.call.arguments.isComplete) this.#stop(live);
    return !this.#blocks.isHolding;
  }

  /** The calls that have not started: by index if each has one, otherwise in order of arrival. */
  #listWaiting(): LiveCall[] {
    const waiting = [...this.#waiting].filter(({ call }) => call.position >= 0);
    if (waiting.some(({ call }) => call.index === undefined)) return waiting;
    return waiting.toSorted((a, b) => (a.call.index ?? 0) - (b.call.index ?? 0));
  }

  #start(live: LiveCall): void {
    this.#waiting.delete(live);
    live.isReady = true;
    this.closeSettled();
    const block = this.#block(live.call);
    live.started = { index: this.#blocks.openTool(block), block };
    this.#open.add(live);
    this.#settle(live);
  }

  #flush(live: LiveCall): void {
    if (!live.started || live.waiting === '') return;
    this.#blocks.writeTool(live.started.index, live.waiting, live.call.type === 'custom');
    live.waiting = '';
  }

  #stop(live: LiveCall): void {
    if (!live.started) return;
    const { rest, text } = live.call.arguments.end();
    live.waiting += rest;
    this.#flush(live);
    this.#open.delete(live);
    this.#settled.delete(live);
    const final = this.#block(live.call);
    this.#blocks.stopTool(live.started.index, isSameBlock(live.started.block, final) ? undefined : final);
    live.started.block = { ...final, input_raw: text };
    live.isStopped = true;
  }

  #block(call: PendingCall): ToolUseBlock {
    const fields = { ...(call.index !== undefined && { index: call.index }), ...call.extra };
    const isServer = isProviderExecuted(call);
    return {
      type: 'tool_use',
      id: this.#calls.idOf(call),
      name: this.#calls.nameOf(call),
      input: call.type === 'custom' ? '' : {},
      ...(call.type === 'custom' && { kind: 'custom' as const }),
      ...(isServer && { kind: 'server' as const }),
      ...(isNameless(call) && { status: 'incomplete' as const }),
      ...(Object.keys(fields).length > 0 && { extensions: { 'openai-chat': fields } }),
    };
  }
}

/**
 * A call can start when its name will not grow any more (the arguments are complete, or a delta added nothing to the
 * name) and its id is known or its arguments have begun.
 */
function canStart({ call, name }: LiveCall): boolean {
  if (call.name === '') return false;
  if (call.arguments.isComplete) return true;
  return call.name === name && (call.id !== undefined || !call.arguments.isEmpty);
}

const compareIndex = (a: LiveCall, b: LiveCall): number => (a.started?.index ?? 0) - (b.started?.index ?? 0);

/** Whether two blocks of a call are equal; `input_raw` is set on stopped blocks only. */
function isSameBlock(a: ToolUseBlock, b: ToolUseBlock): boolean {
  return a.id === b.id && a.name === b.name && a.input_raw === b.input_raw && sameJson(a.extensions, b.extensions);
}
