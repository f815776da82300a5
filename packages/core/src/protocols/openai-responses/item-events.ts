import type { JsonObject } from '../../accumulate/overlay.ts';

/** An event leaves: its type, and its fields as JSON text without the braces. */
export type Send = (type: string, fields: string) => void;

export type ItemStatus = 'completed' | 'incomplete';

/** An output item that is being written. */
export interface OutputItem {
  /** The item in its current state; final once it is done. */
  readonly json: JsonObject;
  readonly isDone: boolean;
  close(status: ItemStatus): void;
}

/** The events of one item. Whole responses have none: `send` is absent, and nothing is written. */
export class ItemEvents {
  readonly send: Send | undefined;
  /** What every event says about where it belongs. */
  readonly place: string;
  readonly #index: number;

  constructor(send: Send | undefined, index: number, id: unknown) {
    this.send = send;
    this.place = `"item_id":${JSON.stringify(id)},"output_index":${index}`;
    this.#index = index;
  }

  added(item: JsonObject): void {
    this.send?.('response.output_item.added', `"output_index":${this.#index},"item":${JSON.stringify(item)}`);
  }

  done(item: JsonObject): void {
    this.send?.('response.output_item.done', `"output_index":${this.#index},"item":${JSON.stringify(item)}`);
  }
}
