import type { CanonicalRequest, OutputFormat, RequestParameters, ThinkingConfig } from '../../canonical/request.ts';
import { readFieldSources, withSource } from '../../canonical/source.ts';
import type { ProviderProfile } from '../../codec/profile.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import {
  expectBoolean,
  expectNumber,
  expectObject,
  expectText,
  isTextRecord,
  listOrEmpty,
  objectOrEmpty,
  optional,
  textOrEmpty,
  toCount,
} from '../../codec/read.ts';
import { invalid, noteDropped } from '../../codec/report.ts';
import {
  decodeMetadata,
  decodePromptCache,
  decodeTier,
  dropIdleEffort,
  dropThinking,
  dropThinkingField,
  encodePromptCache,
  encodeTier,
  encodeUserId,
  findWantedEffort,
  namedSchema,
  noteEffort,
  shortenUserId,
} from '../../codec/requests.ts';
import { type JsonObject, sameJson } from '../../json/json.ts';
import type { Bounds } from '../../passes/rules.ts';
import { findEffort, isDefault, isEffort, nearestEffort } from '../../passes/unsupported.ts';
import { findLimitField } from './profiles.ts';
import { nestedUnknownFields } from './wire.ts';

// ---- parameters

/** The ranges that the API accepts; other numbers are rejected with 400. */
export const BOUNDS: Bounds = {
  max_tokens: [1, Number.MAX_SAFE_INTEGER],
  temperature: [0, 2],
  top_p: [0, 1],
  top_k: [0, Number.MAX_SAFE_INTEGER],
  frequency_penalty: [-2, 2],
  presence_penalty: [-2, 2],
  n: [1, 128],
  top_logprobs: [0, 20],
};

type NumberName = 'temperature' | 'top_p' | 'top_k' | 'frequency_penalty' | 'presence_penalty' | 'seed' | 'n' | 'top_logprobs';

/** Numeric parameters with the same name in both formats; reasoning models reject the `sampling` ones. */
const NUMBERS: Record<NumberName, 'sampling' | 'other'> = {
  temperature: 'sampling',
  top_p: 'sampling',
  frequency_penalty: 'sampling',
  presence_penalty: 'sampling',
  // Not a field of OpenAI; passed on if a chat client sent it.
  top_k: 'other',
  seed: 'other',
  n: 'other',
  top_logprobs: 'other',
};

const NUMBER_NAMES = /* @__PURE__ */ Object.keys(NUMBERS) as NumberName[]; // the keys of a closed table

/** Decodes the parameters; null means absent, 0 is a value. `max_completion_tokens` overrides `max_tokens`. */
export function decodeParameters(body: JsonObject): RequestParameters {
  const parameters: RequestParameters = {};
  for (const name of NUMBER_NAMES) {
    const value = optional(body[name], name, expectNumber);
    if (value !== undefined) parameters[name] = value;
  }
  const max = optional(body['max_completion_tokens'], 'max_completion_tokens', expectNumber);
  const oldMax = optional(body['max_tokens'], 'max_tokens', expectNumber);
  const limit = max ?? oldMax;
  const stop = decodeStop(body['stop']);
  const bias = optional(body['logit_bias'], 'logit_bias', expectBias);
  return {
    ...parameters,
    ...(limit !== undefined && { max_tokens: limit }),
    ...(stop && { stop_sequences: stop }),
    ...(typeof body['logprobs'] !== 'number' && decodeLogprobs(body['logprobs'])),
    ...(bias && { logit_bias: bias }),
  };
}

function decodeStop(stop: unknown): string[] | undefined {
  if (stop === undefined || stop === null) return undefined;
  if (typeof stop === 'string') return [stop];
  if (!Array.isArray(stop)) throw invalid('stop', 'must be a string or a list of strings');
  return stop.length > 0 ? stop.map((item, i) => expectText(item, `stop[${i}]`)) : undefined;
}

function expectBias(value: unknown, param: string): Record<string, number> {
  const bias = expectObject(value, param);
  return Object.fromEntries(Object.entries(bias).map(([token, weight]) => [token, expectNumber(weight, `${param}.${token}`)]));
}

