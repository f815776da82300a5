/** The content of a Responses stream: output items and their parts to blocks, calls included. */

import { ArgumentText, deriveId } from '../../accumulate/argument-text.ts';
import type { BlockDelta, MessageDelta } from '../../canonical/events.ts';
import type { ContentBlock, TokenLogprob, ToolUseBlock } from '../../canonical/message.ts';
import { CallLimits } from '../../codec/answers.ts';
import { type BlockEmitter, type Flow, withoutOffsets } from '../../codec/block-emitter.ts';
import { unknownFields } from '../../codec/read.ts';
import { isObject, type JsonObject, parseJson, sameJson } from '../../json/json.ts';
import type { RuleId } from '../../rules/index.ts';
import {
  buildOpaque,
  buildSignature,
  decodeCitation,
  decodeLogprobs,
  type ListedPart,
  readListedParts,
  readParallelUses,
  readReasoningExtras,
  startText,
  startThinking,
} from './blocks.ts';
import { type Channel, nonBlank, readArguments, type WireItem } from './wire.ts';

/** Writes the text, reasoning and server items of a response as blocks: everything but calls. */
export class ContentEmitter {
  hasText = false;
  hasRefusal = false;
  /** Fields of reasoning items that arrived after their blocks had stopped, because items overlap. */
  readonly late: JsonObject[] = [];
  /** Final forms of server items whose block had stopped before, by block key. */
  readonly #replaced = new Map<string, ContentBlock>();
  readonly #emitter: BlockEmitter;
  readonly #report: ReportHere;
  #current: { item: Item | undefined; key: string } | undefined;
  /** Reasoning items with an id that have no content yet. */
  readonly #silent = new Set<Item>();

  constructor(emitter: BlockEmitter, report: ReportHere) {
    this.#emitter = emitter;
    this.#report = report;
  }

  /** Takes an item that was added. */
  added(item: Item): void {
    if (item.kind === 'reasoning') {
      item.isLive = true;
      if (item.id !== undefined) this.#silent.add(item);
    }
    if (item.kind === 'opaque') this.#openOpaque(item);
    // Empty by the standard; content that is present is not repeated as deltas. Unknown parts are read when the item is
    // done.
    if (item.kind === 'message') this.#settleAll(item, readListedParts(item.wire.content, 'text'), true, false);
  }

  /** Writes text of a part. */
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

  /**
   * Takes the complete text of a part and writes what the deltas left out. `isOpening`: at its start, where nothing can
   * be missing.
   */
  settle(item: Item, part: Part, whole: string, isOpening = false): void {
    if (whole === part.text || whole === '') return;
    if (whole.length <= part.text.length || !whole.startsWith(part.text)) {
      this.#report('responses/done-differs');
      return;
    }
    if (!isOpening) this.#report(part.text === '' ? 'responses/deltas-missing' : 'responses/done-longer');
    this.write(item, part, whole.slice(part.text.length));
  }

  /** Writes an annotation of a part. */
  cite(item: Item, part: Part, annotation: unknown): void {
    if (!isObject(annotation)) return;
    part.citations++;
    const flow = this.#textFlow(item, part);
    const isLate = this.#begin(item, flow.key) && part.text !== '';
    const citation = decodeCitation(annotation);
    this.#emitter.write(flow, { type: 'citations_delta', citation: isLate ? withoutOffsets(citation) : citation });
  }

  /** Writes annotations and log probabilities of a complete part that no delta had. */
  complete(item: Item, part: Part, { annotations, logprobs }: { annotations?: unknown; logprobs?: unknown }): void {
    if (Array.isArray(annotations)) for (const annotation of annotations.slice(part.citations)) this.cite(item, part, annotation);
    const tokens = part.hasLogprobs ? undefined : decodeLogprobs(logprobs);
    if (tokens) this.write(item, part, '', tokens);
  }

  /** Writes audio. */
  audio(delta: Extract<BlockDelta, { type: 'audio_delta' }>): void {
    this.#begin(undefined, 'audio');
    this.#emitter.write({ kind: 'audio', key: 'audio', start: () => ({ type: 'audio', source: {} }) }, delta);
  }

