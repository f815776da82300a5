import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import { expectBoolean, expectObject, expectText, optional } from '../shared/expect.ts';
import { decodeMetadata, decodeTier, encodeTier, encodeUserId, shortUser } from '../shared/openai-fields.ts';
import { decodePromptCache, encodePromptCache } from '../shared/prompt-cache.ts';
import { isTexts, objectOf } from '../shared/read.ts';

/**
 * What a request says beside the conversation. OpenAI knows all of it, compatible servers some, and strict ones refuse what they do not know:
 * these fields are mapped and kept, so that a server which is not OpenAI gets those that the client itself sent in this protocol.
 */
type Options = Pick<
  CanonicalRequest,
  'user_id' | 'metadata' | 'service_tier' | 'store' | 'modalities' | 'audio_output' | 'prompt_cache' | 'verbosity'
>;

export function decodeOptions(body: JsonObject, context: CodecContext): Options {
  const user = optional(body['user'], 'user', expectText);
  const safety = optional(body['safety_identifier'], 'safety_identifier', expectText);
  const userId = safety ?? user;
  const store = optional(body['store'], 'store', expectBoolean);
  const audio = optional(body['audio'], 'audio', expectObject);
  const { verbosity } = body;
  return {
    ...(userId !== undefined && { user_id: userId }),
    ...decodeMetadata(body['metadata']),
    ...decodeTier(body['service_tier']),
    ...(store !== undefined && { store }),
    ...decodeModalities(body['modalities']),
    ...(audio && { audio_output: decodeAudio(audio) }),
    ...decodePromptCache(body, context),
    ...(isVerbosity(verbosity) && { verbosity }),
  };
}

function decodeModalities(value: unknown): Pick<Options, 'modalities'> {
  return Array.isArray(value) && value.every(isModality) ? { modalities: value } : {};
}

const isModality = (word: unknown): word is 'text' | 'audio' | 'image' => word === 'text' || word === 'audio' || word === 'image';

function decodeAudio({ format, voice }: JsonObject): NonNullable<Options['audio_output']> {
  return { ...(typeof format === 'string' && { format }), ...(voice !== undefined && { voice }) };
}

/** `sent`: what the client itself sent in this protocol. */
export function encodeOptions(request: CanonicalRequest, sent: JsonObject, context: CodecContext): JsonObject {
  const body: JsonObject = { ...encodeUser(request, sent, context) };
  const options = wanted(request, sent);
  for (const name of Object.keys(options)) {
    const value = options[name];
    if (value === undefined) continue;
    const message = sent[name] === undefined ? objectionTo(name, request, context) : undefined;
    if (message === undefined) body[name] = value;
    else if (!isUsual(name, value)) for (const path of placesOf(name, value)) drop(context, { path, feature: name, message });
  }
  return body;
}

/** Why a server would refuse what a client of another protocol asked for. */
function objectionTo(name: string, request: CanonicalRequest, { profile }: CodecContext): string | undefined {
  const { store, modalities = [], audio_output: audio } = request;
  if (!profile.official) return `only OpenAI knows ${name}`;
  // 400 "The 'metadata' parameter is only allowed when 'store' is enabled."
  if (name === 'metadata' && store !== true) return 'OpenAI Chat takes metadata only of what it stores';
  if (name === 'modalities' && modalities.includes('image')) return 'OpenAI Chat answers in no images';
  const isSpoken = name === 'audio' || (name === 'modalities' && modalities.includes('audio'));
  return isSpoken && audio?.format === undefined
    ? 'OpenAI Chat speaks in voices of its own, and in a format that is named'
    : undefined;
}

/** What is so anyway: nothing is stored where nothing can be. */
function isUsual(name: string, value: unknown): boolean {
  if (name === 'modalities') return Array.isArray(value) && value.every((word) => word === 'text');
  return value === (name === 'store' ? false : name === 'service_tier' && 'auto');
}

const PLACES: Readonly<Record<string, string>> = {
  audio: '/audio_output',
  prompt_cache_key: '/prompt_cache/key',
  prompt_cache_retention: '/prompt_cache/ttl',
};

/** Where the canonical request says what would have been this field. */
const placesOf = (name: string, value: unknown): string[] =>
  name === 'prompt_cache_options'
    ? Object.keys(objectOf(value)).map((option) => `/prompt_cache/${option}`)
    : [PLACES[name] ?? `/${name}`];

/** The names of the fields that are mapped and kept: an old value never outlives the canonical one. */
export const OPTION_FIELDS: readonly string[] = [
  'user',
  'safety_identifier',
  'metadata',
  'service_tier',
  'store',
  'modalities',
  'audio',
  'verbosity',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
];

function wanted(request: CanonicalRequest, sent: JsonObject): JsonObject {
  const { metadata, service_tier: tier, store, modalities, audio_output: audio, verbosity } = request;
  return {
    metadata: metadata ?? odd(sent['metadata'], isOddMetadata),
    service_tier: encodeTier(tier, sent['service_tier']),
    store,
    modalities: modalities ?? odd(sent['modalities'], (value) => !Array.isArray(value) || !value.every(isModality)),
    audio: audio && { ...objectOf(sent['audio']), ...audio },
    verbosity: verbosity ?? odd(sent['verbosity'], (value) => !isVerbosity(value)),
    ...encodePromptCache(request, sent),
  };
}

/** A value that could not be mapped goes back as it came. */
const odd = (value: unknown, isOdd: (value: unknown) => boolean): unknown =>
  value !== undefined && isOdd(value) ? value : undefined;
const isVerbosity = (word: unknown): word is NonNullable<CanonicalRequest['verbosity']> =>
  word === 'low' || word === 'medium' || word === 'high';
const isOddMetadata = (value: unknown): boolean => !isTexts(objectOf(value));

/** OpenAI has two names for the user, the others know the old one. A client that sent two ids gets two through. */
function encodeUser({ user_id: id }: CanonicalRequest, sent: JsonObject, context: CodecContext): JsonObject {
  if (id === undefined) return {};
  const short = encodeUserId(id, context);
  const safety = (context.profile.official || sent['safety_identifier'] !== undefined) && { safety_identifier: short };
  const user = typeof sent['user'] === 'string' && sent['safety_identifier'] !== undefined ? shortUser(sent['user']) : short;
  return { ...safety, user };
}
