import type { CanonicalError } from '../canonical/notes.ts';
import { NOTHING, type Stage } from '../canonical/stage.ts';

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

export interface SseEncoderOptions {
  /** Gemini ends its lines with CRLF; everybody else with LF. */
  lineEnd?: '\n' | '\r\n';
}

const LINE_ENDS = /\r\n|\n|\r/;

/** Names and ids come from strangers: a line end in one would begin a field of its own. */
const oneLine = (text: string): string => (isPlain(text) ? text : text.replace(/[\r\n]+/g, ' '));

const isPlain = (text: string): boolean => !text.includes('\n') && !text.includes('\r');

export function encodeSse(frame: SseFrame, { lineEnd = '\n' }: SseEncoderOptions = {}): string {
  if (frame.bare) return frame.data + lineEnd;
  let head = '';
  if (frame.event) head += `event: ${oneLine(frame.event)}${lineEnd}`;
  // An id with NUL is ignored by every reader.
  if (frame.id !== undefined && !frame.id.includes('\0')) head += `id: ${oneLine(frame.id)}${lineEnd}`;
  if (frame.retry !== undefined) head += `retry: ${frame.retry}${lineEnd}`;
  const data = isPlain(frame.data) ? frame.data : frame.data.split(LINE_ENDS).join(`${lineEnd}data: `);
  return `${head}data: ${data}${lineEnd}${lineEnd}`;
}

/** A line that readers skip: the keep-alive that no protocol can misread. */
export function sseComment(text = '', { lineEnd = '\n' }: SseEncoderOptions = {}): string {
  return `: ${oneLine(text)}${lineEnd}${lineEnd}`;
}

export function createSseEncoder(options: SseEncoderOptions = {}): Stage<SseFrame, Uint8Array> {
  const encoder = new TextEncoder();
  return {
    push: (frame) => [encoder.encode(encodeSse(frame, options))],
    end: () => NOTHING,
  };
}
