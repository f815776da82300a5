/** The content of a Responses stream: output items and their parts to blocks, calls included. */

import { ArgumentText, deriveId } from '../../accumulate/argument-text.ts';
import type { BlockDelta, MessageDelta } from '../../canonical/events.ts';
import type { ContentBlock, TokenLogprob, ToolUseBlock } from '../../canonical/message.ts';
import { CallLimits } from '../../codec/answers.ts';
import { type BlockEmitter, withoutOffsets } from '../../codec/block-emitter.ts';
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
import {
  type CallInput,
  findRest,
  type Item,
  type ItemFlow,
  isSentAgain,
  MAX_PARTS,
  type MatchKeys,
  matchEntries,
  type Part,
  type Restated,
} from './item-identity.ts';
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
  /** Reasoning items of which one channel has only repeated the other so far. */
  readonly #echoing = new Set<Item>();

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

  #writeThinking(item: Item, part: Part, piece: string): void {
    const text = this.#withoutEcho(item, part, piece);
    if (text === '') return;
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
   * Holds reasoning while it repeats that of the other channel: servers send the same text as reasoning and as summary.
   * Returns what can be written.
   */
  #withoutEcho(item: Item, part: Part, text: string): string {
    item.lead ??= part;
    const { lead } = item;
    if (part.isOwn || part.channel === lead.channel) return text;
    const { text: other } = item.findPart(lead.channel, part.index) ?? lead;
    const at = part.text.length - text.length;
    const shown = other.slice(at, part.text.length);
    if (text.startsWith(shown) && (at > 0 || shown !== '')) {
      this.#echoing.add(item);
      return '';
    }
    part.isOwn = true;
    return part.text;
  }

  /** Drops what repeated the other channel to its end, and writes what only began like it. */
  #settleEchoes(item: Item): void {
    const { lead } = item;
    if (!lead || !this.#echoing.delete(item)) return;
    for (const part of item.parts) {
      if (part.isOwn || !isReasoning(part) || part.channel === lead.channel || part.text === '') continue;
      if ((item.findPart(lead.channel, part.index) ?? lead).text === part.text) this.#report('responses/reasoning-twice');
      else this.#writeThinking(item, Object.assign(part, { isOwn: true }), part.text);
    }
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

  /** Writes what another statement of its text adds to an item. */
  extend({ item, rest }: Restated): void {
    const part = item.parts.findLast(({ text }) => text !== '');
    if (!part || rest === '') return;
    this.#report('responses/done-longer');
    this.write(item, part, rest);
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
    if (this.#settleJoined(item, entries, parts)) return;
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

  /** Settles parts that the complete item cuts elsewhere than the stream did, by their joined text. False if they are the same. */
  #settleJoined(item: Item, entries: readonly ListedPart[], parts: readonly (Part | undefined)[]): boolean {
    if (item.parts.length > MAX_PARTS) return false;
    const channels = new Set(entries.map(({ channel }) => channel));
    const seen = item.parts.filter(({ channel, text }) => text !== '' && channels.has(channel));
    const isAligned = entries.every(({ text }, at) => text.startsWith(parts[at]?.text ?? ''));
    const last = seen.at(-1);
    if (!last || (isAligned && seen.every((part) => parts.includes(part)))) return false;
    const whole = entries.map(({ text }) => text).join('');
    const missing = whole.length - seen.reduce((sum, { text }) => sum + text.length, 0);
    const isContinued = missing >= 0 && whole.startsWith(seen.map(({ text }) => text).join(''));
    if (!isContinued && entries.length >= seen.length) return false;
    if (!isContinued) this.#report('responses/done-differs');
    if (!isContinued || missing === 0) return true;
    this.#report('responses/done-longer');
    this.write(item, last, whole.slice(-missing));
    return true;
  }

  #finishReasoning(item: Item, wire: WireItem, isWhole: boolean): void {
    const before = item.wire;
    const isStarted = item.blockKey !== undefined;
    const blob = item.isSigned ? undefined : (nonBlank(wire.encrypted_content) ?? nonBlank(before.encrypted_content));
    item.wire = { ...wire, id: nonBlank(wire.id) ?? before.id };
    item.isLive = false;
    const [summary, content] = [readListedParts(wire.summary, 'summary'), readListedParts(wire.content, 'full')];
    const moved = findMoved(item, summary, 'full', content) ?? findMoved(item, content, 'summary', summary);
    if (moved !== undefined) {
      this.#report('responses/text-of-another-kind');
      this.extend({ item, rest: moved });
    } else {
      this.#settleAll(item, summary, isWhole);
      this.#settleAll(item, content, isWhole);
    }
    this.#settleEchoes(item);
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
    for (const item of this.#echoing) this.#settleEchoes(item);
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

/** What a complete reasoning item adds to the text of the stream, if it has that only as parts of the other channel. */
function findMoved(
  { parts }: Item,
  listed: readonly ListedPart[],
  from: Channel,
  others: readonly ListedPart[],
): string | undefined {
  if (parts.length > MAX_PARTS) return undefined;
  const seen = parts.filter(({ text }) => text !== '');
  if (others.length > 0 || seen.length === 0 || seen.some(({ channel }) => channel !== from)) return undefined;
  return findRest(joinTexts(listed), joinTexts(seen));
}

const joinTexts = (parts: readonly { text: string }[]): string => parts.map(({ text }) => text).join('');

const isReasoning = ({ channel }: Part): boolean => channel === 'summary' || channel === 'full';

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
    if (item.isDone || call.isSettled) this.#report('responses/done-differs');
    // Nothing may follow the complete value.
    if (!call.isSettled) {
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
    if (text === '' || !isWholeInput(item, call, text)) this.#append(item, call, text, typeof value === 'string');
    else this.#settle(item, call, text);
    this.#flush(item, call);
  }

  /**
   * Takes arguments that are cut off, because more of them may follow. `isEnd`: they are said to be all. Nothing is added where
   * the deltas have other ones.
   */
  #append(item: Item, call: CallInput, text: string, isEnd: boolean): void {
    const seen = item.content;
    const rest = text.slice(seen.length);
    if (!text.startsWith(seen)) {
      if (isEnd) this.#report('responses/done-differs');
    } else if (rest !== '' && !call.isSettled) {
      if (isEnd) this.#report(seen === '' ? 'responses/deltas-missing' : 'responses/done-longer');
      this.fragment(item, rest);
    }
  }

  /**
   * Takes the final form of the item; undefined if the stream ended without one. `isLast`: there will be no other form. Until
   * then a call without name or arguments is held.
   */
  done(item: Item, wire: WireItem | undefined, isWhole: boolean, isLast: boolean): void {
    const { call } = item;
    if (!call) return;
    if (item.state === 'done') {
      if (wire) this.#resume(item, call, this.#readInput(item, wire));
      return;
    }
    const isNamedLate = item.state === 'held' && nonBlank(item.wire.name) === undefined && nonBlank(wire?.name) !== undefined;
    if (isNamedLate) this.#report('responses/call-name-late', undefined, item.first);
    item.state = 'done'; // set first, so that a limit error below does not recur when the stream is closed
    if (wire)
      item.wire = { ...wire, name: nonBlank(wire.name) ?? item.wire.name, call_id: nonBlank(wire.call_id) ?? item.wire.call_id };
    const input = wire ? this.#readInput(item, wire) : '';
    const isCut = !isLast && item.wire.status !== 'incomplete' && !isWholeInput(item, call, input);
    if (isCut || input === '') this.#append(item, call, input, wire !== undefined && !isWhole);
    if (!isCut) this.#settle(item, call, input, isWhole);
    if (!isLast && (isCut || nonBlank(item.wire.name) === undefined)) {
      item.state = 'held';
      return;
    }
    if (isSentAgain(item)) {
      this.#report('responses/item-repeated', undefined, item.first);
      return;
    }
    if (this.#expand(item, call) || isEmptyCall(item, call)) return;
    const block = this.#open(item, true);
    this.#flush(item, call);
    this.#resume(item, call, input);
    if (block) this.#emitter.stopTool(block.index, this.#final(item, call, block.start));
  }

  /** Handles arguments that continue after the item was done, or replace some that are no JSON. Nothing is added to complete JSON. */
  #resume({ kind }: Item, { block, sent }: CallInput, whole: string): void {
    // A short form is not compared with long arguments again and again.
    if (!block || whole === sent || 4 * whole.length < sent.length || parseJson(sent) !== undefined) return;
    const isLonger = whole.length > sent.length && whole.startsWith(sent);
    if (!isLonger && (kind === 'custom' || parseJson(whole) === undefined)) return;
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
    return this.#readArguments(item.kind === 'custom' ? (wire.input ?? wire.arguments) : (wire.arguments ?? wire.input));
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
    if (!call.block || call.ready === '' || (call.isGuess && item.state !== 'done')) return;
    this.#emitter.writeTool(call.block.index, call.ready, item.kind === 'custom');
    call.sent += call.ready;
    call.ready = '';
  }

  /** Starts the block once id and name are known, or when nothing more will come. */
  #open(item: Item, isForced: boolean): CallInput['block'] {
    const { call } = item;
    if (!call || call.block) return call?.block;
    const hasNames = item.callId !== undefined && nonBlank(item.wire.name) !== undefined;
    const isSettled = hasNames && !item.original && !this.#isWrapper(item);
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
    const late = call.block && this.late.get(call.block.index);
    if (late) return { ...block, ...late };
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

/** Whether arguments are complete, in the deltas or in a statement: others may still be continued. */
const isWholeInput = ({ kind }: Item, { isSettled, fragments }: CallInput, whole: string): boolean =>
  isSettled || kind === 'custom' || fragments.isComplete || parseJson(whole) !== undefined;

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

/** Reports a violation of the protocol, at the current offset of the stream or at another. */
export type ReportHere = (rule: RuleId, detail?: string, offset?: number) => void;
