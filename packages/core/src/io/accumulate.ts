import { ownError } from '../canonical/errors.ts';
import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { Diagnostic } from '../doctor/rules.ts';
import type { Assembled } from '../engine/assembled.ts';
import { Assembler } from '../engine/assembler.ts';
import { EventReader, type EventReaderOptions } from '../engine/event-reader.ts';
import { type ByteSource, readChunks } from './source.ts';

export interface ReadOptions extends EventReaderOptions {
  /** Stops reading; the promise or the loop rejects with the signal's reason. */
  signal?: AbortSignal;
}

export interface ReadEventsOptions extends ReadOptions {
  /** Told, at the end, which departures from the standard were met. */
  onDiagnostics?: (diagnostics: Diagnostic[]) => void;
}

/**
 * Reads a response body to its end and gives the whole message. A failure of the stream – an error inside it, an early end, a connection
 * that broke – is part of the result, beside everything that was read before it.
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
    return assembler.fail(messageOf(error));
  }
  return assembler.end();
}

/**
 * The canonical events of a response body, live. The last one is `message_stop` or `error`; a connection that broke is an `error` event, too.
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
    yield* failed(reader, messageOf(error));
    onDiagnostics?.(reader.diagnostics);
    return;
  }
  yield* reader.end();
  onDiagnostics?.(reader.diagnostics);
}

/** The events that close what is open, with the failure of the connection in place of the error the decoder found. */
function failed(reader: EventReader, reason: string): CanonicalStreamEvent[] {
  const error = ownError('stream_error', 'UPSTREAM_ERROR', `reading the stream failed: ${reason}`);
  return reader.end().map((event) => (event.type === 'error' ? { type: 'error', error } : event));
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
