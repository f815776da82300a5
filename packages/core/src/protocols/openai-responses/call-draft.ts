import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ItemEvents, ItemStatus, OutputItem } from './item-events.ts';

/** A `function_call` or a `custom_tool_call` item. */
export class CallItem implements OutputItem {
  isDone = false;
  readonly json: JsonObject;
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
    this.json = { ...fields, ...identity, type, status: 'in_progress', [isCustom ? 'input' : 'arguments']: '' };
    this.#isCustom = isCustom;
    this.#events = events;
    events.added(this.json);
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
    this.json['status'] = status;
    this.json[this.#isCustom ? 'input' : 'arguments'] = this.#text;
    const { place, send } = this.#events;
    const text = JSON.stringify(this.#text);
    if (this.#isCustom) send?.('response.custom_tool_call_input.done', `${place},"input":${text}`);
    else
      send?.('response.function_call_arguments.done', `${place},"name":${JSON.stringify(this.json['name'])},"arguments":${text}`);
    this.#events.done(this.json);
  }
}
