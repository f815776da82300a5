import { isClientCall } from '../../canonical/message.ts';
import type {
  CanonicalMessage,
  CanonicalRequest,
  Effort,
  OutputFormat,
  RequestParameters,
  ThinkingConfig,
} from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import {
  countOf,
  expectList,
  expectNumber,
  expectObject,
  expectText,
  objectOf,
  optional,
  pointerOf,
  textOf,
  unknownFields,
} from '../../codec/read.ts';
import { approximate, drop, invalid } from '../../codec/report.ts';
import { describedSchema, dropIdleEffort, dropState, dropThinking } from '../../codec/requests.ts';
import { isObject, type JsonObject, sameJson, writeJson } from '../../json/json.ts';
import type { Bounds } from '../../passes/rules.ts';
import { budgetOf, effortOf, isEffort, isUsual, nearestEffort } from '../../passes/unsupported.ts';
import { decodeCacheControl, encodeCacheControl, fieldsOf } from './wire.ts';

/** Sampling beyond 1 is the others' (P68). */
export const BOUNDS: Bounds = { temperature: [0, 1], top_p: [0, 1] };

type Options = Pick<CanonicalRequest, 'user_id' | 'service_tier' | 'prompt_cache'>;

/** What a request says beside the conversation. */
export function decodeOptions(body: JsonObject): Options {
  const user = optional(optional(body['metadata'], 'metadata', expectObject)?.['user_id'], 'metadata.user_id', expectText);
  const tier = tierOf(body);
  const { cache_control: mark } = decodeCacheControl(body);
  return {
    ...(user !== undefined && { user_id: user }),
    ...(tier !== undefined && { service_tier: tier }),
    ...(mark && { prompt_cache: { cache_control: mark } }),
  };
}

const USER_FIELDS: ReadonlySet<string> = new Set(['user_id']);

/** A tier without a canonical word goes back as it came. */
export function keptOptions(body: JsonObject): JsonObject {
  const metadata = unknownFields(objectOf(body['metadata']), USER_FIELDS);
  const { service_tier: tier } = body;
  const isKept = typeof tier === 'string' && tierOf(body) === undefined;
  return { ...(metadata && { metadata }), ...(isKept && { service_tier: tier }) };
}

const TIERS_FROM_WIRE: Readonly<Record<string, string>> = { auto: 'auto', standard_only: 'standard' };

function tierOf(body: JsonObject): string | undefined {
  const word = optional(body['service_tier'], 'service_tier', expectText);
  return word !== undefined && Object.hasOwn(TIERS_FROM_WIRE, word) ? TIERS_FROM_WIRE[word] : undefined;
}

/** `output_config.format`, or `output_format` as the beta called it. A type of the future goes back as it came. */
export function decodeOutputFormat(body: JsonObject, context: Pick<CodecContext, 'trace'> = {}): OutputFormat | undefined {
  const config = optional(body['output_config'], 'output_config', expectObject) ?? {};
  const current = optional(config['format'], 'output_config.format', expectObject);
  const format = current ?? optional(body['output_format'], 'output_format', expectObject);
  if (format?.['type'] !== 'json_schema') return undefined;
  const param = current ? 'output_config.format' : 'output_format';
  const schema = expectObject(format['schema'], `${param}.schema`);
  const place = pointerOf(param);
  return at(place, { type: 'json_schema' as const, json_schema: { schema } }, context, { json_schema: place });
}

/** What of both places has no place in the canonical form. */
export function keptFormat(body: JsonObject): { current?: unknown; old?: JsonObject } {
  const { format } = objectOf(body['output_config']);
  const old = body['output_format'];
  const isRead = (value: unknown): boolean => objectOf(value)['type'] === 'json_schema';
  const isOldRead = !isObject(format) && isRead(old);
  return {
    ...(isObject(format) && !isRead(format) && { current: format }),
    ...(isObject(old) && !isOldRead && { old }),
  };
}

export function decodeParameters(body: JsonObject): RequestParameters {
  const stop = optional(body['stop_sequences'], 'stop_sequences', expectList);
  const limit = optional(body['max_tokens'], 'max_tokens', expectLimit);
  return {
    ...(limit !== undefined && { max_tokens: limit }),
    ...numberOf(body, 'temperature'),
    ...numberOf(body, 'top_p'),
    ...numberOf(body, 'top_k'),
    ...(stop && { stop_sequences: stop.map((item, i) => expectText(item, `stop_sequences[${i}]`)) }),
  };
}

/** 0 fills the cache and says nothing. */
function expectLimit(value: unknown, param: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw invalid(param, 'must be a whole number of tokens');
}

function numberOf(body: JsonObject, name: 'temperature' | 'top_p' | 'top_k'): RequestParameters {
  const value = optional(body[name], name, expectNumber);
  return value === undefined ? {} : { [name]: value };
}

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

export function encodeOptions(request: CanonicalRequest, sent: JsonObject, context: CodecContext): JsonObject {
  const { user_id: user, service_tier: tier, prompt_cache: cache = {} } = request;
  const metadata = { ...objectOf(sent['metadata']), ...(user !== undefined && { user_id: user }) };
  return {
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(tier !== undefined && { service_tier: encodeTier(tier, context) }),
    ...encodeCacheControl(cache),
  };
}

