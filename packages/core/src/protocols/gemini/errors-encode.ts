import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalError, ErrorCode } from '../../canonical/errors.ts';
import type { CodecContext, HeaderBag, WireReply } from '../shared/codec.ts';
import { listOf, objectOf } from '../shared/read.ts';
import { camelObject } from './wire.ts';

interface WireStatus {
  code: number;
  /** A name of google.rpc.Code. */
  status: string;
}

const INVALID: WireStatus = { code: 400, status: 'INVALID_ARGUMENT' };
const INTERNAL: WireStatus = { code: 500, status: 'INTERNAL' };

const TO_WIRE: Record<ErrorCode, WireStatus> = {
  INVALID_INPUT: INVALID,
  MISSING_REQUIRED_FIELD: INVALID,
  INCOMPATIBLE_FEATURE: INVALID,
  TOOL_CALL_PARSE_ERROR: INVALID,
  JSON_PARSE_ERROR: INVALID,
  CONTEXT_LENGTH: INVALID,
  CONTENT_POLICY: INVALID,
  AUTHENTICATION: { code: 401, status: 'UNAUTHENTICATED' },
  BILLING: { code: 400, status: 'FAILED_PRECONDITION' },
  PERMISSION: { code: 403, status: 'PERMISSION_DENIED' },
  NOT_FOUND: { code: 404, status: 'NOT_FOUND' },
  UNSUPPORTED_INTERFACE: { code: 404, status: 'NOT_FOUND' },
  CONFLICT: { code: 409, status: 'ABORTED' },
  PAYLOAD_TOO_LARGE: { code: 413, status: 'INVALID_ARGUMENT' },
  RATE_LIMIT: { code: 429, status: 'RESOURCE_EXHAUSTED' },
  CANCELLED: { code: 499, status: 'CANCELLED' },
  INTERNAL,
  UPSTREAM_ERROR: INTERNAL,
  STREAM_TRUNCATED: INTERNAL,
  OVERLOADED: { code: 503, status: 'UNAVAILABLE' },
  TIMEOUT: { code: 504, status: 'DEADLINE_EXCEEDED' },
};

/** Statuses that Google does not have, or has for something else: Anthropic's overload, and payment due. */
const FOREIGN_STATUS: Readonly<Record<number, number>> = { 529: 503, 402: 400 };

/** The SDKs choose the exception by `error.code`, others by the HTTP status: both are the same. */
export function encodeError(error: CanonicalError, _context: CodecContext): WireReply {
  const body = encodeErrorBody(error);
  return { status: body.error.code, headers: headersOf(error), body };
}

/** `{error:{…}}`: the body of an error response, and the error in a stream. */
export function encodeErrorBody(error: CanonicalError): { error: WireStatus & JsonObject } {
  const upstream = error.upstream?.protocol === 'gemini' ? error.upstream : undefined;
  const kept = objectOf(upstream?.body);
  const details = detailsOf(error, listOf(kept['details']));
  return {
    error: {
      ...kept,
      code: codeOf(error),
      message: error.message,
      status: typeof kept['status'] === 'string' ? kept['status'] : TO_WIRE[error.code].status,
      ...(details.length > 0 && { details }),
    },
  };
}

function codeOf({ code, http_status: status }: CanonicalError): number {
  if (status === undefined || status < 400 || status > 599) return TO_WIRE[code].code;
  return FOREIGN_STATUS[status] ?? status;
}

const RPC = 'type.googleapis.com/google.rpc.';

/** What clients look into: when to come back, and whether it was the key. */
function detailsOf({ code, retry_after_ms: wait, upstream }: CanonicalError, kept: readonly unknown[]): unknown[] {
  const hasWait = kept.some((detail) => camelObject(detail)['retryDelay'] !== undefined);
  const isForeignKey = code === 'AUTHENTICATION' && upstream?.protocol !== 'gemini';
  return [
    ...kept,
    ...(isForeignKey ? [{ '@type': `${RPC}ErrorInfo`, reason: 'API_KEY_INVALID', domain: 'googleapis.com' }] : []),
    ...(wait !== undefined && !hasWait ? [{ '@type': `${RPC}RetryInfo`, retryDelay: `${wait / 1000}s` }] : []),
  ];
}

function headersOf({ retry_after_ms: wait, request_id: id }: CanonicalError): HeaderBag {
  return {
    'content-type': 'application/json; charset=UTF-8',
    ...(wait !== undefined && { 'retry-after': String(Math.ceil(wait / 1000)) }),
    ...(id !== undefined && { 'x-request-id': id }),
  };
}
