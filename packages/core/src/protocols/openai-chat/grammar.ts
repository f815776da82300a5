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
import { isObject, type JsonObject } from '../../json/json.ts';
import type { SseFrame } from '../../sse/encode.ts';

const FINISHES = /* @__PURE__ */ new Set<unknown>(['stop', 'length', 'tool_calls', 'content_filter']);

interface Call {
  /** The field that holds name and arguments. */
  body: 'function' | 'custom';
  text: 'arguments' | 'input';
  name: string;
}

interface Choice {
  isFinished: boolean;
  calls: Call[];
  once: Set<string>;
}

type Outcome = 'done' | 'error';

/**
 * Checks a chat stream that the gateway writes, in the form that every client accepts: role, deltas and finish for each
 * choice; usage if requested; [DONE]. Or an error, after which nothing follows.
 */
export class ChatGrammar implements StreamGrammar {
  readonly #wantsUsage: boolean;
  readonly #choices = new Map<number, Choice>();
  #envelope: string | undefined;
  #state: 'open' | 'usage' | Outcome = 'open';

  /** `wantsUsage`: the client requested usage (`stream_options.include_usage`). */
  constructor(wantsUsage = true) {
    this.#wantsUsage = wantsUsage;
  }

  /** Checks all frames of a stream and returns how it ended. */
  static check(frames: Iterable<SseFrame>, wantsUsage = true): Outcome {
    return accept(new ChatGrammar(wantsUsage), frames);
  }

