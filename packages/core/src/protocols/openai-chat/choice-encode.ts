import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ContentBlock, TextBlock, TokenLogprob, ToolUseBlock } from '../../canonical/blocks.ts';
import type { BlockDelta, BlockStop, MessageDelta } from '../../canonical/events.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import type { StopReason } from '../../canonical/response.ts';
import { codePoints } from '../shared/answer.ts';
import { approximate, type CodecContext } from '../shared/codec.ts';
import { CallEncoder } from './call-encode.ts';
import { readKept } from './kept.ts';
import {
  approximateOrder,
  encodeCallSignature,
  encodeCitation,
  encodeImagePart,
  encodeSignature,
  encodeTokens,
  isForeignServerCall,
  isGoogleSigned,
  lose,
  reasoningField,
} from './parts-encode.ts';
import { encodeStop, isCutStop } from './stop.ts';

/** Between the blocks of thinking of another protocol. */
const PARAGRAPH = '\n\n';

/** A choice of a chunk goes out; `envelope`: fields that stand beside the choices. */
export type SendChoice = (choice: JsonObject, envelope?: JsonObject) => void;

/** A text block of the stream, and where it stands in the text of the message, in characters; counted for foreign citations. */
interface OpenText {
  refusal: boolean;
  offset: number;
  length: number;
  isEmpty: boolean;
}

/** One choice of a stream, blocks to deltas. */
export class ChoiceEncoder {
  readonly #index: number;
  readonly #isForeign: boolean;
  readonly #context: CodecContext;
  readonly #send: SendChoice;
  readonly #calls: CallEncoder;
  readonly #texts = new Map<number, OpenText>();
  readonly #dropped = new Set<number>();
  #length = 0;
  #hasText = false;
  #hasRefusal = false;
  #thinkingBlocks = 0;
  #startsParagraph = false;
  /** Where the texts of thinking begin in the whole, by block, and how long that is. */
  readonly #thoughts = new Map<number, number>();
  #thought = 0;
  #signatures = 0;
  /** openai-node keeps only the last list of these: each goes out once, before the finish chunk. */
  readonly #annotations: unknown[] = [];
  readonly #images: JsonObject[] = [];
  readonly #parts: unknown[] = [];
  isFinished = false;

  constructor(index: number, isForeign: boolean, context: CodecContext, send: SendChoice) {
    this.#index = index;
    this.#isForeign = isForeign;
    this.#context = context;
    this.#send = send;
    this.#calls = new CallEncoder(context, (call) => this.#delta({ tool_calls: [call] }));
    this.#delta({ role: 'assistant', content: '' });
  }

  start(at: number, block: ContentBlock): void {
    this.#calls.settle();
    switch (block.type) {
      case 'text':
        this.#startText(at, block);
        return;
      case 'thinking':
        this.#startsParagraph = this.#isForeign && this.#thinkingBlocks > 0;
        this.#thoughts.set(at, this.#thought + (this.#startsParagraph ? PARAGRAPH.length : 0));
        if (block.variant !== 'redacted') this.#think(block.thinking);
        if (block.signature) this.#sign(block.signature, 'self', at);
        return;
      case 'tool_use':
        this.#startCall(at, block);
        return;
      case 'image':
        this.#keepImage(at, encodeImagePart(block));
        return;
      case 'audio': {
        const { data } = block.source;
        const id = block.audio_id ?? this.#context.newId('audio_');
        this.#delta({ audio: { id, ...(data && { data }), ...(block.transcript && { transcript: block.transcript }) } });
        return;
      }
      case 'opaque':
        if (block.origin === 'openai-chat') this.#parts.push(block.raw);
        else if (block.text !== undefined) this.#write(block.text, false);
        else this.#lose(at, 'opaque', `a block of ${block.origin} has no form in OpenAI Chat`);
        return;
      case 'file':
      case 'tool_result':
        this.#lose(at, block.type, `an answer of OpenAI Chat holds no ${block.type}`);
        return;
      default:
        block satisfies never;
    }
  }

