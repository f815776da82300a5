/** How a chat response ends, both directions: errors, stop reasons, usage. */

import type { CanonicalUsage, StopReason, UsageDetails } from '../../canonical/message.ts';
import { type CanonicalError, type ErrorCode, findSocketErrorCode } from '../../canonical/notes.ts';
import type { Context } from '../../codec/context.ts';
import {
  addReplyFacts,
  decodeWireError,
  describeTextBody,
  encodeOpenaiHeaders,
  errorBody,
  errorValue,
  findBareError,
} from '../../codec/errors.ts';
import type { CodecContext, WireReply } from '../../codec/protocol.ts';
import { fitCached, limitToWhole, noteUsage, objectOrEmpty, toCount } from '../../codec/read.ts';
import { countKeys, isSet } from '../../json/fast.ts';
import { getOwn, isObject, type JsonObject } from '../../json/json.ts';

// ---- errors

/**
 * Finds the error of a chunk or body where compatible servers put it: `error`, `choices[].error`, or the whole payload
 * of `event: error`.
 */
export function findError(payload: JsonObject, event: string | undefined): unknown {
  const { error, choices } = payload;
  const isList = Array.isArray(choices);
  // Some servers send an empty object beside a good response.
  if (error && !(isList && isEmptyObject(error))) return error;
  if (isList)
    for (const choice of choices)
      if (isObject(choice) && choice['error'] && !isEmptyObject(choice['error'])) return choice['error'];
  const failure = payload['base_resp'];
  if (isObject(failure) && isFailure(failure)) return failure;
  const bare = isList ? undefined : findBareError(payload);
  if (bare) return bare;
  return event === 'error' || payload['object'] === 'error' ? payload : undefined;
}

/** Whether a value is an object without fields. */
export const isEmptyObject = (value: unknown): boolean => isObject(value) && countKeys(value) === 0;

/** MiniMax puts a status on every response; 0 is success. */
const isFailure = ({ status_code: code }: JsonObject): boolean => typeof code === 'number' && code !== 0;

/** Decodes an error object of any shape. */
export const decodeError = (error: unknown): CanonicalError => decodeWireError('openai-chat', errorBody(error));

/** Decodes an error response of a compatible server, in any shape. */
export function decodeErrorReply(reply: WireReply, context: CodecContext): CanonicalError {
  return addReplyFacts(decodeErrorBody(reply.body, reply.status, context), reply, 'openai-chat');
}

/** Decodes the error of a body that is not a completion. */
export const decodeErrorBody = (body: unknown, status?: number, context?: CodecContext): CanonicalError =>
  decodeWireError('openai-chat', readErrorObject(body, status, context));

/**
 * Normalizes `{error}`, `{error:"text"}`, `{message}`, `{detail}`, `[{error}]`, JSON in a string, HTML and empty bodies
 * to one object with a message.
 */
function readErrorObject(body: unknown, status: number | undefined, context: CodecContext | undefined): JsonObject {
  const value = errorValue(body);
  if (!isObject(value)) return { message: describeTextBody(value, status, context) };
  const error = findError(value, 'error');
  // xAI and Hugging Face have the text in `error` and the type beside it.
  return typeof error === 'string' ? { ...value, message: error } : errorBody(error);
}

/** Encodes an error response; SDKs choose the exception by HTTP status, so status and body must match. */
export function encodeError(error: CanonicalError, _context: CodecContext): WireReply {
  return { status: findStatus(error), headers: encodeOpenaiHeaders(error), body: encodeErrorBody(error) };
}

const INVALID = 'invalid_request_error';

const SERVER = 'server_error';

interface WireError {
  status: number;
  type: string;
  /** A code of OpenAI, which clients switch on. */
  code: string | null;
}

