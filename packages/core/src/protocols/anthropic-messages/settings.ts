/** Parameters, options, output format and thinking, in both directions. */

import { isClientCall } from '../../canonical/message.ts';
import type {
  CanonicalMessage,
  CanonicalRequest,
  Effort,
  OutputFormat,
  RequestParameters,
  ThinkingConfig,
} from '../../canonical/request.ts';
import { withSource } from '../../canonical/source.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import {
  expectList,
  expectNumber,
  expectObject,
  expectText,
  objectOrEmpty,
  optional,
  textOrEmpty,
  toCount,
  toPointer,
  unknownFields,
} from '../../codec/read.ts';
import { invalid, noteApproximated, noteDropped } from '../../codec/report.ts';
import { describedSchema, dropIdleEffort, dropState, dropThinking, noteEffort } from '../../codec/requests.ts';
import { isObject, type JsonObject, sameJson, writeJson } from '../../json/json.ts';
import type { Bounds } from '../../passes/rules.ts';
import { findBudget, findEffort, isDefault, isEffort, nearestEffort } from '../../passes/unsupported.ts';
import { decodeCacheControl, encodeCacheControl, readExtensions } from './wire.ts';

/** Anthropic accepts sampling values up to 1 (P68). */
export const BOUNDS: Bounds = { temperature: [0, 1], top_p: [0, 1] };

type Options = Pick<CanonicalRequest, 'user_id' | 'service_tier' | 'prompt_cache'>;

/** The user id, the service tier and the cache mark of a request. */
export function decodeOptions(body: JsonObject): Options {
  const user = optional(optional(body['metadata'], 'metadata', expectObject)?.['user_id'], 'metadata.user_id', expectText);
  const tier = decodeTier(body);
  const { cache_control: mark } = decodeCacheControl(body);
  return {
    ...(user !== undefined && { user_id: user }),
    ...(tier !== undefined && { service_tier: tier }),
    ...(mark && { prompt_cache: { cache_control: mark } }),
  };
}

const USER_FIELDS: ReadonlySet<string> = new Set(['user_id']);

/** Options without a canonical counterpart: other metadata, and unknown service tiers. */
export function readOptionExtensions(body: JsonObject): JsonObject {
  const metadata = unknownFields(objectOrEmpty(body['metadata']), USER_FIELDS);
  const { service_tier: tier } = body;
  const isKept = typeof tier === 'string' && decodeTier(body) === undefined;
  return { ...(metadata && { metadata }), ...(isKept && { service_tier: tier }) };
}

const TIERS_FROM_WIRE: Readonly<Record<string, string>> = { auto: 'auto', standard_only: 'standard' };

function decodeTier(body: JsonObject): string | undefined {
  const word = optional(body['service_tier'], 'service_tier', expectText);
  return word !== undefined && Object.hasOwn(TIERS_FROM_WIRE, word) ? TIERS_FROM_WIRE[word] : undefined;
}

/** `output_config.format`, or `output_format` as the beta named it. Unknown types are kept by `keptFormat`. */
export function decodeOutputFormat(body: JsonObject, context: Pick<CodecContext, 'trace'> = {}): OutputFormat | undefined {
  const config = optional(body['output_config'], 'output_config', expectObject) ?? {};
  const current = optional(config['format'], 'output_config.format', expectObject);
  const format = current ?? optional(body['output_format'], 'output_format', expectObject);
  if (format?.['type'] !== 'json_schema') return undefined;
  const param = current ? 'output_config.format' : 'output_format';
  const schema = expectObject(format['schema'], `${param}.schema`);
  const place = toPointer(param);
  return withSource(place, { type: 'json_schema' as const, json_schema: { schema } }, context, { json_schema: place });
}

/** Formats of both fields that have no canonical counterpart. */
export function readFormatExtensions(body: JsonObject): { current?: unknown; old?: JsonObject } {
  const { format } = objectOrEmpty(body['output_config']);
  const old = body['output_format'];
  const isRead = (value: unknown): boolean => objectOrEmpty(value)['type'] === 'json_schema';
  const isOldRead = !isObject(format) && isRead(old);
  return {
    ...(isObject(format) && !isRead(format) && { current: format }),
    ...(isObject(old) && !isOldRead && { old }),
  };
}