  /**
   * Takes the final form of an item, or the form that the response lists. `isWhole`: there was no stream in which
   * deltas could be missing.
   */
  done(item: Item, wire: WireItem, isWhole: boolean): void {
    if (item.kind === 'opaque') this.#finishOpaque(item, wire);
    else if (item.kind === 'reasoning') this.#finishReasoning(item, wire, isWhole);
    else this.#settleAll(item, readListedParts(wire.content, 'text'), isWhole);
    this.#silent.delete(item);
    if (this.#current?.item === item) this.#close(undefined);
  }

  #settleAll(item: Item, entries: ListedPart[], isWhole: boolean, isFinal = !item.isDone): void {
    const parts = findParts(item, entries);
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
    const blob = item.isSigned ? undefined : (nonBlank(wire.encrypted_content) ?? nonBlank(before.encrypted_content));
    item.wire = { ...wire, id: nonBlank(wire.id) ?? before.id };
    item.isLive = false;
    this.#settleAll(item, readListedParts(wire.summary, 'summary'), isWhole);
    this.#settleAll(item, readListedParts(wire.content, 'full'), isWhole);
    if (item.blockKey === undefined && (blob !== undefined || item.id !== undefined)) this.#openThinking(item);
    if (blob !== undefined && item.blockKey !== undefined) {
      item.isSigned = true;
      this.#emitter.sign(item.blockKey, { type: 'signature_delta', signature: buildSignature(blob, item.wire) });
    }
    const isNew = isStarted && !item.isDone && !sameJson(readReasoningExtras(before) ?? {}, readReasoningExtras(wire) ?? {});
    if (isNew) this.#keepExtras(item, readReasoningExtras(wire) ?? {});
  }

