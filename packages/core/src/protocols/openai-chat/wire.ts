/**
 * Wire types of OpenAI Chat, and the wire fields that travel as extensions because the canonical model has no place for
 * them.
 */

import type { WireDelta } from '../../accumulate/chat-delta.ts';
import type { TokenLogprob } from '../../canonical/message.ts';
import type { CacheControl, Extensions, Node } from '../../canonical/protocol.ts';
import { keepFields, readFields } from '../../codec/extensions.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { listOrEmpty, objectOrEmpty, unknownFields } from '../../codec/read.ts';
import { decodeBreakpoint, isBreakpoint, isTtl } from '../../codec/requests.ts';
import { isObject, type JsonObject } from '../../json/json.ts';

export { CHOICE_FIELDS, DELTA_FIELDS, type WireChoice, type WireChunk, type WireDelta } from '../../accumulate/chat-delta.ts';

/** Marks a whole message that is read in place of a delta. */
export const WHOLE_MESSAGE: unique symbol = Symbol('whole message');

/** Whether a delta is a whole message. */
export const isWholeMessage = (delta: WireDelta & { [WHOLE_MESSAGE]?: true }): boolean => delta[WHOLE_MESSAGE] === true;

/** Reads the extensions of a node: wire fields without a canonical place. */
export const readExtensions = (node: Node): JsonObject => readFields(node, 'openai-chat');

/** Builds the `extensions` of a node from wire fields; empty if there are none. */
export const toExtensions = (fields: JsonObject | undefined): Node => keepFields(fields, 'openai-chat');

/** The unknown fields of an object, and under the name of one inner object the unknown fields of that. */
export function nestedUnknownFields(
  source: JsonObject,
  known: ReadonlySet<string>,
  inner: string,
  innerKnown: ReadonlySet<string>,
): JsonObject {
  const rest = unknownFields(objectOrEmpty(source[inner]), innerKnown);
  return { ...unknownFields(source, known), ...(rest && { [inner]: rest }) };
}

/** A cache breakpoint in OpenAI's form, or in Anthropic's, which OpenRouter and others accept. */
export function decodeCacheControl(source: JsonObject): { cache_control?: CacheControl } {
  if (isBreakpoint(source)) return decodeBreakpoint(source);
  const { type, ttl } = objectOrEmpty(source['cache_control']);
  return type === 'ephemeral' ? { cache_control: { type, ...(isTtl(ttl) && { ttl }) } } : {};
}

/**
 * A cache mark in Anthropic's form, for servers that accept it. A mark that a chat client sent is among the extensions.
 */
export const encodeCacheControl = (node: { cache_control?: CacheControl }, { profile }: CodecContext): JsonObject =>
  profile.cache_control && node.cache_control
    ? { cache_control: { type: 'ephemeral', ...(node.cache_control.ttl && { ttl: node.cache_control.ttl }) } }
    : {};

/** Extensions that the canonical request holds too, with the path of the canonical field. */
export const MIRRORED_FIELDS: Readonly<Record<string, string>> = {
  prompt_cache_retention: '/prompt_cache',
  service_tier: '/service_tier',
  thinking: '/thinking',
  reasoning: '/thinking',
  enable_thinking: '/thinking',
  thinking_budget: '/thinking',
  disable_thinking: '/thinking',
  cache_control: '',
  file_id: '',
  // The index of a call in a stream, which some clients send back.
  index: '',
};

/** The wire location of each canonical field whose path differs. */
const FIELD_PATHS: Readonly<Record<string, string>> = {
  parameters: '',
  'parameters/stop_sequences': '/stop',
  output_format: '/response_format',
  parallel_tool_use: '/parallel_tool_calls',
  thinking: '/reasoning_effort',
  prompt_cache: '/prompt_cache_options',
  'prompt_cache/key': '/prompt_cache_key',
  audio_output: '/audio',
};

/** The wire locations for this body; a field with an old and a new name has the one that the body uses. */
export function listFieldPaths(body: JsonObject): Record<string, string> {
  const findName = (name: string, old: string): string =>
    `/${(body[name] ?? undefined) === undefined && (body[old] ?? undefined) !== undefined ? old : name}`;
  return {
    ...FIELD_PATHS,
    'parameters/max_tokens': findName('max_completion_tokens', 'max_tokens'),
    tool_choice: findName('tool_choice', 'function_call'),
    user_id: findName('safety_identifier', 'user'),
  };
}

