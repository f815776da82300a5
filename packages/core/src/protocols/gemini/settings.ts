/** Parameters, options, output format and thinking, in both directions. */

import type { CanonicalRequest, Effort, OutputFormat, RequestParameters, ThinkingConfig } from '../../canonical/request.ts';
import { withSource } from '../../canonical/source.ts';
import { normalizeField, readOutputLimit as readOutputFields } from '../../codec/output-limit.ts';
import type { CodecContext, OutputLimit } from '../../codec/protocol.ts';
import {
  expectBoolean,
  expectList,
  expectNumber,
  expectObject,
  expectText,
  isTextRecord,
  objectOrEmpty,
  optional,
  textOrEmpty,
  toPointer,
  unknownFields,
} from '../../codec/read.ts';
import { noteApproximated, noteDropped } from '../../codec/report.ts';
import { describedSchema, dropIdleEffort, dropState, dropThinking, dropThinkingField, noteEffort } from '../../codec/requests.ts';
import { isObject, type JsonObject, sameJson } from '../../json/json.ts';
import type { Bounds } from '../../passes/rules.ts';
import { findBudget, findEffort, isEffort, nearestEffort } from '../../passes/unsupported.ts';
import { readSchema } from './tools.ts';
import { toCamelKeys, toCamelObject } from './wire.ts';

/** The ranges that the API accepts; other numbers are rejected with 400. */
export const BOUNDS: Bounds = {
  max_tokens: [1, Number.MAX_SAFE_INTEGER],
  temperature: [0, 2],
  top_p: [0, 1],
  top_k: [0, Number.MAX_SAFE_INTEGER],
  frequency_penalty: [-2, 2],
  presence_penalty: [-2, 2],
  n: [1, 8],
  top_logprobs: [0, 20],
};

/** Top-level fields with a canonical counterpart. `labels` are also kept, because only Vertex accepts them. */
export const OPTION_FIELDS: readonly string[] = ['cachedContent', 'serviceTier'];

type NumberName = Exclude<keyof RequestParameters, 'stop_sequences' | 'logprobs' | 'logit_bias' | 'max_tool_calls'>;

const TO_WIRE = {
  max_tokens: 'maxOutputTokens',
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  frequency_penalty: 'frequencyPenalty',
  presence_penalty: 'presencePenalty',
  seed: 'seed',
  n: 'candidateCount',
  // The number of alternatives; `responseLogprobs` enables them.
  top_logprobs: 'logprobs',
} as const satisfies Record<NumberName, string>;

const NAMES = /* @__PURE__ */ Object.keys(TO_WIRE) as NumberName[]; // the keys of a closed table

/** The numbers, stop sequences and log probabilities of generationConfig. */
export function decodeParameters(config: JsonObject): RequestParameters {
  const parameters: RequestParameters = {};
  for (const name of NAMES) {
    const value = optional(config[TO_WIRE[name]], `generationConfig.${TO_WIRE[name]}`, expectAmount);
    if (value !== undefined) parameters[name] = value;
  }
  const logprobs = optional(config['responseLogprobs'], 'generationConfig.responseLogprobs', expectBoolean);
  const stop = decodeStop(config['stopSequences']);
  return { ...parameters, ...(stop && { stop_sequences: stop }), ...(logprobs !== undefined && { logprobs }) };
}

/** proto3 writes int64 as text. */
const expectAmount = (value: unknown, param: string): number =>
  expectNumber(typeof value === 'string' && value.trim() !== '' ? Number(value) : value, param);

function decodeStop(value: unknown): string[] | undefined {
  const param = 'generationConfig.stopSequences';
  const stop = optional(value, param, expectList)?.map((item, i) => expectText(item, `${param}[${i}]`));
  return stop && stop.length > 0 ? stop : undefined;
}

/** The canonical options that Gemini has. */
type Options = Pick<CanonicalRequest, 'metadata' | 'service_tier' | 'state' | 'modalities' | 'audio_output'>;

