import type { CanonicalUsage, StopReason, UsageDetails } from '../../canonical/message.ts';
import { brokenOffBy, type CanonicalError, type ErrorCode } from '../../canonical/notes.ts';
import type { Context } from '../../codec/context.ts';
import { decodeWireError, errorBody, errorValue, isBareError, messageOfText, withReply } from '../../codec/errors.ts';
import type { CodecContext, HeaderBag, WireReply } from '../../codec/protocol.ts';
import { cachedOutside, countOf, noteUsage, objectOf, within } from '../../codec/read.ts';
import { countKeys, isSet } from '../../json/fast.ts';
import { getOwn, isObject, type JsonObject } from '../../json/json.ts';

/** The error of a chunk or body, wherever compatible servers put it: `error`, `choices[].error`, or the whole payload of `event: error`. */
export function findError(payload: JsonObject, event: string | undefined): unknown {
  if (payload['error']) return payload['error'];
  const choices = payload['choices'];
  if (Array.isArray(choices)) for (const choice of choices) if (isObject(choice) && choice['error']) return choice['error'];
  const failure = payload['base_resp'];
  if (isObject(failure) && isFailure(failure)) return failure;
  // FastAPI servers answer {"detail": …}, others {"object":"error","message": …} or {"code": …,"message": …}.
  const isAlone = !Array.isArray(choices) && (payload['detail'] !== undefined || isBareError(payload));
  return event === 'error' || payload['object'] === 'error' || isAlone ? payload : undefined;
}

/** MiniMax puts a verdict on every answer; 0 is success. */
const isFailure = ({ status_code: code }: JsonObject): boolean => typeof code === 'number' && code !== 0;

export const decodeError = (error: unknown): CanonicalError => decodeWireError('openai-chat', errorBody(error));

/** An error answer of a compatible server, whatever shape it has. */
export function decodeErrorReply(reply: WireReply, context: CodecContext): CanonicalError {
  return withReply(decodeErrorBody(reply.body, reply.status, context), reply, 'openai-chat');
}

/** The error of a body that was to be a completion and is none. */
export const decodeErrorBody = (body: unknown, status?: number, context?: CodecContext): CanonicalError =>
  decodeWireError('openai-chat', errorObject(body, status, context));

/** One object with a message, out of `{error}`, `{error:"text"}`, `{message}`, `{detail}`, `[{error}]`, JSON in a string, HTML, nothing. */
function errorObject(body: unknown, status: number | undefined, context: CodecContext | undefined): JsonObject {
  const value = errorValue(body);
  if (!isObject(value)) return { message: messageOfText(value, status, context) };
  const error = findError(value, 'error');
  // xAI and Hugging Face write the text into `error` and what kind it is beside it.
  return typeof error === 'string' ? { ...value, message: error } : errorBody(error);
}

interface WireError {
  status: number;
  type: string;
  /** Clients switch on these: they are OpenAI's own words. */
  code: string | null;
}

const INVALID = 'invalid_request_error';

const SERVER = 'server_error';

