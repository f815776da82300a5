import { wellFormed } from '../accumulate/chat-delta.ts';
import { type BlockDelta, blockDelta, type CanonicalStreamEvent } from '../canonical/events.ts';
import type { Citation, ContentBlock, ToolUseBlock } from '../canonical/message.ts';

export type Emit = (event: CanonicalStreamEvent) => void;

/** What a stretch of content is: a change of kind, or of `key` (the wire's own block), closes the open block and opens another. */
export interface Flow {
  kind: 'text' | 'refusal' | 'thinking' | 'audio' | 'opaque';
  /** Tells two wire blocks of one kind apart; protocols that have no blocks leave it out. */
  key?: string | number;
  /** The block as it starts; asked for only when one is opened. */
  start(): ContentBlock;
}

interface OpenBlock {
  index: number;
  flow: Flow | undefined;
  /** A delta of one high surrogate that waits for its other half: no delta ends in the middle of a character. */
  carry: BlockDelta | undefined;
}

/**
 * Opens, feeds and closes the blocks of one choice so that the stream keeps the rules S2, S3, S4 and S11: dense indexes, one text-like block
 * at a time, only tool calls overlap. Content that arrives while a call is still open waits until the call stops; nothing is lost.
 */
export class BlockEmitter {
  readonly #emit: Emit;
  readonly #choice: { choice: number } | undefined;
  #next = 0;
  #flow: OpenBlock | undefined;
  readonly #tools = new Map<number, OpenBlock>();
  /** Index of the last block of each flow, for signatures and citations that arrive late. */
  readonly #last = new Map<string | number, number>();
  #held: (() => void)[] = [];

  constructor(emit: Emit, choice = 0) {
    this.#emit = emit;
    this.#choice = choice === 0 ? undefined : { choice };
  }

  get isEmpty(): boolean {
    return this.#next === 0;
  }

  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  /** Writes text-like content, opening its block when it is not the open one. */
  write(flow: Flow, delta: BlockDelta): void {
    if (this.#tools.size > 0) {
      this.#held.push(() => this.write(flow, delta));
      return;
    }
    this.#send(this.#openFlow(flow), delta);
  }

  /** Opens a block without content: some sources send empty ones that must survive (a signature may follow). */
  open(flow: Flow): void {
    if (this.#tools.size > 0) this.#held.push(() => this.open(flow));
    else this.#openFlow(flow);
  }

  #openFlow(flow: Flow): OpenBlock {
    const open = this.#flow;
    if (open?.flow?.kind === flow.kind && open.flow.key === flow.key) return open;
    this.closeFlow();
    const block = this.#start(flow.start(), flow);
    this.#flow = block;
    this.#last.set(flow.key ?? flow.kind, block.index);
    return block;
  }

  #start(content_block: ContentBlock, flow: Flow | undefined): OpenBlock {
    const block: OpenBlock = { index: this.#next++, flow, carry: undefined };
    this.#emit({ type: 'content_block_start', index: block.index, ...this.#choice, content_block });
    return block;
  }

  /** A block that arrives whole. */
  whole(block: ContentBlock, key?: string | number): void {
    if (this.#tools.size > 0) {
      this.#held.push(() => this.whole(block, key));
      return;
    }
    this.closeFlow();
    const { index } = this.#start(block, undefined);
    if (key !== undefined) this.#last.set(key, index);
    this.#emit({ type: 'content_block_stop', index, ...this.#choice });
  }

