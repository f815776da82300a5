import type { CanonicalRequest, OutputFormat, RequestParameters, ThinkingConfig } from '../../canonical/request.ts';
import { at, placesOf } from '../../canonical/source.ts';
import type { ProviderProfile } from '../../codec/profile.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import {
  countOf,
  expectBoolean,
  expectNumber,
  expectObject,
  expectText,
  isTexts,
  listOf,
  objectOf,
  optional,
  textOf,
} from '../../codec/read.ts';
import { approximate, drop, invalid } from '../../codec/report.ts';
import {
  decodeMetadata,
  decodePromptCache,
  decodeTier,
  dropIdleEffort,
  dropThinking,
  encodePromptCache,
  encodeTier,
  encodeUserId,
  namedSchema,
  shortUser,
} from '../../codec/requests.ts';
import { type JsonObject, sameJson } from '../../json/json.ts';
import type { Bounds } from '../../passes/rules.ts';
import { effortOf, isEffort, isUsual, nearestEffort } from '../../passes/unsupported.ts';
import { limitFieldOf } from './profiles.ts';
import { unknownWithin } from './wire.ts';

/**
 * What a request says beside the conversation. OpenAI knows all of it, compatible servers some, and strict ones refuse what they do not know:
 * these fields are mapped and kept, so that a server which is not OpenAI gets those that the client itself sent in this protocol.
 */
type Options = Pick<
  CanonicalRequest,
  'user_id' | 'metadata' | 'service_tier' | 'store' | 'modalities' | 'audio_output' | 'prompt_cache' | 'verbosity'
>;

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

/** `sent`: what the client itself sent in this protocol. */
export function encodeOptions(request: CanonicalRequest, sent: JsonObject, context: CodecContext): JsonObject {
  const body: JsonObject = { ...encodeUser(request, sent, context) };
  const options = wanted(request, sent);
  for (const name of Object.keys(options)) {
    const value = options[name];
    if (value === undefined) continue;
    const message = sent[name] === undefined ? objectionTo(name, request, context) : undefined;
    if (message === undefined) body[name] = value;
    else if (!isDefaultOption(name, value))
      for (const path of optionPlaces(name, value)) drop(context, { path, feature: name, message });
  }
  return body;
}

/** Why a server would refuse what a client of another protocol asked for. */
function objectionTo(name: string, request: CanonicalRequest, { profile }: CodecContext): string | undefined {
  const { store, modalities = [], audio_output: audio } = request;
  if (!profile.official) return `only OpenAI knows ${name}`;
  // 400 "The 'metadata' parameter is only allowed when 'store' is enabled."
  if (name === 'metadata' && store !== true) return 'OpenAI Chat takes metadata only of what it stores';
  if (name === 'modalities' && modalities.includes('image')) return 'OpenAI Chat answers in no images';
  const isSpoken = name === 'audio' || (name === 'modalities' && modalities.includes('audio'));
  return isSpoken && audio?.format === undefined
    ? 'OpenAI Chat speaks in voices of its own, and in a format that is named'
    : undefined;
}

/** What is so anyway: nothing is stored where nothing can be. */
function isDefaultOption(name: string, value: unknown): boolean {
  if (name === 'modalities') return Array.isArray(value) && value.every((word) => word === 'text');
  return value === (name === 'store' ? false : name === 'service_tier' && 'auto');
}

const PLACES: Readonly<Record<string, string>> = {
  audio: '/audio_output',
  prompt_cache_key: '/prompt_cache/key',
  prompt_cache_retention: '/prompt_cache/ttl',
};

/** Where the canonical request says what would have been this field. */
const optionPlaces = (name: string, value: unknown): string[] =>
  name === 'prompt_cache_options'
    ? Object.keys(objectOf(value)).map((option) => `/prompt_cache/${option}`)
    : [PLACES[name] ?? `/${name}`];

/** The names of the fields that are mapped and kept: an old value never outlives the canonical one. */
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

