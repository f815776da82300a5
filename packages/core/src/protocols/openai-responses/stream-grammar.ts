import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { SseFrame } from '../../sse/frame.ts';
import {
  accept,
  isCount,
  isFilled,
  isText,
  listAt,
  must,
  mustHave,
  objectAt,
  payloadOf,
  type StreamGrammar,
} from '../shared/stream-grammar.ts';
import { ItemGrammar } from './item-grammar.ts';

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

type Outcome = 'completed' | 'incomplete' | 'failed';
type State = 'new' | 'created' | 'open' | 'error' | Outcome;

/** What every client accepts: created, in_progress, items that open, fill and close, and one terminal event that holds it all. */
export class ResponsesGrammar implements StreamGrammar {
  #sequence = 0;
  #id: unknown;
  #state: State = 'new';
  readonly #items: ItemGrammar[] = [];
  readonly #identities = new Set<string>();

  static check(frames: Iterable<SseFrame>): Outcome {
    return accept(new ResponsesGrammar(), frames);
  }

  push(frame: SseFrame): void {
    mustHave(frame, 'data,event', 'a frame has an event line and data');
    const event = payloadOf(frame);
    const { type } = event;
    must(isText(type) && type === frame.event, 'the event line says the type');
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

  /** Gives the response that the event carries. */
  #lifecycle({ response }: JsonObject, { from, to, status }: { from: State; to: State; status: string }): JsonObject {
    must(this.#state === from, `${to} after ${this.#state}`);
    const body = objectAt(response, 'a response');
    for (const name of REQUIRED) must(name in body, `a response has ${name}`);
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
    must((outcome === 'incomplete') === (body['incomplete_details'] !== null), 'an incomplete response says why');
    if (body['usage']) checkUsage(objectAt(body['usage'], 'usage'));
  }

  #error({ message, code, param, error }: JsonObject): void {
    must(this.#state === 'open', `an error in the state ${this.#state}`);
    must(isFilled(message) && objectAt(error, 'an error')['message'] === message, 'an error says what it is, flat and nested');
    must(code === null || isText(code), 'the code of an error is a word');
    must(param === null || isText(param), 'the param of an error is a path');
    this.#state = 'error';
  }

  #item(type: string, event: JsonObject): void {
    const at = event['output_index'];
    must(isCount(at), 'items are named by their index');
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
