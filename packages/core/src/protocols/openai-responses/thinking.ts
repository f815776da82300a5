import { type JsonObject, sameJson } from '../../accumulate/overlay.ts';
import type { ThinkingConfig } from '../../canonical/request.ts';
import { effortOf, isEffort, nearestEffort } from '../../passes/effort.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { expectObject, optional } from '../shared/expect.ts';

const SUMMARIES: readonly unknown[] = ['auto', 'concise', 'detailed'] satisfies ThinkingConfig['summary'][];
const isSummary = (word: unknown): word is NonNullable<ThinkingConfig['summary']> => SUMMARIES.includes(word);

/** A summary without an effort leaves it to the model how much it thinks. */
export function decodeThinking(value: unknown): ThinkingConfig | undefined {
  const reasoning = optional(value, 'reasoning', expectObject);
  if (!reasoning) return undefined;
  const { effort } = reasoning;
  const summary = reasoning['summary'] ?? reasoning['generate_summary'];
  if (effort === 'none') return { type: 'disabled' };
  if (!isEffort(effort) && !isSummary(summary)) return undefined;
  return {
    type: isEffort(effort) ? 'enabled' : 'adaptive',
    ...(isEffort(effort) && { effort }),
    ...(isSummary(summary) && { summary, display: 'summarized' }),
  };
}

/** `kept`: the client's own words, which may say more, and stand as long as they say the same. */
export function encodeThinking(thinking: ThinkingConfig | undefined, kept: unknown, context: CodecContext): JsonObject {
  if (kept !== undefined && sameJson(decodeThinking(kept), thinking)) return { reasoning: kept };
  if (!thinking) return {};
  const effort = thinking.type === 'disabled' ? encodeNone(context) : encodeEffort(thinking, context);
  const summary = thinking.type === 'disabled' ? undefined : encodeSummary(thinking);
  const reasoning = { ...(effort !== undefined && { effort }), ...(summary !== undefined && { summary }) };
  return Object.keys(reasoning).length > 0 ? { reasoning } : {};
}

function encodeNone(context: CodecContext): string | undefined {
  const { effort_values: allowed } = context.profile;
  if (!allowed || allowed.includes('none')) return 'none';
  // A model that takes no effort does not think.
  if (allowed.length > 0) lose('thinking.disabled', 'this model cannot be told not to think', context);
  return undefined;
}

/** Enabled without a word on how much is the provider's default. */
function encodeEffort(thinking: ThinkingConfig, context: CodecContext): string | undefined {
  const { effort_values: allowed } = context.profile;
  const wanted = thinking.effort ?? effortOf(thinking.budget_tokens);
  if (!wanted) return undefined;
  const effort = allowed ? nearestEffort(wanted, allowed) : wanted;
  if (effort === undefined) lose('thinking.effort', 'this model takes no effort', context);
  else if (!thinking.effort) tell(`a budget of ${thinking.budget_tokens} tokens is sent as the effort "${effort}"`, context);
  else if (effort !== wanted) tell(`the effort "${wanted}" is sent as "${effort}"`, context);
  return effort;
}

/** The full chain of thought is shown to nobody; a summary comes nearest. */
function encodeSummary({ summary, display }: ThinkingConfig): string | undefined {
  return summary ?? (display === 'summarized' || display === 'full' ? 'auto' : undefined);
}

const lose = (feature: string, message: string, context: CodecContext): void =>
  drop(context, { path: '/thinking', feature, message });

const tell = (message: string, context: CodecContext): void =>
  approximate(context, { path: '/thinking', feature: 'thinking.effort', message });
