/** The languages. Aliases that users may type are resolved in `protocols/index.ts`. */
export type ProtocolId = 'openai-chat' | 'anthropic-messages' | 'openai-responses' | 'gemini';

/** Values that only one protocol understands, under their wire names, keyed by that protocol. */
export type Extensions = { [P in ProtocolId]?: Record<string, unknown> };

export interface Node {
  extensions?: Extensions;
}

/** Cache breakpoint: "the prefix up to and including this node is worth caching". */
export interface CacheControl {
  type: 'ephemeral';
  ttl?: '5m' | '30m' | '1h' | '12h' | '24h';
}

/** Opaque, provider-issued proof or ciphertext. Only its issuer can use it; the value is never re-encoded. */
export interface SignedBlob {
  origin: ProtocolId;
  /** Who issued it: a blob never goes to another provider. */
  provider?: string;
  form: 'signature' | 'redacted' | 'encrypted' | 'thought_signature';
  value: string;
  /** Responses `rs_…` id that belongs to the ciphertext. */
  item_id?: string;
  /** Issuing model when known (Anthropic checks signatures per model family). */
  model?: string;
}

export type JsonSchema = Record<string, unknown>;
