/** Accumulates the chunks of a chat completion stream. */
import { countKeys, isSet, present } from '../json/fast.ts';
import { isFilledText, isObject, type JsonObject, parseJson } from '../json/json.ts';
import {
  CHOICE_FIELDS,
  DELTA_FIELDS,
  DistinctList,
  isCleanFinish,
  mergeUsage,
  normalizeChoice,
  ReasoningDetails,
  readContentParts,
  readLegacyCall,
  readReasoning,
  Snapshots,
  type SnapshotsState,
  strongerFinish,
  toParts,
  type WireChoice,
  type WireChunk,
  type WireDelta,
  wellFormed,
} from './chat-delta.ts';
import { overlay } from './overlay.ts';
import { type ToolCall, ToolCallAssembler, type ToolCallAssemblerState } from './tool-call-assembler.ts';
import { callIdSeed, type ToolCallLimits } from './tool-calls.ts';
import { addCopies, ChunkFields, UnknownFields } from './unknown-fields.ts';

/** Creates a `ChatAccumulator`. */
export function createAccumulator(options?: ChatAccumulatorOptions): ChatAccumulator {
  return new ChatAccumulator(options);
}

/**
 * Accumulates chat chunks into the complete completion, in O(1) per chunk. Everything can be read at any time; nothing
 * is copied until it is read.
 *
 * ```ts
 * const acc = createAccumulator();
 * for await (const chunk of stream) { acc.push(chunk); render(acc.text); }
 * acc.toolCalls; // complete calls, flagged when their arguments are not JSON
 * acc.finish();  // the chat.completion
 * ```
 */
export class ChatAccumulator {
  #id = '';
  #created = 0;
  #model = '';
  #usage: JsonObject | undefined;
  #fields = new ChunkFields();
  #first: ChatChoice | undefined;
  readonly #choices = new Map<number, ChatChoice>();
  #continuations = 0;
  readonly #everyField: boolean;
  readonly #limits: ToolCallLimits;

  constructor(options: ChatAccumulatorOptions = {}) {
    this.#limits = options;
    this.#everyField = options.everyField ?? false;
  }

  /** Adds one parsed chunk. Anything that is not an object is ignored. */
  push(chunk: unknown): void {
    if (typeof chunk !== 'object' || chunk === null) return;
    const fields = chunk as WireChunk; // what JSON.parse gives: string keys, unknown values
    const { choices, usage } = fields;
    if (!Array.isArray(choices) || choices.length !== 1 || isSet(usage) || !this.#continue(choices[0])) this.#pushAny(fields);
    else if (this.#isDue()) this.#look(fields, choices[0]);
  }

  /** Adds several chunks. */
  pushAll(chunks: Iterable<unknown>): void {
    for (const chunk of chunks) this.push(chunk);
  }

  /** Adds a choice that only continues the text or a call; returns false for any other. */
  #continue(choice: WireChoice | null | undefined): boolean {
    const first = this.#first;
    return first !== undefined && first.index === choice?.index && first.continue(choice);
  }

  /**
   * Whether to look for unknown fields around the delta of a chunk that only continues a text or a call; inside the
   * delta they are always found. Iterating over the keys of every chunk would double the cost. Servers put such fields
   * on all chunks, or on chunks that do more than continue, which are always inspected. So the first 16 continuations
   * are inspected, then every 64th; with `everyField` all of them.
   */
  #isDue(): boolean {
    const count = this.#continuations++;
    return count < 16 || (count & 63) === 0 || this.#everyField;
  }

