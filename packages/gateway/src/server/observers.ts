/** Everything that observes exchanges: captures, and the tracer, which adds its headers to requests. */

import type { ExchangeOptions, Provider } from '@sluice/core';
import type { AttemptObserver, ExchangeObserver, ExchangeObservers, ObservedRequest } from '../exchange/observer.ts';
import type { Tracer } from '../observe/tracing/tracer.ts';
import type { Transport } from '../upstream/dialer.ts';

/** Observers of captures and traces. Without a tracer, those of captures alone. */
export const combineObservers = (captures: ExchangeObservers, tracer: Tracer | undefined): ExchangeObservers =>
  tracer ? { begin: (request) => new TracedExchange(request, captures.begin(request), tracer) } : captures;

class TracedExchange implements ExchangeObserver {
  readonly #id: string;
  readonly #capture: ExchangeObserver | undefined;
  readonly #tracer: Tracer;

  constructor({ requestId, body }: ObservedRequest, capture: ExchangeObserver | undefined, tracer: Tracer) {
    this.#id = requestId;
    this.#capture = capture;
    this.#tracer = tracer;
    tracer.addContent(requestId, body);
  }

  attempt(provider: Provider, options?: ExchangeOptions): AttemptObserver {
    const captured = this.#capture?.attempt(provider, options);
    return {
      options: captured ? captured.options : options,
      // Inside of the capture, which keeps the request as it would be without a trace.
      tap: (transport) => captured?.tap(this.#trace(transport)) ?? this.#trace(transport),
      ended: (outcome) => captured?.ended(outcome),
    };
  }

  #trace(transport: Transport): Transport {
    return {
      dial: (call, receiver) =>
        transport.dial({ ...call, headers: this.#tracer.addHeaders(this.#id, call.headers, call.origin) }, receiver),
    };
  }

  opened(...head: Parameters<ExchangeObserver['opened']>): void {
    this.#capture?.opened(...head);
  }

  sent(...part: Parameters<ExchangeObserver['sent']>): void {
    this.#capture?.sent(...part);
  }

  filled(bytes: Uint8Array): void {
    this.#capture?.filled(bytes);
  }

  ended(...end: Parameters<ExchangeObserver['ended']>): void {
    this.#capture?.ended(...end);
  }
}
