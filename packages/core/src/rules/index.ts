import { ANTHROPIC_MESSAGES_RULES } from './anthropic-messages.ts';
import { GEMINI_RULES } from './gemini.ts';
import { HABIT_RULES } from './habits.ts';
import { OPENAI_CHAT_RULES } from './openai-chat.ts';
import { OPENAI_RESPONSES_RULES } from './openai-responses.ts';
import type { Rule, Severity } from './rule.ts';
import { SSE_RULES } from './sse.ts';

export type { Rule, Severity } from './rule.ts';

export type RuleId =
  | keyof typeof SSE_RULES
  | keyof typeof OPENAI_CHAT_RULES
  | keyof typeof ANTHROPIC_MESSAGES_RULES
  | keyof typeof OPENAI_RESPONSES_RULES
  | keyof typeof GEMINI_RULES
  | keyof typeof HABIT_RULES;

/** Every departure from the standards that a decoder or the doctor can name. Plain data: anyone may import it. */
export const RULES: Record<RuleId, Rule> = {
  ...SSE_RULES,
  ...OPENAI_CHAT_RULES,
  ...ANTHROPIC_MESSAGES_RULES,
  ...OPENAI_RESPONSES_RULES,
  ...GEMINI_RULES,
  ...HABIT_RULES,
};

/** A departure met: what it was, where (in bytes from the start of the body), how often. `RULES[rule]` says all about it. */
export interface Diagnostic {
  rule: RuleId;
  /** Of this finding, which may be less severe than its rule. A decoder leaves it out: only the doctor judges. */
  severity?: Severity;
  /** What was found, where there is more to say than the rule; otherwise the words of its id. */
  message: string;
  offset: number;
  count: number;
}

/** How a decoder names a departure; `detail` says more than the rule. */
export type Report = (rule: RuleId, offset: number, detail?: string) => void;
