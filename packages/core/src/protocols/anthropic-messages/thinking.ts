import { type JsonObject, sameJson } from '../../accumulate/overlay.ts';
import type { CanonicalMessage, CanonicalRequest, Effort, ThinkingConfig } from '../../canonical/request.ts';
import { isClientCall } from '../../canonical/response.ts';
import { at } from '../../canonical/source.ts';
import { budgetOf, effortOf, isEffort, nearestEffort } from '../../passes/effort.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { dropIdleEffort, dropThinking } from '../shared/drop-thinking.ts';
import { expectObject, expectText, optional } from '../shared/expect.ts';
import { countOf, objectOf, textOf, unknownFields } from '../shared/read.ts';
import { fieldsOf } from './fields.ts';

const TYPES: Readonly<Record<string, ThinkingConfig['type']>> = {
  enabled: 'enabled',
  disabled: 'disabled',
  adaptive: 'adaptive',
};

/** What `thinking` and `output_config.effort` say together. An effort alone leaves it to the model whether to think. */
export function decodeThinking(body: JsonObject, context: Pick<CodecContext, 'trace'> = {}): ThinkingConfig | undefined {
  const thinking = optional(body['thinking'], 'thinking', expectObject);
  const { effort } = objectOf(body['output_config']);
  if (!thinking && !isEffort(effort)) return undefined;
  const { type, budget_tokens: budget, display } = thinking ?? {};
  if (thinking) expectText(type, 'thinking.type');
  const tokens = countOf(budget);
  const said: ThinkingConfig = {
    type: TYPES[Object.hasOwn(TYPES, textOf(type)) ? textOf(type) : 'adaptive'] ?? 'adaptive',
    ...(isEffort(effort) && { effort }),
    ...(tokens !== undefined && { budget_tokens: tokens }),
    ...decodeDisplay(display),
  };
  return at(thinking ? '/thinking' : '/output_config', said, context, { effort: '/output_config/effort' });
}

/** `updates` shows thinking while it goes on: elsewhere a summary comes nearest. */
const DISPLAYS: Readonly<Record<string, ThinkingConfig['display']>> = {
  summarized: 'summarized',
  omitted: 'omitted',
  updates: 'summarized',
};

function decodeDisplay(word: unknown): Pick<ThinkingConfig, 'display'> {
  const display = typeof word === 'string' && Object.hasOwn(DISPLAYS, word) ? DISPLAYS[word] : undefined;
  return display ? { display } : {};
}

const FIELDS: ReadonlySet<string> = new Set(['type', 'budget_tokens']);

/** Words that the canonical form does not have: a whole type goes back as it came, as long as it says the same, fields beside the others. */
export function keptThinking(body: JsonObject): JsonObject {
  const thinking = objectOf(body['thinking']);
  const { type } = thinking;
  if (typeof type === 'string' && !Object.hasOwn(TYPES, type)) return { thinking };
  const { display, ...rest } = unknownFields(thinking, FIELDS) ?? {};
  const isKept = display !== undefined && decodeDisplay(display).display !== display;
  const kept = { ...rest, ...(isKept && { display }) };
  return Object.keys(kept).length > 0 ? { thinking: kept } : {};
}

/** How much is thought, and what follows from it for the rest of the request. */
export interface Thought {
  thinking?: JsonObject;
  effort?: unknown;
  isOn: boolean;
  max_tokens?: number;
}

const OFF: Thought = { isOn: false };

/** `limit`: the most tokens of the answer; thinking counts among them. Undefined when only the question is counted. */
export function encodeThinking(request: CanonicalRequest, limit: number | undefined, context: CodecContext): Thought {
  const { thinking } = request;
  if (!thinking) return OFF;
  const { thinking: kept, output_config: config } = fieldsOf(request);
  const { effort } = objectOf(config);
  const said = objectOf(kept)['type'] === undefined ? undefined : kept;
  const words = { ...(said !== undefined && { thinking: said }), ...(effort !== undefined && { output_config: { effort } }) };
  if (Object.keys(words).length > 0 && sameJson(decodeThinking(words), thinking))
    return {
      ...(said !== undefined && { thinking: objectOf(said) }),
      ...(effort !== undefined && { effort }),
      isOn: said !== undefined,
    };
  const thought = MODES[context.profile.thinking_mode](thinking, request, limit, context);
  if (said !== undefined || kept === undefined || !thought.thinking) return thought;
  return { ...thought, thinking: withKept(thought.thinking, objectOf(kept), thinking) };
}

