import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { BlockEmitter } from '../shared/block-writer.ts';
import { objectOf } from '../shared/read.ts';
import { decodeLogprobs } from './blocks.ts';
import { decodeBuiltInCall } from './built-in-calls.ts';
import { CallEmitter } from './calls.ts';
import { ContentEmitter } from './content.ts';
import type { ItemAction } from './event-types.ts';
import { type Item, type ItemKind, ItemStore, kindOf, type Part, type ReportHere } from './items.ts';
import { pairItems } from './response-fields.ts';
import { argumentsOf, type Channel, channelOf, filled, indexOf, looseText, type WireEvent, type WireItem } from './wire.ts';

const isReasoning = (channel: Channel): boolean => channel === 'summary' || channel === 'full';

/** Finds the item an event is about, and has it written. */
export class ItemReader {
  readonly content: ContentEmitter;
  readonly calls: CallEmitter;
  readonly #store = new ItemStore();
  readonly #report: ReportHere;

  readonly #here: () => number;

  constructor(emitter: BlockEmitter, here: () => number, report: ReportHere) {
    this.#here = here;
    this.#report = report;
    this.content = new ContentEmitter(emitter, report);
    this.calls = new CallEmitter(emitter, (item) => this.content.interrupt(item), report);
  }

  /** `tools`: the response repeats what the request declared. */
  open(responseId: string, tools: unknown): void {
    this.calls.idSeed = responseId;
    this.calls.isWrapperDeclared = Array.isArray(tools) && tools.some((tool) => isObject(tool) && tool['name'] === 'parallel');
  }

  read(action: ItemAction, event: JsonObject): void {
    switch (action.does) {
      case 'item-added':
        this.#added(event);
        return;
      case 'item-done':
        this.#done(event);
        return;
      case 'part':
        this.#part(event, action.channel, action.isDone);
        return;
      case 'text':
        this.#text(event, action.channel, action.isDone);
        return;
      case 'annotation':
        this.#annotation(event);
        return;
      case 'input':
        this.#input(event, action.isCustom ? 'custom' : 'function', action.isDone);
        return;
      default:
        action satisfies never;
    }
  }

  #added(event: WireEvent): void {
    const wire: WireItem = objectOf(event.item);
    const kind = kindOf(wire);
    const index = this.#indexOf(event);
    const known = this.#store.find(kind, index, wire.id);
    if (known && !known.isDone && known.isSame(wire) && (index !== undefined || wire.id === known.id)) {
      this.#report('responses/item-added-late');
      known.wire = { ...known.wire, ...wire };
      if (known.call) this.calls.whole(known, kind === 'custom' ? wire.input : wire.arguments, wire.name);
      return;
    }
    if (this.#store.has(index)) this.#report('responses/output-index-reused');
    this.#write(this.#add(kind, index, wire));
  }

