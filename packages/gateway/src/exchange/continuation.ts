/**
 * Continues a stream at another target after its upstream broke off (`recovery.on_break: continue`): what the client has
 * received is kept, and the response of the next target is joined to it.
 */

import type {
  CanonicalError,
  CanonicalMessage,
  CanonicalRequest,
  CanonicalStreamEvent,
  ContentBlock,
  Note,
  ResponseStream,
  StreamSplice,
} from '@sluice/core';
import { findVerdict } from '../upstream/retry.ts';
import { type Join, type JoinStep, PrefillJoin, RestartJoin, type SentBlock } from './join.ts';

type BlockStart = Extract<CanonicalStreamEvent, { type: 'content_block_start' }>;
type BlockDelta = Extract<CanonicalStreamEvent, { type: 'content_block_delta' }>;
type BlockStop = Extract<CanonicalStreamEvent, { type: 'content_block_stop' }>;
type MessageDelta = Extract<CanonicalStreamEvent, { type: 'message_delta' }>;

/** How the next target is asked: to continue a trailing assistant message, or for the whole response again. */
export type JoinMode = 'prefill' | 'restart';

type State =
  /** Events of the upstream reach the client and are kept. */
  | { is: 'sending' }
  /** The client has received what no target can continue: events reach it and are not kept. */
  | { is: 'closed' }
  /** The upstream broke off; the client's stream is open. */
  | { is: 'cut' }
  /** The next target responds; its response is compared with what was sent. */
  | { is: 'joining'; join: Join }
  /** The response of the next target does not begin with what was sent. */
  | { is: 'diverged' }
  /** No target continues: the client's stream ends in the first error. */
  | { is: 'failing' };

const SENDING: State = { is: 'sending' };

const CLOSED: State = { is: 'closed' };

const CUT: State = { is: 'cut' };

const DIVERGED: State = { is: 'diverged' };

const FAILING: State = { is: 'failing' };

const NO_EVENTS: readonly CanonicalStreamEvent[] = [];

/** Joins the streams of several upstreams to one for the client. One object serves all attempts of an exchange. */
export class Continuation implements StreamSplice {
  #state: State = SENDING;
  /** What the client has received, as long as another target could continue it. */
  #blocks: SentBlock[] = [];
  #characters = 0;
  /** The number of blocks that the client has received. */
  #count = 0;
  /** The text block that is open for the client: its stop is held back, because a break may follow. */
  #openText: BlockStop | undefined;
  /** The end of a message without a stop reason, held back: an error follows it. */
  #announcement: MessageDelta | undefined;
  /** Client indexes of the current upstream's blocks; undefined for the first upstream, whose indexes are the client's. */
  #indexes: Map<number, number> | undefined;
  #error: CanonicalError | undefined;
  /** The notes of the exchange about this. */
  readonly notes: Note[] = [];
  /** A conversion for the client, which the next one continues. */
  output: ResponseStream | undefined;

  /** The error that broke the stream first; undefined when none did. */
  get error(): CanonicalError | undefined {
    return this.#error;
  }

  /** The upstream broke off, and no other one has reached the end of what was sent. */
  get isCut(): boolean {
    const { is } = this.#state;
    return is === 'cut' || is === 'joining' || is === 'diverged';
  }

  /** The response of the next target does not begin with what was sent. */
  get hasDiverged(): boolean {
    return this.#state.is === 'diverged';
  }

  /** Characters that the client has received. */
  get characters(): number {
    return this.#characters;
  }

