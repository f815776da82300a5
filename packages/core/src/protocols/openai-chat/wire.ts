import type { TokenLogprob } from '../../canonical/message.ts';
import type { CacheControl, Extensions } from '../../canonical/protocol.ts';
import { type Keeper, keeper } from '../../codec/extensions.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { listOf, objectOf, unknownFields } from '../../codec/read.ts';
import { decodeBreakpoint, isBreakpoint, isTtl } from '../../codec/requests.ts';
import { isObject, type JsonObject } from '../../json/json.ts';

export { CHOICE_FIELDS, DELTA_FIELDS, type WireChoice, type WireChunk, type WireDelta } from '../../accumulate/chat-delta.ts';

const kept: Keeper = keeper('openai-chat');

export const fieldsOf: Keeper['fieldsOf'] = kept.fieldsOf;

export const keep: Keeper['keep'] = kept.keep;

/** The unknown fields of an object and, under its own name, those of one object inside it. */
export function unknownWithin(
  source: JsonObject,
  known: ReadonlySet<string>,
  inner: string,
  innerKnown: ReadonlySet<string>,
): JsonObject {
  const rest = unknownFields(objectOf(source[inner]), innerKnown);
  return { ...unknownFields(source, known), ...(rest && { [inner]: rest }) };
}

/** A cache breakpoint in OpenAI's words, or in Anthropic's, which OpenRouter and others take. */
export function decodeCacheControl(source: JsonObject): { cache_control?: CacheControl } {
  if (isBreakpoint(source)) return decodeBreakpoint(source);
  const { type, ttl } = objectOf(source['cache_control']);
  return type === 'ephemeral' ? { cache_control: { type, ...(isTtl(ttl) && { ttl }) } } : {};
}

/** A mark in Anthropic's words, for servers that take it; one that the client itself sent in this protocol is among the kept fields. */
export const encodeMark = (node: { cache_control?: CacheControl }, { profile }: CodecContext): JsonObject =>
  profile.cache_control && node.cache_control
    ? { cache_control: { type: 'ephemeral', ...(node.cache_control.ttl && { ttl: node.cache_control.ttl }) } }
    : {};

/** What a part calls otherwise than the canonical block. */
export function placesOf(pointer: string, part: JsonObject): Record<string, string | undefined> {
  return {
    'source/detail': `${pointer}/image_url/detail`,
    'source/filename': `${pointer}/file/filename`,
    'source/data': typeof part['input_audio'] === 'string' ? `${pointer}/input_audio` : undefined,
    cache_control: isBreakpoint(part) ? `${pointer}/prompt_cache_breakpoint` : undefined,
  };
}

/** Under which names a message had its reasoning; kept in the extensions of whole responses only. */
export const REASONING_NAMES = 'reasoning_names';

/** What of the logprobs has no place in the canonical tokens: other sides, token ids. */
export const LOGPROBS_REST = 'logprobs_rest';

/** What the decoder keeps of a choice and of its message. */
export interface KeptChoice {
  /** Fields of the body or chunk around the choices. */
  envelope: JsonObject;
  choice: JsonObject;
  message: JsonObject;
  /** Undefined: the usual one. Empty: the text stood in `reasoning_details` only. */
  reasoningNames: readonly string[] | undefined;
  reasoningDetails: readonly unknown[];
  /** Canonical tokens that came while no text was open. */
  logprobs: readonly TokenLogprob[];
  logprobsRest: JsonObject;
  /** Beside data and transcript, which stand in the block. */
  audio: JsonObject;
  /** The call was a `function_call`. */
  isLegacy: boolean;
}

