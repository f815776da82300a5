/** Violations in Responses events that the decoder tolerates but other clients do not, and what cannot be taken back. */

import type { Watch, WireCheck } from '../../codec/repair.ts';
import type { JsonObject } from '../../json/json.ts';
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

/** Watches Responses events that are passed on. */
export class ResponsesWatch implements Watch {
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