/** Token limit, sampling and stop sequences. */
export function decodeParameters(body: JsonObject): RequestParameters {
  const stop = optional(body['stop_sequences'], 'stop_sequences', expectList);
  const limit = optional(body['max_tokens'], 'max_tokens', expectLimit);
  return {
    ...(limit !== undefined && { max_tokens: limit }),
    ...decodeNumber(body, 'temperature'),
    ...decodeNumber(body, 'top_p'),
    ...decodeNumber(body, 'top_k'),
    ...(stop && { stop_sequences: stop.map((item, i) => expectText(item, `stop_sequences[${i}]`)) }),
  };
}

/** 0 is legal: it fills the cache without generating. */
function expectLimit(value: unknown, param: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw invalid(param, 'must be an integer number of tokens');
}

function decodeNumber(body: JsonObject, name: 'temperature' | 'top_p' | 'top_k'): RequestParameters {
  const value = optional(body[name], name, expectNumber);
  return value === undefined ? {} : { [name]: value };
}

const TYPES: Readonly<Record<string, ThinkingConfig['type']>> = {
  enabled: 'enabled',
  disabled: 'disabled',
  adaptive: 'adaptive',
};

/** Combines `thinking` and `output_config.effort`. An effort alone leaves it to the model whether to think. */
export function decodeThinking(body: JsonObject, context: Pick<CodecContext, 'trace'> = {}): ThinkingConfig | undefined {
  const thinking = optional(body['thinking'], 'thinking', expectObject);
  const { effort } = objectOrEmpty(body['output_config']);
  if (!thinking && !isEffort(effort)) return undefined;
  const { type, budget_tokens: budget, display } = thinking ?? {};
  if (thinking) expectText(type, 'thinking.type');
  const tokens = toCount(budget);
  const config: ThinkingConfig = {
    type: TYPES[Object.hasOwn(TYPES, textOrEmpty(type)) ? textOrEmpty(type) : 'adaptive'] ?? 'adaptive',
    ...(isEffort(effort) && { effort }),
    ...(tokens !== undefined && { budget_tokens: tokens }),
    ...decodeDisplay(display),
  };
  return withSource(thinking ? '/thinking' : '/output_config', config, context, { effort: '/output_config/effort' });
}

const FIELDS: ReadonlySet<string> = new Set(['type', 'budget_tokens']);

/**
 * Thinking settings without a canonical counterpart: the whole object if its type is unknown, otherwise unknown
 * fields.
 */
export function readThinkingExtensions(body: JsonObject): JsonObject {
  const thinking = objectOrEmpty(body['thinking']);
  const { type } = thinking;
  if (typeof type === 'string' && !Object.hasOwn(TYPES, type)) return { thinking };
  const { display, ...rest } = unknownFields(thinking, FIELDS) ?? {};
  const isKept = display !== undefined && decodeDisplay(display).display !== display;
  const fields = { ...rest, ...(isKept && { display }) };
  return Object.keys(fields).length > 0 ? { thinking: fields } : {};
}

/** `updates` shows thinking while it goes on; a summary is the nearest canonical value. */
const DISPLAYS: Readonly<Record<string, ThinkingConfig['display']>> = {
  summarized: 'summarized',
  omitted: 'omitted',
  updates: 'summarized',
};

function decodeDisplay(value: unknown): Pick<ThinkingConfig, 'display'> {
  const display = typeof value === 'string' && Object.hasOwn(DISPLAYS, value) ? DISPLAYS[value] : undefined;
  return display ? { display } : {};
}

// ---- encode

/** The user id, the service tier and the cache mark; `sent` has the extensions of the request. */
export function encodeOptions(request: CanonicalRequest, sent: JsonObject, context: CodecContext): JsonObject {
  const { user_id: user, service_tier: tier, prompt_cache: cache = {} } = request;
  const metadata = { ...objectOrEmpty(sent['metadata']), ...(user !== undefined && { user_id: user }) };
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
  noteApproximated(context, {
    path: '/service_tier',
    feature: 'service_tier',
    message: `service tier "${tier}" is not supported by Anthropic Messages; sent as "auto"`,
  });
  return 'auto';
}

