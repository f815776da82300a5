import type { CanonicalRequest, OutputFormat, RequestParameters, ThinkingConfig } from '../../canonical/request.ts';
import { withSource } from '../../canonical/source.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import {
  expectBoolean,
  expectList,
  expectNumber,
  expectObject,
  expectText,
  isTextRecord,
  listOrEmpty,
  objectOrEmpty,
  optional,
  textOrEmpty,
  unknownFields,
} from '../../codec/read.ts';
import { noteDropped, refuse } from '../../codec/report.ts';
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
} from '../../codec/requests.ts';
import { isObject, type JsonObject, sameJson } from '../../json/json.ts';
import type { Bounds } from '../../passes/rules.ts';
import { findEffort, isDefault, isEffort, nearestEffort } from '../../passes/unsupported.ts';

// ---- parameters

/** The ranges that the API accepts; other numbers are rejected with 400. */
export const BOUNDS: Bounds = {
  max_tokens: [16, Number.MAX_SAFE_INTEGER],
  temperature: [0, 2],
  top_p: [0, 1],
  top_logprobs: [0, 20],
};

type NumberName = 'max_tokens' | 'temperature' | 'top_p' | 'top_logprobs' | 'max_tool_calls';

const WIRE_NAMES: Record<NumberName, string> = {
  max_tokens: 'max_output_tokens',
  temperature: 'temperature',
  top_p: 'top_p',
  top_logprobs: 'top_logprobs',
  max_tool_calls: 'max_tool_calls',
};

/** The wire fields of the parameters. */
export const PARAMETER_FIELDS: readonly string[] = /* @__PURE__ */ Object.values(WIRE_NAMES);

const NUMBER_NAMES = /* @__PURE__ */ Object.keys(WIRE_NAMES) as NumberName[]; // the keys of a closed table

/** The entry of `include` that requests log probabilities. */
const LOGPROBS = 'message.output_text.logprobs';

/** Decodes the parameters; null means absent, 0 is a value. */
export function decodeParameters(body: JsonObject, include: readonly string[], context: CodecContext): RequestParameters {
  const parameters: RequestParameters = {};
  for (const name of NUMBER_NAMES) {
    const value = optional(body[WIRE_NAMES[name]], WIRE_NAMES[name], expectNumber);
    if (value !== undefined) parameters[name] = value;
  }
  if (parameters.top_logprobs || include.includes(LOGPROBS)) parameters.logprobs = true;
  return withSource('', parameters, context, {
    max_tokens: '/max_output_tokens',
    logprobs: include.includes(LOGPROBS) ? '/include' : '/top_logprobs',
  });
}

/** Reasoning models reject these, unless reasoning is off. */
const SAMPLING: ReadonlySet<NumberName> = /* @__PURE__ */ new Set<NumberName>(['temperature', 'top_p']);

/** Parameters without a field in this API. */
const UNSUPPORTED = [
  'top_k',
  'frequency_penalty',
  'presence_penalty',
  'stop_sequences',
  'seed',
  'logit_bias',
] as const satisfies (keyof RequestParameters)[];

/** Encodes the parameters. `isSampling`: whether the model accepts sampling parameters. */
export function encodeParameters({ parameters }: CanonicalRequest, isSampling: boolean, context: CodecContext): JsonObject {
  const body: JsonObject = {};
  const dropParameter = (name: string, message: string): void =>
    noteDropped(context, { path: `/parameters/${name}`, feature: `parameters.${name}`, message });
  for (const name of NUMBER_NAMES) {
    const value = parameters[name];
    if (value === undefined) continue;
    if (!SAMPLING.has(name) || isSampling) body[WIRE_NAMES[name]] = value;
    else if (!isDefault(name, value)) dropParameter(name, `${name} is not supported by this model; dropped`);
  }
  for (const name of UNSUPPORTED)
    if (parameters[name] !== undefined && !isDefault(name, parameters[name]))
      dropParameter(name, `${name} is not supported by OpenAI Responses; dropped`);
  if (parameters.n !== undefined && parameters.n > 1) dropParameter('n', 'OpenAI Responses supports one choice; n dropped');
  return body;
}

// ---- options

