import { ArgumentText } from '../../accumulate/argument-text.ts';
import { deriveId } from '../../accumulate/derive-id.ts';
import { isObject, parseJson, sameJson, writeJson } from '../../accumulate/overlay.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';
import type { BlockEmitter } from '../shared/block-writer.ts';
import { CallLimits } from '../shared/call-limits.ts';
import { unknownFields } from '../shared/read.ts';
import type { CallInput, Item, ReportHere } from './items.ts';
import { argumentsOf, filled, type WireItem } from './wire.ts';

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