const WIRE_ERRORS: Record<ErrorCode, WireError> = {
  INVALID_INPUT: { status: 400, type: INVALID, code: 'invalid_value' },
  MISSING_REQUIRED_FIELD: { status: 400, type: INVALID, code: 'missing_required_parameter' },
  INCOMPATIBLE_FEATURE: { status: 400, type: INVALID, code: 'unsupported_value' },
  TOOL_CALL_PARSE_ERROR: { status: 400, type: INVALID, code: 'tool_use_failed' },
  JSON_PARSE_ERROR: { status: 400, type: INVALID, code: 'invalid_json' },
  CONTEXT_LENGTH: { status: 400, type: INVALID, code: 'context_length_exceeded' },
  CONTENT_POLICY: { status: 400, type: INVALID, code: 'content_policy_violation' },
  // The live API sends invalid_request_error for 401 and 403.
  AUTHENTICATION: { status: 401, type: INVALID, code: 'invalid_api_key' },
  PERMISSION: { status: 403, type: INVALID, code: null },
  BILLING: { status: 429, type: 'insufficient_quota', code: 'insufficient_quota' },
  NOT_FOUND: { status: 404, type: INVALID, code: 'model_not_found' },
  UNSUPPORTED_INTERFACE: { status: 404, type: INVALID, code: 'unknown_url' },
  CONFLICT: { status: 409, type: INVALID, code: null },
  PAYLOAD_TOO_LARGE: { status: 413, type: INVALID, code: 'request_too_large' },
  RATE_LIMIT: { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  CANCELLED: { status: 499, type: INVALID, code: 'cancelled' },
  INTERNAL: { status: 500, type: SERVER, code: null },
  UPSTREAM_ERROR: { status: 502, type: SERVER, code: null },
  STREAM_TRUNCATED: { status: 502, type: SERVER, code: 'stream_truncated' },
  OVERLOADED: { status: 503, type: SERVER, code: 'overloaded' },
  TIMEOUT: { status: 504, type: SERVER, code: 'timeout' },
};

/** Statuses that this protocol does not have, or has for something else: Anthropic's overload, and payment due. */
const FOREIGN_STATUS: Record<number, number> = { 529: 503, 402: 429 };

/** SDKs choose the exception by the HTTP status, so that it and the body agree. */
export function encodeError(error: CanonicalError, _context: CodecContext): WireReply {
  return { status: statusOf(error), headers: headersOf(error), body: encodeErrorBody(error) };
}

/** The payload of an error chunk. Qwen Code and Continue retry a response that broke off by the system's name for it. */
export function encodeErrorChunk(error: CanonicalError): { error: JsonObject } {
  const body = encodeErrorBody(error);
  const code = brokenOffBy(error);
  return code === undefined ? body : { error: { ...body.error, code } };
}

/** `{error:{…}}`: the body of an error response. */
function encodeErrorBody(error: CanonicalError): { error: JsonObject } {
  const { type, code } = WIRE_ERRORS[error.code];
  const isOwn = error.upstream?.protocol === 'openai-chat';
  const upstream = isOwn ? error.upstream : undefined;
  return {
    error: {
      ...objectOf(upstream?.body),
      message: error.message,
      type: upstream?.type ?? type,
      param: error.param ?? null,
      // OpenRouter and others put the status here; the word is what clients read.
      code: typeof upstream?.code === 'string' ? upstream.code : code,
    },
  };
}

function statusOf({ code, http_status: status, upstream }: CanonicalError): number {
  const own = WIRE_ERRORS[code].status;
  if (status === undefined || status < 400 || status > 599) return own;
  if (status === 402 && upstream?.protocol === 'openai-chat') return status;
  return FOREIGN_STATUS[status] ?? status;
}

function headersOf({ retry_after_ms: wait, request_id: id, details }: CanonicalError): HeaderBag {
  const retry = details?.['should_retry'];
  return {
    'content-type': 'application/json',
    ...(wait !== undefined && { 'retry-after': String(Math.ceil(wait / 1000)), 'retry-after-ms': String(wait) }),
    ...(id !== undefined && { 'x-request-id': id }),
    ...(typeof retry === 'string' && { 'x-should-retry': retry }),
  };
}

/** What servers write into `finish_reason`. Anything else, like nothing at all, is `end_turn`. */
const FROM_WIRE: Record<string, StopReason> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'content_filter',
  // Before tool calls, and the vocabularies of other protocols and servers.
  function_call: 'tool_use',
  tool_call: 'tool_use',
  tool_use: 'tool_use',
  max_tokens: 'max_tokens',
  max_output_tokens: 'max_tokens',
  model_length: 'max_tokens',
  MAX_TOKENS: 'max_tokens',
  stop_sequence: 'stop_sequence',
  pause_turn: 'pause_turn',
  sensitive: 'content_filter',
  safety: 'content_filter',
  SAFETY: 'content_filter',
  refusal: 'content_filter',
  network_error: 'error',
  abort: 'error',
  error: 'error',
  insufficient_system_resource: 'error',
};

/** Values that are no departure: the official four and the deprecated one. */
const STANDARD = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call']);

export const isStandardStop = (finish: string): boolean => STANDARD.has(finish);

export const decodeStop = (finish: string | null): StopReason => getOwn(FROM_WIRE, finish) ?? 'end_turn';

/** What a chat client may read in `finish_reason`. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

/** `error` has no word: it is an error object. */
const WIRE_STOPS: Record<Exclude<StopReason, 'error'>, FinishReason> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  max_tokens: 'length',
  context_window: 'length',
  tool_use: 'tool_calls',
  content_filter: 'content_filter',
  // Without a text in `refusal`, "stop" would be a silent empty answer, and agents loop on it.
  refusal: 'content_filter',
};

/** `saysRefusal`: the message holds text, and its `refusal` says that it is one. */
export const encodeStop = (stop: Exclude<StopReason, 'error'>, saysRefusal: boolean): FinishReason =>
  stop === 'refusal' && saysRefusal ? 'stop' : WIRE_STOPS[stop];

/** Stops after which a call without arguments may have lost them: it gets no `{}`. */
export const isCutStop = (stop: StopReason): boolean => TO_CUT.has(stop);

const TO_CUT: ReadonlySet<StopReason> = new Set<StopReason>(['max_tokens', 'context_window', 'content_filter', 'error']);

type UsageContext = Pick<Context, 'note' | 'profile'>;

/**
 * The spellings of one count, in the details of the prompt or beside them: `cached_tokens` (Moonshot: at the top level), `num_cached_tokens`,
 * `precached_prompt_tokens` (GigaChat), `prompt_cache_hit_tokens` (DeepSeek), `cache_read_input_tokens` (LiteLLM, and Anthropic's own).
 */
const READ = /^(num_|pre)?cached(_prompt)?_tokens$|_cache_hit_|^cache_read_/;