/** Fields that are mapped and kept as extensions; the canonical value replaces the extension. */
export const OPTION_FIELDS: readonly string[] = [
  'user',
  'safety_identifier',
  'metadata',
  'service_tier',
  'store',
  'previous_response_id',
  'conversation',
  'background',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'truncation',
  'include',
];

/** Request fields other than conversation, parameters and tools. */
type Options = Pick<
  CanonicalRequest,
  'user_id' | 'metadata' | 'service_tier' | 'store' | 'state' | 'prompt_cache' | 'truncation' | 'include'
>;

/**
 * Decodes the options. They are also kept as extensions, so that the client's form is passed on if it still matches.
 */
export function decodeOptions(body: JsonObject, context: CodecContext): Options {
  const user = optional(body['user'], 'user', expectText);
  const userId = optional(body['safety_identifier'], 'safety_identifier', expectText) ?? user;
  const store = optional(body['store'], 'store', expectBoolean);
  const { truncation } = body;
  return {
    ...(userId !== undefined && { user_id: userId }),
    ...decodeMetadata(body['metadata']),
    ...decodeTier(body['service_tier']),
    ...(store !== undefined && { store }),
    ...decodeState(body),
    ...decodePromptCache(body, context),
    ...((truncation === 'auto' || truncation === 'disabled') && { truncation }),
    ...decodeInclude(body['include']),
  };
}

/** The conversation is an id, or an object with one. */
function decodeState(body: JsonObject): Pick<Options, 'state'> {
  const previous = optional(body['previous_response_id'], 'previous_response_id', expectText);
  const { conversation } = body;
  const id = optional(
    typeof conversation === 'string' ? conversation : objectOrEmpty(conversation)['id'],
    'conversation.id',
    expectText,
  );
  const background = optional(body['background'], 'background', expectBoolean);
  const template = objectOrEmpty(body['prompt'])['id'];
  const state: NonNullable<Options['state']> = {
    ...(previous !== undefined && { previous_response_id: previous }),
    ...(id !== undefined && { conversation_id: id }),
    ...(background !== undefined && { background }),
    ...(typeof template === 'string' && { prompt_id: template }),
  };
  return Object.keys(state).length > 0 ? { state } : {};
}

function decodeInclude(value: unknown): Pick<Options, 'include'> {
  const list = optional(value, 'include', expectList);
  return list ? { include: list.map((item, i) => expectText(item, `include[${i}]`)) } : {};
}

