import { isObject, type JsonObject, sameJson } from '../../accumulate/overlay.ts';
import type { ContentBlock, TokenLogprob } from '../../canonical/blocks.ts';
import type { BlockDelta, MessageDelta } from '../../canonical/events.ts';
import { type BlockEmitter, unplaced } from '../shared/block-writer.ts';
import { decodeCitation, decodeLogprobs, opaque, reasoningExtras, signedBlob, startText, startThinking } from './blocks.ts';
import type { Item, ItemFlow, Part, ReportHere } from './items.ts';
import { type Naming, pairUp } from './pair-up.ts';
import { type Channel, channelOf, filled, looseText, type WireItem } from './wire.ts';

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
