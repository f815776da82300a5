/**
 * The content blocks of a response, from canonical blocks to the frames of a stream or the content of a whole
 * message.
 */

import type { BlockDelta } from '../../canonical/events.ts';
import type { AudioBlock, Citation, ContentBlock, TextBlock, ThinkingBlock, ToolUseBlock } from '../../canonical/message.ts';
import { CodecError } from '../../canonical/notes.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { type Attach, buildArgumentText, dropLogprobs } from '../../codec/answers.ts';
import { type BlockEvent, BlockSerializer } from '../../codec/block-serializer.ts';
import { noteDropped } from '../../codec/report.ts';
import { isObject, type JsonObject, parseJson, setOwn, writeJson } from '../../json/json.ts';
import {
  buildCarrierBlock,
  describeImage,
  dropHeldSignature,
  dropServerCall,
  dropSignature,
  encodeCall,
  encodeCitation,
  encodeSignature,
  encodeUnsigned,
  isTypedBlock,
  NO_LOGPROBS,
  noteAudio,
  type ResponseScope,
} from './blocks.ts';
import { encodeInput, INVALID_JSON_FIELD, noteWrappedInput } from './request-encode.ts';
import { readExtensions } from './wire.ts';

/** Where blocks are written: the frames of a stream, or the content of a whole message. */
export interface BlockSink {
  /** Whether blocks grow after their start. */
  readonly isLive: boolean;
  /**
   * Starts a block and returns its index. Only blocks that are written get an index: the SDK appends a block on its
   * start and finds it by index for its deltas.
   */
  start(block: JsonObject): number;
  /** Adds one field of one delta to a block. */
  delta(index: number, type: string, field: string, value: unknown): void;
  /** Ends a block. */
  stop(index: number): void;
  /** Adds a block without deltas. */
  whole(block: JsonObject): void;
  /** Adds a complete text block. */
  text(text: string): void;
}

/** Sends an SSE frame. */
export type Send = (event: string, data: string) => void;

/** Writes blocks as the frames of a stream. */
export class FrameSink implements BlockSink {
  readonly isLive = true;
  readonly #send: Send;
  #next = 0;

  constructor(send: Send) {
    this.#send = send;
  }

  start(block: JsonObject): number {
    const index = this.#next++;
    this.#send('content_block_start', `{"type":"content_block_start","index":${index},"content_block":${writeDeepJson(block)}}`);
    return index;
  }

  delta(index: number, type: string, field: string, value: unknown): void {
    this.#send(
      'content_block_delta',
      `{"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${field}":${writeDeepJson(value)}}}`,
    );
  }

  stop(index: number): void {
    this.#send('content_block_stop', `{"type":"content_block_stop","index":${index}}`);
  }

  whole(block: JsonObject): void {
    this.stop(this.start(block));
  }

  text(text: string): void {
    const index = this.start({ type: 'text', text: '', citations: null });
    this.delta(index, 'text_delta', 'text', text);
    this.stop(index);
  }
}

/** Writes JSON; throws if the value, which came from a server, is nested too deeply. */
export function writeDeepJson(value: unknown): string {
  const json = writeJson(value);
  if (json !== undefined) return json;
  throw new CodecError({ code: 'UPSTREAM_ERROR', message: 'the response is nested too deeply to be encoded', http_status: 502 });
}

/** Writes blocks into the content of a whole message. */
export class ContentSink implements BlockSink {
  readonly isLive = false;
  /** The blocks written so far. */
  readonly content: JsonObject[] = [];

  start(block: JsonObject): number {
    return this.content.push(block) - 1;
  }

  delta(index: number, _type: string, field: string, value: unknown): void {
    const block = this.content[index];
    if (!block) return;
    if (field !== 'citation') block[field] = value;
    else if (Array.isArray(block['citations'])) block['citations'].push(value);
    else block['citations'] = [value];
  }

