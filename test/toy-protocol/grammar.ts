import { must, parsePayload, type StreamGrammar } from '../../packages/core/src/codec/grammar.ts';
import type { SseFrame } from '../../packages/core/src/sse/encode.ts';

/** A begin, parts, and an end or an error. */
export class ToyGrammar implements StreamGrammar {
  #state: 'waiting' | 'open' | 'done' | 'failed' = 'waiting';

  push(frame: SseFrame): void {
    const { id, parts, end, error } = parsePayload(frame);
    must(this.#state === 'waiting' || this.#state === 'open', 'nothing follows the end');
    if (error !== undefined) this.#state = 'failed';
    else if (end !== undefined) this.#state = 'done';
    else if (this.#state === 'waiting') {
      must(id !== undefined, 'the first event has an id');
      this.#state = 'open';
    } else must(parts !== undefined, 'an event has parts');
  }

  end(): string {
    must(this.#state === 'done' || this.#state === 'failed', 'a stream ends with an end or an error');
    return this.#state;
  }
}
