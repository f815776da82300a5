import type { CanonicalError, ErrorCode } from '../canonical/notes.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import { isSet } from '../json/fast.ts';
import { isFilledText, isObject, type JsonObject, parseJson, writeJson } from '../json/json.ts';
import type { CodecContext, HeaderBag, WireReply } from './protocol.ts';

const CONTEXT_LENGTH =
  /context (window|size|length)|too many (prompt )?tokens|prompt (is )?too long|messages is too long|token limit reached/i;

/** What the providers call their errors in `code`, `type` and `status`: the first pattern that fits the first name that fits any. */
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

const NO_MESSAGE = 'the server reported an error without a message';

/** An error object of the wire in the canonical form. `type` is what the protocol calls the kind of an error. */
export function decodeWireError(protocol: ProtocolId, body: JsonObject, type: unknown = body['type']): CanonicalError {
  const { code, status, status_code: statusCode, param } = body;
  const message = messageOf(body);
  const http = httpStatusOf(statusCode, status, code);
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

/** Errors come as an object, as text, or as anything else: in the end they are an object with a message. */
export const errorBody = (error: unknown): JsonObject => (isObject(error) ? error : { message: describeValue(error) });

const SUCCESS = /^(0|20\d|ok|success)?$/i;

/** An error that stands for itself, outside `error`: a code and a message (SiliconFlow, DashScope). Some put a verdict of success there, too. */
export const isBareError = ({ code, message }: JsonObject): boolean =>
  typeof message === 'string' && isScalar(code) && !SUCCESS.test(`${code}`);

/** The canonical code of a provider's error: what its message says, its names, then the HTTP status. */
function classify(message: string, names: readonly unknown[], status: number | undefined): ErrorCode {
  if (CONTEXT_LENGTH.test(message)) return 'CONTEXT_LENGTH';
  for (const name of names) {
    const known = typeof name === 'string' ? BY_NAME.find(([pattern]) => pattern.test(name)) : undefined;
    if (known) return known[1];
  }
  return codeOfStatus(status) ?? 'UPSTREAM_ERROR';
}

/** What an HTTP status alone says about an error; undefined when it says nothing. */
const codeOfStatus = (status: number | undefined): ErrorCode | undefined =>
  status === undefined ? undefined : BY_STATUS[status];

/** FastAPI says `detail`, MiniMax `status_msg`, others `msg`, or put one error into another. */
function messageOf({ message, detail, error, msg, status_msg: status, code }: JsonObject): string {
  for (const value of [message, detail, error, msg, status]) if (isSet(value) && value !== '') return describeValue(value);
  return isFilledText(code) ? code : NO_MESSAGE;
}

/** The first value that is an HTTP error status, as a number or as text. */
const httpStatusOf = (...values: readonly unknown[]): number | undefined =>
  values
    .filter(isScalar)
    .map(Number)
    .find((value) => value >= 400 && value < 600);

/** Number() calls methods of objects, and these come from strangers. */
export const isScalar = (value: unknown): value is string | number => typeof value === 'string' || typeof value === 'number';

function describeValue(value: unknown): string {
  return typeof value === 'string' ? value : (writeJson(value) ?? 'the message of the error is nested too deeply to be shown');
}

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
