import type { JsonObject } from '../../accumulate/overlay.ts';

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