/** The wire location of each field of a content part whose canonical path differs. */
export function listPartPaths(pointer: string, part: JsonObject): Record<string, string | undefined> {
  return {
    'source/detail': `${pointer}/image_url/detail`,
    'source/filename': `${pointer}/file/filename`,
    'source/data': typeof part['input_audio'] === 'string' ? `${pointer}/input_audio` : undefined,
    cache_control: isBreakpoint(part) ? `${pointer}/prompt_cache_breakpoint` : undefined,
  };
}

// ---- extensions of responses

/**
 * Extensions of a response that other protocols can do without: canonical fields hold the same, or the decoder added
 * them.
 */
export const IGNORABLE_FIELDS: ReadonlySet<string> = new Set([
  'finish_reason',
  'choice/',
  'message/',
  'message/role',
  'message/reasoning_names',
  'message/function_call',
  'message/audio',
  'content/index',
]);

/** The extensions of a choice and of its message. */
export interface ChoiceExtensions {
  /** Fields of the body or chunk around the choices. */
  envelope: JsonObject;
  choice: JsonObject;
  message: JsonObject;
  /** Undefined for `reasoning_content` alone; empty if the text was in `reasoning_details` only. */
  reasoningNames: readonly string[] | undefined;
  reasoningDetails: readonly unknown[];
  /** Canonical tokens that arrived while no text block was open. */
  logprobs: readonly TokenLogprob[];
  logprobsRest: JsonObject;
  /** Fields other than data and transcript, which are in the block. */
  audio: JsonObject;
  /** The call was a `function_call`. */
  isLegacy: boolean;
}

/** The fields for reasoning text, in order of precedence. */
const REASONING_TEXT_FIELDS: ReadonlySet<string> = new Set(['reasoning_content', 'reasoning', 'reasoning_text']);

/** Splits the extensions that the stream decoder writes into wire fields to pass back and values to encode. */
export function readChoiceExtensions(extensions: Extensions | undefined): ChoiceExtensions {
  const { finish_reason: _finish, choice, message, ...envelope }: JsonObject = extensions?.['openai-chat'] ?? {};
  const { [LOGPROBS_REST]: rest, ...choiceFields } = objectOrEmpty(choice);
  const {
    role: _role,
    [REASONING_NAMES]: names,
    reasoning_details: details,
    logprobs,
    audio,
    function_call: legacy,
    ...messageFields
  } = objectOrEmpty(message);
  return {
    envelope,
    choice: choiceFields,
    message: messageFields,
    reasoningNames: Array.isArray(names) ? names.filter((name) => REASONING_TEXT_FIELDS.has(name)) : undefined,
    reasoningDetails: listOrEmpty(details),
    logprobs: listOrEmpty(logprobs) as TokenLogprob[], // written by our decoder, not by the wire
    logprobsRest: objectOrEmpty(rest),
    audio: objectOrEmpty(audio),
    isLegacy: legacy === true,
  };
}

/** Extension that lists the fields in which a message had its reasoning; only whole responses have it. */
export const REASONING_NAMES = 'reasoning_names';

/**
 * Lists the fields that hold the reasoning text (gateways that fill two send the same text twice); undefined for
 * `reasoning_content` alone.
 */
export function findReasoningNames(message: JsonObject): string[] | undefined {
  const texts = [...REASONING_TEXT_FIELDS].filter((name) => typeof message[name] === 'string' && message[name] !== '');
  if (texts.length === 0) return Array.isArray(message['reasoning_details']) ? [] : undefined;
  const names = texts.filter((name) => message[name] === message[texts[0] ?? '']);
  return names.join() === 'reasoning_content' ? undefined : names;
}

/** Extension for logprobs that canonical tokens cannot hold: unknown sides, token ids. */
export const LOGPROBS_REST = 'logprobs_rest';

const LOGPROB_SIDES: ReadonlySet<string> = new Set(['content', 'refusal']);

/** The part of the logprobs that canonical tokens cannot hold, or undefined. */
export function readLogprobsRest(logprobs: unknown): JsonObject | undefined {
  if (!isObject(logprobs)) return undefined;
  const rest = Object.entries(logprobs).filter(
    ([side, tokens]) => tokens !== null && (!LOGPROB_SIDES.has(side) || hasUnknownFields(tokens)),
  );
  return rest.length > 0 ? Object.fromEntries(rest) : undefined;
}

const TOKEN_FIELDS: ReadonlySet<string> = new Set(['token', 'logprob', 'bytes', 'top_logprobs']);

const hasUnknownFields = (tokens: unknown): boolean =>
  listOrEmpty(tokens).some(
    (token) =>
      isObject(token) &&
      (Object.keys(token).some((key) => !TOKEN_FIELDS.has(key)) ||
        ('top_logprobs' in token && hasUnknownFields(token['top_logprobs']))),
  );
