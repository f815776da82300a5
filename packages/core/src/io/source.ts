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
  if (typeof source === 'string') {
    yield encoder.encode(source);
    return;
  }
  if (source instanceof Uint8Array) {
    yield source;
    return;
  }
  const { next, cancel } = openSource(source);
  const aborted = whenAborted(signal);
  let isDone = false;
  try {
    for (;;) {
      const read = await (aborted ? Promise.race([next(), aborted.promise]) : next());
      if (read.done) {
        isDone = true;
        return;
      }
      yield typeof read.value === 'string' ? encoder.encode(read.value) : read.value;
    }
  } finally {
    aborted?.forget();
    // Not awaited: a source that hangs must not keep the caller waiting once it has turned away.
    if (!isDone) cancel(signal?.reason);
  }
}

interface OpenSource {
  next(): Promise<ReadableStreamReadResult<Uint8Array | string> | IteratorResult<Uint8Array | string, unknown>>;
  cancel(reason: unknown): void;
}

function openSource(source: Exclude<ByteSource, string | Uint8Array>): OpenSource {
  if ('getReader' in source) {
    const reader = source.getReader();
    return {
      next: () => reader.read(),
      cancel: (reason) => void reader.cancel(reason).catch(() => undefined),
    };
  }
  const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  return {
    next: async () => iterator.next(),
    cancel: () => void Promise.resolve(iterator.return?.()).catch(() => undefined),
  };
}

/** A promise that rejects when the signal aborts, and a way to stop listening. */
function whenAborted(signal: AbortSignal | undefined): { promise: Promise<never>; forget(): void } | undefined {
  if (!signal) return undefined;
  let forget = (): void => undefined;
  const promise = new Promise<never>((_, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    forget = () => signal.removeEventListener('abort', onAbort);
  });
  promise.catch(() => undefined);
  return { promise, forget: () => forget() };
}