const WIRE_ERRORS: Record<ErrorCode, WireError> = {
  INVALID_INPUT: { status: 400, type: INVALID, code: 'invalid_value' },
  MISSING_REQUIRED_FIELD: { status: 400, type: INVALID, code: 'missing_required_parameter' },
  INCOMPATIBLE_FEATURE: { status: 400, type: INVALID, code: 'unsupported_value' },
  TOOL_CALL_PARSE_ERROR: { status: 400, type: INVALID, code: 'tool_use_failed' },
  JSON_PARSE_ERROR: { status: 400, type: INVALID, code: 'invalid_json' },
  CONTEXT_LENGTH: { status: 400, type: INVALID, code: 'context_length_exceeded' },
  CONTENT_POLICY: { status: 400, type: INVALID, code: 'content_policy_violation' },
  // The live API sends invalid_request_error for 401 and 403.
  AUTHENTICATION: { status: 401, type: INVALID, code: 'invalid_api_key' },
  PERMISSION: { status: 403, type: INVALID, code: null },
  BILLING: { status: 429, type: 'insufficient_quota', code: 'insufficient_quota' },
  NOT_FOUND: { status: 404, type: INVALID, code: 'model_not_found' },
  UNSUPPORTED_INTERFACE: { status: 404, type: INVALID, code: 'unknown_url' },
  CONFLICT: { status: 409, type: INVALID, code: null },
  PAYLOAD_TOO_LARGE: { status: 413, type: INVALID, code: 'request_too_large' },
  RATE_LIMIT: { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  CANCELLED: { status: 499, type: INVALID, code: 'cancelled' },
  INTERNAL: { status: 500, type: SERVER, code: null },
  UPSTREAM_ERROR: { status: 502, type: SERVER, code: null },
  STREAM_TRUNCATED: { status: 502, type: SERVER, code: 'stream_truncated' },
  OVERLOADED: { status: 503, type: SERVER, code: 'overloaded' },
  TIMEOUT: { status: 504, type: SERVER, code: 'timeout' },
};

/** Statuses that OpenAI does not use, or uses otherwise: Anthropic's 529 (overloaded), and 402 (payment required). */
const FOREIGN_STATUS: Record<number, number> = { 529: 503, 402: 429 };

function findStatus({ code, http_status: status, upstream }: CanonicalError): number {
  const own = WIRE_ERRORS[code].status;
  if (status === undefined || status < 400 || status > 599) return own;
  if (status === 402 && upstream?.protocol === 'openai-chat') return status;
  return FOREIGN_STATUS[status] ?? status;
}

/** `{error:{…}}`: the body of an error response. */
function encodeErrorBody(error: CanonicalError): { error: JsonObject } {
  const { type, code } = WIRE_ERRORS[error.code];
  const isOwn = error.upstream?.protocol === 'openai-chat';
  const upstream = isOwn ? error.upstream : undefined;
  return {
    error: {
      ...objectOrEmpty(upstream?.body),
      message: error.message,
      type: upstream?.type ?? type,
      param: error.param ?? null,
      // OpenRouter and others put the status here, but clients expect a word.
      code: typeof upstream?.code === 'string' ? upstream.code : code,
    },
  };
}

/**
 * The payload of an error chunk. If the connection broke, the code is the system's error code, on which Qwen Code and
 * Continue retry.
 */
export function encodeErrorChunk(error: CanonicalError): { error: JsonObject } {
  const body = encodeErrorBody(error);
  const code = findSocketErrorCode(error);
  return code === undefined ? body : { error: { ...body.error, code } };
}

// ---- stop reasons

/** Values of `finish_reason`; anything else, or none, is `end_turn`. */
const STOP_REASONS: Record<string, StopReason> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'content_filter',
  // The value before tool calls existed, and those of other protocols and servers.
  function_call: 'tool_use',
  tool_call: 'tool_use',
  tool_use: 'tool_use',
  max_tokens: 'max_tokens',
  max_output_tokens: 'max_tokens',
  model_length: 'max_tokens',
  MAX_TOKENS: 'max_tokens',
  stop_sequence: 'stop_sequence',
  pause_turn: 'pause_turn',
  sensitive: 'content_filter',
  safety: 'content_filter',
  SAFETY: 'content_filter',
  refusal: 'content_filter',
  network_error: 'error',
  abort: 'error',
  error: 'error',
  insufficient_system_resource: 'error',
};

