import { type Capture, measure } from './capture.ts';

/** The last captures, in memory. The oldest are dropped when there are too many, or too many bytes. */
export class Ring {
  readonly #limits: RingLimits;
  /** In the order in which exchanges ended. */
  readonly #entries = new Map<string, { capture: Capture; bytes: number }>();
  #bytes = 0;

  constructor(limits: RingLimits = RING_LIMITS) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(capture: Capture): void {
    const bytes = measure(capture);
    if (bytes > this.#limits.bytes) return;
    this.#drop(capture.id);
    this.#entries.set(capture.id, { capture, bytes });
    this.#bytes += bytes;
    for (const [id] of this.#entries) {
      if (this.#entries.size <= this.#limits.count && this.#bytes <= this.#limits.bytes) break;
      this.#drop(id);
    }
  }

  /** By the id of the exchange or of the request. */
  get(id: string): Capture | undefined {
    return this.#entries.get(id)?.capture ?? this.list().find(({ requestId }) => requestId === id);
  }

  /** Newest first. */
  list(): Capture[] {
    return [...this.#entries.values()].map(({ capture }) => capture).toReversed();
  }

  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }

  #drop(id: string): void {
    this.#bytes -= this.#entries.get(id)?.bytes ?? 0;
    this.#entries.delete(id);
  }
}

/** How much a ring keeps. */
export interface RingLimits {
  count: number;
  bytes: number;
}

/** Enough for a long session of a coding agent. */
export const RING_LIMITS: RingLimits = { count: 100, bytes: 32_000_000 };
