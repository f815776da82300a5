import type { CanonicalStreamEvent, MessageDelta } from '../../packages/core/src/canonical/events.ts';
import type { CanonicalError } from '../../packages/core/src/canonical/notes.ts';
import type { Stage } from '../../packages/core/src/canonical/stage.ts';
import { BlockSerializer } from '../../packages/core/src/codec/block-serializer.ts';
import type { SseFrame } from '../../packages/core/src/sse/encode.ts';
import { ContentEncoder } from './content-encode.ts';
import { encodeEnd, encodeErrorBody, encodeUsage } from './outcome.ts';

export const encodeStream = (): Stage<CanonicalStreamEvent, SseFrame> => new StreamEncoder();

class StreamEncoder implements Stage<CanonicalStreamEvent, SseFrame> {
  #out: SseFrame[] = [];
  #hasEnded = false;
  #last: MessageDelta | undefined;
  readonly #content = new ContentEncoder((part) => this.#write({ parts: [part] }));
  readonly #blocks = new BlockSerializer((event) => this.#content.push(event));

  push(event: CanonicalStreamEvent): Iterable<SseFrame> {
    if (!this.#hasEnded) this.#accept(event);
    return this.#take();
  }

  end(): Iterable<SseFrame> {
    if (!this.#hasEnded) this.#fail({ code: 'STREAM_TRUNCATED', message: 'the stream ended early' });
    return this.#take();
  }

  #accept(event: CanonicalStreamEvent): void {
    switch (event.type) {
      case 'message_start':
        this.#write({ id: event.message.id, model: event.message.model });
        break;
      case 'content_block_start':
      case 'content_block_delta':
      case 'content_block_stop':
        this.#blocks.push(event);
        break;
      case 'message_delta':
        this.#last = event;
        break;
      case 'message_stop':
        this.#finish();
        break;
      case 'error':
        this.#fail(event.error);
        break;
      case 'ping':
        break;
      default:
        event satisfies never;
    }
  }

  #finish(): void {
    this.#hasEnded = true;
    this.#blocks.end();
    this.#write({ end: encodeEnd(this.#last?.delta.stop_reason ?? null), ...encodeUsage(this.#last?.usage) });
  }

  #fail(error: CanonicalError): void {
    this.#hasEnded = true;
    this.#write(encodeErrorBody(error));
  }

  #write(fields: object): void {
    this.#out.push({ data: JSON.stringify({ toy: 1, ...fields }) });
  }

  #take(): SseFrame[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }
}
