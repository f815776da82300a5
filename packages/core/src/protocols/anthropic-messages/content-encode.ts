import type { BlockDelta } from '../../canonical/events.ts';
import type { AudioBlock, Citation, ContentBlock, TextBlock, ThinkingBlock, ToolUseBlock } from '../../canonical/message.ts';
import { CodecError } from '../../canonical/notes.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { type Attach, argumentsOf, dropLogprobs } from '../../codec/answers.ts';
import { type BlockEvent, BlockSerializer } from '../../codec/block-serializer.ts';
import { drop } from '../../codec/report.ts';
import { isObject, type JsonObject, parseJson, setOwn, writeJson } from '../../json/json.ts';
import {
  type Answer,
  carrierBlock,
  dropHeld,
  dropSignature,
  encodeCall,
  encodeCitation,
  encodeSignature,
  encodeUnsigned,
  imageText,
  isLostCall,
  isOwnBlock,
  NO_LOGPROBS,
  tellAudio,
} from './blocks.ts';
import { encodeInput, INVALID, tellWrapped } from './request-encode.ts';
import { fieldsOf } from './wire.ts';

/** Where blocks are written: into the frames of a stream, or into the content of a whole message. */
export interface BlockSink {
  /** Whether blocks grow after their start. */
  readonly isLive: boolean;
  /** Starts a block and returns its index. Only blocks that are written get one: the SDK appends at a start and reads by index at a delta. */
  start(block: JsonObject): number;
  /** Adds one field of one delta to a block. */
  delta(index: number, type: string, field: string, value: unknown): void;
  stop(index: number): void;
  /** Adds a block without deltas. */
  whole(block: JsonObject): void;
  /** Adds a text block that is known as a whole. */
  text(text: string): void;
}

/** Sends a frame. */
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
    this.#send('content_block_start', `{"type":"content_block_start","index":${index},"content_block":${written(block)}}`);
    return index;
  }

  delta(index: number, type: string, field: string, value: unknown): void {
    this.#send(
      'content_block_delta',
      `{"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${field}":${written(value)}}}`,
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

/** Input from a server may be nested more deeply than can be written. */
export function written(value: unknown): string {
  const json = writeJson(value);
  if (json !== undefined) return json;
  throw new CodecError({ code: 'UPSTREAM_ERROR', message: 'the answer is nested too deeply to be written', http_status: 502 });
}

/** Writes blocks into the content of a whole message. */
export class ContentSink implements BlockSink {
  readonly isLive = false;
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
const SKIPPED: BlockEncoder = { index: undefined, delta: () => {}, stop: () => {} };

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

/** A call: its arguments go out as they come, as long as they can be an object. */
class CallBlockEncoder implements BlockEncoder {
  index: number | undefined;
  readonly #scope: EncoderScope;
  #block: ToolUseBlock;
  #signature: SignedBlob | undefined;
  #isEmpty = true;
  #form: 'unknown' | 'object' | 'other' = 'unknown';
  /** Arguments that are no object wait for the stop; so does white space, which tells nothing. */
  #held = '';

  /** `isHeld`: the call may still be signed, and a signature stands before what it signs. */
  constructor(scope: EncoderScope, block: ToolUseBlock, isHeld: boolean) {
    this.#scope = scope;
    this.#block = block;
    this.#signature = block.signature;
    if (this.#isBroken) this.#form = 'other';
    if (!isHeld) this.#begin();
    const text = argumentsOf(block, true);
    if (text !== '') this.#write(text);
  }

  /** Known from the start to be no call that may be run. */
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
    const { sink, answer } = this.#scope;
    if (this.#signature && answer.wantsThinking) sink.whole(carrierBlock(this.#signature, 'next', answer.context));
    const { signature: _, ...block } = this.#block;
    const signed = this.#signature ? { ...block, signature: this.#signature } : block;
    this.#signature = undefined;
    this.index = sink.start(encodeCall(signed, {}, this.#scope.path, answer));
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

  /** The first character tells what they are. */
  #hold(text: string): void {
    this.#held += text;
    const [first] = this.#form === 'unknown' ? text.trimStart() : '';
    if (first === undefined) return;
    this.#form = first === '{' ? 'object' : 'other';
    if (this.#form === 'object') this.#send(this.#held);
  }

  /** The text of a custom tool, as the one field of an object. */
  #writeText(text: string): void {
    const inner = JSON.stringify(text).slice(1, -1);
    this.#send(this.#isEmpty ? `{"input":"${inner}` : inner);
  }

  stop(final: ContentBlock | undefined): void {
    this.#correct(final);
    const index = this.#begin();
    const { sink, answer } = this.#scope;
    const isCut = final?.type === 'tool_use' && final.status === 'incomplete';
    if (this.#block.kind === 'custom') this.#endText(isCut);
    else if (this.#form === 'other') this.#wrap();
    if (this.#isEmpty) sink.delta(index, 'input_json_delta', 'partial_json', '');
    sink.stop(index);
    if (!this.#signature) return;
    if (answer.wantsThinking) sink.whole(carrierBlock(this.#signature, 'self', answer.context));
    else dropSignature(this.#scope.path, 'tool_use', answer);
  }

  /** A text that was cut stays open, as the arguments of a function do. */
  #endText(isCut: boolean): void {
    if (!isCut) this.#send(this.#isEmpty ? '{"input":""}' : '"}');
  }

  /** Arguments that are no object are put into one (P44), and the last brace of those that are no JSON is left out: nobody may run them. */
  #wrap(): void {
    const value = this.#isBroken ? undefined : parseJson(this.#held);
    if (value === null) return; // none, as Groq says it
    tellWrapped(this.#block, value === undefined ? INVALID : 'input', this.#scope.path, this.#scope.answer.context);
    this.#send(value === undefined ? `{"${INVALID}":${JSON.stringify(this.#held)}` : `{"input":${this.#held}}`);
  }

  /** What was settled late still counts if the call has not gone out; otherwise it can only be told. */
  #correct(final: ContentBlock | undefined): void {
    if (final?.type !== 'tool_use') return;
    const { name } = this.#block;
    if (this.index === undefined) this.#block = final;
    else if (final.name !== name)
      this.#scope.answer.context.note({
        code: 'APPROXIMATED',
        path: this.#scope.path,
        feature: 'content.tool_use.name',
        message: `the name of a call was ${name} when it was sent, and is ${final.name}`,
      });
  }
}

/** Audio, of which a client of text gets what was said. */
class AudioBlockEncoder implements BlockEncoder {
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

/** Text. It starts with its first character or citation: there are no empty ones. */
class TextBlockEncoder implements BlockEncoder {
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

/** A block of our own that nobody here understands: its deltas are laid into it, and it goes out whole. */
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

/** Thinking. Its signature goes out last, right before the stop, and once. */
class ThinkingBlockEncoder implements BlockEncoder {
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
