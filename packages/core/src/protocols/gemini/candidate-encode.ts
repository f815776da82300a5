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
import type { BlockDelta, MessageDelta } from '../../canonical/events.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import type { StopDetails, StopReason } from '../../canonical/response.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { objectOf } from '../shared/read.ts';
import { encodeEnding, showsThoughts } from './answer-encode.ts';
import { CallEncoder, type CallSink, type EncodedCall } from './call-encode.ts';
import { Grounding } from './grounding.ts';
import { type KeptCandidate, partFields } from './kept.ts';
import { callParts, encodeAllMedia, encodeMedia, encodeResult, resultMedia, signatureField } from './parts-encode.ts';
import { encodeSignature } from './signature.ts';
import { isCutStop } from './stop.ts';

/** Where the parts of a candidate are written: into the fragments of a stream, or into the list of a whole response. */
export interface PartSink extends CallSink {
  readonly hasParts: boolean;
  add(part: JsonObject): void;
  /** Sends a piece of text at once. Absent: the text of a block becomes one part when the block stops. */
  sendText?(text: string, isThought: boolean): void;
}

/** A text or thinking block. */
interface OpenText {
  isThought: boolean;
  fields: JsonObject;
  /** The block is written as one part when it stops: its fields and its signature belong to all of its text. */
  isWhole: boolean;
  text: string;
  isEmpty: boolean;
  signature: SignedBlob | undefined;
  citations: Citation[];
  isStopped: boolean;
}

/** Encodes the blocks of one candidate into a sink. */
export class CandidateEncoder {
  readonly #isForeign: boolean;
  readonly #context: CodecContext;
  readonly #shows: boolean;
  readonly #sink: PartSink;
  readonly #isLive: boolean;
  readonly #calls: CallEncoder;
  readonly #texts = new Map<number, OpenText>();
  readonly #audio = new Map<number, AudioBlock>();
  readonly #grounding: Grounding;
  readonly #tokens: TokenLogprob[] = [];
  #saysRefusal = false;
  #last = -1;

