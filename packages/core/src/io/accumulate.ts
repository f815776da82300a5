/** Reads response bodies of any runtime: to a whole message, to events, or to text. */

import type { CanonicalStreamEvent } from '../canonical/events.ts';
import { CodecError, ownError } from '../canonical/notes.ts';
import { type Assembled, Assembler } from '../engine/message.ts';
import { EventReader, type EventReaderOptions } from '../engine/reader.ts';
import type { Diagnostic } from '../rules/index.ts';

/**
 * Reads a response body to its end and returns the whole message. A failure of the stream (an error inside it, an early
 * end, a broken connection) is part of the result, with everything that was read before it.
 *
 * ```ts
 * import { accumulate } from '@sluice/core/io';
 * import { openaiChat } from '@sluice/core/openai-chat';
 * const { text, tool_calls, complete } = await accumulate(response.body, { protocol: openaiChat });
 * ```
 */
export async function accumulate(source: ByteSource, options: ReadOptions): Promise<Assembled> {
  const { signal, ...readerOptions } = options;
  const assembler = new Assembler(readerOptions);
  try {
    for await (const chunk of readChunks(source, signal)) {
      assembler.push(chunk);
      if (assembler.hasFailed) break;
    }
  } catch (error) {
    if (signal?.aborted) throw error;
    return assembler.fail(describeFailure(error));
  }
  return assembler.end();
}

/** Options for reading a body. */
export interface ReadOptions extends EventReaderOptions {
  /** Stops reading; the promise or the loop rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Anything a response body can be: a web stream, a node stream, any (async) iterable of chunks, or the body itself. */
export type ByteSource =
  | ReadableStream<Uint8Array | string>
  | AsyncIterable<Uint8Array | string>
  | Iterable<Uint8Array | string>
  | Uint8Array
  | string;

/**
 * Yields the canonical events of a response body as they arrive. The last one is `message_stop` or `error`; a broken
 * connection is an `error` event, too.
 *
 * ```ts
 * for await (const event of readEvents(response.body, { protocol: openaiChat })) render(event);
 * ```
 */
export async function* readEvents(
  source: ByteSource,
  options: ReadEventsOptions,
): AsyncGenerator<CanonicalStreamEvent, void, undefined> {
  const { signal, onDiagnostics, ...readerOptions } = options;
  const reader = new EventReader(readerOptions);
  try {
    for await (const chunk of readChunks(source, signal)) {
      yield* reader.push(chunk);
      if (reader.hasFailed) break;
    }
  } catch (error) {
    if (signal?.aborted) throw error;
    yield* closeFailed(reader, describeFailure(error));
    onDiagnostics?.(reader.diagnostics);
    return;
  }
  yield* reader.end();
  onDiagnostics?.(reader.diagnostics);
}

/** Options of `readEvents`. */
export interface ReadEventsOptions extends ReadOptions {
  /** Called at the end with the departures from the standard. */
  onDiagnostics?: (diagnostics: Diagnostic[]) => void;
}

/** The events that close what is open, with the failure of the connection in place of the decoder's error. */
function closeFailed(reader: EventReader, reason: string): CanonicalStreamEvent[] {
  const error = ownError('stream_error', 'UPSTREAM_ERROR', `reading the stream failed: ${reason}`);
  return reader.end().map((event) => (event.type === 'error' ? { type: 'error', error } : event));
}

const describeFailure = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * Yields the chunks of a source, one read at a time, so that a slow consumer slows the source. An aborted signal throws
 * its reason.
 */
async function* readChunks(source: ByteSource, signal?: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  signal?.throwIfAborted();
  const { next, cancel } = openSource(typeof source === 'string' || source instanceof Uint8Array ? [source] : source);
  const listening = new AbortController();
  const aborted = signal && whenAborted(signal, listening.signal);
  let isDone = false;
  try {
    for (;;) {
      const read = await (aborted ? Promise.race([next(), aborted]) : next());
      if (read.done) {
        isDone = true;
        return;
      }
      yield typeof read.value === 'string' ? encoder.encode(read.value) : read.value;
    }
  } finally {
    listening.abort();
    // Not awaited: a source that hangs must not block a caller that has stopped reading.
    if (!isDone) void Promise.resolve(cancel(signal?.reason)).catch(() => undefined);
  }
}

interface OpenSource {
  next(): Promise<ReadableStreamReadResult<Uint8Array | string> | IteratorResult<Uint8Array | string, unknown>>;
  cancel(reason: unknown): unknown;
}

function openSource(source: Exclude<ByteSource, string | Uint8Array>): OpenSource {
  if ('getReader' in source) {
    const reader = source.getReader();
    return {
      next: () => reader.read(),
      cancel: (reason) => reader.cancel(reason),
    };
  }
  const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  return {
    next: async () => iterator.next(),
    cancel: () => iterator.return?.(),
  };
}

/** A promise that rejects when the signal aborts; `end` removes the listener. */
function whenAborted(signal: AbortSignal, end: AbortSignal): Promise<never> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true, signal: end });
  });
  aborted.catch(() => undefined);
  return aborted;
}

/** Reads a whole body as text. Throws when it is longer than allowed. */
export async function readText(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  what: 'request' | 'answer',
): Promise<string> {
  if (!body) return '';
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = '';
  let length = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    length += read.value.length;
    if (length > maxBytes) {
      await reader.cancel();
      throw tooLongError(maxBytes, what);
    }
    text += decoder.decode(read.value, { stream: true });
  }
  return text + decoder.decode();
}

const tooLongError = (maxBytes: number, what: 'request' | 'answer'): CodecError =>
  new CodecError({
    code: what === 'request' ? 'PAYLOAD_TOO_LARGE' : 'UPSTREAM_ERROR',
    message: `the ${what} body has more than ${maxBytes} bytes`,
    http_status: what === 'request' ? 413 : 502,
  });