/** `cache_write_tokens`, `cache_creation_tokens` and `cache_creation_input_tokens` (LiteLLM), `cached_creation_tokens` (new-api). */
const WRITTEN = /^cached?_(write|creation)(_input)?_tokens$/;

const REASONING = 'reasoning_tokens';

/** `prompt_tokens` includes what was cached, `completion_tokens` what was reasoned: the canonical counts do too. */
export function decodeUsage(raw: JsonObject, { note, profile }: UsageContext): CanonicalUsage {
  const prompt = objectOf(raw['prompt_tokens_details'] ?? raw['input_tokens_details']);
  const completion = objectOf(raw['completion_tokens_details'] ?? raw['output_tokens_details']);
  const read = largest(READ, prompt, raw);
  const written = largest(WRITTEN, prompt, raw);
  const reasoned = countOf(completion[REASONING]) ?? countOf(raw[REASONING]);
  const counted = countOf(raw['prompt_tokens']);
  let input = counted || countOf(raw['input_tokens']) || 0;
  let output = countOf(raw['completion_tokens']) || countOf(raw['output_tokens']) || 0;
  const isCounted = input + output > 0;
  // Anthropic's own counts leave out what the cache had.
  if (!counted && isSet(raw['cache_read_input_tokens'] ?? raw['cache_creation_input_tokens']))
    input += (read ?? 0) + (written ?? 0);
  const excluded = cachedOutside(read, input, note);
  input += excluded;
  // Tokens that only the total shows: xAI and Gemini's compatible endpoint leave out reasoning, Mistral leaves out audio of the prompt.
  const outside = isCounted ? Math.max(0, (countOf(raw['total_tokens']) ?? 0) - input - output) : 0;
  const additive = profile?.reasoning_additive;
  if (isSet(raw['prompt_audio_seconds'])) input += outside;
  else if (additive !== false) output += outside || (additive && reasoned) || 0;
  const isOver = additive === undefined && reasoned !== undefined && reasoned > output;
  if (isOver) noteUsage(note, REASONING, reasoned, output, 'usage is uncertain');
  const reasoning = isOver ? reasoned : within(reasoned, output, REASONING, note);
  const details = { ...readDetails(prompt, PROMPT_DETAILS), ...readDetails(completion, COMPLETION_DETAILS) };
  return {
    input_tokens: input,
    output_tokens: output,
    ...(read !== undefined && { cache_read_tokens: read }),
    ...(written !== undefined && { cache_creation_tokens: written }),
    ...(reasoning !== undefined && { reasoning_tokens: reasoning }),
    ...(countKeys(details) > 0 && { details }),
    ...((isOver || excluded > 0) && { uncertain: true }),
    extensions: { 'openai-chat': raw },
  };
}

/** Relays fill in one spelling and leave zeros in the others. */
function largest(names: RegExp, ...sources: readonly JsonObject[]): number | undefined {
  let most: number | undefined;
  for (const source of sources)
    for (const key in source) if (names.test(key)) most = Math.max(most ?? 0, countOf(source[key]) ?? 0);
  return most;
}

/** Where each detail stands on the wire; zeros say nothing. */
const PROMPT_DETAILS = { audio_tokens: 'input_audio', image_tokens: 'input_image' } as const;

const COMPLETION_DETAILS = {
  audio_tokens: 'output_audio',
  image_tokens: 'output_image',
  accepted_prediction_tokens: 'accepted_prediction',
  rejected_prediction_tokens: 'rejected_prediction',
} as const;

function readDetails(source: JsonObject, fields: Record<string, keyof UsageDetails>): UsageDetails {
  const details: UsageDetails = {};
  for (const [wire, name] of Object.entries(fields)) {
    const count = countOf(source[wire]);
    if (count) details[name] = count;
  }
  return details;
}

/** Over what the wire had, so that counts nobody knows survive. The details are always objects: clients read through them. */
export function encodeUsage({ extensions, details = {}, ...usage }: CanonicalUsage): JsonObject {
  const raw = objectOf(extensions?.['openai-chat']);
  const input = Math.max(0, usage.input_tokens);
  const output = Math.max(0, usage.output_tokens);
  const { cache_read_tokens: read = 0, cache_creation_tokens: written, reasoning_tokens: reasoning = 0 } = usage;
  return {
    ...raw,
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: {
      ...objectOf(raw['prompt_tokens_details']),
      ...encodeDetails(details, PROMPT_DETAILS),
      cached_tokens: Math.min(Math.max(0, read), input),
      ...(written !== undefined && { cache_write_tokens: Math.max(0, written) }),
    },
    completion_tokens_details: {
      ...objectOf(raw['completion_tokens_details']),
      ...encodeDetails(details, COMPLETION_DETAILS),
      reasoning_tokens: Math.min(Math.max(0, reasoning), output),
    },
  };
}

function encodeDetails(details: UsageDetails, fields: Record<string, keyof UsageDetails>): JsonObject {
  const entries = Object.entries(fields).map(([wire, name]) => [wire, details[name]] as const);
  return Object.fromEntries(entries.filter(([, count]) => count !== undefined));
}
