import { isObject, type JsonObject, parseJson } from '../../accumulate/overlay.ts';
import type { CanonicalError, ErrorCode } from '../../canonical/errors.ts';
import type { CodecContext, HeaderBag, WireReply } from '../shared/codec.ts';
import { codeOfStatus } from '../shared/wire-error.ts';
import { decodeError } from './errors.ts';

/** How much of a page or a text is shown as the message of an error. */
const MAX_TEXT = 500;

/** An error answer, whatever shape it has; the HTTP status decides where the body says nothing. */
export function decodeErrorReply({ status, headers, body }: WireReply, _context: CodecContext): CanonicalError {
  const error = decodeErrorBody(body, status);
  const http = status >= 400 ? status : error.http_status;
  return {
    ...error,
    code: refineByStatus(error.code, http),
    ...(http !== undefined && { http_status: http }),
    ...headerFacts(headers, error),
    upstream: { protocol: 'anthropic-messages', ...error.upstream, ...(status >= 400 && { status }) },
  };
}

/** The error of a body that was to be something else: `{type:"error",error}`, JSON in a string, a page, a text, nothing. */
export function decodeErrorBody(body: unknown, status?: number): CanonicalError {
  const value = typeof body === 'string' ? (parseJson(body) ?? body) : body;
  return decodeError(isObject(value) ? value : textError(value, status));
}

function textError(value: unknown, status: number | undefined): JsonObject {
  const text = typeof value === 'string' ? plainText(value) : '';
  const said = status === undefined ? '' : ` ${status}`;
  return { message: text || `the server answered${said} without saying what went wrong` };
}

/** Gateways answer with pages; only their beginning is looked at. */
const plainText = (text: string): string =>
  text
    .slice(0, 8 * MAX_TEXT)
    .replace(/<(script|style|head)\b.*?<\/\1>/gis, ' ')
    .replace(/<[^<>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_TEXT);

/** `invalid_request_error` and `api_error` stand for anything: a status that says more wins. */
function refineByStatus(code: ErrorCode, status: number | undefined): ErrorCode {
  const isVague = code === 'INVALID_INPUT' || code === 'UPSTREAM_ERROR';
  return (isVague && codeOfStatus(status)) || code;
}

export const LIMIT_HEADER = 'anthropic-ratelimit-';

/** When to come back, and what the provider calls the request. A `retry-after` that is a date needs a clock and is left out. */
function headerFacts(headers: HeaderBag, { request_id: named }: CanonicalError): Partial<CanonicalError> {
  const seconds = Number(headers['retry-after'] || Number.NaN);
  const milliseconds = Number(headers['retry-after-ms'] || Number.NaN);
  const wait = Number.isFinite(milliseconds) ? milliseconds : seconds * 1000;
  const id = named ?? headers['request-id'] ?? headers['x-request-id'];
  const details = {
    ...(headers['x-should-retry'] !== undefined && { should_retry: headers['x-should-retry'] }),
    ...limitsOf(headers),
  };
  return {
    ...(Number.isFinite(wait) && wait >= 0 && { retry_after_ms: wait }),
    ...(id !== undefined && { request_id: id }),
    ...(Object.keys(details).length > 0 && { details }),
  };
}

function limitsOf(headers: HeaderBag): { rate_limits?: HeaderBag } {
  const limits = Object.entries(headers).filter(([name]) => name.startsWith(LIMIT_HEADER));
  return limits.length > 0 ? { rate_limits: Object.fromEntries(limits) } : {};
}
