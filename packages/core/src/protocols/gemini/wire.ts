import type { Extensions, Node } from '../../canonical/protocol.ts';
import { type Keeper, keeper } from '../../codec/extensions.ts';
import { objectOf, textOf } from '../../codec/read.ts';
import { isObject, type JsonObject, setOwn } from '../../json/json.ts';
import { MAX_FIELD_NAME_DEPTH } from '../../json/limits.ts';

/** A GenerateContentResponse, whole or a fragment: the same shape. Everything is unknown until it is looked at: it comes from strangers. */
export interface WireResponse extends JsonObject {
  candidates?: unknown;
  usageMetadata?: unknown;
  modelVersion?: unknown;
  responseId?: unknown;
  createTime?: unknown;
  promptFeedback?: unknown;
}

export interface WireCandidate extends JsonObject {
  index?: unknown;
  content?: unknown;
  finishReason?: unknown;
  logprobsResult?: unknown;
}

export interface WirePart extends JsonObject {
  text?: unknown;
  thought?: unknown;
  thoughtSignature?: unknown;
  functionCall?: unknown;
  functionResponse?: unknown;
  inlineData?: unknown;
  fileData?: unknown;
}

export interface WireCall extends JsonObject {
  id?: unknown;
  name?: unknown;
  args?: unknown;
  thoughtSignature?: unknown;
  /** Vertex with streamFunctionCallArguments: pieces of the arguments, and whether more follow. */
  partialArgs?: unknown;
  willContinue?: unknown;
}

const snakeOf = (key: string): string => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const bothSpellings = (...keys: string[]): ReadonlySet<string> => new Set([...keys, ...keys.map(snakeOf)]);

/** `createTime` and `promptFeedback` are read, and kept as well: canonical has whole seconds only, and no ratings. */
export const RESPONSE_FIELDS: ReadonlySet<string> = new Set([
  'candidates',
  'usageMetadata',
  'modelVersion',
  'responseId',
  'error',
]);

export const WRAPPER_FIELDS: ReadonlySet<string> = new Set(['response']);

export const CANDIDATE_FIELDS: ReadonlySet<string> = new Set(['index', 'content', 'finishReason', 'logprobsResult']);

/** What a candidate says beside its content; the decoder keeps these together with the fields of the response, and any other apart. */
export const CANDIDATE_NAMES: ReadonlySet<string> = new Set([
  'finishMessage',
  'safetyRatings',
  'citationMetadata',
  'groundingMetadata',
  'groundingAttributions',
  'urlContextMetadata',
  'urlRetrievalMetadata',
  'tokenCount',
  'avgLogprobs',
  'logprobsResult',
  'score',
]);

export const CONTENT_FIELDS: ReadonlySet<string> = new Set(['parts', 'role']);

export const PART_FIELDS: ReadonlySet<string> = bothSpellings(
  'text',
  'thought',
  'thoughtSignature',
  'functionCall',
  'functionResponse',
  'inlineData',
  'fileData',
);

/** Parts that only Gemini understands and that are documented: no departure. */
export const OPAQUE_PARTS: ReadonlySet<string> = new Set(['executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse']);

/** What a part may have beside its content. */
export const CARRIER_FIELDS: ReadonlySet<string> = bothSpellings('thought', 'thoughtSignature');

export const CALL_FIELDS: ReadonlySet<string> = bothSpellings(
  'id',
  'name',
  'args',
  'thoughtSignature',
  'partialArgs',
  'willContinue',
);

export const FUNCTION_RESPONSE_FIELDS: ReadonlySet<string> = new Set(['id', 'name', 'response', 'parts']);

export const BLOB_FIELDS: ReadonlySet<string> = bothSpellings('mimeType', 'data', 'fileUri');

/** `inline_data` is `inlineData`; other underscores stay (`_responseJsonSchema`). */
export const camelOf = (key: string): string =>
  key.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** proto3 JSON may spell a key `inlineData` or `inline_data`. The object itself when no key needs the change. */
export function camelKeys(value: JsonObject): JsonObject {
  for (const key in value) if (key.includes('_')) return withCamelKeys(value);
  return value;
}

function withCamelKeys(value: JsonObject): JsonObject {
  const out: JsonObject = {};
  for (const key of Object.keys(value)) {
    const camel = camelOf(key);
    if (camel === key || !Object.hasOwn(value, camel)) setOwn(out, camel, value[key]);
  }
  return out;
}

