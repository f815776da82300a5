import type { CanonicalError } from '../canonical/errors.ts';

/** One SSE message. */
export interface SseFrame {
  event?: string;
  data: string;
  /** What `data` says, where it was read before; `data` is empty then. */
  payload?: unknown;
  id?: string;
  retry?: number;
  /** A JSON document outside SSE: a whole body, an element of a JSON-array stream, Gemini's in-stream error. */
  bare?: true;
  /** Where the frame begins, in bytes from the start of the body. Encoders leave it out. */
  offset?: number;
  /** The framing itself failed (a limit was passed). Always the last frame; `data` is empty. */
  failure?: CanonicalError;
}
