import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { sha256 } from '../../passes/sha256.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import { expectBoolean, expectObject, expectText, optional } from '../shared/expect.ts';
import { decodePromptCache, encodePromptCache } from '../shared/prompt-cache.ts';
import { objectOf } from '../shared/read.ts';

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
  const tier = optional(body['service_tier'], 'service_tier', expectText);
  const store = optional(body['store'], 'store', expectBoolean);
  const audio = optional(body['audio'], 'audio', expectObject);
  const { verbosity } = body;
  return {
    ...(userId !== undefined && { user_id: userId }),
    ...decodeMetadata(body['metadata']),
    ...(tier !== undefined && { service_tier: (Object.hasOwn(TIERS, tier) && TIERS[tier]) || tier }),
    ...(store !== undefined && { store }),
    ...decodeModalities(body['modalities']),
    ...(audio && { audio_output: decodeAudio(audio) }),
    ...decodePromptCache(body, context),
    ...((verbosity === 'low' || verbosity === 'medium' || verbosity === 'high') && { verbosity }),
  };
}

const TIERS: Readonly<Record<string, string>> = { default: 'standard', fast: 'priority' };

/** Texts only; what holds something else goes back as it came. */
function decodeMetadata(value: unknown): Pick<Options, 'metadata'> {
  const metadata = optional(value, 'metadata', expectObject);
  return metadata && isTexts(metadata) ? { metadata } : {};
}

const isTexts = (value: JsonObject): value is Record<string, string> =>
  Object.values(value).every((item) => typeof item === 'string');

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
  for (const [name, value] of Object.entries(wanted(request, sent))) {
    if (value === undefined) continue;
    if (context.profile.official || sent[name] !== undefined) body[name] = value;
    else if (!isUsual(name, value))
      for (const path of placesOf(name, value)) drop(context, { path, feature: name, message: `only OpenAI knows ${name}` });
  }
  return body;
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
    service_tier: tier === undefined || tier === 'batch' ? undefined : tier === 'standard' ? 'default' : tier,
    store,
    modalities: modalities ?? odd(sent['modalities'], (value) => !Array.isArray(value) || !value.every(isModality)),
    audio: audio && { ...objectOf(sent['audio']), ...audio },
    verbosity: verbosity ?? odd(sent['verbosity'], (value) => !['low', 'medium', 'high'].includes(String(value))),
    ...encodePromptCache(request, sent),
  };
}

/** A value that could not be mapped goes back as it came. */
const odd = (value: unknown, isOdd: (value: unknown) => boolean): unknown =>
  value !== undefined && isOdd(value) ? value : undefined;
const isOddMetadata = (value: unknown): boolean => !isTexts(objectOf(value));

/** Longer ids are refused. */
const MAX_USER = 64;

/** OpenAI has two names for the user, the others know the old one. A client that sent two ids gets two through. */
function encodeUser({ user_id: id }: CanonicalRequest, sent: JsonObject, context: CodecContext): JsonObject {
  if (id === undefined) return {};
  const short = (text: string): string => (text.length > MAX_USER ? sha256(text) : text);
  if (short(id) !== id)
    context.note({
      code: 'RENAMED',
      path: '/user_id',
      feature: 'user_id',
      message: `the id of the user is longer than ${MAX_USER}; its hash is sent`,
    });
  const safety = (context.profile.official || sent['safety_identifier'] !== undefined) && { safety_identifier: short(id) };
  const user = typeof sent['user'] === 'string' && sent['safety_identifier'] !== undefined ? sent['user'] : id;
  return { ...safety, user: short(user) };
}