/** Drops options of other protocols that Anthropic does not have, with a note for each. */
export function dropUnsupportedOptions(request: CanonicalRequest, context: CodecContext): void {
  const { prompt_cache: cache = {} } = request;
  dropState(request, 'Anthropic Messages', ['previous_response_id', 'conversation_id', 'cached_content'], context);
  // The request's ttl applies to cache marks without one of their own.
  const isMarked = hasMarks(request);
  const dropField = (isSet: unknown, name: string, message: string): void => {
    if (isSet) noteDropped(context, { path: `/${name.replace('.', '/')}`, feature: name, message });
  };
  dropField(request.metadata, 'metadata', 'metadata other than the user id is not supported by Anthropic Messages; dropped');
  dropField(request.store, 'store', 'storing responses is not supported by Anthropic Messages; dropped');
  dropField(
    request.modalities?.some((modality) => modality !== 'text'),
    'modalities',
    'output other than text is not supported by Anthropic Messages; dropped',
  );
  dropField(request.audio_output, 'audio_output', 'output other than text is not supported by Anthropic Messages; dropped');
  dropField(cache.key !== undefined, 'prompt_cache.key', 'a prompt cache key is not supported by Anthropic Messages; dropped');
  dropField(
    cache.mode,
    'prompt_cache.mode',
    'a prompt cache mode is not supported by Anthropic Messages, which caches up to breakpoints; dropped',
  );
  dropField(
    cache.ttl !== undefined && !isMarked,
    'prompt_cache.ttl',
    'the cache ttl applies to cache breakpoints, and the request has none; dropped',
  );
  dropField(request.verbosity, 'verbosity', 'verbosity is not supported by Anthropic Messages; dropped');
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
  /** Text for the system prompt, if the format cannot be sent. */
  hint?: string;
}

const askForJson = (kind: 'object' | 'value'): string => `Answer with one JSON ${kind} only, without any text around it.`;

/**
 * Models without structured outputs are asked for JSON in the system prompt. A forced tool would be stricter, but
 * does not work beside thinking and other tools.
 */
export function encodeOutputFormat(format: OutputFormat | undefined, context: CodecContext): Encoded {
  if (!format) return {};
  const path = '/output_format';
  if (format.type === 'json_object') {
    noteApproximated(context, {
      path,
      feature: 'output_format.json_object',
      message: 'JSON mode is not supported by Anthropic Messages; requested in the system prompt',
    });
    return { hint: askForJson('object') };
  }
  const schema = describedSchema(format.json_schema, context);
  if (context.profile.structured_outputs ?? context.source === 'anthropic-messages')
    return { format: { type: 'json_schema', schema } };
  for (const place of listPlaces(path, context))
    noteApproximated(context, {
      path: place,
      feature: 'output_format.json_schema',
      message: 'structured output is not supported by this model; the schema is sent in the system prompt',
    });
  const isObjectSchema = schema['type'] === undefined || schema['type'] === 'object';
  return {
    hint: `${askForJson(isObjectSchema ? 'object' : 'value')} It must match this JSON schema:\n${writeJson(schema) ?? '{}'}`,
  };
}

/** Gemini has the schema beside the type, not below it: each gets a note. */
function listPlaces(path: string, { locate = (same) => same }: CodecContext): string[] {
  const schema = `${path}/json_schema/schema`;
  return locate(schema).startsWith(locate(path)) ? [path] : [path, schema];
}

/** Parameters that Anthropic does not have. */
const FOREIGN = [
  'frequency_penalty',
  'presence_penalty',
  'seed',
  'logprobs',
  'top_logprobs',
  'logit_bias',
  'max_tool_calls',
] as const satisfies readonly (keyof RequestParameters)[];

/** Sampling and stop sequences; unsupported parameters are dropped with a note. */
export function encodeParameters({ parameters }: CanonicalRequest, isThinking: boolean, context: CodecContext): JsonObject {
  const dropField = (name: string, message: string): void =>
    noteDropped(context, { path: `/parameters/${name}`, feature: `parameters.${name}`, message });
  for (const name of FOREIGN) {
    const value = parameters[name];
    if (value !== undefined && !isDefault(name, value))
      dropField(name, `${name} is not supported by Anthropic Messages; dropped`);
  }
  if ((parameters.n ?? 1) > 1) dropField('n', 'Anthropic Messages supports one choice; n dropped');
  return { ...encodeStop(parameters, dropField), ...encodeSampling(parameters, isThinking, context, dropField) };
}

type DropField = (name: string, message: string) => void;