/** Encodes the options. `sent`: the extensions of a client of this protocol; undefined for other clients. */
export function encodeOptions(request: CanonicalRequest, sent: JsonObject | undefined, context: CodecContext): JsonObject {
  const { metadata, state, truncation } = request;
  const kept = sent ?? {};
  const options = {
    metadata: metadata ?? (isTextRecord(objectOrEmpty(kept['metadata'])) ? undefined : kept['metadata']),
    service_tier: encodeTier(request.service_tier, kept['service_tier']),
    // The default of the API is true, which a client of another protocol did not request.
    store: request.store ?? (sent ? undefined : false),
    previous_response_id: state?.previous_response_id,
    conversation: encodeConversation(state?.conversation_id, kept['conversation']),
    background: state?.background,
    truncation,
    include: encodeInclude(request, sent, context),
    ...encodePromptCache(request, kept),
    ...encodeUser(request, kept, context),
  };
  dropForeign(request, context);
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

const encodeConversation = (id: string | undefined, kept: unknown): unknown =>
  id !== undefined && objectOrEmpty(kept)['id'] === id ? kept : id;

const ENCRYPTED = 'reasoning.encrypted_content';

/**
 * Without storage the reasoning must be part of the conversation, so its encrypted content is requested, except from
 * servers and models that are not known to send it.
 */
function encodeInclude(
  { include = [], parameters }: CanonicalRequest,
  sent: JsonObject | undefined,
  { profile }: CodecContext,
): readonly string[] | undefined {
  if (sent) return sent['include'] === undefined && include.length === 0 ? undefined : include;
  const isReasoning = profile.encrypted_reasoning && profile.thinking_mode !== 'none';
  const wanted = [...include, ...(isReasoning ? [ENCRYPTED] : []), ...(parameters.logprobs ? [LOGPROBS] : [])];
  return wanted.length > 0 ? [...new Set(wanted)] : undefined;
}

/** OpenAI replaced `user` by `safety_identifier`. A client that sent the old one, or both, gets them passed on. */
function encodeUser({ user_id: id }: CanonicalRequest, kept: JsonObject, context: CodecContext): JsonObject {
  if (id === undefined) return {};
  const short = encodeUserId(id, context);
  const isNew =
    kept['user'] === id ? kept['safety_identifier'] !== undefined : context.profile.official || kept['user'] !== undefined;
  return { user: isNew ? (kept['user'] ?? undefined) : short, safety_identifier: isNew ? short : undefined };
}

/** Notes options that only other protocols have. */
function dropForeign(
  { modalities, audio_output: audio, state, service_tier: tier }: CanonicalRequest,
  context: CodecContext,
): void {
  const dropOption = (feature: string, message: string): void => noteDropped(context, { path: `/${feature}`, feature, message });
  if (tier === 'batch') dropOption('service_tier', 'service tier "batch" is not supported by OpenAI Responses; dropped');
  if (modalities?.some((word) => word !== 'text'))
    dropOption('modalities', 'output other than text is not supported by OpenAI Responses; dropped');
  if (audio) dropOption('audio_output', 'audio output is not supported by OpenAI Responses; dropped');
  if (state?.cached_content !== undefined)
    refuse(context, {
      path: '/state/cached_content',
      feature: 'state.cached_content',
      message: 'cachedContent refers to content stored by another server; send the whole conversation instead',
    });
}

// ---- output format

type TextOptions = Pick<CanonicalRequest, 'output_format' | 'verbosity'>;

/** Decodes `text.format` and `text.verbosity`. */
export function decodeTextOptions(value: unknown): TextOptions {
  const text = optional(value, 'text', expectObject) ?? {};
  const format = optional(text['format'], 'text.format', expectObject);
  const output = format && decodeFormat(format);
  const { verbosity } = text;
  return { ...(output && { output_format: output }), ...(isVerbosity(verbosity) && { verbosity }) };
}

/** The format is flat; chat nests the schema in `json_schema`. */
function decodeFormat(format: JsonObject): OutputFormat | undefined {
  const type = expectText(format['type'], 'text.format.type');
  if (type === 'json_object') return { type };
  if (type !== 'json_schema') return undefined;
  const name = optional(format['name'], 'text.format.name', expectText);
  const description = optional(format['description'], 'text.format.description', expectText);
  const strict = optional(format['strict'], 'text.format.strict', expectBoolean);
  return {
    type,
    json_schema: {
      schema: optional(format['schema'], 'text.format.schema', expectObject) ?? {},
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(strict !== undefined && { strict }),
    },
  };
}

const isVerbosity = (word: unknown): word is NonNullable<CanonicalRequest['verbosity']> =>
  word === 'low' || word === 'medium' || word === 'high';

/** Formats with a canonical form; plain text is the default. */
const MAPPED_FORMATS = /* @__PURE__ */ new Set<unknown>(['text', 'json_object', 'json_schema']);

const FORMAT_FIELDS = new Set(['type', 'name', 'description', 'schema', 'strict']);

/** The unmapped fields of `text`, to be passed on unchanged. */
export function collectTextExtensions(value: unknown): JsonObject {
  const text = objectOrEmpty(value);
  const format = objectOrEmpty(text['format']);
  const isMapped = MAPPED_FORMATS.has(format['type']);
  const unknownFormat = isMapped ? unknownFields(format, FORMAT_FIELDS) : text['format'];
  const rest = {
    ...unknownFields(text, new Set(['format', ...(isVerbosity(text['verbosity']) ? ['verbosity'] : [])])),
    ...(unknownFormat !== undefined && unknownFormat !== null && { format: unknownFormat }),
  };
  // An empty object is kept, because the client sent it.
  return Object.keys(rest).length > 0 || isEmpty(value) ? { text: rest } : {};
}

const isEmpty = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0;

/** Encodes `text`; `sent` are its unmapped fields. */
export function encodeText({ output_format: format, verbosity }: TextOptions, sent: unknown, context: CodecContext): JsonObject {
  const kept = objectOrEmpty(sent);
  const text = {
    ...kept,
    ...(format && { format: { ...objectOrEmpty(kept['format']), ...encodeFormat(format, context) } }),
    ...(verbosity && { verbosity }),
  };
  return Object.keys(text).length > 0 || sent !== undefined ? { text } : {};
}

function encodeFormat(format: OutputFormat, context: CodecContext): JsonObject {
  if (format.type === 'json_object') return { type: 'json_object' };
  const { name, description, schema, strict } = namedSchema(format.json_schema, context);
  return {
    type: 'json_schema',
    name,
    ...(description !== undefined && { description }),
    schema,
    ...(strict !== undefined && { strict }),
  };
}

const HINT = 'Respond in JSON.';

/**
 * Adds a developer message if necessary: the API rejects `json_object` unless an input item contains "JSON";
 * `instructions` do not count.
 */
export function addJsonHint(input: JsonObject[], format: OutputFormat | undefined, context: CodecContext): JsonObject[] {
  if (format?.type !== 'json_object' || input.some((item) => /json/i.test(joinText(item)))) return input;
  const message = 'JSON mode requires the word "JSON" in an input item; inserted a developer message';
  context.note({ code: 'REPAIRED', path: '/output_format', feature: 'output_format.json_word', message });
  return [{ type: 'message', role: 'developer', content: [{ type: 'input_text', text: HINT }] }, ...input];
}

const joinText = ({ content }: JsonObject): string =>
  listOrEmpty(content)
    .map((part) => textOrEmpty(objectOrEmpty(part)['text']))
    .join('\n');

// ---- thinking

/** Decodes `reasoning`. A summary without an effort means adaptive thinking. */
export function decodeThinking(value: unknown, context: Pick<CodecContext, 'trace'> = {}): ThinkingConfig | undefined {
  const reasoning = optional(value, 'reasoning', expectObject);
  const thinking = reasoning && readThinking(reasoning);
  const summary = `/reasoning/${reasoning?.['summary'] ? 'summary' : 'generate_summary'}`;
  const type = thinking?.type === 'adaptive' ? summary : '/reasoning/effort';
  return thinking && withSource('/reasoning', thinking, context, { type, summary, display: summary });
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

const SUMMARY_VALUES: readonly unknown[] = ['auto', 'concise', 'detailed'] satisfies ThinkingConfig['summary'][];

const isSummary = (word: unknown): word is NonNullable<ThinkingConfig['summary']> => SUMMARY_VALUES.includes(word);

/**
 * Encodes `reasoning`. `kept`: the value that the client sent, which may have more fields; used if it still matches.
 */
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
  dropThinkingField('type', 'thinking cannot be disabled for this model; dropped', context);
  return undefined;
}

/** Enabled without an effort is the provider's default. */
function encodeEffort(thinking: ThinkingConfig, context: CodecContext): string | undefined {
  const { effort_values: allowed } = context.profile;
  const wanted = findWantedEffort(thinking, context);
  if (!wanted) return undefined;
  const isBudget = !thinking.effort && findEffort(thinking.budget_tokens) !== undefined;
  if (thinking.effort && thinking.budget_tokens !== undefined)
    dropThinkingField('budget_tokens', 'this model accepts an effort instead of a thinking budget; budget dropped', context);
  const effort = allowed ? nearestEffort(wanted, allowed) : wanted;
  if (effort === undefined)
    dropThinkingField(isBudget ? 'budget_tokens' : 'effort', 'effort is not supported by this model; dropped', context);
  else if (isBudget)
    noteEffort(
      'budget_tokens',
      `a thinking budget is not supported by this model; ${thinking.budget_tokens} tokens sent as effort "${effort}"`,
      context,
    );
  else if (effort !== wanted)
    noteEffort('effort', `effort "${wanted}" is not supported by this model; sent as "${effort}"`, context);
  return effort;
}

/** The API never shows the full chain of thought; a summary is closest. */
function encodeSummary({ summary, display }: ThinkingConfig, context: CodecContext): string | undefined {
  if (display === 'full' && !summary)
    noteEffort('display', 'full thinking is not available from the target; a summary is requested', context);
  return summary ?? (display === 'summarized' || display === 'full' ? 'auto' : undefined);
}
