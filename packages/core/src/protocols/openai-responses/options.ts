import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { type CodecContext, drop, refuse } from '../shared/codec.ts';
import { expectBoolean, expectList, expectText, optional } from '../shared/expect.ts';
import { decodeMetadata, decodeTier, encodeTier, encodeUserId } from '../shared/openai-fields.ts';
import { decodePromptCache, encodePromptCache } from '../shared/prompt-cache.ts';
import { isTexts, objectOf } from '../shared/read.ts';
import { LOGPROBS } from './parameters.ts';

type Options = Pick<
  CanonicalRequest,
  'user_id' | 'metadata' | 'service_tier' | 'store' | 'state' | 'prompt_cache' | 'truncation' | 'include'
>;

/** What a request says beside the conversation. Everything is kept as well: the client's own words go back where they say the same. */
export function decodeOptions(body: JsonObject, context: CodecContext): Options {
  const user = optional(body['user'], 'user', expectText);
  const userId = optional(body['safety_identifier'], 'safety_identifier', expectText) ?? user;
  const store = optional(body['store'], 'store', expectBoolean);
  const { truncation } = body;
  return {
    ...(userId !== undefined && { user_id: userId }),
    ...decodeMetadata(body['metadata']),
    ...decodeTier(body['service_tier']),
    ...(store !== undefined && { store }),
    ...decodeState(body),
    ...decodePromptCache(body, context),
    ...((truncation === 'auto' || truncation === 'disabled') && { truncation }),
    ...decodeInclude(body['include']),
  };
}

/** A conversation is named by its id, alone or in an object. */
function decodeState(body: JsonObject): Pick<Options, 'state'> {
  const previous = optional(body['previous_response_id'], 'previous_response_id', expectText);
  const { conversation } = body;
  const id = optional(
    typeof conversation === 'string' ? conversation : objectOf(conversation)['id'],
    'conversation.id',
    expectText,
  );
  const background = optional(body['background'], 'background', expectBoolean);
  const template = objectOf(body['prompt'])['id'];
  const state: NonNullable<Options['state']> = {
    ...(previous !== undefined && { previous_response_id: previous }),
    ...(id !== undefined && { conversation_id: id }),
    ...(background !== undefined && { background }),
    ...(typeof template === 'string' && { prompt_id: template }),
  };
  return Object.keys(state).length > 0 ? { state } : {};
}

function decodeInclude(value: unknown): Pick<Options, 'include'> {
  const list = optional(value, 'include', expectList);
  return list ? { include: list.map((item, i) => expectText(item, `include[${i}]`)) } : {};
}

/** The names of the fields that are mapped and kept: an old value never outlives the canonical one. */
export const OPTION_FIELDS: readonly string[] = [
  'user',
  'safety_identifier',
  'metadata',
  'service_tier',
  'store',
  'previous_response_id',
  'conversation',
  'background',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'truncation',
  'include',
];

/** `sent`: what the client itself sent in this protocol; undefined when it spoke another. */
export function encodeOptions(request: CanonicalRequest, sent: JsonObject | undefined, context: CodecContext): JsonObject {
  const { metadata, state, truncation } = request;
  const kept = sent ?? {};
  const options = {
    metadata: metadata ?? (isTexts(objectOf(kept['metadata'])) ? undefined : kept['metadata']),
    service_tier: encodeTier(request.service_tier, kept['service_tier']),
    // Left out it means yes; a client of another protocol never asked for that (P121).
    store: request.store ?? (sent ? undefined : false),
    previous_response_id: state?.previous_response_id,
    conversation: encodeConversation(state?.conversation_id, kept['conversation']),
    background: state?.background,
    truncation,
    include: encodeInclude(request, sent, context),
    ...encodePromptCache(request, kept),
    ...encodeUser(request, kept, context),
  };
  dropForeign(request, context);
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

const encodeConversation = (id: string | undefined, kept: unknown): unknown =>
  id !== undefined && objectOf(kept)['id'] === id ? kept : id;

const ENCRYPTED = 'reasoning.encrypted_content';

/** Without a store the reasoning has to travel with the conversation. Servers and models that are not known to send it are not asked. */
function encodeInclude(
  { include = [], parameters }: CanonicalRequest,
  sent: JsonObject | undefined,
  { profile }: CodecContext,
): readonly string[] | undefined {
  if (sent) return sent['include'] === undefined && include.length === 0 ? undefined : include;
  const isReasoning = profile.encrypted_reasoning && profile.thinking_mode !== 'none';
  const wanted = [...include, ...(isReasoning ? [ENCRYPTED] : []), ...(parameters.logprobs ? [LOGPROBS] : [])];
  return wanted.length > 0 ? [...new Set(wanted)] : undefined;
}

/** OpenAI has a new name for it. A client that used the old one, or both, gets through what it said. */
function encodeUser({ user_id: id }: CanonicalRequest, kept: JsonObject, context: CodecContext): JsonObject {
  if (id === undefined) return {};
  const short = encodeUserId(id, context);
  const isNew =
    kept['user'] === id ? kept['safety_identifier'] !== undefined : context.profile.official || kept['user'] !== undefined;
  return { user: isNew ? (kept['user'] ?? undefined) : short, safety_identifier: isNew ? short : undefined };
}

/** What only other protocols can be asked for. */
function dropForeign(
  { modalities, audio_output: audio, state, service_tier: tier }: CanonicalRequest,
  context: CodecContext,
): void {
  const lose = (feature: string, message: string): void => drop(context, { path: `/${feature}`, feature, message });
  if (tier === 'batch') lose('service_tier', 'OpenAI Responses has no service tier batch');
  if (modalities?.some((word) => word !== 'text')) lose('modalities', 'OpenAI Responses answers in text');
  if (audio) lose('audio_output', 'OpenAI Responses does not speak');
  if (state?.cached_content !== undefined)
    refuse(context, {
      path: '/state/cached_content',
      feature: 'state.cached_content',
      message: 'cachedContent names content stored by another server; send the whole conversation instead',
    });
}
