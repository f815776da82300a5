import type { Diagnostic, Report, RuleId } from './index.ts';

/**
 * Collects violations, one entry per rule: a stream with a violation in every chunk costs no more than one with a
 * single violation. It does not import the table of rules, whose texts would be most of a small bundle.
 */
export class Diagnostics {
  readonly #byRule = new Map<RuleId, Diagnostic>();
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
    else this.#byRule.set(rule, { rule, message: detail ?? describeRule(rule), offset, count: 1 });
  };

  /** The violations in the order of the body. */
  list(): Diagnostic[] {
    return [...this.#byRule.values()].toSorted((a, b) => a.offset - b.offset);
  }
}

/** The id of a rule as words. */
export const describeRule = (rule: RuleId): string => rule.slice(rule.indexOf('/') + 1).replaceAll('-', ' ');
