/** The content blocks of a stream, from the wire's block events to canonical ones. */

import { ArgumentText, deriveId, type Reading } from '../../accumulate/argument-text.ts';
import { LimitError } from '../../accumulate/tool-calls.ts';
import { type ContentBlock, isClientCall, type ToolKind, type ToolUseBlock } from '../../canonical/message.ts';
import { CallLimits } from '../../codec/answers.ts';
import { BlockEmitter, type Emit, type Flow } from '../../codec/block-emitter.ts';
import { textOrEmpty } from '../../codec/read.ts';
import { StartText, WrittenText } from '../../codec/start-text.ts';
import { getOwn, isObject, type JsonObject, parseJson, sameJson, setOwn } from '../../json/json.ts';
import { writeExact } from '../../json/literals.ts';
import type { RuleId } from '../../rules/index.ts';
import { buildSignature, decodeCitation, decodeOpaque, decodeRedacted, decodeResult, keepUnknownFields } from './blocks.ts';
import type { WireBlock, WireDelta } from './wire.ts';

/** What the block readers of a message share. */
export interface BlockScope {
  /** Where canonical block events are written. */
  readonly emitter: BlockEmitter;
  /** The calls of the message so far. */
  readonly calls: CallRegistry;
  /** The model that is generating; signatures are tied to it. */
  readonly model: string;
  /** The byte offset of the event that is being read. */
  readonly here: () => number;
  /** Reports a violation at the current offset, or at the given one. */
  report(rule: RuleId, detail?: string, offset?: number): void;
  /** A key that distinguishes blocks of one kind, because wire indexes are reused. */
  newKey(): number;
}

/** The kind of a block reader; `whole` has no deltas. */
export type BlockKind = 'text' | 'thinking' | 'tool_use' | 'whole' | 'opaque';

/** Reads one content block of the wire. */
export interface BlockReader {
  /** What the reader makes of its block. */
  readonly kind: BlockKind;
  /** Whether the block has stopped. */
  readonly isStopped: boolean;
  /** Whether another start at the same index only repeats this block's start. What it adds is read. */
  isRestatedBy(type: string, block: WireBlock): boolean;
  /** Reads a delta of the given type; returns false if it does not apply to this kind of block. */
  delta(type: string, delta: WireDelta): boolean;
  /** Stops the block. `isCut`: the message ended before the block did. */
  stop(isCut: boolean): void;
}

/** Block types by their characteristic field, for blocks without a type. */
const BLOCK_BY_FIELD = [
  ['text', 'text'],
  ['thinking', 'thinking'],
  ['name', 'tool_use'],
] as const;

/** Delta types by their characteristic field, for deltas without a type. */
const DELTA_BY_FIELD = [
  ['text', 'text_delta'],
  ['thinking', 'thinking_delta'],
  ['partial_json', 'input_json_delta'],
  ['signature', 'signature_delta'],
  ['citation', 'citations_delta'],
] as const;

/** The kind of block that a delta belongs to, for deltas without a block start. */
const DELTA_KINDS: Record<string, BlockKind> = {
  text_delta: 'text',
  citations_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'thinking',
  input_json_delta: 'tool_use',
};

/**
 * Assigns the deltas of one message to its content blocks. Wire indexes are only keys: they may be missing, reused or
 * have gaps.
 */
export class ContentDecoder implements BlockScope {
  readonly emitter: BlockEmitter;
  readonly calls: CallRegistry;
  model = '';
  readonly here: () => number;
  readonly #report: BlockScope['report'];
  /**
   * The current block of each index, and blocks opened at the same index by deltas of another kind (`"index kind"`).
   */
  readonly #blocks = new Map<string, BlockReader>();
  /** Blocks that have not stopped, with the offsets of their starts. */
  readonly #open = new Map<BlockReader, number>();
  #latest: { key: string; reader: BlockReader } | undefined;
  #lastThinking: ThinkingReader | undefined;
  /**
   * The key of an open thinking block during which another block began. Its signature covers the whole block, so it
   * must not be split: events of the other blocks are held until it stops.
   */
  #whole: string | undefined;
  readonly #held = new Map<string | undefined, (() => void)[]>();
  #keys = 0;
  #starts = 0;

