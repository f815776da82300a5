/** Blocks of a response to chat choices: the encoder of blocks, and the sink that writes them as stream deltas. */

import type { BlockDelta, BlockStop, MessageDelta } from '../../canonical/events.ts';
import type {
  AudioBlock,
  Citation,
  ContentBlock,
  StopReason,
  TextBlock,
  TokenLogprob,
  ToolUseBlock,
} from '../../canonical/message.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { buildArgumentText, EagerCount, NO_COUNT, type TextCount } from '../../codec/answers.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { noteApproximated } from '../../codec/report.ts';
import type { JsonObject } from '../../json/json.ts';
import {
  dropFeature,
  encodeCallSignature,
  encodeCitation,
  encodeImagePart,
  encodeSignature,
  encodeTokens,
  findReasoningField,
  isForeignServerCall,
  isGoogleSigned,
  noteIncompleteCall,
  noteOrder,
  readCallFields,
} from './blocks.ts';
import { encodeStop, type FinishReason, isCutStop } from './outcome.ts';
import { readChoiceExtensions } from './wire.ts';

/** A text block, and its position in the text of the message, in code points. */
interface OpenText {
  refusal: boolean;
  offset: number;
  length: TextCount;
  isEmpty: boolean;
}

/** Separates thinking blocks of other protocols; blocks of chat are one text interrupted by other content. */
const PARAGRAPH = '\n\n';

/** Encodes the blocks of one choice into a sink. */
export class ChoiceEncoder {
  readonly #isForeign: boolean;
  readonly #context: CodecContext;
  readonly #sink: ChoiceSink;
  readonly #texts = new Map<number, OpenText>();
  readonly #dropped = new Set<number>();
  readonly #length: TextCount;
  #hasText = false;
  #hasThinking = false;
  #startsParagraph = false;
  /** Where the thinking of each block begins in the reasoning text, and the length of that text, in UTF-16 units. */
  readonly #thinkingStarts = new Map<number, number>();
  #thinkingLength = 0;
  readonly annotations: unknown[] = [];
  readonly images: JsonObject[] = [];
  readonly parts: unknown[] = [];

  constructor(isForeign: boolean, context: CodecContext, sink: ChoiceSink) {
    this.#isForeign = isForeign;
    this.#context = context;
    this.#sink = sink;
    this.#length = sink.newCount();
  }

