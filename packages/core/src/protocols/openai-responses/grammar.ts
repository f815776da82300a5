import {
  accept,
  describeType,
  isCount,
  isFilled,
  isText,
  listAt,
  must,
  mustHave,
  objectAt,
  parsePayload,
  type StreamGrammar,
} from '../../codec/grammar.ts';
import { isObject, type JsonObject, parseJson } from '../../json/json.ts';
import type { SseFrame } from '../../sse/encode.ts';

type Outcome = 'completed' | 'incomplete' | 'failed';

type State = 'new' | 'created' | 'open' | 'error' | Outcome;

const REQUIRED_FIELDS = [
  'id',
  'object',
  'created_at',
  'status',
  'error',
  'incomplete_details',
  'instructions',
  'metadata',
  'model',
  'output',
  'parallel_tool_calls',
  'temperature',
  'tool_choice',
  'tools',
  'top_p',
];

/**
 * Checks a Responses stream that the gateway writes, in the form that every client accepts: created, in_progress, items
 * that start, fill and end, and one terminal event with everything.
 */
export class ResponsesGrammar implements StreamGrammar {
  #sequence = 0;
  #id: unknown;
  #state: State = 'new';
  readonly #items: ItemGrammar[] = [];
  readonly #identities = new Set<string>();

  /** Checks all frames of a stream and returns how it ended. */
  static check(frames: Iterable<SseFrame>): Outcome {
    return accept(new ResponsesGrammar(), frames);
  }

