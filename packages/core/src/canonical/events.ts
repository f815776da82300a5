import type { CanonicalUsage, Citation, ContentBlock, StopDetails, StopReason, TokenLogprob } from './message.ts';
import type { CanonicalError } from './notes.ts';
import type { Extensions, SignedBlob } from './protocol.ts';

/** One event of a canonical stream. docs/canonical.md lists the rules of their order (S1 to S11). */
export type CanonicalStreamEvent =
  | MessageStart
  | BlockStart
  | BlockDeltaEvent
  | BlockStop
  | MessageDelta
  | { type: 'message_stop' }
  | { type: 'ping' }
  | { type: 'error'; error: CanonicalError };

/** The first event: the envelope of the message. */
export interface MessageStart {
  type: 'message_start';
  message: {
    id: string;
    model: string;
    created?: number;
    usage?: Partial<CanonicalUsage>;
    service_tier?: string;
    system_fingerprint?: string;
    extensions?: Extensions;
  };
}

/** A content block starts. */
export interface BlockStart {
  type: 'content_block_start';
  index: number;
  /** For n > 1; absent means 0. */
  choice?: number;
  content_block: ContentBlock;
}

/** Content for an open block, or a late signature. */
export interface BlockDeltaEvent {
  type: 'content_block_delta';
  index: number;
  choice?: number;
  delta: BlockDelta;
}

/** The content of a `content_block_delta`. */
export type BlockDelta =
  | { type: 'text_delta'; text: string; logprobs?: TokenLogprob[]; refusal?: boolean }
  | { type: 'input_json_delta'; partial_json: string }
  | { type: 'input_text_delta'; text: string }
  | { type: 'thinking_delta'; thinking: string; summary_index?: number }
  /** Carries the complete value: the decoder joins wire pieces. */
  | { type: 'signature_delta'; signature: SignedBlob }
  | { type: 'citations_delta'; citation: Citation }
  | { type: 'audio_delta'; data?: string; transcript?: string }
  /** `raw` is merged into the raw object of an opaque block: strings are concatenated, other values replaced. */
  | { type: 'opaque_delta'; raw: unknown };

/** A content block stops. */
export interface BlockStop {
  type: 'content_block_stop';
  index: number;
  choice?: number;
  /** Fields of the block that were settled after it started (a late id or name, extensions); they overwrite. */
  content_block?: ContentBlock;
}

/** The stop reason and final usage of a choice. */
export interface MessageDelta {
  type: 'message_delta';
  choice?: number;
  delta: { stop_reason: StopReason | null; stop_sequence?: string | null; stop_details?: StopDetails };
  usage?: CanonicalUsage;
  /** Fields of the message or choice that only the source protocol has, complete at the end of the stream. */
  extensions?: Extensions;
  /**
   * Blocks that changed after they stopped; they replace the earlier ones: calls that continued, with the arguments in
   * `input_raw`, and opaque blocks whose final form arrived late. An encoder that has already sent such a call can only
   * report the change.
   */
  late_blocks?: { index: number; content_block: ContentBlock }[];
  /** Envelope fields that arrived after the start. */
  message?: { id?: string; model?: string; created?: number; service_tier?: string; system_fingerprint?: string };
}

/** Builds the most frequent event without a spread, which would cost more than the rest of it. */
export function blockDelta(index: number, choice: number | undefined, delta: BlockDelta): BlockDeltaEvent {
  return choice === undefined
    ? { type: 'content_block_delta', index, delta }
    : { type: 'content_block_delta', index, choice, delta };
}
