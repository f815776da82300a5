/** Finds in the response of another target the place where a broken response is continued. */

import { isDeepStrictEqual } from 'node:util';
import type { CanonicalStreamEvent, ContentBlock } from '@sluice/core';

/** An event of a content block. */
export type BlockEvent = Extract<CanonicalStreamEvent, { index: number }>;

/** A block that the client has received. */
export type SentBlock =
  | { type: 'text'; text: string }
  /** `input`: the arguments as they were sent. */
  | { type: 'tool_use'; name: string; input: string; isOpen: boolean };

/** What an event of the new response means. */
export type JoinStep =
  /** It repeats what was sent, or may do so. */
  | { is: 'waiting' }
  /** The new response is another one. */
  | { is: 'diverged' }
  | Joined;

/** The place is found. */
interface Joined {
  is: 'joined';
  /** The text that follows what was sent. */
  text: string;
  /** The block of the new response that continues the last one of the client; undefined when none does. */
  source?: number | undefined;
  /** Whether the event itself still has to be sent. */
  isUnread: boolean;
}

/** Compares the blocks of a new response with those that were sent. */
export interface Join {
  push(event: BlockEvent): JoinStep;
  /** The new response ends. */
  end(): JoinStep;
}

const WAITING: JoinStep = { is: 'waiting' };

const DIVERGED: JoinStep = { is: 'diverged' };

/** Thinking before the text of a new response: the client has its text already. */
const isSkipped = ({ type }: ContentBlock): boolean => type === 'thinking';

/** Joins the response of a target that was asked to continue. */
export class PrefillJoin implements Join {
  readonly #overlap: OverlapFinder;
  /** The block that continues the text. */
  #source: number | undefined;

  /** `sent`: the last block of the client, with the white space that the prefill lacks. */
  constructor(sent: string) {
    this.#overlap = new OverlapFinder(sent);
  }

  push(event: BlockEvent): JoinStep {
    if (event.type === 'content_block_start') return this.#start(event.index, event.content_block);
    if (event.index !== this.#source) return WAITING;
    if (event.type === 'content_block_stop') return this.#joined(this.#overlap.end(), true);
    if (event.delta.type !== 'text_delta') return this.#joined(this.#overlap.end(), true);
    return this.#add(event.delta.text);
  }

  end(): JoinStep {
    return this.#joined(this.#overlap.end(), true);
  }

  #start(index: number, block: ContentBlock): JoinStep {
    if (isSkipped(block)) return WAITING;
    if (block.type !== 'text') return this.#joined('', true);
    this.#source = index;
    return block.text === '' ? WAITING : this.#add(block.text);
  }

  #add(text: string): JoinStep {
    const rest = this.#overlap.push(text);
    return rest === undefined ? WAITING : this.#joined(rest, false);
  }

  #joined(text: string, isUnread: boolean): JoinStep {
    return { is: 'joined', text, source: this.#source, isUnread };
  }
}

/** Joins a response from its start: it must repeat every block that was sent. */
export class RestartJoin implements Join {
  readonly #sent: readonly SentBlock[];
  /** The sent block that is compared. */
  #at = 0;
  /** The block of the new response that is compared with it. */
  #source: number | undefined;
  #text = '';

  constructor(sent: readonly SentBlock[]) {
    this.#sent = sent;
  }