  #look(chunk: WireChunk, choice: WireChoice): void {
    this.#pushEnvelope(chunk);
    this.#first?.look(choice);
  }

  #pushAny(chunk: WireChunk): void {
    this.#pushEnvelope(chunk);
    const { choices } = chunk;
    if (!Array.isArray(choices)) return;
    for (const choice of choices) if (isObject(choice)) this.#pushChoice(choice);
  }

  #pushChoice(choice: WireChoice): void {
    this.#findChoice(choice).push(choice);
    if (isSet(choice.usage)) this.#pushUsage(choice.usage); // Moonshot
  }

  #pushEnvelope(chunk: WireChunk): void {
    const { id, model, created, usage, x_groq: groq } = chunk;
    if (this.#id === '' && typeof id === 'string') this.#id = id;
    if (this.#model === '' && typeof model === 'string') this.#model = model;
    if (this.#created === 0 && typeof created === 'number') this.#created = created;
    if (isSet(usage)) this.#pushUsage(usage);
    this.#fields.look(chunk);
    if (isObject(groq)) this.#pushUsage(groq['usage']);
  }

  #pushUsage(usage: unknown): void {
    if (!isObject(usage)) return;
    this.#usage ??= {};
    mergeUsage(this.#usage, usage);
  }

  #findChoice(choice: WireChoice): ChatChoice {
    const index = typeof choice.index === 'number' ? choice.index : 0;
    const first = this.#first;
    if (first !== undefined && first.index === index) return first;
    let state = this.#choices.get(index);
    if (!state) {
      state = new ChatChoice(index, this.#id, this.#limits);
      this.#choices.set(index, state);
      this.#first ??= state;
    }
    return state;
  }

  get id(): string {
    return this.#id;
  }

  get model(): string {
    return this.#model;
  }

  /** The accumulated choices, by index. */
  get choices(): ChatChoice[] {
    return [...this.#choices.values()].map(({ current }) => current).toSorted((a, b) => a.index - b.index);
  }

  get text(): string {
    return this.#main?.text ?? '';
  }

  get reasoning(): string {
    return this.#main?.reasoning ?? '';
  }

  get refusal(): string | null {
    return this.#main?.refusal ?? null;
  }

  get toolCalls(): ToolCall[] {
    return this.#main?.toolCalls ?? [];
  }

  get usage(): JsonObject | null {
    return this.#usage ?? null;
  }

  /** The finish reason of the wire: `stop` beside tool calls stays `stop` here. */
  get finishReason(): string | null {
    return this.#main?.finishReason ?? null;
  }

  get logprobs(): JsonObject | null {
    return this.#main?.logprobs ?? null;
  }

  get reasoningDetails(): JsonObject[] {
    return this.#main?.reasoningDetails ?? [];
  }

  /** The choice that the getters read: index 0, else the first one. */
  get #main(): ChatChoice | undefined {
    return (this.#choices.get(0) ?? this.#first)?.current;
  }

  /** The completion as far as it is known. Later chunks do not change it. */
  snapshot(): ChatCompletion {
    return {
      id: this.#id,
      object: 'chat.completion',
      created: this.#created,
      model: this.#model,
      choices: this.choices.map((choice) => choice.finish()),
      ...(this.#usage && { usage: overlay({}, this.#usage) }),
      // Last, because properties after a spread create a new hidden class per call: 6 µs. Holds no known field.
      ...overlay({}, this.#fields.kept),
    };
  }

  /** The complete completion: every choice, every field. Later chunks do not change it. */
  finish(): ChatCompletion {
    return this.snapshot();
  }

  /** The calls to run: arguments are decoded when they are JSON, otherwise raw text and flagged. */
  finalizeToolCalls(): ExecutableCall[] {
    return this.#main?.executableCalls() ?? [];
  }

  /**
   * For tracing: the assistant message without its reasoning, and the raw finish reason; null when there is nothing to
   * show.
   */
  finalizeMessage(): { message: ChatMessage; finish_reason: string | null } | null {
    return this.#main?.tracedMessage() ?? null;
  }

  /** The whole state as JSON: a stream can be resumed from it in another process. */
  toJSON(): ChatAccumulatorState {
    return {
      id: this.#id,
      created: this.#created,
      model: this.#model,
      usage: this.#usage ?? null,
      extra: this.#fields.kept,
      choices: [...this.#choices.values()].map((choice) => choice.toJSON()),
    };
  }

  /** Resumes from a saved state. */
  static fromJSON(saved: ChatAccumulatorState, options: ChatAccumulatorOptions = {}): ChatAccumulator {
    // The saved state may still be in use by another accumulator.
    const state: ChatAccumulatorState = structuredClone(saved);
    const accumulator = new ChatAccumulator(options);
    accumulator.#id = state.id;
    accumulator.#created = state.created;
    accumulator.#model = state.model;
    accumulator.#usage = state.usage ?? undefined;
    accumulator.#fields = new ChunkFields(state.extra);
    for (const choice of state.choices) {
      const restored = ChatChoice.fromJSON(choice, state.id, options);
      accumulator.#choices.set(restored.index, restored);
      accumulator.#first ??= restored;
    }
    return accumulator;
  }
}

/** Settings of a `ChatAccumulator`. */
export interface ChatAccumulatorOptions extends ToolCallLimits {
  /** Look for unknown fields around every delta instead of a sample of them. About doubles the cost of a chunk. */
  everyField?: boolean;
}

/** The state of a `ChatAccumulator` as JSON. */
export interface ChatAccumulatorState {
  id: string;
  created: number;
  model: string;
  usage: JsonObject | null;
  extra: JsonObject;
  choices: ChatChoiceState[];
}

/** A complete chat completion. */
export interface ChatCompletion extends JsonObject {
  id: string;
  object: 'chat.completion';
  created: number;
  model: string;
  choices: ChatCompletionChoice[];
  usage?: JsonObject;
}

/** One choice of a complete chat completion. */
export interface ChatCompletionChoice extends JsonObject {
  index: number;
  message: ChatMessage;
  finish_reason: string | null;
}

/** The assistant message of a chat completion. */
export interface ChatMessage extends JsonObject {
  role: string;
  content: string | null;
  refusal: string | null;
}

/** One choice of a chat completion that is being accumulated. */
export class ChatChoice {
  readonly index: number;
  role = 'assistant';
  reasoning = '';
  refusal: string | null = null;
  finishReason: string | null = null;
  #text = '';
  readonly #snapshots = new Snapshots();
  #calls: ToolCallAssembler | undefined;
  #details: ReasoningDetails | undefined;
  #thinking: ReasoningDetails | undefined;
  #logprobs: { content?: unknown[]; refusal?: unknown[] } | undefined;
  readonly #annotations = new DistinctList();
  #images: unknown[] = [];
  #parts: unknown[] = [];
  #audio: JsonObject | undefined;
  #whole: JsonObject | undefined;
  /** This choice merged with `#whole`, until the next chunk. */
  #view: ChatChoice | undefined;
  /** `message` was read, and no delta carried text or calls. */
  #isBody = false;
  #choiceFields = new UnknownFields(CHOICE_FIELDS);
  #deltaFields = new UnknownFields(DELTA_FIELDS);
  readonly #idSeed: string;
  readonly #limits: ToolCallLimits;

  /** `idSeed`: derived call ids are computed from it (the id of the response). */
  constructor(index: number, idSeed: string, limits: ToolCallLimits) {
    this.index = index;
    this.#idSeed = idSeed;
    this.#limits = limits;
  }

  /**
   * Adds a choice that only continues the text, or the arguments of a call; returns false for any other. The keys of
   * the delta are counted, so that it has no other field; the keys of the choice are left to `look`. A chunk of text
   * costs 25 ns this way and 63 ns through `push`, a chunk of arguments 65 ns and 103 ns.
   */
  continue(choice: WireChoice): boolean {
    const { delta, finish_reason, logprobs, message, content_filter_results: filter, usage, finish_details: details } = choice;
    if (typeof delta !== 'object' || delta === null || this.#whole !== undefined) return false;
    // Azure's filter results, and usage inside the choice, differ with every chunk.
    if (isSet(finish_reason) || isSet(logprobs) || isSet(message) || isSet(filter) || isSet(usage) || isSet(details))
      return false;
    return this.#continueWith(delta);
  }

  #continueWith(delta: WireDelta): boolean {
    const { content, tool_calls: calls, role } = delta;
    if (countKeys(delta) !== present(content) + present(calls) + present(role)) return false;
    if (isSet(role) && role !== this.role) return false;
    if (!isFilledText(content)) return !isSet(content) && (this.#calls?.continue(calls) ?? false);
    if (isSet(calls)) return false;
    this.#text += this.#snapshots.push(content);
    return true;
  }

  /** Adds any choice. */
  push(wire: WireChoice): void {
    const choice = wire.messages === undefined && wire.finish_details === undefined ? wire : normalizeChoice(wire);
    const { delta, finish_reason: finish, logprobs, message } = choice;
    this.#view = undefined;
    if (typeof delta === 'object' && delta !== null) this.#pushDelta(delta, logprobs);
    else if (typeof choice.text === 'string') this.#text += this.#snapshots.push(choice.text, isSet(logprobs));
    if (isSet(finish)) this.finishReason = strongerFinish(this.finishReason, finish);
    if (isSet(logprobs)) this.#pushLogprobs(logprobs);
    // Sent instead of a delta, or again after the deltas: used for fields that no delta carries.
    if (isObject(message)) this.#whole = overlay(this.#whole ?? {}, message);
    this.look(choice);
  }

  /** Collects unknown fields beside the delta. */
  look(choice: WireChoice): void {
    const { index, delta, finish_reason, logprobs, message } = choice;
    const known = present(index) + present(delta) + present(finish_reason) + present(logprobs) + present(message);
    if (countKeys(choice) !== known) this.#choiceFields.look(choice);
  }

  /** `isWhole`: the delta is a whole message. */
  #pushDelta(delta: WireDelta, logprobs?: unknown, isWhole = false): void {
    const { content, role, tool_calls: calls, refusal, function_call: legacy, annotations, images, audio } = delta;
    const { reasoning_content, reasoning, reasoning_text, reasoning_details: details } = delta;
    if (typeof content === 'string') this.#text += this.#snapshots.push(content, isSet(logprobs));
    else if (content) this.#pushParts(toParts(content));
    if (delta.thinking_blocks) this.#pushThinking(delta.thinking_blocks);
    if (calls) this.#pushCalls(isObject(calls) ? [calls] : calls, isWhole);
    if (role && typeof role === 'string') this.role = role;
    if (reasoning_content || reasoning || reasoning_text || details) this.#pushReasoning(delta);
    if (isFilledText(refusal)) this.refusal = (this.refusal ?? '') + refusal;
    const common =
      present(content) + present(calls) + present(role) + present(reasoning_content) + present(reasoning) + present(refusal);
    if (countKeys(delta) === common) return;
    const legacyCall = readLegacyCall(legacy);
    if (legacyCall) this.#pushLegacyCall(legacyCall);
    for (const annotation of toList(annotations)) this.#annotations.add(annotation);
    if (Array.isArray(images)) for (const image of images) this.#images.push(image);
    if (isObject(audio) && (audio['data'] || audio['transcript'] || audio['id'])) this.#pushAudio(audio);
    this.#deltaFields.look(delta);
  }

  #pushCalls(entries: unknown, isWhole = false): void {
    this.#calls ??= new ToolCallAssembler(this.#limits, callIdSeed(this.#idSeed, this.index));
    this.#calls.push(entries, isWhole);
  }

  /** `function_call`, the form before tool calls: one call without an id. */
  #pushLegacyCall(call: JsonObject): void {
    this.#pushCalls([{ index: 0, function: call }]);
  }

  #pushReasoning(delta: WireDelta): void {
    this.reasoning += readReasoning(delta, this.#details ? '' : this.reasoning);
    if (!delta.reasoning_details) return;
    this.#details ??= new ReasoningDetails();
    this.#details.push(delta.reasoning_details);
  }

  #pushThinking(blocks: unknown): void {
    this.#thinking ??= new ReasoningDetails();
    this.#thinking.push(blocks);
  }

  #pushParts(parts: readonly unknown[]): void {
    const { text, thinking, images, other } = readContentParts(parts);
    this.reasoning += thinking;
    this.#text += this.#snapshots.push(text);
    for (const image of images) this.#images.push(image);
    if (other.length > 0) this.#keepParts(other);
  }

  #keepParts(parts: JsonObject[]): void {
    const { kept } = this.#deltaFields;
    // A list that the wire sent under this name belongs to the caller and must not change.
    if (kept['content_parts'] !== this.#parts) this.#parts = [...toList(kept['content_parts'])];
    for (const part of parts) this.#parts.push(part);
    kept['content_parts'] = this.#parts;
  }

  #pushLogprobs(value: unknown): void {
    if (!isObject(value)) return;
    this.#logprobs ??= {};
    for (const side of ['content', 'refusal'] as const) {
      const tokens = value[side];
      if (Array.isArray(tokens)) {
        this.#logprobs[side] ??= [];
        for (const token of tokens) this.#logprobs[side].push(token);
      }
    }
  }

  /** Audio data and its transcript arrive in pieces; its id and expiry do not. */
  #pushAudio(value: JsonObject): void {
    const { data, transcript, ...rest } = value;
    this.#audio = overlay(this.#audio ?? {}, rest);
    for (const [key, piece] of [['data', data] as const, ['transcript', transcript] as const]) {
      if (typeof piece === 'string') this.#audio[key] = `${this.#audio[key] ?? ''}${piece}`;
    }
  }

  get text(): string {
    return this.#text + this.#snapshots.rest;
  }

  get toolCalls(): ToolCall[] {
    return this.#calls?.finish(this.#isWhole) ?? [];
  }

  get logprobs(): JsonObject | null {
    if (!this.#logprobs) return null;
    const { content, refusal } = this.#logprobs;
    return { content: content ? [...content] : null, refusal: refusal ? [...refusal] : null };
  }

  get reasoningDetails(): JsonObject[] {
    return this.#details?.entries ?? [];
  }

  /** The calls with decoded arguments. */
  executableCalls(): ExecutableCall[] {
    return this.toolCalls.map(toExecutable);
  }

  /** The message without its reasoning, and the raw finish reason; null when there is nothing to show. */
  tracedMessage(): { message: ChatMessage; finish_reason: string | null } | null {
    if (this.text === '' && this.refusal === null && !this.#calls?.size) return null;
    const message: ChatMessage = {
      role: this.role,
      content: this.text === '' ? null : wellFormed(this.text),
      refusal: this.refusal,
    };
    if (this.#calls?.size) message['tool_calls'] = this.toolCalls.map(encodeCall);
    return { message, finish_reason: this.finishReason };
  }

  /**
   * The choice as far as it is known. A complete message beside the deltas is merged into a copy, because later deltas
   * may carry the same fields.
   */
  get current(): ChatChoice {
    if (!this.#whole) return this;
    if (!this.#view) {
      this.#view = ChatChoice.fromJSON(structuredClone(this.toJSON()), this.#idSeed, this.#limits);
      this.#view.#readWhole();
    }
    return this.#view;
  }

  /** The choice as in a complete completion. Later chunks do not change it. */
  finish(): JsonObject & { index: number; message: ChatMessage; finish_reason: string | null } {
    const calls = this.#calls?.unchecked(this.#isWhole) ?? [];
    return {
      index: this.index,
      message: this.#message(calls),
      logprobs: this.logprobs,
      finish_reason: fitFinish(this.finishReason, calls.length > 0),
      ...overlay({}, this.#choiceFields.kept),
    };
  }

  #message(calls: ToolCall[]): ChatMessage {
    const hasOther = calls.length > 0 || this.refusal !== null;
    const content = this.text === '' && hasOther ? null : wellFormed(this.text);
    const message: ChatMessage = { role: this.role, content, refusal: this.refusal };
    if (this.reasoning !== '') message['reasoning_content'] = wellFormed(this.reasoning);
    if (this.#details) message['reasoning_details'] = this.#details.entries.map((entry) => overlay({}, entry));
    if (this.#thinking) message['thinking_blocks'] = this.#thinking.entries.map((entry) => overlay({}, entry));
    if (this.#annotations.items.length > 0) message['annotations'] = [...this.#annotations.items];
    if (this.#images.length > 0) message['images'] = [...this.#images];
    if (this.#audio) message['audio'] = { ...this.#audio };
    if (calls.length > 0) message['tool_calls'] = calls.map(encodeCall);
    return addCopies(message, this.#deltaFields.kept);
  }

  /** Whether empty arguments are final: after a clean finish, or in a complete body without a finish reason. */
  get #isWhole(): boolean {
    return isCleanFinish(this.finishReason) || (this.#isBody && this.finishReason === null);
  }

  /** `message` is used only for fields that no delta carried. */
  #readWhole(): void {
    const whole = this.#whole;
    if (!whole) return;
    this.#isBody = this.text === '' && !this.#calls?.size;
    this.#whole = undefined;
    const missing: JsonObject = { ...whole };
    if (this.text !== '') delete missing['content'];
    if (this.refusal !== null) delete missing['refusal'];
    if (this.#calls?.size) {
      delete missing['tool_calls'];
      delete missing['function_call'];
    }
    if (this.reasoning !== '') for (const key of Object.keys(missing)) if (key.startsWith('reasoning')) delete missing[key];
    if (this.#thinking) delete missing['thinking_blocks'];
    if (this.#annotations.items.length > 0) delete missing['annotations'];
    if (this.#images.length > 0) delete missing['images'];
    if (this.#audio) delete missing['audio'];
    this.#pushDelta(missing, undefined, true);
  }

  toJSON(): ChatChoiceState {
    return {
      index: this.index,
      role: this.role,
      text: this.#text,
      snapshots: { ...this.#snapshots },
      reasoning: this.reasoning,
      refusal: this.refusal,
      finishReason: this.finishReason,
      calls: this.#calls?.toJSON() ?? null,
      details: this.reasoningDetails,
      thinking: this.#thinking?.entries ?? [],
      lists: { annotations: this.#annotations.items, images: this.#images, logprobs: this.#logprobs ?? null },
      audio: this.#audio ?? null,
      whole: this.#whole ?? null,
      isBody: this.#isBody,
      choiceExtra: this.#choiceFields.kept,
      messageExtra: this.#deltaFields.kept,
    };
  }

  static fromJSON(state: ChatChoiceState, idSeed: string, limits: ToolCallLimits): ChatChoice {
    const choice = new ChatChoice(state.index, idSeed, limits);
    choice.role = state.role;
    choice.#text = state.text;
    Object.assign(choice.#snapshots, state.snapshots);
    choice.reasoning = state.reasoning;
    choice.refusal = state.refusal;
    choice.finishReason = state.finishReason;
    if (state.calls) choice.#calls = ToolCallAssembler.fromJSON(state.calls, limits, callIdSeed(idSeed, state.index));
    if (state.details.length > 0) {
      choice.#details = new ReasoningDetails();
      choice.#details.push(state.details);
    }
    if (state.thinking.length > 0) choice.#pushThinking(state.thinking);
    for (const annotation of toList(state.lists['annotations'])) choice.#annotations.add(annotation);
    choice.#images = toList(state.lists['images']);
    choice.#pushLogprobs(state.lists['logprobs']);
    choice.#audio = state.audio ?? undefined;
    choice.#whole = state.whole ?? undefined;
    choice.#isBody = state.isBody;
    choice.#choiceFields = new UnknownFields(CHOICE_FIELDS, state.choiceExtra);
    choice.#deltaFields = new UnknownFields(DELTA_FIELDS, state.messageExtra);
    return choice;
  }
}

/**
 * The finish reason that fits the calls: agents stop on "stop", which some servers send although there are calls, and
 * wait on "tool_calls" without any.
 */
function fitFinish(finish: string | null, hasCalls: boolean): string | null {
  if (hasCalls) return finish === 'stop' ? 'tool_calls' : finish;
  return finish === 'tool_calls' || finish === 'function_call' ? 'stop' : finish;
}

/** The state of a `ChatChoice` as JSON. */
export interface ChatChoiceState {
  index: number;
  role: string;
  text: string;
  snapshots: SnapshotsState;
  reasoning: string;
  refusal: string | null;
  finishReason: string | null;
  calls: ToolCallAssemblerState | null;
  details: JsonObject[];
  thinking: JsonObject[];
  lists: JsonObject;
  audio: JsonObject | null;
  whole: JsonObject | null;
  isBody: boolean;
  choiceExtra: JsonObject;
  messageExtra: JsonObject;
}

/**
 * A call that is ready to run. `arguments` is the decoded value, or the raw text when it is not JSON (`invalid`) or the
 * input of a custom tool.
 */
export interface ExecutableCall {
  id: string;
  type: 'function' | 'custom';
  name: string;
  arguments: unknown;
  invalid?: true;
  providerExecuted?: true;
}

function toExecutable({ id, type, name, arguments: text, invalid, providerExecuted }: ToolCall): ExecutableCall {
  return {
    id,
    type,
    name,
    arguments: type === 'function' && !invalid ? parseJson(text) : text,
    ...(invalid && { invalid }),
    ...(providerExecuted && { providerExecuted }),
  };
}

/** A call in wire form, with its unknown fields. */
function encodeCall({ id, type, name, arguments: text, extra }: ToolCall): JsonObject {
  const body = extra?.[type];
  const known = type === 'custom' ? { name, input: text } : { name, arguments: text };
  return { ...extra, id, type, [type]: isObject(body) ? { ...body, ...known } : known };
}

const toList = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
