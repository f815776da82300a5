import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { SseFrame } from '../../sse/frame.ts';
import type { Report } from '../rules.ts';
import type { WireCheck } from './check.ts';

/** Gemini chunks beside the standard. */
export class GeminiCheck implements WireCheck {
  readonly #report: Report;
  /** Whether function calls have ids; undefined as long as there was no call. */
  hasCallIds: boolean | undefined;

  constructor(report: Report) {
    this.#report = report;
  }

  payload(payload: JsonObject, { event, offset = 0 }: SseFrame): void {
    if (event !== undefined) this.#report('gemini/event-line', offset, `event: ${event}`);
    const inner = isObject(payload['response']) ? payload['response'] : payload;
    for (const part of partsOf(inner)) {
      const call = isObject(part) ? part['functionCall'] : undefined;
      if (isObject(call) && typeof call['name'] === 'string')
        this.hasCallIds = typeof call['id'] === 'string' && call['id'] !== '';
    }
  }

  end(): void {}
}

function partsOf({ candidates }: JsonObject): unknown[] {
  const first: unknown = Array.isArray(candidates) ? candidates[0] : undefined;
  const content = isObject(first) ? first['content'] : undefined;
  const parts = isObject(content) ? content['parts'] : undefined;
  return Array.isArray(parts) ? parts : [];
}
