/** Errors of providers: their canonical code, message and retry facts. */
import type { CanonicalError, ErrorCode } from '../canonical/notes.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import { isSet } from '../json/fast.ts';
import { isFilledText, isObject, type JsonObject, parseJson, writeJson } from '../json/json.ts';
import { isOverflow } from './overflow.ts';
import type { CodecContext, HeaderBag, WireReply } from './protocol.ts';

/** The canonical form of a wire error. `type`: the field in which the protocol names the kind of an error. */
export function decodeWireError(protocol: ProtocolId, body: JsonObject, type: unknown = body['type']): CanonicalError {
  const { code, status, status_code: statusCode, param } = body;
  const message = readMessage(body);
  const http = findHttpStatus(statusCode, status, code);
  return {
    code: classify(message, [code, type, status], http),
    message,
    ...(http !== undefined && { http_status: http }),
    ...((typeof param === 'string' || param === null) && { param }),
    upstream: {
      protocol,
      ...(typeof type === 'string' && { type }),
      ...((isScalar(code) || code === null) && { code }),
      ...(http !== undefined && { status: http }),
      body,
    },
  };
}

/** An error with the facts of its status and headers; the status decides the code where the body does not. */
export function addReplyFacts(error: CanonicalError, { status, headers }: WireReply, protocol: ProtocolId): CanonicalError {
  const http = status >= 400 ? status : error.http_status;
  return {
    ...error,
    code: refineByStatus(error.code, http),
    ...(http !== undefined && { http_status: http }),
    ...readHeaders(headers, error),
    upstream: { protocol, ...error.upstream, ...(status >= 400 && { status }) },
  };
}

/** Errors arrive as an object, as text or as any other value; this makes all of them an object with a message. */
export const errorBody = (error: unknown): JsonObject => (isObject(error) ? error : { message: describeValue(error) });

/**
 * The body of an error: JSON inside a string is parsed; of a list, as a failed array stream sends it, the first item
 * counts.
 */
export function errorValue(body: unknown): unknown {
  const value = typeof body === 'string' ? (parseJson(body) ?? body) : body;
  return Array.isArray(value) ? value[0] : value;
}

/**
 * The error of a body without an `error` wrapper, with its code and message; undefined for any other body. Some servers
 * put a success code there.
 */
export function findBareError(body: JsonObject): JsonObject | undefined {
  const { code, message, msg, detail, error_code: number, error_msg: text, Response: reply, success, errors } = body;
  // SiliconFlow and DashScope; Zhipu has `msg`. FastAPI servers send {"detail": …}.
  if (isFailureCode(code) && (typeof message === 'string' || typeof msg === 'string')) return body;
  if (isSet(detail)) return body;
  if (isFailureCode(number) && typeof text === 'string') return { ...body, code: number, message: text }; // Baidu
  const inner = isObject(reply) ? reply['Error'] : undefined; // Tencent
  if (isObject(inner)) return { ...inner, code: inner['Code'], message: inner['Message'] };
  if (success !== false || !Array.isArray(errors)) return undefined;
  return errors.find(isObject) ?? body; // Cloudflare
}

const isFailureCode = (code: unknown): boolean => isScalar(code) && !SUCCESS.test(`${code}`);

const SUCCESS = /^(0|20\d|ok|success)?$/i;

/** Whether a value is text or a number. Number() of an untrusted object would call its methods. */
export const isScalar = (value: unknown): value is string | number => typeof value === 'string' || typeof value === 'number';

/**
 * The message of an error whose body is not JSON. A single line of text is shown; HTML pages and longer texts are not,
 * because they come from proxies and reveal hosts, addresses and versions.
 */
export function describeTextBody(value: unknown, status: number | undefined, context?: CodecContext): string {
  const text = typeof value === 'string' ? value.trim() : '';
  const kind = describeKind(text);
  if (kind === undefined) return text.slice(0, MAX_TEXT);
  const id = context?.target?.provider.id;
  const what = kind === '' ? `${status ?? 'an error'} without an error message` : [status, kind].filter(Boolean).join(' with ');
  return `${id ? `provider "${id}"` : 'the server'} returned ${what}`;
}

/** The longest text that is shown as the message of an error. */
const MAX_TEXT = 500;

/** Names the kind of a text that is not shown: "" for an empty text, undefined for a text that can be shown. */
function describeKind(text: string): string | undefined {
  if (text === '') return '';
  if (/^<\?xml/i.test(text)) return 'an XML document';
  if (/^<[!?a-z]/i.test(text)) return 'an HTML page';
  return /[\n\r]/.test(text) ? 'several lines of text' : undefined;
}

