import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { SseFrame } from '../../sse/frame.ts';
import type { Report } from '../rules.ts';
import type { WireCheck } from './check.ts';

/** What every message_start has; the official SDK builds on it. */
const MESSAGE_FIELDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  type: (value) => value === 'message',
  role: (value) => value === 'assistant',
  model: (value) => typeof value === 'string',
  content: Array.isArray,
};

/** Anthropic events beside the standard. */
export class AnthropicCheck implements WireCheck {
  readonly #report: Report;
  /** Calls that began with their arguments, and where; deltas may still bring them. */
  readonly #full = new Map<unknown, number>();

  constructor(report: Report) {
    this.#report = report;
  }

  payload(event: JsonObject, { event: name, bare, offset = 0 }: SseFrame): void {
    // The decoder reads an error without a type, and says nothing of it.
    if (!bare && typeof event['type'] !== 'string') this.#report('anthropic/type-missing', offset);
    switch (event['type'] ?? name) {
      case 'message_start':
        this.#readStart(event['message'], offset);
        return;
      case 'content_block_start':
        this.#readBlock(event, offset);
        return;
      case 'content_block_delta':
        // The decoder names input that comes twice.
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

/** Anthropic sends calls that its own code execution makes with their whole input, and without deltas. */
const isFromCode = (caller: unknown): boolean => isObject(caller) && caller['type'] !== 'direct';
