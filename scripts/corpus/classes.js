import { isPlain } from './specs.js';

/** Which kind of string stands where. The lists name fields of the protocols; everything they do not name is found by its form. */

/** Strings that arrive in pieces: the pieces of one field make one text. */
const STREAMED = new Set([
  'content',
  'text',
  'delta',
  'reasoning',
  'reasoning_content',
  'thinking',
  'partial_json',
  'arguments',
  'refusal',
  'summary',
  'transcript',
  'data',
  'signature',
  'input',
  'code',
  'stringValue',
  'token',
  'reasoning_text',
]);

/** Lists of sources and the like, which come whole. */
const WHOLE = new Set([
  'groundingMetadata',
  'annotations',
  'annotation',
  'citations',
  'search_results',
  'top_logprobs',
  'results',
]);

/** Where events repeat what they have streamed: whole, but for the tokens of a text. */
const SNAPSHOTS = new Set(['response', 'item', 'part']);

export const isStreamed = (field, path) =>
  STREAMED.has(field) && !path.some((step) => WHOLE.has(step) || (field !== 'token' && SNAPSHOTS.has(step)));

const NAMES = new Set([
  'name',
  'tool_name',
  'required',
  'propertyOrdering',
  'property_ordering',
  'allowedFunctionNames',
  'allowed_function_names',
  'tool_names',
  'server_name',
  'server_label',
  'mcp_server_name',
  'namespace',
  'paths',
  'allowed_tools',
  'enum',
  'default',
]);

const IDS = new Set([
  'id',
  'call_id',
  'item_id',
  'tool_call_id',
  'tool_use_id',
  'tool_id',
  'response_id',
  'previous_response_id',
  'request_id',
  'system_fingerprint',
  'responseId',
  'generationId',
  'providerRequestId',
  'providerResponseId',
  'file_id',
  'container_id',
  'container',
  'vector_store_id',
  'vector_store_ids',
  'caller_id',
  'approval_request_id',
  'prompt_cache_key',
  'safety_identifier',
  'user_id',
  'user',
  'obfuscation',
  'p',
  'padding',
  'hash',
  'fingerprint',
  'encrypted_index',
  'connector_id',
  'fallback_credit_token',
  'filename',
  'file_search_store',
  'file_search_store_names',
  'fileSearchStore',
  'turnToken',
  'authorization_token',
  'order_id',
]);

/** Objects whose keys are chosen by users and tools. */
const FREE_OBJECTS = new Set([
  'args',
  'arguments',
  'metadata',
  'parsed',
  'attributes',
  'quotaDimensions',
  'output_schema_values',
  'headers',
  'logit_bias',
  'extra_headers',
]);

/** Objects whose keys are names, with a schema below each. */
export const NAME_MAPS = new Set(['properties', '$defs', 'definitions', 'patternProperties']);

/** True below tool arguments and other objects of users: their keys and values mean nothing to a protocol. */
export function isFree(path) {
  return path.some(
    (step, at) =>
      at < path.length - 1 &&
      typeof path[at + 1] === 'string' &&
      isFreeStep(path, step, at) &&
      !isSchemaName(path.slice(0, at + 1)),
  );
}

function isFreeStep(path, step, at) {
  // `input` of a call is an object; `response` is one below functionResponse.
  if (step === 'input') return path[at + 1] !== 'type' || at > 0;
  if (step === 'response') return /^(functionResponse|function_response)$/.test(String(path[at - 1]));
  return FREE_OBJECTS.has(step);
}

/** True for a key that names a property of a schema. */
export const isSchemaName = (path) => NAME_MAPS.has(path.at(-2)) && !NAME_MAPS.has(path.at(-3));

/** The field that a value belongs to; members of a list belong to the field of the list. */
export const fieldOf = (path) => path.findLast((step) => typeof step === 'string') ?? '';

/** JSON as text, of which a reader checks that it is an object. */
const ARGUMENTS = new Set(['arguments', 'partial_json']);

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const TIME = /^(\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-][\d:]+)?|[\d.]+(ms|s|m|h))$/;

/** A date and time, or a duration. */
export const isTime = (text) => TIME.test(text);

const BASE64 = /^[A-Za-z0-9+/]{24,}={0,2}$/;
const BASE64_URL = /^[A-Za-z0-9_-]{40,}={0,2}$/;
const MEDIA = { iVBORw0KGgo: 'png', '/9j/': 'jpeg', R0lGOD: 'gif', JVBERi: 'pdf', UklGR: 'wav', SUQz: 'wav', '//': 'wav' };
const DATA_URL = /^data:([\w/+.;=-]+);base64,(.*)$/s;

/**
 * The kind of a string that no vocabulary explains.
 * @returns {'literal' | 'media' | 'base64' | 'url' | 'json' | 'name' | 'id' | 'text'}
 */
export function classify(field, text, isBelowUser) {
  if (/^(true|false|null)$/.test(text) || isTime(text)) return 'literal';
  if (ARGUMENTS.has(field) && isJson(text)) return 'json';
  if (isPlain(text)) return /^\s*[[{]/.test(text) ? 'json' : 'literal';
  if (DATA_URL.test(text)) return 'data-url';
  if (mediaOf(text)) return 'media';
  if (NAMES.has(field) && !isBelowUser && text.length <= 128) return 'name';
  if (IDS.has(field) && !isBelowUser) return text.length > 200 ? 'base64' : 'id';
  if (/^https?:\/\/\S+$/.test(text)) return 'url';
  if (isBase64(text)) return 'base64';
  if (/^\s*[[{]/.test(text)) return 'json';
  if (/^[\w.:-]{12,}$/.test(text) && /\d/.test(text)) return 'id';
  if (/^(\$\.|#\/)/.test(text)) return 'path';
  return 'text';
}

/** Long runs of the alphabet with digits and both cases, which no word has. */
const isBase64 = (text) =>
  (BASE64.test(text) || BASE64_URL.test(text)) && /\d/.test(text) && /[a-z]/.test(text) && /[A-Z]/.test(text);

export function mediaOf(text) {
  if (text.length < 40 || !/^[A-Za-z0-9+/=]+$/.test(text)) return undefined;
  const found = Object.entries(MEDIA).find(([start]) => text.startsWith(start));
  return found?.[1];
}

export const splitDataUrl = (text) => DATA_URL.exec(text);
