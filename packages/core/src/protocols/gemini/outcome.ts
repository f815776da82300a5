/** Errors, finish reasons and usage, in both directions. */

import type { CanonicalUsage, StopReason, UsageDetails } from '../../canonical/message.ts';
import type { CanonicalError, ErrorCode, Note } from '../../canonical/notes.ts';
import { addReplyFacts, decodeWireError, describeTextBody, errorBody, errorValue, findBareError } from '../../codec/errors.ts';
import { describeOverflow } from '../../codec/overflow.ts';
import type { CodecContext, HeaderBag, WireReply } from '../../codec/protocol.ts';
import { fitCached, listOrEmpty, objectOrEmpty, textOrEmpty } from '../../codec/read.ts';
import { getOwn, isObject, type JsonObject } from '../../json/json.ts';
import { isResponse, toCamelCase, toCamelKeys, toCamelObject } from './wire.ts';

/** An error response of any shape. */
export function decodeErrorReply(reply: WireReply, context: CodecContext): CanonicalError {
  return addReplyFacts(decodeErrorBody(reply.body, reply.status, context), reply, 'gemini');
}

/**
 * Reads the error from a body of any shape: `{error}`, the list `[{error}]` of a stream that did not begin, JSON in a
 * string, an HTML page, or nothing.
 */
export function decodeErrorBody(body: unknown, status?: number, context?: CodecContext): CanonicalError {
  const value = errorValue(body);
  return decodeError(isObject(value) ? findError(value, 'error') : { message: describeTextBody(value, status, context) });
}

/** A google.rpc.Status, or text in its place. */
export function decodeError(error: unknown): CanonicalError {
  const body = errorBody(error);
  const details = listOrEmpty(body['details']).map(toCamelObject);
  const decoded = decodeWireError('gemini', body, body['status']);
  const code = findErrorCode(details, decoded.message, body['status']);
  const retry = retryAfter(details);
  return { ...decoded, ...(code && { code }), ...(retry !== undefined && { retry_after_ms: retry }) };
}

/** Reasons of google.rpc.ErrorInfo that are more specific than the status. */
const BY_REASON: Record<string, ErrorCode> = {
  API_KEY_INVALID: 'AUTHENTICATION',
  API_KEY_EXPIRED: 'AUTHENTICATION',
  ACCESS_TOKEN_EXPIRED: 'AUTHENTICATION',
  SERVICE_DISABLED: 'PERMISSION',
  API_KEY_SERVICE_BLOCKED: 'PERMISSION',
  BILLING_DISABLED: 'BILLING',
};

function findErrorCode(details: readonly JsonObject[], message: string, status: unknown): ErrorCode | undefined {
  for (const { reason } of details) {
    const code = getOwn(BY_REASON, reason);
    if (code) return code;
  }
  if (status !== 'FAILED_PRECONDITION') return undefined;
  if (/location is not supported/i.test(message)) return 'PERMISSION';
  return /billing|free tier/i.test(message) ? 'BILLING' : undefined;
}

/** google.rpc.RetryInfo: `"retryDelay": "34.4s"`. */
function retryAfter(details: readonly JsonObject[]): number | undefined {
  for (const { retryDelay } of details) {
    const seconds = /^(\d{1,9}(?:\.\d+)?)s$/.exec(textOrEmpty(retryDelay))?.[1];
    if (seconds !== undefined) return Math.round(Number(seconds) * 1000);
  }
  return undefined;
}

/**
 * The error of a payload: `{error}`, a status object without its wrapper, the error of another vendor, or the whole payload of
 * an `error` event.
 */
export function findError(payload: JsonObject, event: string | undefined): unknown {
  if (payload['error']) return payload['error'];
  return (isResponse(payload) ? undefined : findBareError(payload)) ?? (event === 'error' ? payload : undefined);
}

/** `empty`: the turn ended if there is content, otherwise generation failed. */
type Reading = StopReason | 'empty';

const BY_NAME: Record<string, Reading> = {
  STOP: 'end_turn',
  FINISH_REASON_UNSPECIFIED: 'end_turn',
  MAX_TOKENS: 'max_tokens',
  CONTINUATION: 'max_tokens',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  LANGUAGE: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  MODEL_ARMOR: 'content_filter',
  IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter',
  IMAGE_RECITATION: 'content_filter',
  MALFORMED_FUNCTION_CALL: 'error',
  MALFORMED_RESPONSE: 'error',
  UNEXPECTED_TOOL_CALL: 'error',
  TOO_MANY_TOOL_CALLS: 'error',
  MISSING_THOUGHT_SIGNATURE: 'error',
  OTHER: 'empty',
  IMAGE_OTHER: 'empty',
  NO_IMAGE: 'empty',
};

