/** Reads responses of any runtime or SDK: to a whole message, or to events. */

import type { CanonicalStreamEvent } from '../canonical/events.ts';
import { type CanonicalError, ownError } from '../canonical/notes.ts';
import { addReplyFacts, describeTextBody } from '../codec/errors.ts';
import { type AccumulatedMessage, type StreamElement, StreamReader } from '../engine/message.ts';
import { EventReader, type EventReaderOptions } from '../engine/reader.ts';
import type { Diagnostic } from '../rules/index.ts';
import { type CheckedSource, checkSource, readElements, SourceError, type StreamSource } from './source.ts';

/**
 * Reads a response to its end and returns the whole message. A failure of the stream (an error inside it, an early end,
 * a broken connection) or an HTTP error status is part of the result, with everything that was read before it.
 *
 * ```ts
 * import { accumulate } from '@sluice/core/io';
 * import { openaiChat } from '@sluice/core/openai-chat';
 * const { text, tool_calls, complete } = await accumulate(response, { protocol: openaiChat });
 * ```
 */
export async function accumulate(source: StreamSource, options: ReadOptions): Promise<AccumulatedMessage> {
  const { signal, ...readerOptions } = options;
  const checked = checkSource(source, ACCUMULATE);
  const reader = new StreamReader(readerOptions);
  if (isHttpError(checked)) {
    const error = await readHttpError(checked, options, ACCUMULATE);
    return addStatus(reader.fail(error), error);
  }
  try {
    for await (const element of readElements(checked.body, { signal, call: ACCUMULATE })) {
      reader.push(element);
      if (reader.hasFailed) break;
    }
  } catch (error) {
    if (isCallers(error, signal)) throw error;
    return reader.fail(describeFailure(error));
  }
  return reader.finish();
}

const ACCUMULATE = 'accumulate(source)';

/** Options for reading a response. */
export interface ReadOptions extends EventReaderOptions {
  /** Stops reading; the promise or the loop rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/**
 * Yields the canonical events of a response as they arrive. The last one is `message_stop` or `error`; a broken
 * connection and an HTTP error status are `error` events, too.
 *
 * ```ts
 * import { readEvents } from '@sluice/core/io';
 * import { openaiChat } from '@sluice/core/openai-chat';
 * for await (const event of readEvents(response, { protocol: openaiChat })) console.log(event.type);
 * ```
 */
export function readEvents(
  source: StreamSource,
  options: ReadEventsOptions,
): AsyncGenerator<CanonicalStreamEvent, void, undefined> {
  return readChecked(checkSource(source, READ_EVENTS), options);
}

const READ_EVENTS = 'readEvents(source)';

/** Options of `readEvents`. */
export interface ReadEventsOptions extends ReadOptions {
  /** Called at the end with the violations of the standard. */
  onDiagnostics?: ((diagnostics: Diagnostic[]) => void) | undefined;
}

async function* readChecked(
  checked: CheckedSource,
  options: ReadEventsOptions,
): AsyncGenerator<CanonicalStreamEvent, void, undefined> {
  const { signal, onDiagnostics, ...readerOptions } = options;
  if (isHttpError(checked)) {
    yield { type: 'error', error: await readHttpError(checked, options, READ_EVENTS) };
    onDiagnostics?.([]);
    return;
  }
  const reader = new EventReader(readerOptions);
  const utf8 = new TextEncoder();
  try {
    for await (const element of readElements(checked.body, { signal, call: READ_EVENTS })) {
      yield* pushElement(reader, element, utf8);
      if (reader.hasFailed) break;
    }
  } catch (error) {
    if (isCallers(error, signal)) throw error;
    yield* closeFailed(reader, describeFailure(error));
    onDiagnostics?.(reader.diagnostics);
    return;
  }
  yield* reader.end();
  onDiagnostics?.(reader.diagnostics);
}

function pushElement(reader: EventReader, element: StreamElement, utf8: TextEncoder): CanonicalStreamEvent[] {
  if (element instanceof Uint8Array) return reader.push(element);
  if (typeof element === 'string') return reader.push(utf8.encode(element));
  return reader.pushPayload(element as Record<string, unknown>); // an object with string keys, as far as decoders look
}

/** The events that close what is open, with the failure of the connection in place of the decoder's error. */
function closeFailed(reader: EventReader, reason: string): CanonicalStreamEvent[] {
  const error = ownError('stream_error', 'UPSTREAM_ERROR', `reading the stream failed: ${reason}`);
  return reader.end().map((event) => (event.type === 'error' ? { type: 'error', error } : event));
}

const describeFailure = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Whether an exception is meant for the caller: it aborted, or passed something wrong. */
const isCallers = (error: unknown, signal: AbortSignal | undefined): boolean =>
  signal?.aborted === true || error instanceof SourceError;

// ---- HTTP errors

const isHttpError = (checked: CheckedSource): checked is Required<CheckedSource> =>
  checked.response !== undefined && !checked.response.ok;

/** Error bodies have some kilobytes; more of one is not read. */
const MAX_ERROR_LENGTH = 1024 * 1024;

/** Reads an HTTP error: the error in the body, or the status where the body has none. */
async function readHttpError(
  { body, response }: Required<CheckedSource>,
  { signal, ...options }: ReadOptions,
  call: string,
): Promise<CanonicalError> {
  const { status } = response;
  const headers = Object.fromEntries(response.headers);
  const text = await readHead({ body }, signal, call);
  const reader = new EventReader(options);
  const events = [...reader.push(new TextEncoder().encode(text)), ...reader.end()];
  const found = events.find((event) => event.type === 'error')?.error;
  // An error that the decoder detected itself says that the body is no stream, which is known.
  const error = found?.upstream ? found : { code: 'UPSTREAM_ERROR' as const, message: describeTextBody(text, status) };
  const [first] = 'id' in options.protocol ? [options.protocol] : options.protocol;
  const { id } = reader.protocol ?? first ?? { id: 'openai-chat' };
  return { ...addReplyFacts(error, { status, headers, body: text }, id), http_status: status };
}

/** The beginning of a body as text; whatever could be read of one that breaks off. */
async function readHead({ body }: CheckedSource, signal: AbortSignal | undefined, call: string): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const element of readElements(body, { signal, call })) {
      if (typeof element === 'string') text += element;
      else if (element instanceof Uint8Array) text += decoder.decode(element, { stream: true });
      if (text.length > MAX_ERROR_LENGTH) break;
    }
  } catch (error) {
    if (isCallers(error, signal)) throw error;
  }
  return text + decoder.decode();
}

const addStatus = (message: AccumulatedMessage, { http_status }: CanonicalError): AccumulatedMessage => ({
  ...message,
  error: message.error && { ...message.error, ...(http_status !== undefined && { http_status }) },
});
