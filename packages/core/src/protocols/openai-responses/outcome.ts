/** How a response ends, both directions: errors, stop reasons, usage. */

import type { CanonicalUsage, StopReason } from '../../canonical/message.ts';
import { type CanonicalError, type ErrorCode, findSocketErrorCode, type Note, ownError } from '../../canonical/notes.ts';
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
import { fitCached, limitToWhole, objectOrEmpty, toCount } from '../../codec/read.ts';
import { noteApproximated } from '../../codec/report.ts';
import { getOwn, isObject, type JsonObject } from '../../json/json.ts';
import { PROTOCOL } from './wire.ts';

// ---- errors

/**
 * Finds the error of a payload: nested in `error` (the live API), flat (the SDK types), a string beside a `code` (xAI),
 * or FastAPI's `detail`.
 */
export function findError(payload: JsonObject): unknown {
  const nested = payload['error'];
  if (isObject(nested)) return nested;
  return typeof nested === 'string' ? { ...payload, message: nested } : (findBareError(payload) ?? payload);
}

/** Decodes an error object of any shape. */
export function decodeError(error: unknown): CanonicalError {
  const body = errorBody(error);
  // In the flat form `type` is the event name.
  return decodeWireError('openai-responses', body, body['type'] === 'error' ? null : body['type']);
}

/** Decodes `response.failed` and `status: "cancelled"`, which may not have a cause. */
export function decodeFailure(status: string, error: unknown): CanonicalError {
  if (isObject(error) || typeof error === 'string') return decodeError(error);
  if (status === 'cancelled') return ownError('response_failed', 'CANCELLED', 'the response was cancelled');
  return ownError('response_failed', 'UPSTREAM_ERROR', 'the response failed without an error message');
}

/** Marks an error as reported by the server, not caused by an early end of the stream. */
export const markTerminal = (error: CanonicalError): CanonicalError => ({
  ...error,
  details: { ...error.details, terminal: true },
});

/** Decodes an error response of any shape. */
export function decodeErrorReply(reply: WireReply, context: CodecContext): CanonicalError {
  return addReplyFacts(decodeErrorBody(reply.body, reply.status, context), reply, PROTOCOL);
}

/**
 * Decodes the error of a body that is not a response: `{error}`, `{detail}`, `[{error}]`, JSON in a string, HTML,
 * nothing.
 */
export function decodeErrorBody(body: unknown, status?: number, context?: CodecContext): CanonicalError {
  const value = errorValue(body);
  return decodeError(isObject(value) ? findError(value) : { message: describeTextBody(value, status, context) });
}

/** Encodes an error response; SDKs choose the exception by HTTP status, so status and body must match. */
export function encodeError(error: CanonicalError, _context: CodecContext): WireReply {
  return { status: findStatus(error), headers: encodeOpenaiHeaders(error), body: { error: encodeErrorObject(error) } };
}

const INVALID = 'invalid_request_error';

const INVALID_PROMPT = 'invalid_prompt';

const SERVER = 'server_error';

interface WireError {
  status: number;
  type: string;
  /** A code of OpenAI, which clients switch on. */
  code: string | null;
  /** The `response.error.code`, for which the type has few values. */
  failure?: string;
}

