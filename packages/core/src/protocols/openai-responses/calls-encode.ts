import { parseJson } from '../../accumulate/overlay.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { argumentsOf } from '../shared/answer.ts';
import { approximate, type CodecContext } from '../shared/codec.ts';
import { builtInOf, builtInsOf, encodeBuiltIn, encodeBuiltInCall } from './built-in-calls.ts';
import type { CallItem } from './call-draft.ts';
import type { ItemStatus } from './item-events.ts';
import { callFields, type ItemList } from './item-list.ts';

interface WrittenCall {
  block: ToolUseBlock;
  /** Absent until the item has gone out. */
  item: CallItem | undefined;
  isSigned: boolean;
  /** The arguments of a tool that has an item of its own, which is sent whole. */
  held: string | undefined;
}

/** The calls of an answer, blocks to items. */
export class CallsEncoder {
  readonly #list: ItemList;
  readonly #context: CodecContext;
  readonly #builtIns: ReturnType<typeof builtInsOf>;
  readonly #calls = new Map<number, WrittenCall>();
  /** A call that has begun and said nothing yet: its signature, which has to stand before it, may come with the next delta. */
  #waiting: WrittenCall | undefined;
  /** Calls that stopped without whole arguments: they have none, or have lost them if the answer was cut. */
  readonly #bare = new Set<CallItem>();

  constructor(list: ItemList, context: CodecContext) {
    this.#list = list;
    this.#context = context;
    this.#builtIns = builtInsOf(context.request);
  }

  start(at: number, block: ToolUseBlock): void {
    const isHeld = this.#builtIns.has(block.name) || builtInOf(block) !== undefined;
    const call: WrittenCall = { block, item: undefined, isSigned: false, held: isHeld ? '' : undefined };
    this.#calls.set(at, call);
    this.#waiting = call;
    if (block.signature) this.#carry(call, block.signature);
  }

  write(at: number, text: string): void {
    this.flush();
    const call = this.#calls.get(at);
    if (call?.held === undefined) call?.item?.write(text);
    else call.held += text;
  }

  sign(at: number, signature: SignedBlob): void {
    const call = this.#calls.get(at);
    if (call && call === this.#waiting) this.#carry(call, signature);
    else if (call)
      approximate(this.#context, {
        path: `/content/${at}`,
        feature: 'content.signature',
        message: 'the signature came after its call had been passed on, and is lost',
      });
  }

  /** An item of its own, in front of the call that it signs. */
  #carry(call: WrittenCall, signature: SignedBlob): void {
    if (call.isSigned) return;
    call.isSigned = true;
    this.#list.carrier(signature, 'next');
  }

  /** Sends the item of the call that waits, and whatever came with its start. */
  flush(): void {
    const call = this.#waiting;
    if (!call) return;
    this.#waiting = undefined;
    const text = argumentsOf(call.block, true);
    if (call.held === undefined) this.#open(call).write(text);
    else call.held += text;
  }

  #open(call: WrittenCall): CallItem {
    call.item = this.#list.call(call.block);
    return call.item;
  }

  /** A tool that the client runs by its type. Arguments that are none are no item: then it is a call like any other, and says so. */
  #stopHeld(call: WrittenCall, held: string): void {
    const { block } = call;
    const own = builtInOf(block);
    const tool = own ?? this.#builtIns.get(block.name);
    call.held = undefined;
    const item = own ? encodeBuiltIn(block) : tool && encodeBuiltInCall(tool, held);
    if (tool && item) this.#list.raw({ ...item, call_id: this.#list.callId(block, tool.call) }, item['id'], tool.prefix).close();
    else this.#open(call).write(held);
  }

  /** Arguments that are no JSON may have been cut: whether they were, the end of the answer says. */
  stop(at: number, final: ToolUseBlock | undefined): void {
    const call = this.#calls.get(at);
    this.flush();
    if (call?.held !== undefined) this.#stopHeld(call, call.held);
    if (!call?.item || call.item.isDone) return;
    const { item, block } = call;
    if (final) this.#correct(item, final);
    if ((final ?? block).status === 'incomplete') item.close('incomplete');
    else if (block.kind === 'custom' || parseJson(item.text) !== undefined) item.close('completed');
    else this.#bare.add(item);
  }

  /** A call that went on after its block had stopped; false when it has been passed on and cannot change. */
  amend(at: number, block: ToolUseBlock): boolean {
    const item = this.#calls.get(at)?.item;
    const text = argumentsOf(block, true);
    if (!item || !this.#bare.has(item) || !text.startsWith(item.text)) return false;
    item.write(text.slice(item.text.length));
    return true;
  }

  /** What was settled late overwrites, but for the ids: those the client has read. */
  #correct(item: CallItem, final: ToolUseBlock): void {
    const { id, call_id, type, name } = item.json;
    if (final.name !== name)
      approximate(this.#context, {
        path: '/content',
        feature: 'content.tool_use.name',
        message: `the name of a call was ${name} when it was sent, and is ${final.name}`,
      });
    Object.assign(item.json, callFields(final), { id, call_id, type, name: final.name });
  }

  /** Before anything else begins, and at the end: calls without arguments get the empty object, unless they were cut. */
  settle(status: ItemStatus): void {
    this.flush();
    if (this.#bare.size === 0) return;
    for (const item of this.#bare) {
      if (status === 'completed' && item.text === '') item.write('{}');
      item.close(parseJson(item.text) === undefined ? 'incomplete' : status);
    }
    this.#bare.clear();
  }
}
