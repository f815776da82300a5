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
  #queue: Span[] = [];
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  add(span: Span): void {
    const { maxQueued, maxBatch, delayMs } = this.#options.settings;
    if (this.#queue.length >= maxQueued) {
      this.#options.onDropped(1);
      return;
    }
    this.#queue.push(span);
    if (this.#queue.length >= maxBatch) void this.flush();
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

  async #sendAll(): Promise<void> {
    const { maxBatch } = this.#options.settings;
    while (this.#queue.length > 0) {
      const batch = this.#queue.slice(0, maxBatch);
      this.#queue = this.#queue.slice(maxBatch);
      try {
        await this.#send(batch);
      } catch (error) {
        this.#options.onDropped(batch.length, String(error));
      }
    }
  }

  async #send(spans: readonly Span[]): Promise<void> {
    const { url, headers, resource, timeoutMs } = this.#options.settings;
    const scopeSpans = [{ scope: { name: 'sluice' }, spans: spans.map(encodeSpan) }];
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'error',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ resourceSpans: [{ resource: { attributes: encodeAttributes(resource) }, scopeSpans }] }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`the collector responded with status ${response.status}`);
  }
}

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