  push(event: BlockEvent): JoinStep {
    if (event.type === 'content_block_start') return this.#start(event.index, event.content_block);
    if (event.index !== this.#source) return WAITING;
    return event.type === 'content_block_stop' ? this.#stop() : this.#add(readText(event.delta));
  }

  end(): JoinStep {
    return DIVERGED;
  }

  #start(index: number, block: ContentBlock): JoinStep {
    if (isSkipped(block)) return WAITING;
    const sent = this.#sent[this.#at];
    const isSame = block.type === 'tool_use' ? sent?.type === 'tool_use' && sent.name === block.name : sent?.type === block.type;
    // A second call that starts before the first has stopped cannot be compared.
    if (!isSame || this.#source !== undefined) return DIVERGED;
    this.#source = index;
    this.#text = '';
    return this.#add(block.type === 'text' ? block.text : '');
  }

  #add(text: string | undefined): JoinStep {
    const sent = this.#sent[this.#at];
    if (text === undefined || !sent) return DIVERGED;
    this.#text += text;
    if (sent.type === 'tool_use') return this.#text.length > MAX_CALL_GROWTH + 2 * sent.input.length ? DIVERGED : WAITING;
    if (this.#text.length < sent.text.length) return sent.text.startsWith(this.#text) ? WAITING : DIVERGED;
    if (!this.#text.startsWith(sent.text)) return DIVERGED;
    if (this.#at < this.#sent.length - 1) return this.#text === sent.text ? WAITING : DIVERGED;
    return { is: 'joined', text: this.#text.slice(sent.text.length), source: this.#source, isUnread: false };
  }

  #stop(): JoinStep {
    const sent = this.#sent[this.#at];
    if (!sent || !(sent.type === 'text' ? sent.text === this.#text : isSameInput(sent.input, this.#text))) return DIVERGED;
    this.#at++;
    this.#source = undefined;
    return this.#at === this.#sent.length ? { is: 'joined', text: '', isUnread: false } : WAITING;
  }
}

/** How much longer equal arguments may be in another spelling, in characters. */
const MAX_CALL_GROWTH = 1024;

function readText(delta: Extract<BlockEvent, { type: 'content_block_delta' }>['delta']): string | undefined {
  switch (delta.type) {
    case 'text_delta':
    case 'input_text_delta':
      return delta.text;
    case 'input_json_delta':
      return delta.partial_json;
    default:
      return undefined;
  }
}

function isSameInput(a: string, b: string): boolean {
  if (a === b) return true;
  try {
    return isDeepStrictEqual(JSON.parse(a || '{}'), JSON.parse(b || '{}'));
  } catch {
    return false;
  }
}

/**
 * Removes from a continuation what repeats the end of the sent text. It is removed only if it has at least
 * `MIN_OVERLAP` characters and ends exactly at the cut: anything shorter may be a real repetition.
 */
export class OverlapFinder {
  readonly #sent: string;
  /** White space at the end of the sent text, which was not part of the prefill: the target may send it again. */
  readonly #blank: string;
  #held = '';
  /** Where in the sent text the overlap may start; undefined before enough was read to know. */
  #starts: number[] | undefined;

  constructor(sent: string) {
    this.#sent = sent;
    this.#blank = sent.slice(sent.trimEnd().length);
  }

  /** The text after the overlap; undefined while more has to be read. */
  push(text: string): string | undefined {
    this.#held += text;
    if (this.#held.length < Math.max(MIN_OVERLAP, this.#blank.length)) return undefined;
    this.#starts = this.#filterStarts();
    const [longest] = this.#starts;
    if (longest === undefined) return this.#removeBlank();
    const length = this.#sent.length - longest;
    return length <= this.#held.length ? this.#held.slice(length) : undefined;
  }

  /** The same when nothing follows. */
  end(): string {
    const complete = this.#starts?.find((start) => this.#sent.length - start <= this.#held.length);
    return complete === undefined ? this.#removeBlank() : this.#held.slice(this.#sent.length - complete);
  }

  #filterStarts(): number[] {
    const starts = this.#starts ?? this.#findStarts();
    return starts.filter((start) => {
      const length = Math.min(this.#held.length, this.#sent.length - start);
      return this.#sent.startsWith(this.#held.slice(0, length), start);
    });
  }

  #findStarts(): number[] {
    const head = this.#held.slice(0, MIN_OVERLAP);
    const starts: number[] = [];
    for (let at = this.#sent.indexOf(head); at >= 0 && starts.length < MAX_STARTS; at = this.#sent.indexOf(head, at + 1))
      starts.push(at);
    return starts;
  }

  #removeBlank(): string {
    let length = 0;
    while (length < this.#blank.length && this.#held[length] === this.#blank[length]) length++;
    return this.#held.slice(length);
  }
}

/** A shorter overlap is kept: "the the" may be meant. */
const MIN_OVERLAP = 16;

/** Text that repeats itself has many places; the first ones make the longest overlap. */
const MAX_STARTS = 64;
