import { isObject, type JsonObject, setOwn } from '../../accumulate/overlay.ts';

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
export const RESPONSE_FIELDS: ReadonlySet<string> = bothSpellings(
  'candidates',
  'usageMetadata',
  'modelVersion',
  'responseId',
  'error',
);
export const WRAPPER_FIELDS: ReadonlySet<string> = new Set(['response']);
export const CANDIDATE_FIELDS: ReadonlySet<string> = bothSpellings('index', 'content', 'finishReason', 'logprobsResult');
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

/** How the source spells a key. */
export const spelledIn = (source: JsonObject, name: string): string =>
  Object.keys(source).find((key) => camelOf(key) === name) ?? name;

export const camelObject = (value: unknown): JsonObject => (isObject(value) ? camelKeys(value) : {});
