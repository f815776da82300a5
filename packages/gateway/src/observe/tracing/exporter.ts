/**
 * Sends spans to an OpenTelemetry collector, as OTLP JSON over HTTP. Written here because the SDK has 71 packages (50 MB)
 * and takes 200 ms to load. Never delays a request: what does not fit into the queue is dropped and counted.
 */

import type { Clock, Timer } from '../../http/clock.ts';
import type { TraceSettings } from './settings.ts';

/** A finished span. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly state: string | undefined;
  readonly name: string;
  readonly kind: 'server' | 'client';
  /** Milliseconds since 1970. */
  readonly from: number;
  readonly to: number;
  readonly attributes: Attributes;
  /** Why it failed; undefined when it did not. */
  readonly error: string | undefined;
}

/** Undefined and null values are left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>;

/** Numbers of the protocol. */
const KINDS = { server: 2, client: 3 } as const satisfies Record<Span['kind'], number>;

const FAILED = 2;

/** Collects spans and sends them in batches. */
export class SpanExporter {
  readonly #options: ExporterOptions;
  #queue: Waiting[] = [];
  /** What the queue holds. */
  #bytes = 0;
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;
  /** Ends the batch that is being sent. */
  #abort: AbortController | undefined;
  #isClosed = false;

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  add(span: Span): void {
    const { maxQueued, maxBatch, delayMs } = this.#options.settings;
    const bytes = measure(span);
    if (this.#isClosed || this.#queue.length >= maxQueued || this.#bytes + bytes > MAX_QUEUED_BYTES) {
      this.#options.onDropped(1);
      return;
    }
    this.#queue.push({ span, bytes });
    this.#bytes += bytes;
    if (this.#queue.length >= maxBatch || this.#bytes >= MAX_BATCH_BYTES) void this.flush();
    else this.#timer ??= this.#options.clock.setTimer(() => void this.flush(), delayMs).unref();
  }

  /** Sends what waits. Never rejects. */
  flush(): Promise<void> {
    this.#timer?.close();
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  /** Sends what waits, for a short time: a collector that does not respond must not keep the gateway from its end. Never rejects. */
  async close(): Promise<void> {
    const deadline = this.#options.clock.setTimer(() => {
      this.#isClosed = true;
      this.#abort?.abort(new Error('the gateway has stopped'));
    }, CLOSE_MS);
    await this.flush();
    this.#isClosed = true;
    deadline.close();
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#takeBatch();
      try {
        if (this.#isClosed) throw new Error('the gateway has stopped');
        await this.#send(batch);
      } catch (error) {
        this.#options.onDropped(batch.length, String(error));
      }
    }
  }

  /** At least one, and as many as fit into a request. */
  #takeBatch(): Span[] {
    const { maxBatch } = this.#options.settings;
    let bytes = 0;
    const next = this.#queue.findIndex((waiting, index) => {
      const isFull = index > 0 && (index >= maxBatch || bytes + waiting.bytes > MAX_BATCH_BYTES);
      if (!isFull) bytes += waiting.bytes;
      return isFull;
    });
    const batch = next < 0 ? this.#queue : this.#queue.slice(0, next);
    this.#queue = next < 0 ? [] : this.#queue.slice(next);
    this.#bytes -= bytes;
    return batch.map(({ span }) => span);
  }

  async #send(spans: readonly Span[]): Promise<void> {
    const { settings, clock } = this.#options;
    const { url, headers, resource, timeoutMs } = settings;
    const scopeSpans = [{ scope: { name: 'sluice' }, spans: spans.map(encodeSpan) }];
    const abort = new AbortController();
    this.#abort = abort;
    const timer = clock.setTimer(() => abort.abort(new Error(`the collector did not respond within ${timeoutMs} ms`)), timeoutMs);
    try {
      const response = await fetch(url, {
        method: 'POST',
        redirect: 'error',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ resourceSpans: [{ resource: { attributes: encodeAttributes(resource) }, scopeSpans }] }),
        signal: abort.signal,
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`the collector responded with status ${response.status}`);
    } finally {
      timer.close();
    }
  }
}

interface Waiting {
  readonly span: Span;
  readonly bytes: number;
}

/** A collector that does not respond may let this much wait: with the content of requests, a span has up to 64 Ki characters. */
const MAX_QUEUED_BYTES = 16 * 1024 * 1024;

/** Collectors accept 4 MiB and more in one request. */
const MAX_BATCH_BYTES = 2 * 1024 * 1024;

/** How long the end of the gateway waits for a collector. */
const CLOSE_MS = 3000;

/** About what a span takes in a request: its texts, and the names around them. Escapes can double a text that is JSON itself. */
function measure({ name, state = '', attributes }: Span): number {
  let bytes = SPAN_BYTES + Buffer.byteLength(name) + Buffer.byteLength(state);
  for (const value of Object.values(attributes)) {
    if (typeof value === 'string') bytes += Buffer.byteLength(value);
    else if (typeof value === 'object' && value !== null) for (const item of value) bytes += Buffer.byteLength(item);
  }
  return bytes;
}

const SPAN_BYTES = 1024;

/** What the exporter works with. */
export interface ExporterOptions {
  readonly settings: TraceSettings;
  readonly clock: Clock;
  /** Spans were lost. `reason`: the collector did not take them; undefined when the queue was full. */
  readonly onDropped: (count: number, reason?: string) => void;
}

const encodeSpan = ({ traceId, spanId, parentId, state, name, kind, from, to, attributes, error }: Span): object => ({
  traceId,
  spanId,
  ...(parentId !== undefined && { parentSpanId: parentId }),
  ...(state !== undefined && { traceState: state }),
  name,
  kind: KINDS[kind],
  startTimeUnixNano: toNanoseconds(from),
  endTimeUnixNano: toNanoseconds(Math.max(from, to)),
  attributes: encodeAttributes(attributes),
  status: error === undefined ? {} : { code: FAILED, message: error },
});

/** As text: the number is larger than JSON numbers can be exact. */
export const toNanoseconds = (ms: number): string =>
  String(BigInt(Math.trunc(ms)) * 1_000_000n + BigInt(Math.round((ms % 1) * 1e6)));

const encodeAttributes = (attributes: Attributes): object[] =>
  Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined || value === null ? [] : [{ key, value: encodeValue(value) }],
  );

function encodeValue(value: string | number | boolean | readonly string[]): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map((item) => ({ stringValue: item })) } };
}
