import { ChatChoice, type ChatChoiceState } from './chat-choice.ts';
import { mergeUsage } from './chat-delta.ts';
import type { ChatMessage, ExecutableCall } from './chat-message.ts';
import type { WireChoice, WireChunk } from './chat-wire.ts';
import { ChunkFields } from './chunk-fields.ts';
import { isObject, isSet, type JsonObject, overlay } from './overlay.ts';
import type { ToolCall } from './tool-call-assembler.ts';
import type { ToolCallLimits } from './tool-calls.ts';

export interface ChatCompletion extends JsonObject {
  id: string;
  object: 'chat.completion';
  created: number;
  model: string;
  choices: ChatCompletionChoice[];
  usage?: JsonObject;
}

export interface ChatCompletionChoice extends JsonObject {
  index: number;
  message: ChatMessage;
  finish_reason: string | null;
}

export interface ChatAccumulatorState {
  id: string;
  created: number;
  model: string;
  usage: JsonObject | null;
  extra: JsonObject;
  choices: ChatChoiceState[];
}

export interface ChatAccumulatorOptions extends ToolCallLimits {
  /** Look for fields outside the standard around every single delta, not around a sample of them. Costs about as much as everything else together. */
  everyField?: boolean;
}

/**
 * Chat chunks in, whole completion out, O(1) a chunk. Everything can be read at any time; nothing is copied until it is asked for.
 *
 * ```ts
 * const acc = createAccumulator();
 * for await (const chunk of stream) { acc.push(chunk); render(acc.text); }
 * acc.toolCalls; // whole, told apart, flagged when their arguments are not JSON
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

  /** Takes one parsed chunk. Anything that is not an object is ignored. */
  push(chunk: unknown): void {
    if (typeof chunk !== 'object' || chunk === null) return;
    const fields = chunk as WireChunk; // what JSON.parse gives: string keys, unknown values
    const { choices, usage } = fields;
    if (!Array.isArray(choices) || choices.length !== 1 || isSet(usage) || !this.#continue(choices[0])) this.#pushAny(fields);
    else if (this.#isDue()) this.#look(fields, choices[0]);
  }

  pushAll(chunks: Iterable<unknown>): void {
    for (const chunk of chunks) this.push(chunk);
  }

  /** Takes a choice that only continues what is there, and says whether it was one. */
  #continue(choice: WireChoice | null | undefined): boolean {
    const first = this.#first;
    return first !== undefined && first.index === choice?.index && first.continue(choice);
  }

  /**
   * Whether to look for fields nobody knows around the delta of a chunk that only continues a text or a call; inside the delta they are always
   * found. Walking the keys of every chunk would double the cost of the whole, and servers put such fields on all chunks, or on those that do more
   * than continue, which are always looked at: so of the others the first 16 are looked at, then every 64th. `everyField` looks at all.
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
    this.#choiceOf(choice).push(choice);
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

  #choiceOf(choice: WireChoice): ChatChoice {
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

  /** As the wire said it: `stop` beside tool calls stays `stop` here. */
  get finishReason(): string | null {
    return this.#main?.finishReason ?? null;
  }

  get logprobs(): JsonObject | null {
    return this.#main?.logprobs ?? null;
  }

  get reasoningDetails(): JsonObject[] {
    return this.#main?.reasoningDetails ?? [];
  }

  get #main(): ChatChoice | undefined {
    return (this.#choices.get(0) ?? this.#first)?.current;
  }

  /** The completion as far as it is known. Later chunks do not change it. */
  snapshot(): ChatCompletion {
    return this.#completion();
  }

  /** The whole completion: every choice, every field. Later chunks do not change it. */
  finish(): ChatCompletion {
    return this.#completion();
  }

  #completion(): ChatCompletion {
    return {
      id: this.#id,
      object: 'chat.completion',
      created: this.#created,
      model: this.#model,
      choices: this.choices.map((choice) => choice.finish()),
      ...(this.#usage && { usage: overlay({}, this.#usage) }),
      // No known field is among these. Last, because V8 makes new maps for every object literal that goes on after a spread (6 µs).
      ...overlay({}, this.#fields.kept),
    };
  }

  /** For running tools: arguments decoded when they are JSON, the raw text otherwise, flagged. */
  finalizeToolCalls(): ExecutableCall[] {
    return this.#main?.executableCalls() ?? [];
  }

  /** For tracing: the assistant message without its reasoning, and the raw finish reason; null when there is nothing to show. */
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

  static fromJSON(saved: ChatAccumulatorState, options: ChatAccumulatorOptions = {}): ChatAccumulator {
    // A state that is still a live object must not be shared between two accumulators.
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

export function createAccumulator(options?: ChatAccumulatorOptions): ChatAccumulator {
  return new ChatAccumulator(options);
}
