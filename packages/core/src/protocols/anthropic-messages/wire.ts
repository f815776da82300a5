/** Wire types of Anthropic Messages, the fields that the codec reads, and how all others are kept as extensions. */

import type { CacheControl, Node } from '../../canonical/protocol.ts';
import { withSource } from '../../canonical/source.ts';
import { keepFields, readFields } from '../../codec/extensions.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { objectOrEmpty, toPointer, unknownFields } from '../../codec/read.ts';
import type { JsonObject } from '../../json/json.ts';

/** A message on the wire. Servers are not trusted: every field may be missing or of any type. */
export interface WireMessage extends JsonObject {
  id?: unknown;
  model?: unknown;
  content?: unknown;
  stop_reason?: unknown;
  stop_sequence?: unknown;
  usage?: unknown;
}

/** A content block on the wire, of any type. */
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

/** The delta of a content block on the wire, of any type. */
export interface WireDelta extends JsonObject {
  type?: unknown;
  text?: unknown;
  thinking?: unknown;
  signature?: unknown;
  citation?: unknown;
  partial_json?: unknown;
}

/** Message fields with a canonical counterpart; all others are kept as extensions. */
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

/** Fields of `message_delta` and `message_stop` events with a canonical counterpart. */
export const EVENT_FIELDS: ReadonlySet<string> = new Set(['type', 'delta', 'usage']);

/**
 * Fields of a message delta with a canonical counterpart. `stop_details` is mapped, but also kept whole: it has
 * fields that only this protocol knows.
 */
export const DELTA_FIELDS: ReadonlySet<string> = new Set(['stop_reason', 'stop_sequence']);

/** The id of this protocol, which is also the key of its extensions. */
export const PROTOCOL = 'anthropic-messages';

/** The fields of a canonical node that only this protocol knows. */
export const readExtensions = (node: Node): JsonObject => readFields(node, PROTOCOL);

/** Wraps fields that only this protocol knows as the `extensions` of a canonical node. */
export const toExtensions = (fields: JsonObject | undefined): Node => keepFields(fields, PROTOCOL);

/** Records the node's place in the source when `context.trace` is set, so that notes can point to it. */
export function withPointer<T extends object>(param: string, node: T, context: CodecContext): T {
  if (!context.trace) return node;
  const pointer = toPointer(param);
  if ('citations_enabled' in node) return withSource(pointer, node, context, { citations_enabled: `${pointer}/citations` });
  return withSource(pointer, node, context);
}

/** The unknown fields of an object, with those of one nested object under its name. */
export function readUnknownFields(
  source: JsonObject,
  known: ReadonlySet<string>,
  inner: string,
  innerKnown: ReadonlySet<string>,
): JsonObject {
  const rest = unknownFields(objectOrEmpty(source[inner]), innerKnown);
  return { ...unknownFields(source, known), ...(rest && { [inner]: rest }) };
}

const TTLS: readonly unknown[] = ['5m', '30m', '1h', '12h', '24h'] satisfies CacheControl['ttl'][];

const isTtl = (ttl: unknown): ttl is NonNullable<CacheControl['ttl']> => TTLS.includes(ttl);

/** Reads the cache breakpoint of a block, tool or request; unknown lifetimes are ignored. */
export function decodeCacheControl(source: JsonObject): { cache_control?: CacheControl } {
  const { type, ttl } = objectOrEmpty(source['cache_control']);
  return type === 'ephemeral' ? { cache_control: { type, ...(isTtl(ttl) && { ttl }) } } : {};
}

/** Writes the cache breakpoint of a canonical node. */
export const encodeCacheControl = ({ cache_control: mark }: { cache_control?: CacheControl }): JsonObject =>
  mark ? { cache_control: { type: 'ephemeral', ...(mark.ttl && { ttl: mark.ttl }) } } : {};

/** JSON pointers of canonical request fields that have another place on the wire. */
export const PLACES: Readonly<Record<string, string>> = {
  parameters: '',
  user_id: '/metadata/user_id',
  output_format: '/output_config/format',
  'thinking/effort': '/output_config/effort',
  parallel_tool_use: '/tool_choice/disable_parallel_tool_use',
  'prompt_cache/cache_control': '/cache_control',
};

/**
 * Response fields that are kept as extensions but whose loss needs no note: the canonical response has their content.
 */
export const IGNORABLE_FIELDS: ReadonlySet<string> = new Set(['finish_reason', 'stop_details', 'content/caller']);
