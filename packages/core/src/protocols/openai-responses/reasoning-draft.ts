import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ItemEvents, OutputItem } from './item-events.ts';

/** A summary that the provider wrote, or the raw chain of thought. */
export type ReasoningChannel = 'summary' | 'full';

interface Words {
  part: string;
  added: string;
  delta: string;
  textDone: string;
  done: string;
  index: string;
}

const WORDS: Record<ReasoningChannel, Words> = {
  summary: {
    part: 'summary_text',
    added: 'response.reasoning_summary_part.added',
    delta: 'response.reasoning_summary_text.delta',
    textDone: 'response.reasoning_summary_text.done',
    done: 'response.reasoning_summary_part.done',
    index: 'summary_index',
  },
  full: {
    part: 'reasoning_text',
    added: 'response.content_part.added',
    delta: 'response.reasoning_text.delta',
    textDone: 'response.reasoning_text.done',
    done: 'response.content_part.done',
    index: 'content_index',
  },
};

interface OpenPart {
  channel: ReasoningChannel;
  /** Tells the parts of one channel apart. */
  key: string;
  place: string;
  text: string;
}

/** A `reasoning` item. One that only carries a ciphertext has no part at all. */
export class ReasoningItem implements OutputItem {
  isDone = false;
  readonly json: JsonObject;
  readonly #events: ItemEvents;
  readonly #parts: Record<ReasoningChannel, JsonObject[]> = { summary: [], full: [] };
  #part: OpenPart | undefined;

  constructor(id: string, fields: JsonObject, events: ItemEvents) {
    this.json = { ...fields, id, type: 'reasoning', summary: this.#parts.summary };
    this.#events = events;
    events.added(this.json);
  }

  /** Whether this part is the one being written. */
  isOpen(channel: ReasoningChannel, key: string): boolean {
    return this.#part?.channel === channel && this.#part.key === key;
  }

  /** `key`: a new one begins a new part, also without a text. */
  think(text: string, channel: ReasoningChannel, key: string): void {
    const part = this.#part && this.isOpen(channel, key) ? this.#part : this.#openPart(channel, key);
    if (text === '') return;
    part.text += text;
    this.#events.send?.(WORDS[channel].delta, `${part.place},"delta":${JSON.stringify(text)}`);
  }

  #openPart(channel: ReasoningChannel, key: string): OpenPart {
    this.closePart();
    const { index, part: type, added } = WORDS[channel];
    const place = `${this.#events.place},"${index}":${this.#parts[channel].length}`;
    this.#part = { channel, key, place, text: '' };
    this.#events.send?.(added, `${place},"part":${JSON.stringify({ type, text: '' })}`);
    return this.#part;
  }

  closePart(): void {
    const part = this.#part;
    if (!part) return;
    this.#part = undefined;
    const { part: type, textDone, done } = WORDS[part.channel];
    const whole = { type, text: part.text };
    this.#parts[part.channel].push(whole);
    if (part.channel === 'full') this.json['content'] = this.#parts.full;
    this.#events.send?.(textDone, `${part.place},"text":${JSON.stringify(part.text)}`);
    this.#events.send?.(done, `${part.place},"part":${JSON.stringify(whole)}`);
  }

  /** After the item is done, only the whole response can still say it. */
  sign(encrypted: string): void {
    this.json['encrypted_content'] = encrypted;
  }

  close(): void {
    if (this.isDone) return;
    this.closePart();
    this.isDone = true;
    this.#events.done(this.json);
  }
}