  constructor(emit: Emit, here: () => number, report: BlockScope['report']) {
    this.here = here;
    this.#report = report;
    this.emitter = new BlockEmitter(emit);
    this.calls = new CallRegistry(report);
  }

  report(rule: RuleId, detail?: string, offset?: number): void {
    this.#report(rule, detail, offset);
  }

  newKey(): number {
    return this.#keys++;
  }

  /** Whether no block has started. */
  get isEmpty(): boolean {
    return this.#latest === undefined;
  }

  /** Reads a `content_block_start`. */
  start(payload: JsonObject): void {
    const block: WireBlock = isObject(payload['content_block']) ? payload['content_block'] : {};
    const type = findType(block, BLOCK_BY_FIELD);
    const named = readKey(payload['index']);
    const key = named ?? `start ${this.#starts}`;
    if (type === 'thinking') this.#keepWhole(key);
    if (this.#hold(key, () => this.start(payload))) return;
    const before = this.#blocks.get(key);
    const open = named === undefined ? this.#latest?.reader : before;
    if (open?.isRestatedBy(type, block)) {
      this.report('anthropic/block-start-repeated');
      return;
    }
    this.#inspectIndex(payload['index'], before !== undefined);
    this.#starts++;
    if (before) this.#stop(key, before);
    // Without a type, the first delta decides the kind of block.
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

  /** Reads the held events of the next blocks, up to the first thinking block that is still open. */
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

  /** A call with complete arguments does not wait for its stop: some relays never send one. */
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
    else this.calls.hasOpaque = true;
    return new OpaqueReader(this, block);
  }

  /** The request fell back to another model, which signs what follows. */
  #followFallback(to: unknown): void {
    if (isObject(to) && typeof to['model'] === 'string') this.model = to['model'];
  }

