import type { JsonObject } from '../../accumulate/overlay.ts';
import type { SseFrame } from '../../sse/frame.ts';
import type { Report } from '../rules.ts';
import type { WireCheck } from './check.ts';

/** Responses events beside the standard. */
export class ResponsesCheck implements WireCheck {
  readonly #report: Report;

  constructor(report: Report) {
    this.#report = report;
  }

  payload({ type }: JsonObject, { bare, offset = 0 }: SseFrame): void {
    // The decoder reads an error without a type, and says nothing of it.
    if (!bare && typeof type !== 'string') this.#report('responses/type-missing', offset);
  }

  end(): void {}
}
