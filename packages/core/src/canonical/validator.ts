import type { BlockDelta, BlockDeltaEvent, BlockStart, BlockStop, CanonicalStreamEvent, MessageDelta } from './events.ts';
import type { ContentBlock } from './message.ts';

/**
 * Passes events through and throws a StreamRuleError when they break one of the rules S1 to S11 of docs/canonical.md.
 * For tests and debugging.
 */
export class StreamValidator {
  #started = false;
  #ended = false;
  readonly #choices = new Map<number, CheckedChoice>();

  push(event: CanonicalStreamEvent): CanonicalStreamEvent[] {
    if (this.#ended) throw new StreamRuleError('S8', `${event.type} after the terminal event`);
    if (event.type !== 'ping') this.#check(event);
    return [event];
  }

  end(): CanonicalStreamEvent[] {
    if (!this.#ended) throw new StreamRuleError('S8', 'the stream has no terminal event');
    return [];
  }

  #check(event: Exclude<CanonicalStreamEvent, { type: 'ping' }>): void {
    const isEarly = !this.#started && event.type !== 'message_start' && event.type !== 'error';
    if (isEarly) throw new StreamRuleError('S1', `${event.type} before message_start`);
    switch (event.type) {
      case 'message_start':
        if (this.#started) throw new StreamRuleError('S1', 'a second message_start');
        if (event.message.id === '') throw new StreamRuleError('S1', 'message_start without an id');
        this.#started = true;
        return;
      case 'content_block_start':
        this.#checkStart(event);
        return;
      case 'content_block_delta':
        this.#checkDelta(event);
        return;
      case 'content_block_stop':
        this.#checkStop(event);
        return;
      case 'message_delta':
        this.#checkMessageDelta(event);
        return;
      case 'message_stop':
        this.#checkEnd();
        return;
      case 'error':
        this.#checkClosed('error');
        this.#ended = true;
        return;
      default:
        event satisfies never;
    }
  }

  #choice(index = 0): CheckedChoice {
    let choice = this.#choices.get(index);
    if (!choice) {
      choice = new CheckedChoice();
      this.#choices.set(index, choice);
    }
    return choice;
  }

  #checkStart({ index, choice, content_block }: BlockStart): void {
    const checked = this.#choice(choice);
    const { blocks, stopReason, openTools, openOthers } = checked;
    if (stopReason !== undefined) throw new StreamRuleError('S7', 'a block starts after message_delta');
    if (index !== blocks.length) throw new StreamRuleError('S2', `block ${index} starts; expected block ${blocks.length}`);
    if (openOthers > 0 || (openTools > 0 && content_block.type !== 'tool_use'))
      throw new StreamRuleError('S4', `${content_block.type} starts while another block is open`);
    if (content_block.type === 'tool_use') checkToolUse(content_block);
    blocks.push({ type: content_block.type, isOpen: true });
    checked.count(content_block.type, 1);
  }

  #checkDelta({ index, choice, delta }: BlockDeltaEvent): void {
    const block = this.#choice(choice).blocks[index];
    if (!block) throw new StreamRuleError('S3', `${delta.type} for block ${index}, which never started`);
    if (!block.isOpen && delta.type !== 'signature_delta')
      throw new StreamRuleError('S3', `${delta.type} for block ${index}, which has stopped`);
    if (!DELTAS[delta.type].includes(block.type)) throw new StreamRuleError('S3', `${delta.type} in a ${block.type} block`);
    if (endsInHalf(delta)) throw new StreamRuleError('S11', `${delta.type} ends in half of a surrogate pair`);
  }

  #checkStop({ index, choice }: BlockStop): void {
    const checked = this.#choice(choice);
    const block = checked.blocks[index];
    if (!block?.isOpen) throw new StreamRuleError('S3', `stop of block ${index}, which is not open`);
    block.isOpen = false;
    checked.count(block.type, -1);
  }

  #checkMessageDelta({ choice, delta }: MessageDelta): void {
    const checked = this.#choice(choice);
    if (checked.hasOpen) throw new StreamRuleError('S7', 'message_delta while a block is open');
    if (checked.stopReason !== undefined) throw new StreamRuleError('S7', 'a second message_delta');
    checked.stopReason = delta.stop_reason;
  }

  #checkEnd(): void {
    this.#checkClosed('message_stop');
    if (this.#choices.size === 0) throw new StreamRuleError('S7', 'message_stop without a message_delta');
    for (const { stopReason } of this.#choices.values())
      if (!stopReason) throw new StreamRuleError('S7', 'message_stop without a stop reason');
    this.#ended = true;
  }

  #checkClosed(by: string): void {
    for (const { hasOpen } of this.#choices.values()) {
      if (hasOpen) throw new StreamRuleError('S3', `${by} while a block is open`);
    }
  }
}

/** A decoder broke a rule of the canonical stream. This is a bug in the decoder, so it is thrown. */
export class StreamRuleError extends Error {
  override readonly name = 'StreamRuleError';
  readonly rule: string;

  constructor(rule: string, message: string) {
    super(`${rule}: ${message}`);
    this.rule = rule;
  }
}

class CheckedChoice {
  readonly blocks: CheckedBlock[] = [];
  openTools = 0;
  openOthers = 0;
  stopReason: string | null | undefined;

  count(type: ContentBlock['type'], by: 1 | -1): void {
    if (type === 'tool_use') this.openTools += by;
    else this.openOthers += by;
  }

  get hasOpen(): boolean {
    return this.openTools + this.openOthers > 0;
  }
}

interface CheckedBlock {
  type: ContentBlock['type'];
  isOpen: boolean;
}

/** The blocks that each delta may be in. */
const DELTAS: Record<BlockDelta['type'], ContentBlock['type'][]> = {
  text_delta: ['text'],
  input_json_delta: ['tool_use'],
  input_text_delta: ['tool_use'],
  thinking_delta: ['thinking'],
  signature_delta: ['thinking', 'text', 'tool_use'],
  citations_delta: ['text'],
  audio_delta: ['audio'],
  opaque_delta: ['opaque'],
};

function checkToolUse(block: Extract<ContentBlock, { type: 'tool_use' }>): void {
  if (block.id === '' || block.name === '') throw new StreamRuleError('S5', 'a call starts without id or name');
  const isEmpty = typeof block.input === 'string' ? block.input === '' : Object.keys(block.input).length === 0;
  if (!isEmpty || block.input_raw) throw new StreamRuleError('S5', 'a call starts with arguments; these must be sent as deltas');
}

function endsInHalf(delta: BlockDelta): boolean {
  const text =
    'text' in delta ? delta.text : 'thinking' in delta ? delta.thinking : 'partial_json' in delta ? delta.partial_json : '';
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}