  /** Starts a block and writes the content that it starts with. */
  start(at: number, block: ContentBlock): void {
    switch (block.type) {
      case 'text':
        this.#startText(at, block);
        return;
      case 'thinking':
        this.#startsParagraph = this.#isForeign && this.#hasThinking;
        this.#thinkingStarts.set(at, this.#thinkingLength + (this.#startsParagraph ? PARAGRAPH.length : 0));
        if (block.variant !== 'redacted') this.think(block.thinking);
        if (block.signature) this.#addSignature(block.signature, 'self', at);
        return;
      case 'tool_use':
        this.#startCall(at, block);
        return;
      case 'image':
        this.#addImage(at, encodeImagePart(block));
        return;
      case 'audio':
        if (!this.#sink.startAudio(block)) this.#drop(at, 'audio', 'OpenAI Chat supports one audio per message; dropped');
        return;
      case 'opaque':
        if (block.origin === 'openai-chat') this.parts.push(block.raw);
        else if (block.text !== undefined) this.#write(block.text, false);
        else this.#drop(at, 'opaque', `a block specific to ${block.origin} is not supported by OpenAI Chat; dropped`);
        return;
      case 'file':
      case 'tool_result':
        this.#drop(at, block.type, `${block.type} blocks in responses are not supported by OpenAI Chat; dropped`);
        return;
      default:
        block satisfies never;
    }
  }

  /** Adds text to a text block. */
  write(at: number, text: string, logprobs: readonly TokenLogprob[] | undefined): void {
    const block = this.#texts.get(at);
    if (!block) return;
    if (text !== '' && block.isEmpty) {
      if (this.#isForeign && this.#sink.calls.size > 0) noteOrder(this.#context, at);
      block.isEmpty = false;
    }
    block.length.add(text);
    this.#write(text, block.refusal, logprobs);
  }

  /** Adds text to a thinking block. */
  think(thinking: string): void {
    if (thinking === '') return;
    this.#hasThinking = true;
    const text = this.#startsParagraph ? PARAGRAPH + thinking : thinking;
    if (!this.#sink.think(text)) return;
    this.#startsParagraph = false;
    this.#thinkingLength += text.length;
  }

  /** Adds the signature of a block. */
  sign(at: number, signature: SignedBlob): void {
    const { calls } = this.#sink;
    if (calls.has(at) && isGoogleSigned(signature)) calls.add(at, encodeCallSignature(signature));
    else if (!this.#dropped.has(at)) this.#addSignature(signature, calls.has(at) || this.#texts.has(at) ? 'next' : 'self', at);
  }

  /** Adds a citation to a text block. */
  cite(at: number, citation: Citation): void {
    const block = this.#texts.get(at);
    const annotation = encodeCitation(citation, block?.offset ?? 0, block?.length ?? NO_COUNT);
    if (annotation !== undefined) this.annotations.push(annotation);
    else
      dropFeature(
        this.#context,
        `/content/${at}/citations`,
        'citations',
        `${citation.kind} citations are not supported by OpenAI Chat; dropped`,
      );
  }

  /** Returns the finish reason; `explanation` of a refusal is written if the model wrote none. */
  finish(stop: Exclude<StopReason, 'error'>, explanation: string | null | undefined): FinishReason {
    if (stop === 'pause_turn')
      noteApproximated(this.#context, {
        path: '/stop_reason',
        feature: 'stop_reason',
        message: 'stop reason pause_turn is not supported by OpenAI Chat; sent as stop',
      });
    if (stop === 'refusal' && !this.#sink.hasRefusal && explanation) this.#write(explanation, true);
    return encodeStop(stop, this.#hasText && this.#sink.hasRefusal);
  }

  #startText(at: number, block: TextBlock): void {
    this.#hasText = true;
    const length = this.#sink.newCount();
    this.#texts.set(at, { refusal: block.refusal === true, offset: this.#length.value, length, isEmpty: true });
    if (block.text !== '' || block.logprobs) this.write(at, block.text, block.logprobs);
    for (const citation of block.citations ?? []) this.cite(at, citation);
    if (block.signature) this.#addSignature(block.signature, 'next', at);
  }

  #write(text: string, isRefusal: boolean, logprobs?: readonly TokenLogprob[]): void {
    if (!isRefusal) this.#length.add(text);
    this.#sink.write(text, isRefusal, logprobs);
  }

  #startCall(at: number, block: ToolUseBlock): void {
    if (isForeignServerCall(block)) {
      this.#drop(
        at,
        'server_tool_use',
        `${block.name} was run by the provider and is not supported by the client protocol; dropped`,
      );
      return;
    }
    this.#sink.calls.start(at, block);
    if (block.signature) this.sign(at, block.signature);
  }

  #addSignature(signature: SignedBlob, attach: 'self' | 'next', at: number): void {
    if (signature.origin === 'openai-chat') return; // part of `thinking_blocks`, which are passed back unchanged
    const place = { index: this.#sink.details, start: this.#thinkingStarts.get(at) };
    this.#sink.addDetail(encodeSignature(signature, attach, place, this.#context));
  }

  #addImage(at: number, image: JsonObject | undefined): void {
    if (image) this.images.push(image);
    else this.#drop(at, 'image', 'the image is a file stored by its provider and cannot be sent; dropped');
  }

  #drop(at: number, feature: string, message: string): void {
    this.#dropped.add(at);
    dropFeature(this.#context, `/content/${at}`, `content.${feature}`, message);
  }
}

