import { deriveId } from '../../accumulate/argument-text.ts';
import type { CanonicalStreamEvent, MessageDelta, MessageStart } from '../../canonical/events.ts';
import { recomputeStop, type StopReason } from '../../canonical/message.ts';
import { type CanonicalError, ownError } from '../../canonical/notes.ts';
import type { Stage } from '../../canonical/stage.ts';
import { BlockEmitter, type Emit } from '../../codec/block-emitter.ts';
import type { Context } from '../../codec/context.ts';
import { isBareError } from '../../codec/errors.ts';
import { objectOf, unknownFields } from '../../codec/read.ts';
import { PayloadDecoder, type PayloadMachine, type StreamDecoderOptions } from '../../codec/stream-decoder.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import type { SseFrame } from '../../sse/encode.ts';
import { decodeLogprobs } from './blocks.ts';
import {
  CallEmitter,
  ContentEmitter,
  type Item,
  type ItemKind,
  ItemStore,
  kindOf,
  type Naming,
  type Part,
  pairUp,
  type ReportHere,
} from './content-decode.ts';
import { asTerminal, decodeError, decodeFailure, decodeStop, decodeUsage, findError } from './outcome.ts';
import { decodeBuiltInCall } from './tools.ts';
import {
  type Action,
  argumentsOf,
  type Channel,
  channelOf,
  filled,
  type ItemAction,
  indexOf,
  looseText,
  readType,
  type WireEvent,
  type WireItem,
  type WireResponse,
} from './wire.ts';

/** Fields of a response that have a canonical place. What echoes the request has none, and is kept. */
const RESPONSE_FIELDS: ReadonlySet<string> = new Set(
  Object.keys({
    id: 0,
    object: 0,
    created_at: 0,
    status: 0,
    model: 0,
    output: 0,
    output_text: 0,
    usage: 0,
    error: 0,
    service_tier: 0,
    system_fingerprint: 0,
  } satisfies { [K in keyof WireResponse]?: 0 }),
);

const ENVELOPE_FIELDS: ReadonlySet<string> = new Set(
  Object.keys({ type: 0, sequence_number: 0, response: 0 } satisfies { [K in keyof WireEvent]?: 0 }),
);

/** A whole body in place of a stream: the object that the terminal event would have carried. */
export const isWholeResponse = (payload: JsonObject): boolean =>
  typeof payload['type'] !== 'string' &&
  (payload['object'] === 'response' || (Array.isArray(payload['output']) && 'status' in payload));

/** The response inside an event; some servers send it without the envelope. */
function responseOf(event: JsonObject): WireResponse {
  if (isObject(event['response'])) return event['response'];
  return event['object'] === 'response' ? event : {};
}

function decodeStart(response: WireResponse): MessageStart['message'] {
  const { created_at: created } = response;
  return {
    id: filled(response.id) ?? deriveId('resp_', filled(response.model) ?? '', typeof created === 'number' ? created : ''),
    model: filled(response.model) ?? '',
    ...(typeof created === 'number' && { created }),
    ...envelopeFields(response),
  };
}

/** What the response did not say yet when it started: servers leave out `response.created`, or all of its fields. */
function lateFields(first: WireResponse | undefined, last: WireResponse): MessageDelta['message'] {
  const [id, model, created] = [filled(last.id), filled(last.model), last.created_at];
  return {
    ...(id !== undefined && !filled(first?.id) && { id }),
    ...(model !== undefined && !filled(first?.model) && { model }),
    ...(first?.created_at === undefined && typeof created === 'number' && { created }),
  };
}

function envelopeFields(response: WireResponse): { service_tier?: string; system_fingerprint?: string } {
  const service_tier = filled(response.service_tier);
  const system_fingerprint = filled(response.system_fingerprint);
  return { ...(service_tier !== undefined && { service_tier }), ...(system_fingerprint !== undefined && { system_fingerprint }) };
}

/** What nobody here knows about the response, and about the event that brought it (GitHub Copilot puts `copilot_usage` there). */
function responseExtras(response: WireResponse, envelope: JsonObject | undefined): JsonObject {
  const around =
    envelope && envelope !== response && !isWholeResponse(envelope) ? unknownFields(envelope, ENVELOPE_FIELDS) : undefined;
  return { ...unknownFields(response, RESPONSE_FIELDS), ...around };
}

/** The ends of a response, the worst last. */
const ENDS: readonly string[] = ['completed', 'incomplete', 'cancelled', 'failed'];

/** How the terminal event ends the response: its name and the status agree in a conforming stream; else the worse is believed. */
function statusOf(response: WireResponse, named = 'completed'): string {
  const status = filled(response.status) ?? named;
  return ENDS.indexOf(status) > ENDS.indexOf(named) ? status : named;
}

const reasonOf = (response: WireResponse): string | undefined => filled(objectOf(response.incomplete_details)['reason']);

