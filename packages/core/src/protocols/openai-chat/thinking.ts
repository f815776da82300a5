import { type JsonObject, sameJson } from '../../accumulate/overlay.ts';
import type { ThinkingConfig } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import { effortOf, isEffort, nearestEffort } from '../../passes/effort.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { dropIdleEffort, dropThinking } from '../shared/drop-thinking.ts';
import { countOf, objectOf } from '../shared/read.ts';

/** Request fields that control reasoning: OpenAI; DeepSeek, GLM and Kimi; OpenRouter; Qwen; Cerebras. */
const FIELDS = ['reasoning_effort', 'thinking', 'reasoning', 'enable_thinking', 'thinking_budget', 'disable_thinking'] as const;

export const THINKING_FIELDS: readonly string[] = FIELDS;

/** What these fields say together; undefined when they leave it to the provider. */
export function decodeThinking(body: JsonObject, context: Tracing = {}): ThinkingConfig | undefined {
  const said = readThinking(body);
  const place = FIELDS.find((name) => body[name] !== undefined && body[name] !== null) ?? 'reasoning_effort';
  return said && at(`/${place}`, said, context, placesOf(body, place));
}

type Tracing = Pick<CodecContext, 'trace'>;

/** Which of the fields says what. */
function placesOf(body: JsonObject, place: string): Record<string, string> {
  const thinking = objectOf(body['thinking']);
  const reasoning = objectOf(body['reasoning']);
  const effort = isEffort(body['reasoning_effort']) ? '' : isEffort(thinking['effort']) ? '/thinking' : '/reasoning';
  const inThinking = thinking['budget_tokens'] !== undefined && '/thinking/budget_tokens';
  return {
    type: `/${place}`,
    effort: effort === '' ? '/reasoning_effort' : `${effort}/effort`,
    budget_tokens: inThinking || (reasoning['max_tokens'] === undefined ? '/thinking_budget' : '/reasoning/max_tokens'),
    summary: '/reasoning/summary',
  };
}

function readThinking(body: JsonObject): ThinkingConfig | undefined {
  const thinking = objectOf(body['thinking']);
  const reasoning = objectOf(body['reasoning']);
  const words = [body['reasoning_effort'], thinking['effort'], reasoning['effort']];
  const effort = words.find(isEffort);
  const budget = [thinking['budget_tokens'], reasoning['max_tokens'], body['thinking_budget']]
    .map(countOf)
    .find((n) => n !== undefined);
  const summary = reasoning['summary'];
  const type =
    typeOf(body, thinking, reasoning, words.includes('none') || budget === 0) ?? (effort || budget ? 'enabled' : undefined);
  if (!type) return undefined;
  return {
    type,
    ...(effort && { effort }),
    ...(type !== 'disabled' && budget !== undefined && { budget_tokens: budget }),
    ...(type !== 'disabled' && (summary === 'auto' || summary === 'concise' || summary === 'detailed') && { summary }),
  };
}

const TYPES: Readonly<Record<string, ThinkingConfig['type']>> = {
  enabled: 'enabled',
  disabled: 'disabled',
  adaptive: 'adaptive',
  auto: 'adaptive',
};

function typeOf(
  body: JsonObject,
  thinking: JsonObject,
  reasoning: JsonObject,
  isNone: boolean,
): ThinkingConfig['type'] | undefined {
  const { type } = thinking;
  if (typeof type === 'string' && Object.hasOwn(TYPES, type)) return TYPES[type];
  for (const flag of [reasoning['enabled'], body['enable_thinking'], body['disable_thinking'] === true ? false : undefined])
    if (typeof flag === 'boolean') return flag ? 'enabled' : 'disabled';
  return isNone ? 'disabled' : undefined;
}

/** The fields that were not the standard one, or not in standard words: kept, so that they can go back as they came. */
export function keptThinking(body: JsonObject): JsonObject {
  const said = Object.fromEntries(
    FIELDS.filter((name) => body[name] !== undefined && body[name] !== null).map((name) => [name, body[name]]),
  );
  const { reasoning_effort: effort, ...dialect } = said;
  const isStandard = Object.keys(dialect).length === 0 && (effort === undefined || effort === 'none' || isEffort(effort));
  return isStandard ? {} : said;
}

type Field = NonNullable<CodecContext['profile']['thinking_field']>;

