import { ArgumentText, deriveId } from '../../accumulate/argument-text.ts';
import type { BlockDelta, MessageDelta } from '../../canonical/events.ts';
import type { ContentBlock, TokenLogprob, ToolUseBlock } from '../../canonical/message.ts';
import { CallLimits } from '../../codec/answers.ts';
import { type BlockEmitter, type Flow, unplaced } from '../../codec/block-emitter.ts';
import { unknownFields } from '../../codec/read.ts';
import { isObject, type JsonObject, parseJson, sameJson, writeJson } from '../../json/json.ts';
import type { RuleId } from '../../rules/index.ts';
import { decodeCitation, decodeLogprobs, opaque, reasoningExtras, signedBlob, startText, startThinking } from './blocks.ts';
import { isClientItem } from './tools.ts';
import { argumentsOf, type Channel, channelOf, filled, looseText, type WireItem } from './wire.ts';

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

/** Models call it although nobody declared it: several calls in the arguments of one. */
const WRAPPERS: ReadonlySet<unknown> = new Set(['parallel', 'multi_tool_use.parallel']);

const CALL_FIELDS: ReadonlySet<string> = new Set(
  Object.keys({ type: 0, id: 0, status: 0, call_id: 0, name: 0, namespace: 0, arguments: 0, input: 0 } satisfies {
    [K in keyof WireItem]?: 0;
  }),
);

/** Writes the calls of a response: `function_call` and `custom_tool_call` items. */
export class CallEmitter {
  /** Every call written, for the stop reason. */
  readonly blocks: ToolUseBlock[] = [];
  /** Derived ids are made from this, the id of the response. */
  idSeed = '';
  /** The request declares a tool of the wrapper's name: then it is no wrapper. */
  isWrapperDeclared = false;
  readonly limits: CallLimits = new CallLimits();
  /** Calls of which the rest came after their blocks had stopped, as they finally are. */
  readonly late: Map<number, ToolUseBlock> = new Map();
  readonly #emitter: BlockEmitter;
  readonly #interrupt: (item: Item) => void;
  readonly #report: ReportHere;
  readonly #ids = new Set<string>();

  constructor(emitter: BlockEmitter, interrupt: (item: Item) => void, report: ReportHere) {
    this.#emitter = emitter;
    this.#interrupt = interrupt;
    this.#report = report;
  }

  added(item: Item): void {
    this.#open(item, false);
    this.fragment(item, this.#inputOf(item, item.wire));
  }

  /** A piece of the arguments. */
  fragment(item: Item, text: string): void {
    const { call } = item;
    if (!call || text === '') return;
    // After the whole value nothing is left to say.
    if (call.isSettled) this.#report('responses/done-differs');
    else {
      this.limits.count(text.length);
      call.ready += item.kind === 'custom' ? text : call.fragments.push(text);
    }
    this.#flush(item, call);
  }

  /** The wire gives the arguments whole, and perhaps the name that was missing. */
  whole(item: Item, value: unknown, name: unknown): void {
    const { call } = item;
    if (!call) return;
    if (filled(item.wire.name) === undefined && filled(name) !== undefined) item.wire = { ...item.wire, name };
    this.#open(item, false);
    const text = this.#looseText(value);
    if (text !== '') this.#settle(item, call, text);
    this.#flush(item, call);
  }

  /** The item as it finally is; undefined when the stream ended without saying. */
  done(item: Item, wire: WireItem | undefined, isWhole: boolean): void {
    const { call } = item;
    if (!call) return;
    if (item.isDone) {
      if (wire) this.#resume(item, call, this.#inputOf(item, wire));
      return;
    }
    item.isDone = true; // a limit that is passed below must not be met again when the stream is closed
    if (wire)
      item.wire = { ...wire, name: filled(wire.name) ?? item.wire.name, call_id: filled(wire.call_id) ?? item.wire.call_id };
    this.#settle(item, call, wire ? this.#inputOf(item, wire) : '', isWhole);
    if (this.#expand(item, call) || isNothing(item, call)) return;
    const block = this.#open(item, true);
    this.#flush(item, call);
    if (block) this.#emitter.stopTool(block.index, this.#final(item, call, block.start));
  }

  /** The item was done, and its arguments go on. Nothing is added to a whole document. */
  #resume({ kind }: Item, { block, sent }: CallInput, whole: string): void {
    if (!block || whole.length <= sent.length || !whole.startsWith(sent) || parseJson(sent) !== undefined) return;
    this.late.set(block.index, { ...block.start, ...(kind === 'custom' && { input: whole }), input_raw: whole });
  }

  /** A call in an item of its own type comes whole. */
  builtIn(item: Item, { input, ...call }: ToolUseBlock): void {
    this.limits.open();
    this.#interrupt(item);
    const start: ToolUseBlock = { ...call, id: this.#uniqueId(item, call.id), input: {} };
    const text = argumentsOf(input);
    this.limits.count(text.length);
    const index = this.#emitter.openTool(start);
    this.blocks.push(start);
    this.#emitter.writeTool(index, text);
    this.#emitter.stopTool(index);
  }

  #inputOf(item: Item, wire: WireItem): string {
    return this.#looseText(item.kind === 'custom' ? wire.input : wire.arguments);
  }

  #looseText(value: unknown): string {
    if (isObject(value)) this.#report('responses/arguments-object');
    return argumentsOf(value);
  }

