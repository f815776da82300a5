import { isObject, type JsonObject, parseJson } from '../../accumulate/overlay.ts';
import type { CanonicalError, ErrorCode } from '../../canonical/errors.ts';
import type { CodecContext, HeaderBag, WireReply } from '../shared/codec.ts';
import { codeOfStatus, errorBody } from '../shared/wire-error.ts';
import { decodeError, findError } from './errors.ts';

/** How much of a page or a text is shown as the message of an error. */
const MAX_TEXT = 500;

/** An error answer; the HTTP status decides where the body says nothing. */
export function decodeErrorReply({ status, headers, body }: WireReply, _context: CodecContext): CanonicalError {
  const error = decodeError(errorObject(body, status));
  const http = status >= 400 ? status : error.http_status;
  return {
    ...error,
    code: refineByStatus(error.code, http),
    ...(http !== undefined && { http_status: http }),
    ...headerFacts(headers, error.retry_after_ms),
    upstream: { protocol: 'gemini', ...error.upstream, ...(status >= 400 && { status }) },
  };
}

/** The error of a body that was to be an answer and is none. */
export const decodeErrorBody = (body: unknown): CanonicalError => decodeError(errorObject(body, undefined));

/** A vague word yields to a status that says more. */
function refineByStatus(code: ErrorCode, status: number | undefined): ErrorCode {
  const isVague = code === 'INVALID_INPUT' || code === 'UPSTREAM_ERROR';
  return (isVague && codeOfStatus(status)) || code;
}

/** One object with a message, out of `{error}`, the list `[{error}]` of a stream that did not begin, JSON in a string, a page, nothing. */
function errorObject(body: unknown, status: number | undefined): JsonObject {
  const value = typeof body === 'string' ? (parseJson(body) ?? body) : body;
  const first: unknown = Array.isArray(value) ? value[0] : value;
  if (!isObject(first)) return { message: messageOfText(first, status) };
  return errorBody(findError(first, 'error'));
}

function messageOfText(value: unknown, status: number | undefined): string {
  const text = typeof value === 'string' ? value : '';
  const isPage = /^\s*<[!?a-z]/i.test(text);
  // The front end answers in HTML: its title says it best.
  const title = isPage ? (/<title[^>]*>([^<]{1,300})</i.exec(text.slice(0, 10_000))?.[1] ?? '') : text;
  const shown = title.replace(/\s+/g, ' ').trim().slice(0, MAX_TEXT);
  return shown || `the server answered${status === undefined ? '' : ` ${status}`} without saying what went wrong`;
}

/** When to come back, unless the body said it. A `retry-after` that is a date needs a clock and is left out. */
function headerFacts(headers: HeaderBag, said: number | undefined): Partial<CanonicalError> {
  const seconds = Number(headers['retry-after'] || Number.NaN);
  const id = headers['x-request-id'];
  return {
    ...(said === undefined && Number.isFinite(seconds) && seconds >= 0 && { retry_after_ms: seconds * 1000 }),
    ...(id !== undefined && { request_id: id }),
  };
}
