import { isFilledText, isObject, isSet, type JsonObject, writeJson } from '../../accumulate/overlay.ts';
import type { CanonicalError, ErrorCode } from '../../canonical/errors.ts';
import type { ProtocolId } from '../../canonical/protocol.ts';

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
export const codeOfStatus = (status: number | undefined): ErrorCode | undefined =>
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
