import { ArgumentText } from '../../accumulate/argument-text.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';
import type { RuleId } from '../../doctor/rules.ts';
import type { Flow } from '../shared/block-writer.ts';
import { isClientItem } from './built-in-calls.ts';
import { type Channel, filled, type WireItem } from './wire.ts';

/** Names a departure at the place in the stream that is being read, or at another. */
export type ReportHere = (rule: RuleId, detail?: string, offset?: number) => void;

/** `built-in`: a call that the client runs, in an item of its own type. */
export type ItemKind = 'message' | 'reasoning' | 'function' | 'custom' | 'built-in' | 'opaque';

const KINDS: Record<string, ItemKind> = {
  message: 'message',
  reasoning: 'reasoning',
  function_call: 'function',
  custom_tool_call: 'custom',
};

/** Server tools, and whatever the future brings, are opaque. An item without a type is told by its fields. */
export function kindOf(item: WireItem): ItemKind {
  const { type, arguments: args, call_id, content, summary } = item;
  if (typeof type === 'string' && type !== '') {
    if (Object.hasOwn(KINDS, type)) return KINDS[type] ?? 'opaque';
    return isClientItem({ ...item }) ? 'built-in' : 'opaque';
  }
  if (args !== undefined && call_id !== undefined) return 'function';
  if (summary !== undefined) return 'reasoning';
  return content === undefined ? 'opaque' : 'message';
}

export interface ItemFlow extends Flow {
  key: string;
}

/** One content part or summary part of an item. */
export interface Part {
  readonly channel: Channel;
  readonly index: number;
  /** Everything written of it. */
  text: string;
  citations: number;
  hasLogprobs: boolean;
  /** Place among the summary parts of one block, and which block that was. */
  slot: number;
  stretch: number;
  /** Where it is written to, once it has been. */
  flow: ItemFlow | undefined;
}

/** The argument or input text of a call on its way out. */
export interface CallInput {
  fragments: ArgumentText;
  /** Certain, but the block has not opened yet. */
  ready: string;
  sent: string;
  /** The whole value was read. */
  isSettled: boolean;
  /** Some of it may be another call's: nothing goes out before the item is done. */
  isGuess: boolean;
  block: { index: number; start: ToolUseBlock } | undefined;
}

const startInput = (): CallInput => ({
  fragments: new ArgumentText(),
  ready: '',
  sent: '',
  isSettled: false,
  isGuess: false,
  block: undefined,
});

/** One output item: what the wire said of it, and what has been written. */
export class Item {
  readonly kind: ItemKind;
  /** Order of arrival, from 0. */
  readonly position: number;
  readonly index: number | undefined;
  /** The latest form: as added, then as done. */
  wire: WireItem;
  isDone = false;
  /** Where its first event was, and the last piece of its arguments. */
  first = 0;
  last = 0;
  /** What the wire says of it may change. */
  isLive = false;
  isSigned = false;
  readonly parts: Part[] = [];
  readonly call: CallInput | undefined;
  /** The flows of its blocks, by key. */
  readonly flows: Map<string, ItemFlow> = new Map();
  /** Key of its first thinking block, or of its opaque block; undefined until one opened. */
  blockKey: string | undefined;
  /** How many blocks its reasoning was spread over, and the summary parts of the latest one. */
  stretch = 0;
  slots = 0;
  readonly #parts = new Map<Channel, Map<number, Part>>();
  #latest: Part | undefined;

  constructor(kind: ItemKind, position: number, index: number | undefined, wire: WireItem) {
    this.kind = kind;
    this.position = position;
    this.index = index;
    this.wire = wire;
    const isCall = kind === 'function' || kind === 'custom';
    this.call = isCall ? startInput() : undefined;
  }

  /** As far as it is settled: an item that has just begun is in progress. */
  get settled(): WireItem {
    if (!this.isLive) return this.wire;
    const { status: _, ...wire } = this.wire;
    return wire;
  }

