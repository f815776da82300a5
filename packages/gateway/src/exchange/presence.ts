import type { ServerResponse } from 'node:http';
import { type Clock, REAL_CLOCK, type Timer } from '../http/clock.ts';

/** The first write to a client that has closed brings back a reset, the next one meets it; a far client needs more time for that. */
const PROBES_MS = [0, 100, 1000, 5000];

type Listener = () => void;

/**
 * Whether an exchange may go on: its client is there, and the gateway does not stop. Every exchange has one; a pair of AbortSignals would cost
 * more than most of what listens to it.
 */
export class Presence {
  readonly response: ServerResponse;
  /** Times everything that this exchange waits for. */
  readonly clock: Clock;
  /** Where it stands among all that are under way. */
  place = 0;
  /** Writes what a client reads over. Set when its answer is a stream and has begun. */
  fill: (() => void) | undefined;
  #isGone = false;
  #isStopped = false;
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

  /** The client turned away before it had its answer. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** The gateway has to stop: the client is told. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  get isInterrupted(): boolean {
    return this.#isGone || this.#isStopped;
  }

  /** Hears of every interruption from now on. */
  listen(listener: Listener): void {
    this.#listeners.push(listener);
  }

  unlisten(listener: Listener): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }

  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#tell();
  }

  /** Resolves when the client has all of the answer, or is gone. */
  closed(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onClosed = resolve;
    });
  }

  get #isClosed(): boolean {
    return this.response.closed || this.response.destroyed;
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  readonly #close = (): void => {
    const { response } = this;
    for (const probe of this.#probes) probe.close();
    if (!response.writableFinished) {
      this.#isGone = true;
      this.#tell();
    }
    this.#onClosed?.();
  };

  /**
   * The client has closed its sending side. One that still reads (half-close) ignores what it is sent now; one that has closed the whole
   * connection looks the same until something is sent to it. HTTP/1.0 has nothing to send before the response: there it counts as gone, as
   * nginx closes its connections to upstreams this way.
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

  /** A callback for a timer or an event: an exception there would end the process, and here it ends this exchange. */
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
