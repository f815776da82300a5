import type { ServerResponse } from 'node:http';
import type { CanonicalError } from '@sluice/core';
import { type Clock, REAL_CLOCK, type Timer } from '../http/clock.ts';

/**
 * The connection to the client of one exchange: whether the client is still connected, and whether the gateway is
 * shutting down. A pair of AbortSignals per exchange would cost more than most of their listeners.
 */
export class ClientConnection {
  readonly response: ServerResponse;
  /** Times everything that this exchange waits for. */
  readonly clock: Clock;
  /** Index in the list of running exchanges; -1 outside of it. */
  place = -1;
  /** The public id of the client's key; empty before it is known, and without keys. */
  keyId = '';
  /** Writes bytes that clients ignore. Set once a stream has begun. */
  fill: (() => void) | undefined;
  #isGone = false;
  #stopError: CanonicalError | undefined;
  #listeners: Listener[] = [];
  #probes: Timer[] = [];
  #onClosed: Listener | undefined;
  readonly #onFault: (cause: unknown) => void;

  /** `onFault` is called when a callback of this exchange throws. */
  constructor(response: ServerResponse, clock = REAL_CLOCK, onFault: (cause: unknown) => void = () => response.destroy()) {
    this.response = response;
    this.clock = clock;
    this.#onFault = onFault;
    response.on('close', this.#close);
    // Without a listener, a write after the end would be an uncaught exception.
    response.on('error', onFault);
  }

  /** The client disconnected before it had the whole response. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** The gateway ends the exchange: it shuts down, or the key was revoked. The client receives `stopError`. */
  get isStopped(): boolean {
    return this.#stopError !== undefined;
  }

  /** Why the gateway ends the exchange. */
  get stopError(): CanonicalError | undefined {
    return this.#stopError;
  }

  /** The client has disconnected, or the gateway ends the exchange. */
  get isInterrupted(): boolean {
    return this.#isGone || this.isStopped;
  }

  /** Calls the listener on every interruption from now on. */
  listen(listener: Listener): void {
    this.#listeners.push(listener);
  }

  unlisten(listener: Listener): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }

  /** Ends the exchange with this error. */
  stop(error: CanonicalError): void {
    if (this.#stopError) return;
    this.#stopError = error;
    this.#notify();
  }

  /** Resolves when the client has the whole response, or has disconnected. */
  closed(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onClosed = resolve;
    });
  }

  get #isClosed(): boolean {
    return this.response.closed || this.response.destroyed;
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  readonly #close = (): void => {
    const { response } = this;
    for (const probe of this.#probes) probe.close();
    if (!response.writableFinished) {
      this.#isGone = true;
      this.#notify();
    }
    this.#onClosed?.();
  };

  /**
   * The client has closed its sending side. A client that still reads (half-close) ignores the probes; one that has
   * closed the whole connection looks the same until something is sent to it. HTTP/1.0 allows nothing before the
   * response, so such a client counts as gone: nginx closes connections to its upstreams this way.
   */
  halfClose(): void {
    if (this.#isClosed) return;
    if (this.#canBeProbed)
      this.#probes = PROBES_MS.map((ms) =>
        this.clock.setTimer(
          this.guard(() => this.#probe()),
          ms,
        ),
      );
    else this.response.destroy();
  }

  get #canBeProbed(): boolean {
    const { headersSent, req } = this.response;
    return headersSent || req.httpVersionMinor > 0;
  }

  /** Wraps a callback of a timer or an event: an exception would end the process, and so it ends this exchange only. */
  guard(run: () => void): () => void {
    return () => {
      try {
        run();
      } catch (cause) {
        this.#onFault(cause);
      }
    };
  }

  #probe(): void {
    const { response } = this;
    if (response.writableEnded || response.destroyed) return;
    if (response.headersSent) this.fill?.();
    else response.writeProcessing();
  }
}

type Listener = () => void;

/** The first write to a closed client causes a reset, and the next write detects it; distant clients need more time. */
const PROBES_MS = [0, 100, 1000, 5000];
