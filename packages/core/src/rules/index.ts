import { ANTHROPIC_MESSAGES_RULES } from './anthropic-messages.ts';
import { GEMINI_RULES } from './gemini.ts';
import { HABIT_RULES } from './habits.ts';
import { OPENAI_CHAT_RULES } from './openai-chat.ts';
import { OPENAI_RESPONSES_RULES } from './openai-responses.ts';
import type { Rule, Severity } from './rule.ts';
import { SSE_RULES } from './sse.ts';

export type { Rule, Severity } from './rule.ts';

/**
 * Every violation of the standards that a decoder or the doctor can report. Plain data, without dependencies.
 *
 * ```ts
 * const { diagnostics } = await accumulate(response);
 * for (const { rule, count } of diagnostics) console.warn(count, RULES[rule].title);
 * ```
 */
export const RULES: Record<RuleId, Rule> = {
  ...SSE_RULES,
  ...OPENAI_CHAT_RULES,
  ...ANTHROPIC_MESSAGES_RULES,
  ...OPENAI_RESPONSES_RULES,
  ...GEMINI_RULES,
  ...HABIT_RULES,
};

/** The ids of all rules. */
export type RuleId =
  | keyof typeof SSE_RULES
  | keyof typeof OPENAI_CHAT_RULES
  | keyof typeof ANTHROPIC_MESSAGES_RULES
  | keyof typeof OPENAI_RESPONSES_RULES
  | keyof typeof GEMINI_RULES
  | keyof typeof HABIT_RULES;

/**
 * A violation that was found: its rule, its position (in bytes from the start of the body) and how often it occurred.
 */
export interface Diagnostic {
  rule: RuleId;
  /** The severity of this finding, which may be lower than that of its rule. Set by the doctor, not by decoders. */
  severity?: Severity;
  /** What was found, if there is more to say than the rule; otherwise the id of the rule as words. */
  message: string;
  offset: number;
  count: number;
}

/** Reports a violation; `detail` adds to the text of the rule. */
export type Report = (rule: RuleId, offset: number, detail?: string) => void;