/** Labels, service tier, cached content, modalities and voice. */
export function decodeOptions(body: JsonObject, config: JsonObject): Options {
  const cached = optional(body['cachedContent'], 'cachedContent', expectText);
  const tier = decodeTier(body);
  return {
    ...decodeLabels(body['labels']),
    ...(tier !== undefined && { service_tier: tier }),
    ...(cached && { state: { cached_content: cached } }),
    ...decodeModalities(config['responseModalities']),
    ...decodeVoice(config['speechConfig']),
  };
}

/** Labels with values that are not text are kept as extensions. */
function decodeLabels(value: unknown): Pick<Options, 'metadata'> {
  const labels = optional(value, 'labels', expectObject);
  return labels && isTextRecord(labels) ? { metadata: labels } : {};
}

function decodeModalities(value: unknown): Pick<Options, 'modalities'> {
  if (!Array.isArray(value)) return {};
  const names = value.map((name) => textOrEmpty(name).toLowerCase());
  return names.length > 0 && names.every(isModality) ? { modalities: names.filter(isModality) } : {};
}

type Modality = 'text' | 'audio' | 'image';

const MODALITIES: readonly string[] = ['text', 'audio', 'image'] satisfies Modality[];

const isModality = (name: string): name is Modality => MODALITIES.includes(name);

/** The voice of a single speaker; other speech settings are kept as extensions. */
function decodeVoice(value: unknown): Pick<Options, 'audio_output'> {
  const voice = toCamelObject(toCamelObject(value)['voiceConfig']);
  const name = textOrEmpty(toCamelObject(voice['prebuiltVoiceConfig'])['voiceName']);
  return name === '' ? {} : { audio_output: { voice: name } };
}

const JSON_TYPE = 'application/json';

const SCHEMAS = ['responseJsonSchema', '_responseJsonSchema', 'responseSchema'] as const;

const PLACE = '/generationConfig/responseMimeType';

/** JSON output, with or without a schema. Other types (`text/x.enum`) are kept as extensions. */
export function decodeOutputFormat(config: JsonObject, context: Pick<CodecContext, 'trace'> = {}): OutputFormat | undefined {
  if (config['responseMimeType'] !== JSON_TYPE) return undefined;
  const json = { ...config, responseJsonSchema: config['responseJsonSchema'] ?? config['_responseJsonSchema'] };
  const schema = readSchema(json, 'responseJsonSchema', 'responseSchema', 'generationConfig');
  if (!schema) return { type: 'json_object' };
  const field = SCHEMAS.find((name) => config[name] !== undefined);
  return withSource(PLACE, { type: 'json_schema' as const, json_schema: { schema } }, context, {
    'json_schema/schema': `/generationConfig/${field}`,
  });
}

const PARAM = 'generationConfig.thinkingConfig';

