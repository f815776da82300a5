/**
 * Which item an event of a Responses stream belongs to, over the whole life of the stream. Servers give an item one id
 * or output_index when it is added, another when it is done and a third in the final response, and say some of it again
 * each time. Names decide first: ids, then the place. Where they do not, kind, name and content do. docs/item-identity.md
 * has the rules.
 */

import { ArgumentText } from '../../accumulate/argument-text.ts';
import type { ToolUseBlock } from '../../canonical/message.ts';
import type { Flow } from '../../codec/block-emitter.ts';
import { parseJson, sameJson, writeJson } from '../../json/json.ts';
import { readListedParts } from './blocks.ts';
import { isClientItem } from './tools.ts';
import { type Channel, nonBlank, readArguments, type WireItem } from './wire.ts';

/** The kind of an item. `built-in`: a call that the client runs, with an item type of its own. */
export type ItemKind = 'message' | 'reasoning' | 'function' | 'custom' | 'built-in' | 'opaque';

/**
 * How much the stream has said of an item. `implied`: events about it; `added`: its beginning; `held`: its end, which lacks the
 * name or the arguments, so that the final response may still add them; `done`: its end.
 */
export type ItemState = 'implied' | 'added' | 'held' | 'done';

/** An output item: its names, its wire form, and what was written of it. */
export class Item {
  readonly kind: ItemKind;
  /** Order of arrival, from 0. */
  readonly position: number;
  readonly index: number | undefined;
  /** The wire form that it began with, and the latest one. */
  readonly begun: WireItem;
  wire: WireItem;
  state: ItemState = 'implied';
  /** A call that was done before under the same call id: this one waits for its end, and counts only if it differs. */
  original: Item | undefined;
  /** The offsets of its first event and of the last piece of its arguments. */
  first = 0;
  last = 0;
  /** The item is in progress, so its fields may change. */
  isLive = false;
  isSigned = false;
  readonly parts: Part[] = [];
  readonly call: CallInput | undefined;
  /** The flows of its blocks, by key. */
  readonly flows: Map<string, ItemFlow> = new Map();
  /** The key of its first thinking block or of its opaque block; undefined until one has started. */
  blockKey: string | undefined;
  /** The number of blocks of its reasoning, and the number of summary parts in the latest one. */
  stretch = 0;
  slots = 0;
  /** The first part of its reasoning that had text. */
  lead: Part | undefined;
  readonly #parts = new Map<Channel, Map<number, Part>>();
  readonly #last = new Map<Channel, Part>();
  #latest: Part | undefined;

  constructor(kind: ItemKind, position: number, index: number | undefined, wire: WireItem) {
    this.kind = kind;
    this.position = position;
    this.index = index;
    this.begun = wire;
    this.wire = wire;
    const isCall = kind === 'function' || kind === 'custom';
    this.call = isCall ? newInput() : undefined;
  }

  /** Whether its end was read. */
  get isDone(): boolean {
    return this.state === 'done' || this.state === 'held';
  }

  /** The wire form without the status while the item is in progress. */
  get settled(): WireItem {
    if (!this.isLive) return this.wire;
    const { status: _, ...wire } = this.wire;
    return wire;
  }

  get id(): string | undefined {
    return nonBlank(this.wire.id);
  }

  /** The call id; only of calls, because OpenAI changes that of server items between added and done. */
  get callId(): string | undefined {
    return this.call && nonBlank(this.wire.call_id);
  }

  /** The text that was read of its parts, or the arguments of a call. */
  get content(): string {
    const { call } = this;
    if (!call) return joinParts(this.parts);
    return call.isSettled || this.kind === 'custom' ? call.sent + call.ready : call.fragments.text;
  }

  /** Whether nothing was read of its content. */
  get isBlank(): boolean {
    return this.call ? isBlankInput(this.content) : this.parts.every(({ text }) => text === '');
  }

  /** The part with this index; without an index, the latest part. */
  findPart(channel: Channel, index: number | undefined): Part | undefined {
    if (index !== undefined) return this.#parts.get(channel)?.get(index);
    return this.#latest?.channel === channel ? this.#latest : undefined;
  }

  /** The latest part of a channel. */
  lastPart(channel: Channel): Part | undefined {
    return this.#last.get(channel);
  }

