/** The output items of a response, and the events that each of them sends. */

import type { Citation, TokenLogprob, ToolUseBlock } from '../../canonical/message.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { type Attach, buildArgumentText, CharacterCount, dropLogprobs } from '../../codec/answers.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { noteApproximated, noteDropped } from '../../codec/report.ts';
import { type JsonObject, parseJson } from '../../json/json.ts';
import { encodeBlob, encodeCitation, encodeLogprobs, isOpenEnded } from './blocks.ts';
import { ItemIds, type ItemPrefix } from './endpoints.ts';
import { encodeBuiltIn, encodeBuiltInCall, findBuiltIn, listBuiltIns } from './tools.ts';
import { PROTOCOL, readExtensions } from './wire.ts';

/** Creates the output items of a response, numbered in the order in which they start. */
export class ItemList {
  readonly items: OutputItem[] = [];
  readonly #ids: ItemIds;
  readonly #context: CodecContext;
  readonly #send: Send | undefined;

  constructor(responseId: string, context: CodecContext, send: Send | undefined) {
    this.#ids = new ItemIds(responseId);
    this.#context = context;
    this.#send = send;
  }

  message(wanted: unknown, fields: JsonObject): MessageItem {
    return this.#add(this.#ids.item(wanted, 'msg'), (id, events) => new MessageItem(id, fields, events, this.#losses));
  }