const WIRE_ERRORS: Record<ErrorCode, WireError> = {
  INVALID_INPUT: { status: 400, type: INVALID, code: 'invalid_value', failure: INVALID_PROMPT },
  MISSING_REQUIRED_FIELD: { status: 400, type: INVALID, code: 'missing_required_parameter', failure: INVALID_PROMPT },
  INCOMPATIBLE_FEATURE: { status: 400, type: INVALID, code: 'unsupported_value', failure: INVALID_PROMPT },
  TOOL_CALL_PARSE_ERROR: { status: 400, type: INVALID, code: 'tool_use_failed' },
  JSON_PARSE_ERROR: { status: 400, type: INVALID, code: 'invalid_json', failure: INVALID_PROMPT },
  // Codex compacts the conversation on this code.
  CONTEXT_LENGTH: { status: 400, type: INVALID, code: 'context_length_exceeded', failure: 'context_length_exceeded' },
  CONTENT_POLICY: { status: 400, type: INVALID, code: 'content_policy_violation', failure: INVALID_PROMPT },
  // The live API sends invalid_request_error for 401 and 403.
  AUTHENTICATION: { status: 401, type: INVALID, code: 'invalid_api_key' },
  PERMISSION: { status: 403, type: INVALID, code: null },
  // Sent by the live API, although the type does not list it.
  BILLING: { status: 429, type: 'insufficient_quota', code: 'insufficient_quota', failure: 'insufficient_quota' },
  NOT_FOUND: { status: 404, type: INVALID, code: 'model_not_found' },
  UNSUPPORTED_INTERFACE: { status: 404, type: INVALID, code: 'unknown_url' },
  CONFLICT: { status: 409, type: INVALID, code: null },
  PAYLOAD_TOO_LARGE: { status: 413, type: INVALID, code: 'request_too_large' },
  RATE_LIMIT: { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded', failure: 'rate_limit_exceeded' },
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
  if (status === 402 && upstream?.protocol === PROTOCOL) return status;
  return FOREIGN_STATUS[status] ?? status;
}

/** The `error` object of an error response. */
function encodeErrorObject(error: CanonicalError): JsonObject {
  const { type, code } = WIRE_ERRORS[error.code];
  const own = error.upstream?.protocol === PROTOCOL ? error.upstream : undefined;
  return {
    ...objectOrEmpty(own?.body),
    message: error.message,
    type: own?.type ?? type,
    param: error.param ?? null,
    // A number is a status, but clients expect a word.
    code: typeof own?.code === 'string' || own?.code === null ? own.code : readWireCode(error, code),
  };
}

/** The gateway sets the code of errors that only this protocol has, such as `previous_response_not_found`. */
function readWireCode({ details }: CanonicalError, usual: string | null): string | null {
  const code = details?.['wire_code'];
  return typeof code === 'string' || code === null ? code : usual;
}

/** The error of an `error` event. If the connection broke, the code is the system's error code, as in chat. */
export function encodeStreamError(error: CanonicalError): JsonObject {
  const object = encodeErrorObject(error);
  const code = findSocketErrorCode(error);
  return code === undefined ? object : { ...object, code };
}

/** The `response.error` of a failed response. */
export function encodeFailure(error: CanonicalError): JsonObject {
  const own = error.upstream?.protocol === PROTOCOL ? error.upstream.code : undefined;
  return { code: typeof own === 'string' ? own : (WIRE_ERRORS[error.code].failure ?? SERVER), message: error.message };
}

// ---- stop reasons

/** Stop reasons by `incomplete_details.reason`. */
const STOP_REASONS: Record<string, StopReason> = {
  max_output_tokens: 'max_tokens',
  max_tokens: 'max_tokens',
  length: 'max_tokens',
  max_messages: 'max_tokens',
  content_filter: 'content_filter',
  // The conversation continued with other input while this response was generated.
  steered: 'end_turn',
};

/**
 * The stop reason of a finished response. An incomplete one without a reason counts as cut: as `end_turn` it would
 * become `tool_use`, and clients would run a truncated call.
 */
export function decodeStop(status: string, reason: unknown): StopReason {
  if (status !== 'incomplete') return 'end_turn';
  return getOwn(STOP_REASONS, reason) ?? 'max_tokens';
}

/** How a response ends; `incomplete` has a reason. */
export type Ending = { status: 'completed' } | { status: 'incomplete'; reason: 'max_output_tokens' | 'content_filter' };

const FILTERED: Ending = { status: 'incomplete', reason: 'content_filter' };

const COMPLETED: Ending = { status: 'completed' };

const CUT: Ending = { status: 'incomplete', reason: 'max_output_tokens' };

/** `error` is not here: such a response has failed. */
const WIRE_STOPS: Record<Exclude<StopReason, 'error'>, Ending> = {
  end_turn: COMPLETED,
  stop_sequence: COMPLETED,
  tool_use: COMPLETED,
  pause_turn: COMPLETED,
  refusal: COMPLETED,
  max_tokens: CUT,
  context_window: CUT,
  content_filter: FILTERED,
};

/**
 * How a response with this stop reason ends. `hasRefusal`: the message has a refusal part; other text is unfinished.
 */
export const encodeStop = (stop: Exclude<StopReason, 'error'>, hasRefusal: boolean): Ending =>
  stop === 'refusal' && !hasRefusal ? FILTERED : WIRE_STOPS[stop];

// ---- usage

/**
 * Decodes usage. `input_tokens` includes cached tokens and `output_tokens` reasoning tokens, like the canonical counts.
 */
export function decodeUsage(raw: JsonObject, note: (note: Note) => void): CanonicalUsage {
  const input = objectOrEmpty(raw['input_tokens_details']);
  const output = objectOrEmpty(raw['output_tokens_details']);
  const counted = toCount(raw['input_tokens']) ?? toCount(raw['prompt_tokens']) ?? 0;
  const output_tokens = toCount(raw['output_tokens']) ?? toCount(raw['completion_tokens']) ?? 0;
  const counts = { input: counted, output: output_tokens, total: toCount(raw['total_tokens']) };
  const { read, outside, isUncertain } = fitCached(toCount(input['cached_tokens']), counts, note);
  const input_tokens = counted + outside;
  const written = limitToWhole(toCount(input['cache_write_tokens']), input_tokens - (read ?? 0), 'cache_write_tokens', note);
  const reasoning = limitToWhole(toCount(output['reasoning_tokens']), output_tokens, 'reasoning_tokens', note);
  return {
    input_tokens,
    output_tokens,
    ...(read !== undefined && { cache_read_tokens: read }),
    ...(written !== undefined && { cache_creation_tokens: written }),
    ...(reasoning !== undefined && { reasoning_tokens: reasoning }),
    ...(isUncertain && { uncertain: true }),
    extensions: { 'openai-responses': raw },
  };
}

/**
 * Encodes the usage of a finished response; zeros if the upstream sent none, because the AI SDK treats an end without
 * usage as unfinished, and agents retry forever.
 */
export function encodeFinalUsage(usage: CanonicalUsage | undefined, context: CodecContext): JsonObject {
  if (usage) return encodeUsage(usage);
  const message = 'the upstream sent no usage, which OpenAI Responses requires; sent as zeros';
  noteApproximated(context, { path: '/usage', feature: 'usage', message });
  return encodeUsage({ input_tokens: 0, output_tokens: 0 });
}

/** Encodes usage over the original, so that unknown counts survive. The details are required objects. */
export function encodeUsage({ extensions, ...usage }: CanonicalUsage): JsonObject {
  const raw = objectOrEmpty(extensions?.['openai-responses']);
  const input = Math.max(0, usage.input_tokens);
  const output = Math.max(0, usage.output_tokens);
  const read = Math.min(Math.max(0, usage.cache_read_tokens ?? 0), input);
  const written = Math.min(Math.max(0, usage.cache_creation_tokens ?? 0), input - read);
  const reasoning = Math.min(Math.max(0, usage.reasoning_tokens ?? 0), output);
  return {
    ...raw,
    input_tokens: input,
    input_tokens_details: { ...objectOrEmpty(raw['input_tokens_details']), cached_tokens: read, cache_write_tokens: written },
    output_tokens: output,
    output_tokens_details: { ...objectOrEmpty(raw['output_tokens_details']), reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}
