/** The blocks of a candidate, from canonical blocks to the fragments of a stream or the parts of a whole response. */

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
import { buildArgumentText, chooseModel } from '../../codec/answers.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { objectOrEmpty } from '../../codec/read.ts';
import { noteApproximated, noteDropped } from '../../codec/report.ts';
import type { JsonObject } from '../../json/json.ts';
import {
  encodeAllMedia,
  encodeArgs,
  encodeCallFields,
  encodeLogprobs,
  encodeMedia,
  encodeResult,
  encodeSignature,
  encodeSignatureField,
  Grounding,
  isBroken,
  isDoubtful,
  listResultMedia,
  noteWrappedInput,
} from './blocks.ts';
import { encodeStop, isCutStop } from './outcome.ts';
import { type CandidateExtensions, readExtensions, readPartExtensions } from './wire.ts';

/** A complete call. */
export interface EncodedCall {
  /** The index of its block. */
  at: number;
  /** The block of the call. */
  block: ToolUseBlock;
  /** The arguments as the JSON text of an object. */
  args: string;
  /** Whether the arguments were not an object and were wrapped in one. */
  isWrapped: boolean;
  /** The signature of the call, if it has one. */
  signature: SignedBlob | undefined;
}

/** Where calls are written. */
export interface CallSink {
  /** Writes a call. */
  addCall(call: EncodedCall): void;
}

/** Where the parts of a candidate are written: into the fragments of a stream, or into the list of a whole response. */
export interface PartSink extends CallSink {
  /** Whether anything was written. */
  readonly hasParts: boolean;
  /** The number of parts of a whole response; undefined in a stream, where parts are pieces of texts. */
  readonly length?: number;
  /** Writes a part. */
  add(part: JsonObject): void;
  /** Sends a piece of text at once. Absent: the text of a block becomes one part when the block stops. */
  sendText?(text: string, isThought: boolean): void;
}

/** Sends a part of a candidate as JSON text. */
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
    const { outer, inner } = encodeCallFields(block, true);
    const rest: JsonObject = { ...outer, ...encodeSignatureField({ signature }, this.#context) };
    const tail = isEmpty(rest) ? '}' : `,${JSON.stringify(rest).slice(1)}`;
    this.#send(`{"functionCall":${JSON.stringify(inner).slice(0, -1)},"args":${args}}${tail}`);
  }
}