/** Which of the kept fields is whose. */
const DIALECT_OF: Record<(typeof FIELDS)[number], Field> = {
  reasoning_effort: 'reasoning_effort',
  thinking: 'thinking',
  reasoning: 'reasoning',
  enable_thinking: 'enable_thinking',
  thinking_budget: 'enable_thinking',
  disable_thinking: 'enable_thinking',
};

/** The client's own words, where the server may know them and they still say what the request says; else the server's. */
export function encodeThinking(thinking: ThinkingConfig | undefined, kept: JsonObject, context: CodecContext): JsonObject {
  const { thinking_field: named, official } = context.profile;
  const field = named ?? (official ? 'reasoning_effort' : undefined);
  const said = Object.fromEntries(Object.entries(kept).filter(([name]) => THINKING_FIELDS.includes(name)));
  const isSpoken =
    !field || FIELDS.every((name) => said[name] === undefined || name === 'reasoning_effort' || DIALECT_OF[name] === field);
  if (Object.keys(said).length > 0 && isSpoken && sameJson(decodeThinking(said), thinking)) return said;
  if (!thinking) return {};
  dropIdleEffort(thinking, context);
  if (context.profile.thinking_mode === 'none') return dropThinking(thinking, context);
  // A server shows what it thinks, in its own way.
  if (thinking.display === 'omitted') lose('display', 'OpenAI Chat cannot be asked not to show thinking', context);
  if (thinking.summary !== undefined) lose('summary', 'OpenAI Chat has no word for the summary of thinking', context);
  return WRITERS[field ?? 'reasoning_effort'](thinking, context);
}

const WRITERS: Record<Field, (thinking: ThinkingConfig, context: CodecContext) => JsonObject> = {
  reasoning_effort: writeEffort,
  thinking: (thinking, context) => ({
    thinking: { type: thinking.type === 'disabled' ? 'disabled' : 'enabled' },
    ...(thinking.type !== 'disabled' && writeEffort(thinking, context)),
  }),
  reasoning: writeReasoning,
  enable_thinking: ({ type, effort, budget_tokens: budget }, context) => {
    if (type === 'disabled') return { enable_thinking: false };
    if (effort) lose('effort', 'this provider knows a budget of thinking, no effort', context);
    return { enable_thinking: true, ...(budget !== undefined && { thinking_budget: budget }) };
  },
};

/** OpenRouter takes an effort or a budget, not both. */
function writeReasoning({ type, effort, budget_tokens: budget }: ThinkingConfig, context: CodecContext): JsonObject {
  if (type === 'disabled') return { reasoning: { enabled: false } };
  if (effort && budget !== undefined) lose('budget_tokens', 'this provider takes an effort or a budget, not both', context);
  if (effort) return { reasoning: { effort } };
  return { reasoning: budget === undefined ? { enabled: true } : { max_tokens: budget } };
}

/** Enabled without a word on how much is the provider's default: nothing is written. */
function writeEffort(thinking: ThinkingConfig, context: CodecContext): JsonObject {
  const allowed = context.profile.effort_values;
  if (thinking.type === 'disabled') {
    if (!allowed || allowed.includes('none')) return { reasoning_effort: 'none' };
    lose('type', 'this model cannot be told not to think', context);
    return {};
  }
  const wanted = thinking.effort ?? effortOf(thinking.budget_tokens);
  if (!wanted) return {};
  const place = thinking.effort ? 'effort' : 'budget_tokens';
  if (thinking.effort && thinking.budget_tokens !== undefined)
    lose('budget_tokens', 'the effort is sent, and no budget', context);
  if (!thinking.effort) tell(place, `a budget of ${thinking.budget_tokens} tokens is sent as the effort "${wanted}"`, context);
  const effort = allowed ? nearestEffort(wanted, allowed) : wanted;
  if (effort === undefined) {
    lose(place, 'this model takes no effort', context);
    return {};
  }
  if (effort !== wanted) tell(place, `the effort "${wanted}" is sent as "${effort}"`, context);
  return { reasoning_effort: effort };
}

const lose = (name: keyof ThinkingConfig, message: string, context: CodecContext): void =>
  drop(context, { path: `/thinking/${name}`, feature: `thinking.${name}`, message });

const tell = (name: keyof ThinkingConfig, message: string, context: CodecContext): void =>
  approximate(context, { path: `/thinking/${name}`, feature: 'thinking.effort', message });
