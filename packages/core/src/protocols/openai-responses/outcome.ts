import type { CanonicalUsage, StopReason } from '../../canonical/message.ts';
import { brokenOffBy, type CanonicalError, type ErrorCode, type Note, ownError } from '../../canonical/notes.ts';
import { decodeWireError, errorBody, errorValue, messageOfText, withReply } from '../../codec/errors.ts';
import type { CodecContext, HeaderBag, WireReply } from '../../codec/protocol.ts';
import { cachedOutside, countOf, objectOf, within } from '../../codec/read.ts';
import { approximate } from '../../codec/report.ts';
import { getOwn, isObject, type JsonObject } from '../../json/json.ts';
import { PROTOCOL } from './wire.ts';

/**
 * The error that a payload carries: nested in `error` (as the live API sends it), flat (as the SDK types it), a string beside a `code`
 * (xAI), or FastAPI's `detail`.
 */
export function findError(payload: JsonObject): unknown {
  const nested = payload['error'];
  if (isObject(nested)) return nested;
  return typeof nested === 'string' ? { ...payload, message: nested } : payload;
}

export function decodeError(error: unknown): CanonicalError {
  const body = errorBody(error);
  // In the flat form `type` is the name of the event.
  return decodeWireError('openai-responses', body, body['type'] === 'error' ? null : body['type']);
}

/** `response.failed` and `status: "cancelled"`, which may say nothing about the cause. */
export function decodeFailure(status: string, error: unknown): CanonicalError {
  if (isObject(error) || typeof error === 'string') return decodeError(error);
  if (status === 'cancelled') return ownError('response_failed', 'CANCELLED', 'the response was cancelled');
  return ownError('response_failed', 'UPSTREAM_ERROR', 'the response failed; the server did not say why');
}

/** Whether the server itself said that the response is over: a failure, but not an early end of the stream. */
export const asTerminal = (error: CanonicalError): CanonicalError => ({
  ...error,
  details: { ...error.details, terminal: true },
});

/** An error answer, whatever shape it has. */
export function decodeErrorReply(reply: WireReply, context: CodecContext): CanonicalError {
  return withReply(decodeErrorBody(reply.body, reply.status, context), reply, PROTOCOL);
}

/** The error of a body that was to be a response and is none: `{error}`, `{detail}`, `[{error}]`, JSON in a string, HTML, nothing. */
export function decodeErrorBody(body: unknown, status?: number, context?: CodecContext): CanonicalError {
  const value = errorValue(body);
  return decodeError(isObject(value) ? findError(value) : { message: messageOfText(value, status, context) });
}

interface WireError {
  status: number;
  type: string;
  /** Clients switch on these: they are OpenAI's own words. */
  code: string | null;
  /** What `response.error.code` says: the few words that a failed response has. */
  failure?: string;
}

const INVALID = 'invalid_request_error';

const SERVER = 'server_error';

const PROMPT = 'invalid_prompt';

