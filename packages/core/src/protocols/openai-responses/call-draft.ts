import type { JsonObject } from '../../accumulate/overlay.ts';
import type { Draft, ItemEvents, ItemStatus } from './item-events.ts';

/** A `function_call` or a `custom_tool_call` item. */
export class CallDraft implements Draft {
  isDone = false;
  readonly item: JsonObject;
  readonly #events: ItemEvents;
  readonly #isCustom: boolean;
  #text = '';

  constructor(
    identity: { id: string; call_id: string; name: string },
    fields: JsonObject,
    isCustom: boolean,
    events: ItemEvents,
  ) {
    const type = isCustom ? 'custom_tool_call' : 'function_call';
    this.item = { ...fields, ...identity, type, status: 'in_progress', [isCustom ? 'input' : 'arguments']: '' };
    this.#isCustom = isCustom;
    this.#events = events;
    events.added(this.item);
  }

  get text(): string {
    return this.#text;
  }

  write(text: string): void {
    if (text === '' || this.isDone) return;
    this.#text += text;
    const type = this.#isCustom ? 'response.custom_tool_call_input.delta' : 'response.function_call_arguments.delta';
    this.#events.send?.(type, `${this.#events.place},"delta":${JSON.stringify(text)}`);
  }

  close(status: ItemStatus): void {
    if (this.isDone) return;
    this.isDone = true;
    this.item['status'] = status;
    this.item[this.#isCustom ? 'input' : 'arguments'] = this.#text;
    const { place, send } = this.#events;
    const text = JSON.stringify(this.#text);
    if (this.#isCustom) send?.('response.custom_tool_call_input.done', `${place},"input":${text}`);
    else
      send?.('response.function_call_arguments.done', `${place},"name":${JSON.stringify(this.item['name'])},"arguments":${text}`);
    this.#events.done(this.item);
  }
}