function wanted(request: CanonicalRequest, sent: JsonObject): JsonObject {
  const { metadata, service_tier: tier, store, modalities, audio_output: audio, verbosity } = request;
  return {
    metadata: metadata ?? odd(sent['metadata'], isOddMetadata),
    service_tier: encodeTier(tier, sent['service_tier']),
    store,
    modalities: modalities ?? odd(sent['modalities'], (value) => !Array.isArray(value) || !value.every(isModality)),
    audio: audio && { ...objectOf(sent['audio']), ...audio },
    verbosity: verbosity ?? odd(sent['verbosity'], (value) => !isVerbosity(value)),
    ...encodePromptCache(request, sent),
  };
}

/** A value that could not be mapped goes back as it came. */
const odd = (value: unknown, isOdd: (value: unknown) => boolean): unknown =>
  value !== undefined && isOdd(value) ? value : undefined;

const isVerbosity = (word: unknown): word is NonNullable<CanonicalRequest['verbosity']> =>
  word === 'low' || word === 'medium' || word === 'high';

const isOddMetadata = (value: unknown): boolean => !isTexts(objectOf(value));

/** OpenAI has two names for the user, the others know the old one. A client that sent two ids gets two through. */
function encodeUser({ user_id: id }: CanonicalRequest, sent: JsonObject, context: CodecContext): JsonObject {
  if (id === undefined) return {};
  const short = encodeUserId(id, context);
  const safety = (context.profile.official || sent['safety_identifier'] !== undefined) && { safety_identifier: short };
  const user = typeof sent['user'] === 'string' && sent['safety_identifier'] !== undefined ? shortUser(sent['user']) : short;
  return { ...safety, user };
}

interface Decoded {
  format?: OutputFormat;
  /** What of `response_format` is not mapped: a format that only some server knows, or fields of its own. */
  rest?: JsonObject;
}

const FORMAT_FIELDS = new Set(['type', 'json_schema']);

const SCHEMA_FIELDS = new Set(['name', 'description', 'schema', 'strict']);