const WIRE_ERRORS: Record<ErrorCode, WireError> = {
  INVALID_INPUT: { status: 400, type: INVALID, code: 'invalid_value', failure: PROMPT },
  MISSING_REQUIRED_FIELD: { status: 400, type: INVALID, code: 'missing_required_parameter', failure: PROMPT },
  INCOMPATIBLE_FEATURE: { status: 400, type: INVALID, code: 'unsupported_value', failure: PROMPT },
  TOOL_CALL_PARSE_ERROR: { status: 400, type: INVALID, code: 'tool_use_failed' },
  JSON_PARSE_ERROR: { status: 400, type: INVALID, code: 'invalid_json', failure: PROMPT },
  // Codex knows this one in a failed response, and shortens the conversation.
  CONTEXT_LENGTH: { status: 400, type: INVALID, code: 'context_length_exceeded', failure: 'context_length_exceeded' },
  CONTENT_POLICY: { status: 400, type: INVALID, code: 'content_policy_violation', failure: PROMPT },
  // The live API sends invalid_request_error for 401 and 403.
  AUTHENTICATION: { status: 401, type: INVALID, code: 'invalid_api_key' },
  PERMISSION: { status: 403, type: INVALID, code: null },
  // Live, although the type does not list it.
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

/** Statuses that this protocol does not have, or has for something else: Anthropic's overload, and payment due. */
const FOREIGN_STATUS: Record<number, number> = { 529: 503, 402: 429 };

/** SDKs choose the exception by the HTTP status, so that it and the body agree. */
export function encodeError(error: CanonicalError, _context: CodecContext): WireReply {
  return { status: statusOf(error), headers: headersOf(error), body: { error: encodeErrorObject(error) } };
}

/** The error in the `error` event of a stream: the code of a response that broke off is the system's, as in Chat. */
export function encodeStreamError(error: CanonicalError): JsonObject {
  const object = encodeErrorObject(error);
  const code = brokenOffBy(error);
  return code === undefined ? object : { ...object, code };
}

/** The error in the body of a response. */
function encodeErrorObject(error: CanonicalError): JsonObject {
  const { type, code } = WIRE_ERRORS[error.code];
  const own = error.upstream?.protocol === PROTOCOL ? error.upstream : undefined;
  return {
    ...objectOf(own?.body),
    message: error.message,
    type: own?.type ?? type,
    param: error.param ?? null,
    // Numbers are statuses; the word is what clients read.
    code: typeof own?.code === 'string' || own?.code === null ? own.code : code,
  };
}

/** `response.error` of a response that has failed. */
export function encodeFailure(error: CanonicalError): JsonObject {
  const own = error.upstream?.protocol === PROTOCOL ? error.upstream.code : undefined;
  return { code: typeof own === 'string' ? own : (WIRE_ERRORS[error.code].failure ?? SERVER), message: error.message };
}

function statusOf({ code, http_status: status, upstream }: CanonicalError): number {
  const own = WIRE_ERRORS[code].status;
  if (status === undefined || status < 400 || status > 599) return own;
  if (status === 402 && upstream?.protocol === PROTOCOL) return status;
  return FOREIGN_STATUS[status] ?? status;
}

function headersOf({ retry_after_ms: wait, request_id: id, details }: CanonicalError): HeaderBag {
  const retry = details?.['should_retry'];
  return {
    'content-type': 'application/json',
    ...(wait !== undefined && { 'retry-after': String(Math.ceil(wait / 1000)), 'retry-after-ms': String(wait) }),
    ...(id !== undefined && { 'x-request-id': id }),
    ...(typeof retry === 'string' && { 'x-should-retry': retry }),
  };
}

/** `incomplete_details.reason`. */
const FROM_REASON: Record<string, StopReason> = {
  max_output_tokens: 'max_tokens',
  max_tokens: 'max_tokens',
  length: 'max_tokens',
  max_messages: 'max_tokens',
  content_filter: 'content_filter',
  // The conversation went on with other input while this answer was being written.
  steered: 'end_turn',
};

/**
 * The stop reason of a finished response. An incomplete one that does not say why counts as cut: as `end_turn` it would be promoted to
 * `tool_use`, and a call cut in its middle would be run.
 */
export function decodeStop(status: string, reason: unknown): StopReason {
  if (status !== 'incomplete') return 'end_turn';
  return getOwn(FROM_REASON, reason) ?? 'max_tokens';
}

/** How a response ends: `incomplete` says why. */
export type Ending = { status: 'completed' } | { status: 'incomplete'; reason: 'max_output_tokens' | 'content_filter' };

const COMPLETED: Ending = { status: 'completed' };

const CUT: Ending = { status: 'incomplete', reason: 'max_output_tokens' };

const FILTERED: Ending = { status: 'incomplete', reason: 'content_filter' };

/** `error` has no ending of its own: such a response has failed. */
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

/** `saysRefusal`: the message has a part that says so. Any other text is what the model had said when it was stopped, not an answer. */
export const encodeStop = (stop: Exclude<StopReason, 'error'>, saysRefusal: boolean): Ending =>
  stop === 'refusal' && !saysRefusal ? FILTERED : WIRE_STOPS[stop];

/** `input_tokens` includes what was cached, `output_tokens` what was reasoned: the canonical counts do too. */
export function decodeUsage(raw: JsonObject, note: (note: Note) => void): CanonicalUsage {
  const input = objectOf(raw['input_tokens_details']);
  const output = objectOf(raw['output_tokens_details']);
  const counted = countOf(raw['input_tokens']) ?? countOf(raw['prompt_tokens']) ?? 0;
  const cached = countOf(input['cached_tokens']);
  const outside = cachedOutside(cached, counted, note);
  const input_tokens = counted + outside;
  const output_tokens = countOf(raw['output_tokens']) ?? countOf(raw['completion_tokens']) ?? 0;
  const written = within(countOf(input['cache_write_tokens']), input_tokens - (cached ?? 0), 'cache_write_tokens', note);
  const reasoning = within(countOf(output['reasoning_tokens']), output_tokens, 'reasoning_tokens', note);
  return {
    input_tokens,
    output_tokens,
    ...(cached !== undefined && { cache_read_tokens: cached }),
    ...(written !== undefined && { cache_creation_tokens: written }),
    ...(reasoning !== undefined && { reasoning_tokens: reasoning }),
    ...(outside > 0 && { uncertain: true }),
    extensions: { 'openai-responses': raw },
  };
}

/**
 * The usage of an answer that has come to its end. Who told none gets zeros: the AI SDK takes an end without counts for none, and agents on it ask
 * again, for ever.
 */
export function encodeFinalUsage(usage: CanonicalUsage | undefined, context: CodecContext): JsonObject {
  if (usage) return encodeUsage(usage);
  const message = 'the upstream told no usage; where OpenAI Responses needs one, zeros stand for it';
  approximate(context, { path: '/usage', feature: 'usage', message });
  return encodeUsage({ input_tokens: 0, output_tokens: 0 });
}

/** Over what the wire had, so that counts nobody knows survive. The details are required objects. */
export function encodeUsage({ extensions, ...usage }: CanonicalUsage): JsonObject {
  const raw = objectOf(extensions?.['openai-responses']);
  const input = Math.max(0, usage.input_tokens);
  const output = Math.max(0, usage.output_tokens);
  const read = Math.min(Math.max(0, usage.cache_read_tokens ?? 0), input);
  const written = Math.min(Math.max(0, usage.cache_creation_tokens ?? 0), input - read);
  const reasoning = Math.min(Math.max(0, usage.reasoning_tokens ?? 0), output);
  return {
    ...raw,
    input_tokens: input,
    input_tokens_details: { ...objectOf(raw['input_tokens_details']), cached_tokens: read, cache_write_tokens: written },
    output_tokens: output,
    output_tokens_details: { ...objectOf(raw['output_tokens_details']), reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}
