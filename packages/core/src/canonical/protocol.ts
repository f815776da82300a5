/** The ids of all protocols. `protocols/index.ts` has the protocols themselves, and the aliases that users may type. */
export const PROTOCOL_IDS = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'] as const;

/** The id of a protocol. */
export type ProtocolId = (typeof PROTOCOL_IDS)[number];

/** Fields that only one protocol has, under their wire names, keyed by that protocol. */
export type Extensions = { [P in ProtocolId]?: Record<string, unknown> };

/** A part of a canonical value that can have extensions. */
export interface Node {
  extensions?: Extensions;
}

/** Cache breakpoint: the prefix up to and including this node should be cached. */
export interface CacheControl {
  type: 'ephemeral';
  ttl?: '5m' | '30m' | '1h' | '12h' | '24h';
}

/** An opaque signature or ciphertext of a provider. Only its issuer can use it; the value is never re-encoded. */
export interface SignedBlob {
  origin: ProtocolId;
  /** The issuer: a blob is never sent to another provider. */
  provider?: string;
  form: 'signature' | 'redacted' | 'encrypted' | 'thought_signature';
  value: string;
  /** Responses `rs_…` id that belongs to the ciphertext. */
  item_id?: string;
  /** Issuing model when known (Anthropic checks signatures per model family). */
  model?: string;
}

/** A JSON schema. */
export type JsonSchema = Record<string, unknown>;
