/** Anything a response body can be: a web stream, a node stream, any (async) iterable of chunks, or the body itself. */
export type ByteSource =
  | ReadableStream<Uint8Array | string>
  | AsyncIterable<Uint8Array | string>
  | Iterable<Uint8Array | string>
  | Uint8Array
  | string;

/** The chunks of a source, one read at a time: a slow consumer slows the source. An aborted signal ends it by throwing its reason. */
export async function* readChunks(source: ByteSource, signal?: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
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
    // Not awaited: a source that hangs must not keep the caller waiting once it has turned away.
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

/** A promise that rejects when the signal aborts; `end` stops the listening. */
function whenAborted(signal: AbortSignal, end: AbortSignal): Promise<never> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true, signal: end });
  });
  aborted.catch(() => undefined);
  return aborted;
}
