import { type JsonObject, sameJson } from '../../accumulate/overlay.ts';
import type { ThinkingConfig } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import { effortOf, isEffort, nearestEffort } from '../../passes/effort.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { dropIdleEffort, dropThinking } from '../shared/drop-thinking.ts';
import { expectObject, optional } from '../shared/expect.ts';

const SUMMARIES: readonly unknown[] = ['auto', 'concise', 'detailed'] satisfies ThinkingConfig['summary'][];
const isSummary = (word: unknown): word is NonNullable<ThinkingConfig['summary']> => SUMMARIES.includes(word);

/** A summary without an effort leaves it to the model how much it thinks. */
export function decodeThinking(value: unknown, context: Pick<CodecContext, 'trace'> = {}): ThinkingConfig | undefined {
  const reasoning = optional(value, 'reasoning', expectObject);
  const said = reasoning && readThinking(reasoning);
  const summary = `/reasoning/${reasoning?.['summary'] ? 'summary' : 'generate_summary'}`;
  const type = said?.type === 'adaptive' ? summary : '/reasoning/effort';
  return said && at('/reasoning', said, context, { type, summary, display: summary });
}

function readThinking(reasoning: JsonObject): ThinkingConfig | undefined {
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
  dropIdleEffort(thinking, context);
  if (context.profile.thinking_mode === 'none') return dropThinking(thinking, context);
  const effort = thinking.type === 'disabled' ? encodeNone(context) : encodeEffort(thinking, context);
  const summary = thinking.type === 'disabled' ? undefined : encodeSummary(thinking, context);
  const reasoning = { ...(effort !== undefined && { effort }), ...(summary !== undefined && { summary }) };
  return Object.keys(reasoning).length > 0 ? { reasoning } : {};
}

function encodeNone(context: CodecContext): string | undefined {
  const { effort_values: allowed } = context.profile;
  if (!allowed || allowed.includes('none')) return 'none';
  lose('type', 'this model cannot be told not to think', context);
  return undefined;
}

/** Enabled without a word on how much is the provider's default. */
function encodeEffort(thinking: ThinkingConfig, context: CodecContext): string | undefined {
  const { effort_values: allowed } = context.profile;
  const wanted = thinking.effort ?? effortOf(thinking.budget_tokens);
  if (!wanted) return undefined;
  if (thinking.effort && thinking.budget_tokens !== undefined)
    lose('budget_tokens', 'the effort is sent, and no budget', context);
  const effort = allowed ? nearestEffort(wanted, allowed) : wanted;
  if (effort === undefined) lose(thinking.effort ? 'effort' : 'budget_tokens', 'this model takes no effort', context);
  else if (!thinking.effort)
    tell('budget_tokens', `a budget of ${thinking.budget_tokens} tokens is sent as the effort "${effort}"`, context);
  else if (effort !== wanted) tell('effort', `the effort "${wanted}" is sent as "${effort}"`, context);
  return effort;
}

/** The full chain of thought is shown to nobody; a summary comes nearest. */
function encodeSummary({ summary, display }: ThinkingConfig, context: CodecContext): string | undefined {
  if (display === 'full' && !summary) tell('display', 'thinking is shown as a summary', context);
  return summary ?? (display === 'summarized' || display === 'full' ? 'auto' : undefined);
}

const lose = (said: keyof ThinkingConfig, message: string, context: CodecContext): void =>
  drop(context, { path: `/thinking/${said}`, feature: `thinking.${said}`, message });

const tell = (said: keyof ThinkingConfig, message: string, context: CodecContext): void =>
  approximate(context, { path: `/thinking/${said}`, feature: 'thinking.effort', message });