  #add(key: string, reader: BlockReader): void {
    this.#blocks.set(key, reader);
    this.#open.set(reader, this.here());
    this.#latest = { key, reader };
    if (reader instanceof ThinkingReader) this.#lastThinking = reader;
  }

  /** Reads a `content_block_delta`. */
  delta(payload: JsonObject): void {
    const { delta } = payload;
    if (!isObject(delta)) return;
    const type = findType(delta, DELTA_BY_FIELD);
    const key = readKey(payload['index']) ?? this.#latest?.key ?? '0';
    if (this.#hold(key, () => this.delta(payload))) return;
    const reader = this.#blocks.get(key);
    if (reader?.delta(type, delta)) return;
    const kind = getOwn(DELTA_KINDS, type);
    if (kind === undefined)
      this.report('anthropic/unknown-delta', `a delta of type ${JSON.stringify(type.slice(0, 40))} was skipped`);
    else this.#deltaWithoutBlock(key, kind, type, delta);
  }

  /** The block never started or is of another kind: the delta's type decides the block. */
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

  /** Reads a `content_block_stop`. */
  stop(payload: JsonObject): void {
    const key = readKey(payload['index']) ?? this.#latest?.key;
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

  /** Stops all open blocks. `isCut`: the message was cut off, so an open call is incomplete. */
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

const THINKING_FIELDS: ReadonlySet<string> = new Set(['type', 'thinking', 'signature']);

/** Thinking. Its block opens at once: an empty one can still carry a signature. */
export class ThinkingReader implements BlockReader {
  readonly kind = 'thinking';
  isStopped = false;
  readonly #scope: BlockScope;
  readonly #key: number;
  readonly #flow: Flow;
  readonly #start: StartText;
  readonly #written = new WrittenText();
  #isUntouched = true;
  #signature: string;
  #isSigned = false;

  constructor(scope: BlockScope, block: WireBlock) {
    this.#scope = scope;
    const node = keepUnknownFields(block, THINKING_FIELDS);
    this.#key = scope.newKey();
    this.#flow = { kind: 'thinking', key: this.#key, start: () => ({ type: 'thinking', thinking: '', ...node }) };
    this.#start = readStartText(scope, textOrEmpty(block.thinking));
    this.#signature = textOrEmpty(block.signature);
    scope.emitter.open(this.#flow);
  }

  isRestatedBy(type: string, block: WireBlock): boolean {
    const text = textOrEmpty(block.thinking);
    if (type !== 'thinking' || this.isStopped) return false;
    if (this.#isUntouched) return this.#start.isRestatedBy(text);
    // What follows a signature is another block.
    const rest = this.#signature === '' && this.#start.isDecided ? this.#written.findRest(text) : undefined;
    this.#write(rest ?? '');
    return rest !== undefined;
  }

  delta(type: string, delta: WireDelta): boolean {
    if (type === 'thinking_delta') this.#write(this.#start.push(textOrEmpty(delta.thinking)));
    else if (type === 'signature_delta') this.#join(textOrEmpty(delta.signature));
    else return false;
    this.#isUntouched = false;
    return true;
  }

  #write(piece: string): void {
    if (piece === '') return;
    if (this.isStopped) this.#scope.report('anthropic/delta-after-stop');
    this.#written.push(piece);
    this.#scope.emitter.write(this.#flow, { type: 'thinking_delta', thinking: piece });
  }

  /** The standard sends one signature delta; proxies split it, and some send it twice. */
  #join(piece: string): void {
    if (piece === '') return;
    if (this.#signature !== '')
      this.#scope.report(piece === this.#signature ? 'anthropic/signature-repeated' : 'anthropic/signature-split');
    if (piece === this.#signature) return;
    this.#signature += piece;
    this.#isSigned = false;
    if (!this.isStopped) return;
    this.#scope.report('anthropic/signature-late');
    this.#sign();
  }

  #sign(): void {
    if (this.#isSigned || this.#signature === '') return;
    this.#isSigned = true;
    this.#scope.emitter.sign(this.#key, {
      type: 'signature_delta',
      signature: buildSignature(this.#signature, this.#scope.model),
    });
  }

  stop(): void {
    if (this.isStopped) return;
    this.#write(this.#start.end());
    this.isStopped = true;
    this.#sign();
    this.#scope.emitter.closeFlow(this.#key);
  }
}

/** The `type` of a block or delta or, if it is missing, the type that its fields imply. */
function findType(value: JsonObject, byField: readonly (readonly [field: string, type: string])[]): string {
  const type = textOrEmpty(value['type']);
  return type !== '' ? type : (byField.find(([field]) => Object.hasOwn(value, field))?.[1] ?? '');
}

const readKey = (index: unknown): string | undefined =>
  typeof index === 'number' || typeof index === 'string' ? String(index) : undefined;

/** `tool_use` is run by the client; all types that are not listed here are run by the provider. */
const KINDS: Record<string, ToolKind> = { tool_use: 'function', mcp_tool_use: 'mcp' };

const TYPES: ReadonlySet<string> = new Set(['tool_use', 'server_tool_use', 'mcp_tool_use']);

const FIELDS: ReadonlySet<string> = new Set(['type', 'id', 'name', 'input']);

/** For unknown types of calls, whose type must be kept because no `kind` represents it. */
const FIELDS_BUT_TYPE: ReadonlySet<string> = new Set(['id', 'name', 'input']);

/** A call. Its arguments arrive as deltas or whole in the start; if both, the deltas win. */
class ToolReader implements BlockReader {
  readonly kind = 'tool_use';
  isStopped = false;
  readonly #wireId: unknown;
  readonly #scope: BlockScope;
  readonly #block: ToolUseBlock;
  readonly #index: number;
  readonly #arguments = new ArgumentText();
  /** The input from the start event, until a delta or the stop decides whether it is used. */
  #held: string;
  /** The input of a later start of the open block; it counts if the deltas are no JSON. */
  #restated = '';
  /** The offset of the last piece of arguments. */
  #last: number;

  constructor(scope: BlockScope, type: string, block: WireBlock) {
    this.#scope = scope;
    this.#wireId = block.id;
    this.#held = writeInput(block.input);
    this.#last = scope.here();
    const kind = KINDS[type] ?? 'server';
    this.#block = {
      type: 'tool_use',
      ...scope.calls.identify(block.id, block.name),
      input: {},
      ...(kind !== 'function' && { kind }),
      ...keepUnknownFields(block, TYPES.has(type) ? FIELDS : FIELDS_BUT_TYPE),
    };
    scope.calls.opened(this.#block);
    this.#index = scope.emitter.openTool(this.#block);
  }

  /** Whether the arguments are a complete JSON document, which no later delta can change. */
  get isSettled(): boolean {
    return this.#arguments.isSettled;
  }

  isRestatedBy(type: string, block: WireBlock): boolean {
    if (!type.endsWith('tool_use') || this.isStopped || !this.#isNamedBy(block)) return false;
    if (this.#arguments.isEmpty) this.#held ||= writeInput(block.input);
    else this.#restated = writeInput(block.input);
    return true;
  }

  /**
   * Whether a start has the id of this call; without an id, its name. A name alone is another call once the arguments are
   * complete.
   */
  #isNamedBy({ id, name }: WireBlock): boolean {
    if (!isBlank(id) && id === this.#wireId) return true;
    const hasNoId = isBlank(id) || isBlank(this.#wireId);
    return hasNoId && !this.isSettled && (isBlank(name) || name === this.#block.name);
  }

  delta(type: string, { partial_json: piece }: WireDelta): boolean {
    if (type !== 'input_json_delta') return false;
    if (typeof piece === 'string') this.#push(piece);
    // A relay that parses the arguments sends the object itself.
    else if (isObject(piece) && this.#arguments.isEmpty && !this.isStopped) this.#held = writeInput(piece);
    return true;
  }

  #push(piece: string): void {
    if (piece === '') return;
    this.#last = this.#scope.here();
    if (this.isStopped) {
      if (piece.trim() !== '') this.#resume(piece);
      return;
    }
    if (this.#held !== '') this.#scope.report('anthropic/input-in-start-and-deltas');
    this.#held = '';
    this.#scope.calls.limits.count(piece.length);
    this.#scope.emitter.writeTool(this.#index, this.#arguments.push(piece));
  }

  /** Arguments after the stop are collected and settled when the message ends. A complete document is not extended. */
  #resume(piece: string): void {
    this.#scope.report('anthropic/input-after-stop');
    if (this.isSettled) return;
    this.#scope.calls.limits.count(piece.length);
    this.#arguments.push(piece);
    this.#scope.calls.late.set(this.#index, () => this.#resumed());
  }

  #resumed(): ToolUseBlock {
    const { text, reading } = this.#arguments.decide();
    return { ...this.#judge(text, reading, false), input_raw: text };
  }

  /** The final block. A call with incomplete arguments is marked as such, so that nothing runs it. */
  #judge(text: string, reading: Reading, isCut: boolean): ToolUseBlock {
    const isWhole = text.trim() === '' ? !isCut : parseJson(text) !== undefined;
    if (isWhole) this.#scope.calls.broken.delete(this.#index);
    else this.#scope.calls.broken.set(this.#index, this.#last);
    return !isWhole && reading === 'plain' ? { ...this.#block, status: 'incomplete' } : this.#block;
  }

  /** Takes the arguments of a repeated start if those of the deltas are no JSON. */
  #useRestated(): void {
    const { text } = this.#arguments;
    const whole = this.#restated;
    if (whole === '' || parseJson(text) !== undefined) return;
    this.#scope.calls.limits.count(whole.length);
    if (whole.startsWith(text)) this.#scope.emitter.writeTool(this.#index, this.#arguments.push(whole.slice(text.length)));
    else this.#scope.calls.late.set(this.#index, () => ({ ...this.#block, input_raw: whole }));
  }

  stop(isCut: boolean): void {
    if (this.isStopped) return;
    this.isStopped = true;
    if (this.#held !== '') this.#arguments.push(this.#held);
    this.#useRestated();
    const { text: whole, reading, rest } = this.#arguments.end();
    this.#scope.emitter.writeTool(this.#index, this.#held !== '' ? this.#held : rest);
    if (reading !== 'plain' && reading !== 'unreadable')
      this.#scope.report('anthropic/input-sent-twice', `the arguments read as ${reading}`, this.#last);
    const final = this.#judge(whole, reading, isCut);
    this.#scope.emitter.stopTool(this.#index, final === this.#block ? undefined : final);
  }
}

/** The input of a block as JSON text. An empty object, which every start carries, becomes the empty string. */
export function writeInput(input: unknown): string {
  if (typeof input === 'string') return input.trim() === '{}' ? '' : input;
  if (input === undefined || input === null || (isObject(input) && Object.keys(input).length === 0)) return '';
  const text = writeExact(input);
  if (text === undefined) throw new LimitError('an input nested too deeply to be written as text');
  return text;
}

const TEXT_FIELDS: ReadonlySet<string> = new Set(['type', 'text', 'citations']);

/** Text. Its block opens with the first character or citation, so that no empty block is emitted. */
class TextReader implements BlockReader {
  readonly kind = 'text';
  isStopped = false;
  readonly #scope: BlockScope;
  readonly #flow: Flow;
  readonly #start: StartText;
  readonly #written = new WrittenText();
  #isUntouched = true;

  constructor(scope: BlockScope, block: WireBlock) {
    this.#scope = scope;
    const node = keepUnknownFields(block, TEXT_FIELDS);
    this.#flow = { kind: 'text', key: scope.newKey(), start: () => ({ type: 'text', text: '', ...node }) };
    this.#start = readStartText(scope, textOrEmpty(block.text));
    if (Array.isArray(block.citations)) for (const citation of block.citations) this.#cite(citation);
  }

  isRestatedBy(type: string, block: WireBlock): boolean {
    const text = textOrEmpty(block.text);
    if (type !== 'text' || this.isStopped) return false;
    if (this.#isUntouched) return this.#start.isRestatedBy(text);
    const rest = this.#start.isDecided ? this.#written.findRest(text) : undefined;
    this.#write(rest ?? '');
    return rest !== undefined;
  }

  delta(type: string, delta: WireDelta): boolean {
    if (type === 'text_delta') this.#write(this.#start.push(textOrEmpty(delta.text)));
    else if (type === 'citations_delta') this.#cite(delta.citation);
    else return false;
    this.#isUntouched = false;
    return true;
  }

  #write(piece: string): void {
    if (piece === '') return;
    if (this.isStopped) this.#scope.report('anthropic/delta-after-stop');
    this.#written.push(piece);
    this.#scope.emitter.write(this.#flow, { type: 'text_delta', text: piece });
  }

  #cite(citation: unknown): void {
    if (isObject(citation))
      this.#scope.emitter.write(this.#flow, { type: 'citations_delta', citation: decodeCitation(citation) });
  }

  stop(): void {
    if (this.isStopped) return;
    this.#write(this.#start.end());
    this.isStopped = true;
    this.#scope.emitter.closeFlow(this.#flow.key);
  }
}

function readStartText(scope: BlockScope, value: string): StartText {
  const start = scope.here();
  return new StartText(value, (isRepeated) =>
    isRepeated ? scope.report('anthropic/start-text-repeated') : scope.report('anthropic/text-in-start', undefined, start),
  );
}

/** A block that is complete in its start event. */
class WholeReader implements BlockReader {
  readonly kind = 'whole';
  isStopped = false;
  readonly #wire: WireBlock;

  constructor(scope: BlockScope, wire: WireBlock, block: ContentBlock) {
    this.#wire = wire;
    scope.emitter.whole(block);
  }

  isRestatedBy(_type: string, block: WireBlock): boolean {
    return !this.isStopped && sameJson(block, this.#wire);
  }

  delta(): boolean {
    return false;
  }

  stop(): void {
    this.isStopped = true;
  }
}

const isBlank = (value: unknown): boolean => value === undefined || value === null || value === '';

const isToolUse = (type: string): boolean => type === 'tool_use' || type.endsWith('_tool_use');

/** A block that only this protocol understands; its deltas are passed on unchanged. */
class OpaqueReader implements BlockReader {
  readonly kind = 'opaque';
  isStopped = false;
  readonly #scope: BlockScope;
  readonly #block: WireBlock;
  readonly #flow: Flow;
  #isUntouched = true;

  constructor(scope: BlockScope, block: WireBlock) {
    this.#scope = scope;
    this.#block = block;
    let raw = block;
    const start = (): ContentBlock => {
      const opened = decodeOpaque(raw);
      // After an interruption by another block, continue with a new block of the same type, without the content so far.
      raw = { type: block.type };
      return opened;
    };
    this.#flow = { kind: 'opaque', key: scope.newKey(), start };
    scope.emitter.open(this.#flow);
  }

  isRestatedBy(_type: string, block: WireBlock): boolean {
    return this.#isUntouched && !this.isStopped && sameJson(block, this.#block);
  }

  delta(_type: string, delta: WireDelta): boolean {
    this.#isUntouched = false;
    const raw: JsonObject = {};
    let isEmpty = true;
    for (const key of Object.keys(delta)) {
      if (key === 'type' || delta[key] === null) continue;
      setOwn(raw, key, delta[key]);
      isEmpty = false;
    }
    if (!isEmpty) this.#scope.emitter.write(this.#flow, { type: 'opaque_delta', raw });
    return true;
  }

  stop(): void {
    if (this.isStopped) return;
    this.isStopped = true;
    this.#scope.emitter.closeFlow(this.#flow.key);
  }
}

/** The calls of one message: makes their ids unique and non-blank, and limits their number and size. */
export class CallRegistry {
  readonly #report: (rule: RuleId) => void;
  readonly #names = new Map<string, string>();
  /** Counts calls and the characters of their arguments. */
  readonly limits: CallLimits = new CallLimits();
  #client: ToolUseBlock | undefined;
  /** Seeds derived ids. */
  messageId = '';
  /** The message has a block of unknown type, which may be a call. */
  hasOpaque = false;
  /** Calls whose arguments continued after their stop, by block index; each function returns the final block. */
  readonly late: Map<number, () => ToolUseBlock> = new Map();
  /** Offsets of the last arguments of calls whose arguments are not valid JSON, by block index. */
  readonly broken: Map<number, number> = new Map();

  constructor(report: (rule: RuleId) => void) {
    this.#report = report;
  }

  /** The first call of a client tool, if there is one: it determines the stop reason. */
  get client(): ToolUseBlock[] {
    return this.#client ? [this.#client] : [];
  }

  /** Whether the message has no call of any kind. */
  get isEmpty(): boolean {
    return this.#names.size === 0 && !this.hasOpaque;
  }

  /** The name of the call with this id. */
  nameOf(id: unknown): string | undefined {
    return typeof id === 'string' ? this.#names.get(id) : undefined;
  }

  /** The id and name of a call: those of the wire if usable, otherwise derived ones. */
  identify(wireId: unknown, wireName: unknown): Pick<ToolUseBlock, 'id' | 'name' | 'status'> {
    const position = this.#names.size;
    this.limits.open();
    const name = typeof wireName === 'string' && wireName.trim() !== '' ? wireName : `tool_${position}`;
    if (name !== wireName) this.#report('anthropic/tool-name-missing');
    const id = this.#uniqueId(wireId, position, name);
    this.#names.set(id, name);
    return { id, name, ...(name !== wireName && { status: 'incomplete' }) };
  }

  #uniqueId(wireId: unknown, position: number, name: string): string {
    const id = typeof wireId === 'number' ? String(wireId) : wireId;
    if (typeof id === 'string' && id.trim() !== '' && !this.#names.has(id)) return id;
    const isBlank = typeof id !== 'string' || id.trim() === '';
    this.#report(isBlank ? 'anthropic/tool-id-missing' : 'anthropic/tool-id-duplicate');
    let salt = 0;
    let derived: string;
    do derived = deriveId('toolu_', this.messageId, position, name, salt++);
    while (this.#names.has(derived));
    return derived;
  }

  /** Registers a call that has started. */
  opened(block: ToolUseBlock): void {
    if (isClientCall(block.kind) && !isCalledByCode(block)) this.#client ??= block;
  }
}

/**
 * Whether code that the provider runs made the call. It may already have a result; only the stop reason tells whether
 * the client must run it.
 */
function isCalledByCode({ extensions }: ToolUseBlock): boolean {
  const caller = extensions?.['anthropic-messages']?.['caller'];
  return isObject(caller) && caller['type'] !== 'direct';
}
