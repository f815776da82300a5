import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { dropState } from '../shared/drop-state.ts';
import { expectObject, expectText, optional } from '../shared/expect.ts';
import { objectOf, unknownFields } from '../shared/read.ts';
import { decodeCacheControl, encodeCacheControl } from './fields.ts';

type Options = Pick<CanonicalRequest, 'user_id' | 'service_tier' | 'prompt_cache'>;

const TIERS_FROM_WIRE: Readonly<Record<string, string>> = { auto: 'auto', standard_only: 'standard' };
const TIERS_TO_WIRE: Readonly<Record<string, string>> = { standard: 'standard_only', default: 'standard_only', auto: 'auto' };

/** What a request says beside the conversation. */
export function decodeOptions(body: JsonObject): Options {
  const user = optional(optional(body['metadata'], 'metadata', expectObject)?.['user_id'], 'metadata.user_id', expectText);
  const tier = tierOf(body);
  const { cache_control: mark } = decodeCacheControl(body);
  return {
    ...(user !== undefined && { user_id: user }),
    ...(tier !== undefined && { service_tier: tier }),
    ...(mark && { prompt_cache: { cache_control: mark } }),
  };
}

function tierOf(body: JsonObject): string | undefined {
  const word = optional(body['service_tier'], 'service_tier', expectText);
  return word !== undefined && Object.hasOwn(TIERS_FROM_WIRE, word) ? TIERS_FROM_WIRE[word] : undefined;
}

const USER_FIELDS: ReadonlySet<string> = new Set(['user_id']);

/** A tier without a canonical word goes back as it came. */
export function keptOptions(body: JsonObject): JsonObject {
  const metadata = unknownFields(objectOf(body['metadata']), USER_FIELDS);
  const { service_tier: tier } = body;
  const isKept = typeof tier === 'string' && tierOf(body) === undefined;
  return { ...(metadata && { metadata }), ...(isKept && { service_tier: tier }) };
}

export function encodeOptions(request: CanonicalRequest, sent: JsonObject, context: CodecContext): JsonObject {
  const { user_id: user, service_tier: tier, prompt_cache: cache = {} } = request;
  const metadata = { ...objectOf(sent['metadata']), ...(user !== undefined && { user_id: user }) };
  return {
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(tier !== undefined && { service_tier: encodeTier(tier, context) }),
    ...encodeCacheControl(cache),
  };
}

function encodeTier(tier: string, context: CodecContext): string {
  const known = Object.hasOwn(TIERS_TO_WIRE, tier) ? TIERS_TO_WIRE[tier] : undefined;
  if (known) return known;
  approximate(context, {
    path: '/service_tier',
    feature: 'service_tier',
    message: `the service tier "${tier}" is sent as "auto"`,
  });
  return 'auto';
}

/** What a request of another protocol may ask for, and this one has no word for. */
export function dropForeign(request: CanonicalRequest, context: CodecContext): void {
  const { prompt_cache: cache = {} } = request;
  dropState(request, 'Anthropic Messages', ['previous_response_id', 'conversation_id', 'cached_content'], context);
  // How long marks live that do not say it themselves, they do say here.
  const isMarked = hasMarks(request);
  const lose = (isAsked: unknown, name: string, message: string): void => {
    if (isAsked) drop(context, { path: `/${name.replace('.', '/')}`, feature: name, message });
  };
  lose(request.metadata, 'metadata', 'Anthropic Messages keeps no metadata but the id of the user');
  lose(request.store, 'store', 'Anthropic Messages does not store answers');
  lose(
    request.modalities?.some((modality) => modality !== 'text'),
    'modalities',
    'Anthropic answers in text',
  );
  lose(request.audio_output, 'audio_output', 'Anthropic answers in text');
  lose(cache.key !== undefined, 'prompt_cache.key', 'Anthropic finds its cache without a key');
  lose(cache.mode, 'prompt_cache.mode', 'Anthropic caches up to what is marked');
  lose(cache.ttl !== undefined && !isMarked, 'prompt_cache.ttl', 'nothing is marked that could live as long');
  lose(request.verbosity, 'verbosity', 'Anthropic Messages has no word for the length of an answer');
}

function hasMarks({ tools = [], system = [], messages }: CanonicalRequest): boolean {
  const blocks = messages.flatMap(({ content }) => content);
  const parts = blocks.flatMap((block) =>
    block.type === 'tool_result' && typeof block.content !== 'string' ? [block, ...block.content] : [block],
  );
  return [...tools, ...system, ...parts].some((node) => 'cache_control' in node && node.cache_control !== undefined);
}