  delta(at: number, delta: BlockDelta): void {
    switch (delta.type) {
      case 'text_delta':
        this.#writeText(at, delta.text, delta.logprobs);
        return;
      case 'thinking_delta':
        this.#think(delta.thinking);
        return;
      case 'input_json_delta':
        this.#calls.write(at, delta.partial_json);
        return;
      case 'input_text_delta':
        this.#calls.write(at, delta.text);
        return;
      case 'signature_delta':
        this.#signBlock(at, delta.signature);
        return;
      case 'citations_delta':
        this.#cite(at, delta.citation);
        return;
      case 'audio_delta':
        this.#delta({
          audio: {
            ...(delta.data !== undefined && { data: delta.data }),
            ...(delta.transcript !== undefined && { transcript: delta.transcript }),
          },
        });
        return;
      case 'opaque_delta':
        return; // the block was lost, or is chat's own and whole
      default:
        delta satisfies never;
    }
  }

  stop({ index: at, content_block: final }: BlockStop): void {
    this.#calls.stop(at, final?.type === 'tool_use' ? final : undefined);
  }

  /** The finish chunk, after all that had to wait for it. */
  finish({ delta, extensions, late_blocks: late }: MessageDelta, stop: Exclude<StopReason, 'error'>, envelope: JsonObject): void {
    const kept = readKept(extensions);
    if (!isCutStop(stop)) this.#calls.settle();
    for (const { index, content_block: block } of late ?? []) if (block.type === 'tool_use') this.#noteLate(index);
    if (stop === 'pause_turn')
      approximate(this.#context, { path: '/stop_reason', feature: 'stop_reason', message: 'pause_turn is written as stop' });
    const explanation = delta.stop_details?.explanation;
    if (stop === 'refusal' && !this.#hasRefusal && explanation) this.#write(explanation, true);
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
        finish_reason: encodeStop(stop, this.#hasText && this.#hasRefusal),
      },
      { ...kept.envelope, ...envelope },
    );
  }

  /** What went out cannot be called back. */
  #noteLate(at: number): void {
    const message = 'the source changed a call after it had been passed on';
    approximate(this.#context, { path: `/content/${at}`, feature: 'content.tool_use', message });
  }

  #sendLists(): void {
    if (this.#annotations.length > 0) this.#delta({ annotations: this.#annotations });
    if (this.#images.length > 0) this.#delta({ images: this.#images });
    if (this.#parts.length > 0) this.#delta({ content_parts: this.#parts });
  }

  #startText(at: number, block: TextBlock): void {
    this.#hasText = true;
    this.#texts.set(at, { refusal: block.refusal === true, offset: this.#length, length: 0, isEmpty: true });
    if (block.text !== '' || block.logprobs) this.#writeText(at, block.text, block.logprobs);
    for (const citation of block.citations ?? []) this.#cite(at, citation);
    if (block.signature) this.#sign(block.signature, 'next', at);
  }

  #writeText(at: number, text: string, logprobs: readonly TokenLogprob[] | undefined): void {
    const block = this.#texts.get(at);
    if (!block) return;
    if (this.#isForeign) {
      if (block.isEmpty && text !== '' && this.#calls.size > 0) approximateOrder(this.#context, at);
      if (text !== '') block.isEmpty = false;
      block.length += codePoints(text);
    }
    this.#write(text, block.refusal, logprobs);
  }

  #write(text: string, refusal: boolean, logprobs?: readonly TokenLogprob[]): void {
    const tokens = logprobs && encodeTokens(logprobs, undefined);
    if (refusal) this.#hasRefusal = true;
    else if (this.#isForeign) this.#length += codePoints(text);
    const sides = tokens && (refusal ? { content: null, refusal: tokens } : { content: tokens, refusal: null });
    this.#delta(refusal ? { refusal: text } : { content: text }, sides);
  }

  #think(thinking: string): void {
    const field = reasoningField(this.#context);
    if (thinking === '') return;
    if (field === undefined) {
      if (this.#thinkingBlocks++ === 0) lose(this.#context, '/content', 'content.thinking', 'the client takes no reasoning');
      return;
    }
    this.#thinkingBlocks++;
    const text = this.#startsParagraph ? PARAGRAPH + thinking : thinking;
    this.#startsParagraph = false;
    this.#thought += text.length;
    this.#delta({ [field]: text });
  }

  #startCall(at: number, block: ToolUseBlock): void {
    if (isForeignServerCall(block)) {
      this.#lose(at, 'server_tool_use', `${block.name} was called and run by the provider`);
      return;
    }
    this.#calls.start(at, block);
    if (block.signature) this.#signBlock(at, block.signature);
  }

  #signBlock(at: number, signature: SignedBlob): void {
    if (this.#calls.has(at) && isGoogleSigned(signature)) this.#calls.add(at, encodeCallSignature(signature));
    else if (!this.#dropped.has(at)) this.#sign(signature, this.#calls.has(at) || this.#texts.has(at) ? 'next' : 'self', at);
  }

  #sign(signature: SignedBlob, attach: 'self' | 'next', at: number): void {
    if (signature.origin === 'openai-chat') return; // it stands in `thinking_blocks`, which go back as they came
    const place = { index: this.#signatures++, start: this.#thoughts.get(at) };
    this.#delta({ reasoning_details: [encodeSignature(signature, attach, place, this.#context)] });
  }

  #cite(at: number, citation: Parameters<typeof encodeCitation>[0]): void {
    const block = this.#texts.get(at);
    const annotation = encodeCitation(citation, block?.offset ?? 0, { value: block?.length ?? 0 });
    if (annotation !== undefined) this.#annotations.push(annotation);
    else
      lose(this.#context, `/content/${at}/citations`, 'citations', `a ${citation.kind} citation is no annotation of OpenAI Chat`);
  }

  #keepImage(at: number, image: JsonObject | undefined): void {
    if (image) this.#images.push(image);
    else this.#lose(at, 'image', 'the file of an image cannot leave its provider');
  }

  #lose(at: number, feature: string, message: string): void {
    this.#dropped.add(at);
    lose(this.#context, `/content/${at}`, `content.${feature}`, message);
  }

  #delta(delta: JsonObject, logprobs?: JsonObject): void {
    this.#send({ index: this.#index, delta, ...(logprobs && { logprobs }), finish_reason: null });
  }
}