const TIERS_TO_WIRE: Readonly<Record<string, string>> = { standard: 'standard_only', default: 'standard_only', auto: 'auto' };

function encodeTier(tier: string, context: CodecContext): string {
  const known = Object.hasOwn(TIERS_TO_WIRE, tier) ? TIERS_TO_WIRE[tier] : undefined;
  if (known) return known;
  approximate(context, {
    path: '/service_tier',
    feature: 'service_tier',
    message: `the service tier "${tier}" is sent as "auto"`,
  });
  return 'auto';
}

/** What a request of another protocol may ask for, and this one has no word for. */
export function dropForeign(request: CanonicalRequest, context: CodecContext): void {
  const { prompt_cache: cache = {} } = request;
  dropState(request, 'Anthropic Messages', ['previous_response_id', 'conversation_id', 'cached_content'], context);
  // How long marks live that do not say it themselves, they do say here.
  const isMarked = hasMarks(request);
  const lose = (isAsked: unknown, name: string, message: string): void => {
    if (isAsked) drop(context, { path: `/${name.replace('.', '/')}`, feature: name, message });
  };
  lose(request.metadata, 'metadata', 'Anthropic Messages keeps no metadata but the id of the user');
  lose(request.store, 'store', 'Anthropic Messages does not store answers');
  lose(
    request.modalities?.some((modality) => modality !== 'text'),
    'modalities',
    'Anthropic answers in text',
  );
  lose(request.audio_output, 'audio_output', 'Anthropic answers in text');
  lose(cache.key !== undefined, 'prompt_cache.key', 'Anthropic finds its cache without a key');
  lose(cache.mode, 'prompt_cache.mode', 'Anthropic caches up to what is marked');
  lose(cache.ttl !== undefined && !isMarked, 'prompt_cache.ttl', 'nothing is marked that could live as long');
  lose(request.verbosity, 'verbosity', 'Anthropic Messages has no word for the length of an answer');
}

function hasMarks({ tools = [], system = [], messages }: CanonicalRequest): boolean {
  const blocks = messages.flatMap(({ content }) => content);
  const parts = blocks.flatMap((block) =>
    block.type === 'tool_result' && typeof block.content !== 'string' ? [block, ...block.content] : [block],
  );
  return [...tools, ...system, ...parts].some((node) => 'cache_control' in node && node.cache_control !== undefined);
}

interface Encoded {
  format?: JsonObject;
  /** What the instructions have to say instead. */
  hint?: string;
}

const JSON_ONLY = 'Answer with one JSON object only, without any text around it.';

/** Models without structured outputs can only be asked for it. A forced tool would do more, but not beside thinking and other tools. */
export function encodeOutputFormat(format: OutputFormat | undefined, context: CodecContext): Encoded {
  if (!format) return {};
  const path = '/output_format';
  if (format.type === 'json_object') {
    approximate(context, { path, feature: 'output_format.json_object', message: 'JSON is asked for in the instructions' });
    return { hint: JSON_ONLY };
  }
  const schema = describedSchema(format.json_schema, context);
  if (context.profile.structured_outputs ?? context.source === 'anthropic-messages')
    return { format: { type: 'json_schema', schema } };
  for (const place of placesOf(path, context))
    approximate(context, {
      path: place,
      feature: 'output_format.json_schema',
      message: 'the schema is told in the instructions',
    });
  return { hint: `${JSON_ONLY} It must match this JSON schema:\n${writeJson(schema) ?? '{}'}` };
}

/** Gemini has the schema beside the type, not below it: a note for each. */
function placesOf(path: string, { locate = (same) => same }: CodecContext): string[] {
  const schema = `${path}/json_schema/schema`;
  return locate(schema).startsWith(locate(path)) ? [path] : [path, schema];
}

/** Parameters that nobody here knows, and how they are called. */
const FOREIGN = {
  frequency_penalty: 'a frequency penalty',
  presence_penalty: 'a presence penalty',
  seed: 'a seed',
  logprobs: 'log probabilities',
  top_logprobs: 'log probabilities',
  logit_bias: 'a bias of tokens',
  max_tool_calls: 'a limit of calls',
} satisfies Partial<Record<keyof RequestParameters, string>>;

export function encodeParameters({ parameters }: CanonicalRequest, isThinking: boolean, context: CodecContext): JsonObject {
  const lose = (name: string, message: string): void =>
    drop(context, { path: `/parameters/${name}`, feature: `parameters.${name}`, message });
  for (const name of Object.keys(FOREIGN) as (keyof typeof FOREIGN)[]) {
    const value = parameters[name];
    if (value !== undefined && !isUsual(name, value)) lose(name, `Anthropic Messages has no word for ${FOREIGN[name]}`);
  }
  if ((parameters.n ?? 1) > 1) lose('n', 'Anthropic Messages answers once');
  return { ...encodeStop(parameters, lose), ...encodeSampling(parameters, isThinking, context, lose) };
}

