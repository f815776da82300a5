import type { SseFrame } from '../../packages/core/src/index.ts';
import type { Json } from './chat.ts';

/** A chat stream broke a rule that some client relies on. */
class GrammarError extends Error {}

const FINISHES = new Set(['stop', 'length', 'tool_calls', 'content_filter']);

interface ChoiceState {
  hasRole: boolean;
  finish: string | null;
  calls: { isCustom: boolean; name: string }[];
  once: Set<string>;
}

function must(condition: unknown, rule: string): asserts condition {
  if (!condition) throw new GrammarError(rule);
}

/** What every client accepts: role, deltas, finish for each choice; usage if asked; [DONE]. Or an error, and nothing after it. */
export class ChatGrammar {
  readonly #wantsUsage: boolean;
  readonly #choices = new Map<number, ChoiceState>();
  #envelope: string | undefined;
  #state: 'open' | 'usage' | 'done' | 'error' = 'open';

  constructor(wantsUsage: boolean) {
    this.#wantsUsage = wantsUsage;
  }

  static check(frames: Iterable<SseFrame>, wantsUsage = true): 'done' | 'error' {
    const grammar = new ChatGrammar(wantsUsage);
    for (const frame of frames) grammar.push(frame);
    return grammar.end();
  }

  push(frame: SseFrame): void {
    must(this.#state === 'open' || this.#state === 'usage', `a frame after ${this.#state}`);
    must(Object.keys(frame).join() === 'data', 'a frame has data and nothing else');
    if (frame.data === '[DONE]') {
      this.#done();
      return;
    }
    const chunk = JSON.parse(frame.data) as Json;
    if ('error' in chunk) this.#error(chunk);
    else this.#chunk(chunk);
  }

  end(): 'done' | 'error' {
    must(this.#state === 'done' || this.#state === 'error', `the stream ends in the state ${this.#state}`);
    return this.#state;
  }

  #done(): void {
    must(this.#choices.size > 0, '[DONE] without a choice');
    for (const { finish } of this.#choices.values()) must(finish !== null, '[DONE] before the finish of every choice');
    this.#state = 'done';
  }

  #error(chunk: Json): void {
    const error = chunk['error'] as Json;
    must(this.#state === 'open', 'an error after the end');
    must(typeof error['message'] === 'string' && error['message'] !== '', 'an error has a message');
    must(typeof error['type'] === 'string', 'an error has a type');
    must(error['code'] === null || typeof error['code'] === 'string', 'the code of an error is a word');
    must(error['param'] === null || typeof error['param'] === 'string', 'the param of an error is a path');
    this.#state = 'error';
  }

  #chunk(chunk: Json): void {
    const { id, object, created, model, choices } = chunk;
    must(this.#state === 'open', 'a chunk after the usage');
    must(typeof id === 'string' && id !== '', 'a chunk has an id');
    must(object === 'chat.completion.chunk', 'a chunk says that it is one');
    must(Number.isSafeInteger(created) && Number(created) > 0, 'a chunk has a time');
    must(typeof model === 'string', 'a chunk has a model');
    const envelope = JSON.stringify([id, created, model]);
    this.#envelope ??= envelope;
    must(this.#envelope === envelope, 'id, created and model never change');
    must(Array.isArray(choices), 'a chunk has choices');
    if (choices.length === 0) this.#usage(chunk);
    else this.#check(chunk, choices as Json[]);
  }

  #usage({ usage }: Json): void {
    must(this.#wantsUsage, 'usage that nobody asked for');
    for (const { finish } of this.#choices.values()) must(finish !== null, 'usage before the finish');
    const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, completion_tokens_details } = usage as Json;
    must(Number(prompt_tokens) >= 0 && Number(completion_tokens) >= 0, 'usage counts');
    must(Number(prompt_tokens) + Number(completion_tokens) === total_tokens, 'the total is the sum');
    must(Number((prompt_tokens_details as Json)['cached_tokens']) <= Number(prompt_tokens), 'cached tokens are a part');
    must(
      Number((completion_tokens_details as Json)['reasoning_tokens']) <= Number(completion_tokens),
      'reasoning tokens are a part',
    );
    this.#state = 'usage';
  }

  #check(chunk: Json, choices: Json[]): void {
    must(
      'usage' in chunk === this.#wantsUsage && (chunk['usage'] ?? null) === null,
      'usage is null beside choices, or not there',
    );
    must(choices.length === 1, 'one choice a chunk');
    for (const choice of choices) this.#choice(choice);
  }

  #choice({ index, delta, finish_reason: finish, logprobs }: Json): void {
    must(Number.isSafeInteger(index) && Number(index) >= 0, 'a choice has an index');
    const state = this.#stateOf(Number(index), delta as Json);
    must(state.finish === null, 'nothing follows the finish of a choice');
    must(finish === null || FINISHES.has(String(finish)), `finish_reason is ${finish}`);
    state.finish = finish === null ? null : String(finish);
    this.#delta(delta as Json, state);
    if (logprobs !== undefined && logprobs !== null)
      must('content' in (logprobs as Json) && 'refusal' in (logprobs as Json), 'both sides');
  }

  #stateOf(index: number, delta: Json): ChoiceState {
    let state = this.#choices.get(index);
    if (!state) {
      must(delta['role'] === 'assistant', 'a choice begins with its role');
      state = { hasRole: true, finish: null, calls: [], once: new Set() };
      this.#choices.set(index, state);
    } else must(!('role' in delta), 'the role comes once');
    return state;
  }

  #delta(delta: Json, state: ChoiceState): void {
    for (const key of ['content', 'refusal', 'reasoning_content', 'reasoning'])
      if (key in delta) must(typeof delta[key] === 'string', `${key} is text`);
    must(!('function_call' in delta), 'no deprecated call');
    for (const key of ['annotations', 'images', 'content_parts']) {
      if (!(key in delta)) continue;
      must(!state.once.has(key), `${key} come once: openai-node keeps the last list`);
      state.once.add(key);
    }
    if ('tool_calls' in delta) for (const call of delta['tool_calls'] as Json[]) this.#call(call, state);
  }

  #call(call: Json, { calls }: ChoiceState): void {
    const at = Number(call['index']);
    const known = calls[at];
    if (known === undefined) {
      must(at === calls.length, 'calls are numbered 0, 1, 2');
      must(typeof call['id'] === 'string' && call['id'] !== '', 'a call begins with its id');
      must(call['type'] === 'function' || call['type'] === 'custom', 'a call begins with its type');
      const isCustom = call['type'] === 'custom';
      const body = call[isCustom ? 'custom' : 'function'] as Json;
      must(typeof body['name'] === 'string' && body['name'] !== '', 'a call begins with its name');
      must(body[isCustom ? 'input' : 'arguments'] === '', 'a call begins without arguments');
      calls.push({ isCustom, name: body['name'] });
      return;
    }
    must(!('id' in call) && !('type' in call), 'id and type come once');
    const key = known.isCustom ? 'custom' : 'function';
    const body = call[key] as Json | undefined;
    must(body !== undefined, 'an entry has its body: the AI SDK refuses one without');
    must(body['name'] !== known.name, 'the name is not repeated, at most corrected');
    const text = body[known.isCustom ? 'input' : 'arguments'];
    const saysMore = Object.keys(call).length > 2 || Object.keys(body).length > 1;
    must(typeof text === 'string' && (text !== '' || saysMore), 'arguments are text');
  }
}
