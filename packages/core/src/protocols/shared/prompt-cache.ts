import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CacheControl } from '../../canonical/protocol.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import type { CodecContext } from './codec.ts';
import { expectObject, expectText, optional } from './expect.ts';
import { objectOf, unknownFields } from './read.ts';

// OpenAI's prompt cache, which both of its protocols know.

const TTLS: readonly unknown[] = ['5m', '30m', '1h', '12h', '24h'] satisfies CacheControl['ttl'][];

/** How long a mark may live in canonical words. */
export const isTtl = (ttl: unknown): ttl is NonNullable<CacheControl['ttl']> => TTLS.includes(ttl);

export const isBreakpoint = (part: JsonObject): boolean => objectOf(part['prompt_cache_breakpoint'])['mode'] === 'explicit';

/** One that says nothing of its life lives as long as the request says. */
export function decodeBreakpoint(part: JsonObject): { cache_control?: CacheControl } {
  if (!isBreakpoint(part)) return {};
  const { ttl } = objectOf(part['prompt_cache_breakpoint']);
  return { cache_control: { type: 'ephemeral', ...(isTtl(ttl) && { ttl }) } };
}

export const encodeBreakpoint = ({ cache_control: mark }: { cache_control?: CacheControl }): JsonObject =>
  mark ? { prompt_cache_breakpoint: { mode: 'explicit', ...(mark.ttl && { ttl: mark.ttl }) } } : {};

type PromptCache = NonNullable<CanonicalRequest['prompt_cache']>;

export function decodePromptCache(body: JsonObject, context: CodecContext): { prompt_cache?: PromptCache } {
  const key = optional(body['prompt_cache_key'], 'prompt_cache_key', expectText);
  const { mode, ttl: named } = objectOf(optional(body['prompt_cache_options'], 'prompt_cache_options', expectObject));
  const ttl = named ?? body['prompt_cache_retention'];
  const cache: PromptCache = {
    ...(key !== undefined && { key }),
    ...((mode === 'implicit' || mode === 'explicit') && { mode }),
    ...(typeof ttl === 'string' && { ttl }),
  };
  if (Object.keys(cache).length === 0) return {};
  const places = { key: '/prompt_cache_key', ...(named === undefined && { ttl: '/prompt_cache_retention' }) };
  return { prompt_cache: at('/prompt_cache_options', cache, context, places) };
}

/** Lives that `prompt_cache_retention` has words for; the others stand in `prompt_cache_options`. */
const RETENTIONS: ReadonlySet<string> = new Set(['24h', 'in_memory', 'in-memory']);
const OPTION_FIELDS: ReadonlySet<string> = new Set(['mode', 'ttl']);

/** `sent`: the client's own words, which may say more. Fields that say nothing are undefined. */
export function encodePromptCache({ prompt_cache: cache = {} }: CanonicalRequest, sent: JsonObject): JsonObject {
  const { key, mode, ttl } = cache;
  const isRetention = mode === undefined && RETENTIONS.has(ttl ?? '');
  const options = {
    ...unknownFields(objectOf(sent['prompt_cache_options']), OPTION_FIELDS),
    ...(mode && { mode }),
    ...(ttl !== undefined && !isRetention && { ttl }),
  };
  const hasOptions = Object.keys(options).length > 0;
  return {
    prompt_cache_key: key,
    prompt_cache_options: hasOptions ? options : undefined,
    prompt_cache_retention: isRetention ? ttl : hasOptions ? (sent['prompt_cache_retention'] ?? undefined) : undefined,
  };
}
