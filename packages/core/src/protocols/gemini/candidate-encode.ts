import type { JsonObject } from '../../accumulate/overlay.ts';
import type {
  AudioBlock,
  Citation,
  ContentBlock,
  OpaqueBlock,
  TextBlock,
  ThinkingBlock,
  TokenLogprob,
  ToolResultBlock,
} from '../../canonical/blocks.ts';
import type { BlockDelta, BlockStop, MessageDelta } from '../../canonical/events.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import type { StopReason } from '../../canonical/response.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { objectOf } from '../shared/read.ts';
import { encodeEnding, showsThoughts } from './answer-encode.ts';
import { CallEncoder } from './call-encode.ts';
import { Grounding } from './grounding.ts';
import { type KeptCandidate, partFields } from './kept.ts';
import { encodeAllMedia, encodeMedia, encodeResult, resultMedia } from './parts-encode.ts';
import { encodeSignature } from './signature.ts';
import { isCutStop } from './stop.ts';

/** A part of a candidate goes out, as JSON. */
export type SendPart = (part: string) => void;

/** A text-like block of the stream. */
interface OpenText {
  isThought: boolean;
  /** A part that says more about itself waits until it is whole: its fields belong to all of its text. */
  fields: JsonObject | undefined;
  text: string;
  isEmpty: boolean;
  signature: SignedBlob | undefined;
  citations: Citation[];
  isStopped: boolean;
}

/** One candidate of a stream, blocks to parts. */
export class CandidateEncoder {
  readonly index: number;
  readonly #isForeign: boolean;
  readonly #context: CodecContext;
  readonly #shows: boolean;
  readonly #send: SendPart;
  readonly #calls: CallEncoder;
  readonly #texts = new Map<number, OpenText>();
  readonly #audio = new Map<number, AudioBlock>();
  readonly #grounding: Grounding;
  readonly #tokens: TokenLogprob[] = [];
  #hasContent = false;
  #saysRefusal = false;
  #last = -1;