  #write(item: Item): void {
    if (item.call) this.calls.added(item);
    else if (item.kind !== 'built-in') this.content.added(item); // read when it is done
  }

  #done(event: WireEvent): void {
    const wire: WireItem = objectOf(event.item);
    const kind = kindOf(wire);
    const index = this.#indexOf(event);
    const known = this.#store.find(kind, index, wire.id);
    if (known?.isSame(wire)) {
      this.#checkId(known, wire.id);
      this.#finish(known, wire, false);
      return;
    }
    this.#report('responses/item-not-added');
    this.#finish(this.#add(kind, index, wire), wire, true);
  }

  /** `isWhole`: the item has no deltas that could be compared. */
  #finish(item: Item, wire: WireItem, isWhole: boolean): void {
    if (item.call) this.calls.done(item, wire, isWhole);
    else if (item.kind === 'built-in') this.#finishBuiltIn(item, wire);
    else this.content.done(item, wire, isWhole);
    item.isDone = true;
  }

  /** A call that the client runs under a name of the protocol's own. Without arguments it is nothing that could be run. */
  #finishBuiltIn(item: Item, wire: WireItem): void {
    if (item.isDone) return;
    const call = decodeBuiltInCall({ ...wire });
    if (call) this.calls.builtIn(item, call);
    else this.content.done(this.#store.add('opaque', undefined, wire), wire, true);
  }

  #part(event: WireEvent, named: Channel, isDone: boolean): void {
    const wire = objectOf(event.part);
    const channel = channelOf(wire['type']) ?? (wire['type'] === undefined ? named : undefined);
    // A part of an unknown kind is read from the item when that is done.
    if (channel === undefined) return;
    const item = this.#itemFor(channel, event);
    const index = partIndex(event, channel);
    const part = item.findPart(channel, index) ?? item.addPart(channel, index);
    this.content.settle(item, part, looseText(wire['refusal'] ?? wire['text']), !isDone);
    if (isDone && channel === 'text') this.content.complete(item, part, wire);
  }

  #text(event: WireEvent, channel: Channel, isDone: boolean): void {
    const item = this.#itemFor(channel, event);
    const part = this.#partFor(item, channel, event);
    if (!isDone) {
      this.content.write(item, part, looseText(event.delta), decodeLogprobs(event.logprobs));
      return;
    }
    this.content.settle(item, part, looseText(event.refusal ?? event.text));
    if (channel === 'text') this.content.complete(item, part, { logprobs: event.logprobs });
  }

  #annotation(event: WireEvent): void {
    const item = this.#itemFor('text', event);
    this.content.cite(item, this.#partFor(item, 'text', event), event.annotation);
  }

  #input(event: WireEvent, named: 'function' | 'custom', isDone: boolean): void {
    const item = this.#guessCall(event) ?? this.#callFor(named, event);
    if (!item) return;
    if (isDone) this.calls.whole(item, event.arguments ?? event.input, event.name);
    else {
      item.last = this.#here();
      this.calls.fragment(item, argumentsOf(event.delta));
    }
  }

  #itemFor(channel: Channel, event: WireEvent): Item {
    const index = this.#indexOf(event);
    const kind = isReasoning(channel) ? 'reasoning' : 'message';
    const known = this.#store.find(kind, index, event.item_id);
    return known ? this.#checkId(known, event.item_id) : this.#implied(kind, index, event);
  }

  /** The call an event is about. Events of this name for a server's own item say nothing that the item does not say in the end. */
  #callFor(named: 'function' | 'custom', event: WireEvent): Item | undefined {
    const index = this.#indexOf(event);
    const other = named === 'custom' ? 'function' : 'custom';
    const id = filled(event.item_id) ?? event.call_id;
    const known = this.#store.find(named, index, id) ?? this.#store.find(other, index, id);
    if (known) return this.#checkId(known, event.item_id);
    return this.#store.find('opaque', index, event.item_id) && index !== undefined
      ? undefined
      : this.#implied(named, index, event);
  }

  /** The call that an event without any identity is about, where it is not simply the latest one. */
  #guessCall({ output_index, item_id, call_id }: WireEvent): Item | undefined {
    if (indexOf(output_index) !== undefined || filled(item_id) !== undefined || filled(call_id) !== undefined) return undefined;
    const guess = this.#store.guessCall();
    if (guess?.item.call && guess.isGuess) guess.item.call.isGuess = true;
    if (guess) this.#report('responses/output-index-missing');
    return guess?.item;
  }

  #implied(kind: ItemKind, index: number | undefined, event: WireEvent): Item {
    this.#report('responses/item-not-added');
    return this.#add(kind, index, { id: event.item_id });
  }

  #add(kind: ItemKind, index: number | undefined, wire: WireItem): Item {
    if (kind === 'function' || kind === 'custom') this.calls.limits.open();
    const item = this.#store.add(kind, index, wire);
    item.first = this.#here();
    item.last = item.first;
    return item;
  }

  #partFor(item: Item, channel: Channel, event: WireEvent): Part {
    const index = partIndex(event, channel);
    const known = item.findPart(channel, index);
    if (known) return known;
    this.#report('responses/part-not-added');
    return item.addPart(channel, index);
  }

  #indexOf(event: WireEvent): number | undefined {
    const index = indexOf(event.output_index);
    if (index === undefined) this.#report('responses/output-index-missing');
    return index;
  }

  #checkId(item: Item, id: unknown): Item {
    if (typeof id === 'string' && item.id !== undefined && id !== item.id) this.#report('responses/item-id-rotates');
    return item;
  }

  /** The items of a whole response, or what the stream left out of them. */
  readOutput(output: unknown, isWhole: boolean): void {
    for (const { wire, item } of pairItems(output, this.#store.all)) {
      if (!item && !isWhole) this.#report('responses/item-only-in-output');
      // OpenAI never closes its own `mcp_list_tools`; no client waits for an item that the server runs.
      if (item && !item.isDone && item.kind !== 'opaque') this.#report('responses/item-not-done', undefined, item.first);
      this.#finish(item ?? this.#add(kindOf(wire), undefined, wire), wire, isWhole || !item);
    }
  }

  isOutputMissing(output: unknown): boolean {
    return this.#store.all.length > 0 && !(Array.isArray(output) && output.length > 0);
  }

  /** The stream is over: calls that were never done are closed as they are. */
  end(): void {
    for (const item of [...this.#store.all]) {
      if (item.isDone) continue;
      if (item.call) this.calls.done(item, undefined, false);
      else if (item.kind === 'built-in') this.content.done(this.#store.add('opaque', undefined, item.wire), item.wire, true);
    }
    this.content.end();
  }
}

const partIndex = (event: WireEvent, channel: Channel): number | undefined =>
  indexOf(channel === 'summary' ? event.summary_index : event.content_index);