/** Items of one name can stand for each other. */
const nameOf = (kind: ItemKind, { type }: WireItem): string =>
  kind === 'opaque' || kind === 'built-in' ? `${kind} ${filled(type)}` : kind;

const listed = (wire: WireItem): string => nameOf(kindOf(wire), wire);

const shown = ({ kind, wire }: Item): string => nameOf(kind, wire);

function callIdOf(wire: WireItem): string | undefined {
  const kind = kindOf(wire);
  return kind === 'function' || kind === 'custom' ? filled(wire.call_id) : undefined;
}

/** Ids rotate, indexes shift and lists leave items out, but two calls with different call ids are never the same. */
const ITEM_NAMINGS: readonly Naming<WireItem, Item>[] = [
  { wire: (wire) => callIdOf(wire) ?? filled(wire.id), seen: (item) => item.callId ?? item.id },
  {
    wire: (wire, at) => `${at} ${listed(wire)}`,
    seen: (item) => (item.callId === undefined ? `${item.index} ${shown(item)}` : undefined),
  },
  {
    wire: (wire, at) => (callIdOf(wire) === undefined ? `${at} ${listed(wire)}` : undefined),
    seen: (item) => `${item.index} ${shown(item)}`,
  },
  { wire: listed, seen: (item) => (item.callId === undefined ? shown(item) : undefined) },
  { wire: (wire) => (callIdOf(wire) === undefined ? listed(wire) : undefined), seen: shown },
];

/** The items a response lists, each with the item of the stream that it is; undefined for one that the stream never showed. */
function pairItems(output: unknown, seen: readonly Item[]): { wire: WireItem; item: Item | undefined }[] {
  const wires: WireItem[] = Array.isArray(output) ? output.filter(isObject) : [];
  const items = pairUp(wires, seen, ITEM_NAMINGS);
  return wires.map((wire, at) => ({ wire, item: items[at] }));
}

const isReasoning = (channel: Channel): boolean => channel === 'summary' || channel === 'full';

/** Finds the item an event is about, and has it written. */
class ItemReader {
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

export function decodeStream(context: Context, options: StreamDecoderOptions = {}): Stage<SseFrame, CanonicalStreamEvent> {
  return new PayloadDecoder(context, options, (emit) => new ResponsesMachine(context, emit));
}

class ResponsesMachine implements PayloadMachine {
  readonly #context: Context;
  readonly #emit: Emit;
  readonly #emitter: BlockEmitter;
  readonly #items: ItemReader;
  #offset = 0;
  #sequence = Number.NEGATIVE_INFINITY;
  /** The form in which the response started; undefined before that. */
  #first: WireResponse | undefined;
  /** The latest form of the response, and the event that brought it. */
  #response: WireResponse = {};
  #envelope: JsonObject | undefined;
  /** An `error` event says why; `response.failed`, which usually follows, ends the stream. */
  #error: CanonicalError | undefined;

  constructor(context: Context, emit: Emit) {
    this.#context = context;
    this.#emit = emit;
    this.#emitter = new BlockEmitter(emit);
    this.#items = new ItemReader(this.#emitter, () => this.#offset, this.#report);
  }

  readonly #report: ReportHere = (rule, detail, offset = this.#offset) => this.#context.report(rule, offset, detail);

  payload(value: JsonObject, event: string | undefined, offset: number): void {
    this.#offset = offset;
    const type = typeof value['type'] === 'string' ? value['type'] : event;
    if (isWholeResponse(value) && !type?.startsWith('response.')) this.#readWhole(value);
    else if (type === undefined) this.#readUntyped(value);
    else this.#readEvent(value, type, event);
  }

  #readWhole(response: JsonObject): void {
    const status = filled(response['status']) ?? 'completed';
    this.#start(response);
    this.#items.readOutput(response['output'], true);
    if (status === 'queued' || status === 'in_progress') this.#truncate(`the response is ${status}: it has not been finished`);
    else this.#finish(response, status);
  }

  #readUntyped(value: JsonObject): void {
    if (value['error'] || value['detail'] || isBareError(value)) this.fail(this.#error ?? decodeError(findError(value)));
    else this.#report('responses/type-missing');
  }

