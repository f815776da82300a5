/** Violations in Gemini chunks that the decoder tolerates but other clients do not, and what cannot be taken back. */

import type { BodyFacts, Watch, WireCheck } from '../../codec/repair.ts';
import { isFilledText, isObject, type JsonObject } from '../../json/json.ts';
import type { Report } from '../../rules/index.ts';
import type { SseFrame } from '../../sse/encode.ts';

/** Violations in Gemini chunks. */
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
    const first: unknown = Array.isArray(inner['candidates']) ? inner['candidates'][0] : undefined;
    for (const part of isObject(first) ? listParts(first) : []) {
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

// ---- what cannot be taken back

/** Watches Gemini chunks that are passed on. */
export class GeminiWatch implements Watch {
  opened = 0;
  /** A decoder waits with a call for what follows it, also when other parts of the chunk are written at once. */
  readonly opening = '"functionCall":';
  readonly argumentLength = 0;
  readonly isEnding = false;

  push(payload: JsonObject): boolean {
    const { candidates } = isObject(payload['response']) ? payload['response'] : payload;
    if (!Array.isArray(candidates)) return true;
    const parts = candidates.flatMap((candidate) => (isObject(candidate) ? listParts(candidate) : []));
    this.opened += parts.filter(isNamedCall).length;
    return parts.every(hasName);
  }
}

/** The parts of a candidate. */
function listParts({ content }: JsonObject): readonly unknown[] {
  const parts = isObject(content) ? content['parts'] : undefined;
  return Array.isArray(parts) ? parts : [];
}

const hasName = (part: unknown): boolean => {
  const call = isObject(part) ? part['functionCall'] : undefined;
  // Arguments that are streamed follow in parts without a name.
  return !isObject(call) || isFilledText(call['name']) || call['args'] === undefined;
};

const isNamedCall = (part: unknown): boolean => {
  const call = isObject(part) ? part['functionCall'] : undefined;
  return isObject(call) && isFilledText(call['name']);
};
