import {
  accept,
  describeType,
  isCount,
  isFilled,
  isText,
  must,
  mustHave,
  objectAt,
  parsePayload,
  type StreamGrammar,
} from '../../codec/grammar.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import type { SseFrame } from '../../sse/encode.ts';

type Outcome = 'stopped' | 'error';

interface OpenBlock {
  index: number;
  type: string;
  deltas: number;
  isSigned: boolean;
}

/** The stop reasons that clients know. */
const STOPS = /* @__PURE__ */ new Set<unknown>([
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'refusal',
  'model_context_window_exceeded',
  'compaction',
]);

/**
 * The streams that every client accepts: message_start, blocks one after another, one message_delta, message_stop,
 * with pings anywhere; or an error, and nothing after it.
 */
export class MessagesGrammar implements StreamGrammar {
  #state: 'before' | 'open' | 'finished' | Outcome = 'before';
  #open: OpenBlock | undefined;
  readonly #types: string[] = [];

  /** Checks a complete stream; throws at the first violation. */
  static check(frames: Iterable<SseFrame>): Outcome {
    return accept(new MessagesGrammar(), frames);
  }

  /** Checks the next frame. */
  push(frame: SseFrame): void {
    must(this.#state !== 'stopped' && this.#state !== 'error', `a frame after ${this.#state}`);
    mustHave(frame, 'data,event', 'a frame has an event line and data, and nothing else');
    const payload = parsePayload(frame);
    must(payload['type'] === frame.event, 'the event line equals the type');
    this.#read(payload);
  }

  /** Checks that the stream may end here, and returns how it ended. */
  end(): Outcome {
    must(this.#state === 'stopped' || this.#state === 'error', `the stream ends in the state ${this.#state}`);
    return this.#state;
  }

  #read(payload: JsonObject): void {
    switch (payload['type']) {
      case 'ping':
        must(Object.keys(payload).length === 1, 'a ping carries nothing');
        return;
      case 'message_start':
        this.#start(objectAt(payload['message'], 'a message'));
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
        must(false, `clients do not know the event ${describeType(payload['type'])}`);
    }
  }

  #start({ id, type, role, model, content, stop_reason: stop, usage }: JsonObject): void {
    must(this.#state === 'before', 'message_start comes once, and first');
    must(isFilled(id), 'a message has an id');
    must(type === 'message' && role === 'assistant' && isText(model), 'a message has its type and role');
    must(Array.isArray(content) && content.length === 0 && stop === null, 'a message begins empty');
    must(isObject(usage) && isCount(usage['input_tokens']) && isCount(usage['output_tokens']), 'usage is counted from the start');
    this.#state = 'open';
  }

  #startBlock({ index, content_block: wire }: JsonObject): void {
    must(this.#state === 'open', 'blocks come between message_start and message_delta');
    must(!this.#open, 'one block is open at a time');
    must(isCount(index) && index === this.#types.length, 'blocks are numbered 0, 1, 2');
    const block = objectAt(wire, 'a block');
    const { type } = block;
    must(isText(type), 'a block has a type');
    checkStart(type, block);
    this.#types.push(type);
    this.#open = { index, type, deltas: 0, isSigned: false };
  }

  #delta({ index, delta: wire }: JsonObject): void {
    must(this.#state === 'open', 'deltas come between message_start and message_delta');
    const delta = objectAt(wire, 'a delta');
    if (this.#open && index === this.#open.index) checkDelta(this.#open, delta);
    else this.#checkLate(index, delta);
  }

  /** The one exception: a late signature of a block that has stopped. The SDK finds the block by its index. */
  #checkLate(index: unknown, { type, signature }: JsonObject): void {
    must(type === 'signature_delta', 'a delta belongs to the open block');
    must(isCount(index) && this.#types[index] === 'thinking', 'a late signature belongs to thinking that was sent');
    must(isFilled(signature), 'a late signature is one');
  }

  #stopBlock({ index }: JsonObject): void {
    must(this.#open && index === this.#open.index, 'the open block stops');
    const { type, deltas } = this.#open;
    if (type === 'text' || type.endsWith('tool_use')) must(deltas > 0, `a ${type} block has a delta`);
    this.#open = undefined;
  }

  #finish({ delta: wire, usage }: JsonObject): void {
    must(this.#state === 'open' && !this.#open, 'message_delta follows the last block, once');
    const delta = objectAt(wire, 'the delta of a message');
    must(STOPS.has(delta['stop_reason']), `stop_reason is ${describeType(delta['stop_reason'])}`);
    for (const name of ['stop_sequence', 'stop_details', 'container']) must(name in delta, `${name} is set or null`);
    must(isObject(usage) && isCount(usage['output_tokens']), 'message_delta has usage');
    for (const name of ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'])
      must(usage[name] === null || isCount(usage[name]), `${name} counts`);
    this.#state = 'finished';
  }

  #error({ error: wire, request_id: id }: JsonObject): void {
    must(this.#state !== 'finished', 'an error after the end');
    const error = objectAt(wire, 'an error');
    must(isFilled(error['type']), 'an error has a type');
    must(isFilled(error['message']), 'an error has a message');
    must(id === null || isText(id), 'an error names the request, or null');
    this.#state = 'error';
  }
}

function checkStart(type: string, block: JsonObject): void {
  if (type === 'text') must(block['text'] === '', 'text begins empty');
  if (type === 'thinking') must(block['thinking'] === '' && isText(block['signature']), 'thinking begins empty');
  if (type === 'redacted_thinking') must(isText(block['data']), 'redacted thinking is whole in its start');
  if (!type.endsWith('tool_use')) return;
  must(isFilled(block['id']), 'a call has an id');
  must(isFilled(block['name']), 'a call has a name');
  must(isObject(block['input']) && Object.keys(block['input']).length === 0, 'a call begins without arguments');
}

/** The deltas that each type of block may have. */
const DELTAS: ReadonlyMap<string, readonly unknown[]> = new Map([
  ['text', ['text_delta', 'citations_delta']],
  ['thinking', ['thinking_delta', 'signature_delta']],
  ['tool_use', ['input_json_delta']],
  ['server_tool_use', ['input_json_delta']],
  ['mcp_tool_use', ['input_json_delta']],
]);

/** The text field of each delta, and whether it may be empty. */
const PAYLOADS: ReadonlyMap<unknown, { field: string; mayBeEmpty: boolean }> = new Map([
  ['text_delta', { field: 'text', mayBeEmpty: false }],
  ['thinking_delta', { field: 'thinking', mayBeEmpty: false }],
  ['signature_delta', { field: 'signature', mayBeEmpty: true }],
  ['input_json_delta', { field: 'partial_json', mayBeEmpty: true }],
]);

function checkDelta(open: OpenBlock, delta: JsonObject): void {
  const { type } = delta;
  must(DELTAS.get(open.type)?.includes(type), `a block of type ${open.type} has no ${describeType(type)}`);
  must(!open.isSigned, 'the signature comes last');
  const payload = PAYLOADS.get(type);
  if (payload)
    must(payload.mayBeEmpty ? isText(delta[payload.field]) : isFilled(delta[payload.field]), `${describeType(type)} brings text`);
  open.isSigned = type === 'signature_delta';
  open.deltas++;
}