  push(frame: SseFrame): void {
    mustHave(frame, 'data,event', 'a frame has an event line and data');
    const event = parsePayload(frame);
    const { type } = event;
    must(isText(type) && type === frame.event, 'the event line equals the type');
    must(event['sequence_number'] === this.#sequence++, 'sequence numbers count from 0');
    this.#accept(type, event);
  }

  end(): Outcome {
    const state = this.#state;
    must(state === 'completed' || state === 'incomplete' || state === 'failed', `the stream ends in the state ${state}`);
    return state;
  }

  #accept(type: string, event: JsonObject): void {
    switch (type) {
      case 'response.created':
        this.#lifecycle(event, { from: 'new', to: 'created', status: 'in_progress' });
        return;
      case 'response.in_progress':
        this.#lifecycle(event, { from: 'created', to: 'open', status: 'in_progress' });
        return;
      case 'response.completed':
        this.#whole(event, 'completed');
        return;
      case 'response.incomplete':
        this.#whole(event, 'incomplete');
        return;
      case 'response.failed':
        this.#lifecycle(event, { from: 'error', to: 'failed', status: 'failed' });
        return;
      case 'error':
        this.#error(event);
        return;
      default:
        must(this.#state === 'open', `${type} in the state ${this.#state}`);
        this.#item(type, event);
    }
  }

  /** Checks a lifecycle event and returns its response. */
  #lifecycle({ response }: JsonObject, { from, to, status }: { from: State; to: State; status: string }): JsonObject {
    must(this.#state === from, `${to} after ${this.#state}`);
    const body = objectAt(response, 'a response');
    for (const name of REQUIRED_FIELDS) must(name in body, `a response has ${name}`);
    must(isFilled(body['id']), 'a response has an id');
    this.#id ??= body['id'];
    must(this.#id === body['id'], 'the id of the response never changes');
    must(body['object'] === 'response' && body['status'] === status, `the status is ${status}`);
    must(isCount(body['created_at']), 'a response has a time');
    const { length } = listAt(body['output'], 'output');
    must(status !== 'in_progress' || length === 0, 'a response begins empty');
    const { error } = body;
    must(status === 'failed' ? isObject(error) && isFilled(error['code']) : error === null, 'only failures have an error');
    this.#state = to;
    return body;
  }

  #whole(event: JsonObject, outcome: 'completed' | 'incomplete'): void {
    const body = this.#lifecycle(event, { from: 'open', to: outcome, status: outcome });
    const output = listAt(body['output'], 'output');
    must(output.length === this.#items.length, 'the response lists every item');
    for (const [at, item] of this.#items.entries()) item.list(objectAt(output[at], 'an item'));
    must((outcome === 'incomplete') === (body['incomplete_details'] !== null), 'an incomplete response has incomplete_details');
    if (body['usage']) checkUsage(objectAt(body['usage'], 'usage'));
  }

  #error({ message, code, param, error }: JsonObject): void {
    must(this.#state === 'open', `an error in the state ${this.#state}`);
    must(isFilled(message) && objectAt(error, 'an error')['message'] === message, 'an error has its type, flat and nested');
    must(code === null || isText(code), 'the code of an error is a string or null');
    must(param === null || isText(param), 'the param of an error is a string or null');
    this.#state = 'error';
  }

  #item(type: string, event: JsonObject): void {
    const at = event['output_index'];
    must(isCount(at), 'an event has the output_index of its item');
    if (type === 'response.output_item.added') {
      must(at === this.#items.length, 'items are numbered as they open, without gaps');
      this.#add(new ItemGrammar(objectAt(event['item'], 'an item')));
      return;
    }
    const item = this.#items[at];
    must(item, `${type} for an item that was added`);
    if (type === 'response.output_item.done') item.finish(objectAt(event['item'], 'an item'));
    else item.push(type, event);
  }

  #add(item: ItemGrammar): void {
    for (const identity of item.identities) {
      must(!this.#identities.has(identity), `two items with ${identity}`);
      this.#identities.add(identity);
    }
    this.#items.push(item);
  }
}

function checkUsage(usage: JsonObject): void {
  const { input_tokens: input, output_tokens: output, total_tokens: total } = usage;
  must(isCount(input) && isCount(output), 'usage counts');
  must(input + output === total, 'the total is the sum');
  const { cached_tokens: cached, cache_write_tokens: written } = objectAt(usage['input_tokens_details'], 'input_tokens_details');
  const { reasoning_tokens: reasoning } = objectAt(usage['output_tokens_details'], 'output_tokens_details');
  must(isCount(cached) && isCount(written) && cached + written <= input, 'cached tokens are a part');
  must(isCount(reasoning) && reasoning <= output, 'reasoning tokens are a part');
}

// ---- items

type List = 'content' | 'summary';

interface Part {
  type: string;
  text: string;
  isTextDone: boolean;
  isDone: boolean;
  annotations: number;
}

/**
 * Describes an event about a part: the list that holds the part, the type of the part, and the field with the complete
 * text.
 */
interface TextRule {
  list: List;
  part: string;
  done?: 'text' | 'refusal';
}

const TEXT_RULES: ReadonlyMap<string, TextRule> = new Map([
  ['response.output_text.delta', { list: 'content', part: 'output_text' }],
  ['response.output_text.done', { list: 'content', part: 'output_text', done: 'text' }],
  ['response.refusal.delta', { list: 'content', part: 'refusal' }],
  ['response.refusal.done', { list: 'content', part: 'refusal', done: 'refusal' }],
  ['response.reasoning_text.delta', { list: 'content', part: 'reasoning_text' }],
  ['response.reasoning_text.done', { list: 'content', part: 'reasoning_text', done: 'text' }],
  ['response.reasoning_summary_text.delta', { list: 'summary', part: 'summary_text' }],
  ['response.reasoning_summary_text.done', { list: 'summary', part: 'summary_text', done: 'text' }],
]);

interface InputRule {
  item: string;
  done?: 'arguments' | 'input';
}

const INPUT_RULES: ReadonlyMap<string, InputRule> = new Map([
  ['response.function_call_arguments.delta', { item: 'function_call' }],
  ['response.function_call_arguments.done', { item: 'function_call', done: 'arguments' }],
  ['response.custom_tool_call_input.delta', { item: 'custom_tool_call' }],
  ['response.custom_tool_call_input.done', { item: 'custom_tool_call', done: 'input' }],
]);

const PART_RULES: ReadonlyMap<string, { list: List; isAdded: boolean }> = new Map([
  ['response.content_part.added', { list: 'content', isAdded: true }],
  ['response.content_part.done', { list: 'content', isAdded: false }],
  ['response.reasoning_summary_part.added', { list: 'summary', isAdded: true }],
  ['response.reasoning_summary_part.done', { list: 'summary', isAdded: false }],
]);

/** Items whose call id clients use; OpenAI itself changes that of others. */
const CALL_ID_TYPES = new Set(['function_call', 'custom_tool_call', 'shell_call', 'shell_call_output']);

const PART_OWNERS: ReadonlyMap<unknown, string> = new Map([
  ['output_text', 'message'],
  ['refusal', 'message'],
  ['reasoning_text', 'reasoning'],
  ['summary_text', 'reasoning'],
]);

/** Checks one output item: added, filled part by part, and done once. */
export class ItemGrammar {
  readonly id: string;
  readonly type: string;
  readonly #callId: unknown;
  /** A message with unknown parts arrives complete, like the items of server tools. */
  readonly #isWhole: boolean;
  readonly #parts: Record<List, Part[]> = { content: [], summary: [] };
  #input = '';
  #isInputDone: boolean;
  #done: string | undefined;

  constructor(item: JsonObject) {
    const { id, type, call_id: callId, status } = item;
    must(isFilled(id) && isFilled(type), 'an item has an id and a type');
    const isMessage = type === 'message';
    const isCall = isClientCall(type);
    this.id = id;
    this.type = type;
    this.#callId = callId;
    this.#isWhole = isMessage && listAt(item['content'], 'the content of a message').length > 0;
    this.#isInputDone = !isCall;
    if (isCall) {
      must(isFilled(callId) && isFilled(item['name']), 'a call begins with its id and name');
      must(item[type === 'function_call' ? 'arguments' : 'input'] === '', 'a call begins without arguments');
    }
    if (isCall || (isMessage && !this.#isWhole)) must(status === 'in_progress', 'an item begins in progress');
    if (isMessage) must(item['role'] === 'assistant', 'the role of a message is assistant');
    if (type === 'reasoning') listAt(item['summary'], 'the summary of reasoning');
  }

  /** Ids that no other item may have. */
  get identities(): string[] {
    return [`id ${this.id}`, ...(isClientCall(this.type) ? [`${this.type} ${this.#callId}`] : [])];
  }

  get isDone(): boolean {
    return this.#done !== undefined;
  }

  /** Checks an event between the addition and the end of the item. */
  push(type: string, event: JsonObject): void {
    must(!this.isDone, `${type} after the item was done`);
    must(event['item_id'] === this.id, 'item_id never changes');
    const text = TEXT_RULES.get(type);
    const input = INPUT_RULES.get(type);
    const part = PART_RULES.get(type);
    if (text) this.#text(event, text);
    else if (input) this.#argument(event, input);
    else if (part?.isAdded) this.#addPart(event, part.list);
    else if (part) this.#endPart(event, part.list);
    else {
      must(type === 'response.output_text.annotation.added', `${type} is an event of the standard`);
      this.#annotation(event);
    }
  }

  /** Checks the item as it is done. */
  finish(item: JsonObject): void {
    must(!this.isDone, 'an item is done once');
    must(item['id'] === this.id && item['type'] === this.type, 'the same item is done');
    if (CALL_ID_TYPES.has(this.type)) must(item['call_id'] === this.#callId, 'the same call is done');
    must(this.#isInputDone, 'the arguments are done before the call is');
    const { content, summary } = this.#parts;
    for (const part of [...content, ...summary]) must(part.isDone, 'the parts are done before the item is');
    if (this.type === 'message' && !this.#isWhole)
      must(listAt(item['content'], 'content').length === content.length, 'a message holds its parts');
    if (this.type === 'reasoning')
      must(listAt(item['summary'], 'summary').length === summary.length, 'reasoning holds its parts');
    if (this.type === 'function_call') must(item['arguments'] === this.#input, 'a call holds its arguments');
    if (!this.#isWhole && !this.#isRaw)
      must(item['status'] === 'completed' || item['status'] === 'incomplete', 'a finished item has a final status');
    this.#done = JSON.stringify(item);
  }

  /** Checks the item as the final response lists it. */
  list(item: JsonObject): void {
    must(this.isDone, `item ${this.id} is done before the response is`);
    must(item['id'] === this.id && item['type'] === this.type, 'the response lists the items in their order');
    // A signature, or the end of a server item, may arrive after the item was done.
    if (!this.#isRaw) must(JSON.stringify(item) === this.#done, 'items are listed as they were done');
  }

  /** Whether the item is passed on unchanged. */
  get #isRaw(): boolean {
    return this.type !== 'message' && !isClientCall(this.type);
  }

  #addPart(event: JsonObject, list: List): void {
    const parts = this.#parts[list];
    const part = objectAt(event['part'], 'a part');
    const { type, text, refusal } = part;
    must(isText(type) && PART_OWNERS.get(type) === this.type, `a part ${describeType(type)} in a ${this.type}`);
    must(readPartIndex(event, list) === parts.length, 'parts are numbered without gaps');
    must((text ?? refusal) === '', 'a part begins empty');
    for (const { isDone } of parts) must(isDone, 'one part at a time');
    if (type === 'output_text') listAt(part['annotations'], 'the annotations of a text');
    parts.push({ type, text: '', isTextDone: false, isDone: false, annotations: 0 });
  }

  #endPart(event: JsonObject, list: List): void {
    const { type, text, refusal } = objectAt(event['part'], 'a part');
    const part = this.#parts[list][readPartIndex(event, list)];
    must(part?.isTextDone && !part.isDone && part.type === type, 'a part is done once, after its text');
    must((text ?? refusal) === part.text, 'a part holds its text');
    part.isDone = true;
  }

  #text(event: JsonObject, { list, part: type, done }: TextRule): void {
    const part = this.#parts[list][readPartIndex(event, list)];
    must(part && part.type === type && !part.isTextDone, `${describeType(event['type'])} outside its part`);
    if (type === 'output_text') listAt(event['logprobs'], 'the logprobs of a text');
    if (done) {
      must(event[done] === part.text, 'the whole text is the sum of its deltas');
      part.isTextDone = true;
      return;
    }
    must(isText(event['delta']), 'a delta is text');
    part.text += event['delta'];
  }

  #annotation(event: JsonObject): void {
    const part = this.#parts.content[readPartIndex(event, 'content')];
    must(part?.type === 'output_text' && !part.isTextDone, 'an annotation belongs to a text');
    must(event['annotation_index'] === part.annotations++, 'annotations are numbered');
    must(isFilled(objectAt(event['annotation'], 'an annotation')['type']), 'an annotation has a type');
  }

  #argument(event: JsonObject, { item, done }: InputRule): void {
    must(this.type === item && !this.#isInputDone, `${describeType(event['type'])} for a ${this.type}`);
    if (done) {
      const whole = event[done];
      const isMended = done === 'arguments' && parseJson(this.#input) === undefined && parseJson(String(whole)) !== undefined;
      must(whole === this.#input || isMended, 'the whole arguments are the sum of their deltas, unless that is not JSON');
      this.#input = String(whole);
      this.#isInputDone = true;
      return;
    }
    must(isFilled(event['delta']), 'a delta is text');
    this.#input += event['delta'];
  }
}

const isClientCall = (type: string): boolean => type === 'function_call' || type === 'custom_tool_call';

const readPartIndex = (event: JsonObject, list: List): number => {
  const at = event[list === 'content' ? 'content_index' : 'summary_index'];
  must(Number.isSafeInteger(at), 'an event has the index of its part');
  return Number(at);
};