type Lose = (name: string, message: string) => void;

/** White space alone is refused (P72). */
function encodeStop({ stop_sequences: stop = [] }: RequestParameters, lose: Lose): JsonObject {
  const sent = stop.filter((text) => text.trim() !== '');
  if (sent.length < stop.length) lose('stop_sequences', 'stop sequences of nothing but white space are refused there');
  return sent.length > 0 ? { stop_sequences: sent } : {};
}

const SAMPLING = ['temperature', 'top_p', 'top_k'] as const;

const LEAST_TOP_P = 0.95;

/** Models after Opus 4.6 take none of it; thinking only leaves a temperature of 1 and the upper end of top_p (P68, P69, P70). */
function encodeSampling(parameters: RequestParameters, isThinking: boolean, context: CodecContext, lose: Lose): JsonObject {
  const { profile } = context;
  const sent: JsonObject = {};
  const { temperature, top_p: topP, top_k: topK } = parameters;
  if (profile.rejects_sampling) {
    for (const name of SAMPLING) if (parameters[name] !== undefined) dropSampling(name, parameters[name], context, lose);
    return sent;
  }
  if (temperature !== undefined && isThinking && temperature !== 1) lose('temperature', 'thinking takes no temperature');
  else if (temperature !== undefined) sent['temperature'] = temperature;
  if (topK !== undefined && isThinking) lose('top_k', 'thinking takes no top_k');
  else if (topK !== undefined) sent['top_k'] = topK;
  if (topP === undefined) return sent;
  if (isThinking && topP < LEAST_TOP_P) lose('top_p', `thinking takes a top_p of ${LEAST_TOP_P} and more`);
  else if (profile.temperature_xor_top_p && sent['temperature'] !== undefined)
    lose('top_p', 'this model takes temperature or top_p, not both');
  else sent['top_p'] = topP;
  return sent;
}

/** A default value loses nothing, so that no policy refuses to drop it; it is still told. */
function dropSampling(name: (typeof SAMPLING)[number], value: number, context: CodecContext, lose: Lose): void {
  const message = `${name} is not supported by this Claude model; dropped`;
  if (isUsual(name, value))
    context.note({ code: 'DROPPED', path: `/parameters/${name}`, feature: `parameters.${name}`, message });
  else lose(name, message);
}

/** A long answer that nobody sees coming is cut by proxies on its way. */
const MAX_UNSTREAMED_TOKENS = 32_000;

/** The most tokens of the answer, which has to be said (P65). */
export function limitOf({ parameters, stream: asked }: CanonicalRequest, context: CodecContext): number {
  if (parameters.max_tokens !== undefined) return parameters.max_tokens;
  const stream = context.target?.stream ?? asked ?? false;
  const most = context.profile.max_output_tokens;
  const limit = stream ? most : Math.min(most, MAX_UNSTREAMED_TOKENS);
  const message = `max_tokens is required there; ${limit} is sent`;
  context.note({ code: 'REPAIRED', path: '/parameters/max_tokens', feature: 'parameters.max_tokens', message });
  return limit;
}

/** How much is thought, and what follows from it for the rest of the request. */
export interface Thought {
  thinking?: JsonObject;
  effort?: unknown;
  isOn: boolean;
  max_tokens?: number;
}

const OFF: Thought = { isOn: false };

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

/** `isOn` is false, because what follows from thinking for the rest of the request are rules of Claude. */
const encodeSent = ({ type, budget_tokens: budget, display, effort }: ThinkingConfig): Thought => ({
  thinking: { type, ...(budget !== undefined && { budget_tokens: budget }), ...(display !== undefined && { display }) },
  ...(effort !== undefined && { effort }),
  isOn: false,
});

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

function encodeWithBudget(
  thinking: ThinkingConfig,
  request: CanonicalRequest,
  limit: number | undefined,
  context: CodecContext,
): Thought {
  if (thinking.type === 'disabled') return encodeDisabled(thinking, context);
  return lacksThinking(request.messages) ? switchOff(context) : encodeBudget(thinking, limit, request, context);
}

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

/** Thinking is shown as a summary or not at all, and there is one kind of summary. */
function displayOf({ display, summary }: ThinkingConfig, context: CodecContext): JsonObject {
  if (summary === 'concise' || summary === 'detailed')
    approximate(context, { path: '/thinking/summary', feature: 'thinking.summary', message: 'there is one kind of summary' });
  if (display === 'full')
    approximate(context, { path: '/thinking/display', feature: 'thinking.display', message: 'thinking is shown as a summary' });
  return display === undefined ? {} : { display: display === 'omitted' ? display : 'summarized' };
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

/** Fields that only the client has a word for. Its display stays as long as it says what the request says, and something is thought. */
function withKept(written: JsonObject, { display, ...kept }: JsonObject, thinking: ThinkingConfig): JsonObject {
  const isShown = display !== undefined && written['type'] !== 'disabled' && decodeDisplay(display).display === thinking.display;
  return { ...kept, ...written, ...(isShown && { display }) };
}
