import type { StreamResult } from '../accumulate/message.ts';
import type { CanonicalError } from '../canonical/errors.ts';
import type { Note } from '../canonical/notes.ts';
import type { Diagnostic } from '../doctor/rules.ts';
import { type StreamOptions, streamConverter } from '../engine/stream-converter.ts';
import { streamThrough } from './stream-through.ts';

/** What is known of a stream when it has ended. */
export interface StreamReport {
  notes: Note[];
  diagnostics: Diagnostic[];
  /** The error in which the client's stream ended. */
  error: CanonicalError | undefined;
  /** The whole message, with `tap: true`. */
  result: StreamResult | undefined;
}

export interface ConvertStreamOptions extends StreamOptions {
  /** Told at the end, also when the stream failed. */
  onEnd?: (report: StreamReport) => void;
}

/**
 * A stream of one protocol as a stream of another, for `pipeThrough`. An early end, an error in the stream and a connection that breaks all end
 * in an error of the client's own protocol.
 *
 * ```ts
 * import { convertStream } from '@sluice/core/io';
 * import { openaiChatCodec } from '@sluice/core/openai-chat/codec';
 * import { anthropicMessagesCodec } from '@sluice/core/anthropic-messages/codec';
 * return new Response(upstream.body.pipeThrough(convertStream({ from: openaiChatCodec, to: anthropicMessagesCodec, request })));
 * ```
 */
export function convertStream({ onEnd, ...options }: ConvertStreamOptions): TransformStream<Uint8Array, Uint8Array> {
  return streamThrough(streamConverter(options), (converter) => {
    const { notes, diagnostics, error, result } = converter;
    onEnd?.({ notes, diagnostics, error, result });
  });
}