  /** What was sent, as the beginning of an assistant message; undefined when targets do not accept such a beginning. */
  get prefill(): CanonicalMessage | undefined {
    if (this.#blocks.some(({ type }) => type !== 'text')) return undefined;
    const texts = this.#blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []));
    // Anthropic rejects white space at the end.
    const last = texts.pop()?.trimEnd() ?? '';
    if (last === '') return undefined;
    const parts = [...texts.filter((text) => text.trim() !== ''), last];
    return { role: 'assistant', content: parts.map((text) => ({ type: 'text', text })) };
  }

  /** Another target is asked to continue. */
  join(mode: JoinMode): void {
    const last = this.#blocks.at(-1);
    const join = mode === 'prefill' && last?.type === 'text' ? new PrefillJoin(last.text) : new RestartJoin(this.#blocks);
    this.#indexes = new Map();
    this.#state = { is: 'joining', join };
  }

  /** Whatever ends this stream from now on, no target continues it. */
  close(): void {
    if (this.#state.is === 'sending') this.#close();
    else if (this.#state.is === 'joining') this.#state = DIVERGED;
  }

  /** The next error ends the client's stream. */
  fail(): this {
    this.#state = FAILING;
    return this;
  }

  push(event: CanonicalStreamEvent): readonly CanonicalStreamEvent[] {
    switch (this.#state.is) {
      case 'sending':
      case 'closed':
        return this.#indexes ? this.#forwardMapped(event, this.#indexes) : this.#forward(event);
      case 'joining':
        return this.#compare(event, this.#state.join);
      case 'failing':
        return event.type === 'error' ? this.#afterText(event) : NO_EVENTS;
      case 'cut':
      case 'diverged':
        return NO_EVENTS;
      default:
        return this.#state satisfies never;
    }
  }

  // ---- events for the client

  #forward(event: CanonicalStreamEvent): readonly CanonicalStreamEvent[] {
    if (this.#state.is === 'sending') {
      if (event.type === 'error' && this.#break(event.error)) return NO_EVENTS;
      if (event.type === 'message_delta' && event.delta.stop_reason === null) {
        this.#announcement = event;
        return NO_EVENTS;
      }
      if (!this.#keep(event)) this.#close();
    }
    switch (event.type) {
      case 'content_block_start':
        return this.#startBlock(event);
      case 'content_block_stop':
        if (event.index !== this.#openText?.index) return [event];
        this.#openText = event;
        return NO_EVENTS;
      case 'message_delta':
      case 'message_stop':
      case 'error':
        return this.#afterText(event);
      default:
        return [event];
    }
  }

  #startBlock(event: BlockStart): readonly CanonicalStreamEvent[] {
    const events = this.#afterText(event);
    this.#count++;
    if (event.content_block.type === 'text') this.#openText = { type: 'content_block_stop', index: event.index };
    return events;
  }

  /** The event, after the stop of the open text block. */
  #afterText(event: CanonicalStreamEvent): readonly CanonicalStreamEvent[] {
    const stop = this.#openText;
    const announcement = this.#announcement;
    this.#openText = undefined;
    this.#announcement = undefined;
    if (announcement) return stop ? [stop, announcement, event] : [announcement, event];
    return stop ? [stop, event] : [event];
  }

  /** Events of a later upstream continue the message: its blocks have other indexes there, and the id stays. */
  #forwardMapped(event: CanonicalStreamEvent, indexes: Map<number, number>): readonly CanonicalStreamEvent[] {
    switch (event.type) {
      case 'message_start':
        return NO_EVENTS;
      case 'content_block_start':
        indexes.set(event.index, this.#count);
        return this.#forward({ ...event, index: this.#count });
      case 'content_block_delta':
      case 'content_block_stop': {
        const index = indexes.get(event.index);
        return index === undefined ? NO_EVENTS : this.#forward({ ...event, index });
      }
      case 'message_delta':
        return this.#forward(mapEnd(event, indexes));
      default:
        return this.#forward(event);
    }
  }

  // ---- what was sent

  /** Keeps what the client receives; false when no target could continue after it. */
  #keep(event: CanonicalStreamEvent): boolean {
    if ('choice' in event && (event.choice ?? 0) > 0) return false;
    switch (event.type) {
      case 'content_block_start':
        return this.#keepStart(event.content_block);
      case 'content_block_delta':
        return this.#keepDelta(event);
      case 'content_block_stop':
        return this.#keepStop(event);
      case 'message_delta':
        // The response is complete: an error after it loses nothing.
        return false;
      default:
        return true;
    }
  }

  #keepStart(block: ContentBlock): boolean {
    if (!isContinuable(block)) return false;
    this.#blocks.push(
      block.type === 'text'
        ? { type: 'text', text: block.text }
        : { type: 'tool_use', name: block.name, input: '', isOpen: true },
    );
    return true;
  }

  #keepDelta({ index, delta }: BlockDelta): boolean {
    const block = this.#blocks[index];
    switch (delta.type) {
      case 'text_delta':
        if (block?.type !== 'text' || delta.refusal || delta.logprobs) return false;
        block.text += delta.text;
        return this.#countCharacters(delta.text);
      case 'input_json_delta':
      case 'input_text_delta': {
        if (block?.type !== 'tool_use') return false;
        const text = delta.type === 'input_json_delta' ? delta.partial_json : delta.text;
        block.input += text;
        return this.#countCharacters(text);
      }
      default:
        return false;
    }
  }

