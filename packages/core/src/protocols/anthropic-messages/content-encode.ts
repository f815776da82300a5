import type { ContentBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import type { BlockDelta } from '../../canonical/events.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { type BlockEvent, BlockSerializer } from '../shared/block-serializer.ts';
import { drop } from '../shared/codec.ts';
import { type Answer, carrierBlock, dropHeld, encodeCall, encodeSignature, imageText, isLostCall, isOwnBlock } from './answer.ts';
import type { BlockSink } from './block-port.ts';
import {
  AudioBlockEncoder,
  type BlockEncoder,
  type EncoderScope,
  OpaqueBlockEncoder,
  SKIPPED,
  TextBlockEncoder,
  ThinkingBlockEncoder,
} from './block-writers.ts';
import { encodeInput, INVALID } from './call-input.ts';
import { CallBlockEncoder } from './call-writer.ts';
import { fieldsOf } from './fields.ts';

/** Encodes the blocks of a message into a sink. In a stream one is open at a time: the SDK takes the last one for the open one. */
export class ContentEncoder {
  readonly #answer: Answer;
  readonly #sink: BlockSink;
  readonly #serializer = new BlockSerializer((event) => this.#write(event));
  #open: BlockEncoder | undefined;
  #at = -1;
  /** Thinking that has gone out, by the index of its event: its signature may come late. */
  readonly #thinking = new Map<number, number>();
  /** Signatures of what has gone out, which wait for the end of the open block. */
  #late: SignedBlob[] = [];

  constructor(answer: Answer, sink: BlockSink) {
    this.#answer = answer;
    this.#sink = sink;
  }

  /** Adds a whole block. */
  add(at: number, block: ContentBlock): void {
    this.#at = at;
    this.#open = this.#createEncoder(block);
    this.#stop(undefined);
  }

  push(event: BlockEvent): void {
    this.#serializer.push(event);
  }

  /** Stops what is open. */
  end(): void {
    this.#serializer.end();
    dropHeld(this.#answer);
  }

  #write(event: BlockEvent): void {
    switch (event.type) {
      case 'content_block_delta':
        if (this.#open && event.index === this.#at) this.#open.delta(event.delta);
        else this.#sign(event.index, event.delta);
        return;
      case 'content_block_start':
        this.#at = event.index;
        this.#open = this.#createEncoder(event.content_block);
        return;
      case 'content_block_stop':
        this.#stop(event.content_block);
        return;
      default:
        event satisfies never;
    }
  }

  #createEncoder(block: ContentBlock): BlockEncoder {
    const { context } = this.#answer;
    const scope: EncoderScope = { sink: this.#sink, answer: this.#answer, path: `/content/${this.#at}` };
    switch (block.type) {
      case 'text':
        return new TextBlockEncoder(scope, block);
      case 'thinking':
        return this.#createThinking(scope, block);
      case 'tool_use':
        if (isLostCall(block, scope.path, this.#answer)) return SKIPPED;
        return this.#sink.isLive ? new CallBlockEncoder(scope, block, this.#signsCalls) : this.#addCall(scope, block);
      case 'audio':
        return new AudioBlockEncoder(scope, block);
      case 'image':
        this.#sink.text(imageText(block, scope.path, context));
        return SKIPPED;
      case 'opaque':
        if (block.origin === 'anthropic-messages' && isOwnBlock(block.raw)) return new OpaqueBlockEncoder(scope, block.raw);
        return block.text ? this.#passText(block.text) : this.#lose(block.type, scope);
      case 'tool_result':
        if (!isOwnBlock(fieldsOf(block))) return this.#lose(block.type, scope);
        this.#sink.whole(fieldsOf(block));
        return SKIPPED;
      case 'file':
        return this.#lose(block.type, scope);
      default:
        return block satisfies never;
    }
  }

  /** A call whose arguments are complete: its input is an object, not text. */
  #addCall({ path }: EncoderScope, block: ToolUseBlock): BlockEncoder {
    const { context, wantsThinking } = this.#answer;
    const call = encodeCall(block, encodeInput(block, path, context, INVALID), path, this.#answer);
    if (block.signature && wantsThinking) this.#sink.whole(carrierBlock(block.signature, 'next', context));
    this.#sink.whole(call);
    return SKIPPED;
  }

  /** Gemini signs its calls, and nobody else does. */
  get #signsCalls(): boolean {
    const { context, isForeign } = this.#answer;
    const source = context.source ?? context.target?.provider.protocol;
    return isForeign && (source === undefined || source === 'gemini');
  }

  #createThinking(scope: EncoderScope, block: Extract<ContentBlock, { type: 'thinking' }>): BlockEncoder {
    const { signature } = block;
    if (signature?.origin !== 'anthropic-messages' || signature.form !== 'redacted')
      return new ThinkingBlockEncoder(scope, block);
    this.#sink.whole({ ...fieldsOf(block), type: 'redacted_thinking', data: signature.value });
    return SKIPPED;
  }

  #passText(text: string): BlockEncoder {
    this.#sink.text(text);
    return SKIPPED;
  }

  #lose(type: string, { path }: EncoderScope): BlockEncoder {
    const message = `an answer of Anthropic Messages holds no such ${type}`;
    drop(this.#answer.context, { path, feature: `content.${type}`, message });
    return SKIPPED;
  }

  #stop(final: ContentBlock | undefined): void {
    const encoder = this.#open;
    if (!encoder) return;
    encoder.stop(final);
    if (encoder instanceof ThinkingBlockEncoder && encoder.index !== undefined) this.#thinking.set(this.#at, encoder.index);
    this.#open = undefined;
    const late = this.#late;
    this.#late = [];
    for (const blob of late) this.#carry(blob);
  }

  /** A signature for a block that has gone out. For thinking there is the index, which the SDK accepts; anything else cannot be reached any more. */
  #sign(at: number, delta: BlockDelta): void {
    if (delta.type !== 'signature_delta') return;
    const index = this.#thinking.get(at);
    const { context } = this.#answer;
    if (index !== undefined)
      this.#sink.delta(index, 'signature_delta', 'signature', encodeSignature(delta.signature, 'self', context));
    else if (this.#open) this.#late.push(delta.signature);
    else this.#carry(delta.signature);
  }

  #carry(blob: SignedBlob): void {
    if (this.#answer.wantsThinking) this.#sink.whole(carrierBlock(blob, 'self', this.#answer.context));
    else this.#answer.held = blob;
  }
}
