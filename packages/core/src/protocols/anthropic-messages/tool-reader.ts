import { ArgumentText, type Reading } from '../../accumulate/argument-text.ts';
import { isObject, parseJson, writeJson } from '../../accumulate/overlay.ts';
import { LimitError } from '../../accumulate/tool-calls.ts';
import type { ToolKind, ToolUseBlock } from '../../canonical/blocks.ts';
import type { BlockReader, BlockScope } from './block-reader.ts';
import { otherFields } from './blocks.ts';
import type { WireBlock, WireDelta } from './wire.ts';

/** `tool_use` is the client's; every other one, known or of the future, is executed by the provider. */
const KINDS: Record<string, ToolKind> = { tool_use: 'function', mcp_tool_use: 'mcp' };

const FIELDS: ReadonlySet<string> = new Set(['type', 'id', 'name', 'input']);
/** The type of a block that no `kind` stands for has to be kept. */
const FIELDS_BUT_TYPE: ReadonlySet<string> = new Set(['id', 'name', 'input']);
const TYPES: ReadonlySet<string> = new Set(['tool_use', 'server_tool_use', 'mcp_tool_use']);

/** A call. Its arguments arrive as deltas, or whole in the start, or both: then the deltas count. */
export class ToolReader implements BlockReader {
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
