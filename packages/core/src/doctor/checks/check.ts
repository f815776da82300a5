import type { JsonObject } from '../../accumulate/overlay.ts';
import type { SseFrame } from '../../sse/frame.ts';

/** A second look at the payloads of a stream: what a decoder reads without a word, but other clients do not. */
export interface WireCheck {
  payload(payload: JsonObject, frame: SseFrame): void;
  /** The body has ended. */
  end(): void;
}

export const isBlank = (value: unknown): boolean => value === undefined || value === null || value === '';
