import { wellFormed } from '../accumulate/chat-delta.ts';
import { type BlockDelta, blockDelta, type CanonicalStreamEvent } from '../canonical/events.ts';
import type { Citation, ContentBlock, ToolUseBlock } from '../canonical/message.ts';

/**
 * Opens, feeds and closes the blocks of one choice by the rules S2, S3, S4 and S11 of docs/canonical.md: dense indexes,
 * one text-like block at a time, only tool calls overlap. Content that arrives while a call is open is held until the
 * call stops.
 */
export class BlockEmitter {
  readonly #emit: Emit;
  readonly #choice: { choice: number } | undefined;
  #next = 0;
  #flow: OpenBlock | undefined;
  readonly #tools = new Map<number, OpenBlock>();
  /** Index of the last block of each flow, for signatures and citations that arrive late. */
  readonly #last = new Map<string | number, number>();
  /** Content that waits until the open calls stop. */
  #held: (() => void)[] = [];

  constructor(emit: Emit, choice = 0) {
    this.#emit = emit;
    this.#choice = choice === 0 ? undefined : { choice };
  }

  /** Whether no block was opened yet. */
  get isEmpty(): boolean {
    return this.#next === 0;
  }

  /** Whether content waits for an open call. */
  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  /** Writes text-like content; opens its block if another one, or none, is open. */
  write(flow: Flow, delta: BlockDelta): void {
    if (this.#tools.size > 0) {
      this.#held.push(() => this.write(flow, delta));
      return;
    }
    this.#send(this.#openFlow(flow), delta);
  }

  /**
   * Opens a block without content: some sources send empty blocks that must be kept, because a signature may follow.
   */
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

  /** Writes a block that arrives complete. */
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

  /**
   * Closes the open text-like block; with a key, only if it is that one. `final` replaces the block with its settled
   * form.
   */
  closeFlow(key?: string | number, final?: ContentBlock): void {
    const block = this.#flow;
    if (!block || (key !== undefined && block.flow?.key !== key)) {
      if (this.#held.length > 0 && key !== undefined) this.#held.push(() => this.closeFlow(key, final));
      return;
    }
    this.#flow = undefined;
    this.#stop(block, final);
  }

  /** Opens a tool call and returns its index. */
  openTool(block: ToolUseBlock): number {
    this.closeFlow();
    const open = this.#start(block, undefined);
    this.#tools.set(open.index, open);
    return open.index;
  }

  /** Writes argument text of a function, or input text of a custom tool. */
  writeTool(index: number, text: string, isCustom = false): void {
    const block = this.#tools.get(index);
    if (block && text !== '')
      this.#send(block, isCustom ? { type: 'input_text_delta', text } : { type: 'input_json_delta', partial_json: text });
  }

  /** Stops a tool call. After the last open one, held content is written. */
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

  /** Writes a signature, which may arrive after its block stopped. False when there is no such block. */
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

  /** The index of the last block of a flow, open or not. */
  indexOf(key: string | number): number | undefined {
    return this.#last.get(key);
  }

  /** Whether the open text-like block has this key or kind. */
  isOpen(key: string | number): boolean {
    return this.#flow?.flow?.key === key || this.#flow?.flow?.kind === key;
  }

  /** Stops all open blocks and writes held content. */
  end(): void {
    for (const index of [...this.#tools.keys()]) this.stopTool(index);
    this.closeFlow();
  }

  #send(block: OpenBlock, delta: BlockDelta): void {
    const ready = carrySurrogate(block, delta);
    if (ready) this.emitDelta(block.index, ready);
  }

  /** Emits a delta for a block, whether it is open or has stopped. */
  emitDelta(index: number, delta: BlockDelta): void {
    this.#emit(blockDelta(index, this.#choice?.choice, delta));
  }

  #stop(block: OpenBlock, final: ContentBlock | undefined): void {
    const { index, carry } = block;
    if (carry) this.emitDelta(index, withText(carry, '\uFFFD'));
    this.#emit({ type: 'content_block_stop', index, ...this.#choice, ...(final && { content_block: final }) });
  }
}

/** Receives the canonical events of a decoder. */
export type Emit = (event: CanonicalStreamEvent) => void;

/** A stretch of text-like content. A change of `kind` or `key` closes the open block and opens another. */
export interface Flow {
  kind: 'text' | 'refusal' | 'thinking' | 'audio' | 'opaque';
  /** Distinguishes wire blocks of one kind; absent in protocols without blocks. */
  key?: string | number;
  /** Builds the block at its start; called only when a block is opened. */
  start(): ContentBlock;
}

interface OpenBlock {
  index: number;
  flow: Flow | undefined;
  /** A delta of one high surrogate, held until its other half arrives (S11). */
  carry: BlockDelta | undefined;
}

/** The delta with the held half prepended and without a half at its end; undefined when nothing is left to send. */
function carrySurrogate(block: OpenBlock, delta: BlockDelta): BlockDelta | undefined {
  const text = readText(delta);
  const endsInHalf = isHighSurrogate(text.charCodeAt(text.length - 1));
  if (text === '' || (block.carry === undefined && !endsInHalf && wellFormed(text) === text)) return delta;
  const half = block.carry ? readText(block.carry) : '';
  const joined = half + text;
  block.carry = endsInHalf ? withText(delta, joined.slice(-1)) : undefined;
  const ready = wellFormed(endsInHalf ? joined.slice(0, -1) : joined);
  return ready === '' ? undefined : withText(delta, ready);
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;

/** The text of a delta; "" for deltas without text. */
function readText(delta: BlockDelta): string {
  if (delta.type === 'text_delta' || delta.type === 'input_text_delta') return delta.text;
  if (delta.type === 'thinking_delta') return delta.thinking;
  return delta.type === 'input_json_delta' ? delta.partial_json : '';
}

function withText(delta: BlockDelta, text: string): BlockDelta {
  if (delta.type === 'thinking_delta') return { ...delta, thinking: text };
  if (delta.type === 'input_json_delta') return { ...delta, partial_json: text };
  return delta.type === 'text_delta' || delta.type === 'input_text_delta' ? { ...delta, text } : delta;
}

/** A citation that arrives after its text closed: it goes into a block without text, so it has no offsets. */
export function withoutOffsets({ start: _start, end: _end, ...citation }: Citation): Citation {
  return citation;
}