  stop(): void {}

  whole(block: JsonObject): void {
    this.content.push(block);
  }

  text(text: string): void {
    this.content.push({ type: 'text', text, citations: null });
  }
}

/** Encodes one block of the response. */
export interface BlockEncoder {
  /** The index of the block in the sink, once it has started there. */
  readonly index: number | undefined;
  /** Encodes a delta of the block. */
  delta(delta: BlockDelta): void;
  /** Ends the block. `final` has values that were corrected after the start. */
  stop(final: ContentBlock | undefined): void;
}

/** What the block encoders share. */
export interface EncoderScope {
  readonly sink: BlockSink;
  readonly response: ResponseScope;
  /** The JSON pointer of the block, for notes. */
  readonly path: string;
}

/** The encoder of blocks that are dropped or already written. */
const SKIPPED: BlockEncoder = { index: undefined, delta: () => {}, stop: () => {} };

/**
 * Encodes the blocks of a response into a sink. In a stream only one block is open at a time: the SDK takes the last
 * one for the open one.
 */
export class ContentEncoder {
  readonly #response: ResponseScope;
  readonly #sink: BlockSink;
  readonly #serializer = new BlockSerializer((event) => this.#write(event));
  #open: BlockEncoder | undefined;
  #at = -1;
  /** Sink indexes of thinking blocks that have been sent, by event index: their signatures may come late. */
  readonly #thinking = new Map<number, number>();
  /** Signatures of blocks that have been sent; they wait for the end of the open block. */
  #late: SignedBlob[] = [];

  constructor(response: ResponseScope, sink: BlockSink) {
    this.#response = response;
    this.#sink = sink;
  }

  /** Encodes a complete block. `at` is its index in the response. */
  add(at: number, block: ContentBlock): void {
    this.#at = at;
    this.#open = this.#createEncoder(block);
    this.#stop(undefined);
  }

  /** Encodes a block event of a stream. */
  push(event: BlockEvent): void {
    this.#serializer.push(event);
  }