/** Words in the names of reasons that are not in the table: Google adds new ones. */
const BY_WORD: readonly (readonly [RegExp, Reading])[] = [
  [/SAFETY|PROHIBITED|BLOCK|RECITATION|FILTER/, 'content_filter'],
  [/TOKEN|LENGTH/, 'max_tokens'],
];

/** Unknown reasons are read by their words, else like OTHER; calls in the content make the end `tool_use` later. */
export function decodeStop(name: string, hasContent: boolean): StopReason {
  const reading = (isKnownFinish(name) && BY_NAME[name]) || BY_WORD.find(([word]) => word.test(name))?.[1];
  if (reading && reading !== 'empty') return reading;
  return hasContent ? 'end_turn' : 'error';
}

/** Names by the numbers of Vertex's protobuf enum, which some clients write; the Gemini API has the same up to 5. */
const NUMBERED = [
  'FINISH_REASON_UNSPECIFIED',
  'STOP',
  'MAX_TOKENS',
  'SAFETY',
  'RECITATION',
  'OTHER',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'MALFORMED_FUNCTION_CALL',
  'MODEL_ARMOR',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
  'IMAGE_OTHER',
  'UNEXPECTED_TOOL_CALL',
  'NO_IMAGE',
] as const;

/** The name of a finish reason given as name, number or with the enum's prefix. */
export function readFinishName(wire: string | number): string {
  if (typeof wire === 'number') return NUMBERED[wire] ?? String(wire);
  const name = wire.toUpperCase();
  return name !== 'FINISH_REASON_UNSPECIFIED' && name.startsWith('FINISH_REASON_') ? name.slice('FINISH_REASON_'.length) : name;
}

/** Whether the finish reason is documented. */
export const isKnownFinish = (name: string): boolean => Object.hasOwn(BY_NAME, name);

const CUT: ReadonlySet<StopReason> = /* @__PURE__ */ new Set<StopReason>([
  'max_tokens',
  'context_window',
  'content_filter',
  'error',
]);

/** Whether the stop may have cut off a call: one with incomplete arguments must not be run. */
export const isCutStop = (stop: StopReason): boolean => CUT.has(stop);

const COUNTS = [
  'promptTokenCount',
  'candidatesTokenCount',
  'thoughtsTokenCount',
  'toolUsePromptTokenCount',
  'cachedContentTokenCount',
  'totalTokenCount',
] as const;

/** Whether usage metadata has any counts: in all chunks but the last, Vertex sends only `trafficType`. */
export function hasCounts(raw: JsonObject): boolean {
  const usage = toCamelKeys(raw);
  return COUNTS.some((key) => readCount(usage[key]) !== undefined);
}

/** Each usage object replaces the one before; a missing count is 0. */
export function decodeUsage(raw: JsonObject, note: (note: Note) => void): CanonicalUsage {
  const usage = toCamelKeys(raw);
  const prompt = readCount(usage['promptTokenCount']) ?? 0;
  const toolPrompt = readCount(usage['toolUsePromptTokenCount']);
  const thoughts = readCount(usage['thoughtsTokenCount']);
  const counted = prompt + (toolPrompt ?? 0);
  const output = (readCount(usage['candidatesTokenCount']) ?? 0) + (thoughts ?? 0);
  const counts = { input: counted, output, total: readCount(usage['totalTokenCount']) };
  const { read, outside, isUncertain } = fitCached(readCount(usage['cachedContentTokenCount']), counts, note);
  const details = decodeDetails(usage, toolPrompt);
  return {
    input_tokens: counted + outside,
    output_tokens: output,
    ...(read !== undefined && { cache_read_tokens: read }),
    ...(thoughts !== undefined && { reasoning_tokens: thoughts }),
    ...(details && { details }),
    ...(isUncertain && { uncertain: true }),
    extensions: { gemini: raw },
  };
}