/** Stop sequences that are only white space are rejected (P72). */
function encodeStop({ stop_sequences: stop = [] }: RequestParameters, dropField: DropField): JsonObject {
  const sent = stop.filter((text) => text.trim() !== '');
  if (sent.length < stop.length)
    dropField('stop_sequences', 'stop sequences with only whitespace are rejected by Anthropic Messages; dropped');
  return sent.length > 0 ? { stop_sequences: sent } : {};
}

const SAMPLING = ['temperature', 'top_p', 'top_k'] as const;

const MIN_TOP_P = 0.95;

/**
 * Models after Opus 4.6 reject all sampling parameters; thinking allows only a temperature of 1 and a top_p of at
 * least 0.95 (P68, P69, P70).
 */
function encodeSampling(
  parameters: RequestParameters,
  isThinking: boolean,
  context: CodecContext,
  dropField: DropField,
): JsonObject {
  const { profile } = context;
  const sent: JsonObject = {};
  const { temperature, top_p: topP, top_k: topK } = parameters;
  if (profile.rejects_sampling) {
    for (const name of SAMPLING) if (parameters[name] !== undefined) dropSampling(name, parameters[name], context, dropField);
    return sent;
  }
  if (temperature !== undefined && isThinking && temperature !== 1)
    dropField('temperature', 'temperature is not supported with thinking; dropped');
  else if (temperature !== undefined) sent['temperature'] = temperature;
  if (topK !== undefined && isThinking) dropField('top_k', 'top_k is not supported with thinking; dropped');
  else if (topK !== undefined) sent['top_k'] = topK;
  if (topP === undefined) return sent;
  if (isThinking && topP < MIN_TOP_P) dropField('top_p', `top_p below ${MIN_TOP_P} is not supported with thinking; dropped`);
  else if (profile.temperature_xor_top_p && sent['temperature'] !== undefined)
    dropField('top_p', 'this model accepts temperature or top_p, not both; top_p dropped');
  else sent['top_p'] = topP;
  return sent;
}

/** Dropping a default value loses nothing, so strict policies allow it; it is still noted. */
function dropSampling(name: (typeof SAMPLING)[number], value: number, context: CodecContext, dropField: DropField): void {
  const message = `${name} is not supported by this Claude model; dropped`;
  if (isDefault(name, value))
    context.note({ code: 'DROPPED', path: `/parameters/${name}`, feature: `parameters.${name}`, message });
  else dropField(name, message);
}

/** Proxies time out on long responses that are not streamed. */
const MAX_UNSTREAMED_TOKENS = 32_000;

/** `max_tokens`, which Anthropic requires (P65): the requested value, or the maximum of the model. */
export function chooseMaxTokens({ parameters, stream: requested }: CanonicalRequest, context: CodecContext): number {
  if (parameters.max_tokens !== undefined) return parameters.max_tokens;
  const stream = context.target?.stream ?? requested ?? false;
  const most = context.profile.max_output_tokens;
  const limit = stream ? most : Math.min(most, MAX_UNSTREAMED_TOKENS);
  const message = `max_tokens is required by Anthropic Messages; sent as ${limit}`;
  context.note({ code: 'REPAIRED', path: '/parameters/max_tokens', feature: 'parameters.max_tokens', message });
  return limit;
}

/** The encoded thinking settings, and what they imply for the rest of the request. */
export interface EncodedThinking {
  thinking?: JsonObject;
  effort?: unknown;
  /** Whether Claude's restrictions for requests with thinking apply. */
  isOn: boolean;
  /** Set if the budget needs a higher limit. */
  max_tokens?: number;
}

const OFF: EncodedThinking = { isOn: false };

type Encode = (
  thinking: ThinkingConfig,
  request: CanonicalRequest,
  limit: number | undefined,
  context: CodecContext,
) => EncodedThinking;

/** How thinking is encoded in each `thinking_mode` of a profile. */
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