/** A level, or a budget: 0 disables thinking and -1 leaves it to the model. `includeThoughts` shows summaries. */
export function decodeThinking(value: unknown, context: Pick<CodecContext, 'trace'> = {}): ThinkingConfig | undefined {
  const wire = optional(value, PARAM, expectObject);
  if (!wire) return undefined;
  const config = toCamelKeys(wire);
  const place = (name: string): string => `${toPointer(PARAM)}/${name}`;
  const field = ['thinkingBudget', 'thinkingLevel', 'includeThoughts'].find((name) => config[name] !== undefined);
  return withSource(toPointer(PARAM), readThinking(config), context, {
    type: field === undefined ? toPointer(PARAM) : place(field),
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

/** Fields of generationConfig that the parameters represent completely. */
const CONFIG_FIELDS: ReadonlySet<string> = new Set([...Object.values(TO_WIRE), 'stopSequences', 'responseLogprobs']);

/** Fields of generationConfig without a canonical counterpart. An empty list of stop sequences is one of them. */
export function readConfigExtensions(config: JsonObject): JsonObject | undefined {
  const { stopSequences: stop } = config;
  const rest = unknownFields(config, CONFIG_FIELDS);
  return Array.isArray(stop) && stop.length === 0 ? { ...rest, stopSequences: stop } : rest;
}

/** A service tier without a canonical counterpart; `unspecified` means none. */
export function readOptionExtensions(body: JsonObject): JsonObject {
  const { serviceTier: tier } = body;
  const isKept = typeof tier === 'string' && decodeTier(body) === undefined && !/unspecified$/i.test(tier);
  return isKept ? { serviceTier: tier } : {};
}

const TIERS: readonly string[] = ['standard', 'flex', 'priority'];

const decodeTier = (body: JsonObject): string | undefined => {
  const tier = optional(body['serviceTier'], 'serviceTier', expectText)?.toLowerCase();
  return tier !== undefined && TIERS.includes(tier) ? tier : undefined;
};

// ---- encode

/** The parameters as fields of generationConfig. */
export function encodeParameters({ parameters, stream: requested }: CanonicalRequest, context: CodecContext): JsonObject {
  const config: JsonObject = {};
  const stream = context.target?.stream ?? requested;
  for (const name of NAMES) {
    const value = parameters[name];
    if (value === undefined) continue;
    if (name === 'n' && stream && value > 1) noteSingleCandidate(value, context);
    else config[TO_WIRE[name]] = value;
  }
  const { stop_sequences: stop, logprobs, top_logprobs: top, logit_bias: bias, max_tool_calls: calls } = parameters;
  if (stop && stop.length > 0) config['stopSequences'] = stop;
  if (logprobs !== undefined || top !== undefined) config['responseLogprobs'] = logprobs ?? true;
  if (bias) dropParameter('logit_bias', 'logit_bias is not supported by Gemini; dropped', context);
  if (calls !== undefined) dropParameter('max_tool_calls', 'max_tool_calls is not supported by Gemini; dropped', context);
  return config;
}

/** A stream has only one candidate. */
function noteSingleCandidate(n: number, context: CodecContext): void {
  const message = `Gemini streams have one candidate; n ${n} sent as 1`;
  context.note({ code: 'CLAMPED', path: '/parameters/n', feature: 'parameters.n', message });
}

const dropParameter = (name: string, message: string, context: CodecContext): void =>
  noteDropped(context, { path: `/parameters/${name}`, feature: `parameters.${name}`, message });

/** The options as fields of the body. `sent` has the extensions of the request. */
export function encodeOptions(request: CanonicalRequest, sent: JsonObject, context: CodecContext): JsonObject {
  dropForeign(request, context);
  const { service_tier: tier, state, metadata } = request;
  const isTier = tier !== undefined && TIERS.includes(tier);
  if (tier !== undefined && !isTier && tier !== 'auto')
    dropOption('service_tier', `service tier "${tier}" is not supported by Gemini; dropped`, context);
  if (metadata && Object.keys(metadata).length > 0 && !sent['labels'])
    dropOption('metadata', 'metadata is supported only by Vertex AI; dropped', context);
  return {
    ...(state?.cached_content !== undefined && { cachedContent: state.cached_content }),
    ...(isTier && { serviceTier: tier }),
    ...(metadata && sent['labels'] !== undefined && { labels: metadata }),
  };
}

/** Drops options that Gemini does not have, with a note for each. */
function dropForeign(request: CanonicalRequest, context: CodecContext): void {
  const { user_id: user, store, verbosity, prompt_cache: cache } = request;
  dropState(request, 'Gemini', ['previous_response_id', 'conversation_id'], context);
  if (user !== undefined) dropOption('user_id', 'user id is not supported by Gemini; dropped', context);
  // `false` is what Gemini does anyway.
  if (store === true) dropOption('store', 'storing responses is not supported by Gemini; dropped', context);
  if (verbosity !== undefined) dropOption('verbosity', 'verbosity is not supported by Gemini; dropped', context);
  for (const name of ['key', 'mode', 'ttl'] as const)
    if (cache?.[name] !== undefined)
      dropOption(
        `prompt_cache.${name}`,
        'prompt cache settings are not supported by Gemini, which caches automatically; dropped',
        context,
      );
}

/**
 * Modalities as a field of generationConfig. Voices of other providers have other names. `sent` has the extensions of
 * generationConfig.
 */
export function encodeOutput(
  { modalities, audio_output: audio }: CanonicalRequest,
  sent: JsonObject,
  context: CodecContext,
): JsonObject {
  const isOwn = sent['speechConfig'] !== undefined;
  if (audio && !isOwn)
    dropOption('audio_output', 'audio output settings of other providers are not supported by Gemini; dropped', context);
  return modalities ? { responseModalities: modalities.map((word) => word.toUpperCase()) } : {};
}

const dropOption = (feature: string, message: string, context: CodecContext): void =>
  noteDropped(context, { path: `/${feature.replaceAll('.', '/')}`, feature, message });

/** Whether the extensions of a Gemini client still represent the format. */
export const isOwnFormat = ({ output_format: format }: CanonicalRequest, config: JsonObject): boolean =>
  config['responseMimeType'] !== undefined && sameJson(decodeOutputFormat(config), format);

interface Encoded {
  config: JsonObject;
  /** Text for the system prompt, if the format cannot be sent. */
  hint?: string;
}

/** Fields that are mapped and kept: they are sent to Google unchanged. */
export const FORMAT_FIELDS: readonly string[] = ['responseMimeType', ...SCHEMAS];

/**
 * `own` has the extensions, if they still represent the format. Before Gemini 3, JSON output is rejected beside
 * functions (P62).
 */
export function encodeOutputFormat(
  format: OutputFormat | undefined,
  own: JsonObject | undefined,
  hasFunctions: boolean,
  context: CodecContext,
): Encoded {
  const { tools_with_json_output: withTools, json_schema_params: isJson } = context.profile;
  if (format && hasFunctions && !withTools && !own) return encodeAsHint(format, context);
  if (own)
    return {
      config: Object.fromEntries(FORMAT_FIELDS.filter((field) => own[field] !== undefined).map((field) => [field, own[field]])),
    };
  if (!format) return { config: {} };
  if (format.type === 'json_object') return { config: { responseMimeType: JSON_TYPE } };
  const schema = describedSchema(format.json_schema, context);
  const hasSchema = isObject(schema) && Object.keys(schema).length > 0;
  return {
    config: { responseMimeType: JSON_TYPE, ...(hasSchema && { [isJson ? 'responseJsonSchema' : 'responseSchema']: schema }) },
  };
}

function encodeAsHint(format: OutputFormat, context: CodecContext): Encoded {
  const message = 'an output format with functions is not supported by this model; requested in the system prompt';
  noteApproximated(context, { path: '/output_format', feature: 'output_format', message });
  const hint =
    format.type === 'json_object'
      ? 'Respond in JSON.'
      : `Respond in JSON that matches this schema: ${JSON.stringify(describedSchema(format.json_schema, context))}`;
  return { config: {}, hint };
}

/** `sent` is the thinkingConfig of a Gemini client, which is sent unchanged if it still has the same meaning. */
export function encodeThinking(
  thinking: ThinkingConfig | undefined,
  sent: unknown,
  context: CodecContext,
): JsonObject | undefined {
  if (!thinking) return undefined;
  const original = optional(sent, PARAM, expectObject);
  if (original && sameJson(decodeThinking(original), thinking)) return toCamelKeys(original);
  const { profile } = context;
  dropIdleEffort(thinking, context);
  if (profile.thinking_mode === 'none') {
    dropThinking(thinking, context);
    return undefined;
  }
  if (thinking.summary === 'concise' || thinking.summary === 'detailed')
    noteApproximated(context, {
      path: '/thinking/summary',
      feature: 'thinking.summary',
      message: 'kinds of thinking summaries are not supported by the target; the default summary is sent',
    });
  if (thinking.display === 'full')
    noteApproximated(context, {
      path: '/thinking/display',
      feature: 'thinking.display',
      message: 'full thinking is not available from the target; a summary is requested',
    });
  const amount = profile.gemini3 ? encodeLevel(thinking, context) : encodeBudget(thinking, context);
  const isShown = thinking.display !== 'omitted';
  // Without thinking, `includeThoughts: true` has no meaning.
  const config = { ...((thinking.type !== 'disabled' || !isShown) && { includeThoughts: isShown }), ...amount };
  return Object.keys(config).length > 0 ? config : undefined;
}

/** Gemini 3 has levels: LOW and HIGH, smaller models also MINIMAL and MEDIUM. Thinking cannot be disabled. */
function encodeLevel({ type, effort, budget_tokens: budget }: ThinkingConfig, context: CodecContext): JsonObject {
  const levels = context.profile.effort_values ?? ['low', 'high'];
  const wanted = type === 'disabled' ? 'minimal' : (effort ?? findEffort(budget));
  if (wanted === undefined) return {};
  if (effort !== undefined && budget !== undefined)
    dropThinkingField('budget_tokens', 'this model accepts an effort instead of a thinking budget; budget dropped', context);
  const level = nearestLevel(wanted, levels);
  if (type === 'disabled') noteEffort('type', 'thinking cannot be disabled for this model; sent as the minimum', context);
  else if (effort === undefined)
    noteEffort(
      'budget_tokens',
      `a thinking budget is not supported by this model; ${budget} tokens sent as effort "${level}"`,
      context,
    );
  else if (level !== wanted)
    noteEffort('effort', `effort "${wanted}" is not supported by this model; sent as "${level}"`, context);
  return level ? { thinkingLevel: level.toUpperCase() } : {};
}

/** Between two levels the higher: MEDIUM if the model has it, else HIGH ("Effort and budgets" in docs/canonical.md). */
function nearestLevel(wanted: Effort, levels: readonly string[]): Effort | undefined {
  if (wanted === 'medium' && !levels.includes('medium')) return nearestEffort('high', levels);
  return nearestEffort(wanted, levels);
}

/** The budget that leaves the amount of thinking to the model. */
const ADAPTIVE = -1;

function encodeBudget({ type, effort, budget_tokens: budget }: ThinkingConfig, context: CodecContext): JsonObject {
  const { least, most, off } = context.profile.thinking_budgets ?? { least: 0, most: 24_576, off: true };
  if (type === 'disabled') {
    if (off) return { thinkingBudget: 0 };
    noteEffort('type', 'thinking cannot be disabled for this model; sent as the minimum', context);
    return { thinkingBudget: least };
  }
  const wanted = budget ?? (effort && findBudget(effort));
  if (wanted === undefined) return { thinkingBudget: ADAPTIVE };
  const tokens = Math.min(Math.max(wanted, least), most);
  if (tokens !== wanted && budget !== undefined)
    context.note({
      code: 'CLAMPED',
      path: '/thinking/budget_tokens',
      feature: 'thinking.budget_tokens',
      message: `a thinking budget of ${wanted} is outside ${least} to ${most}; sent as ${tokens}`,
    });
  if (effort !== undefined && budget === undefined)
    noteEffort(
      'effort',
      `effort is not supported by this model; "${effort}" sent as a thinking budget of ${tokens} tokens`,
      context,
    );
  else if (effort !== undefined)
    dropThinkingField('effort', 'this model accepts a thinking budget instead of an effort; effort dropped', context);
  return { thinkingBudget: tokens };
}

/** How much a request lets the model generate. */
export function readOutputLimit(body: JsonObject): OutputLimit {
  const configs = Object.keys(body).filter((name) => normalizeField(name) === CONFIG_FIELD);
  const limits = configs.map((name) => readOutputFields(objectOrEmpty(body[name])));
  const tokens = limits.map((limit) => limit.tokens ?? Number.POSITIVE_INFINITY);
  const largest = Math.max(0, ...tokens);
  return {
    tokens: largest > 0 && Number.isFinite(largest) ? largest : undefined,
    choices: Math.max(1, ...limits.map(({ choices }) => choices)),
  };
}

const CONFIG_FIELD = 'generationconfig';
