/** Errors, stop reasons and usage, in both directions, and the conversion of RFC 3339 times. */

import type { CanonicalUsage, StopDetails, StopReason, UsageDetails } from '../../canonical/message.ts';
import { type CanonicalError, type ErrorCode, findSocketErrorCode } from '../../canonical/notes.ts';
import { addReplyFacts, decodeWireError, describeTextBody, errorBody, errorValue, findBareError } from '../../codec/errors.ts';
import { describeOverflow } from '../../codec/overflow.ts';
import type { CodecContext, HeaderBag, WireReply } from '../../codec/protocol.ts';
import { objectOrEmpty, toCount } from '../../codec/read.ts';
import { getOwn, isObject, type JsonObject } from '../../json/json.ts';

/** An error response of any shape, with the remaining rate limits from its headers. */
export function decodeErrorReply(reply: WireReply, context: CodecContext): CanonicalError {
  const error = addReplyFacts(decodeErrorBody(reply.body, reply.status, context), reply, 'anthropic-messages');
  const limits = readRateLimits(reply.headers);
  return limits ? { ...error, details: { ...error.details, rate_limits: limits } } : error;
}

/**
 * Reads the error from a body of any shape: `{type:"error",error}`, JSON in a string, an HTML page, text or nothing.
 */
export function decodeErrorBody(body: unknown, status?: number, context?: CodecContext): CanonicalError {
  const value = errorValue(body);
  return decodeError(isObject(value) ? value : { message: describeTextBody(value, status, context) });
}

/** `{type: "error", error: {type, message}, request_id}`, or the inner object or text alone, as some relays send it. */
export function decodeError(payload: JsonObject): CanonicalError {
  const body = payload['error'] ? errorBody(payload['error']) : (findBareError(payload) ?? payload);
  const requestId = payload['request_id'];
  return {
    ...decodeWireError('anthropic-messages', body),
    ...(isSpendLimit(body) && { code: 'BILLING' as const }),
    ...(typeof requestId === 'string' && { request_id: requestId }),
  };
}

/** The organisation's own spend limit has status 429, but waiting does not help. */
const isSpendLimit = ({ details }: JsonObject): boolean =>
  isObject(details) && details['error_code'] === 'enforced_spend_limit_reached';

const LIMIT_HEADER = 'anthropic-ratelimit-';

function readRateLimits(headers: HeaderBag): HeaderBag | undefined {
  const limits = Object.entries(headers).filter(([name]) => name.startsWith(LIMIT_HEADER));
  return limits.length > 0 ? Object.fromEntries(limits) : undefined;
}

const FROM_WIRE: Record<string, StopReason> = {
  end_turn: 'end_turn',
  max_tokens: 'max_tokens',
  tool_use: 'tool_use',
  stop_sequence: 'stop_sequence',
  refusal: 'refusal',
  pause_turn: 'pause_turn',
  // The context was compacted; the turn continues with the next request, as after a pause.
  compaction: 'pause_turn',
  model_context_window_exceeded: 'context_window',
};

/** Stop reasons of other protocols, which some relays pass through. */
const FOREIGN: Record<string, StopReason> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  content_filter: 'content_filter',
};

/** An unknown, blank or missing reason means that the turn ended. */
export function decodeStop(reason: string | null): StopReason {
  return getOwn(FROM_WIRE, reason) ?? getOwn(FOREIGN, reason) ?? 'end_turn';
}

/** Reasons that end generation from outside, so that the call being written may be cut off. */
const CUTS: ReadonlySet<StopReason> = new Set(['max_tokens', 'context_window', 'refusal', 'content_filter']);

/** Whether the reason means that generation was cut off. */
export const isCutStop = (stop: StopReason): boolean => CUTS.has(stop);

/** The category and explanation of a refusal. */
export function decodeStopDetails(details: unknown): StopDetails | undefined {
  if (!isObject(details)) return undefined;
  const { category, explanation } = details;
  return {
    ...((typeof category === 'string' || category === null) && { category }),
    ...((typeof explanation === 'string' || explanation === null) && { explanation }),
  };
}

