import {
  accept,
  isCount,
  isFilled,
  isText,
  listAt,
  must,
  objectAt,
  parsePayload,
  type StreamGrammar,
} from '../../codec/grammar.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import type { SseFrame } from '../../sse/encode.ts';

type Outcome = 'done' | 'error';

/**
 * The streams that every client accepts: `data:` frames with whole parts, and a last frame with every finishReason
 * and the usage. Or an error, and nothing after it.
 */
export class GeminiGrammar implements StreamGrammar {
  #envelope: string | undefined;
  #state: 'open' | Outcome = 'open';
  readonly #seen = new Set<number>();
  readonly #allowsOpaque: boolean;

  /** `allowsOpaque`: parts that only Gemini understands may be anything. */
  constructor(allowsOpaque = false) {
    this.#allowsOpaque = allowsOpaque;
  }

  /** Checks a complete stream; throws at the first violation. */
  static check(frames: Iterable<SseFrame>, allowsOpaque = false): Outcome {
    return accept(new GeminiGrammar(allowsOpaque), frames);
  }

  /** Checks the next frame. */
  push({ offset: _, ...frame }: SseFrame): void {
    must(this.#state === 'open', `a frame after ${this.#state}`);
    const { data, ...rest } = frame;
    must(Object.keys(rest).length === 0, 'a frame has data and nothing else: no event, no id, no bare JSON');
    must(!/[\r\n]/.test(data), 'a frame is one line');
    must(data !== '[DONE]', 'no [DONE]');
    const payload = parsePayload(frame);
    if ('error' in payload) this.#error(objectAt(payload['error'], 'an error'));
    else this.#fragment(payload);
  }

  /** Checks that the stream may end here, and returns how it ended. */
  end(): Outcome {
    must(this.#state !== 'open', 'the stream ends in a finishReason, or in an error');
    return this.#state;
  }

  #error({ code, message, status }: JsonObject): void {
    must(isCount(code) && code >= 400 && code <= 599, 'the code of an error is a status');
    must(isFilled(message), 'an error has a message');
    must(isText(status) && /^[A-Z_]+$/.test(status), 'its status is a name of google.rpc.Code');
    this.#state = 'error';
  }

  #fragment(fragment: JsonObject): void {
    const { candidates, responseId, modelVersion, usageMetadata, promptFeedback } = fragment;
    must(isFilled(responseId), 'a fragment has a responseId');
    const envelope = JSON.stringify([responseId, modelVersion]);
    this.#envelope ??= envelope;
    must(this.#envelope === envelope, 'id and model never change');
    if (candidates === undefined) must(isObject(promptFeedback), 'candidates, or why there are none');
    const isLast = candidates === undefined || this.#candidates(listAt(candidates, 'candidates'));
    if (usageMetadata !== undefined) {
      must(isLast, 'usage comes with the last frame');
      checkUsage(objectAt(usageMetadata, 'usage'));
    }
    if (isLast) this.#state = 'done';
  }

  /** Returns whether they finish: all candidates must, in one frame. */
  #candidates(wire: readonly unknown[]): boolean {
    must(wire.length > 0, 'there is a candidate');
    const list = wire.map((candidate) => checkCandidate(objectAt(candidate, 'a candidate'), this.#allowsOpaque));
    for (const { index } of list) this.#seen.add(index);
    const isLast = list.every(({ isFinished }) => isFinished);
    must(isLast || !list.some(({ isFinished }) => isFinished), 'all candidates finish in one frame');
    const ended = new Set(list.map(({ index }) => index));
    for (const index of this.#seen) must(!isLast || ended.has(index), `candidate ${index} finishes`);
    return isLast;
  }
}

function checkUsage(usage: JsonObject): void {
  const count = (key: string): number => {
    const value = usage[key] ?? 0;
    must(typeof value === 'number' && value >= 0, `${key} counts`);
    return value;
  };
  const prompt = count('promptTokenCount') + count('toolUsePromptTokenCount');
  must(count('cachedContentTokenCount') <= prompt, 'cached tokens are a part');
  must(prompt + count('candidatesTokenCount') + count('thoughtsTokenCount') === count('totalTokenCount'), 'the total is the sum');
}

function checkCandidate(candidate: JsonObject, allowsOpaque: boolean): { index: number; isFinished: boolean } {
  const { index, content, finishReason } = candidate;
  must(isCount(index), 'a candidate has an index');
  must(isObject(content) && content['role'] === 'model', 'content has the role model');
  must(Array.isArray(content['parts']) && content['parts'].length > 0, 'content has parts');
  for (const part of content['parts']) checkPart(objectAt(part, 'a part'), allowsOpaque);
  must(finishReason === undefined || isFilled(finishReason), 'finishReason is a name');
  return { index, isFinished: finishReason !== undefined };
}

/** The kinds of content; a part has exactly one. */
const KINDS = [
  'text',
  'functionCall',
  'functionResponse',
  'inlineData',
  'fileData',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
];

function checkPart(part: JsonObject, allowsOpaque: boolean): void {
  const kinds = KINDS.filter((kind) => kind in part);
  must(kinds.length === 1 || allowsOpaque, `a part has one kind of content: ${Object.keys(part).join()}`);
  if ('text' in part) must(isText(part['text']), 'text is text');
  if ('thought' in part) must(part['thought'] === true, 'thought is a boolean or absent');
  if ('thoughtSignature' in part) must(isFilled(part['thoughtSignature']), 'a signature is text');
  if (isObject(part['functionCall'])) checkCall(part['functionCall']);
  if (isObject(part['inlineData'])) {
    const { mimeType, data } = part['inlineData'];
    must(isFilled(mimeType) && isText(data), 'a blob has a type and data');
  }
}

function checkCall({ id, name, args, partialArgs, willContinue }: JsonObject): void {
  must(isFilled(id), 'a call has an id');
  must(isFilled(name), 'a call has a name');
  must(isObject(args), 'arguments are an object');
  must(partialArgs === undefined && willContinue === undefined, 'calls come whole');
}
