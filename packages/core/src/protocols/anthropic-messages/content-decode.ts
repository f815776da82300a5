import { ArgumentText, deriveId, type Reading } from '../../accumulate/argument-text.ts';
import { LimitError } from '../../accumulate/tool-calls.ts';
import { type ContentBlock, isClientCall, type ToolKind, type ToolUseBlock } from '../../canonical/message.ts';
import { CallLimits } from '../../codec/answers.ts';
import { BlockEmitter, type Emit, type Flow } from '../../codec/block-emitter.ts';
import { textOf } from '../../codec/read.ts';
import { getOwn, isObject, type JsonObject, parseJson, sameJson, setOwn, writeJson } from '../../json/json.ts';
import type { RuleId } from '../../rules/index.ts';
import { decodeCitation, decodeOpaque, decodeRedacted, decodeResult, otherFields, signatureOf } from './blocks.ts';
import type { WireBlock, WireDelta } from './wire.ts';

/** What the blocks of a message share. */
export interface BlockScope {
  readonly emitter: BlockEmitter;
  readonly calls: Calls;
  /** The model that is writing, which signatures belong to. */
  readonly model: string;
  /** The place in the stream that is being read. */
  readonly here: () => number;
  /** Names a departure there, or at another place. */
  report(rule: RuleId, detail?: string, offset?: number): void;
  /** Tells two blocks of one kind apart: wire indexes are reused. */
  newKey(): number;
}

export type BlockKind = 'text' | 'thinking' | 'tool_use' | 'whole' | 'opaque';

/** One content block of the wire, while its deltas arrive. */
export interface BlockReader {
  readonly kind: BlockKind;
  readonly isStopped: boolean;
  /** Another start at the same index: whether it only says this one again, before any delta. */
  isRestatedBy(type: string, block: WireBlock): boolean;
  /** `type` is the delta's type; false when it says nothing to a block of this kind. */
  delta(type: string, delta: WireDelta): boolean;
  /** `isCut`: the block did not come to its own end. */
  stop(isCut: boolean): void;
}

const BLOCK_BY_FIELD = [
  ['text', 'text'],
  ['thinking', 'thinking'],
  ['name', 'tool_use'],
] as const;

/** Which delta, or block, has the field: for those that forgot their type. */
const DELTA_BY_FIELD = [
  ['text', 'text_delta'],
  ['thinking', 'thinking_delta'],
  ['partial_json', 'input_json_delta'],
  ['signature', 'signature_delta'],
  ['citation', 'citations_delta'],
] as const;

/** Which block a delta belongs to, when no start says so. */
const DELTA_KINDS: Record<string, BlockKind> = {
  text_delta: 'text',
  citations_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'thinking',
  input_json_delta: 'tool_use',
};

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

const THINKING_FIELDS: ReadonlySet<string> = new Set(['type', 'thinking', 'signature']);

/** Thinking. Its block opens at once: it may stay empty and still carry a signature. */
export class ThinkingReader implements BlockReader {
  readonly kind = 'thinking';
  isStopped = false;
  readonly #scope: BlockScope;
  readonly #key: number;
  readonly #flow: Flow;
  readonly #start: StartText;
  #isUntouched = true;
  #signature: string;
  #isSigned = false;

  constructor(scope: BlockScope, block: WireBlock) {
    this.#scope = scope;
    const node = otherFields(block, THINKING_FIELDS);
    this.#key = scope.newKey();
    this.#flow = { kind: 'thinking', key: this.#key, start: () => ({ type: 'thinking', thinking: '', ...node }) };
    this.#start = startText(scope, textOf(block.thinking));
    this.#signature = textOf(block.signature);
    scope.emitter.open(this.#flow);
  }

  isRestatedBy(type: string, block: WireBlock): boolean {
    return type === 'thinking' && this.#isUntouched && !this.isStopped && this.#start.isRestatedBy(textOf(block.thinking));
  }

  delta(type: string, delta: WireDelta): boolean {
    if (type === 'thinking_delta') this.#write(this.#start.push(textOf(delta.thinking)));
    else if (type === 'signature_delta') this.#join(textOf(delta.signature));
    else return false;
    this.#isUntouched = false;
    return true;
  }

  #write(piece: string): void {
    if (piece === '') return;
    if (this.isStopped) this.#scope.report('anthropic/delta-after-stop');
    this.#scope.emitter.write(this.#flow, { type: 'thinking_delta', thinking: piece });
  }

  /** The standard sends one signature; proxies split it, and some send it twice. */
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
    this.#scope.emitter.sign(this.#key, { type: 'signature_delta', signature: signatureOf(this.#signature, this.#scope.model) });
  }

  stop(): void {
    if (this.isStopped) return;
    this.#write(this.#start.end());
    this.isStopped = true;
    this.#sign();
    this.#scope.emitter.closeFlow(this.#key);
  }
}