const INPUT: Partial<Record<string, keyof UsageDetails>> = {
  IMAGE: 'input_image',
  VIDEO: 'input_video',
  AUDIO: 'input_audio',
  DOCUMENT: 'input_document',
};

const OUTPUT: Partial<Record<string, keyof UsageDetails>> = { IMAGE: 'output_image', AUDIO: 'output_audio' };

function decodeDetails(usage: JsonObject, toolPrompt: number | undefined): UsageDetails | undefined {
  const details: UsageDetails = {};
  addModalities(details, usage['promptTokensDetails'], INPUT);
  addModalities(details, usage['toolUsePromptTokensDetails'], INPUT);
  addModalities(details, usage['candidatesTokensDetails'], OUTPUT);
  if (toolPrompt !== undefined) details.tool_use_prompt = toolPrompt;
  for (const _ in details) return details;
  return undefined;
}

const MODALITIES = ['MODALITY_UNSPECIFIED', 'TEXT', 'IMAGE', 'VIDEO', 'AUDIO', 'DOCUMENT'] as const;

function addModalities(details: UsageDetails, list: unknown, names: Partial<Record<string, keyof UsageDetails>>): void {
  for (const entry of listOrEmpty(list)) {
    if (!isObject(entry)) continue;
    const { modality, tokenCount }: { modality?: unknown; tokenCount?: unknown } = toCamelObject(entry);
    const name = typeof modality === 'number' ? MODALITIES[modality] : modality;
    const field = getOwn(names, name);
    if (field) details[field] = (details[field] ?? 0) + (readCount(tokenCount) ?? 0);
  }
}

/** proto3 writes int64 as text. */
function readCount(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) && number >= 0 ? number : undefined;
}

// ---- encode

/**
 * An error response. Some SDKs choose the exception by `error.code`, others by the HTTP status, so both are the same.
 */
export function encodeError(error: CanonicalError, _context: CodecContext): WireReply {
  const body = encodeErrorBody(error);
  return { status: body.error.code, headers: encodeHeaders(error), body };
}

interface WireStatus {
  code: number;
  /** A name of google.rpc.Code. */
  status: string;
}

const INVALID: WireStatus = { code: 400, status: 'INVALID_ARGUMENT' };

const INTERNAL: WireStatus = { code: 500, status: 'INTERNAL' };

