import type { ToolUseBlock } from '../../packages/core/src/canonical/message.ts';
import type { BlockEvent } from '../../packages/core/src/codec/block-serializer.ts';
import { objectOrEmpty } from '../../packages/core/src/codec/read.ts';
import { encodeCall } from './blocks.ts';
import type { ToyPart } from './wire.ts';

/** The blocks of a stream, one at a time: text goes out at once, a call when it is complete. */
export class ContentEncoder {
  readonly #emit: (part: ToyPart) => void;
  #call: ToolUseBlock | undefined;
  #input = '';

  constructor(emit: (part: ToyPart) => void) {
    this.#emit = emit;
  }

  push(event: BlockEvent): void {
    if (event.type === 'content_block_start') this.#start(event.content_block);
    else if (event.type === 'content_block_stop') this.#stop();
    else if (event.delta.type === 'text_delta') this.#emit({ text: event.delta.text });
    else if (event.delta.type === 'input_json_delta') this.#input += event.delta.partial_json;
  }

  #start(block: Extract<BlockEvent, { type: 'content_block_start' }>['content_block']): void {
    if (block.type === 'text' && block.text !== '') this.#emit({ text: block.text });
    if (block.type !== 'tool_use') return;
    this.#call = block;
    this.#input = '';
  }

  #stop(): void {
    const call = this.#call;
    this.#call = undefined;
    if (!call) return;
    const input = this.#input === '' ? call.input : objectOrEmpty(JSON.parse(this.#input));
    this.#emit({ call: encodeCall({ ...call, input }) });
  }
}
