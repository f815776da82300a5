import type { ContentBlock, TokenLogprob } from './blocks.ts';
import type { CanonicalError } from './errors.ts';
import type { Node } from './protocol.ts';
import type { CanonicalUsage } from './usage.ts';

export type StopReason =
  | 'end_turn'
  | 'max_tokens'
  | 'tool_use'
  | 'content_filter'
  | 'stop_sequence'
  | 'refusal'
  /** Anthropic: a server-tool loop paused; send the conversation again to continue. */
  | 'pause_turn'
  | 'context_window'
  /** Generation aborted by the provider. */
  | 'error';

export interface StopDetails {
  category?: string | null;
  explanation?: string | null;
  raw?: string;
}

export interface CanonicalResponse extends Node {
  id: string;
  model: string;
  /** Unix seconds. */
  created?: number;
  /** The content of the first choice. */
  content: ContentBlock[];
  /** null only when the stream ended early. */
  stop_reason: StopReason | null;
  stop_sequence?: string | null;
  stop_details?: StopDetails;
  /** Absent when unknown, never zeros. */
  usage?: CanonicalUsage;
  /** Only when there is more than one; the first mirrors the fields above. */
  choices?: CanonicalChoice[];
  service_tier?: string;
  system_fingerprint?: string;
  error?: CanonicalError;
}

export interface CanonicalChoice extends Node {
  index: number;
  content: ContentBlock[];
  stop_reason: StopReason | null;
  logprobs?: { content?: TokenLogprob[]; refusal?: TokenLogprob[] };
}

/**
 * Providers that say "stop" although the model called a tool are corrected here, once, for every protocol.
 * Calls that the provider executed itself do not count.
 */
export function recomputeStop(stop: StopReason, content: Iterable<ContentBlock>): StopReason {
  if (stop !== 'end_turn') return stop;
  for (const block of content) if (block.type === 'tool_use' && isClientCall(block.kind)) return 'tool_use';
  return stop;
}

export const isClientCall = (kind: 'function' | 'custom' | 'server' | 'mcp' | undefined): boolean =>
  kind !== 'server' && kind !== 'mcp';
