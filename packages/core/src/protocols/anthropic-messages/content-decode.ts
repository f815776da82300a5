import { getOwn, isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { RuleId } from '../../doctor/rules.ts';
import { BlockEmitter, type Emit } from '../shared/block-writer.ts';
import { textOf } from '../shared/read.ts';
import type { BlockKind, BlockReader, BlockScope } from './block-reader.ts';
import { OpaqueReader, TextReader, ThinkingReader, WholeReader } from './block-readers.ts';
import { decodeRedacted, decodeResult } from './blocks.ts';
import { Calls } from './calls.ts';
import { ToolReader } from './tool-reader.ts';
import type { WireBlock, WireDelta } from './wire.ts';

/** Which block a delta belongs to, when no start says so. */
const DELTA_KINDS: Record<string, BlockKind> = {
  text_delta: 'text',
  citations_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'thinking',
  input_json_delta: 'tool_use',
};

/** Which delta, or block, has the field: for those that forgot their type. */
const DELTA_BY_FIELD = [
  ['text', 'text_delta'],
  ['thinking', 'thinking_delta'],
  ['partial_json', 'input_json_delta'],
  ['signature', 'signature_delta'],
  ['citation', 'citations_delta'],
] as const;
const BLOCK_BY_FIELD = [
  ['text', 'text'],
  ['thinking', 'thinking'],
  ['name', 'tool_use'],
] as const;

/** The content blocks of one message: which delta belongs to which block. A wire index is a key and nothing more. */
export class ContentDecoder implements BlockScope {
  readonly emitter: BlockEmitter;
  readonly calls: Calls;
  model = '';
  readonly here: () => number;
  readonly #report: BlockScope['report'];
  /** The block that each index means now, and those that deltas of another kind opened at the same index. */
  readonly #blocks = new Map<string, BlockReader>();
  /** Blocks that have not stopped, and where they began. */
  readonly #open = new Map<BlockReader, number>();
  #latest: { key: string; reader: BlockReader } | undefined;
  #lastThinking: ThinkingReader | undefined;
  /** Thinking in which another began: a signature is for all of its block, which may not be split. So the other blocks wait for its stop. */
  #whole: string | undefined;
  readonly #held = new Map<string | undefined, (() => void)[]>();
  #keys = 0;
  #starts = 0;

  constructor(emit: Emit, here: () => number, report: BlockScope['report']) {
    this.here = here;
    this.#report = report;
    this.emitter = new BlockEmitter(emit);
    this.calls = new Calls(report);
  }

  report(rule: RuleId, detail?: string, offset?: number): void {
    this.#report(rule, detail, offset);
  }

  newKey(): number {
    return this.#keys++;
  }

  get isEmpty(): boolean {
    return this.#latest === undefined;
  }

  start(payload: JsonObject): void {
    const block: WireBlock = isObject(payload['content_block']) ? payload['content_block'] : {};
    const type = typeOf(block, BLOCK_BY_FIELD);
    const key = keyOf(payload['index']) ?? `start ${this.#starts}`;
    if (type === 'thinking') this.#keepWhole(key);
    if (this.#hold(key, () => this.start(payload))) return;
    const before = this.#blocks.get(key);
    if (before?.isRestatedBy(type, block)) {
      this.report('anthropic/block-start-repeated');
      return;
    }
    this.#inspectIndex(payload['index'], before !== undefined);
    this.#starts++;
    if (before) this.#stop(key, before);
    // Without a type the deltas tell what it is.
    if (type === '') this.#blocks.delete(key);
    else this.#add(key, this.#createReader(type, block));
  }

  #keepWhole(key: string): void {
    const { key: before, reader } = this.#latest ?? {};
    if (this.#whole !== undefined || before === key || !(reader instanceof ThinkingReader) || reader.isStopped) return;
    this.report('anthropic/blocks-overlap');
    this.#whole = before;
  }

  #hold(key: string | undefined, read: () => void): boolean {
    if (this.#whole === undefined || key === this.#whole) return false;
    const held = this.#held.get(key);
    if (held) held.push(read);
    else this.#held.set(key, [read]);
    return true;
  }

  /** The next block, and with it those behind that have stopped, or need not stay whole. */
  #advance(): void {
    this.#whole = undefined;
    for (const [key, held] of this.#held) {
      this.#held.delete(key);
      for (const read of held) read();
      const { reader } = this.#latest ?? {};
      if (this.#held.size === 0 || !(reader instanceof ThinkingReader) || reader.isStopped) continue;
      this.#whole = key;
      return;
    }
  }

  #inspectIndex(index: unknown, isReused: boolean): void {
    if (isReused) this.report('anthropic/index-reused');
    else if (index !== this.#starts) this.report('anthropic/index-gap');
    this.#closeSettled();
    if (this.#open.size > 0) this.report('anthropic/blocks-overlap');
  }

  /** A call whose arguments are whole need not wait for a stop that some relays never send. */
  #closeSettled(): void {
    const { key, reader } = this.#latest ?? {};
    if (!(reader instanceof ToolReader) || reader.isStopped || !reader.isSettled || key === undefined) return;
    this.report('anthropic/blocks-overlap');
    this.#stop(key, reader);
  }

  #createReader(type: string, block: WireBlock): BlockReader {
    if (type === 'text') return new TextReader(this, block);
    if (type === 'thinking') return new ThinkingReader(this, block);
    if (type === 'redacted_thinking') return new WholeReader(this, block, decodeRedacted(block, this.model));
    if (isToolUse(type)) return new ToolReader(this, type, block);
    if (type.endsWith('tool_result'))
      return new WholeReader(this, block, decodeResult(block, this.calls.nameOf(block.tool_use_id)));
    if (type === 'fallback') this.#followFallback(block['to']);
    return new OpaqueReader(this, block);
  }

  /** The request moved on to another model: what it signs from here on is its own. */
  #followFallback(to: unknown): void {
    if (isObject(to) && typeof to['model'] === 'string') this.model = to['model'];
  }

  #add(key: string, reader: BlockReader): void {
    this.#blocks.set(key, reader);
    this.#open.set(reader, this.here());
    this.#latest = { key, reader };
    if (reader instanceof ThinkingReader) this.#lastThinking = reader;
  }

  delta(payload: JsonObject): void {
    const { delta } = payload;
    if (!isObject(delta)) return;
    const type = typeOf(delta, DELTA_BY_FIELD);
    const key = keyOf(payload['index']) ?? this.#latest?.key ?? '0';
    if (this.#hold(key, () => this.delta(payload))) return;
    const reader = this.#blocks.get(key);
    if (reader?.delta(type, delta)) return;
    const kind = getOwn(DELTA_KINDS, type);
    if (kind === undefined)
      this.report('anthropic/unknown-delta', `a delta of type ${JSON.stringify(type.slice(0, 40))} was left out`);
    else this.#deltaWithoutBlock(key, kind, type, delta);
  }

  /** The block was never started, or is of another kind: the delta itself says what it is a part of. */
  #deltaWithoutBlock(index: string, kind: BlockKind, type: string, delta: WireDelta): void {
    const isStarted = this.#blocks.has(index);
    this.report(isStarted ? 'anthropic/delta-of-another-kind' : 'anthropic/block-start-missing');
    if (type === 'signature_delta' && this.#lastThinking?.delta(type, delta)) return;
    const key = isStarted ? `${index} ${kind}` : index;
    let reader = this.#blocks.get(key);
    if (!reader) {
      reader = this.#createReader(kind, {});
      this.#add(key, reader);
    }
    reader.delta(type, delta);
  }

  stop(payload: JsonObject): void {
    const key = keyOf(payload['index']) ?? this.#latest?.key;
    if (this.#hold(key, () => this.stop(payload))) return;
    const reader = key === undefined ? undefined : this.#blocks.get(key);
    if (key !== undefined && reader) this.#stop(key, reader);
    else this.report('anthropic/stop-without-start');
  }

  #stop(key: string, reader: BlockReader): void {
    this.#stopReader(reader, false);
    for (const kind of ['text', 'thinking', 'tool_use']) {
      const beside = this.#blocks.get(`${key} ${kind}`);
      if (beside) this.#stopReader(beside, false);
    }
    if (this.#whole === key) this.#advance();
  }

  #stopReader(reader: BlockReader, isCut: boolean): void {
    reader.stop(isCut);
    this.#open.delete(reader);
  }

  /** Stops what is open. `isCut`: the message did not come to its own end, so that an open call has not either. */
  end(isCut: boolean): void {
    for (const [reader, at] of this.#open) {
      if (!isCut) this.report('anthropic/block-stop-missing', undefined, at);
      this.#stopReader(reader, isCut);
    }
    while (this.#whole !== undefined) {
      this.#advance();
      for (const reader of this.#open.keys()) this.#stopReader(reader, isCut);
    }
    this.emitter.end();
  }
}

const isToolUse = (type: string): boolean => type === 'tool_use' || type.endsWith('_tool_use');

const keyOf = (index: unknown): string | undefined =>
  typeof index === 'number' || typeof index === 'string' ? String(index) : undefined;

function typeOf(value: JsonObject, byField: readonly (readonly [field: string, type: string])[]): string {
  const type = textOf(value['type']);
  return type !== '' ? type : (byField.find(([field]) => Object.hasOwn(value, field))?.[1] ?? '');
}