  /**
   * Decides the arguments. What went out stands; beyond that the whole value wins where it is JSON or the deltas are none.
   */
  #settle(item: Item, call: CallInput, whole: string, isWhole = false): void {
    if (call.isGuess && whole !== '') {
      call.ready = '';
      call.fragments = new ArgumentText();
    }
    const sent = call.sent + call.ready;
    // Once settled, only more of the same is news; lengths are compared first, for whoever says it again and again.
    if (call.isSettled && whole.length <= sent.length) {
      if (whole !== '' && whole !== sent) this.#report('responses/done-differs');
      return;
    }
    // What the fragments are is decided once, however often the whole value comes.
    const isDecided = call.isSettled || item.kind === 'custom';
    call.isSettled = true;
    const { text, reading } = isDecided ? { text: sent, reading: 'plain' } : call.fragments.decide();
    if (reading !== 'plain' && reading !== 'unreadable') this.#report('responses/arguments-repeated', undefined, item.last);
    const isBetter = whole !== '' && whole.startsWith(sent) && whole !== text && isWorthMore(item, whole, text);
    const chosen = isBetter ? whole : text;
    if (isBetter) this.limits.count(whole.length - sent.length);
    if (isBetter && !isWhole) this.#report(text === '' && sent === '' ? 'responses/deltas-missing' : 'responses/done-longer');
    else if (!isBetter && whole !== '' && whole !== text && !whole.startsWith(sent)) this.#report('responses/done-differs');
    if (chosen.startsWith(sent)) call.ready += chosen.slice(sent.length);
  }

  #flush(item: Item, call: CallInput): void {
    if (!call.block || call.ready === '' || (call.isGuess && !item.isDone)) return;
    this.#emitter.writeTool(call.block.index, call.ready, item.kind === 'custom');
    call.sent += call.ready;
    call.ready = '';
  }

  /** Opens the block once id and name are known, or when there is no more to wait for. */
  #open(item: Item, isForced: boolean): CallInput['block'] {
    const { call } = item;
    if (!call || call.block) return call?.block;
    const isSettled = item.callId !== undefined && filled(item.wire.name) !== undefined && !this.#isWrapper(item);
    if (!isSettled && !isForced) return undefined;
    const name = filled(item.wire.name);
    if (name === undefined) this.#report('responses/call-name-missing', undefined, item.first);
    this.#interrupt(item);
    const start = toBlock(item, this.#uniqueId(item), name ?? `tool_${this.blocks.length}`);
    call.block = { index: this.#emitter.openTool(start), start };
    this.blocks.push(start);
    return call.block;
  }

  #uniqueId(item: Item, wanted: string | undefined = item.callId): string {
    if (wanted === undefined) this.#report('responses/call-id-missing', undefined, item.first);
    else if (this.#ids.has(wanted)) this.#report('responses/call-id-repeated');
    let id = wanted;
    for (let salt = 0; id === undefined || this.#ids.has(id); salt++)
      id = deriveId('call_', this.idSeed, this.blocks.length, salt);
    this.#ids.add(id);
    return id;
  }

  /** What was settled only after the block had started. */
  #final(item: Item, call: CallInput, start: ToolUseBlock): ToolUseBlock | undefined {
    const block = toBlock(item, start.id, start.name);
    // Ids that rotate say nothing new.
    if (start.item_id !== undefined) block.item_id = start.item_id;
    if (sameJson(block, start)) return undefined;
    const value = item.kind === 'custom' ? call.sent : parseJson(call.sent);
    return { ...block, input: typeof value === 'string' || isObject(value) ? value : {} };
  }

  #isWrapper(item: Item): boolean {
    return item.kind === 'function' && !this.isWrapperDeclared && WRAPPERS.has(item.wire.name);
  }

  #expand(item: Item, call: CallInput): boolean {
    const uses = call.block || !this.#isWrapper(item) ? undefined : readUses(call.ready);
    if (!uses) return false;
    this.#report('responses/parallel-wrapper');
    this.#interrupt(item);
    for (const [at, { name, input }] of uses.entries()) {
      this.limits.open();
      const wanted = item.callId === undefined ? undefined : `${item.callId}_${at}`;
      const start: ToolUseBlock = { type: 'tool_use', id: this.#uniqueId(item, wanted), name, input: {} };
      // Its results belong under the id of the wrapper when they go back.
      if (item.callId !== undefined) start.extensions = { 'openai-responses': { parallel_call_id: item.callId } };
      const index = this.#emitter.openTool(start);
      this.blocks.push(start);
      this.#emitter.writeTool(index, input);
      this.#emitter.stopTool(index);
    }
    return true;
  }
}