function typeOf(value: JsonObject, byField: readonly (readonly [field: string, type: string])[]): string {
  const type = textOf(value['type']);
  return type !== '' ? type : (byField.find(([field]) => Object.hasOwn(value, field))?.[1] ?? '');
}

const keyOf = (index: unknown): string | undefined =>
  typeof index === 'number' || typeof index === 'string' ? String(index) : undefined;

/** `tool_use` is the client's; every other one, known or of the future, is executed by the provider. */
const KINDS: Record<string, ToolKind> = { tool_use: 'function', mcp_tool_use: 'mcp' };

const TYPES: ReadonlySet<string> = new Set(['tool_use', 'server_tool_use', 'mcp_tool_use']);

const FIELDS: ReadonlySet<string> = new Set(['type', 'id', 'name', 'input']);

/** The type of a block that no `kind` stands for has to be kept. */
const FIELDS_BUT_TYPE: ReadonlySet<string> = new Set(['id', 'name', 'input']);

/** A call. Its arguments arrive as deltas, or whole in the start, or both: then the deltas count. */
class ToolReader implements BlockReader {
  readonly kind = 'tool_use';
  isStopped = false;
  readonly #wireId: unknown;
  readonly #scope: BlockScope;
  readonly #block: ToolUseBlock;
  readonly #index: number;
  readonly #arguments = new ArgumentText();
  /** The input of the start, until a delta or the stop decides about it. */
  #held: string;
  /** Where the last piece of the arguments was. */
  #last: number;

  constructor(scope: BlockScope, type: string, block: WireBlock) {
    this.#scope = scope;
    this.#wireId = block.id;
    this.#held = inputText(block.input);
    this.#last = scope.here();
    const kind = KINDS[type] ?? 'server';
    this.#block = {
      type: 'tool_use',
      ...scope.calls.identify(block.id, block.name),
      input: {},
      ...(kind !== 'function' && { kind }),
      ...otherFields(block, TYPES.has(type) ? FIELDS : FIELDS_BUT_TYPE),
    };
    scope.calls.opened(this.#block);
    this.#index = scope.emitter.openTool(this.#block);
  }

  /** The arguments are one whole document, which no later delta can change. */
  get isSettled(): boolean {
    return this.#arguments.isSettled;
  }

  isRestatedBy(type: string, block: WireBlock): boolean {
    const isSame = type.endsWith('tool_use') && block.id === this.#wireId && this.#arguments.isEmpty && !this.isStopped;
    if (isSame) this.#held ||= inputText(block.input);
    return isSame;
  }

