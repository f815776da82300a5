import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CacheControl } from '../../canonical/protocol.ts';
import { at } from '../../canonical/source.ts';
import type { CodecContext } from '../shared/codec.ts';
import { pointerOf } from '../shared/expect.ts';
import { type Keeper, keeper } from '../shared/kept.ts';
import { objectOf, unknownFields } from '../shared/read.ts';

export const PROTOCOL = 'anthropic-messages';

const kept: Keeper = keeper(PROTOCOL);

export const fieldsOf: Keeper['fieldsOf'] = kept.fieldsOf;
export const keep: Keeper['keep'] = kept.keep;

/** The node, remembering its place when notes are to point into the source. */
export function placed<T extends object>(param: string, node: T, context: CodecContext): T {
  if (!context.trace) return node;
  const pointer = pointerOf(param);
  if ('citations_enabled' in node) return at(pointer, node, context, { citations_enabled: `${pointer}/citations` });
  return at(pointer, node, context);
}

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

const TTLS: readonly unknown[] = ['5m', '30m', '1h', '12h', '24h'] satisfies CacheControl['ttl'][];

const isTtl = (ttl: unknown): ttl is NonNullable<CacheControl['ttl']> => TTLS.includes(ttl);

/** A cache breakpoint. */
export function decodeCacheControl(source: JsonObject): { cache_control?: CacheControl } {
  const { type, ttl } = objectOf(source['cache_control']);
  return type === 'ephemeral' ? { cache_control: { type, ...(isTtl(ttl) && { ttl }) } } : {};
}

export const encodeCacheControl = ({ cache_control: mark }: { cache_control?: CacheControl }): JsonObject =>
  mark ? { cache_control: { type: 'ephemeral', ...(mark.ttl && { ttl: mark.ttl }) } } : {};
