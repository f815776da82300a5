import type { Diagnostic, Report, RuleId, RuleTexts, Violation } from './index.ts';
import { SSE_TEXTS } from './sse.ts';

/**
 * Collects violations, one entry per rule: a stream with a violation in every chunk costs no more than one with a
 * single violation. Texts are added when the list is read.
 */
export class Diagnostics {
  readonly #byRule = new Map<RuleId, Violation>();
  readonly #onReport: ((rule: RuleId) => void) | undefined;
  /** The number of violations, over all rules. */
  total = 0;

  /** `onReport` is called with the rule of every violation. */
  constructor(onReport?: (rule: RuleId) => void) {
    this.#onReport = onReport;
  }

  readonly report: Report = (rule, offset, detail) => {
    this.total++;
    this.#onReport?.(rule);
    const known = this.#byRule.get(rule);
    if (known) known.count++;
    else this.#byRule.set(rule, { rule, offset, count: 1, ...(detail !== undefined && { detail }) });
  };

  /** The violations in the order of the body, with the texts of a protocol. */
  list(texts?: RuleTexts): Diagnostic[] {
    return [...this.#byRule.values()]
      .map((met) => ({ ...met, message: describeRule(met.rule, texts, met.detail) }))
      .toSorted((a, b) => a.offset - b.offset);
  }
}

/** What a rule says about a body: `Two calls share one id: "a". The later call gets a derived id.` */
export function describeRule(rule: RuleId, texts: RuleTexts | undefined, detail?: string): string {
  const text = texts?.[rule] ?? (SSE_TEXTS as RuleTexts)[rule]; // rules of the framing belong to no protocol
  if (!text) return detail ?? rule;
  const found = detail === undefined ? text.title : `${text.title}: ${detail}`;
  return `${found.replace(/[^.…]$/, '$&.')} ${text.remedy}`;
}
