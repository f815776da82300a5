import { wordsOf } from '../engine/diagnostics.ts';
import { type Diagnostic, RULES } from './rules.ts';

/** A diagnostic with the title of its rule for a message, unless it has more to say already. Brings the whole table of rules along. */
export function withTitle(diagnostic: Diagnostic): Diagnostic {
  const { rule, message } = diagnostic;
  return message === wordsOf(rule) ? { ...diagnostic, message: RULES[rule].title } : diagnostic;
}
