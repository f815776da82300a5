import { MessageAccumulator, type StreamResult } from '../accumulate/message.ts';
import type { CanonicalStreamEvent } from '../canonical/events.ts';

/** What is kept of a stream that goes by: nothing, the whole message, or only what it used. */
export class Tap {
  readonly #message: MessageAccumulator | undefined;
  readonly #keepsContent: boolean;

  constructor(kept: boolean | 'usage' | undefined) {
    this.#message = kept ? new MessageAccumulator() : undefined;
    this.#keepsContent = kept === true;
  }

  push(event: CanonicalStreamEvent): void {
    if (this.#keepsContent || !isContent(event)) this.#message?.push(event);
  }

  get result(): StreamResult | undefined {
    return this.#message?.finish();
  }
}

const isContent = ({ type }: CanonicalStreamEvent): boolean =>
  type === 'content_block_delta' || type === 'content_block_start' || type === 'content_block_stop';
