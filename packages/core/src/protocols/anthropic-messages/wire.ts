import type { CacheControl } from '../../canonical/protocol.ts';
import { at } from '../../canonical/source.ts';
import { type Keeper, keeper } from '../../codec/extensions.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { objectOf, pointerOf, unknownFields } from '../../codec/read.ts';
import type { JsonObject } from '../../json/json.ts';

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

/** Where Anthropic Messages says what the canonical request says elsewhere. */
export const PLACES: Readonly<Record<string, string>> = {
  parameters: '',
  user_id: '/metadata/user_id',
  output_format: '/output_config/format',
  'thinking/effort': '/output_config/effort',
  parallel_tool_use: '/tool_choice/disable_parallel_tool_use',
  'prompt_cache/cache_control': '/cache_control',
};

/** Fields of an answer that nobody elsewhere misses: the canonical answer says them, too, and who called is the model. */
export const IDLE: ReadonlySet<string> = new Set(['finish_reason', 'stop_details', 'content/caller']);

/** What is read of the wire. Every field may be missing or of any type: the sender is a stranger. */
export interface WireMessage extends JsonObject {
  id?: unknown;
  model?: unknown;
  content?: unknown;
  stop_reason?: unknown;
  stop_sequence?: unknown;
  usage?: unknown;
}

export interface WireBlock extends JsonObject {
  type?: unknown;
  text?: unknown;
  thinking?: unknown;
  signature?: unknown;
  citations?: unknown;
  data?: unknown;
  id?: unknown;
  name?: unknown;
  input?: unknown;
  tool_use_id?: unknown;
  content?: unknown;
  is_error?: unknown;
}

export interface WireDelta extends JsonObject {
  type?: unknown;
  text?: unknown;
  thinking?: unknown;
  signature?: unknown;
  citation?: unknown;
  partial_json?: unknown;
}

/** The fields that have a place of their own in a canonical message; all others are kept as extensions. */
export const MESSAGE_FIELDS: ReadonlySet<string> = new Set([
  'id',
  'type',
  'role',
  'model',
  'content',
  'stop_reason',
  'stop_sequence',
  'usage',
]);

export const EVENT_FIELDS: ReadonlySet<string> = new Set(['type', 'delta', 'usage']);

/** `stop_details` is mapped and kept whole as well: it carries tokens and hints that only this protocol knows. */
export const DELTA_FIELDS: ReadonlySet<string> = new Set(['stop_reason', 'stop_sequence']);
