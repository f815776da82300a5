import type { CanonicalError } from '../../packages/core/src/canonical/notes.ts';
import { BlockEmitter, type Emit } from '../../packages/core/src/codec/block-emitter.ts';
import type { Context } from '../../packages/core/src/codec/context.ts';
import { listOrEmpty, objectOrEmpty, textOrEmpty } from '../../packages/core/src/codec/read.ts';
import {
  type FrameDecoder,
  PayloadDecoder,
  type PayloadMachine,
  type StreamDecoderOptions,
} from '../../packages/core/src/codec/stream-decoder.ts';
import type { JsonObject } from '../../packages/core/src/json/json.ts';
import { decodeContent } from './content-decode.ts';
import { decodeEnd, decodeErrorBody, decodeUsage } from './outcome.ts';

export const decodeStream = (context: Context, options: StreamDecoderOptions = {}): FrameDecoder =>
  new PayloadDecoder(context, options, (emit) => new ToyMachine(emit));

class ToyMachine implements PayloadMachine {
  readonly #emit: Emit;
  readonly #writer: BlockEmitter;
  #state: 'waiting' | 'open' | 'ended' = 'waiting';

  constructor(emit: Emit) {
    this.#emit = emit;
    this.#writer = new BlockEmitter(emit);
  }

  /** An event of a stream has some of the fields of a whole response. */
  payload(value: JsonObject): void {
    if (value['error'] !== undefined) {
      this.fail(decodeErrorBody(value));
      return;
    }
    if (this.#state === 'waiting') this.#start(value);
    for (const part of listOrEmpty(value['parts'])) decodeContent(objectOrEmpty(part), this.#writer);
    if (value['end'] !== undefined) this.#finish(value);
  }

  #start({ id, model }: JsonObject): void {
    this.#state = 'open';
    this.#emit({ type: 'message_start', message: { id: textOrEmpty(id), model: textOrEmpty(model) } });
  }

  #finish({ end, used }: JsonObject): void {
    this.#state = 'ended';
    this.#writer.end();
    const usage = decodeUsage(used);
    this.#emit({ type: 'message_delta', delta: { stop_reason: decodeEnd(end) }, ...(usage && { usage }) });
    this.#emit({ type: 'message_stop' });
  }

  done(): void {
    // `[DONE]` has no meaning here.
  }

  fail(error: CanonicalError): void {
    this.#state = 'ended';
    this.#writer.end();
    this.#emit({ type: 'error', error });
  }

  end(): void {
    if (this.#state !== 'ended') this.fail({ code: 'STREAM_TRUNCATED', message: 'the stream ended early' });
  }
}
