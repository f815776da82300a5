/** Checks of stream payloads for departures that our decoders tolerate but other clients do not. */

import type { ProtocolId } from '../canonical/protocol.ts';
import { isObject, type JsonObject } from '../json/json.ts';
import type { Report } from '../rules/index.ts';
import type { SseFrame } from '../sse/encode.ts';

/** A second look at the payloads of a stream. */
export interface WireCheck {
  payload(payload: JsonObject, frame: SseFrame): void;
  /** Call when the body has ended. */
  end(body: BodyFacts): void;
}

/** Creates the check of a protocol. */
export const createCheck = (protocol: ProtocolId, report: Report): WireCheck => CHECKS[protocol](report);

const CHECKS = {
  'openai-chat': (report) => new ChatCheck(report),
  'anthropic-messages': (report) => new AnthropicCheck(report),
  'openai-responses': (report) => new ResponsesCheck(report),
  gemini: (report) => new GeminiCheck(report),
} satisfies Record<ProtocolId, (report: Report) => WireCheck>;

/** What a check has to know about the whole body. */
export interface BodyFacts {
  /** The length in bytes. */
  length: number;
  /** The stream ended before its message did, and reported no error. */
  isCut: boolean;
  /** The offset of the first comment. */
  comment: number | undefined;
}

// ---- chat

/** Departures in Chat chunks. */
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

// ---- anthropic

/** Departures in Anthropic events. */
class AnthropicCheck implements WireCheck {
  readonly #report: Report;
  /** Offsets of calls that began with their arguments, by block index; a delta with arguments removes its call. */
  readonly #full = new Map<unknown, number>();

  constructor(report: Report) {
    this.#report = report;
  }

  payload(event: JsonObject, { event: name, bare, offset = 0 }: SseFrame): void {
    // The decoder accepts an error without a type and does not report it.
    if (!bare && typeof event['type'] !== 'string') this.#report('anthropic/type-missing', offset);
    switch (event['type'] ?? name) {
      case 'message_start':
        this.#readStart(event['message'], offset);
        return;
      case 'content_block_start':
        this.#readBlock(event, offset);
        return;
      case 'content_block_delta':
        // The decoder reports input that is sent twice.
        if (isObject(event['delta']) && event['delta']['partial_json']) this.#full.delete(event['index']);
        return;
      case 'message_delta':
        this.#readDelta(event, offset);
    }
  }

  end(): void {
    for (const offset of this.#full.values()) this.#report('anthropic/input-in-start', offset);
  }

  #readStart(message: unknown, offset: number): void {
    if (!isObject(message)) return;
    const { usage } = message;
    const lacking = Object.entries(MESSAGE_FIELDS).flatMap(([field, isRight]) => (isRight(message[field]) ? [] : [field]));
    if (lacking.length > 0) this.#report('anthropic/message-start-incomplete', offset, `wrong or missing: ${lacking.join(', ')}`);
    if (!isObject(usage)) this.#report('anthropic/usage-missing', offset, 'message_start has no usage');
  }

  #readBlock({ index, content_block: block }: JsonObject, offset: number): void {
    if (!isObject(block) || block['type'] !== 'tool_use') return;
    const { input } = block;
    if (!isObject(input)) this.#report('anthropic/input-missing', offset);
    else if (Object.keys(input).length > 0 && !isFromCode(block['caller'])) this.#full.set(index, offset);
  }

  #readDelta({ usage }: JsonObject, offset: number): void {
    if (!isObject(usage)) this.#report('anthropic/usage-missing', offset, 'message_delta has no usage');
  }
}

/** Fields of every message_start that the official SDK relies on. */
const MESSAGE_FIELDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  type: (value) => value === 'message',
  role: (value) => value === 'assistant',
  model: (value) => typeof value === 'string',
  content: Array.isArray,
};

/** Anthropic sends calls made by its own code execution with their whole input and without deltas. */
export const isFromCode = (caller: unknown): boolean => isObject(caller) && caller['type'] !== 'direct';

// ---- responses

/** Departures in Responses events. */
class ResponsesCheck implements WireCheck {
  readonly #report: Report;

  constructor(report: Report) {
    this.#report = report;
  }

  payload({ type }: JsonObject, { bare, offset = 0 }: SseFrame): void {
    // The decoder accepts an error without a type and does not report it.
    if (!bare && typeof type !== 'string') this.#report('responses/type-missing', offset);
  }

  end(): void {}
}

// ---- gemini

/** Departures in Gemini chunks. */
export class GeminiCheck implements WireCheck {
  readonly #report: Report;
  /** Whether function calls have ids; undefined before the first call. */
  hasCallIds: boolean | undefined;

  constructor(report: Report) {
    this.#report = report;
  }

  payload(payload: JsonObject, { event, offset = 0 }: SseFrame): void {
    if (event !== undefined) this.#report('gemini/event-line', offset, `event: ${event}`);
    const inner = isObject(payload['response']) ? payload['response'] : payload;
    for (const part of listParts(inner)) {
      const call = isObject(part) ? part['functionCall'] : undefined;
      if (isObject(call) && typeof call['name'] === 'string')
        this.hasCallIds = typeof call['id'] === 'string' && call['id'] !== '';
    }
  }

  /** Google's clients fail on comments. */
  end({ comment }: BodyFacts): void {
    if (comment !== undefined) this.#report('gemini/comment', comment);
  }
}

function listParts({ candidates }: JsonObject): unknown[] {
  const first: unknown = Array.isArray(candidates) ? candidates[0] : undefined;
  const content = isObject(first) ? first['content'] : undefined;
  const parts = isObject(content) ? content['parts'] : undefined;
  return Array.isArray(parts) ? parts : [];
}

// ---- all protocols

/**
 * Whether a JSON text has a lone surrogate escape in one of its strings. In the bytes there cannot be one: it would not
 * be UTF-8.
 */
export const hasLoneSurrogate = (json: string): boolean =>
  SURROGATE.test(json) && SURROGATE.test(json.replace(WHOLE_ESCAPES, ''));

/**
 * Complete escapes: surrogate pairs, and everything that is not a surrogate. An escaped backslash is matched together
 * with what it escapes.
 */
const WHOLE_ESCAPES = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|[^u]|u(?![dD][89a-fA-F])[\da-fA-F]{4})/g;

const SURROGATE = /\\u[dD][89a-fA-F]/;

export const isBlank = (value: unknown): boolean => value === undefined || value === null || value === '';
