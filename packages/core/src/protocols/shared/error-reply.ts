import { parseJson } from '../../accumulate/overlay.ts';
import type { CanonicalError, ErrorCode } from '../../canonical/errors.ts';
import type { ProtocolId } from '../../canonical/protocol.ts';
import type { CodecContext, HeaderBag, WireReply } from './codec.ts';
import { codeOfStatus } from './wire-error.ts';

// Error answers, as the decoders of all protocols read them.

/** What the body says, with what the status and the headers add; the status decides where the body says nothing. */
export function withReply(error: CanonicalError, { status, headers }: WireReply, protocol: ProtocolId): CanonicalError {
  const http = status >= 400 ? status : error.http_status;
  return {
    ...error,
    code: refineByStatus(error.code, http),
    ...(http !== undefined && { http_status: http }),
    ...headerFacts(headers, error),
    upstream: { protocol, ...error.upstream, ...(status >= 400 && { status }) },
  };
}

/** Words like `invalid_request_error` and `server_error` stand for anything: a status that says more wins (401, 403, 404, 409, 413, 429). */
function refineByStatus(code: ErrorCode, status: number | undefined): ErrorCode {
  const isVague = code === 'INVALID_INPUT' || code === 'UPSTREAM_ERROR';
  return (isVague && codeOfStatus(status)) || code;
}

/** When to come back, and what the provider calls the request. A `retry-after` that is a date needs a clock and is left out. */
function headerFacts(headers: HeaderBag, error: CanonicalError): Partial<CanonicalError> {
  const milliseconds = Number(headers['retry-after-ms'] || Number.NaN);
  const seconds = Number(headers['retry-after'] || Number.NaN);
  const wait = error.retry_after_ms ?? (Number.isFinite(milliseconds) ? milliseconds : seconds * 1000);
  const id = error.request_id ?? headers['request-id'] ?? headers['x-request-id'];
  const retry = headers['x-should-retry'];
  return {
    ...(Number.isFinite(wait) && wait >= 0 && { retry_after_ms: wait }),
    ...(id !== undefined && { request_id: id }),
    ...(retry !== undefined && { details: { should_retry: retry } }),
  };
}

/** The body of an error: JSON in a string, or the first of a list, as a stream that did not begin answers. */
export function errorValue(body: unknown): unknown {
  const value = typeof body === 'string' ? (parseJson(body) ?? body) : body;
  return Array.isArray(value) ? value[0] : value;
}

/** The longest text that is shown as the message of an error. */
const MAX_TEXT = 500;

/**
 * The message of an error whose body is no JSON. One line of text is shown; pages and longer texts are not: they come from proxies, and name
 * hosts, addresses and versions.
 */
export function messageOfText(value: unknown, status: number | undefined, context?: CodecContext): string {
  const text = typeof value === 'string' ? value.trim() : '';
  const kind = kindOfText(text);
  if (kind === undefined) return text.slice(0, MAX_TEXT);
  const id = context?.target?.provider.id;
  const what = kind === '' ? `${status ?? 'an error'} without an error message` : [status, kind].filter(Boolean).join(' with ');
  return `${id ? `provider "${id}"` : 'the server'} returned ${what}`;
}

/** What a text is, if it is not shown; empty if there is none. */
function kindOfText(text: string): string | undefined {
  if (text === '') return '';
  if (/^<\?xml/i.test(text)) return 'an XML document';
  if (/^<[!?a-z]/i.test(text)) return 'an HTML page';
  return /[\n\r]/.test(text) ? 'several lines of text' : undefined;
}