function decodeLogprobs(value: unknown): Pick<RequestParameters, 'logprobs'> {
  const logprobs = optional(value, 'logprobs', expectBoolean);
  return logprobs === undefined ? {} : { logprobs };
}

/** Encodes the parameters. `isSampling`: whether the model accepts sampling parameters; `sent`: the extensions. */
export function encodeParameters(
  request: CanonicalRequest,
  isSampling: boolean,
  sent: JsonObject,
  context: CodecContext,
): JsonObject {
  const { profile, target: { model } = request } = context;
  const { parameters } = request;
  const body: JsonObject = {};
  const dropParameter = (name: string, message: string): void =>
    noteDropped(context, { path: `/parameters/${name}`, feature: `parameters.${name}`, message });
  for (const name of NUMBER_NAMES) {
    const value = parameters[name];
    if (value === undefined) continue;
    if (name === 'top_k' && sent['top_k'] === undefined) dropParameter(name, 'top_k is not supported by OpenAI Chat; dropped');
    else if (NUMBERS[name] === 'other' || isSampling) body[name] = value;
    else if (!isDefault(name, value)) dropParameter(name, `${name} is not supported by this model; dropped`);
  }
  const { max_tokens: max, stop_sequences: stop, logprobs, logit_bias: bias, max_tool_calls: calls } = parameters;
  if (max !== undefined) body[profile.max_tokens_field ?? findSentLimit(request, context) ?? findLimitField(model)] = max;
  if (stop && stop.length > 0) {
    if (profile.supports_stop) body['stop'] = stop;
    else dropParameter('stop_sequences', 'stop sequences are not supported by this model; dropped');
  }
  if (logprobs !== undefined) body['logprobs'] = logprobs;
  if (bias) body['logit_bias'] = bias;
  if (calls !== undefined) dropParameter('max_tool_calls', 'max_tool_calls is not supported by OpenAI Chat; dropped');
  return body;
}

/** The field in which a chat client sent its token limit; undefined for other clients. */
function findSentLimit(request: CanonicalRequest, { source }: CodecContext): ProviderProfile['max_tokens_field'] {
  if (source !== 'openai-chat') return undefined;
  return readFieldSources(request)['parameters/max_tokens'] === '/max_tokens' ? 'max_tokens' : 'max_completion_tokens';
}

// ---- options

/** Fields that are mapped and kept as extensions; the canonical value replaces the extension. */
export const OPTION_FIELDS: readonly string[] = [
  'user',
  'safety_identifier',
  'metadata',
  'service_tier',
  'store',
  'modalities',
  'audio',
  'verbosity',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
];

/**
 * Request fields other than the conversation. OpenAI supports all of them, and strict servers reject unknown fields: so
 * they are mapped and kept as extensions, and a server other than OpenAI gets only those that a chat client sent.
 */
type Options = Pick<
  CanonicalRequest,
  'user_id' | 'metadata' | 'service_tier' | 'store' | 'modalities' | 'audio_output' | 'prompt_cache' | 'verbosity'
>;

/** Decodes the options of a request. */
export function decodeOptions(body: JsonObject, context: CodecContext): Options {
  const user = optional(body['user'], 'user', expectText);
  const safety = optional(body['safety_identifier'], 'safety_identifier', expectText);
  const userId = safety ?? user;
  const store = optional(body['store'], 'store', expectBoolean);
  const audio = optional(body['audio'], 'audio', expectObject);
  const { verbosity } = body;
  return {
    ...(userId !== undefined && { user_id: userId }),
    ...decodeMetadata(body['metadata']),
    ...decodeTier(body['service_tier']),
    ...(store !== undefined && { store }),
    ...decodeModalities(body['modalities']),
    ...(audio && { audio_output: decodeAudio(audio) }),
    ...decodePromptCache(body, context),
    ...(isVerbosity(verbosity) && { verbosity }),
  };
}

function decodeModalities(value: unknown): Pick<Options, 'modalities'> {
  return Array.isArray(value) && value.every(isModality) ? { modalities: value } : {};
}

