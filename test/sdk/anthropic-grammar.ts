import type { SseFrame } from '../../packages/core/src/index.ts';
import type { Json } from './anthropic.ts';

/** A message stream broke a rule that some client relies on. */
class GrammarError extends Error {}

function must(condition: unknown, rule: string): asserts condition {
  if (!condition) throw new GrammarError(rule);
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

const STOPS = new Set([
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'refusal',
  'model_context_window_exceeded',
  'compaction',
]);

/** The deltas that a block of a type may have. */
const DELTAS: Record<string, readonly string[]> = {
  text: ['text_delta', 'citations_delta'],
  thinking: ['thinking_delta', 'signature_delta'],
  tool_use: ['input_json_delta'],
  server_tool_use: ['input_json_delta'],
  mcp_tool_use: ['input_json_delta'],
};

const PAYLOAD: Record<string, string> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'signature',
  input_json_delta: 'partial_json',
};

interface OpenBlock {
  index: number;
  type: string;
  deltas: number;
  isSigned: boolean;
}

type State = 'before' | 'open' | 'finished' | 'stopped' | 'error';

/**
 * What every client accepts: message_start, blocks one after the other, one message_delta, message_stop; pings anywhere. Or an error, and
 * nothing after it. (A1-A9 of the protocol page.)
 */
export class MessagesGrammar {
  #state: State = 'before';
  #open: OpenBlock | undefined;
  readonly #types: string[] = [];
  readonly #lateSigned = new Set<number>();

  static check(frames: Iterable<SseFrame>): 'stopped' | 'error' {
    const grammar = new MessagesGrammar();
    for (const frame of frames) grammar.push(frame);
    return grammar.end();
  }

  push(frame: SseFrame): void {
    must(this.#state !== 'stopped' && this.#state !== 'error', `a frame after ${this.#state}`);
    must(Object.keys(frame).join() === 'event,data', 'a frame has an event line and data, and nothing else');
    const payload = JSON.parse(frame.data) as Json;
    must(payload['type'] === frame.event, 'the event line says the type (P104)');
    this.#read(String(frame.event), payload);
  }

  end(): 'stopped' | 'error' {
    must(this.#state === 'stopped' || this.#state === 'error', `the stream ends in the state ${this.#state}`);
    return this.#state;
  }

  #read(type: string, payload: Json): void {
    switch (type) {
      case 'ping':
        must(Object.keys(payload).length === 1, 'a ping carries nothing');
        return;
      case 'message_start':
        this.#start(payload['message'] as Json);
        return;
      case 'content_block_start':
        this.#startBlock(payload);
        return;
      case 'content_block_delta':
        this.#delta(payload);
        return;
      case 'content_block_stop':
        this.#stopBlock(payload);
        return;
      case 'message_delta':
        this.#finish(payload);
        return;
      case 'message_stop':
        must(this.#state === 'finished', 'message_stop follows message_delta');
        this.#state = 'stopped';
        return;
      case 'error':
        this.#error(payload);
        return;
      default:
        must(false, `clients do not know the event ${type}`);
    }
  }

  #start(message: Json): void {
    must(this.#state === 'before', 'message_start comes once, and first');
    const { id, type, role, model, content, stop_reason: stop, usage } = message;
    must(typeof id === 'string' && id !== '', 'a message has an id');
    must(type === 'message' && role === 'assistant' && typeof model === 'string', 'a message says what it is');
    must(Array.isArray(content) && content.length === 0 && stop === null, 'a message begins empty');
    must(isObject(usage) && isCount(usage['input_tokens']) && isCount(usage['output_tokens']), 'usage is counted from the start');
    this.#state = 'open';
  }

  #startBlock({ index, content_block: block }: Json): void {
    must(this.#state === 'open', 'blocks stand between message_start and message_delta');
    must(!this.#open, 'one block is open at a time (P101)');
    must(index === this.#types.length, 'blocks are numbered 0, 1, 2 (P134)');
    must(isObject(block) && typeof block['type'] === 'string', 'a block has a type');
    const { type } = block;
    this.#checkStart(String(type), block);
    this.#types.push(String(type));
    this.#open = { index: Number(index), type: String(type), deltas: 0, isSigned: false };
  }

  #checkStart(type: string, block: Json): void {
    if (type === 'text') must(block['text'] === '', 'text begins empty');
    if (type === 'thinking') must(block['thinking'] === '' && typeof block['signature'] === 'string', 'thinking begins empty');
    if (type === 'redacted_thinking') must(typeof block['data'] === 'string', 'redacted thinking is whole in its start');
    if (!type.endsWith('tool_use')) return;
    must(typeof block['id'] === 'string' && block['id'] !== '', 'a call has an id');
    must(typeof block['name'] === 'string' && block['name'] !== '', 'a call has a name');
    must(isObject(block['input']) && Object.keys(block['input']).length === 0, 'a call begins without arguments');
  }

  #delta({ index, delta }: Json): void {
    must(this.#state === 'open', 'deltas stand between message_start and message_delta');
    must(isObject(delta), 'a delta is an object');
    const type = String(delta['type']);
    if (this.#open && index === this.#open.index) this.#checkDelta(this.#open, type, delta);
    else this.#checkLate(Number(index), type, delta);
  }

  #checkDelta(open: OpenBlock, type: string, delta: Json): void {
    must((DELTAS[open.type] ?? []).includes(type), `a block of type ${open.type} has no ${type}`);
    must(!open.isSigned, 'the signature comes last');
    const field = PAYLOAD[type];
    if (field) must(typeof delta[field] === 'string', `${type} brings text`);
    if (field === 'text' || field === 'thinking') must(delta[field] !== '', `${type} brings something`);
    open.isSigned = type === 'signature_delta';
    open.deltas++;
  }

  /** The one exception: a signature that the source sent when its block had stopped. The SDK finds the block by its index. */
  #checkLate(index: number, type: string, delta: Json): void {
    must(type === 'signature_delta', 'a delta belongs to the open block');
    must(this.#types[index] === 'thinking', 'a late signature belongs to thinking that was sent');
    must(typeof delta['signature'] === 'string' && delta['signature'] !== '', 'a late signature is one');
    this.#lateSigned.add(index);
  }

  #stopBlock({ index }: Json): void {
    must(this.#open && index === this.#open.index, 'the open block stops');
    const { type, deltas } = this.#open;
    if (type === 'text' || type.endsWith('tool_use')) must(deltas > 0, `a ${type} block has a delta`);
    this.#open = undefined;
  }

  #finish({ delta, usage }: Json): void {
    must(this.#state === 'open' && !this.#open, 'message_delta follows the last block, once (P95)');
    must(isObject(delta) && STOPS.has(String(delta['stop_reason'])), `stop_reason is ${(delta as Json)?.['stop_reason']}`);
    for (const name of ['stop_sequence', 'stop_details', 'container']) must(name in delta, `${name} is said, or null`);
    must(isObject(usage) && isCount(usage['output_tokens']), 'message_delta has usage');
    for (const name of ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'])
      must(usage[name] === null || isCount(usage[name]), `${name} counts`);
    this.#state = 'finished';
  }

  #error({ error, request_id: id }: Json): void {
    must(this.#state !== 'finished', 'an error after the end');
    must(isObject(error) && typeof error['type'] === 'string' && error['type'] !== '', 'an error has a type');
    must(typeof error['message'] === 'string' && error['message'] !== '', 'an error has a message');
    must(id === null || typeof id === 'string', 'an error names the request, or null');
    this.#state = 'error';
  }
}