/** The wire's `input_tokens` excludes tokens read from and written to the cache; the canonical count includes them. */
export function decodeUsage(raw: JsonObject): CanonicalUsage {
  const outside = countCompaction(raw['iterations']);
  const read = toCount(raw['cache_read_input_tokens']);
  const written = toCount(raw['cache_creation_input_tokens']);
  const output = (toCount(raw['output_tokens']) ?? 0) + outside.output;
  const reasoning = toCount(objectOrEmpty(raw['output_tokens_details'])['thinking_tokens']);
  const details = decodeDetails(raw);
  return {
    input_tokens:
      (toCount(raw['input_tokens']) ?? 0) + (read ?? 0) + (written ?? 0) + outside.input + outside.read + outside.written,
    output_tokens: output,
    ...(read !== undefined && { cache_read_tokens: read + outside.read }),
    ...(written !== undefined && { cache_creation_tokens: written + outside.written }),
    ...(reasoning !== undefined && { reasoning_tokens: Math.min(reasoning, output) }),
    ...(Object.keys(details).length > 0 && { details }),
    extensions: { 'anthropic-messages': raw },
  };
}

/** Summaries written by a compaction are charged, but not included in the totals (all three recorded streams). */
function countCompaction(iterations: unknown): { input: number; read: number; written: number; output: number } {
  const sum = { input: 0, read: 0, written: 0, output: 0 };
  if (!Array.isArray(iterations)) return sum;
  for (const entry of iterations) {
    if (!isObject(entry) || entry['type'] !== 'compaction') continue;
    sum.input += toCount(entry['input_tokens']) ?? 0;
    sum.read += toCount(entry['cache_read_input_tokens']) ?? 0;
    sum.written += toCount(entry['cache_creation_input_tokens']) ?? 0;
    sum.output += toCount(entry['output_tokens']) ?? 0;
  }
  return sum;
}

function decodeDetails(raw: JsonObject): UsageDetails {
  const written = objectOrEmpty(raw['cache_creation']);
  const tools = objectOrEmpty(raw['server_tool_use']);
  const short = toCount(written['ephemeral_5m_input_tokens']);
  const long = toCount(written['ephemeral_1h_input_tokens']);
  const searches = toCount(tools['web_search_requests']);
  const fetches = toCount(tools['web_fetch_requests']);
  return {
    ...(short !== undefined && { cache_creation_5m: short }),
    ...(long !== undefined && { cache_creation_1h: long }),
    ...(searches !== undefined && { web_search_requests: searches }),
    ...(fetches !== undefined && { web_fetch_requests: fetches }),
  };
}

// ---- encode

/** An error response. SDKs choose the exception by the HTTP status, so it must agree with the body. */
export function encodeError(error: CanonicalError, _context: CodecContext): WireReply {
  return { status: encodeStatus(error), headers: encodeHeaders(error), body: encodeErrorBody(error) };
}

interface WireError {
  status: number;
  type: string;
}

const INVALID: WireError = { status: 400, type: 'invalid_request_error' };

const NOT_FOUND: WireError = { status: 404, type: 'not_found_error' };