/** Where a choice is written: into the deltas of a stream, or into the fields of a whole message. */
export interface ChoiceSink {
  readonly calls: CallSink;
  readonly hasRefusal: boolean;
  /** The number of entries in `reasoning_details`. */
  readonly details: number;
  /** Creates the counter of a text, for the offsets of citations. */
  newCount(): TextCount;
  /** Adds text, or the text of a refusal. */
  write(text: string, isRefusal: boolean, logprobs: readonly TokenLogprob[] | undefined): void;
  /** Returns false if the text is not written because the client reads no reasoning. */
  think(text: string): boolean;
  /** Adds an entry to `reasoning_details`. */
  addDetail(detail: JsonObject): void;
  /** Returns false if there is no room for another audio. */
  startAudio(block: AudioBlock): boolean;
}

/** Where the calls of a choice are written. */
export interface CallSink {
  /** The number of calls. */
  readonly size: number;
  /** Whether the block at this position is a call. */
  has(at: number): boolean;
  /** Starts the call at a block index. */
  start(at: number, block: ToolUseBlock): void;
  /** Adds non-standard fields. */
  add(at: number, fields: JsonObject): void;
}

/** Sends a choice of a chunk; `envelope`: fields beside the choices. */
export type SendChoice = (choice: JsonObject, envelope?: JsonObject) => void;

/** One choice of a stream: block events to deltas. */
export class ChoiceStreamEncoder {
  readonly #index: number;
  readonly #context: CodecContext;
  readonly #send: SendChoice;
  readonly #sink: DeltaSink;
  readonly #blocks: ChoiceEncoder;
  isFinished = false;

  constructor(index: number, isForeign: boolean, context: CodecContext, send: SendChoice) {
    this.#index = index;
    this.#context = context;
    this.#send = send;
    this.#sink = new DeltaSink(index, isForeign, context, send);
    this.#blocks = new ChoiceEncoder(isForeign, context, this.#sink);
    this.#sink.delta({ role: 'assistant', content: '' });
  }

  start(at: number, block: ContentBlock): void {
    this.#sink.calls.settle();
    this.#blocks.start(at, block);
  }

  delta(at: number, delta: BlockDelta): void {
    switch (delta.type) {
      case 'text_delta':
        this.#blocks.write(at, delta.text, delta.logprobs);
        return;
      case 'thinking_delta':
        this.#blocks.think(delta.thinking);
        return;
      case 'input_json_delta':
        this.#sink.calls.write(at, delta.partial_json);
        return;
      case 'input_text_delta':
        this.#sink.calls.write(at, delta.text);
        return;
      case 'signature_delta':
        this.#blocks.sign(at, delta.signature);
        return;
      case 'citations_delta':
        this.#blocks.cite(at, delta.citation);
        return;
      case 'audio_delta':
        this.#sink.delta({
          audio: {
            ...(delta.data !== undefined && { data: delta.data }),
            ...(delta.transcript !== undefined && { transcript: delta.transcript }),
          },
        });
        return;
      case 'opaque_delta':
        return; // the block was dropped, or is one of chat and complete
      default:
        delta satisfies never;
    }
  }

  stop({ index: at, content_block: final }: BlockStop): void {
    this.#sink.calls.stop(at, final?.type === 'tool_use' ? final : undefined);
  }

  /** Sends the finish chunk, after everything that was held back until the end. */
  finish({ delta, extensions, late_blocks: late }: MessageDelta, stop: Exclude<StopReason, 'error'>, envelope: JsonObject): void {
    const kept = readChoiceExtensions(extensions);
    if (!isCutStop(stop)) this.#sink.calls.settle();
    for (const { index, content_block: block } of late ?? []) if (block.type === 'tool_use') this.#noteLate(index);
    const finish = this.#blocks.finish(stop, delta.stop_details?.explanation);
    this.#sendLists();
    const tokens = encodeTokens(kept.logprobs, undefined);
    this.isFinished = true;
    this.#send(
      {
        ...kept.choice,
        index: this.#index,
        delta: {
          ...kept.message,
          ...(kept.reasoningDetails.length > 0 && { reasoning_details: kept.reasoningDetails }),
          ...(Object.keys(kept.audio).length > 0 && { audio: kept.audio }),
        },
        ...(tokens.length > 0 && { logprobs: { content: tokens, refusal: null } }),
        finish_reason: finish,
      },
      { ...kept.envelope, ...envelope },
    );
  }

  /** A call that was sent cannot be corrected. */
  #noteLate(at: number): void {
    const message = 'the source changed a tool call after it was sent; the change is dropped';
    noteApproximated(this.#context, { path: `/content/${at}`, feature: 'content.tool_use', message });
  }

  /** openai-node keeps only the last list of each kind: each is sent once, before the finish chunk. */
  #sendLists(): void {
    const { annotations, images, parts } = this.#blocks;
    if (annotations.length > 0) this.#sink.delta({ annotations });
    if (images.length > 0) this.#sink.delta({ images });
    if (parts.length > 0) this.#sink.delta({ content_parts: parts });
  }
}