/** Fields that only the client has a word for. Its display stays as long as it says what the request says, and something is thought. */
function withKept(written: JsonObject, { display, ...kept }: JsonObject, thinking: ThinkingConfig): JsonObject {
  const isShown = display !== undefined && written['type'] !== 'disabled' && decodeDisplay(display).display === thinking.display;
  return { ...kept, ...written, ...(isShown && { display }) };
}

type Encode = (thinking: ThinkingConfig, request: CanonicalRequest, limit: number | undefined, context: CodecContext) => Thought;

const MODES: Record<CodecContext['profile']['thinking_mode'], Encode> = {
  none: (thinking, _request, _limit, context) => {
    dropIdleEffort(thinking, context);
    dropThinking(thinking, context);
    return OFF;
  },
  adaptive: (thinking, _request, _limit, context) => {
    const isKept = context.profile.accepts_budget && context.source === 'anthropic-messages';
    if (isKept && thinking.type === 'enabled' && thinking.budget_tokens !== undefined)
      return { ...encodeSent(thinking), isOn: true };
    return thinking.type === 'disabled' ? encodeDisabled(thinking, context) : encodeAdaptive(thinking, context);
  },
  budget: encodeWithBudget,
  as_sent: (thinking, request, limit, context) =>
    context.source === 'anthropic-messages' ? encodeSent(thinking) : encodeWithBudget(thinking, request, limit, context),
};

function encodeWithBudget(
  thinking: ThinkingConfig,
  request: CanonicalRequest,
  limit: number | undefined,
  context: CodecContext,
): Thought {
  if (thinking.type === 'disabled') return encodeDisabled(thinking, context);
  return lacksThinking(request.messages) ? switchOff(context) : encodeBudget(thinking, limit, request, context);
}

/** `isOn` is false, because what follows from thinking for the rest of the request are rules of Claude. */
const encodeSent = ({ type, budget_tokens: budget, display, effort }: ThinkingConfig): Thought => ({
  thinking: { type, ...(budget !== undefined && { budget_tokens: budget }), ...(display !== undefined && { display }) },
  ...(effort !== undefined && { effort }),
  isOn: false,
});

/** It has to be said: some models think when they hear nothing (P71). */
function encodeDisabled({ effort, display }: ThinkingConfig, context: CodecContext): Thought {
  if (display !== undefined)
    approximate(context, {
      path: '/thinking/display',
      feature: 'thinking.display',
      message: `thinking is disabled, and display "${display}" is not sent`,
    });
  const isTooMuch = context.profile.rejects_disabled_above_high && (effort === 'xhigh' || effort === 'max');
  if (isTooMuch) tell('effort', `the effort "${effort}" is sent as "high": more of it cannot go without thinking`, context);
  const sent = isTooMuch ? 'high' : effort && allowed(effort, context);
  return { thinking: { type: 'disabled' }, ...(sent && { effort: sent }), isOn: false };
}

const WORDS: readonly string[] = ['low', 'medium', 'high', 'xhigh', 'max'];

/** The word of this model that is next to the wanted one. */
function allowed(wanted: Effort, context: CodecContext, said: 'effort' | 'budget_tokens' = 'effort'): Effort | undefined {
  const effort = nearestEffort(wanted, context.profile.effort_values ?? WORDS);
  if (effort === undefined)
    drop(context, { path: `/thinking/${said}`, feature: 'thinking.effort', message: 'this model takes no effort' });
  else if (effort !== wanted) tell(said, `the effort "${wanted}" is sent as "${effort}"`, context);
  return effort;
}

const tell = (said: keyof ThinkingConfig, message: string, context: CodecContext): void =>
  approximate(context, { path: `/thinking/${said}`, feature: 'thinking.effort', message });

/** Thinking is shown as a summary or not at all, and there is one kind of summary. */
function displayOf({ display, summary }: ThinkingConfig, context: CodecContext): JsonObject {
  if (summary === 'concise' || summary === 'detailed')
    approximate(context, { path: '/thinking/summary', feature: 'thinking.summary', message: 'there is one kind of summary' });
  if (display === 'full')
    approximate(context, { path: '/thinking/display', feature: 'thinking.display', message: 'thinking is shown as a summary' });
  return display === undefined ? {} : { display: display === 'omitted' ? display : 'summarized' };
}

