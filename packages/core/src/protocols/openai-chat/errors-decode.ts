import { isObject, type JsonObject, parseJson } from '../../accumulate/overlay.ts';
import type { CanonicalError, ErrorCode } from '../../canonical/errors.ts';
import type { CodecContext, HeaderBag, WireReply } from '../shared/codec.ts';
import { codeOfStatus, decodeWireError, errorBody } from '../shared/wire-error.ts';
import { findError } from './errors.ts';

/** How much of a page or a text is shown as the message of an error. */
const MAX_TEXT = 500;

/** An error answer of a compatible server, whatever shape it has; the HTTP status decides where the body says nothing. */
export function decodeErrorReply(reply: WireReply, _context: CodecContext): CanonicalError {
  const { status, headers } = reply;
  const body = errorObject(reply.body, status);
  const error = decodeWireError('openai-chat', body);
  const http = status >= 400 ? status : error.http_status;
  return {
    ...error,
    code: refineByStatus(error.code, http),
    ...(http !== undefined && { http_status: http }),
    ...headerFacts(headers),
    upstream: { protocol: 'openai-chat', ...error.upstream, ...(status >= 400 && { status }) },
  };
}

/** The error of a body that was to be a completion and is none. */
export function decodeErrorBody(body: unknown): CanonicalError {
  return decodeWireError('openai-chat', errorObject(body, undefined));
}

/** `invalid_request_error` and `server_error` stand for anything: a status that says more wins (401, 403, 404, 409, 413, 429). */
function refineByStatus(code: ErrorCode, status: number | undefined): ErrorCode {
  const isVague = code === 'INVALID_INPUT' || code === 'UPSTREAM_ERROR';
  return (isVague && codeOfStatus(status)) || code;
}

/** One object with a message, out of `{error}`, `{error:"text"}`, `{message}`, `{detail}`, `[{error}]`, JSON in a string, HTML, nothing. */
function errorObject(body: unknown, status: number | undefined): JsonObject {
  const value = typeof body === 'string' ? (parseJson(body) ?? body) : body;
  const first: unknown = Array.isArray(value) ? value[0] : value;
  if (!isObject(first)) return { message: messageOfText(first, status) };
  const error = findError(first, 'error');
  // xAI and Hugging Face write the text into `error` and what kind it is beside it.
  return typeof error === 'string' ? { ...first, message: error } : errorBody(error);
}

function messageOfText(value: unknown, status: number | undefined): string {
  const text = typeof value === 'string' ? (isMarkup(value) ? textOfMarkup(value) : value.trim()) : '';
  if (text !== '') return text.slice(0, MAX_TEXT);
  return `the server answered${status === undefined ? '' : ` ${status}`} without saying what went wrong`;
}

const isMarkup = (text: string): boolean => /^\s*<[!?a-z]/i.test(text);

const HIDDEN: ReadonlySet<string> = new Set(['script', 'style', 'head']);

/** The text of an HTML page, without its head. One pass: the page comes from strangers. */
function textOfMarkup(page: string): string {
  let text = '';
  let hiddenBy = '';
  for (const piece of page.split('<')) {
    const end = piece.indexOf('>');
    const tag = /^\/?[a-z0-9]+/i.exec(piece)?.[0].toLowerCase() ?? '';
    if (hiddenBy !== '' && tag !== `/${hiddenBy}`) continue;
    hiddenBy = hiddenBy === '' && HIDDEN.has(tag) ? tag : '';
    if (hiddenBy === '') text += ` ${piece.slice(end + 1)}`;
    if (text.length > 4 * MAX_TEXT) break;
  }
  return text.replace(/\s+/g, ' ').trim();
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
