/**
 * Wire types of Gemini, the fields that the codec reads, the two spellings of field names, and how unknown fields are
 * kept as extensions.
 */

import type { Extensions, Node } from '../../canonical/protocol.ts';
import { keepFields, readFields } from '../../codec/extensions.ts';
import { objectOrEmpty, textOrEmpty } from '../../codec/read.ts';
import { isObject, type JsonObject, setOwn } from '../../json/json.ts';
import { MAX_FIELD_NAME_DEPTH } from '../../json/limits.ts';

/**
 * A GenerateContentResponse; the fragments of a stream have the same shape. Servers are not trusted: every field may
 * be missing or of any type.
 */
export interface WireResponse extends JsonObject {
  candidates?: unknown;
  usageMetadata?: unknown;
  modelVersion?: unknown;
  responseId?: unknown;
  createTime?: unknown;
  promptFeedback?: unknown;
}

/** A candidate on the wire. */
export interface WireCandidate extends JsonObject {
  index?: unknown;
  content?: unknown;
  finishReason?: unknown;
  logprobsResult?: unknown;
}

/** A part of a content on the wire. */
export interface WirePart extends JsonObject {
  text?: unknown;
  thought?: unknown;
  thoughtSignature?: unknown;
  functionCall?: unknown;
  functionResponse?: unknown;
  inlineData?: unknown;
  fileData?: unknown;
}

/** A functionCall on the wire. */
export interface WireCall extends JsonObject {
  id?: unknown;
  name?: unknown;
  args?: unknown;
  thoughtSignature?: unknown;
  /** Vertex with streamFunctionCallArguments: pieces of the arguments, and whether more follow. */
  partialArgs?: unknown;
  willContinue?: unknown;
}

const toSnakeCase = (key: string): string => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const bothSpellings = (...keys: string[]): ReadonlySet<string> => new Set([...keys, ...keys.map(toSnakeCase)]);

/**
 * Response fields with a canonical counterpart. `createTime` and `promptFeedback` are mapped, but also kept: the
 * canonical response has whole seconds only, and no ratings.
 */
export const RESPONSE_FIELDS: ReadonlySet<string> = new Set([
  'candidates',
  'usageMetadata',
  'modelVersion',
  'responseId',
  'error',
  // Not of the wire: @google/genai adds the headers of the HTTP response to its chunks.
  'sdkHttpResponse',
]);

/** Fields of the wrapper around responses of Cloud Code. */
export const WRAPPER_FIELDS: ReadonlySet<string> = new Set(['response']);

/** Candidate fields with a canonical counterpart. */
export const CANDIDATE_FIELDS: ReadonlySet<string> = new Set(['index', 'content', 'finishReason', 'logprobsResult']);

/**
 * Documented candidate fields beside the content. The decoder keeps them together with the fields of the response,
 * and unknown ones under `candidate`.
 */
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

/** Content fields with a canonical counterpart. */
export const CONTENT_FIELDS: ReadonlySet<string> = new Set(['parts', 'role']);

/** Part fields with a canonical counterpart, in both spellings. */
export const PART_FIELDS: ReadonlySet<string> = /* @__PURE__ */ bothSpellings(
  'text',
  'thought',
  'thoughtSignature',
  'functionCall',
  'functionResponse',
  'inlineData',
  'fileData',
);

/** Documented parts that only Gemini understands; they are kept opaque without a report. */
export const OPAQUE_PARTS: ReadonlySet<string> = new Set(['executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse']);

/** Part fields that accompany the content, in both spellings. */
export const CARRIER_FIELDS: ReadonlySet<string> = /* @__PURE__ */ bothSpellings('thought', 'thoughtSignature');

/** Fields of a functionCall with a canonical counterpart, in both spellings. */
export const CALL_FIELDS: ReadonlySet<string> = /* @__PURE__ */ bothSpellings(
  'id',
  'name',
  'args',
  'thoughtSignature',
  'partialArgs',
  'willContinue',
);

/** Fields of a functionResponse with a canonical counterpart. */
export const FUNCTION_RESPONSE_FIELDS: ReadonlySet<string> = new Set(['id', 'name', 'response', 'parts']);