export function decodeOutputFormat(value: unknown): Decoded {
  const format = optional(value, 'response_format', expectObject);
  if (!format) return {};
  const type = expectText(format['type'], 'response_format.type');
  if (type !== 'json_object' && type !== 'json_schema' && type !== 'text') return { rest: format };
  const rest = unknownWithin(format, FORMAT_FIELDS, 'json_schema', SCHEMA_FIELDS);
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

interface Encoded {
  response_format?: JsonObject;
  /** What has to be said in words. */
  hint?: string;
}

/** A server without schemas is asked for JSON, and told the schema. */
export function encodeOutputFormat(format: OutputFormat | undefined, kept: JsonObject, context: CodecContext): Encoded {
  if (!format) return kept['type'] === undefined ? {} : { response_format: kept };
  if (format.type === 'json_object') return { response_format: { ...kept, type: 'json_object' }, hint: 'Respond in JSON.' };
  const { schema } = format.json_schema;
  if (context.profile.json_schema) {
    const json_schema = { ...objectOf(kept['json_schema']), ...namedSchema(format.json_schema, context) };
    return { response_format: { ...kept, type: 'json_schema', json_schema } };
  }
  const message = 'this provider takes no schema of the answer; it is asked for JSON and told the schema';
  context.note({ code: 'APPROXIMATED', path: '/output_format', feature: 'output_format.json_schema', message });
  return {
    response_format: { type: 'json_object' },
    hint: `Respond in JSON that matches this schema: ${JSON.stringify(schema)}`,
  };
}

/** The API refuses `json_object` unless some message says the word; the schema has to be said in any case. */
export function addHint(messages: JsonObject[], hint: string, context: CodecContext): JsonObject[] {
  const isSchema = hint.includes('schema');
  if (
    isSchema
      ? messages.some((message) => textIn(message).includes(hint))
      : messages.some((message) => /json/i.test(textIn(message)))
  )
    return messages;
  if (!isSchema)
    context.note({
      code: 'REPAIRED',
      path: '/output_format',
      feature: 'output_format.json_word',
      message: 'no message said the word JSON; the system does now',
    });
  const [first, ...rest] = messages;
  if (first?.['role'] !== 'system' && first?.['role'] !== 'developer')
    return [{ role: context.profile.system_role, content: hint }, ...messages];
  const { content } = first;
  const extended = Array.isArray(content) ? [...content, { type: 'text', text: hint }] : `${textOf(content)}\n\n${hint}`;
  return [{ ...first, content: extended }, ...rest];
}

function textIn({ content }: JsonObject): string {
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((part) => textOf(objectOf(part)['text']))
    .join('\n');
}

type NumberName = 'temperature' | 'top_p' | 'top_k' | 'frequency_penalty' | 'presence_penalty' | 'seed' | 'n' | 'top_logprobs';

/** Numbers that have one name in both languages; `sampling` ones are refused by models that reason. */
const NUMBERS: Record<NumberName, 'sampling' | 'other'> = {
  temperature: 'sampling',
  top_p: 'sampling',
  frequency_penalty: 'sampling',
  presence_penalty: 'sampling',
  // Not OpenAI's: goes back to those who sent it.
  top_k: 'other',
  seed: 'other',
  n: 'other',
  top_logprobs: 'other',
};

const NAMES = Object.keys(NUMBERS) as NumberName[]; // the keys of a closed table

/** What the API takes; a number outside is a 400 there. */
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

/** null is absence, 0 is a value. The new name of the limit wins over the old one. */
export function decodeParameters(body: JsonObject): RequestParameters {
  const parameters: RequestParameters = {};
  for (const name of NAMES) {
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

function decodeLogprobs(value: unknown): Pick<RequestParameters, 'logprobs'> {
  const logprobs = optional(value, 'logprobs', expectBoolean);
  return logprobs === undefined ? {} : { logprobs };
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

/** `isSampling`: whether the model may be told how to sample. `sent`: what the client itself sent in this protocol. */
export function encodeParameters(
  request: CanonicalRequest,
  isSampling: boolean,
  sent: JsonObject,
  context: CodecContext,
): JsonObject {
  const { profile, target: { model } = request } = context;
  const { parameters } = request;
  const body: JsonObject = {};
  const lose = (name: string, message: string): void =>
    drop(context, { path: `/parameters/${name}`, feature: `parameters.${name}`, message });
  for (const name of NAMES) {
    const value = parameters[name];
    if (value === undefined) continue;
    if (name === 'top_k' && sent['top_k'] === undefined) lose(name, 'OpenAI Chat has no top_k');
    else if (NUMBERS[name] === 'other' || isSampling) body[name] = value;
    else if (!isUsual(name, value)) lose(name, `this model takes no ${name}`);
  }
  const { max_tokens: max, stop_sequences: stop, logprobs, logit_bias: bias, max_tool_calls: calls } = parameters;
  if (max !== undefined) body[profile.max_tokens_field ?? sentLimit(request, context) ?? limitFieldOf(model)] = max;
  if (stop && stop.length > 0) {
    if (profile.supports_stop) body['stop'] = stop;
    else lose('stop_sequences', 'this model takes no stop sequences');
  }
  if (logprobs !== undefined) body['logprobs'] = logprobs;
  if (bias) body['logit_bias'] = bias;
  if (calls !== undefined) lose('max_tool_calls', 'OpenAI Chat cannot limit the number of calls');
  return body;
}

/** The name under which a chat client sent its limit of tokens; undefined for other clients. */
function sentLimit(request: CanonicalRequest, { source }: CodecContext): ProviderProfile['max_tokens_field'] {
  if (source !== 'openai-chat') return undefined;
  return placesOf(request)['parameters/max_tokens'] === '/max_tokens' ? 'max_tokens' : 'max_completion_tokens';
}

/** Request fields that control reasoning: OpenAI; DeepSeek, GLM and Kimi; OpenRouter; Qwen; Cerebras. */
const FIELDS = ['reasoning_effort', 'thinking', 'reasoning', 'enable_thinking', 'thinking_budget', 'disable_thinking'] as const;

export const THINKING_FIELDS: readonly string[] = FIELDS;

/** What these fields say together; undefined when they leave it to the provider. */
export function decodeThinking(body: JsonObject, context: Tracing = {}): ThinkingConfig | undefined {
  const said = readThinking(body);
  const place = FIELDS.find((name) => body[name] !== undefined && body[name] !== null) ?? 'reasoning_effort';
  return said && at(`/${place}`, said, context, thinkingPlaces(body, place));
}

type Tracing = Pick<CodecContext, 'trace'>;

/** Which of the fields says what. */
function thinkingPlaces(body: JsonObject, place: string): Record<string, string> {
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
