import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CacheControl } from '../../canonical/protocol.ts';
import { type Keeper, keeper } from '../shared/kept.ts';
import { objectOf, unknownFields } from '../shared/read.ts';

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

const TTLS: readonly string[] = ['5m', '30m', '1h', '24h'] satisfies CacheControl['ttl'][];

const isTtl = (ttl: unknown): ttl is NonNullable<CacheControl['ttl']> => typeof ttl === 'string' && TTLS.includes(ttl);

/** A cache breakpoint in OpenAI's words (the request says how long), or in Anthropic's, which OpenRouter and others take. */
export function decodeCacheControl(source: JsonObject, ttl: unknown): { cache_control?: CacheControl } {
  if (isBreakpoint(source)) return { cache_control: { type: 'ephemeral', ...(isTtl(ttl) && { ttl }) } };
  const foreign = objectOf(source['cache_control']);
  if (foreign['type'] !== 'ephemeral') return {};
  return { cache_control: { type: 'ephemeral', ...(isTtl(foreign['ttl']) && { ttl: foreign['ttl'] }) } };
}

export const isBreakpoint = (source: JsonObject): boolean => objectOf(source['prompt_cache_breakpoint'])['mode'] === 'explicit';
