import { isObject, type JsonObject, setOwn } from '../../accumulate/overlay.ts';
import type { AudioBlock, Citation, ContentBlock, TextBlock, ThinkingBlock } from '../../canonical/blocks.ts';
import type { BlockDelta } from '../../canonical/events.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { dropLogprobs } from '../shared/answer.ts';
import type { Attach } from '../shared/carrier.ts';
import {
  type Answer,
  carrierBlock,
  dropSignature,
  encodeCitation,
  encodeSignature,
  encodeUnsigned,
  NO_LOGPROBS,
  tellAudio,
} from './answer.ts';
import type { BlockSink } from './block-port.ts';
import { fieldsOf } from './fields.ts';

/** One block of the answer, on its way to the wire. */
export interface BlockEncoder {
  /** The index under which it went out, once it did. */
  readonly index: number | undefined;
  delta(delta: BlockDelta): void;
  /** `final` corrects what was settled late. */
  stop(final: ContentBlock | undefined): void;
}

/** What the encoders share. */
export interface EncoderScope {
  readonly sink: BlockSink;
  readonly answer: Answer;
  /** Of the block, for notes. */
  readonly path: string;
}

/** Nothing goes out. */
export const SKIPPED: BlockEncoder = { index: undefined, delta: () => {}, stop: () => {} };

/** Text. It starts with its first character or citation: there are no empty ones. */
export class TextBlockEncoder implements BlockEncoder {
  index: number | undefined;
  readonly #scope: EncoderScope;
  readonly #fields: JsonObject;
  #signature: SignedBlob | undefined;
  #hasLogprobs = false;

  constructor(scope: EncoderScope, block: TextBlock) {
    this.#scope = scope;
    this.#fields = fieldsOf(block);
    this.#signature = block.signature;
    this.#write(block);
    for (const citation of block.citations ?? []) this.#cite(citation);
  }

  delta(delta: BlockDelta): void {
    if (delta.type === 'text_delta') this.#write(delta);
    else if (delta.type === 'citations_delta') this.#cite(delta.citation);
    else if (delta.type === 'signature_delta') this.#signature = delta.signature;
  }

  #write({ text, logprobs }: Pick<TextBlock, 'text' | 'logprobs'>): void {
    if (logprobs && !this.#hasLogprobs) dropLogprobs(this.#scope.path, NO_LOGPROBS, this.#scope.answer.context);
    this.#hasLogprobs ||= logprobs !== undefined;
    if (text !== '') this.#scope.sink.delta(this.#begin(), 'text_delta', 'text', text);
  }

  #cite(citation: Citation): void {
    const raw = encodeCitation(citation, `${this.#scope.path}/citations`, this.#scope.answer.context);
    if (raw !== undefined) this.#scope.sink.delta(this.#begin(), 'citations_delta', 'citation', raw);
  }

  /** A signature that is known at the start is written before the text. */
  #begin(): number {
    if (this.index !== undefined) return this.index;
    const { sink, answer } = this.#scope;
    // A whole message reports a dropped signature when the block stops, after its citations.
    if (sink.isLive || answer.wantsThinking) this.#carry('next');
    this.index = sink.start({ ...this.#fields, type: 'text', text: '', citations: null });
    return this.index;
  }

  /** A signature that came after the text was sent follows it. */
  stop(): void {
    if (this.index !== undefined) this.#scope.sink.stop(this.index);
    this.#carry('self');
  }

  #carry(attach: Attach): void {
    const { sink, answer, path } = this.#scope;
    if (!this.#signature) return;
    if (answer.wantsThinking) sink.whole(carrierBlock(this.#signature, attach, answer.context));
    else dropSignature(path, 'text', answer);
    this.#signature = undefined;
  }
}

/** Thinking. Its signature goes out last, right before the stop, and once. */
export class ThinkingBlockEncoder implements BlockEncoder {
  index: number | undefined;
  readonly #scope: EncoderScope;
  readonly #fields: JsonObject;
  #signature: SignedBlob | undefined;

  constructor(scope: EncoderScope, block: ThinkingBlock) {
    this.#scope = scope;
    this.#fields = fieldsOf(block);
    this.#signature = block.signature;
    if (block.thinking !== '') this.#write(block.thinking);
  }

  delta(delta: BlockDelta): void {
    if (delta.type === 'thinking_delta') this.#write(delta.thinking);
    else if (delta.type === 'signature_delta') this.#signature = delta.signature;
  }

  #write(thinking: string): void {
    if (thinking !== '') this.#scope.sink.delta(this.#begin(), 'thinking_delta', 'thinking', thinking);
  }

  #begin(): number {
    this.index ??= this.#scope.sink.start({ ...this.#fields, type: 'thinking', thinking: '', signature: '' });
    return this.index;
  }

  stop(): void {
    const { sink, answer } = this.#scope;
    // Another protocol's reasoning that shows nothing: without thinking, what it carries waits for a call. Ours may be empty, and is passed on.
    if (this.index === undefined && answer.isForeign && (!this.#signature || !answer.wantsThinking)) {
      answer.held = this.#signature ?? answer.held;
      return;
    }
    const index = this.#begin();
    const signature = this.#encodeSignature();
    if (signature !== '') sink.delta(index, 'signature_delta', 'signature', signature);
    sink.stop(index);
  }

  #encodeSignature(): string {
    const { context, isForeign } = this.#scope.answer;
    if (this.#signature) return encodeSignature(this.#signature, 'self', context);
    return isForeign ? encodeUnsigned(context) : '';
  }
}

/** A block of our own that nobody here understands: its deltas are laid into it, and it goes out whole. */
export class OpaqueBlockEncoder implements BlockEncoder {
  readonly index = undefined;
  readonly #scope: EncoderScope;
  readonly #raw: JsonObject;

  constructor(scope: EncoderScope, raw: JsonObject) {
    this.#scope = scope;
    this.#raw = { ...raw };
  }

  delta(delta: BlockDelta): void {
    if (delta.type !== 'opaque_delta' || !isObject(delta.raw)) return;
    for (const [key, value] of Object.entries(delta.raw)) {
      const before = Object.hasOwn(this.#raw, key) ? this.#raw[key] : undefined;
      if (value !== null)
        setOwn(this.#raw, key, typeof before === 'string' && typeof value === 'string' ? before + value : value);
    }
  }

  stop(): void {
    this.#scope.sink.whole(this.#raw);
  }
}

/** Audio, of which a client of text gets what was said. */
export class AudioBlockEncoder implements BlockEncoder {
  readonly #scope: EncoderScope;
  readonly #text: TextBlockEncoder;

  constructor(scope: EncoderScope, block: AudioBlock) {
    this.#scope = scope;
    this.#text = new TextBlockEncoder(scope, { type: 'text', text: block.transcript ?? '' });
  }

  get index(): number | undefined {
    return this.#text.index;
  }

  delta(delta: BlockDelta): void {
    if (delta.type === 'audio_delta' && delta.transcript) this.#text.delta({ type: 'text_delta', text: delta.transcript });
  }

  stop(): void {
    tellAudio(this.index !== undefined, this.#scope.path, this.#scope.answer.context);
    this.#text.stop();
  }
}