  #readEvent(value: JsonObject, type: string, event: string | undefined): void {
    const { action, isStandard } = readType(type);
    this.#inspect(value, event, isStandard);
    if (action) this.#act(action, value);
  }

  #inspect({ type, sequence_number: sequence }: WireEvent, event: string | undefined, isStandard: boolean): void {
    if (event === undefined) this.#report('responses/event-line-missing');
    if (typeof type !== 'string') this.#report('responses/type-missing');
    if (!isStandard)
      this.#report(
        'responses/unknown-event',
        typeof type === 'string' ? `The standard has no event ${type.slice(0, 60)}` : undefined,
      );
    if (typeof sequence !== 'number') return;
    if (sequence <= this.#sequence) this.#report('responses/sequence-number');
    this.#sequence = sequence;
  }

  #act(action: Action, event: JsonObject): void {
    switch (action.does) {
      case 'ping':
        this.#emit({ type: 'ping' });
        return;
      case 'error':
        this.#error ??= decodeError(findError(event));
        return;
      case 'start':
        this.#start(responseOf(event));
        return;
      case 'end':
        this.#end(event, action.status);
        return;
      case 'audio':
        this.#require();
        this.#items.content.audio({ type: 'audio_delta', [action.field]: looseText(event['delta']) });
        return;
      default:
        this.#require();
        this.#items.read(action, event);
    }
  }

  /** `response.created` must come first; content that comes without it is read all the same. */
  #require(): void {
    if (this.#first) return;
    this.#report('responses/created-missing');
    this.#start({});
  }

  #start(response: WireResponse): void {
    this.#response = response;
    if (this.#first) return;
    this.#first = response;
    const message = decodeStart(response);
    this.#items.open(message.id, response.tools);
    this.#emit({ type: 'message_start', message });
  }

  /** `named`: the status that the name of the event stands for, if it does. */
  #end(event: JsonObject, named: string | undefined): void {
    const response = responseOf(event);
    const status = statusOf(response, named);
    if (filled(response.status) !== (named ?? status)) this.#report('responses/status-differs');
    this.#start(response);
    this.#envelope = event;
    this.#items.readOutput(response.output, false);
    if (status === 'completed' && this.#items.isOutputMissing(response.output)) this.#report('responses/output-empty');
    this.#finish(response, status);
  }

  #finish(response: WireResponse, status: string): void {
    if (status === 'failed' || status === 'cancelled') {
      if (!this.#error && !response.error) this.#report('responses/failed-without-error');
      this.#error ??= decodeFailure(status, response.error);
    }
    if (this.#error) {
      this.#fail(asTerminal(this.#error), status);
      return;
    }
    this.#close();
    this.#emit(this.#messageDelta(this.#stopOf(decodeStop(status, reasonOf(response))), status));
    this.#emit({ type: 'message_stop' });
  }

  /** A refusal is the stop reason only when nothing else was said. */
  #stopOf(stop: StopReason): StopReason {
    const { calls, content } = this.#items;
    const recomputed = recomputeStop(stop, calls.blocks);
    return recomputed === 'end_turn' && content.hasRefusal && !content.hasText ? 'refusal' : recomputed;
  }

  #messageDelta(stop_reason: StopReason | null, status: string | undefined): MessageDelta {
    const { usage } = this.#response;
    const message = { ...lateFields(this.#first, this.#response), ...envelopeFields(this.#response) };
    const reason = reasonOf(this.#response);
    const { content, calls } = this.#items;
    const { late } = content;
    const lateCalls = [...calls.late].map(([index, content_block]) => ({ index, content_block }));
    const lateBlocks = [...content.lateBlocks, ...lateCalls];
    const extensions: JsonObject = {
      ...(status !== undefined && { finish_reason: status }),
      ...responseExtras(this.#response, this.#envelope),
      ...(late.length > 0 && { late_items: late }),
    };
    return {
      type: 'message_delta',
      delta: { stop_reason, ...(status === 'incomplete' && reason !== undefined && { stop_details: { raw: reason } }) },
      ...(isObject(usage) && { usage: decodeUsage(usage, (note) => this.#context.note(note)) }),
      ...(Object.keys(extensions).length > 0 && { extensions: { 'openai-responses': extensions } }),
      ...(lateBlocks.length > 0 && { late_blocks: lateBlocks }),
      ...(Object.keys(message).length > 0 && { message }),
    };
  }

  #close(): void {
    this.#items.end();
    this.#emitter.end();
  }

  /** Noise in this protocol: only a terminal event says that the response is whole. */
  done(offset: number, hasEnded: boolean): void {
    this.#offset = offset;
    this.#report('responses/done-sentinel');
    if (this.#error && !hasEnded) this.#fail(this.#error, undefined);
  }

  fail(error: CanonicalError): void {
    this.#fail(error, undefined);
  }

  #fail(error: CanonicalError, status: string | undefined): void {
    if (this.#first) {
      this.#close();
      this.#emit(this.#messageDelta(null, status));
    }
    this.#emit({ type: 'error', error });
  }

  #truncate(message: string): void {
    this.#fail({ code: 'STREAM_TRUNCATED', message }, undefined);
  }

  end(): void {
    if (this.#error) {
      this.#report('responses/error-without-failed');
      this.#fail(this.#error, undefined);
    } else if (this.#first) {
      this.#report('responses/terminal-missing');
      this.#truncate('the stream ended without response.completed, response.incomplete or response.failed');
    } else this.#fail(ownError('empty_stream', 'UPSTREAM_ERROR', 'the stream ended without any event of a response'), undefined);
  }
}