  constructor(isForeign: boolean, context: CodecContext, sink: PartSink) {
    this.#isForeign = isForeign;
    this.#context = context;
    this.#shows = showsThoughts(context);
    this.#sink = sink;
    this.#isLive = sink.sendText !== undefined;
    this.#calls = new CallEncoder(context, isForeign, sink);
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
        this.#addMedia(at, block);
        return;
      case 'tool_result':
        this.#addResult(at, block);
        return;
      case 'opaque':
        this.#addOpaque(at, block);
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

  /** `final` corrects fields that were settled late. */
  stop(at: number, final: ContentBlock | undefined): void {
    if (this.#calls.has(at)) {
      this.#calls.stop(at, final?.type === 'tool_use' ? final : undefined);
      return;
    }
    const open = this.#texts.get(at);
    if (!open || open.isStopped) return;
    open.isStopped = true;
    if (open.isWhole) this.#addText(open);
    else if (open.signature) this.#addSignature(open, open.signature);
    this.#grounding.add(open.citations, open.text, `/content/${at}`);
  }

  /** Calls that changed after they had stopped. */
  amend(late: NonNullable<MessageDelta['late_blocks']>): void {
    for (const { index, content_block: block } of late)
      if (block.type === 'tool_use' && !this.#calls.replace(index, block)) this.#noteLate(index);
  }

  /** The fields at the end of the candidate; undefined if Gemini has no finish reason for this stop. */
  finish(stop: StopReason, details: StopDetails | undefined, kept: KeptCandidate): JsonObject | undefined {
    this.#calls.end(isCutStop(stop), this.#isLive);
    const ending = {
      stop,
      details,
      kept,
      hasContent: this.#sink.hasParts,
      saysRefusal: this.#saysRefusal,
      isMalformed: this.#calls.isMalformed,
      grounding: this.#grounding,
      tokens: this.#tokens,
    };
    return encodeEnding(ending, this.#context);
  }

  /** What has been sent cannot be taken back. */
  #noteLate(at: number): void {
    const message = 'the source changed a call after it had been passed on';
    approximate(this.#context, { path: `/content/${at}`, feature: 'content.tool_use', message });
  }

  #startText(at: number, block: TextBlock | ThinkingBlock): void {
    const fields = partFields(block);
    const isThought = block.type === 'thinking';
    this.#texts.set(at, {
      isThought,
      fields,
      isWhole: !this.#isLive || !isEmpty(fields),
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
    // Needed for citations and for blocks that are written whole.
    if (this.#isForeign || open.isWhole) open.text += text;
    if (!open.isWhole && (this.#shows || !open.isThought)) this.#sink.sendText?.(text, open.isThought);
  }

  /** Thinking that the client did not ask to see is left out; its signature is written all the same. */
  #addText(open: OpenText): void {
    const { isThought, text, fields, signature } = open;
    const isHidden = isThought && !this.#shows;
    if (!signature && (isHidden || (text === '' && isEmpty(fields)))) return;
    // A stream also marks a bare signature whose part has other fields.
    const thought = isThought && (this.#isLive || !isBare(open, signature));
    this.#sink.add({
      ...fields,
      text: isHidden ? '' : text,
      ...(thought && { thought }),
      ...signatureField({ signature }, this.#context),
    });
  }

  /** After a stop only the last block may still be signed: the reader takes the signature for that of the part before. */
  #sign(at: number, signature: SignedBlob): void {
    if (this.#calls.has(at)) this.#calls.sign(at, signature);
    else {
      const open = this.#texts.get(at);
      if (open && !open.isStopped) open.signature = signature;
      else if (open && (open.isThought || at === this.#last)) this.#addSignature(open, signature);
      else this.#lose(at, 'signature', 'the signature came after its part had been passed on');
    }
  }

  /** An empty part carries it, as in Google's own streams. */
  #addSignature(open: OpenText, signature: SignedBlob): void {
    const thoughtSignature = encodeSignature(signature, this.#context);
    this.#sink.add({ text: '', ...(open.isThought && !isBare(open, signature) && { thought: true }), thoughtSignature });
  }

  #addMedia(at: number, block: Parameters<typeof encodeMedia>[0]): void {
    const part = this.#isForeign && block.source.file_id !== undefined ? undefined : encodeMedia(block);
    if (part) this.#sink.add(part);
    // A whole response does not report the loss of an audio if its transcript is written.
    else if (this.#isLive || block.type !== 'audio' || !block.transcript)
      this.#lose(at, block.type, `the ${block.type} has nothing that could leave its provider`);
  }

  #startAudio(at: number, block: AudioBlock): void {
    this.#audio.set(at, block);
    const { data, url, file_id: file } = block.source;
    // In a stream, the data of an empty block follows in deltas.
    const isPending = this.#isLive && !data && !url && !file;
    if (!isPending) this.#addMedia(at, block);
    if (block.transcript) this.#transcribe(at, block.transcript);
  }

  #writeAudio(at: number, { data, transcript }: Extract<BlockDelta, { type: 'audio_delta' }>): void {
    const block = this.#audio.get(at);
    if (!block) return;
    if (data) this.#addMedia(at, { ...block, source: { ...block.source, data } });
    if (transcript) this.#transcribe(at, transcript);
  }

  /** Gemini has no field for the transcript of an audio. */
  #transcribe(at: number, text: string): void {
    approximate(this.#context, {
      path: `/content/${at}`,
      feature: 'content.audio.transcript',
      message: 'a transcript is written as text',
    });
    this.#sink.add({ text });
  }

  /** A result in a response comes from a tool of the provider; a client of another provider cannot use it. */
  #addResult(at: number, block: ToolResultBlock): void {
    if (this.#isForeign) this.#lose(at, 'tool_result', 'an answer of Gemini holds no results of foreign tools');
    else this.#sink.add(encodeServerResult(block));
  }

  #addOpaque(at: number, { origin, raw, text }: OpaqueBlock): void {
    if (origin === 'gemini') this.#sink.add(objectOf(raw));
    else if (text) this.#sink.add({ text });
    else this.#lose(at, 'opaque', `a block of ${origin} has no form in Gemini`);
  }

  #lose(at: number, feature: string, message: string): void {
    drop(this.#context, { path: `/content/${at}`, feature: `content.${feature}`, message });
  }
}

/** A signature of Gemini that stands alone: its part is not marked as a thought. */
const isBare = ({ isEmpty }: OpenText, signature: SignedBlob | undefined): boolean => isEmpty && signature?.origin === 'gemini';

function isEmpty(fields: JsonObject): boolean {
  for (const _ in fields) return false;
  return true;
}

/** Sends a part of a candidate, as JSON. */
export type SendPart = (part: string) => void;

/** Writes the parts of a candidate into a stream, each in a fragment of its own. */
export class FragmentSink implements PartSink {
  readonly #context: CodecContext;
  readonly #send: SendPart;
  hasParts = false;

  constructor(context: CodecContext, send: SendPart) {
    this.#context = context;
    this.#send = send;
  }

  sendText(text: string, isThought: boolean): void {
    this.hasParts = true;
    const json = JSON.stringify(text);
    this.#send(isThought ? `{"text":${json},"thought":true}` : `{"text":${json}}`);
  }

  add(part: JsonObject): void {
    this.hasParts = true;
    this.#send(JSON.stringify(part));
  }

  /** The arguments are written verbatim, so that numbers stay exact. */
  addCall({ block, args, signature }: EncodedCall): void {
    this.hasParts = true;
    const { outer, inner } = callParts(block, true);
    const rest: JsonObject = { ...outer, ...signatureField({ signature }, this.#context) };
    const tail = isEmpty(rest) ? '}' : `,${JSON.stringify(rest).slice(1)}`;
    this.#send(`{"functionCall":${JSON.stringify(inner).slice(0, -1)},"args":${args}}${tail}`);
  }
}

/** The result of a tool that Google runs. */
export function encodeServerResult(block: ToolResultBlock, hasId = true): JsonObject {
  const media = encodeAllMedia(resultMedia(block.content));
  const functionResponse = encodeResult(block, block.name ?? '', hasId);
  return { ...partFields(block), functionResponse: { ...functionResponse, ...(media.length > 0 && { parts: media }) } };
}
