import { isObject, type JsonObject, parseJson } from '../../accumulate/overlay.ts';
import type { CanonicalError, ErrorCode } from '../../canonical/errors.ts';
import type { CodecContext, HeaderBag, WireReply } from '../shared/codec.ts';
import { codeOfStatus } from '../shared/wire-error.ts';
import { decodeError, findError } from './errors.ts';
import { PROTOCOL } from './kept.ts';

/** How much of a page or a text is shown as the message of an error. */
const MAX_TEXT = 500;

/** An error answer, whatever shape it has; the HTTP status decides where the body says nothing. */
export function decodeErrorReply({ status, headers, body }: WireReply, _context: CodecContext): CanonicalError {
  const error = decodeError(errorObject(body, status));
  const http = status >= 400 ? status : error.http_status;
  return {
    ...error,
    code: refineByStatus(error.code, http),
    ...(http !== undefined && { http_status: http }),
    ...headerFacts(headers),
    upstream: { protocol: PROTOCOL, ...error.upstream, ...(status >= 400 && { status }) },
  };
}

/** The error of a body that was to be a response and is none. */
export const decodeErrorBody = (body: unknown): CanonicalError => decodeError(errorObject(body, undefined));

/** `invalid_request_error` and `server_error` stand for anything: a status that says more wins. */
function refineByStatus(code: ErrorCode, status: number | undefined): ErrorCode {
  const isVague = code === 'INVALID_INPUT' || code === 'UPSTREAM_ERROR';
  return (isVague && codeOfStatus(status)) || code;
}

/** One object with a message, out of `{error}`, `{detail}`, `[{error}]`, JSON in a string, HTML, nothing. */
function errorObject(body: unknown, status: number | undefined): JsonObject {
  const value = typeof body === 'string' ? (parseJson(body) ?? body) : body;
  const first: unknown = Array.isArray(value) ? value[0] : value;
  const error = isObject(first) ? findError(first) : undefined;
  return isObject(error) ? error : { message: messageOfText(first, status) };
}

function messageOfText(value: unknown, status: number | undefined): string {
  // A page of a proxy: its text, without the markup.
  const text =
    typeof value === 'string'
      ? value
          .slice(0, 8 * MAX_TEXT)
          .replace(/<[^<>]*>/g, ' ')
          .replace(/\s+/g, ' ')
          .trim()
      : '';
  if (text !== '') return text.slice(0, MAX_TEXT);
  return `the server answered${status === undefined ? '' : ` ${status}`} without saying what went wrong`;
}

/** When to come back, and what the provider calls the request. A `retry-after` that is a date needs a clock and is left out. */
function headerFacts(headers: HeaderBag): Partial<CanonicalError> {
  const milliseconds = Number(headers['retry-after-ms'] || Number.NaN);
  const seconds = Number(headers['retry-after'] || Number.NaN);
  const wait = Number.isFinite(milliseconds) ? milliseconds : seconds * 1000;
  const id = headers['x-request-id'] ?? headers['request-id'];
  const retry = headers['x-should-retry'];
  return {
    ...(Number.isFinite(wait) && wait >= 0 && { retry_after_ms: wait }),
    ...(id !== undefined && { request_id: id }),
    ...(retry !== undefined && { details: { should_retry: retry } }),
  };
}
