import { NOTHING, type Stage } from '../stage.ts';
import type { SseFrame } from './frame.ts';

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
