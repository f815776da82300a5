import { isObject, type JsonObject, setOwn } from '../../accumulate/overlay.ts';
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
