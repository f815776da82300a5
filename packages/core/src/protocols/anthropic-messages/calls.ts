import { deriveId } from '../../accumulate/derive-id.ts';
import { isObject } from '../../accumulate/overlay.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';
import { isClientCall } from '../../canonical/response.ts';
import type { RuleId } from '../../doctor/rules.ts';
import { CallLimits } from '../shared/call-limits.ts';

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
