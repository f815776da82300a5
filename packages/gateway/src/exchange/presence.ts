import type { ServerResponse } from 'node:http';

/** The first write to a client that has closed brings back a reset, the next one meets it; a far client needs more time for that. */
const PROBES_MS = [0, 100, 1000, 5000];

type Listener = () => void;

/**
 * Whether an exchange may go on: its client is there, and the gateway does not stop. Every exchange has one; a pair of AbortSignals would cost
 * more than most of what listens to it.
 */
export class Presence {
  readonly response: ServerResponse;
  /** Where it stands among all that are under way. */
  place = 0;
  /** Writes what a client reads over. Set when its answer is a stream and has begun. */
  fill: (() => void) | undefined;
  #isGone = false;
  #isStopped = false;
  #listeners: Listener[] = [];
  #probes: NodeJS.Timeout[] = [];
  #onClosed: Listener | undefined;

  constructor(response: ServerResponse) {
    this.response = response;
    response.on('close', this.#close);
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
    for (const probe of this.#probes) clearTimeout(probe);
    if (!response.writableFinished) {
      this.#isGone = true;
      this.#tell();
    }
    this.#onClosed?.();
  };

  /**
   * The client has nothing more to send. One that only says so (half-close) is still there and reads over what it is sent now; one that has
   * closed looks the same until something is sent to it.
   */
  halfClose(): void {
    if (!this.#isClosed) this.#probes = PROBES_MS.map((ms) => setTimeout(() => this.#probe(), ms));
  }

  #probe(): void {
    const { response } = this;
    if (response.writableEnded || response.destroyed) return;
    if (response.headersSent) this.fill?.();
    // An interim answer, which HTTP/1.0 does not know.
    else if (response.req.httpVersionMinor > 0) response.writeProcessing();
  }
}
