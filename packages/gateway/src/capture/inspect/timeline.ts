/** The message of a stream at any of its events: copies of the accumulator, and the events since the last copy. */

import { type CanonicalStreamEvent, MessageAccumulator } from '@sluice/core';

/** Events between two copies. */
const INTERVAL = 256;

/** Makes the message at any event a lookup and a short replay. */
export class Timeline {
  readonly #events: readonly CanonicalStreamEvent[];
  readonly #copies: { readonly count: number; readonly message: MessageAccumulator }[] = [];

  constructor(events: readonly CanonicalStreamEvent[]) {
    this.#events = events;
    const message = new MessageAccumulator();
    this.#copies.push({ count: 0, message: message.copy() });
    let parts = 0;
    let since = 0;
    for (const [index, event] of events.entries()) {
      message.push(event);
      parts += countParts(event);
      // A copy costs the parts of the message: with at least as many events between two copies, all cost what one pass costs.
      if (++since < Math.max(INTERVAL, parts)) continue;
      since = 0;
      this.#copies.push({ count: index + 1, message: message.copy() });
    }
  }

  /** The message after the first `count` events. */
  at(count: number): MessageAccumulator {
    let index = this.#copies.length - 1;
    while (index > 0 && (this.#copies[index]?.count ?? 0) > count) index--;
    const copy = this.#copies[index];
    const message = copy ? copy.message.copy() : new MessageAccumulator();
    for (let at = copy?.count ?? 0; at < count && at < this.#events.length; at++) {
      const event = this.#events[at];
      if (event) message.push(event);
    }
    return message;
  }
}

/** What an event adds to a message that is copied one by one; texts are not. */
function countParts(event: CanonicalStreamEvent): number {
  if (event.type === 'content_block_start') return 1;
  if (event.type !== 'content_block_delta') return 0;
  return event.delta.type === 'text_delta' ? (event.delta.logprobs?.length ?? 0) : event.delta.type === 'citations_delta' ? 1 : 0;
}
