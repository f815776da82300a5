import type { Extensions } from './protocol.ts';

export interface CanonicalUsage {
  /** All prompt tokens charged: uncached, cache read, cache written and tool-use prompt. */
  input_tokens: number;
  /** All generated tokens, reasoning included. */
  output_tokens: number;
  /** Subset of `input_tokens`. */
  cache_read_tokens?: number;
  /** Subset of `input_tokens`. */
  cache_creation_tokens?: number;
  /** Subset of `output_tokens`; as reported when `uncertain`. */
  reasoning_tokens?: number;
  details?: UsageDetails;
  /** The reported counts contradict each other and nothing tells which of them is right. Never written on the wire. */
  uncertain?: true;
  /** The usage object of the source, as the wire had it. */
  extensions?: Extensions;
}

export interface UsageDetails {
  cache_creation_5m?: number;
  cache_creation_1h?: number;
  input_audio?: number;
  output_audio?: number;
  input_image?: number;
  output_image?: number;
  input_video?: number;
  input_document?: number;
  accepted_prediction?: number;
  rejected_prediction?: number;
  tool_use_prompt?: number;
  web_search_requests?: number;
  web_fetch_requests?: number;
}
