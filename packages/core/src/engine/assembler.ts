import { MessageAccumulator } from '../accumulate/message.ts';
import { ownError } from '../canonical/errors.ts';
import { type Assembled, describeMessage } from './assembled.ts';
import { EventReader, type EventReaderOptions } from './event-reader.ts';

/**
 * Bytes in, whole message out, without I/O.
 *
 * ```ts
 * const assembler = new Assembler({ protocol: openaiChat });
 * for (const chunk of chunks) assembler.push(chunk);
 * const { text, tool_calls, diagnostics } = assembler.end();
 * ```
 */
export class Assembler {
  readonly #events: EventReader;
  readonly #message = new MessageAccumulator();

  constructor(options: EventReaderOptions) {
    this.#events = new EventReader(options);
  }

  /** A limit was passed: whatever follows is ignored, and reading on is of no use. */
  get hasFailed(): boolean {
    return this.#events.hasFailed;
  }

  push(chunk: Uint8Array): void {
    for (const event of this.#events.push(chunk)) this.#message.push(event);
  }

  end(): Assembled {
    for (const event of this.#events.end()) this.#message.push(event);
    return this.#describe();
  }

  /** The source broke off: what was read is kept, and the reason is the error. */
  fail(reason: string): Assembled {
    const error = ownError('stream_error', 'UPSTREAM_ERROR', `reading the stream failed: ${reason}`);
    for (const event of this.#events.end()) this.#message.push(event);
    this.#message.push({ type: 'error', error });
    return { ...this.#describe(), complete: false };
  }

  #describe(): Assembled {
    const { protocol, diagnostics, notes, completion } = this.#events;
    return describeMessage(protocol ?? null, this.#message.finish(), { diagnostics, notes, completion });
  }
}
