import type { BlockDeltaEvent, BlockStart, BlockStop } from '../canonical/events.ts';

/**
 * Serialises overlapping blocks: the first open block passes through at once, blocks opened after it are held until it
 * stops. Output keeps the order in which blocks were opened. An event is held at most once, so the cost is linear.
 */
export class BlockSerializer {
  readonly #emit: (event: BlockEvent) => void;
  /** The index of the block that passes through. */
  #current: number | undefined;
  /** The other blocks that are open or stopped while held, in the order of their starts. */
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

  /** Releases the next block, and after it those that have already stopped. */
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

  /** Stops all open blocks. */
  end(): void {
    while (this.#current !== undefined) this.#pass({ type: 'content_block_stop', index: this.#current });
  }
}

/** An event of a content block. */
export type BlockEvent = BlockStart | BlockDeltaEvent | BlockStop;

/** Holds an event. A signature that arrives after the stop of a held block is inserted before the stop. */
function hold(events: BlockEvent[], event: BlockEvent): void {
  if (event.type === 'content_block_start') return;
  if (!isStopped(events)) events.push(event);
  else if (isSignature(event)) events.splice(-1, 0, event);
}

const isSignature = (event: BlockEvent): boolean =>
  event.type === 'content_block_delta' && event.delta.type === 'signature_delta';

const isStopped = (events: readonly BlockEvent[]): boolean => events.at(-1)?.type === 'content_block_stop';