  readonly #losses: MessageLosses = {
    citation: ({ kind }) =>
      noteDropped(this.#context, {
        path: '/content',
        feature: 'citations',
        message: `${kind} citations are not supported by OpenAI Responses; dropped`,
      }),
    quote: () =>
      noteApproximated(this.#context, {
        path: '/content',
        feature: 'citations',
        message: 'the quoted text of a citation is not supported by OpenAI Responses; dropped',
      }),
    logprobs: () =>
      dropLogprobs('/content', 'log probabilities of a refusal are not supported by OpenAI Responses; dropped', this.#context),
  };

  reasoning(wanted: unknown, fields: JsonObject): ReasoningItem {
    const { source = PROTOCOL } = this.#context;
    // Some clients require a status; servers of this protocol that send none have clients that do without.
    const all = source === PROTOCOL ? fields : { ...fields, status: 'in_progress' };
    return this.#add(this.#ids.item(wanted, 'rs'), (id, events) => new ReasoningItem(id, all, events));
  }

  /** Adds an empty reasoning item that carries a signature of another provider. */
  carrier(signature: SignedBlob, attach: Attach): void {
    const item = this.reasoning(undefined, {});
    item.sign(encodeBlob(signature, attach, this.#context));
    item.close();
  }

  call(block: ToolUseBlock): CallItem {
    const isCustom = block.kind === 'custom';
    const call_id = this.callId(block, isCustom ? 'custom' : 'function');
    const fields = readCallFields(block);
    return this.#add(
      this.#ids.item(block.item_id, isCustom ? 'ctc' : 'fc'),
      (id, events) => new CallItem({ id, call_id, name: block.name }, fields, isCustom, events),
    );
  }

  /** The call id for the client: that of the block, unless another call has it. */
  callId({ id }: ToolUseBlock, kind: string): string {
    const given = this.#ids.call(id, kind);
    if (given === id) return id;
    const message = `tool call id ${id} is used twice; the second is sent as ${given}`;
    this.#context.note({ code: 'RENAMED', path: '/content', feature: 'content.tool_use.id', message });
    return given;
  }

  raw(item: JsonObject, wanted: unknown, prefix: ItemPrefix): RawItem {
    return this.#add(this.#ids.item(wanted, prefix), (id, events) => new RawItem({ ...item, id }, events));
  }

  #add<T extends OutputItem>(id: string, create: (id: string, events: ItemEvents) => T): T {
    const item = create(id, new ItemEvents(this.#send, this.items.length, id));
    this.items.push(item);
    return item;
  }
}

/** The fields of a call other than ids, name and arguments. The id of a `parallel` wrapper is internal. */
function readCallFields(block: ToolUseBlock): JsonObject {
  const { parallel_call_id: _, ...fields } = readExtensions(block);
  return { ...fields, ...(block.namespace !== undefined && { namespace: block.namespace }) };
}

/** Reports content that a message of this protocol cannot hold. */
export interface MessageLosses {
  /** A citation of a kind that this protocol does not have. */
  citation(citation: Citation): void;
  /** The quoted text of a citation. */
  quote(): void;
  /** The log probabilities of a refusal. */
  logprobs(): void;
}

// ---- calls

interface WrittenCall {
  block: ToolUseBlock;
  /** Absent until the item was sent. */
  item: CallItem | undefined;
  isSigned: boolean;
  /** The arguments of a tool with an item type of its own, which is sent complete. */
  held: string | undefined;
}

/** Writes the calls of a response as items. */
export class CallsEncoder {
  readonly #list: ItemList;
  readonly #context: CodecContext;
  readonly #builtIns: ReturnType<typeof listBuiltIns>;
  readonly #calls = new Map<number, WrittenCall>();
  /** A call that has started without arguments: its signature, which must precede it, may come with the next delta. */
  #waiting: WrittenCall | undefined;
  /** Calls that stopped without complete arguments: they have none, or lost them if the response was cut. */
  readonly #bare = new Set<CallItem>();

  constructor(list: ItemList, context: CodecContext) {
    this.#list = list;
    this.#context = context;
    this.#builtIns = listBuiltIns(context.request);
  }

  /** Starts a call. */
  start(at: number, block: ToolUseBlock): void {
    const isHeld = this.#builtIns.has(block.name) || findBuiltIn(block) !== undefined;
    const call: WrittenCall = { block, item: undefined, isSigned: false, held: isHeld ? '' : undefined };
    this.#calls.set(at, call);
    this.#waiting = call;
    if (block.signature) this.#carry(call, block.signature);
  }

  /** Adds argument text. */
  write(at: number, text: string): void {
    this.flush();
    const call = this.#calls.get(at);
    if (call?.held === undefined) call?.item?.write(text);
    else call.held += text;
  }

  /** Adds the signature of a call. */
  sign(at: number, signature: SignedBlob): void {
    const call = this.#calls.get(at);
    if (call && call === this.#waiting) this.#carry(call, signature);
    else if (call)
      noteApproximated(this.#context, {
        path: `/content/${at}`,
        feature: 'content.signature',
        message: 'the signature arrived after its tool call was sent; dropped',
      });
  }

  /** Writes a signature as an item before the call that it signs. */
  #carry(call: WrittenCall, signature: SignedBlob): void {
    if (call.isSigned) return;
    call.isSigned = true;
    this.#list.carrier(signature, 'next');
  }

  /** Sends the waiting call, with the arguments that it started with. */
  flush(): void {
    const call = this.#waiting;
    if (!call) return;
    this.#waiting = undefined;
    const text = buildArgumentText(call.block, true);
    if (call.held === undefined) this.#open(call).write(text);
    else call.held += text;
  }

  #open(call: WrittenCall): CallItem {
    call.item = this.#list.call(call.block);
    return call.item;
  }

  /** Ends a call of a tool with an item type of its own. If its arguments are not JSON, it becomes an ordinary call. */
  #stopHeld(call: WrittenCall, held: string): void {
    const { block } = call;
    const own = findBuiltIn(block);
    const tool = own ?? this.#builtIns.get(block.name);
    call.held = undefined;
    const item = own ? encodeBuiltIn(block) : tool && encodeBuiltInCall(tool, held);
    if (tool && item) this.#list.raw({ ...item, call_id: this.#list.callId(block, tool.call) }, item['id'], tool.prefix).close();
    else this.#open(call).write(held);
  }

  /** Ends a call. If its arguments are not JSON they may have been cut, which only the end of the response shows. */
  stop(at: number, final: ToolUseBlock | undefined): void {
    const call = this.#calls.get(at);
    this.flush();
    if (call?.held !== undefined) this.#stopHeld(call, call.held);
    if (!call?.item || call.item.isDone) return;
    const { item, block } = call;
    if (final) this.#correct(item, final);
    if (final?.input_raw !== undefined) item.replace(final.input_raw);
    if ((final ?? block).status === 'incomplete') item.close('incomplete');
    else if (block.kind === 'custom' || parseJson(item.text) !== undefined) item.close('completed');
    else this.#bare.add(item);
  }

  /** Continues a call after its block had stopped; false if it was sent and cannot change. */
  amend(at: number, block: ToolUseBlock): boolean {
    const item = this.#calls.get(at)?.item;
    const text = buildArgumentText(block, true);
    if (item && this.#bare.has(item)) item.replace(text);
    return item?.text === text;
  }

  /** Applies the final form of a call, except for the ids, which the client has read. */
  #correct(item: CallItem, final: ToolUseBlock): void {
    const { id, call_id, type, name } = item.json;
    if (final.name !== name)
      noteApproximated(this.#context, {
        path: '/content',
        feature: 'content.tool_use.name',
        message: `tool name "${name}" changed to "${final.name}" after it was sent`,
      });
    Object.assign(item.json, readCallFields(final), { id, call_id, type, name: final.name });
  }

  /**
   * Closes calls without complete arguments, before other content starts and at the end. They get `{}`, unless the
   * response was cut.
   */
  settle(status: ItemStatus): void {
    this.flush();
    if (this.#bare.size === 0) return;
    for (const item of this.#bare) {
      if (status === 'completed' && item.text === '') item.write('{}');
      item.close(parseJson(item.text) === undefined ? 'incomplete' : status);
    }
    this.#bare.clear();
  }
}

