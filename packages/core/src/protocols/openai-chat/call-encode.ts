import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';
import { argumentsOf } from '../shared/answer.ts';
import type { CodecContext } from '../shared/codec.ts';
import { callFields, tellIncomplete } from './parts-encode.ts';

interface OpenCall {
  /** Chat numbers the calls of a choice by themselves. */
  index: number;
  block: ToolUseBlock;
  hasArguments: boolean;
}

const bodyKey = ({ kind }: ToolUseBlock): 'custom' | 'function' => (kind === 'custom' ? 'custom' : 'function');
const textKey = ({ kind }: ToolUseBlock): 'input' | 'arguments' => (kind === 'custom' ? 'input' : 'arguments');

/** Where the calls of a choice are written. */
export interface CallSink {
  /** The number of calls. */
  readonly size: number;
  /** Whether the block at this position is a call. */
  has(at: number): boolean;
  start(at: number, block: ToolUseBlock): void;
  /** Adds fields beside the standard ones. */
  add(at: number, fields: JsonObject): void;
}

/** The calls of one choice, blocks to entries of `tool_calls`: id, type and name at once and once, then the arguments. */
export class CallEncoder implements CallSink {
  readonly #context: CodecContext;
  readonly #send: (call: JsonObject) => void;
  /** By block: ids can collide. */
  readonly #calls = new Map<number, OpenCall>();
  /** A call that stopped without arguments: it has none if the message goes on or ends well, and has lost them if it was cut. */
  #bare: OpenCall | undefined;
  /** Gemini signs a call right after it has named it; clients (AI SDK) look for the signature where a call begins, and nowhere else. */
  readonly #awaitsSignature: boolean;
  #head: JsonObject | undefined;

  constructor(context: CodecContext, send: (call: JsonObject) => void) {
    this.#context = context;
    this.#send = send;
    this.#awaitsSignature = (context.source ?? context.target?.provider.protocol) === 'gemini';
  }

  get size(): number {
    return this.#calls.size;
  }

  has(at: number): boolean {
    return this.#calls.has(at);
  }

  start(at: number, block: ToolUseBlock): void {
    const index = this.#calls.size;
    this.#calls.set(at, { index, block, hasArguments: false });
    tellIncomplete(block, `/content/${at}`, this.#context);
    const { outer, inner } = callFields(block);
    const { id, name } = block;
    const type = bodyKey(block);
    this.#head = { ...outer, index, id, type, [type]: { ...inner, name, [textKey(block)]: '' } };
    if (!this.#awaitsSignature) this.#sendHead();
    this.write(at, argumentsOf(block, true));
  }

  #sendHead(fields: JsonObject = {}): void {
    const head = this.#head;
    this.#head = undefined;
    if (head) this.#send({ ...fields, ...head });
  }

  /** Argument text of a function, or input text of a custom tool. */
  write(at: number, text: string): void {
    const call = this.#calls.get(at);
    if (!call || text === '') return;
    call.hasArguments = true;
    this.#sendHead();
    this.#send({ index: call.index, [bodyKey(call.block)]: { [textKey(call.block)]: text } });
  }

  /** Fields beside the standard ones. An entry without its body is refused by clients that check what they read (AI SDK). */
  add(at: number, fields: JsonObject): void {
    const call = this.#calls.get(at);
    if (!call) return;
    if (this.#head?.['index'] === call.index) this.#sendHead(fields);
    else this.#send({ ...fields, index: call.index, [bodyKey(call.block)]: { [textKey(call.block)]: '' } });
  }

  /** `final` corrects what was settled late. */
  stop(at: number, final: ToolUseBlock | undefined): void {
    const call = this.#calls.get(at);
    if (!call) return;
    this.#sendHead();
    if (final) this.#sendLate(call, final);
    if (call.hasArguments || call.block.kind === 'custom') return;
    this.settle();
    this.#bare = call;
  }

  /** A call without arguments gets the empty object: JSON.parse("") throws, and clients call it. */
  settle(): void {
    this.#sendHead();
    const call = this.#bare;
    this.#bare = undefined;
    if (call) this.#send({ index: call.index, function: { arguments: '{}' } });
  }

  /** An id stands as it was sent: every id names the call as well as another. A name that grew is the only one that is right. */
  #sendLate({ index, block }: OpenCall, final: ToolUseBlock): void {
    const before = callFields(block);
    const after = callFields(final);
    const outer = changed(before.outer, after.outer);
    const inner = changed(before.inner, after.inner);
    if (final.name !== block.name) {
      inner['name'] = final.name;
      const message = `the name of a call was ${block.name} when it was sent, and is ${final.name}`;
      this.#context.note({ code: 'REPAIRED', path: '/content', feature: 'content.tool_use.name', message });
    }
    const isChanged = Object.keys(inner).length > 0 || Object.keys(outer).length > 0;
    if (isChanged) this.#send({ ...outer, index, [bodyKey(block)]: { ...inner, [textKey(block)]: '' } });
  }
}

const changed = (before: JsonObject, after: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(after).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key])));
