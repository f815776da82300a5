import type { BlockDelta, MessageDelta } from '../../canonical/events.ts';
import type {
  AudioBlock,
  Citation,
  ContentBlock,
  OpaqueBlock,
  StopDetails,
  StopReason,
  TextBlock,
  ThinkingBlock,
  TokenLogprob,
  ToolResultBlock,
  ToolUseBlock,
} from '../../canonical/message.ts';
import type { Node, SignedBlob } from '../../canonical/protocol.ts';
import { argumentsOf } from '../../codec/answers.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { objectOf } from '../../codec/read.ts';
import { approximate, drop } from '../../codec/report.ts';
import type { JsonObject } from '../../json/json.ts';
import {
  argsText,
  callParts,
  encodeAllMedia,
  encodeLogprobs,
  encodeMedia,
  encodeResult,
  encodeSignature,
  Grounding,
  isBroken,
  isDoubtful,
  resultMedia,
  signatureField,
  tellWrapped,
} from './blocks.ts';
import { encodeStop, isCutStop } from './outcome.ts';
import { fieldsOf, type KeptCandidate, partFields } from './wire.ts';

/** A call that is complete. */
export interface EncodedCall {
  at: number;
  block: ToolUseBlock;
  /** The JSON text of the arguments, an object. */
  args: string;
  /** Whether the arguments were no object and were put into one. */
  isWrapped: boolean;
  signature: SignedBlob | undefined;
}

/** Where calls are written. */
export interface CallSink {
  addCall(call: EncodedCall): void;
}

