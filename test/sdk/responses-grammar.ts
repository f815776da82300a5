import type { SseFrame } from '../../packages/core/src/index.ts';
import type { Json } from './responses.ts';

/** A stream of a response broke a rule that some client relies on. */
class GrammarError extends Error {}

function must(condition: unknown, rule: string): asserts condition {
  if (!condition) throw new GrammarError(rule);
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isFilled = (value: unknown): value is string => isText(value) && value !== '';

interface PartState {
  type: string;
  text: string;
  isTextDone: boolean;
  isDone: boolean;
  annotations: number;
}

interface ItemState {
  id: string;
  type: string;
  callId: unknown;
  isWhole: boolean;
  isDone: boolean;
  content: PartState[];
  summary: PartState[];
  input: string;
  isInputDone: boolean;
  done: string | undefined;
}

/** What each event says of a part: which list it stands in, of what type the part is, and where the text stands. */
interface TextRule {
  list: 'content' | 'summary';
  part: string;
  done?: 'text' | 'refusal';
}

const TEXTS: Readonly<Record<string, TextRule>> = {
  'response.output_text.delta': { list: 'content', part: 'output_text' },
  'response.output_text.done': { list: 'content', part: 'output_text', done: 'text' },
  'response.refusal.delta': { list: 'content', part: 'refusal' },
  'response.refusal.done': { list: 'content', part: 'refusal', done: 'refusal' },
  'response.reasoning_text.delta': { list: 'content', part: 'reasoning_text' },
  'response.reasoning_text.done': { list: 'content', part: 'reasoning_text', done: 'text' },
  'response.reasoning_summary_text.delta': { list: 'summary', part: 'summary_text' },
  'response.reasoning_summary_text.done': { list: 'summary', part: 'summary_text', done: 'text' },
};

const INPUTS: Readonly<Record<string, { item: string; done?: 'arguments' | 'input' }>> = {
  'response.function_call_arguments.delta': { item: 'function_call' },
  'response.function_call_arguments.done': { item: 'function_call', done: 'arguments' },
  'response.custom_tool_call_input.delta': { item: 'custom_tool_call' },
  'response.custom_tool_call_input.done': { item: 'custom_tool_call', done: 'input' },
};

const OWNER: Readonly<Record<string, string>> = {
  output_text: 'message',
  refusal: 'message',
  reasoning_text: 'reasoning',
  summary_text: 'reasoning',
};

/** Items that clients know by their call as well; of others OpenAI itself changes it. */
const CALLED = new Set(['function_call', 'custom_tool_call', 'shell_call', 'shell_call_output']);

const REQUIRED = [
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

export type Outcome = 'completed' | 'incomplete' | 'failed';

/** The rules R1-R9 of the outgoing stream: created, in_progress, items that open, fill and close, and one terminal event that holds it all. */
export class ResponsesGrammar {
  #sequence = 0;
  #id: unknown;
  #state: 'new' | 'created' | 'open' | 'error' | Outcome = 'new';
  readonly #items: ItemState[] = [];
  readonly #identities = new Set<string>();

  static check(frames: Iterable<SseFrame>): Outcome {
    const grammar = new ResponsesGrammar();
    for (const frame of frames) grammar.push(frame);
    return grammar.end();
  }

  push(frame: SseFrame): void {
    must(Object.keys(frame).toSorted().join() === 'data,event', 'a frame has an event line and data');
    const event = JSON.parse(frame.data) as Json;
    must(event['type'] === frame.event, 'the event line says the type');
    must(event['sequence_number'] === this.#sequence++, 'sequence numbers count from 0');
    this.#accept(String(event['type']), event);
  }

  end(): Outcome {
    const state = this.#state;
    must(state === 'completed' || state === 'incomplete' || state === 'failed', `the stream ends in the state ${state}`);
    return state;
  }

  #accept(type: string, event: Json): void {
    if (type === 'response.created') this.#lifecycle(event, 'new', 'created', 'in_progress');
    else if (type === 'response.in_progress') this.#lifecycle(event, 'created', 'open', 'in_progress');
    else if (type === 'response.completed') this.#whole(event, 'completed');
    else if (type === 'response.incomplete') this.#whole(event, 'incomplete');
    else if (type === 'response.failed') this.#lifecycle(event, 'error', 'failed', 'failed');
    else if (type === 'error') this.#error(event);
    else {
      must(this.#state === 'open', `${type} in the state ${this.#state}`);
      if (type === 'response.output_item.added') this.#added(event);
      else this.#item(type, event);
    }
  }

  #lifecycle({ response }: Json, from: string, to: 'created' | 'open' | Outcome, status: string): void {
    must(this.#state === from, `${to} after ${this.#state}`);
    const body = response as Json;
    for (const name of REQUIRED) must(name in body, `a response has ${name}`);
    must(isFilled(body['id']), 'a response has an id');
    this.#id ??= body['id'];
    must(this.#id === body['id'], 'the id of the response never changes');
    must(body['object'] === 'response' && body['status'] === status, `the status is ${status}`);
    must(Number.isSafeInteger(body['created_at']), 'a response has a time');
    must(status !== 'in_progress' || (body['output'] as unknown[]).length === 0, 'a response begins empty');
    must(status === 'failed' ? isFilled((body['error'] as Json)['code']) : body['error'] === null, 'only failures have an error');
    this.#state = to;
  }

  #whole(event: Json, outcome: 'completed' | 'incomplete'): void {
    this.#lifecycle(event, 'open', outcome, outcome);
    const { output, usage, incomplete_details: why } = event['response'] as Json;
    for (const item of this.#items) must(item.isDone, `item ${item.id} is done before the response is`);
    must((output as Json[]).length === this.#items.length, 'the response lists every item');
    (output as Json[]).forEach((item, i) => {
      const { id, type, done } = this.#items[i] as ItemState;
      must(item['id'] === id && item['type'] === type, 'the response lists the items in their order');
      // A signature, or the end of a server's item, may come after the item was done.
      if (type === 'message' || type.endsWith('_call'))
        must(JSON.stringify(item) === done || isRaw(type), 'items are listed as they were done');
    });
    must((outcome === 'incomplete') === (why !== null), 'an incomplete response says why');
    if (usage) this.#usage(usage as Json);
  }

  #usage(usage: Json): void {
    const { input_tokens: input, output_tokens: output, total_tokens: total } = usage as Record<string, number>;
    const { cached_tokens: cached, cache_write_tokens: written } = usage['input_tokens_details'] as Record<string, number>;
    const { reasoning_tokens: reasoning } = usage['output_tokens_details'] as Record<string, number>;
    must(Number(input) + Number(output) === total, 'the total is the sum');
    must(Number(cached) + Number(written) <= Number(input), 'cached tokens are a part');
    must(Number(reasoning) <= Number(output), 'reasoning tokens are a part');
  }

  #error({ message, code, param, error }: Json): void {
    must(this.#state === 'open', `an error in the state ${this.#state}`);
    const nested = error as Json;
    must(isFilled(message) && nested['message'] === message, 'an error says what it is, flat and nested');
    must(code === null || isText(code), 'the code of an error is a word');
    must(param === null || isText(param), 'the param of an error is a path');
    this.#state = 'error';
  }

  #item(type: string, event: Json): void {
    const item = this.#items[Number(event['output_index'])];
    must(item && Number.isSafeInteger(event['output_index']), `${type} for an item that was added`);
    must(!item.isDone, `${type} after the item was done`);
    if (type === 'response.output_item.done') {
      this.#done(event, item);
      return;
    }
    must(event['item_id'] === item.id, 'item_id never changes');
    const text = TEXTS[type];
    const input = INPUTS[type];
    if (text) this.#text(event, item, text);
    else if (input) this.#input(event, item, input);
    else if (type === 'response.output_text.annotation.added') this.#annotation(event, item);
    else {
      const found = /^response\.(content|reasoning_summary)_part\.(added|done)$/.exec(type);
      must(found, `${type} is an event of the standard`);
      this.#part(event, item, found[1] === 'content' ? 'content' : 'summary', found[2] === 'added');
    }
  }

  #added({ item, output_index: at }: Json): void {
    const { id, type, call_id: callId, status } = item as Json;
    must(at === this.#items.length, 'items are numbered as they open, without gaps');
    must(isFilled(id) && isFilled(type), 'an item has an id and a type');
    this.#claim(`id ${id}`);
    const isCall = type === 'function_call' || type === 'custom_tool_call';
    if (isCall) {
      must(isFilled(callId) && isFilled((item as Json)['name']), 'a call begins with its id and name');
      must((item as Json)[type === 'function_call' ? 'arguments' : 'input'] === '', 'a call begins without arguments');
      this.#claim(`${type} ${callId}`);
    }
    // A message with parts that nobody knows comes whole, like the items of server tools.
    const isWhole = type === 'message' && ((item as Json)['content'] as unknown[]).length > 0;
    if (isCall || (type === 'message' && !isWhole)) must(status === 'in_progress', 'an item begins in progress');
    if (type === 'message') must((item as Json)['role'] === 'assistant', 'the assistant speaks');
    if (type === 'reasoning') must(Array.isArray((item as Json)['summary']), 'reasoning has a summary');
    this.#items.push({
      id,
      type,
      callId,
      isWhole,
      isDone: false,
      content: [],
      summary: [],
      input: '',
      isInputDone: !isCall,
      done: undefined,
    });
  }

  #claim(identity: string): void {
    must(!this.#identities.has(identity), `two items with ${identity}`);
    this.#identities.add(identity);
  }

  #done({ item }: Json, state: ItemState): void {
    const body = item as Json;
    must(body['id'] === state.id && body['type'] === state.type, 'the same item is done');
    if (CALLED.has(state.type)) must(body['call_id'] === state.callId, 'the same call is done');
    must(state.isInputDone, 'the arguments are done before the call is');
    for (const part of [...state.content, ...state.summary]) must(part.isDone, 'the parts are done before the item is');
    if (state.type === 'message' && !state.isWhole)
      must((body['content'] as Json[]).length === state.content.length, 'a message holds its parts');
    if (state.type === 'reasoning')
      must((body['summary'] as Json[]).length === state.summary.length, 'reasoning holds its parts');
    if (state.type === 'function_call') must(body['arguments'] === state.input, 'a call holds its arguments');
    if (!state.isWhole && !isRaw(state.type))
      must(body['status'] === 'completed' || body['status'] === 'incomplete', 'an item that is done says so');
    state.isDone = true;
    state.done = JSON.stringify(body);
  }

  #part(event: Json, item: ItemState, list: 'content' | 'summary', isAdded: boolean): void {
    const at = event[list === 'content' ? 'content_index' : 'summary_index'];
    const { type, text, refusal } = event['part'] as Json;
    must(OWNER[String(type)] === item.type, `a part ${type} in a ${item.type}`);
    const parts = item[list];
    if (isAdded) {
      must(at === parts.length, 'parts are numbered without gaps');
      must((text ?? refusal) === '', 'a part begins empty');
      must(
        parts.every(({ isDone }) => isDone),
        'one part at a time',
      );
      if (type === 'output_text') must(Array.isArray((event['part'] as Json)['annotations']), 'a text has annotations');
      parts.push({ type: String(type), text: '', isTextDone: false, isDone: false, annotations: 0 });
      return;
    }
    const part = parts[Number(at)];
    must(part?.isTextDone && !part.isDone && part.type === type, 'a part is done once, after its text');
    must((text ?? refusal) === part.text, 'a part holds its text');
    part.isDone = true;
  }

  #text(event: Json, item: ItemState, rule: TextRule): void {
    const part = item[rule.list][Number(event[rule.list === 'content' ? 'content_index' : 'summary_index'])];
    must(part && part.type === rule.part && !part.isTextDone, `${event['type']} outside its part`);
    if (rule.part === 'output_text') must(Array.isArray(event['logprobs']), 'a text brings its logprobs');
    if (rule.done) {
      must(event[rule.done] === part.text, 'the whole text is the sum of its deltas');
      part.isTextDone = true;
      return;
    }
    must(isText(event['delta']), 'a delta is text');
    part.text += event['delta'];
  }

  #annotation({ content_index: at, annotation_index: index, annotation }: Json, item: ItemState): void {
    const part = item.content[Number(at)];
    must(part?.type === 'output_text' && !part.isTextDone, 'an annotation stands in a text');
    must(index === part.annotations++ && isFilled((annotation as Json)['type']), 'annotations are numbered');
  }

  #input(event: Json, item: ItemState, { item: type, done }: (typeof INPUTS)[string]): void {
    must(item.type === type && !item.isInputDone, `${event['type']} for a ${item.type}`);
    if (done) {
      must(event[done] === item.input, 'the whole arguments are the sum of their deltas');
      item.isInputDone = true;
      return;
    }
    must(isFilled(event['delta']), 'a delta is text');
    item.input += event['delta'];
  }
}

/** Items that go as they came. */
const isRaw = (type: string): boolean => type !== 'message' && type !== 'function_call' && type !== 'custom_tool_call';