/** The extensions that the stream decoder writes, told apart: fields that go back as they came, and what is encoded again. */
export function readKept(extensions: Extensions | undefined): KeptChoice {
  const { finish_reason: _finish, choice, message, ...envelope }: JsonObject = extensions?.['openai-chat'] ?? {};
  const { [LOGPROBS_REST]: rest, ...choiceFields } = objectOf(choice);
  const {
    role: _role,
    [REASONING_NAMES]: names,
    reasoning_details: details,
    logprobs,
    audio,
    function_call: legacy,
    ...messageFields
  } = objectOf(message);
  return {
    envelope,
    choice: choiceFields,
    message: messageFields,
    reasoningNames: Array.isArray(names) ? names.filter((name) => NAMES.has(name)) : undefined,
    reasoningDetails: listOf(details),
    logprobs: listOf(logprobs) as TokenLogprob[], // written by our decoder, not by the wire
    logprobsRest: objectOf(rest),
    audio: objectOf(audio),
    isLegacy: legacy === true,
  };
}

/** In the order in which they are read. */
const NAMES: ReadonlySet<string> = new Set(['reasoning_content', 'reasoning', 'reasoning_text']);

/** The names that hold the reasoning text; gateways that send two send the same text twice. Undefined for the usual one. */
export function reasoningNames(message: JsonObject): string[] | undefined {
  const texts = [...NAMES].filter((name) => typeof message[name] === 'string' && message[name] !== '');
  if (texts.length === 0) return Array.isArray(message['reasoning_details']) ? [] : undefined;
  const names = texts.filter((name) => message[name] === message[texts[0] ?? '']);
  return names.join() === 'reasoning_content' ? undefined : names;
}

const SIDES: ReadonlySet<string> = new Set(['content', 'refusal']);

const TOKEN_FIELDS: ReadonlySet<string> = new Set(['token', 'logprob', 'bytes', 'top_logprobs']);

export function logprobsRest(logprobs: unknown): JsonObject | undefined {
  if (!isObject(logprobs)) return undefined;
  const rest = Object.entries(logprobs).filter(([side, tokens]) => tokens !== null && (!SIDES.has(side) || hasUnknown(tokens)));
  return rest.length > 0 ? Object.fromEntries(rest) : undefined;
}

const hasUnknown = (tokens: unknown): boolean =>
  listOf(tokens).some(
    (token) =>
      isObject(token) &&
      (Object.keys(token).some((key) => !TOKEN_FIELDS.has(key)) ||
        ('top_logprobs' in token && hasUnknown(token['top_logprobs']))),
  );

/** Where OpenAI Chat says what the canonical request says elsewhere. */
const PLACES: Readonly<Record<string, string>> = {
  parameters: '',
  'parameters/stop_sequences': '/stop',
  output_format: '/response_format',
  parallel_tool_use: '/parallel_tool_calls',
  thinking: '/reasoning_effort',
  prompt_cache: '/prompt_cache_options',
  'prompt_cache/key': '/prompt_cache_key',
  audio_output: '/audio',
};

/** What has an old name and a new one stands where this body says it. */
export function placesIn(body: JsonObject): Record<string, string> {
  const nameOf = (name: string, old: string): string =>
    `/${(body[name] ?? undefined) === undefined && (body[old] ?? undefined) !== undefined ? old : name}`;
  return {
    ...PLACES,
    'parameters/max_tokens': nameOf('max_completion_tokens', 'max_tokens'),
    tool_choice: nameOf('tool_choice', 'function_call'),
    user_id: nameOf('safety_identifier', 'user'),
  };
}

/** Fields that are kept as they came although the canonical request says them, too. */
export const FIELDS: Readonly<Record<string, string>> = {
  prompt_cache_retention: '/prompt_cache',
  service_tier: '/service_tier',
  thinking: '/thinking',
  reasoning: '/thinking',
  enable_thinking: '/thinking',
  thinking_budget: '/thinking',
  disable_thinking: '/thinking',
  cache_control: '',
  file_id: '',
  // The number of a call in a stream, which some clients keep.
  index: '',
};

/** Fields of an answer that nobody elsewhere misses: the reason and the role are canonical, and some are the decoder's own remarks. */
export const IDLE: ReadonlySet<string> = new Set([
  'finish_reason',
  'choice/',
  'message/',
  'message/role',
  'message/reasoning_names',
  'message/function_call',
  'message/audio',
  'content/index',
]);