/** `limit` is `max_tokens`, which includes thinking; undefined for token counts. */
export function encodeThinking(request: CanonicalRequest, limit: number | undefined, context: CodecContext): EncodedThinking {
  const { thinking } = request;
  if (!thinking) return OFF;
  const { thinking: sent, output_config: config } = readExtensions(request);
  const { effort } = objectOrEmpty(config);
  const whole = objectOrEmpty(sent)['type'] === undefined ? undefined : sent;
  const original = {
    ...(whole !== undefined && { thinking: whole }),
    ...(effort !== undefined && { output_config: { effort } }),
  };
  if (Object.keys(original).length > 0 && sameJson(decodeThinking(original), thinking))
    return {
      ...(whole !== undefined && { thinking: objectOrEmpty(whole) }),
      ...(effort !== undefined && { effort }),
      isOn: whole !== undefined,
    };
  const encoded = MODES[context.profile.thinking_mode](thinking, request, limit, context);
  if (whole !== undefined || sent === undefined || !encoded.thinking) return encoded;
  return { ...encoded, thinking: mergeExtensions(encoded.thinking, objectOrEmpty(sent), thinking) };
}

/**
 * Sends the settings unchanged. `isOn` is false because the restrictions that follow from thinking are specific to
 * Claude.
 */
const encodeSent = ({ type, budget_tokens: budget, display, effort }: ThinkingConfig): EncodedThinking => ({
  thinking: { type, ...(budget !== undefined && { budget_tokens: budget }), ...(display !== undefined && { display }) },
  ...(effort !== undefined && { effort }),
  isOn: false,
});

function encodeAdaptive(thinking: ThinkingConfig, context: CodecContext): EncodedThinking {
  const { effort: requested, budget_tokens: budget } = thinking;
  const wanted = requested ?? findEffort(budget);
  if (!requested && wanted)
    noteEffort(
      'budget_tokens',
      `a thinking budget is not supported by this model; ${budget} tokens sent as effort "${wanted}"`,
      context,
    );
  if (requested && budget !== undefined)
    noteDropped(context, {
      path: '/thinking/budget_tokens',
      feature: 'thinking.budget_tokens',
      message: 'this model accepts an effort instead of a thinking budget; budget dropped',
    });
  const effort = wanted && fitEffort(wanted, context, requested ? 'effort' : 'budget_tokens');
  return { thinking: { type: 'adaptive', ...encodeDisplay(thinking, context) }, ...(effort && { effort }), isOn: true };
}

function encodeWithBudget(
  thinking: ThinkingConfig,
  request: CanonicalRequest,
  limit: number | undefined,
  context: CodecContext,
): EncodedThinking {
  if (thinking.type === 'disabled') return encodeDisabled(thinking, context);
  return lacksThinking(request.messages) ? disableThinking(context) : encodeBudget(thinking, limit, request, context);
}

/** Sent explicitly because some models think by default (P71). */
function encodeDisabled({ effort, display }: ThinkingConfig, context: CodecContext): EncodedThinking {
  if (display !== undefined)
    noteApproximated(context, {
      path: '/thinking/display',
      feature: 'thinking.display',
      message: `display "${display}" has no effect with disabled thinking; dropped`,
    });
  const isTooMuch = context.profile.rejects_disabled_above_high && (effort === 'xhigh' || effort === 'max');
  if (isTooMuch) noteEffort('effort', `effort "${effort}" requires thinking, which is disabled; sent as "high"`, context);
  const sent = isTooMuch ? 'high' : effort && fitEffort(effort, context);
  return { thinking: { type: 'disabled' }, ...(sent && { effort: sent }), isOn: false };
}

/**
 * Whether the assistant message whose calls were just answered does not begin with thinking, because another provider
 * made it (P79).
 */
function lacksThinking(messages: readonly CanonicalMessage[]): boolean {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  const content = messages[last]?.content ?? [];
  const isAnswered = messages[last + 1]?.role === 'tool';
  const hasCalls = content.some((block) => block.type === 'tool_use' && isClientCall(block.kind));
  return isAnswered && hasCalls && content[0]?.type !== 'thinking';
}

function disableThinking(context: CodecContext): EncodedThinking {
  const message = 'the last turn with tool calls does not begin with thinking of this model; thinking disabled for this request';
  noteApproximated(context, { path: '/thinking', feature: 'thinking', message });
  return { thinking: { type: 'disabled' }, isOn: false };
}

/** Anthropic's minimum budget, also reserved for the response. */
const MIN_BUDGET = 1024;

/** The effort of requests that set neither effort nor budget. */
const DEFAULT_EFFORT: Effort = 'medium';

