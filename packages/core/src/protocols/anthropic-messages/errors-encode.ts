import type { JsonObject } from '../../accumulate/overlay.ts';
import { brokenOffBy, type CanonicalError, type ErrorCode } from '../../canonical/errors.ts';
import type { CodecContext, HeaderBag, WireReply } from '../shared/codec.ts';
import { objectOf } from '../shared/read.ts';
import { LIMIT_HEADER } from './errors-decode.ts';

interface WireError {
  status: number;
  type: string;
}

const INVALID: WireError = { status: 400, type: 'invalid_request_error' };
const NOT_FOUND: WireError = { status: 404, type: 'not_found_error' };

const TO_WIRE: Record<ErrorCode, WireError> = {
  INVALID_INPUT: INVALID,
  MISSING_REQUIRED_FIELD: INVALID,
  INCOMPATIBLE_FEATURE: INVALID,
  TOOL_CALL_PARSE_ERROR: INVALID,
  JSON_PARSE_ERROR: INVALID,
  CONTEXT_LENGTH: INVALID,
  CONTENT_POLICY: INVALID,
  AUTHENTICATION: { status: 401, type: 'authentication_error' },
  BILLING: { status: 402, type: 'billing_error' },
  PERMISSION: { status: 403, type: 'permission_error' },
  NOT_FOUND,
  UNSUPPORTED_INTERFACE: NOT_FOUND,
  CONFLICT: { status: 409, type: 'invalid_request_error' },
  PAYLOAD_TOO_LARGE: { status: 413, type: 'request_too_large' },
  RATE_LIMIT: { status: 429, type: 'rate_limit_error' },
  CANCELLED: { status: 499, type: 'invalid_request_error' },
  INTERNAL: { status: 500, type: 'api_error' },
  UPSTREAM_ERROR: { status: 502, type: 'api_error' },
  STREAM_TRUNCATED: { status: 502, type: 'api_error' },
  TIMEOUT: { status: 504, type: 'timeout_error' },
  OVERLOADED: { status: 529, type: 'overloaded_error' },
};

const isOwn = ({ upstream }: CanonicalError): boolean => upstream?.protocol === 'anthropic-messages';

/** SDKs choose the exception by the HTTP status, so that it and the body agree. */
export function encodeError(error: CanonicalError, _context: CodecContext): WireReply {
  return { status: statusOf(error), headers: headersOf(error), body: encodeErrorBody(error) };
}

/** The payload of an error event. Of the types that a stream can fail with, this is the one that opencode, pi and Qwen Code retry. */
export const encodeErrorEvent = (error: CanonicalError): JsonObject =>
  encodeErrorBody(error, brokenOffBy(error) && TO_WIRE.OVERLOADED.type);

/** The body of an error response. */
function encodeErrorBody(error: CanonicalError, type = TO_WIRE[error.code].type): JsonObject {
  const upstream = isOwn(error) ? error.upstream : undefined;
  return {
    type: 'error',
    error: {
      ...objectOf(upstream?.body),
      type: upstream?.type ?? type,
      message: messageOf(error),
    },
    request_id: error.request_id ?? null,
  };
}

const TOO_LONG = 'prompt is too long';

/** Clients find out by these words that they have to shorten the conversation. */
function messageOf(error: CanonicalError): string {
  const { code, message } = error;
  const isUnsaid = code === 'CONTEXT_LENGTH' && !isOwn(error) && !message.toLowerCase().includes(TOO_LONG);
  return isUnsaid ? `${TOO_LONG}: ${message}` : message;
}

/** 529 is the overload that clients wait for (P127); what is to be paid is 402, where OpenAI says 429. */
function statusOf(error: CanonicalError): number {
  const { code, http_status: status } = error;
  const own = TO_WIRE[code].status;
  if (status === undefined || status < 400 || status > 599) return own;
  if (isOwn(error)) return status;
  return code === 'OVERLOADED' || code === 'BILLING' ? own : status;
}

function headersOf(error: CanonicalError): HeaderBag {
  const { retry_after_ms: wait, request_id: id, details = {} } = error;
  const retry = details['should_retry'];
  return {
    'content-type': 'application/json',
    ...(isOwn(error) && limitsOf(details['rate_limits'])),
    ...(wait !== undefined && { 'retry-after': String(Math.ceil(wait / 1000)) }),
    ...(id !== undefined && { 'request-id': id }),
    ...(typeof retry === 'string' && { 'x-should-retry': retry }),
  };
}

function limitsOf(limits: unknown): HeaderBag {
  const entries = Object.entries(objectOf(limits));
  return Object.fromEntries(
    entries.flatMap(([name, value]) => (name.startsWith(LIMIT_HEADER) && typeof value === 'string' ? [[name, value]] : [])),
  );
}
