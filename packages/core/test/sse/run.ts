import type { RuleId } from '../../src/rules/index.ts';
import type { SseFrame } from '../../src/sse/encode.ts';
import { createSseDecoder, type SseDecoderOptions } from '../../src/sse/index.ts';

export interface Run {
  frames: SseFrame[];
  reports: [rule: RuleId, offset: number][];
}

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

const shared = new Uint8Array(1 << 16);

/**
 * Feeds the pieces through one buffer that is overwritten after each push: a decoder that kept a view of it would show.
 * Each piece stands at another alignment, as in the buffers of a socket.
 */
export function decode(pieces: Iterable<Uint8Array>, options: SseDecoderOptions = {}): Run {
  const run: Run = { frames: [], reports: [] };
  const decoder = createSseDecoder({ ...options, report: (rule, offset) => run.reports.push([rule, offset]) });
  let start = 0;
  for (const piece of pieces) {
    start = (start + 1) % 4;
    const chunk = shared.subarray(start, start + piece.length);
    chunk.set(piece);
    run.frames.push(...decoder.push(chunk));
    chunk.fill(0x7b);
  }
  run.frames.push(...decoder.end(), ...decoder.end(), ...decoder.push(bytesOf('data: after the end\n\n')));
  return run;
}

/** The bytes cut at the given places. */
export function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const edges = [0, ...places.map((place) => Math.min(place, bytes.length)).sort((a, b) => a - b), bytes.length];
  return edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
}

export const byteByByte = (bytes: Uint8Array): Uint8Array[] => Array.from(bytes, (byte) => Uint8Array.of(byte));

export function withoutOffset({ offset: _, ...frame }: SseFrame): SseFrame {
  return frame;
}