/** Documented names of more than one word, in an answer. Anything else may have underscores of its own. */
const ANSWER_NAMES: ReadonlySet<string> = new Set([
  ...RESPONSE_FIELDS,
  'createTime',
  'promptFeedback',
  'modelStatus',
  ...CANDIDATE_FIELDS,
  ...CANDIDATE_NAMES,
  ...PART_FIELDS,
  ...OPAQUE_PARTS,
  'videoMetadata',
  'mediaResolution',
  'partMetadata',
]);

/** What users and tools say: its keys are not ours to spell. */
const DATA: ReadonlySet<string> = new Set(['args', 'response', 'partMetadata']);

/** A response, a candidate or a part in the one spelling that official clients read, with all that its names hold. Itself when it is. */
export function respell(value: JsonObject): JsonObject {
  for (const key in value) if (key.includes('_') && ANSWER_NAMES.has(camelOf(key))) return respelled(value);
  return value;
}

function respelled(value: JsonObject): JsonObject {
  const out: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) {
    const name = camelOf(key);
    if (name === key || !ANSWER_NAMES.has(name)) setOwn(out, key, inner);
    else if (!Object.hasOwn(value, name)) setOwn(out, name, camelField(name, inner, 0));
  }
  return out;
}

const camelField = (name: string, value: unknown, depth: number): unknown => (DATA.has(name) ? value : camelTree(value, depth));

function camelTree(value: unknown, depth: number): unknown {
  if (depth === MAX_FIELD_NAME_DEPTH) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => camelTree(item, depth + 1));
  if (!isObject(value)) return value;
  const out: JsonObject = {};
  for (const [name, inner] of Object.entries(camelKeys(value))) setOwn(out, name, camelField(name, inner, depth + 1));
  return out;
}

export const camelObject = (value: unknown): JsonObject => (isObject(value) ? camelKeys(value) : {});

/** Cloud Code and Antigravity put every response, whole or fragment, into `{"response": …, "traceId": …}`. */
export function isWrapped(payload: JsonObject): boolean {
  return isObject(payload['response']) && payload['candidates'] === undefined && payload['type'] === undefined;
}

/** Whether a payload is a GenerateContentResponse: fields that no other answer of this API has. */
export function isResponse(payload: JsonObject): boolean {
  const { candidates, promptFeedback, responseId, modelVersion }: WireResponse = camelKeys(payload);
  return Array.isArray(candidates) || isObject(promptFeedback) || textOf(responseId) !== '' || textOf(modelVersion) !== '';
}

export const hasUsage = (payload: JsonObject): boolean => isObject(camelKeys(payload)['usageMetadata']);

interface Envelope {
  id: string;
  model: string;
  created?: number;
}

/** Who answered, and when. The first fragment has it; most repeat it. */
export function decodeEnvelope({ responseId, modelVersion, createTime }: WireResponse): Envelope {
  const created = decodeTime(createTime);
  return { id: textOf(responseId), model: textOf(modelVersion), ...(created !== undefined && { created }) };
}

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|([+-]\d\d):(\d\d))$/;

/** Unix seconds of `2026-05-19T14:59:42.780296Z`, by the civil calendar: core has no Date. */
function decodeTime(value: unknown): number | undefined {
  const match = RFC_3339.exec(textOf(value));
  if (!match) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, zoneHour = 0, zoneMinute = 0] = match
    .slice(1)
    .map((digits) => Number(digits ?? 0));
  const zone = zoneHour * 60 + (match[7]?.startsWith('-') ? -zoneMinute : zoneMinute);
  return daysFromEpoch(year, month, day) * 86_400 + hour * 3600 + (minute - zone) * 60 + second;
}

/** Years begin in March here, so that the leap day is the last of the year. */
function daysFromEpoch(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  return y * 365 + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + dayOfYear - 719_468;
}

const kept: Keeper = keeper('gemini');

export const fieldsOf: Keeper['fieldsOf'] = kept.fieldsOf;

export const keep: Keeper['keep'] = kept.keep;

/** What of a part stands inside its one object; the other kept fields are the part's own. */
const WITHIN: ReadonlySet<string> = new Set(['functionCall', 'functionResponse', 'inlineData', 'fileData']);