function encodeAdaptive(thinking: ThinkingConfig, context: CodecContext): Thought {
  const { effort: asked, budget_tokens: budget } = thinking;
  const wanted = asked ?? effortOf(budget);
  if (!asked && wanted) tell('budget_tokens', `a budget of ${budget} tokens is sent as the effort "${wanted}"`, context);
  if (asked && budget !== undefined)
    drop(context, {
      path: '/thinking/budget_tokens',
      feature: 'thinking.budget_tokens',
      message: 'the effort is sent, and no budget',
    });
  const effort = wanted && allowed(wanted, context, asked ? 'effort' : 'budget_tokens');
  return { thinking: { type: 'adaptive', ...displayOf(thinking, context) }, ...(effort && { effort }), isOn: true };
}

/** Anthropic's own least budget, and what is left for the answer. */
const LEAST = 1024;
/** What is asked for when nobody says how much. */
const USUAL: Effort = 'medium';

function encodeBudget(
  thinking: ThinkingConfig,
  limit: number | undefined,
  request: CanonicalRequest,
  context: CodecContext,
): Thought {
  const { budget_tokens: asked, effort } = thinking;
  const wanted = Math.max(LEAST, asked ?? budgetOf(effort ?? USUAL));
  if (asked === undefined)
    tellBudget(
      effort ? 'effort' : 'type',
      `${effort ? `the effort "${effort}"` : 'thinking'} is sent with a budget of ${wanted} tokens`,
      context,
    );
  else if (asked < wanted)
    tellBudget('budget_tokens', `a budget of ${asked} tokens is sent as ${wanted}, the least that is legal`, context);
  const fitted = fit(wanted, limit, request, context);
  return {
    thinking: { type: 'enabled', budget_tokens: fitted.budget, ...displayOf(thinking, context) },
    // Only a client of this protocol says both; to others the effort is the budget.
    ...(asked !== undefined && effort && { effort: allowed(effort, context) }),
    isOn: true,
    ...(fitted.limit !== undefined && { max_tokens: fitted.limit }),
  };
}

/** The budget has to leave room for the answer (P70), except when thinking goes on between calls. */
function fit(
  budget: number,
  limit: number | undefined,
  request: CanonicalRequest,
  context: CodecContext,
): { budget: number; limit?: number } {
  const isInterleaved = textOf(fieldsOf(request)['anthropic-beta']).includes('interleaved-thinking');
  if (limit === undefined || budget < limit || isInterleaved) return { budget };
  const shrunk = Math.max(LEAST, limit - LEAST);
  const { budget_tokens: asked, effort } = request.thinking ?? {};
  const said = asked === undefined ? (effort ? 'effort' : 'type') : 'budget_tokens';
  if (shrunk !== budget) tellBudget(said, `a budget of ${budget} tokens does not fit into ${limit}; ${shrunk} are sent`, context);
  if (shrunk < limit) return { budget: shrunk };
  const raised = shrunk + LEAST;
  const message = `max_tokens ${limit} leaves no room for thinking; ${raised} is sent`;
  context.note({ code: 'CLAMPED', path: '/parameters/max_tokens', feature: 'parameters.max_tokens', message });
  return { budget: shrunk, limit: raised };
}

const tellBudget = (said: keyof ThinkingConfig, message: string, context: CodecContext): void =>
  approximate(context, { path: `/thinking/${said}`, feature: 'thinking.budget_tokens', message });

/** Whether the turn whose calls were just answered does not begin with thinking, because another provider made it (P79). */
function lacksThinking(messages: readonly CanonicalMessage[]): boolean {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  const said = messages[last]?.content ?? [];
  const isAnswered = messages[last + 1]?.role === 'tool';
  const hasCalls = said.some((block) => block.type === 'tool_use' && isClientCall(block.kind));
  return isAnswered && hasCalls && said[0]?.type !== 'thinking';
}

function switchOff(context: CodecContext): Thought {
  const message = 'thinking is off for this request: the turn with the last calls has no thinking of this model to begin with';
  approximate(context, { path: '/thinking', feature: 'thinking', message });
  return { thinking: { type: 'disabled' }, isOn: false };
}