/** Whole arguments against those of the deltas, of which nothing went out that is not in both. */
function isWorthMore(item: Item, whole: string, text: string): boolean {
  if (item.kind === 'custom') return whole.length > text.length;
  if (parseJson(whole) !== undefined) return true;
  return whole.length > text.length && parseJson(text) === undefined;
}

const isNothing = (item: Item, call: CallInput): boolean =>
  !call.block && call.ready === '' && item.callId === undefined && filled(item.wire.name) === undefined;

function toBlock(item: Item, id: string, name: string): ToolUseBlock {
  const namespace = filled(item.wire.namespace);
  const others = unknownFields(item.wire, CALL_FIELDS);
  return {
    type: 'tool_use',
    id,
    name,
    input: item.kind === 'custom' ? '' : {},
    ...(item.kind === 'custom' && { kind: 'custom' }),
    ...(namespace !== undefined && { namespace }),
    ...(item.id !== undefined && { item_id: item.id }),
    // Said only of a call that was cut or has no name: `completed` is the rule, `in_progress` is over when the block is.
    ...((item.wire.status === 'incomplete' || filled(item.wire.name) === undefined) && { status: 'incomplete' }),
    ...(others && { extensions: { 'openai-responses': others } }),
  };
}

/** `{tool_uses:[{recipient_name:"functions.x",parameters}]}`; anything else is the call of a tool that happens to have the name. */
function readUses(text: string): { name: string; input: string }[] | undefined {
  const value = parseJson(text);
  const uses = isObject(value) ? value['tool_uses'] : undefined;
  if (!Array.isArray(uses) || uses.length === 0) return undefined;
  const calls: { name: string; input: string }[] = [];
  for (const use of uses) {
    const name = isObject(use) ? filled(filled(use['recipient_name'])?.replace(/^functions\./, '')) : undefined;
    const parameters = isObject(use) ? (use['parameters'] ?? {}) : {};
    const input = typeof parameters === 'string' ? parameters : writeJson(parameters);
    if (name === undefined || input === undefined) return undefined;
    calls.push({ name, input });
  }
  return calls;
}

/** Two ways to name a thing: as the wire's list has it, and as it was seen before. Equal names make a pair; undefined never does. */
export interface Naming<Wire, Seen> {
  wire(entry: Wire, at: number): string | undefined;
  seen(entry: Seen): string | undefined;
}

/**
 * Finds for each entry of a whole list the thing that the stream showed of it. The surest naming comes first; what is left over goes to the
 * next one. Linear, whatever a stranger sends.
 */
export function pairUp<Wire, Seen>(
  wire: readonly Wire[],
  seen: readonly Seen[],
  namings: readonly Naming<Wire, Seen>[],
): (Seen | undefined)[] {
  const pairs: (Seen | undefined)[] = wire.map(() => undefined);
  const taken = new Set<Seen>();
  for (const naming of namings) {
    if (taken.size === seen.length) break;
    const free = new Map<string, Seen[]>();
    // Backwards, so that pop() gives the first.
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
      const match = name === undefined ? undefined : free.get(name)?.pop();
      if (match === undefined) continue;
      pairs[at] = match;
      taken.add(match);
    }
  }
  return pairs;
}