  /** Ends the open block. */
  end(): void {
    this.#serializer.end();
    dropHeldSignature(this.#response);
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
    const { context } = this.#response;
    const scope: EncoderScope = { sink: this.#sink, response: this.#response, path: `/content/${this.#at}` };
    switch (block.type) {
      case 'text':
        return new TextBlockEncoder(scope, block);
      case 'thinking':
        return this.#createThinking(scope, block);
      case 'tool_use':
        if (dropServerCall(block, scope.path, this.#response)) return SKIPPED;
        return this.#sink.isLive ? new CallBlockEncoder(scope, block, this.#signsCalls) : this.#addCall(scope, block);
      case 'audio':
        return new AudioBlockEncoder(scope, block);
      case 'image':
        return this.#passText(describeImage(block, scope.path, context));
      case 'opaque':
        if (block.origin === 'anthropic-messages' && isTypedBlock(block.raw)) return new OpaqueBlockEncoder(scope, block.raw);
        return block.text ? this.#passText(block.text) : this.#dropBlock(block.type, scope);
      case 'tool_result':
        if (!isTypedBlock(readExtensions(block))) return this.#dropBlock(block.type, scope);
        this.#sink.whole(readExtensions(block));
        return SKIPPED;
      case 'file':
        return this.#dropBlock(block.type, scope);
      default:
        return block satisfies never;
    }
  }

  /** A complete call: its input is an object instead of text. */
  #addCall({ path }: EncoderScope, block: ToolUseBlock): BlockEncoder {
    const { context, wantsThinking } = this.#response;
    const call = encodeCall(block, encodeInput(block, path, context, INVALID_JSON_FIELD), path, this.#response);
    if (block.signature && wantsThinking) this.#sink.whole(buildCarrierBlock(block.signature, 'next', context));
    this.#sink.whole(call);
    return SKIPPED;
  }

  /** Only Gemini signs calls. */
  get #signsCalls(): boolean {
    const { context, isForeign } = this.#response;
    const source = context.source ?? context.target?.provider.protocol;
    return isForeign && (source === undefined || source === 'gemini');
  }

  #createThinking(scope: EncoderScope, block: Extract<ContentBlock, { type: 'thinking' }>): BlockEncoder {
    const { signature } = block;
    if (signature?.origin !== 'anthropic-messages' || signature.form !== 'redacted')
      return new ThinkingBlockEncoder(scope, block);
    this.#sink.whole({ ...readExtensions(block), type: 'redacted_thinking', data: signature.value });
    return SKIPPED;
  }

  #passText(text: string | undefined): BlockEncoder {
    if (text) this.#sink.text(text);
    return SKIPPED;
  }

  #dropBlock(type: string, { path }: EncoderScope): BlockEncoder {
    const message = `${type} blocks in responses are not supported by Anthropic Messages; dropped`;
    noteDropped(this.#response.context, { path, feature: `content.${type}`, message });
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

  /**
   * A signature for a block that has been sent. The SDK accepts one for thinking, by its index; other blocks can no
   * longer be reached, so a separate block carries it.
   */
  #sign(at: number, delta: BlockDelta): void {
    if (delta.type !== 'signature_delta') return;
    const index = this.#thinking.get(at);
    const { context } = this.#response;
    if (index !== undefined)
      this.#sink.delta(index, 'signature_delta', 'signature', encodeSignature(delta.signature, 'self', context));
    else if (this.#open) this.#late.push(delta.signature);
    else this.#carry(delta.signature);
  }

  #carry(blob: SignedBlob): void {
    if (this.#response.wantsThinking) this.#sink.whole(buildCarrierBlock(blob, 'self', this.#response.context));
    else this.#response.held = blob;
  }
}

/** A call. Its arguments are sent as they arrive, provided that they can be a JSON object. */
class CallBlockEncoder implements BlockEncoder {
  index: number | undefined;
  readonly #scope: EncoderScope;
  #block: ToolUseBlock;
  #signature: SignedBlob | undefined;
  #isEmpty = true;
  #form: 'unknown' | 'object' | 'other' = 'unknown';
  /** Arguments that are not an object wait for the stop, and so does leading white space. */
  #held = '';

  /** `isHeld`: the call may still get a signature, which must be sent before the call. */
  constructor(scope: EncoderScope, block: ToolUseBlock, isHeld: boolean) {
    this.#scope = scope;
    this.#block = block;
    this.#signature = block.signature;
    if (this.#isBroken) this.#form = 'other';
    if (!isHeld) this.#begin();
    const text = buildArgumentText(block, true);
    if (text !== '') this.#write(text);
  }

  /** Whether the call was incomplete from the start and must not be run. */
  get #isBroken(): boolean {
    return this.#block.status === 'incomplete' && this.#block.kind !== 'custom';
  }

  delta(delta: BlockDelta): void {
    if (delta.type === 'signature_delta') this.#signature = delta.signature;
    else if (delta.type === 'input_json_delta' && delta.partial_json !== '') this.#write(delta.partial_json);
    else if (delta.type === 'input_text_delta' && delta.text !== '') this.#write(delta.text);
  }

  #begin(): number {
    if (this.index !== undefined) return this.index;
    const { sink, response } = this.#scope;
    if (this.#signature && response.wantsThinking) sink.whole(buildCarrierBlock(this.#signature, 'next', response.context));
    const { signature: _, ...block } = this.#block;
    const signed = this.#signature ? { ...block, signature: this.#signature } : block;
    this.#signature = undefined;
    this.index = sink.start(encodeCall(signed, {}, this.#scope.path, response));
    return this.index;
  }

  #write(text: string): void {
    this.#begin();
    if (this.#block.kind === 'custom') this.#writeText(text);
    else if (this.#form === 'object') this.#send(text);
    else this.#hold(text);
  }

  #send(partial: string): void {
    this.#isEmpty = false;
    this.#scope.sink.delta(this.#begin(), 'input_json_delta', 'partial_json', partial);
  }

  /** The first character tells whether the arguments are an object. */
  #hold(text: string): void {
    this.#held += text;
    const [first] = this.#form === 'unknown' ? text.trimStart() : '';
    if (first === undefined) return;
    this.#form = first === '{' ? 'object' : 'other';
    if (this.#form === 'object') this.#send(this.#held);
  }

  /** The text of a custom tool is sent as the only field of an object. */
  #writeText(text: string): void {
    const inner = JSON.stringify(text).slice(1, -1);
    this.#send(this.#isEmpty ? `{"input":"${inner}` : inner);
  }

  stop(final: ContentBlock | undefined): void {
    this.#correct(final);
    const index = this.#begin();
    const { sink, response } = this.#scope;
    const isCut = final?.type === 'tool_use' && final.status === 'incomplete';
    if (this.#block.kind === 'custom') this.#endText(isCut);
    else if (this.#form === 'other') this.#wrap();
    if (this.#isEmpty) sink.delta(index, 'input_json_delta', 'partial_json', '');
    sink.stop(index);
    if (!this.#signature) return;
    if (response.wantsThinking) sink.whole(buildCarrierBlock(this.#signature, 'self', response.context));
    else dropSignature(this.#scope.path, 'tool_use', response);
  }

  /** Text that was cut off stays open, as cut-off function arguments do. */
  #endText(isCut: boolean): void {
    if (!isCut) this.#send(this.#isEmpty ? '{"input":""}' : '"}');
  }

  /**
   * Arguments that are not an object are put into one (P44). If they are not JSON either, the closing brace is left
   * out, so that no client runs the call.
   */
  #wrap(): void {
    const value = this.#isBroken ? undefined : parseJson(this.#held);
    if (value === null) return; // Groq sends null for no arguments
    noteWrappedInput(
      this.#block,
      value === undefined ? INVALID_JSON_FIELD : 'input',
      this.#scope.path,
      this.#scope.response.context,
    );
    this.#send(value === undefined ? `{"${INVALID_JSON_FIELD}":${JSON.stringify(this.#held)}` : `{"input":${this.#held}}`);
  }

  /** Late corrections apply if the call has not been sent; otherwise a changed name is only noted. */
  #correct(final: ContentBlock | undefined): void {
    if (final?.type !== 'tool_use') return;
    const { name } = this.#block;
    if (this.index === undefined) this.#block = final;
    else if (final.name !== name)
      this.#scope.response.context.note({
        code: 'APPROXIMATED',
        path: this.#scope.path,
        feature: 'content.tool_use.name',
        message: `tool name "${name}" changed to "${final.name}" after it was sent`,
      });
  }
}

/** Audio, of which only the transcript is sent, as text. A transcript of the text before it is not sent again. */
class AudioBlockEncoder implements BlockEncoder {
  readonly #scope: EncoderScope;
  readonly #text: TextBlockEncoder;
  readonly #written: string;
  /** The transcript, while it repeats the text. */
  #held = '';

  constructor(scope: EncoderScope, block: AudioBlock) {
    this.#scope = scope;
    this.#written = scope.response.text;
    this.#text = new TextBlockEncoder(scope, { type: 'text', text: '' });
    this.#write(block.transcript ?? '');
  }

  get index(): number | undefined {
    return this.#text.index;
  }

  delta(delta: BlockDelta): void {
    if (delta.type === 'audio_delta' && delta.transcript) this.#write(delta.transcript);
  }

  #write(transcript: string): void {
    const isRepeating = this.index === undefined && this.#written.startsWith(transcript, this.#held.length);
    this.#held += transcript;
    if (!isRepeating) this.#release();
  }

  #release(): void {
    if (this.#held !== '') this.#text.delta({ type: 'text_delta', text: this.#held });
    this.#held = '';
  }

  stop(): void {
    const isRepeated = this.#held !== '' && this.#held === this.#written;
    if (!isRepeated) this.#release();
    noteAudio(isRepeated || this.index !== undefined, this.#scope.path, this.#scope.response.context);
    this.#text.stop();
  }
}

/** Transcripts of longer texts are not compared with them. */
const MAX_COMPARED = 65_536;

/** Text. The block starts with its first character or citation, because empty text blocks are not allowed. */
class TextBlockEncoder implements BlockEncoder {
  index: number | undefined;
  readonly #scope: EncoderScope;
  readonly #fields: JsonObject;
  #signature: SignedBlob | undefined;
  #hasLogprobs = false;

  constructor(scope: EncoderScope, block: TextBlock) {
    this.#scope = scope;
    this.#fields = readExtensions(block);
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
    if (logprobs && !this.#hasLogprobs) dropLogprobs(this.#scope.path, NO_LOGPROBS, this.#scope.response.context);
    this.#hasLogprobs ||= logprobs !== undefined;
    if (text === '') return;
    const { response, sink } = this.#scope;
    if (response.isForeign && response.text.length < MAX_COMPARED) response.text += text;
    sink.delta(this.#begin(), 'text_delta', 'text', text);
  }

  #cite(citation: Citation): void {
    const raw = encodeCitation(citation, `${this.#scope.path}/citations`, this.#scope.response.context);
    if (raw !== undefined) this.#scope.sink.delta(this.#begin(), 'citations_delta', 'citation', raw);
  }

  /** A signature that is known at the start is written before the text. */
  #begin(): number {
    if (this.index !== undefined) return this.index;
    const { sink, response } = this.#scope;
    // A whole message reports a dropped signature when the block stops, after its citations.
    if (sink.isLive || response.wantsThinking) this.#carry('next');
    this.index = sink.start({ ...this.#fields, type: 'text', text: '', citations: null });
    return this.index;
  }

  /** A signature that came after the text was sent follows it. */
  stop(): void {
    if (this.index !== undefined) this.#scope.sink.stop(this.index);
    this.#carry('self');
  }

  #carry(attach: Attach): void {
    const { sink, response, path } = this.#scope;
    if (!this.#signature) return;
    if (response.wantsThinking) sink.whole(buildCarrierBlock(this.#signature, attach, response.context));
    else dropSignature(path, 'text', response);
    this.#signature = undefined;
  }
}

/** A block of Anthropic without a canonical form: its deltas are merged, and it is sent whole. */
class OpaqueBlockEncoder implements BlockEncoder {
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

/** Thinking. Its signature is sent once, right before the stop. */
class ThinkingBlockEncoder implements BlockEncoder {
  index: number | undefined;
  readonly #scope: EncoderScope;
  readonly #fields: JsonObject;
  #signature: SignedBlob | undefined;

  constructor(scope: EncoderScope, block: ThinkingBlock) {
    this.#scope = scope;
    this.#fields = readExtensions(block);
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
    const { sink, response } = this.#scope;
    // Reasoning of another protocol without text is not sent as a block: if thinking was not requested, the next call
    // carries its signature. Empty thinking of Anthropic is passed on.
    if (this.index === undefined && response.isForeign && (!this.#signature || !response.wantsThinking)) {
      response.held = this.#signature ?? response.held;
      return;
    }
    const index = this.#begin();
    const signature = this.#encodeSignature();
    if (signature !== '') sink.delta(index, 'signature_delta', 'signature', signature);
    sink.stop(index);
  }

  #encodeSignature(): string {
    const { context, isForeign } = this.#scope.response;
    if (this.#signature) return encodeSignature(this.#signature, 'self', context);
    return isForeign ? encodeUnsigned(context) : '';
  }
}
