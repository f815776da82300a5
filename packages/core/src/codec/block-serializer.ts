import type { BlockDeltaEvent, BlockStart, BlockStop } from '../canonical/events.ts';

export type BlockEvent = BlockStart | BlockDeltaEvent | BlockStop;

/**
 * Blocks that overlap, told one after the other: the first that is open passes at once, those opened after it wait until it stops. What comes
 * out keeps the order in which the blocks were opened. An event is kept at most once and let out once, so that the cost is that of the stream.
 */
export class BlockSerializer {
  readonly #emit: (event: BlockEvent) => void;
  /** The block that passes. */
  #current: number | undefined;
  /** The others that are open, or were stopped while they waited, in their order. */
  readonly #waiting = new Map<number, BlockEvent[]>();

  constructor(emit: (event: BlockEvent) => void) {
    this.#emit = emit;
  }

  push(event: BlockEvent): void {
    if (event.index === this.#current) {
      this.#pass(event);
      return;
    }
    const waiting = this.#waiting.get(event.index);
    if (waiting) hold(waiting, event);
    else if (event.type === 'content_block_start') this.#open(event);
    // Only a signature may follow the stop of its block.
    else if (isSignature(event)) this.#emit(event);
  }

  #pass(event: BlockEvent): void {
    if (event.type === 'content_block_start') return;
    this.#emit(event);
    if (event.type === 'content_block_stop') this.#advance();
  }

  #open(event: BlockStart): void {
    if (this.#current !== undefined) {
      this.#waiting.set(event.index, [event]);
      return;
    }
    this.#current = event.index;
    this.#emit(event);
  }

  /** The next block, and with it those behind that have stopped already. */
  #advance(): void {
    this.#current = undefined;
    for (const [index, events] of this.#waiting) {
      this.#waiting.delete(index);
      for (const event of events) this.#emit(event);
      if (isStopped(events)) continue;
      this.#current = index;
      return;
    }
  }

  /** Stops what is open. */
  end(): void {
    while (this.#current !== undefined) this.#pass({ type: 'content_block_stop', index: this.#current });
  }
}

const isSignature = (event: BlockEvent): boolean =>
  event.type === 'content_block_delta' && event.delta.type === 'signature_delta';

const isStopped = (events: readonly BlockEvent[]): boolean => events.at(-1)?.type === 'content_block_stop';

/** A signature that comes after the stop of a block which has not gone out yet still finds its place before it. */
function hold(events: BlockEvent[], event: BlockEvent): void {
  if (event.type === 'content_block_start') return;
  if (!isStopped(events)) events.push(event);
  else if (isSignature(event)) events.splice(-1, 0, event);
}