  /** Whether a complete text or complete arguments begin with what was read. */
  isContinuedBy(whole: string): boolean {
    const seen = this.call ? this.content : (this.parts.at(-1)?.text ?? '');
    return seen !== '' && (whole.startsWith(seen) || (this.call !== undefined && isSameInput(seen, whole)));
  }

  /** Whether one of its latest parts has this text. */
  says(text: string): boolean {
    return text !== '' && this.parts.slice(-MAX_SEARCHED).some((part) => part.text === text);
  }

  /**
   * The open part that a delta with the index of no part continues: some servers count the index up with every event.
   * Parts of a summary that were never announced are told apart by their index alone.
   */
  openPart(channel: Channel): Part | undefined {
    const part = this.lastPart(channel);
    return part && !part.isDone && (part.isAdded || channel !== 'summary') ? part : undefined;
  }

  /**
   * The part that a complete text belongs to: the one of its index if the text continues it, else one that it continues or
   * repeats.
   */
  findStated(channel: Channel, index: number | undefined, whole: string): Part | undefined {
    const named = this.findPart(channel, index);
    const open = this.openPart(channel);
    if (whole === '') return named ?? open;
    if (named && whole.startsWith(named.text)) return named;
    if (open && whole.startsWith(open.text)) return open;
    return this.parts.slice(-MAX_SEARCHED).find((part) => part.channel === channel && part.text === whole) ?? named;
  }

  addPart(channel: Channel, index: number = this.parts.length, isAdded = false): Part {
    const flow = undefined;
    const part: Part = {
      channel,
      index,
      isAdded,
      isDone: false,
      text: '',
      isOwn: false,
      citations: 0,
      hasLogprobs: false,
      slot: 0,
      stretch: -1,
      flow,
    };
    const ofChannel = this.#parts.get(channel) ?? new Map<number, Part>();
    ofChannel.set(index, part);
    this.#parts.set(channel, ofChannel);
    this.parts.push(part);
    this.#last.set(channel, part);
    this.#latest = part;
    return part;
  }

  /** Assigns an index to a part: complete items may number their parts differently. */
  bindPart(index: number, part: Part): void {
    this.#parts.get(part.channel)?.set(index, part);
  }
}

const newInput = (): CallInput => ({
  fragments: new ArgumentText(),
  ready: '',
  sent: '',
  isSettled: false,
  isGuess: false,
  block: undefined,
});

/** A content part or summary part of an item. */
export interface Part {
  readonly channel: Channel;
  readonly index: number;
  /** It was announced by an event of its own. */
  readonly isAdded: boolean;
  /** Its complete text was read: another index begins another part. */
  isDone: boolean;
  /** The text that was written, or is held because it repeats another part. */
  text: string;
  /** Its text differs from that of the other channel. */
  isOwn: boolean;
  citations: number;
  hasLogprobs: boolean;
  /** The position among the summary parts of a block, and the number of that block. */
  slot: number;
  stretch: number;
  /** The block that it is written to; set with the first text. */
  flow: ItemFlow | undefined;
}

/** The argument or input text of a call, and how much of it was sent. */
export interface CallInput {
  fragments: ArgumentText;
  /** Text that is certain, held until the block has started. */
  ready: string;
  sent: string;
  /** The complete value was read. */
  isSettled: boolean;
  /** Some of it may belong to another call: nothing is sent before the item is done. */
  isGuess: boolean;
  block: { index: number; start: ToolUseBlock } | undefined;
}

/** A block of an item. */
export interface ItemFlow extends Flow {
  key: string;
}

/** Open items and parts that are compared with a statement whose names say nothing; all of them would be quadratic. */
const MAX_SEARCHED = 16;

// ---- what items say

const KINDS: Record<string, ItemKind> = {
  message: 'message',
  reasoning: 'reasoning',
  function_call: 'function',
  custom_tool_call: 'custom',
};

/**
 * The kind of an item. Server tools and unknown types are opaque; an item without a type is recognised by its fields.
 */
function findKind(item: WireItem): ItemKind {
  const { type, arguments: args, call_id, content, summary } = item;
  if (typeof type === 'string' && type !== '') {
    if (Object.hasOwn(KINDS, type)) return KINDS[type] ?? 'opaque';
    return isClientItem({ ...item }) ? 'built-in' : 'opaque';
  }
  if (args !== undefined && call_id !== undefined) return 'function';
  if (summary !== undefined) return 'reasoning';
  return content === undefined ? 'opaque' : 'message';
}

const isCallKind = (kind: ItemKind): boolean => kind === 'function' || kind === 'custom';

