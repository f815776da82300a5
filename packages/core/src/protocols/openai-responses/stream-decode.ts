import { deriveId } from '../../accumulate/argument-text.ts';
import type { CanonicalStreamEvent, MessageDelta, MessageStart } from '../../canonical/events.ts';
import { recomputeStop, type StopReason } from '../../canonical/message.ts';
import { type CanonicalError, ownError } from '../../canonical/notes.ts';
import type { Stage } from '../../canonical/stage.ts';
import { BlockEmitter, type Emit } from '../../codec/block-emitter.ts';
import type { Context } from '../../codec/context.ts';
import { findBareError } from '../../codec/errors.ts';
import { objectOrEmpty, unknownFields } from '../../codec/read.ts';
import { PayloadDecoder, type PayloadMachine, type StreamDecoderOptions } from '../../codec/stream-decoder.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import type { SseFrame } from '../../sse/encode.ts';
import { decodeLogprobs } from './blocks.ts';
import { CallEmitter, ContentEmitter, type ReportHere } from './content-decode.ts';
import {
  type Item,
  type ItemKind,
  ItemRegistry,
  otherText,
  type Part,
  type Restated,
  Statement,
  TEXT_KINDS,
  takeMoved,
} from './item-identity.ts';
import { decodeError, decodeFailure, decodeStop, decodeUsage, findError, markTerminal } from './outcome.ts';
import { decodeBuiltInCall } from './tools.ts';
import {
  type Action,
  type Channel,
  findChannel,
  type ItemAction,
  nonBlank,
  readArguments,
  readIndex,
  readLooseText,
  readType,
  type WireEvent,
  type WireItem,
  type WireResponse,
} from './wire.ts';

/** Decodes a Responses stream, or a whole body in place of one, to canonical events. */
export function decodeStream(context: Context, options: StreamDecoderOptions = {}): Stage<SseFrame, CanonicalStreamEvent> {
  return new PayloadDecoder(context, options, (emit) => new ResponsesMachine(context, emit));
}

/** Whether a payload is a whole response body in place of a stream. */
export const isWholeResponse = (payload: JsonObject): boolean =>
  typeof payload['type'] !== 'string' &&
  (payload['object'] === 'response' || (Array.isArray(payload['output']) && 'status' in payload));