  delta(type: string, { partial_json: piece }: WireDelta): boolean {
    if (type !== 'input_json_delta') return false;
    if (typeof piece === 'string') this.#push(piece);
    // A relay that parses the arguments sends the object itself.
    else if (isObject(piece) && this.#arguments.isEmpty && !this.isStopped) this.#held = inputText(piece);
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

  /** The block has stopped, and its arguments go on: the end of the message tells what they are. Nothing is added to a whole document. */
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

  /** The block in the end. Never an executable call with half its arguments: a flag stands beside the text as it was cut. */
  #judge(text: string, reading: Reading, isCut: boolean): ToolUseBlock {
    const isWhole = text.trim() === '' ? !isCut : parseJson(text) !== undefined;
    if (isWhole) this.#scope.calls.broken.delete(this.#index);
    else this.#scope.calls.broken.set(this.#index, this.#last);
    return !isWhole && reading === 'plain' ? { ...this.#block, status: 'incomplete' } : this.#block;
  }

  stop(isCut: boolean): void {
    if (this.isStopped) return;
    this.isStopped = true;
    if (this.#held !== '') this.#arguments.push(this.#held);
    const { text: whole, reading, rest } = this.#arguments.end();
    this.#scope.emitter.writeTool(this.#index, this.#held !== '' ? this.#held : rest);
    if (reading !== 'plain' && reading !== 'unreadable')
      this.#scope.report('anthropic/input-sent-twice', `the arguments read as ${reading}`, this.#last);
    const final = this.#judge(whole, reading, isCut);
    this.#scope.emitter.stopTool(this.#index, final === this.#block ? undefined : final);
  }
}

/** The input of a block as text; an empty one, which every start carries, says nothing. */
export function inputText(input: unknown): string {
  if (typeof input === 'string') return input.trim() === '{}' ? '' : input;
  if (input === undefined || input === null || (isObject(input) && Object.keys(input).length === 0)) return '';
  const text = writeJson(input);
  if (text === undefined) throw new LimitError('an input nested too deeply to be written as text');
  return text;
}

const TEXT_FIELDS: ReadonlySet<string> = new Set(['type', 'text', 'citations']);

/** Text. Its block opens with the first character or citation: there are no empty ones. */
class TextReader implements BlockReader {
  readonly kind = 'text';
  isStopped = false;
  readonly #scope: BlockScope;
  readonly #flow: Flow;
  readonly #start: StartText;
  #isUntouched = true;

  constructor(scope: BlockScope, block: WireBlock) {
    this.#scope = scope;
    const node = otherFields(block, TEXT_FIELDS);
    this.#flow = { kind: 'text', key: scope.newKey(), start: () => ({ type: 'text', text: '', ...node }) };
    this.#start = startText(scope, textOf(block.text));
    if (Array.isArray(block.citations)) for (const citation of block.citations) this.#cite(citation);
  }

  isRestatedBy(type: string, block: WireBlock): boolean {
    return type === 'text' && this.#isUntouched && !this.isStopped && this.#start.isRestatedBy(textOf(block.text));
  }

  delta(type: string, delta: WireDelta): boolean {
    if (type === 'text_delta') this.#write(this.#start.push(textOf(delta.text)));
    else if (type === 'citations_delta') this.#cite(delta.citation);
    else return false;
    this.#isUntouched = false;
    return true;
  }

  #write(piece: string): void {
    if (piece === '') return;
    if (this.isStopped) this.#scope.report('anthropic/delta-after-stop');
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

function startText(scope: BlockScope, value: string): StartText {
  const start = scope.here();
  return new StartText(value, (isRepeated) =>
    isRepeated ? scope.report('anthropic/start-text-repeated') : scope.report('anthropic/text-in-start', undefined, start),
  );
}

/**
 * The text that a `content_block_start` brings. It is empty in the standard; some relays put the first piece there, others repeat there
 * what the deltas then say. So it waits: deltas that say the same again decide for the one, anything else for the other. Each character
 * is compared once.
 */
export class StartText {
  readonly #text: string;
  /** How much of the text the deltas have repeated. */
  #matched = 0;
  #isDecided: boolean;
  readonly #onDecision: (isRepeated: boolean) => void;

  constructor(text: string, onDecision: (isRepeated: boolean) => void) {
    this.#text = text;
    this.#isDecided = text === '';
    this.#onDecision = onDecision;
  }

  /** Whether a second start with this text is the same start said again. */
  isRestatedBy(text: string): boolean {
    return text === '' || (text === this.#text && !this.#isDecided && this.#matched === 0);
  }

  /** Takes the text of a delta and returns what can go out now. */
  push(piece: string): string {
    if (this.#isDecided) return piece;
    const missing = this.#text.length - this.#matched;
    if (piece.length < missing && this.#text.startsWith(piece, this.#matched)) {
      this.#matched += piece.length;
      return '';
    }
    const isRepeated = piece.length >= missing && piece.startsWith(this.#text.slice(this.#matched));
    const repeated = this.#text.slice(0, this.#matched) + piece;
    this.#decide(isRepeated);
    return isRepeated ? repeated : this.#text + repeated;
  }

  /** The block stops: what the deltas did not repeat to its end was a piece of its own. */
  end(): string {
    if (this.#isDecided) return '';
    this.#decide(false);
    return this.#text + this.#text.slice(0, this.#matched);
  }

  #decide(isRepeated: boolean): void {
    this.#isDecided = true;
    this.#onDecision(isRepeated);
  }
}

/** A block that is whole in its start. */
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

const isToolUse = (type: string): boolean => type === 'tool_use' || type.endsWith('_tool_use');

/** A block that only this protocol understands: its deltas are merged into it as they are. */
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
      // Another block came between: what follows is a block of the same type, and not all of it once more.
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

/** The calls of one message: their ids are unique and never blank, and their number and size are limited. */
export class Calls {
  readonly #report: (rule: RuleId) => void;
  readonly #names = new Map<string, string>();
  readonly limits: CallLimits = new CallLimits();
  #client: ToolUseBlock | undefined;
  /** Seeds derived ids. */
  messageId = '';
  /** Calls that went on after their blocks had stopped, by the index of the block. */
  readonly late: Map<number, () => ToolUseBlock> = new Map();
  /** The blocks of calls whose arguments are no whole JSON document. */
  readonly broken: Map<number, number> = new Map();

  constructor(report: (rule: RuleId) => void) {
    this.#report = report;
  }

  /** A call of the client's own tools, if there is one: it decides the stop reason. */
  get client(): ToolUseBlock[] {
    return this.#client ? [this.#client] : [];
  }

  nameOf(id: unknown): string | undefined {
    return typeof id === 'string' ? this.#names.get(id) : undefined;
  }

  /** The id and name that a block may carry: the wire's where they can be relied on, else derived ones. */
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

  opened(block: ToolUseBlock): void {
    if (isClientCall(block.kind) && !isCalledByCode(block)) this.#client ??= block;
  }
}

/** A call that code made while the provider ran it: it may be answered already, and only Anthropic knows, which says so by its stop reason. */
function isCalledByCode({ extensions }: ToolUseBlock): boolean {
  const caller = extensions?.['anthropic-messages']?.['caller'];
  return isObject(caller) && caller['type'] !== 'direct';
}
