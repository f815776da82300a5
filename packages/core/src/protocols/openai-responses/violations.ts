/** Violations in Responses events that the decoder tolerates but other clients do not, and what cannot be taken back. */

import { isBlank, type Watch, type WireCheck } from '../../codec/repair.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import type { Report } from '../../rules/index.ts';
import type { SseFrame } from '../../sse/encode.ts';

/** Violations in Responses events. */
export class ResponsesCheck implements WireCheck {
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

// ---- what cannot be taken back

/** Events of the message. All others are the progress of what a provider does by itself: searches, code, images. */
const MESSAGE_EVENTS =
  /^(?:error$|response\.(?:created|completed|failed|incomplete|output_|content_|refusal|reasoning|function_call|custom_tool))/;

/** Items that are made of deltas. All others are whole when they are done, and encoders write them then. */
const STREAMED_ITEMS: ReadonlySet<unknown> = /* @__PURE__ */ new Set([
  'message',
  'reasoning',
  'function_call',
  'custom_tool_call',
]);

/** Watches Responses events that are passed on. */
export class ResponsesWatch implements Watch {
  opened = 0;
  argumentLength = 0;
  readonly isEnding = false;
  readonly opening = '"response.output_item.added"';
  readonly closing = '"response.output_item.done"';
  closed = 0;
  isAlone = false;
  isWhole = false;
  #open = 0;

  push({ type, delta, item }: JsonObject): boolean {
    const isStreamed = isObject(item) && STREAMED_ITEMS.has(item['type']);
    this.isAlone = typeof type === 'string' && !MESSAGE_EVENTS.test(type);
    if (type === 'response.function_call_arguments.delta' && typeof delta === 'string') this.argumentLength += delta.length;
    if (type === 'response.output_item.added') {
      if (isStreamed) this.opened++;
      else this.isAlone = true;
      this.#open++;
      this.isWhole = false;
    }
    if (type === 'response.output_item.done') {
      if (!isStreamed) this.opened++;
      this.closed++;
      this.#open--;
      // Something has to follow reasoning.
      this.isWhole = this.#open === 0 && isStreamed && item['type'] !== 'reasoning' && item['status'] !== 'incomplete';
    }
    // Clients match events by the ids of items.
    return type !== 'response.output_item.added' || !isStreamed || !isBlank(item['id']);
  }
}