// ---- items

/** An output item that is being written. */
export interface OutputItem {
  /** The item in its current state; final once it is done. */
  readonly json: JsonObject;
  readonly isDone: boolean;
  close(status: ItemStatus): void;
}

/** The status of a finished item. */
export type ItemStatus = 'completed' | 'incomplete';

interface OpenMessagePart {
  isRefusal: boolean;
  /** Item id, output index and content index of its events. */
  place: string;
  text: string;
  length: CharacterCount;
  logprobs: JsonObject[];
  annotations: JsonObject[];
  /** Citations without an end, which are written when the text is complete. */
  waiting: Citation[];
}

/** A `message` item: a sequence of text and refusal parts. */
export class MessageItem implements OutputItem {
  isDone = false;
  readonly json: JsonObject;
  readonly #events: ItemEvents;
  readonly #content: JsonObject[] = [];
  readonly #losses: MessageLosses;
  #part: OpenMessagePart | undefined;

  constructor(id: string, fields: JsonObject, events: ItemEvents, losses: MessageLosses) {
    this.json = { ...fields, id, type: 'message', status: 'in_progress', role: 'assistant', content: this.#content };
    this.#events = events;
    this.#losses = losses;
    events.added(this.json);
  }

  openPart(isRefusal: boolean): void {
    this.closePart();
    const place = `${this.#events.place},"content_index":${this.#content.length}`;
    this.#part = { isRefusal, place, text: '', length: new CharacterCount(), logprobs: [], annotations: [], waiting: [] };
    this.#events.send?.('response.content_part.added', `${place},"part":${JSON.stringify(encodePart(this.#part))}`);
  }

  write(text: string, logprobs: readonly TokenLogprob[] | undefined): void {
    const part = this.#part;
    if (!part || (text === '' && !logprobs)) return;
    part.text += text;
    part.length.add(text);
    if (part.isRefusal) {
      if (logprobs) this.#losses.logprobs();
      this.#events.send?.('response.refusal.delta', `${part.place},"delta":${JSON.stringify(text)}`);
      return;
    }
    const tokens = logprobs ? encodeLogprobs(logprobs) : [];
    for (const token of tokens) part.logprobs.push(token);
    const written = tokens.length === 0 ? '[]' : JSON.stringify(tokens);
    this.#events.send?.('response.output_text.delta', `${part.place},"delta":${JSON.stringify(text)},"logprobs":${written}`);
  }

  cite(citation: Citation): void {
    const part = this.#part;
    if (!part || part.isRefusal) return;
    if (isOpenEnded(citation)) part.waiting.push(citation);
    else this.#annotate(part, citation);
  }

  #annotate(part: OpenMessagePart, citation: Citation): void {
    const annotation = encodeCitation(citation, part.length);
    if (!annotation) {
      this.#losses.citation(citation);
      return;
    }
    if (citation.cited_text !== undefined && annotation !== citation.raw) this.#losses.quote();
    const at = part.annotations.push(annotation) - 1;
    this.#events.send?.(
      'response.output_text.annotation.added',
      `${part.place},"annotation_index":${at},"annotation":${JSON.stringify(annotation)}`,
    );
  }

  closePart(): void {
    const part = this.#part;
    if (!part) return;
    for (const citation of part.waiting) this.#annotate(part, citation);
    this.#part = undefined;
    const whole = encodePart(part);
    this.#content.push(whole);
    if (part.isRefusal) this.#events.send?.('response.refusal.done', `${part.place},"refusal":${JSON.stringify(part.text)}`);
    else
      this.#events.send?.(
        'response.output_text.done',
        `${part.place},"text":${JSON.stringify(part.text)},"logprobs":${JSON.stringify(part.logprobs)}`,
      );
    this.#events.send?.('response.content_part.done', `${part.place},"part":${JSON.stringify(whole)}`);
  }

  close(status: ItemStatus): void {
    if (this.isDone) return;
    this.closePart();
    this.isDone = true;
    this.json['status'] = status;
    this.#events.done(this.json);
  }
}