/** Fields of inlineData and fileData with a canonical counterpart, in both spellings. */
export const BLOB_FIELDS: ReadonlySet<string> = /* @__PURE__ */ bothSpellings('mimeType', 'data', 'fileUri');

/** Converts `inline_data` to `inlineData`; a leading underscore stays (`_responseJsonSchema`). */
export const toCamelCase = (key: string): string =>
  key.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/**
 * Converts keys to camel case, because proto3 JSON allows `inlineData` and `inline_data`. Returns the object itself
 * if nothing changes.
 */
export function toCamelKeys(value: JsonObject): JsonObject {
  for (const key in value) if (key.includes('_')) return withCamelKeys(value);
  return value;
}

function withCamelKeys(value: JsonObject): JsonObject {
  const out: JsonObject = {};
  for (const key of Object.keys(value)) {
    const camel = toCamelCase(key);
    if (camel === key || !Object.hasOwn(value, camel)) setOwn(out, camel, value[key]);
  }
  return out;
}

/** Documented response fields; only these are converted, since other keys may contain underscores of their own. */
const RESPONSE_NAMES: ReadonlySet<string> = new Set([
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

/** Fields with data of users and tools, whose keys are not converted. */
const DATA: ReadonlySet<string> = new Set(['args', 'response', 'partMetadata']);

/**
 * Converts a response, candidate or part, with everything in it, to the camel-case names that official clients read.
 * Returns the object itself if nothing changes.
 */
export function normaliseNames(value: JsonObject): JsonObject {
  for (const key in value) if (key.includes('_') && RESPONSE_NAMES.has(toCamelCase(key))) return convertNames(value);
  return value;
}

function convertNames(value: JsonObject): JsonObject {
  const out: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) {
    const name = toCamelCase(key);
    if (name === key || !RESPONSE_NAMES.has(name)) setOwn(out, key, inner);
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
  for (const [name, inner] of Object.entries(toCamelKeys(value))) setOwn(out, name, camelField(name, inner, depth + 1));
  return out;
}

/** The object with camel-case keys; an empty object for anything else. */
export const toCamelObject = (value: unknown): JsonObject => (isObject(value) ? toCamelKeys(value) : {});

/** Cloud Code and Antigravity put every response, whole or fragment, into `{"response": …, "traceId": …}`. */
export function isWrapped(payload: JsonObject): boolean {
  return isObject(payload['response']) && payload['candidates'] === undefined && payload['type'] === undefined;
}

/** Whether a payload is a GenerateContentResponse, by fields that no other response of this API has. */
export function isResponse(payload: JsonObject): boolean {
  const { candidates, promptFeedback, responseId, modelVersion }: WireResponse = toCamelKeys(payload);
  return (
    Array.isArray(candidates) || isObject(promptFeedback) || textOrEmpty(responseId) !== '' || textOrEmpty(modelVersion) !== ''
  );
}

/** Whether a payload has usage metadata. */
export const hasUsage = (payload: JsonObject): boolean => isObject(toCamelKeys(payload)['usageMetadata']);

interface Envelope {
  id: string;
  model: string;
  created?: number;
}

/** Id, model and time. The first fragment has them, and most fragments repeat them. */
export function decodeEnvelope({ responseId, modelVersion, createTime }: WireResponse): Envelope {
  const created = decodeTime(createTime);
  return { id: textOrEmpty(responseId), model: textOrEmpty(modelVersion), ...(created !== undefined && { created }) };
}

/** A date of RFC 3339 with every field in its range; the day is checked against its month by `decodeTime`. */
const RFC_3339 =
  /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.\d+)?(?:Z|([+-](?:[01]\d|2[0-3])):([0-5]\d))$/;

/** Unix seconds of `2026-05-19T14:59:42.780296Z`, computed without `Date`; undefined if there is no such day. */
function decodeTime(value: unknown): number | undefined {
  const match = RFC_3339.exec(textOrEmpty(value));
  if (!match) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, zoneHour = 0, zoneMinute = 0] = match
    .slice(1)
    .map((digits) => Number(digits ?? 0));
  const days = daysFromEpoch(year, month, 1) + day - 1;
  if (days >= daysFromEpoch(year, month + 1, 1)) return undefined;
  const zone = zoneHour * 60 + (match[7]?.startsWith('-') ? -zoneMinute : zoneMinute);
  return days * 86_400 + hour * 3600 + (minute - zone) * 60 + second;
}

