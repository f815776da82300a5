import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ContentBlock, TextBlock, ThinkingBlock } from '../../canonical/blocks.ts';
import type { ItemList } from './item-list.ts';
import { fieldsOf, PROTOCOL } from './kept.ts';
import { MessageItem } from './message-draft.ts';
import { ReasoningItem } from './reasoning-draft.ts';

/** The message or reasoning item that the next block may continue: it stays open until another item begins. */
export class CurrentItem {
  readonly #list: ItemList;
  #item: MessageItem | ReasoningItem | undefined;
  /** The block that wrote to it last. */
  #block: ContentBlock | undefined;

  constructor(list: ItemList) {
    this.#list = list;
  }

  get block(): ContentBlock | undefined {
    return this.#block;
  }

  /** Neighbouring texts share a message, unless the source says that they are two. Each has a part of its own. */
  messageFor(block: TextBlock): MessageItem {
    const current = this.#item instanceof MessageItem && this.#block && isContinued(this.#block, block) ? this.#item : undefined;
    const item = current ?? this.#open(() => this.#message(block));
    item.openPart(block.refusal === true);
    this.#block = block;
    return item;
  }

  #message(block: TextBlock): MessageItem {
    const { item_id: wanted, phase } = fieldsOf(block);
    return this.#list.message(wanted, typeof phase === 'string' ? { phase } : {});
  }

  /** Blocks of one item, a summary and the full text, become one again. */
  reasoningFor(block: ThinkingBlock): ReasoningItem {
    const { signature } = block;
    const wanted = fieldsOf(block)['item_id'] ?? (signature?.origin === PROTOCOL ? signature.item_id : undefined);
    if (this.#item instanceof ReasoningItem && wanted !== undefined && this.#item.json['id'] === wanted) return this.#item;
    const item = this.#open(() => this.#list.reasoning(wanted, itemFields(block)));
    this.#block = block;
    return item;
  }

  #open<T extends MessageItem | ReasoningItem>(create: () => T): T {
    this.close();
    const item = create();
    this.#item = item;
    return item;
  }

  close(): void {
    this.#item?.close('completed');
    this.#item = undefined;
    this.#block = undefined;
  }
}

/** Items have ids; texts of other protocols have none, and run on. */
const isContinued = (before: ContentBlock, block: TextBlock): boolean =>
  fieldsOf(before)['item_id'] === fieldsOf(block)['item_id'] && fieldsOf(before)['phase'] === fieldsOf(block)['phase'];

/** Fields of a reasoning item that nobody here knows. */
export function itemFields(block: ThinkingBlock): JsonObject {
  const { item_id: _, ...fields } = fieldsOf(block);
  return fields;
}