  /**
   * Keeps fields that arrived with the end of a reasoning item: in the block, if it is still open and holds the whole
   * item.
   */
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
    this.#emitter.open({ kind: 'opaque', key, start: () => buildOpaque(item.wire) });
  }

  #finishOpaque(item: Item, wire: WireItem): void {
    if (item.isDone) return;
    if (item.blockKey === undefined) this.#whole(item, wire);
    else if (this.#isCurrent(item.blockKey)) this.#close(buildOpaque(wire));
    else if (!sameJson(item.wire, wire)) this.#replaced.set(item.blockKey, buildOpaque(wire));
    item.wire = wire;
  }

  #whole(item: Item, raw: WireItem): void {
    this.#begin(item, '');
    this.#emitter.whole(buildOpaque(raw));
    this.#current = undefined;
  }

  #close(final: ContentBlock | undefined): void {
    const open = this.#current;
    this.#current = undefined;
    if (open) this.#emitter.closeFlow(open.key, final);
  }

  /** Ends the current block, because a call of another item starts. */
  interrupt(item: Item): void {
    this.#begin(item, '');
    this.#current = undefined;
  }

  /** Blocks that had stopped before their final form arrived. */
  get lateBlocks(): NonNullable<MessageDelta['late_blocks']> {
    return [...this.#replaced].flatMap(([key, content_block]) => {
      const index = this.#emitter.indexOf(key);
      return index === undefined ? [] : [{ index, content_block }];
    });
  }

  /** Ends the stream; reasoning items without content become blocks, to keep their ids. */
  end(): void {
    for (const item of this.#silent) if (item.blockKey === undefined) this.#openThinking(item);
    this.#silent.clear();
  }

  /** Makes a block the current one; returns true if it was not, so that a block will start. */
  #begin(item: Item | undefined, key: string): boolean {
    const open = this.#current;
    if (open?.key === key) return false;
    if (open?.item && open.item !== item && !open.item.isDone) this.#report('responses/items-overlap');
    if (this.#silent.size > 0) this.#openSilent(item);
    this.#current = { item, key };
    return true;
  }

  /**
   * Starts blocks for earlier reasoning items without content, to keep the order; their encrypted content may follow.
   */
  #openSilent(before: Item | undefined): void {
    if (before) this.#silent.delete(before);
    for (const item of this.#silent) {
      if (before && item.position > before.position) return; // items are in order
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

  /** The thinking block of an item; all summary parts are in one block. */
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

/** By index, then by order, because Bedrock numbers the parts of a message from 1. */
const PART_KEYS: readonly MatchKeys<ListedPart, Part>[] = [
  { wire: ({ channel }, at) => channel && `${channel} ${at}`, seen: ({ channel, index }) => `${channel} ${index}` },
  { wire: ({ channel }) => channel, seen: ({ channel }) => channel },
];

/** The parts that the entries describe. Found parts are bound to their position, so that they are searched once. */
function findParts(item: Item, entries: readonly ListedPart[]): (Part | undefined)[] {
  const known = entries.map(({ channel }, at) => channel && item.findPart(channel, at));
  if (entries.every(({ channel }, at) => channel === undefined || known[at])) return known;
  const parts = matchEntries(entries, item.parts, PART_KEYS);
  for (const [at, part] of parts.entries()) if (part) item.bindPart(at, part);
  return parts;
}

/** An undeclared tool that models call: its arguments hold several calls. */
const WRAPPER_NAMES: ReadonlySet<unknown> = new Set(['parallel', 'multi_tool_use.parallel']);

/** Writes the calls of a response (`function_call` and `custom_tool_call` items) as blocks. */
export class CallEmitter {
  /** All calls that were written, for the stop reason. */
  readonly blocks: ToolUseBlock[] = [];
  /** The id of the response, from which ids are derived. */
  idSeed = '';
  /** The request declares a tool with the name of the wrapper, so calls of it are ordinary calls. */
  isWrapperDeclared = false;
  readonly limits: CallLimits = new CallLimits();
  /** Final forms of calls that continued after their blocks had stopped. */
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

  /** Takes a call that was added. */
  added(item: Item): void {
    this.#open(item, false);
    this.fragment(item, this.#readInput(item, item.wire));
  }

  /** Takes a piece of the arguments. */
  fragment(item: Item, text: string): void {
    const { call } = item;
    if (!call || text === '') return;
    // Nothing may follow the complete value.
    if (call.isSettled) this.#report('responses/done-differs');
    else {
      this.limits.count(text.length);
      call.ready += item.kind === 'custom' ? text : call.fragments.push(text);
    }
    this.#flush(item, call);
  }

  /** Takes the complete arguments, and the name if it was missing. */
  whole(item: Item, value: unknown, name: unknown): void {
    const { call } = item;
    if (!call) return;
    if (nonBlank(item.wire.name) === undefined && nonBlank(name) !== undefined) item.wire = { ...item.wire, name };
    this.#open(item, false);
    const text = this.#readArguments(value);
    if (text !== '') this.#settle(item, call, text);
    this.#flush(item, call);
  }

  /** Takes the final form of the item; undefined if the stream ended without one. */
  done(item: Item, wire: WireItem | undefined, isWhole: boolean): void {
    const { call } = item;
    if (!call) return;
    if (item.isDone) {
      if (wire) this.#resume(item, call, this.#readInput(item, wire));
      return;
    }
    item.isDone = true; // set first, so that a limit error below does not recur when the stream is closed
    if (wire)
      item.wire = { ...wire, name: nonBlank(wire.name) ?? item.wire.name, call_id: nonBlank(wire.call_id) ?? item.wire.call_id };
    this.#settle(item, call, wire ? this.#readInput(item, wire) : '', isWhole);
    if (this.#expand(item, call) || isEmptyCall(item, call)) return;
    const block = this.#open(item, true);
    this.#flush(item, call);
    if (block) this.#emitter.stopTool(block.index, this.#final(item, call, block.start));
  }

  /** Handles arguments that continue after the item was done. Nothing is added to complete JSON. */
  #resume({ kind }: Item, { block, sent }: CallInput, whole: string): void {
    if (!block || whole.length <= sent.length || !whole.startsWith(sent) || parseJson(sent) !== undefined) return;
    this.late.set(block.index, { ...block.start, ...(kind === 'custom' && { input: whole }), input_raw: whole });
  }

  /** Writes a call with an item type of its own, which arrives complete. */
  builtIn(item: Item, { input, ...call }: ToolUseBlock): void {
    this.limits.open();
    this.#interrupt(item);
    const start: ToolUseBlock = { ...call, id: this.#uniqueId(item, call.id), input: {} };
    const text = readArguments(input);
    this.limits.count(text.length);
    const index = this.#emitter.openTool(start);
    this.blocks.push(start);
    this.#emitter.writeTool(index, text);
    this.#emitter.stopTool(index);
  }

  #readInput(item: Item, wire: WireItem): string {
    return this.#readArguments(item.kind === 'custom' ? wire.input : wire.arguments);
  }

  #readArguments(value: unknown): string {
    if (isObject(value)) this.#report('responses/arguments-object');
    return readArguments(value);
  }

  /**
   * Decides the arguments. What was sent stays; beyond that the complete value wins if it is JSON or the deltas are
   * not.
   */
  #settle(item: Item, call: CallInput, whole: string, isWhole = false): void {
    if (call.isGuess && whole !== '') {
      call.ready = '';
      call.fragments = new ArgumentText();
    }
    const sent = call.sent + call.ready;
    // Once settled, only a longer value matters. Lengths are compared first, because servers repeat the value.
    if (call.isSettled && whole.length <= sent.length) {
      if (whole !== '' && whole !== sent) this.#report('responses/done-differs');
      return;
    }
    // The fragments are decided once, even if the complete value arrives several times.
    const isDecided = call.isSettled || item.kind === 'custom';
    call.isSettled = true;
    const { text, reading } = isDecided ? { text: sent, reading: 'plain' } : call.fragments.decide();
    if (reading !== 'plain' && reading !== 'unreadable') this.#report('responses/arguments-repeated', undefined, item.last);
    const isBetter = whole !== '' && whole.startsWith(sent) && whole !== text && isBetterText(item, whole, text);
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

  /** Starts the block once id and name are known, or when nothing more will come. */
  #open(item: Item, isForced: boolean): CallInput['block'] {
    const { call } = item;
    if (!call || call.block) return call?.block;
    const isSettled = item.callId !== undefined && nonBlank(item.wire.name) !== undefined && !this.#isWrapper(item);
    if (!isSettled && !isForced) return undefined;
    const name = nonBlank(item.wire.name);
    if (name === undefined) this.#report('responses/call-name-missing', undefined, item.first);
    this.#interrupt(item);
    const start = buildCallBlock(item, this.#uniqueId(item), name ?? `tool_${this.blocks.length}`);
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

  /** The final block if it differs from the one that was started. */
  #final(item: Item, call: CallInput, start: ToolUseBlock): ToolUseBlock | undefined {
    const block = buildCallBlock(item, start.id, start.name);
    // Keep the first id: on servers whose ids change with every event a new one means nothing.
    if (start.item_id !== undefined) block.item_id = start.item_id;
    if (sameJson(block, start)) return undefined;
    const value = item.kind === 'custom' ? call.sent : parseJson(call.sent);
    return { ...block, input: typeof value === 'string' || isObject(value) ? value : {} };
  }

  #isWrapper(item: Item): boolean {
    return item.kind === 'function' && !this.isWrapperDeclared && WRAPPER_NAMES.has(item.wire.name);
  }

  #expand(item: Item, call: CallInput): boolean {
    const uses = call.block || !this.#isWrapper(item) ? undefined : readParallelUses(call.ready);
    if (!uses) return false;
    this.#report('responses/parallel-wrapper');
    this.#interrupt(item);
    for (const [at, { name, input }] of uses.entries()) {
      this.limits.open();
      const wanted = item.callId === undefined ? undefined : `${item.callId}_${at}`;
      const start: ToolUseBlock = { type: 'tool_use', id: this.#uniqueId(item, wanted), name, input: {} };
      // Results are sent back under the id of the wrapper.
      if (item.callId !== undefined) start.extensions = { 'openai-responses': { parallel_call_id: item.callId } };
      const index = this.#emitter.openTool(start);
      this.blocks.push(start);
      this.#emitter.writeTool(index, input);
      this.#emitter.stopTool(index);
    }
    return true;
  }
}

const isEmptyCall = (item: Item, call: CallInput): boolean =>
  !call.block && call.ready === '' && item.callId === undefined && nonBlank(item.wire.name) === undefined;

/** Whether the complete arguments are better than those of the deltas; nothing was sent that is not in both. */
function isBetterText(item: Item, whole: string, text: string): boolean {
  if (item.kind === 'custom') return whole.length > text.length;
  if (parseJson(whole) !== undefined) return true;
  return whole.length > text.length && parseJson(text) === undefined;
}

const CALL_FIELDS: ReadonlySet<string> = new Set(
  Object.keys({ type: 0, id: 0, status: 0, call_id: 0, name: 0, namespace: 0, arguments: 0, input: 0 } satisfies {
    [K in keyof WireItem]?: 0;
  }),
);

function buildCallBlock(item: Item, id: string, name: string): ToolUseBlock {
  const namespace = nonBlank(item.wire.namespace);
  const others = unknownFields(item.wire, CALL_FIELDS);
  return {
    type: 'tool_use',
    id,
    name,
    input: item.kind === 'custom' ? '' : {},
    ...(item.kind === 'custom' && { kind: 'custom' }),
    ...(namespace !== undefined && { namespace }),
    ...(item.id !== undefined && { item_id: item.id }),
    // Set only for a call that was cut or has no name; other calls are complete when their block stops.
    ...((item.wire.status === 'incomplete' || nonBlank(item.wire.name) === undefined) && { status: 'incomplete' }),
    ...(others && { extensions: { 'openai-responses': others } }),
  };
}

// ---- items

/** An output item: its wire form, and what was written of it. */
export class Item {
  readonly kind: ItemKind;
  /** Order of arrival, from 0. */
  readonly position: number;
  readonly index: number | undefined;
  /** The latest wire form: as added, then as done. */
  wire: WireItem;
  isDone = false;
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
  readonly #parts = new Map<Channel, Map<number, Part>>();
  #latest: Part | undefined;

  constructor(kind: ItemKind, position: number, index: number | undefined, wire: WireItem) {
    this.kind = kind;
    this.position = position;
    this.index = index;
    this.wire = wire;
    const isCall = kind === 'function' || kind === 'custom';
    this.call = isCall ? newInput() : undefined;
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

  /** The part with this index; without an index, the latest part. */
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

  /** Assigns an index to a part: complete items may number their parts differently. */
  bindPart(index: number, part: Part): void {
    this.#parts.get(part.channel)?.set(index, part);
  }

  /** Whether `wire` is this item: the same call, an open item, or a repetition. */
  isSame(wire: WireItem): boolean {
    if (this.id !== undefined && wire.id === this.id) return true;
    if ((this.kind === 'opaque' || this.kind === 'built-in') && wire.type !== this.wire.type) return false;
    const callId = nonBlank(wire.call_id);
    return this.callId === undefined || callId === undefined ? !this.isDone : callId === this.callId;
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
  /** The text that was written. */
  text: string;
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

/** The kind of an item. `built-in`: a call that the client runs, with an item type of its own. */
export type ItemKind = 'message' | 'reasoning' | 'function' | 'custom' | 'built-in' | 'opaque';

/** Reports a violation of the protocol, at the current offset of the stream or at another. */
export type ReportHere = (rule: RuleId, detail?: string, offset?: number) => void;

// ---- matching

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
    if (taken.size === seen.length) break;
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
      const match = name === undefined ? undefined : free.get(name)?.pop();
      if (match === undefined) continue;
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
}
