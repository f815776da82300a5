import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { TokenLogprob } from '../../canonical/blocks.ts';
import type { Extensions } from '../../canonical/protocol.ts';
import { listOf, objectOf } from '../shared/read.ts';

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
