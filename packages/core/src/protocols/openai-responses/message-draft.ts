import type { JsonObject } from '../../accumulate/overlay.ts';
import type { Citation, TokenLogprob } from '../../canonical/blocks.ts';
import { CharacterCount } from '../shared/answer.ts';
import type { ItemEvents, ItemStatus, OutputItem } from './item-events.ts';
import { encodeCitation, encodeLogprobs, isOpenEnded } from './parts-encode.ts';

interface OpenPart {
  isRefusal: boolean;
  /** Item, output and content index of its events. */
  place: string;
  text: string;
  length: CharacterCount;
  logprobs: JsonObject[];
  annotations: JsonObject[];
  /** Citations that end where the text ends. */
  waiting: Citation[];
}

/** What a message of this protocol cannot hold. */
export interface MessageLosses {
  /** One that points at nothing which this protocol knows. */
  citation(citation: Citation): void;
  /** The text that a citation quotes. */
  quote(): void;
  /** Those of a refusal. */
  logprobs(): void;
}

/** A `message` item: parts of text and refusals, one after the other. */
export class MessageItem implements OutputItem {
  isDone = false;
  readonly json: JsonObject;
  readonly #events: ItemEvents;
  readonly #content: JsonObject[] = [];
  readonly #told: MessageLosses;
  #part: OpenPart | undefined;

  constructor(id: string, fields: JsonObject, events: ItemEvents, told: MessageLosses) {
    this.json = { ...fields, id, type: 'message', status: 'in_progress', role: 'assistant', content: this.#content };
    this.#events = events;
    this.#told = told;
    events.added(this.json);
  }

  openPart(isRefusal: boolean): void {
    this.closePart();
    const place = `${this.#events.place},"content_index":${this.#content.length}`;
    this.#part = { isRefusal, place, text: '', length: new CharacterCount(), logprobs: [], annotations: [], waiting: [] };
    this.#events.send?.('response.content_part.added', `${place},"part":${JSON.stringify(partOf(this.#part))}`);
  }

  write(text: string, logprobs: readonly TokenLogprob[] | undefined): void {
    const part = this.#part;
    if (!part || (text === '' && !logprobs)) return;
    part.text += text;
    part.length.add(text);
    if (part.isRefusal) {
      if (logprobs) this.#told.logprobs();
      this.#events.send?.('response.refusal.delta', `${part.place},"delta":${JSON.stringify(text)}`);
      return;
    }
    const tokens = logprobs ? encodeLogprobs(logprobs) : [];
    for (const token of tokens) part.logprobs.push(token);
    const written = tokens.length === 0 ? '[]' : JSON.stringify(tokens);
    this.#events.send?.('response.output_text.delta', `${part.place},"delta":${JSON.stringify(text)},"logprobs":${written}`);
  }

  cite(citation: Citation): void {
    const part = this.#part;
    if (!part || part.isRefusal) return;
    if (isOpenEnded(citation)) part.waiting.push(citation);
    else this.#annotate(part, citation);
  }

  #annotate(part: OpenPart, citation: Citation): void {
    const annotation = encodeCitation(citation, part.length);
    if (!annotation) {
      this.#told.citation(citation);
      return;
    }
    if (citation.cited_text !== undefined && annotation !== citation.raw) this.#told.quote();
    const at = part.annotations.push(annotation) - 1;
    this.#events.send?.(
      'response.output_text.annotation.added',
      `${part.place},"annotation_index":${at},"annotation":${JSON.stringify(annotation)}`,
    );
  }

  closePart(): void {
    const part = this.#part;
    if (!part) return;
    for (const citation of part.waiting) this.#annotate(part, citation);
    this.#part = undefined;
    const whole = partOf(part);
    this.#content.push(whole);
    if (part.isRefusal) this.#events.send?.('response.refusal.done', `${part.place},"refusal":${JSON.stringify(part.text)}`);
    else
      this.#events.send?.(
        'response.output_text.done',
        `${part.place},"text":${JSON.stringify(part.text)},"logprobs":${JSON.stringify(part.logprobs)}`,
      );
    this.#events.send?.('response.content_part.done', `${part.place},"part":${JSON.stringify(whole)}`);
  }

  close(status: ItemStatus): void {
    if (this.isDone) return;
    this.closePart();
    this.isDone = true;
    this.json['status'] = status;
    this.#events.done(this.json);
  }
}

const partOf = ({ isRefusal, text, annotations, logprobs }: OpenPart): JsonObject =>
  isRefusal ? { type: 'refusal', refusal: text } : { type: 'output_text', annotations: [...annotations], logprobs, text };
