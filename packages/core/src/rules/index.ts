import { ANTHROPIC_MESSAGES_FACTS, ANTHROPIC_MESSAGES_TEXTS } from './anthropic-messages.ts';
import { GEMINI_FACTS, GEMINI_TEXTS } from './gemini.ts';
import { ANTHROPIC_MESSAGES_HABITS, GEMINI_HABITS, HABIT_FACTS, OPENAI_CHAT_HABITS, SSE_HABITS } from './habits.ts';
import { OPENAI_CHAT_FACTS, OPENAI_CHAT_TEXTS } from './openai-chat.ts';
import { OPENAI_RESPONSES_FACTS, OPENAI_RESPONSES_TEXTS } from './openai-responses.ts';
import type { Rule, RuleFacts, RuleText, Severity } from './rule.ts';
import { SSE_FACTS, SSE_TEXTS } from './sse.ts';

export type { Rule, Severity } from './rule.ts';

/**
 * Every violation of the standards that a decoder or the doctor can report. Plain data, without dependencies.
 *
 * ```ts
 * const { diagnostics } = await accumulate(response);
 * for (const { rule, count } of diagnostics) console.warn(count, RULES[rule].severity);
 * ```
 */
export const RULES: Record<RuleId, Rule> = /* @__PURE__ */ joinRules(
  {
    ...SSE_TEXTS,
    ...OPENAI_CHAT_TEXTS,
    ...ANTHROPIC_MESSAGES_TEXTS,
    ...OPENAI_RESPONSES_TEXTS,
    ...GEMINI_TEXTS,
    ...SSE_HABITS,
    ...OPENAI_CHAT_HABITS,
    ...ANTHROPIC_MESSAGES_HABITS,
    ...GEMINI_HABITS,
  },
  {
    ...SSE_FACTS,
    ...OPENAI_CHAT_FACTS,
    ...ANTHROPIC_MESSAGES_FACTS,
    ...OPENAI_RESPONSES_FACTS,
    ...GEMINI_FACTS,
    ...HABIT_FACTS,
  },
);

function joinRules(texts: Record<RuleId, RuleText>, facts: Record<RuleId, RuleFacts>): Record<RuleId, Rule> {
  const ids = Object.keys(texts) as RuleId[]; // keys() does not know the keys
  const rules = ids.map((id) => {
    const { explanation, ...others } = facts[id];
    const { title, remedy } = texts[id];
    return [id, { title, explanation, remedy, ...others }];
  });
  return Object.fromEntries(rules) as Record<RuleId, Rule>; // fromEntries does not know the keys
}

/** The ids of all rules. */
export type RuleId =
  | keyof typeof SSE_TEXTS
  | keyof typeof OPENAI_CHAT_TEXTS
  | keyof typeof ANTHROPIC_MESSAGES_TEXTS
  | keyof typeof OPENAI_RESPONSES_TEXTS
  | keyof typeof GEMINI_TEXTS
  | keyof typeof HABIT_FACTS;

/** The texts of the rules that a protocol can violate. */
export type RuleTexts = Partial<Record<RuleId, RuleText>>;

/** A violation that was met: its rule, its position (in bytes from the start of the body) and how often it occurred. */
export interface Violation {
  rule: RuleId;
  /** What was found, when there is more to say than the rule. */
  detail?: string;
  offset: number;
  count: number;
}

/** A violation with its text. */
export interface Diagnostic extends Violation {
  /** The severity of this finding, which may be lower than that of its rule. Set by the doctor, not by decoders. */
  severity?: Severity;
  /** The title of the rule, what was found, and what Sluice did about it. */
  message: string;
}

/** Reports a violation; `detail` adds to the text of the rule. */
export type Report = (rule: RuleId, offset: number, detail?: string) => void;