  get id(): string | undefined {
    return filled(this.wire.id);
  }

  /** Server items have one, too, but OpenAI changes it between added and done. */
  get callId(): string | undefined {
    return this.call && filled(this.wire.call_id);
  }

  /** Without an index: the part that was last spoken of. */
  findPart(channel: Channel, index: number | undefined): Part | undefined {
    if (index !== undefined) return this.#parts.get(channel)?.get(index);
    return this.#latest?.channel === channel ? this.#latest : undefined;
  }

  addPart(channel: Channel, index: number = this.parts.length): Part {
    const part: Part = { channel, index, text: '', citations: 0, hasLogprobs: false, slot: 0, stretch: -1, flow: undefined };
    const ofChannel = this.#parts.get(channel) ?? new Map<number, Part>();
    ofChannel.set(index, part);
    this.#parts.set(channel, ofChannel);
    this.parts.push(part);
    this.#latest = part;
    return part;
  }

  /** From now on the index means this part: a list counts its parts in its own way. */
  bindPart(index: number, part: Part): void {
    this.#parts.get(part.channel)?.set(index, part);
  }

  /** Whether `wire` is about this item: the same call, an item still open, or one that is merely said again. */
  isSame(wire: WireItem): boolean {
    if (this.id !== undefined && wire.id === this.id) return true;
    if ((this.kind === 'opaque' || this.kind === 'built-in') && wire.type !== this.wire.type) return false;
    const callId = filled(wire.call_id);
    return this.callId === undefined || callId === undefined ? !this.isDone : callId === this.callId;
  }
}

/**
 * The items of a response. They are found by `output_index`; ids are only a fallback, since GitHub Copilot gives every event another one.
 * An index may hold one item of each kind: servers that send 0 for everything are told apart by that.
 */
export class ItemStore {
  readonly all: Item[] = [];
  readonly #byIndex = new Map<number, Map<ItemKind, Item>>();
  readonly #byId = new Map<string, Item>();
  readonly #latest = new Map<ItemKind, Item>();
  /** Calls that may still take arguments, in their order; those that are whole are removed when they are met. */
  readonly #open = new Set<Item>();

  add(kind: ItemKind, index: number | undefined, wire: WireItem): Item {
    const item = new Item(kind, this.all.length, index, wire);
    this.all.push(item);
    this.#latest.set(kind, item);
    if (item.id !== undefined) this.#byId.set(item.id, item);
    if (item.callId !== undefined) this.#byId.set(item.callId, item);
    if (item.call) this.#open.add(item);
    if (index === undefined) return item;
    const ofIndex = this.#byIndex.get(index) ?? new Map<ItemKind, Item>();
    ofIndex.set(kind, item);
    this.#byIndex.set(index, ofIndex);
    return item;
  }

  find(kind: ItemKind, index: number | undefined, id: unknown): Item | undefined {
    const bound = index === undefined ? undefined : this.#byIndex.get(index)?.get(kind);
    if (bound) return bound;
    const named = typeof id === 'string' ? this.#byId.get(id) : undefined;
    if (named?.kind === kind && !named.isDone) return named;
    return index === undefined ? this.#latest.get(kind) : undefined;
  }

  /**
   * The call that a delta without id and index is for: with several open, the first whose arguments are not whole. That is a guess as long
   * as calls overlap, and what is guessed waits for the end of its item.
   */
  guessCall(): { item: Item; isGuess: boolean } | undefined {
    let first: Item | undefined;
    for (const item of this.#open) {
      if (item.isDone || !item.call || item.call.isSettled || item.call.fragments.isComplete) this.#open.delete(item);
      else if (first) return { item: first, isGuess: true };
      else first = item;
    }
    return first && { item: first, isGuess: first.call?.isGuess === true };
  }

  has(index: number | undefined): boolean {
    return index !== undefined && this.#byIndex.has(index);
  }
}
