import type { JsonObject } from '../../accumulate/overlay.ts';
import { brokenOffBy, type CanonicalError, type ErrorCode } from '../../canonical/errors.ts';
import type { CodecContext, HeaderBag, WireReply } from '../shared/codec.ts';
import { objectOf } from '../shared/read.ts';
import { PROTOCOL } from './kept.ts';

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

const TO_WIRE: Record<ErrorCode, WireError> = {
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
  const { type, code } = TO_WIRE[error.code];
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
  return { code: typeof own === 'string' ? own : (TO_WIRE[error.code].failure ?? SERVER), message: error.message };
}

function statusOf({ code, http_status: status, upstream }: CanonicalError): number {
  const own = TO_WIRE[code].status;
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