/** A content part as a whole item lists it. */
interface Entry {
  channel: Channel | undefined;
  text: string;
  raw: JsonObject;
}

/** By index; Bedrock counts the parts of a message from 1, so after that by order. */
const PART_NAMINGS: readonly Naming<Entry, Part>[] = [
  { wire: ({ channel }, at) => channel && `${channel} ${at}`, seen: ({ channel, index }) => `${channel} ${index}` },
  { wire: ({ channel }) => channel, seen: ({ channel }) => channel },
];

/** The parts that the entries are about, where there are such. They are looked through once: what is found is bound to its place. */
function partsOf(item: Item, entries: readonly Entry[]): (Part | undefined)[] {
  const known = entries.map(({ channel }, at) => channel && item.findPart(channel, at));
  if (entries.every(({ channel }, at) => channel === undefined || known[at])) return known;
  const parts = pairUp(entries, item.parts, PART_NAMINGS);
  for (const [at, part] of parts.entries()) if (part) item.bindPart(at, part);
  return parts;
}

/** Writes everything but calls: the text, reasoning and server items of a response, as blocks. */
export class ContentEmitter {
  hasText = false;
  hasRefusal = false;
  /** Fields of reasoning items that came when their blocks had stopped: items overlap. */
  readonly late: JsonObject[] = [];
  /** Final forms of server items, by the key of a block that had stopped before. */
  readonly #replaced = new Map<string, ContentBlock>();
  readonly #emitter: BlockEmitter;
  readonly #report: ReportHere;
  #current: { item: Item | undefined; key: string } | undefined;
  /** Reasoning items that have begun, have an id and said nothing yet. */
  readonly #silent = new Set<Item>();

  constructor(emitter: BlockEmitter, report: ReportHere) {
    this.#emitter = emitter;
    this.#report = report;
  }

  added(item: Item): void {
    if (item.kind === 'reasoning') {
      item.isLive = true;
      if (item.id !== undefined) this.#silent.add(item);
    }
    if (item.kind === 'opaque') this.#openOpaque(item);
    // Empty by the standard; what stands there already is not repeated as deltas. Parts that nobody knows come once more, with the end.
    if (item.kind === 'message') this.#settleAll(item, readEntries(item.wire.content, 'text'), true, false);
  }

  write(item: Item, part: Part, text: string, logprobs?: TokenLogprob[]): void {
    if (text === '' && !logprobs) return;
    part.text += text;
    if (logprobs) part.hasLogprobs = true;
    const { channel } = part;
    if (channel === 'text' || channel === 'refusal') this.#writeText(item, part, text, logprobs);
    else this.#writeThinking(item, part, text);
  }

