import type { CanonicalError } from '../canonical/notes.ts';
import { NOTHING, type Stage } from '../canonical/stage.ts';

/** One SSE message. */
export interface SseFrame {
  event?: string;
  data: string;
  /** The parsed `data`, where it was parsed before; `data` is empty then. */
  payload?: unknown;
  id?: string;
  retry?: number;
  /** A JSON document outside SSE: a whole body, an element of a JSON-array stream, Gemini's in-stream error. */
  bare?: true;
  /** Where the frame begins, in bytes from the start of the body. Not encoded. */
  offset?: number;
  /** The framing failed (a limit was exceeded). Always the last frame; `data` is empty. */
  failure?: CanonicalError;
}

/**
 * Encodes a frame as text.
 *
 * ```ts
 * encodeSse({ event: 'ping', data: '{}' }); // 'event: ping\ndata: {}\n\n'
 * ```
 */
export function encodeSse(frame: SseFrame, { lineEnd = '\n' }: SseEncoderOptions = {}): string {
  if (frame.bare) return frame.data + lineEnd;
  let head = '';
  if (frame.event) head += `event: ${oneLine(frame.event)}${lineEnd}`;
  // Readers ignore an id with NUL.
  if (frame.id !== undefined && !frame.id.includes('\0')) head += `id: ${oneLine(frame.id)}${lineEnd}`;
  if (frame.retry !== undefined) head += `retry: ${frame.retry}${lineEnd}`;
  const data = isPlain(frame.data) ? frame.data : frame.data.split(LINE_ENDS).join(`${lineEnd}data: `);
  return `${head}data: ${data}${lineEnd}${lineEnd}`;
}

/** Settings of an SSE encoder. */
export interface SseEncoderOptions {
  /** Gemini ends its lines with CRLF, all others with LF. */
  lineEnd?: '\n' | '\r\n';
}

const LINE_ENDS = /\r\n|\n|\r/;

/** A comment line, which readers skip: the keep-alive that every protocol accepts. */
export function encodeSseComment(text = '', { lineEnd = '\n' }: SseEncoderOptions = {}): string {
  return `: ${oneLine(text)}${lineEnd}${lineEnd}`;
}

/** Encodes frames as bytes. */
export function createSseEncoder(options: SseEncoderOptions = {}): Stage<SseFrame, Uint8Array> {
  const encoder = new TextEncoder();
  return {
    push: (frame) => [encoder.encode(encodeSse(frame, options))],
    end: () => NOTHING,
  };
}

/** Names and ids are untrusted: a line end in one would begin another field. */
const oneLine = (text: string): string => (isPlain(text) ? text : text.replace(/[\r\n]+/g, ' '));

const isPlain = (text: string): boolean => !text.includes('\n') && !text.includes('\r');
