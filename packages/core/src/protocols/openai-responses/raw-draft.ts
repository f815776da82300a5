import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ItemEvents, OutputItem } from './item-events.ts';

/** An item that goes as it came: of a server tool, or of a kind that nobody here knows. */
export class RawItem implements OutputItem {
  isDone = false;
  json: JsonObject;
  readonly #events: ItemEvents;

  constructor(item: JsonObject, events: ItemEvents) {
    this.json = item;
    this.#events = events;
    events.added(item);
  }

  /** Another form of the same item: clients know it by its id, and shells by their call. Elsewhere OpenAI changes the call_id. */
  replace(item: JsonObject): void {
    const { id, type, call_id: call } = this.json;
    const isShell = type === 'shell_call' || type === 'shell_call_output';
    this.json = { ...item, id, type, ...(isShell && { call_id: call }) };
  }

  close(): void {
    if (this.isDone) return;
    this.isDone = true;
    this.#events.done(this.json);
  }
}
