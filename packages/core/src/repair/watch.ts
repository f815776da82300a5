/**
 * Watches the payloads of a stream for what cannot be taken back once its bytes are passed on. The doctor may wait for the
 * end of a stream before it reports that a call has no id; whoever passes bytes on may not.
 */

import type { ProtocolId } from '../canonical/protocol.ts';
import { isBlank, isFromCode } from '../doctor/checks.ts';
import { isObject, type JsonObject } from '../json/json.ts';

/** A watch over one stream. */
export interface Watch {
  /** Reads a payload. False when it is not what the protocol's own vendor would send at this point. */
  push(payload: JsonObject): boolean;
  /** The number of tool calls, or of items, that were opened. */
  readonly opened: number;
  /** Characters of arguments that were sent. */
  readonly argumentLength: number;
  /** Whether an entry of `reasoning_details` was sent before. */
  isSentDetail?(entry: unknown): boolean;
  /** How a frame opens an item, where an encoder may wait with that. */
  readonly opening?: string;
  /** The same for the end of an item, with the number of items that were ended. */
  readonly closing?: string;
  readonly closed?: number;
  /** The stop reason was sent: what follows is the end, and waits for it. */
  readonly isEnding: boolean;
}

/** Creates the watch of a protocol. */
export const createWatch = (protocol: ProtocolId): Watch => WATCHES[protocol]();

const WATCHES = {
  'openai-chat': () => new ChatWatch(),
  'anthropic-messages': () => new AnthropicWatch(),
  'openai-responses': () => new ResponsesWatch(),
  gemini: () => new GeminiWatch(),
} satisfies Record<ProtocolId, () => Watch>;

class ChatWatch implements Watch {
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
    const isOpening = index === ids.length && isText(id) && isText(type) && isText(name) && !ids.includes(id);
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

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

const isTextOrAbsent = (value: unknown): boolean => value === undefined || typeof value === 'string';

class AnthropicWatch implements Watch {
  opened = 0;
  argumentLength = 0;
  isEnding = false;

  push({ type, message, content_block: block, delta }: JsonObject): boolean {
    if (type === 'message_start')
      return !isObject(message) || !Array.isArray(message['content']) || message['content'].length === 0;
    if (isObject(delta) && typeof delta['partial_json'] === 'string') this.argumentLength += delta['partial_json'].length;
    if (type === 'message_delta') {
      const isFirst = !this.isEnding;
      this.isEnding = true;
      return isFirst;
    }
    const isContent = typeof type === 'string' && type.startsWith('content_block_');
    if (type === 'content_block_start' && isObject(block) && block['type'] === 'tool_use') {
      this.opened++;
      if (!isObject(block['input']) || Object.keys(block['input']).length > 0) return isFromCode(block['caller']);
    }
    return !(isContent && this.isEnding);
  }
}

class ResponsesWatch implements Watch {
  opened = 0;
  argumentLength = 0;
  readonly isEnding = false;
  readonly opening = '"response.output_item.added"';
  readonly closing = '"response.output_item.done"';
  closed = 0;

  push({ type, delta }: JsonObject): boolean {
    if (type === 'response.function_call_arguments.delta' && typeof delta === 'string') this.argumentLength += delta.length;
    if (type === 'response.output_item.added') this.opened++;
    if (type === 'response.output_item.done') this.closed++;
    return true;
  }
}

class GeminiWatch implements Watch {
  readonly opened = 0;
  readonly argumentLength = 0;
  readonly isEnding = false;

  push(payload: JsonObject): boolean {
    const { candidates } = isObject(payload['response']) ? payload['response'] : payload;
    if (!Array.isArray(candidates)) return true;
    return candidates.every((candidate) => !isObject(candidate) || listParts(candidate).every(hasName));
  }
}

function listParts({ content }: JsonObject): readonly unknown[] {
  const parts = isObject(content) ? content['parts'] : undefined;
  return Array.isArray(parts) ? parts : [];
}

const hasName = (part: unknown): boolean => {
  const call = isObject(part) ? part['functionCall'] : undefined;
  // Arguments that are streamed follow in parts without a name.
  return !isObject(call) || isText(call['name']) || call['args'] === undefined;
};