const isModality = (word: unknown): word is 'text' | 'audio' | 'image' => word === 'text' || word === 'audio' || word === 'image';

function decodeAudio({ format, voice }: JsonObject): NonNullable<Options['audio_output']> {
  return { ...(typeof format === 'string' && { format }), ...(voice !== undefined && { voice }) };
}

const isVerbosity = (word: unknown): word is NonNullable<CanonicalRequest['verbosity']> =>
  word === 'low' || word === 'medium' || word === 'high';

/** Encodes the options. `sent`: the extensions, that is what a chat client sent. */
export function encodeOptions(request: CanonicalRequest, sent: JsonObject, context: CodecContext): JsonObject {
  const body: JsonObject = { ...encodeUser(request, sent, context) };
  const options = buildOptions(request, sent);
  for (const name of Object.keys(options)) {
    const value = options[name];
    if (value === undefined) continue;
    const message = sent[name] === undefined ? findObjection(name, request, context) : undefined;
    if (message === undefined) body[name] = value;
    else if (!isDefaultOption(name, value))
      for (const path of listOptionPaths(name, value)) noteDropped(context, { path, feature: name, message });
  }
  return body;
}

/** OpenAI has two fields for the user, other servers only `user`. A client that sent two ids gets both passed on. */
function encodeUser({ user_id: id }: CanonicalRequest, sent: JsonObject, context: CodecContext): JsonObject {
  if (id === undefined) return {};
  const short = encodeUserId(id, context);
  const safety = (context.profile.official || sent['safety_identifier'] !== undefined) && { safety_identifier: short };
  const user = typeof sent['user'] === 'string' && sent['safety_identifier'] !== undefined ? shortenUserId(sent['user']) : short;
  return { ...safety, user };
}

function buildOptions(request: CanonicalRequest, sent: JsonObject): JsonObject {
  const { metadata, service_tier: tier, store, modalities, audio_output: audio, verbosity } = request;
  return {
    metadata: metadata ?? unmapped(sent['metadata'], hasUnmappedMetadata),
    service_tier: encodeTier(tier, sent['service_tier']),
    store,
    modalities: modalities ?? unmapped(sent['modalities'], (value) => !Array.isArray(value) || !value.every(isModality)),
    audio: audio && { ...objectOrEmpty(sent['audio']), ...audio },
    verbosity: verbosity ?? unmapped(sent['verbosity'], (value) => !isVerbosity(value)),
    ...encodePromptCache(request, sent),
  };
}

/** A value that could not be mapped, to be passed on unchanged. */
const unmapped = (value: unknown, isUnmapped: (value: unknown) => boolean): unknown =>
  value !== undefined && isUnmapped(value) ? value : undefined;

const hasUnmappedMetadata = (value: unknown): boolean => !isTextRecord(objectOrEmpty(value));

/** Why a server would reject an option that a client of another protocol set; undefined if it would not. */
function findObjection(name: string, request: CanonicalRequest, { profile }: CodecContext): string | undefined {
  const { store, modalities = [], audio_output: audio } = request;
  if (!profile.official) return `${name} is supported only by OpenAI; dropped`;
  // 400 "The 'metadata' parameter is only allowed when 'store' is enabled."
  if (name === 'metadata' && store !== true) return 'OpenAI Chat accepts metadata only with store: true; dropped';
  if (name === 'modalities' && modalities.includes('image')) return 'image output is not supported by OpenAI Chat; dropped';
  const isAudio = name === 'audio' || (name === 'modalities' && modalities.includes('audio'));
  return isAudio && audio?.format === undefined
    ? 'audio output of OpenAI Chat requires a voice and a format; dropped'
    : undefined;
}

/** Whether the value is the default, so that dropping it loses nothing. */
function isDefaultOption(name: string, value: unknown): boolean {
  if (name === 'modalities') return Array.isArray(value) && value.every((word) => word === 'text');
  return value === (name === 'store' ? false : name === 'service_tier' && 'auto');
}

const OPTION_PATHS: Readonly<Record<string, string>> = {
  audio: '/audio_output',
  prompt_cache_key: '/prompt_cache/key',
  prompt_cache_retention: '/prompt_cache/ttl',
};

