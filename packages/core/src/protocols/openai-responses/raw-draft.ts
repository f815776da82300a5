import type { JsonObject } from '../../accumulate/overlay.ts';
import type { Draft, ItemEvents } from './item-events.ts';

/** An item that goes as it came: of a server tool, or of a kind that nobody here knows. */
export class RawDraft implements Draft {
  isDone = false;
  item: JsonObject;
  readonly #events: ItemEvents;

  constructor(item: JsonObject, events: ItemEvents) {
    this.item = item;
    this.#events = events;
    events.added(item);
  }

  /** Another form of the same item: clients know it by its id, and shells by their call. Elsewhere OpenAI changes the call_id. */
  replace(item: JsonObject): void {
    const { id, type, call_id: call } = this.item;
    const isShell = type === 'shell_call' || type === 'shell_call_output';
    this.item = { ...item, id, type, ...(isShell && { call_id: call }) };
  }

  close(): void {
    if (this.isDone) return;
    this.isDone = true;
    this.#events.done(this.item);
  }
}
