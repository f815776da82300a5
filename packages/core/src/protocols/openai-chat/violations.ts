/** Violations in Chat chunks that the decoder tolerates but other clients do not, and what cannot be taken back. */

import type { CanonicalRequest } from '../../canonical/request.ts';
import { type BodyFacts, isBlank, type Watch, type WireCheck } from '../../codec/repair.ts';
import { isFilledText, isObject, type JsonObject } from '../../json/json.ts';
import type { Report } from '../../rules/index.ts';
import type { SseFrame } from '../../sse/encode.ts';

/** Violations in Chat chunks. */
export class ChatCheck implements WireCheck {
  readonly #report: Report;
  readonly #choices = new Map<unknown, Choice>();
  /** The fields in which reasoning was found. */
  readonly reasoningFields: Set<string> = new Set();
  #model: unknown;
  #usages = 0;
  /** The offset of the first usage in a vendor's own field. */
  #elsewhere: number | undefined;
  #hasDelta = false;

  constructor(report: Report) {
    this.#report = report;
  }

  /** The body had a message, or nothing, where deltas should be. */
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

  end({ length, isCut }: BodyFacts): void {
    if (isCut) this.#report('chat/ended-early', length);
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
      this.#report('chat/finish-nonstandard', offset, 'function_call, but the calls are in tool_calls');
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

interface Choice {
  offset: number;
  hasRole: boolean;
  hasCalls: boolean;
  calls: CallCheck;
}

/** Fields in which compatible servers send reasoning; the standard has none. */
const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text', 'reasoning_details'] as const;

const CONTENT_FIELDS = ['content', 'refusal', 'reasoning_content', 'reasoning', 'reasoning_text'] as const;

const holdsSomething = (value: unknown): boolean =>
  !isBlank(value) && (Array.isArray(value) ? value.length > 0 : typeof value === 'string' || isObject(value));

const isThinkingPart = (part: unknown): boolean => isObject(part) && part['type'] === 'thinking';

/** The tool calls of one choice: index, id and type in their deltas. */
class CallCheck {
  readonly #report: Report;
  readonly #calls = new Map<number, Call>();

  constructor(report: Report) {
    this.#report = report;
  }

  push(entries: readonly unknown[], offset: number): void {
    const seen = new Set<number>();
    for (const entry of entries) {
      const index = isObject(entry) ? readIndex(entry['index']) : undefined;
      if (!isObject(entry) || index === undefined) continue;
      if (seen.has(index)) this.#report('chat/tool-index-twice', offset);
      seen.add(index);
      const call = this.#calls.get(index);
      if (call) this.#continue(call, entry, offset);
      else this.#open(index, entry, offset);
    }
  }

  end(): void {
    for (const { hasType, offset } of this.#calls.values()) if (!hasType) this.#report('chat/tool-type-missing', offset);
  }

  #open(index: number, entry: JsonObject, offset: number): void {
    const { id, type } = entry;
    const name = readName(entry);
    const isContinuation = isBlank(id) && isBlank(name);
    if (isContinuation && this.#calls.size > 0) {
      this.#report('chat/tool-index-drifts', offset, `index ${index} was never opened`);
      return;
    }
    if (index !== this.#calls.size) this.#report('chat/tool-index-gap', offset, `index ${index}; expected ${this.#calls.size}`);
    // This continues a call that was opened without an index, so its type is unknown.
    this.#calls.set(index, { offset, id, name, hasType: isContinuation || !isBlank(type) });
  }

  #continue(call: Call, entry: JsonObject, offset: number): void {
    const { id, type } = entry;
    const name = readName(entry);
    // Another id or name under the same index is another call, which the decoder reports.
    const isOther = differs(id, call.id) || differs(name, call.name);
    if (!isBlank(id) && isBlank(call.id)) this.#report('chat/tool-id-late', offset);
    else if (!isOther && (!isBlank(id) || (!isBlank(type) && call.hasType))) this.#report('chat/tool-header-repeated', offset);
    if (isBlank(call.id) || isOther) call.id = id;
    if (isBlank(call.name) || isOther) call.name = name;
    call.hasType ||= !isBlank(type);
  }
}

interface Call {
  offset: number;
  id: unknown;
  name: unknown;
  hasType: boolean;
}

const differs = (value: unknown, known: unknown): boolean => !isBlank(value) && !isBlank(known) && value !== known;

/** An index as servers write it; the decoder reports any other value. */
function readIndex(value: unknown): number | undefined {
  const index = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return typeof index === 'number' && Number.isSafeInteger(index) && index >= 0 ? index : undefined;
}

function readName(entry: JsonObject): unknown {
  const inner = entry['function'] ?? entry['custom'];
  return isObject(inner) ? inner['name'] : undefined;
}

// ---- what cannot be taken back

/** Watches Chat chunks that are passed on. */
export class ChatWatch implements Watch {
  readonly #choices = new Map<unknown, ChatChoice>();
  readonly #details = new Set<string>();
  opened = 0;
  argumentLength = 0;

  get isEnding(): boolean {
    if (this.#choices.size === 0) return false;
    for (const { isFinished } of this.#choices.values()) if (!isFinished) return false;
    return true;
  }

  push({ choices }: JsonObject): boolean {
    if (!Array.isArray(choices)) return true;
    let isRight = true;
    for (const choice of choices) if (isObject(choice) && !this.#read(choice)) isRight = false;
    return isRight;
  }

  #read({ index, delta, finish_reason: finish }: JsonObject): boolean {
    if (!isObject(delta)) return true;
    const known = this.#choices.get(index);
    const choice = known ?? { isFinished: false, ids: [] };
    if (!known) this.#choices.set(index, choice);
    const isRight = (known !== undefined || delta['role'] === 'assistant') && this.#readDelta(delta, choice);
    if (!isBlank(finish)) choice.isFinished = true;
    return isRight;
  }

  /** Their text is also in `reasoning`; opaque values are recognised by their ends. */
  readonly isSentDetail = (entry: unknown): boolean => this.#details.has(nameDetail(entry));

  #readDelta(delta: JsonObject, choice: ChatChoice): boolean {
    const { tool_calls: calls, reasoning_details: details } = delta;
    if (Array.isArray(details) && this.#details.size < MAX_DETAILS)
      for (const entry of details) this.#details.add(nameDetail(entry));
    const isFull = !isBlank(delta['content']) || (Array.isArray(calls) && calls.length > 0);
    if (isFull && choice.isFinished) return false;
    return !Array.isArray(calls) || calls.every((entry) => isObject(entry) && this.#readCall(entry, choice));
  }

  /** The first delta of a call has its id, type and name, all others have only arguments. */
  #readCall({ index, id, type, function: called, custom }: JsonObject, { ids }: ChatChoice): boolean {
    const body = called ?? custom;
    const { name, arguments: text, input }: JsonObject = isObject(body) ? body : {};
    if (typeof index !== 'number' || !isTextOrAbsent(text) || !isTextOrAbsent(input)) return false;
    this.argumentLength += String(text ?? input ?? '').length;
    if (index < ids.length) return name === undefined && (id === undefined || id === ids[index]);
    const isOpening = index === ids.length && isFilledText(id) && isFilledText(type) && isFilledText(name) && !ids.includes(id);
    ids.push(typeof id === 'string' ? id : '');
    this.opened++;
    return isOpening;
  }
}

const MAX_DETAILS = 1000;

function nameDetail(entry: unknown): string {
  const { type, index, data, signature }: JsonObject = isObject(entry) ? entry : {};
  const opaque = data ?? signature;
  return JSON.stringify([type, index, typeof opaque === 'string' ? opaque.slice(-32) : '']);
}

interface ChatChoice {
  isFinished: boolean;
  /** The ids of its calls. */
  ids: string[];
}

const isTextOrAbsent = (value: unknown): boolean => value === undefined || typeof value === 'string';

/** The chunk with the usage, which clients get only if they requested it: some fail on a chunk without choices. */
export const isUnrequestedUsage = ({ choices, usage }: JsonObject, { stream_options: options }: CanonicalRequest): boolean =>
  Array.isArray(choices) && choices.length === 0 && isObject(usage) && options?.include_usage !== true;