/** The canonical paths of an option. */
const listOptionPaths = (name: string, value: unknown): string[] =>
  name === 'prompt_cache_options'
    ? Object.keys(objectOrEmpty(value)).map((option) => `/prompt_cache/${option}`)
    : [OPTION_PATHS[name] ?? `/${name}`];

// ---- output format

/** The output format, and the rest of `response_format`. */
interface DecodedFormat {
  format?: OutputFormat;
  /** Unmapped content of `response_format`: an unknown format, or unknown fields. */
  rest?: JsonObject;
}

const FORMAT_FIELDS = new Set(['type', 'json_schema']);

const SCHEMA_FIELDS = new Set(['name', 'description', 'schema', 'strict']);

/** Decodes `response_format`. */
export function decodeOutputFormat(value: unknown): DecodedFormat {
  const format = optional(value, 'response_format', expectObject);
  if (!format) return {};
  const type = expectText(format['type'], 'response_format.type');
  if (type !== 'json_object' && type !== 'json_schema' && type !== 'text') return { rest: format };
  const rest = nestedUnknownFields(format, FORMAT_FIELDS, 'json_schema', SCHEMA_FIELDS);
  const kept = Object.keys(rest).length > 0 && { rest };
  if (type === 'text') return {};
  return { format: type === 'json_object' ? { type } : decodeSchema(format), ...kept };
}

function decodeSchema(format: JsonObject): OutputFormat {
  const at = 'response_format.json_schema';
  const body = expectObject(format['json_schema'], at);
  const name = optional(body['name'], `${at}.name`, expectText);
  const description = optional(body['description'], `${at}.description`, expectText);
  const strict = optional(body['strict'], `${at}.strict`, expectBoolean);
  return {
    type: 'json_schema',
    json_schema: {
      schema: optional(body['schema'], `${at}.schema`, expectObject) ?? {},
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(strict !== undefined && { strict }),
    },
  };
}

interface EncodedFormat {
  response_format?: JsonObject;
  /** Text to add to the system prompt. */
  hint?: string;
}

/** Encodes the output format. Servers without schema support get `json_object`, and the schema in the prompt. */
export function encodeOutputFormat(format: OutputFormat | undefined, kept: JsonObject, context: CodecContext): EncodedFormat {
  if (!format) return kept['type'] === undefined ? {} : { response_format: kept };
  if (format.type === 'json_object') return { response_format: { ...kept, type: 'json_object' }, hint: 'Respond in JSON.' };
  const { schema } = format.json_schema;
  if (context.profile.json_schema) {
    const json_schema = { ...objectOrEmpty(kept['json_schema']), ...namedSchema(format.json_schema, context) };
    return { response_format: { ...kept, type: 'json_schema', json_schema } };
  }
  const message =
    'structured output is not supported by this provider; JSON mode is used and the schema is sent in the system prompt';
  context.note({ code: 'APPROXIMATED', path: '/output_format', feature: 'output_format.json_schema', message });
  return {
    response_format: { type: 'json_object' },
    hint: `Respond in JSON that matches this schema: ${JSON.stringify(schema)}`,
  };
}

/**
 * Adds the hint to the system prompt, unless a message has it: the API rejects `json_object` if no message contains
 * "JSON".
 */
export function addHint(messages: JsonObject[], hint: string, context: CodecContext): JsonObject[] {
  const isSchema = hint.includes('schema');
  if (
    isSchema
      ? messages.some((message) => joinText(message).includes(hint))
      : messages.some((message) => /json/i.test(joinText(message)))
  )
    return messages;
  if (!isSchema)
    context.note({
      code: 'REPAIRED',
      path: '/output_format',
      feature: 'output_format.json_word',
      message: 'JSON mode requires the word "JSON" in a message; added to the system prompt',
    });
  const [first, ...rest] = messages;
  if (first?.['role'] !== 'system' && first?.['role'] !== 'developer')
    return [{ role: context.profile.system_role, content: hint }, ...messages];
  const { content } = first;
  const extended = Array.isArray(content) ? [...content, { type: 'text', text: hint }] : `${textOrEmpty(content)}\n\n${hint}`;
  return [{ ...first, content: extended }, ...rest];
}

