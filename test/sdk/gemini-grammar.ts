import type { SseFrame } from '../../packages/core/src/index.ts';
import type { Json } from './gemini.ts';

/** A Gemini stream broke a rule that some client relies on. */
class GrammarError extends Error {}

function must(condition: unknown, rule: string): asserts condition {
  if (!condition) throw new GrammarError(rule);
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The kinds of content; a part has one of them. */
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

/** What every client accepts: `data:` frames with whole parts, one last frame with every finishReason and the usage. Or a bare error, and nothing after it. */
export class GeminiGrammar {
  #envelope: string | undefined;
  #state: 'open' | 'done' | 'error' = 'open';
  readonly #seen = new Set<number>();
  /** Parts that only Gemini understands may be anything. */
  readonly #allowsOpaque: boolean;

  constructor(allowsOpaque: boolean) {
    this.#allowsOpaque = allowsOpaque;
  }

  static check(frames: Iterable<SseFrame>, allowsOpaque = false): 'done' | 'error' {
    const grammar = new GeminiGrammar(allowsOpaque);
    for (const frame of frames) grammar.push(frame);
    return grammar.end();
  }

  push(frame: SseFrame): void {
    must(this.#state === 'open', `a frame after ${this.#state}`);
    const { data, bare, ...rest } = frame;
    must(Object.keys(rest).length === 0, 'a frame has data and nothing else: no event, no id');
    must(!/[\r\n]/.test(data), 'a frame is one line');
    must(data !== '[DONE]', 'no [DONE]');
    const payload: unknown = JSON.parse(data);
    must(isObject(payload), 'a payload is an object');
    must('error' in payload === (bare === true), 'an error stands bare, and nothing else does');
    if ('error' in payload) this.#error(payload['error']);
    else this.#fragment(payload);
  }

  end(): 'done' | 'error' {
    must(this.#state !== 'open', 'the stream ends without a finishReason or an error');
    return this.#state;
  }

  #error(error: unknown): void {
    must(isObject(error), 'an error is an object');
    must(
      Number.isSafeInteger(error['code']) && Number(error['code']) >= 400 && Number(error['code']) <= 599,
      'its code is a status',
    );
    must(typeof error['message'] === 'string' && error['message'] !== '', 'an error has a message');
    must(typeof error['status'] === 'string' && /^[A-Z_]+$/.test(error['status']), 'its status is a name of google.rpc.Code');
    this.#state = 'error';
  }

  #fragment(fragment: Json): void {
    const { candidates, responseId, modelVersion, usageMetadata, promptFeedback } = fragment;
    must(typeof responseId === 'string' && responseId !== '', 'a fragment has a responseId');
    const envelope = JSON.stringify([responseId, modelVersion]);
    this.#envelope ??= envelope;
    must(this.#envelope === envelope, 'id and model never change');
    must(
      candidates === undefined ? isObject(promptFeedback) : Array.isArray(candidates) && candidates.length > 0,
      'candidates, or why there are none',
    );
    const list = (candidates ?? []) as Json[];
    const finished = list.map((candidate) => this.#candidate(candidate));
    const isLast = candidates === undefined || finished.every(Boolean);
    must(isLast || !finished.some(Boolean), 'all candidates finish in one frame');
    if (usageMetadata !== undefined) {
      must(isLast, 'usage comes with the last frame');
      this.#usage(usageMetadata);
    }
    if (!isLast) return;
    const ended = new Set(list.map(({ index }) => Number(index)));
    for (const index of this.#seen) must(ended.has(index), `candidate ${index} finishes`);
    this.#state = 'done';
  }

  #candidate({ index, content, finishReason }: Json): boolean {
    must(Number.isSafeInteger(index) && Number(index) >= 0, 'a candidate has an index');
    this.#seen.add(Number(index));
    must(isObject(content) && content['role'] === 'model', 'content has the role model');
    must(Array.isArray(content['parts']) && content['parts'].length > 0, 'content has parts');
    for (const part of content['parts']) this.#part(part);
    must(finishReason === undefined || (typeof finishReason === 'string' && finishReason !== ''), 'finishReason is a name');
    return finishReason !== undefined;
  }

  #part(part: unknown): void {
    must(isObject(part), 'a part is an object');
    const kinds = KINDS.filter((kind) => kind in part);
    must(kinds.length === 1 || this.#allowsOpaque, `a part is one thing: ${Object.keys(part).join()}`);
    if ('text' in part) must(typeof part['text'] === 'string', 'text is text');
    if ('thought' in part) must(part['thought'] === true, 'thought is said, or not');
    if ('thoughtSignature' in part)
      must(typeof part['thoughtSignature'] === 'string' && part['thoughtSignature'] !== '', 'a signature is text');
    if (isObject(part['functionCall'])) this.#call(part['functionCall']);
    if (isObject(part['inlineData'])) {
      const { mimeType, data } = part['inlineData'];
      must(typeof mimeType === 'string' && mimeType !== '' && typeof data === 'string', 'a blob has a type and data');
    }
  }

  #call({ id, name, args, partialArgs, willContinue }: Json): void {
    must(typeof id === 'string' && id !== '', 'a call has an id');
    must(typeof name === 'string' && name !== '', 'a call has a name');
    must(isObject(args), 'arguments are an object');
    must(partialArgs === undefined && willContinue === undefined, 'calls come whole');
  }

  #usage(usage: unknown): void {
    must(isObject(usage), 'usage is an object');
    const count = (key: string): number => {
      const value = usage[key] ?? 0;
      must(typeof value === 'number' && value >= 0, `${key} counts`);
      return value;
    };
    const prompt = count('promptTokenCount') + count('toolUsePromptTokenCount');
    must(count('cachedContentTokenCount') <= prompt, 'cached tokens are a part');
    must(
      prompt + count('candidatesTokenCount') + count('thoughtsTokenCount') === count('totalTokenCount'),
      'the total is the sum',
    );
  }
}