  push(frame: SseFrame): void {
    must(this.#state === 'open' || this.#state === 'usage', `a frame after ${this.#state}`);
    mustHave(frame, 'data', 'a frame has data and nothing else');
    if (frame.data === '[DONE]') {
      this.#done();
      return;
    }
    const chunk = parsePayload(frame);
    if ('error' in chunk) this.#error(objectAt(chunk['error'], 'an error'));
    else this.#chunk(chunk);
  }

  end(): Outcome {
    must(this.#state === 'done' || this.#state === 'error', `the stream ends in the state ${this.#state}`);
    return this.#state;
  }

  #done(): void {
    must(this.#choices.size > 0, '[DONE] without a choice');
    this.#allFinished('[DONE]');
    this.#state = 'done';
  }

  #allFinished(what: string): void {
    for (const { isFinished } of this.#choices.values()) must(isFinished, `${what} before the finish of every choice`);
  }

  #error({ message, type, code, param }: JsonObject): void {
    must(this.#state === 'open', 'an error after the end');
    must(isFilled(message), 'an error has a message');
    must(isText(type), 'an error has a type');
    must(code === null || isText(code), 'the code of an error is a string or null');
    must(param === null || isText(param), 'the param of an error is a string or null');
    this.#state = 'error';
  }

  #chunk(chunk: JsonObject): void {
    const { id, object, created, model } = chunk;
    must(this.#state === 'open', 'a chunk after the usage');
    must(isFilled(id), 'a chunk has an id');
    must(object === 'chat.completion.chunk', 'a chunk has object chat.completion.chunk');
    must(isCount(created) && created > 0, 'a chunk has a time');
    must(isText(model), 'a chunk has a model');
    const envelope = JSON.stringify([id, created, model]);
    this.#envelope ??= envelope;
    must(this.#envelope === envelope, 'id, created and model never change');
    const choices = listAt(chunk['choices'], 'choices');
    if (choices.length === 0) this.#usage(objectAt(chunk['usage'], 'usage'));
    else this.#oneChoice(chunk, choices);
  }

  #usage(usage: JsonObject): void {
    must(this.#wantsUsage, 'usage that was not requested');
    this.#allFinished('usage');
    checkUsage(usage);
    this.#state = 'usage';
  }

  #oneChoice(chunk: JsonObject, choices: readonly unknown[]): void {
    must(choices.length === 1, 'one choice per chunk');
    const choice = objectAt(choices[0], 'a choice');
    const { usage = null } = chunk;
    must(!this.#wantsUsage || ('usage' in chunk && usage === null), 'usage beside choices is null');
    if (usage !== null) {
      must(choice['finish_reason'] !== null, 'usage that was not requested is beside the finish');
      checkUsage(objectAt(usage, 'usage'));
    }
    this.#choice(choice);
  }

  #choice({ index, delta: wire, finish_reason: finish, logprobs }: JsonObject): void {
    must(isCount(index), 'a choice has an index');
    const delta = objectAt(wire, 'a delta');
    const choice = this.#choiceAt(index, delta);
    must(!choice.isFinished, 'nothing follows the finish of a choice');
    must(finish === null || FINISHES.has(finish), `finish_reason is ${describeType(finish)}`);
    choice.isFinished = finish !== null;
    checkDelta(delta, choice);
    if (logprobs !== undefined && logprobs !== null)
      must(isObject(logprobs) && 'content' in logprobs && 'refusal' in logprobs, 'logprobs have both sides');
  }

  #choiceAt(index: number, delta: JsonObject): Choice {
    const known = this.#choices.get(index);
    if (known) {
      must(!('role' in delta), 'the role comes once');
      return known;
    }
    must(delta['role'] === 'assistant', 'a choice begins with its role');
    const choice: Choice = { isFinished: false, calls: [], once: new Set() };
    this.#choices.set(index, choice);
    return choice;
  }
}

function checkUsage(usage: JsonObject): void {
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = usage;
  must(isCount(prompt) && isCount(completion), 'usage counts');
  must(prompt + completion === total, 'the total is the sum');
  const { cached_tokens: cached } = objectAt(usage['prompt_tokens_details'], 'prompt_tokens_details');
  const { reasoning_tokens: reasoning } = objectAt(usage['completion_tokens_details'], 'completion_tokens_details');
  must(isCount(cached) && cached <= prompt, 'cached tokens are a part');
  must(isCount(reasoning) && reasoning <= completion, 'reasoning tokens are a part');
}

function checkDelta(delta: JsonObject, { once, calls }: Choice): void {
  for (const key of ['content', 'refusal', 'reasoning_content', 'reasoning'])
    if (key in delta) must(isText(delta[key]), `${key} is text`);
  must(!('function_call' in delta), 'no deprecated call');
  for (const key of ['annotations', 'images', 'content_parts']) {
    if (!(key in delta)) continue;
    must(!once.has(key), `${key} come once: openai-node keeps the last list`);
    once.add(key);
  }
  if (!('tool_calls' in delta)) return;
  for (const wire of listAt(delta['tool_calls'], 'tool_calls')) {
    const call = objectAt(wire, 'a call');
    must(isCount(call['index']), 'a call has an index');
    const known = calls[call['index']];
    if (known) checkContinuation(known, call);
    else calls.push(openCall(call, calls.length));
  }
}

function openCall({ index, id, type, ...rest }: JsonObject, due: number): Call {
  must(index === due, 'calls are numbered 0, 1, 2');
  must(isFilled(id), 'a call begins with its id');
  must(type === 'function' || type === 'custom', 'a call begins with its type');
  const text = type === 'custom' ? 'input' : 'arguments';
  const body = objectAt(rest[type], 'the function of a call');
  const { name } = body;
  must(isFilled(name), 'a call begins with its name');
  must(body[text] === '', 'a call begins without arguments');
  return { body: type, text, name };
}

function checkContinuation(known: Call, call: JsonObject): void {
  must(!('id' in call) && !('type' in call), 'id and type come once');
  const body = objectAt(call[known.body], 'the function of a call (the AI SDK rejects an entry without one)');
  must(body['name'] !== known.name, 'the name is not repeated, at most corrected');
  const text = body[known.text];
  const hasOtherFields = Object.keys(call).length > 2 || Object.keys(body).length > 1;
  must(isText(text) && (text !== '' || hasOtherFields), 'arguments are text');
}