function joinText({ content }: JsonObject): string {
  if (typeof content === 'string') return content;
  return listOrEmpty(content)
    .map((part) => textOrEmpty(objectOrEmpty(part)['text']))
    .join('\n');
}

// ---- thinking

/** Fields that control reasoning: OpenAI; DeepSeek, GLM and Kimi; OpenRouter; Qwen; Cerebras. */
const REASONING_CONTROLS = [
  'reasoning_effort',
  'thinking',
  'reasoning',
  'enable_thinking',
  'thinking_budget',
  'disable_thinking',
] as const;

/** Request fields that control reasoning. */
export const THINKING_FIELDS: readonly string[] = REASONING_CONTROLS;

type Tracing = Pick<CodecContext, 'trace'>;

/** Reads the reasoning settings from all of these fields; undefined if none is set. */
export function decodeThinking(body: JsonObject, context: Tracing = {}): ThinkingConfig | undefined {
  const thinking = readThinking(body);
  const place = REASONING_CONTROLS.find((name) => body[name] !== undefined && body[name] !== null) ?? 'reasoning_effort';
  return thinking && withSource(`/${place}`, thinking, context, listThinkingPaths(body, place));
}

function readThinking(body: JsonObject): ThinkingConfig | undefined {
  const thinking = objectOrEmpty(body['thinking']);
  const reasoning = objectOrEmpty(body['reasoning']);
  const efforts = [body['reasoning_effort'], thinking['effort'], reasoning['effort']];
  const effort = efforts.find(isEffort);
  const budget = [thinking['budget_tokens'], reasoning['max_tokens'], body['thinking_budget']]
    .map(toCount)
    .find((n) => n !== undefined);
  const summary = reasoning['summary'];
  const type =
    readType(body, thinking, reasoning, efforts.includes('none') || budget === 0) ?? (effort || budget ? 'enabled' : undefined);
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

function readType(
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

/** The wire location of each canonical field. */
function listThinkingPaths(body: JsonObject, place: string): Record<string, string> {
  const thinking = objectOrEmpty(body['thinking']);
  const reasoning = objectOrEmpty(body['reasoning']);
  const effort = isEffort(body['reasoning_effort']) ? '' : isEffort(thinking['effort']) ? '/thinking' : '/reasoning';
  const inThinking = thinking['budget_tokens'] !== undefined && '/thinking/budget_tokens';
  return {
    type: `/${place}`,
    effort: effort === '' ? '/reasoning_effort' : `${effort}/effort`,
    budget_tokens: inThinking || (reasoning['max_tokens'] === undefined ? '/thinking_budget' : '/reasoning/max_tokens'),
    summary: '/reasoning/summary',
  };
}

/**
 * The reasoning fields to keep as extensions: all of them, unless only `reasoning_effort` is set to a standard value.
 */
export function collectThinkingExtensions(body: JsonObject): JsonObject {
  const sent = Object.fromEntries(
    REASONING_CONTROLS.filter((name) => body[name] !== undefined && body[name] !== null).map((name) => [name, body[name]]),
  );
  const { reasoning_effort: effort, ...dialect } = sent;
  const isStandard = Object.keys(dialect).length === 0 && (effort === undefined || effort === 'none' || isEffort(effort));
  return isStandard ? {} : sent;
}

type ThinkingField = NonNullable<CodecContext['profile']['thinking_field']>;

/** The form that each reasoning field belongs to. */
const FIELD_FORMS: Record<(typeof REASONING_CONTROLS)[number], ThinkingField> = {
  reasoning_effort: 'reasoning_effort',
  thinking: 'thinking',
  reasoning: 'reasoning',
  enable_thinking: 'enable_thinking',
  thinking_budget: 'enable_thinking',
  disable_thinking: 'enable_thinking',
};

/**
 * Encodes the reasoning settings: the fields that the client sent if the server may understand them and they still
 * match the request, otherwise the server's field.
 */
export function encodeThinking(thinking: ThinkingConfig | undefined, kept: JsonObject, context: CodecContext): JsonObject {
  const { thinking_field: named, official } = context.profile;
  const field = named ?? (official ? 'reasoning_effort' : undefined);
  const sent = Object.fromEntries(Object.entries(kept).filter(([name]) => THINKING_FIELDS.includes(name)));
  const isUnderstood =
    !field ||
    REASONING_CONTROLS.every((name) => sent[name] === undefined || name === 'reasoning_effort' || FIELD_FORMS[name] === field);
  if (Object.keys(sent).length > 0 && isUnderstood && sameJson(decodeThinking(sent), thinking)) return sent;
  if (!thinking) return {};
  dropIdleEffort(thinking, context);
  if (context.profile.thinking_mode === 'none') return dropThinking(thinking, context);
  // Chat has no request field for how reasoning is shown.
  if (thinking.display === 'omitted')
    dropThinkingField('display', 'hiding thinking is not supported by OpenAI Chat; dropped', context);
  if (thinking.summary !== undefined)
    dropThinkingField('summary', 'a thinking summary is not supported by OpenAI Chat; dropped', context);
  return THINKING_ENCODERS[field ?? 'reasoning_effort'](thinking, context);
}

const THINKING_ENCODERS: Record<ThinkingField, (thinking: ThinkingConfig, context: CodecContext) => JsonObject> = {
  reasoning_effort: encodeEffort,
  thinking: (thinking, context) => ({
    thinking: { type: thinking.type === 'disabled' ? 'disabled' : 'enabled' },
    ...(thinking.type !== 'disabled' && encodeEffort(thinking, context)),
  }),
  reasoning: encodeReasoning,
  enable_thinking: ({ type, effort, budget_tokens: budget }, context) => {
    if (type === 'disabled') return { enable_thinking: false };
    if (effort) dropThinkingField('effort', 'this provider accepts a thinking budget, not an effort; effort dropped', context);
    return { enable_thinking: true, ...(budget !== undefined && { thinking_budget: budget }) };
  },
};

/** Enabled without an effort is the provider's default, so nothing is written. */
function encodeEffort(thinking: ThinkingConfig, context: CodecContext): JsonObject {
  const allowed = context.profile.effort_values;
  if (thinking.type === 'disabled') {
    if (!allowed || allowed.includes('none')) return { reasoning_effort: 'none' };
    dropThinkingField('type', 'thinking cannot be disabled for this model; dropped', context);
    return {};
  }
  const wanted = findWantedEffort(thinking, context);
  if (!wanted) return {};
  const isBudget = !thinking.effort && findEffort(thinking.budget_tokens) !== undefined;
  const place = isBudget ? 'budget_tokens' : 'effort';
  if (thinking.effort && thinking.budget_tokens !== undefined)
    dropThinkingField('budget_tokens', 'this model accepts an effort instead of a thinking budget; budget dropped', context);
  if (isBudget)
    noteEffort(
      place,
      `a thinking budget is not supported by this model; ${thinking.budget_tokens} tokens sent as effort "${wanted}"`,
      context,
    );
  const effort = allowed ? nearestEffort(wanted, allowed) : wanted;
  if (effort === undefined) {
    dropThinkingField(place, 'effort is not supported by this model; dropped', context);
    return {};
  }
  if (effort !== wanted) noteEffort(place, `effort "${wanted}" is not supported by this model; sent as "${effort}"`, context);
  return { reasoning_effort: effort };
}

/** OpenRouter accepts an effort or a budget, not both. */
function encodeReasoning({ type, effort, budget_tokens: budget }: ThinkingConfig, context: CodecContext): JsonObject {
  if (type === 'disabled') return { reasoning: { enabled: false } };
  if (effort && budget !== undefined)
    dropThinkingField('budget_tokens', 'this provider accepts an effort or a thinking budget, not both; budget dropped', context);
  if (effort) return { reasoning: { effort } };
  return { reasoning: budget === undefined ? { enabled: true } : { max_tokens: budget } };
}
