/** Finds the response object in what a client of OpenAI Responses receives. */

import { createSseDecoder, type SseFrame } from '@sluice/core';
import { isJson, type Json, parse } from './items.ts';

/** Reads a stream for its last event, which contains the whole response. */
export class StreamRecorder {
  readonly #decoder;
  readonly #onFrame: ((frame: SseFrame) => void) | undefined;
  /** Items that are complete: some servers leave them out of the last event. */
  readonly #items: unknown[] = [];
  #response: Json | undefined;
  #queued: Json | undefined;

  /** `onFrame` is called with every frame. */
  constructor(maxBytes: number, onFrame?: (frame: SseFrame) => void) {
    this.#decoder = createSseDecoder({ maxLineBytes: maxBytes, maxEventBytes: maxBytes });
    this.#onFrame = onFrame;
  }

  /** The whole response; undefined before its last event. */
  get response(): Json | undefined {
    return this.#response;
  }

  /** The response when its provider began to run it in the background. */
  get queued(): Json | undefined {
    return this.#queued;
  }

  push(bytes: Uint8Array): void {
    if (this.#response) return;
    for (const frame of this.#decoder.push(bytes)) this.#read(frame);
  }

  #read(frame: SseFrame): void {
    this.#onFrame?.(frame);
    const { data } = frame;
    // Only few events are parsed: deltas are most of a stream.
    const head = data.slice(0, HEAD_CHARACTERS);
    if (head.includes(ITEM_DONE)) this.#items.push(readField(data, 'item'));
    else if (TERMINAL.test(head)) this.#end(readField(data, 'response'));
    else if (head.includes(QUEUED)) this.#queue(readField(data, 'response'));
  }

  #queue(response: unknown): void {
    if (isJson(response)) this.#queued ??= response;
  }

  #end(response: unknown): void {
    if (!isJson(response)) return;
    const { output } = response;
    const isEmpty = !Array.isArray(output) || output.length === 0;
    this.#response = isEmpty && this.#items.length > 0 ? { ...response, output: this.#items } : response;
  }
}

/** Enough for the type of an event, in whatever order its fields are. */
const HEAD_CHARACTERS = 120;

const ITEM_DONE = '"response.output_item.done"';

const TERMINAL = /"response\.(completed|incomplete|failed)"/;

/** The provider runs the response in the background. */
const QUEUED = '"response.queued"';

function readField(data: string, name: string): unknown {
  const event = parse(data);
  return isJson(event) ? event[name] : undefined;
}