/** Id, model and time. The model is the one that the client requested. */
export function encodeEnvelope(source: { id: string; model: string } & Node, context: CodecContext): JsonObject {
  const model = chooseModel(source.model, context);
  const { createTime } = readExtensions(source);
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
  readonly #showsThoughts: boolean;
  readonly #sink: PartSink;
  readonly #isLive: boolean;
  readonly #calls: CallEncoder;
  readonly #texts = new Map<number, OpenText>();
  readonly #audio = new Map<number, AudioBlock>();
  readonly #grounding: Grounding;
  readonly #tokens: TokenLogprob[] = [];
  #hasRefusal = false;
  #last = -1;

  constructor(isForeign: boolean, context: CodecContext, sink: PartSink) {
    this.#isForeign = isForeign;
    this.#context = context;
    this.#showsThoughts = showsThoughts(context);
    this.#sink = sink;
    this.#isLive = sink.sendText !== undefined;
    this.#calls = new CallEncoder(context, isForeign, sink);
    this.#grounding = new Grounding(context);
  }

  /** Starts a block. `at` is its index. */
  start(at: number, block: ContentBlock): void {
    // Calls can overlap, so a following call does not prove that the calls before it are complete.
    if (block.type !== 'tool_use') this.#calls.settle();
    this.#last = at;
    if (block.type === 'text' && block.refusal) this.#hasRefusal = true;
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

  /** Adds a delta to a block. */
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
        return; // the block was dropped, or written whole at its start
      default:
        delta satisfies never;
    }
  }

  /** Ends a block. `final` has values that were corrected after the start. */
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
    const part = open.text === '' ? undefined : this.#findPart();
    if (!open.isThought) this.#grounding.add(open.citations, open.text, `/content/${at}`, part);
  }

  /** The place of the part that was just written. */
  #findPart(): number | undefined {
    const { length } = this.#sink;
    return length === undefined ? undefined : length - 1;
  }

  /** Applies late changes of calls. */
  amend(late: NonNullable<MessageDelta['late_blocks']>): void {
    for (const { index, content_block: block } of late)
      if (block.type === 'tool_use' && !this.#calls.replace(index, block)) this.#noteLate(index);
  }

  /** The fields at the end of the candidate; undefined if Gemini has no finish reason for this stop. */
  finish(stop: StopReason, details: StopDetails | undefined, extensions: CandidateExtensions): JsonObject | undefined {
    this.#calls.end(isCutStop(stop), this.#isLive);
    const ending = {
      stop,
      details,
      extensions,
      hasContent: this.#sink.hasParts,
      hasRefusal: this.#hasRefusal,
      isMalformed: this.#calls.isMalformed,
      grounding: this.#grounding,
      tokens: this.#tokens,
    };
    return encodeEnding(ending, this.#context);
  }

  /** Calls that have been sent can no longer change. */
  #noteLate(at: number): void {
    const message = 'the source changed a tool call after it was sent; the change is dropped';
    noteApproximated(this.#context, { path: `/content/${at}`, feature: 'content.tool_use', message });
  }

  #startText(at: number, block: TextBlock | ThinkingBlock): void {
    const fields = readPartExtensions(block);
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
    if (!open.isWhole && (this.#showsThoughts || !open.isThought)) this.#sink.sendText?.(text, open.isThought);
  }

  /** Thinking that the client did not request is left out, but its signature is written. */
  #addText(open: OpenText): void {
    const { isThought, text, fields, signature } = open;
    const isHidden = isThought && !this.#showsThoughts;
    if (!signature && (isHidden || (text === '' && isEmpty(fields)))) return;
    // A stream also marks a bare signature whose part has other fields.
    const thought = isThought && (this.#isLive || !isBare(open, signature));
    this.#sink.add({
      ...fields,
      text: isHidden ? '' : text,
      ...(thought && { thought }),
      ...encodeSignatureField({ signature }, this.#context),
    });
  }

  /** After its stop, only the last block can be signed: readers assign a signature to the part before it. */
  #sign(at: number, signature: SignedBlob): void {
    if (this.#calls.has(at)) this.#calls.sign(at, signature);
    else {
      const open = this.#texts.get(at);
      if (open && !open.isStopped) open.signature = signature;
      else if (open && (open.isThought || at === this.#last)) this.#addSignature(open, signature);
      else this.#noteDropped(at, 'signature', 'the signature arrived after its part was sent; dropped');
    }
  }

  /** An empty part carries the signature, as in Google's own streams. */
  #addSignature(open: OpenText, signature: SignedBlob): void {
    const thoughtSignature = encodeSignature(signature, this.#context);
    this.#sink.add({ text: '', ...(open.isThought && !isBare(open, signature) && { thought: true }), thoughtSignature });
  }

  #addMedia(at: number, block: Parameters<typeof encodeMedia>[0]): void {
    const part = this.#isForeign && block.source.file_id !== undefined ? undefined : encodeMedia(block);
    if (part) this.#sink.add(part);
    // A whole response does not report the loss of an audio if its transcript is written.
    else if (this.#isLive || block.type !== 'audio' || !block.transcript)
      this.#noteDropped(at, block.type, `the ${block.type} has no data or URL that the client can use; dropped`);
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
    noteApproximated(this.#context, {
      path: `/content/${at}`,
      feature: 'content.audio.transcript',
      message: 'audio transcripts are not supported by Gemini; sent as text',
    });
    this.#sink.add({ text });
  }

  /** A result in a response comes from a tool of the provider; a client of another provider cannot use it. */
  #addResult(at: number, block: ToolResultBlock): void {
    if (this.#isForeign) this.#noteDropped(at, 'tool_result', 'results of provider tools are not supported by Gemini; dropped');
    else this.#sink.add(encodeServerResult(block));
  }

  #addOpaque(at: number, { origin, raw, text }: OpaqueBlock): void {
    if (origin === 'gemini') this.#sink.add(objectOrEmpty(raw));
    else if (text) this.#sink.add({ text });
    else this.#noteDropped(at, 'opaque', `a block specific to ${origin} is not supported by Gemini; dropped`);
  }

  #noteDropped(at: number, feature: string, message: string): void {
    noteDropped(this.#context, { path: `/content/${at}`, feature: `content.${feature}`, message });
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
 * Calls are written whole, in the order in which they began. A call whose arguments may have been cut off is held: if
 * the message continues or ends normally, it is complete, otherwise it is dropped. A call with invalid arguments is
 * always dropped.
 */
export class CallEncoder {
  readonly #context: CodecContext;
  readonly #isForeign: boolean;
  readonly #sink: CallSink;
  /** Calls that have not been written, in order. */
  readonly #queue = new Map<number, QueuedCall>();
  #sent = 0;
  #dropped = 0;

  constructor(context: CodecContext, isForeign: boolean, sink: CallSink) {
    this.#context = context;
    this.#isForeign = isForeign;
    this.#sink = sink;
  }

  /** Whether the block is a call that has not been written. */
  has(at: number): boolean {
    return this.#queue.has(at);
  }

  /** Starts a call. */
  start(at: number, block: ToolUseBlock): void {
    this.#queue.set(at, { at, block, text: buildArgumentText(block, true), signature: block.signature, isStopped: false });
  }

  /** Adds to the arguments of a call. */
  write(at: number, text: string): void {
    const call = this.#queue.get(at);
    if (call) call.text += text;
  }

  /** Sets the signature of a call. */
  sign(at: number, signature: SignedBlob): void {
    const call = this.#queue.get(at);
    if (call) call.signature = signature;
  }

  /** Ends a call. `final` has values that were corrected after the start. */
  stop(at: number, final: ToolUseBlock | undefined): void {
    const call = this.#queue.get(at);
    if (!call) return;
    call.isStopped = true;
    if (final) call.block = final;
    this.#flush(false);
  }

  /** Replaces a call by its final form; returns false if it has already been written. */
  replace(at: number, block: ToolUseBlock): boolean {
    const call = this.#queue.get(at);
    if (!call) return false;
    this.#queue.set(at, { ...call, block, text: buildArgumentText(block, true) });
    return true;
  }

  /** A block follows that is not a call, so the stopped calls are complete. */
  settle(): void {
    if (this.#queue.size > 0) this.#flush(true);
  }

  /**
   * The end of the candidate. A stream reports a foreign server call that was cut off as cut, a whole response as a
   * server call.
   */
  end(isCut: boolean, isLive: boolean): void {
    for (const call of this.#queue.values()) {
      const isLost = !call.isStopped || (isCut && isDoubtful(call.text, call.block));
      if (isLost && (isLive || !this.#isForeignServerCall(call.block))) this.#dropCall(call, 'is incomplete');
      else this.#write(call);
    }
    this.#queue.clear();
  }

  /** Whether there were calls, but none could be written. */
  get isMalformed(): boolean {
    return this.#dropped > 0 && this.#sent === 0;
  }

  /** Writes complete calls. `isSure`: stopped calls are complete, whatever their text is. */
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
      this.#noteDropped(
        at,
        `${block.name} was run by the provider and is not supported by the client protocol; dropped`,
        'content.server_tool_use',
      );
    else if (block.status === 'incomplete') this.#dropCall(call, 'is incomplete');
    else if (isBroken(text, block)) this.#dropCall(call, 'has arguments that are not JSON');
    else {
      const { json, isWrapped } = encodeArgs(text, block.kind === 'custom');
      if (isWrapped) noteWrappedInput(this.#context, `/content/${at}`);
      this.#sent++;
      this.#sink.addCall({ at, block, args: json, isWrapped, signature });
    }
  }

  /** Drops a call that must not be run. */
  #dropCall({ at, block }: QueuedCall, why: string): void {
    this.#dropped++;
    this.#noteDropped(at, `the tool call of ${block.name} ${why}; dropped`);
  }

  #noteDropped(at: number, message: string, feature = 'content.tool_use'): void {
    noteDropped(this.#context, { path: `/content/${at}`, feature, message });
  }
}

/** Thoughts are shown if the client requested them (`includeThoughts`), or if the request is unknown. */
const showsThoughts = ({ request }: CodecContext): boolean =>
  request === undefined || request.thinking?.display === 'summarized' || request.thinking?.display === 'full';

interface Ending {
  stop: StopReason;
  details: StopDetails | undefined;
  extensions: CandidateExtensions;
  /** Whether any part was written. */
  hasContent: boolean;
  /** Whether some of the text is an OpenAI refusal. */
  hasRefusal: boolean;
  /** Whether there were calls, but none could be written. */
  isMalformed: boolean;
  grounding: Grounding;
  tokens: readonly TokenLogprob[];
}

/** The fields at the end of a candidate; undefined if Gemini has no finish reason for this stop. */
function encodeEnding(ending: Ending, context: CodecContext): JsonObject | undefined {
  const { stop, details, extensions, isMalformed, grounding, tokens } = ending;
  // Agents would take "STOP" without the call for a finished response.
  const finishReason =
    stop === 'tool_use' && isMalformed ? 'MALFORMED_FUNCTION_CALL' : encodeStop(stop, extensions.finish, ending);
  if (finishReason === undefined) return undefined;
  if (stop === 'pause_turn')
    noteApproximated(context, {
      path: '/stop_reason',
      feature: 'stop_reason',
      message: 'stop reason pause_turn is not supported by Gemini; sent as STOP',
    });
  const metadata = extensions.candidate['groundingMetadata'] ?? grounding.metadata;
  const explanation = details?.explanation;
  return {
    ...(explanation && { finishMessage: explanation }),
    ...extensions.candidate,
    ...(metadata !== undefined && { groundingMetadata: metadata }),
    ...(tokens.length > 0 && extensions.candidate['logprobsResult'] === undefined && { logprobsResult: encodeLogprobs(tokens) }),
    finishReason,
  };
}

/** Whether a block is only a signature of Gemini: its part is not marked as a thought. */
const isBare = ({ isEmpty }: OpenText, signature: SignedBlob | undefined): boolean => isEmpty && signature?.origin === 'gemini';

function isEmpty(fields: JsonObject): boolean {
  for (const _ in fields) return false;
  return true;
}

/** The result of a tool that Google runs. */
export function encodeServerResult(block: ToolResultBlock, hasId = true): JsonObject {
  const media = encodeAllMedia(listResultMedia(block.content));
  const functionResponse = encodeResult(block, block.name ?? '', hasId);
  return { ...readPartExtensions(block), functionResponse: { ...functionResponse, ...(media.length > 0 && { parts: media }) } };
}
