import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ContentBlock, TextBlock, ThinkingBlock } from '../../canonical/blocks.ts';
import type { ItemList } from './item-list.ts';
import { fieldsOf, PROTOCOL } from './kept.ts';
import { MessageDraft } from './message-draft.ts';
import { ReasoningDraft } from './reasoning-draft.ts';

/** The message or reasoning item that the next block may continue: it stays open until another item begins. */
export class CurrentItem {
  readonly #list: ItemList;
  #draft: MessageDraft | ReasoningDraft | undefined;
  /** The block that wrote to it last. */
  #block: ContentBlock | undefined;

  constructor(list: ItemList) {
    this.#list = list;
  }

  get block(): ContentBlock | undefined {
    return this.#block;
  }

  /** Neighbouring texts share a message, unless the source says that they are two. Each has a part of its own. */
  messageFor(block: TextBlock): MessageDraft {
    const current =
      this.#draft instanceof MessageDraft && this.#block && isContinued(this.#block, block) ? this.#draft : undefined;
    const draft = current ?? this.#open(() => this.#message(block));
    draft.openPart(block.refusal === true);
    this.#block = block;
    return draft;
  }

  #message(block: TextBlock): MessageDraft {
    const { item_id: wanted, phase } = fieldsOf(block);
    return this.#list.message(wanted, typeof phase === 'string' ? { phase } : {});
  }

  /** Blocks of one item, a summary and the full text, become one again. */
  reasoningFor(block: ThinkingBlock): ReasoningDraft {
    const { signature } = block;
    const wanted = fieldsOf(block)['item_id'] ?? (signature?.origin === PROTOCOL ? signature.item_id : undefined);
    if (this.#draft instanceof ReasoningDraft && wanted !== undefined && this.#draft.item['id'] === wanted) return this.#draft;
    const draft = this.#open(() => this.#list.reasoning(wanted, itemFields(block)));
    this.#block = block;
    return draft;
  }

  #open<T extends MessageDraft | ReasoningDraft>(create: () => T): T {
    this.close();
    const draft = create();
    this.#draft = draft;
    return draft;
  }

  close(): void {
    this.#draft?.close('completed');
    this.#draft = undefined;
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