  #countCharacters({ length }: string): boolean {
    this.#characters += length;
    return this.#characters <= MAX_KEPT_CHARACTERS;
  }

  #keepStop({ index, content_block: settled }: BlockStop): boolean {
    const block = this.#blocks[index];
    if (!block || (settled && !isContinuable(settled))) return false;
    if (block.type === 'tool_use') block.isOpen = false;
    return true;
  }

  #close(): void {
    this.#state = CLOSED;
    this.#blocks = [];
  }

  /** Whether another target may continue after this error. */
  #break(error: CanonicalError): boolean {
    const isPossible =
      this.#blocks.length > 0 &&
      this.#blocks.every((block) => block.type === 'text' || !block.isOpen) &&
      findVerdict(error) !== 'stop';
    if (isPossible) this.#cut(error);
    return isPossible;
  }

  #cut(error: CanonicalError): void {
    this.#error ??= error;
    this.#announcement = undefined;
    this.#state = CUT;
  }

  // ---- the response of the next target

  #compare(event: CanonicalStreamEvent, join: Join): readonly CanonicalStreamEvent[] {
    switch (event.type) {
      case 'message_start':
      case 'ping':
        return NO_EVENTS;
      case 'error':
        this.#cut(event.error);
        return NO_EVENTS;
      case 'content_block_start':
      case 'content_block_delta':
      case 'content_block_stop':
        return this.#apply(join.push(event), event);
      case 'message_delta':
      case 'message_stop':
        return this.#apply(join.end(), event);
      default:
        return event satisfies never;
    }
  }

  #apply(step: JoinStep, event: CanonicalStreamEvent): readonly CanonicalStreamEvent[] {
    switch (step.is) {
      case 'waiting':
        return NO_EVENTS;
      case 'diverged':
        this.#state = DIVERGED;
        return NO_EVENTS;
      case 'joined':
        return this.#resume(step, event);
      default:
        return step satisfies never;
    }
  }

  /** From here on the events of the new upstream reach the client. */
  #resume({ text, source, isUnread }: Extract<JoinStep, { is: 'joined' }>, event: CanonicalStreamEvent): CanonicalStreamEvent[] {
    const index = this.#count - 1;
    this.#state = SENDING;
    if (source !== undefined) this.#indexes?.set(source, index);
    const events: CanonicalStreamEvent[] = [];
    if (text !== '') events.push(...this.#forward({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } }));
    if (isUnread) events.push(...this.push(event));
    return events;
  }
}

/** Characters that are kept for a continuation; a longer response is not continued. */
const MAX_KEPT_CHARACTERS = 1024 * 1024;

/** The end of a message that keeps its id. */
function mapEnd({ message: _, late_blocks: late, ...event }: MessageDelta, indexes: Map<number, number>): MessageDelta {
  if (!late) return event;
  return { ...event, late_blocks: late.map((block) => ({ ...block, index: indexes.get(block.index) ?? block.index })) };
}

/** Whether a target can be asked to continue after this block: plain text, or a call of a client's tool. */
function isContinuable(block: ContentBlock): block is Extract<ContentBlock, { type: 'text' | 'tool_use' }> {
  if (block.type === 'text') return !block.citations?.length && !block.signature && !block.refusal;
  return block.type === 'tool_use' && !block.signature && (block.kind ?? 'function') !== 'server' && block.kind !== 'mcp';
}

/** Why the response to a request cannot be continued; undefined when it can. */
export function findObstacle({ output_format: format, messages, parameters }: CanonicalRequest): string | undefined {
  if (format) return 'the response is structured output';
  if (messages.at(-1)?.role === 'assistant') return 'the request ends with an assistant message';
  return (parameters.n ?? 1) > 1 ? 'the request has several choices' : undefined;
}