function encodeBudget(
  thinking: ThinkingConfig,
  limit: number | undefined,
  request: CanonicalRequest,
  context: CodecContext,
): EncodedThinking {
  const { budget_tokens: requested, effort } = thinking;
  const wanted = Math.max(MIN_BUDGET, requested ?? findBudget(effort ?? DEFAULT_EFFORT));
  if (requested === undefined)
    noteBudget(
      effort ? 'effort' : 'type',
      `${effort ? `effort "${effort}"` : 'thinking'} requires a budget with this model; sent as ${wanted} tokens`,
      context,
    );
  else if (requested < wanted)
    noteBudget('budget_tokens', `a thinking budget of ${requested} tokens is below the minimum; sent as ${wanted}`, context);
  const fitted = fitBudget(wanted, limit, request, context);
  return {
    thinking: { type: 'enabled', budget_tokens: fitted.budget, ...encodeDisplay(thinking, context) },
    // Only Anthropic clients set both; for others the budget expresses the effort.
    ...(requested !== undefined && effort && { effort: fitEffort(effort, context) }),
    isOn: true,
    ...(fitted.limit !== undefined && { max_tokens: fitted.limit }),
  };
}

/** The budget must leave room for the response (P70), unless thinking is interleaved with calls. */
function fitBudget(
  budget: number,
  limit: number | undefined,
  request: CanonicalRequest,
  context: CodecContext,
): { budget: number; limit?: number } {
  const isInterleaved = textOrEmpty(readExtensions(request)['anthropic-beta']).includes('interleaved-thinking');
  if (limit === undefined || budget < limit || isInterleaved) return { budget };
  const shrunk = Math.max(MIN_BUDGET, limit - MIN_BUDGET);
  const { budget_tokens: requested, effort } = request.thinking ?? {};
  const field = requested === undefined ? (effort ? 'effort' : 'type') : 'budget_tokens';
  if (shrunk !== budget)
    noteBudget(field, `a thinking budget of ${budget} tokens does not fit into max_tokens ${limit}; sent as ${shrunk}`, context);
  if (shrunk < limit) return { budget: shrunk };
  const raised = shrunk + MIN_BUDGET;
  const message = `max_tokens ${limit} leaves no room for thinking; sent as ${raised}`;
  context.note({ code: 'CLAMPED', path: '/parameters/max_tokens', feature: 'parameters.max_tokens', message });
  return { budget: shrunk, limit: raised };
}

const noteBudget = (field: keyof ThinkingConfig, message: string, context: CodecContext): void =>
  noteApproximated(context, { path: `/thinking/${field}`, feature: 'thinking.budget_tokens', message });

/** Thinking is shown as a summary or not at all, and there is only one kind of summary. */
function encodeDisplay({ display, summary }: ThinkingConfig, context: CodecContext): JsonObject {
  if (summary === 'concise' || summary === 'detailed')
    noteApproximated(context, {
      path: '/thinking/summary',
      feature: 'thinking.summary',
      message: 'kinds of thinking summaries are not supported by the target; the default summary is sent',
    });
  if (display === 'full')
    noteApproximated(context, {
      path: '/thinking/display',
      feature: 'thinking.display',
      message: 'full thinking is not available from the target; a summary is requested',
    });
  return display === undefined ? {} : { display: display === 'omitted' ? display : 'summarized' };
}

const EFFORT_VALUES: readonly string[] = ['low', 'medium', 'high', 'xhigh', 'max'];

/** The nearest effort that the model accepts. */
function fitEffort(wanted: Effort, context: CodecContext, field: 'effort' | 'budget_tokens' = 'effort'): Effort | undefined {
  const effort = nearestEffort(wanted, context.profile.effort_values ?? EFFORT_VALUES);
  if (effort === undefined)
    noteDropped(context, {
      path: `/thinking/${field}`,
      feature: 'thinking.effort',
      message: 'effort is not supported by this model; dropped',
    });
  else if (effort !== wanted)
    noteEffort(field, `effort "${wanted}" is not supported by this model; sent as "${effort}"`, context);
  return effort;
}

/**
 * Adds the client's unknown fields. Its display is restored if it still has the requested meaning and thinking is not
 * disabled.
 */
function mergeExtensions(written: JsonObject, { display, ...fields }: JsonObject, thinking: ThinkingConfig): JsonObject {
  const isShown = display !== undefined && written['type'] !== 'disabled' && decodeDisplay(display).display === thinking.display;
  return { ...fields, ...written, ...(isShown && { display }) };
}
