import type { CanonicalUsage, Citation, ContentBlock, StopDetails, StopReason, TokenLogprob } from './message.ts';
import type { CanonicalError } from './notes.ts';
import type { Extensions, SignedBlob } from './protocol.ts';

export type CanonicalStreamEvent =
  | MessageStart
  | BlockStart
  | BlockDeltaEvent
  | BlockStop
  | MessageDelta
  | { type: 'message_stop' }
  | { type: 'ping' }
  | { type: 'error'; error: CanonicalError };

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

export interface BlockStart {
  type: 'content_block_start';
  index: number;
  /** For n > 1; absent means 0. */
  choice?: number;
  content_block: ContentBlock;
}

export interface BlockDeltaEvent {
  type: 'content_block_delta';
  index: number;
  choice?: number;
  delta: BlockDelta;
}

/** The event there are most of: without a spread, which would cost more than all the rest of it. */
export function blockDelta(index: number, choice: number | undefined, delta: BlockDelta): BlockDeltaEvent {
  return choice === undefined
    ? { type: 'content_block_delta', index, delta }
    : { type: 'content_block_delta', index, choice, delta };
}

export interface BlockStop {
  type: 'content_block_stop';
  index: number;
  choice?: number;
  /** Fields of the block that were settled only after it had started (a late id or name, extensions): they overwrite. */
  content_block?: ContentBlock;
}

export interface MessageDelta {
  type: 'message_delta';
  choice?: number;
  delta: { stop_reason: StopReason | null; stop_sequence?: string | null; stop_details?: StopDetails };
  usage?: CanonicalUsage;
  /** Fields of the message or choice that only the source protocol knows, complete at the end of the stream. */
  extensions?: Extensions;
  /**
   * Calls that went on after their blocks had stopped, as they are now, the arguments in `input_raw`, and opaque blocks in a final form that came late: they
   * replace. Who has passed a call on can only say so.
   */
  late_blocks?: { index: number; content_block: ContentBlock }[];
  /** Envelope fields that arrived after the start. */
  message?: { id?: string; model?: string; created?: number; service_tier?: string; system_fingerprint?: string };
}

export type BlockDelta =
  | { type: 'text_delta'; text: string; logprobs?: TokenLogprob[]; refusal?: boolean }
  | { type: 'input_json_delta'; partial_json: string }
  | { type: 'input_text_delta'; text: string }
  | { type: 'thinking_delta'; thinking: string; summary_index?: number }
  /** Carries the whole value: the decoder joins wire pieces. */
  | { type: 'signature_delta'; signature: SignedBlob }
  | { type: 'citations_delta'; citation: Citation }
  | { type: 'audio_delta'; data?: string; transcript?: string }
  /** `raw` is laid into the raw object of an opaque block: strings grow, anything else takes the later value. */
  | { type: 'opaque_delta'; raw: unknown };