  #writeText(item: Item, part: Part, text: string, logprobs: TokenLogprob[] | undefined): void {
    const isRefusal = part.channel === 'refusal';
    if (isRefusal) this.hasRefusal = true;
    else this.hasText = true;
    const flow = this.#textFlow(item, part);
    this.#begin(item, flow.key);
    this.#emitter.write(flow, { type: 'text_delta', text, ...(logprobs && { logprobs }), ...(isRefusal && { refusal: true }) });
  }

  #writeThinking(item: Item, part: Part, text: string): void {
    part.flow ??= this.#thinkingFlow(item, part.channel);
    const { flow } = part;
    if (this.#begin(item, flow.key)) {
      item.stretch++;
      item.slots = 0;
    }
    const isFirst = part.stretch !== item.stretch;
    if (isFirst) {
      part.stretch = item.stretch;
      part.slot = item.slots++;
    }
    const place = part.channel === 'summary' ? { summary_index: part.slot } : undefined;
    if (place && isFirst && part.slot > 0) this.#emitter.write(flow, { type: 'thinking_delta', thinking: '\n\n', ...place });
    this.#emitter.write(flow, { type: 'thinking_delta', thinking: text, ...place });
  }

  /** The wire gives a part whole: whatever the deltas left out goes out now. `isOpening`: at its start, where nothing can be missing. */
  settle(item: Item, part: Part, whole: string, isOpening = false): void {
    if (whole === part.text || whole === '') return;
    if (whole.length <= part.text.length || !whole.startsWith(part.text)) {
      this.#report('responses/done-differs');
      return;
    }
    if (!isOpening) this.#report(part.text === '' ? 'responses/deltas-missing' : 'responses/done-longer');
    this.write(item, part, whole.slice(part.text.length));
  }

  cite(item: Item, part: Part, annotation: unknown): void {
    if (!isObject(annotation)) return;
    part.citations++;
    const flow = this.#textFlow(item, part);
    const isLate = this.#begin(item, flow.key) && part.text !== '';
    const citation = decodeCitation(annotation);
    this.#emitter.write(flow, { type: 'citations_delta', citation: isLate ? unplaced(citation) : citation });
  }

  /** Annotations and log probabilities of a whole part, where no delta brought them. */
  complete(item: Item, part: Part, { annotations, logprobs }: { annotations?: unknown; logprobs?: unknown }): void {
    if (Array.isArray(annotations)) for (const annotation of annotations.slice(part.citations)) this.cite(item, part, annotation);
    const tokens = part.hasLogprobs ? undefined : decodeLogprobs(logprobs);
    if (tokens) this.write(item, part, '', tokens);
  }

  audio(delta: Extract<BlockDelta, { type: 'audio_delta' }>): void {
    this.#begin(undefined, 'audio');
    this.#emitter.write({ kind: 'audio', key: 'audio', start: () => ({ type: 'audio', source: {} }) }, delta);
  }

  /** The item as it finally is, or as the response lists it. `isWhole`: there was no stream in which deltas could be missing. */
  done(item: Item, wire: WireItem, isWhole: boolean): void {
    if (item.kind === 'opaque') this.#finishOpaque(item, wire);
    else if (item.kind === 'reasoning') this.#finishReasoning(item, wire, isWhole);
    else this.#settleAll(item, readEntries(wire.content, 'text'), isWhole);
    this.#silent.delete(item);
    if (this.#current?.item === item) this.#close(undefined);
  }

  #settleAll(item: Item, entries: Entry[], isWhole: boolean, isFinal = !item.isDone): void {
    const parts = partsOf(item, entries);
    for (const [at, { channel, text, raw }] of entries.entries()) {
      if (channel === undefined) {
        if (isFinal) this.#whole(item, { ...item.wire, content: [raw] });
        continue;
      }
      const part = parts[at] ?? item.addPart(channel, at);
      this.settle(item, part, text, isWhole);
      if (channel === 'text') this.complete(item, part, raw);
    }
  }

  #finishReasoning(item: Item, wire: WireItem, isWhole: boolean): void {
    const before = item.wire;
    const isStarted = item.blockKey !== undefined;
    const blob = item.isSigned ? undefined : (filled(wire.encrypted_content) ?? filled(before.encrypted_content));
    item.wire = { ...wire, id: filled(wire.id) ?? before.id };
    item.isLive = false;
    this.#settleAll(item, readEntries(wire.summary, 'summary'), isWhole);
    this.#settleAll(item, readEntries(wire.content, 'full'), isWhole);
    if (item.blockKey === undefined && (blob !== undefined || item.id !== undefined)) this.#openThinking(item);
    if (blob !== undefined && item.blockKey !== undefined) {
      item.isSigned = true;
      this.#emitter.sign(item.blockKey, { type: 'signature_delta', signature: signedBlob(blob, item.wire) });
    }
    const isNew = isStarted && !item.isDone && !sameJson(reasoningExtras(before) ?? {}, reasoningExtras(wire) ?? {});
    if (isNew) this.#keepExtras(item, reasoningExtras(wire) ?? {});
  }

  /** Fields of a reasoning item that came with its end: into the block if that is still open and holds all of it. */
  #keepExtras(item: Item, fields: JsonObject): void {
    if (this.#current?.item !== item || item.stretch > 1) {
      this.late.push({ type: 'reasoning', ...(item.id !== undefined && { id: item.id }), ...fields });
      return;
    }
    const parts = item.parts.filter(({ stretch }) => stretch === item.stretch).toSorted((a, b) => a.slot - b.slot);
    const thinking = parts.map(({ text }) => text).join(parts[0]?.channel === 'summary' ? '\n\n' : '');
    this.#close({ ...startThinking(item.wire, parts[0]?.channel), thinking });
  }

  #openOpaque(item: Item): void {
    const key = `${item.position}`;
    item.blockKey = key;
    this.#begin(item, key);
    this.#emitter.open({ kind: 'opaque', key, start: () => opaque(item.wire) });
  }

  #finishOpaque(item: Item, wire: WireItem): void {
    if (item.isDone) return;
    if (item.blockKey === undefined) this.#whole(item, wire);
    else if (this.#isCurrent(item.blockKey)) this.#close(opaque(wire));
    else if (!sameJson(item.wire, wire)) this.#replaced.set(item.blockKey, opaque(wire));
    item.wire = wire;
  }

  #whole(item: Item, raw: WireItem): void {
    this.#begin(item, '');
    this.#emitter.whole(opaque(raw));
    this.#current = undefined;
  }

  #close(final: ContentBlock | undefined): void {
    const open = this.#current;
    this.#current = undefined;
    if (open) this.#emitter.closeFlow(open.key, final);
  }

  /** Another item's call is about to open. */
  interrupt(item: Item): void {
    this.#begin(item, '');
    this.#current = undefined;
  }

  /** Blocks that had stopped when their final form came. */
  get lateBlocks(): NonNullable<MessageDelta['late_blocks']> {
    return [...this.#replaced].flatMap(([key, content_block]) => {
      const index = this.#emitter.indexOf(key);
      return index === undefined ? [] : [{ index, content_block }];
    });
  }

  /** The stream is over: reasoning that never said a word is kept for its id. */
  end(): void {
    for (const item of this.#silent) if (item.blockKey === undefined) this.#openThinking(item);
    this.#silent.clear();
  }

  /** True when the flow is not the open one: a block will start. */
  #begin(item: Item | undefined, key: string): boolean {
    const open = this.#current;
    if (open?.key === key) return false;
    if (open?.item && open.item !== item && !open.item.isDone) this.#report('responses/items-overlap');
    if (this.#silent.size > 0) this.#openSilent(item);
    this.#current = { item, key };
    return true;
  }

  /** Reasoning that came before stands before, also when it has nothing to show but an id and, later, its ciphertext. */
  #openSilent(before: Item | undefined): void {
    if (before) this.#silent.delete(before);
    for (const item of this.#silent) {
      if (before && item.position > before.position) return; // they stand in their order
      this.#report('responses/items-overlap');
      this.#openThinking(item);
    }
  }

  #openThinking(item: Item): void {
    const flow = this.#thinkingFlow(item, undefined);
    this.#silent.delete(item);
    this.#begin(item, flow.key);
    this.#emitter.open(flow);
  }

  #isCurrent(key: string): boolean {
    return this.#current?.key === key;
  }

  #textFlow(item: Item, part: Part): ItemFlow {
    if (part.flow) return part.flow;
    const isRefusal = part.channel === 'refusal';
    const key = `${item.position}.${part.channel}.${part.index}`;
    part.flow = { kind: isRefusal ? 'refusal' : 'text', key, start: () => startText(item.wire, isRefusal) };
    return part.flow;
  }

  /** All summary parts of an item make one block. */
  #thinkingFlow(item: Item, channel: Channel | undefined): ItemFlow {
    const key = `${item.position}.${channel ?? 'silent'}`;
    item.blockKey ??= key;
    const known = item.flows.get(key);
    if (known) return known;
    const flow: ItemFlow = { kind: 'thinking', key, start: () => startThinking(item.settled, channel) };
    item.flows.set(key, flow);
    return flow;
  }
}

/** The parts of a whole item: a list of objects; some servers send plain text. */
function readEntries(list: unknown, plain: Channel): Entry[] {
  if (typeof list === 'string') return [{ channel: plain, text: list, raw: {} }];
  if (!Array.isArray(list)) return [];
  return list.flatMap((raw: unknown): Entry[] => {
    if (typeof raw === 'string') return [{ channel: plain, text: raw, raw: {} }];
    if (!isObject(raw)) return [];
    const channel = raw['type'] === undefined ? plain : channelOf(raw['type']);
    return [
      { channel: channel === 'text' && plain !== 'text' ? plain : channel, text: looseText(raw['refusal'] ?? raw['text']), raw },
    ];
  });
}
