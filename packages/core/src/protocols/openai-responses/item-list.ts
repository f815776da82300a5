import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { dropLogprobs } from '../shared/answer.ts';
import type { Attach } from '../shared/carrier.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { CallItem } from './call-draft.ts';
import { ItemIds, type ItemPrefix } from './ids.ts';
import { ItemEvents, type OutputItem, type Send } from './item-events.ts';
import { fieldsOf } from './kept.ts';
import { MessageItem, type MessageLosses } from './message-draft.ts';
import { encodeBlob } from './parts-encode.ts';
import { RawItem } from './raw-draft.ts';
import { ReasoningItem } from './reasoning-draft.ts';

/** The output items of one response, numbered as they open. */
export class ItemList {
  readonly items: OutputItem[] = [];
  readonly #ids: ItemIds;
  readonly #context: CodecContext;
  readonly #send: Send | undefined;

  constructor(responseId: string, context: CodecContext, send: Send | undefined) {
    this.#ids = new ItemIds(responseId);
    this.#context = context;
    this.#send = send;
  }

  message(wanted: unknown, fields: JsonObject): MessageItem {
    return this.#add(this.#ids.item(wanted, 'msg'), (id, events) => new MessageItem(id, fields, events, this.#losses));
  }

  readonly #losses: MessageLosses = {
    citation: ({ kind }) =>
      drop(this.#context, {
        path: '/content',
        feature: 'citations',
        message: `a ${kind} citation is no annotation of OpenAI Responses`,
      }),
    quote: () =>
      approximate(this.#context, { path: '/content', feature: 'citations', message: 'what a citation quotes is not told' }),
    logprobs: () => dropLogprobs('/content', 'a refusal of OpenAI Responses has no log probabilities', this.#context),
  };

  reasoning(wanted: unknown, fields: JsonObject): ReasoningItem {
    return this.#add(this.#ids.item(wanted, 'rs'), (id, events) => new ReasoningItem(id, fields, events));
  }

  /** An item that has nothing to show, only a blob of another provider. */
  carrier(signature: SignedBlob, attach: Attach): void {
    const item = this.reasoning(undefined, {});
    item.sign(encodeBlob(signature, attach, this.#context));
    item.close();
  }

  call(block: ToolUseBlock): CallItem {
    const isCustom = block.kind === 'custom';
    const call_id = this.callId(block, isCustom ? 'custom' : 'function');
    const fields = callFields(block);
    return this.#add(
      this.#ids.item(block.item_id, isCustom ? 'ctc' : 'fc'),
      (id, events) => new CallItem({ id, call_id, name: block.name }, fields, isCustom, events),
    );
  }

  /** The id that the client knows a call by: its own, unless another call has it. */
  callId({ id }: ToolUseBlock, kind: string): string {
    const given = this.#ids.call(id, kind);
    if (given === id) return id;
    const message = `a second call had the id ${id}; it is called ${given}`;
    this.#context.note({ code: 'RENAMED', path: '/content', feature: 'content.tool_use.id', message });
    return given;
  }

  raw(item: JsonObject, wanted: unknown, prefix: ItemPrefix): RawItem {
    return this.#add(this.#ids.item(wanted, prefix), (id, events) => new RawItem({ ...item, id }, events));
  }

  #add<T extends OutputItem>(id: string, create: (id: string, events: ItemEvents) => T): T {
    const item = create(id, new ItemEvents(this.#send, this.items.length, id));
    this.items.push(item);
    return item;
  }
}

/** What a call says beside its ids, name and arguments. That it was part of a `parallel` call is nothing for the wire. */
export function callFields(block: ToolUseBlock): JsonObject {
  const { parallel_call_id: _, ...fields } = fieldsOf(block);
  return { ...fields, ...(block.namespace !== undefined && { namespace: block.namespace }) };
}
