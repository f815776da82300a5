/** Opens whatever holds a response: an HTTP response, a body of any runtime, or the chunks of an SDK. */

import type { StreamElement } from '../engine/message.ts';

/**
 * What `accumulate` and `readEvents` read: a `Response`, its body (`null` is an empty one), a web or node stream, any
 * (async) iterable of bytes, text or parsed chunks, or the whole body as bytes or text.
 */
export type StreamSource =
  | Response
  | ReadableStream<StreamElement>
  | AsyncIterable<StreamElement>
  | Iterable<StreamElement>
  | Uint8Array
  | ArrayBuffer
  | string
  | null;

export type { StreamElement };

/** Where a source stands in a call, for messages. */
interface Place {
  /** The call, such as `accumulate(source)`. */
  call: string;
}

/**
 * Yields the elements of a source, one read at a time, so that a slow consumer slows the source. An aborted signal
 * throws its reason, a wrong source a TypeError that says what to pass.
 */
export async function* readElements(
  body: StreamBody,
  { signal, call }: Place & { signal?: AbortSignal | undefined },
): AsyncGenerator<StreamElement, void, undefined> {
  signal?.throwIfAborted();
  const { next, cancel } = openBody(body);
  const listening = new AbortController();
  const aborted = signal && whenAborted(signal, listening.signal);
  let isDone = false;
  try {
    for (let position = 0; ; position++) {
      const read = await (aborted ? Promise.race([next(), aborted]) : next());
      if (read.done) {
        isDone = true;
        return;
      }
      yield checkElement(read.value, call, position);
    }
  } finally {
    listening.abort();
    // Not awaited: a source that hangs must not block a caller that has stopped reading.
    if (!isDone) void Promise.resolve(cancel(signal?.reason)).catch(() => undefined);
  }
}

/** A source that can be iterated. */
type StreamBody = ReadableStream<unknown> | AsyncIterable<unknown> | Iterable<unknown>;

/** A source that was checked: its elements, and the response around them. */
export interface CheckedSource {
  body: StreamBody;
  /** The HTTP response, if the source is one. */
  response?: Response;
}

/** Checks a source before anything is read. Throws a TypeError that names the argument and says what to pass. */
export function checkSource(source: unknown, call: string): CheckedSource {
  if (source === null) return { body: [] };
  if (typeof source === 'string' || source instanceof Uint8Array) return { body: [source] };
  if (source instanceof ArrayBuffer) return { body: [new Uint8Array(source)] };
  if (typeof source !== 'object') throw wrongSource(call, describe(source));
  if (isResponse(source)) {
    if (source.bodyUsed)
      throw wrongSource(call, 'a Response whose body was read already (read a clone(), or the body only once)');
    return { body: checkStream(source.body ?? [], call), response: source };
  }
  if (isIterable(source)) return { body: checkStream(source, call) };
  throw wrongSource(call, describe(source));
}

const isIterable = (source: object): source is StreamBody =>
  'getReader' in source || Symbol.asyncIterator in source || Symbol.iterator in source;

/** By its members: a Response of undici or node-fetch is none of the global class. */
const isResponse = (source: object): source is Response => 'bodyUsed' in source && 'body' in source && 'status' in source;

function checkStream(body: StreamBody, call: string): StreamBody {
  if ('locked' in body && body.locked)
    throw wrongSource(call, 'a stream that is locked to another reader (read it only once, or tee() it first)');
  return body;
}

function checkElement(element: unknown, call: string, position: number): StreamElement {
  if (typeof element === 'string' || element instanceof Uint8Array) return element;
  if (element instanceof ArrayBuffer) return new Uint8Array(element);
  if (typeof element === 'object' && element !== null && !Array.isArray(element)) return element;
  const message = `${call}: expected bytes, text or parsed chunks; element ${position} is ${describe(element)}`;
  throw new SourceError(message);
}

/** A wrong argument, found while reading: unlike a failure of the source, it is thrown. */
export class SourceError extends TypeError {}

const wrongSource = (call: string, found: string): TypeError =>
  new TypeError(
    `${call}: expected a Response, a body, a stream, an iterable of bytes, text or parsed chunks, bytes or text; got ${found}`,
  );

/** Names a wrong value, with what the caller probably forgot. */
function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'function') return 'a function (did you forget to call it?)';
  if (typeof value !== 'object') return value === undefined ? 'undefined' : `a ${typeof value}`;
  if ('then' in value) return 'a Promise (did you forget await?)';
  return 'an object that is not iterable (pass a parsed response as [response])';
}

interface OpenBody {
  next(): Promise<ReadableStreamReadResult<unknown> | IteratorResult<unknown, unknown>>;
  cancel(reason: unknown): unknown;
}

function openBody(body: StreamBody): OpenBody {
  if ('getReader' in body) {
    const reader = body.getReader();
    return {
      next: () => reader.read(),
      cancel: (reason) => reader.cancel(reason),
    };
  }
  const iterator = Symbol.asyncIterator in body ? body[Symbol.asyncIterator]() : body[Symbol.iterator]();
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