const WIRE_ERRORS: Record<ErrorCode, WireError> = {
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

/** Clients wait on 529 (P127); billing errors are 402, where OpenAI uses 429. */
function encodeStatus(error: CanonicalError): number {
  const { code, http_status: status } = error;
  const own = WIRE_ERRORS[code].status;
  if (status === undefined || status < 400 || status > 599) return own;
  if (isOwn(error)) return status;
  return code === 'OVERLOADED' || code === 'BILLING' ? own : status;
}

function encodeHeaders(error: CanonicalError): HeaderBag {
  const { retry_after_ms: wait, request_id: id, details = {} } = error;
  const retry = details['should_retry'];
  return {
    'content-type': 'application/json',
    ...(isOwn(error) && writeRateLimits(details['rate_limits'])),
    ...(wait !== undefined && { 'retry-after': String(Math.ceil(wait / 1000)) }),
    ...(id !== undefined && { 'request-id': id }),
    ...(typeof retry === 'string' && { 'x-should-retry': retry }),
  };
}

function writeRateLimits(limits: unknown): HeaderBag {
  const entries = Object.entries(objectOrEmpty(limits));
  return Object.fromEntries(
    entries.flatMap(([name, value]) => (name.startsWith(LIMIT_HEADER) && typeof value === 'string' ? [[name, value]] : [])),
  );
}

/**
 * The payload of an error event. For broken streams the type is `overloaded_error`, because opencode, pi and Qwen
 * Code retry only that one.
 */
export const encodeErrorEvent = (error: CanonicalError): JsonObject =>
  encodeErrorBody(error, findSocketErrorCode(error) && WIRE_ERRORS.OVERLOADED.type);

/** The body of an error response. */
function encodeErrorBody(error: CanonicalError, type = WIRE_ERRORS[error.code].type): JsonObject {
  const upstream = isOwn(error) ? error.upstream : undefined;
  const { error_code: code } = error.details ?? {};
  return {
    type: 'error',
    error: {
      ...(typeof code === 'string' && { details: { error_code: code } }),
      ...objectOrEmpty(upstream?.body),
      type: upstream?.type ?? type,
      message: describeOverflow(error, 'anthropic-messages'),
    },
    request_id: error.request_id ?? null,
  };
}

const isOwn = ({ upstream }: CanonicalError): boolean => upstream?.protocol === 'anthropic-messages';

/** `error` has no stop reason: it becomes an error event or body. */
const WIRE_STOPS: Record<Exclude<StopReason, 'error'>, string> = {
  end_turn: 'end_turn',
  max_tokens: 'max_tokens',
  tool_use: 'tool_use',
  stop_sequence: 'stop_sequence',
  refusal: 'refusal',
  content_filter: 'refusal',
  pause_turn: 'pause_turn',
  context_window: 'model_context_window_exceeded',
};

/** `original` is the wire's own reason; it is sent back if it still has the same meaning. */
export function encodeStop(stop: Exclude<StopReason, 'error'>, original: unknown): string {
  return typeof original === 'string' && isStandardStop(original) && decodeStop(original) === stop ? original : WIRE_STOPS[stop];
}

/** Whether the reason is one that Anthropic documents. */
export const isStandardStop = (reason: string): boolean => Object.hasOwn(FROM_WIRE, reason);

/** The refusal categories of the official type; others would mean nothing to a client. */
const CATEGORIES: ReadonlySet<unknown> = new Set(['cyber', 'bio', 'frontier_llm', 'reasoning_extraction', 'general_harms']);

/** `raw` is the details as this protocol sent them, if it did. */
export function encodeStopDetails(stop: StopReason, details: StopDetails | undefined, raw: unknown): JsonObject | null {
  if (isObject(raw)) return raw;
  if (stop !== 'refusal' && stop !== 'content_filter') return null;
  const { category = null, explanation, raw: word } = details ?? {};
  return { type: 'refusal', category: CATEGORIES.has(category) ? category : null, explanation: explanation ?? word ?? null };
}

/** Defaults of the fields that the official type of `message_delta` requires; counters that do not apply are null. */
const DELTA_FIELDS: JsonObject = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
  output_tokens_details: null,
  server_tool_use: null,
};

/** Defaults of the fields that the official type of a whole message requires. */
const MESSAGE_FIELDS: JsonObject = {
  ...DELTA_FIELDS,
  cache_creation: null,
  service_tier: null,
  inference_geo: null,
  speed: null,
};

/** The usage of a whole message and of `message_start`. It is never null: the SDK writes into it. */
export const encodeUsage = (usage: Partial<CanonicalUsage> | undefined): JsonObject => ({
  ...MESSAGE_FIELDS,
  ...encodeCounters(usage ?? {}),
});