/** Writes a choice as deltas. */
class DeltaSink implements ChoiceSink {
  readonly calls: CallEncoder;
  hasRefusal = false;
  details = 0;
  readonly #index: number;
  readonly #isForeign: boolean;
  readonly #context: CodecContext;
  readonly #send: SendChoice;
  #hasLostThinking = false;

  constructor(index: number, isForeign: boolean, context: CodecContext, send: SendChoice) {
    this.#index = index;
    this.#isForeign = isForeign;
    this.#context = context;
    this.#send = send;
    this.calls = new CallEncoder(context, (call) => this.delta({ tool_calls: [call] }));
  }

  /** Citations of chat have their offsets already, so nothing is counted. */
  newCount(): TextCount {
    return this.#isForeign ? new EagerCount() : NO_COUNT;
  }

  write(text: string, isRefusal: boolean, logprobs: readonly TokenLogprob[] | undefined): void {
    if (isRefusal) this.hasRefusal = true;
    const tokens = logprobs && encodeTokens(logprobs, undefined);
    const sides = tokens && (isRefusal ? { content: null, refusal: tokens } : { content: tokens, refusal: null });
    this.delta(isRefusal ? { refusal: text } : { content: text }, sides);
  }

  think(text: string): boolean {
    const field = findReasoningField(this.#context);
    if (field !== undefined) this.delta({ [field]: text });
    else if (!this.#hasLostThinking) {
      this.#hasLostThinking = true;
      dropFeature(this.#context, '/content', 'content.thinking', 'reasoning is not supported by the client; dropped');
    }
    return field !== undefined;
  }

  addDetail(detail: JsonObject): void {
    this.details++;
    this.delta({ reasoning_details: [detail] });
  }

  startAudio({ source: { data }, transcript, audio_id: id = this.#context.newId('audio_') }: AudioBlock): boolean {
    this.delta({ audio: { id, ...(data && { data }), ...(transcript && { transcript }) } });
    return true;
  }

  delta(delta: JsonObject, logprobs?: JsonObject): void {
    this.#send({ index: this.#index, delta, ...(logprobs && { logprobs }), finish_reason: null });
  }
}

interface OpenCall {
  /** The position among the calls of the choice. */
  index: number;
  block: ToolUseBlock;
  hasArguments: boolean;
}

/** Writes the calls of a choice as deltas of `tool_calls`: id, type and name first and once, then the arguments. */
class CallEncoder implements CallSink {
  readonly #context: CodecContext;
  readonly #send: (call: JsonObject) => void;
  /** By block index, because ids can collide. */
  readonly #calls = new Map<number, OpenCall>();
  /**
   * A stopped call without arguments: it has none if the message continues or ends normally, and has lost them if the
   * message was cut.
   */
  #bare: OpenCall | undefined;
  /**
   * Gemini sends the signature of a call right after its name, and clients (AI SDK) read it from the first delta only.
   */
  readonly #awaitsSignature: boolean;
  #head: JsonObject | undefined;

  constructor(context: CodecContext, send: (call: JsonObject) => void) {
    this.#context = context;
    this.#send = send;
    this.#awaitsSignature = (context.source ?? context.target?.provider.protocol) === 'gemini';
  }

  get size(): number {
    return this.#calls.size;
  }

  has(at: number): boolean {
    return this.#calls.has(at);
  }

  start(at: number, block: ToolUseBlock): void {
    const index = this.#calls.size;
    this.#calls.set(at, { index, block, hasArguments: false });
    noteIncompleteCall(block, `/content/${at}`, this.#context);
    const { outer, inner } = readCallFields(block);
    const { id, name } = block;
    const type = bodyField(block);
    this.#head = { ...outer, index, id, type, [type]: { ...inner, name, [textField(block)]: '' } };
    if (!this.#awaitsSignature) this.#sendHead();
    this.write(at, buildArgumentText(block, true));
  }

  #sendHead(fields: JsonObject = {}): void {
    const head = this.#head;
    this.#head = undefined;
    if (head) this.#send({ ...fields, ...head });
  }

  /** Writes argument text of a function, or input text of a custom tool. */
  write(at: number, text: string): void {
    const call = this.#calls.get(at);
    if (!call || text === '') return;
    call.hasArguments = true;
    this.#sendHead();
    this.#send({ index: call.index, [bodyField(call.block)]: { [textField(call.block)]: text } });
  }

  /** Adds non-standard fields. Each entry needs a body: clients that validate (AI SDK) reject one without. */
  add(at: number, fields: JsonObject): void {
    const call = this.#calls.get(at);
    if (!call) return;
    if (this.#head?.['index'] === call.index) this.#sendHead(fields);
    else this.#send({ ...fields, index: call.index, [bodyField(call.block)]: { [textField(call.block)]: '' } });
  }

  /** Ends a call; `final` is its corrected form if it changed after the start. */
  stop(at: number, final: ToolUseBlock | undefined): void {
    const call = this.#calls.get(at);
    if (!call) return;
    this.#sendHead();
    if (final) this.#sendLate(call, final);
    if (call.hasArguments || call.block.kind === 'custom') return;
    this.settle();
    this.#bare = call;
  }

  /** Sends `{}` for a stopped call without arguments: clients call JSON.parse, which throws on ''. */
  settle(): void {
    this.#sendHead();
    const call = this.#bare;
    this.#bare = undefined;
    if (call) this.#send({ index: call.index, function: { arguments: '{}' } });
  }

  /** Sends a corrected name and changed fields. The id stays as it was sent, because any id identifies the call. */
  #sendLate({ index, block }: OpenCall, final: ToolUseBlock): void {
    const before = readCallFields(block);
    const after = readCallFields(final);
    const outer = diffFields(before.outer, after.outer);
    const inner = diffFields(before.inner, after.inner);
    if (final.name !== block.name) {
      inner['name'] = final.name;
      const message = `tool name "${block.name}" changed to "${final.name}" after it was sent`;
      this.#context.note({ code: 'REPAIRED', path: '/content', feature: 'content.tool_use.name', message });
    }
    const isChanged = Object.keys(inner).length > 0 || Object.keys(outer).length > 0;
    if (isChanged) this.#send({ ...outer, index, [bodyField(block)]: { ...inner, [textField(block)]: '' } });
  }
}

const bodyField = ({ kind }: ToolUseBlock): 'custom' | 'function' => (kind === 'custom' ? 'custom' : 'function');

const textField = ({ kind }: ToolUseBlock): 'input' | 'arguments' => (kind === 'custom' ? 'input' : 'arguments');

const diffFields = (before: JsonObject, after: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(after).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key])));