const encodePart = ({ isRefusal, text, annotations, logprobs }: OpenMessagePart): JsonObject =>
  isRefusal ? { type: 'refusal', refusal: text } : { type: 'output_text', annotations: [...annotations], logprobs, text };

/** The summary that the provider wrote, or the raw chain of thought. */
export type ReasoningChannel = 'summary' | 'full';

interface OpenReasoningPart {
  channel: ReasoningChannel;
  /** Keeps the parts of one channel apart. */
  key: string;
  place: string;
  text: string;
}

interface ReasoningNames {
  part: string;
  added: string;
  delta: string;
  textDone: string;
  done: string;
  index: string;
}

const REASONING_NAMES: Record<ReasoningChannel, ReasoningNames> = {
  summary: {
    part: 'summary_text',
    added: 'response.reasoning_summary_part.added',
    delta: 'response.reasoning_summary_text.delta',
    textDone: 'response.reasoning_summary_text.done',
    done: 'response.reasoning_summary_part.done',
    index: 'summary_index',
  },
  full: {
    part: 'reasoning_text',
    added: 'response.content_part.added',
    delta: 'response.reasoning_text.delta',
    textDone: 'response.reasoning_text.done',
    done: 'response.content_part.done',
    index: 'content_index',
  },
};

/** A `reasoning` item; one with only encrypted content has no parts. */
export class ReasoningItem implements OutputItem {
  isDone = false;
  readonly json: JsonObject;
  readonly #events: ItemEvents;
  readonly #parts: Record<ReasoningChannel, JsonObject[]> = { summary: [], full: [] };
  #part: OpenReasoningPart | undefined;

  constructor(id: string, fields: JsonObject, events: ItemEvents) {
    this.json = { ...fields, id, type: 'reasoning', summary: this.#parts.summary };
    this.#events = events;
    events.added(this.json);
  }

  /** Whether this part is the one being written. */
  isOpen(channel: ReasoningChannel, key: string): boolean {
    return this.#part?.channel === channel && this.#part.key === key;
  }

  /** Adds text; a new `key` starts a new part, even without text. */
  think(text: string, channel: ReasoningChannel, key: string): void {
    const part = this.#part && this.isOpen(channel, key) ? this.#part : this.#openPart(channel, key);
    if (text === '') return;
    part.text += text;
    this.#events.send?.(REASONING_NAMES[channel].delta, `${part.place},"delta":${JSON.stringify(text)}`);
  }

  #openPart(channel: ReasoningChannel, key: string): OpenReasoningPart {
    this.closePart();
    const { index, part: type, added } = REASONING_NAMES[channel];
    const place = `${this.#events.place},"${index}":${this.#parts[channel].length}`;
    this.#part = { channel, key, place, text: '' };
    this.#events.send?.(added, `${place},"part":${JSON.stringify({ type, text: '' })}`);
    return this.#part;
  }

  closePart(): void {
    const part = this.#part;
    if (!part) return;
    this.#part = undefined;
    const { part: type, textDone, done } = REASONING_NAMES[part.channel];
    const whole = { type, text: part.text };
    this.#parts[part.channel].push(whole);
    if (part.channel === 'full') this.json['content'] = this.#parts.full;
    this.#events.send?.(textDone, `${part.place},"text":${JSON.stringify(part.text)}`);
    this.#events.send?.(done, `${part.place},"part":${JSON.stringify(whole)}`);
  }