/** The text of parts: summaries first, as items list them. */
const joinParts = (parts: readonly { channel: Channel | undefined; text: string }[]): string =>
  [...parts.filter(({ channel }) => channel === 'summary'), ...parts.filter(({ channel }) => channel !== 'summary')]
    .map(({ text }) => text)
    .join('');

/** The text or the arguments of a complete item. */
function readContent(kind: ItemKind, wire: WireItem): string {
  if (isCallKind(kind)) return readArguments(kind === 'custom' ? wire.input : wire.arguments);
  return joinParts([
    ...readListedParts(wire.summary, 'summary'),
    ...readListedParts(wire.content, kind === 'message' ? 'text' : 'full'),
  ]);
}

/** `{}` stands before the arguments of some servers. */
const isBlankInput = (text: string): boolean => text === '' || text === '{}';

/** A complete form of an item: of `output_item.added` and `.done`, or listed by the final response. */
export class Statement {
  readonly kind: ItemKind;
  readonly index: number | undefined;
  readonly wire: WireItem;
  readonly id: string | undefined;
  readonly callId: string | undefined;
  #content: string | undefined;

  constructor(wire: WireItem, index: number | undefined) {
    this.kind = findKind(wire);
    this.index = index;
    this.wire = wire;
    this.id = nonBlank(wire.id);
    this.callId = isCallKind(this.kind) ? nonBlank(wire.call_id) : undefined;
  }

  /** The text or the arguments; read only where names do not decide. */
  get content(): string {
    this.#content ??= readContent(this.kind, this.wire);
    return this.#content;
  }
}

/** How well an item agrees with a statement: not at all, as one of them is empty, as its beginning, or entirely. */
type Fit = 0 | 1 | 2 | 3;

function findFit(item: Item, said: Statement): Fit {
  const { kind, wire } = said;
  if (kind !== item.kind) return 0;
  if (kind === 'opaque' || kind === 'built-in') return wire.type === item.wire.type ? 1 : 0;
  if (item.call && !isSameName(item.wire, wire)) return 0;
  if (item.parts.length > MAX_PARTS) return 0;
  const { content } = said;
  if (content === '' || item.isBlank) return 1;
  // Lengths first, so that a short statement costs no long text.
  if (!item.call && countText(item) > content.length) return 0;
  const seen = item.content;
  if (seen === content) return 3;
  if (item.call && isSameInput(seen, content)) return 3;
  return content.startsWith(seen) ? 2 : 0;
}

/** Parts of an item whose texts are compared; more would be quadratic. */
export const MAX_PARTS = 64;

function isSameName(a: WireItem, b: WireItem): boolean {
  const [one, other] = [nonBlank(a.name), nonBlank(b.name)];
  return one === undefined || other === undefined || one === other;
}

/**
 * Whether two argument texts are the same JSON: relays write it again with other spaces. Numbers that JavaScript rounds are
 * compared as text; texts of very different lengths are not parsed, so that a short statement costs no long comparison.
 */
function isSameInput(a: string, b: string): boolean {
  if (a.length > 4 * b.length || b.length > 4 * a.length || LONG_NUMBER.test(a) || LONG_NUMBER.test(b)) return false;
  const value = parseJson(a);
  return value !== undefined && sameJson(value, parseJson(b));
}

const LONG_NUMBER = /\d{16}/;

// ---- matching

/** The items of a response, and which of them a name, a place or a statement means. */
export class ItemRegistry {
  readonly all: Item[] = [];
  readonly #byIndex = new Map<number, Map<ItemKind, Item>>();
  readonly #byId = new Map<string, Item>();
  /** Ids of several items: they name none of them. */
  readonly #shared = new Set<string>();
  readonly #latest = new Map<ItemKind, Item>();
  /** Items of each kind that are not done; done ones are removed on lookup. */
  readonly #open = new Map<ItemKind, Set<Item>>();
  /** Calls that may still receive arguments, in order; complete ones are removed on lookup. */
  readonly #waiting = new Set<Item>();

  add(kind: ItemKind, index: number | undefined, wire: WireItem): Item {
    const item = new Item(kind, this.all.length, index, wire);
    this.all.push(item);
    this.#latest.set(kind, item);
    const open = this.#open.get(kind);
    if (open) open.add(item);
    else this.#open.set(kind, new Set([item]));
    if (item.call) this.#waiting.add(item);
    this.#place(item, index);
    this.#name(item, item.id);
    this.#name(item, readCallId(kind, wire));
    return item;
  }

