import { type JsonObject, sameJson } from '../../accumulate/overlay.ts';
import type { Effort, ThinkingConfig } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import { budgetOf, effortOf, isEffort, nearestEffort } from '../../passes/effort.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { dropIdleEffort, dropThinking } from '../shared/drop-thinking.ts';
import { expectBoolean, expectNumber, expectObject, expectText, optional, pointerOf } from '../shared/expect.ts';
import { camelKeys } from './wire.ts';

const PARAM = 'generationConfig.thinkingConfig';

/** The model decides how much it thinks. */
const ADAPTIVE = -1;

/** A level, or a budget: 0 is off and -1 leaves it to the model. `includeThoughts` shows summaries. */
export function decodeThinking(value: unknown, context: Pick<CodecContext, 'trace'> = {}): ThinkingConfig | undefined {
  const wire = optional(value, PARAM, expectObject);
  if (!wire) return undefined;
  const config = camelKeys(wire);
  const place = (name: string): string => `${pointerOf(PARAM)}/${name}`;
  const said = ['thinkingBudget', 'thinkingLevel', 'includeThoughts'].find((name) => config[name] !== undefined);
  return at(pointerOf(PARAM), readThinking(config), context, {
    type: said === undefined ? pointerOf(PARAM) : place(said),
    effort: place('thinkingLevel'),
    budget_tokens: place('thinkingBudget'),
    display: place('includeThoughts'),
  });
}

function readThinking(config: JsonObject): ThinkingConfig {
  const shown = optional(config['includeThoughts'], `${PARAM}.includeThoughts`, expectBoolean);
  const budget = optional(config['thinkingBudget'], `${PARAM}.thinkingBudget`, expectNumber);
  const level = optional(config['thinkingLevel'], `${PARAM}.thinkingLevel`, expectText)?.toLowerCase();
  const effort = isEffort(level) ? level : undefined;
  const display = shown === undefined ? {} : { display: shown ? ('summarized' as const) : ('omitted' as const) };
  if (budget === 0 && !effort) return { type: 'disabled', ...display };
  if (!effort && (budget === undefined || budget < 0)) return { type: 'adaptive', ...display };
  return {
    type: 'enabled',
    ...(effort && { effort }),
    ...(!effort && budget !== undefined && { budget_tokens: budget }),
    ...display,
  };
}

/** `kept`: what the client itself said in this protocol, which goes back as long as it is what is wanted. */
export function encodeThinking(
  thinking: ThinkingConfig | undefined,
  kept: unknown,
  context: CodecContext,
): JsonObject | undefined {
  if (!thinking) return undefined;
  const said = optional(kept, PARAM, expectObject);
  if (said && sameJson(decodeThinking(said), thinking)) return camelKeys(said);
  const { profile } = context;
  dropIdleEffort(thinking, context);
  if (profile.thinking_mode === 'none') {
    dropThinking(thinking, context);
    return undefined;
  }
  if (thinking.summary === 'concise' || thinking.summary === 'detailed')
    approximate(context, { path: '/thinking/summary', feature: 'thinking.summary', message: 'there is one kind of summary' });
  if (thinking.display === 'full')
    approximate(context, { path: '/thinking/display', feature: 'thinking.display', message: 'thinking is shown as a summary' });
  const amount = profile.gemini3 ? encodeLevel(thinking, context) : encodeBudget(thinking, context);
  const isShown = thinking.display !== 'omitted';
  // Where nothing is thought, nothing could be shown.
  const config = { ...((thinking.type !== 'disabled' || !isShown) && { includeThoughts: isShown }), ...amount };
  return Object.keys(config).length > 0 ? config : undefined;
}

/** What Gemini 3 offers; the smaller models also MINIMAL and MEDIUM. It cannot be kept from thinking. */
function encodeLevel({ type, effort, budget_tokens: budget }: ThinkingConfig, context: CodecContext): JsonObject {
  const levels = context.profile.effort_values ?? ['low', 'high'];
  const wanted = type === 'disabled' ? 'minimal' : (effort ?? effortOf(budget));
  if (wanted === undefined) return {};
  if (effort !== undefined && budget !== undefined) lose('budget_tokens', 'the effort is sent, and no budget', context);
  const level = nearestLevel(wanted, levels);
  if (type === 'disabled') tell('type', 'this model cannot be kept from thinking; it thinks as little as it can', context);
  else if (effort === undefined) tell('budget_tokens', `a budget of ${budget} is sent as the effort ${level}`, context);
  else if (level !== wanted) tell('effort', `the effort ${wanted} is sent as ${level}`, context);
  return level ? { thinkingLevel: level.toUpperCase() } : {};
}

/** Between two levels the higher: MEDIUM if the model has it, else HIGH ("Effort and budgets" in docs/canonical.md). */
function nearestLevel(wanted: Effort, levels: readonly string[]): Effort | undefined {
  if (wanted === 'medium' && !levels.includes('medium')) return nearestEffort('high', levels);
  return nearestEffort(wanted, levels);
}

function encodeBudget({ type, effort, budget_tokens: budget }: ThinkingConfig, context: CodecContext): JsonObject {
  const { least, most, off } = context.profile.thinking_budgets ?? { least: 0, most: 24_576, off: true };
  if (type === 'disabled') {
    if (off) return { thinkingBudget: 0 };
    tell('type', 'this model cannot be kept from thinking; it thinks as little as it can', context);
    return { thinkingBudget: least };
  }
  const wanted = budget ?? (effort && budgetOf(effort));
  if (wanted === undefined) return { thinkingBudget: ADAPTIVE };
  const tokens = Math.min(Math.max(wanted, least), most);
  if (tokens !== wanted && budget !== undefined)
    context.note({
      code: 'CLAMPED',
      path: '/thinking/budget_tokens',
      feature: 'thinking.budget_tokens',
      message: `a budget of ${wanted} is outside ${least} to ${most}; ${tokens} is sent`,
    });
  if (effort !== undefined && budget === undefined)
    tell('effort', `the effort ${effort} is sent as a budget of ${tokens}`, context);
  else if (effort !== undefined) lose('effort', 'the budget is sent, and no effort', context);
  return { thinkingBudget: tokens };
}

const lose = (said: 'effort' | 'budget_tokens', message: string, context: CodecContext): void =>
  drop(context, { path: `/thinking/${said}`, feature: `thinking.${said}`, message });

const tell = (said: keyof ThinkingConfig, message: string, context: CodecContext): void =>
  approximate(context, { path: `/thinking/${said}`, feature: 'thinking.effort', message });
