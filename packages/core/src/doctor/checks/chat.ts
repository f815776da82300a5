import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { SseFrame } from '../../sse/frame.ts';
import type { Report } from '../rules.ts';
import { CallCheck } from './chat-calls.ts';
import { isBlank, type WireCheck } from './check.ts';

/** Where compatible servers put what the model thinks; the standard has no place for it. */
const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text', 'reasoning_details'] as const;

interface Choice {
  offset: number;
  hasRole: boolean;
  hasCalls: boolean;
  calls: CallCheck;
}

/** Chat chunks beside the standard. */
export class ChatCheck implements WireCheck {
  readonly #report: Report;
  readonly #choices = new Map<unknown, Choice>();
  readonly reasoningFields: Set<string> = new Set();
  #model: unknown;
  #usages = 0;
  /** Where a vendor's own usage stands. */
  #elsewhere: number | undefined;
  #hasDelta = false;

  constructor(report: Report) {
    this.#report = report;
  }

  /** A message, or none at all, stood where deltas should be. */
  get isWhole(): boolean {
    return !this.#hasDelta;
  }

  payload(chunk: JsonObject, { offset = 0, bare }: SseFrame): void {
    const { choices } = chunk;
    if (!Array.isArray(choices)) return;
    if (!bare) this.#readEnvelope(chunk, choices, offset);
    for (const choice of choices) if (isObject(choice)) this.#readChoice(choice, offset, bare);
    if (isObject(chunk['usage'])) this.#readUsage(choices, offset, bare);
    if (isObject(chunk['x_groq']) && isObject(chunk['x_groq']['usage'])) this.#elsewhere ??= offset;
  }

  end(): void {
    if (this.#elsewhere !== undefined && this.#usages === 0) this.#report('chat/usage-elsewhere', this.#elsewhere);
    for (const { calls, hasRole, offset } of this.#choices.values()) {
      if (!hasRole) this.#report('chat/role-missing', offset);
      calls.end();
    }
  }

  #readEnvelope(chunk: JsonObject, choices: readonly unknown[], offset: number): void {
    const { model } = chunk;
    const lacking = [
      ...(chunk['object'] === 'chat.completion.chunk' ? [] : ['object']),
      ...(typeof chunk['created'] === 'number' ? [] : ['created']),
      ...(typeof model === 'string' && model !== '' ? [] : ['model']),
    ];
    if (lacking.length > 0) this.#report('chat/envelope-incomplete', offset, `wrong or missing: ${lacking.join(', ')}`);
    const isNumbered = choices.every((choice) => isObject(choice) && typeof choice['index'] === 'number');
    if (!isNumbered) this.#report('chat/choice-index-missing', offset);
    if (isBlank(model)) return;
    if (this.#model !== undefined && model !== this.#model) this.#report('chat/model-varies', offset);
    this.#model ??= model;
  }

  #readChoice(choice: JsonObject, offset: number, bare: true | undefined): void {
    const { delta, message, finish_reason: finish } = choice;
    if (isObject(message) && !bare && !isObject(delta)) this.#report('chat/message-instead-of-delta', offset);
    if (!isObject(delta)) return;
    this.#hasDelta = true;
    const state = this.#choiceAt(choice['index'], offset);
    if (!isBlank(delta['role'])) {
      if (state.hasRole) this.#report('chat/role-repeated', offset);
      state.hasRole = true;
    }
    const isCalling = this.#readCalls(delta, state, offset);
    state.hasCalls ||= isCalling;
    const isFull = isCalling || CONTENT_FIELDS.some((field) => holdsSomething(delta[field]));
    if (typeof finish === 'string' && finish !== '' && isFull) this.#report('chat/finish-with-content', offset);
    if (finish === 'function_call' && state.hasCalls)
      this.#report('chat/finish-nonstandard', offset, 'function_call, although the calls are tool_calls');
    for (const field of REASONING_FIELDS) if (holdsSomething(delta[field])) this.reasoningFields.add(field);
    if (Array.isArray(delta['content']) && delta['content'].some(isThinkingPart)) this.reasoningFields.add('parts');
  }

  /** True when the delta has calls. */
  #readCalls(delta: JsonObject, { calls }: Choice, offset: number): boolean {
    if (!Object.hasOwn(delta, 'tool_calls')) return false;
    const { tool_calls: entries } = delta;
    const isList = Array.isArray(entries);
    if (isObject(entries)) this.#report('chat/tool-calls-object', offset);
    if (entries === null || (isList && entries.length === 0)) this.#report('chat/tool-calls-blank', offset);
    if (isList) calls.push(entries, offset);
    return holdsSomething(entries);
  }

  #readUsage(choices: readonly unknown[], offset: number, bare: true | undefined): void {
    if (bare) return;
    if (++this.#usages > 1) this.#report('chat/usage-repeated', offset);
    if (choices.length > 0) this.#report('chat/usage-with-choices', offset);
  }

  #choiceAt(index: unknown, offset: number): Choice {
    const known = this.#choices.get(index);
    if (known) return known;
    const choice = { offset, hasRole: false, hasCalls: false, calls: new CallCheck(this.#report) };
    this.#choices.set(index, choice);
    return choice;
  }
}

const CONTENT_FIELDS = ['content', 'refusal', 'reasoning_content', 'reasoning', 'reasoning_text'] as const;

const holdsSomething = (value: unknown): boolean =>
  !isBlank(value) && (Array.isArray(value) ? value.length > 0 : typeof value === 'string' || isObject(value));

const isThinkingPart = (part: unknown): boolean => isObject(part) && part['type'] === 'thinking';