/** The kept fields of a part itself. */
export function partFields(node: Node): JsonObject {
  const fields = fieldsOf(node);
  for (const key in fields) if (WITHIN.has(key)) return withoutInner(fields);
  return fields;
}

const withoutInner = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => !WITHIN.has(key)));

/** The kept fields of the one object in a part. */
export const innerFields = (node: Node, key: 'functionCall' | 'functionResponse' | 'inlineData' | 'fileData'): JsonObject =>
  objectOf(fieldsOf(node)[key]);

/** What the decoder keeps of a response and of a candidate, told apart. */
export interface KeptCandidate {
  /** Fields of the response around the candidates. */
  response: JsonObject;
  candidate: JsonObject;
  content: JsonObject;
  /** The wire's own word. */
  finish: string | number | undefined;
}

export function readKept(extensions: Extensions | undefined): KeptCandidate {
  const { finish_reason: finish, candidate, content, ...fields }: JsonObject = objectOf(extensions?.gemini);
  const response: JsonObject = {};
  const own: JsonObject = {};
  for (const [name, value] of Object.entries(fields)) setOwn(CANDIDATE_NAMES.has(name) ? own : response, name, value);
  return {
    response,
    candidate: { ...own, ...objectOf(candidate) },
    content: objectOf(content),
    finish: typeof finish === 'string' || typeof finish === 'number' ? finish : undefined,
  };
}

/** A prompt that was blocked has feedback and no candidates. */
export const isBlocked = ({ response, finish }: KeptCandidate): boolean =>
  finish === undefined &&
  isObject(response['promptFeedback']) &&
  camelObject(response['promptFeedback'])['blockReason'] !== undefined;

/** Paths of the canonical request as pointers into a body of this protocol. Messages, tools and instructions remember their own place. */
export const PLACES: Readonly<Record<string, string>> = {
  messages: '/contents',
  system: '/systemInstruction',
  tool_choice: '/toolConfig/functionCallingConfig',
  parameters: '/generationConfig',
  'parameters/max_tokens': '/generationConfig/maxOutputTokens',
  'parameters/top_p': '/generationConfig/topP',
  'parameters/top_k': '/generationConfig/topK',
  'parameters/frequency_penalty': '/generationConfig/frequencyPenalty',
  'parameters/presence_penalty': '/generationConfig/presencePenalty',
  'parameters/stop_sequences': '/generationConfig/stopSequences',
  'parameters/n': '/generationConfig/candidateCount',
  'parameters/logprobs': '/generationConfig/responseLogprobs',
  'parameters/top_logprobs': '/generationConfig/logprobs',
  output_format: '/generationConfig/responseMimeType',
  thinking: '/generationConfig/thinkingConfig',
  'thinking/type': '/generationConfig/thinkingConfig',
  'thinking/budget_tokens': '/generationConfig/thinkingConfig/thinkingBudget',
  'thinking/effort': '/generationConfig/thinkingConfig/thinkingLevel',
  'thinking/display': '/generationConfig/thinkingConfig/includeThoughts',
  modalities: '/generationConfig/responseModalities',
  audio_output: '/generationConfig/speechConfig',
  metadata: '/labels',
  service_tier: '/serviceTier',
  'state/cached_content': '/cachedContent',
};

/** Fields that are kept as they came although the canonical request says them, too. */
export const FIELDS: Readonly<Record<string, string>> = {
  'generationConfig/speechConfig/voiceConfig': '/audio_output',
  'generationConfig/responseSchema': '/output_format',
  'generationConfig/responseJsonSchema': '/output_format',
  'generationConfig/_responseJsonSchema': '/output_format',
  // Of instructions, where it means nothing.
  role: '',
  // Of results: their call is known by then.
  id: '',
  parameters: '',
  parametersJsonSchema: '',
  response: '',
  responseJsonSchema: '',
  thought: '',
};

/** Fields of an answer that nobody elsewhere misses: the canonical answer says them, too. */
export const IDLE: ReadonlySet<string> = new Set([
  'candidate/',
  'content/',
  'createTime',
  'finish_reason',
  'finishMessage',
  'groundingMetadata/',
  'groundingMetadata/groundingChunks',
  'groundingMetadata/groundingSupports',
  'logprobsResult',
  'promptFeedback/',
  'promptFeedback/blockReason',
  'promptFeedback/blockReasonMessage',
  'usageMetadata',
]);
