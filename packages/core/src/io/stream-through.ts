import type { AnswerStream } from '../engine/stream-converter.ts';

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