  #place(item: Item, index: number | undefined): void {
    if (index === undefined) return;
    const ofIndex = this.#byIndex.get(index) ?? new Map<ItemKind, Item>();
    ofIndex.set(item.kind, item);
    this.#byIndex.set(index, ofIndex);
  }

  #name(item: Item, id: string | undefined): void {
    if (id === undefined) return;
    const before = this.#byId.get(id);
    if (before && before !== item) this.#shared.add(id);
    this.#byId.set(id, item);
  }

  /** Gives an item the names of an event or statement that was found to be about it. Open items keep their own. */
  bind(item: Item, index: number | undefined, ...ids: readonly unknown[]): Item {
    if (index !== undefined && this.at(item.kind, index)?.isDone !== false) this.#place(item, index);
    for (const id of ids) if (typeof id === 'string' && id.trim() !== '' && !this.#byId.has(id)) this.#byId.set(id, item);
    return item;
  }

  /** The latest item of a kind. */
  latest(kind: ItemKind): Item | undefined {
    return this.#latest.get(kind);
  }

  /** The item of a kind at an index. */
  at(kind: ItemKind, index: number | undefined): Item | undefined {
    return index === undefined ? undefined : this.#byIndex.get(index)?.get(kind);
  }

  #named(kind: ItemKind, id: unknown): Item | undefined {
    const item = typeof id === 'string' ? this.#byId.get(id) : undefined;
    return item?.kind === kind ? item : undefined;
  }

  #unique(kind: ItemKind, id: string | undefined): Item | undefined {
    return id === undefined || this.#shared.has(id) ? undefined : this.#named(kind, id);
  }

  /**
   * The item that an event names: an open one with its id, else the open one at its index, because GitHub Copilot changes ids
   * with every event. An index may hold one item of each kind, because some servers send 0 for all.
   */
  find(kind: ItemKind, index: number | undefined, id: unknown): Item | undefined {
    const placed = this.at(kind, index);
    const isPlaced = placed !== undefined && !placed.isDone;
    if (placed && placed.id === id && (isPlaced || id !== undefined)) return placed;
    const named = this.#named(kind, id);
    if (named && !named.isDone && !(isPlaced && this.#shared.has(String(id)))) return named;
    return isPlaced ? placed : undefined;
  }

  /**
   * The item that an event without usable names belongs to: an open one that was added, first of all one that the complete text
   * of the event continues, then one without content. Without any, what the names once meant, or the latest item for an event
   * without index.
   */
  guess(kind: ItemKind, index: number | undefined, id: unknown, whole: string): Item | undefined {
    const latest = this.#latest.get(kind);
    if (index === undefined && latest?.isDone === false) return latest;
    const past = this.at(kind, index) ?? this.#named(kind, id);
    const added = this.#listOpen(kind).filter(({ state }) => state === 'added');
    const fitting = whole === '' ? undefined : added.find((item) => item.isContinuedBy(whole));
    const found = fitting ?? added.find(({ isBlank }) => isBlank) ?? (past ? undefined : added.at(-1));
    return found ? this.bind(found, index, id) : (past ?? (index === undefined ? latest : undefined));
  }

  #listOpen(kind: ItemKind): Item[] {
    const open = this.#open.get(kind);
    const found: Item[] = [];
    for (const item of open ?? []) {
      if (item.isDone) open?.delete(item);
      else found.push(item);
      if (found.length >= MAX_SEARCHED) break;
    }
    return found;
  }

  /** The open item that a statement of `output_item.added` is about: its events came first, or it is added again. */
  findAdded({ kind, index, id, callId, wire }: Statement): Item | undefined {
    const placed = this.at(kind, index);
    return [placed, this.#named(kind, callId), this.#named(kind, id)].find((item) => {
      if (!item || item.isDone || isOtherCall(item, callId)) return false;
      if (!item.call && item.kind !== 'message' && item.kind !== 'reasoning' && wire.type !== item.wire.type) return false;
      return item === placed || item.state === 'implied' || item.isBlank || (callId !== undefined && callId === item.callId);
    });
  }

  /** The call that was done under the call id of one that is added: perhaps the same call once more. */
  findOriginal({ kind, callId, wire }: Statement): Item | undefined {
    const item = this.#named(kind, callId);
    return item?.isDone && item.call && isSameName(item.wire, wire) ? item : undefined;
  }

  /** The item whose end a statement is. */
  findDone(said: Statement): Item | undefined {
    const { kind, index, id } = said;
    const callId = readCallId(kind, said.wire);
    for (const one of [kind, otherCall(kind)])
      for (const item of [this.#unique(one, callId), this.#unique(one, id)]) if (item && !item.isDone) return item;
    const placed = this.at(kind, index);
    if (placed && !placed.isDone && isContinued(placed, said)) return placed;
    const open = this.#listOpen(kind);
    const fits = open.map((item) => findFit(item, said));
    const best = Math.max(0, ...fits);
    const found = best > 0 ? open[fits.indexOf(best as Fit)] : undefined; // one of the fits
    const again = best > 1 ? undefined : this.#findRepeated(said, placed);
    if (found && !(again && (findFit(again, said) === 3 || (again === placed && isNamedBy(again, said))))) return found;
    if (again) return again;
    // The only text that is open ends here, whatever its end says.
    const [only] = open;
    const isOnly = open.length === 1 && only?.state === 'added' && only.parts.length > 0;
    return isOnly ? only : undefined;
  }

  /** The item that a response lists a second time. */
  findListedAgain(said: Statement): Item | undefined {
    const item = this.#findRepeated(said, undefined);
    return item && findFit(item, said) === 3 ? item : undefined;
  }

  /** The item that is done and whose end is said again. */
  #findRepeated(said: Statement, placed: Item | undefined): Item | undefined {
    const { kind, index, id, wire } = said;
    const callId = readCallId(kind, wire);
    const hasNames = index !== undefined || id !== undefined || callId !== undefined;
    const known = [this.#named(kind, callId), this.#named(kind, id), placed, hasNames ? undefined : this.#latest.get(kind)];
    return known.find((item) => item !== undefined && isRepeated(item, said));
  }

  /**
   * The call that a delta without id and index belongs to: the first open one with incomplete arguments. While calls
   * overlap that is a guess, and guessed arguments wait for the end of their item.
   */
  guessCall(): { item: Item; isGuess: boolean } | undefined {
    let first: Item | undefined;
    for (const item of this.#waiting) {
      if (item.isDone || !item.call || item.call.isSettled || item.call.fragments.isComplete) this.#waiting.delete(item);
      else if (first) return { item: first, isGuess: true };
      else first = item;
    }
    return first && { item: first, isGuess: first.call?.isGuess === true };
  }

  has(index: number | undefined): boolean {
    return index !== undefined && this.#byIndex.has(index);
  }

  /** The open text of the other kind whose end a statement is: servers end reasoning as a message. `rest`: what that adds. */
  findCrossed(said: Statement): Restated | undefined {
    const item = isTextKind(said.kind) ? this.find(otherText(said.kind), said.index, said.id) : undefined;
    const rest = item && !item.isDone && !item.isBlank ? findMore(item, said.content) : undefined;
    return item && rest !== undefined ? { item, rest } : undefined;
  }

  /** The items that a response lists, each with the matching item of the stream, or undefined. */
  pair(output: readonly WireItem[]): Pair[] {
    const said = output.map((wire, at) => new Statement(wire, at));
    const items = matchEntries(said, this.all, LIST_KEYS);
    return said.map((one, at) => ({ said: one, item: items[at] }));
  }

  /** The texts of a kind, if the list cuts them into other items than the stream did: the last one, and what the list adds to it. */
  findRecut(kind: ItemKind, pairs: readonly Pair[]): Restated | undefined {
    const listed = pairs.filter(({ said }) => said.kind === kind && said.content !== '');
    const items = this.all.filter((item) => item.kind === kind && !item.isBlank);
    const item = items.at(-1);
    const paired = new Set(listed.map((pair) => pair.item));
    const isCut = paired.has(undefined)
      ? listed.some((pair) => pair.item && !pair.said.content.startsWith(pair.item.content))
      : items.some((one) => !paired.has(one));
    if (!item || listed.length === 0 || !isCut) return undefined;
    const rest = findRest(listed.map(({ said }) => said.content).join(''), items.map(({ content }) => content).join(''));
    return rest === undefined ? undefined : { item, rest };
  }

  /** Texts that a list does not have, or has as items of the other kind. */
  listUnlisted(pairs: readonly Pair[]): Item[] {
    const listed = new Set(pairs.map(({ item }) => item));
    return this.all.filter((item) => isTextKind(item.kind) && !item.isBlank && !listed.has(item)).slice(0, MAX_SEARCHED);
  }
}

/** The text that a statement has as an item of the other kind. It is taken from the list. */
export function takeMoved({ kind, content }: Statement, unlisted: Item[]): Restated | undefined {
  if (!isTextKind(kind) || content === '') return undefined;
  for (const [at, item] of unlisted.entries()) {
    const rest = item.kind === otherText(kind) ? findMore(item, content) : undefined;
    if (rest === undefined) continue;
    unlisted.splice(at, 1);
    return { item, rest };
  }
  return undefined;
}

/** An item that a response lists, and the matching item of the stream. */
export interface Pair {
  said: Statement;
  item: Item | undefined;
}

/** An item whose text is stated again elsewhere, and what that adds to it. */
export interface Restated {
  item: Item;
  rest: string;
}

/** The kinds of items that are text. */
export const TEXT_KINDS: readonly ItemKind[] = ['message', 'reasoning'];

const isTextKind = (kind: ItemKind): boolean => TEXT_KINDS.includes(kind);

/** The other kind of text. */
export const otherText = (kind: ItemKind): ItemKind => (kind === 'message' ? 'reasoning' : 'message');

/** What a text adds to that of an item. Lengths first, so that short texts cost no long comparisons. */
function findMore(item: Item, whole: string): string | undefined {
  const isLonger = item.parts.length > MAX_PARTS || countText(item) > 4 * whole.length;
  return isLonger ? undefined : findRest(whole, item.content);
}

const countText = ({ parts }: Item): number => parts.reduce((sum, { text }) => sum + text.length, 0);

/** What a text adds to its beginning, which may have other white space; undefined if it begins otherwise. */
export function findRest(whole: string, seen: string): string | undefined {
  if (whole.startsWith(seen)) return whole.slice(seen.length);
  let at = 0;
  for (let i = 0; i < seen.length; i++) {
    if (isSpace(seen, i)) continue;
    while (isSpace(whole, at)) at++;
    if (whole[at++] !== seen[i]) return undefined;
  }
  return whole.slice(at).trimEnd();
}

const isSpace = (text: string, at: number): boolean => text.charCodeAt(at) <= SPACE;

const SPACE = 0x20;

/** The call id of a call that the client runs. OpenAI changes that of server items between added and done. */
const readCallId = (kind: ItemKind, { call_id: id }: WireItem): string | undefined =>
  kind === 'opaque' ? undefined : nonBlank(id);

const isSameCall = ({ call_id: one }: WireItem, { call_id: other }: WireItem): boolean =>
  nonBlank(one) !== undefined && one === other;

/** The other kind of call: servers end a call of a custom tool as one of a function. */
const otherCall = (kind: ItemKind): ItemKind => (kind === 'custom' ? 'function' : kind === 'function' ? 'custom' : kind);

const isOtherCall = ({ callId }: Item, other: string | undefined): boolean =>
  callId !== undefined && other !== undefined && callId !== other;

/** Whether the end at the place of an open item is its own: not that of a call with another id, unless they say the same. */
function isContinued(item: Item, said: Statement): boolean {
  if (item.kind === 'opaque' || item.kind === 'built-in') return item.wire.type === said.wire.type;
  return !isOtherCall(item, said.callId) || (item.id !== undefined && item.id === said.id) || findFit(item, said) > 1;
}

const isNamedBy = (item: Item, { id, callId }: Statement): boolean =>
  callId === undefined ? id !== undefined && id === item.id : callId === item.callId;

/** Whether a statement is the end of a done item once more. Another call id is another call, whatever else is equal. */
function isRepeated(item: Item, said: Statement): boolean {
  if (!item.isDone || item.kind !== said.kind || isOtherCall(item, said.callId)) return false;
  const isNamed = isNamedBy(item, said) || (item.kind === 'built-in' && isSameCall(item.wire, said.wire));
  const fit = findFit(item, said);
  if (isNamed && item.index === said.index) return true;
  if (item.kind === 'opaque' || item.kind === 'built-in')
    return fit > 0 && (isNamed || (item.index === said.index && sameJson(item.wire, said.wire)));
  return fit === 3 || (isNamed && fit === 2) || (fit === 1 && (item.state === 'held' || (isNamed && said.content === '')));
}

/** Whether a call is its original once more, or the beginning of it. */
export const isSentAgain = ({ original, content }: Item): boolean =>
  original !== undefined && (original.content.startsWith(content) || isSameInput(original.content, content));

/** The key of an item kind; items with the same key may match. */
const describe = ({ kind, wire: { type } }: Pick<Item, 'kind' | 'wire'>): string =>
  kind === 'opaque' || kind === 'built-in' ? `${kind} ${nonBlank(type)}` : kind;

const describeName = ({ kind }: Pick<Item, 'kind'>, name: string | undefined): string | undefined =>
  name === undefined ? undefined : `${isCallKind(kind) ? 'call' : kind} ${name}`;

const describeCall = (one: Pick<Item, 'kind' | 'wire'>): string | undefined =>
  isCallKind(one.kind) ? `${one.kind} ${nonBlank(one.wire.name)}` : undefined;

/** What an item says, as far as it tells it from others: arguments without their spaces. */
function describeContent(one: Pick<Item, 'kind' | 'wire' | 'content'>): string | undefined {
  const { content, kind } = one;
  if (content === '') return undefined;
  const isJson = kind === 'function' && !LONG_NUMBER.test(content);
  return `${describeCall(one) ?? kind} ${(isJson && writeJson(parseJson(content))) || content}`;
}

const fits = (said: Statement, item: Item): boolean => !item.call || findFit(item, said) > 0;

/** Ids change, indexes shift and lists omit items, but calls with different call ids are one only if they say the same. */
const LIST_KEYS: readonly MatchKeys<Statement, Item>[] = [
  { wire: (said) => describeName(said, said.callId ?? said.id), seen: (item) => describeName(item, item.callId ?? item.id) },
  {
    wire: (said) => describeName(said, said.callId ?? said.id),
    seen: (item) => describeName(item, (item.call && nonBlank(item.begun.call_id)) ?? nonBlank(item.begun.id)),
  },
  { wire: (said) => describeName(said, said.id), seen: (item) => describeName(item, item.id), fits },
  { wire: describeContent, seen: describeContent },
  {
    wire: (said) => `${said.index} ${describe(said)}`,
    seen: (item) => (item.callId === undefined ? `${item.index} ${describe(item)}` : undefined),
    fits,
  },
  {
    wire: (said) => (said.callId === undefined ? `${said.index} ${describe(said)}` : undefined),
    seen: (item) => `${item.index} ${describe(item)}`,
    fits,
  },
  { wire: describeCall, seen: describeCall, fits },
  {
    wire: describe,
    seen: (item) => (item.callId === undefined || nonBlank(item.wire.name) === undefined ? describe(item) : undefined),
    fits,
  },
  { wire: (said) => (said.callId === undefined ? describe(said) : undefined), seen: describe, fits },
];

/**
 * Finds for each entry of a complete list the thing that the stream had shown of it. The surest keys come first;
 * unmatched entries try the next ones. Takes linear time for any input.
 */
export function matchEntries<Wire, Seen>(
  wire: readonly Wire[],
  seen: readonly Seen[],
  namings: readonly MatchKeys<Wire, Seen>[],
): (Seen | undefined)[] {
  const pairs: (Seen | undefined)[] = wire.map(() => undefined);
  const taken = new Set<Seen>();
  for (const naming of namings) {
    if (taken.size === seen.length || taken.size === wire.length) break;
    const free = new Map<string, Seen[]>();
    // In reverse, so that pop() returns the first.
    for (const entry of seen.toReversed()) {
      const name = taken.has(entry) ? undefined : naming.seen(entry);
      if (name === undefined) continue;
      const list = free.get(name);
      if (list) list.push(entry);
      else free.set(name, [entry]);
    }
    for (const [at, entry] of wire.entries()) {
      if (pairs[at] !== undefined) continue;
      const name = naming.wire(entry, at);
      const list = name === undefined ? undefined : free.get(name);
      const match = list?.at(-1);
      if (match === undefined || naming.fits?.(entry, match) === false) continue;
      list?.pop();
      pairs[at] = match;
      taken.add(match);
    }
  }
  return pairs;
}

/**
 * Keys under which a listed entry and a thing seen in the stream match. Equal keys make a pair; undefined never does.
 */
export interface MatchKeys<Wire, Seen> {
  wire(entry: Wire, at: number): string | undefined;
  seen(entry: Seen): string | undefined;
  /** Whether entries with equal keys do not contradict each other. */
  fits?(entry: Wire, seen: Seen): boolean;
}
