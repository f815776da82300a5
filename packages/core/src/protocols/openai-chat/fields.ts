import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CacheControl } from '../../canonical/protocol.ts';
import type { CodecContext } from '../shared/codec.ts';
import { type Keeper, keeper } from '../shared/kept.ts';
import { decodeBreakpoint, isBreakpoint, isTtl } from '../shared/prompt-cache.ts';
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