/** The usage of `message_delta`. */
export const encodeDeltaUsage = (usage: Partial<CanonicalUsage> | undefined): JsonObject => ({
  ...DELTA_FIELDS,
  ...encodeCounters(usage ?? {}),
});

/** The wire's own counters, if they still match the usage. */
function encodeCounters(usage: Partial<CanonicalUsage>): JsonObject {
  const raw = objectOrEmpty(usage.extensions?.['anthropic-messages']);
  const original = decodeUsage(raw);
  const isSame = original.input_tokens === (usage.input_tokens ?? 0) && original.output_tokens === (usage.output_tokens ?? 0);
  if (!isSame) return { ...raw, ...splitInput(usage) };
  return { ...raw, input_tokens: toCount(raw['input_tokens']) ?? 0, output_tokens: toCount(raw['output_tokens']) ?? 0 };
}

/** The wire's `input_tokens` excludes cached tokens (P99). */
function splitInput(usage: Partial<CanonicalUsage>): JsonObject {
  const { input_tokens: input = 0, output_tokens: output = 0, reasoning_tokens: reasoning, details = {} } = usage;
  const read = Math.min(Math.max(0, usage.cache_read_tokens ?? 0), input);
  const written = Math.min(Math.max(0, usage.cache_creation_tokens ?? 0), input - read);
  const {
    cache_creation_5m: short,
    cache_creation_1h: long,
    web_search_requests: searches,
    web_fetch_requests: fetches,
  } = details;
  return {
    input_tokens: Math.max(0, input - read - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: Math.max(0, output),
    ...(reasoning !== undefined && { output_tokens_details: { thinking_tokens: Math.min(Math.max(0, reasoning), output) } }),
    ...((short !== undefined || long !== undefined) && {
      cache_creation: { ephemeral_5m_input_tokens: short ?? 0, ephemeral_1h_input_tokens: long ?? 0 },
    }),
    ...((searches !== undefined || fetches !== undefined) && {
      server_tool_use: { web_search_requests: searches ?? 0, web_fetch_requests: fetches ?? 0 },
    }),
  };
}

// ---- times

const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/**
 * Seconds per day. Dates are computed without `Date`: days count from 0000-03-01, so that a leap day is the last day
 * of its year.
 */
const DAY = 86_400;

/** Unix seconds of an RFC 3339 time, without fractions; undefined for anything else. */
export function parseTime(text: string): number | undefined {
  const match = RFC_3339.exec(text);
  if (!match) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  if (month < 1 || month > 12 || day < 1 || day > 31) return undefined;
  const offset = (Number(match[8] ?? 0) * 60 + Number(match[9] ?? 0)) * (match[7] === '-' ? -60 : 60);
  return countDays(year, month, day) * DAY + hour * 3600 + minute * 60 + second - offset;
}

/** Days of 400 years, after which the Gregorian calendar repeats. */
const ERA = 146_097;

/** Days from 0000-03-01 to 1970-01-01. */
const EPOCH = 719_468;

/** Days since 1970-01-01. */
function countDays(year: number, month: number, day: number): number {
  const begun = month <= 2 ? year - 1 : year;
  const era = Math.floor(begun / 400);
  const yearOfEra = begun - era * 400;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  return era * ERA + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - EPOCH;
}

/** Unix seconds as an RFC 3339 time in UTC. */
export function formatTime(unix: number): string {
  const seconds = Math.floor(unix);
  const days = Math.floor(seconds / DAY);
  const rest = seconds - days * DAY;
  const { year, month, day } = findDate(days);
  const time = [Math.floor(rest / 3600), Math.floor(rest / 60) % 60, rest % 60];
  return `${pad(year, 4)}-${pad(month)}-${pad(day)}T${time.map((part) => pad(part)).join(':')}Z`;
}

function findDate(days: number): { year: number; month: number; day: number } {
  const shifted = days + EPOCH;
  const era = Math.floor(shifted / ERA);
  const dayOfEra = shifted - era * ERA;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1,
  };
}

const pad = (value: number, width = 2): string => String(value).padStart(width, '0');
