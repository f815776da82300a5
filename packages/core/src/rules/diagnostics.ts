import type { Diagnostic, Report, RuleId } from './index.ts';

/**
 * Collects departures, one entry a rule: a stream that errs in every chunk costs no more than one that errs once. It does not look into the table of
 * rules, whose prose would be most of a small bundle.
 */
export class Diagnostics {
  readonly #met = new Map<RuleId, Diagnostic>();
  /** How many departures there were, all rules together. */
  total = 0;

  readonly report: Report = (rule, offset, detail) => {
    this.total++;
    const known = this.#met.get(rule);
    if (known) known.count++;
    else this.#met.set(rule, { rule, message: detail ?? wordsOf(rule), offset, count: 1 });
  };

  /** In the order of the body, whatever pieces it came in. */
  list(): Diagnostic[] {
    return [...this.#met.values()].toSorted((a, b) => a.offset - b.offset);
  }
}

/** The id of a rule in words. */
export const wordsOf = (rule: RuleId): string => rule.slice(rule.indexOf('/') + 1).replaceAll('-', ' ');