  /** Sets the encrypted content; after the item is done only the whole response will have it. */
  sign(encrypted: string): void {
    this.json['encrypted_content'] = encrypted;
  }

  close(): void {
    if (this.isDone) return;
    this.closePart();
    this.isDone = true;
    if (this.json['status'] === 'in_progress') this.json['status'] = 'completed';
    this.#events.done(this.json);
  }
}

/** A `function_call` or a `custom_tool_call` item. */
export class CallItem implements OutputItem {
  isDone = false;
  readonly json: JsonObject;
  readonly #events: ItemEvents;
  readonly #isCustom: boolean;
  #text = '';

  constructor(
    identity: { id: string; call_id: string; name: string },
    fields: JsonObject,
    isCustom: boolean,
    events: ItemEvents,
  ) {
    const type = isCustom ? 'custom_tool_call' : 'function_call';
    this.json = { ...fields, ...identity, type, status: 'in_progress', [isCustom ? 'input' : 'arguments']: '' };
    this.#isCustom = isCustom;
    this.#events = events;
    events.added(this.json);
  }

  get text(): string {
    return this.#text;
  }

  write(text: string): void {
    if (text === '' || this.isDone) return;
    this.#text += text;
    const type = this.#isCustom ? 'response.custom_tool_call_input.delta' : 'response.function_call_arguments.delta';
    this.#events.send?.(type, `${this.#events.place},"delta":${JSON.stringify(text)}`);
  }

  /** Takes the final text. Where it does not continue what was sent, which is not JSON, only the end of the item has it. */
  replace(text: string): void {
    if (text.startsWith(this.#text)) this.write(text.slice(this.#text.length));
    else if (!this.isDone && parseJson(this.#text) === undefined && parseJson(text) !== undefined) this.#text = text;
  }

  close(status: ItemStatus): void {
    if (this.isDone) return;
    this.isDone = true;
    this.json['status'] = status;
    this.json[this.#isCustom ? 'input' : 'arguments'] = this.#text;
    const { place, send } = this.#events;
    const text = JSON.stringify(this.#text);
    if (this.#isCustom) send?.('response.custom_tool_call_input.done', `${place},"input":${text}`);
    else
      send?.('response.function_call_arguments.done', `${place},"name":${JSON.stringify(this.json['name'])},"arguments":${text}`);
    this.#events.done(this.json);
  }
}

/** An item that is passed on unchanged: of a server tool, or of an unknown type. */
export class RawItem implements OutputItem {
  isDone = false;
  json: JsonObject;
  readonly #events: ItemEvents;

  constructor(item: JsonObject, events: ItemEvents) {
    this.json = item;
    this.#events = events;
    events.added(item);
  }

  /**
   * Replaces the item by a later form. The id stays, by which clients know it, and the call id of shells; elsewhere
   * OpenAI changes the call id.
   */
  replace(item: JsonObject): void {
    const { id, type, call_id: call } = this.json;
    const isShell = type === 'shell_call' || type === 'shell_call_output';
    this.json = { ...item, id, type, ...(isShell && { call_id: call }) };
  }

  close(): void {
    if (this.isDone) return;
    this.isDone = true;
    this.#events.done(this.json);
  }
}

// ---- events

/** Sends an event: its type, and its fields as JSON text without the braces. */
export type Send = (type: string, fields: string) => void;

/** Sends the events of one item. Whole responses have none: `send` is absent, and nothing is serialized. */
export class ItemEvents {
  readonly send: Send | undefined;
  /** The item id and output index, which every event has. */
  readonly place: string;
  readonly #index: number;

  constructor(send: Send | undefined, index: number, id: unknown) {
    this.send = send;
    this.place = `"item_id":${JSON.stringify(id)},"output_index":${index}`;
    this.#index = index;
  }

  added(item: JsonObject): void {
    this.send?.('response.output_item.added', `"output_index":${this.#index},"item":${JSON.stringify(item)}`);
  }

  done(item: JsonObject): void {
    this.send?.('response.output_item.done', `"output_index":${this.#index},"item":${JSON.stringify(item)}`);
  }
}
