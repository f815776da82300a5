import type { StreamResult } from '../accumulate/message.ts';
import type { CanonicalError, Note } from '../canonical/notes.ts';
import { createStreamConverter, type ResponseStream, type StreamOptions } from '../engine/stream.ts';
import type { Diagnostic } from '../rules/index.ts';

/**
 * Converts a stream of one protocol to another, for `pipeThrough`. An early end, an error in the stream and a broken
 * connection all end in an error of the client's protocol.
 *
 * ```ts
 * import { convertStream } from '@sluice/core/io';
 * import { openaiChatCodec } from '@sluice/core/openai-chat/codec';
 * import { anthropicMessagesCodec } from '@sluice/core/anthropic-messages/codec';
 * const stream = convertStream({ from: openaiChatCodec, to: anthropicMessagesCodec, request });
 * return new Response(upstream.body.pipeThrough(stream));
 * ```
 */
export function convertStream({ onEnd, ...options }: ConvertStreamOptions): TransformStream<Uint8Array, Uint8Array> {
  return streamThrough(createStreamConverter(options), (converter) => {
    const { notes, diagnostics, error, result } = converter;
    onEnd?.({ notes, diagnostics, error, result });
  });
}

/** Options of `convertStream`. */
export interface ConvertStreamOptions extends StreamOptions {
  /** Called once at the end, also when the stream failed or its reader cancelled. */
  onEnd?: (report: StreamReport) => void;
}

/** What is known about a stream when it has ended. */
export interface StreamReport {
  notes: Note[];
  diagnostics: Diagnostic[];
  /** The error that ended the client's stream. */
  error: CanonicalError | undefined;
  /** The whole message, with `tap: true`. */
  result: StreamResult | undefined;
}

/**
 * Wraps a stage in a pair of web streams. Not a `TransformStream`: its transformer does not see an abort of the
 * writable side, so the reader would get an exception in place of the protocol's own error.
 */
export function streamThrough(
  stage: ResponseStream,
  onEnd: (stage: ResponseStream) => void = () => undefined,
): TransformStream<Uint8Array, Uint8Array> {
  let output: ReadableStreamDefaultController<Uint8Array> | undefined;
  let input: WritableStreamDefaultController | undefined;
  let isWanted = (): void => undefined;
  const send = (pieces: Iterable<Uint8Array>): void => {
    for (const piece of pieces) output?.enqueue(piece);
  };
  let isOver = false;
  const tellEnd = (): void => {
    if (isOver) return;
    isOver = true;
    onEnd(stage);
  };
  const finish = (pieces: Iterable<Uint8Array>): void => {
    send(pieces);
    output?.close();
    tellEnd();
  };
  const readable = new ReadableStream<Uint8Array>({
    start: (controller) => {
      output = controller;
    },
    pull: () => isWanted(),
    // The reader has cancelled: stop the source, and write nothing more.
    cancel: (reason) => {
      input?.error(reason);
      isWanted();
      tellEnd();
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
