import type { Watch, WireCheck } from '../../packages/core/src/codec/repair.ts';
import type { JsonObject } from '../../packages/core/src/json/json.ts';
import type { Report } from '../../packages/core/src/rules/index.ts';
import type { SseFrame } from '../../packages/core/src/sse/encode.ts';

/** Its decoder keeps event names out of the way; other clients fail on them. */
export class ToyCheck implements WireCheck {
  readonly #report: Report;

  constructor(report: Report) {
    this.#report = report;
  }

  payload(_: JsonObject, { event, offset = 0 }: SseFrame): void {
    // The catalogue has no rules of this protocol.
    if (event !== undefined) this.#report('gemini/event-line', offset);
  }

  end(): void {}
}

/** Calls are sent whole, so nothing has to wait but the end. */
export class ToyWatch implements Watch {
  readonly opened = 0;
  readonly argumentLength = 0;
  isEnding = false;

  push({ end }: JsonObject): boolean {
    const isFirst = !this.isEnding;
    this.isEnding ||= end !== undefined;
    return isFirst;
  }
}