const WIRE_ERRORS: Record<ErrorCode, WireStatus> = {
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

/** `{error:{…}}`: the body of an error response, and the error in a stream. */
export function encodeErrorBody(error: CanonicalError): { error: WireStatus & JsonObject } {
  const upstream = error.upstream?.protocol === 'gemini' ? error.upstream : undefined;
  const original = objectOrEmpty(upstream?.body);
  const details = encodeErrorDetails(error, listOrEmpty(original['details']));
  return {
    error: {
      ...original,
      code: findHttpStatus(error),
      message: describeOverflow(error, 'gemini'),
      status: typeof original['status'] === 'string' ? original['status'] : WIRE_ERRORS[error.code].status,
      ...(details.length > 0 && { details }),
    },
  };
}

const RPC = 'type.googleapis.com/google.rpc.';

/** Clients read the retry delay and an invalid key from the details. */
function encodeErrorDetails({ code, retry_after_ms: wait, upstream }: CanonicalError, original: readonly unknown[]): unknown[] {
  const hasWait = original.some((detail) => toCamelObject(detail)['retryDelay'] !== undefined);
  const isForeignKey = code === 'AUTHENTICATION' && upstream?.protocol !== 'gemini';
  return [
    ...original,
    ...(isForeignKey ? [{ '@type': `${RPC}ErrorInfo`, reason: 'API_KEY_INVALID', domain: 'googleapis.com' }] : []),
    ...(wait !== undefined && !hasWait ? [{ '@type': `${RPC}RetryInfo`, retryDelay: `${wait / 1000}s` }] : []),
  ];
}

/** Statuses that Google does not use, or uses differently: Anthropic's overload, and payment required. */
const FOREIGN_STATUS: Readonly<Record<number, number>> = { 529: 503, 402: 400 };

function findHttpStatus({ code, http_status: status }: CanonicalError): number {
  if (status === undefined || status < 400 || status > 599) return WIRE_ERRORS[code].code;
  return FOREIGN_STATUS[status] ?? status;
}

function encodeHeaders({ retry_after_ms: wait, request_id: id }: CanonicalError): HeaderBag {
  return {
    'content-type': 'application/json; charset=UTF-8',
    ...(wait !== undefined && { 'retry-after': String(Math.ceil(wait / 1000)) }),
    ...(id !== undefined && { 'x-request-id': id }),
  };
}

interface Content {
  /** Whether the candidate has any parts. */
  hasContent: boolean;
  /** Whether the text is a refusal (OpenAI), not what was generated before a filter stopped it. */
  hasRefusal: boolean;
}

/** `error` has no single name: the original one is kept, and an error of another protocol becomes an error object. */
const WIRE_STOPS = {
  end_turn: 'STOP',
  stop_sequence: 'STOP',
  pause_turn: 'STOP',
  tool_use: 'STOP',
  max_tokens: 'MAX_TOKENS',
  context_window: 'MAX_TOKENS',
  content_filter: 'SAFETY',
  refusal: 'SAFETY',
} as const satisfies Record<Exclude<StopReason, 'error'>, string>;

/** The original finish reason if it still has the same meaning, otherwise Gemini's name; undefined if there is none. */
export function encodeStop(
  stop: StopReason,
  wire: string | number | undefined,
  { hasContent, hasRefusal }: Content,
): string | undefined {
  if (wire !== undefined) {
    const name = readFinishName(wire);
    const read = decodeStop(name, hasContent);
    if (read === stop || (read === 'end_turn' && stop === 'tool_use')) return isKnownFinish(name) ? name : String(wire);
  }
  if (stop === 'error') return undefined;
  return stop === 'refusal' && hasRefusal ? 'STOP' : WIRE_STOPS[stop];
}

/** Documented names, which may come in either spelling; other keys may contain underscores of their own. */
const WIRE_NAMES: ReadonlySet<string> = new Set([
  ...COUNTS,
  'promptTokensDetails',
  'cacheTokensDetails',
  'candidatesTokensDetails',
  'toolUsePromptTokensDetails',
  'trafficType',
  'serviceTier',
]);

/**
 * Merged over the original usage, so that unknown counts survive. Parts never exceed their total, and the total is
 * their sum.
 */
export function encodeUsage({ extensions, details = {}, ...usage }: CanonicalUsage, note: (note: Note) => void): JsonObject {
  const raw = Object.entries(objectOrEmpty(extensions?.gemini)).map(([key, value]) => [
    WIRE_NAMES.has(toCamelCase(key)) ? toCamelCase(key) : key,
    value,
  ]);
  const input = Math.max(0, usage.input_tokens);
  const output = Math.max(0, usage.output_tokens);
  const toolPrompt = clampPart(details.tool_use_prompt, input);
  const cached = clampPart(usage.cache_read_tokens, input);
  const thoughts = clampPart(usage.reasoning_tokens, output);
  if (usage.cache_creation_tokens) note(buildCacheNote(usage.cache_creation_tokens));
  return {
    ...Object.fromEntries(raw),
    promptTokenCount: input - (toolPrompt ?? 0),
    ...(cached !== undefined && { cachedContentTokenCount: cached }),
    candidatesTokenCount: output - (thoughts ?? 0),
    ...(toolPrompt !== undefined && { toolUsePromptTokenCount: toolPrompt }),
    ...(thoughts !== undefined && { thoughtsTokenCount: thoughts }),
    totalTokenCount: input + output,
    ...(!extensions?.gemini && {
      ...encodeDetails('promptTokensDetails', details, INPUT),
      ...encodeDetails('candidatesTokensDetails', details, OUTPUT),
    }),
  };
}

const clampPart = (part: number | undefined, whole: number): number | undefined =>
  part === undefined ? undefined : Math.min(Math.max(0, part), whole);

const buildCacheNote = (written: number): Note => ({
  code: 'APPROXIMATED',
  path: '/usage/cache_creation_tokens',
  feature: 'usage.cache_creation_tokens',
  message: `cache write tokens are not reported by Gemini; ${written} counted as prompt tokens`,
});

function encodeDetails(key: string, details: UsageDetails, names: Partial<Record<string, keyof UsageDetails>>): JsonObject {
  const list = Object.entries(names).flatMap(([modality, name]) => {
    const tokenCount = name && details[name];
    return tokenCount ? [{ modality, tokenCount }] : [];
  });
  return list.length > 0 ? { [key]: list } : {};
}