/** Years start in March here, so that a leap day is the last day of its year. Month 13 is January of the next year. */
function daysFromEpoch(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  return y * 365 + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + dayOfYear - 719_468;
}

/** The fields of a canonical node that only Gemini knows. */
export const readExtensions = (node: Node): JsonObject => readFields(node, 'gemini');

/** Wraps fields that only Gemini knows as the `extensions` of a canonical node. */
export const toExtensions = (fields: JsonObject | undefined): Node => keepFields(fields, 'gemini');

/** Extension keys with the fields of the object inside a part; all other keys are fields of the part. */
const NESTED: ReadonlySet<string> = new Set(['functionCall', 'functionResponse', 'inlineData', 'fileData']);

/** The extension fields of the part itself. */
export function readPartExtensions(node: Node): JsonObject {
  const fields = readExtensions(node);
  for (const key in fields) if (NESTED.has(key)) return withoutNested(fields);
  return fields;
}

const withoutNested = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => !NESTED.has(key)));

/** The extension fields of the object inside the part. */
export const readNestedExtensions = (
  node: Node,
  key: 'functionCall' | 'functionResponse' | 'inlineData' | 'fileData',
): JsonObject => objectOrEmpty(readExtensions(node)[key]);

/** The extensions of a response, split into response, candidate and content. */
export interface CandidateExtensions {
  /** Fields of the response beside its candidates. */
  response: JsonObject;
  /** Fields of the candidate beside its content. */
  candidate: JsonObject;
  /** Fields of the content beside its parts. */
  content: JsonObject;
  /** The finish reason as it was on the wire. */
  finish: string | number | undefined;
}

/** Splits the extensions of a response or of its final delta. */
export function readCandidateExtensions(extensions: Extensions | undefined): CandidateExtensions {
  const { finish_reason: finish, candidate, content, ...fields }: JsonObject = objectOrEmpty(extensions?.gemini);
  const response: JsonObject = {};
  const own: JsonObject = {};
  for (const [name, value] of Object.entries(fields)) setOwn(CANDIDATE_NAMES.has(name) ? own : response, name, value);
  return {
    response,
    candidate: { ...own, ...objectOrEmpty(candidate) },
    content: objectOrEmpty(content),
    finish: typeof finish === 'string' || typeof finish === 'number' ? finish : undefined,
  };
}

/** Whether the prompt was blocked: such a response has feedback and no candidates. */
export const isBlocked = ({ response, finish }: CandidateExtensions): boolean =>
  finish === undefined &&
  isObject(response['promptFeedback']) &&
  toCamelObject(response['promptFeedback'])['blockReason'] !== undefined;

/**
 * JSON pointers of canonical request fields that have another place on the wire. Messages, tools and instructions
 * record their own.
 */
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

/**
 * Request fields that are kept as extensions although they have a canonical counterpart, with its path; "" if their
 * loss needs no note.
 */
export const MIRRORED_FIELDS: Readonly<Record<string, string>> = {
  'generationConfig/speechConfig/voiceConfig': '/audio_output',
  'generationConfig/responseSchema': '/output_format',
  'generationConfig/responseJsonSchema': '/output_format',
  'generationConfig/_responseJsonSchema': '/output_format',
  // The role of instructions, which has no meaning.
  role: '',
  // The id of a result, which is redundant once its call is known.
  id: '',
  parameters: '',
  parametersJsonSchema: '',
  response: '',
  responseJsonSchema: '',
  thought: '',
};

/**
 * Response fields that are kept as extensions but whose loss needs no note: the canonical response has their content.
 */
export const IGNORABLE_FIELDS: ReadonlySet<string> = new Set([
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