/** The canonical stop reason of a `finish_reason`. */
export const decodeStop = (finish: string | null): StopReason => getOwn(STOP_REASONS, finish) ?? 'end_turn';

/** The standard values: the official four and the deprecated one. */
const STANDARD_STOPS = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call']);

/** Whether OpenAI itself uses this `finish_reason`. */
export const isStandardStop = (finish: string): boolean => STANDARD_STOPS.has(finish);

/** The values of `finish_reason` that chat clients know. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

/** `error` has no `finish_reason`: it is sent as an error object. */
const WIRE_STOPS: Record<Exclude<StopReason, 'error'>, FinishReason> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  max_tokens: 'length',
  context_window: 'length',
  tool_use: 'tool_calls',
  content_filter: 'content_filter',
  // Without text in `refusal`, "stop" would be an empty response without a reason, and agents loop on it.
  refusal: 'content_filter',
};

/** The `finish_reason` of a stop reason. `hasRefusal`: the message has text, and a `refusal`. */
export const encodeStop = (stop: Exclude<StopReason, 'error'>, hasRefusal: boolean): FinishReason =>
  stop === 'refusal' && hasRefusal ? 'stop' : WIRE_STOPS[stop];

const CUT_STOPS: ReadonlySet<StopReason> = /* @__PURE__ */ new Set<StopReason>([
  'max_tokens',
  'context_window',
  'content_filter',
  'error',
]);

/** Whether the response was cut, so that a call without arguments may have lost them and must not get `{}`. */
export const isCutStop = (stop: StopReason): boolean => CUT_STOPS.has(stop);

// ---- usage

type UsageContext = Pick<Context, 'note' | 'profile'>;

/**
 * Fields for cached tokens, in the prompt details or beside them: `cached_tokens` (Moonshot: at the top level),
 * `num_cached_tokens`, `precached_prompt_tokens` (GigaChat), `prompt_cache_hit_tokens` (DeepSeek),
 * `cache_read_input_tokens` (LiteLLM, Anthropic).
 */
const CACHE_READ = /^(num_|pre)?cached(_prompt)?_tokens$|_cache_hit_|^cache_read_/;

/**
 * Fields for tokens written to the cache: `cache_write_tokens`, `cache_creation_tokens` and
 * `cache_creation_input_tokens` (LiteLLM), `cached_creation_tokens` (new-api).
 */
const CACHE_WRITTEN = /^cached?_(write|creation)(_input)?_tokens$/;

const REASONING_TOKENS = 'reasoning_tokens';

/** Wire fields of the details; zeros are left out. */
const PROMPT_DETAILS = { audio_tokens: 'input_audio', image_tokens: 'input_image' } as const;

const COMPLETION_DETAILS = {
  audio_tokens: 'output_audio',
  image_tokens: 'output_image',
  accepted_prediction_tokens: 'accepted_prediction',
  rejected_prediction_tokens: 'rejected_prediction',
} as const;

/**
 * Decodes usage. `prompt_tokens` includes cached tokens and `completion_tokens` reasoning tokens, like the canonical
 * counts.
 */