/** The canonical code of an error, by its message, then its names, then the HTTP status. */
function classify(message: string, names: readonly unknown[], status: number | undefined): ErrorCode {
  if (isOverflow(message)) return 'CONTEXT_LENGTH';
  for (const name of names) {
    const known = typeof name === 'string' ? BY_NAME.find(([pattern]) => pattern.test(name)) : undefined;
    if (known) return known[1];
  }
  return findCodeByStatus(status) ?? 'UPSTREAM_ERROR';
}

/**
 * Patterns for the names that providers give errors in `code`, `type` and `status`; the first match of the first
 * matching name wins.
 */
const BY_NAME: readonly (readonly [RegExp, ErrorCode])[] = [
  [/context_(length|size)|too_many_prompt/, 'CONTEXT_LENGTH'],
  [/api_key|^authentication|^UNAUTHENTICATED/, 'AUTHENTICATION'],
  [/^permission/i, 'PERMISSION'],
  [/quota|^billing/, 'BILLING'],
  [/not_found/i, 'NOT_FOUND'],
  [/too_large/, 'PAYLOAD_TOO_LARGE'],
  [/^rate_limit|^RESOURCE_EXHAUSTED/, 'RATE_LIMIT'],
  [/^overloaded|^UNAVAILABLE/, 'OVERLOADED'],
  [/^timeout|^DEADLINE|^ETIMEDOUT/, 'TIMEOUT'],
  [/^cancelled/i, 'CANCELLED'],
  [/^content_(policy|filter)/, 'CONTENT_POLICY'],
  [/^tool_use_failed/, 'TOOL_CALL_PARSE_ERROR'],
  [/^conflict|^ABORTED|^ALREADY_EXISTS/, 'CONFLICT'],
  [/^invalid_(request|prompt)|^INVALID_ARGUMENT|^FAILED_PRECONDITION/, 'INVALID_INPUT'],
  [/^(api|server)_error|^INTERNAL/, 'UPSTREAM_ERROR'],
];

const BY_STATUS: Record<number, ErrorCode> = {
  400: 'INVALID_INPUT',
  401: 'AUTHENTICATION',
  402: 'BILLING',
  403: 'PERMISSION',
  404: 'NOT_FOUND',
  409: 'CONFLICT',
  413: 'PAYLOAD_TOO_LARGE',
  422: 'INVALID_INPUT',
  429: 'RATE_LIMIT',
  499: 'CANCELLED',
  503: 'OVERLOADED',
  504: 'TIMEOUT',
  529: 'OVERLOADED',
};

/** The canonical code of an HTTP status; undefined when the status alone decides nothing. */
const findCodeByStatus = (status: number | undefined): ErrorCode | undefined =>
  status === undefined ? undefined : BY_STATUS[status];

/**
 * Names such as `invalid_request_error` and `server_error` are vague: a more specific status wins (401, 403, 404, 409,
 * 413, 429).
 */
function refineByStatus(code: ErrorCode, status: number | undefined): ErrorCode {
  const isVague = code === 'INVALID_INPUT' || code === 'UPSTREAM_ERROR';
  return (isVague && findCodeByStatus(status)) || code;
}

/** FastAPI uses `detail`, MiniMax `status_msg`, others `msg`, or nest one error in another. */
function readMessage({ message, detail, error, msg, status_msg: status, code }: JsonObject): string {
  for (const value of [message, detail, error, msg, status]) if (isSet(value) && value !== '') return describeValue(value);
  return isFilledText(code) ? code : NO_MESSAGE;
}

const NO_MESSAGE = 'the server reported an error without a message';

function describeValue(value: unknown): string {
  return typeof value === 'string' ? value : (writeJson(value) ?? 'the error message is nested too deeply to be shown');
}

/** The first value that is an HTTP error status, as a number or as text. */
const findHttpStatus = (...values: readonly unknown[]): number | undefined =>
  values
    .filter(isScalar)
    .map(Number)
    .find((value) => value >= 400 && value < 600);

/** Retry delay, request id and retry advice of the headers. A `retry-after` date needs a clock and is ignored. */
function readHeaders(headers: HeaderBag, error: CanonicalError): Partial<CanonicalError> {
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

/** The headers of an error response for clients of both protocols of OpenAI. */
export function encodeOpenaiHeaders({ retry_after_ms: wait, request_id: id, details }: CanonicalError): HeaderBag {
  const retry = details?.['should_retry'];
  return {
    'content-type': 'application/json',
    ...(wait !== undefined && { 'retry-after': String(Math.ceil(wait / 1000)), 'retry-after-ms': String(wait) }),
    ...(id !== undefined && { 'x-request-id': id }),
    ...(typeof retry === 'string' && { 'x-should-retry': retry }),
  };
}
