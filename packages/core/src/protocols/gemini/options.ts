import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import { dropState } from '../shared/drop-state.ts';
import { expectObject, expectText, optional } from '../shared/expect.ts';
import { isTexts, textOf } from '../shared/read.ts';
import { camelObject } from './wire.ts';

/** What a request says beside the conversation. */
type Options = Pick<CanonicalRequest, 'metadata' | 'service_tier' | 'state' | 'modalities' | 'audio_output'>;

/** Top-level fields that are mapped. `labels` are kept as well: only Vertex takes them. */
export const OPTION_FIELDS: readonly string[] = ['cachedContent', 'serviceTier'];

export function decodeOptions(body: JsonObject, config: JsonObject): Options {
  const cached = optional(body['cachedContent'], 'cachedContent', expectText);
  const tier = tierOf(body);
  return {
    ...decodeLabels(body['labels']),
    ...(tier !== undefined && { service_tier: tier }),
    ...(cached && { state: { cached_content: cached } }),
    ...decodeModalities(config['responseModalities']),
    ...decodeVoice(config['speechConfig']),
  };
}

const TIERS: readonly string[] = ['standard', 'flex', 'priority'];

const tierOf = (body: JsonObject): string | undefined => {
  const tier = optional(body['serviceTier'], 'serviceTier', expectText)?.toLowerCase();
  return tier !== undefined && TIERS.includes(tier) ? tier : undefined;
};

/** A tier without a canonical word goes back as it came; `unspecified` is what is meant when there is none. */
export function keptOptions(body: JsonObject): JsonObject {
  const { serviceTier: tier } = body;
  const isKept = typeof tier === 'string' && tierOf(body) === undefined && !/unspecified$/i.test(tier);
  return isKept ? { serviceTier: tier } : {};
}

/** Texts only; what holds something else goes back as it came. */
function decodeLabels(value: unknown): Pick<Options, 'metadata'> {
  const labels = optional(value, 'labels', expectObject);
  return labels && isTexts(labels) ? { metadata: labels } : {};
}

type Modality = 'text' | 'audio' | 'image';
const MODALITIES: readonly string[] = ['text', 'audio', 'image'] satisfies Modality[];
const isModality = (word: string): word is Modality => MODALITIES.includes(word);

function decodeModalities(value: unknown): Pick<Options, 'modalities'> {
  if (!Array.isArray(value)) return {};
  const words = value.map((word) => textOf(word).toLowerCase());
  return words.length > 0 && words.every(isModality) ? { modalities: words.filter(isModality) } : {};
}

/** The voice of one speaker; everything else about speech is only Google's. */
function decodeVoice(value: unknown): Pick<Options, 'audio_output'> {
  const voice = camelObject(camelObject(value)['voiceConfig']);
  const name = textOf(camelObject(voice['prebuiltVoiceConfig'])['voiceName']);
  return name === '' ? {} : { audio_output: { voice: name } };
}

/** Fields of the body that the options become. `sent`: what the client itself sent in this protocol. */
export function encodeOptions(request: CanonicalRequest, sent: JsonObject, context: CodecContext): JsonObject {
  dropForeign(request, context);
  const { service_tier: tier, state, metadata } = request;
  const isTier = tier !== undefined && TIERS.includes(tier);
  if (tier !== undefined && !isTier && tier !== 'auto') lose('service_tier', `Gemini has no service tier ${tier}`, context);
  if (metadata && Object.keys(metadata).length > 0 && !sent['labels']) lose('metadata', 'only Vertex takes labels', context);
  return {
    ...(state?.cached_content !== undefined && { cachedContent: state.cached_content }),
    ...(isTier && { serviceTier: tier }),
    ...(metadata && sent['labels'] !== undefined && { labels: metadata }),
  };
}

/** Fields of `generationConfig`: the voices of other providers have other names. `sent`: the kept configuration. */
export function encodeOutput(
  { modalities, audio_output: audio }: CanonicalRequest,
  sent: JsonObject,
  context: CodecContext,
): JsonObject {
  const isOwn = sent['speechConfig'] !== undefined;
  if (audio && !isOwn) lose('audio_output', 'the voices of Gemini have other names', context);
  return modalities ? { responseModalities: modalities.map((word) => word.toUpperCase()) } : {};
}

/** What only a provider with a memory could do, and what Gemini has no word for. */
function dropForeign(request: CanonicalRequest, context: CodecContext): void {
  const { user_id: user, store, verbosity, prompt_cache: cache } = request;
  dropState(request, 'Gemini', ['previous_response_id', 'conversation_id'], context);
  if (user !== undefined) lose('user_id', 'Gemini is not told who the user is', context);
  // Nothing is stored where nothing can be.
  if (store === true) lose('store', 'Gemini stores no answers', context);
  if (verbosity !== undefined) lose('verbosity', 'Gemini has no verbosity', context);
  for (const name of ['key', 'mode', 'ttl'] as const)
    if (cache?.[name] !== undefined) lose(`prompt_cache.${name}`, 'Gemini caches by itself', context);
}

const lose = (feature: string, message: string, context: CodecContext): void =>
  drop(context, { path: `/${feature.replaceAll('.', '/')}`, feature, message });