  constructor(index: number, isForeign: boolean, context: CodecContext, send: SendPart) {
    this.index = index;
    this.#isForeign = isForeign;
    this.#context = context;
    this.#shows = showsThoughts(context);
    this.#send = (part) => {
      this.#hasContent = true;
      send(part);
    };
    this.#calls = new CallEncoder(context, isForeign, this.#send);
    this.#grounding = new Grounding(context);
  }

  start(at: number, block: ContentBlock): void {
    // Calls can overlap: one that follows does not show that those before it were whole.
    if (block.type !== 'tool_use') this.#calls.settle();
    this.#last = at;
    if (block.type === 'text' && block.refusal) this.#saysRefusal = true;
    switch (block.type) {
      case 'text':
      case 'thinking':
        this.#startText(at, block);
        return;
      case 'tool_use':
        this.#calls.start(at, block);
        return;
      case 'audio':
        this.#startAudio(at, block);
        return;
      case 'image':
      case 'file':
        this.#sendMedia(at, block);
        return;
      case 'tool_result':
        this.#sendResult(at, block);
        return;
      case 'opaque':
        this.#sendOpaque(at, block);
        return;
      default:
        block satisfies never;
    }
  }

  delta(at: number, delta: BlockDelta): void {
    switch (delta.type) {
      case 'text_delta':
        this.#write(at, delta.text);
        for (const token of delta.logprobs ?? []) this.#tokens.push(token);
        return;
      case 'thinking_delta':
        this.#write(at, delta.thinking);
        return;
      case 'input_json_delta':
        this.#calls.write(at, delta.partial_json);
        return;
      case 'input_text_delta':
        this.#calls.write(at, delta.text);
        return;
      case 'signature_delta':
        this.#sign(at, delta.signature);
        return;
      case 'citations_delta':
        this.#texts.get(at)?.citations.push(delta.citation);
        return;
      case 'audio_delta':
        this.#writeAudio(at, delta);
        return;
      case 'opaque_delta':
        return; // the block was lost, or is our own and whole
      default:
        delta satisfies never;
    }
  }

  stop({ index: at, content_block: final }: BlockStop): void {
    if (this.#calls.has(at)) {
      this.#calls.stop(at, final?.type === 'tool_use' ? final : undefined);
      return;
    }
    const open = this.#texts.get(at);
    if (!open || open.isStopped) return;
    open.isStopped = true;
    if (open.fields) this.#sendWhole(open, open.fields);
    else if (open.signature) this.#sendSignature(open, open.signature);
    this.#grounding.add(open.citations, open.text, `/content/${at}`);
  }

  /** The candidate's last words, for the last frame; undefined when it came to an end that has no word here. */
  finish({ delta, late_blocks: late }: MessageDelta, stop: StopReason, kept: KeptCandidate): JsonObject | undefined {
    for (const { index, content_block: block } of late ?? [])
      if (block.type === 'tool_use' && !this.#calls.replace(index, block)) this.#noteLate(index);
    this.#calls.end(isCutStop(stop));
    const ending = {
      stop,
      details: delta.stop_details,
      kept,
      hasContent: this.#hasContent,
      saysRefusal: this.#saysRefusal,
      isMalformed: this.#calls.isMalformed,
      grounding: this.#grounding,
      tokens: this.#tokens,
    };
    return encodeEnding(ending, this.#context);
  }

  /** What went out cannot be called back. */
  #noteLate(at: number): void {
    const message = 'the source changed a call after it had been passed on';
    approximate(this.#context, { path: `/content/${at}`, feature: 'content.tool_use', message });
  }

  #startText(at: number, block: TextBlock | ThinkingBlock): void {
    const fields = partFields(block);
    const isThought = block.type === 'thinking';
    this.#texts.set(at, {
      isThought,
      fields: Object.keys(fields).length > 0 ? fields : undefined,
      text: '',
      isEmpty: true,
      signature: block.signature,
      citations: block.type === 'text' && block.citations ? [...block.citations] : [],
      isStopped: false,
    });
    this.#write(at, isThought ? block.thinking : block.text);
    if (block.type === 'text') for (const token of block.logprobs ?? []) this.#tokens.push(token);
  }

  #write(at: number, text: string): void {
    const open = this.#texts.get(at);
    if (!open || text === '') return;
    open.isEmpty = false;
    // Kept for citations and for parts that wait; our own stream needs neither.
    if (this.#isForeign || open.fields) open.text += text;
    if (open.fields || (open.isThought && !this.#shows)) return;
    const json = JSON.stringify(text);
    this.#send(open.isThought ? `{"text":${json},"thought":true}` : `{"text":${json}}`);
  }

  #sendWhole({ isThought, text, signature }: OpenText, fields: JsonObject): void {
    const thoughtSignature = signature && encodeSignature(signature, this.#context);
    if (isThought && !this.#shows && !thoughtSignature) return;
    const shown = isThought && !this.#shows ? '' : text;
    this.#part({ ...fields, text: shown, ...(isThought && { thought: true }), ...(thoughtSignature && { thoughtSignature }) });
  }

  /** After a stop only the last block may still be signed: the reader takes the signature for that of the part before. */
  #sign(at: number, signature: SignedBlob): void {
    if (this.#calls.has(at)) this.#calls.sign(at, signature);
    else {
      const open = this.#texts.get(at);
      if (open && !open.isStopped) open.signature = signature;
      else if (open && (open.isThought || at === this.#last)) this.#sendSignature(open, signature);
      else this.#lose(at, 'signature', 'the signature came after its part had been passed on');
    }
  }

  /** An empty part carries it, as Google's own streams do. One that stands alone there is no thought. */
  #sendSignature({ isThought, isEmpty }: OpenText, signature: SignedBlob): void {
    const isBare = signature.origin === 'gemini' && isEmpty;
    const thoughtSignature = encodeSignature(signature, this.#context);
    this.#part({ text: '', ...(isThought && !isBare && { thought: true }), thoughtSignature });
  }

  #sendMedia(at: number, block: Parameters<typeof encodeMedia>[0]): void {
    const part = this.#isForeign && block.source.file_id !== undefined ? undefined : encodeMedia(block);
    if (part) this.#part(part);
    else this.#lose(at, block.type, `the ${block.type} has nothing that could leave its provider`);
  }

  #startAudio(at: number, block: AudioBlock): void {
    this.#audio.set(at, block);
    if (block.source.data || block.source.url || block.source.file_id) this.#sendMedia(at, block);
    if (block.transcript) this.#transcribe(at, block.transcript);
  }

  #writeAudio(at: number, { data, transcript }: Extract<BlockDelta, { type: 'audio_delta' }>): void {
    const block = this.#audio.get(at);
    if (!block) return;
    if (data) this.#sendMedia(at, { ...block, source: { ...block.source, data } });
    if (transcript) this.#transcribe(at, transcript);
  }

  /** Audio has no words of its own here. */
  #transcribe(at: number, text: string): void {
    approximate(this.#context, {
      path: `/content/${at}`,
      feature: 'content.audio.transcript',
      message: 'a transcript is written as text',
    });
    this.#part({ text });
  }

  /** A result in an answer is the provider's own; to another's client it means nothing. */
  #sendResult(at: number, block: ToolResultBlock): void {
    if (this.#isForeign) this.#lose(at, 'tool_result', 'an answer of Gemini holds no results of foreign tools');
    else this.#part(encodeServerResult(block));
  }

  #sendOpaque(at: number, { origin, raw, text }: OpaqueBlock): void {
    if (origin === 'gemini') this.#part(objectOf(raw));
    else if (text) this.#part({ text });
    else this.#lose(at, 'opaque', `a block of ${origin} has no form in Gemini`);
  }

  #part(part: JsonObject): void {
    this.#send(JSON.stringify(part));
  }

  #lose(at: number, feature: string, message: string): void {
    drop(this.#context, { path: `/content/${at}`, feature: `content.${feature}`, message });
  }
}

/** A result that Google's own run of a call gave. */
export function encodeServerResult(block: ToolResultBlock, hasId = true): JsonObject {
  const media = encodeAllMedia(resultMedia(block.content));
  const functionResponse = encodeResult(block, block.name ?? '', hasId);
  return { ...partFields(block), functionResponse: { ...functionResponse, ...(media.length > 0 && { parts: media }) } };
}