/** The event machine: envelope, status, errors and the end of the stream; items are read by the ItemReader. */
class ResponsesMachine implements PayloadMachine {
  readonly #context: Context;
  readonly #emit: Emit;
  readonly #emitter: BlockEmitter;
  readonly #items: ItemReader;
  #offset = 0;
  #sequence = Number.NEGATIVE_INFINITY;
  /** The response as it started; undefined before that. */
  #first: WireResponse | undefined;
  /** The latest form of the response, and the event that it came with. */
  #response: WireResponse = {};
  #envelope: JsonObject | undefined;
  /** The error of an `error` event; `response.failed`, which usually follows, ends the stream. */
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
    const status = nonBlank(response['status']) ?? 'completed';
    this.#start(response);
    this.#items.readOutput(response['output'], true);
    if (status === 'queued' || status === 'in_progress') this.#truncate(`the response is not finished (status: ${status})`);
    else this.#finish(response, status);
  }

  #readUntyped(value: JsonObject): void {
    if (value['error'] || findBareError(value)) this.fail(this.#error ?? decodeError(findError(value)));
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
        typeof type === 'string' ? `Event type ${type.slice(0, 60)} is not part of the protocol` : undefined,
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
        this.#start(readResponse(event));
        return;
      case 'end':
        this.#end(event, action.status);
        return;
      case 'audio':
        this.#require();
        this.#items.content.audio({ type: 'audio_delta', [action.field]: readLooseText(event['delta']) });
        return;
      default:
        this.#require();
        this.#items.read(action, event);
    }
  }

  /** Starts the response if `response.created` is missing. */
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

  /** `named`: the status in the event name, if any. */
  #end(event: JsonObject, named: string | undefined): void {
    const response = readResponse(event);
    const status = readStatus(response, named);
    if (nonBlank(response.status) !== (named ?? status)) this.#report('responses/status-differs');
    this.#start(response);
    this.#envelope = event;
    this.#items.readOutput(response.output, false);
    if (status === 'completed' && this.#items.isOutputMissing) this.#report('responses/output-empty');
    this.#finish(response, status);
  }

  #finish(response: WireResponse, status: string): void {
    if (status === 'failed' || status === 'cancelled') {
      if (!this.#error && !response.error) this.#report('responses/failed-without-error');
      this.#error ??= decodeFailure(status, response.error);
    }
    if (this.#error) {
      this.#fail(markTerminal(this.#error), status);
      return;
    }
    this.#close();
    this.#emit(this.#messageDelta(this.#recomputeStop(decodeStop(status, readReason(response))), status));
    this.#emit({ type: 'message_stop' });
  }

  /** The stop reason, corrected by the content: a refusal counts only if there is no other text. */
  #recomputeStop(stop: StopReason): StopReason {
    const { calls, content } = this.#items;
    const recomputed = recomputeStop(stop, calls.blocks);
    return recomputed === 'end_turn' && content.hasRefusal && !content.hasText ? 'refusal' : recomputed;
  }

  #messageDelta(stop_reason: StopReason | null, status: string | undefined): MessageDelta {
    const { usage } = this.#response;
    const message = { ...readLateFields(this.#first, this.#response), ...readEnvelopeFields(this.#response) };
    const reason = readReason(this.#response);
    const { content, calls } = this.#items;
    const { late } = content;
    const lateCalls = [...calls.late].map(([index, content_block]) => ({ index, content_block }));
    const lateBlocks = [...content.lateBlocks, ...lateCalls];
    const extensions: JsonObject = {
      ...(status !== undefined && { finish_reason: status }),
      ...readExtras(this.#response, this.#envelope),
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

  /** Ignores `[DONE]`, which this protocol does not have: only a terminal event completes the response. */
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

/** The response of an event; some servers send it without the envelope. */
function readResponse(event: JsonObject): WireResponse {
  if (isObject(event['response'])) return event['response'];
  return event['object'] === 'response' ? event : {};
}

function decodeStart(response: WireResponse): MessageStart['message'] {
  const { created_at: created } = response;
  return {
    id: nonBlank(response.id) ?? deriveId('resp_', nonBlank(response.model) ?? '', typeof created === 'number' ? created : ''),
    model: nonBlank(response.model) ?? '',
    ...(typeof created === 'number' && { created }),
    ...readEnvelopeFields(response),
  };
}

function readEnvelopeFields(response: WireResponse): { service_tier?: string; system_fingerprint?: string } {
  const service_tier = nonBlank(response.service_tier);
  const system_fingerprint = nonBlank(response.system_fingerprint);
  return { ...(service_tier !== undefined && { service_tier }), ...(system_fingerprint !== undefined && { system_fingerprint }) };
}

/** The final statuses of a response, the worst last. */
const ENDS: readonly string[] = ['completed', 'incomplete', 'cancelled', 'failed'];

/** The final status: event name and status field agree in a conforming stream; otherwise the worse one counts. */
function readStatus(response: WireResponse, named = 'completed'): string {
  const status = nonBlank(response.status) ?? named;
  return ENDS.indexOf(status) > ENDS.indexOf(named) ? status : named;
}

const readReason = (response: WireResponse): string | undefined => nonBlank(objectOrEmpty(response.incomplete_details)['reason']);

/** Fields that were missing when the response started: servers leave out `response.created` or its fields. */
function readLateFields(first: WireResponse | undefined, last: WireResponse): MessageDelta['message'] {
  const [id, model, created] = [nonBlank(last.id), nonBlank(last.model), last.created_at];
  return {
    ...(id !== undefined && !nonBlank(first?.id) && { id }),
    ...(model !== undefined && !nonBlank(first?.model) && { model }),
    ...(first?.created_at === undefined && typeof created === 'number' && { created }),
  };
}

const ENVELOPE_FIELDS: ReadonlySet<string> = new Set(
  Object.keys({ type: 0, sequence_number: 0, response: 0 } satisfies { [K in keyof WireEvent]?: 0 }),
);

/** Fields of a response with a canonical place. Fields that echo the request have none, and are kept as extensions. */
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

/** Unknown fields of the response and of the event around it (GitHub Copilot has `copilot_usage` there). */
function readExtras(response: WireResponse, envelope: JsonObject | undefined): JsonObject {
  const around =
    envelope && envelope !== response && !isWholeResponse(envelope) ? unknownFields(envelope, ENVELOPE_FIELDS) : undefined;
  return { ...unknownFields(response, RESPONSE_FIELDS), ...around };
}

// ---- items

/** Finds the item that an event belongs to and passes its content on. */
class ItemReader {
  /** The final response has no items, or lacks a call. */
  isOutputMissing = false;
  readonly content: ContentEmitter;
  readonly calls: CallEmitter;
  readonly #items = new ItemRegistry();
  readonly #report: ReportHere;

  readonly #readOffset: () => number;

  constructor(emitter: BlockEmitter, here: () => number, report: ReportHere) {
    this.#readOffset = here;
    this.#report = report;
    this.content = new ContentEmitter(emitter, report);
    this.calls = new CallEmitter(emitter, (item) => this.content.interrupt(item), report);
  }

  /** Starts a response; `tools` are the tools of the request, which the response repeats. */
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
    const said = new Statement(objectOrEmpty(event.item), this.#readIndex(event));
    const { kind, index, wire } = said;
    const known = this.#items.findAdded(said);
    if (known) {
      this.#report(known.state === 'implied' ? 'responses/item-added-late' : 'responses/item-repeated');
      known.wire = { ...known.wire, ...dropBlank(wire) };
      known.state = 'added';
      this.#items.bind(known, index, said.id, said.callId);
      if (known.call) this.calls.whole(known, kind === 'custom' ? wire.input : wire.arguments, wire.name);
      return;
    }
    if (this.#items.has(index)) this.#report('responses/output-index-reused');
    const original = this.#items.findOriginal(said);
    const item = this.#add(kind, index, wire);
    item.state = 'added';
    item.original = original;
    if (item.call) this.calls.added(item);
    else if (kind !== 'built-in') this.content.added(item); // built-in items are read when they are done
  }

  #done(event: WireEvent): void {
    const said = new Statement(objectOrEmpty(event.item), this.#readIndex(event));
    const known = this.#items.findDone(said);
    const crossed = known ? undefined : this.#items.findCrossed(said);
    if (crossed && this.#extend(crossed, 'text-of-another-kind')) {
      this.#finish(crossed.item, withoutText(crossed.item.wire), false, false);
      return;
    }
    if (!known) this.#report('responses/item-not-added');
    else if (known.state === 'done') this.#report('responses/item-repeated');
    else this.#inspectNames(known, said);
    this.#finish(known ?? this.#add(said.kind, said.index, said.wire), said.wire, !known, false);
  }

  #inspectNames(item: Item, { index, id, callId }: Statement): void {
    this.#checkNames(item, index, id);
    if (item.callId !== undefined && callId !== undefined && item.callId !== callId) this.#report('responses/call-id-differs');
    this.#items.bind(item, index, id, callId);
  }

  /** `isWhole`: the item had no deltas to compare with. `isLast`: it has no later form. */
  #finish(item: Item, wire: WireItem, isWhole: boolean, isLast: boolean): void {
    if (item.call) this.calls.done(item, wire, isWhole, isLast);
    else if (item.kind === 'built-in') this.#finishBuiltIn(item, wire);
    else this.content.done(item, wire, isWhole);
    if (item.state !== 'held') item.state = 'done';
  }

  /** Writes a built-in call of the client. Without arguments it cannot be run, so it is opaque. */
  #finishBuiltIn(item: Item, wire: WireItem): void {
    if (item.isDone) return;
    item.wire = wire;
    const call = decodeBuiltInCall({ ...wire });
    if (call) this.calls.builtIn(item, call);
    else this.content.done(this.#items.add('opaque', undefined, wire), wire, true);
  }

  #part(event: WireEvent, named: Channel, isDone: boolean): void {
    const wire = objectOrEmpty(event.part);
    const announced = findChannel(wire['type']) ?? (wire['type'] === undefined ? named : undefined);
    // An unknown part is read when its item is done.
    if (announced === undefined) return;
    const text = readLooseText(wire['refusal'] ?? wire['text']);
    const item = this.#findItem(announced, event, isDone ? text : '');
    if (!item) return;
    const channel = findOwnChannel(item, announced);
    const index = readPartIndex(event, channel);
    const known = isDone ? this.#findStated(item, channel, index, text) : item.findPart(channel, index);
    const part = known ?? item.addPart(channel, index, !isDone);
    this.content.settle(item, part, text, !isDone);
    if (isDone) part.isDone = true;
    if (isDone && channel === 'text') this.content.complete(item, part, wire);
  }

  #text(event: WireEvent, named: Channel, isDone: boolean): void {
    const whole = isDone ? readLooseText(event.refusal ?? event.text) : '';
    const item = this.#findItem(named, event, whole);
    if (!item) return;
    const channel = findOwnChannel(item, named);
    if (!isDone) {
      const part = this.#findPart(item, channel, event);
      this.content.write(item, part, readLooseText(event.delta), decodeLogprobs(event.logprobs));
      return;
    }
    const index = readPartIndex(event, channel);
    const part = this.#findStated(item, channel, index, whole) ?? this.#findPart(item, channel, event);
    this.content.settle(item, part, whole);
    part.isDone = true;
    if (channel === 'text') this.content.complete(item, part, { logprobs: event.logprobs });
  }

  #annotation(event: WireEvent): void {
    const item = this.#findItem('text', event, '');
    if (!item) return;
    const channel = findOwnChannel(item, 'text');
    const part = item.findPart(channel, readPartIndex(event, channel)) ?? item.lastPart(channel);
    this.content.cite(item, part ?? this.#findPart(item, channel, event), event.annotation);
  }

  #input(event: WireEvent, named: 'function' | 'custom', isDone: boolean): void {
    const whole = isDone ? (event.arguments ?? event.input) : undefined;
    const item = this.#guessCall(event) ?? this.#findCall(named, event, whole);
    if (!item) return;
    if (isDone) this.calls.whole(item, whole, event.name);
    else {
      item.last = this.#readOffset();
      this.calls.fragment(item, readArguments(event.delta));
    }
  }

  /**
   * The item of a text. A reasoning item has only reasoning, however its events are called. Undefined when a complete text
   * repeats that of an item of the other kind.
   */
  #findItem(channel: Channel, event: WireEvent, whole: string): Item | undefined {
    const index = this.#readIndex(event);
    const id = event.item_id;
    const kind = isReasoning(channel) ? 'reasoning' : 'message';
    const known = this.#items.find(kind, index, id);
    if (known) return this.#checkNames(known, index, id);
    const beside = this.#findBeside(kind, index, id);
    const isOwn = kind === 'message' && beside?.state === 'added' && (nonBlank(id) ?? beside.id) === beside.id;
    if (isOwn || beside?.says(whole) || this.#items.latest(otherText(kind))?.says(whole)) {
      this.#report('responses/text-of-another-kind');
      return isOwn ? beside : undefined;
    }
    const latest = this.#items.latest(kind);
    const guess = this.#items.guess(kind, index, id, whole) ?? (latest?.says(whole) ? latest : undefined);
    return guess ? this.#checkNames(guess, index, id) : this.#addImplied(kind, index, event);
  }

  #findBeside(kind: 'message' | 'reasoning', index: number | undefined, id: unknown): Item | undefined {
    const other = otherText(kind);
    return this.#items.find(other, index, id) ?? this.#items.at(other, index);
  }

  /**
   * The call that an event belongs to. Events for a server item are ignored, because the finished item has the same
   * data.
   */
  #findCall(named: 'function' | 'custom', event: WireEvent, whole: unknown): Item | undefined {
    const index = this.#readIndex(event);
    const other = named === 'custom' ? 'function' : 'custom';
    const id = nonBlank(event.item_id) ?? event.call_id;
    const items = this.#items;
    const exact = items.find(named, index, id) ?? items.find(other, index, id);
    if (!exact && index !== undefined && items.find('opaque', index, event.item_id)) return undefined;
    const text = typeof whole === 'string' ? whole : '';
    const latest = items.latest(named);
    const isSaid = text !== '' && latest?.content === text;
    const known =
      exact ?? items.guess(named, index, id, text) ?? items.guess(other, index, id, text) ?? (isSaid ? latest : undefined);
    return known ? this.#checkNames(known, index, event.item_id) : this.#addImplied(named, index, event);
  }

  /** The call that an event without any id belongs to, if it is not simply the latest. */
  #guessCall({ output_index, item_id, call_id }: WireEvent): Item | undefined {
    if (readIndex(output_index) !== undefined || nonBlank(item_id) !== undefined || nonBlank(call_id) !== undefined)
      return undefined;
    const guess = this.#items.guessCall();
    if (guess?.item.call && guess.isGuess) guess.item.call.isGuess = true;
    if (guess) this.#report('responses/output-index-missing');
    return guess?.item;
  }

  #addImplied(kind: ItemKind, index: number | undefined, event: WireEvent): Item {
    this.#report('responses/item-not-added');
    return this.#add(kind, index, { id: event.item_id });
  }

  #add(kind: ItemKind, index: number | undefined, wire: WireItem): Item {
    if (kind === 'function' || kind === 'custom') this.calls.limits.open();
    const item = this.#items.add(kind, index, wire);
    item.first = this.#readOffset();
    item.last = item.first;
    return item;
  }

  /** The part with the index of a delta. An index that was not announced begins no part while one is open. */
  #findPart(item: Item, channel: Channel, event: WireEvent): Part {
    const index = readPartIndex(event, channel);
    const known = item.findPart(channel, index);
    if (known) return known;
    const open = item.openPart(channel);
    this.#report(open ? 'responses/part-index-differs' : 'responses/part-not-added');
    return open ?? item.addPart(channel, index);
  }

  #findStated(item: Item, channel: Channel, index: number | undefined, whole: string): Part | undefined {
    const part = item.findStated(channel, index, whole);
    if (part && index !== undefined && part !== item.findPart(channel, index)) this.#report('responses/part-index-differs');
    return part;
  }

  #readIndex(event: WireEvent): number | undefined {
    const index = readIndex(event.output_index);
    if (index === undefined) this.#report('responses/output-index-missing');
    return index;
  }

  #checkNames(item: Item, index: number | undefined, id: unknown): Item {
    if (typeof id === 'string' && item.id !== undefined && id !== item.id) this.#report('responses/item-id-rotates');
    if (index !== item.index && index !== undefined && item.index !== undefined) this.#report('responses/output-index-differs');
    return item;
  }

  /** Reads the items of a whole response, or what the stream left out of them. */
  readOutput(output: unknown, isWhole: boolean): void {
    const wires: WireItem[] = Array.isArray(output) ? output.filter(isObject) : [];
    const pairs = this.#items.pair(wires);
    const listed = new Set(pairs.map(({ item }) => item));
    this.isOutputMissing = this.#items.all.some((item) => !listed.has(item) && (item.call?.block || wires.length === 0));
    const recut = isWhole ? [] : TEXT_KINDS.filter((kind) => this.#extend(this.#items.findRecut(kind, pairs), 'done-differs'));
    const unlisted = isWhole ? [] : this.#items.listUnlisted(pairs).filter(({ kind }) => !recut.includes(kind));
    for (const { said, item } of pairs) {
      if (recut.includes(said.kind)) {
        if (item) this.#finish(item, withoutText(said.wire), false, true);
      } else if (item) this.#readListed(item, said, isWhole);
      else if (!this.#extend(takeMoved(said, unlisted), 'text-of-another-kind')) this.#readUnseen(said, isWhole);
    }
  }

  #readListed(item: Item, { wire, callId }: Statement, isWhole: boolean): void {
    // OpenAI never closes `mcp_list_tools`; clients do not wait for items that the server runs.
    if (!item.isDone && item.kind !== 'opaque') this.#report('responses/item-not-done', undefined, item.first);
    if (item.callId !== undefined && callId !== undefined && callId !== item.callId) this.#report('responses/call-id-differs');
    this.#finish(item, wire, isWhole, true);
  }

  #readUnseen(said: Statement, isWhole: boolean): void {
    if (!isWhole && this.#items.findListedAgain(said)) {
      this.#report('responses/item-repeated');
      return;
    }
    if (!isWhole) this.#report('responses/item-only-in-output');
    this.#finish(this.#add(said.kind, undefined, said.wire), said.wire, true, true);
  }

  /** Writes what another statement of a text adds to it. False if there is none. */
  #extend(restated: Restated | undefined, rule: 'done-differs' | 'text-of-another-kind'): boolean {
    if (!restated) return false;
    this.#report(`responses/${rule}`);
    this.content.extend(restated);
    return true;
  }

  /** Ends the stream; open calls are closed as they are. */
  end(): void {
    for (const item of [...this.#items.all]) {
      if (item.state === 'done') continue;
      if (item.call) this.calls.done(item, undefined, false, true);
      else if (item.kind === 'built-in') this.content.done(this.#items.add('opaque', undefined, item.wire), item.wire, true);
    }
    this.content.end();
  }
}

/** An item without its text, which was read elsewhere. */
const withoutText = (wire: WireItem): WireItem => ({ ...wire, content: [], summary: [] });

/** The channel of a text in its item: a reasoning item has only reasoning. */
const findOwnChannel = (item: Item, named: Channel): Channel =>
  item.kind === 'reasoning' && !isReasoning(named) ? (item.parts.at(-1)?.channel ?? 'full') : named;

/** The fields of an item that say something: a repetition does not take an id or a name back. */
const dropBlank = (wire: WireItem): WireItem =>
  Object.fromEntries(Object.entries(wire).filter(([, value]) => value !== undefined && value !== null && value !== ''));

const readPartIndex = (event: WireEvent, channel: Channel): number | undefined =>
  readIndex(channel === 'summary' ? event.summary_index : event.content_index);

const isReasoning = (channel: Channel): boolean => channel === 'summary' || channel === 'full';