/** Where the parts of a candidate are written: into the fragments of a stream, or into the list of a whole response. */
export interface PartSink extends CallSink {
  readonly hasParts: boolean;
  add(part: JsonObject): void;
  /** Sends a piece of text at once. Absent: the text of a block becomes one part when the block stops. */
  sendText?(text: string, isThought: boolean): void;
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

/** Who answered, and when. The model is the one that the client asked for. */
export function encodeEnvelope(source: { id: string; model: string } & Node, context: CodecContext): JsonObject {
  const model = context.request?.model ?? source.model;
  const { createTime } = fieldsOf(source);
  return {
    ...(createTime !== undefined && { createTime }),
    ...(model !== '' && { modelVersion: model }),
    responseId: source.id || context.newId('resp_'),
  };
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

interface QueuedCall {
  at: number;
  block: ToolUseBlock;
  text: string;
  signature: SignedBlob | undefined;
  isStopped: boolean;
}

/**
 * Calls are written whole, in the order in which they began. One whose arguments may have been cut waits for what follows: they are complete
 * if the message goes on or ends normally; if the message was cut, the call is left out. A call with broken arguments is always left out.
 */
export class CallEncoder {
  readonly #context: CodecContext;
  readonly #isForeign: boolean;
  readonly #sink: CallSink;
  /** Starts with the first call that has not been written. */
  readonly #queue = new Map<number, QueuedCall>();
  #sent = 0;
  #left = 0;

  constructor(context: CodecContext, isForeign: boolean, sink: CallSink) {
    this.#context = context;
    this.#isForeign = isForeign;
    this.#sink = sink;
  }

  has(at: number): boolean {
    return this.#queue.has(at);
  }

  start(at: number, block: ToolUseBlock): void {
    this.#queue.set(at, { at, block, text: argumentsOf(block, true), signature: block.signature, isStopped: false });
  }

  write(at: number, text: string): void {
    const call = this.#queue.get(at);
    if (call) call.text += text;
  }

  sign(at: number, signature: SignedBlob): void {
    const call = this.#queue.get(at);
    if (call) call.signature = signature;
  }

  /** `final` corrects what was settled late. */
  stop(at: number, final: ToolUseBlock | undefined): void {
    const call = this.#queue.get(at);
    if (!call) return;
    call.isStopped = true;
    if (final) call.block = final;
    this.#flush(false);
  }

  /** The call as it is in the end, if it has not gone out. */
  replace(at: number, block: ToolUseBlock): boolean {
    const call = this.#queue.get(at);
    if (!call) return false;
    this.#queue.set(at, { ...call, block, text: argumentsOf(block, true) });
    return true;
  }

  /** Something other than a call follows: what has stopped was not cut. */
  settle(): void {
    if (this.#queue.size > 0) this.#flush(true);
  }

  /** The end of the candidate. A stream reports a foreign server call that was cut as cut, a whole response as a server call. */
  end(isCut: boolean, isLive: boolean): void {
    for (const call of this.#queue.values()) {
      const isLost = !call.isStopped || (isCut && isDoubtful(call.text, call.block));
      if (isLost && (isLive || !this.#isForeignServerCall(call.block))) this.#leaveOut(call, 'was cut');
      else this.#write(call);
    }
    this.#queue.clear();
  }

  /** There were calls, and none that could be written. */
  get isMalformed(): boolean {
    return this.#left > 0 && this.#sent === 0;
  }

  /** `isSure`: those that have stopped are whole, whatever their text is. */
  #flush(isSure: boolean): void {
    for (const call of this.#queue.values()) {
      const isOpen = !call.isStopped || (!isSure && isDoubtful(call.text, call.block));
      if (isOpen) return;
      this.#queue.delete(call.at);
      this.#write(call);
    }
  }

  #isForeignServerCall({ kind }: ToolUseBlock): boolean {
    return this.#isForeign && (kind === 'server' || kind === 'mcp');
  }

  #write(call: QueuedCall): void {
    const { at, block, text, signature } = call;
    if (this.#isForeignServerCall(block))
      this.#lose(at, `${block.name} was called and run by the provider`, 'content.server_tool_use');
    else if (block.status === 'incomplete') this.#leaveOut(call, 'was cut');
    else if (isBroken(text, block)) this.#leaveOut(call, 'has arguments that are no JSON');
    else {
      const { json, isWrapped } = argsText(text, block.kind === 'custom');
      if (isWrapped) tellWrapped(this.#context, `/content/${at}`);
      this.#sent++;
      this.#sink.addCall({ at, block, args: json, isWrapped, signature });
    }
  }

  /** A call that must not be run. */
  #leaveOut({ at, block }: QueuedCall, why: string): void {
    this.#left++;
    this.#lose(at, `the call of ${block.name} ${why}`);
  }

  #lose(at: number, message: string, feature = 'content.tool_use'): void {
    drop(this.#context, { path: `/content/${at}`, feature, message });
  }
}

// What whole answers and streams write in the same words around the parts.

/** Thoughts are shown to a client that asked for them (`includeThoughts`); without a question nothing is hidden. */
const showsThoughts = ({ request }: CodecContext): boolean =>
  request === undefined || request.thinking?.display === 'summarized' || request.thinking?.display === 'full';

interface Ending {
  stop: StopReason;
  details: StopDetails | undefined;
  kept: KeptCandidate;
  /** Something was said or called. */
  hasContent: boolean;
  /** Some of the text is an OpenAI refusal. */
  saysRefusal: boolean;
  /** The model called, and nothing of it could be written. */
  isMalformed: boolean;
  grounding: Grounding;
  tokens: readonly TokenLogprob[];
}

/** What a candidate says when it has come to its end; undefined when this protocol has no word for such an end. */
function encodeEnding(ending: Ending, context: CodecContext): JsonObject | undefined {
  const { stop, details, kept, isMalformed, grounding, tokens } = ending;
  // "STOP" without the call would be a silent end, and agents take it for the answer.
  const finishReason = stop === 'tool_use' && isMalformed ? 'MALFORMED_FUNCTION_CALL' : encodeStop(stop, kept.finish, ending);
  if (finishReason === undefined) return undefined;
  if (stop === 'pause_turn')
    approximate(context, { path: '/stop_reason', feature: 'stop_reason', message: 'pause_turn is written as STOP' });
  const metadata = kept.candidate['groundingMetadata'] ?? grounding.metadata;
  const explanation = details?.explanation;
  return {
    ...(explanation && { finishMessage: explanation }),
    ...kept.candidate,
    ...(metadata !== undefined && { groundingMetadata: metadata }),
    ...(tokens.length > 0 && kept.candidate['logprobsResult'] === undefined && { logprobsResult: encodeLogprobs(tokens) }),
    finishReason,
  };
}

/** A signature of Gemini that stands alone: its part is not marked as a thought. */
const isBare = ({ isEmpty }: OpenText, signature: SignedBlob | undefined): boolean => isEmpty && signature?.origin === 'gemini';

function isEmpty(fields: JsonObject): boolean {
  for (const _ in fields) return false;
  return true;
}

/** The result of a tool that Google runs. */
export function encodeServerResult(block: ToolResultBlock, hasId = true): JsonObject {
  const media = encodeAllMedia(resultMedia(block.content));
  const functionResponse = encodeResult(block, block.name ?? '', hasId);
  return { ...partFields(block), functionResponse: { ...functionResponse, ...(media.length > 0 && { parts: media }) } };
}