export function decodeUsage(raw: JsonObject, { note, profile }: UsageContext): CanonicalUsage {
  const prompt = objectOrEmpty(raw['prompt_tokens_details'] ?? raw['input_tokens_details']);
  const completion = objectOrEmpty(raw['completion_tokens_details'] ?? raw['output_tokens_details']);
  const reported = largest(CACHE_READ, prompt, raw);
  const written = largest(CACHE_WRITTEN, prompt, raw);
  const reasoned = toCount(completion[REASONING_TOKENS]) ?? toCount(raw[REASONING_TOKENS]);
  const counted = toCount(raw['prompt_tokens']);
  let input = counted || toCount(raw['input_tokens']) || 0;
  let output = toCount(raw['completion_tokens']) || toCount(raw['output_tokens']) || 0;
  const isCounted = input + output > 0;
  // Anthropic's counts exclude cached tokens.
  if (!counted && isSet(raw['cache_read_input_tokens'] ?? raw['cache_creation_input_tokens']))
    input += (reported ?? 0) + (written ?? 0);
  const total = toCount(raw['total_tokens']);
  const { read, outside: excluded, isUncertain } = fitCached(reported, { input, output, total }, note);
  input += excluded;
  // Tokens that only the total includes: reasoning (xAI, Gemini's compatible endpoint) or audio of the prompt
  // (Mistral).
  const outside = isCounted ? Math.max(0, (total ?? 0) - input - output) : 0;
  const additive = profile?.reasoning_additive;
  if (isSet(raw['prompt_audio_seconds'])) input += outside;
  else if (additive !== false) output += outside || (additive && reasoned) || 0;
  const isOver = additive === undefined && reasoned !== undefined && reasoned > output;
  if (isOver) noteUsage(note, REASONING_TOKENS, reasoned, output, 'usage is uncertain');
  const reasoning = isOver ? reasoned : limitToWhole(reasoned, output, REASONING_TOKENS, note);
  const details = { ...readDetails(prompt, PROMPT_DETAILS), ...readDetails(completion, COMPLETION_DETAILS) };
  return {
    input_tokens: input,
    output_tokens: output,
    ...(read !== undefined && { cache_read_tokens: read }),
    ...(written !== undefined && { cache_creation_tokens: written }),
    ...(reasoning !== undefined && { reasoning_tokens: reasoning }),
    ...(countKeys(details) > 0 && { details }),
    ...((isOver || isUncertain) && { uncertain: true }),
    extensions: { 'openai-chat': raw },
  };
}

/** Usage that came in a chunk with choices, as Mistral sends it. Its clients fail on a chunk without choices. */
const BESIDE_CHOICES = /* @__PURE__ */ new WeakSet<object>();

/** Marks the usage of a stream as sent beside its choices. */
export const markBesideChoices = (raw: JsonObject): unknown => BESIDE_CHOICES.add(raw);

/** Whether the usage was sent beside choices, so that every client of the server can read it there. */
export const isBesideChoices = ({ extensions }: CanonicalUsage): boolean => {
  const raw = extensions?.['openai-chat'];
  return raw !== undefined && BESIDE_CHOICES.has(raw);
};

/** The largest value of the matching fields: relays fill one and set the others to 0. */
function largest(names: RegExp, ...sources: readonly JsonObject[]): number | undefined {
  let most: number | undefined;
  for (const source of sources)
    for (const key in source) if (names.test(key)) most = Math.max(most ?? 0, toCount(source[key]) ?? 0);
  return most;
}

function readDetails(source: JsonObject, fields: Record<string, keyof UsageDetails>): UsageDetails {
  const details: UsageDetails = {};
  for (const [wire, name] of Object.entries(fields)) {
    const count = toCount(source[wire]);
    if (count) details[name] = count;
  }
  return details;
}

/**
 * Encodes usage over the original, so that unknown counts survive. The details are always objects, because clients read
 * them unchecked.
 */
export function encodeUsage({ extensions, details = {}, ...usage }: CanonicalUsage): JsonObject {
  const raw = objectOrEmpty(extensions?.['openai-chat']);
  const input = Math.max(0, usage.input_tokens);
  const output = Math.max(0, usage.output_tokens);
  const { cache_read_tokens: read = 0, cache_creation_tokens: written, reasoning_tokens: reasoning = 0 } = usage;
  return {
    ...raw,
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: {
      ...objectOrEmpty(raw['prompt_tokens_details']),
      ...encodeDetails(details, PROMPT_DETAILS),
      cached_tokens: Math.min(Math.max(0, read), input),
      ...(written !== undefined && { cache_write_tokens: Math.max(0, written) }),
    },
    completion_tokens_details: {
      ...objectOrEmpty(raw['completion_tokens_details']),
      ...encodeDetails(details, COMPLETION_DETAILS),
      reasoning_tokens: Math.min(Math.max(0, reasoning), output),
    },
  };
}

function encodeDetails(details: UsageDetails, fields: Record<string, keyof UsageDetails>): JsonObject {
  const entries = Object.entries(fields).map(([wire, name]) => [wire, details[name]] as const);
  return Object.fromEntries(entries.filter(([, count]) => count !== undefined));
}
