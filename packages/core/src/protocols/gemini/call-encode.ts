import type { ToolUseBlock } from '../../canonical/blocks.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { argumentsOf } from '../shared/answer.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import { argsText, isBroken, isDoubtful, tellWrapped } from './parts-encode.ts';

interface QueuedCall {
  at: number;
  block: ToolUseBlock;
  text: string;
  signature: SignedBlob | undefined;
  isStopped: boolean;
}

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
