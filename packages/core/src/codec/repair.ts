/** What a protocol adds for the repair of its responses: checks of payloads, and a watch over what cannot be taken back. */

import type { JsonObject } from '../json/json.ts';
import type { SseFrame } from '../sse/encode.ts';

/** A second look at the payloads of a stream, for violations that our decoders tolerate but other clients do not. */
export interface WireCheck {
  payload(payload: JsonObject, frame: SseFrame): void;
  /** Reads a response that is not a stream. */
  whole?(body: JsonObject): void;
  /** Call when the body has ended. */
  end(body: BodyFacts): void;
}

/** What a check has to know about the whole body. */
export interface BodyFacts {
  /** The length in bytes. */
  length: number;
  /** The stream ended before its message did, and reported no error. */
  isCut: boolean;
  /** The offset of the first comment. */
  comment: number | undefined;
}

/**
 * Watches the payloads of one stream for what cannot be taken back once its bytes are passed on. A check may wait for the
 * end of a stream before it reports that a call has no id; a watch may not, because bytes are already passed on.
 */
export interface Watch {
  /** Reads a payload. False when it is not what the protocol's own vendor would send at this point. */
  push(payload: JsonObject): boolean;
  /** The number of tool calls, or of items, that were opened. */
  readonly opened: number;
  /** Characters of arguments that were sent. */
  readonly argumentLength: number;
  /** Whether an entry of `reasoning_details` was sent before. */
  isSentDetail?(entry: unknown): boolean;
  /** How a frame opens an item, where an encoder may wait with that. */
  readonly opening?: string;
  /** The same for the end of an item, with the number of items that were ended. */
  readonly closing?: string;
  readonly closed?: number;
  /** The stop reason was sent: what follows is the end, and waits for it. */
  readonly isEnding: boolean;
  /** No other payload shows whether the last one is right, although an encoder writes nothing for it. */
  readonly isAlone?: boolean;
  /** Every part that began has ended, and the last one is content: if the stream ends here, it lacks nothing but its end. */
  readonly isWhole?: boolean;
}

/** Where the payloads of a protocol have the fields of the response as a whole. */
export interface ResponsePlace {
  /** The field that holds the response in events of a stream; absent where payloads have its fields themselves. */
  readonly within?: string;
  /** The field that names the model. */
  readonly model: string;
  /** The list that every whole response has. */
  readonly list: string;
}

/** Changes frames that conform, because of what the client requested. */
export interface FrameEditor {
  /** The frame for the client: empty to leave it out; undefined when it cannot be changed and has to be written again. */
  edit(frame: Uint8Array, payload: JsonObject): Uint8Array | undefined;
  /** Whether it changes frames that are only text. */
  readonly editsText: boolean;
}

/** Whether a field is absent, null or an empty text. */
export const isBlank = (value: unknown): boolean => value === undefined || value === null || value === '';
