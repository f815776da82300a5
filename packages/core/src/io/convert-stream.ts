import type { StreamResult } from '../accumulate/message.ts';
import type { CanonicalError, Note } from '../canonical/notes.ts';
import { type AnswerStream, type StreamOptions, streamConverter } from '../engine/stream.ts';
import type { Diagnostic } from '../rules/index.ts';

/**
 * A stage as a pair of web streams. Not a TransformStream made by its constructor: that one cannot be told of a source that broke, and its reader
 * would get an exception in place of the error that its protocol has for it.
 */
export function streamThrough(
  stage: AnswerStream,
  onEnd: (stage: AnswerStream) => void = () => undefined,
): TransformStream<Uint8Array, Uint8Array> {
  let output: ReadableStreamDefaultController<Uint8Array> | undefined;
  let input: WritableStreamDefaultController | undefined;
  let isWanted = (): void => undefined;
  const send = (pieces: Iterable<Uint8Array>): void => {
    for (const piece of pieces) output?.enqueue(piece);
  };
  const finish = (pieces: Iterable<Uint8Array>): void => {
    send(pieces);
    output?.close();
    onEnd(stage);
  };
  const readable = new ReadableStream<Uint8Array>({
    start: (controller) => {
      output = controller;
    },
    pull: () => isWanted(),
    // Whoever read has gone: the source is told, and nothing more is written.
    cancel: (reason) => {
      input?.error(reason);
      isWanted();
    },
  });
  const writable = new WritableStream<Uint8Array>({
    start: (controller) => {
      input = controller;
    },
    write: (chunk) => {
      send(stage.push(chunk));
      if ((output?.desiredSize ?? 0) > 0) return undefined;
      // A slow reader slows the source.
      return new Promise<void>((resolve) => {
        isWanted = resolve;
      });
    },
    close: () => finish(stage.end()),
    abort: (reason) => finish(stage.fail(reason instanceof Error ? reason.message : String(reason))),
  });
  return { readable, writable };
}

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