  /** Closes the open text-like block; with a key, only if it is that one. `final` corrects what was settled late. */
  closeFlow(key?: string | number, final?: ContentBlock): void {
    const block = this.#flow;
    if (!block || (key !== undefined && block.flow?.key !== key)) {
      if (this.#held.length > 0 && key !== undefined) this.#held.push(() => this.closeFlow(key, final));
      return;
    }
    this.#flow = undefined;
    this.#stop(block, final);
  }

  openTool(block: ToolUseBlock): number {
    this.closeFlow();
    const open = this.#start(block, undefined);
    this.#tools.set(open.index, open);
    return open.index;
  }

  /** Argument text of a function, or input text of a custom tool. */
  writeTool(index: number, text: string, isCustom = false): void {
    const block = this.#tools.get(index);
    if (block && text !== '')
      this.#send(block, isCustom ? { type: 'input_text_delta', text } : { type: 'input_json_delta', partial_json: text });
  }

  stopTool(index: number, final?: ContentBlock): void {
    const block = this.#tools.get(index);
    if (!block) return;
    this.#tools.delete(index);
    this.#stop(block, final);
    if (this.#tools.size > 0) return;
    const held = this.#held;
    this.#held = [];
    for (const write of held) write();
  }

  /** A delta for a block that may have stopped already: only signatures may come that late. False when there is no such block. */
  sign(at: string | number, delta: Extract<BlockDelta, { type: 'signature_delta' }>): boolean {
    if (this.#held.length > 0) {
      this.#held.push(() => this.sign(at, delta));
      return true;
    }
    const index = this.#last.get(at);
    if (index === undefined) return false;
    this.emitDelta(index, delta);
    return true;
  }

  /** The last block of a flow, open or not. */
  indexOf(key: string | number): number | undefined {
    return this.#last.get(key);
  }

  isOpen(key: string | number): boolean {
    return this.#flow?.flow?.key === key || this.#flow?.flow?.kind === key;
  }

  /** Stops everything that is open and lets out what waited. */
  end(): void {
    for (const index of [...this.#tools.keys()]) this.stopTool(index);
    this.closeFlow();
  }

  #send(block: OpenBlock, delta: BlockDelta): void {
    const ready = carrySurrogate(block, delta);
    if (ready) this.emitDelta(block.index, ready);
  }

  /** A delta for the block of this index, whether it is open or has stopped. */
  emitDelta(index: number, delta: BlockDelta): void {
    this.#emit(blockDelta(index, this.#choice?.choice, delta));
  }

  #stop(block: OpenBlock, final: ContentBlock | undefined): void {
    const { index, carry } = block;
    if (carry) this.emitDelta(index, withText(carry, '\uFFFD'));
    this.#emit({ type: 'content_block_stop', index, ...this.#choice, ...(final && { content_block: final }) });
  }
}

/** A citation that comes when its text has closed: a block without text tells it, and not where in the text it stood. */
export function unplaced({ start: _start, end: _end, ...citation }: Citation): Citation {
  return citation;
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;

/** The delta with the waiting half in front and without a half at its end; undefined when nothing is left to send. */
function carrySurrogate(block: OpenBlock, delta: BlockDelta): BlockDelta | undefined {
  const text = textOf(delta);
  const endsInHalf = isHighSurrogate(text.charCodeAt(text.length - 1));
  if (text === '' || (block.carry === undefined && !endsInHalf && wellFormed(text) === text)) return delta;
  const half = block.carry ? textOf(block.carry) : '';
  const joined = half + text;
  block.carry = endsInHalf ? withText(delta, joined.slice(-1)) : undefined;
  const ready = wellFormed(endsInHalf ? joined.slice(0, -1) : joined);
  return ready === '' ? undefined : withText(delta, ready);
}

/** The text that a delta brings; "" for those that bring none. */
function textOf(delta: BlockDelta): string {
  if (delta.type === 'text_delta' || delta.type === 'input_text_delta') return delta.text;
  if (delta.type === 'thinking_delta') return delta.thinking;
  return delta.type === 'input_json_delta' ? delta.partial_json : '';
}

function withText(delta: BlockDelta, text: string): BlockDelta {
  if (delta.type === 'thinking_delta') return { ...delta, thinking: text };
  if (delta.type === 'input_json_delta') return { ...delta, partial_json: text };
  return delta.type === 'text_delta' || delta.type === 'input_text_delta' ? { ...delta, text } : delta;
}
