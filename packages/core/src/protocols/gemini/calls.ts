import { deriveId } from '../../accumulate/derive-id.ts';
import { isObject, type JsonObject, parseJson, writeJson } from '../../accumulate/overlay.ts';
import type { ToolResultBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import type { BlockEmitter } from '../shared/block-writer.ts';
import { CallLimits } from '../shared/call-limits.ts';
import type { Context } from '../shared/context.ts';
import { listOf, textOf, unknownFields } from '../shared/read.ts';
import { Answers, type Call } from './answers.ts';
import { decodeServerResult, extended, signed } from './blocks.ts';
import { PartialArgs } from './partial-args.ts';
import { CALL_FIELDS, type WireCall } from './wire.ts';

interface PendingCall {
  call: Call;
  args: PartialArgs;
  /** Where the last piece of it was. */
  offset: number;
}

/**
 * The calls of one candidate. A whole call waits for the next part that is no call, or for the end: when that part is a functionResponse,
 * Google has run the call itself, and nothing before it tells so, not even finishReason, which stands beside such calls, too. Mostly the end
 * is next, and nobody waits. A call with streamed arguments starts at once, and only its stop waits: those are of Vertex AI, and the servers
 * that Google calls itself (`mcpServers`) of the Gemini API.
 */
export class CallEmitter {
  readonly #context: Context;
  readonly #emitter: BlockEmitter;
  /** What makes derived ids differ between messages and candidates. */
  readonly #seed: string;
  readonly #ids = new Set<string>();
  readonly #answers = new Answers();
  readonly #limits = new CallLimits();
  /** Calls and the results that Google gave them, in their order. */
  #held: (Call | ToolResultBlock)[] = [];
  #pending: PendingCall | undefined;

  constructor(context: Context, emitter: BlockEmitter, seed: string) {
    this.#context = context;
    this.#emitter = emitter;
    this.#seed = seed;
  }

  /** The calls that are left to the client. */
  get unanswered(): ToolUseBlock[] {
    return this.#answers.open.map(({ block }) => block);
  }

  /** Reads a functionCall, or a piece of one, and says what it was: `opaque` must be kept in another way. */
  push(wire: WireCall, signature: string, fields: JsonObject | undefined, offset: number): 'call' | 'nothing' | 'opaque' {
    const name = textOf(wire.name);
    const pieces = listOf(wire.partialArgs);
    if (this.#pending && this.#isContinuation(this.#pending, wire, name)) {
      this.#continue(this.#pending, wire, signature, offset);
      return 'call';
    }
    if (name === '') return this.#pushNameless(wire, pieces, signature, offset);
    this.#endUnended();
    const call = this.#add(wire, name, fields, offset);
    if (signature !== '') call.signature = signature;
    if (pieces.length === 0 && wire.willContinue !== true) {
      call.text = this.#wholeText(wire.args, offset);
      this.#held.push(call);
    } else {
      this.#openAll();
      this.#open(call);
      this.#continue({ call, args: new PartialArgs(wire.args, this.#limits), offset }, wire, '', offset);
    }
    return 'call';
  }

  #isContinuation({ call }: PendingCall, wire: WireCall, name: string): boolean {
    if (name === '') return true;
    const id = textOf(wire.id);
    return name === call.block.name && Array.isArray(wire.partialArgs) && (id === '' || id === call.block.id);
  }

  #pushNameless(wire: WireCall, pieces: readonly unknown[], signature: string, offset: number): 'nothing' | 'opaque' {
    const isEmpty = pieces.length === 0 && (wire.args === undefined || wire.args === null) && signature === '';
    this.#context.report(isEmpty ? 'gemini/stray-call-end' : 'gemini/nameless-call', offset);
    return isEmpty ? 'nothing' : 'opaque';
  }

  #add(wire: WireCall, name: string, fields: JsonObject | undefined, offset: number): Call {
    this.#limits.open();
    const unknown = unknownFields(wire, CALL_FIELDS);
    const more = unknown ? { ...fields, functionCall: unknown } : fields;
    const block: ToolUseBlock = { type: 'tool_use', id: this.#idOf(wire, name, offset), name, input: {}, ...extended(more) };
    const call: Call = { index: undefined, block, isStopped: false, isAnswered: false };
    this.#answers.add(call);
    return call;
  }

  #open(call: Call): number {
    if (call.index !== undefined) return call.index;
    call.index = this.#emitter.openTool(call.block);
    if (call.signature !== undefined) this.#sign(call, call.signature);
    if (call.text !== undefined) this.#emitter.writeTool(call.index, call.text);
    return call.index;
  }

  /** What comes next can be told from them: they keep their place. */
  #openAll(): void {
    for (const held of this.#held) if ('block' in held) this.#open(held);
  }

  #idOf(wire: WireCall, name: string, offset: number): string {
    const given = typeof wire.id === 'number' ? String(wire.id) : textOf(wire.id);
    if (given !== '' && this.#ids.has(given)) this.#context.report('gemini/duplicate-call-id', offset);
    let id = given;
    for (let attempt = 0; id === '' || this.#ids.has(id); attempt++)
      id = deriveId('call_', this.#seed, this.#answers.size, name, attempt);
    this.#ids.add(id);
    return id;
  }

  #sign(call: Call, signature: string): void {
    if (call.index !== undefined) this.#emitter.emitDelta(call.index, { type: 'signature_delta', signature: signed(signature) });
  }

  #wholeText(args: unknown, offset: number): string {
    const text = args === undefined || args === null ? '{}' : typeof args === 'string' ? args : writeJson(args);
    if (text) this.#limits.count(text.length);
    if (args !== undefined && args !== null && !isObject(args)) this.#context.report('gemini/args-not-object', offset);
    if (text === undefined)
      this.#context.report('gemini/args-not-object', offset, 'The arguments of a call are nested too deeply');
    return text ?? '{';
  }

  #continue(pending: PendingCall, wire: WireCall, signature: string, offset: number): void {
    this.#pending = pending;
    pending.offset = offset;
    if (signature !== '') this.#sign(pending.call, signature);
    for (const piece of listOf(wire.partialArgs)) pending.args.push(piece);
    if (wire.willContinue !== true) this.#endPending(true);
  }

  /** Another call, or the end, came where the end of the arguments was due. */
  #endUnended(): void {
    if (!this.#pending) return;
    this.#context.report('gemini/call-not-ended', this.#pending.offset);
    this.#endPending(!this.#pending.args.isInString);
  }

  #endPending(isWhole: boolean): void {
    if (!this.#pending) return;
    const { call, args, offset } = this.#pending;
    this.#pending = undefined;
    if (!args.isReadable) this.#context.report('gemini/bad-json-path', offset);
    const text = args.toText(isWhole);
    if (isWhole && args.isReadable) this.#finish(call, text);
    else this.#cut(call, text);
  }

  #finish(call: Call, text: string): void {
    this.#emitter.writeTool(this.#open(call), text);
    call.text = text;
    this.#held.push(call);
  }

  /** A call that is not whole says so, and its text is no JSON: nobody may run it. */
  #cut(call: Call, text: string): void {
    const index = this.#open(call);
    this.#emitter.writeTool(index, text);
    call.isStopped = true;
    this.#emitter.stopTool(index, { ...call.block, status: 'incomplete' });
  }

  /** A part that is neither call nor result follows: the calls before it that nobody has answered are the client's. */
  settle(): void {
    const held = this.#held;
    this.#held = [];
    for (const one of held) {
      if ('block' in one) this.#stop(one);
      else this.#emitter.whole(one);
    }
  }

  /** Of a call that Google ran after it had been passed on, whose it is can only be told now. */
  #stop(call: Call): void {
    if (call.isStopped) return;
    call.isStopped = true;
    const isLate = call.index !== undefined && call.block.kind === 'server';
    const index = this.#open(call);
    const input = isLate && call.text !== undefined ? parseJson(call.text) : undefined;
    this.#emitter.stopTool(index, isLate ? { ...call.block, input: isObject(input) ? input : {} } : undefined);
  }

  /** A functionResponse was found: the call that it answers is now known to be the provider's own. */
  answer(result: JsonObject, fields: JsonObject | undefined, offset: number): void {
    const id = textOf(result['id']);
    const name = textOf(result['name']);
    const call = this.#answers.take(id, name);
    if (!call || call.index !== undefined) this.#context.report('gemini/late-function-response', offset);
    const answered = call?.block.id ?? (id || deriveId('call_', this.#seed, this.#answers.size, name, 'answer'));
    if (call && !call.isStopped) call.block = { ...call.block, kind: 'server' };
    if (call && this.#pending?.call === call) {
      this.#pending = undefined;
      this.#held.push(call);
    }
    this.#held.push(decodeServerResult(result, answered, fields));
  }

  /** `isClean`: the model says that it came to its end, so that arguments whose end was not marked are whole. */
  end(isClean: boolean): void {
    if (isClean) this.#endUnended();
    else this.#endPending(false);
    this.settle();
  }
}
