/** Violations in Anthropic events that the decoder tolerates but other clients do not, and what cannot be taken back. */

import type { Watch, WireCheck } from '../../codec/repair.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import type { Report } from '../../rules/index.ts';
import type { SseFrame } from '../../sse/encode.ts';

/** Violations in Anthropic events. */
export class AnthropicCheck implements WireCheck {
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

  whole({ content }: JsonObject): void {
    if (!Array.isArray(content)) return;
    const lacksInput = (block: unknown): boolean => isObject(block) && block['type'] === 'tool_use' && !isObject(block['input']);
    if (content.some(lacksInput)) this.#report('anthropic/input-missing', 0);
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
const isFromCode = (caller: unknown): boolean => isObject(caller) && caller['type'] !== 'direct';

// ---- what cannot be taken back

/** All others, such as pings, are no part of the message. */
const MESSAGE_EVENTS: ReadonlySet<unknown> = /* @__PURE__ */ new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'error',
]);

/** Watches Anthropic events that are passed on. */
export class AnthropicWatch implements Watch {
  opened = 0;
  argumentLength = 0;
  isEnding = false;
  isAlone = false;
  isWhole = false;
  #open = 0;
  /** The last block is content, not thinking, which something has to follow. */
  #isContent = false;

  push({ type, message, content_block: block, delta }: JsonObject): boolean {
    this.isAlone = !MESSAGE_EVENTS.has(type);
    if (type === 'content_block_start') {
      this.#open++;
      this.#isContent = isObject(block) && (block['type'] === 'text' || block['type'] === 'tool_use');
    } else if (type === 'content_block_stop') this.#open--;
    if (!this.isAlone) this.isWhole = type === 'content_block_stop' && this.#open === 0 && this.#isContent;
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
